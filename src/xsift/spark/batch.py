"""match_documents: a DataFrame of XML documents in, a DataFrame of matches out.

    documents.transform(match_documents, subscriptions=table, xml="xml")

Documents stay where they are; the compiled subscriptions travel. Each Arrow batch is matched where it lies in memory
(worker.py). Only if the subscriptions are more than a machine can hold do documents travel, to shards (spread.py).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import functions as sql
from pyspark.sql.types import StructField, StructType

from xsift.matching import Limits, Residuals
from xsift.spark.columns import Columns, Output
from xsift.spark.compile_job import cores_of
from xsift.spark.compiled import Compiled, Errors, SubscriptionSource, compile_subscriptions
from xsift.spark.progress import LOAD_FIELD, observe_input, observe_output
from xsift.spark.spread import match_on_shards
from xsift.spark.worker import Task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["choose_batch_size", "map_documents", "match_documents", "match_with"]

logger = logging.getLogger("xsift.spark")

BATCH_SETTING, BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch", "4m"
SAMPLE_DOCUMENTS, SAMPLE_BYTES = 600, 64 * 2**20  # of a sample; the driver has it in memory
TASKS_SETTING, TASKS_DEFAULT, TASKS_A_CORE = "spark.sql.shuffle.partitions", "200", 4


def match_documents(
    documents: DataFrame,
    *,
    subscriptions: SubscriptionSource,
    xml: str = "xml",
    encoding: str | None = None,
    id: str | None = None,
    kind: Output = "matches",
    keep_xml: bool = False,
    names: Mapping[str, str] | None = None,
    on_error: Literal["keep", "fail"] = "keep",
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
    storage_options: Mapping[str, str] | None = None,
    metrics: str | None = None,
    output: Output | None = None,
) -> DataFrame:
    """Which subscriptions does each document satisfy?

    `xml` names the column with the documents (string or binary); the other columns are kept, and that one too with
    keep_xml=True. `encoding` is that of binary documents, whatever they declare. `kind` is "matches": a row for
    each document, with `matches` (ids), `error` (code, message, line, column; null unless the document is broken)
    and `failures` (subscriptions that could not be decided on it); "rows": a row for each match, with
    `subscription`; "nodes": a row for each matched node, with `subscription`, `path`, `element` (its number) and
    `fragment` (its XML, which stands alone); "expressions": a row for each document, with `expressions`: digests of
    the distinct expressions that matched, whoever subscribed to them (Compiled.subscribers). In "rows" and "nodes"
    a broken document is one row whose `subscription` is null, and a subscription that could not be decided is a row
    with its id and an `error`. With on_error="fail" a broken document fails the job; `id` names the column by which
    the message then calls it. `names` gives other names to columns that are added, e.g. {"matches": "alerts"}.
    `metrics` is a name under which Spark is to observe what passes (DataFrame.observe): documents under NAME_input,
    under NAME matches, broken documents, failures, and the seconds in which workers loaded the index.

    Subscriptions are compiled when this is called, which runs a job if they are a DataFrame; documents are read when
    Spark is asked for the result. It works on batch and streaming DataFrames.

    `limits` and `validate` are those of Subscriptions.matcher. `subscriptions`, `namespaces`, `engine`,
    `engine_options`, `residuals`, `errors`, `shards`, `worker_memory_bytes`, `storage` and `storage_options` are
    those of compile_subscriptions. `output` is the older name of `kind`.
    """
    kind = output or kind
    if on_error not in ("keep", "fail"):
        raise ValueError(f"on_error is {on_error!r}; it can be 'keep' or 'fail'")
    columns = Columns.of(documents, xml, id, kind=kind, keep_xml=keep_xml, names=names)
    spark = documents.sparkSession
    choose_batch_size(spark)
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
        sample=None if documents.isStreaming else partial(_sample, documents, columns),
        by_expression=kind == "expressions",
    )
    task = compiled.task(
        xml=columns.xml,
        output=kind,
        keep_xml=keep_xml,
        on_error=on_error,
        label=columns.label,
        limits=limits or Limits(),
        validate=validate,
        encoding=encoding,
        names=columns.names,
    )
    if metrics is None:
        return match_with(documents, compiled, columns, task)
    matched = match_with(observe_input(documents, None, metrics), compiled, columns, task, measured=True)
    return observe_output(matched, kind, columns.names, metrics)


def match_with(
    documents: DataFrame, compiled: Compiled, columns: Columns, task: Task, measured: bool = False
) -> DataFrame:
    """The matches of documents; with `measured` also the column LOAD, unless documents travel. Where answers of
    shards would have to come together again, which a streaming plan does not do, a stream has each task ask one shard
    after the other."""
    if compiled.sharded and not documents.isStreaming:
        tasks = _tasks(documents.sparkSession)
        return _plainly(documents, columns, task, partial(match_on_shards, tasks=tasks))
    return map_documents(documents, columns, replace(task, measures=measured), [LOAD_FIELD] if measured else [])


def map_documents(documents: DataFrame, columns: Columns, task: Any, more: Sequence[StructField] = ()) -> DataFrame:
    """What a task makes of documents, with columns beyond the usual ones."""

    def mapped(documents: DataFrame, columns: Columns, task: Any) -> DataFrame:
        found: DataFrame = documents.mapInArrow(task, StructType([*columns.schema.fields, *more]))
        return found

    return _plainly(documents, columns, task, mapped)


def _plainly(
    documents: DataFrame, columns: Columns, task: Any, match: Callable[[DataFrame, Columns, Any], DataFrame]
) -> DataFrame:
    """Calls a function on columns whose names PySpark finds: it looks for `a.b` inside of `a`."""
    if not columns.odd:
        return match(documents, columns, task)
    plain, safe = columns.plainly()
    matched = match(documents.toDF(*plain), safe, task.renamed(safe.xml, safe.label, safe.names))
    return matched.toDF(*columns.schema.names, *matched.columns[len(columns.schema.names) :])


def _sample(documents: DataFrame, columns: Columns) -> pa.Array:
    """Some documents, by which a set that has to be split is split well."""
    plain, safe = columns.plainly()
    some = documents.toDF(*plain).select(sql.col(safe.xml).alias("xml"))
    few = some.where("xml is not null").limit(SAMPLE_DOCUMENTS)
    sizes = few.agg(sql.avg(sql.octet_length("xml"))).first()
    most = SAMPLE_BYTES / max(1, (sizes and sizes[0]) or 0)
    return few.limit(max(1, min(SAMPLE_DOCUMENTS, int(most)))).toArrow()["xml"].combine_chunks()


def choose_batch_size(spark: SparkSession) -> None:
    """Spark's Arrow batches of 64 MB fall out of every cache on their way to Python; 4 MB are two to three times as
    fast. A value that the user chose stays."""
    if BATCH_SETTING in spark.conf.getAll:
        return
    try:
        spark.conf.set(BATCH_SETTING, BATCH_BYTES)
        logger.info("%s set to %s for this session", BATCH_SETTING, BATCH_BYTES)
    except PySparkException:  # a declarative pipeline: settings are those of its specification
        logger.info("%s stays as it is; %s would be faster", BATCH_SETTING, BATCH_BYTES)


def _tasks(spark: SparkSession) -> int:
    """How many tasks all shards have: spark.sql.shuffle.partitions if it was set, else some for each core. Starting
    Spark's 200 would cost more than matching a few documents."""
    partitions = spark.conf.get(TASKS_SETTING, None) or TASKS_DEFAULT
    if partitions != TASKS_DEFAULT:
        return max(1, int(partitions))
    return TASKS_A_CORE * cores_of(spark)
