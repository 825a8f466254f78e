"""`xsift subscriptions`: look at and change a subscription table, which has a version for each change."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet

from xsift.cli import EXIT_BROKEN, EXIT_NOTHING, EXIT_OK
from xsift.cli.common import (
    add_errors_option,
    add_namespace_options,
    namespaces_of,
    plural,
    positive,
    report_failed,
    say,
)
from xsift.errors import SubscriptionError, TableError, XPathError, XsiftError
from xsift.matching.display import printable
from xsift.sources.namespaces import namespaces_in_text
from xsift.sources.subscriptions import read_subscriptions
from xsift.tables import SubscriptionTable, split_version
from xsift.tables.places import version_in

EPILOG = """\
a table is a folder or a URL (s3://…, gs://…, abfss://…), which `add` and `import` make if it is not there; where a
version can be chosen it is written behind it: alerts@12, or alerts@2030-01-31T12:00 for the one of that time

exit code: 0 done; 1 there was nothing to list, or nothing is different; 2 wrong use, and nothing was changed;
  3 done without the subscriptions that cannot be used; 4 could not be done, and nothing was changed
"""
TABLE = {"metavar": "TABLE", "help": "a folder or URL"}
LINE_ENDS = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r"})
"""What cells of a line for people must not have. A backslash stays one: expressions are copied from there."""
AT = {"metavar": "TABLE[@VERSION]", "help": "a folder or URL, and perhaps a version or time"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the actions and their options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    add = actions.add_parser("add", help="add a subscription, or replace the one with its id")
    add.add_argument("table", **TABLE)  # type: ignore[arg-type]
    add.add_argument("id")
    add.add_argument("xpath")
    add.add_argument("--ordered", action="store_true", help="its parts have to come in the order written")
    add.add_argument("--set", action="append", default=[], metavar="COLUMN=VALUE", help="a column of your own")

    bring = actions.add_parser("import", help="add all subscriptions of a file")
    bring.add_argument("table", **TABLE)  # type: ignore[arg-type]
    bring.add_argument(
        "file", help=".tsv, .csv, .jsonl or .parquet; other columns than id, xpath and ordered stay too"
    )
    bring.add_argument("--replace", action="store_true", help="make the file the whole set: what it has not, goes")
    add_errors_option(bring, default="raise")

    remove = actions.add_parser("remove", help="remove subscriptions")
    remove.add_argument("table", **TABLE)  # type: ignore[arg-type]
    remove.add_argument("ids", nargs="*", metavar="ID", help="what to remove; - reads ids from standard input")
    remove.add_argument("--missing-ok", action="store_true", help="no error if one is not there")

    for name, summary in (("list", "print subscriptions"), ("export", "write subscriptions into a file")):
        shown = actions.add_parser(name, help=summary)
        shown.add_argument("table", **AT)  # type: ignore[arg-type]
        if name == "export":
            shown.add_argument("file", help=".tsv, .csv, .jsonl or .parquet; - is JSON lines on standard output")
        else:
            shown.add_argument("--json", action="store_true", help="a JSON object a line")
    history = actions.add_parser("history", help="who changed what, and when; the latest first")
    history.add_argument("table", **TABLE)  # type: ignore[arg-type]
    history.add_argument("--limit", type=positive, metavar="N", help="only the last N changes")
    history.add_argument("--json", action="store_true", help="a JSON object a line")
    diff = actions.add_parser("diff", help="what is different between two versions")
    diff.add_argument("table", **TABLE)  # type: ignore[arg-type]
    diff.add_argument("after", metavar="FROM", help="a version or time")
    diff.add_argument("until", metavar="TO", nargs="?", help="a version or time; default: the latest")
    compact = actions.add_parser("compact", help="merge files and delete dead ones; writers do this as they go")
    compact.add_argument("table", **TABLE)  # type: ignore[arg-type]
    compact.add_argument(
        "--forget-before", metavar="VERSION", help="also forget what was before this version or time"
    )

    for subparser in (remove, actions.choices["list"], actions.choices["export"]):
        subparser.add_argument(
            "--where",
            action="append",
            default=[],
            metavar="COLUMN=VALUE",
            help="only those; may be given several times",
        )
    for subparser in (add, bring):
        add_namespace_options(subparser)
    for subparser in (add, bring, remove):
        subparser.add_argument("--user", help="who the history names; default: you")
        subparser.add_argument("--if-version", type=int, metavar="N", help="only if the table is at this version")
    for subparser in actions.choices.values():
        subparser.add_argument(
            "--storage", action="append", default=[], metavar="NAME=VALUE", help="an option of the object store"
        )


def run(arguments: argparse.Namespace) -> int:
    """Does what was asked; returns the exit code."""
    action = {
        "add": _add,
        "import": _import,
        "remove": _remove,
        "list": _list,
        "export": _export,
        "history": _history,
        "diff": _diff,
        "compact": _compact,
    }[arguments.action]
    return action(arguments)


def _pairs(texts: Iterable[str], option: str) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    for name, separator, value in pairs:
        if not name or not separator:
            raise XsiftError("bad-option", f"{option} {name}{separator}{value} is not NAME=VALUE")
    return {name: value for name, _, value in pairs}


def _opened(arguments: argparse.Namespace, *, create: bool = False) -> SubscriptionTable:
    if _names_version(arguments.table):
        raise TableError(
            "bad-version",
            f"{arguments.table} names a version; this takes a table",
            hint="leave out what follows the @",
        )
    storage = _pairs(arguments.storage, "--storage")
    user = getattr(arguments, "user", None)
    if create:
        return SubscriptionTable.create(
            arguments.table, namespaces=namespaces_of(arguments), storage_options=storage, user=user, exist_ok=True
        )
    return SubscriptionTable(arguments.table, storage_options=storage, user=user)


def _names_version(table: str) -> bool:
    try:
        return split_version(table)[1] is not None
    except TableError:  # an @ in its name
        return False


# Changes


def _add(arguments: argparse.Namespace) -> int:
    others: dict[str, Any] = _pairs(arguments.set, "--set")
    for name in ("id", "xpath", "ordered"):
        if name in others:
            raise XsiftError("bad-option", f"--set {name}=… is no column of your own", hint="see --help")
    if "namespaces" in others:
        others["namespaces"] = namespaces_in_text(others["namespaces"])
    row = {**others, "id": arguments.id, "xpath": arguments.xpath, "ordered": arguments.ordered}
    table = _opened(arguments, create=True)
    before = table.version()
    table.add([row], if_version=arguments.if_version)
    return _told(table, before)


def _import(arguments: argparse.Namespace) -> int:
    found = read_subscriptions(arguments.file, namespaces=namespaces_of(arguments), all_columns=True)
    table = _opened(arguments, create=True)
    before = table.version()
    change = table.replace if arguments.replace else table.add
    if arguments.errors == "collect":
        failed = found.located(change(found.table, errors="collect", if_version=arguments.if_version))
        report_failed(failed, arguments.errors)
        _told(table, before)
        return EXIT_BROKEN if failed else EXIT_OK
    try:
        if found.errors:
            raise found.errors[0]
        change(found.table, if_version=arguments.if_version)
    except (SubscriptionError, XPathError) as error:
        say(f"xsift: {error}")
        raise SubscriptionError(
            "bad-subscriptions",
            "nothing was changed",
            hint="mend this row (`xsift check FILE` lists all such), or leave it out with --errors collect",
        ) from error
    return _told(table, before)


def _remove(arguments: argparse.Namespace) -> int:
    table = _opened(arguments)
    ids = list(arguments.ids)
    if ids == ["-"]:
        ids = [line.rstrip("\r\n") for line in sys.stdin if line.strip()]
    before, version = table.version(), arguments.if_version
    if arguments.where:
        version = before if version is None else version  # what was looked at is what is changed
        found = table.as_of(version, where=_pairs(arguments.where, "--where"))["id"].to_pylist()
        ids = [id for id in found if not ids or id in set(ids)]
    elif not ids:
        raise XsiftError("bad-option", "nothing to remove was named", hint="give ids, or --where COLUMN=VALUE")
    table.remove(ids, missing_ok=arguments.missing_ok, if_version=version)
    return _told(table, before)


def _told(table: SubscriptionTable, before: int) -> int:
    changed = table.history(1)
    if table.version() == before:
        print(f"version {before}: nothing changed", file=sys.stderr)
    elif changed:
        last = changed[0]
        print(f"version {last.version}: {last.added:,} added, {last.removed:,} removed", file=sys.stderr)
    return EXIT_OK


def _compact(arguments: argparse.Namespace) -> int:
    before = arguments.forget_before
    _opened(arguments).compact(forget_before=None if before is None else version_in(before))
    return EXIT_OK


# Looks


def _rows(arguments: argparse.Namespace) -> pa.Table:
    arguments.table, version = split_version(arguments.table)
    return _opened(arguments).as_of(version, where=_pairs(arguments.where, "--where") or None)


def _list(arguments: argparse.Namespace) -> int:
    rows = _rows(arguments)
    if arguments.json:
        _write_json(rows, sys.stdout)
    else:
        _write_lines(rows, sys.stdout)
    return EXIT_OK if rows.num_rows else EXIT_NOTHING


def _export(arguments: argparse.Namespace) -> int:
    rows, name = _rows(arguments), arguments.file
    if name == "-":
        _write_json(rows, sys.stdout)
    elif name.endswith(".parquet"):
        pyarrow.parquet.write_table(rows, name)
    else:
        if name.endswith(".tsv"):
            _check_tsv(rows)
        with _text_file(name) as file:
            if name.endswith(".jsonl"):
                _write_json(rows, file)
            elif name.endswith(".tsv"):
                file.write("\t".join(_columns(rows)) + "\n")
                _write_lines(rows, file)
            else:
                _write_csv(rows, file)
    print(f"{plural(rows.num_rows, 'subscription')} written", file=sys.stderr)
    return EXIT_OK


@contextmanager
def _text_file(name: str) -> Iterator[IO[str]]:
    if not name.endswith((".jsonl", ".tsv", ".csv")):
        raise XsiftError("unknown-format", f"{name}: what format?", hint=".tsv, .csv, .jsonl, .parquet, or -")
    with open(name, "w", encoding="utf-8", newline="") as file:
        yield file


def _records(rows: pa.Table) -> Iterator[dict[str, Any]]:
    for batch in rows.to_batches(max_chunksize=10_000):
        for row in batch.to_pylist():
            row["namespaces"] = dict(row["namespaces"]) if row["namespaces"] else None
            yield {name: value for name, value in row.items() if value is not None}


def _write_json(rows: pa.Table, file: IO[str]) -> None:
    for row in _records(rows):
        file.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")


def _columns(rows: pa.Table) -> list[str]:
    """Those that say something."""
    return [name for name in rows.column_names if name in ("id", "xpath") or _says(rows, name)]


def _says(rows: pa.Table, name: str) -> bool:
    if name == "ordered":
        return bool(pa.compute.any(rows[name]).as_py())
    return bool(rows[name].null_count < rows.num_rows)


def _cells(row: dict[str, Any], columns: list[str]) -> list[str]:
    return [_cell(row.get(name)) for name in columns]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def _write_lines(rows: pa.Table, file: IO[str], sign: str = "") -> None:
    columns = _columns(rows)
    shown = printable if file.isatty() else str  # ids are strangers', and a terminal obeys
    for row in _records(rows):
        file.write(sign + "\t".join(shown(cell.translate(LINE_ENDS)) for cell in _cells(row, columns)) + "\n")


def _check_tsv(rows: pa.Table) -> None:
    """Raises an error if there is what a line of a TSV file cannot say, before an older file is lost for it."""
    columns = _columns(rows)
    for row in _records(rows):
        cells = _cells(row, columns)
        if any("\t" in cell or "\n" in cell or "\r" in cell for cell in cells):
            reason = "has a tab or a line end in it"
        elif cells[0].startswith("#"):
            reason = "would be a comment there"
        else:
            continue
        raise XsiftError("not-tsv", f"subscription {row['id']!r} {reason}", hint="write .jsonl or .csv")


def _write_csv(rows: pa.Table, file: IO[str]) -> None:
    columns = _columns(rows)
    plain, quoted = (csv.writer(file, lineterminator="\n", quoting=how) for how in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
    plain.writerow(columns)
    for row in _records(rows):
        cells = _cells(row, columns)
        (quoted if cells[0].startswith("#") else plain).writerow(cells)  # a line that begins with # is a comment


def _history(arguments: argparse.Namespace) -> int:
    found = _opened(arguments).history(arguments.limit)
    for entry in found:
        when = entry.time.astimezone()
        if arguments.json:
            facts = {"version": entry.version, "time": when.isoformat(), "user": entry.user}
            print(json.dumps({**facts, "added": entry.added, "removed": entry.removed}, ensure_ascii=False))
        else:
            time = when.isoformat(" ", "seconds")
            print(f"{entry.version}\t{time}\t{entry.user or ''}\t+{entry.added:,}\t-{entry.removed:,}")
    return EXIT_OK if found else EXIT_NOTHING


def _diff(arguments: argparse.Namespace) -> int:
    until = None if arguments.until is None else version_in(arguments.until)
    diff = _opened(arguments).diff(version_in(arguments.after), until)
    for sign, rows in (("-", diff.removed), ("+", diff.added), ("~", diff.changed)):
        _write_lines(rows, sys.stdout, f"{sign}\t")
    different = diff.added.num_rows + diff.removed.num_rows + diff.changed.num_rows
    return EXIT_OK if different else EXIT_NOTHING
