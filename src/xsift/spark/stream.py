"""match_stream: matching over a streaming DataFrame, against subscriptions that may change while it runs.

Where subscriptions do not change, `documents.transform(match_documents, …)` is all it takes, with any sink that Spark
has. Where they do, each micro-batch asks the SubscriptionTable for its latest version, and notes the version under
the batch's number before it writes anything. A batch that is run again after a crash finds its note, uses the same
version, and gives the same answer; the sinks here write by the batch's number, so what it wrote the first time is
replaced, not doubled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from pyspark.errors import AnalysisException

from xsift.matching import Limits, MatcherOptions, Residuals
from xsift.spark.batch import Output, check_columns, match_documents
from xsift.spark.compiled import Compiled, SubscriptionSource, compile_subscriptions
from xsift.spark.live import LiveSubscriptions
from xsift.spark.sinks import ParquetSink
from xsift.spark.table import SubscriptionTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["Sink", "match_stream", "versions_used"]

Sink = Callable[["DataFrame", int], None]
"""A function of a micro-batch's matches and its number. It should write by that number: a batch may come again after
a crash."""

NOTES = "xsift-versions"


def match_stream(
    documents: DataFrame,
    *,
    subscriptions: SubscriptionTable | SubscriptionSource,
    sink: Sink | str,
    checkpoint: str,
    xml: str = "xml",
    output: Output = "matches",
    keep_xml: bool = False,
    on_error: Literal["keep", "fail"] = "keep",
    dead_letters: Sink | str | None = None,
    namespaces: Mapping[str, str] | None = None,
    engine: str = "auto",
    engine_options: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
    residuals: Residuals = "verify",
    validate: bool = True,
    trigger: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> StreamingQuery:
    """Starts a query that matches every document of a stream, and returns it.

    `sink` is a path, below which a folder of Parquet is written for each micro-batch, or a function of (matches,
    batch number), such as FolderSink and KafkaSink. `dead_letters`, a path or a function likewise, gets the broken
    documents, with their bytes and errors; without it they stay among the matches, with `error` set. `checkpoint` is
    the folder in which Spark and xsift note how far the query got. `trigger` is what DataStreamWriter.trigger takes,
    e.g. {"availableNow": True}. The other arguments are those of match_documents.
    """
    check_columns(documents, xml, None, output, keep_xml or dead_letters is not None)
    source: LiveSubscriptions | Compiled
    if isinstance(subscriptions, SubscriptionTable):
        known = {**subscriptions.namespaces, **(namespaces or {})}
        options = MatcherOptions(engine=engine, engine_options=dict(engine_options or {}), residuals=residuals)
        source = LiveSubscriptions(subscriptions.path, known, options)
    else:
        source = compile_subscriptions(
            documents.sparkSession,
            subscriptions,
            namespaces=namespaces,
            engine=engine,
            engine_options=engine_options,
            residuals=residuals,
        )
    settings = {"xml": xml, "output": output, "on_error": on_error, "limits": limits, "validate": validate}
    process = _Process(
        source, f"{checkpoint.rstrip('/')}/{NOTES}", _sink(sink), _sink(dead_letters), settings, keep_xml
    )
    writer = documents.writeStream.foreachBatch(process).option("checkpointLocation", checkpoint)
    if name:
        writer = writer.queryName(name)
    if trigger:
        writer = writer.trigger(**trigger)
    return writer.start()


def versions_used(spark: SparkSession, checkpoint: str) -> dict[int, int]:
    """The version of the subscriptions that each micro-batch of a query used, by the batch's number."""
    try:
        rows = spark.read.parquet(f"{checkpoint.rstrip('/')}/{NOTES}").select("batch_id", "version").collect()
    except AnalysisException as error:
        if error.getCondition() in ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA"):
            return {}
        raise
    return {int(row["batch_id"]): int(row["version"]) for row in rows}


def _sink(given: Any) -> Any:
    return ParquetSink(given) if isinstance(given, str) else given


class _Process:
    """What is done with each micro-batch."""

    def __init__(
        self,
        source: LiveSubscriptions | Compiled,
        notes: str,
        sink: Sink,
        dead_letters: Sink | None,
        settings: dict[str, Any],
        keep_xml: bool,
    ) -> None:
        self._source = source
        self._notes = notes
        self._sink = sink
        self._dead_letters = dead_letters
        self._settings = settings
        self._keep_xml = keep_xml
        self._known: dict[int, int] | None = None

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        compiled = self._subscriptions(batch.sparkSession, batch_id)
        keep = self._keep_xml or self._dead_letters is not None
        matched = match_documents(batch, subscriptions=compiled, keep_xml=keep, **self._settings)
        if self._dead_letters is None:
            self._sink(matched, batch_id)
            return
        matched = matched.persist()
        try:
            added = [
                column
                for column in ("matches", "failures", "subscription", "path", "element", "fragment")
                if column in matched.columns
            ]
            self._dead_letters(matched.where("error is not null").drop(*added), batch_id)
            dropped = ["error"] if self._keep_xml else ["error", self._settings["xml"]]
            self._sink(matched.where("error is null").drop(*dropped), batch_id)
        finally:
            matched.unpersist()

    def _subscriptions(self, spark: SparkSession, batch_id: int) -> Compiled:
        if isinstance(self._source, Compiled):
            return self._source
        if self._known is None:  # only the first batch after a start can be one that ran before
            self._known = versions_used(spark, self._notes.removesuffix(f"/{NOTES}"))
        version = self._known.get(batch_id)
        if version is None:
            version = self._source.latest_version(spark)
            note = spark.createDataFrame([(version,)], "version bigint").coalesce(1)
            note.write.mode("overwrite").parquet(f"{self._notes}/batch_id={batch_id}")
        return self._source.at(spark, version)
