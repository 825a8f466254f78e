"""`xsift demo`: the main job on generated data, on local Spark, with what it found and where the time went.

News documents and subscriptions are made, matched in one batch, and then as a stream in which subscriptions are added
while it runs. The matches are kept as Parquet, and a short HTML report beside them.
"""

from __future__ import annotations

import argparse
import html
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet

from xsift.cli import EXIT_OK
from xsift.cli.common import progress
from xsift.workload import DocumentGenerator, DocumentParameters, SubscriptionGenerator, SubscriptionParameters

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILES = 4


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

    output = Path(arguments.output)
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    clock = _Clock()
    rows = _make(arguments, output, clock)
    spark = make_session(arguments.master, progress=sys.stderr.isatty())
    clock.note("Spark started")
    try:
        popular = _batch(spark, arguments, output, rows, clock)
        _stream(spark, arguments, output, rows, clock)
    finally:
        spark.stop()
    _report(output, clock, popular)
    print(f"\nMatches: {output / 'matches'} and {output / 'stream'} (Parquet). Report: {output / 'report.html'}")
    return EXIT_OK


class _Clock:
    def __init__(self) -> None:
        self.notes: list[tuple[float, str]] = []
        self._last = time.perf_counter()

    def note(self, text: str) -> float:
        """Prints what was done since the last note, and how long it took."""
        seconds = time.perf_counter() - self._last
        print(f"{seconds:8.2f} s {text}", flush=True)
        self.notes.append((seconds, text))
        self._last = time.perf_counter()
        return seconds


def _make(arguments: argparse.Namespace, output: Path, clock: _Clock) -> pa.Table:
    """Writes the documents into files, and returns the subscriptions."""
    parameters = DocumentParameters(dtd="nitf", number=arguments.documents, size_bytes=4000)
    documents = list(DocumentGenerator(parameters))
    (output / "news").mkdir()
    for number in range(FILES):
        part = documents[number::FILES]
        names = pa.array([f"news-{number + place * FILES}" for place in range(len(part))])
        table = pa.table({"uri": names, "xml": pa.array(part, pa.binary())})
        pyarrow.parquet.write_table(table, output / "news" / f"{number}.parquet")
    size = sum(map(len, documents)) / max(1, len(documents))
    clock.note(f"{len(documents):,} news documents made, {size:,.0f} bytes each")
    texts = SubscriptionGenerator(SubscriptionParameters(dtd="nitf", number=arguments.subscriptions))
    made = list(progress(texts, "subscriptions", len(texts)))
    clock.note(f"{len(made):,} subscriptions made, such as {made[1]}")
    return pa.table({"id": [f"subscriber-{number}" for number in range(1, len(made) + 1)], "xpath": made})


def _batch(
    spark: SparkSession, arguments: argparse.Namespace, output: Path, rows: pa.Table, clock: _Clock
) -> list[tuple[str, int, str]]:
    """Matches all documents at once; returns the subscriptions that were satisfied most often."""
    from xsift.spark import compile_subscriptions, match_documents

    compiled = compile_subscriptions(spark, rows, engine=arguments.engine)
    clock.note(f"compiled and shipped: {compiled}")
    documents = spark.read.parquet(str(output / "news"))
    matched = documents.transform(match_documents, subscriptions=compiled, id="uri")
    matched.write.parquet(str(output / "matches"))
    seconds = clock.note("batch: matched, and written as Parquet")
    written = spark.read.parquet(str(output / "matches"))
    matches = _matches_in(written)
    print(
        f"           {matches:,} matches; {arguments.documents / seconds:,.0f} documents a second, the start of the "
        "Python workers included"
    )
    top = written.selectExpr("explode(matches) as id").groupBy("id").count().orderBy("count", "id", ascending=False)
    expressions = dict(zip(rows["id"].to_pylist(), rows["xpath"].to_pylist(), strict=True))
    popular = [(str(row[0]), int(row[1]), expressions[row[0]]) for row in top.limit(5).collect()]
    clock.note("the subscriptions that were satisfied most often:")
    for id, count, expression in popular:
        print(f"           {count:6,} documents  {id:18}  {expression}")
    return popular


def _matches_in(written: DataFrame) -> int:
    row = written.selectExpr("sum(size(matches))").first()
    return int(row[0] or 0) if row is not None else 0


def _stream(spark: SparkSession, arguments: argparse.Namespace, output: Path, rows: pa.Table, clock: _Clock) -> None:
    """Matches the same documents a file at a time, while subscriptions are added."""
    from xsift.spark import SubscriptionTable, match_stream

    table = SubscriptionTable(spark, str(output / "subscriptions"))
    half = rows.num_rows // 2
    table.add(rows.slice(0, half))
    clock.note(f"stream: a table of {half:,} subscriptions written, version 1")
    inbox = output / "inbox"
    inbox.mkdir()
    source = spark.readStream.schema("uri string, xml binary").parquet(str(inbox))
    query = match_stream(
        source,
        subscriptions=table,
        sink=str(output / "stream"),
        checkpoint=str(output / "checkpoint"),
        engine=arguments.engine,
    )
    for number in range(FILES):
        if number == FILES // 2:
            table.add(rows.slice(half))
            clock.note(f"stream: {rows.num_rows - half:,} subscriptions added while it runs, version 2")
        part = inbox / f".{number}"
        shutil.copy(output / "news" / f"{number}.parquet", part)
        part.rename(inbox / f"{number}.parquet")
        _wait(query, number + 1)
        clock.note(f"stream: {_described(spark, query, output, number)}")
    query.stop()


def _wait(query: Any, batches: int) -> None:
    while sum(1 for progress in query.recentProgress if progress.numInputRows) < batches:
        if query.exception() is not None:
            raise query.exception()
        time.sleep(0.05)


def _described(spark: SparkSession, query: Any, output: Path, number: int) -> str:
    from xsift.spark import versions_used

    version = versions_used(spark, str(output / "checkpoint"))[number]
    matches = _matches_in(spark.read.parquet(str(output / "stream" / f"batch_id={number}")))
    return f"micro-batch {number}, subscriptions at version {version}: {matches:,} matches"


def _report(output: Path, clock: _Clock, popular: list[tuple[str, int, str]]) -> None:
    longest = max(seconds for seconds, _ in clock.notes)
    times = "".join(
        f"<tr><td>{seconds:.2f} s<td><meter max='{longest:.3f}' value='{seconds:.3f}'></meter><td>{html.escape(text)}"
        for seconds, text in clock.notes
    )
    found = "".join(
        f"<tr><td>{count:,}<td>{html.escape(id)}<td><code>{html.escape(expression)}</code>"
        for id, count, expression in popular
    )
    (output / "report.html").write_text(
        "<!doctype html><meta charset=utf-8><title>xsift demo</title>"
        "<style>body{font:16px/1.5 system-ui;max-width:60em;margin:2em auto;padding:0 1em}td{padding:.1em .8em}"
        "td:first-child{text-align:right;white-space:nowrap}</style><h1>xsift demo</h1>"
        f"<h2>Where the time went</h2><table>{times}</table>"
        f"<h2>Satisfied most often</h2><table><tr><th>documents<th>subscriber<th>expression{found}</table>\n",
        encoding="utf-8",
    )
