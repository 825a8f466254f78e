"""Files of subscriptions and files of documents, in the formats that people have them in.

Subscriptions: `.tsv` (id, tab, expression, and if you like a tab and true or false for ordered), `.csv`, `.jsonl`,
`.parquet`; all but Parquet also with `.gz` behind. A TSV or CSV file may begin with a line of column names.

Documents: `.xml` files and whatever else is not one of the following; folders, searched for `.xml` and `.xml.gz`;
globs; `.zip` and `.tar` archives (also `.tar.gz`, `.tgz`, `.tar.bz2`, `.tar.xz`); `.gz` files; `.jsonl` and
`.parquet` with a column `xml` and if you like `id`; `-` for standard input.
"""

from __future__ import annotations

import glob
import gzip
import json
import os
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from xsift.document import Document
from xsift.errors import DocumentError, SubscriptionError

__all__ = ["read_documents", "read_subscriptions"]

SUBSCRIPTION_FORMATS = (".tsv", ".csv", ".jsonl", ".parquet")
TAR_ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
TRUE, FALSE = ("true", "True", "1", "yes"), ("false", "False", "0", "no", "")


# Subscriptions


def read_subscriptions(path: str | os.PathLike[str], *, all_columns: bool = False) -> pa.Table:
    """A table with the columns `id` and `xpath` (strings) and `ordered` (boolean), one row a subscription; with
    `all_columns` also the others that the file has."""
    name = os.fspath(path)
    plain = name.removesuffix(".gz")
    try:
        if plain.endswith(".tsv"):
            table = _read_delimited(name, "\t", quoted=False)
        elif plain.endswith(".csv"):
            table = _read_delimited(name, ",", quoted=True)
        elif plain.endswith(".jsonl"):
            with _open(name) as file:
                table = pyarrow.json.read_json(file)
        elif name.endswith(".parquet"):
            table = pyarrow.parquet.read_table(name)
        else:
            raise SubscriptionError(
                "unknown-format",
                f"{name} is in no format that subscriptions are read from",
                hint="its name should end in " + ", ".join(SUBSCRIPTION_FORMATS),
            )
    except OSError as error:
        raise SubscriptionError("unreadable-file", f"{name} cannot be read: {error.strerror or error}") from error
    except pa.ArrowInvalid as error:
        raise SubscriptionError("malformed-file", f"{name} cannot be read: {error}") from error
    own = _normalised(table, name)
    for column in table.column_names if all_columns else []:
        if column not in own.column_names:
            values = table[column]
            if plain.endswith((".tsv", ".csv")):  # where nothing and an empty text look the same
                values = pc.if_else(pc.equal(values, ""), None, values)
            own = own.append_column(column, values)
    return own


def _open(name: str) -> IO[bytes]:
    return gzip.open(name, "rb") if name.endswith(".gz") else open(name, "rb")  # type: ignore[return-value]


def _read_delimited(name: str, delimiter: str, quoted: bool) -> pa.Table:
    with _open(name) as file:
        first = file.readline().decode("utf-8", "replace").rstrip("\r\n").split(delimiter)
    if first == [""]:
        return pa.table({"id": pa.array([], pa.string()), "xpath": pa.array([], pa.string())})
    header = [cell.strip().strip('"') for cell in first]
    has_header = "id" in header and "xpath" in header
    columns = header if has_header else ["id", "xpath", "ordered"][: len(first)]
    parse = pyarrow.csv.ParseOptions(
        delimiter=delimiter, quote_char='"' if quoted else False, newlines_in_values=quoted, ignore_empty_lines=True
    )
    read = pyarrow.csv.ReadOptions(column_names=columns, skip_rows=int(has_header))
    convert = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(columns, pa.string()), strings_can_be_null=False)
    with _open(name) as file:
        return pyarrow.csv.read_csv(file, read_options=read, parse_options=parse, convert_options=convert)


def _normalised(table: pa.Table, name: str) -> pa.Table:
    for column in ("id", "xpath"):
        if column not in table.column_names:
            raise SubscriptionError(
                "missing-column",
                f"{name} has no column {column!r}",
                hint="it has " + (", ".join(map(repr, table.column_names)) or "none"),
            )
    ids, xpaths = (table[column].cast(pa.string()) for column in ("id", "xpath"))
    for column, values in (("id", ids), ("xpath", xpaths)):
        if values.null_count:
            row = values.is_null().index(True).as_py() + 1
            raise SubscriptionError("missing-value", f"{name}: row {row} has no {column}")
    return pa.table({"id": ids, "xpath": xpaths, "ordered": _ordered(table, name)})


def _ordered(table: pa.Table, name: str) -> pa.Array | pa.ChunkedArray:
    if "ordered" not in table.column_names:
        return pa.array([False] * table.num_rows, pa.bool_())
    column = table["ordered"]
    if pa.types.is_boolean(column.type):
        return column.fill_null(False)
    flags = []
    for row, value in enumerate(column.to_pylist(), 1):
        text = "" if value is None else str(value).strip()
        if text not in TRUE + FALSE:
            raise SubscriptionError("bad-value", f"{name}: row {row}: ordered is {text!r}", hint="true or false")
        flags.append(text in TRUE)
    return pa.array(flags, pa.bool_())


# Documents


def read_documents(sources: Iterable[str | os.PathLike[str]]) -> Iterator[Document | DocumentError]:
    """The documents of files, folders, globs, archives and `-`, one after the other. What cannot be read is an
    error among them: `Matcher.match_many` takes both.
    """
    for source in sources:
        name = os.fspath(source)
        if name != "-" and not os.path.exists(name) and glob.has_magic(name):
            found = sorted(glob.glob(name, recursive=True))
            if not found:
                yield _broken(name, "no file matches it")
            for path in found:
                yield from _guarded(path)
        else:
            yield from _guarded(name)


def _guarded(name: str) -> Iterator[Document | DocumentError]:
    try:
        yield from _documents_in(name)
    except (
        OSError,
        EOFError,
        zlib.error,
        zipfile.BadZipFile,
        tarfile.TarError,
        ValueError,
        pa.ArrowException,
    ) as error:
        yield _broken(name, getattr(error, "strerror", None) or str(error))


def _broken(name: str, reason: str) -> DocumentError:
    return DocumentError("unreadable-file", f"{name} cannot be read: {reason}", label=name)


def _documents_in(name: str) -> Iterator[Document | DocumentError]:
    if name == "-":
        yield Document(sys.stdin.buffer.read(), label="-")
    elif os.path.isdir(name):
        for path in sorted(Path(name).rglob("*")):
            if path.name.endswith((".xml", ".xml.gz")) and path.is_file():
                yield from _guarded(str(path))
    elif name.endswith(".zip"):
        with zipfile.ZipFile(name) as archive:
            for entry in archive.infolist():
                if not entry.is_dir():
                    yield Document(archive.read(entry), label=f"{name}/{entry.filename}")
    elif name.endswith(TAR_ENDINGS):
        with tarfile.open(name) as archive:
            for member in archive:
                if member.isfile():
                    yield Document(archive.extractfile(member).read(), label=f"{name}/{member.name}")  # type: ignore[union-attr]
    elif name.removesuffix(".gz").endswith(".jsonl"):
        with _open(name) as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield _from_row(json.loads(line), name, number)
    elif name.endswith(".parquet"):
        for batch in pyarrow.parquet.ParquetFile(name).iter_batches(256):
            for number, row in enumerate(batch.to_pylist(), 1):
                yield _from_row(row, name, number)
    else:
        with _open(name) as file:
            yield Document(file.read(), label=name)


def _from_row(row: dict[str, Any], name: str, number: int) -> Document:
    xml = row.get("xml") if isinstance(row, dict) else None
    if xml is None:
        raise ValueError(f"row {number} has no value 'xml'")
    label = str(row.get("id", f"{name}:{number}"))
    return Document(xml, label=label)
