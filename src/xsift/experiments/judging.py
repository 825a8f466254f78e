"""Judging: how sure a check is, from how sure the medians are that it reads.

A median of few rounds may be off, and so may one of many: another run has another lay-out in memory, and the machine
another pace. What is timed at one point in turns shares the pace, so a median is off by a factor that all series of
the point have in common, and by one of its own. Both are estimated from the rounds. The pace drifts over minutes, so
it is as unsure as it is spread over the rounds; what is a series' own is surer the more rounds there are. Both have a
floor, which is what two runs differ by whatever their rounds say.

All medians are drawn anew within these errors, some hundreds of times: the share of draws in which the check is true
is how sure the claim is.

What was not timed more than once (counters, memory) is taken as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import mean, median, quantiles

import numpy as np

from xsift.experiments.claims import Check
from xsift.experiments.rows import Axis, NotMeasured

__all__ = ["DRAWS", "OWN_FLOOR", "PACE_FLOOR", "SURE", "UNKNOWN", "Rounds", "Sureness", "sureness"]

SURE = 0.9  # share of the draws in which a claim holds, or does not; what is between is open
DRAWS = 400
OWN_FLOOR = 0.01  # of a series' median at a point, as a share of it
PACE_FLOOR = 0.01  # of all medians of a point together
DECIDES = 0.5  # standard deviations between a number where the check is true and where it is not
MEDIAN_ERROR = 1.2533  # the standard error of a median to that of a mean, for many rounds
QUARTILES = 1.349  # standard deviations between the quartiles of normal numbers

Rounds = Callable[[str, str], Mapping[int, Sequence[float]]]  # measure, label -> the rounds at each point


@dataclass(frozen=True)
class Sureness:
    """How sure a check is."""

    share: float  # of the draws in which it is true
    rounds: int  # that each timed number has at least; 1 if none was timed more than once
    deciding: frozenset[int] = frozenset()  # positions whose numbers decide, and which more rounds would make surer


UNKNOWN = Sureness(0.5, 0)  # of what was not measured


@dataclass(frozen=True)
class _Point:
    """The medians of a measure at a point, by series, and by what share of them they may be off."""

    medians: Mapping[str, float]
    timed: Mapping[str, float]  # series that were timed more than once, and the error of each for itself
    pace: float  # the error that they share


_Points = Mapping[str, Mapping[int, _Point]]  # by measure and position


def sureness(check: Check, rounds: Rounds, axis: Axis, seed: str) -> Sureness:
    """How sure a check is. The same rounds and the same seed give the same answer."""
    points = {measure: _points(rounds, measure, check.setting.labels) for measure in sorted(check.measures)}
    timed = [
        len(values)
        for measure in check.measures
        for label in check.labels
        for values in rounds(measure, label).values()
        if len(values) > 1
    ]
    if not timed:
        return Sureness(float(_holds(check, _Drawn(points, None), axis)), 1)
    random = Random(seed)
    draws = [_Drawn(points, random) for _ in range(DRAWS)]
    held = [_holds(check, draw, axis) for draw in draws]
    return Sureness(sum(held) / DRAWS, min(timed), frozenset(_deciding(points, draws, held)))


def _holds(check: Check, numbers: _Drawn, axis: Axis) -> bool:
    try:
        return check.holds(numbers, axis)
    except NotMeasured:  # it divides by zero
        return False


def _deciding(points: _Points, draws: Sequence[_Drawn], held: Sequence[bool]) -> Iterator[int]:
    """The positions where numbers are others when the check is true, if the rounds are much of what they are off."""
    true = np.array(held)
    if true.all() or not true.any():
        return
    for measure, row in points.items():
        for at, point in row.items():
            for label, error in point.timed.items():
                own = np.array([draw.own[measure, label, at] for draw in draws])
                if error > OWN_FLOOR / 2 and abs(own[true].mean() - own[~true].mean()) > DECIDES:
                    yield at


def _points(rounds: Rounds, measure: str, labels: Sequence[str]) -> dict[int, _Point]:
    found: dict[int, dict[str, Sequence[float]]] = {}
    for label in labels:
        for at, values in rounds(measure, label).items():
            found.setdefault(at, {})[label] = values
    return {at: _point(series) for at, series in sorted(found.items())}


def _point(series: Mapping[str, Sequence[float]]) -> _Point:
    """What is known of the medians of a point: a round that is slow for all series is a matter of its pace."""
    medians = {label: median(values) for label, values in series.items()}
    off = {
        label: [math.log(value / medians[label]) for value in values]
        for label, values in series.items()
        if len(values) > 1 and min(values) > 0
    }
    longest = max((len(values) for values in off.values()), default=0)
    together = [[values[at] for values in off.values() if at < len(values)] for at in range(longest)]
    pace = [mean(values) if len(values) > 1 else 0.0 for values in together]
    own = {label: _error(_alone(values, pace, together)) for label, values in off.items()}
    shared = [one for one, values in zip(pace, together, strict=True) if len(values) > 1]
    alone = next(iter(off.values()), [])  # a series without others: what of it is pace is not known, so all may be
    return _Point(medians, own, _spread(shared or alone))


def _alone(values: Sequence[float], pace: Sequence[float], together: Sequence[Sequence[float]]) -> list[float]:
    """A series' rounds without the pace. Of few series the pace is partly their own, and has taken it from them."""
    return [
        (value - common) * math.sqrt(len(all_) / (len(all_) - 1)) if len(all_) > 1 else value
        for value, common, all_ in zip(values, pace, together, strict=False)
    ]


def _error(off: Sequence[float]) -> float:
    """The standard error of the median of some rounds, in logarithms."""
    return MEDIAN_ERROR * _spread(off) / math.sqrt(len(off))


def _spread(off: Sequence[float]) -> float:
    """The standard deviation of rounds, whatever a few odd ones are like. Few rounds tell little of it: then more."""
    if len(off) < 2:
        return 0.0
    lower, _, upper = quantiles(off, n=4, method="inclusive")
    return (upper - lower) / QUARTILES * (1 + 2 / (len(off) - 1))


class _Drawn:
    """Numbers as a check asks for them: the medians as they are, or drawn anew within their errors."""

    def __init__(self, points: _Points, random: Random | None) -> None:
        self.rows: dict[tuple[str, str], dict[int, float]] = {}
        self.own: dict[tuple[str, str, int], float] = {}  # standard deviations that a number is off for itself
        for measure, row in points.items():
            for at, point in row.items():
                pace = random.gauss(0, math.hypot(PACE_FLOOR, point.pace)) if random else 0.0
                for label, value in point.medians.items():
                    if random and label in point.timed:
                        own = self.own[measure, label, at] = random.gauss(0, 1)
                        value *= math.exp(pace + own * math.hypot(OWN_FLOOR, point.timed[label]))
                    self.rows.setdefault((measure, label), {})[at] = value

    def __call__(self, measure: str, label: str) -> Mapping[int, float]:
        return self.rows.get((measure, label), {})
