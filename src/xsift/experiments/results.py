"""Results: a definition and what was measured for it, put together: medians, spreads, verdicts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from xsift.experiments.claims import Check
from xsift.experiments.definition import read
from xsift.experiments.measures import Summary, numbers, summary
from xsift.experiments.model import Claim, Experiment, Figure, Series
from xsift.experiments.plan import scaled_sizes
from xsift.experiments.quantities import short
from xsift.experiments.rows import NotMeasured, Number, Row
from xsift.experiments.store import Measured, Store
from xsift.experiments.templates import Template

__all__ = ["DOES_NOT_HOLD", "ENOUGH_ROUNDS", "HOLDS", "NOT_MEASURED", "OPEN", "Failure", "Results", "Verdict"]

HOLDS = "holds"
DOES_NOT_HOLD = "does not hold"
OPEN = "open"
NOT_MEASURED = "not measured"
ENOUGH_ROUNDS = 7  # to call a verdict settled; three rounds that agree may do so by chance
SETTLED = 0.9  # share of the rounds that must give the same verdict as all of them together; with less it is open
X_UNITS = {"": "", "bytes": "size", "seconds": "s"}


@dataclass(frozen=True)
class Verdict:
    """What the numbers say of a claim."""

    claim: Claim
    state: str
    reason: str  # why it was not measured, or why it does not hold
    evidence: list[tuple[str, Number | Row]]
    rounds: int  # rounds in which the check was made on that round's numbers alone
    rounds_held: int  # of them, those in which it held
    without: str = ""  # where a series that it names could not be measured
    runs: str = ""  # what each of two runs says, if they differ; then it is open whatever its rounds say

    @property
    def rounds_alike(self) -> int:
        """The rounds that give the verdict of all rounds together. For an open one: those in which it held."""
        return self.rounds - self.rounds_held if self.state == DOES_NOT_HOLD else self.rounds_held

    @property
    def is_settled(self) -> bool:
        """Whether more rounds are not needed: it is not open, and has had enough of them if it hangs on times."""
        return self.state == NOT_MEASURED or (
            self.state != OPEN and (self.rounds == 1 or self.rounds >= ENOUGH_ROUNDS)
        )

    @property
    def rounds_text(self) -> str:
        """In how many rounds it is so, for people; "" if there is one at most."""
        if self.runs:
            return self.runs
        if self.rounds <= 1:
            return ""
        verb = "held" if self.state == OPEN else "the same"
        return f"{verb} in {self.rounds_alike} of {self.rounds} rounds"


@dataclass(frozen=True)
class Failure:
    """A series that was not measured at a point, and why."""

    label: str
    x: str
    reason: str


class Results:
    """All numbers of a run, by figure, series and point."""

    def __init__(
        self,
        experiment: Experiment,
        run: Mapping[str, Any],
        points: Mapping[tuple[str, int], Measured],
        another: Mapping[tuple[str, str], str] | None = None,
    ) -> None:
        self.experiment = experiment
        self.run = run
        self.points = points  # by the id of the figure that measures, and the position on its axis
        self.another = another or {}  # verdicts of another run, by figure and claim
        self._x = {(point["figure"], point["position"]): point["x_measured"] for point in run["points"]}

    @classmethod
    def of(cls, store: Store, another: Mapping[tuple[str, str], str] | None = None) -> Results:
        """The results in a folder, as far as they are there. A verdict that another run does not share is open."""
        run = store.run()
        experiment = read(store.definition(), run["experiment"])
        points = {}
        for point in run["points"]:
            measured = store.point(point["key"])
            if measured:
                points[point["figure"], point["position"]] = measured
        figures = {point["figure"] for point in run["points"]} | set(run.get("left_out", {}))
        shown = [figure.id for figure in experiment.figures if figure.measured_in in figures]
        return cls(experiment.chosen(shown), run, points, another)

    @property
    def scale(self) -> float:
        return float(self.run["scale"])

    @property
    def load(self) -> float:
        """The highest load of the machine while a point was measured; a run alone makes about 1."""
        return max((measured.load for measured in self.points.values()), default=0.0)

    @property
    def busy(self) -> bool:
        """Whether others had the machine's cores too, so that wall times are longer than they should be."""
        return self.load > max(1.5, 0.75 * (self.run["machine"]["cores"] or 1))

    def x(self, figure: Figure, position: int) -> float | str:
        """The value of the axis as it was measured, which is scaled."""
        x: float | str = self._x.get((figure.measured_in, position), figure.vary.values[position])
        return x

    def x_text(self, figure: Figure, position: int) -> str:
        """The same, for people."""
        x = self.x(figure, position)
        if figure.vary.labels:
            return figure.vary.labels[position]
        if isinstance(x, str):
            return x
        return f"{x:,.10g}" if not figure.vary.unit else short(x, X_UNITS[figure.vary.unit])

    def record(self, figure: Figure, label: str, position: int) -> Mapping[str, Any]:
        """What was measured of a series at a point; empty if nothing was."""
        measured = self.points.get((figure.measured_in, position))
        return measured.records.get(label, {}) if measured else {}

    def summary(self, figure: Figure, measure: str, label: str, position: int) -> Summary | None:
        return summary(numbers(self.record(figure, label, position), measure))

    def row(self, figure: Figure, measure: str, label: str) -> dict[int, Summary]:
        """A series over the axis, where it was measured."""
        found = ((at, self.summary(figure, measure, label, at)) for at in range(len(figure.vary.values)))
        return {at: one for at, one in found if one}

    def shown(self, figure: Figure, measure: str, label: str) -> dict[int, Summary]:
        """A series as the figure shows it: its values, or their scale-up, which begins at the second point."""
        row = self.row(figure, measure, label)
        if figure.show == "value":
            return row
        if 0 not in row:
            return {}
        steps = {at: (one.median - row[0].median) / at for at, one in row.items() if at}
        return {at: Summary(value, value, value, value, value, 1) for at, value in steps.items()}

    def failures(self, figure: Figure) -> list[Failure]:
        """The series that were not measured though they should have been."""
        labels = {series.label for series in figure.series}
        return [
            Failure(label, self.x_text(figure, at), reason)
            for at in range(len(figure.vary.values))
            for label, reason in self._failures_at(figure, at)
            if label in labels
        ]

    def left_out(self, figure: Figure) -> list[tuple[str, str]]:
        """The series whose engine or peer is not there: label and reason."""
        missing = self.run.get("missing", {})
        return [(one.label, missing[one.name]) for one in figure.series if one.name in missing]

    def is_measured(self, figure: Figure) -> bool:
        """Whether anything of it was measured."""
        return any(id == figure.measured_in for id, _ in self.points)

    def figures_left_out(self) -> dict[str, str]:
        """The figures that were not measured: id and reason."""
        return dict(self.run.get("left_out", {}))

    def series(self, figure: Figure) -> list[Series]:
        """The series that are there."""
        missing = self.run.get("missing", {})
        return [one for one in figure.series if one.name not in missing]

    def _failures_at(self, figure: Figure, position: int) -> Iterator[tuple[str, str]]:
        measured = self.points.get((figure.measured_in, position))
        if measured:
            yield from measured.failures.items()

    def verdicts(self, figure: Figure) -> list[Verdict]:
        return [self._verdict(figure, claim) for claim in figure.claims]

    def all_verdicts(self) -> list[tuple[Figure, Verdict]]:
        return [(figure, verdict) for figure in self.experiment.figures for verdict in self.verdicts(figure)]

    def _verdict(self, figure: Figure, claim: Claim) -> Verdict:
        medians, values = self._medians(figure), self.values(figure)
        try:
            self._check_sizes(figure, claim)
            holds = claim.check.holds(medians, values)
        except NotMeasured as unknown:
            return Verdict(claim, NOT_MEASURED, str(unknown), [], 0, 0)
        rounds = self._rounds(figure, claim.check)
        held = sum(self._in_round(figure, claim.check, number) for number in range(rounds))
        alike = held if holds else rounds - held
        alone = OPEN if alike < SETTLED * rounds else HOLDS if holds else DOES_NOT_HOLD
        another = self.another.get((figure.id, claim.says), alone)
        state = alone if another == alone else OPEN
        reason = claim.reason.filled(medians, values) if state in (DOES_NOT_HOLD, OPEN) else ""
        evidence, without = self._evidence(figure, claim), self._without(figure, claim.check)
        runs = "" if another == alone else f"{alone} in one run, {another} in another"
        return Verdict(claim, state, reason, evidence, rounds, held, without, runs)

    def _without(self, figure: Figure, check: Check) -> str:
        places: dict[str, list[str]] = {}
        for failure in self.failures(figure):
            if failure.label in check.labels:
                places.setdefault(failure.label, []).append(failure.x)
        return "; ".join(f"{label} could not be measured at {', '.join(xs)}" for label, xs in places.items())

    def _check_sizes(self, figure: Figure, claim: Claim) -> None:
        """Raises NotMeasured if the claim's words are about a number of subscriptions that was scaled away."""
        sizes = self._sizes(figure)
        for words in (claim.says, *claim.check.labels):
            for number in _numbers_in(words):
                if number in sizes and number not in sizes.values():
                    raise NotMeasured(f"it is about {number:,}, and measured was {sizes[number]:,} instead")
        if figure.measured_in in self.figures_left_out():
            raise NotMeasured(self.figures_left_out()[figure.measured_in])
        missing = [at for at in range(len(figure.vary.values)) if (figure.measured_in, at) not in self.points]
        if missing:
            raise NotMeasured(f"{', '.join(self.x_text(figure, at) for at in missing)} was not measured")

    def _sizes(self, figure: Figure) -> dict[int, int]:
        return scaled_sizes(figure, self.scale)

    def wording(self, figure: Figure, words: str) -> str:
        """Words of the definition with the numbers that were measured, if the run was scaled."""
        sizes = self._sizes(figure)

        def measured(found: re.Match[str]) -> str:
            number = int(found[0].replace(",", ""))
            return f"{sizes[number]:,}" if number in sizes else found[0]

        return _NUMBER.sub(measured, words) if sizes else words

    def values(self, figure: Figure) -> list[float | str]:
        """The axis as it was measured."""
        return [self.x(figure, at) for at in range(len(figure.vary.values))]

    def filled(self, figure: Figure, template: Template) -> str:
        """A text with the numbers of a figure."""
        return template.filled(self._medians(figure), self.values(figure))

    def _evidence(self, figure: Figure, claim: Claim) -> list[tuple[str, Number | Row]]:
        medians, values = self._medians(figure), self.values(figure)
        if claim.shows is None:
            return claim.check.evidence(medians, values)
        try:
            value = claim.shows.value(medians, values)
        except NotMeasured:
            return claim.check.evidence(medians, values)
        return [(claim.shows.text, value)] if isinstance(value, Number | Row) else []

    def _medians(self, figure: Figure) -> _Numbers:
        return _Numbers(self, figure, None)

    def _in_round(self, figure: Figure, check: Check, number: int) -> bool:
        try:
            return check.holds(_Numbers(self, figure, number), self.values(figure))
        except NotMeasured:
            return False

    def _rounds(self, figure: Figure, check: Check) -> int:
        """The number of rounds that all numbers of a check have; 1 if none was timed more than once."""
        lengths = [
            len(values)
            for label in check.labels
            for measure in check.measures
            for at in range(len(figure.vary.values))
            if len(values := numbers(self.record(figure, label, at), measure)) > 1
        ]
        return min(lengths, default=1)


_NUMBER = re.compile(r"(?<![\w.,])(?:\d{1,3}(?:,\d{3})+|\d{3,})(?!\d|[.,]\d)")


def _numbers_in(words: str) -> list[int]:
    return [int(found.replace(",", "")) for found in _NUMBER.findall(words)]


class _Numbers:
    """The numbers of a figure as checks ask for them: the medians, or those of one round."""

    def __init__(self, results: Results, figure: Figure, round_: int | None) -> None:
        self.results = results
        self.figure = figure
        self.round = round_

    def __call__(self, measure: str, label: str) -> dict[int, float]:
        if self.round is None:
            return {at: one.median for at, one in self.results.row(self.figure, measure, label).items()}
        found = {}
        for at in range(len(self.figure.vary.values)):
            values = numbers(self.results.record(self.figure, label, at), measure)
            if values:
                found[at] = values[self.round] if len(values) > 1 else values[0]
        return found
