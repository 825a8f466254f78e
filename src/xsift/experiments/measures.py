"""Measures: what can be asked of a measured point, by name, with its unit.

The runner stores everything that it measured of a series at a point as one record (`store.py`). A measure takes its
numbers out of a record: one a round where rounds were timed, so that medians, spreads and claims all come from the
same raw numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import mean, median, quantiles
from typing import Any

__all__ = [
    "MEASURES",
    "Summary",
    "described",
    "is_measure",
    "numbers",
    "properties_among",
    "summary",
    "titled",
    "unit_of",
]

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Measure:
    """How one measure is called, its unit, and how its numbers come out of a record."""

    unit: str
    title: str
    numbers: Callable[[Record], list[float]]


def _rounds(record: Record, key: str) -> list[float]:
    """The mean over the documents of each round."""
    return [mean(round_) for round_ in record.get(key, [])]


def _total(record: Record) -> list[float]:
    parts = [_rounds(record, key) for key in ("match_rounds", "parse_rounds", "deliver_rounds")]
    if not all(parts):
        return []
    return [sum(round_) for round_ in zip(*parts, strict=False)]


def _rate(record: Record, key: str) -> list[float]:
    number = record.get("additions", 0)
    return [number / seconds for seconds in record.get(key, []) if seconds > 0]


def _memory(record: Record, wanted: Callable[[str], bool]) -> list[float]:
    memory = record.get("memory")
    return [] if memory is None else [float(sum(held for name, held in memory.items() if wanted(name)))]


def _run_time(name: str) -> bool:
    return name.startswith("run-time")


def _one(record: Record, key: str) -> list[float]:
    value = record.get(key)
    return [] if value is None else [float(value)]


MEASURES: dict[str, Measure] = {
    "match_seconds": Measure("s", "matching time a document", lambda r: _rounds(r, "match_rounds")),
    "match_cpu_seconds": Measure("s", "CPU time of matching a document", lambda r: r.get("match_cpu_rounds", [])),
    "parse_seconds": Measure("s", "parsing time a document", lambda r: _rounds(r, "parse_rounds")),
    "deliver_seconds": Measure(
        "s", "time to list a document's subscriptions", lambda r: _rounds(r, "deliver_rounds")
    ),
    "total_seconds": Measure("s", "filtering time a document, parsing included", _total),
    "build_seconds": Measure("s", "time to build the index", lambda r: r.get("build_seconds", [])),
    "additions_per_second": Measure("1/s", "additions a second", lambda r: _rate(r, "addition_seconds")),
    "removals_per_second": Measure("1/s", "removals a second", lambda r: _rate(r, "removal_seconds")),
    "memory_bytes": Measure("B", "memory, by the engine's own figures", lambda r: _memory(r, lambda name: True)),
    "index_bytes": Measure("B", "memory of the index", lambda r: _memory(r, lambda name: not _run_time(name))),
    "run_time_bytes": Measure("B", "run-time memory", lambda r: _memory(r, _run_time)),
    "resident_bytes": Measure("B", "growth of the process' resident memory", lambda r: _one(r, "resident_bytes")),
    "matches": Measure(
        "", "subscriptions matched a document", lambda r: [mean(r["matches"])] if r.get("matches") else []
    ),
    "patterns": Measure("", "distinct patterns", lambda r: _one(r, "patterns")),
}

# Families of measures whose members depend on the engine: prefix -> unit, what it is, where a record has it.
FAMILIES = {
    "memory": ("B", "memory of", "memory"),
    "counter": ("", "a document:", "counters"),
    "property": ("", "", "properties"),
}
_MEMBER = re.compile(r"(memory|counter|property)\.([A-Za-z_]\w*)")


def is_measure(name: str) -> bool:
    """Whether there is a measure of this name."""
    return name in MEASURES or _MEMBER.fullmatch(name) is not None


def unit_of(name: str) -> str:
    """The unit of a measure: "s", "B", "1/s", or "" for a plain number."""
    return MEASURES[name].unit if name in MEASURES else FAMILIES[name.partition(".")[0]][0]


def described(name: str) -> str:
    """A measure in words, for the axis of a plot."""
    if name in MEASURES:
        return MEASURES[name].title
    family, _, member = name.partition(".")
    return f"{FAMILIES[family][1]} {member.replace('_', ' ')}".strip()


def titled(name: str, show: str) -> str:
    """A measure in words as a figure shows it."""
    return described(name) if show == "value" else f"scale-up of {described(name)}"


def properties_among(names: list[str]) -> list[str]:
    """The engine properties that some of the measures need; the runner asks the engines for them."""
    return sorted({name.partition(".")[2] for name in names if name.startswith("property.")})


def numbers(record: Record, name: str) -> list[float]:
    """A measure's numbers in a record, one a round; one alone if it was not timed; none if it was not measured."""
    if name in MEASURES:
        return MEASURES[name].numbers(record)
    family, _, member = name.partition(".")
    for key, value in record.get(FAMILIES[family][2], {}).items():
        if re.sub(r"\W", "_", key) == member:
            documents = max(1, record.get("documents", 1)) if family == "counter" else 1
            return [value / documents]
    return []


@dataclass(frozen=True)
class Summary:
    """The numbers of a point in short."""

    median: float
    lower_quartile: float
    upper_quartile: float
    least: float
    most: float
    number: int


def summary(values: list[float]) -> Summary | None:
    """Median, quartiles and extremes; None if there are no numbers."""
    if not values:
        return None
    if len(values) == 1:
        return Summary(values[0], values[0], values[0], values[0], values[0], 1)
    lower, _, upper = quantiles(values, n=4, method="inclusive")
    return Summary(median(values), lower, upper, min(values), max(values), len(values))
