"""A set that is split over shards: documents go to the shards that they must visit, and their answers come together.

    documents ─▶ Spread ─▶ (shard, key, document) ─▶ tasks of the shards ─▶ OnShards ─▶ (key, shard, ids) ─┐
                    └─────▶ (key, other columns) ───────────────────────────────────────────────────────▶ by key

Answers come together by a hash of the document's content. It is the same whenever and in whatever order a document
is computed again, so a task that is repeated after an executor died changes nothing. (A number that is counted while
rows pass by is not: Spark does not promise their order.) Documents with equal content have equal answers. Rows and
nodes need not come together, so they have no key, and their other columns travel with the document.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sql
from pyspark.sql.types import BinaryType, BooleanType, IntegerType, StringType, StructField, StructType

from xsift.spark.answers import BATCH_BYTES, ERROR_TYPE, bytes_of_rows, error_column, slices
from xsift.spark.columns import ERROR_SCHEMA, Columns
from xsift.spark.worker import LISTED, Task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["match_on_shards"]

HOME = -1  # the number of the shard of rows that only carry the other columns
KEY_BYTES = 16
# Errors that depend on what a shard asks for.
OF_SOME_SHARDS = ("text-too-long", "text-amplification", "attribute-amplification")
TRAVELLING = (
    StructField("target", IntegerType()),
    StructField("shard", IntegerType()),
    StructField("key", BinaryType()),
    StructField("first", BooleanType()),
    StructField("label", StringType()),
    StructField("error", ERROR_SCHEMA),
)


def match_on_shards(documents: DataFrame, columns: Columns, task: Task, tasks: int) -> DataFrame:
    """The matches of documents, each of which visits its shards. `tasks` is how many tasks all shards have."""
    shards = len(task.parts)
    slots = -(-tasks // shards)
    xml = next(field for field in documents.schema.fields if field.name == columns.xml)
    merged = task.output in LISTED
    carried = StructType(list(columns.carried))
    travelling = StructType([*TRAVELLING])
    travelling.add("xml", xml.dataType)
    home = StructType().add("missing", BooleanType())
    if carried.fields:
        home.add("columns", carried)
    travelling.add("home", home)
    spread = Spread(task, tuple(field.name for field in carried.fields), slots, merged)
    placed = documents.mapInArrow(spread, travelling).repartitionById(shards * slots, sql.col("target"))
    on_shards = OnShards(replace(task, xml="xml", keep_xml=False, label="label" if task.label else None, names={}))
    pairs = zip(columns.names, columns.added, strict=True)
    added = StructType([StructField(name, field.dataType) for name, field in pairs])
    if merged:
        answered = StructType().add("key", BinaryType()).add("shard", IntegerType()).add("home", home)
        found = placed.mapInArrow(on_shards, StructType([*answered.fields, *added.fields]))
        return _merged(found, columns, task.output, bool(carried.fields))
    found = placed.mapInArrow(on_shards, StructType([*StructType().add("home", home).fields, *added.fields]))
    return found.select(*_final(columns, bool(carried.fields)))


def _final(columns: Columns, has_columns: bool) -> list[Any]:
    carried = ["home.columns.*"] if has_columns else []
    return [*carried, *(sql.col(name).alias(called) for name, called in columns.names.items())]


def _merged(found: DataFrame, columns: Columns, listed: str, has_columns: bool) -> DataFrame:
    """One row a document again. Equal documents have one key: their answers are one, their other columns are not."""
    answer = sql.when(sql.col("shard") >= 0, sql.struct("shard", listed, "failures"))
    grouped = found.groupBy("key").agg(
        sql.array_sort(sql.collect_set(answer)).alias("answers"),
        sql.first("error", ignorenulls=True).alias("error"),
        sql.collect_list("home").alias("homes"),
    )
    ids = sql.flatten(sql.transform("answers", lambda part: part[listed]))
    failures = sql.flatten(
        sql.filter(sql.transform("answers", lambda part: part["failures"]), lambda it: it.isNotNull())
    )
    single = grouped.withColumn("home", sql.explode("homes"))
    matched = single.withColumn(listed, sql.when(~sql.col("home.missing") & sql.col("error").isNull(), ids))
    return matched.withColumn("failures", sql.when(sql.size(failures) > 0, failures)).select(
        *_final(columns, has_columns)
    )


@dataclass(frozen=True)
class Spread:
    """The function that is mapped over documents: a row for each shard that one must visit, and with `merged` one
    that carries its other columns home."""

    task: Task
    carried: tuple[str, ...]
    slots: int
    merged: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                yield from self._spread(batch)

    def _spread(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        documents = batch[self.task.xml]
        visits, errors = self.task.visits(documents)
        if errors and self.task.on_error == "fail":
            raise self.task.labelled(batch, *min(errors.items()))
        missing = documents.is_null().to_numpy(zero_copy_only=False)
        visits[missing] = False
        broken = sorted(errors)
        visits[broken] = False
        if not self.merged:
            visits[broken, 0] = True  # it is reported there
        numbers, shards = np.nonzero(visits)
        first = np.concatenate([[True], numbers[1:] != numbers[:-1]])[: len(numbers)]
        homes = np.arange(batch.num_rows) if self.merged else np.array([], dtype=np.int64)
        places = np.concatenate([numbers, homes])
        shards = np.concatenate([shards, np.full(len(homes), HOME)])
        first = np.concatenate([first, np.ones(len(homes), dtype=bool)])
        sizes = bytes_of_rows(list(batch.columns), batch.num_rows)
        keys = self._keys(batch)
        for begin, end in slices(sizes[places], BATCH_BYTES):
            taken = slice(begin, end)
            yield self._rows(batch, places[taken], shards[taken], first[taken], keys, missing, errors)

    def _keys(self, batch: pa.RecordBatch) -> list[bytes]:
        """Of each row that by which its answers come together. A null has none: it goes by its other columns, for
        all with one key meet in one row."""
        return [
            blake2b(value.as_buffer(), digest_size=KEY_BYTES).digest() if value.is_valid else _key_of_null(batch, row)
            for row, value in enumerate(batch[self.task.xml])
        ]

    def _rows(
        self,
        batch: pa.RecordBatch,
        places: npt.NDArray[np.int64],
        shards: npt.NDArray[np.int64],
        first: npt.NDArray[np.bool_],
        keys: list[bytes],
        missing: npt.NDArray[np.bool_],
        errors: Any,
    ) -> pa.RecordBatch:
        chosen = [keys[place] for place in places.tolist()]
        hashes = np.array([int.from_bytes(key[:4], "little") for key in chosen], dtype=np.int64)
        home = shards == HOME
        parts = len(self.task.parts)
        targets = np.where(home, hashes % (parts * self.slots), shards * self.slots + hashes % self.slots)
        rows = pa.array(places)
        with_columns = home if self.merged else np.ones(len(places), dtype=bool)
        told = {row: errors[place] for row, place in enumerate(places.tolist()) if home[row] and place in errors}
        labels = (
            batch[self.task.label].take(rows).cast(pa.string())
            if self.task.label
            else pa.nulls(len(rows), pa.string())
        )
        columns = {
            "target": pa.array(targets, pa.int32()),
            "shard": pa.array(shards, pa.int32()),
            "key": pa.array(chosen, pa.binary()) if self.merged else pa.nulls(len(rows), pa.binary()),
            "first": pa.array(first),
            "label": labels,
            "error": error_column(told, len(rows)),
            "xml": batch[self.task.xml].take(pa.array(places, mask=home)),
            "home": self._homes(batch, places, missing[places], with_columns),
        }
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    def _homes(self, batch: pa.RecordBatch, places: Any, missing: Any, there: npt.NDArray[np.bool_]) -> pa.Array:
        taken = pa.array(places, mask=~there)
        fields: list[tuple[str, pa.Array]] = [("missing", pa.array(missing, mask=~there))]
        if self.carried:
            inner = pa.StructArray.from_arrays([batch[name].take(taken) for name in self.carried], names=self.carried)
            fields.append(("columns", inner))
        return pa.StructArray.from_arrays(
            [array for _, array in fields], names=[name for name, _ in fields], mask=pa.array(~there)
        )


@dataclass(frozen=True)
class OnShards:
    """The function that is mapped over the rows of Spread, once they are where their shard is."""

    task: Task

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            shards = batch["shard"].to_numpy()
            for number in np.unique(shards).tolist():
                rows = batch.filter(pa.array(shards == number)) if (shards != number).any() else batch
                if number == HOME:
                    yield _home(rows, self.task.output)
                elif rows.num_rows:
                    yield from self._on_shard(rows, number)

    def _on_shard(self, rows: pa.RecordBatch, number: int) -> Iterator[pa.RecordBatch]:
        task = replace(self.task, parts=(self.task.parts[number],), router=None, one_at_a_time=True)
        merged = task.output in LISTED
        label = ["label"] if task.label else []
        wanted = ["key", "shard", "home", "xml", *label] if merged else ["first", "home", "xml", *label]
        for found in task(iter([rows.select(wanted)])):
            if not merged:  # a broken document is told once, unless only some shards find it too large
                some = pc.is_in(pc.struct_field(found["error"], "code"), value_set=pa.array(OF_SOME_SHARDS))
                told = pc.or_(pc.or_(pc.is_valid(found["subscription"]), found["first"]), some)
                found = found.filter(told) if not pc.all(told).as_py() else found
            yield found.select([name for name in found.schema.names if name not in ("first", "label")])


def _key_of_null(batch: pa.RecordBatch, row: int) -> bytes:
    columns = repr(batch.slice(row, 1).to_pylist()).encode("utf-8", "surrogatepass")
    return blake2b(columns, digest_size=KEY_BYTES, person=b"null").digest()


def _home(rows: pa.RecordBatch, listed: str) -> pa.RecordBatch:
    count = rows.num_rows
    strings = pa.list_(pa.string())
    failures = pa.list_(pa.struct([("subscription", pa.string()), ("code", pa.string()), ("message", pa.string())]))
    columns = {
        "key": rows["key"],
        "shard": rows["shard"],
        "home": rows["home"],
        listed: pa.nulls(count, strings),
        "error": rows["error"].cast(ERROR_TYPE),
        "failures": pa.nulls(count, failures),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
