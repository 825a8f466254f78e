"""The runner: measures the points of a plan one after the other and stores each as it is complete.

For every point: make the workload; start a worker a series; let each build its index and answer every document;
compare the answers; then time, in rounds. In a round every series goes through all documents once, one series after
the other, each round starting with another one, so that whatever slows the machine for a while slows all of them.
A series whose answer is wrong, that crashes or that takes too long is reported and not timed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import mean
from time import monotonic
from typing import Any

from xsift.errors import XsiftError
from xsift.experiments import machine
from xsift.experiments.agreement import Arbiter, order_dependent
from xsift.experiments.definition import LEAST_ROUNDS, Experiment
from xsift.experiments.plan import Entry, Plan, Point, make_plan
from xsift.experiments.store import Measured, Store
from xsift.experiments.worker import Failed, Worker, available_share, give_back_memory
from xsift.experiments.workloads import Prepared, Texts, prepare, texts

__all__ = ["Estimate", "Progress", "measure", "run"]

LIMIT_SECONDS = 180.0  # for each thing a worker is told to do
CROWDED = 0.25  # share of the machine's memory that must be free for one more worker to be started beside others

PAIR_SECONDS = {"lxml-loop": 5e-6, "lxml-block": 4e-6, "lxml-xslt": 3e-6, "reference": 200e-6}

Tell = Callable[[str], None]


@dataclass
class Estimate:
    """How long the rest will take, from how long similar points took."""

    left: list[Point]
    spent_seconds: float = 0.0
    expected_seconds: float = 0.0
    started: float = field(default_factory=monotonic)

    @staticmethod
    def expected(point: Point) -> float:
        """A guess before anything was measured: making, compiling and indexing subscriptions, then the rounds.

        What looks at every pair of a subscription and a document is a matter of its own.
        """
        pairs = point.subscriptions * point.documents * (1 + LEAST_ROUNDS)
        looping = sum(PAIR_SECONDS.get(entry.series.peer or entry.series.engine, 0.0) for entry in point.entries)
        indexing = point.subscriptions * (80e-6 + 15e-6 * len(point.entries))
        return 2 + indexing + pairs * looping + 0.3 * point.seconds

    def done(self, point: Point, seconds: float) -> None:
        self.left.remove(point)
        self.spent_seconds += seconds
        self.expected_seconds += self.expected(point)

    @property
    def seconds_left(self) -> float:
        ratio = self.spent_seconds / self.expected_seconds if self.expected_seconds else 1.0
        return ratio * sum(self.expected(point) for point in self.left)


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

    def close(self) -> None:
        """Nothing more comes."""


def run(
    experiment: Experiment,
    store: Store,
    *,
    scale: float = 1.0,
    figures: Sequence[str] = (),
    fresh: bool = False,
    progress: Progress | None = None,
) -> Plan:
    """Measures all points of an experiment, or of some figures, that the store does not have yet."""
    progress = progress or Progress()
    plan = make_plan(experiment, scale, figures)
    store.create()
    _note(plan, store, finished=False)
    stored = {} if fresh else _stored(plan, store)
    estimate = Estimate([point for point in plan.points if point.key not in stored])
    progress.start(estimate)
    for point in plan.points:
        measured = stored.get(point.key)
        if measured is None:
            progress.point(point, estimate)
            measured = measure(point, progress.step)
            store.put_point(measured)
            estimate.done(point, measured.elapsed_seconds)
            stored[point.key] = measured
            progress.done(point, measured, False, estimate)
        else:
            progress.done(point, measured, True, estimate)
    _note(plan, store, finished=True)
    return plan


def _stored(plan: Plan, store: Store) -> dict[str, Measured]:
    """The points that need not be measured. One at which everything failed is tried again."""
    found = ((point.key, store.point(point.key)) for point in plan.points)
    return {key: measured for key, measured in found if measured and (measured.records or not measured.failures)}


def _note(plan: Plan, store: Store, finished: bool) -> None:
    run = {
        "experiment": plan.experiment.name,
        "scale": plan.scale,
        "finished": finished,
        "written_at": _now(),
        "machine": machine.described(),
        "missing": dict(plan.missing),
        "points": [
            {
                "figure": point.figure.id,
                "position": point.position,
                "x": point.x,
                "x_measured": point.x_measured,
                "key": point.key,
            }
            for point in (*plan.points, *(other for other in plan.others if store.point(other.key)))
        ],
    }
    store.put_run(run, plan.experiment.text)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def measure(point: Point, tell: Tell) -> Measured:
    """Measures one point."""
    started = monotonic()
    measurement = _Measurement(point, tell)
    measurement.go()
    return Measured(
        key=point.key,
        records=measurement.records,
        failures=measurement.failures,
        workloads=measurement.facts(),
        elapsed_seconds=round(monotonic() - started, 3),
        load=machine.load(),
        measured_at=_now(),
    )


class _Measurement:
    """One point while it is being measured."""

    def __init__(self, point: Point, tell: Tell) -> None:
        self.point = point
        self.tell = tell
        self.records: dict[str, dict[str, Any]] = {}
        self.failures: dict[str, str] = {}
        self.made: dict[str, Texts] = {}
        self.impossible: dict[str, str] = {}  # workloads that cannot be made, and why
        self.prepared: dict[tuple[str, bool], Prepared] = {}
        self.arbiters: dict[tuple[str, bool], Arbiter] = {}

    def go(self) -> None:
        waiting = [entry for entry in self.point.entries if self._prepare(entry)]
        if self.point.figure.drop_order_dependent:
            self._drop_order_dependent()
        give_back_memory()
        while waiting:
            workers: list[Worker] = []
            try:
                while waiting and (not workers or available_share() > CROWDED):
                    workers += self._answered(waiting.pop(0))
                workers = self._agreeing(workers)
                self._time(workers)
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
                self.made[key[0]] = texts(entry.workload, self.point.additions)
            if key not in self.prepared and key[0] in self.made:
                self.tell("compiling the subscriptions")
                self.prepared[key] = prepare(self.made[key[0]], entry.ordered)
                self.arbiters[key] = Arbiter(self.prepared[key])
        except XsiftError as error:
            self.impossible[key[0]] = f"there is no such workload: {error}"
        if key not in self.prepared:
            self.failures[entry.label] = self.impossible[key[0]]
        return key in self.prepared

    def _answered(self, entry: Entry) -> list[Worker]:
        """A worker that has built its index and answered every document; none if it failed."""
        worker = Worker(entry, self.point, self.prepared[self._key(entry)], LIMIT_SECONDS)
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

    def _agreeing(self, workers: list[Worker]) -> list[Worker]:
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

    def _time(self, workers: list[Worker]) -> None:
        """Rounds, until each series has all of them or has had its share of the point's seconds."""
        budget = self.point.seconds / max(1, len(self.point.entries))
        spent = {worker.entry.label: 0.0 for worker in workers}
        for number in range(self.point.figure.repeats):
            turn = number % max(1, len(workers))
            for worker in [*workers[turn:], *workers[:turn]]:
                label = worker.entry.label
                if label in self.failures or (number >= LEAST_ROUNDS and spent[label] > budget):
                    continue
                self.tell(f"round {number + 1} of {self.point.figure.repeats}: {label}")
                try:
                    spent[label] += worker.round()
                except Failed as failure:
                    self._fail(worker, str(failure))

    def _collect(self, workers: list[Worker]) -> None:
        for worker in workers:
            if worker.entry.label in self.failures:
                continue
            self.tell(f"{worker.entry.label}: memory and additions")
            try:
                self.records[worker.entry.label] = worker.entry.described() | worker.record()
            except Failed as failure:
                self._fail(worker, str(failure))

    def _fail(self, worker: Worker, reason: str) -> None:
        self.failures[worker.entry.label] = reason
        worker.close()

    def _drop_order_dependent(self) -> None:
        """Drops the subscriptions whose ordered and unordered answers differ: then all series do the same work."""
        answers: dict[str, dict[bool, tuple[Prepared, Any]]] = {}
        for entry in self.point.entries:
            workload, ordered = self._key(entry)
            if (workload, ordered) not in self.prepared or ordered in answers.setdefault(workload, {}):
                continue
            for worker in self._answered(entry):
                given = self.arbiters[workload, ordered].answers[entry.label]
                answers[workload][ordered] = (self.prepared[workload, ordered], given)
                worker.close()
            self.failures.pop(entry.label, None)  # if it fails, it will do so again when it is to be measured
        for workload, both in answers.items():
            if len(both) < 2:
                continue
            dropped = order_dependent(both[False], both[True])
            self.made[workload] = self.made[workload].without(dropped.tolist())
            for ordered in both:
                self.prepared[workload, ordered] = prepare(self.made[workload], ordered)
                self.arbiters[workload, ordered] = Arbiter(self.prepared[workload, ordered])

    def facts(self) -> list[Mapping[str, Any]]:
        """What the workloads of the point are like, as the papers describe theirs."""
        return [_facts(prepared, self.arbiters[key]) for key, prepared in self.prepared.items()]


def _facts(prepared: Prepared, arbiter: Arbiter) -> dict[str, Any]:
    depths, elements = zip(*(_depth_and_elements(document.events) for document in prepared.documents), strict=True)
    matched = [len(answer) for answers in list(arbiter.answers.values())[:1] for answer in answers]
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
