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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from xsift.errors import DocumentError, XsiftError
from xsift.matching import Limits, Matcher
from xsift.matching.matcher import Failures

__all__ = ["ERROR_TYPE", "FAILURES_TYPE", "Part", "Task"]

ERROR_TYPE = pa.struct(
    [("code", pa.string()), ("message", pa.string()), ("line", pa.int32()), ("column", pa.int32())]
)
FAILURES_TYPE = pa.list_(pa.struct([("subscription", pa.string()), ("code", pa.string()), ("message", pa.string())]))
KEPT_PARTS = 16  # loaded matchers that a worker keeps beside those it is using
MATCHES_PER_BATCH = 2_000_000  # of one outgoing Arrow batch, so that its strings stay far below 2 GB

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

    def __init__(self, path: str, limits: Limits, validate: bool) -> None:
        self.matcher = Matcher.load(path, limits=limits, validate=validate)
        self.ids: pa.StringArray = self.matcher.row_ids.cast(pa.string())


_LoadedKey = tuple[str, Limits, bool]
_loaded: OrderedDict[_LoadedKey, _Loaded] = OrderedDict()


def _load(keys: Sequence[_LoadedKey], folder: Any, alone: bool) -> list[_Loaded]:
    """The matchers of these files. `alone` makes room first: a shard is as large as a worker can hold."""
    from pyspark import SparkFiles

    kept = 0 if alone else KEPT_PARTS
    others = [key for key in _loaded if key not in keys]
    for key in others[: max(0, len(others) - kept)]:
        del _loaded[key]
    for key in keys:
        if key not in _loaded:
            name, limits, validate = key
            path = SparkFiles.get(name) if folder is None else folder.path_of(name)
            _loaded[key] = _Loaded(path, limits, validate)
        _loaded.move_to_end(key)
    return [_loaded[key] for key in keys]


@dataclass(frozen=True)
class Task:
    """The function that Spark maps over Arrow batches. It is pickled by reference to this module, so it is small."""

    parts: tuple[Part, ...]
    xml: str
    output: str
    keep_xml: bool
    on_error: str
    label: str | None = None
    limits: Limits = field(default_factory=Limits)
    validate: bool = True
    shard: str | None = None
    """The column with the number of the part to use, when each row is for one part alone."""
    folder: Any = None
    """The IndexFolder with the files of the parts; without it Spark has shipped them."""

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
        keys = [(part.name, self.limits, self.validate) for part in parts]
        loaded = _load(keys, self.folder, alone=self.shard is not None)
        documents = batch[self.xml]
        values, ends, errors, failures = _matches(documents, parts, loaded)
        if errors and self.on_error == "fail":
            raise self._labelled(batch, *min(errors.items()))
        told = errors if first else {}  # a document that cannot be read is reported with the first shard only
        if self.output == "nodes":
            yield from self._nodes(batch, parts, loaded, ends, told, failures)
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
            undecided = {number - begin: them for number, them in failures.items() if begin <= number < end}
            if self.output == "matches":
                yield self._lists(part, found, counts, missing[taken], failed, undecided)
            else:
                yield self._rows(part, found, counts, failed, undecided)

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
        failures: Failures,
    ) -> pa.RecordBatch:
        offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
        matches = pa.ListArray.from_arrays(offsets, values, mask=pa.array(missing) if missing.any() else None)
        added = [
            ("matches", matches),
            ("error", _error_column(errors, batch.num_rows)),
            ("failures", _failures_column(failures, batch.num_rows)),
        ]
        return _batch([*self._carried(batch), *added])

    def _rows(
        self,
        batch: pa.RecordBatch,
        values: pa.Array,
        counts: Ends,
        errors: dict[int, DocumentError],
        failures: Failures,
    ) -> pa.RecordBatch:
        """One row a match, one for each broken document, and one for each subscription that could not be decided."""
        numbers = np.repeat(np.arange(batch.num_rows), counts)
        told: list[tuple[int, str | None, XsiftError]] = [(number, None, errors[number]) for number in sorted(errors)]
        told += [(number, id, error) for number in sorted(failures) for id, error in failures[number].items()]
        places = pa.array(np.concatenate([numbers, np.array([number for number, _, _ in told], dtype=np.int64)]))
        subscriptions = pa.concat_arrays([values, pa.array([id for _, id, _ in told], pa.string())])
        failed = {len(numbers) + place: error for place, (_, _, error) in enumerate(told)}
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
        failures: Failures,
    ) -> Iterator[pa.RecordBatch]:
        """One row a matched node, with its element as a fragment that stands alone (as bytes: in UTF-8). Only
        documents that match are read again."""
        places: list[int] = []
        found: dict[str, list[Any]] = {name: [] for name in ("subscription", "path", "element", "fragment")}
        failed: dict[int, XsiftError] = {}
        documents = batch[self.xml]
        text = pa.types.is_string(documents.type) or pa.types.is_large_string(documents.type)
        counts = np.diff(ends, prepend=0)
        for place in sorted({*np.flatnonzero(counts).tolist(), *errors, *failures}):
            if place in errors:
                failed[len(places)] = errors[place]
                places.append(place)
                for column in found.values():
                    column.append(None)
                continue
            document = documents[place].as_py()
            for part, part_loaded in zip(parts, loaded, strict=True):
                gone = (
                    set(part_loaded.ids.take(pa.array(part.removed)).to_pylist())
                    if part.removed is not None
                    else set()
                )
                undecided: dict[str, XsiftError] = {}
                selected = part_loaded.matcher.select(document, fragments=True, failures=undecided)
                for id, error in undecided.items():
                    if id not in gone:
                        failed[len(places)] = error
                        places.append(place)
                        for name, column in found.items():
                            column.append(id if name == "subscription" else None)
                for id, nodes in selected.items():
                    if id in gone:
                        continue
                    for node in nodes:
                        places.append(place)
                        assert node.fragment is not None
                        fragment = node.fragment if text else node.fragment.encode()
                        row = (id, node.path, node.element, fragment)
                        for column, value in zip(found.values(), row, strict=True):
                            column.append(value)
        carried = [(name, column.take(pa.array(places, pa.int64()))) for name, column in self._carried(batch)]
        types = {"subscription": pa.string(), "path": pa.string(), "element": pa.int32(), "fragment": documents.type}
        columns = [(name, pa.array(values, types[name])) for name, values in found.items()]
        yield _batch([*carried, *columns, ("error", _error_column(failed, len(places)))])


def _matches(
    documents: pa.Array, parts: Sequence[Part], loaded: Sequence[_Loaded]
) -> tuple[pa.Array, Ends, dict[int, DocumentError], Failures]:
    """Ids of all documents in one array, where each document's end; errors and failures by number of the document."""
    errors: dict[int, DocumentError] = {}
    failures: Failures = {}
    found: list[tuple[pa.Array, Ends]] = []
    for part, part_loaded in zip(parts, loaded, strict=True):
        rows, ends, broken, undecided = part_loaded.matcher.match_array_rows(documents)
        if part.removed is not None and len(rows):
            rows, ends = _without(rows, ends, part.removed, len(part_loaded.ids))
        errors |= broken
        gone = set(part_loaded.ids.take(pa.array(part.removed)).to_pylist()) if part.removed is not None else set()
        for number, them in undecided.items():
            failures.setdefault(number, {}).update({id: error for id, error in them.items() if id not in gone})
        found.append((part_loaded.ids.take(pa.array(rows)), ends))
    if len(found) == 1:
        return found[0][0], found[0][1], errors, failures
    if not found:
        return pa.array([], pa.string()), np.zeros(len(documents), dtype=np.int64), errors, failures
    counts = [np.diff(ends, prepend=0) for _, ends in found]
    numbers = np.concatenate([np.repeat(np.arange(len(documents)), count) for count in counts])
    order = np.argsort(numbers, kind="stable")
    totals: Ends = np.sum(counts, axis=0, dtype=np.int64)
    values = pa.concat_arrays([values for values, _ in found]).take(pa.array(order))
    return values, np.cumsum(totals, dtype=np.int64), errors, failures


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


def _error_column(errors: Mapping[int, XsiftError], count: int) -> pa.Array:
    if not errors:
        return pa.nulls(count, ERROR_TYPE)
    values: list[dict[str, Any] | None] = [None] * count
    for number, error in errors.items():
        place = {"line": getattr(error, "line", 0), "column": getattr(error, "column", 0)}
        values[number] = {"code": error.code, "message": error.message, **place}
    return pa.array(values, ERROR_TYPE)


def _failures_column(failures: Failures, count: int) -> pa.Array:
    if not failures:
        return pa.nulls(count, FAILURES_TYPE)
    values: list[list[dict[str, str]] | None] = [None] * count
    for number, them in failures.items():
        values[number] = [
            {"subscription": id, "code": error.code, "message": error.message} for id, error in them.items()
        ]
    return pa.array(values, FAILURES_TYPE)


def _batch(columns: Sequence[tuple[str, pa.Array]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([column for _, column in columns], names=[name for name, _ in columns])
