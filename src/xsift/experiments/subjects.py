"""Subjects: what is measured. An engine, or a peer (peers.py, yfilter.py).

All of them take a `Prepared` workload, are built once, and then say for each document which patterns it matches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from xsift.engines import create
from xsift.errors import XsiftError
from xsift.experiments.plan import Entry
from xsift.experiments.workloads import Indices, Prepared

__all__ = ["Clock", "EngineSubject", "Refused", "Subject"]


class Refused(Exception):
    """The subject does not take this workload. Its text says why."""


class Clock(NamedTuple):
    """How long something took."""

    seconds: float
    cpu_seconds: float


class Subject(ABC):
    """Something that can be built from a workload's patterns and matches its documents, by their numbers."""

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared

    def ask_first(self, number: int) -> None:  # noqa: B027 - most need not know
        """Only the first so many documents will be asked about."""

    @abstractmethod
    def build(self) -> None:
        """Makes the index anew."""

    @abstractmethod
    def match(self, document: int) -> Any:
        """Matches a document: what is timed. The result is in the subject's own terms."""

    @abstractmethod
    def answer(self, result: Any) -> Indices:
        """The patterns in a result of `match`, ascending."""

    @abstractmethod
    def parse(self, document: int) -> None:
        """Reads a document's XML into the form that `match` takes: what is timed as parsing."""

    def deliver(self, result: Any) -> Indices:
        """The subscriptions in a result of `match`."""
        return self.prepared.delivered(self.answer(result))

    def take_clock(self) -> Clock | None:
        """What the last `build`, `match` or `parse` took by the subject's own clock, told once.

        None if the work is done here, and so the caller's clock is right.
        """
        return None

    def memory(self) -> dict[str, int] | None:
        """Bytes by structure, if the subject can tell."""
        return None

    def counters(self) -> dict[str, int]:
        """Work done so far."""
        return {}

    def property(self, name: str) -> float | None:
        """A number that the subject has as a property."""
        return None

    def additions(self) -> tuple[float, float] | None:
        """CPU seconds that adding the workload's further patterns one by one took, and removing them."""
        return None


class EngineSubject(Subject):
    """An engine of xsift, used directly: patterns in, events in, keys out."""

    def __init__(self, entry: Entry, prepared: Prepared) -> None:
        super().__init__(prepared)
        self.entry = entry
        self.deduplicated = entry.series.deduplicate
        self.items: Sequence[int] = (
            range(len(prepared.patterns)) if self.deduplicated else prepared.pattern_of.tolist()
        )
        self.item_of: Indices = np.empty(0, dtype=np.int32)  # of each key

    def build(self) -> None:
        self.engine = create(self.entry.series.engine, **self.entry.options)
        add, patterns = self.engine.add, self.prepared.patterns
        try:
            keys = [add(patterns[item]) for item in self.items]
        except XsiftError as error:
            raise Refused(str(error)) from None
        self.item_of = np.full(max(keys, default=-1) + 1, -1, dtype=np.int32)
        self.item_of[keys] = np.arange(len(keys), dtype=np.int32)

    def match(self, document: int) -> Indices:
        return self.engine.match(self.prepared.documents[document])

    def answer(self, result: Indices) -> Indices:
        items = self.item_of[result]
        if self.deduplicated:
            return np.sort(items)
        return np.unique(self.prepared.pattern_of[items])

    def deliver(self, result: Indices) -> Indices:
        items = self.item_of[result]
        return self.prepared.delivered(items) if self.deduplicated else items

    def parse(self, document: int) -> None:
        self.prepared.read(self.prepared.texts.documents[document])

    def memory(self) -> dict[str, int]:
        return dict(self.engine.memory())

    def counters(self) -> dict[str, int]:
        return dict(self.engine.counters())

    def property(self, name: str) -> float | None:
        value = getattr(self.engine, name, None)
        return float(value) if isinstance(value, int | float) else None

    def additions(self) -> tuple[float, float] | None:
        if not self.prepared.further:
            return None
        add, remove = self.engine.add, self.engine.remove
        started = process_time()
        keys = [add(pattern) for pattern in self.prepared.further]
        added = process_time()
        for key in keys:
            remove(key)
        return added - started, process_time() - added
