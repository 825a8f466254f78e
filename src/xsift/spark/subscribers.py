"""Who subscribed to each expression of a part: a mapped file of lists, so that a match becomes ids where it is found.

Ten million people with a hundred thousand interests are a hundred thousand expressions in the index. The lists
are an Arrow file, which workers of a machine map, and of which only the pages of expressions that matched are read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["ReadSubscribers", "Subscribers"]

DIGEST_BYTES = 16
Rows = npt.NDArray[np.int64]


def expression_digest(text: str) -> bytes:
    """What stands for an expression where results are by expression, in hexadecimal digits."""
    return hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).hexdigest().encode()


class Subscribers:
    """The lists of one part, and the texts of its expressions."""

    def __init__(self, path: str) -> None:
        table = pa.ipc.open_file(pa.memory_map(path)).read_all()
        lists = table["ids"].combine_chunks()
        lists = lists.chunk(0) if isinstance(lists, pa.ChunkedArray) else lists
        self.ids: pa.LargeStringArray = lists.values
        self._starts: Rows = lists.offsets.to_numpy()
        self._texts = table["text"]
        # By row: the digest of its expression, once it was asked for. Most rows of a large set are never matched.
        self._digests: npt.NDArray[np.bytes_] = np.zeros(len(lists), dtype=f"S{2 * DIGEST_BYTES}")

    def digests(self, rows: Any) -> pa.LargeStringArray:
        """The digests of the expressions of some rows: the same in every set."""
        asked = np.unique(rows)
        new = asked[self._digests[asked] == b""]
        if len(new):
            texts = self._texts.take(pa.array(new)).to_pylist()
            self._digests[new] = [expression_digest(text) for text in texts]
        return pa.array(self._digests[rows], pa.binary()).cast(pa.large_string())

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
            expressions = self.digests(places[taken]).cast(pa.string())
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
