"""Results: a definition and what was measured for it, put together: medians, spreads, verdicts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from xsift.experiments.claims import Check
from xsift.experiments.definition import read
from xsift.experiments.judging import SURE, UNKNOWN, Rounds, Sureness, sureness
from xsift.experiments.measures import Summary, numbers, summary
from xsift.experiments.model import Claim, Experiment, Figure, Series
from xsift.experiments.plan import scaled_sizes
from xsift.experiments.quantities import short
from xsift.experiments.rows import NotMeasured, Number, Numbers, Row
from xsift.experiments.store import Measured
from xsift.experiments.templates import Template

__all__ = [
    "DOES_NOT_HOLD",
    "HOLDS",
    "NOT_MEASURED",
    "OPEN",
    "Failure",
    "Results",
    "Source",
    "Verdict",
    "counted",
    "sure_text",
]

HOLDS = "holds"
DOES_NOT_HOLD = "does not hold"
OPEN = "open"
NOT_MEASURED = "not measured"
X_UNITS = {"": "", "bytes": "size", "seconds": "s"}
SELDOM = 0.1  # share of the points at which others may have been at work for a moment


@dataclass(frozen=True)
class Verdict:
    """What the numbers say of a claim."""

    claim: Claim
    state: str
    reason: str  # why it was not measured, or why it does not hold
    evidence: list[tuple[str, Number | Row]]
    sureness: Sureness
    without: str = ""  # where a series that it names could not be measured
    runs: str = ""  # what each of two runs says, if they differ; then it is open however sure one is

    @property
    def sure_text(self) -> str:
        """How sure it is, for people; "" if it hangs on nothing that was timed."""
        return self.runs or (sure_text(self.state, self.sureness.share) if self.sureness.rounds > 1 else "")


def sure_text(state: str, share: float) -> str:
    """How sure a verdict is, for people, from the share of draws in which the claim holds."""
    if state == OPEN:
        return f"{share:.0%} for it".replace("%", " %")
    sure = 1 - share if state == DOES_NOT_HOLD else share
    return "sure to more than 99 %" if sure > 0.99 else f"sure to {100 * sure:.0f} %"


def counted(verdicts: Sequence[Verdict]) -> str:
    """How many claims hold, are open, were not measured."""
    number = Counter(verdict.state for verdict in verdicts)
    said = f"{number[HOLDS]} of {len(verdicts)} claims hold"
    return said + "".join(f", {number[state]} {state}" for state in (OPEN, NOT_MEASURED) if number[state])


class Source(Protocol):
    """Where results come from: the folder of a run, or what is kept of one."""

    def run(self) -> dict[str, Any]: ...

    def definition(self) -> str: ...

    def point(self, key: str) -> Measured | None: ...


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
        self._judged: dict[str, list[Verdict]] = {}
        self._x = {(point["figure"], point["position"]): point["x_measured"] for point in run["points"]}

    @classmethod
    def of(cls, store: Source, another: Mapping[tuple[str, str], str] | None = None) -> Results:
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
        """Whether others had the machine's cores too, so that wall times are longer than they should be.

        A machine with nothing else to do has something to do now and then; that is seen at a point or two.
        """
        most = max(1.5, 0.75 * (self.run["machine"]["cores"] or 1))
        disturbed = sum(measured.load > most for measured in self.points.values())
        return disturbed > SELDOM * len(self.points)

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

    def reasons_left_out(self) -> dict[str, list[str]]:
        """Why figures were not measured: reason and ids."""
        reasons: dict[str, list[str]] = {}
        for figure, reason in self.figures_left_out().items():
            reasons.setdefault(reason, []).append(figure)
        return reasons

    def series(self, figure: Figure) -> list[Series]:
        """The series that are there."""
        missing = self.run.get("missing", {})
        return [one for one in figure.series if one.name not in missing]

    def _failures_at(self, figure: Figure, position: int) -> Iterator[tuple[str, str]]:
        measured = self.points.get((figure.measured_in, position))
        if measured:
            yield from measured.failures.items()

    def verdicts(self, figure: Figure) -> list[Verdict]:
        """What the numbers say of the figure's claims."""
        if figure.id not in self._judged:
            self._judged[figure.id] = [self._verdict(figure, claim) for claim in figure.claims]
        return self._judged[figure.id]

    def all_verdicts(self) -> list[tuple[Figure, Verdict]]:
        return [(figure, verdict) for figure in self.experiment.figures for verdict in self.verdicts(figure)]

    def _verdict(self, figure: Figure, claim: Claim) -> Verdict:
        medians, values = self._medians(figure), self.values(figure)
        try:
            self._check_sizes(figure, claim)
            claim.check.holds(medians, values)
        except NotMeasured as unknown:
            return Verdict(claim, NOT_MEASURED, str(unknown), [], UNKNOWN)
        sure = sureness(claim.check, self._rounds(figure), values, seed=f"{figure.id}: {claim.says}")
        alone = HOLDS if sure.share >= SURE else DOES_NOT_HOLD if sure.share <= 1 - SURE else OPEN
        another = self.another.get((figure.id, claim.says), alone)
        state = alone if another == alone else OPEN
        reason = self.filled(figure, claim.reason) if state in (DOES_NOT_HOLD, OPEN) else ""
        evidence, without = self._evidence(figure, claim), self._without(figure, claim.check)
        runs = "" if another == alone else f"{alone} in one run, {another} in another"
        return Verdict(claim, state, reason, evidence, sure, without, runs)

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
        return template.filled(self._medians(figure), self.values(figure), partial(self.wording, figure))

    def _evidence(self, figure: Figure, claim: Claim) -> list[tuple[str, Number | Row]]:
        medians, values = self._medians(figure), self.values(figure)
        if claim.shows is None:
            return claim.check.evidence(medians, values)
        try:
            value = claim.shows.value(medians, values)
        except NotMeasured:
            return claim.check.evidence(medians, values)
        return [(claim.shows.text, value)] if isinstance(value, Number | Row) else []

    def _medians(self, figure: Figure) -> Numbers:
        def row(measure: str, label: str) -> dict[int, float]:
            return {at: one.median for at, one in self.row(figure, measure, label).items()}

        return row

    def _rounds(self, figure: Figure) -> Rounds:
        def row(measure: str, label: str) -> dict[int, list[float]]:
            found = ((at, numbers(self.record(figure, label, at), measure)) for at in range(len(figure.vary.values)))
            return {at: values for at, values in found if values}

        return row


_NUMBER = re.compile(r"(?<![\w.,])(?:\d{1,3}(?:,\d{3})+|\d{3,})(?!\d|[.,]\d)")


def _numbers_in(words: str) -> list[int]:
    return [int(found.replace(",", "")) for found in _NUMBER.findall(words)]
