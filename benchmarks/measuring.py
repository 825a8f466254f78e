"""Measuring: several ways to do the same work, timed in turn so that noise hits all of them alike."""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path


def interleaved(ways: Mapping[str, Callable[[], object]], repeats: int = 5) -> dict[str, list[float]]:
    """Seconds for each way, `repeats` of them, after one unmeasured run each."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for round_number in range(repeats + 1):
        for name, way in ways.items():
            started = time.perf_counter()
            way()
            if round_number:
                seconds[name].append(time.perf_counter() - started)
    return seconds


def median(values: list[float]) -> float:
    return statistics.median(values)


def machine() -> str:
    """The processor, for the head of a report."""
    cpu = next(
        (
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        "",
    )
    return f"{cpu}, Python {platform.python_version()}"


def table(headings: list[str], rows: list[list[str]]) -> None:
    """Prints a table, numbers to the right."""
    widths = [max(len(row[column]) for row in [headings, *rows]) for column in range(len(headings))]
    for row in [headings, *rows]:
        cells = [
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  " + "  ".join(cells), flush=True)
