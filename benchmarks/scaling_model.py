"""What many subscriptions cost on many machines: the model of docs/scaling.md, beside what was measured.

    python -m benchmarks.scaling_model measure 50000 200000 400000    # adds points to benchmarks/scaling_points.json
    python -m benchmarks.scaling 20000000 10                          # a run on Spark, for "spark" in that file
    python -m benchmarks.scaling_model                                # prints the tables, draws docs/scaling.svg

A point is what a task of the job does, in this process: a part is built (xsift.spark.building), documents are matched
against it (worker.py), the same expressions get keys and are packed into 12 shards (planning.py). Seconds are CPU
time, so that a busy machine does not matter much.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measuring import machine
from xsift.matching import Matcher, MatcherOptions
from xsift.matching.required import required_keys
from xsift.spark import planning
from xsift.spark.building import _Build, _part_of
from xsift.spark.indexes import IndexFolder
from xsift.spark.routing import Router
from xsift.spark.worker import Task
from xsift.workload import DocumentGenerator, DocumentParameters, SubscriptionGenerator, SubscriptionParameters

POINTS = Path(__file__).with_name("scaling_points.json")
PICTURE = Path(__file__).parent.parent / "docs" / "scaling.svg"
SHARDS = 12
POINT_ID_BYTES = 18  # of the id in a point's list


# The model


@dataclass(frozen=True)
class Constants:
    """Measured on the points; see docs/scaling.md."""

    build_us: float  # of CPU, to compile a distinct expression
    key_us: float  # to find the key of an expression, where a set is split
    row_us: float  # to move a subscription to its part and into its list
    index_bytes: float  # of an expression
    lists_bytes: float  # of an expression, in the file of subscribers
    id_bytes: float  # of a subscription there
    document_us: float  # of CPU, to match a document of 1.6 KB against `expressions`
    expressions: float  # the most that were measured
    power: float  # of the number of expressions, in proportion to which that grows
    expression_us: float  # and for each expression beyond
    route_us: float  # to see which shards a document must visit

    def matching_us(self, expressions: float) -> float:
        """Of CPU, to match a document. Beyond what was measured it grows as it did between the last two points: the
        curve bends downwards, so it will hardly grow faster."""
        if expressions <= self.expressions:
            return self.document_us * float((expressions / self.expressions) ** self.power)
        return self.document_us + self.expression_us * (expressions - self.expressions)


@dataclass(frozen=True)
class Machines:
    """A cluster."""

    count: int
    cores: int = 8
    index_memory_bytes: float = 32e9
    fetch_bytes_per_second: float = 5e8


@dataclass(frozen=True)
class Cost:
    """What a set costs on a cluster."""

    compile_seconds: float
    fetch_seconds: float
    index_bytes: float
    shards: int
    documents_per_second: float


def cost(subscriptions: float, distinct: float, on: Machines, by: Constants, visited: float) -> Cost:
    """`visited` is the share of shards that a document visits, where there are shards."""
    index = distinct * (by.index_bytes + by.lists_bytes) + subscriptions * by.id_bytes
    shards = max(1, math.ceil(index / on.index_memory_bytes))
    cores = on.count * on.cores
    work = distinct * (by.build_us + (by.key_us if shards > 1 else 0)) + subscriptions * by.row_us
    held = index if shards == 1 else index * min(1.0, shards / on.count) / min(shards, on.count)
    visits = 1.0 if shards == 1 else max(1.0, visited * shards)
    each = visits * by.matching_us(distinct / shards) + (by.route_us if shards > 1 else 0)
    return Cost(work / 1e6 / cores, held / on.fetch_bytes_per_second, index, shards, cores / (each / 1e6))


# Measuring


def measured(number: int) -> dict[str, Any]:
    """One point."""
    wanted = SubscriptionParameters(dtd="nitf", number=number, nested_paths=1, conditions=1)
    texts = list(dict.fromkeys(SubscriptionGenerator(wanted)))
    documents = list(DocumentGenerator(DocumentParameters(dtd="nitf", number=800, size_bytes=1500)))
    folder, options = IndexFolder(tempfile.mkdtemp(prefix="xsift-model-")), MatcherOptions()
    rows = pa.table(
        {
            "id": [f"user{place}" for place in range(len(texts))],
            "expression": texts,
        }
    )
    numbered = rows.append_column("part", pa.array(np.zeros(len(texts), dtype=np.int32)))
    began = time.process_time()
    entry = pa.Table.from_batches(_Build(folder, (), options, True)(iter(numbered.to_batches()))).to_pylist()[0]
    built = time.process_time() - began
    task = Task((_part_of(entry),), xml="xml", output="matches", keep_xml=False, on_error="keep", folder=folder)
    documents_matched = documents[:200]
    batch = pa.RecordBatch.from_pydict({"xml": pa.array(documents_matched, pa.binary())})
    found = list(task(iter([batch])))
    seconds = []
    for _ in range(3):
        began = time.process_time()
        list(task(iter([batch])))
        seconds.append(time.process_time() - began)
    matches = sum(len(ids or ()) for piece in found for ids in piece["matches"].to_pylist())
    return {
        "expressions": len(texts),
        "build_us": built / len(texts) * 1e6,
        "index_bytes": entry["size_bytes"] / len(texts),
        "lists_bytes": entry["subscribers_bytes"] / len(texts),
        "document_us": min(seconds) / len(documents_matched) * 1e6,
        "matches": matches / len(documents_matched),
        **_routed(rows, documents, folder, options),
        "machine": machine(),
    }


def _routed(rows: pa.Table, documents: list[bytes], folder: IndexFolder, options: MatcherOptions) -> dict[str, Any]:
    sample = pa.array(documents[:600], pa.binary())
    others = pa.array(documents[600:], pa.binary())
    made = options.subscriptions({})
    made.add_many(rows.rename_columns(["id", "xpath"]))
    values = not planning.names_tell(made, sample)
    expected = planning._frequencies(required_keys(made, values=values).keys, sample)
    began = time.process_time()
    keyed = planning._KeyOf((), options, values, expected)(iter(rows.to_batches()))
    keys = Counter(key for batch in keyed for key in batch["key"].to_pylist())
    key_us = (time.process_time() - began) / rows.num_rows * 1e6
    loose = keys.pop(None, 0)
    names = sorted(keys)
    weights = np.array([keys[name] for name in names], dtype=np.float64)
    slots = planning.packed(planning._occurrences(names, sample), weights, SHARDS)
    router = Router(folder.save(planning._router(dict(zip(names, slots, strict=True)))), ())
    matcher = Matcher.load(folder.path_of(router.part.name))
    began = time.process_time()
    visits, _ = router.visits(matcher, others, SHARDS)
    route_us = (time.process_time() - began) / len(others) * 1e6
    return {
        "key_us": key_us,
        "keys": len(names),
        "loose": loose / rows.num_rows,
        "visited": float(visits.mean()),
        "route_us": route_us,
    }


def constants(points: Sequence[Mapping[str, Any]], runs: Sequence[Mapping[str, Any]]) -> Constants:
    """Of a document from all points, of a subscription from the largest run on Spark, the others from the largest
    point."""
    before, high, largest = points[-2], points[-1], max(runs, key=lambda run: run["subscriptions"])
    sizes, seconds = (np.log([point[name] for point in points]) for name in ("expressions", "document_us"))
    power, factor = np.polyfit(sizes, seconds, 1)
    # A run that is older than the points has what an expression took then beside it.
    each = largest.get("expression_bytes", high["index_bytes"] + high["lists_bytes"] - POINT_ID_BYTES)
    of_expressions = largest["distinct"] * each
    of_building = largest["distinct"] * largest.get("build_us", high["build_us"]) / 1e6
    return Constants(
        build_us=high["build_us"],
        key_us=high["key_us"],
        row_us=(largest["compile_cpu_seconds"] - of_building) / largest["subscriptions"] * 1e6,
        index_bytes=high["index_bytes"],
        lists_bytes=high["lists_bytes"] - POINT_ID_BYTES,
        id_bytes=(largest["index_bytes"] - of_expressions) / largest["subscriptions"],
        document_us=float(np.exp(factor + power * sizes[-1])),
        expressions=high["expressions"],
        power=float(power),
        expression_us=(high["document_us"] - before["document_us"]) / (high["expressions"] - before["expressions"]),
        route_us=high["route_us"],
    )


# Telling


def main(arguments: list[str]) -> None:
    kept = json.loads(POINTS.read_text()) if POINTS.exists() else {"points": [], "spark": []}
    points, runs = kept["points"], kept["spark"]
    if arguments[:1] == ["measure"]:
        for number in arguments[1:]:
            points.append(measured(int(number)))
            print(json.dumps(points[-1]))
        points.sort(key=lambda point: point["expressions"])
        POINTS.write_text(json.dumps(kept, indent=1) + "\n")
        return
    by = constants(points, runs)
    print(by)
    for point in points:
        told, us = by.matching_us(point["expressions"]), point["document_us"]
        print(f"{point['expressions']:>9,} expressions: {us:.0f} us a document, {told:.0f} by the model")
    for run in runs:
        it = cost(run["subscriptions"], run["distinct"], Machines(1, 1), by, 1.0)
        print(
            f"{run['subscriptions']:>9,} subscriptions: {run['index_bytes'] / 1e6:,.0f} MB of index, "
            f"{it.index_bytes / 1e6:,.0f} by the model; {run.get('compile_cpu_seconds', math.nan):,.0f} s of CPU to "
            f"compile, {it.compile_seconds:,.0f} by the model"
        )
    visited = points[-1]["visited"]
    print("\n| subscriptions | machines | compile | fetch | index | shards | documents a second |\n|" + " --- |" * 7)
    for subscriptions in (1e6, 1e7, 1e8):
        for count in (1, 10, 100):
            it = cost(subscriptions, subscriptions / 10, Machines(count), by, visited)
            print(
                f"| {subscriptions / 1e6:,.0f} million | {count} | {it.compile_seconds:,.1f} s | "
                f"{it.fetch_seconds:,.1f} s | {it.index_bytes / 1e9:,.1f} GB | {it.shards} | "
                f"{it.documents_per_second:,.0f} |"
            )
    PICTURE.write_text(drawn(points, by))


def drawn(points: Sequence[dict[str, Any]], by: Constants) -> str:
    """Documents a second on one core, by the model, and as measured."""
    width, height, left, low, high = 640, 360, 70, 4.0, 7.0
    rates = [1e6 / by.matching_us(10**x) for x in np.linspace(low, high, 60)]
    bottom, top = math.log10(min(rates)) - 0.1, math.log10(max(rates)) + 0.2

    def place(expressions: float, rate: float) -> tuple[float, float]:
        across = (math.log10(expressions) - low) / (high - low)
        up = (math.log10(rate) - bottom) / (top - bottom)
        return left + across * (width - left - 20), height - 50 - up * (height - 80)

    line = " ".join(
        "{:.1f},{:.1f}".format(*place(10**x, rate)) for x, rate in zip(np.linspace(low, high, 60), rates, strict=True)
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
        'font-size="12"><rect width="100%" height="100%" fill="white"/>',
        f'<polyline points="{line}" fill="none" stroke="#2a6fb0" stroke-width="2"/>',
        f'<text x="{left}" y="20">documents of 1.6 KB a second on one core (line: model, points: measured)</text>',
    ]
    for power in range(int(low), int(high) + 1):
        x, _ = place(10.0**power, rates[0])
        parts.append(f'<text x="{x:.0f}" y="{height - 28}" text-anchor="middle">{10**power:,}</text>')
    parts.append(f'<text x="{width / 2:.0f}" y="{height - 8}" text-anchor="middle">distinct expressions</text>')
    for rate in (100, 300, 1000, 3000, 10000):
        if bottom <= math.log10(rate) <= top:
            _, y = place(10**low, rate)
            parts.append(f'<text x="{left - 8}" y="{y + 4:.0f}" text-anchor="end">{rate:,}</text>')
            parts.append(f'<line x1="{left}" x2="{width - 20}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
    for point in points:
        x, y = place(point["expressions"], 1e6 / point["document_us"])
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="#c0392b"/>')
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    main(sys.argv[1:])
