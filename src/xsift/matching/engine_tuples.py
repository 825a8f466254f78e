"""Tuples from an engine: AFilter finds those of all its linear patterns in one run over a document's events.

Other engines say only which patterns match, and tuples are then found pattern by pattern (selection.py). That way is
also for what AFilter leaves: twigs, and paths that go on below the step that is selected. They come in the order in
which AFilter meets their last elements, so that what each row may still get is kept track of here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from xsift.document import Limits, RecordedEvents
from xsift.errors import SubscriptionError
from xsift.matching.segment import Segment
from xsift.xpath.pattern import Pattern

__all__ = ["NUMBER_BYTES", "TUPLE_BYTES", "engine_tuples", "is_whole_path"]

TUPLE_BYTES, NUMBER_BYTES = 64, 40

Tuple = tuple[int, ...]
Found = tuple[dict[int, list[Tuple]], dict[int, SubscriptionError]]


def is_whole_path(pattern: Pattern, output: int) -> bool:
    """Whether a tuple up to the step `output` is a tuple of the whole pattern."""
    steps = pattern.steps
    return pattern.linear and output + 1 + sum(is_condition for _, _, _, is_condition in steps) == len(steps)


def engine_tuples(
    segments: Sequence[Segment], rows: Sequence[int], events: RecordedEvents, limits: Limits, limit: int | None
) -> Found | None:
    """The tuples of rows all of whose patterns are whole paths, ascending, and errors of rows that have too many.

    None if it takes more than Limits.steps: then each row is to be looked at on its own.
    """
    taken = _Taken(rows, limits, limit)
    left = limits.steps
    for segment in segments if limit != 0 else ():
        rows_of = _rows_of_keys(segment, rows)
        run = segment.engine.tuples(events, list(rows_of), steps=left)  # type: ignore[attr-defined]
        for key, found in run:
            enough = [taken.add(row, found) for row in rows_of[key]]
            if all(enough):
                run.enough(key)
        if run.exhausted:
            return None
        left -= run.work
    return taken.result()


def _rows_of_keys(segment: Segment, rows: Sequence[int]) -> Mapping[int, list[int]]:
    rows_of: dict[int, list[int]] = {}
    for key, row in segment.keys_of(np.array(sorted(rows), dtype=np.int32)):
        rows_of.setdefault(key, []).append(row)
    return rows_of


class _Taken:
    """What rows got so far, within the limits."""

    def __init__(self, rows: Sequence[int], limits: Limits, limit: int | None) -> None:
        self._found: dict[int, set[Tuple]] = {row: set() for row in rows}
        self._sizes = dict.fromkeys(rows, 0)
        self._failures: dict[int, SubscriptionError] = {}
        self._limit = limit
        self._result_bytes = limits.result_bytes
        self._left = limits.result_bytes

    def add(self, row: int, found: Tuple) -> bool:
        """Gives a row a tuple, unless it has it. Returns whether it has had enough."""
        tuples = self._found.get(row)
        if tuples is None or (self._limit is not None and len(tuples) >= self._limit):
            return True
        if found not in tuples:
            tuples.add(found)
            size = TUPLE_BYTES + NUMBER_BYTES * len(found)
            self._sizes[row] += size
            self._left -= size
            if self._left < 0:
                self._drop_largest()
        return row not in self._found or len(tuples) == self._limit

    def _drop_largest(self) -> None:
        """The row that has most fails, and the others have its room."""
        row = max(self._found, key=self._sizes.__getitem__)
        self._left += self._sizes.pop(row)
        del self._found[row]
        self._failures[row] = SubscriptionError(
            "result-too-large",
            f"what subscriptions select in this document takes more than {self._result_bytes:,} bytes",
            hint="ask for less (limit= of tuples), or allow more with Limits(result_bytes=…)",
        )

    def result(self) -> Found:
        return {row: sorted(tuples) for row, tuples in self._found.items()}, self._failures
