"""Many subscriptions on a small cluster: `python -m benchmarks.scaling SUBSCRIPTIONS EACH [SHARDS]`.

Makes so many subscriptions (EACH people have the same one), compiles them on the executors of a `local-cluster[2,1]`
into files, matches NITF documents, and compares a sample with the library. Tells seconds, the memory of the driver,
the size of the index and how much of it two executors share, and how many shards documents visit. The numbers in
docs/scaling.md are from it; benchmarks/scaling_model.py compares them with the model.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import xsift
from benchmarks.measuring import cpu_seconds, machine
from xsift.spark import compile_subscriptions, make_session, match_documents
from xsift.workload import DocumentGenerator, DocumentParameters, SubscriptionGenerator, SubscriptionParameters

PIECE = 50_000
DOCUMENTS, DOCUMENT_BYTES = 400, 1500
COMPARED = 20_000


class Generate:
    """Mapped over seeds: the subscriptions of each."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for seed in batch["id"].to_pylist():
                wanted = SubscriptionParameters(dtd="nitf", number=PIECE, nested_paths=1, conditions=1, seed=seed)
                yield pa.RecordBatch.from_pydict({"xpath": list(SubscriptionGenerator(wanted))})


def run(subscriptions: int, each: int, shards: int | None) -> dict[str, Any]:
    """One point."""
    root = Path(__file__).parent.parent
    paths = os.pathsep.join([str(root), str(root / "src")])
    settings = {"spark.executor.memory": "1g", "spark.executorEnv.PYTHONPATH": paths, "spark.ui.enabled": "false"}
    folder = tempfile.mkdtemp(prefix="xsift-scaling-")
    spark = make_session("local-cluster[2,1,1400]", driver_memory="600m", settings=settings)
    distinct = subscriptions // each
    rows = f"{folder}/rows"
    (
        spark.range(-(-distinct * 11 // 10 // PIECE) or 1, numPartitions=-(-distinct * 11 // 10 // PIECE) or 1)
        .mapInArrow(Generate(), "xpath string")
        .dropDuplicates(["xpath"])
        .limit(distinct)
        .selectExpr("xpath", f"explode(sequence(1, {each})) as n")
        .selectExpr("concat('user', hex(xxhash64(xpath)), '-', n) as id", "xpath")
        .write.parquet(rows)
    )
    frame = spark.read.parquet(rows)
    documents = list(DocumentGenerator(DocumentParameters(dtd="nitf", number=DOCUMENTS, size_bytes=DOCUMENT_BYTES)))
    sample = pa.array(documents[:100], pa.binary())
    began, cpu = time.perf_counter(), cpu_seconds()
    compiled = compile_subscriptions(spark, frame, storage=f"{folder}/index", shards=shards, sample=sample)
    found: dict[str, Any] = {"compile_seconds": time.perf_counter() - began, "set": str(compiled)}
    found["compile_cpu_seconds"] = cpu_seconds() - cpu
    found["driver_bytes"] = _peak(os.getpid()) + sum(_peak(child) for child in _children())
    print(json.dumps(found), flush=True)
    numbered = [(number, bytearray(xml)) for number, xml in enumerate(documents)]
    frame_of = spark.createDataFrame(numbered, "number int, xml binary").repartition(8).cache()
    frame_of.count()
    matched = match_documents(frame_of, subscriptions=compiled)
    for name in ("first", "second"):
        began = time.perf_counter()
        answers = {row.number: row.matches for row in matched.collect()}
        found[f"{name}_match_seconds"] = time.perf_counter() - began
    found |= _memory(Path(folder, "index"))
    if compiled.router is not None:
        task = compiled.task(xml="xml", output="matches", keep_xml=False, on_error="keep")
        found["visited"] = float(task.visits(pa.array(documents[100:], pa.binary()))[0].mean())
    found["index_bytes"] = sum(file.stat().st_size for file in Path(folder, "index").iterdir())
    found["equal"] = _equal(frame.limit(COMPARED).toArrow(), documents, answers)
    found |= {"subscriptions": subscriptions, "distinct": distinct, "machine": machine(), "load": os.getloadavg()[0]}
    spark.stop()
    return found


def _equal(rows: pa.Table, documents: list[bytes], answers: dict[int, Any]) -> bool:
    """Whether the library says the same of a sample of the subscriptions."""
    made = xsift.Subscriptions()
    made.add_many(rows)
    known = set(rows["id"].to_pylist())
    matches = enumerate(made.matcher().match_many(documents))
    return all(sorted(match.ids) == sorted(set(answers[number]) & known) for number, match in matches)


def _memory(index: Path) -> dict[str, Any]:
    """What workers hold of the index, each for itself, and with pages that they share divided."""
    found: dict[str, Any] = {}
    resident = shared = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            maps = (folder / "smaps").read_text() if (folder / "comm").read_text().startswith("python") else ""
        except OSError:
            continue
        mine = False
        for line in maps.splitlines():
            first, _, rest = line.partition(" ")
            if "-" in first and not first.endswith(":"):
                mine = str(index) in rest
            elif mine and first in ("Rss:", "Pss:"):
                kilobytes = int(rest.split()[0])
                resident, shared = (
                    (resident + kilobytes, shared) if first == "Rss:" else (resident, shared + kilobytes)
                )
    found["index_rss_bytes"], found["index_pss_bytes"] = resident * 1024, shared * 1024
    return found


def _children() -> list[int]:
    """The driver's virtual machine."""
    tasks = Path("/proc/self/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def _peak(process: int) -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), 0)


if __name__ == "__main__":
    from benchmarks import scaling  # so that workers find Generate by the name of this module

    numbers = [int(argument) for argument in sys.argv[1:]]
    print(json.dumps(scaling.run(numbers[0], numbers[1], numbers[2] if len(numbers) > 2 else None)))
