"""DeltaSink: matches appended to a Delta Lake table, exactly once.

Each task writes its rows into Parquet files of the table's folder; the driver then commits all of them at once, with
the query's id and the batch's number in the same commit. A batch that comes again finds its number there and does
nothing. Files of a task that failed, or of a driver that was killed before the commit, belong to no commit: nobody
reads them, and compaction deletes them after a week.

It is delta-rs that writes, in Python, so that it works on Spark Connect, and needs no jar.
"""

from __future__ import annotations

import json
import logging
import random
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction
from pyspark.sql import functions as sql

from xsift.errors import XsiftError
from xsift.spark.sinks import needs_free
from xsift.tables.delta import not_storable
from xsift.tables.folders import arrow_filesystem
from xsift.tables.places import check_place, location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

__all__ = ["DeltaSink"]

logger = logging.getLogger("xsift.spark")

ATTEMPTS = 30
FILE_ROWS = 2_000_000  # of a file, before a task begins another
DEAD_HOURS = 7 * 24
WRITTEN = "path string, size_bytes bigint, rows bigint, partition string"


@dataclass(frozen=True)
class DeltaSink:
    """A Delta Lake table at a path or URL, made if it is not there, to which micro-batches are appended.

    It has the columns of the matches, of any kind of output, and `batch_id`. `partition_by` are columns whose values
    get folders of their own (to Delta Lake an empty text is none there, so the id `""` comes back as null). Every
    `compact_every` batches small files are merged; None leaves that to you (`compact()`). `query` names whoever
    appends; match_stream gives the id of its query, which a restart keeps.
    `storage_options` are those of delta-rs.
    """

    path: str
    partition_by: Sequence[str] = ()
    compact_every: int | None = 100
    query: str | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict)

    def for_query(self, id: str) -> DeltaSink:
        """This sink for the query with an id."""
        return self if self.query else replace(self, query=id)

    def check(self, schema: StructType) -> None:
        """Raises an error if matches with these columns cannot be appended."""
        check_place(location(self.path))
        self._schema(schema)

    def __call__(self, matches: DataFrame, batch_id: int) -> None:
        """Appends a micro-batch, unless it has been appended."""
        if not self.query:
            raise XsiftError(
                "no-query", "the sink does not know for which query it writes", hint="DeltaSink(query=…)"
            )
        schema = self._schema(matches.schema)
        table = self._table(schema)
        if self._has(table, batch_id):
            logger.info("batch %d is in %s already", batch_id, self.path)
            return
        plain = {name: f"c{place}" for place, name in enumerate(schema.names)}  # names that PySpark finds
        rows = matches.toDF(*(plain[name] for name in matches.columns))
        rows = rows.withColumn(plain["batch_id"], sql.lit(batch_id).cast("bigint"))
        if self.partition_by:  # in order, so that a task has one file open at a time
            by = [plain[name] for name in self.partition_by]
            rows = rows.repartition(*by).sortWithinPartitions(*by)
        place = location(self.path)
        task = _Write(place, tuple(self.storage_options.items()), tuple(self.partition_by), _as_bytes(schema))
        files = rows.mapInArrow(task, WRITTEN).collect()
        self._commit(table, [_action(file) for file in files], schema, batch_id)
        if self.compact_every and batch_id % self.compact_every == self.compact_every - 1:
            self.compact()

    def _schema(self, matches: StructType) -> pa.Schema:
        """The columns of the table."""
        from pyspark.sql.pandas.types import to_arrow_schema

        needs_free(matches.names, "batch_id")
        for column in self.partition_by:
            if column not in matches.names:
                there = ", ".join(map(repr, matches.names))
                raise XsiftError("missing-column", f"there is no column {column!r}", hint=f"there is {there}")
        given = to_arrow_schema(matches, timezone="UTC")
        for column in self.partition_by:
            _check_partition(given.field(column))
        wrong = not_storable(given)
        if wrong is not None:
            raise XsiftError(
                "wrong-type",
                f"the column {wrong.name!r} is {wrong.type}, which a Delta Lake table cannot hold",
                hint="as text it can",
            )
        return pa.schema([*given, pa.field("batch_id", pa.int64())])

    def _table(self, schema: pa.Schema) -> DeltaTable:
        place, options = location(self.path), dict(self.storage_options) or None
        try:
            table = DeltaTable(place, storage_options=options)
        except TableNotFoundError:
            with suppress(CommitFailedError):  # another one made it at the same moment
                DeltaTable.create(
                    place,
                    _nullable(schema),
                    mode="ignore",
                    partition_by=list(self.partition_by),
                    storage_options=options,
                )
            table = DeltaTable(place, storage_options=options)
        wrong = _misfit(table, schema, list(self.partition_by))
        if wrong:
            raise XsiftError("other-schema", f"the table at {self.path} has {wrong}", hint="write to another path")
        return table

    def _has(self, table: DeltaTable, batch_id: int) -> bool:
        last = table.transaction_version(str(self.query))
        return last is not None and last >= batch_id

    def _commit(self, table: DeltaTable, actions: list[AddAction], schema: pa.Schema, batch_id: int) -> None:
        if not actions:
            return
        for attempt in range(ATTEMPTS):
            table.update_incremental()
            if self._has(table, batch_id):  # by a driver that we took for dead, or our own answer was lost
                return
            try:
                table.create_write_transaction(
                    list(actions),
                    "append",
                    table.schema(),
                    partition_by=list(self.partition_by),
                    commit_properties=CommitProperties(
                        app_transactions=[Transaction(str(self.query), batch_id)], max_commit_retries=0
                    ),
                )
                return
            except CommitFailedError:
                time.sleep(random.uniform(0, min(0.5, 0.01 * 2**attempt)))
        raise XsiftError("table-busy", f"{ATTEMPTS} times another writer was first at {self.path}")

    def compact(self) -> None:
        """Merges small files, and deletes those that have not been part of the table for a week."""
        table = DeltaTable(location(self.path), storage_options=dict(self.storage_options) or None)
        try:
            table.optimize.compact(max_concurrent_tasks=1)
            table.vacuum(retention_hours=DEAD_HOURS, dry_run=False, enforce_retention_duration=False, full=True)
        except (DeltaError, OSError) as error:
            logger.warning("%s could not be compacted: %s", self.path, error)


def _misfit(table: DeltaTable, schema: pa.Schema, partition_by: list[str]) -> str:
    """What a table has that does not fit; "" if all does."""
    there = {column.name: column.type for column in table.schema().fields}
    for column in Schema.from_arrow(_nullable(schema)).fields:
        if column.name not in there:
            return f"no column {column.name!r}"
        if there[column.name] != column.type:
            return f"a column {column.name!r} of another type"
    parts = list(table.metadata().partition_columns)
    return "" if parts == partition_by else f"partitions by {parts}, not {partition_by}"


def _check_partition(column: pa.Field) -> None:
    kind = column.type
    if not (
        pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_date(kind)
    ):
        raise XsiftError(
            "wrong-type",
            f"the column {column.name!r} is {kind}",
            hint="partitions are by strings, whole numbers, dates or booleans",
        )


def _action(file: Any) -> AddAction:
    stats = json.dumps({"numRecords": file["rows"]})
    values = json.loads(file["partition"])
    return AddAction(file["path"], file["size_bytes"], values, int(time.time() * 1000), True, stats)


def _as_bytes(schema: pa.Schema) -> bytes:
    return bytes(schema.serialize())


@dataclass(frozen=True)
class _Write:
    """What runs in the workers: rows in, Parquet files out; a row for each file comes back."""

    place: str
    storage_options: tuple[tuple[str, str], ...]
    partition_by: tuple[str, ...]
    schema: bytes

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = pa.ipc.read_schema(pa.py_buffer(self.schema))
        kept = pa.schema([column for column in schema if column.name not in self.partition_by])
        files = arrow_filesystem(self.place, dict(self.storage_options))
        file: _File | None = None
        for batch in batches:
            rows = pa.Table.from_batches([batch]).rename_columns(schema.names).cast(_nullable(schema))
            for values, part in _runs(rows, self.partition_by):
                if file is not None and (file.values != values or file.rows >= FILE_ROWS):
                    yield self._closed(file)
                    file = None
                if file is None:
                    file = _File(files, values, kept)
                file.write(part.select(kept.names))
        if file is not None:
            yield self._closed(file)

    def _closed(self, file: _File) -> pa.RecordBatch:
        file.close()
        partition = json.dumps(dict(zip(self.partition_by, file.values, strict=True)))
        return pa.RecordBatch.from_pydict(
            {
                "path": [file.path],
                "size_bytes": pa.array([file.size_bytes], pa.int64()),
                "rows": pa.array([file.rows], pa.int64()),
                "partition": [partition],
            }
        )


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([column.with_nullable(True) for column in schema])


class _File:
    """A Parquet file that is being written."""

    def __init__(self, files: Any, values: tuple[str | None, ...], schema: pa.Schema) -> None:
        self.path = f"part-{uuid.uuid4().hex}.zstd.parquet"
        self.values = values
        self.rows = self.size_bytes = 0
        self._files = files
        self._writer = pyarrow.parquet.ParquetWriter(
            self.path, _nullable(schema), filesystem=files, compression="zstd"
        )

    def write(self, rows: pa.Table) -> None:
        self._writer.write_table(rows)
        self.rows += rows.num_rows

    def close(self) -> None:
        self._writer.close()
        self.size_bytes = int(self._files.get_file_info(self.path).size)


def _runs(rows: pa.Table, columns: tuple[str, ...]) -> Iterator[tuple[tuple[str | None, ...], pa.Table]]:
    """Rows that follow each other with the same values of the partitions, these in the form of Delta Lake's log."""
    if not columns:
        yield (), rows
        return
    begin = 0
    for values, run in groupby(zip(*(_text(rows[column]).to_pylist() for column in columns), strict=True)):
        count = sum(1 for _ in run)
        yield values, rows.slice(begin, count)
        begin += count


def _text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column if pa.types.is_string(column.type) else column.cast(pa.string())
