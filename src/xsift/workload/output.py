"""Writes documents and subscriptions into files; the name's ending says which kind.

Documents: a folder (one file per document), `.zip`, `.tar`, `.tar.gz`, `.jsonl`, `.jsonl.gz` or `.parquet` (columns
`id` and `xml`). Subscriptions: `.tsv`, `.csv`, `.jsonl`, each also with `.gz`, or `.parquet` (columns `id` and
`xpath`, and `ordered` if they are).

What is written depends on what is given only, not on the time or the user: archives carry no dates, so that a preset
is the same bytes wherever it is made. A file appears under its name when it is complete.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet

from xsift.errors import WorkloadError

__all__ = ["DOCUMENT_ENDINGS", "SUBSCRIPTION_ENDINGS", "write_documents", "write_subscriptions"]

DOCUMENT_ENDINGS = (".zip", ".tar", ".tar.gz", ".tgz", ".jsonl", ".jsonl.gz", ".parquet")
SUBSCRIPTION_ENDINGS = (".tsv", ".tsv.gz", ".csv", ".csv.gz", ".jsonl", ".jsonl.gz", ".parquet")

_ROWS = 10_000
"""Rows of a Parquet file that are written at a time."""

Rows = Iterable[dict[str, Any]]


def write_documents(documents: Iterable[bytes], output: str, number: int, *, force: bool = False) -> None:
    """Writes documents, numbered from 1. `number` is how many there are, for the width of their names."""
    width = len(str(number))
    named = ((f"document-{position:0{width}}", document) for position, document in enumerate(documents, 1))
    if output == "-":
        raise _unknown("standard output", DOCUMENT_ENDINGS)
    ending = _ending(output, DOCUMENT_ENDINGS)
    if not ending:
        with _failures_of(output):
            _write_folder(named, output, force)
        return
    rows = ({"id": name, "xml": document.decode()} for name, document in named)
    if ending == ".parquet":
        _write_parquet(rows, output, pa.schema([("id", pa.string()), ("xml", pa.string())]))
    elif ending.startswith(".jsonl"):
        _write_lines(rows, output, _json_line)
    else:
        with _complete_file(output) as file:
            _write_zip(named, file) if ending == ".zip" else _write_tar(named, file, ending != ".tar")


def write_subscriptions(texts: Iterable[str], output: str, number: int, *, ordered: bool = False) -> None:
    """Writes subscriptions, with the ids s1, s2, …; `-` is standard output, as TSV."""
    width = len(str(number))
    mark = {"ordered": True} if ordered else {}
    rows = ({"id": f"s{position:0{width}}", "xpath": text} | mark for position, text in enumerate(texts, 1))
    if output == "-":
        for row in rows:
            sys.stdout.write(_tab_line(row))
        return
    ending = _ending(output, SUBSCRIPTION_ENDINGS)
    if ending == ".parquet":
        columns = [("id", pa.string()), ("xpath", pa.string()), *([("ordered", pa.bool_())] if ordered else [])]
        _write_parquet(rows, output, pa.schema(columns))
    elif ending.startswith(".jsonl"):
        _write_lines(rows, output, _json_line)
    elif ending.startswith(".tsv"):
        _write_lines(rows, output, _tab_line)
    elif ending.startswith(".csv"):
        header = ["id", "xpath", *(["ordered"] if ordered else [])]
        _write_lines(rows, output, _comma_line, _comma_line(dict(zip(header, header, strict=True))))
    else:
        raise _unknown(output, SUBSCRIPTION_ENDINGS)


def _ending(output: str, known: tuple[str, ...]) -> str:
    """The longest known ending of the name; empty if it is a folder's name."""
    found = max((ending for ending in known if output.endswith(ending)), key=len, default="")
    if not found and not output.endswith(("/", os.sep)) and Path(output).suffix and not Path(output).is_dir():
        raise _unknown(output, known)
    return found


def _unknown(output: str, known: tuple[str, ...]) -> WorkloadError:
    folder = ", or / for a folder" if known is DOCUMENT_ENDINGS else ""
    return WorkloadError(
        "unknown-format",
        f"{output} is in no format that can be written",
        hint=f"its name should end in {', '.join(known)}{folder}",
    )


@contextmanager
def _failures_of(output: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise WorkloadError(
            "output-not-writable", f"{output} cannot be written: {error.strerror or error}"
        ) from error


@contextmanager
def _complete_file(output: str) -> Iterator[IO[bytes]]:
    """A file that gets its name once all is written."""
    unfinished = f"{output}.unfinished"
    with _failures_of(output):
        try:
            with open(unfinished, "wb") as file:
                yield file
            os.replace(unfinished, output)
        finally:
            Path(unfinished).unlink(missing_ok=True)


def _gzipped(file: IO[bytes]) -> AbstractContextManager[IO[bytes]]:
    # No name and no date in the header. Level 6 takes a third of the time of the default, 9.
    return gzip.GzipFile("", "wb", 6, file, mtime=0)  # type: ignore[return-value]


# Documents


def _write_folder(named: Iterable[tuple[str, bytes]], output: str, force: bool) -> None:
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    if not force and any(folder.iterdir()):
        raise WorkloadError("folder-not-empty", f"The folder {output} is not empty", hint="--force writes into it")
    for name, document in named:
        (folder / f"{name}.xml").write_bytes(document)


def _write_zip(named: Iterable[tuple[str, bytes]], file: IO[bytes]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, document in named:
            entry = zipfile.ZipInfo(f"{name}.xml")  # dated 1980, as Zip begins
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, document, zipfile.ZIP_DEFLATED)


def _write_tar(named: Iterable[tuple[str, bytes]], file: IO[bytes], compressed: bool) -> None:
    if compressed:
        with _gzipped(file) as inner:
            _write_tar(named, inner, False)
        return
    with tarfile.open(fileobj=file, mode="w|") as archive:
        for name, document in named:
            entry = tarfile.TarInfo(f"{name}.xml")  # dated 1970, of user 0
            entry.size = len(document)
            archive.addfile(entry, io.BytesIO(document))


# Rows


def _json_line(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


def _tab_line(row: dict[str, Any]) -> str:
    # Generated expressions have neither tabs nor line ends in them.
    return "\t".join("true" if value is True else value for value in row.values()) + "\n"


def _comma_line(row: dict[str, Any]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow("true" if value is True else value for value in row.values())
    return line.getvalue()


def _write_lines(rows: Rows, output: str, line_of: Callable[[dict[str, Any]], str], header: str = "") -> None:
    with _complete_file(output) as file:
        if output.endswith(".gz"):
            with _gzipped(file) as inner:
                _write_text(map(line_of, rows), inner, header)
        else:
            _write_text(map(line_of, rows), file, header)


def _write_text(lines: Iterable[str], file: IO[bytes], header: str) -> None:
    file.write(header.encode())
    for batch in iter(partial(_take, iter(lines)), []):
        file.write("".join(batch).encode())


def _write_parquet(rows: Rows, output: str, schema: pa.Schema) -> None:
    with _complete_file(output) as file, pyarrow.parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        for batch in iter(partial(_take, iter(rows)), []):
            writer.write_batch(pa.RecordBatch.from_pylist(batch, schema=schema))


def _take(values: Iterator[Any]) -> list[Any]:
    return list(islice(values, _ROWS))
