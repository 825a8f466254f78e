"""YFilter 1.0, the program that its authors released, as a peer. It is no part of xsift: programs.py finds it.

It runs in a Java process of its own, which gets the same expressions and documents as the engines, and is told
document by document what to do. Its times are by its own clock, so that what passes between the processes is not
part of them. Its CPU time is that of the thread that filters: what Java's compiler and garbage collector take comes
on top.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from time import monotonic
from typing import IO

import numpy as np

from xsift.experiments import programs
from xsift.experiments.subjects import Clock, Refused, Subject
from xsift.experiments.workloads import Indices, Prepared

__all__ = ["AuthorsYFilter"]

HEAP = "-Xmx6g"
MOST_PATHS = 5  # in a query; YFilter 1.0 has an array of this size for them
SETTLED = 3  # passes over the documents, one after the other, that bring nothing
GAIN = 0.97  # what a pass must take, of the best so far, to bring something
LONGEST_WARM_UP = 60.0  # seconds


class AuthorsYFilter(Subject):
    """The authors' program, in a process of its own."""

    def __init__(self, prepared: Prepared) -> None:
        super().__init__(prepared)
        reason = programs.why_missing(programs.YFILTER)
        if reason:
            raise Refused(reason)
        if prepared.ordered:
            raise Refused("YFilter knows no ordered matching")
        most = max((_paths(pattern.steps) for pattern in prepared.patterns), default=0)
        if most > MOST_PATHS:
            raise Refused(f"YFilter 1.0 takes {MOST_PATHS} paths a query at most, here are up to {most}")
        self._clock: Clock | None = None
        self._process: subprocess.Popen[str] | None = None
        self._log = Path()

    def build(self) -> None:
        self.close()
        with tempfile.TemporaryDirectory(prefix="xsift-yfilter-") as name:
            self._start(Path(name))
            word, *numbers = self._line()
            if word != "built" or int(numbers[2]) != len(self.prepared.examples):
                raise Refused(f"YFilter 1.0 takes {numbers[2]} of the {len(self.prepared.examples)} expressions only")
            self._warm_up()
        self._clock = _clock(numbers)

    def _start(self, folder: Path) -> None:
        """Starts the process, which has read what is in the folder when it gives its first answer."""
        (folder / "queries").write_text("".join(f"{text}\n" for text in self.prepared.examples), encoding="utf-8")
        for number, document in enumerate(self.prepared.texts.documents):
            (folder / f"{number}.xml").write_bytes(document)
        self._log = folder / "log"
        with open(self._log, "w", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [programs.java(), HEAP, "-cp", programs.class_path(), str(programs.DRIVER), "queries", "."],
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                encoding="utf-8",
            )

    def _warm_up(self) -> None:
        """Goes through the documents until Java has compiled what it will, and a pass gets no faster."""
        until = monotonic() + LONGEST_WARM_UP
        best, stale = float("inf"), 0
        while stale < SETTLED and monotonic() < until:
            taken = 0.0
            for document in range(len(self.prepared.documents)):
                self.match(document)
                taken += self._clock.cpu_seconds if self._clock else 0.0
                self.parse(document)
            stale = 0 if taken < GAIN * best else stale + 1
            best = min(best, taken)

    def match(self, document: int) -> list[str]:
        return self._ask(f"match {document}")

    def parse(self, document: int) -> None:
        self._ask(f"parse {document}")

    def answer(self, result: list[str]) -> Indices:
        return np.sort(np.array(result, dtype=np.int32))

    def take_clock(self) -> Clock | None:
        clock, self._clock = self._clock, None
        return clock

    def close(self) -> None:
        """Ends the process. It also ends by itself when nobody is there to ask it anything."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _ask(self, what: str) -> list[str]:
        pipe = self._pipe("stdin")
        pipe.write(what + "\n")
        pipe.flush()
        answer = self._line()
        self._clock = _clock(answer)
        return answer[2:]

    def _line(self) -> list[str]:
        line = self._pipe("stdout").readline().split()
        if line and line[0] != "failed":
            return line
        raise Refused(f"YFilter 1.0 failed: {' '.join(line[1:]) or self._last_words()}")

    def _pipe(self, name: str) -> IO[str]:
        pipe: IO[str] | None = getattr(self._process, name, None)
        if pipe is None:
            raise Refused("YFilter 1.0 is not running")
        return pipe

    def _last_words(self) -> str:
        """What the process wrote last, if it is gone."""
        lines = self._log.read_text(encoding="utf-8").splitlines() if self._log.is_file() else []
        return next((line for line in reversed(lines) if line.strip()), "it ended without a word")


def _clock(words: list[str]) -> Clock:
    return Clock(int(words[0]) / 1e9, int(words[1]) / 1e9)


def _paths(steps: list[tuple[int, int, int, bool]]) -> int:
    """How many paths a pattern has: its leaves, conditions aside."""
    above = {parent for parent, _, _, is_condition in steps if not is_condition}
    return sum(number not in above for number, step in enumerate(steps) if not step[3])
