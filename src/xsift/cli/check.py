"""`xsift check`: can every subscription be used, and how much of each is indexed?"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import get_args

import xsift
from xsift.cli import EXIT_BROKEN, EXIT_OK
from xsift.cli.common import add_namespace_options, namespaces_of, open_subscriptions, plural, progress, say
from xsift.errors import XsiftError
from xsift.matching import Residuals

EPILOG = """\
exit code: 0 every subscription can be used; 2 wrong use; 3 some cannot (each is reported with file, line and column);
  4 could not run
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds this subcommand's options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument(
        "subscriptions",
        metavar="FILE",
        help="ids and XPath expressions: .tsv, .csv, .jsonl, .parquet, or TABLE[@VERSION]",
    )
    add_namespace_options(parser)
    parser.add_argument(
        "--residuals",
        choices=get_args(Residuals),
        default="verify",
        help="'refuse' takes only subscriptions that can be indexed whole; default: verify",
    )
    parser.add_argument(
        "--list",
        action="store_true",
        help="say of each subscription whether it is indexed, evaluated or refused, and why; then the share of each",
    )
    parser.add_argument("--json", action="store_true", help="a JSON object instead of text")


def run(arguments: argparse.Namespace) -> int:
    """Checks; returns the exit code."""
    found = open_subscriptions(arguments.subscriptions, namespaces_of(arguments))
    subscriptions = xsift.Subscriptions(namespaces=found.namespaces, residuals=arguments.residuals)
    failed = found.located(subscriptions.add_many(found.table, errors="collect"))
    reports = [
        subscriptions.explain(id)
        for id in progress(subscriptions, "subscriptions", len(subscriptions), quiet=arguments.json)
    ]
    patterns = len({pattern for report in reports for pattern in report.patterns})
    evaluated = [report for report in reports if report.decided == "evaluated"]
    counts = {
        "subscriptions": found.rows,
        "indexed": len(reports) - len(evaluated),
        "evaluated": len(evaluated),
        "refused": len(failed),
        "distinct_patterns": patterns,
        "evaluated_on_every_document": sum(report.always for report in evaluated),
        "never_matching": sum(report.never for report in reports),
        "comments": found.comments,
    }
    if arguments.json:
        print(json.dumps({**counts, "errors": [_facts(error) for error in failed]}, ensure_ascii=False))
    else:
        _print(arguments, counts, failed, reports)
    return EXIT_BROKEN if failed else EXIT_OK


def _facts(error: XsiftError) -> dict[str, object]:
    return {"id": getattr(error, "id", None), "place": error.place, "code": error.code, "message": str(error)}


def _print(
    arguments: argparse.Namespace,
    counts: dict[str, int],
    failed: Sequence[XsiftError],
    reports: list[xsift.SubscriptionReport],
) -> None:
    for error in failed:
        say(str(error))
    if arguments.list:
        print("\n".join(str(report) for report in reports))
    patterns = plural(counts["distinct_patterns"], "distinct pattern")
    print(f"{plural(counts['subscriptions'], 'subscription')}, {patterns}")
    notes = {
        "indexed": "indexed: the index decides alone",
        "evaluated": "evaluated on the documents that pass the part that is indexed",
        "refused": "refused: they cannot be used",
    }
    for name, note in notes.items():
        if counts["subscriptions"]:
            print(f"  {counts[name]:,} ({counts[name] / counts['subscriptions']:.0%}) {note}")
    if counts["evaluated_on_every_document"]:
        print(
            f"  {counts['evaluated_on_every_document']:,} of them have nothing to index: evaluated on every document"
        )
    if counts["never_matching"]:
        print(f"  {counts['never_matching']:,} can never match")
    if counts["comments"]:
        print(f"  {plural(counts['comments'], 'line')} beside them: comments")
