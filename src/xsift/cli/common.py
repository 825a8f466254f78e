"""What several subcommands share: options for subscriptions, progress, numbers for people."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from tqdm import tqdm

import xsift
from xsift.errors import StorageError, SubscriptionError, XsiftError
from xsift.matching import Limits, MatcherOptions, Residuals
from xsift.matching.display import plural, printable
from xsift.sources.namespaces import combined, namespaces_in_file, namespaces_in_text
from xsift.sources.subscriptions import SubscriptionFile, is_subscription_file, read_subscriptions

if TYPE_CHECKING:
    from xsift.tables import SubscriptionTable

__all__ = [
    "SAVED",
    "add_errors_option",
    "add_namespace_options",
    "add_subscription_options",
    "encoding_of",
    "engine_options",
    "limits_of",
    "load_matcher",
    "load_saved",
    "matcher_options",
    "namespaces_of",
    "open_subscriptions",
    "plural",
    "positive",
    "progress",
    "report_failed",
    "say",
    "table_named",
    "told",
]

Item = TypeVar("Item")
LIMITS = {field.name: field.default for field in fields(Limits)}
REPORTED = 20  # subscriptions that cannot be used, of which each is shown
SAVED = ".xsift"


# Options


def positive(text: str) -> int:
    """A whole number from 1, for argparse."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1")
    return int(text)


def add_namespace_options(parser: argparse.ArgumentParser) -> None:
    """--namespace and --namespaces."""
    parser.add_argument(
        "-n",
        "--namespace",
        action="append",
        default=[],
        metavar="PREFIX=URI",
        help="a prefix that the expressions use; may be given several times",
    )
    parser.add_argument(
        "--namespaces",
        action="append",
        default=[],
        metavar="FILE",
        help="a file of such prefixes: .toml, .json, or PREFIX=URI lines; may be given several times",
    )


def add_errors_option(parser: argparse.ArgumentParser, default: str = "collect") -> None:
    """--errors, and how it was called before."""
    parser.add_argument(
        "--errors",
        choices=["collect", "raise"],
        default=default,
        help="subscriptions that cannot be used: 'collect' reports each and goes on without them, 'raise' stops; "
        f"default: {default}",
    )
    parser.add_argument("--skip-errors", dest="errors", action="store_const", const="collect", help=argparse.SUPPRESS)


def add_subscription_options(parser: argparse.ArgumentParser) -> None:
    """--subscriptions, namespaces, --errors, and how to match: --engine, --option, --limit, --residuals."""
    parser.add_argument(
        "-s",
        "--subscriptions",
        required=True,
        metavar="FILE",
        help="ids and XPath expressions: .tsv, .csv, .jsonl, .parquet, a saved matcher or set (.xsift),"
        " or a table of subscriptions: TABLE[@VERSION]",
    )
    add_namespace_options(parser)
    add_errors_option(parser)
    parser.add_argument("-e", "--engine", help="see `xsift engines`; default: auto")
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
        help="'refuse' takes only subscriptions that can be indexed whole; default: verify",
    )
    parser.add_argument(
        "--no-validate",
        action="store_true",
        help="do not read the rest of a document once every subscription is decided, nor see what is wrong there",
    )


def namespaces_of(arguments: argparse.Namespace) -> dict[str, str]:
    """The --namespace and --namespaces options as one mapping. A prefix with two meanings is an error."""
    found: dict[str, str] = {}
    for name in arguments.namespaces:
        found = combined(found, namespaces_in_file(name))
    for text in arguments.namespace:
        if text.lstrip().startswith("{") or len(text.split()) != 1:
            raise SubscriptionError("bad-namespace", f"--namespace {text} is not PREFIX=URI", hint="e.g. n=urn:news")
        found = combined(found, namespaces_in_text(text))
    return found


def engine_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The --option options as a mapping; numbers and true/false become what they look like."""
    options: dict[str, Any] = {}
    for text in arguments.option:
        name, separator, value = text.partition("=")
        if not name or not separator:
            raise XsiftError("bad-option", f"--option {text} is not NAME=VALUE", hint="e.g. cache_bytes=1000000")
        if value.lower() in ("true", "false"):
            options[name] = value.lower() == "true"
        else:
            options[name] = int(value) if value.removeprefix("-").isdecimal() else value
    return options


def encoding_of(arguments: argparse.Namespace) -> str | None:
    """The --encoding option, if Python knows it. Whether XML can be in it is seen with each document."""
    encoding: str | None = arguments.encoding
    try:
        "".encode(encoding or "utf-8")
    except (LookupError, UnicodeError):
        raise XsiftError("bad-option", f"--encoding {encoding} is not known", hint="e.g. cp1252") from None
    return encoding


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
        engine=arguments.engine or "auto",
        engine_options=engine_options(arguments),
        limits=limits_of(arguments),
        residuals=arguments.residuals or "verify",
        validate=not arguments.no_validate,
    )


# Subscriptions


@dataclass
class Loaded:
    """A matcher, and how many subscriptions were left out because they cannot be used."""

    matcher: xsift.Matcher
    failed: int = 0


def open_subscriptions(name: str, namespaces: Mapping[str, str]) -> SubscriptionFile:
    """Whatever `-s` names but a saved matcher: the rows of a file, or of a table at a version (`TABLE[@VERSION]`),
    with errors beside them, and the prefixes that all of them may use: those given, and those of the table."""
    table, version = (None, None) if is_subscription_file(name) and os.path.isfile(name) else _table_and_version(name)
    if table is None:
        if not is_subscription_file(name) and not os.path.exists(name):
            raise SubscriptionError("unreadable-file", f"there is no file and no table {name}", hint="see --help")
        return read_subscriptions(name, namespaces=namespaces)
    rows = table.as_of(version).select(["id", "xpath", "ordered", "namespaces"])
    return SubscriptionFile(name, rows, namespaces=combined(namespaces, table.namespaces))


def _table_and_version(name: str) -> tuple[SubscriptionTable | None, int | datetime | None]:
    return table_named(name) or (None, None)


def table_named(name: str) -> tuple[SubscriptionTable, int | datetime | None] | None:
    """The table and the version that `TABLE[@VERSION]` names; None if it is a file."""
    path = name.rpartition("@")[0] or name
    if "://" not in name and not os.path.isdir(name) and not os.path.isdir(path):
        return None
    from xsift.tables import SubscriptionTable, split_version

    place, version = split_version(name)
    return SubscriptionTable(place), version


def load_matcher(arguments: argparse.Namespace) -> Loaded:
    """The matcher that the options ask for. Subscriptions that cannot be used are reported."""
    options = matcher_options(arguments)
    if arguments.subscriptions.endswith(SAVED):
        return Loaded(load_saved(arguments, options))
    found = open_subscriptions(arguments.subscriptions, namespaces_of(arguments))
    subscriptions = options.subscriptions(found.namespaces)
    failed = found.located(subscriptions.add_many(found.table, errors="collect"))
    report_failed(failed, arguments.errors)
    return Loaded(options.matcher(subscriptions), len(failed))


def load_saved(arguments: argparse.Namespace, options: MatcherOptions) -> xsift.Matcher:
    """A saved matcher; or one made of a saved set, which leaves the engine open."""
    name = arguments.subscriptions
    try:
        matcher = xsift.Matcher.load(name, limits=options.limits, validate=options.validate)
    except StorageError as error:
        if error.code != "a-set":
            raise
        _check_saved(arguments, ("--namespace", "--namespaces", "--residuals"))
        return options.matcher(xsift.Subscriptions.load(name))
    _check_saved(arguments)
    return matcher


def _check_saved(arguments: argparse.Namespace, decided: Sequence[str] = ()) -> None:
    """Raises an error if an option is given that a saved matcher cannot follow any more."""
    given = {
        "--engine": arguments.engine,
        "--option": arguments.option,
        "--namespace": arguments.namespace,
        "--namespaces": arguments.namespaces,
        "--residuals": arguments.residuals,
    }
    for option, value in given.items():
        if decided and option not in decided:
            continue
        if value:
            raise XsiftError(
                "bad-option",
                f"{option} has no effect on a saved matcher: it was decided when {arguments.subscriptions} was saved",
                hint="leave it out, or give the subscriptions themselves",
            )


def report_failed(failed: Sequence[XsiftError], errors: str) -> None:
    """Shows the subscriptions that cannot be used; raises an error if it is not to go on without them."""
    for error in failed[:REPORTED]:
        say(f"xsift: {error}")
    if len(failed) > REPORTED:
        say(f"xsift: and {len(failed) - REPORTED:,} more; `xsift check` lists all")
    if failed and errors == "raise":
        raise SubscriptionError(
            "bad-subscriptions",
            f"{plural(len(failed), 'subscription')} cannot be used",
            hint="mend them, or go on without them: --errors collect",
        )


# For people to read


def say(line: str) -> None:
    """A line on standard error. What a terminal would obey is escaped: ids and names are strangers'."""
    print(printable(line), file=sys.stderr)


def told(document: str, error: XsiftError) -> str:
    """What is wrong with a document, in a line that begins with its name and place."""
    line, column = getattr(error, "line", 0), getattr(error, "column", 0)
    where = f"{line}:{column}:" if line else ""
    # An id may be a word that messages begin with, such as "the"; a place is never in both.
    named = not line and error.message.startswith((f"{document} ", f"{document}:"))
    text = error.message if named else f"{document}:{where} {error.message}"
    return f"{text}: {error.hint} [{error.code}]" if error.hint else f"{text} [{error.code}]"


def progress(items: Iterable[Item], unit: str, total: int | None = None, *, quiet: bool = False) -> Iterator[Item]:
    """The items, with a bar on standard error if that is a terminal and it takes longer than a moment."""
    return iter(
        tqdm(items, unit=f" {unit}", total=total, delay=1, leave=False, disable=quiet or not sys.stderr.isatty())
    )
