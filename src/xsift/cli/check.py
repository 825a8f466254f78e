"""`xsift check`: can every subscription be used, and how much of each is indexed?"""

from __future__ import annotations

import argparse
import json
import sys

import xsift
from xsift.cli import EXIT_NOTHING, EXIT_OK
from xsift.cli.common import namespaces_of, plural, progress, subscription_rows

EPILOG = """\
exit code: 0 every subscription can be used; 1 some cannot (each is reported with its position); 2 wrong use
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
    parser.add_argument(
        "-n",
        "--namespace",
        action="append",
        default=[],
        metavar="PREFIX=URI",
        help="a prefix that the expressions use",
    )
    parser.add_argument(
        "--list",
        action="store_true",
        help="say of each subscription whether it is indexed, evaluated or refused, and why; then the share of each",
    )
    parser.add_argument("--json", action="store_true", help="a JSON object instead of text")


def run(arguments: argparse.Namespace) -> int:
    """Checks; returns the exit code."""
    table, namespaces = subscription_rows(arguments.subscriptions, namespaces_of(arguments))
    subscriptions = xsift.Subscriptions(namespaces=namespaces)
    failed = subscriptions.add_many(table, errors="collect")
    reports = [
        subscriptions.explain(id)
        for id in progress(subscriptions, "subscriptions", len(subscriptions), quiet=arguments.json)
    ]
    patterns = len({pattern for report in reports for pattern in report.patterns})
    evaluated = [report for report in reports if report.decided == "evaluated"]
    counts = {
        "subscriptions": table.num_rows,
        "indexed": len(reports) - len(evaluated),
        "evaluated": len(evaluated),
        "refused": len(failed),
        "distinct_patterns": patterns,
        "evaluated_on_every_document": sum(report.always for report in evaluated),
        "never_matching": sum(report.never for report in reports),
    }
    if arguments.json:
        errors = [{"id": id, "code": error.code, "message": str(error)} for id, error in failed]
        print(json.dumps({**counts, "errors": errors}, ensure_ascii=False))
    else:
        _print(arguments, counts, failed, reports)
    return EXIT_NOTHING if failed else EXIT_OK


def _print(
    arguments: argparse.Namespace,
    counts: dict[str, int],
    failed: list[tuple[str, xsift.XsiftError]],
    reports: list[xsift.SubscriptionReport],
) -> None:
    for _, error in failed:
        print(error, file=sys.stderr)
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
