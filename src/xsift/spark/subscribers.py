"""Who subscribed to each expression of a part: a mapped file of lists, so that a match becomes ids where it is found.

Ten million people with a hundred thousand interests are a hundred thousand expressions in the index. The lists
are an Arrow file, which workers of a machine map, and of which only the pages of expressions that matched are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["ReadSubscribers", "Subscribers"]

Rows = npt.NDArray[np.int64]


class Subscribers:
    """The lists of one part."""

    def __init__(self, path: str) -> None:
        table = pa.ipc.open_file(pa.memory_map(path)).read_all()
        lists = table["ids"].combine_chunks()
        lists = lists.chunk(0) if isinstance(lists, pa.ChunkedArray) else lists
        self.ids: pa.LargeStringArray = lists.values
        self._starts: Rows = lists.offsets.to_numpy()
        self._expressions = table["expression"]

    @cached_property
    def expressions(self) -> pa.LargeStringArray:
        """The digest of each expression."""
        found = self._expressions.combine_chunks().cast(pa.large_string())
        return found.chunk(0) if isinstance(found, pa.ChunkedArray) else found

    def ids_of(self, row: int) -> list[str]:
        """Who subscribed to one expression."""
        begin, end = int(self._starts[row]), int(self._starts[row + 1])
        return self.ids.slice(begin, end - begin).to_pylist()  # type: ignore[no-any-return]

    def pairs(self, at_once: int = 100_000) -> Iterator[pa.RecordBatch]:
        """All pairs of an expression and who subscribed to it."""
        counts = np.diff(self._starts)
        places = np.repeat(np.arange(len(counts)), counts)
        for begin in range(0, len(places), at_once):
            taken = slice(begin, begin + at_once)
            ids = self.ids.slice(int(self._starts[0]) + begin, len(places[taken])).cast(pa.string())
            expressions = self.expressions.take(pa.array(places[taken])).cast(pa.string())
            yield pa.RecordBatch.from_arrays([expressions, ids], names=["expression", "subscription"])

    def expanded(self, rows: Any, counts: Rows) -> tuple[Rows, Rows]:
        """Matches of expressions (rows, and how many each document has) as matches of subscribers: places in `ids`,
        and how many each document has."""
        begins = self._starts[rows]
        sizes = self._starts[rows + 1] - begins
        before = np.concatenate([[0], np.cumsum(sizes)])
        places = np.repeat(begins - before[:-1], sizes) + np.arange(before[-1])
        ends = np.cumsum(counts)
        return places, before[ends] - before[ends - counts]


@dataclass(frozen=True)
class ReadSubscribers:
    """Mapped over names of files: pairs of an expression and a subscription."""

    folder: Any

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for name in batch["name"].to_pylist():
                yield from Subscribers(self.folder.path_of(name)).pairs()
