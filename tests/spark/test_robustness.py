"""What must survive: Spark Connect, a worker and an executor that die, a driver that is killed again and again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.spark.data import expected, interests, news
from xsift.spark import versions_used
from xsift.tables import SubscriptionTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parent.parent.parent
KILLS = 3
LIMIT_SECONDS = 300


@contextmanager
def running(program: str, *arguments: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A program of programs/, in a process group of its own. In the end it and all that it started are killed, as a
    machine that loses its power does."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", f"tests.spark.programs.{program}", *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": paths},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.parametrize("program", ["connect", "cluster"])
def test_program(program: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with running(program, str(tmp_path), log=log) as process:
        process.wait(LIMIT_SECONDS)
        assert "\nok\n" in log.read_text(), log.read_text()[-3000:]


class Inbox:
    """A folder with files of the same documents, numbered on from file to file."""

    def __init__(self, path: Path, documents: list[bytes]) -> None:
        self.put = 0
        self._path = path
        self._documents = documents
        path.mkdir()

    def put_file(self) -> None:
        numbers = pa.array(range(self.put, self.put + len(self._documents)), pa.int32())
        table = pa.table({"number": numbers, "xml": pa.array(self._documents, pa.binary())})
        hidden = self._path / f".{self.put}"
        pyarrow.parquet.write_table(table, hidden)
        hidden.rename(self._path / f"{self.put:06}.parquet")
        self.put += len(self._documents)


def wait_for_note(batch_id: int, process: subprocess.Popen[bytes], log: Path, checkpoint: Path) -> None:
    """Returns when a batch has noted the version of the subscriptions that it uses."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while not (checkpoint / "xsift-versions" / f"{batch_id}.json").exists():
        assert process.poll() is None, log.read_text()[-3000:]
        assert time.monotonic() < deadline, log.read_text()[-3000:]
        time.sleep(0.05)


def test_nothing_lost_and_nothing_twice_when_the_driver_is_killed(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(11)
    rows, documents = [("every", "/*", False), *interests(80)], news(8)
    inbox = Inbox(tmp_path / "inbox", documents)
    checkpoint = tmp_path / "checkpoint"
    table = SubscriptionTable.create(tmp_path / "table")
    table.add(rows[:50])
    inbox.put_file()
    for kill in range(KILLS):
        log = tmp_path / f"log{kill}"
        with running("stream", str(tmp_path), log=log) as process:
            wait_for_note(kill, process, log, checkpoint)
            inbox.put_file()
            table.add(rows[50 + 10 * kill : 60 + 10 * kill])
            table.remove([rows[1 + kill][0]])
            time.sleep(rng.uniform(0, 3))
    log = tmp_path / "log"
    with running("stream", str(tmp_path), "finish", log=log) as process:
        assert process.wait(LIMIT_SECONDS) == 0, log.read_text()[-3000:]

    used = versions_used(str(checkpoint))
    assert sorted(used) == list(range(len(used)))
    answers = {}
    for version in set(used.values()):
        known = [(row["id"], row["xpath"], row["ordered"]) for row in table.as_of(version).to_pylist()]
        answers[version] = expected(known, documents)
    delivered: dict[int, list[str]] = {}
    batches: dict[int, int] = {}
    for row in spark.read.parquet(str(tmp_path / "out")).collect():
        delivered.setdefault(row.number, []).append(row.subscription)
        assert batches.setdefault(row.number, row.batch_id) == row.batch_id
    dead = spark.read.parquet(str(tmp_path / "dead")).collect()
    broken = {place for place, (_, error) in enumerate(expected(rows[:1], documents)) if error}
    wanted = [(n, documents[n % len(documents)]) for n in range(inbox.put) if n % len(documents) in broken]
    assert sorted((row.number, bytes(row.xml)) for row in dead) == wanted
    for number in range(inbox.put):
        place = number % len(documents)
        if place not in broken:  # each of the others is delivered to "every" at least, so its batch is known
            assert sorted(delivered[number]) == sorted(answers[used[batches[number]]][place][0] or [])
    assert len(set(used.values())) > KILLS
