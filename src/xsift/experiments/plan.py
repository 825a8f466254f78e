"""Plans: what there is to measure, point by point, once a definition's defaults, overrides and scale are worked out.

A point is one value of a figure's axis, with all series that are measured there. It is measured as a whole, engines
in turn, so that whatever disturbs the machine disturbs all of them; so it is also stored and resumed as a whole. Its
key is a digest of all that its numbers depend on: the resolved workload, the engines with their options and their
code, the way of measuring.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from xsift.engines import ENGINES, create, engine_class
from xsift.errors import XsiftError
from xsift.experiments.code_digest import code_digest
from xsift.experiments.errors import ExperimentError
from xsift.experiments.measures import properties_among
from xsift.experiments.model import Experiment, Figure, Series, X
from xsift.experiments.programs import digest, dtd_path, why_missing, why_no_dtd
from xsift.experiments.second import overlaid
from xsift.experiments.tables import nearest
from xsift.experiments.workloads import check, is_ordered

__all__ = ["Entry", "ExperimentPlan", "Point", "make_plan", "scaled_sizes"]

FORMAT = 3  # of a stored point; another number makes all stored points be measured again
FEWEST_DOCUMENTS = 5
MEASURING = 0.5  # share of an experiment's minutes that the first rounds may take; the rest is for making workloads
# and indexes, and for more rounds where verdicts are open


@dataclass(frozen=True)
class Entry:
    """One series at one point: all that its measurement depends on."""

    series: Series
    options: Mapping[str, Any]
    workload: Mapping[str, Any]
    ordered: bool

    @property
    def label(self) -> str:
        return self.series.label

    def described(self) -> dict[str, Any]:
        """What a record says of it, and what goes into the point's key."""
        return {
            "label": self.label,
            "engine": self.series.engine,
            "peer": self.series.peer,
            "options": dict(self.options),
            "workload": self.workload,
            "ordered": self.ordered,
            "deduplicate": self.series.deduplicate,
            **({"first_documents": self.series.documents} if self.series.documents else {}),
        }


@dataclass(frozen=True)
class Point:
    """One value of a figure's axis and what is measured there."""

    figure: Figure
    position: int
    x: X  # as the file says it
    x_measured: X  # as it was scaled
    entries: tuple[Entry, ...]
    additions: int
    seconds: float
    properties: tuple[str, ...]

    @property
    def key(self) -> str:
        """A digest of all that the point's numbers depend on."""
        parts = {
            "format": FORMAT,
            "entries": [entry.described() for entry in self.entries],
            "code": [_code(entry) for entry in self.entries],
            "dtds": sorted({_file_digest(entry.workload.get("dtd", "")) for entry in self.entries} - {""}),
            "measuring": [self.figure.warm_up, self.additions],
            "drop_order_dependent": self.figure.drop_order_dependent,
            "properties": self.properties,
            **({"new_documents": True} if self.figure.new_documents else {}),
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:20]

    @property
    def subscriptions(self) -> int:
        """The number of subscriptions, for estimates."""
        return max((_number(entry.workload, "subscriptions") for entry in self.entries), default=0)

    @property
    def distinct(self) -> bool:
        """Whether the subscriptions are all different, for estimates."""
        return all(entry.workload.get("subscriptions", {}).get("distinct", True) for entry in self.entries)

    @property
    def documents(self) -> int:
        """The number of documents, for estimates."""
        return max((_number(entry.workload, "documents") for entry in self.entries), default=0)

    @property
    def text(self) -> str:
        vary = self.figure.vary
        return f"{vary.label} {vary.text(self.position)}"


@dataclass(frozen=True)
class ExperimentPlan:
    """The points of an experiment that are to be measured, and the series that are left out."""

    experiment: Experiment
    scale: float
    points: tuple[Point, ...]
    others: tuple[Point, ...]  # of the figures that were not asked for; what is stored of them is still reported
    missing: Mapping[str, str]  # engine or peer -> why it is not measured
    left_out: Mapping[str, str]  # the id of a figure that is not measured -> why


def make_plan(
    experiment: Experiment, scale: float = 1.0, figures: Sequence[str] = (), minutes: float | None = None
) -> ExperimentPlan:
    """Works out every point of some figures, or of all, for so many minutes (by default, the experiment's).

    Raises ExperimentError if an engine, an option or a parameter does not exist.
    """
    if not 0 < scale <= 100:
        raise ExperimentError("bad-scale", f"the scale is {scale:g}", hint="a number above 0, at most 100")
    asked = {figure.measured_in for figure in experiment.chosen(figures).figures}
    missing: dict[str, str] = {}
    left_out: dict[str, str] = {}
    points, others = [], []
    share = _share(experiment, asked, minutes or experiment.minutes)
    for figure in experiment.figures:
        if figure.measured_in != figure.id:
            continue
        if reason := why_no_dtd(figure.workload.get("dtd", "")):
            if figure.id in asked:
                left_out[figure.id] = reason
        elif figure.id in asked:
            points += _points(experiment, figure, scale, share, missing)
        else:
            with contextlib.suppress(ExperimentError):
                others += _points(experiment, figure, scale, share, missing)
    return ExperimentPlan(experiment, scale, tuple(points), tuple(others), missing, left_out)


def _points(
    experiment: Experiment, figure: Figure, scale: float, share: float, missing: dict[str, str]
) -> list[Point]:
    _check_engines(figure, missing)
    shown = [other for other in experiment.figures if other.measured_in == figure.id]
    properties = properties_among([measure for other in shown for measure in other.all_measures])
    seconds = round(figure.seconds * share, 3)
    positions = range(len(figure.vary.values))
    return [_point(figure, position, scale, seconds, properties, missing) for position in positions]


def _share(experiment: Experiment, asked: set[str], minutes: float) -> float:
    """What all figures' seconds are multiplied by, so that what is asked for fits into the minutes."""
    measured = [figure for figure in experiment.figures if figure.id in asked]
    wanted = sum(len(figure.vary.values) * figure.seconds for figure in measured)
    return min(1.0, minutes * 60 * MEASURING / wanted) if wanted else 1.0


def _point(
    figure: Figure, position: int, scale: float, seconds: float, properties: list[str], missing: Mapping[str, str]
) -> Point:
    settings = figure.vary.settings(position)
    x = figure.vary.values[position]
    entries = [
        _entry(figure, series, settings, scale)
        for series in figure.series
        if series.name not in missing and (series.until is None or isinstance(x, str) or x <= series.until)
    ]
    scaled = _scaled_number(figure.vary.parameter, x, scale)
    return Point(
        figure, position, x, scaled, tuple(entries), _whole(figure.additions, scale, 0), seconds, tuple(properties)
    )


def _entry(figure: Figure, series: Series, settings: Mapping[str, Any], scale: float) -> Entry:
    workload = overlaid(figure.workload, series.workload)
    options = dict(series.options)
    for name, value in settings.items():
        kind, dot, member = name.partition(".")
        if not dot:
            workload[kind] = value
        elif kind != "option":
            workload[kind] = {**workload.get(kind, {}), member: value}
        elif series.engine and member in engine_class(series.engine).options:
            options[member] = value
    workload = _scaled(workload, scale)
    try:
        check(workload, new_documents=figure.new_documents)
        ordered = is_ordered(workload) if series.ordered is None else series.ordered
    except XsiftError as error:
        place = f"{figure.where}, workload of series {series.label!r}"
        raise ExperimentError(error.code, error.message, place=place, hint=error.hint) from None
    return Entry(series, options, workload, ordered)


def _scaled(workload: Mapping[str, Any], scale: float) -> dict[str, Any]:
    """The workload with its numbers of documents and subscriptions multiplied."""
    scaled = dict(workload)
    for part in ("documents", "subscriptions"):
        table = scaled.get(part, {})
        if "number" in table:
            scaled[part] = {**table, "number": _scaled_number(f"{part}.number", table["number"], scale)}
    if "mix" in scaled:
        scaled["mix"] = [_scaled(part, scale) for part in scaled["mix"]]
    return scaled


def scaled_sizes(figure: Figure, scale: float) -> dict[int, int]:
    """The numbers of subscriptions and additions that the file states for a figure -> those that are measured.

    Only those that the scale changes. A claim that speaks of one of them speaks of what was not measured.
    """
    stated: list[Any] = [figure.additions]
    varied = {figure.vary.parameter: figure.vary.values, **figure.vary.also}
    stated += varied.get("subscriptions.number", ())
    workloads = [figure.workload, *(series.workload for series in figure.series)]
    stated += [workload.get("subscriptions", {}).get("number", 0) for workload in workloads]
    pairs = {int(number): _whole(number, scale, 1) for number in stated if number}
    return {before: after for before, after in pairs.items() if before != after}


def _scaled_number(parameter: str, value: X, scale: float) -> X:
    if parameter == "subscriptions.number":
        return _whole(value, scale, 1)
    if parameter == "documents.number":
        return _whole(value, scale, min(FEWEST_DOCUMENTS, int(value)))
    return value


def _whole(value: X, scale: float, least: int) -> int:
    return max(least, round(float(value) * scale))


def _number(workload: Mapping[str, Any], part: str) -> int:
    table = workload.get(part, {})
    return int(table.get("number", len(table.get("texts", ()))))


def _check_engines(figure: Figure, missing: dict[str, str]) -> None:
    option = figure.vary.parameter.partition("option.")[2]
    takers = 0
    for series in figure.series:
        if series.peer and (reason := why_missing(series.peer)):
            missing[series.peer] = reason
        if not series.engine or series.engine in missing:
            continue
        place = f"{figure.where}, series {series.label!r}"
        reason = _why_missing(series.engine)
        if reason:
            if not series.may_be_missing:
                raise ExperimentError("no-engine", reason, place=place, hint='if_missing = "skip" leaves it out')
            missing[series.engine] = reason
            continue
        try:
            create(series.engine, **series.options)
        except XsiftError as error:
            raise ExperimentError("bad-option", error.message, place=place, hint=error.hint) from None
        takers += option in engine_class(series.engine).options
    if option and not takers:
        raise ExperimentError("bad-option", f"no series has an engine with an option {option!r}", place=figure.where)


def _why_missing(engine: str) -> str:
    if engine not in ENGINES:
        return f"there is no engine {engine!r}: {nearest(engine, ENGINES)}"
    try:
        engine_class(engine)
    except ImportError as error:
        return f"engine {engine!r} is not built: {error}"
    return ""


@cache
def _file_digest(dtd: str) -> str:
    """A digest of a DTD that is not one of ours; "" for those, whose code has a version."""
    path = Path(dtd_path(dtd))
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if dtd.startswith("$") and path.is_file() else ""


def _code(entry: Entry) -> str:
    return code_digest(entry.series.engine) if entry.series.engine else digest(entry.series.peer)
