"""match_stream: matching over a streaming DataFrame, against subscriptions that may change while it runs.

Where subscriptions do not change, `documents.transform(match_documents, …)` is all it takes, with any sink that Spark
has. Where they do, each micro-batch looks at the SubscriptionTable, and notes its version under the batch's number
before it writes anything (notes.py). A batch that is run again after a crash finds its note, uses the same version,
and gives the same answer; the sinks here write by the batch's number, so what it wrote the first time is replaced or
recognised, not doubled.

Matching is part of the streaming plan, so that Spark counts what it does (progress.py). The plan is fixed when the
query starts, and the subscriptions change: a task learns from a setting of its session, which each micro-batch makes
anew, which indexes it is to use.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as sql
from pyspark.sql.types import LongType, StructField, StructType
from pyspark.sql.utils import is_remote

from xsift.errors import TableError, XsiftError
from xsift.matching import Limits, MatcherOptions, Residuals
from xsift.spark.batch import choose_batch_size, map_documents, match_with
from xsift.spark.columns import Columns, Output, quoted
from xsift.spark.compiled import Errors, SubscriptionSource, compile_subscriptions
from xsift.spark.delta_sink import DeltaSink
from xsift.spark.indexes import IndexFolder
from xsift.spark.live import LiveSubscriptions
from xsift.spark.notes import FOLDER, RETAINED, Notes, check_output, forget_output, query_id
from xsift.spark.progress import LOAD_FIELD, OUTPUT, VERSION, log_progress, observe_input, observe_output
from xsift.spark.sinks import ParquetSink
from xsift.spark.worker import Task
from xsift.tables.places import location
from xsift.tables.table import SubscriptionTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["Sink", "match_stream"]

Sink = Callable[["DataFrame", int], None]
"""A function of a micro-batch's matches and its number. It should write by that number: a batch may come again after
a crash. One with a method `for_query(id)` is first asked for itself with the id of the query; one with a method
`check(schema)` may raise an error, before anything runs, if it cannot take matches with these columns."""

logger = logging.getLogger("xsift.spark")

SET_SETTING = "spark.xsift.set"  # Spark hands settings that begin so to every task of a job
RETAINED_SETTING = "spark.sql.streaming.minBatchesToRetain"


def match_stream(
    documents: DataFrame,
    *,
    subscriptions: SubscriptionSource,
    sink: Sink | str,
    checkpoint: str,
    xml: str = "xml",
    encoding: str | None = None,
    id: str | None = None,
    kind: Output = "matches",
    keep_xml: bool = False,
    names: Mapping[str, str] | None = None,
    on_error: Literal["keep", "fail"] = "keep",
    dead_letters: Sink | str | None = None,
    namespaces: Mapping[str, str] | None = None,
    engine: str = "auto",
    engine_options: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
    residuals: Residuals = "verify",
    validate: bool = True,
    errors: Errors = "raise",
    shards: int | None = None,
    worker_memory_bytes: int | None = None,
    storage: str | None = None,
    metrics: str = OUTPUT,
    arrived: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    trigger: Mapping[str, Any] | None = None,
    name: str | None = None,
    output: Output | None = None,
) -> StreamingQuery:
    """Starts a query that matches every document of a stream, and returns it.

    `sink` is a path, below which a folder of Parquet is written for each micro-batch, or a function of (matches,
    batch number), such as DeltaSink, FolderSink and KafkaSink. `dead_letters`, a path or a function likewise, gets
    the broken documents, with their bytes and errors (with kind="rows" and "nodes" also the subscriptions that
    could not be decided, named by `subscription`); without it they stay among the matches, with `error` set.
    `checkpoint` is the folder in which Spark and xsift note how far the query got, and where compiled subscriptions
    of a table are put, unless `storage` says where; `storage_options` are those of a SubscriptionTable, if the
    checkpoint is on an object store that is not the table's. `arrived` names the column with the time at which a
    document came, by which progress tells the lag (by default `timestamp`, if there is such a column). `trigger` is
    what DataStreamWriter.trigger takes, e.g. {"availableNow": True}. `metrics` is the name of the observed metrics
    (progress_of). The other arguments are those of match_documents.
    """
    spark = documents.sparkSession
    kind = output or kind
    if on_error not in ("keep", "fail"):
        raise ValueError(f"on_error is {on_error!r}; it can be 'keep' or 'fail'")
    dead = dead_letters is not None
    columns = Columns.of(documents, xml, id, kind=kind, keep_xml=keep_xml or dead, names=names)
    sinks = _sink(sink), _sink(dead_letters)
    _check_sinks(*sinks, columns, keep_xml)
    _check_places(*sinks, checkpoint, subscriptions)
    arrived = _arrival(documents, arrived)
    settings: dict[str, Any] = {
        "xml": columns.xml,
        "output": kind,
        "on_error": on_error,
        "label": columns.label,
        "keep_xml": keep_xml,
        "broken_xml": dead and not keep_xml,
        "limits": limits or Limits(),
        "validate": validate,
        "encoding": encoding,
        "names": columns.names,
    }
    access = dict(storage_options or {})
    counted = observe_input(documents, arrived, metrics)
    live: LiveSubscriptions | None = None
    choose_batch_size(spark)
    if isinstance(subscriptions, SubscriptionTable):
        if not (namespaces or {}).items() <= subscriptions.namespaces.items():
            raise TableError("other-namespace", "a table has its own namespaces", hint="table.add_namespaces(…)")
        if kind == "expressions":
            raise XsiftError("wrong-output", "a table that is followed has no expressions", hint="kind='matches'")
        if shards not in (None, 1):
            raise XsiftError("wrong-option", "a table that is followed is not split", hint="leave shards= out")
        access = access or subscriptions.storage_options
        folder = IndexFolder.of(_own_place(storage, checkpoint) if storage else checkpoint, access.items())
        options = MatcherOptions(engine=engine, engine_options=dict(engine_options or {}), residuals=residuals)
        live = LiveSubscriptions(subscriptions, folder, options)
        task = _StreamTask(folder, Task((), **settings, measures=True))
        matched = map_documents(counted, columns, task, [LOAD_FIELD, StructField(VERSION, LongType())])
    else:
        compiled = compile_subscriptions(
            spark,
            subscriptions,
            namespaces=namespaces,
            engine=engine,
            engine_options=engine_options,
            residuals=residuals,
            errors=errors,
            shards=shards,
            worker_memory_bytes=worker_memory_bytes,
            storage=storage,
            storage_options=storage_options,
            by_expression=kind == "expressions",
        )
        matched = match_with(counted, compiled, columns, compiled.task(**settings), measured=True)
    matched = observe_output(matched, kind, columns.names, metrics)
    retained = int(spark.conf.get(RETAINED_SETTING, None) or RETAINED)
    place = _Place(checkpoint, tuple(access.items()), retained)
    facts = {"kind": kind, "keep_xml": keep_xml, "dead_letters": dead, "names": dict(columns.names)}
    process = _Process(live, place, *sinks, columns, keep_xml)
    log_progress(spark)
    writer = matched.writeStream.foreachBatch(process).option("checkpointLocation", checkpoint)
    if name:
        writer = writer.queryName(name)
    if trigger:
        writer = writer.trigger(**trigger)
    noted = check_output(checkpoint, access, facts)
    try:
        return writer.start()
    except Exception:
        if noted:  # nothing was given yet
            forget_output(checkpoint, access)
        raise


def _arrival(documents: DataFrame, arrived: str | None) -> str | None:
    types = dict(documents.dtypes)
    if arrived is None:
        return "timestamp" if types.get("timestamp") == "timestamp" else None
    if types.get(arrived) != "timestamp":
        there = ", ".join(repr(column) for column, kind in types.items() if kind == "timestamp") or "none"
        raise XsiftError("wrong-type", f"there is no timestamp {arrived!r}", hint=f"arrived= can be one of {there}")
    return arrived


def _own_place(storage: str, checkpoint: str) -> str:
    """A folder of this query alone: what it needs no longer it deletes."""
    return f"{storage.rstrip('/')}/{hashlib.blake2b(location(checkpoint).encode(), digest_size=8).hexdigest()}"


def _sink(given: Any) -> Any:
    return ParquetSink(given) if isinstance(given, str) else given


def _dropped(columns: Columns, keep_xml: bool) -> tuple[list[str], list[str]]:
    """Where dead letters are apart: the columns that matches are without, and those that dead letters are without."""
    names = columns.names
    found = ("matches", "expressions", "failures", "path", "element", "fragment")
    return (
        [names["error"], *([] if keep_xml else [columns.xml])],
        [names[name] for name in found if name in names],
    )


def _check_sinks(sink: Any, dead_letters: Any, columns: Columns, keep_xml: bool) -> None:
    """Has the sinks that can tell refuse what they cannot write, while nothing is done yet."""
    without, dead_without = _dropped(columns, keep_xml) if dead_letters is not None else ([], [])
    for each, gone in ((sink, without), (dead_letters, dead_without)):
        if hasattr(each, "check"):
            each.check(StructType([field for field in columns.schema.fields if field.name not in gone]))
    if getattr(dead_letters, "matches_only", False):
        raise XsiftError(
            "wrong-sink",
            f"{type(dead_letters).__name__} leaves out broken documents",
            hint="dead_letters= can be a path, a DeltaSink, or a function of yours",
        )
    if dead_letters is None and getattr(sink, "matches_only", False):
        logger.warning("%s leaves out broken documents: dead_letters= keeps them", type(sink).__name__)


def _check_places(sink: Any, dead_letters: Any, checkpoint: str, subscriptions: Any) -> None:
    """Raises an error if what one writes would be lost in a place of another."""
    given = {"sink": sink, "dead_letters": dead_letters, "subscriptions": subscriptions}
    paths = {name: getattr(it, "path", None) for name, it in given.items()}
    places = {name: location(path) for name, path in paths.items() if isinstance(path, str | os.PathLike)}
    places["checkpoint"] = location(checkpoint)
    if "sink" in places and places["sink"] == places.get("dead_letters"):
        raise XsiftError(
            "wrong-place", "matches and dead letters would be written to one place", hint="give another dead_letters="
        )
    tables = [name for name, it in given.items() if isinstance(it, DeltaSink | SubscriptionTable)]
    for table, name in itertools.product(tables, places):
        inside = f"{places[name]}/".removeprefix(f"{places[table]}/")
        if name != table and inside != f"{places[name]}/" and not inside.startswith(("_", ".")):
            raise XsiftError(
                "wrong-place",
                f"{name}= lies in the table of {table}=, whose upkeep deletes what is no part of it",
                hint="choose a place beside it",
            )


@dataclasses.dataclass(frozen=True)
class _StreamTask:
    """What is mapped over the documents of a micro-batch: the task, with the indexes that the batch uses."""

    folder: IndexFolder
    task: Task

    def renamed(self, *names: Any) -> _StreamTask:
        """The same for columns of other names."""
        return _StreamTask(self.folder, self.task.renamed(*names))

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        name = context.getLocalProperty(SET_SETTING) if context is not None else None
        if not name:
            raise XsiftError("no-set", "a micro-batch was read without its subscriptions", hint=_NO_SET_HINT)
        used = self.folder.read_set(name)
        for batch in dataclasses.replace(self.task, parts=used.parts, folder=self.folder)(batches):
            yield batch.append_column(VERSION, pa.array(np.full(batch.num_rows, used.version), pa.int64()))


_NO_SET_HINT = "the DataFrame that a sink gets must be read before the sink returns"


@dataclasses.dataclass(frozen=True)
class _Place:
    """Where a query notes what it did."""

    checkpoint: str
    storage_options: tuple[tuple[str, str], ...]
    retained: int

    def notes(self) -> Notes:
        return Notes(self.checkpoint, dict(self.storage_options), self.retained)

    def query_id(self) -> str:
        return query_id(self.checkpoint, dict(self.storage_options))


class _Process:
    """What is done with each micro-batch."""

    def __init__(
        self,
        live: LiveSubscriptions | None,
        place: _Place,
        sink: Sink,
        dead_letters: Sink | None,
        columns: Columns,
        keep_xml: bool,
    ) -> None:
        self._live = live
        self._place = place
        self._sinks: dict[str, Sink | None] = {"sink": sink, "dead letters": dead_letters}
        self._columns = columns
        self._keep_xml = keep_xml
        self._notes: Notes | None = None
        self._bound = False

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        if not self._bound:
            self._bind()
        if self._live is not None:  # the matches are found once the tasks know which indexes to use
            _tell_tasks(batch.sparkSession, self._indexes(self._live, batch_id))
        sink, dead_letters = self._sinks["sink"], self._sinks["dead letters"]
        assert sink is not None
        if dead_letters is None:
            sink(batch, batch_id)
            return
        error = sql.col(quoted(self._columns.names["error"]))
        without, dead_without = _dropped(self._columns, self._keep_xml)
        matched = batch.persist()
        try:
            dead_letters(matched.where(error.isNotNull()).drop(*dead_without), batch_id)
            sink(matched.where(error.isNull()).drop(*without), batch_id)
        finally:
            matched.unpersist()

    def _bind(self) -> None:
        """Tells the sinks that ask which query they are for."""
        for name, sink in self._sinks.items():
            if sink is not None and hasattr(sink, "for_query") and not getattr(sink, "query", None):
                id = self._place.query_id()
                self._sinks[name] = sink.for_query(id if name == "sink" else f"{id}-dead-letters")
        self._bound = True

    def _indexes(self, live: LiveSubscriptions, batch_id: int) -> str:
        """The name of the set of indexes that a batch uses."""
        try:
            return live.at(self._version(live, batch_id))
        except TableError as error:
            if error.code == "version-forgotten":
                note = f"{self._place.checkpoint}/{FOLDER}/{batch_id}.json"
                error.hint += f"; batch {batch_id} was begun with it: without {note} it uses the latest"
            raise

    def _version(self, live: LiveSubscriptions, batch_id: int) -> int:
        version = None
        if self._notes is None:  # only the first batch after a start can be one that ran before
            self._notes = self._place.notes()
            version = self._notes.version_of(batch_id)
        if version is None:
            version = live.table.version()
            self._notes.note(batch_id, version)
        return version


def _tell_tasks(spark: SparkSession, name: str) -> None:
    """Has the tasks of all jobs that this micro-batch starts know the name of the set to use. The session is the
    query's own."""
    spark.conf.set(SET_SETTING, name)
    if not is_remote():  # jobs that are not SQL, such as those of `.rdd`, get no settings of the session
        spark.sparkContext.setLocalProperty(SET_SETTING, name)
