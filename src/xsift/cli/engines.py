"""`xsift engines`: the engines, and when to use which."""

from __future__ import annotations

import argparse
import dataclasses
import json

import xsift
from xsift.cli import EXIT_OK


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds this subcommand's options."""
    parser.add_argument("--json", action="store_true", help="a JSON list instead of text")


def run(arguments: argparse.Namespace) -> int:
    """Lists; returns the exit code."""
    found = xsift.list_engines()
    if arguments.json:
        print(json.dumps([dataclasses.asdict(engine) for engine in found], ensure_ascii=False))
        return EXIT_OK
    for engine in found:
        print(engine.name)
        for label, text in (
            ("paper", engine.paper),
            ("takes", engine.takes),
            ("wins", engine.wins),
            ("caveat", engine.caveat),
        ):
            print(f"    {label:8}{text}")
        for option, values in engine.options.items():
            print(f"    option  {option}=" + "|".join(str(value) for value in values))
    return EXIT_OK
