"""Subscription tables: what a change, a look and a restart cost, and a stream that follows a million subscriptions
while they change."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from benchmarks.measuring import machine, median, table
from xsift.spark import make_session, match_stream, progress_of
from xsift.spark.notes import Notes
from xsift.tables import SubscriptionTable
from xsift.workload import DocumentGenerator, DocumentParameters

ROWS = 1_000_000
CHANGES = 1000
VERSIONS = 5000
BATCHES = 100_000


def run(scale: float) -> None:
    print(f"  {machine()}; load {os.getloadavg()[0]:.1f}\n")
    work = Path(tempfile.mkdtemp(prefix="xsift-bench-"))
    rows: list[list[str]] = []
    try:
        million = _million(work, int(ROWS * scale), rows)
        _looks(work, int(VERSIONS * scale), rows)
        _notes(work, int(BATCHES * scale), rows)
        _followed(work, million, int(CHANGES * scale), rows)
        _restart(work, rows)
        table(["what", "median", "all"], rows)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _timed(rows: list[list[str]], what: str, action: Callable[[], object], times: int = 1) -> None:
    seconds = []
    for _ in range(times):
        started = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - started)
    rows.append([what, f"{median(seconds) * 1000:,.1f} ms", f"{sum(seconds):,.1f} s for {times:,}"])


def _million(work: Path, number: int, rows: list[list[str]]) -> SubscriptionTable:
    made = SubscriptionTable.create(work / "million")
    columns = {
        "id": pa.array([f"s{n}" for n in range(number)]),
        "xpath": pa.array([f"/nitf/body//hl1[@id = {n}]" for n in range(number)]),
    }
    _timed(rows, f"add {number:,} rows", lambda: made.add(pa.table(columns)))
    _timed(rows, "read them all", made.as_of, 3)
    _timed(rows, "one change by a process that has just opened it", lambda: _one_change(work / "million"), 5)
    return made


def _one_change(path: Path) -> None:
    SubscriptionTable(path).remove(["nobody"], missing_ok=True)


def _looks(work: Path, versions: int, rows: list[list[str]]) -> None:
    made = SubscriptionTable.create(work / "versions")
    reader = SubscriptionTable(work / "versions")
    numbers = iter(range(10**9))
    _timed(rows, "a change, the table empty at first", lambda: made.add([(f"s{next(numbers)}", "//a")]), versions)
    reader.version()
    _timed(rows, f"a look at {made.version():,} versions, nothing new", reader.version, 200)

    def change_and_look() -> None:
        made.add([(f"s{next(numbers)}", "//a")])
        started = time.perf_counter()
        reader.changes(reader.version() - 1)
        seconds.append(time.perf_counter() - started)

    seconds: list[float] = []
    for _ in range(20):
        change_and_look()
    rows.append(["a look that finds a change, and reads it", f"{median(seconds) * 1000:,.1f} ms", "20 times"])
    _timed(rows, "open it", lambda: SubscriptionTable(work / "versions"), 20)


def _notes(work: Path, batches: int, rows: list[list[str]]) -> None:
    notes = Notes(str(work / "notes"), None)
    numbers = iter(range(10**9))
    _timed(rows, "note a batch", lambda: notes.note(next(numbers), 1), batches)

    def restart() -> None:
        again = Notes(str(work / "notes"), None)
        assert again.version_of(batches - 1) == 1
        again.note(batches, 2)

    _timed(rows, f"notes at a restart after {batches:,} batches", restart, 5)


def _followed(work: Path, million: SubscriptionTable, changes: int, rows: list[list[str]]) -> None:
    """Single changes, while a stream follows them."""
    documents = list(DocumentGenerator(DocumentParameters(dtd="nitf", number=50, size_bytes=2000)))
    (work / "inbox").mkdir()
    done = threading.Event()

    def feed() -> None:
        number = 0
        while not done.wait(1):
            hidden = work / "inbox" / f".{number}"
            pyarrow.parquet.write_table(pa.table({"xml": pa.array(documents, pa.binary())}), hidden)
            hidden.rename(work / "inbox" / f"{number}.parquet")
            number += 1

    query = _query(work, million)
    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        _wait_for_batch(query, 0)
        numbers = iter(range(10**9))

        def change() -> None:
            number = next(numbers)
            if number % 3 == 0:
                million.remove([f"s{number}"])
            else:
                million.add([(f"new{number}", f"//hl1[@id = {number}]")])

        before = len(_batches(query))
        _timed(rows, "a change, while a stream follows", change, changes)
        during = _batches(query)[before:]
    finally:
        done.set()
        feeder.join()
        query.processAllAvailable()
        query.stop()
    used = sorted({batch.version for batch in during})
    seconds = [batch.seconds for batch in during]
    rows.append(
        [f"micro-batches meanwhile: {len(during)}, of {len(used)} versions", f"{median(seconds):.2f} s", ""]
        if during
        else ["no micro-batch meanwhile", "", ""]
    )


def _query(work: Path, million: SubscriptionTable) -> Any:
    spark = make_session("local[2]")
    stream = spark.readStream.schema("xml binary").parquet(str(work / "inbox"))
    out, state = str(work / "out"), str(work / "checkpoint")
    return match_stream(stream, subscriptions=million, sink=out, checkpoint=state)


def _batches(query: Any) -> list[Any]:
    return [found for found in map(progress_of, query.recentProgress) if found is not None]


def _wait_for_batch(query: Any, number: int) -> None:
    while not any(batch.batch >= number for batch in _batches(query)):
        if query.exception() is not None:
            raise query.exception()
        time.sleep(0.1)


def _restart(work: Path, rows: list[list[str]]) -> None:
    """A query that did its last batch long ago, by its number: from the start to the end of the next batch."""
    folder = work / "long"
    (folder / "inbox").mkdir(parents=True)
    made = SubscriptionTable.create(folder / "table")
    made.add([("all", "//*")])
    one = pa.table({"xml": pa.array([b"<a/>"], pa.binary())})
    pyarrow.parquet.write_table(one, folder / "inbox" / "0.parquet")
    query = _query(folder, made)
    _wait_for_batch(query, 0)
    query.stop()
    checkpoint, last = folder / "checkpoint", BATCHES - 1
    for notes in ("offsets", "commits"):
        for batch_id in (last - 1, last):  # Spark wants two to go on from
            shutil.copy(checkpoint / notes / "0", checkpoint / notes / str(batch_id))
        (checkpoint / notes / "0").unlink()
        (checkpoint / notes / ".0.crc").unlink(missing_ok=True)
    (checkpoint / "xsift-versions" / "0.json").rename(checkpoint / "xsift-versions" / f"{last}.json")
    pyarrow.parquet.write_table(one, folder / "inbox" / "1.parquet")

    def restart() -> None:
        again = _query(folder, made)
        _wait_for_batch(again, last + 1)
        again.stop()

    _timed(rows, f"a stream started again after {BATCHES:,} batches, and its next batch", restart)
