"""What several subcommands share: options for subscriptions, progress, numbers for eyes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import pyarrow as pa
from tqdm import tqdm

import xsift
from xsift.errors import StorageError, SubscriptionError, XsiftError
from xsift.matching import Limits, MatcherOptions, Residuals
from xsift.sources.files import SUBSCRIPTION_FORMATS, read_subscriptions

if TYPE_CHECKING:
    from xsift.tables import SubscriptionTable

__all__ = [
    "add_subscription_options",
    "load_matcher",
    "load_subscriptions",
    "plural",
    "progress",
    "report_failed",
    "subscription_rows",
    "table_named",
]

Item = TypeVar("Item")
LIMITS = {field.name: field.default for field in fields(Limits)}


def add_subscription_options(parser: argparse.ArgumentParser) -> None:
    """--subscriptions, --namespace, --skip-errors, and how to match: --engine, --option, --limit, --residuals."""
    parser.add_argument(
        "-s",
        "--subscriptions",
        required=True,
        metavar="FILE",
        help="ids and XPath expressions: .tsv, .csv, .jsonl, .parquet, a saved matcher or set (.xsift),"
        " or a table of subscriptions: TABLE[@VERSION]",
    )
    parser.add_argument(
        "-n",
        "--namespace",
        action="append",
        default=[],
        metavar="PREFIX=URI",
        help="a prefix that the expressions use; may be given several times",
    )
    parser.add_argument("-e", "--engine", default="auto", help="see `xsift engines`; default: auto")
    parser.add_argument(
        "-o",
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of the engine; may be given several times",
    )
    parser.add_argument(
        "--limit",
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        help="what a document may cost, such as depth=200; names: " + ", ".join(LIMITS),
    )
    parser.add_argument(
        "--residuals",
        choices=get_args(Residuals),
        default="verify",
        help="'refuse' takes only subscriptions that can be indexed whole; default: verify",
    )
    parser.add_argument(
        "--no-validate",
        action="store_true",
        help="do not read the rest of a document once every subscription is decided, nor see what is wrong there",
    )
    parser.add_argument(
        "--skip-errors", action="store_true", help="go on without the subscriptions that cannot be used"
    )


def namespaces_of(arguments: argparse.Namespace) -> dict[str, str]:
    """The --namespace options as a mapping."""
    pairs = [text.partition("=") for text in arguments.namespace]
    for prefix, separator, uri in pairs:
        if not prefix or not separator:
            raise SubscriptionError(
                "bad-namespace", f"--namespace {prefix}{separator}{uri} is not PREFIX=URI", hint="e.g. n=urn:news"
            )
    return {prefix: uri for prefix, _, uri in pairs}


def engine_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The --option options as a mapping; numbers and true/false become what they look like."""
    options: dict[str, Any] = {}
    for text in arguments.option:
        name, _, value = text.partition("=")
        if value in ("true", "True", "false", "False"):
            options[name] = value.lower() == "true"
        else:
            options[name] = int(value) if value.lstrip("-").isdigit() else value
    return options


def limits_of(arguments: argparse.Namespace) -> Limits:
    """The --limit options."""
    chosen: dict[str, Any] = {}
    for text in arguments.limit:
        name, _, value = text.partition("=")
        if name not in LIMITS:
            raise XsiftError("bad-option", f"there is no limit {name!r}", hint="one of: " + ", ".join(LIMITS))
        try:
            chosen[name] = float(value) if name == "amplification" else int(value)
            Limits(**{name: chosen[name]})
        except ValueError:
            raise XsiftError("bad-option", f"--limit {text}", hint=f"e.g. {name}={LIMITS[name]}") from None
    return Limits(**chosen)


def matcher_options(arguments: argparse.Namespace) -> MatcherOptions:
    """How to match, as the options say."""
    return MatcherOptions(
        engine=arguments.engine,
        engine_options=engine_options(arguments),
        limits=limits_of(arguments),
        residuals=arguments.residuals,
        validate=not arguments.no_validate,
    )


def load_subscriptions(arguments: argparse.Namespace) -> tuple[xsift.Subscriptions, int]:
    """The set that the options name, and how many subscriptions were left out; each of these is reported."""
    if arguments.subscriptions.endswith(".xsift"):
        return xsift.Subscriptions.load(arguments.subscriptions), 0
    rows, namespaces = subscription_rows(arguments.subscriptions, namespaces_of(arguments))
    subscriptions = xsift.Subscriptions(namespaces=namespaces, residuals=arguments.residuals)
    failed = subscriptions.add_many(rows, errors="collect")
    report_failed(failed)
    if failed and not arguments.skip_errors:
        raise SubscriptionError(
            "bad-subscriptions",
            f"{plural(len(failed), 'subscription')} cannot be used",
            hint="mend them, or go on without them with --skip-errors",
        )
    return subscriptions, len(failed)


def subscription_rows(name: str, namespaces: dict[str, str]) -> tuple[pa.Table, dict[str, str]]:
    """The rows of a file of subscriptions, or of a table at a version (`TABLE[@VERSION]`), and the prefixes that they
    may use: those given, and those of the table."""
    if name.removesuffix(".gz").endswith(SUBSCRIPTION_FORMATS) and os.path.isfile(name):
        return read_subscriptions(name), namespaces
    table, version = table_named(name) or (None, None)
    if table is None:
        return read_subscriptions(name), namespaces
    rows = table.as_of(version).select(["id", "xpath", "ordered", "namespaces"])
    return rows, {**namespaces, **table.namespaces}


def table_named(name: str) -> tuple[SubscriptionTable, int | datetime | None] | None:
    """The table and the version that `TABLE[@VERSION]` names; None if it is a file."""
    path = name.rpartition("@")[0] or name
    if "://" not in name and not os.path.isdir(name) and not os.path.isdir(path):
        return None
    from xsift.tables import SubscriptionTable, split_version

    place, version = split_version(name)
    return SubscriptionTable(place), version


def report_failed(failed: Sequence[tuple[str, XsiftError]]) -> None:
    """Says which subscriptions cannot be used; the first of them, if there are many."""
    for _, error in failed[:20]:
        print(f"xsift: {error}", file=sys.stderr)
    if len(failed) > 20:
        print(f"xsift: and {len(failed) - 20:,} more", file=sys.stderr)


def load_matcher(arguments: argparse.Namespace) -> xsift.Matcher:
    """The matcher that the options ask for."""
    options = matcher_options(arguments)
    if arguments.subscriptions.endswith(".xsift"):
        try:
            return xsift.Matcher.load(arguments.subscriptions, limits=options.limits, validate=options.validate)
        except StorageError as error:
            if error.code != "a-set":
                raise
    subscriptions, _ = load_subscriptions(arguments)
    return options.matcher(subscriptions)


def progress(items: Iterable[Item], unit: str, total: int | None = None, *, quiet: bool = False) -> Iterator[Item]:
    """The items, with a bar on standard error if that is a terminal and it takes longer than a moment."""
    return iter(
        tqdm(items, unit=f" {unit}", total=total, delay=1, leave=False, disable=quiet or not sys.stderr.isatty())
    )


def plural(number: int, noun: str) -> str:
    """1 document, 2 documents, 12,345 documents; matches, not matchs."""
    if number == 1:
        return f"1 {noun}"
    ending = "es" if noun.endswith(("ch", "s", "x")) else "s"
    return f"{number:,} {noun}{ending}"
