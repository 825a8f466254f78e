"""The runner: measures the points of a plan one after the other and stores each as it is complete.

For every point: make the workload; start a worker for each series; let it build its index and answer every document;
compare the answers; then time, in rounds. In a round every series goes through all documents once, one series after
the other, each round starting with another one, so that whatever slows the machine for a while slows all of them.
A series whose answer is wrong, that crashes or that takes too long is reported and not timed. Where each round has
documents of its own, answers about those are compared after the rounds: before, they would not be new any more.

When all points are there, verdicts that are not sure get more rounds where they help (settling.py), until they are
settled or the time is up. A budget of minutes says which figures are measured at all (budget.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from statistics import mean
from time import monotonic
from typing import Any

import numpy as np

from xsift.errors import XsiftError
from xsift.experiments import machine
from xsift.experiments.agreement import Arbiter, order_dependent
from xsift.experiments.budget import Estimate, by_worth
from xsift.experiments.definition import LEAST_ROUNDS
from xsift.experiments.model import Experiment
from xsift.experiments.plan import Entry, ExperimentPlan, Point, make_plan
from xsift.experiments.settling import Unsettled, joined, unsettled
from xsift.experiments.store import Measured, Store
from xsift.experiments.worker import Failed, SeriesWorker, available_share, give_back_memory
from xsift.experiments.workloads import Indices, Prepared, Texts, prepare, texts, with_documents

__all__ = ["Estimate", "Progress", "measure", "run"]

QUICK = "sift"  # the engine that finds out what is left out of a workload
LIMIT_SECONDS = 180.0  # for each thing a worker is told to do
CROWDED = 0.25  # share of the machine's memory that must be free for one more worker to be started beside others

Tell = Callable[[str], None]


class Progress:
    """What the runner tells of its progress; the command line shows it."""

    def start(self, estimate: Estimate) -> None:
        """Before the first point."""

    def point(self, point: Point, estimate: Estimate) -> None:
        """A point is about to be measured."""

    def step(self, text: str) -> None:
        """Something takes a while: what it is."""

    def done(self, point: Point, measured: Measured, resumed: bool, estimate: Estimate) -> None:
        """A point is complete."""

    def settling(self, unsettled: Unsettled) -> None:
        """A point gets more rounds, as a verdict is not sure."""

    def close(self) -> None:
        """Nothing more comes."""


def run(
    experiment: Experiment,
    store: Store,
    *,
    scale: float = 1.0,
    figures: Sequence[str] = (),
    fresh: bool = False,
    budget: float | None = None,
    beside: Store | None = None,
    progress: Progress | None = None,
) -> ExperimentPlan:
    """Measures all points of an experiment, or of some figures, that the store does not have yet.

    With a budget, in minutes, it measures as many figures as fit. Then, until the budget or the experiment's own
    minutes are used up, it adds rounds where a verdict is not sure. What a run beside this one found out about the
    workloads is taken from there; nothing that was timed is.
    """
    progress = progress or Progress()
    deadline = monotonic() + 60 * (budget or experiment.minutes)
    plan = make_plan(experiment, scale, figures, budget)
    store.create()
    stored = {} if fresh else _stored(plan, store)
    left_out = dict(plan.left_out)
    _note(plan, store, left_out, finished=False)
    estimate = Estimate([point for point in plan.points if point.key not in stored])
    progress.start(estimate)
    for figure in by_worth(plan) if budget else _in_order(plan):
        points = [point for point in plan.points if point.figure.id == figure]
        waiting = [point for point in points if point.key not in stored]
        if budget and waiting and estimate.seconds_for(waiting) > deadline - monotonic():
            left_out[figure] = f"it does not fit into the budget of {budget:g} minutes"
            estimate.leave_out(waiting)
            continue
        for point in points:
            measured = stored.get(point.key)
            if measured is None:
                progress.point(point, estimate)
                known = beside.point(point.key) if beside else None
                measured = measure(point, progress.step, dropped=known.dropped if known else None)
                store.put_point(measured)
                estimate.done(point, measured.elapsed_seconds)
                stored[point.key] = measured
                progress.done(point, measured, False, estimate)
            else:
                progress.done(point, measured, True, estimate)
    _note(plan, store, left_out, finished=False)
    _settle(plan, store, deadline, progress)
    _note(plan, store, left_out, finished=True)
    return plan


def _in_order(plan: ExperimentPlan) -> list[str]:
    return list(dict.fromkeys(point.figure.id for point in plan.points))


def _settle(plan: ExperimentPlan, store: Store, deadline: float, progress: Progress) -> None:
    """More rounds at the points on which an unsure verdict hangs, until they help no more or the time is up."""
    tried: set[tuple[str, int]] = set()  # a point whose series failed this time has no more rounds than before
    while True:
        again = [one for one in unsettled(plan, store) if (one.point.key, _rounds(one)) not in tried]
        again = [one for one in again if monotonic() + one.seconds < deadline]
        if not again:
            return
        for one in again:
            if monotonic() + one.seconds < deadline:
                tried.add((one.point.key, _rounds(one)))
                progress.settling(one)
                more = measure(one.point, progress.step, one.labels, one.rounds, one.measured.dropped)
                store.put_point(joined(one.measured, more))


def _rounds(one: Unsettled) -> int:
    return one.measured.rounds(one.labels)


def _stored(plan: ExperimentPlan, store: Store) -> dict[str, Measured]:
    """The points that need not be measured. One at which everything failed is tried again."""
    found = ((point.key, store.point(point.key)) for point in plan.points)
    return {key: measured for key, measured in found if measured and (measured.records or not measured.failures)}


def _note(plan: ExperimentPlan, store: Store, left_out: Mapping[str, str], finished: bool) -> None:
    run = {
        "experiment": plan.experiment.name,
        "scale": plan.scale,
        "finished": finished,
        "written_at": _now(),
        "machine": machine.described(),
        "missing": dict(plan.missing),
        "left_out": dict(left_out),
        "points": [
            {
                "figure": point.figure.id,
                "position": point.position,
                "x": point.x,
                "x_measured": point.x_measured,
                "key": point.key,
            }
            for point in (*plan.points, *(other for other in plan.others if store.point(other.key)))
            if point.figure.id not in left_out
        ],
    }
    store.put_run(run, plan.experiment.text)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def measure(
    point: Point,
    tell: Tell,
    labels: Sequence[str] = (),
    rounds: int = 0,
    dropped: Mapping[str, list[int]] | None = None,
) -> Measured:
    """Measures one point: all series, or those of some labels; as many rounds as its figure says, or so many.

    `dropped` is what is known of it: the subscriptions of its workloads that are left out.
    """
    started = monotonic()
    measurement = _Measurement(point, tell, labels, rounds, dropped or {})
    measurement.go()
    return Measured(
        key=point.key,
        records=measurement.records,
        failures=measurement.failures,
        workloads=measurement.facts(),
        elapsed_seconds=round(monotonic() - started, 3),
        load=machine.load(),
        measured_at=_now(),
        dropped=measurement.dropped,
    )


class _Measurement:
    """One point while it is being measured."""

    def __init__(
        self, point: Point, tell: Tell, labels: Sequence[str], rounds: int, dropped: Mapping[str, list[int]]
    ) -> None:
        self.point = point
        self.tell = tell
        self.entries = [entry for entry in point.entries if not labels or entry.label in labels]
        self.rounds = rounds or point.figure.repeats
        self.least_rounds = rounds or LEAST_ROUNDS  # whatever time they take
        self.shares = 1 + self.rounds if point.figure.new_documents else 1  # of the documents: one a round
        self.dropped = dict(dropped)  # workload -> the subscriptions that are left out, where that is known
        self.records: dict[str, dict[str, Any]] = {}
        self.failures: dict[str, str] = {}
        self.made: dict[str, Texts] = {}
        self.impossible: dict[str, str] = {}  # workloads that cannot be made, and why
        self.prepared: dict[tuple[str, bool], Prepared] = {}
        self.arbiters: dict[tuple[str, bool], Arbiter] = {}

    def go(self) -> None:
        waiting = [entry for entry in self.entries if self._prepare(entry)]
        if self.point.figure.drop_order_dependent:
            self._drop_order_dependent()
            waiting = [entry for entry in waiting if entry.label not in self.failures]
        give_back_memory()
        while waiting:
            workers: list[SeriesWorker] = []
            try:
                while waiting and (not workers or available_share() > CROWDED):
                    workers += self._answered(waiting.pop(0))
                workers = self._agreeing(workers)
                self._time(workers)
                if self.point.figure.new_documents:
                    workers = self._agreeing_later(workers)
                self._collect(workers)
            finally:
                for worker in workers:
                    worker.close()

    def _key(self, entry: Entry) -> tuple[str, bool]:
        return json.dumps(entry.workload, sort_keys=True), entry.ordered

    def _prepare(self, entry: Entry) -> bool:
        """Makes the workload of a series, if it is not made yet; False if that cannot be."""
        key = self._key(entry)
        try:
            if key[0] not in self.made and key[0] not in self.impossible:
                self.tell("making the workload")
                made = texts(with_documents(entry.workload, self.shares), self.point.additions)
                self.made[key[0]] = made.without(self.dropped.get(key[0], ()))
            if key not in self.prepared and key[0] in self.made:
                self.tell("compiling the subscriptions")
                self.prepared[key] = prepare(self.made[key[0]], entry.ordered)
                self.arbiters[key] = Arbiter(self.prepared[key])
        except XsiftError as error:
            self.impossible[key[0]] = f"there is no such workload: {error}"
        if key not in self.prepared:
            self.failures[entry.label] = self.impossible[key[0]]
        return key in self.prepared

    def _answered(self, entry: Entry) -> list[SeriesWorker]:
        """A worker that has built its index and answered every document; none if it failed."""
        worker = SeriesWorker(entry, self.point, self.prepared[self._key(entry)], LIMIT_SECONDS, self.shares)
        try:
            self.tell(f"{entry.label}: building")
            worker.build()
            self.tell(f"{entry.label}: answering")
            self.arbiters[self._key(entry)].answers[entry.label] = worker.answers()
        except Failed as failure:
            self._fail(worker, str(failure))
            return []
        except BaseException:
            worker.close()
            raise
        return [worker]

    def _agreeing(self, workers: list[SeriesWorker]) -> list[SeriesWorker]:
        """The workers whose answers are right. The others are closed and noted, also those measured before."""
        self.tell("comparing the answers")
        for arbiter in self.arbiters.values():
            for label, objection in arbiter.objections().items():
                self.failures[label] = objection
                self.records.pop(label, None)
        for worker in workers:
            if worker.entry.label in self.failures:
                worker.close()
        return [worker for worker in workers if worker.entry.label not in self.failures]

    def _agreeing_later(self, workers: list[SeriesWorker]) -> list[SeriesWorker]:
        """The workers that were also right about the documents of their rounds."""
        for worker in [worker for worker in workers if worker.entry.label not in self.failures]:
            try:
                self.arbiters[self._key(worker.entry)].answers[worker.entry.label] |= worker.later_answers()
            except Failed as failure:
                self._fail(worker, str(failure))
        return self._agreeing(workers)

    def _time(self, workers: list[SeriesWorker]) -> None:
        """Rounds, until each series has all of them or has had its share of the point's seconds."""
        budget = self.point.seconds / max(1, len(self.entries))
        spent = {worker.entry.label: 0.0 for worker in workers}
        for number in range(self.rounds):
            turn = number % max(1, len(workers))
            for worker in [*workers[turn:], *workers[:turn]]:
                label = worker.entry.label
                if label in self.failures or (number >= self.least_rounds and spent[label] > budget):
                    continue
                self.tell(f"round {number + 1} of {self.rounds}: {label}")
                try:
                    spent[label] += worker.round()
                except Failed as failure:
                    self._fail(worker, str(failure))

    def _collect(self, workers: list[SeriesWorker]) -> None:
        for worker in workers:
            if worker.entry.label in self.failures:
                continue
            self.tell(f"{worker.entry.label}: memory and additions")
            try:
                self.records[worker.entry.label] = worker.entry.described() | worker.record()
            except Failed as failure:
                self._fail(worker, str(failure))

    def _fail(self, worker: SeriesWorker, reason: str) -> None:
        self.failures[worker.entry.label] = reason
        worker.close()

    def _drop_order_dependent(self) -> None:
        """Drops the subscriptions whose ordered and unordered answers differ: then all series do the same work."""
        for workload in [made for made in self.made if made not in self.dropped]:
            both = [(workload, ordered) for ordered in (False, True) if (workload, ordered) in self.prepared]
            if len(both) < 2:
                continue
            self.tell("looking for subscriptions that depend on the order")
            unordered, ordered = (self.prepared[key] for key in both)
            try:
                dropped = order_dependent(unordered, ordered, self._quick_answers)
            except Failed as failure:
                self._fail_all(workload, f"which subscriptions depend on the order is not known: {failure}")
                continue
            self.dropped[workload] = dropped.tolist()
            kept = np.setdiff1d(np.arange(len(unordered.pattern_of), dtype=np.int32), dropped)
            for key in both:
                self.prepared[key] = self.prepared[key].only(kept)
                self.arbiters[key] = Arbiter(self.prepared[key])

    def _fail_all(self, workload: str, reason: str) -> None:
        """Notes that no series of a workload can be measured."""
        self.failures |= {entry.label: reason for entry in self.entries if self._key(entry)[0] == workload}

    def _quick_answers(self, prepared: Prepared) -> list[Indices]:
        """What the documents match. It is not asked of the series: some of them take a minute for that."""
        entry = self.entries[0]
        series = replace(entry.series, engine=QUICK, peer="", deduplicate=True, documents=None)
        worker = SeriesWorker(replace(entry, series=series, options={}), self.point, prepared, LIMIT_SECONDS)
        try:
            worker.build()
            return list(worker.answers().values())
        finally:
            worker.close()

    def facts(self) -> list[Mapping[str, Any]]:
        """What the workloads of the point are like, as the papers describe theirs."""
        return [_facts(prepared, self.arbiters[key]) for key, prepared in self.prepared.items()]


def _facts(prepared: Prepared, arbiter: Arbiter) -> dict[str, Any]:
    depths, elements = zip(*(_depth_and_elements(document.events) for document in prepared.documents), strict=True)
    matched = [len(answer) for answers in list(arbiter.answers.values())[:1] for answer in answers.values()]
    return {
        "documents": len(prepared.documents),
        "document_bytes": round(mean(len(document) for document in prepared.texts.documents)),
        "elements": round(mean(elements), 1),
        "depth": round(mean(depths), 1),
        "subscriptions": len(prepared.pattern_of),
        "patterns": len(prepared.patterns),
        "ordered": prepared.ordered,
        "match_share": round(mean(matched) / max(1, len(prepared.patterns)), 5) if matched else None,
    }


def _depth_and_elements(events: list[int]) -> tuple[int, int]:
    depth = deepest = elements = 0
    for code in events:
        if code >= 0:
            elements += 1
            depth += 1
            deepest = max(deepest, depth)
        elif code == -1:
            depth -= 1
    return deepest, elements
