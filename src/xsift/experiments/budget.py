"""Budgets: how long a point will take, and which figures are worth the minutes that there are.

Full scale with a hundred documents takes hours for some files. With `--budget MINUTES` the figures that give the most
verdicts a minute are measured first, second workloads after all others, and what does not fit any more is left out.
A figure is measured as a whole or not at all, since most claims are about all of its axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from xsift.experiments.definition import LEAST_ROUNDS
from xsift.experiments.plan import ExperimentPlan, Point

__all__ = ["Estimate", "by_worth"]

# What looks at every pair of a subscription and a document, in seconds a pair. For all others a guess.
PAIR_SECONDS = {"lxml-loop": 5e-6, "lxml-block": 4e-6, "lxml-xslt": 3e-6, "spark-xpath": 60e-6, "reference": 200e-6}
OTHERS_PAIR_SECONDS = 5e-8
FEW_DISTINCT = 150_000  # of millions with duplicates
START_SECONDS = {"spark-xpath": 30.0, "yfilter-1.0": 15.0}  # a Java machine that gets warm


@dataclass
class Estimate:
    """How long the rest will take, from how long similar points took."""

    left: list[Point]
    ratios: list[float] = field(default_factory=list)  # of the time that a point took to what was expected

    @staticmethod
    def expected(point: Point) -> float:
        """A guess before anything was measured: making, compiling and indexing subscriptions, then the rounds."""
        distinct = point.subscriptions if point.distinct else min(point.subscriptions, FEW_DISTINCT)
        indexing = point.subscriptions * 5e-6 + distinct * (80e-6 + 15e-6 * len(point.entries))
        seconds = 1 + indexing + 0.3 * point.seconds
        for entry in point.entries:
            name = entry.series.name
            documents = min(point.documents, entry.series.documents or point.documents)
            pairs = distinct * documents * (1 + LEAST_ROUNDS)
            seconds += START_SECONDS.get(name, 0.0) + pairs * PAIR_SECONDS.get(name, OTHERS_PAIR_SECONDS)
        return seconds

    def done(self, point: Point, seconds: float) -> None:
        """A point was measured, and took so long."""
        self.left.remove(point)
        self.ratios.append(seconds / self.expected(point))

    def leave_out(self, points: Sequence[Point]) -> None:
        """Some points will not be measured."""
        self.left = [point for point in self.left if point not in points]

    def seconds_for(self, points: Sequence[Point]) -> float:
        """How long some points will take."""
        ratio = median(self.ratios) if self.ratios else 1.0  # so that one odd point does not count for much
        return ratio * sum(self.expected(point) for point in points)

    @property
    def seconds_left(self) -> float:
        return self.seconds_for(self.left)


def by_worth(plan: ExperimentPlan) -> list[str]:
    """The figures to measure, those with the most claims a minute first; second workloads come last."""
    seconds: dict[str, float] = {}
    for point in plan.points:
        seconds[point.figure.id] = seconds.get(point.figure.id, 0.0) + Estimate.expected(point)
    claims = dict.fromkeys(seconds, 0)
    second = set()
    for figure in plan.experiment.figures:
        if figure.measured_in in claims:
            claims[figure.measured_in] += len(figure.claims)
        if figure.second_of:
            second.add(figure.id)
    return sorted(seconds, key=lambda id: (id in second, seconds[id] / max(claims[id], 0.1)))
