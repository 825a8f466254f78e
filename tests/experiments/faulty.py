"""Engines with faults, for the runner to find: each derives from the reference engine and spoils something."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import numpy as np
import numpy.typing as npt

from xsift.document import RecordedEvents
from xsift.document.events import EventSource
from xsift.engines.reference import Reference
from xsift.errors import EngineError
from xsift.xpath.pattern import Pattern

FAULTY = {
    "liar": ("tests.experiments.faulty", "Liar"),
    "crasher": ("tests.experiments.faulty", "Crasher"),
    "sleeper": ("tests.experiments.faulty", "Sleeper"),
    "refuser": ("tests.experiments.faulty", "Refuser"),
    "thrower": ("tests.experiments.faulty", "Thrower"),
    "forgetter": ("tests.experiments.faulty", "Forgetter"),
    "counted": ("tests.experiments.faulty", "Counted"),
    "learner": ("tests.experiments.faulty", "Learner"),
    "witness": ("tests.experiments.faulty", "Witness"),
    "late-liar": ("tests.experiments.faulty", "LateLiar"),
}


class Liar(Reference):
    """Leaves out the last match."""

    name = "liar"

    def match(self, document: EventSource) -> npt.NDArray[np.int32]:
        return super().match(document)[:-1]


class Crasher(Reference):
    """Takes its process down."""

    name = "crasher"

    def match(self, document: EventSource) -> npt.NDArray[np.int32]:
        os.kill(os.getpid(), signal.SIGKILL)
        return super().match(document)


class Sleeper(Reference):
    """Never comes to an end."""

    name = "sleeper"

    def match(self, document: EventSource) -> npt.NDArray[np.int32]:
        time.sleep(60)
        return super().match(document)


class Refuser(Reference):
    """Takes no pattern."""

    name = "refuser"

    def add(self, pattern: Pattern) -> int:
        raise EngineError("refused-pattern", f"engine 'refuser' refuses {pattern}: it is in no mood")


class Thrower(Reference):
    """Has a plain bug."""

    name = "thrower"

    def match(self, document: EventSource) -> npt.NDArray[np.int32]:
        raise ZeroDivisionError("oh")


class Forgetter(Reference):
    """Removing one pattern removes another one too."""

    name = "forgetter"

    def remove(self, key: int) -> None:
        super().remove(key)
        self._patterns.pop(0, None)


class Counted(Reference):
    """Has an option, structures, counters and a property."""

    name = "counted"
    options = {"size": (1, 2, 3)}  # noqa: RUF012

    def __init__(self, **options: Any) -> None:
        self.size: int = self._option(options, "size")
        super().__init__(**options)

    @property
    def segments(self) -> int:
        return 7 * self.size

    def memory(self) -> dict[str, int]:
        return {"segment table": 100 * self.size, "run-time stack": 10}

    def match(self, document: EventSource) -> npt.NDArray[np.int32]:
        self.matched = getattr(self, "matched", 0) + 1
        return super().match(document)

    def counters(self) -> dict[str, int]:
        matched = getattr(self, "matched", 0)
        return {"documents": matched, "matching_nanoseconds": 100 * self.size * matched}


class Learner(Reference):
    """Has more work with the first nine documents than with those after them."""

    name = "learner"
    matched = 0

    def match(self, document: EventSource) -> npt.NDArray[np.int32]:
        self.matched += 1
        return super().match(document)

    def counters(self) -> dict[str, int]:
        return {"learning_nanoseconds": 100 * min(self.matched, 9)}


class Witness(Reference):
    """Tells how many of the documents it has met before."""

    name = "witness"
    again = 0

    def match(self, document: EventSource) -> npt.NDArray[np.int32]:
        assert isinstance(document, RecordedEvents)
        met: set[tuple[int, ...]] = self.__dict__.setdefault("met", set())
        events = tuple(document.events)
        self.again += events in met
        met.add(events)
        return super().match(document)

    def counters(self) -> dict[str, int]:
        return {"again_nanoseconds": self.again}


class LateLiar(Reference):
    """Is right about its first five documents, and then matches nothing."""

    name = "late-liar"
    matched = 0

    def match(self, document: EventSource) -> npt.NDArray[np.int32]:
        self.matched += 1
        found = super().match(document)
        return found if self.matched <= 5 else found[:0]
