"""Spark: xsift beside what people do on Spark today, throughput beside the library, memory of workers, and shards.

Ways that are compared take turns, so that noise hits all of them alike, and their answers are compared first.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from lxml import etree
from pyspark.sql import DataFrame, SparkSession

import xsift
from benchmarks.measuring import interleaved, machine, median, table
from xsift.spark import Compiled, compile_subscriptions, make_session, match_documents
from xsift.spark.worker import Task
from xsift.workload import DocumentGenerator, DocumentParameters, SubscriptionGenerator, SubscriptionParameters

DOCUMENT_BYTES = 8000
DOCUMENTS = 10_000
FILES = 16
REPEATS = 3
COMPARED_SUBSCRIPTIONS = 1000
COMPARED_TIMES = 4  # that xsift reads all documents there, being so much faster
THROUGHPUT_SUBSCRIPTIONS = 100_000
SHARDED_SUBSCRIPTIONS = 5_000_000
SUBSCRIBERS_EACH = 10  # of the sharded set: so many people have the same interest
SHARDED_DOCUMENTS = 400
SHARD_MEMORY_BYTES = 128 * 2**20


def run(scale: float) -> None:
    print(f"  {machine()}; load {os.getloadavg()[0]:.1f}; NITF documents of {DOCUMENT_BYTES // 1000} KB\n")
    folder = Path(tempfile.mkdtemp(prefix="xsift-bench-"))
    try:
        documents = _write(folder, max(FILES, int(DOCUMENTS * scale)))
        saved = folder / "saved.xsift"
        throughput_subscriptions = max(100, int(THROUGHPUT_SUBSCRIPTIONS * scale))
        _set_of(_subscriptions(throughput_subscriptions)).matcher().save(saved)
        spark = make_session("local[2]")
        _compare(spark, folder, documents)
        two = _throughput(spark, folder, saved, documents, 2, throughput_subscriptions)
        _memory(spark, folder, compile_subscriptions(spark, saved))
        _shards(spark, documents, int(SHARDED_SUBSCRIPTIONS * scale))
        spark.stop()
        spark = make_session("local[1]")
        one = _throughput(spark, folder, saved, documents, 1, throughput_subscriptions)
        spark.stop()
        ways = ("the library", "Spark")
        grown = ", ".join(f"{way} {after / before:.2f}" for way, before, after in zip(ways, one, two, strict=True))
        print(f"\n  From one core to two, throughput grows by a factor of: {grown}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write(folder: Path, number: int) -> list[bytes]:
    documents = list(DocumentGenerator(DocumentParameters(dtd="nitf", number=number, size_bytes=DOCUMENT_BYTES)))
    (folder / "documents").mkdir()
    for part in range(FILES):
        values = pa.table({"xml": pa.array(documents[part::FILES], pa.binary())})
        pyarrow.parquet.write_table(values, folder / "documents" / f"{part:02}.parquet", compression="none")
    return documents


def _subscriptions(number: int) -> list[tuple[str, str]]:
    """Subscriptions with a condition and a branch each, so that a document matches few of them."""
    wanted = SubscriptionParameters(dtd="nitf", number=number, conditions=1, nested_paths=1)
    return [(str(place), text) for place, text in enumerate(SubscriptionGenerator(wanted))]


def _set_of(rows: list[tuple[str, str]]) -> xsift.Subscriptions:
    subscriptions = xsift.Subscriptions()
    subscriptions.add_many(rows)
    return subscriptions


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


def _frame(spark: SparkSession, documents: list[bytes]) -> DataFrame:
    frame = spark.createDataFrame([(bytearray(xml),) for xml in documents], "xml binary").repartition(2).cache()
    frame.count()
    return frame


def _paths(number: int) -> list[tuple[str, str]]:
    """Distinct paths, as in the benchmark `foundation`; no conditions and no branches, in favour of the others."""
    wanted = SubscriptionParameters(dtd="nitf", number=number, distinct=True)
    return [(str(place), text) for place, text in enumerate(SubscriptionGenerator(wanted))]


def _compare(spark: SparkSession, folder: Path, documents: list[bytes]) -> None:
    """Milliseconds a document of each way. Each has as many documents as keep it busy for longer than a job takes to
    start."""
    rows = _paths(COMPARED_SUBSCRIPTIONS)
    compiled = compile_subscriptions(spark, _set_of(rows))
    everything = spark.read.parquet(*[str(folder / "documents")] * COMPARED_TIMES)
    few, some = documents[:8], documents[:200]
    some_frame = _frame(spark, some)
    booleans = " + ".join(f"int(xpath_boolean(text, {_quoted(text)}))" for _, text in rows[:100])
    texts = _frame(spark, few).selectExpr("cast(xml as string) as text")
    lxml = some_frame.mapInArrow(_LxmlLoop([text for _, text in rows]), "count bigint")
    found = _total(match_documents(some_frame, subscriptions=compiled), "size(matches)")
    assert _total(lxml, "count") == found, "the answers differ"
    first = compile_subscriptions(spark, _set_of(rows[:100]))
    assert _total(texts, booleans) == _total(
        match_documents(_frame(spark, few), subscriptions=first), "size(matches)"
    ), "the answers differ"
    measured = interleaved(
        {
            "xpath_boolean a subscription": lambda: _total(texts, booleans),
            "compiled lxml in mapInArrow": lambda: _total(lxml, "count"),
            "xsift": lambda: _total(match_documents(everything, subscriptions=compiled), "size(matches)"),
        },
        REPEATS,
    )
    seconds = {way: median(values) for way, values in measured.items()}
    seconds["xpath_boolean a subscription"] *= len(rows) / 100 / len(few)
    seconds["compiled lxml in mapInArrow"] /= len(some)
    seconds["xsift"] /= len(documents) * COMPARED_TIMES
    print(f"  At {len(rows):,} subscriptions on local[2]; xpath_boolean measured with 100 of them:\n")
    ways = [[way, f"{each * 1000:,.3f}", f"{each / seconds['xsift']:,.0f}"] for way, each in seconds.items()]
    table(["way", "ms a document", "times xsift"], ways)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class _Library:
    """Processes that match the same files with the library, a share each, whenever they are asked to."""

    def __init__(self, folder: Path, saved: Path, processes: int) -> None:
        context = multiprocessing.get_context("spawn")
        files = sorted((folder / "documents").glob("*.parquet"))
        self._pipes, self._processes = [], []
        for number in range(processes):
            ours, theirs = context.Pipe()
            arguments = (saved, files[number::processes], theirs)
            process = context.Process(target=_library_process, args=arguments, daemon=True)
            process.start()
            self._pipes.append(ours)
            self._processes.append(process)

    def __call__(self) -> int:
        """Matches all files once; gives the number of matches."""
        for pipe in self._pipes:
            pipe.send(True)
        return sum(pipe.recv() for pipe in self._pipes)

    def stop(self) -> None:
        for pipe, process in zip(self._pipes, self._processes, strict=True):
            pipe.send(False)
            process.join()


def _library_process(saved: Path, files: list[Path], pipe: Any) -> None:
    matcher = xsift.Matcher.load(saved)
    while pipe.recv():
        matches = 0
        for file in files:
            for batch in pyarrow.parquet.ParquetFile(file).iter_batches(500):
                matches += len(matcher.match_array(batch["xml"])[0].values)
        pipe.send(matches)


def _throughput(
    spark: SparkSession, folder: Path, saved: Path, documents: list[bytes], cores: int, count: int
) -> tuple[float, float]:
    """Documents a second, of the library and of Spark, on so many cores."""
    matched = match_documents(spark.read.parquet(str(folder / "documents")), subscriptions=saved)
    library = _Library(folder, saved, cores)
    found = library()
    assert _total(matched, "size(matches)") == found, "the answers differ"
    names = [f"library, {cores} process" + "es" * (cores > 1), f"Spark, local[{cores}]"]
    ways: list[Callable[[], object]] = [library, lambda: matched.write.format("noop").mode("overwrite").save()]
    measured = interleaved(dict(zip(names, ways, strict=True)), REPEATS)
    library.stop()
    seconds = {way: median(values) for way, values in measured.items()}
    megabytes = sum(map(len, documents)) / 1e6
    each = found / len(documents)
    print(
        f"\n  Throughput at {count:,} subscriptions, {len(documents):,} documents, {each:,.0f} matches each, warm:\n"
    )
    rows = [
        [way, f"{len(documents) / each:,.0f}", f"{megabytes / each:,.1f}", f"{seconds[names[0]] / each:.0%}"]
        for way, each in seconds.items()
    ]
    table(["way", "documents/s", "MB/s", "of the library"], rows)
    return len(documents) / seconds[names[0]], len(documents) / seconds[names[1]]


class _Memory:
    """Matches, and then reports the memory of the worker that it runs in."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in self.task(batches):
            pass
        time.sleep(1)  # so that both workers are there at the same time
        lines: list[str] = []
        mapped: dict[str, int] = {}
        for line in Path("/proc/self/smaps").read_text().splitlines():
            if "-" in line.partition(" ")[0]:
                lines = [line]
            elif line.startswith(("Rss:", "Pss:")) and lines[0].endswith(".xsift"):
                name = line.partition(":")[0]
                mapped[name] = mapped.get(name, 0) + int(line.split()[1])
        rollup = dict(line.split(":") for line in Path("/proc/self/smaps_rollup").read_text().splitlines()[1:])
        sizes = {name: int(rollup[name].split()[0]) for name in ("Rss", "Pss")}
        row = {"pid": os.getpid(), **sizes, "index": mapped.get("Rss", 0), "index_pss": mapped.get("Pss", 0)}
        yield pa.RecordBatch.from_pylist([row])


def _memory(spark: SparkSession, folder: Path, compiled: Compiled) -> None:
    frame = spark.read.parquet(str(folder / "documents"))
    task = Task(compiled.parts, xml="xml", output="matches", keep_xml=False, on_error="keep")
    schema = "pid bigint, Rss bigint, Pss bigint, index bigint, index_pss bigint"
    found = {row["pid"]: row for row in frame.mapInArrow(_Memory(task), schema).collect()}
    print(f"\n  Memory of the workers, MiB; {compiled}:\n")
    columns = ("Rss", "Pss", "index", "index_pss")
    rows = [[str(pid), *(f"{row[name] / 1024:,.1f}" for name in columns)] for pid, row in found.items()]
    table(["worker", "resident", "its share (PSS)", "index, resident", "index, its share (PSS)"], rows)


def _shards(spark: SparkSession, documents: list[bytes], count: int) -> None:
    """More subscriptions than a worker may hold, split by what it may."""
    distinct = [text for _, text in _subscriptions(max(10, count // SUBSCRIBERS_EACH))]
    places = np.tile(np.arange(len(distinct)), SUBSCRIBERS_EACH)
    ids = pa.array(np.arange(len(places))).cast(pa.string())
    rows = pa.table({"id": ids, "xpath": pa.array(distinct).take(pa.array(places))})
    sample = documents[:SHARDED_DOCUMENTS]
    frame = _frame(spark, sample)
    started = time.perf_counter()
    compiled = compile_subscriptions(spark, rows, worker_memory_bytes=SHARD_MEMORY_BYTES)
    seconds = time.perf_counter() - started
    print(
        f"\n  {len(distinct):,} interests, {SUBSCRIBERS_EACH} people each; {SHARD_MEMORY_BYTES >> 20} MiB a worker:"
    )
    print(f"  {compiled}; {seconds:,.1f} s to compile and ship", flush=True)
    matcher = _set_of([(str(place), text) for place, text in enumerate(distinct)]).matcher()
    found = sum(len(match.rows) for match in matcher.match_many(sample)) * SUBSCRIBERS_EACH
    started = time.perf_counter()
    assert _total(match_documents(frame, subscriptions=compiled), "size(matches)") == found, "the answers differ"
    seconds = time.perf_counter() - started
    print(f"  {len(sample):,} documents: {seconds:,.1f} s, {found:,} matches, as many as the library finds")
