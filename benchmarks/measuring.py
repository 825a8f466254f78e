"""Measuring: several ways to do the same work, timed in turn so that noise hits all of them alike."""

from __future__ import annotations

import os
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


def descendants(parent: int) -> list[int]:
    """The processes that a process started, and those that they did."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            above = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(above, []).append(int(folder.name))
    found, waiting = [], [parent]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def cpu_seconds() -> float:
    """What this process has used of all processors, and all that it started and that is still there."""
    ticks = 0
    for process in [os.getpid(), *descendants(os.getpid())]:
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
