"""The command line: `xsift SUBCOMMAND …`, one file a subcommand.

A subcommand's module has HELP, `configure(parser)` and `run(arguments) -> exit code`. Only the module that is asked
for is imported, so that `xsift match` does not wait for Spark.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from xsift.errors import XsiftError

__all__ = ["main"]

SUBCOMMANDS = {
    "match": "which subscriptions do these documents satisfy",
    "check": "can every subscription be used, and how much of each is indexed",
    "subscriptions": "a table of subscriptions with versions: add, remove, list, history, diff, import, export",
    "explain": "why did a subscription match a document, or where did it stop",
    "engines": "the engines, and when to use which",
    "generate": "make documents and subscriptions like those of the papers",
    "experiment": "rerun the experiments of the papers",
    "spark": "the same on Spark: batch and streams",
    "serve": "publish, subscribe, be told: a service by HTTP",
    "demo": "the main job on generated data",
}

EXIT_OK, EXIT_NOTHING, EXIT_USAGE, EXIT_BROKEN = 0, 1, 2, 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a subcommand; returns what the process should exit with."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(
        prog="xsift",
        description="Which of many standing XPath subscriptions do these XML documents satisfy?",
        epilog="xsift SUBCOMMAND --help says more about each.",
    )
    subparsers = parser.add_subparsers(dest="subcommand", metavar="SUBCOMMAND", required=True)
    for name, summary in SUBCOMMANDS.items():
        subparser = subparsers.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
        if given[:1] == [name]:
            importlib.import_module(f"xsift.cli.{name}").configure(subparser)
    parsed = parser.parse_args(given)
    try:
        return int(importlib.import_module(f"xsift.cli.{parsed.subcommand}").run(parsed))
    except XsiftError as error:
        print(f"xsift: {error}", file=sys.stderr)
        return EXIT_USAGE
    except BrokenPipeError:  # `xsift match … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    except KeyboardInterrupt:
        print("xsift: interrupted", file=sys.stderr)
        return 130
