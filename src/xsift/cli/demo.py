"""`xsift demo`: the main job on generated data, with what it found, who got what, and where the time went.

News documents and subscriptions are made and matched by the library, beside the naive way, a loop over lxml; then on
local Spark, in one batch, and as a stream in which subscriptions are added while it runs. The matches are kept as
Parquet, and a short HTML report (demo_report.py) beside them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet
from lxml import etree

import xsift
from xsift.cli import EXIT_OK
from xsift.cli.common import plural, progress
from xsift.cli.demo_report import page
from xsift.errors import XsiftError
from xsift.workload import DocumentGenerator, DocumentParameters, SubscriptionGenerator, SubscriptionParameters

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from xsift.spark import Compiled

FILES = 4
BATCH_SECONDS = 120.0  # a micro-batch that takes longer than this is given up
POPULAR = 5
NAIVE_SECONDS = 2.0  # the loop gets through as many documents as it can in this time, one at least
NAIVE_SUBSCRIPTIONS = 10_000  # that it has at most, for lxml takes long to compile them
FEW = 6  # subscribers of the document that is shown, at most if there is such a document
REPORT = "report.html"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds this subcommand's options."""
    parser.add_argument("--documents", type=int, default=2000, help="news documents to make; default: 2,000")
    parser.add_argument("--subscriptions", type=int, default=100_000, help="subscriptions to make; default: 100,000")
    parser.add_argument("--engine", default="auto", help="see `xsift engines`; default: auto")
    parser.add_argument("--master", default="local[*]", help="default: local[*]")
    parser.add_argument("--output", default="build/demo", metavar="FOLDER", help="default: build/demo")


def run(arguments: argparse.Namespace) -> int:
    """Generates, matches, and shows; returns the exit code."""
    from xsift.spark import make_session

    if arguments.documents < FILES or arguments.subscriptions < 2:
        raise XsiftError("bad-option", f"the demo takes {FILES} documents and 2 subscriptions at least")
    output = _output(arguments.output)
    demo = Demo(arguments.documents, arguments.subscriptions)
    with tempfile.TemporaryDirectory(prefix="xsift-demo-") as folder:
        work = Path(folder)
        documents, rows = _make(demo, work)
        matcher = _library(demo, documents, rows, arguments.engine)
        _naive(demo, documents, rows)
        spark = make_session(arguments.master, progress=sys.stderr.isatty())
        demo.note(f"Spark started on {arguments.master}", start=True)
        try:
            _batch(spark, demo, work, output, rows, matcher)
            _stream(spark, demo, work, output, rows, arguments.engine)
        finally:
            spark.stop()
    (output / REPORT).write_text(page(demo), encoding="utf-8")
    print(f"\nParquet: {output / 'matches'} and {output / 'stream'}\nReport:  {output / REPORT}")
    return EXIT_OK


@dataclass
class Demo:
    """What was done, how long it took, and what was found."""

    documents: int
    subscriptions: int
    steps: list[tuple[float, str]] = field(default_factory=list)
    starts: list[tuple[float, str]] = field(default_factory=list)
    """Steps that wait for processes to start: no work of ours."""
    matches: int = 0
    documents_per_second: float = 0.0
    seconds: float = 0.0
    """CPU time that the library took for all documents."""
    naive_documents: int = 0
    naive_subscriptions: int = 0
    naive_seconds: float = 0.0
    """CPU time that the loop took for some of them, with some of the subscriptions."""
    shown: tuple[str, bytes, list[tuple[str, str, xsift.Node]]] | None = None
    """A document: its name, its bytes, and who got which part of it: id, expression, node with fragment."""
    popular: list[tuple[str, int, str]] = field(default_factory=list)
    """Subscriptions that were satisfied most often: id, documents, expression."""
    batches: list[tuple[int, int, int, float]] = field(default_factory=list)
    """Micro-batches: version of the subscriptions, documents, matches, seconds."""
    _last: float = field(default_factory=time.perf_counter)

    @property
    def naive_in_all(self) -> float:
        """Seconds that the loop would take for all documents and subscriptions."""
        pairs = self.naive_documents * self.naive_subscriptions
        return self.naive_seconds / max(1, pairs) * self.documents * self.subscriptions

    def note(self, text: str, *, start: bool = False) -> float:
        """Prints what was done since the last note, and how long it took."""
        seconds = time.perf_counter() - self._last
        print(f"{seconds:8.2f} s  {text}", flush=True)
        (self.starts if start else self.steps).append((seconds, text))
        self._last = time.perf_counter()
        return seconds


def _output(path: str) -> Path:
    """The folder for what is kept. One that is not from an earlier demo is left alone."""
    output = Path(path)
    if output.exists() and not output.is_dir():
        raise XsiftError("output-exists", f"{path} is no folder", hint="--output names another")
    if output.is_dir() and os.listdir(output) and not (output / REPORT).exists():
        raise XsiftError("output-exists", f"{path} has other files in it", hint="--output names another folder")
    output.mkdir(parents=True, exist_ok=True)
    for name in ("matches", "stream"):
        shutil.rmtree(output / name, ignore_errors=True)
    # From here on the folder is known to be a demo's, however this one ends.
    (output / REPORT).write_text("<!doctype html><title>xsift demo</title>This demo has not ended yet.\n")
    return output


def _make(demo: Demo, work: Path) -> tuple[list[bytes], pa.Table]:
    """Writes the documents into files, and returns them and the subscriptions."""
    parameters = DocumentParameters(dtd="nitf", number=demo.documents, size_bytes=4000)
    documents = list(progress(DocumentGenerator(parameters), "documents", demo.documents))
    (work / "news").mkdir()
    for number in range(FILES):
        part = documents[number::FILES]
        names = pa.array([f"news-{number + place * FILES}" for place in range(len(part))])
        table = pa.table({"uri": names, "xml": pa.array(part, pa.binary())})
        pyarrow.parquet.write_table(table, work / "news" / f"{number}.parquet")
    size = sum(map(len, documents)) / len(documents)
    demo.note(f"{plural(len(documents), 'news document')} made, {size:,.0f} bytes each")
    # A condition and a branch each: what people ask for matches few documents.
    wanted = SubscriptionParameters(dtd="nitf", number=demo.subscriptions, conditions=1, nested_paths=1)
    texts = SubscriptionGenerator(wanted)
    made = list(progress(texts, "subscriptions", len(texts)))
    demo.note(f"{plural(len(made), 'subscription')} made, such as {made[1]}")
    return documents, pa.table({"id": [f"subscriber-{number}" for number in range(1, len(made) + 1)], "xpath": made})


def _library(demo: Demo, documents: list[bytes], rows: pa.Table, engine: str) -> xsift.Matcher:
    """Matches all documents in this process, and finds one to show."""
    print("\nThe library, in one process")
    subscriptions = xsift.Subscriptions()
    subscriptions.add_many(rows)
    matcher = subscriptions.matcher(engine)
    demo.note(f"compiled for engine {matcher.engine}: {sum(matcher.memory().values()) / 1e6:,.0f} MB of index")
    started = time.process_time()
    counts = [len(match) for match in matcher.match_many(documents)]
    demo.seconds = time.process_time() - started
    demo.note(f"{plural(len(documents), 'document')} matched, {plural(sum(counts), 'match')}")
    number = min(range(len(counts)), key=lambda number: (not 0 < counts[number] <= FEW, -min(counts[number], FEW)))
    found = matcher.select(documents[number], fragments=True)
    parts = [(id, subscriptions.xpath(id), node) for id, nodes in found.items() for node in nodes[:1]]
    demo.shown = (f"news-{number}", documents[number], parts)
    demo.note(f"of one document, news-{number}, found out who gets which part of it")
    for id, expression, node in parts[:FEW]:
        print(f"            {id:18}  gets {node.path}  for {expression}")
    return matcher


def _naive(demo: Demo, documents: list[bytes], rows: pa.Table) -> None:
    """The loop that people write: every compiled expression on every document, as far as it gets in a while."""
    compiled = [etree.XPath(f"boolean({text})") for text in rows["xpath"].slice(0, NAIVE_SUBSCRIPTIONS).to_pylist()]
    demo.naive_subscriptions = len(compiled)
    demo.note(f"for comparison: {plural(len(compiled), 'expression')} of these compiled by lxml")
    started = time.process_time()
    for document in documents:
        tree = etree.fromstring(document).getroottree()
        for expression in compiled:
            expression(tree)
        demo.naive_documents += 1
        demo.naive_seconds = time.process_time() - started
        if demo.naive_seconds > NAIVE_SECONDS:
            break
    demo.note(f"a loop over them got through {plural(demo.naive_documents, 'document')}")
    if demo.seconds:
        ratio = demo.naive_in_all / demo.seconds
        print(f"            for all of both it would take {demo.naive_in_all:,.0f} s: {ratio:,.0f} times as long")


def _batch(spark: SparkSession, demo: Demo, work: Path, output: Path, rows: pa.Table, matcher: xsift.Matcher) -> None:
    """Matches all documents at once."""
    from xsift.spark import compile_subscriptions, match_documents

    print("\nA batch on Spark")
    compiled = compile_subscriptions(spark, matcher)
    demo.note(f"shipped: {compiled}")
    documents = spark.read.parquet(str(work / "news"))
    documents.transform(match_documents, subscriptions=compiled, id="uri").write.parquet(str(output / "matches"))
    demo.note("matched, and written as Parquet; Python workers started for it", start=True)
    _again(demo, documents, compiled)
    written = spark.read.parquet(str(output / "matches"))
    demo.matches = _matches_in(written)
    top = written.selectExpr("explode(matches) as id").groupBy("id").count().orderBy("count", "id", ascending=False)
    expressions = dict(zip(rows["id"].to_pylist(), rows["xpath"].to_pylist(), strict=True))
    demo.popular = [(str(row[0]), int(row[1]), expressions[row[0]]) for row in top.limit(POPULAR).collect()]
    demo.note(f"{plural(demo.matches, 'match')} counted, and which subscriptions were satisfied most often:")
    for id, count, expression in demo.popular:
        print(f"            {count:6,} documents  {id:18}  {expression}")


def _again(demo: Demo, documents: DataFrame, compiled: Compiled) -> None:
    """Matches once more, now that the workers have the index: what a job that runs for longer does."""
    from xsift.spark import match_documents

    documents.transform(match_documents, subscriptions=compiled).write.format("noop").mode("overwrite").save()
    seconds = demo.note("matched once more, with workers that have the index")
    demo.documents_per_second = demo.documents / seconds
    pairs = demo.documents_per_second * demo.subscriptions
    print(f"            {demo.documents_per_second:,.0f} documents a second: {pairs:,.0f} pairs with a subscription")


def _matches_in(written: DataFrame) -> int:
    row = written.selectExpr("sum(size(matches))").first()
    return int(row[0] or 0) if row is not None else 0


def _stream(spark: SparkSession, demo: Demo, work: Path, output: Path, rows: pa.Table, engine: str) -> None:
    """Matches the same documents a file at a time, while subscriptions are added."""
    from xsift.spark import match_stream
    from xsift.tables import SubscriptionTable

    print("\nA stream on Spark")
    table = SubscriptionTable.create(work / "subscriptions")
    half = rows.num_rows // 2
    table.add(rows.slice(0, half))
    demo.note(f"a table of {plural(half, 'subscription')} written, version 1")
    inbox = work / "inbox"
    inbox.mkdir()
    query = match_stream(
        spark.readStream.schema("uri string, xml binary").parquet(str(inbox)),
        subscriptions=table,
        sink=str(output / "stream"),
        checkpoint=str(work / "checkpoint"),
        engine=engine,
    )
    try:
        for number in range(FILES):
            if number == FILES // 2:
                table.add(rows.slice(half))
                demo.note(f"{plural(rows.num_rows - half, 'subscription')} added while it runs, version 2")
            (work / "news" / f"{number}.parquet").rename(inbox / f"{number}.parquet")
            _wait(query, number + 1)
            _describe(spark, demo, work, output, number)
    finally:
        query.stop()


def _wait(query: Any, batches: int) -> None:
    """Returns when that many micro-batches have been done; raises an error if that takes too long."""
    deadline = time.monotonic() + BATCH_SECONDS
    while sum(1 for progress in query.recentProgress if progress.numInputRows) < batches:
        failed = query.exception()
        if failed is not None:
            raise failed
        if time.monotonic() > deadline:
            raise XsiftError("demo-timeout", f"a micro-batch did not end within {BATCH_SECONDS:.0f} s")
        time.sleep(0.05)


def _describe(spark: SparkSession, demo: Demo, work: Path, output: Path, number: int) -> None:
    from xsift.spark import versions_used

    version = versions_used(str(work / "checkpoint"))[number]
    written = spark.read.parquet(str(output / "stream" / f"batch_id={number}"))
    documents, matches = written.count(), _matches_in(written)
    seconds = demo.note(
        f"micro-batch {number}: {plural(documents, 'document')}, version {version}, {plural(matches, 'match')}"
    )
    demo.batches.append((version, documents, matches, seconds))
