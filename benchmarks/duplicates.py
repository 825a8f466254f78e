"""Millions of subscriptions of which few are distinct: the scale of predicate-based filtering's paper.

Each of 166,666 distinct NITF paths is subscribed to 30 times. The paper filters a document in 121.5 ms,
parsing included.
"""

from __future__ import annotations

import resource
import time

import pyarrow as pa

import xsift
from benchmarks.measuring import machine, table
from benchmarks.sift import Measured, distinct, documents_of
from xsift.engines.predicate.engine import PredicateEngine

COPIES = 30
ENGINES = ("predicate", "yfilter", "sift")


def run(scale: float) -> None:
    texts = distinct("nitf", max(1, int(5_000_000 * scale) // COPIES))
    number = len(texts) * COPIES
    rows = pa.table({"id": pa.array([str(row) for row in range(number)]), "xpath": pa.array(texts * COPIES)})
    subscriptions = xsift.Subscriptions()
    started = time.process_time()
    subscriptions.add_many(rows)
    seconds = time.process_time() - started
    print(f"  {machine()}\n")
    print(f"  {number:,} subscriptions, {len(texts):,} of them distinct, added in {seconds:.1f} s of CPU")
    print(f"  ids, expressions and patterns: {sum(subscriptions.memory().values()) / 1e6:,.0f} MB\n")
    documents = documents_of("nitf", 100)
    lines = []
    for name in ENGINES:
        matcher = subscriptions.matcher(name)
        measured = Measured(matcher, documents)
        engine = matcher._plan.segments[0].engine
        matches = sum(measured.matches) / len(measured.matches)
        lines.append(
            [
                name,
                f"{matches:,.0f}",
                f"{measured.total / 1000:,.2f}",
                f"{measured.matching * 1000 / matches:,.1f}",
                f"{sum(matcher.memory().values()) / 1e6:,.0f}",
                f"{engine.distinct_predicates:,}" if isinstance(engine, PredicateEngine) else "",
            ]
        )
    table(["", "matches a document", "ms a document", "ns a match", "index, MB", "distinct predicates"], lines)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(f"\n  the process took {peak:,.0f} MB at most, the generated expressions included")
