"""What a stream did, a line for each micro-batch: documents, matches, broken ones, the version of the subscriptions,
seconds, and how long the document that waited longest had waited.

The numbers are Spark's own: match_stream observes them (`DataFrame.observe`), so that they are also in
`query.lastProgress.observedMetrics`, and reach every StreamingQueryListener.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sql
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from pyspark.sql.types import DoubleType, StructField

from xsift.matching.display import plural
from xsift.spark.columns import quoted
from xsift.spark.worker import LISTED, LOAD

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["BatchProgress", "progress_of"]

logger = logging.getLogger("xsift.spark")

OUTPUT, INPUT = "xsift", "_input"  # the name of the metrics, and what is added to it for those of what was read
VERSION = "__xsift_version"  # this column and LOAD are counted, and go
LOAD_FIELD = StructField(LOAD, DoubleType())


@dataclass(frozen=True)
class BatchProgress:
    """One micro-batch. `failures` counts subscriptions that could not be decided on a document. `version` is None if
    the subscriptions are no table, `lag_seconds` if documents do not say when they came."""

    batch: int
    documents: int
    matches: int
    broken: int
    failures: int
    version: int | None
    seconds: float
    lag_seconds: float | None
    load_seconds: float = 0.0
    """How long workers took to load indexes, all of them together."""

    def __str__(self) -> str:
        failures = f", {plural(self.failures, 'failure')}" if self.failures else ""
        version = "" if self.version is None else f", version {self.version}"
        lag = "" if self.lag_seconds is None else f", lag {self.lag_seconds:.1f} s"
        return (
            f"batch {self.batch}: {plural(self.documents, 'document')}, {plural(self.matches, 'match')}, "
            f"{self.broken:,} broken{failures}{version} in {self.seconds:.2f} s{lag}"
        )


def observe_input(documents: DataFrame, arrived: str | None, name: str = OUTPUT) -> DataFrame:
    """The documents, counted on their way."""
    counted = [sql.count(sql.lit(1)).alias("documents")]
    if arrived is not None:
        counted.append(sql.min(sql.col(quoted(arrived))).cast("double").alias("oldest"))
    return documents.observe(f"{name}{INPUT}", *counted)


def observe_output(matched: DataFrame, output: str, names: Mapping[str, str], name: str = OUTPUT) -> DataFrame:
    """The matches, counted on their way; the columns VERSION and LOAD go."""
    at = {name: quoted(called) for name, called in names.items()}
    if output in LISTED:
        found, broken = f"array_size({at[output]})", f"int({at['error']} is not null)"
        failures = f"array_size({at['failures']})"
    else:  # a row with both is a subscription that could not be decided
        subscription, error = at["subscription"], at["error"]
        found = f"int({subscription} is not null and {error} is null)"
        broken = f"int({subscription} is null and {error} is not null)"
        failures = f"int({subscription} is not null and {error} is not null)"
    counts = {"matches": found, "broken": broken, "failures": failures}
    metrics = [sql.expr(f"coalesce(sum({each}), 0)").alias(name) for name, each in counts.items()]
    if VERSION in matched.columns:
        metrics.append(sql.max(VERSION).alias("version"))
    if LOAD in matched.columns:
        metrics.append(sql.coalesce(sql.sum(LOAD), sql.lit(0.0)).alias("load_seconds"))
    return matched.observe(name, *metrics).drop(VERSION, LOAD)


def progress_of(progress: Any, metrics: str = OUTPUT) -> BatchProgress | None:
    """What a micro-batch did, from an item of `query.recentProgress`; None if it had no documents, or the query is
    none of match_stream's. `metrics` is the name that the query was given, if it was."""
    observed = {name: _values(row) for name, row in (progress.observedMetrics or {}).items()}
    read, found = observed.get(f"{metrics}{INPUT}", {}), observed.get(metrics)
    if found is None or not progress.numInputRows:
        return None
    seconds = progress.durationMs.get("triggerExecution", 0) / 1000
    oldest = read.get("oldest")
    began = datetime.fromisoformat(progress.timestamp).replace(tzinfo=UTC).timestamp()
    return BatchProgress(
        batch=progress.batchId,
        documents=int(read.get("documents") or progress.numInputRows),
        matches=int(found["matches"] or 0),
        broken=int(found["broken"] or 0),
        failures=int(found["failures"] or 0),
        version=found.get("version"),
        seconds=seconds,
        lag_seconds=None if oldest is None else max(0.0, began + seconds - float(oldest)),
        load_seconds=float(found.get("load_seconds") or 0.0),
    )


def _names(progress: Any) -> list[str]:
    """The names under which a query is observed by xsift: each has a second one for what was read."""
    observed = progress.observedMetrics or {}
    return [name for name in observed if f"{name}{INPUT}" in observed]


def _values(row: Any) -> dict[str, Any]:
    """The metrics of a row, which Spark Connect hands out in a form of its own."""
    found = row.asDict() if hasattr(row, "asDict") else dict(row)
    if set(found) == {"values", "schema"}:
        schema = found["schema"]
        fields = schema["fields"] if isinstance(schema, dict) else schema.asDict()["fields"]
        names = [field["name"] for field in fields]
        return dict(zip(names, found["values"], strict=True))
    return dict(found)


class ProgressLog(StreamingQueryListener):
    """Logs a line for each micro-batch (logger `xsift.spark`, level INFO)."""

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing is logged."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Logs what a micro-batch did."""
        for done in (progress_of(event.progress, name) for name in _names(event.progress)):
            if done is not None:
                logger.info("%s%s", f"{event.progress.name}: " if event.progress.name else "", done)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Nothing is logged."""


_listening: set[int] = set()


def log_progress(spark: SparkSession) -> None:
    """Has a session log its micro-batches, if anybody listens to the log. Once a session."""
    if logger.isEnabledFor(logging.INFO) and id(spark) not in _listening:
        _listening.add(id(spark))
        spark.streams.addListener(ProgressLog())
