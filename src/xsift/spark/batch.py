"""match_documents: a DataFrame of XML documents in, a DataFrame of matches out.

    documents.transform(match_documents, subscriptions=table, xml="xml")

Documents stay where they are; the compiled subscriptions travel. Each Arrow batch is matched where it lies in memory
(worker.py). With shards every document visits one task for each shard, and the answers are merged by a number that
each document gets first.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from xsift.errors import XsiftError
from xsift.matching import Limits, Residuals
from xsift.spark.compiled import Compiled, Errors, SubscriptionSource, compile_subscriptions
from xsift.spark.worker import Task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["ERROR_SCHEMA", "Output", "check_columns", "choose_batch_size", "match_documents", "output_schema"]

logger = logging.getLogger("xsift.spark")

Output = Literal["matches", "rows", "nodes"]
ERROR_SCHEMA = "struct<code: string, message: string, line: int, column: int>"
FAILURES_SCHEMA = "array<struct<subscription: string, code: string, message: string>>"
BATCH_SETTING, BATCH_BYTES, BATCH_DEFAULTS = (
    "spark.sql.execution.arrow.maxBytesPerBatch",
    "4m",
    ("64MB", "67108864", "67108864b"),
)
TASKS_SETTING, TASKS_DEFAULT, TASKS_A_CORE = "spark.sql.shuffle.partitions", "200", 4
KEY, SHARD, TARGET = "__xsift_key", "__xsift_shard", "__xsift_target"


def match_documents(
    documents: DataFrame,
    *,
    subscriptions: SubscriptionSource,
    xml: str = "xml",
    id: str | None = None,
    kind: Output = "matches",
    keep_xml: bool = False,
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
    output: Output | None = None,
) -> DataFrame:
    """Which subscriptions does each document satisfy?

    `xml` names the column with the documents (string or binary); the other columns are kept, and that one too with
    keep_xml=True. `kind` is "matches": a row a document, with `matches` (ids), `error` (code, message, line,
    column; null unless the document is broken) and `failures` (subscriptions that could not be decided on it);
    "rows": a row a match, with `subscription`; "nodes": a row a matched node, with `subscription`, `path`, `element`
    (its number) and `fragment` (its XML, which stands alone). In the last two a broken document is one row whose
    `subscription` is null, and a subscription that could not be decided is a row with its id and an `error`. With
    on_error="fail" a broken document fails the job; `id` names the column by which the message then calls it.

    `limits` and `validate` are those of Subscriptions.matcher. `subscriptions`, `namespaces`, `engine`,
    `engine_options`, `residuals`, `errors`, `shards` and `worker_memory_bytes` are those of compile_subscriptions.
    `output` is the older name of `kind`.
    """
    output = output or kind
    if output not in ("matches", "rows", "nodes"):
        raise ValueError(f"kind is {output!r}; it can be 'matches', 'rows' or 'nodes'")
    if on_error not in ("keep", "fail"):
        raise ValueError(f"on_error is {on_error!r}; it can be 'keep' or 'fail'")
    check_columns(documents, xml, id, output, keep_xml)
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
    )
    settings: dict[str, Any] = {
        "xml": xml,
        "output": output,
        "keep_xml": keep_xml,
        "on_error": on_error,
        "label": id,
        "limits": limits or Limits(),
        "validate": validate,
    }
    schema = output_schema(documents, xml, output, keep_xml)
    if not compiled.sharded:
        return documents.mapInArrow(Task(compiled.parts, **settings), schema)
    return _match_sharded(documents, compiled, settings, schema)


def check_columns(documents: DataFrame, xml: str, id: str | None, output: Output, keep_xml: bool) -> None:
    """Raises an error that names the columns there are if one is missing, of the wrong type, or in the way."""
    types = dict(documents.dtypes)
    for option, column in (("xml", xml), ("id", id)):
        if column is not None and column not in types:
            there = ", ".join(map(repr, types)) or "none"
            raise XsiftError(
                "missing-column", f"the documents have no column {column!r}", hint=f"{option}= can be one of {there}"
            )
    if types[xml] not in ("string", "binary"):
        raise XsiftError("wrong-type", f"the column {xml!r} is {types[xml]}", hint="documents are string or binary")
    for column in _added(output, types[xml]):
        if column in types and (column != xml or keep_xml):
            raise XsiftError(
                "column-exists", f"the documents have a column {column!r} already", hint="rename or drop it"
            )


def _added(output: Output, xml_type: str) -> dict[str, str]:
    if output == "matches":
        return {"matches": "array<string>", "error": ERROR_SCHEMA, "failures": FAILURES_SCHEMA}
    added = {"subscription": "string"}
    if output == "nodes":
        added |= {"path": "string", "element": "int", "fragment": xml_type}
    return added | {"error": ERROR_SCHEMA}


def output_schema(documents: DataFrame, xml: str, output: Output, keep_xml: bool) -> Any:
    """The columns of the matches."""
    from pyspark.sql.types import StructType

    kept = [field for field in documents.schema.fields if keep_xml or field.name != xml]
    added = [f"`{name}` {kind}" for name, kind in _added(output, dict(documents.dtypes)[xml]).items()]
    added_schema = StructType.fromDDL(", ".join(added))
    assert isinstance(added_schema, StructType)
    return StructType([*kept, *added_schema.fields])


def choose_batch_size(spark: SparkSession) -> None:
    """Spark's Arrow batches of 64 MB fall out of every cache on their way to Python; 4 MB are two to three times as
    fast. A value that the user chose stays."""
    if spark.conf.get(BATCH_SETTING, None) in BATCH_DEFAULTS:
        spark.conf.set(BATCH_SETTING, BATCH_BYTES)
        logger.info("%s set to %s for this session", BATCH_SETTING, BATCH_BYTES)


def _tasks_a_shard(spark: SparkSession) -> int:
    """How many tasks share the documents of a shard: spark.sql.shuffle.partitions if it was set, else some for each
    core. Spark's 200 would be 200 for each shard, and starting a Python task costs more than matching a few
    documents."""
    partitions = spark.conf.get(TASKS_SETTING, None) or TASKS_DEFAULT
    if partitions != TASKS_DEFAULT:
        return max(1, int(partitions))
    local = re.match(r"local(?:\[(\d+|\*)[,\]]|$)", spark.conf.get("spark.master", None) or "")
    if local:
        cores = (os.cpu_count() or 1) if local[1] == "*" else int(local[1] or 1)
    else:
        executors, each = (spark.conf.get(f"spark.executor.{name}", None) for name in ("instances", "cores"))
        cores = int(executors) * int(each or 1) if executors else int(partitions)
    return min(int(partitions), TASKS_A_CORE * cores)


def _match_sharded(documents: DataFrame, compiled: Compiled, settings: dict[str, Any], schema: Any) -> DataFrame:
    """Each document goes to one task for each shard. Tasks are numbered shard by shard, and Spark starts them in that
    order, so that workers are mostly at the same shard, load each once, and share its pages."""
    from pyspark.sql import functions as sql
    from pyspark.sql.types import LongType, StructField, StructType

    shards, slots = len(compiled.parts), _tasks_a_shard(documents.sparkSession)
    numbered = documents.withColumn(KEY, sql.monotonically_increasing_id())
    spread = numbered.withColumn(SHARD, sql.explode(sql.sequence(sql.lit(0), sql.lit(shards - 1))))
    target = sql.col(SHARD) * slots + sql.pmod(sql.xxhash64(KEY), sql.lit(slots)).cast("int")
    placed = spread.withColumn(TARGET, target).repartitionById(shards * slots, sql.col(TARGET)).drop(TARGET)
    task = Task(compiled.parts, **settings, shard=SHARD)
    added = list(_added(settings["output"], "string"))
    fields = [field for field in schema.fields if field.name not in added]
    more = [field for field in schema.fields if field.name in added]
    found = placed.mapInArrow(task, StructType([*fields, StructField(KEY, LongType()), *more]))
    names = [field.name for field in schema.fields]
    if settings["output"] != "matches":
        return found.select(*names)
    # Merged in the order of the shards, so that ids come as from one matcher.
    numbered_parts = found.withColumn(SHARD, sql.spark_partition_id())
    merged = numbered_parts.groupBy(KEY).agg(
        *(sql.first(field.name).alias(field.name) for field in fields),
        sql.flatten(
            sql.transform(
                sql.array_sort(sql.collect_list(sql.struct(SHARD, "matches"))), lambda part: part["matches"]
            )
        ).alias("matches"),
        sql.first("error", ignorenulls=True).alias("error"),
        sql.flatten(sql.collect_list("failures")).alias("failures"),
    )
    some_failed = sql.when(sql.size("failures") > 0, sql.col("failures"))
    return merged.withColumn("failures", some_failed).select(*names)
