"""Spark: xsift beside what people do on Spark today, throughput beside the library, and the memory of workers."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
from lxml import etree
from pyspark.sql import DataFrame, SparkSession

import xsift
from benchmarks.measuring import machine, median, table
from xsift.spark import Compiled, compile_subscriptions, make_session, match_documents
from xsift.workload import DocumentGenerator, DocumentParameters, SubscriptionGenerator, SubscriptionParameters

DOCUMENT_BYTES = 8000
DOCUMENTS = 20_000
FILES = 16
REPEATS = 3
COMPARED_SUBSCRIPTIONS = 1000
THROUGHPUT_SUBSCRIPTIONS = 100_000


def run(scale: float) -> None:
    print(f"  {machine()}; load {os.getloadavg()[0]:.1f}; NITF documents of {DOCUMENT_BYTES // 1000} KB\n")
    folder = Path(tempfile.mkdtemp(prefix="xsift-bench-"))
    documents = _write(folder, max(FILES, int(DOCUMENTS * scale)))
    spark = make_session("local[2]")
    _compare(spark, folder, documents)
    rows = _subscriptions(max(100, int(THROUGHPUT_SUBSCRIPTIONS * scale)))
    saved = folder / "saved.xsift"
    _set_of(rows).matcher().save(saved)
    spark_seconds = _on_spark(spark, folder, saved)
    _memory(spark, folder, compile_subscriptions(spark, saved))
    spark.stop()
    one = make_session("local[1]")
    one_seconds = _on_spark(one, folder, saved)
    one.stop()
    _throughput(
        folder, saved, len(rows), documents, {"Spark, local[2]": spark_seconds, "Spark, local[1]": one_seconds}
    )


def _write(folder: Path, number: int) -> list[bytes]:
    documents = list(DocumentGenerator(DocumentParameters(dtd="nitf", number=number, size_bytes=DOCUMENT_BYTES)))
    (folder / "documents").mkdir()
    for part in range(FILES):
        values = pa.table({"xml": pa.array(documents[part::FILES], pa.binary())})
        pyarrow.parquet.write_table(values, folder / "documents" / f"{part:02}.parquet", compression="none")
    return documents


def _subscriptions(number: int) -> list[tuple[str, str]]:
    texts = SubscriptionGenerator(SubscriptionParameters(dtd="nitf", number=number))
    return [(str(place), text) for place, text in enumerate(texts)]


def _set_of(rows: list[tuple[str, str]]) -> xsift.Subscriptions:
    subscriptions = xsift.Subscriptions()
    subscriptions.add_many(rows)
    return subscriptions


def _timed(action: Callable[[], object], repeats: int = REPEATS) -> float:
    """The median of some runs, after one that is not counted."""
    seconds = []
    for _ in range(repeats + 1):
        started = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - started)
    return median(seconds[1:])


class _LxmlLoop:
    """What people write today: every expression on every document, inside mapInArrow."""

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        expressions = [etree.XPath(f"boolean({text})") for text in self.texts]
        for batch in batches:
            trees = [etree.fromstring(xml).getroottree() for xml in batch["xml"].to_pylist()]
            counts = [sum(1 for expression in expressions if expression(tree)) for tree in trees]
            yield pa.RecordBatch.from_pydict({"count": pa.array(counts, pa.int64())})


def _total(frame: DataFrame, expression: str) -> int:
    row = frame.selectExpr(f"sum({expression})").first()
    return int(row[0] or 0) if row is not None else 0


def _compare(spark: SparkSession, folder: Path, documents: list[bytes]) -> None:
    """Milliseconds a document of each way, the cost of an almost empty job taken off."""
    rows = _subscriptions(COMPARED_SUBSCRIPTIONS)
    compiled = compile_subscriptions(spark, _set_of(rows))
    everything = spark.read.parquet(str(folder / "documents"))
    few, tens = documents[:4], documents[:100]
    little = spark.createDataFrame([(bytearray(xml),) for xml in few], "xml binary").repartition(2).cache()
    some = spark.createDataFrame([(bytearray(xml),) for xml in tens], "xml binary").repartition(2).cache()
    booleans = " + ".join(f"int(xpath_boolean(text, {_quoted(text)}))" for _, text in rows[:100])
    texts = little.selectExpr("cast(xml as string) as text")
    lxml = some.mapInArrow(_LxmlLoop([text for _, text in rows]), "count bigint")
    found = _total(match_documents(some, subscriptions=compiled), "size(matches)")
    assert _total(lxml, "count") == found, "the answers differ"
    seconds = {
        "xpath_boolean a subscription": _timed(lambda: _total(texts, booleans), 1) * len(rows) / 100 / len(few),
        "compiled lxml in mapInArrow": _timed(lambda: _total(lxml, "count")) / len(tens),
        "xsift": _timed(lambda: _total(match_documents(everything, subscriptions=compiled), "size(matches)"))
        / len(documents),
    }
    print(f"  At {len(rows):,} subscriptions on local[2]; xpath_boolean measured with 100 of them:\n")
    ways = [[way, f"{each * 1000:,.3f}", f"{each / seconds['xsift']:,.0f}"] for way, each in seconds.items()]
    table(["way", "ms a document", "times xsift"], ways)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _on_spark(spark: SparkSession, folder: Path, saved: Path) -> float:
    compiled = compile_subscriptions(spark, saved)
    frame = spark.read.parquet(str(folder / "documents"))
    return _timed(
        lambda: match_documents(frame, subscriptions=compiled).write.format("noop").mode("overwrite").save()
    )


def _library_worker(saved: Path, files: list[Path], ready: object, go: object) -> None:
    matcher = xsift.Matcher.load(saved)
    for _ in range(REPEATS + 1):
        ready.release()  # type: ignore[attr-defined]
        go.acquire()  # type: ignore[attr-defined]
        for file in files:
            for batch in pyarrow.parquet.ParquetFile(file).iter_batches(500):
                matcher.match_array(batch["xml"])
    ready.release()  # type: ignore[attr-defined]


def _in_library(folder: Path, saved: Path, processes: int) -> float:
    """Seconds in which library processes match the same files, half each; loading aside, as on Spark."""
    context = multiprocessing.get_context("spawn")
    files = sorted((folder / "documents").glob("*.parquet"))
    ready, go = context.Semaphore(0), context.Semaphore(0)
    workers = [
        context.Process(target=_library_worker, args=(saved, files[number::processes], ready, go))
        for number in range(processes)
    ]
    for worker in workers:
        worker.start()
    seconds = []
    for _ in range(processes):
        ready.acquire()
    for _ in range(REPEATS + 1):
        started = time.perf_counter()
        for _ in range(processes):
            go.release()
        for _ in range(processes):
            ready.acquire()
        seconds.append(time.perf_counter() - started)
    for worker in workers:
        worker.join()
    return median(seconds[1:])


def _throughput(folder: Path, saved: Path, count: int, documents: list[bytes], seconds: dict[str, float]) -> None:
    seconds = {
        f"library, {number} process" + "es" * (number > 1): _in_library(folder, saved, number) for number in (1, 2)
    } | seconds
    megabytes = sum(map(len, documents)) / 1e6
    print(f"\n  Throughput at {count:,} subscriptions, {len(documents):,} documents, warm:\n")
    best = seconds["library, 2 processes"]
    rows = [
        [way, f"{len(documents) / each:,.0f}", f"{megabytes / each:,.1f}", f"{best / each:.0%}"]
        for way, each in seconds.items()
    ]
    table(["way", "documents/s", "MB/s", "of 2 processes"], rows)


class _Memory:
    """Reports the memory of the worker that it runs in, once it has matched."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        fields = dict(line.split(":") for line in Path("/proc/self/smaps_rollup").read_text().splitlines()[1:])
        sizes = {name: int(fields[name].split()[0]) // 1024 for name in ("Rss", "Pss", "Private_Dirty")}
        yield pa.RecordBatch.from_pydict({"pid": [os.getpid()], **{name: [size] for name, size in sizes.items()}})


def _memory(spark: SparkSession, folder: Path, compiled: Compiled) -> None:
    frame = match_documents(spark.read.parquet(str(folder / "documents")), subscriptions=compiled)
    schema = "pid bigint, Rss bigint, Pss bigint, Private_Dirty bigint"
    found = {row["pid"]: row for row in frame.mapInArrow(_Memory(), schema).collect()}
    print(f"\n  Memory of the workers, MiB; index: {compiled}\n")
    rows = [
        [str(pid), f"{row['Rss']:,}", f"{row['Pss']:,}", f"{row['Private_Dirty']:,}"] for pid, row in found.items()
    ]
    table(["worker", "resident", "proportional (PSS)", "private dirty"], rows)
