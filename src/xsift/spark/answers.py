"""What was found for a batch of documents, and the Arrow batches that say it, each of bounded size.

Arrow's strings and lists end at 2 GB, and Spark holds a whole batch: a few documents that match many subscriptions,
carried along with each match, pass that easily. So ids are looked up late, for the rows of one outgoing batch alone,
and an outgoing batch ends when it has so many bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from xsift.errors import DocumentError, XsiftError
from xsift.matching.matcher import Failures

__all__ = [
    "ERROR_TYPE",
    "FAILURES_TYPE",
    "Answers",
    "bytes_of_rows",
    "error_column",
    "failures_column",
    "slices",
]

ERROR_TYPE = pa.struct(
    [("code", pa.string()), ("message", pa.string()), ("line", pa.int32()), ("column", pa.int32())]
)
FAILURES_TYPE = pa.list_(pa.struct([("subscription", pa.string()), ("code", pa.string()), ("message", pa.string())]))
BATCH_BYTES = 32 * 2**20  # of one outgoing Arrow batch, unless a single row is larger
LIST_BYTES = 2**30  # of the ids of one document in one list; Spark's rows end at 2 GB
ROW_BYTES = 32  # of a row beside its strings

Rows = npt.NDArray[np.int64]


@dataclass
class Answers:
    """The matches of a batch of documents: places in the ids of one or several parts, document after document."""

    ids: Sequence[pa.LargeStringArray]
    """The ids of each part."""
    rows: Rows
    """Of each match, the place of its id in the ids of its part."""
    parts: npt.NDArray[np.int32] | None
    """Of each match, the number of its part; None if there is one part."""
    counts: Rows
    """How many matches each document has."""
    errors: dict[int, DocumentError]
    failures: Failures

    @classmethod
    def of_parts(
        cls,
        ids: Sequence[pa.LargeStringArray],
        found: Sequence[tuple[Rows, Rows]],
        errors: dict[int, DocumentError],
        failures: Failures,
    ) -> Answers:
        """Answers from (rows, counts) of each part; those of a document come in the order of the parts."""
        if len(found) == 1:
            return cls(ids, found[0][0], None, found[0][1], errors, failures)
        numbers = np.concatenate([np.repeat(np.arange(len(counts)), counts) for _, counts in found])
        order = np.argsort(numbers, kind="stable")
        parts = np.repeat(np.arange(len(found), dtype=np.int32), [len(rows) for rows, _ in found])
        rows = np.concatenate([rows for rows, _ in found])
        total: Rows = np.sum([counts for _, counts in found], axis=0, dtype=np.int64)
        return cls(ids, rows[order], parts[order], total, errors, failures)

    def lengths(self) -> Rows:
        """The bytes of the id of each match."""
        lengths = np.empty(len(self.rows), dtype=np.int64)
        for number, ids in enumerate(self.ids):
            mine = slice(None) if self.parts is None else self.parts == number
            offsets = np.frombuffer(ids.buffers()[1], dtype=np.int64)[ids.offset :] if len(ids) else np.zeros(1)
            lengths[mine] = offsets[self.rows[mine] + 1] - offsets[self.rows[mine]]
        return lengths

    def taken(self, begin: int, end: int) -> pa.StringArray:
        """The ids of some of the matches."""
        rows = self.rows[begin:end]
        if self.parts is None:
            return self.ids[0].take(pa.array(rows)).cast(pa.string())
        parts = self.parts[begin:end]
        order = np.argsort(parts, kind="stable")
        pieces = [ids.take(pa.array(rows[parts == number])) for number, ids in enumerate(self.ids)]
        back = np.empty(len(order), dtype=np.int64)
        back[order] = np.arange(len(order))
        return pa.concat_arrays(pieces).take(pa.array(back)).cast(pa.string())

    def parts_of(self, place: int) -> list[int]:
        """The numbers of the parts that have to be asked again for the nodes of a document."""
        if self.parts is None or place in self.failures:
            return list(range(len(self.ids)))
        end = int(np.sum(self.counts[: place + 1]))
        return np.unique(self.parts[end - int(self.counts[place]) : end]).tolist()  # type: ignore[no-any-return]

    def refuse_long_lists(self) -> None:
        """A document with more ids than one list holds is an error of its own, and all others go on."""
        if not len(self.rows):
            return
        ends = np.cumsum(self.counts)
        totals = np.concatenate([[0], np.cumsum(self.lengths())])
        sizes = totals[ends] - totals[ends - self.counts]
        long = np.flatnonzero(sizes > LIST_BYTES)
        if not len(long):
            return
        for number in long.tolist():
            self.errors[number] = DocumentError(
                "too-many-matches",
                f"the ids of its {int(self.counts[number]):,} matches take {int(sizes[number]):,} bytes in one list",
                hint="kind='rows' gives a row for each",
            )
        self.clear(long)

    def clear(self, documents: Sequence[int] | Rows) -> None:
        """Takes away the matches of some documents, by their numbers."""
        keep = ~np.isin(np.repeat(np.arange(len(self.counts)), self.counts), documents)
        self.rows = self.rows[keep]
        self.parts = None if self.parts is None else self.parts[keep]
        self.counts[documents] = 0


def slices(sizes: npt.NDArray[Any], limit: int | None = None) -> Iterator[tuple[int, int]]:
    """Ranges of rows of about BATCH_BYTES each, by the bytes of each row; at least a row each."""
    totals = np.cumsum(sizes, dtype=np.int64)
    begin, most = 0, limit or BATCH_BYTES
    while begin < len(totals):
        before = int(totals[begin - 1]) if begin else 0
        end = int(np.searchsorted(totals, before + most, side="right"))
        end = min(max(end, begin + 1), len(totals))
        yield begin, end
        begin = end


def bytes_of_rows(columns: Sequence[pa.Array], count: int) -> Rows:
    """About how many bytes each row takes in all of these columns."""
    sizes = np.full(count, ROW_BYTES, dtype=np.int64)
    for column in columns:
        kind = column.type
        if pa.types.is_string(kind) or pa.types.is_binary(kind):
            sizes += np.diff(np.frombuffer(column.buffers()[1], dtype=np.int32)[column.offset :][: count + 1])
        elif pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
            sizes += np.diff(np.frombuffer(column.buffers()[1], dtype=np.int64)[column.offset :][: count + 1])
        elif pa.types.is_nested(kind):
            sizes += np.array([column.slice(row, 1).nbytes for row in range(count)], dtype=np.int64)
        else:
            sizes += 8
    return sizes


def error_column(errors: Mapping[int, XsiftError], count: int) -> pa.Array:
    """The column of errors, by the number of the row."""
    if not errors:
        return pa.nulls(count, ERROR_TYPE)
    values: list[dict[str, Any] | None] = [None] * count
    for number, error in errors.items():
        place = {"line": getattr(error, "line", 0), "column": getattr(error, "column", 0)}
        values[number] = {"code": error.code, "message": error.message, **place}
    return pa.array(values, ERROR_TYPE)


def failures_column(failures: Failures, count: int) -> pa.Array:
    """The column of subscriptions that could not be decided, by the number of the row."""
    if not failures:
        return pa.nulls(count, FAILURES_TYPE)
    values: list[list[dict[str, str]] | None] = [None] * count
    for number, them in failures.items():
        values[number] = [
            {"subscription": id, "code": error.code, "message": error.message} for id, error in them.items()
        ]
    return pa.array(values, FAILURES_TYPE)
