"""On a cluster of two executors: one is killed in the middle of the job, and a Python worker too. Then once more,
with shards, and without Spark's own net for rows that come in another order. Prints `ok`."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from tests.spark.data import expected, interests, news
from xsift.spark import make_session, match_documents


class Slowly:
    """Passes batches on slowly, and leaves a file for each task that began. The first one dies."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            Path(self.folder, "died").touch(exist_ok=False)
            os.kill(os.getpid(), signal.SIGKILL)
        except FileExistsError:
            Path(self.folder, f"{os.getpid()}-{time.time_ns()}").touch()
        for batch in batches:
            time.sleep(0.5)
            yield batch


def executors() -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if b"CoarseGrainedExecutorBackend" in command and descends(parent):
            found.append(int(folder.name))
    return found


def descends(process: int) -> bool:
    """Whether a process is this one or a descendant of it."""
    while process > 1:
        if process == os.getpid():
            return True
        try:
            process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return False
    return False


def kill_one(folder: str, killed: list[int]) -> None:
    while len(list(Path(folder).iterdir())) < 4:
        time.sleep(0.05)
    victim = executors()[0]
    os.kill(victim, signal.SIGKILL)
    killed.append(victim)


def main(folder: str) -> None:
    root = str(Path(__file__).parent.parent.parent.parent)
    paths = os.pathsep.join([root, os.path.join(root, "src")])
    spark = make_session(
        "local-cluster[2,1,1024]",
        settings={
            "spark.executor.memory": "512m",
            "spark.executorEnv.PYTHONPATH": paths,
            "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": "false",
        },
    )
    rows, documents = interests(60), news(10)
    wanted = dict(enumerate(expected(rows, documents)))
    numbered = [(number, bytearray(xml)) for number, xml in enumerate(documents)]
    frame = spark.createDataFrame(numbered, "number int, xml binary").repartition(6)
    table = spark.createDataFrame(rows, "id string, xpath string, ordered boolean").coalesce(1)
    for shards in (None, 3):
        began = os.path.join(folder, f"began-{shards}")
        os.mkdir(began)
        # Read again after a shuffle, rows come in another order.
        slow = frame.repartition(4).mapInArrow(Slowly(began), frame.schema)
        matched = match_documents(slow, subscriptions=table, shards=shards)
        killed: list[int] = []
        killer = threading.Thread(target=kill_one, args=(began, killed), daemon=True)
        killer.start()
        found = {row.number: (row.matches, row.error and row.error.code) for row in matched.collect()}
        killer.join(10)
        assert killed
        assert found == wanted
    print("ok", flush=True)
    spark.stop()


if __name__ == "__main__":
    from tests.spark.programs import cluster  # so that workers find Slowly by the name of this module

    cluster.main(sys.argv[1])
