"""Documents that are new to an engine beside documents that it has seen: sift remembers, the others do not.

Each engine has seen 150 documents, twice. Then come batches of 150 that are new to it, each twice in a row: first
they are new, then they were seen before. Engines take turns batch by batch; the median of the batches counts. Times
are CPU time in all, reading included. `remembers` and `plain` are sift told to do one of its two ways always.
"""

from __future__ import annotations

import time
from typing import Any

import xsift
from benchmarks.measuring import machine, median, table
from benchmarks.sift import ATTRIBUTES, distinct, documents_of, subscriptions_of

ENGINES = ("yfilter", "bfilter", "indexfilter", "xtrie", "sift")
WAYS: dict[str, dict[str, Any]] = {"remembers": {"remember": "always"}, "plain": {"remember": "never"}}
BATCH = 150
BATCHES = 5

TWIGS: dict[str, object] = {"nested_paths": 2}
WORKLOADS: dict[str, tuple[str, int, int, dict[str, object]]] = {
    "100 NITF twigs, 2 nested paths": ("nitf", 100, 4000, TWIGS),
    "1,000 NITF twigs": ("nitf", 1_000, 4000, TWIGS),
    "10,000 NITF twigs": ("nitf", 10_000, 4000, TWIGS),
    "10,000 NITF paths": ("nitf", 10_000, 4000, {}),
    "10,000 NITF paths, 1 attribute": ("nitf", 10_000, 4000, ATTRIBUTES),
    "1,000 book twigs": ("book", 1_000, 4000, TWIGS),
    "1,000 book paths, 1 attribute": ("book", 1_000, 4000, ATTRIBUTES),
    "1,000 book paths": ("book", 1_000, 4000, {}),
    "1,000 treebank twigs": ("treebank", 1_000, 4000, TWIGS),
    "10,000 treebank twigs": ("treebank", 10_000, 4000, TWIGS),
    "10,000 treebank paths, 1 attribute": ("treebank", 10_000, 4000, ATTRIBUTES),
    "1,000 treebank paths": ("treebank", 1_000, 4000, {}),
    "10,000 treebank paths": ("treebank", 10_000, 4000, {}),
    "150,000 treebank paths": ("treebank", 150_000, 4000, {}),
}
FEW_KINDS: dict[str, dict[str, object]] = {
    "paths": {},
    "1 nested path": {"nested_paths": 1},
    "1 attribute": ATTRIBUTES,
}
FEW = (1, 10, 100, 1000)


def run(scale: float) -> None:
    print(f"  {machine()}\n\n  µs a document of 4 KB in all, new / seen before\n")
    headings = ["", "matches", *ENGINES, *WAYS, "sift / best other"]
    rows = []
    for title, (dtd, number, size, parameters) in WORKLOADS.items():
        texts = distinct(dtd, int(number * scale), **parameters)
        rows.append([title, *_row(subscriptions_of(texts), documents_of(dtd, BATCH * (BATCHES + 1), size))])
        print("    " + " | ".join(rows[-1]), flush=True)
    table(headings, rows)
    print("\n  few subscriptions, NITF documents of 8 KB: likewise\n")
    documents = documents_of("nitf", BATCH * (BATCHES + 1), 8000)
    rows = []
    for kind, parameters in FEW_KINDS.items():
        texts = distinct("nitf", max(FEW), **parameters)
        for number in FEW:
            rows.append([f"{number:,} {kind}", *_row(subscriptions_of(texts[:number]), documents)])
            print("    " + " | ".join(rows[-1]), flush=True)
    table(headings, rows)


def _row(subscriptions: xsift.Subscriptions, documents: list[bytes]) -> list[str]:
    matchers = {name: subscriptions.matcher(name) for name in ENGINES}
    matchers |= {name: subscriptions.matcher("sift", **options) for name, options in WAYS.items()}
    matches = sum(len(match.rows) for match in matchers["sift"].match_many(documents[:BATCH])) / BATCH
    new: dict[str, list[float]] = {name: [] for name in matchers}
    seen: dict[str, list[float]] = {name: [] for name in matchers}
    for number in range(BATCHES + 1):
        batch = documents[number * BATCH : (number + 1) * BATCH]
        for name, matcher in matchers.items():
            first, second = _microseconds(matcher, batch), _microseconds(matcher, batch)
            if number:
                new[name].append(first)
                seen[name].append(second)
    cells = [f"{median(new[name]):,.0f} / {median(seen[name]):,.0f}" for name in matchers]
    others = [name for name in ENGINES if name != "sift"]
    ratios = [median(times["sift"]) / min(median(times[name]) for name in others) for times in (new, seen)]
    return [f"{matches:,.0f}", *cells, f"{ratios[0]:.2f} / {ratios[1]:.2f}"]


def _microseconds(matcher: xsift.Matcher, documents: list[bytes]) -> float:
    """CPU time a document."""
    started = time.process_time()
    for _ in matcher.match_many(documents):
        pass
    return (time.process_time() - started) / len(documents) * 1e6
