"""Files as documents, for Spark: folders with all that is below them, archives unpacked, files decompressed.

Spark reads each file as one row (`binaryFile`); a Python function then makes the documents of it that `xsift match`
would, in the same words: `document`, `xml`.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql.utils import is_remote

from xsift.errors import DocumentError
from xsift.matching import Limits
from xsift.sources.archives import Member, archive_kind, members_of_tar, members_of_zip
from xsift.sources.compression import READ_ERRORS, chunks_of, decompressed, plain_name, reason_of
from xsift.sources.records import DEFAULT_RECORD_LIMIT_BYTES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["read_files"]

FILE_COLUMNS = "path string, modificationTime timestamp, length bigint, content binary"
BATCH_BYTES = 4 << 20


def read_files(spark: SparkSession, path: str, *, streaming: bool = False, limits: Limits | None = None) -> DataFrame:
    """The documents in files, folders and archives, in the columns `document` and `xml`."""
    reader: Any = spark.readStream if streaming else spark.read
    files = reader.format("binaryFile").schema(FILE_COLUMNS).option("recursiveFileLookup", "true").load(path)
    arrived = ["modificationTime as arrived"] if streaming else []
    if not streaming:
        names = files.inputFiles()
        empty = [] if is_remote() else _empty_files(names)
        if empty:
            nothing = spark.createDataFrame([(name, b"") for name in empty], "path string, content binary")
            files = files.select("path", "content").union(nothing)
        if not any(_is_packed(name) for name in names):
            return files.selectExpr("path as document", "content as xml")  # type: ignore[no-any-return]
    most_bytes = min((limits or Limits()).bytes, DEFAULT_RECORD_LIMIT_BYTES)
    packed = files.selectExpr("path", "content", *arrived)
    columns = "document string, xml binary" + ", arrived timestamp" * streaming
    return packed.mapInArrow(Unpack(most_bytes), columns)  # type: ignore[no-any-return]


def _empty_files(names: Sequence[str]) -> list[str]:
    """Of the files that Spark found, those of this machine that are empty, named as in their rows. Spark passes over
    them; but whoever has documents matched wants to hear of one of which nothing is there."""
    paths = (unquote(name.removeprefix("file://")) for name in names if name.startswith("file:///"))
    return [f"file:{path}" for path in paths if os.path.exists(path) and not os.path.getsize(path)]


def _is_packed(name: str) -> bool:
    return bool(archive_kind(name)) or plain_name(name) != name.lower()


@dataclass(frozen=True)
class Unpack:
    """The function that Spark maps over files."""

    most_bytes: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows: list[int] = []
            held: list[tuple[str, bytes]] = []
            size = 0
            for row in range(batch.num_rows):
                for document in self._documents(batch["path"][row].as_py(), batch["content"][row].as_py()):
                    rows.append(row)
                    held.append(document)
                    size += len(document[1])
                    if size >= BATCH_BYTES:
                        yield _batch(batch, rows, held)
                        rows, held, size = [], [], 0
            if held:
                yield _batch(batch, rows, held)

    def _documents(self, path: str, content: bytes) -> Iterator[tuple[str, bytes]]:
        """The documents of a file. For one that cannot be unpacked stands the reason: that is no XML, so it is an
        error among the results."""
        kind = archive_kind(path)
        try:
            if kind:
                file = io.BytesIO(content)
                most = self.most_bytes
                members = members_of_zip(file, most) if kind == "zip" else members_of_tar(file, path, most)
                for member in members:
                    if member.is_document:
                        yield f"{path}/{member.name}", self._content(member)
            elif plain_name(path) != path.lower():
                yield path, self._held(decompressed(io.BytesIO(content), path))
            else:
                yield path, content
        except READ_ERRORS as error:
            yield path, reason_of(error).encode() + b"\n" + content[:100]

    def _content(self, member: Member) -> bytes:
        if isinstance(member.content, bytes):
            return member.content
        if isinstance(member.content, DocumentError):
            return member.content.message.encode()
        return self._held(member.content)

    def _held(self, file: Any) -> bytes:
        """The bytes of a stream. Of one that is too large so many that matching sees it."""
        pieces, size = [], 0
        for chunk in chunks_of(file):
            pieces.append(chunk)
            size += len(chunk)
            if size > self.most_bytes:
                break
        return b"".join(pieces)


def _batch(files: pa.RecordBatch, rows: list[int], found: list[tuple[str, bytes]]) -> pa.RecordBatch:
    """Documents, with what else is known of the files that they are from."""
    documents, contents = zip(*found, strict=True)
    columns = {"document": pa.array(documents, pa.string()), "xml": pa.array(contents, pa.binary())}
    if "arrived" in files.schema.names:
        columns["arrived"] = files["arrived"].take(pa.array(rows))
    return pa.RecordBatch.from_pydict(columns)
