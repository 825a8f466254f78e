"""The data source `xsift`: one row a record of large XML files, batch and streaming.

    register_sources(spark)
    spark.read.format("xsift").option("record", "article").load("dump.xml")

Options: `record` (the name of the element, with its prefix if it has one), `splitBytes` (32 MB: about how much of an
uncompressed file a task reads), `maxRecordBytes` (256 MB), and for streams `maxFilesPerTrigger`. Columns: `file`,
`position` (of the record, in bytes of the decompressed file), `xml` (binary, UTF-8). A stream takes each file of a
folder once, when it first sees it: move files in when they are whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from xsift.errors import DocumentError, XsiftError
from xsift.sources.record_files import read_records
from xsift.sources.records import (
    DEFAULT_RECORD_LIMIT_BYTES,
    Ancestors,
    Header,
    Record,
    decoded,
    read_header,
    scan_records,
    split_places,
)
from xsift.spark.places import chunks_of, compressed, find_files, size_of

__all__ = ["RecordSource"]

BATCH_BYTES = 4 * 2**20
SPLIT_BYTES = 32 * 2**20
SCHEMA = pa.schema([("file", pa.string()), ("position", pa.int64()), ("xml", pa.binary())])


@dataclass
class Split(InputPartition):
    """A part of a file that begins at a record; a whole file if there is no header."""

    file: str
    begin: int = 0
    end: int = 0
    header: Header | None = None
    ancestors: Ancestors = ()

    def __post_init__(self) -> None:
        super().__init__(None)


@dataclass(frozen=True)
class Settings:
    """The options of a read."""

    path: str
    record: str
    split_bytes: int
    record_limit_bytes: int
    files_per_trigger: int | None

    @classmethod
    def of(cls, options: Any) -> Settings:
        """The options, checked."""
        for name, example in (("path", ".load('dump.xml')"), ("record", ".option('record', 'article')")):
            if not options.get(name):
                raise XsiftError("missing-option", f"the data source xsift needs {name!r}", hint=f"e.g. {example}")
        return cls(
            options["path"],
            options["record"],
            _positive(options, "splitBytes", SPLIT_BYTES),
            _positive(options, "maxRecordBytes", DEFAULT_RECORD_LIMIT_BYTES),
            _positive(options, "maxFilesPerTrigger", 1) if options.get("maxFilesPerTrigger") else None,
        )


def _positive(options: Any, name: str, default: int) -> int:
    text = str(options.get(name) or default)
    if not text.isdigit() or not int(text):
        raise XsiftError("bad-option", f"{name} is {text!r}", hint="a whole number from 1")
    return int(text)


class RecordSource(DataSource):
    """`spark.read.format("xsift")` and `spark.readStream.format("xsift")`: large XML files, a row a record.

    Options: `record` (the element's name), `splitBytes`, `maxRecordBytes`, for streams `maxFilesPerTrigger`. Columns:
    `file`, `position`, `xml`. `register_sources` makes it known to a session.
    """

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "xsift"

    def schema(self) -> str:
        """The columns of every read."""
        return "file string, position bigint, xml binary"

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reads files once."""
        return RecordReader(Settings.of(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Reads files as they arrive."""
        return RecordStreamReader(Settings.of(self.options))


def _splits(files: Sequence[str], settings: Settings) -> list[Split]:
    return [split for file in files for split in _splits_of(file, settings)]


def _splits_of(file: str, settings: Settings) -> list[Split]:
    size = size_of(file)
    if compressed(file) or size <= settings.split_bytes:
        return [Split(file)]
    first = next(chunks_of(file), b"")
    if next(decoded([first])) is not first:
        return [Split(file)]  # it has to be decoded from the beginning
    header = read_header(chunks_of(file), settings.record)
    places = split_places(
        chunks_of(file, header.end), settings.record, header.end, settings.split_bytes, settings.record_limit_bytes
    )
    ends = [*(begin for begin, _ in places[1:]), size]
    return [Split(file, begin, end, header, ancestors) for (begin, ancestors), end in zip(places, ends, strict=True)]


def _read(split: Split, settings: Settings) -> Iterator[pa.RecordBatch]:
    records = _records(split, settings)
    held: list[Record] = []
    held_bytes = 0
    for record in records:
        held.append(record)
        held_bytes += len(record.xml)
        if held_bytes >= BATCH_BYTES:
            yield _batch(split.file, held)
            held, held_bytes = [], 0
    if held:
        yield _batch(split.file, held)


def _records(split: Split, settings: Settings) -> Iterator[Record]:
    try:
        if split.header is not None:
            chunks = chunks_of(split.file, split.begin, split.end)
            yield from scan_records(
                chunks, settings.record, split.header, split.begin, settings.record_limit_bytes, split.ancestors
            )
            return
        yield from read_records(chunks_of(split.file), settings.record, settings.record_limit_bytes)
    except DocumentError as error:
        error.message = f"{split.file}: {error.message}"
        raise
    except (EOFError, OSError) as error:
        raise DocumentError("unreadable-file", f"{split.file} cannot be read: {error}") from error


def _batch(file: str, records: list[Record]) -> pa.RecordBatch:
    columns = [
        pa.array([file] * len(records), pa.string()),
        pa.array([record.position for record in records], pa.int64()),
        pa.array([record.xml for record in records], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


class RecordReader(DataSourceReader):
    """The batch reader."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def partitions(self) -> Sequence[InputPartition]:
        """The splits of all files."""
        return _splits(find_files(self._settings.path), self._settings)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The records of a split, in Arrow batches."""
        assert isinstance(partition, Split)
        return _read(partition, self._settings)


class RecordStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The streaming reader. An offset is the list of files seen: large files are few."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._target: set[str] | None = None

    def initialOffset(self) -> dict[str, Any]:
        """No file yet."""
        return {"files": "[]"}

    def getDefaultReadLimit(self) -> ReadLimit:
        """As many files a micro-batch as maxFilesPerTrigger says."""
        limit = self._settings.files_per_trigger
        return ReadMaxFiles(limit) if limit else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """The files there are now are all that this run reads."""
        self._target = set(find_files(self._settings.path))

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The files seen, and as many new ones as the limit allows."""
        seen = _files_in(start)
        present = find_files(self._settings.path)
        new = [file for file in present if file not in set(seen) and (self._target is None or file in self._target)]
        allowed = limit.max_files if isinstance(limit, ReadMaxFiles) else None
        return {"files": json.dumps([*seen, *islice(new, allowed)])}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The splits of the files between two offsets."""
        seen = set(_files_in(start))
        return _splits([file for file in _files_in(end) if file not in seen], self._settings)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The records of a split, in Arrow batches."""
        assert isinstance(partition, Split)
        return _read(partition, self._settings)


def _files_in(offset: dict[str, Any]) -> list[str]:
    return [str(file) for file in json.loads(offset["files"])]
