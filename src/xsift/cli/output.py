"""What `xsift match` writes: results as text, CSV, JSON Lines or Parquet, compressed if the file's name says so.

Rows have the columns that Spark's have (spark/batch.py):

    matches   a row for each document: document, matches, error, failures
    rows      a row for each match: document, subscription, error
    nodes     a row for each matched node: document, subscription, path, element, start, end, fragment, error

A document that cannot be read is a row with an error; in `rows` and `nodes` its subscription is null. Text and CSV
have the matches alone, one per line: errors are on standard error.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any, Literal, Protocol, cast, get_args

import pyarrow as pa
import pyarrow.parquet

from xsift.errors import XsiftError
from xsift.matching import Node
from xsift.matching.display import printable

__all__ = ["FORMATS", "Format", "Kind", "Result", "ResultWriter", "file_of", "open_writer", "output_format"]

Kind = Literal["matches", "rows", "nodes"]
Format = Literal["text", "csv", "jsonl", "parquet"]
FORMATS: tuple[Format, ...] = get_args(Format)
ENDINGS: dict[str, Format] = {
    ".tsv": "text",
    ".txt": "text",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
}
OPENERS = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
COMPRESSED = (*OPENERS, ".zst")
PARQUET_ROWS = 4096  # that are written together,
PARQUET_BYTES = 32 << 20  # or fewer, if their ids and fragments have so many bytes
ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})

ERROR = pa.struct(
    [("code", pa.string()), ("message", pa.string())] + [(name, pa.int64()) for name in ("line", "column", "offset")]
)
FAILURE = pa.struct([("subscription", pa.string()), ("code", pa.string()), ("message", pa.string())])
NODE = {"path": pa.string(), "element": pa.int64(), "start": pa.int64(), "end": pa.int64(), "fragment": pa.string()}
COLUMNS: dict[Kind, dict[str, Any]] = {
    "matches": {
        "document": pa.string(),
        "matches": pa.list_(pa.string()),
        "error": ERROR,
        "failures": pa.list_(FAILURE),
    },
    "rows": {"document": pa.string(), "subscription": pa.string(), "error": ERROR},
    "nodes": {"document": pa.string(), "subscription": pa.string(), **NODE, "error": ERROR},
}


@dataclass
class Result:
    """What one document gave."""

    document: str
    matches: list[str] = field(default_factory=list)
    nodes: Mapping[str, list[Node]] = field(default_factory=dict)
    error: XsiftError | None = None
    failures: Mapping[str, XsiftError] = field(default_factory=dict)

    def size(self) -> int:
        """About as many bytes as its ids and fragments have."""
        fragments = sum(len(node.fragment or "") for nodes in self.nodes.values() for node in nodes)
        return fragments + sum(map(len, self.matches))


class ResultWriter(Protocol):
    """Takes results, one after the other."""

    def write(self, result: Result) -> None:
        """Writes what one document gave."""

    def flush(self) -> None:
        """Lets readers see what was written so far."""

    def close(self) -> None:
        """Ends the output."""


def output_format(chosen: str | None, output: str | None) -> Format:
    """The format: as chosen, or by the output's name; text if there is neither."""
    if chosen is not None:
        found = cast(Format, chosen)
    elif output is None:
        found = "text"
    else:
        found = _format_of(output)
    if found == "parquet" and (output is None or output.lower().endswith(COMPRESSED)):
        raise XsiftError(
            "no-output", "Parquet is written to a file, and compressed by itself", hint="--output out.parquet"
        )
    return found


def _format_of(output: str) -> Format:
    plain = output.lower()
    for ending in COMPRESSED:
        plain = plain.removesuffix(ending)
    for ending, kind in ENDINGS.items():
        if plain.endswith(ending):
            return kind
    name = plain.replace("\\", "/").rpartition("/")[2]
    if "." not in name:
        return "text"
    raise XsiftError(
        "unknown-format",
        f"the name {output} does not tell a format",
        hint="it should end in " + ", ".join(ENDINGS) + ", with .gz, .bz2, .xz or .zst behind; or give --format",
    )


def open_writer(kind: Kind, format: Format, output: str | None) -> ResultWriter:
    """Opens the output. Raises XsiftError if it cannot be written."""
    try:
        if format == "parquet":
            return _ParquetWriter(kind, str(output))
        file = _opened(output)
    except OSError as error:
        reason = error.strerror or str(error)
        raise XsiftError("unwritable-file", f"{output} cannot be written: {reason}") from error
    if format == "jsonl":
        return _JsonWriter(kind, file, output is None)
    return _CsvWriter(kind, file, output is None) if format == "csv" else _TextWriter(kind, file, output is None)


def file_of(output: str | None) -> os.stat_result | None:
    """The file that is written to, standard output being one perhaps; None if it is none."""
    try:
        found = os.fstat(sys.stdout.fileno()) if output is None else os.stat(output)
    except (OSError, ValueError):
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def _opened(output: str | None) -> IO[str]:
    if output is None:
        return sys.stdout
    lower = output.lower()
    opener: Any = next((opener for ending, opener in OPENERS.items() if lower.endswith(ending)), open)
    raw = io.BufferedWriter(_Zstandard(output)) if lower.endswith(".zst") else opener(output, "wb")
    return io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", newline="")


class _Zstandard(io.RawIOBase):
    """A .zst file to be written, through Arrow."""

    def __init__(self, path: str) -> None:
        self._stream = pa.CompressedOutputStream(pa.OSFile(path, "wb"), "zstd")

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._stream.write(bytes(data))
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


class _LineWriter:
    """What writers of lines share."""

    def __init__(self, kind: Kind, file: IO[str], is_standard: bool) -> None:
        self._kind = kind
        self._file = file
        self._is_standard = is_standard

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.flush()
        if not self._is_standard:
            self._file.close()


class _TextWriter(_LineWriter):
    """A line for each match: document, tab, subscription; with nodes also path and bytes."""

    def __init__(self, kind: Kind, file: IO[str], is_standard: bool) -> None:
        super().__init__(kind, file, is_standard)
        self._is_terminal = file.isatty()

    def write(self, result: Result) -> None:
        document = self._name(result.document)
        if self._kind != "nodes":
            self._file.writelines(f"{document}\t{self._name(id)}\n" for id in result.matches)
            return
        for id, nodes in result.nodes.items():
            shown = self._name(id)
            for node in nodes:
                self._file.write(f"{document}\t{shown}\t{node.path}\t{node.start}-{node.end}\n")

    def _name(self, name: str) -> str:
        """An id or a label on one line, and without what a terminal would obey."""
        shown = name.translate(ESCAPES)
        return printable(shown) if self._is_terminal else shown


class _CsvWriter(_LineWriter):
    """A header, then a line for each match or node."""

    def __init__(self, kind: Kind, file: IO[str], is_standard: bool) -> None:
        super().__init__(kind, file, is_standard)
        self._csv = csv.writer(file, lineterminator="\n")
        self._csv.writerow(["document", "subscription", *(NODE if kind == "nodes" else ())])

    def write(self, result: Result) -> None:
        if self._kind != "nodes":
            self._csv.writerows((result.document, id) for id in result.matches)
            return
        for id, nodes in result.nodes.items():
            self._csv.writerows((result.document, id, *node) for node in nodes)


class _JsonWriter(_LineWriter):
    """A JSON object for each row; what is null is left out, but for the subscription of a broken document."""

    def write(self, result: Result) -> None:
        for row in _rows(self._kind, result):
            self._file.write(json.dumps(row, ensure_ascii=False) + "\n")


class _ParquetWriter:
    """The same in columns."""

    def __init__(self, kind: Kind, output: str) -> None:
        self._kind = kind
        self._schema = pa.schema(list(COLUMNS[kind].items()))
        self._writer = pyarrow.parquet.ParquetWriter(output, self._schema)
        self._rows: list[dict[str, Any]] = []
        self._bytes = 0

    def write(self, result: Result) -> None:
        self._rows += _rows(self._kind, result)
        self._bytes += result.size()
        if len(self._rows) >= PARQUET_ROWS or self._bytes >= PARQUET_BYTES:
            self._write_rows()

    def _write_rows(self) -> None:
        self._writer.write_table(pa.Table.from_pylist(self._rows, self._schema))
        self._rows, self._bytes = [], 0

    def flush(self) -> None:
        """A Parquet file can be read once it is whole."""

    def close(self) -> None:
        if self._rows:
            self._write_rows()
        self._writer.close()


def _rows(kind: Kind, result: Result) -> Iterable[dict[str, Any]]:
    """The rows of a result, without what is null."""
    error = error_facts(result.error) if result.error is not None else None
    if kind == "matches":
        row: dict[str, Any] = {"document": result.document}
        row |= {"error": error} if error else {"matches": result.matches}
        if result.failures:
            row["failures"] = [
                {"subscription": id, "code": failure.code, "message": failure.message}
                for id, failure in result.failures.items()
            ]
        return [row]
    return _match_rows(kind, result, error)


def _match_rows(kind: Kind, result: Result, error: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    if error:
        yield {"document": result.document, "subscription": None, "error": error}
    if kind == "rows":
        for id in result.matches:
            yield {"document": result.document, "subscription": id}
    for id, nodes in result.nodes.items() if kind == "nodes" else ():
        for node in nodes:
            yield {"document": result.document, "subscription": id, **node._asdict()}
    for id, failure in result.failures.items():
        yield {"document": result.document, "subscription": id, "error": error_facts(failure)}


def error_facts(error: XsiftError) -> dict[str, Any]:
    """An error as data."""
    place = {part: getattr(error, part, 0) for part in ("line", "column", "offset")}
    return {"code": error.code, "message": error.message, **place}
