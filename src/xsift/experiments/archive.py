"""The archive: what is kept of a run's points, so that its claims can be judged again when its folder is gone.

`results/NAME/points.json.xz` has every number of every round to four digits, but not the time of each document: of a
round's wall times it has the mean. A record of it is read like one of a run (measures.py), so verdicts, plots and
pages come from either.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from xsift.experiments.errors import ExperimentError
from xsift.experiments.model import Experiment
from xsift.experiments.results import Results
from xsift.experiments.rows import Axis
from xsift.experiments.store import Measured, Store

__all__ = ["FILE", "Archive", "archive", "packed", "packed_of", "with_figures"]

FILE = "points.json.xz"
WALL = ("match_rounds", "parse_rounds", "deliver_rounds")
UNREAD = ("label", "engine", "peer", "options", "workload", "ordered", "deduplicate", "first_documents")


def packed(results: Results) -> bytes:
    """What is kept of a run: the same bytes for the same numbers."""
    points = {point.key: point for point in results.points.values()}
    kept = [{**point.__dict__, "records": _records(point), "dropped": {}} for point in points.values()]
    return _packed({"run": results.run, "points": kept})


def _packed(stored: Mapping[str, Any]) -> bytes:
    return lzma.compress(json.dumps(stored, separators=(",", ":")).encode())


def _unpacked(content: bytes) -> dict[str, Any]:
    stored: dict[str, Any] = json.loads(lzma.decompress(content))
    return stored


def with_figures(before: bytes, more: bytes) -> bytes:
    """What is kept of a run, with the figures of a later one: in the place of its own, or beside them.

    Raises ExperimentError if the two do not go together.
    """
    kept, later = _unpacked(before), _unpacked(more)
    run, added = kept["run"], later["run"]
    for what in ("experiment", "scale", "missing"):
        if run[what] != added[what]:
            hint = "keep it without --add, in the place of what is kept"
            raise ExperimentError("other-run", f"its {what} is {added[what]!r}, not {run[what]!r}", hint=hint)
    figures = sorted({point["figure"] for point in added["points"]})
    points = [point for point in run["points"] if point["figure"] not in figures] + added["points"]
    keys = {point["key"] for point in points}
    by_key = {point["key"]: point for point in (*kept["points"], *later["points"]) if point["key"] in keys}
    left_out = {figure: why for figure, why in run["left_out"].items() if figure not in figures}
    notes = [*_without(run, figures), _note(added, figures)]
    joined = {**run, "points": points, "left_out": left_out, "added": notes}
    return _packed({"run": joined, "points": list(by_key.values())})


def _without(run: Mapping[str, Any], figures: Sequence[str]) -> list[dict[str, Any]]:
    """What was added before, without figures that are replaced."""
    left = (
        {**note, "figures": [one for one in note["figures"] if one not in figures]} for note in run.get("added", ())
    )
    return [note for note in left if note["figures"]]


def _note(run: Mapping[str, Any], figures: Sequence[str]) -> dict[str, Any]:
    """When some figures were measured, and with which code."""
    return {"figures": figures, "measured": run["written_at"][:10], "commit": run["machine"].get("commit", "")}


def packed_of(folder: Path) -> bytes:
    """What is kept, or would be, of a folder that `run` or `keep` wrote; nothing if it has verdicts alone."""
    if (folder / "verdicts.json").exists():
        return (folder / FILE).read_bytes() if (folder / FILE).exists() else b""
    return packed(Results.of(Store(folder)))


def _records(point: Measured) -> dict[str, dict[str, Any]]:
    return {label: _record(record) for label, record in point.records.items()}


def _record(record: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in record.items() if key not in UNREAD}
    for key, value in kept.items():
        if key in WALL:
            kept[key] = [[_short(mean(round_))] for round_ in value]
        elif key.endswith("_seconds"):
            kept[key] = [_short(seconds) for seconds in value]
    if kept.get("matches"):
        kept["matches"] = [mean(kept["matches"])]
    return kept


def _short(number: float) -> float:
    return float(f"{number:.4g}")


class Archive:
    """What is kept of a run, with an experiment as it is defined now."""

    def __init__(self, content: bytes, experiment: Experiment) -> None:
        stored = _unpacked(content)
        self.experiment = experiment
        self._run: dict[str, Any] = stored["run"]
        self._points = {point["key"]: Measured(**point) for point in stored["points"]}

    def run(self) -> dict[str, Any]:
        """What run.json said, without the points that the experiment does not have, or not any more."""
        ours = self._run["experiment"] == self.experiment.name
        axes = {figure.id: figure.vary.values for figure in self.experiment.figures if ours}
        points = [
            point for point in self._run["points"] if point["x"] == _at(axes, point["figure"], point["position"])
        ]
        return {**self._run, "points": points}

    def definition(self) -> str:
        """The definition as it is now."""
        return self.experiment.text

    def point(self, key: str) -> Measured | None:
        """A point that was kept."""
        return self._points.get(key)


def _at(axes: Mapping[str, Axis], figure: str, position: int) -> float | str | None:
    """What an axis has at a position, if there is such an axis and it is as long."""
    axis = axes.get(figure, ())
    return axis[position] if position < len(axis) else None


def archive(folder: Path, experiment: Experiment) -> Archive:
    """What a folder has of an experiment. Raises ExperimentError if that cannot be read."""
    try:
        return Archive((folder / FILE).read_bytes(), experiment)
    except (OSError, lzma.LZMAError, ValueError, KeyError, TypeError) as error:
        hint = "`xsift experiment keep` writes it"
        raise ExperimentError("not-kept", f"{error}", place=str(folder / FILE), hint=hint) from None
