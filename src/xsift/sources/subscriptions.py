"""Subscriptions from files, in the formats that people have them in.

    .tsv .csv                  id, expression, if you like ordered, namespaces; a first line may name the columns
    .jsonl .ndjson             an object on each line
    .parquet                   columns
    .gz .bz2 .xz .zst          behind .tsv, .csv and .jsonl: decompressed

A row that cannot be used is one error with the file and the line, and the rest goes on. Column names are known by
what people call them, in any case. A `#` at the beginning of a line of a TSV or CSV file makes it a comment.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from xsift.errors import SubscriptionError, XsiftError
from xsift.sources.compression import open_plain, plain_name, reason_of
from xsift.sources.delimited import DelimitedRow, read_rows
from xsift.sources.namespaces import combined, namespaces_in_value
from xsift.sources.pieces import TOO_LONG, WAIT, split_stream

__all__ = ["SubscriptionFile", "is_subscription_file", "read_subscriptions"]

FORMATS = (".tsv", ".csv", ".jsonl", ".ndjson", ".parquet")
NAMES = {
    "id": ("id", "name", "subscription", "subscription_id", "subscriber", "key"),
    "xpath": ("xpath", "query", "expression", "path", "xpath_expression"),
    "ordered": ("ordered",),
    "namespaces": ("namespaces", "namespace", "prefixes"),
}
COLUMN_OF = {name: column for column, names in NAMES.items() for name in names}
COLUMNS = tuple(NAMES)
TRUE, FALSE = ("true", "1", "yes"), ("false", "0", "no", "")
FLAG_HINT = "true or false; in a CSV file an expression with a comma in it stands in double quotes"
LINE_LIMIT_BYTES = 1 << 20
BATCH_ROWS = 1 << 16
SHOWN = 80  # characters of a line that is not understood
NO_OTHERS: Mapping[str, Any] = {}
NAMESPACES_TYPE = pa.map_(pa.string(), pa.string())
SCHEMA = pa.schema(
    [
        ("id", pa.large_string()),
        ("xpath", pa.large_string()),
        ("ordered", pa.bool_()),
        ("namespaces", NAMESPACES_TYPE),
        ("line", pa.int64()),
    ]
)


@dataclass
class SubscriptionFile:
    """What a file of subscriptions has: a table that `Subscriptions.add_many` takes, and the line (or row) of each;
    an error for each row that is none; how many lines are comments; and the prefixes that hold for all of them."""

    name: str
    table: pa.Table
    lines: pa.ChunkedArray | None = None
    """By row of the table; None if it did not come from a file."""
    errors: list[SubscriptionError] = field(default_factory=list)
    comments: int = 0
    namespaces: Mapping[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """The rows of the file, those that cannot be used included."""
        return int(self.table.num_rows) + len(self.errors)

    def place(self, row: int) -> str:
        """Where a row of the table stands: file and line; "" if it did not come from a file."""
        return "" if self.lines is None else f"{self.name}:{self.lines[row].as_py()}"

    def located(self, failed: Iterable[tuple[str, XsiftError]]) -> list[XsiftError]:
        """The errors of the file, and those that `add_many` gave for its table, by line."""
        numbered: list[tuple[int, XsiftError]] = [(_line_of(error.place), error) for error in self.errors]
        for _, error in failed:
            if error.row is not None and not error.place:
                error.place = self.place(error.row)
            numbered.append((_line_of(error.place), error))
        return [error for _, error in sorted(numbered, key=lambda pair: pair[0])]


def _line_of(place: str) -> int:
    digits = place.rpartition(":")[2]
    return int(digits) if digits.isdigit() else 0


def is_subscription_file(name: str) -> bool:
    """Whether a name is that of a file of subscriptions."""
    return plain_name(name).endswith(FORMATS)


def read_subscriptions(
    path: str | os.PathLike[str], *, namespaces: Mapping[str, str] | None = None, all_columns: bool = False
) -> SubscriptionFile:
    """The subscriptions of a file. `namespaces` are the prefixes that hold for all of them: a row that gives one of
    these another meaning is an error. With `all_columns` the table also has the other columns of the file.

    Raises SubscriptionError if the file cannot be read at all, or is not understood.
    """
    name = os.fspath(path)
    plain = plain_name(name)
    if not plain.endswith(FORMATS):
        raise SubscriptionError(
            "unknown-format",
            f"{name} is in no format that subscriptions are read from",
            hint="its name should end in " + ", ".join(FORMATS),
        )
    builder = _Builder(name, namespaces or {}, all_columns)
    try:
        if plain.endswith((".tsv", ".csv")):
            with open_plain(name) as file:
                _take_delimited(builder, read_rows(file, "\t" if plain.endswith(".tsv") else ","), plain)
        elif plain.endswith(".parquet"):
            _take_parquet(builder, name)
        else:
            with open_plain(name) as file:
                _take_lines(builder, split_stream(iter(lambda: file.read(1 << 18), b""), b"\n", LINE_LIMIT_BYTES))
    except OSError as error:
        raise SubscriptionError("unreadable-file", f"{name} cannot be read: {reason_of(error)}") from error
    except pa.ArrowException as error:
        raise SubscriptionError("malformed-file", f"{name} cannot be read: {reason_of(error)}") from error
    return builder.finished()


class _Builder:
    """Collects rows into a table, and errors beside it."""

    def __init__(self, name: str, namespaces: Mapping[str, str], all_columns: bool) -> None:
        self.name = name
        self.comments = 0
        self.errors: list[SubscriptionError] = []
        self.all_columns = all_columns
        self._others: list[Mapping[str, Any]] = []  # by row: the columns that are not ours
        self._namespaces = namespaces
        self._known: dict[
            str, list[tuple[str, str]] | None
        ] = {}  # what texts of namespaces mean: many rows have the same
        self._batches: list[pa.RecordBatch] = []
        self._clear()

    def _clear(self) -> None:
        self._ids: list[str] = []
        self._xpaths: list[str] = []
        self._ordered: list[bool] = []
        self._mappings: list[list[tuple[str, str]] | None] = []
        self._lines: list[int] = []

    def add(
        self,
        line: int,
        id: Any,
        xpath: Any,
        ordered: Any = None,
        namespaces: Any = None,
        *,
        others: Mapping[str, Any] = NO_OTHERS,
    ) -> None:
        """Takes a row, or notes what is wrong with it."""
        try:
            texts = _text(id, "id"), _text(xpath, "xpath")
            is_ordered = _flag(ordered)
            mapping = self._mapping(namespaces) if namespaces else None
        except SubscriptionError as error:
            self.refuse(line, error)
            return
        self._ids.append(texts[0])
        self._xpaths.append(texts[1])
        self._ordered.append(is_ordered)
        self._mappings.append(mapping)
        self._lines.append(line)
        if self.all_columns:
            self._others.append(others)
        if len(self._ids) >= BATCH_ROWS:
            self._flush()

    def refuse(self, line: int, error: SubscriptionError) -> None:
        """Notes a row that cannot be used."""
        error.place = f"{self.name}:{line}"
        self.errors.append(error)

    def bad_row(self, line: int, reason: str, hint: str = "") -> None:
        """Notes a line that is no row."""
        self.refuse(line, SubscriptionError("bad-row", reason, hint=hint))

    def _mapping(self, value: Any) -> list[tuple[str, str]] | None:
        key = value if isinstance(value, str) else repr(value)
        if key not in self._known:
            mapping = namespaces_in_value(value)
            combined(self._namespaces, mapping)
            for text in (*mapping, *mapping.values()):
                _text(text, "namespaces")
            self._known[key] = list(mapping.items()) or None
        return self._known[key]

    def _flush(self) -> None:
        columns = [
            pa.array(self._ids, pa.large_string()),
            pa.array(self._xpaths, pa.large_string()),
            pa.array(self._ordered, pa.bool_()),
            pa.array(self._mappings, NAMESPACES_TYPE),
            pa.array(self._lines, pa.int64()),
        ]
        self._batches.append(pa.RecordBatch.from_arrays(columns, schema=SCHEMA))
        self._clear()

    def finished(self) -> SubscriptionFile:
        """All that was taken."""
        self._flush()
        table = pa.Table.from_batches(self._batches, SCHEMA)
        lines, table = table["line"], table.drop_columns(["line"])
        if all(column.null_count == len(column) for column in (table["namespaces"],)):
            table = table.drop_columns(["namespaces"])
        for name in dict.fromkeys(name for row in self._others for name in row):
            table = table.append_column(name, _other_column([row.get(name) for row in self._others]))
        return SubscriptionFile(self.name, table, lines, self.errors, self.comments, self._namespaces)


def _other_column(values: list[Any]) -> pa.Array:
    """A column that is not ours: of the type that all its values have, or else text."""
    try:
        return pa.array(values)
    except (pa.ArrowException, UnicodeEncodeError):
        return pa.array(
            [None if value is None else str(value).encode("utf-8", "replace").decode() for value in values]
        )


def _text(value: Any, column: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and column == "id":
        value = str(value)
    if value is None or value == "":
        raise SubscriptionError("missing-value", f"it has no {column}")
    if not isinstance(value, str):
        raise SubscriptionError("bad-value", f"its {column} is {value!r:.80}", hint="text is needed there")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise SubscriptionError("bad-value", f"its {column} has half of a surrogate pair") from None
    return value


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = "" if value is None else str(value).strip().lower()
    if text not in TRUE + FALSE:
        raise SubscriptionError("bad-value", f"ordered is {text!r:.80}", hint=FLAG_HINT)
    return text in TRUE


# Columns


def our_columns(names: Sequence[str], where: str) -> list[str | None]:
    """For each name the column of ours that it stands for. A column that has exactly our name is ours; others that
    people also call so are then kept as columns of their own."""
    lower = [name.strip().lower() for name in names]
    columns = [name if name in COLUMNS else COLUMN_OF.get(name) for name in lower]
    columns = [
        column if column not in lower or column == name else None for column, name in zip(columns, lower, strict=True)
    ]
    for column in COLUMNS:
        if columns.count(column) > 1:
            raise SubscriptionError(
                "unknown-columns",
                f"{where}: the column {column!r} is there twice: {', '.join(map(repr, names))[:SHOWN]}",
                hint=f"also called so: {', '.join(NAMES[column][1:])}",
            )
    return columns


@dataclass
class FileColumns:
    """The columns of a file: what they are called there, and which of ours each one is."""

    names: list[str]
    ours: list[str | None]

    def check_others(self, where: str) -> None:
        """Raises SubscriptionError if a column that is not ours is there twice: one of the two would be lost."""
        others = [name for name, column in zip(self.names, self.ours, strict=True) if column is None and name]
        twice = [name for name in others if others.count(name) > 1]
        if twice:
            raise SubscriptionError("bad-column", f"{where}: the column {twice[0]!r:.80} is there twice")

    def taken(self, cells: Sequence[Any], all_columns: bool) -> dict[str, Any]:
        """The cells of a row by column, for `_Builder.add`."""
        row: dict[str, Any] = {"id": None, "xpath": None}
        row |= {column: cell for column, cell in zip(self.ours, cells, strict=False) if column}
        if all_columns:
            others = zip(self.names, self.ours, cells, strict=False)
            row["others"] = {name: cell for name, column, cell in others if column is None}
        return row


PLAIN = FileColumns(list(COLUMNS), list(COLUMNS))


# TSV and CSV


def _take_delimited(builder: _Builder, rows: Iterator[DelimitedRow], plain: str) -> None:
    header: FileColumns | None = None
    for row in rows:
        if row.comment:
            builder.comments += 1
            continue
        if header is None:
            header, delimiter = _first_row(row, plain, builder.name)
            if builder.all_columns:
                header.check_others(builder.name)
            if delimiter is not None:
                _take_delimited_by(builder, row.line, delimiter, header)
                return
            if header is not PLAIN:
                continue
        _take_row(builder, row, header, plain.endswith(".csv"))


def _take_delimited_by(builder: _Builder, after: int, delimiter: str, header: FileColumns) -> None:
    """The rest of a file whose header showed that its delimiter is another one than its name says."""
    with open_plain(builder.name) as file:
        for row in read_rows(file, delimiter):
            if row.comment and row.line > after:
                builder.comments += 1
            elif row.line > after:
                _take_row(builder, row, header, delimiter != "\t")


def _first_row(row: DelimitedRow, plain: str, name: str) -> tuple[FileColumns, str | None]:
    """The columns, if the first row names them; and their delimiter, if that is another than expected."""
    for delimiter in (None, "\t", ",", ";"):
        cells = row.cells if delimiter is None else row.text.split(delimiter)
        names = [cell.strip().strip('"') for cell in cells]
        known = {COLUMN_OF.get(name.lower()) for name in names}
        if {"id", "xpath"} <= known:
            return FileColumns(names, our_columns(names, name)), delimiter
    known = {COLUMN_OF.get(cell.strip().lower()) for cell in row.cells} - {None}
    bare = all(cell.strip().replace("_", "").replace(" ", "").isalpha() for cell in row.cells)
    if not row.fault and (len(row.cells) < 2 or (known and bare)):
        raise SubscriptionError(
            "unknown-columns",
            f"{name}: the first line is not understood: {row.text[:SHOWN]!r}",
            hint="columns are id, xpath, and if you like ordered, namespaces, "
            + ("a comma between them" if plain.endswith(".csv") else "a tab between them"),
        )
    return PLAIN, None


def _take_row(builder: _Builder, row: DelimitedRow, header: FileColumns, quoted: bool) -> None:
    if row.fault:
        builder.bad_row(row.line, row.fault)
        return
    if len(row.cells) < 2 or len(row.cells) > len(header.names):
        hint = "an expression with a comma in it stands in double quotes" if quoted else "a tab stands between two"
        few = "only 1 cell" if len(row.cells) == 1 else f"{len(row.cells)} cells"
        builder.bad_row(row.line, f"it has {few}: {row.text[:SHOWN]!r}", hint)
    elif header is PLAIN:  # the usual case, and there may be millions
        builder.add(row.line, *row.cells)
    else:
        # Nothing and an empty text look the same here.
        cells = [cell or None for cell in row.cells] if builder.all_columns else row.cells
        builder.add(row.line, **header.taken(cells, builder.all_columns))


# JSON Lines


def _take_lines(builder: _Builder, pieces: Iterator[bytes | str]) -> None:
    number = 0
    for piece in pieces:
        if piece is WAIT:
            continue
        number += 1
        if piece is TOO_LONG or isinstance(piece, str):
            builder.bad_row(number, f"it is longer than {LINE_LIMIT_BYTES:,} bytes")
            continue
        text = piece.removeprefix(b"\xef\xbb\xbf") if number == 1 else piece
        if not text.strip():
            continue
        try:
            value = json.loads(text)
        except RecursionError:
            builder.bad_row(number, "it is nested too deeply")
            continue
        except ValueError as error:
            builder.bad_row(number, f"it is no JSON: {reason_of(error)}")
            continue
        if not isinstance(value, dict):
            builder.bad_row(number, "it is no JSON object", 'such as {"id": "alice", "xpath": "//title"}')
            continue
        _take_object(builder, number, value)


def _take_object(builder: _Builder, line: int, value: dict[str, Any]) -> None:
    names = list(value)
    try:
        columns = FileColumns(names, our_columns(names, "it"))
    except SubscriptionError as error:
        builder.refuse(line, error)
        return
    row = columns.taken(list(value.values()), builder.all_columns)
    if row["id"] is None or row["xpath"] is None:
        missing = "id" if row["id"] is None else "xpath"
        there = ", ".join(map(repr, value)) or "nothing"
        reason = f"its {missing} is null" if missing in columns.ours else f"it has no {missing}; it has {there[:200]}"
        builder.refuse(line, SubscriptionError("missing-value", reason))
        return
    builder.add(line, **row)


# Parquet


def _take_parquet(builder: _Builder, name: str) -> None:
    file = pyarrow.parquet.ParquetFile(name)
    there = file.schema_arrow.names
    ours = our_columns(there, name)
    for column in ("id", "xpath"):
        if column not in ours:
            hint = "it has " + (", ".join(map(repr, there)) or "none")
            raise SubscriptionError("missing-column", f"{name} has no column {column!r}", hint=hint)
    wanted = [(given, column) for given, column in zip(there, ours, strict=True) if column or builder.all_columns]
    header = FileColumns([given for given, _ in wanted], [column for _, column in wanted])
    if builder.all_columns:
        header.check_others(name)
    number = 0
    for batch in file.iter_batches(BATCH_ROWS, columns=header.names):
        for cells in zip(*(_values(batch[given]) for given in header.names), strict=True):
            number += 1
            builder.add(number, **header.taken(cells, builder.all_columns))


def _values(column: pa.Array) -> list[Any]:
    """The values of a column. Text that is not UTF-8 is what it is, bytes, and so an error of its row."""
    try:
        return column.to_pylist()  # type: ignore[no-any-return]
    except UnicodeDecodeError:
        return column.cast(pa.binary()).to_pylist()  # type: ignore[no-any-return]
