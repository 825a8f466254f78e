"""Documents from wherever people have them: files, folders, globs, archives, tables, records of large files, a pipe.

    .xml and any other file     a document
    .gz .bz2 .xz .zst           behind any of these: decompressed
    folders, globs              all files in them that are documents or hold some, by their names or beginnings
    .zip .tar (.tar.gz …)       the files in it that are documents
    .jsonl .ndjson .parquet     a document in each row: `xml`, and `id` if you like
    -                           standard input: one document, JSON Lines, or documents with NULs between them

With record= the elements of that name in each of these are a document each.

Nothing disappears: what cannot be read is a DocumentError among the documents, and files that are no documents are
counted in `passed_over`. Nothing is read whole that can be read in pieces: a large document is a stream that whoever
matches it reads when it is its turn.
"""

from __future__ import annotations

import codecs
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet

from xsift.document import Document, Limits
from xsift.errors import DocumentError
from xsift.sources.archives import Member, archive_kind, members_of_tar, members_of_zip
from xsift.sources.compression import READ_ERRORS, LazyStream, Meter, chunks_of, open_plain, plain_name, reason_of
from xsift.sources.globs import expanded, is_glob
from xsift.sources.kinds import is_xml
from xsift.sources.pieces import TOO_LONG, WAIT, split_stream
from xsift.sources.record_files import read_records
from xsift.sources.records import DEFAULT_RECORD_LIMIT_BYTES

__all__ = ["DocumentSources", "Found", "read_documents"]

Found: TypeAlias = Document | DocumentError

BATCH_BYTES = 64 << 20
PARQUET_ROWS = 64
BLANK_BYTES = 1 << 20  # at the beginning of standard input, that are passed over to see what it is
NAMED_PASSED_OVER = 5  # files that are no documents, of which the names are kept
LINES = (".jsonl", ".ndjson")


def read_documents(sources: Iterable[str | os.PathLike[str]], **options: Any) -> Iterator[Found]:
    """The documents of all sources, one after the other, and an error for each that cannot be read;
    `Matcher.match_many` takes both. The options are those of DocumentSources.
    """
    return iter(DocumentSources(sources, **options))


class DocumentSources:
    """Reads documents, and keeps count.

    encoding        of all documents that are bytes, whatever they declare
    record          the name of an element: files, members and rows are cut into these, a document each
    null_separated  standard input has documents with a NUL between them
    limits          what a document may cost; of a document that must be held in memory no more is read
    """

    def __init__(
        self,
        sources: Iterable[str | os.PathLike[str]],
        *,
        encoding: str | None = None,
        record: str | None = None,
        null_separated: bool = False,
        limits: Limits | None = None,
    ) -> None:
        self._sources = [os.fspath(source) for source in sources]
        self._encoding = encoding
        self._record = record
        self._null_separated = null_separated
        self._limits = limits or Limits()
        self._most_bytes = self._limits.bytes
        # The default is meant for documents that are streamed; of those that are held, memory is the limit.
        self._most_held = DEFAULT_RECORD_LIMIT_BYTES if self._most_bytes == Limits().bytes else self._most_bytes
        self.output: os.stat_result | None = None
        """The file that results are written to, which is passed over: it would grow as it is read."""
        self.meter = Meter()
        self.passed_over = 0
        self.passed_over_names: list[str] = []

    def __iter__(self) -> Iterator[Found]:
        return (found for found in self._all() if not isinstance(found, str))

    def batches(self, most: int) -> Iterator[list[Found]]:
        """The documents in lists of that many; of fewer if they are large, or if the next one is not there yet."""
        batch: list[Found] = []
        size = 0
        for found in self._all():
            if not isinstance(found, str):
                batch.append(found)
                size += _size(found)
                if len(batch) < most and size < BATCH_BYTES:
                    continue
            if batch:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    def total_bytes(self) -> int | None:
        """The size of all files as they are stored; None if that cannot be known before they are read."""
        total = 0
        for source in self._sources:
            for path in expanded(source) if is_glob(source) else [source]:
                if path == "-" or not os.path.exists(path):
                    return None
                for name in _files_below(path) if os.path.isdir(path) else [path]:
                    if not isinstance(name, str) or not os.path.isfile(name):
                        return None
                    total += os.path.getsize(name)
        return total

    # Where documents are

    def _all(self) -> Iterator[Found | str]:
        for source in self._sources:
            if not is_glob(source):
                yield from self._guarded(source)
                continue
            found = False
            for path in expanded(source):
                found = True
                if os.path.isdir(path) or self._is_document(path, named=not source.endswith("*")):
                    yield from self._guarded(path)
                else:
                    self._pass_over(path)
            if not found:
                yield _broken(source, "no file matches it")

    def _guarded(self, path: str) -> Iterator[Found | str]:
        """What is at a path; whatever happens on the way is one error."""
        if self._is_output(path):
            self._pass_over(path)
            return
        try:
            yield from self._at(path)
        except DocumentError as error:
            error.label = error.label or _label(path)
            yield error
        except READ_ERRORS as error:
            yield _broken(path, reason_of(error))

    def _is_output(self, path: str) -> bool:
        try:
            return self.output is not None and os.path.samestat(self.output, os.stat(path))
        except (OSError, ValueError):
            return False

    def _at(self, path: str) -> Iterator[Found | str]:
        if path == "-":
            yield from self._standard_input()
        elif os.path.isdir(path):
            for name in _files_below(path):
                if isinstance(name, DocumentError):
                    yield name
                elif self._is_document(name):
                    yield from self._guarded(name)
                else:
                    self._pass_over(name)
        else:
            yield from self._in_file(path)

    def _in_file(self, path: str) -> Iterator[Found | str]:
        plain, archive = plain_name(path), archive_kind(path)
        if archive == "zip":
            yield from self._members(path, members_of_zip(path, self._most_bytes, self.meter))
        elif archive == "tar":
            yield from self._members(path, members_of_tar(path, path, self._most_bytes, self.meter))
        elif plain.endswith(".parquet"):
            yield from self._parquet(path)
        elif plain.endswith(LINES):
            with open_plain(path, self.meter) as file:
                yield from self._lines(chunks_of(file), _label(path))
        elif self._record is not None:
            with open_plain(path, self.meter) as file:
                yield from self._records(chunks_of(file), _label(path), self._encoding)
        elif plain != path.lower():
            opener = lambda: open_plain(path, self.meter)  # noqa: E731
            yield Document(LazyStream(opener), encoding=self._encoding, label=_label(path))
        else:
            if os.path.isfile(path):
                self.meter.done += os.path.getsize(path)
            yield Document(Path(path), encoding=self._encoding, label=_label(path))

    def _is_document(self, path: str, *, named: bool = False) -> bool:
        """Whether a file in a folder is a document, or holds some; it is `named` if someone asked for its ending."""
        plain = plain_name(path)
        if os.path.exists(path) and not os.path.isfile(path):
            return False  # a pipe or a device: reading it could wait for ever
        if named or archive_kind(path) or plain.endswith((*LINES, ".parquet")):
            return True
        try:
            with open_plain(path) as file:
                return is_xml(plain, file.read(64))
        except OSError:
            return is_xml(plain, b"")

    def _pass_over(self, name: str) -> None:
        self.passed_over += 1
        if len(self.passed_over_names) < NAMED_PASSED_OVER:
            self.passed_over_names.append(_label(name))

    # What documents are in

    def _members(self, path: str, members: Iterator[Member]) -> Iterator[Found | str]:
        for member in members:
            label = _label(f"{path}/{member.name}")
            content = member.content
            if not member.is_document:
                self._pass_over(f"{path}/{member.name}")
            elif isinstance(content, DocumentError):
                content.label = label
                yield content
            elif self._record is not None:
                chunks = iter([content]) if isinstance(content, bytes) else chunks_of(content)
                yield from self._cut_or_error(chunks, label, self._encoding)
            else:
                yield Document(content, encoding=self._encoding, label=label)

    def _cut_or_error(self, chunks: Iterator[bytes], label: str, encoding: str | None) -> Iterator[Found]:
        """The records of a member or a row: what is wrong with it does not concern the next one."""
        try:
            yield from self._records(chunks, label, encoding)
        except DocumentError as error:
            error.label = error.label or label
            yield error
        except READ_ERRORS as error:
            yield _broken(label, reason_of(error))

    def _cut(self, found: Found) -> Iterator[Found]:
        """A row's document; with record= the elements of that name in it."""
        if self._record is None or isinstance(found, DocumentError):
            yield found
        else:
            yield from self._cut_or_error(iter([bytes(found.source)]), found.label or "", found.encoding)

    def _records(self, chunks: Iterator[bytes], label: str, encoding: str | None) -> Iterator[Found]:
        assert self._record is not None
        found = False
        try:
            for record in read_records(chunks, self._record, self._most_held, encoding, self._limits):
                found = True
                yield Document(record.xml, encoding="utf-8", label=f"{label}:{record.position}")
        except DocumentError as error:
            error.label = label
            if error.code == "record-too-long":
                error.hint = "the rest of the file is not read; --limit bytes=… allows longer ones"
            raise
        if not found:
            raise DocumentError("no-record", f"there is no element {self._record!r} in {label}", label=label)

    def _standard_input(self) -> Iterator[Found | str]:
        stream: Any = sys.stdin.buffer
        chunks = iter(lambda: stream.read1(1 << 16), b"")
        if self._null_separated:
            yield from self._null_separated_documents(chunks)
            return
        first = b""
        for chunk in chunks:
            first += chunk
            if (first.strip() and len(first) >= 4) or len(first) > BLANK_BYTES:
                break
        rest = _chain(first, chunks)
        if first.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"{"):
            yield from self._lines(rest, "-", waits=True)
        elif self._record is not None:
            yield from self._records(rest, "-", self._encoding)
        else:
            yield Document(LazyStream(None, stream, first), encoding=self._encoding, label="-")

    def _null_separated_documents(self, chunks: Iterator[bytes]) -> Iterator[Found | str]:
        number = 0
        for piece in split_stream(chunks, b"\0", self._most_held):
            if piece is WAIT:
                yield WAIT
                continue
            number += 1
            label = f"-:{number}"
            if isinstance(piece, str):
                yield _too_long(label, self._most_held)
            elif piece.strip():
                yield from self._cut(Document(piece, encoding=self._encoding, label=label))
            else:
                number -= 1  # nothing between two NULs

    # Rows of tables

    def _lines(self, chunks: Iterator[bytes], label: str, waits: bool = False) -> Iterator[Found | str]:
        number = 0
        for piece in split_stream(chunks, b"\n", self._most_held):
            if piece is WAIT:
                if waits:
                    yield WAIT
                continue
            number += 1
            where = f"{label}:{number}"
            if piece is TOO_LONG or isinstance(piece, str):
                yield _too_long(where, self._most_held)
            elif piece.strip():
                yield from self._cut(_from_line(piece, where, first=number == 1))

    def _parquet(self, path: str) -> Iterator[Found | str]:
        file = pyarrow.parquet.ParquetFile(path)
        columns = file.schema_arrow.names
        if "xml" not in columns:
            there = ", ".join(map(repr, columns)) or "none"
            raise DocumentError("missing-column", f"{_label(path)} has no column 'xml'; it has {there}")
        for name in ("id", "xml"):
            if columns.count(name) > 1:
                raise DocumentError("bad-column", f"{_label(path)} has more than one column {name!r}")
        wanted = [name for name in ("id", "xml") if name in columns]
        share = os.path.getsize(path) / max(file.metadata.num_rows, 1)
        number = 0
        for batch in _parquet_batches(path, wanted):
            for row in range(batch.num_rows):
                number += 1
                yield from self._cut(_from_row(batch, row, f"{_label(path)}:{number}", self._encoding))
            self.meter.done += round(share * batch.num_rows)


def _parquet_batches(path: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """Rows by the dozen. Documents stay a dictionary if they are one: a few bytes can name the same large document
    again and again."""
    is_nested = pa.types.is_nested(pyarrow.parquet.read_schema(path).field("xml").type)  # of which there is none
    file = pyarrow.parquet.ParquetFile(path, read_dictionary=None if is_nested else ["xml"])
    return file.iter_batches(PARQUET_ROWS, columns=columns)  # type: ignore[no-any-return]


def _chain(first: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from chunks


def _size(found: Found) -> int:
    """What a document counts for in a batch; one whose size is not known ends it."""
    if isinstance(found, DocumentError):
        return 0
    if found.in_memory:
        return memoryview(found.source).nbytes
    if isinstance(found.source, Path):
        try:
            return found.source.stat().st_size
        except (OSError, ValueError):  # there is none, or none can have such a name
            return 0
    return BATCH_BYTES


def _files_below(folder: str) -> Iterator[str | DocumentError]:
    """The files of a folder and of those in it, by name; what is hidden is left alone. Links to folders are not
    followed: they could lead round in circles."""
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        yield _broken(folder, reason_of(error))
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _files_below(entry.path)
        elif not os.path.isdir(entry.path):  # unlike entry.is_dir() it takes links that lead nowhere
            yield entry.path


def _label(name: str) -> str:
    """A name as text that can be printed, whatever bytes it has on disk."""
    return os.fsencode(name).decode("utf-8", "backslashreplace") if not name.isascii() else name


def _broken(name: str, reason: str) -> DocumentError:
    label = _label(name)
    return DocumentError("unreadable-file", f"{label} cannot be read: {reason}", label=label)


def _too_long(label: str, most_bytes: int) -> DocumentError:
    message = f"the document is too large: more than {most_bytes:,} bytes"
    return DocumentError("too-large", message, label=label, hint="--limit bytes=… allows larger ones")


def _from_line(line: bytes, where: str, first: bool) -> Found:
    """The document in a line of JSON."""
    try:
        row = json.loads(line.removeprefix(b"\xef\xbb\xbf") if first else line)
    except RecursionError:
        return _bad_row(where, "it is nested too deeply")
    except ValueError as error:
        return _bad_row(where, f"it is no JSON: {reason_of(error)}")
    if not isinstance(row, dict):
        return _bad_row(where, "it is no JSON object")
    xml, id = row.get("xml"), row.get("id")
    if isinstance(id, list | dict):
        return _bad_row(where, "its 'id' is neither text nor a number")
    if xml is None:
        there = ", ".join(map(repr, row)) or "nothing"
        return _bad_row(where, "it has no value 'xml'" if "xml" in row else f"it has no 'xml'; it has {there[:200]}")
    if not isinstance(xml, str):
        return _bad_row(where, "its 'xml' is no text")
    return _document(xml, _row_label(id, where))


def _row_label(id: object, where: str) -> str:
    """What a row is called: by its id, or by file and line if it has none."""
    if isinstance(id, bytes):
        return id.decode("utf-8", "backslashreplace")
    return where if id is None else str(id).encode("utf-8", "backslashreplace").decode()


def _document(xml: str, label: str) -> Found:
    try:
        return Document(xml, label=label)
    except DocumentError as error:
        error.label = label
        return error


def _from_row(batch: pa.RecordBatch, row: int, where: str, encoding: str | None) -> Found:
    """The document in a row of a Parquet file."""
    try:
        id = batch["id"][row].as_py() if "id" in batch.schema.names else None
        xml: Any = batch["xml"][row].as_py()
    except (pa.ArrowException, ValueError) as error:
        return _bad_row(where, reason_of(error))
    label = _row_label(id, where)
    if xml is None:
        return _bad_row(where, "it has no value 'xml'", label)
    if isinstance(xml, str):
        return _document(xml, label)
    if not isinstance(xml, bytes):
        return _bad_row(where, f"its 'xml' is neither text nor bytes, but {batch['xml'].type}", label)
    return Document(xml, encoding=encoding, label=label)


def _bad_row(where: str, reason: str, label: str | None = None) -> DocumentError:
    return DocumentError("bad-row", f"{where}: {reason}", label=label or where)
