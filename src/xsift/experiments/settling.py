"""Settling: a verdict that is open or nearly so gets more rounds where they can help.

They can help at points whose numbers decide, as long as the errors of the rounds are not small beside what two runs
differ by anyway (judging.py).

Rounds are added to what is stored of a point, as many as it has already, by series that are built anew: what a lucky
or unlucky lay-out in memory did to one process does not settle a verdict.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from xsift.experiments.plan import ExperimentPlan, Point
from xsift.experiments.results import Results, Verdict
from xsift.experiments.store import Measured, Store

__all__ = ["MOST_ROUNDS", "Unsettled", "joined", "unsettled"]

MOST_ROUNDS = 48  # of a point; what they do not settle is open
MORE_AT_ONCE = 12
ENOUGH_ROUNDS = 7  # of a point on which an unsure verdict hangs, before it is judged again
FAR = 0.97  # a share of draws that another run is not likely to bring back to the open ones; likewise 1 less it


@dataclass(frozen=True)
class Unsettled:
    """A point that decides a verdict which is not sure, the series that it is about, and the rounds to add."""

    point: Point
    measured: Measured
    labels: tuple[str, ...]
    rounds: int
    seconds: float  # that it will take, from how long it took


def unsettled(plan: ExperimentPlan, store: Store) -> list[Unsettled]:
    """The points that more rounds may help, the quickest first."""
    labels: dict[tuple[str, int], set[str]] = {}
    for figure, verdict in Results.of(store).all_verdicts():
        for at in verdict.sureness.deciding if _may_change(verdict) else ():
            labels.setdefault((figure.measured_in, at), set()).update(verdict.claim.check.labels)
    found = [
        _unsettled(point, store.point(point.key), labels.get((point.figure.id, point.position), set()))
        for point in plan.points
    ]
    return sorted((one for one in found if one), key=lambda one: one.seconds)


def _may_change(verdict: Verdict) -> bool:
    return 1 - FAR < verdict.sureness.share < FAR


def _unsettled(point: Point, measured: Measured | None, wanted: set[str]) -> Unsettled | None:
    if measured is None:
        return None
    if wanted and point.figure.drop_order_dependent and not measured.dropped:
        wanted = set(measured.records)  # which subscriptions are dropped has to be found out, and depends on all
    labels = tuple(entry.label for entry in point.entries if entry.label in wanted & set(measured.records))
    rounds = measured.rounds(labels)
    more = min(max(rounds, ENOUGH_ROUNDS - rounds), MORE_AT_ONCE, MOST_ROUNDS - rounds)
    if not rounds:
        return None
    if more <= 0:
        return None
    return Unsettled(point, measured, labels, more, measured.elapsed_seconds * more / rounds)


def joined(before: Measured, more: Measured) -> Measured:
    """A point with the rounds of another measurement of it added. Who failed this time keeps what it had."""
    records = {label: _joined(record, more.records.get(label, {})) for label, record in before.records.items()}
    seconds = before.elapsed_seconds + more.elapsed_seconds
    return replace(before, records=records, elapsed_seconds=seconds, load=max(before.load, more.load))


def _joined(before: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    longer = {
        key: _longer(value, more[key])
        for key, value in before.items()
        if key.endswith(("_rounds", "_seconds")) and key in more
    }
    return {**before, **longer}


def _longer(before: Any, more: Any) -> Any:
    """Rounds, or the rounds of each counter that is a time."""
    if isinstance(before, dict):
        return {name: rounds + more.get(name, []) for name, rounds in before.items()}
    return before + more
