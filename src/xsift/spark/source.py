"""The data source `xsift`: one row a record of large XML files, batch and streaming.

    register_sources(spark)
    spark.read.format("xsift").option("record", "article").load("dump.xml")

Options: `record` (the name of the element, with its prefix if it has one), `splitBytes` (32 MB: about how much a task
reads, of one file or of many), `maxRecordBytes` (256 MB), `mode`, and for streams `maxFilesPerTrigger`. Columns:
`file`, `position` (of the record, in bytes of the decompressed file), `xml` (binary, UTF-8), `read_error`. A stream
takes each file of a folder once, when it first sees it: move files in when they are whole.

`mode` is Spark's: with PERMISSIVE what cannot be read is a row without XML that has a `read_error`; DROPMALFORMED
leaves such rows out; FAILFAST fails.

Where large files are read, `read_records` looks for the places to split them on executors, not on the driver.
"""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from xsift.errors import DocumentError, XsiftError
from xsift.sources.record_files import read_records as read_records_of
from xsift.sources.records import (
    DEFAULT_RECORD_LIMIT_BYTES,
    Ancestors,
    Header,
    Record,
    read_header,
    scan_records,
    split_places,
    wide_encoding,
)
from xsift.sources.regions import cut_region, look_through, places_of
from xsift.spark.places import File, chunks_of, compressed, find_files, size_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["RecordSource", "read_records"]

BATCH_BYTES = 4 * 2**20
SPLIT_BYTES = 32 * 2**20
OPEN_BYTES = 2**20  # what opening a file costs, told as bytes of reading
LEAST_TASKS = 8  # into which small files are packed
COLUMNS = "file string, position bigint, xml binary, read_error string"
SCHEMA = pa.schema(
    [("file", pa.string()), ("position", pa.int64()), ("xml", pa.binary()), ("read_error", pa.string())]
)
REGION_SCHEMA = pa.schema([("file", pa.string()), ("size_bytes", pa.int64()), ("region", pa.binary())])
MODES = ("PERMISSIVE", "DROPMALFORMED", "FAILFAST")
DIGEST_BYTES = 10


@dataclass(frozen=True)
class Split:
    """A part of a file that begins at a record; a whole file if there is no header."""

    file: str
    begin: int = 0
    end: int = 0
    header: Header | None = None
    ancestors: Ancestors = ()
    error: str | None = None
    """Why the file could not be split."""


@dataclass
class Pack(InputPartition):
    """The splits that one task reads."""

    splits: tuple[Split, ...]

    def __post_init__(self) -> None:
        super().__init__(None)


@dataclass(frozen=True)
class SourceSettings:
    """The options of a read."""

    paths: tuple[str, ...]
    record: str
    split_bytes: int
    record_limit_bytes: int
    files_per_trigger: int | None
    mode: str

    @property
    def region_bytes(self) -> int:
        """What a task looks through at a time: all of it is in memory."""
        return min(self.split_bytes, SPLIT_BYTES)

    def regions_of(self, file: File) -> range:
        """The numbers of a file's regions."""
        return range(-(-file.size_bytes // self.region_bytes))

    @classmethod
    def of(cls, options: Any) -> SourceSettings:
        """The options, checked. Spark has several paths as a JSON list."""
        paths = json.loads(options["paths"]) if options.get("paths") else [options.get("path")]
        for name, there, example in (
            ("path", paths and all(paths), ".load('dump.xml')"),
            ("record", options.get("record"), ".option('record', 'article')"),
        ):
            if not there:
                raise XsiftError("missing-option", f"the data source xsift needs {name!r}", hint=f"e.g. {example}")
        mode = str(options.get("mode") or MODES[0]).upper()
        if mode not in MODES:
            raise XsiftError("bad-option", f"mode is {mode!r}", hint=f"it can be {', '.join(MODES)}")
        return cls(
            tuple(paths),
            options["record"],
            _positive(options, "splitBytes", SPLIT_BYTES),
            _positive(options, "maxRecordBytes", DEFAULT_RECORD_LIMIT_BYTES),
            _positive(options, "maxFilesPerTrigger", 1) if options.get("maxFilesPerTrigger") else None,
            mode,
        )


def _positive(options: Any, name: str, default: int) -> int:
    text = str(options.get(name) or default)
    if not text.isdigit() or not int(text):
        raise XsiftError("bad-option", f"{name} is {text!r}", hint="a whole number from 1")
    return int(text)


class RecordSource(DataSource):
    """`spark.read.format("xsift")` and `spark.readStream.format("xsift")`: large XML files, a row for each record.

    Options: `record` (the element's name), `splitBytes` (32 MB), `maxRecordBytes` (256 MB), `mode` (PERMISSIVE,
    DROPMALFORMED or FAILFAST), for streams `maxFilesPerTrigger`. Columns: `file`, `position`, `xml`, `read_error`
    (why something cannot be read). `register_sources` makes it known to a session.
    """

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "xsift"

    def schema(self) -> str:
        """The columns of every read."""
        return COLUMNS

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reads files once."""
        return RecordReader(SourceSettings.of(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Reads files as they arrive."""
        return RecordStreamReader(SourceSettings.of(self.options))


def packed(files: Sequence[File], settings: SourceSettings) -> list[Pack]:
    """What tasks read: large files in splits, small files together. A file that cannot be opened is one split, which
    is where its error is told."""
    whole_bytes = sum(file.size_bytes + OPEN_BYTES for file in files)
    most_bytes = min(settings.split_bytes, max(OPEN_BYTES, whole_bytes // LEAST_TASKS))
    packs: list[Pack] = []
    held: list[Split] = []
    held_bytes = 0
    for file in files:
        if file.size_bytes > settings.split_bytes and not compressed(file.path):
            packs += [Pack((split,)) for split in splits_of(file, settings)]
            continue
        if held and held_bytes + file.size_bytes + OPEN_BYTES > most_bytes:
            packs.append(Pack(tuple(held)))
            held, held_bytes = [], 0
        held.append(Split(file.path))
        held_bytes += file.size_bytes + OPEN_BYTES
    return [*packs, Pack(tuple(held))] if held else packs


def splits_of(
    file: File, settings: SourceSettings, places_of: Callable[[Header], list[tuple[int, Ancestors]]] | None = None
) -> list[Split]:
    """A large file in splits. The places where records begin are found by one pass over it, if nobody knows them."""

    def by_one_pass(header: Header) -> list[tuple[int, Ancestors]]:
        chunks = chunks_of(file.path, header.end)
        return split_places(chunks, settings.record, header.end, settings.split_bytes, settings.record_limit_bytes)

    try:
        first = next(chunks_of(file.path), b"")
        if wide_encoding(first, settings.record) is not None:
            return [Split(file.path)]  # it has to be decoded from the beginning
        header = read_header(chunks_of(file.path), settings.record)
        places = (places_of or by_one_pass)(header)
    except (DocumentError, EOFError, OSError):
        return [Split(file.path)]  # whoever reads it tells what is wrong, after the records before that
    ends = [*(begin for begin, _ in places[1:]), file.size_bytes]
    return [
        Split(file.path, begin, end, header, ancestors) for (begin, ancestors), end in zip(places, ends, strict=True)
    ]


def read_pack(splits: Sequence[Split], settings: SourceSettings) -> Iterator[pa.RecordBatch]:
    """The records of splits, in Arrow batches; of what cannot be read the error, as the mode asks."""
    held: list[tuple[str, int, bytes | None, str | None]] = []
    held_bytes = 0
    for split in splits:
        for row in _rows(split, settings):
            held.append(row)
            held_bytes += len(row[2] or b"") + len(row[0])
            if held_bytes >= BATCH_BYTES:
                yield _batch(held)
                held, held_bytes = [], 0
    if held:
        yield _batch(held)


def _rows(split: Split, settings: SourceSettings) -> Iterator[tuple[str, int, bytes | None, str | None]]:
    position = split.begin
    try:
        for record in _records(split, settings):
            position = record.position
            yield split.file, position, record.xml, None
    except DocumentError as error:
        if settings.mode == "FAILFAST":
            raise
        if settings.mode == "PERMISSIVE":
            yield split.file, position, None, error.message


def _records(split: Split, settings: SourceSettings) -> Iterator[Record]:
    try:
        if split.header is not None:
            chunks = chunks_of(split.file, split.begin, split.end)
            yield from scan_records(
                chunks, settings.record, split.header, split.begin, settings.record_limit_bytes, split.ancestors
            )
            return
        yield from read_records_of(chunks_of(split.file), settings.record, settings.record_limit_bytes)
    except DocumentError as error:
        error.message = f"{split.file}: {error.message}"
        raise
    except (EOFError, OSError, zlib.error) as error:
        raise DocumentError("unreadable-file", f"{split.file} cannot be read: {error}") from error


def _batch(rows: Sequence[tuple[str, int, bytes | None, str | None]]) -> pa.RecordBatch:
    columns = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def read_records(spark: SparkSession, paths: str | Sequence[str], record: str, **options: Any) -> DataFrame:
    """The records of files, as `spark.read.format("xsift")` gives them, with the same options; but the places to
    split large files at are looked for on executors, a task a region of a file (sources/regions.py), when the
    DataFrame is computed."""
    listed = [paths] if isinstance(paths, str) else list(paths)
    settings = SourceSettings.of({**options, "paths": json.dumps(listed), "record": record})
    files = find_files(settings.paths)
    large = {file for file in files if file.size_bytes > settings.split_bytes and not compressed(file.path)}
    packs = packed([file for file in files if file not in large], settings)
    work = spark.createDataFrame([(pickle.dumps(pack.splits),) for pack in packs], "work binary")
    tasks = len(packs)
    if large:
        shares = [
            (file.path, file.size_bytes, number) for file in sorted(large) for number in settings.regions_of(file)
        ]
        regions = (
            spark.createDataFrame(shares, "file string, size_bytes bigint, number int")
            .repartition(len(shares))
            .mapInArrow(_LookThrough(settings), "file string, size_bytes bigint, region binary")
        )
        planned = regions.groupBy("file", "size_bytes").applyInArrow(_splitter(settings), "work binary")
        work, tasks = work.union(planned), tasks + len(shares)
    found: DataFrame = work.repartition(max(1, tasks)).mapInArrow(_ReadPacks(settings), COLUMNS)
    return found


@dataclass(frozen=True)
class _LookThrough:
    """Mapped over numbers of regions: the regions, looked through."""

    settings: SourceSettings

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for share in batch.to_pylist():
                columns = [[share["file"]], [share["size_bytes"]], [self._region(**share)]]
                yield pa.RecordBatch.from_arrays(
                    [pa.array(column, kind) for column, kind in zip(columns, REGION_SCHEMA.types, strict=True)],
                    schema=REGION_SCHEMA,
                )

    def _region(self, file: str, size_bytes: int, number: int) -> bytes:
        """Nothing for the first one, which has the header, nor for what cannot be read: whoever splits the file reads
        that itself, and tells if it still cannot be read."""
        if not number:
            return b""
        try:
            begin, data = cut_region(_reader(file), size_bytes, number, self.settings.region_bytes)
        except (OSError, EOFError):
            return b""
        return pickle.dumps(look_through(data, begin, self.settings.record)) if data else b""


def _splitter(settings: SourceSettings) -> Callable[[pa.Table], pa.Table]:
    """Called with the regions of a file: its splits, a row each. (Spark counts `self` as an argument, so this is a
    function.)"""

    def split(rows: pa.Table) -> pa.Table:
        found = [pickle.loads(region) for region in rows["region"].to_pylist() if region]
        file = File(rows["file"][0].as_py(), rows["size_bytes"][0].as_py())
        found.sort(key=lambda region: region.begin)

        def places(header: Header) -> list[tuple[int, Ancestors]]:
            least = settings.split_bytes // 2
            return places_of(found, _reader(file.path), header.end, file.size_bytes, settings.record, least)

        splits = splits_of(file, settings, places)
        return pa.table({"work": pa.array([pickle.dumps((split,)) for split in splits], pa.binary())})

    return split


def _reader(file: str) -> Callable[[int, int], bytes]:
    return lambda begin, end: b"".join(chunks_of(file, begin, end))


@dataclass(frozen=True)
class _ReadPacks:
    """Mapped over packs: their records."""

    settings: SourceSettings

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for work in batch["work"].to_pylist():
                yield from read_pack(pickle.loads(work), self.settings)


class RecordReader(DataSourceReader):
    """The batch reader."""

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings

    def partitions(self) -> Sequence[InputPartition]:
        """The splits of all files."""
        return packed(find_files(self._settings.paths), self._settings)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The records of a pack, in Arrow batches."""
        assert isinstance(partition, Pack)
        return read_pack(partition.splits, self._settings)


class RecordStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The streaming reader. An offset has the files of its micro-batch, and a short digest of each file that was
    there and read before; one that is gone is forgotten."""

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings
        self._target: set[str] | None = None

    def initialOffset(self) -> dict[str, Any]:
        """No file yet. What is to be read must be there when a query begins; later it may be gone for a while."""
        find_files(self._settings.paths)
        return {"new": "[]", "seen": ""}

    def getDefaultReadLimit(self) -> ReadLimit:
        """As many files a micro-batch as maxFilesPerTrigger says."""
        limit = self._settings.files_per_trigger
        return ReadMaxFiles(limit) if limit else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """The files there are now are all that this run reads."""
        self._target = {file.path for file in find_files(self._settings.paths, missing_ok=True)}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """As many new files as the limit allows."""
        seen = _seen(start)
        present = {file.path: _digest(file.path) for file in find_files(self._settings.paths, missing_ok=True)}
        new = [
            path
            for path, digest in present.items()
            if digest not in seen and (self._target is None or path in self._target)
        ]
        if not new:
            return start
        allowed = limit.max_files if isinstance(limit, ReadMaxFiles) else None
        known = b"".join(sorted(seen & set(present.values())))
        return {"new": json.dumps(new[:allowed]), "seen": base64.b64encode(known).decode()}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The splits of the files of a micro-batch."""
        seen = _seen(start)
        files = [path for path in _new_files(end) if _digest(path) not in seen]
        return packed([File(path, size_of(path)) for path in files], self._settings)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The records of a pack, in Arrow batches."""
        assert isinstance(partition, Pack)
        return read_pack(partition.splits, self._settings)


def _digest(path: str) -> bytes:
    return blake2b(path.encode(), digest_size=DIGEST_BYTES).digest()


def _new_files(offset: dict[str, Any]) -> list[str]:
    """The files of an offset's micro-batch; of offsets of before, which had them all, all."""
    return [str(file) for file in json.loads(offset["new"] if "new" in offset else offset["files"])]


def _seen(offset: dict[str, Any]) -> set[bytes]:
    """The digests of the files that were read up to an offset."""
    known = base64.b64decode(offset.get("seen") or "")
    before = {known[place : place + DIGEST_BYTES] for place in range(0, len(known), DIGEST_BYTES)}
    return before | {_digest(file) for file in _new_files(offset)}
