"""Segments: the engines of a matcher, and which rows of the set each serves.

A segment never changes, so matchers share them. When rows were added, a new small segment is built for them, and
segments of similar size are merged, so that there are at most about log(n). A row that was removed is skipped; a
segment most of whose rows were removed is built anew. A document costs the more, the more segments there are: at
leisure they can all be merged into one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from xsift.document import ConditionIndex
from xsift.engines import create, engine_class
from xsift.errors import EngineError
from xsift.matching.rows import Rows
from xsift.matching.segment import Segment, SegmentBuilder
from xsift.matching.worker import Plan, RowKind
from xsift.xpath.pattern import from_key
from xsift.xpath.symbols import Symbols

__all__ = ["Built", "Segments", "choose_engine", "make_plan"]

EXACT, ALWAYS = 1, 2  # RowFlag in rows.pxd
MERGE_RATIO = 4  # a segment is merged into a new one that has at least a quarter of its rows
WORTH_MERGING = 0.02  # the share of rows outside the largest segment, from which on they are felt
REBUILD_SHARE = 0.5  # a segment is built anew when more than this share of its rows was removed


@dataclass(frozen=True)
class Built:
    """A segment, the conditions it asks for, and the range of rows it covers."""

    segment: Segment
    conditions: ConditionIndex
    first: int
    end: int
    asked: npt.NDArray[np.int32]
    """The conditions again, as pairs of a name and a condition: what is saved of them."""
    relaxed: Sequence[int]
    """Ordered rows that were indexed as unordered, because the engine knows no order; their order is evaluated."""

    def saved(self) -> dict[str, npt.NDArray[Any]] | None:
        """The segment as arrays; None if its engine has to be built anew."""
        arrays = self.segment.saved()
        return None if arrays is None else {**arrays, "conditions": self.asked}

    def facts(self) -> dict[str, Any]:
        """What `Segments.restored` needs beside the arrays."""
        return {"first": self.first, "end": self.end, "relaxed": list(self.relaxed)}


class Segments:
    """The segments of one set of rows for one engine."""

    def __init__(
        self,
        rows: Rows,
        symbols: Symbols,
        engine: str,
        options: Mapping[str, Any],
        merge_at_most: int | None = None,
    ) -> None:
        self._rows = rows
        self._symbols = symbols
        self._engine = engine
        self._options = dict(options)
        self._merge_at_most = float("inf") if merge_at_most is None else merge_at_most
        self._built: list[Built] = []
        self._merging = 0  # rows that are being merged: what is there of them stays apart from what comes after

    def update(self) -> list[Built]:
        """Brings the segments up to date with the rows; what did not change is kept."""
        removed = self._rows.removed_rows()
        built = [self._renewed(part, removed) for part in self._built]
        end = len(self._rows)
        first = built[-1].end if built else 0
        while (
            built
            and end > first
            and built[-1].first >= self._merging
            and (end - first) * MERGE_RATIO >= built[-1].end - built[-1].first
            and end - built[-1].first <= self._merge_at_most
        ):
            first = built.pop().first
        if end > first or not built:
            built.append(self._build(first, end))
        self._built = built
        return built

    def begin_merging(self) -> int:
        """The end of the rows that can be merged into one segment; 0 if that is not worth its time, or under way."""
        end = self._built[-1].end if self._built else 0
        largest = max((part.end - part.first for part in self._built), default=0)
        if self._merging or len(self._built) < 2 or end - largest < WORTH_MERGING * end:
            return 0
        self._merging = end
        return end

    def merged(self, end: int) -> Built:
        """One segment for all rows up to an end. It takes seconds for a million, in which other threads may add and
        remove rows, and call `update`.
        """
        return self._build(0, end)

    def end_merging(self, part: Built | None) -> None:
        """Puts the merged segment in the place of the others; None: it could not be made."""
        self._merging = 0
        if part is not None:
            self._built = [part, *(other for other in self._built if other.first >= part.end)]

    def _renewed(self, part: Built, removed: npt.NDArray[np.uint8]) -> Built:
        gone = int(removed[part.first : part.end].sum())
        alive = part.end - part.first - gone
        if len(part.segment) and gone > REBUILD_SHARE * (part.end - part.first) and len(part.segment) > 2 * alive:
            return self._build(part.first, part.end)
        return part

    def _build(self, first: int, end: int) -> Built:
        builder = SegmentBuilder(create(self._engine, **self._options), self._rows, self._symbols)
        relaxed = builder.add_rows(first, end)
        for row in relaxed:
            self._add_relaxed(builder, row)
        return Built(builder.finish(), builder.conditions, first, end, builder.asked(), relaxed)

    def restored(self, facts: Iterable[Mapping[str, Any]], arrays: Mapping[str, npt.NDArray[Any]]) -> list[Built]:
        """The segments that were saved. Those whose engine was not are built anew."""
        self._built = [self._restored(number, part, arrays) for number, part in enumerate(facts)]
        return self._built

    def _restored(self, number: int, facts: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> Built:
        first, end = int(facts["first"]), int(facts["end"])
        if not 0 <= first <= end <= len(self._rows):
            raise ValueError(f"segment {number} has rows that are not there")
        if not facts["saved"]:
            return self._build(first, end)
        own = {name.partition(".")[2]: array for name, array in arrays.items() if name.startswith(f"{number}.")}
        own["symbols"] = np.array([len(self._symbols)])
        conditions = ConditionIndex(self._symbols)
        for name, condition in own["conditions"].tolist():
            conditions.add(name, condition)
        segment = Segment.restored(create(self._engine, **self._options), own, len(self._rows))
        return Built(segment, conditions, first, end, own["conditions"], list(facts["relaxed"]))

    def _add_relaxed(self, builder: SegmentBuilder, row: int) -> None:
        """Indexes an ordered row without its order, which is evaluated later."""
        for key in self._rows.pattern_keys_of(row):
            reason = builder.add_pattern(row, from_key(key, self._symbols).unordered().key)
            if reason:
                raise EngineError(
                    "refused-pattern",
                    f"engine {self._engine!r} cannot serve subscription {self._rows.id(row)!r}: {reason}",
                    hint="engine='auto' takes every subscription",
                )


def make_plan(rows: Rows, symbols: Symbols, built: Iterable[Built], validate: bool) -> Plan:
    """What a matcher does with each row, now."""
    built = list(built)
    flags = rows.flags_of_rows()
    kinds = np.where(flags & EXACT, RowKind.DELIVER, RowKind.EVALUATE).astype(np.uint8)
    for part in built:
        kinds[list(part.relaxed)] = RowKind.EVALUATE
    kinds[rows.removed_rows() == 1] = RowKind.REMOVED
    always = np.flatnonzero((flags & ALWAYS != 0) & (kinds != RowKind.REMOVED)).astype(np.int32)
    # What is evaluated is evaluated on a whole document: it must have been read to its end.
    validate = validate or bool(np.any(kinds == RowKind.EVALUATE))
    return Plan([part.segment for part in built], kinds, always, validate, lambda: rows.broad_rows(symbols))


def choose_engine(name: str) -> tuple[str, str]:
    """The engine to use for a name, which may be "auto", and why."""
    if name != "auto":
        engine_class(name)
        return name, "asked for"
    return "sift", "it takes every pattern, ordered or not, and is the fastest from a thousand subscriptions on"
