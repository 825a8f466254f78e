"""`python -m benchmarks.soak`: a stream that runs for long, to see that nothing grows.

Subscriptions change every second, by a process of their own. Documents of all kinds arrive every second: news, large
and deep ones, other encodings, every kind of broken one. Matches go into one Delta table, broken documents into
another. What is recorded: the memory of the driver, the JVM and the workers, open files, files of the checkpoint and
of the table, seconds a micro-batch, and how far the stream is behind. In the end every document must be in exactly
one of the two tables, with the matches that the library finds for the version that its micro-batch used; and the
lines must be flat. They are drawn in soak.svg.

Files that are not used any more are kept for an hour or a week, so that others can finish reading. Here they are
deleted at once, because a soak is to see the end of that.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import shutil
import statistics
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from deltalake import DeltaTable

from benchmarks.measuring import descendants
from xsift.tables import SubscriptionTable, delta
from xsift.workload import DocumentGenerator, DocumentParameters, SubscriptionGenerator, SubscriptionParameters

SUBSCRIPTIONS = 20_000
CHECKED_BATCHES = 60  # whose matches are compared with the library's, in the end
SAMPLES = 240
GROWTH = 0.15  # of the memory, from the third quarter to the last, that counts as flat
BROKEN = [
    b"<nitf><body>",
    b"",
    b"not xml",
    b"<a>&undefined;</a>",
    b"\xff\xfe\x00",
    b"<a>" * 20_000,
    b'<!DOCTYPE a [<!ENTITY b "bbbbbbbbbb"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]><a>'
    + b"&c;" * 200_000
    + b"</a>",
]

SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    # The heap is taken whole at the start: a JVM that has not needed it yet looks like one that grows.
    "spark.driver.extraJavaOptions": "-Xms512m -XX:+AlwaysPreTouch",
}

Sample = dict[str, float]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description="A stream that runs for long.")
    parser.add_argument("--seconds", type=float, default=3600.0, help="default: an hour")
    parser.add_argument("--output", default="build/soak", help="where to put soak.svg and samples.jsonl")
    parser.add_argument("--documents", type=int, default=20, help="how many come each second; default: 20")
    parser.add_argument("--every", type=float, default=0.0, help="seconds from batch to batch; default: at once")
    arguments = parser.parse_args()
    output = Path(arguments.output)
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    samples, problems = soak(output / "work", arguments.seconds, arguments.documents, arguments.every)
    (output / "samples.jsonl").write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    (output / "soak.svg").write_text(drawn(samples))
    problems += growing(samples)
    for problem in problems:
        print(f"soak: {problem}")
    print(f"{output / 'soak.svg'} shows it" + ("" if problems else ": flat, and nothing lost or doubled"))
    shutil.rmtree(output / "work", ignore_errors=True)
    return 1 if problems else 0


# The stream, and who keeps it busy


def soak(work: Path, seconds: float, documents: int, every: float) -> tuple[list[Sample], list[str]]:
    """Runs the stream; returns what was recorded, and what is wrong with its output."""
    from xsift.spark import DeltaSink, delta_sink, make_session, match_stream, progress_of

    delta_sink.DEAD_HOURS = 0
    _shorten_retention(seconds)
    work.mkdir(parents=True)
    table = SubscriptionTable.create(work / "table")
    table.add([(f"s{number}", text) for number, text in enumerate(_interests(SUBSCRIPTIONS))])
    spark = make_session("local[2]", driver_memory="512m", settings=SETTINGS)
    (work / "inbox").mkdir()
    stream = (
        spark.readStream.schema("number bigint, xml binary, came timestamp")
        .option("cleanSource", "delete")
        .parquet(str(work / "inbox"))
    )
    query = match_stream(
        stream,
        subscriptions=table,
        sink=DeltaSink(str(work / "matches"), compact_every=20),
        dead_letters=DeltaSink(str(work / "broken"), compact_every=20),
        checkpoint=str(work / "checkpoint"),
        arrived="came",
        trigger={"processingTime": f"{every} seconds"},
    )
    done = threading.Event()
    feeder = Feeder(work / "inbox", documents, done)
    context = multiprocessing.get_context("spawn")
    writer = context.Process(target=change_every_second, args=(str(work / "table"), seconds), daemon=True)
    samples: list[Sample] = []
    versions: dict[int, int] = {}
    began = time.monotonic()
    feeder.start()
    writer.start()
    try:
        while time.monotonic() < began + seconds:
            time.sleep(max(1.0, seconds / SAMPLES))
            if query.exception() is not None:
                return samples, [f"the stream failed: {query.exception()}"]
            if not feeder.is_alive():
                return samples, ["the feeder failed"]
            batches = [found for found in map(progress_of, query.recentProgress) if found is not None]
            versions |= {batch.batch: batch.version or 0 for batch in batches}
            samples.append({"second": time.monotonic() - began, **_measured(work, batches[-10:])})
            if len(samples) % 20 == 1 and batches:
                print(f"{samples[-1]['second']:7.0f} s  {batches[-1]}", flush=True)
    finally:
        done.set()
        feeder.join()
        writer.join(30)
        writer.kill()
        if query.isActive:
            query.processAllAvailable()
            versions |= {b.batch: b.version or 0 for b in map(progress_of, query.recentProgress) if b is not None}
            query.stop()
    spark.stop()
    print(f"{feeder.number:,} documents, {max(versions) + 1:,} micro-batches, {table.version():,} versions")
    return samples, wrong(work, feeder, table, versions)


def _shorten_retention(seconds: float) -> None:
    """Dead files and old log entries go at once, so that the lines show where they level off."""
    delta.DEAD_HOURS = 0
    delta.PROPERTIES["delta.logRetentionDuration"] = f"interval {max(10, int(seconds / 20))} seconds"
    delta.PROPERTIES["delta.deletedFileRetentionDuration"] = "interval 10 seconds"
    delta.CLEAN_VERSIONS = 70


def _interests(number: int) -> list[str]:
    """Twigs with a condition each, so that a document has tens of matches, not thousands."""
    parameters = SubscriptionParameters(dtd="nitf", number=number, nested_paths=1, conditions=1, seed=5)
    return list(SubscriptionGenerator(parameters))


def change_every_second(path: str, seconds: float) -> None:
    """Changes the table, one way or another, until the time is over or nobody follows it any more."""
    parent = os.getppid()
    _shorten_retention(seconds)
    table, rng, texts = SubscriptionTable(path, user="soak"), random.Random(3), _interests(500)
    ends, number = time.monotonic() + seconds, 0
    added: list[str] = []
    while time.monotonic() < ends and os.getppid() == parent:
        kind = rng.random()
        if kind < 0.5 or len(added) < 5:
            added.append(f"new{number}")
            table.add([(added[-1], rng.choice(texts))])
        elif kind < 0.8:
            table.remove([added.pop(rng.randrange(len(added)))])
        elif kind < 0.95:
            table.add([(f"s{rng.randrange(SUBSCRIPTIONS)}", rng.choice(texts)) for _ in range(rng.randrange(1, 30))],
                      errors="collect")  # fmt: skip
        else:
            table.remove([f"s{rng.randrange(SUBSCRIPTIONS)}" for _ in range(20)], missing_ok=True)
        number += 1
        time.sleep(1)


class Feeder(threading.Thread):
    """Puts a file of documents into a folder every second. A document's number says what it is."""

    def __init__(self, inbox: Path, each: int, done: threading.Event) -> None:
        super().__init__(daemon=True)
        self.number = 0
        self._each = each
        self._inbox, self._done = inbox, done
        self.kinds = list(kinds_of_documents())

    def document(self, number: int) -> bytes:
        return self.kinds[number % len(self.kinds)]

    def run(self) -> None:
        while not self._done.wait(1):
            numbers = range(self.number, self.number + self._each)
            now = pa.array([time.time_ns() // 1000] * len(numbers), pa.int64()).cast(pa.timestamp("us", "UTC"))
            documents = pa.array([self.document(number) for number in numbers], pa.binary())
            rows = pa.table({"number": pa.array(numbers, pa.int64()), "xml": documents, "came": now})
            hidden = self._inbox / f".{self.number}"
            pyarrow.parquet.write_table(rows, hidden)
            hidden.rename(self._inbox / f"{self.number:09}.parquet")
            self.number += len(numbers)


def kinds_of_documents() -> Iterator[bytes]:
    """News of several sizes, in several encodings, deep and wide ones, and every kind of broken one."""
    for size in (500, 2000, 8000, 30_000):
        yield from DocumentGenerator(DocumentParameters(dtd="nitf", number=40, size_bytes=size, seed=size))
    yield from DocumentGenerator(DocumentParameters(dtd="nitf", number=1, size_bytes=1_000_000))
    news = next(iter(DocumentGenerator(DocumentParameters(dtd="nitf", number=1, size_bytes=3000)))).decode()
    body = news[news.index("?>") + 2 :] if news.startswith("<?xml") else news
    for encoding in ("utf-16", "iso-8859-1"):
        yield f'<?xml version="1.0" encoding="{encoding}"?>{body}'.encode(encoding, "xmlcharrefreplace")
    yield b"<nitf>" + b"<body>" * 200 + b"</body>" * 200 + b"</nitf>"
    yield b"<nitf>" + b"<p/>" * 20_000 + b"</nitf>"
    yield from BROKEN


# What is recorded


def _measured(work: Path, batches: Sequence[Any]) -> Sample:
    java = [pid for pid in descendants(os.getpid()) if b"java" in _command(pid)]
    workers = [pid for parent in java for pid in descendants(parent)]
    lags = [batch.lag_seconds for batch in batches if batch.lag_seconds is not None]
    return {
        "driver MiB": _resident_mib([os.getpid()]),
        "JVM MiB": _resident_mib(java),
        "workers MiB": _resident_mib(workers),
        "open files of the driver": len(os.listdir("/proc/self/fd")),
        "files of indexes": _files(work / "checkpoint" / "xsift-indexes"),
        "notes": _files(work / "checkpoint" / "xsift-versions"),
        "files of the table": _files(work / "table"),
        "log of the table": _files(work / "table" / "_delta_log"),
        "files of matches": _files(work / "matches"),
        "seconds a batch": statistics.median([batch.seconds for batch in batches] or [0.0]),
        "lag seconds": statistics.median(lags or [0.0]),
    }


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]
    except OSError:
        return b""


def _resident_mib(pids: Sequence[int]) -> float:
    total = 0
    for pid in pids:
        try:
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        except OSError:
            continue
    return total * os.sysconf("SC_PAGE_SIZE") / 2**20


def _files(folder: Path) -> int:
    try:
        with os.scandir(folder) as entries:
            return sum(entry.is_file() and not entry.name.startswith(".") for entry in entries)
    except FileNotFoundError:
        return 0


# What is checked


def wrong(work: Path, feeder: Feeder, table: SubscriptionTable, versions: dict[int, int]) -> list[str]:
    """What is wrong with the output: documents that are missing or there twice, and matches that the library does not
    find."""
    problems = []
    matched = DeltaTable(work / "matches").to_pyarrow_table(columns=["number", "matches", "batch_id"])
    broken = DeltaTable(work / "broken").to_pyarrow_table(columns=["number"])["number"].to_pylist()
    numbers = sorted([*matched["number"].to_pylist(), *broken])
    if numbers != list(range(feeder.number)):
        lost, doubled = len(set(range(feeder.number)) - set(numbers)), len(numbers) - len(set(numbers))
        problems.append(f"{lost} documents are lost, {doubled} are there twice")
    rng = random.Random(1)
    chosen = rng.sample(sorted(versions), min(CHECKED_BATCHES, len(versions)))
    for batch_id in chosen:
        matcher = table.subscriptions(versions[batch_id], errors="collect").matcher()
        rows = matched.filter(pa.compute.field("batch_id") == batch_id).to_pylist()
        for row in rng.sample(rows, min(20, len(rows))):
            wanted = matcher.match(feeder.document(row["number"]))
            if sorted(row["matches"]) != sorted(wanted):
                problems.append(
                    f"document {row['number']} of batch {batch_id} has other matches than the library finds"
                )
                break
    return problems


def growing(samples: Sequence[Sample]) -> list[str]:
    """The lines that are not flat: whose last quarter is above the one before."""
    if len(samples) < 40:
        return [f"only {len(samples)} samples: too few to tell what grows"]
    third, last = (samples[len(samples) * part // 4 : len(samples) * (part + 1) // 4] for part in (2, 3))
    found = []
    for name in samples[0]:
        if name == "second":
            continue
        before, after = (max(sample[name] for sample in part) for part in (third, last))
        if name.endswith("MiB") or name.startswith("open files"):  # a merge has many open for a moment
            before, after = (statistics.median(sample[name] for sample in part) for part in (third, last))
        allowance = {"lag seconds": 5.0, "seconds a batch": 3.0}.get(name, 20.0)
        if after > before * (1 + GROWTH) + allowance:
            found.append(f"{name} grows: {before:,.1f} in the third quarter, {after:,.1f} in the last")
    return found


# The plot

WIDTH, HEIGHT, LEFT, GAP = 460, 110, 60, 46


def drawn(samples: Sequence[Sample]) -> str:
    """A panel for each line, two beside each other, as an SVG."""
    names = [name for name in (samples[0] if samples else {}) if name != "second"]
    rows = -(-len(names) // 2)
    size = f'width="{2 * (WIDTH + LEFT)}" height="{rows * (HEIGHT + GAP) + 10}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">']
    parts.append("<style>@media (prefers-color-scheme:dark){rect{fill:#14181d}text{fill:#ccc}}</style>")
    parts.append('<rect width="100%" height="100%" fill="white"/>')
    for place, name in enumerate(names):
        x, y = LEFT + (place % 2) * (WIDTH + LEFT), 24 + (place // 2) * (HEIGHT + GAP)
        parts.append(f'<g transform="translate({x},{y})">{_panel(name, samples)}</g>')
    return "".join([*parts, "</svg>\n"])


def _panel(name: str, samples: Sequence[Sample]) -> str:
    ends = samples[-1]["second"]
    top = max(max(sample[name] for sample in samples), 1e-9)
    width = WIDTH - 20
    points = " ".join(
        f"{sample['second'] / ends * width:.1f},{HEIGHT - sample[name] / top * HEIGHT:.1f}" for sample in samples
    )
    return (
        f'<text y="-7" font-weight="bold">{name}</text>'
        f'<path d="M0 0V{HEIGHT}H{width}" fill="none" stroke="#999"/>'
        f'<text x="-6" y="8" text-anchor="end" fill="#555">{top:,.4g}</text>'
        f'<text x="-6" y="{HEIGHT}" text-anchor="end" fill="#555">0</text>'
        f'<text x="{width}" y="{HEIGHT + 14}" text-anchor="end" fill="#555">{ends / 60:.0f} minutes</text>'
        f'<polyline points="{points}" fill="none" stroke="#1f6fb8" stroke-width="1.5"/>'
    )


if __name__ == "__main__":
    sys.exit(main())
