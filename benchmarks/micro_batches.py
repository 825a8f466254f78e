"""What a micro-batch of a hundred documents costs: `python -m benchmarks.micro_batches [BATCHES]`.

A stream of files, each a micro-batch, into several sinks: without xsift, with a set that stays, and following a table
that changes before each batch. Seconds are Spark's own (`triggerExecution`), CPU seconds are those of the driver, its
virtual machine and the Python workers together: on a shared machine they say more.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet

from benchmarks import measuring
from xsift.spark import DeltaSink, make_session, match_stream
from xsift.tables import SubscriptionTable
from xsift.workload import DocumentGenerator, DocumentParameters, SubscriptionGenerator, SubscriptionParameters

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DOCUMENTS, SUBSCRIPTIONS, WARM_BATCHES = 100, 10_000, 8
PHASES = ("latestOffset", "queryPlanning", "walCommit", "addBatch", "commitOffsets")


def run(batches: int) -> None:
    """All sinks, one after the other."""
    folder = Path(tempfile.mkdtemp(prefix="xsift-micro-"))
    spark = make_session("local[2]")
    texts = SubscriptionGenerator(
        SubscriptionParameters(dtd="nitf", number=SUBSCRIPTIONS, nested_paths=1, conditions=1)
    )
    table = SubscriptionTable.create(folder / "table")
    table.add([(f"s{number}", text) for number, text in enumerate(texts)])
    still = table.subscriptions()
    changes = iter(range(10**9))

    def change() -> None:
        table.add([(f"new{next(changes)}", "//hl1")])

    def matching(name: str, subscriptions: Any, sink: Any, **more: Any) -> Callable[[DataFrame], Any]:
        def start(stream: DataFrame) -> Any:
            state = str(folder / name / "checkpoint")
            return match_stream(stream, subscriptions=subscriptions, sink=sink, checkpoint=state, **more)

        return start

    def plain(stream: DataFrame) -> Any:
        def write(batch: DataFrame, batch_id: int) -> None:
            batch.selectExpr("length(xml) as n").write.mode("overwrite").parquet(f"{folder}/plain/{batch_id}")

        return stream.writeStream.foreachBatch(write).option("checkpointLocation", f"{folder}/plain-state").start()

    def path(name: str) -> str:
        return str(folder / f"{name}-out")

    nothing: Callable[[], None] = lambda: None  # noqa: E731
    ways: list[tuple[str, Callable[[DataFrame], Any], Callable[[], None]]] = [
        ("without xsift, Parquet", plain, nothing),
        ("a set that stays, Parquet", matching("still", still, path("still")), nothing),
        ("a table, Parquet", matching("table", table, path("table")), nothing),
        ("a table that changes, Parquet", matching("changing", table, path("changing")), change),
        ("a table that changes, Delta", matching("delta", table, DeltaSink(path("delta"))), change),
        (
            "a table that changes, Delta, dead letters",
            matching("dead", table, DeltaSink(path("dead")), dead_letters=DeltaSink(path("broken"))),
            change,
        ),
    ]
    documents = list(DocumentGenerator(DocumentParameters(dtd="nitf", number=DOCUMENTS, size_bytes=2000)))
    documents[7] = b"<broken>"
    rows = [[name, *measured(spark, folder / f"inbox{n}", start, before, documents, batches)]
            for n, (name, start, before) in enumerate(ways)]  # fmt: skip
    spark.stop()
    measuring.table(["a micro-batch of 100 documents", "seconds", *PHASES, "CPU seconds", "jobs"], rows)


def measured(
    spark: SparkSession,
    inbox: Path,
    start: Callable[[DataFrame], Any],
    before: Callable[[], None],
    documents: list[bytes],
    batches: int,
) -> list[str]:
    """Medians of one way."""
    inbox.mkdir()
    query = start(spark.readStream.schema("xml binary").parquet(str(inbox)))
    tracker = spark.sparkContext.statusTracker()
    cpu: list[float] = []
    jobs = 0
    try:
        for number in range(WARM_BATCHES + batches):
            before()
            if number == WARM_BATCHES:
                jobs = _jobs(tracker, query)
            began = measuring.cpu_seconds()
            hidden = inbox / f".{number}"
            pyarrow.parquet.write_table(pa.table({"xml": pa.array(documents, pa.binary())}), hidden)
            hidden.rename(inbox / f"{number}.parquet")
            query.processAllAvailable()
            time.sleep(0.05)
            cpu.append(measuring.cpu_seconds() - began)
        jobs = _jobs(tracker, query) - jobs
        done = [progress for progress in query.recentProgress if progress.numInputRows][-batches:]
    finally:
        query.stop()
    if query.exception() is not None:
        raise RuntimeError(str(query.exception()))
    phases = [median(progress.durationMs.get(phase, 0) for progress in done) / 1000 for phase in PHASES]
    seconds = median(progress.durationMs["triggerExecution"] for progress in done) / 1000
    return [
        f"{seconds:.2f}",
        *(f"{phase:.2f}" for phase in phases),
        f"{median(cpu[WARM_BATCHES:]):.2f}",
        f"{jobs / batches:.1f}",
    ]


def _jobs(tracker: Any, query: Any) -> int:
    return len(tracker.getJobIdsForGroup(str(query.runId)))


if __name__ == "__main__":
    run(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
