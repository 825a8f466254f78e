"""What must survive: Spark Connect, a worker and an executor that die, a driver that is killed again and again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from deltalake import DeltaTable

from tests.spark.connect_port import connect_port
from tests.spark.data import expected, interests, news
from xsift.spark import versions_used
from xsift.tables import SubscriptionTable

ROOT = Path(__file__).parent.parent.parent
KILLS = int(os.environ.get("XSIFT_KILLS", "3"))
KILL_SECONDS = float(os.environ.get("XSIFT_KILL_SECONDS", "4"))  # within which a driver dies after it began a batch
LIMIT_SECONDS = 600


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


@pytest.mark.parametrize("program", ["connect", "cluster", "archive"])
def test_program(program: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    alone = connect_port() if program == "connect" else nullcontext()
    with alone, running(program, str(tmp_path), log=log) as process:
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


@pytest.fixture
def cluster() -> Any:
    """A Kafka cluster in this process, which outlives the drivers, and its address."""
    kafka = pytest.importorskip("confluent_kafka")
    producer = kafka.Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1})
    brokers = producer.list_topics(timeout=30).brokers.values()
    for topic in ("matches", "transacted"):
        producer.list_topics(topic, timeout=30)
    return producer, ",".join(f"{broker.host}:{broker.port}" for broker in brokers)


def test_nothing_lost_and_nothing_twice_when_the_driver_is_killed(tmp_path: Path, cluster: Any) -> None:
    """One stream into every sink. XSIFT_KILLS=20 kills its driver more often, XSIFT_KILL_SECONDS=20 later: where the
    machine is busy, a batch takes longer."""
    rng = random.Random(11)
    rows, documents = [("every", "/*", False), *interests(80)], news(8)
    inbox = Inbox(tmp_path / "inbox", documents)
    checkpoint = tmp_path / "checkpoint"
    table = SubscriptionTable.create(tmp_path / "table")
    table.add(rows[:50])
    for kill in range(KILLS):
        log = tmp_path / f"log{kill}"
        inbox.put_file()  # the last driver may have read all that was there
        with running("stream", str(tmp_path), cluster[1], log=log) as process:
            wait_for_note(max(versions_used(str(checkpoint)), default=-1) + 1, process, log, checkpoint)
            inbox.put_file()
            table.add(rows[50 + kill : 51 + kill])
            table.remove([rows[1 + kill][0]])
            time.sleep(rng.uniform(0, KILL_SECONDS))
    log = tmp_path / "log"
    with running("stream", str(tmp_path), cluster[1], "finish", log=log) as process:
        assert process.wait(LIMIT_SECONDS) == 0, log.read_text()[-3000:]

    used = versions_used(str(checkpoint))
    assert sorted(used) == list(range(len(used)))
    answers = {}
    for version in set(used.values()):
        known = [(row["id"], row["xpath"], row["ordered"]) for row in table.as_of(version).to_pylist()]
        answers[version] = expected(known, documents)
    broken = {place for place, (_, error) in enumerate(expected(rows[:1], documents)) if error}
    delivered = rows_of(DeltaTable(tmp_path / "delta").to_pyarrow_table())
    batches = {number: batch_id for number, _, batch_id in delivered}
    wanted = sorted(
        (number, id, batches[number])
        for number in range(inbox.put)
        if number % len(documents) not in broken
        for id in answers[used[batches[number]]][number % len(documents)][0] or []
    )
    assert {number for number, _, _ in wanted} == {n for n in range(inbox.put) if n % len(documents) not in broken}
    assert delivered == wanted
    for sink in ("parquet", "folder"):
        assert rows_of(pyarrow.parquet.read_table(tmp_path / sink, partitioning="hive")) == wanted, sink
    dead = pyarrow.parquet.read_table(tmp_path / "dead", partitioning="hive").to_pylist()
    missing = [(n, documents[n % len(documents)]) for n in range(inbox.put) if n % len(documents) in broken]
    assert sorted((row["number"], row["xml"]) for row in dead) == missing
    for topic in ("matches", "transacted"):
        sent = kafka_messages(cluster[1], topic)
        assert sorted(sent.values()) == sorted((number, id) for number, id, _ in wanted), topic
    assert len(set(used.values())) > KILLS // 2


def rows_of(table: pa.Table) -> list[tuple[int, str, int]]:
    return sorted((row["number"], row["subscription"], row["batch_id"]) for row in table.to_pylist())


def kafka_messages(servers: str, topic: str) -> dict[bytes, tuple[int, str]]:
    """The messages of a topic, each once: what was sent again has the same header. That holds for transactions too
    here, for the mock cluster does not hide what was aborted."""
    import confluent_kafka as kafka

    settings = {"bootstrap.servers": servers, "group.id": "test", "enable.partition.eof": True}
    consumer = kafka.Consumer({**settings, "enable.auto.commit": False})
    places = consumer.list_topics(topic, timeout=30).topics[topic].partitions
    consumer.assign([kafka.TopicPartition(topic, partition, 0) for partition in places])
    found: dict[bytes, tuple[int, str]] = {}
    ends = 0
    while ends < len(places):
        message = consumer.poll(30)
        assert message is not None
        if message.error():
            ends += 1
            continue
        headers: Any = message.headers()
        value = (int(message.value() or b""), (message.key() or b"").decode())
        assert found.setdefault(headers[0][1], value) == value
    consumer.close()
    return found
