"""The folder of a run: raw timings, one JSON file a point, and what is needed to make the report again.

    definition.toml     the experiment as it was run
    run.json            machine, versions, scale, and which point of which figure is in which file
    points/KEY.json     all that was measured at a point, a record for each series
    timings.parquet     every single timing: figure, series, x, round, document, seconds
    figures.csv         medians and spreads, as plotted
    report.html         the report

A point's file is written when the point is complete, under a temporary name first: an interrupted run leaves whole
points.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from xsift.experiments.errors import ExperimentError

__all__ = ["Measured", "Store"]


@dataclass(frozen=True)
class Measured:
    """What a point's file holds."""

    key: str
    records: Mapping[str, Mapping[str, Any]]  # label -> what was measured of the series
    failures: Mapping[str, str]  # label -> why it was not measured
    workloads: list[Mapping[str, Any]]  # facts about the workloads
    elapsed_seconds: float
    load: float  # of the machine, when it was measured
    measured_at: str
    dropped: Mapping[str, list[int]] = field(default_factory=dict)  # workload -> its subscriptions that were left out

    def rounds(self, labels: Collection[str]) -> int:
        """The rounds that each of some series has."""
        return min((len(self.records[label].get("match_rounds", ())) for label in labels), default=0)


class Store:
    """Reads and writes the folder of a run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def create(self) -> None:
        """Makes the folder. Raises ExperimentError if that cannot be."""
        try:
            (self.folder / "points").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ExperimentError("bad-output", f"{error}", place=str(self.folder)) from None

    def point(self, key: str) -> Measured | None:
        """A stored point; None if there is none, or if its file cannot be read."""
        try:
            stored = json.loads((self.folder / "points" / f"{key}.json").read_text(encoding="utf-8"))
            return Measured(**stored)
        except (OSError, ValueError, TypeError):
            return None

    def put_point(self, point: Measured) -> None:
        self._write(f"points/{point.key}.json", json.dumps(point.__dict__, indent=1))

    def put_run(self, run: Mapping[str, Any], definition: str) -> None:
        self._write("definition.toml", definition)
        self._write("run.json", json.dumps(run, indent=1))

    def run(self) -> dict[str, Any]:
        """What run.json says. Raises ExperimentError if the folder holds no run."""
        try:
            run: dict[str, Any] = json.loads((self.folder / "run.json").read_text(encoding="utf-8"))
            return run
        except (OSError, ValueError) as error:
            hint = "the folder that `xsift experiment run` wrote"
            raise ExperimentError("no-run", f"{error}", place=str(self.folder), hint=hint) from None

    def definition(self) -> str:
        """The definition as it was run."""
        try:
            return (self.folder / "definition.toml").read_text(encoding="utf-8")
        except OSError as error:
            raise ExperimentError("no-run", f"{error}", place=str(self.folder)) from None

    def write(self, name: str, text: str) -> Path:
        """Writes one of the results."""
        return self._write(name, text)

    def _write(self, name: str, text: str) -> Path:
        path = self.folder / name
        new = path.with_name(path.name + ".new")
        new.write_text(text, encoding="utf-8")
        os.replace(new, path)
        return path
