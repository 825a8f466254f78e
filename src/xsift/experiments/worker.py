"""Workers: every series of a point is built and run in a process of its own.

A process of its own gives an honest figure of resident memory, and whatever one subject does (a crash, an endless
loop, all memory taken) is that series' failure and nobody else's. It is forked, so that documents and patterns need
not be copied; the parent tells the workers one by one what to do next, so that only one of them works at any time.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from time import monotonic, perf_counter, process_time
from typing import Any

import numpy as np

from xsift.experiments.errors import ExperimentError
from xsift.experiments.machine import cpu_seconds
from xsift.experiments.peers import subject
from xsift.experiments.plan import Entry, Point
from xsift.experiments.subjects import Clock, Refused, Subject
from xsift.experiments.workloads import Indices, Prepared

__all__ = ["Failed", "SeriesWorker", "available_share", "give_back_memory"]

SHORTEST_ROUND = 0.05  # seconds; matching few or small documents is repeated until it lasts this long
SHORTEST_OTHER = 0.01  # seconds; likewise parsing and delivering, which no engine has to itself
MOST_PASSES = 200
FEW_BUILDS = 3
LONGEST_REBUILD = 1.0  # seconds; an index that takes longer is built once only
QUICK_BUILD = 0.1  # seconds; an index that takes no longer is built anew for each round
LONG_PASS = 1.0  # seconds; an index that takes longer to go through all documents is not: each would be one more pass
LONG_WARM_UP = 2.0  # CPU seconds after which warming up ends, however many passes were asked for
CLOCK = "_nanoseconds"  # how the name of a counter ends that is a time, and so is another one in each round
PATIENCE = 4.0  # times the limit on CPU time that a worker may take in wall time, as others may have the machine
SCARCE = 0.04  # share of the machine's memory below which a worker that is still growing is ended


class Failed(Exception):
    """A worker could not do what it was told. Its text says why."""


class SeriesWorker:
    """The parent's side of one worker."""

    def __init__(self, entry: Entry, point: Point, prepared: Prepared, limit_seconds: float, shares: int = 1) -> None:
        self.entry = entry
        self.limit_seconds = limit_seconds
        context = multiprocessing.get_context("fork")
        self._pipe, other = context.Pipe()
        self._process = context.Process(
            target=_work, args=(other, self._pipe, _Job(entry, point, prepared, shares)), daemon=True
        )
        self._process.start()
        other.close()

    def build(self) -> None:
        """Builds the index."""
        self._ask("build")

    def answers(self) -> dict[int, Indices]:
        """The patterns that each document matches, of those before the rounds."""
        answers: dict[int, Indices] = self._ask("answers")
        return answers

    def later_answers(self) -> dict[int, Indices]:
        """Likewise of the documents that the rounds had for themselves."""
        answers: dict[int, Indices] = self._ask("later_answers")
        return answers

    def round(self) -> float:
        """Times all documents once more; gives the seconds it took, all in all."""
        started = monotonic()
        self._ask("round")
        return monotonic() - started

    def record(self) -> dict[str, Any]:
        """Everything that was measured. The worker ends."""
        record: dict[str, Any] = self._ask("record")
        self.close()
        return record

    def close(self) -> None:
        """Ends the worker's process."""
        if self._process.is_alive():
            with contextlib.suppress(OSError):
                self._pipe.send("end")
            self._process.join(0.2)
            self._process.kill()  # it was busy
        self._process.join()
        self._pipe.close()

    def _cpu_seconds(self) -> float:
        return cpu_seconds(self._process.pid or 0) or 0.0

    def _ask(self, what: str) -> Any:
        try:
            self._pipe.send(what)
            self._wait(what)
            kind, value = self._pipe.recv()
        except (EOFError, OSError):
            self._process.join(5)
            raise Failed(_end(self._process.exitcode)) from None
        if kind == "failed":
            raise Failed(value)
        return value

    def _wait(self, what: str) -> None:
        started, cpu = monotonic(), self._cpu_seconds()
        while not self._pipe.poll(0.1):
            waited = monotonic() - started
            if max(self._cpu_seconds() - cpu, waited / PATIENCE) > self.limit_seconds:
                self.close()
                raise Failed(f"{what} took longer than {self.limit_seconds:g} s: set 'until', or fewer documents")
            if available_share() < SCARCE:
                self.close()
                raise Failed(f"{what} took all memory: set 'until'")


def _end(code: int | None) -> str:
    if code is not None and code < 0:
        return f"its process was ended by {signal.Signals(-code).name}"
    return f"its process ended with code {code}"


def available_share() -> float:
    """The share of the machine's memory that is still to be had; 1 where the system does not tell."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            figures = {name: int(rest.split()[0]) for name, rest in (line.split(":") for line in lines)}
        return figures["MemAvailable"] / figures["MemTotal"]
    except (OSError, KeyError, ValueError):
        return 1.0


def _resident_bytes() -> int | None:
    """Anonymous resident memory of this process: what it allocated and touched, libraries' code not counted."""
    try:
        with open("/proc/self/status", encoding="ascii") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))
    except (OSError, StopIteration, ValueError):
        return None


def give_back_memory() -> None:
    """Returns freed memory to the system, so that what a worker allocates next counts as growth."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError):
        return


def _work(pipe: Connection, parents: Connection, job: _Job) -> None:
    """The worker's process: does what it is told until the parent goes away."""
    parents.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interruption means
    gc.freeze()  # collecting must not touch, and so copy, what was there before
    gc.disable()
    job.resident_before = _resident_bytes()
    tasks: dict[str, Callable[[], Any]] = {
        "build": job.build,
        "answers": job.answers,
        "later_answers": job.later_answers,
        "round": job.round,
        "record": job.record,
    }
    while True:
        try:
            what = pipe.recv()
        except EOFError:
            what = "end"
        if what == "end":
            os._exit(0)
        try:
            pipe.send(("done", tasks[what]()))
        except (Refused, ExperimentError) as refusal:
            pipe.send(("failed", f"{refusal}"))
        except Exception as error:  # whatever it is, it is the result of this series
            pipe.send(("failed", f"{type(error).__name__}: {error}"))


class _Job:
    """The worker's side: one subject and what was measured of it."""

    def __init__(self, entry: Entry, point: Point, prepared: Prepared, shares: int) -> None:
        self.entry = entry
        self.point = point
        self.prepared = prepared
        self.shares = shares  # of the documents: one for each round and one before them, or a single one for all
        self.share = 0  # the one that is gone through now
        self.later: dict[int, Indices] = {}
        self.subject: Subject
        self.subjects_before: list[Subject] = []
        self.is_elsewhere = False  # whether the subject works in a process of its own
        self.pass_seconds = 0.0  # CPU seconds of the first pass through all documents
        self.passes = 0  # through all documents, in the part that was timed last
        self.resident_before: int | None = None
        self.measured: dict[str, Any] = {
            "build_seconds": [],
            "build_cpu_seconds": [],
            "match_rounds": [],
            "match_cpu_rounds": [],
            "parse_rounds": [],
            "parse_cpu_rounds": [],
            "deliver_rounds": [],
            "deliver_cpu_rounds": [],
            "counter_rounds": {},
        }

    def build(self) -> None:
        self.subject = subject(self.entry, self.prepared)
        started, cpu = perf_counter(), process_time()
        self.subject.build()
        here = Clock(perf_counter() - started, process_time() - cpu)
        elsewhere = self.subject.take_clock()
        taken = elsewhere or here
        self.measured["build_seconds"].append(taken.seconds)
        self.measured["build_cpu_seconds"].append(taken.cpu_seconds)
        self.is_elsewhere = elsewhere is not None

    def answers(self) -> dict[int, Indices]:
        before = self.subject.counters()
        started = process_time()
        results = {document: self.subject.match(document) for document in self._documents()}
        self.pass_seconds = process_time() - started
        after = self.subject.counters()
        resident = None if self.is_elsewhere else _resident_bytes()
        self.measured |= {
            "counters": {name: value - before.get(name, 0) for name, value in after.items()},
            "memory": self.subject.memory(),
            "matches": [len(self.subject.deliver(result)) for result in results.values()],
            "resident_bytes": None if resident is None else max(0, resident - (self.resident_before or 0)),
        }
        self._warm_up(self.point.figure.warm_up - 1)
        return {document: self.subject.answer(result) for document, result in results.items()}

    def later_answers(self) -> dict[int, Indices]:
        return self.later

    def round(self) -> None:
        self.share = 0
        self._rebuild()
        if self.shares > 1:
            self.share = 1 + len(self.measured["match_rounds"])
        before = self._clocks()
        results = self._time("match", self.subject.match)
        for name, nanoseconds in self._clocks().items():
            each = (nanoseconds - before.get(name, 0)) / self.passes / len(results)
            self.measured["counter_rounds"].setdefault(name, []).append(float(f"{each:.4g}"))
        if self.shares > 1:
            self.later |= {document: self.subject.answer(result) for document, result in results.items()}
        self._time("deliver", lambda document: self.subject.deliver(results[document]))
        self._time("parse", self.subject.parse)

    def _clocks(self) -> dict[str, int]:
        """The subject's counters that are times."""
        return {name: value for name, value in self.subject.counters().items() if name.endswith(CLOCK)}

    def _rebuild(self) -> None:
        """Builds a small index anew for each round, in other memory: where it happens to lie must decide no verdict.

        In a large one that evens out by itself, and so it does where a pass through the documents is long.
        """
        long = min(self.measured["build_cpu_seconds"]) > QUICK_BUILD or self.pass_seconds > LONG_PASS
        if self.is_elsewhere or long:
            return
        self.subjects_before.append(self.subject)  # kept, so that the new one cannot lie where it was
        self.build()
        self._warm_up(self.point.figure.warm_up)

    def _warm_up(self, passes: int) -> None:
        """Goes through the documents so many times, uncounted. What works in a process of its own warms up there."""
        if self.is_elsewhere:
            return
        started = process_time()
        for _ in range(passes):
            for document in self._documents():
                self.subject.match(document)
            if process_time() - started > LONG_WARM_UP:
                return

    def record(self) -> dict[str, Any]:
        self.share = 0
        self._measure_additions()
        properties = {name: self.subject.property(name) for name in self.point.properties}
        self.measured["properties"] = {name: value for name, value in properties.items() if value is not None}
        builds = self.measured["build_seconds"]
        while len(builds) < FEW_BUILDS and sum(builds) < LONGEST_REBUILD and not self.is_elsewhere:
            self.build()
        prepared = self.prepared
        return self.measured | {
            "documents": len(self._documents()),
            "subscriptions": len(prepared.pattern_of),
            "patterns": len(prepared.patterns),
        }

    def _measure_additions(self) -> None:
        before = [self.subject.match(document).tolist() for document in self._documents()] if self._adds() else []
        taken = [seconds for _ in range(FEW_BUILDS if self._adds() else 0) if (seconds := self.subject.additions())]
        if not taken:
            return
        after = [self.subject.match(document).tolist() for document in self._documents()]
        if before != after:
            raise Refused("after adding and removing further patterns its answers are not what they were before")
        self.measured["additions"] = len(self.prepared.further)
        self.measured["addition_seconds"] = [added for added, _ in taken]
        self.measured["removal_seconds"] = [removed for _, removed in taken]

    def _adds(self) -> bool:
        return bool(self.prepared.further) and not self.entry.series.peer

    def _documents(self) -> range:
        number = len(self.prepared.documents) // self.shares
        first = self.share * number
        return range(first, first + min(number, self.entry.series.documents or number))

    def _time(self, part: str, task: Callable[[int], Any]) -> dict[int, Any]:
        """Notes the wall seconds of each document and the CPU seconds a document; gives the results by document.

        Few or small documents are gone through as often as makes a round long enough to be measured; a document's
        wall time is then the median over those passes. Documents that are to be new are gone through once.
        """
        results: dict[int, Any] = {}
        passes: list[list[float]] = []
        total = elsewhere = 0.0
        cpu = process_time()
        shortest = SHORTEST_ROUND if part == "match" else SHORTEST_OTHER
        most = 1 if part == "match" and self.shares > 1 else MOST_PASSES
        while not passes or (total < shortest and len(passes) < most):
            seconds = []
            for document in self._documents():
                started = perf_counter()
                results[document] = task(document)
                taken = perf_counter() - started
                clock = self.subject.take_clock()
                seconds.append(clock.seconds if clock else taken)
                elsewhere += clock.cpu_seconds if clock else 0.0
            passes.append(seconds)
            total += sum(seconds)
        self.passes = len(passes)
        cpu = (elsewhere or process_time() - cpu) / len(passes) / len(results)
        self.measured[f"{part}_rounds"].append([float(f"{value:.4g}") for value in np.median(passes, axis=0)])
        self.measured[f"{part}_cpu_rounds"].append(float(f"{cpu:.4g}"))
        return results
