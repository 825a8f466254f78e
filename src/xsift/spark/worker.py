"""What runs inside Spark's Python workers: Arrow batches of documents in, Arrow batches of matches out.

A worker process lives longer than a task, and the globals of a module live as long as the process. So a matcher is
loaded when a worker first needs it, from a file that was shipped to its machine, and stays for later tasks and
micro-batches. Workers on one machine map the same file.

A set of subscriptions is a sequence of parts, each a saved matcher: one part as a rule; several when subscriptions
differ in namespaces, or were added while a stream was running. Rows of a part that were removed since it was saved
are masked.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from xsift.errors import DocumentError
from xsift.matching.matcher import Matcher

__all__ = ["ERROR_TYPE", "Part", "Task"]

ERROR_TYPE = pa.struct(
    [("code", pa.string()), ("message", pa.string()), ("line", pa.int32()), ("column", pa.int32())]
)
KEPT_PARTS = 16  # loaded matchers that a worker keeps beside those it is using
MATCHES_PER_BATCH = 2_000_000  # of one outgoing Arrow batch, so that its strings stay far below 2 GB
DECLARED = r"""^(<\?xml[^>]*?)encoding\s*=\s*["'][^"']*["']"""
DECLARED_UTF8 = r"""^<\?xml[^>]*?encoding\s*=\s*["'](?i:utf-8)["']"""

Rows = npt.NDArray[np.int32]
Ends = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Part:
    """A saved matcher, by the name of the file that was shipped, and the rows of it that do not count any more.
    `size_bytes` is what a worker holds of it, most of it shared with other workers of its machine."""

    name: str
    size_bytes: int
    removed: Rows | None = None


class _Loaded:
    """A matcher in this process, and its ids in the form that Spark takes."""

    def __init__(self, path: str) -> None:
        self.matcher = Matcher.load(path)
        self.ids: pa.StringArray = self.matcher.ids.cast(pa.string())


_loaded: OrderedDict[str, _Loaded] = OrderedDict()


def _load(names: Sequence[str], alone: bool) -> list[_Loaded]:
    """The matchers of these files. `alone` makes room first: a shard is as large as a worker can hold."""
    from pyspark import SparkFiles

    kept = 0 if alone else KEPT_PARTS
    others = [name for name in _loaded if name not in names]
    for name in others[: max(0, len(others) - kept)]:
        del _loaded[name]
    for name in names:
        if name not in _loaded:
            _loaded[name] = _Loaded(SparkFiles.get(name))
        _loaded.move_to_end(name)
    return [_loaded[name] for name in names]


@dataclass(frozen=True)
class Task:
    """The function that Spark maps over Arrow batches. It is pickled by reference to this module, so it is small."""

    parts: tuple[Part, ...]
    xml: str
    output: str
    keep_xml: bool
    on_error: str
    label: str | None = None
    shard: str | None = None
    """The column with the number of the part to use, when each row is for one part alone."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if not batch.num_rows:
                continue
            if self.shard is None:
                yield from self._match(batch, self.parts, first=True)
                continue
            shards = batch[self.shard].to_numpy()
            for number in np.unique(shards).tolist():
                rows = batch.filter(pa.array(shards == number)) if (shards != number).any() else batch
                yield from self._match(rows, (self.parts[number],), first=number == 0)

    def _match(self, batch: pa.RecordBatch, parts: Sequence[Part], first: bool) -> Iterator[pa.RecordBatch]:
        loaded = _load([part.name for part in parts], alone=self.shard is not None)
        documents = batch[self.xml]
        values, ends, errors = _matches(_undeclared(documents), parts, loaded)
        if errors and self.on_error == "fail":
            raise self._labelled(batch, *min(errors.items()))
        # A document that cannot be read is reported with the first shard only. One that cannot be verified may be
        # fine for the other shards: it is reported with each shard where it is not.
        told = errors if first else {n: error for n, error in errors.items() if error.code == "not-verifiable"}
        if self.output == "nodes":
            yield from self._nodes(batch, parts, loaded, ends, told)
            return
        missing = _missing(documents, errors)
        begin = 0
        for begin, end in _slices(ends):
            taken = slice(begin, end)
            low, high = int(ends[begin - 1]) if begin else 0, int(ends[end - 1])
            part = batch.slice(begin, end - begin)
            found = values.slice(low, high - low)
            counts = np.diff(ends[taken] - low, prepend=0)
            shown = errors if self.output == "matches" else told
            failed = {number - begin: error for number, error in shown.items() if begin <= number < end}
            if self.output == "matches":
                yield self._lists(part, found, counts, missing[taken], failed)
            else:
                yield self._rows(part, found, counts, failed)

    def _labelled(self, batch: pa.RecordBatch, number: int, error: DocumentError) -> DocumentError:
        name = f"document {batch[self.label][number].as_py()!r}" if self.label else f"row {number + 1} of a batch"
        error.message = f"{name}: {error.message}"
        error.hint = error.hint or "on_error='keep' reports broken documents in the column `error`, and goes on"
        return error

    def _carried(self, batch: pa.RecordBatch) -> list[tuple[str, pa.Array]]:
        """The columns of the input that are also columns of the output."""
        return [
            (name, batch[name])
            for name in batch.schema.names
            if name != self.shard and (name != self.xml or self.keep_xml)
        ]

    def _lists(
        self,
        batch: pa.RecordBatch,
        values: pa.Array,
        counts: Ends,
        missing: npt.NDArray[np.bool_],
        errors: dict[int, DocumentError],
    ) -> pa.RecordBatch:
        offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
        matches = pa.ListArray.from_arrays(offsets, values, mask=pa.array(missing) if missing.any() else None)
        columns = [*self._carried(batch), ("matches", matches), ("error", _error_column(errors, batch.num_rows))]
        return _batch(columns)

    def _rows(
        self, batch: pa.RecordBatch, values: pa.Array, counts: Ends, errors: dict[int, DocumentError]
    ) -> pa.RecordBatch:
        """One row a match, and one for each broken document."""
        numbers = np.repeat(np.arange(batch.num_rows), counts)
        broken = np.array(sorted(errors), dtype=np.int64)
        places = pa.array(np.concatenate([numbers, broken]))
        subscriptions = pa.concat_arrays([values, pa.nulls(len(broken), pa.string())])
        failed = {len(numbers) + place: errors[number] for place, number in enumerate(broken.tolist())}
        columns = [(name, column.take(places)) for name, column in self._carried(batch)]
        columns += [("subscription", subscriptions), ("error", _error_column(failed, len(places)))]
        return _batch(columns)

    def _nodes(
        self,
        batch: pa.RecordBatch,
        parts: Sequence[Part],
        loaded: Sequence[_Loaded],
        ends: Ends,
        errors: dict[int, DocumentError],
    ) -> Iterator[pa.RecordBatch]:
        """One row a matched node, with the bytes of its element. Only documents that match are read again."""
        places: list[int] = []
        found: dict[str, list[Any]] = {name: [] for name in ("subscription", "path", "element", "fragment")}
        failed: dict[int, DocumentError] = {}
        documents = batch[self.xml]
        text = pa.types.is_string(documents.type) or pa.types.is_large_string(documents.type)
        counts = np.diff(ends, prepend=0)
        for place in sorted({*np.flatnonzero(counts).tolist(), *errors}):
            if place in errors:
                failed[len(places)] = errors[place]
                places.append(place)
                for column in found.values():
                    column.append(None)
                continue
            document = documents[place].as_py()
            xml = document.encode() if text else document
            for part, part_loaded in zip(parts, loaded, strict=True):
                gone = (
                    set(part_loaded.ids.take(pa.array(part.removed)).to_pylist())
                    if part.removed is not None
                    else set()
                )
                for id, nodes in part_loaded.matcher.select(document).items():
                    if id in gone:
                        continue
                    for node in nodes:
                        places.append(place)
                        fragment = xml[node.start : node.end]
                        row = (id, node.path, node.number, fragment.decode() if text else fragment)
                        for column, value in zip(found.values(), row, strict=True):
                            column.append(value)
        carried = [(name, column.take(pa.array(places, pa.int64()))) for name, column in self._carried(batch)]
        types = {"subscription": pa.string(), "path": pa.string(), "element": pa.int32(), "fragment": documents.type}
        columns = [(name, pa.array(values, types[name])) for name, values in found.items()]
        yield _batch([*carried, *columns, ("error", _error_column(failed, len(places)))])


def _undeclared(documents: pa.Array) -> pa.Array:
    """Documents that are text without a declaration of some other encoding, which stopped being true when they became
    text."""
    if not (pa.types.is_string(documents.type) or pa.types.is_large_string(documents.type)):
        return documents
    declared = pc.match_substring_regex(documents, DECLARED)
    true = pc.match_substring_regex(documents, DECLARED_UTF8)
    if not pc.any(pc.and_not(declared, true)).as_py():
        return documents
    return pc.replace_substring_regex(documents, DECLARED, r"\1", max_replacements=1)


def _matches(
    documents: pa.Array, parts: Sequence[Part], loaded: Sequence[_Loaded]
) -> tuple[pa.Array, Ends, dict[int, DocumentError]]:
    """Ids of all documents in one array, where each document's end, and the errors by number of the document."""
    errors: dict[int, DocumentError] = {}
    found: list[tuple[pa.Array, Ends]] = []
    for part, part_loaded in zip(parts, loaded, strict=True):
        rows, ends, failed = part_loaded.matcher.match_array_rows(documents)
        if part.removed is not None and len(rows):
            rows, ends = _without(rows, ends, part.removed, len(part_loaded.ids))
        errors |= failed
        found.append((part_loaded.ids.take(pa.array(rows)), ends))
    if len(found) == 1:
        return found[0][0], found[0][1], errors
    if not found:
        return pa.array([], pa.string()), np.zeros(len(documents), dtype=np.int64), errors
    counts = [np.diff(ends, prepend=0) for _, ends in found]
    numbers = np.concatenate([np.repeat(np.arange(len(documents)), count) for count in counts])
    order = np.argsort(numbers, kind="stable")
    totals: Ends = np.sum(counts, axis=0, dtype=np.int64)
    if errors:  # a document that one part could not verify has no matches of the others either
        broken = list(errors)
        order = order[~np.isin(numbers[order], broken)]
        totals[broken] = 0
    values = pa.concat_arrays([values for values, _ in found]).take(pa.array(order))
    return values, np.cumsum(totals, dtype=np.int64), errors


def _without(rows: Rows, ends: Ends, removed: Rows, count: int) -> tuple[Rows, Ends]:
    live = np.ones(count, dtype=bool)
    live[removed] = False
    kept = live[rows]
    before = np.concatenate([[0], np.cumsum(kept)])
    return rows[kept], before[ends]


def _missing(documents: pa.Array, errors: dict[int, DocumentError]) -> npt.NDArray[np.bool_]:
    missing = np.zeros(len(documents), dtype=bool)
    missing[list(errors)] = True
    if documents.null_count:
        missing |= documents.is_null().to_numpy(zero_copy_only=False)
    return missing


def _slices(ends: Ends) -> Iterator[tuple[int, int]]:
    """Ranges of documents with about MATCHES_PER_BATCH matches each."""
    begin = 0
    while begin < len(ends):
        matched = int(ends[begin - 1]) if begin else 0
        end = int(np.searchsorted(ends, matched + MATCHES_PER_BATCH, side="right"))
        end = min(max(end, begin + 1), len(ends))
        yield begin, end
        begin = end


def _error_column(errors: dict[int, DocumentError], count: int) -> pa.Array:
    if not errors:
        return pa.nulls(count, ERROR_TYPE)
    values: list[dict[str, Any] | None] = [None] * count
    for number, error in errors.items():
        values[number] = {"code": error.code, "message": error.message, "line": error.line, "column": error.column}
    return pa.array(values, ERROR_TYPE)


def _batch(columns: Sequence[tuple[str, pa.Array]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([column for _, column in columns], names=[name for name, _ in columns])
