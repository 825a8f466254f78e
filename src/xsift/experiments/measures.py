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
    "wall_of",
]

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Measure:
    """How one measure is called, its unit, and how its numbers come out of a record."""

    unit: str
    title: str
    numbers: Callable[[Record], list[float]]


PARTS = ("match", "parse", "deliver")


def _cpu(record: Record, part: str) -> list[float]:
    """CPU seconds a document of each round."""
    rounds: list[float] = record.get(f"{part}_cpu_rounds", [])
    return rounds


def _wall(record: Record, part: str) -> list[float]:
    """Wall seconds a document of each round: the mean over its documents."""
    return [mean(round_) for round_ in record.get(f"{part}_rounds", [])]


def _total(record: Record, timed: Callable[[Record, str], list[float]]) -> list[float]:
    parts = [timed(record, part) for part in PARTS]
    return [sum(round_) for round_ in zip(*parts, strict=False)] if all(parts) else []


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


# Times are CPU times: what others do on the machine meanwhile is not part of them. Wall times are kept beside them.
MEASURES: dict[str, Measure] = {
    "match_seconds": Measure("s", "CPU time of matching a document", lambda r: _cpu(r, "match")),
    "parse_seconds": Measure("s", "CPU time of parsing a document", lambda r: _cpu(r, "parse")),
    "deliver_seconds": Measure("s", "CPU time to list a document's subscriptions", lambda r: _cpu(r, "deliver")),
    "total_seconds": Measure("s", "CPU time of filtering a document, parsing included", lambda r: _total(r, _cpu)),
    "build_seconds": Measure("s", "CPU time to build the index", lambda r: r.get("build_cpu_seconds", [])),
    "match_wall_seconds": Measure("s", "wall time of matching a document", lambda r: _wall(r, "match")),
    "parse_wall_seconds": Measure("s", "wall time of parsing a document", lambda r: _wall(r, "parse")),
    "deliver_wall_seconds": Measure(
        "s", "wall time to list a document's subscriptions", lambda r: _wall(r, "deliver")
    ),
    "total_wall_seconds": Measure(
        "s", "wall time of filtering a document, parsing included", lambda r: _total(r, _wall)
    ),
    "build_wall_seconds": Measure("s", "wall time to build the index", lambda r: r.get("build_seconds", [])),
    "additions_per_second": Measure("1/s", "additions a second of CPU time", lambda r: _rate(r, "addition_seconds")),
    "removals_per_second": Measure("1/s", "removals a second of CPU time", lambda r: _rate(r, "removal_seconds")),
    "memory_bytes": Measure("B", "memory, by the engine's own figures", lambda r: _memory(r, lambda name: True)),
    "index_bytes": Measure("B", "memory of the index", lambda r: _memory(r, lambda name: not _run_time(name))),
    "run_time_bytes": Measure("B", "run-time memory", lambda r: _memory(r, _run_time)),
    "resident_bytes": Measure("B", "growth of the process' resident memory", lambda r: _one(r, "resident_bytes")),
    "matches": Measure(
        "", "subscriptions matched a document", lambda r: [mean(r["matches"])] if r.get("matches") else []
    ),
    "patterns": Measure("", "distinct patterns", lambda r: _one(r, "patterns")),
}

# Families of measures whose members depend on the engine: prefix -> unit, words, where a record has it.
FAMILIES = {
    "memory": ("B", "memory of {}", "memory"),
    "counter": ("", "{} a document", "counters"),
    "property": ("", "{}", "properties"),
}
_MEMBER = re.compile(r"(memory|counter|property)\.([A-Za-z_]\w*)")


def is_measure(name: str) -> bool:
    """Whether there is a measure of this name."""
    return name in MEASURES or _MEMBER.fullmatch(name) is not None


def wall_of(name: str) -> str:
    """The measure that has the wall time of a CPU time; "" if there is none."""
    wall = name.replace("_seconds", "_wall_seconds")
    return wall if wall != name and wall in MEASURES else ""


def unit_of(name: str) -> str:
    """The unit of a measure: "s", "B", "1/s", or "" for a plain number."""
    return MEASURES[name].unit if name in MEASURES else FAMILIES[name.partition(".")[0]][0]


def described(name: str) -> str:
    """A measure in words, for the axis of a plot."""
    if name in MEASURES:
        return MEASURES[name].title
    family, _, member = name.partition(".")
    return FAMILIES[family][1].format(member.replace("_", " "))


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
            return _counted(record, key, value) if family == "counter" else [value]
    return []


def _counted(record: Record, counter: str, value: float) -> list[float]:
    """A counter's numbers a document: of each round if it is a time, else of the first pass, as all are alike."""
    rounds: list[float] = record.get("counter_rounds", {}).get(counter, [])
    return rounds or [value / max(1, record.get("documents", 1))]


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
