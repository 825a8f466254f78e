"""The command line: `xsift SUBCOMMAND …`, one file for each subcommand.

A subcommand's module has `configure(parser)` and `run(arguments) -> exit code`. Only the module that is asked for is
imported, so that `xsift match` does not wait for Spark.

Exit codes, the same for all: 0 done, and something matched; 1 nothing matched; 2 wrong use; 3 some documents or
subscriptions failed, and all others were done; 4 could not run.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
import traceback
from collections.abc import Sequence

from xsift.errors import EngineError, WorkloadError, XsiftError

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

EXIT_OK, EXIT_NOTHING, EXIT_USAGE, EXIT_BROKEN, EXIT_FAILED = 0, 1, 2, 3, 4
EXIT_CODES = """\
exit code: 0 something matched; 1 nothing did; 2 wrong use; 3 some documents or subscriptions failed (each is
  reported on standard error, and all others are done); 4 could not run
"""

# Errors whose remedy is another command line. All others mean that it could not be run.
USAGE_CODES = {
    "bad-action",
    "bad-column",
    "bad-condition",
    "bad-config",
    "bad-database-url",
    "bad-namespace",
    "bad-option",
    "bad-owner",
    "bad-path",
    "bad-role",
    "bad-version",
    "missing-option",
    "namespace-conflict",
    "no-admin",
    "no-keys",
    "no-output",
    "not-splittable",
    "not-tsv",
    "other-namespace",
    "output-exists",
    "unknown-format",
    "unknown-id",
    "unknown-key",
    "unknown-version",
    "version-conflict",
    "version-forgotten",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a subcommand; returns what the process should exit with."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    _set_streams()
    try:
        try:
            parsed = _parser(given).parse_args(given)
            return int(importlib.import_module(f"xsift.cli.{parsed.subcommand}").run(parsed))
        finally:
            sys.stdout.flush()  # what cannot be written is seen here, not when the interpreter ends
    except BrokenPipeError:  # `xsift match … | head`
        _drop_output()
        return EXIT_OK
    except XsiftError as error:
        from xsift.cli.common import say

        say(f"xsift: {error}")
        return EXIT_USAGE if _is_usage(error) else EXIT_FAILED
    except OSError as error:
        _drop_output()
        name = f"{error.filename}: " if error.filename else ""
        print(f"xsift: {name}{error.strerror or error} [unusable-file]", file=sys.stderr)
        return EXIT_FAILED
    except MemoryError:
        print("xsift: there is not enough memory [out-of-memory]", file=sys.stderr)
        return EXIT_FAILED
    except KeyboardInterrupt:
        print("xsift: interrupted", file=sys.stderr)
        return 130
    except Exception:  # Python would exit with 1, which says that nothing matched
        traceback.print_exc()
        print("xsift: this is a fault in xsift itself: please report it [internal-error]", file=sys.stderr)
        return EXIT_FAILED


def _drop_output() -> None:
    """Lets go of what standard output does not take: Python would try again at its end, and exit with 120."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _set_streams() -> None:
    """Has results written as UTF-8, and text that cannot be printed shown in some way, whatever the locale is. Of
    streams that are closed, input is empty, messages are lost, and output cannot be written."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(errors="backslashreplace")


def _parser(given: list[str]) -> argparse.ArgumentParser:
    from xsift import __version__

    parser = argparse.ArgumentParser(
        prog="xsift",
        description="Which of many standing XPath subscriptions do these XML documents satisfy?",
        epilog="xsift SUBCOMMAND --help says more about each.",
    )
    parser.add_argument("--version", action="version", version=f"xsift {__version__}")
    subparsers = parser.add_subparsers(dest="subcommand", metavar="SUBCOMMAND", required=True)
    for name, summary in SUBCOMMANDS.items():
        subparser = subparsers.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
        if given[:1] == [name]:
            importlib.import_module(f"xsift.cli.{name}").configure(subparser)
    return parser


def _is_usage(error: XsiftError) -> bool:
    from xsift.experiments.errors import ExperimentError

    return error.code in USAGE_CODES or isinstance(error, EngineError | WorkloadError | ExperimentError)
