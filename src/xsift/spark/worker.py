"""What runs inside Spark's Python workers: Arrow batches of documents in, Arrow batches of matches out.

A worker process lives longer than a task, and the globals of a module live as long as the process. So a matcher is
loaded when a worker first needs it, from a file that was shipped to its machine, and stays for later tasks and
micro-batches. Workers on one machine map the same file.

A set of subscriptions is a sequence of parts, each a saved matcher: one part as a rule; several when the set is
large, or subscriptions were added while a stream was running. Rows of a part that were removed since it was saved are
masked.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from xsift.errors import DocumentError, XsiftError
from xsift.matching import Limits, Matcher
from xsift.matching.matcher import Failures
from xsift.spark import answers
from xsift.spark.answers import Answers, bytes_of_rows, error_column, failures_column, slices
from xsift.spark.memory import check_room
from xsift.spark.routing import Part, Router
from xsift.spark.subscribers import Subscribers

__all__ = ["Task"]

LISTED = ("matches", "expressions")  # kinds of output with a row for each document
LOAD = "__xsift_load_seconds"
KEPT_PARTS = 16  # loaded matchers that a worker keeps beside those it is using


class _Loaded:
    """A matcher in this process, and its ids."""

    def __init__(self, key: _LoadedKey, folder: Any) -> None:
        began = time.perf_counter()
        name, subscribers, limits, validate = key
        path = _path_of(name, folder)
        check_room(path)
        self.matcher = Matcher.load(path, limits=limits, validate=validate)
        self.subscribers = None if subscribers is None else Subscribers(_path_of(subscribers, folder))
        self._removed: Any = None
        self._gone: set[str] = set()
        _measured_seconds.append(time.perf_counter() - began)

    @property
    def ids(self) -> pa.LargeStringArray:
        """The ids of subscriptions: of each row, or of all who subscribed to one."""
        return self.matcher.row_ids if self.subscribers is None else self.subscribers.ids

    def digests(self, rows: Any) -> pa.LargeStringArray:
        """The digests of some rows' expressions."""
        if self.subscribers is None:
            if not len(self.matcher):  # a part without expressions, which is there to see broken documents
                return pa.array([], pa.large_string())
            raise XsiftError(
                "no-expressions", "this set was not compiled by expression", hint="compile with by_expression=True"
            )
        return self.subscribers.digests(rows)

    def ids_of(self, row_id: str) -> list[str]:
        """The ids of subscriptions that the id of a row stands for."""
        return [row_id] if self.subscribers is None else self.subscribers.ids_of(int(row_id))

    def gone(self, removed: Any) -> set[str]:
        """The ids of rows that were removed. They are the same for document after document, so they are kept."""
        if removed is not self._removed:
            self._removed = removed
            self._gone = set() if removed is None else set(self.ids.take(pa.array(removed)).to_pylist())
        return self._gone


_LoadedKey = tuple[str, str | None, Limits, bool]
_loaded: OrderedDict[_LoadedKey, _Loaded] = OrderedDict()
_routers: dict[_LoadedKey, _Loaded] = {}
_measured_seconds: list[float] = []  # of loading, not told yet


def _path_of(name: str, folder: Any) -> str:
    """Where a file is on this machine: one that Spark has shipped, or one of a folder."""
    from pyspark import SparkFiles

    return str(SparkFiles.get(name) if folder is None else folder.path_of(name))


def _load(keys: Sequence[_LoadedKey], folder: Any, alone: bool) -> list[_Loaded]:
    """The matchers of these files. `alone` makes room first: a shard is as large as a worker can hold."""
    kept = 0 if alone else KEPT_PARTS
    others = [key for key in _loaded if key not in keys]
    for key in others[: max(0, len(others) - kept)]:
        del _loaded[key]
    for key in keys:
        if key not in _loaded:
            _loaded[key] = _Loaded(key, folder)
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
    encoding: str | None = None
    """Of documents that are bytes, whatever they declare."""
    broken_xml: bool = False
    """The XML column is there, but only rows with an error have it: they become dead letters."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Names of added columns that are not the usual ones."""
    measures: bool = False
    """Whether there is one more column: the seconds of loading, in one of the rows that come out after it."""
    router: Router | None = None
    """Tells which parts a document must visit; without it each visits all."""
    one_at_a_time: bool = False
    """Parts are loaded one after the other: together they are more than a worker may hold."""
    folder: Any = None
    """The IndexFolder with the files of the parts; without it Spark has shipped them."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                for found in self._match(batch):
                    yield _measured(found) if self.measures else found

    def renamed(self, xml: str, label: str | None, names: Mapping[str, str]) -> Task:
        """The same for columns of other names."""
        return replace(self, xml=xml, label=label, names=names)

    def _match(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        found = self._answers(batch[self.xml])
        listed = self.output in LISTED
        if listed:
            found.refuse_long_lists()
        if found.errors and self.on_error == "fail":
            raise self.labelled(batch, *min(found.errors.items()))
        if listed:
            yield from self._lists(batch, found)
        elif self.output == "rows":
            yield from self._rows(batch, found)
        else:
            yield from self._nodes(batch, found)

    def _loaded(self, number: int) -> _Loaded:
        """A part, loaded; the others too, unless that is more than a worker may hold."""
        parts = self.parts[number : number + 1] if self.one_at_a_time else self.parts
        keys = [(part.name, part.subscribers, self.limits, self.validate) for part in parts]
        return _load(keys, self.folder, alone=self.one_at_a_time)[0 if self.one_at_a_time else number]

    def visits(self, documents: pa.Array) -> tuple[npt.NDArray[np.bool_], dict[int, DocumentError]]:
        """Which parts each document must visit, and the errors of those that were found to be broken already."""
        if self.router is None:
            return np.ones((len(documents), len(self.parts)), dtype=bool), {}
        key = (self.router.part.name, None, self.limits, self.validate)
        if key not in _routers:
            _routers.clear()
            _routers[key] = _Loaded(key, self.folder)
        return self.router.visits(_routers[key].matcher, documents, len(self.parts), self.encoding)

    def _answers(self, documents: pa.Array) -> Answers:
        """What all parts say of the documents that have to visit them."""
        visits, errors = self.visits(documents)
        failures: Failures = {}
        ids, found = [], []
        for number, part in enumerate(self.parts):
            wanted = np.flatnonzero(visits[:, number])
            loaded = self._loaded(number)
            by_expression = self.output == "expressions"
            counts = np.zeros(len(documents), dtype=np.int64)
            if not len(wanted):
                ids.append(loaded.digests(np.array([], dtype=np.int64)) if by_expression else loaded.ids)
                found.append((np.array([], dtype=np.int64), counts))
                continue
            visitors = documents if len(wanted) == len(documents) else documents.take(pa.array(wanted))
            rows, ends, broken, undecided = loaded.matcher.match_array_rows(visitors, encoding=self.encoding)
            counts[wanted] = np.diff(ends, prepend=0)
            if part.removed is not None and len(rows):
                rows, counts = _without(rows, counts, part.removed, len(loaded.ids))
            errors |= {int(wanted[place]): error for place, error in broken.items()}
            gone = loaded.gone(part.removed) if undecided else set()
            for place, them in undecided.items():
                told = failures.setdefault(int(wanted[place]), {})
                for row_id, error in them.items():
                    who = loaded.digests([int(row_id)]).to_pylist() if by_expression else loaded.ids_of(row_id)
                    told.update({id: error for id in who if id not in gone})
            if by_expression:
                matched, places = np.unique(rows, return_inverse=True)
                ids.append(loaded.digests(matched))
                found.append((places.astype(np.int64), counts))
                continue
            ids.append(loaded.ids)
            if loaded.subscribers is not None:
                found.append(loaded.subscribers.expanded(rows, counts))
            else:
                found.append((rows.astype(np.int64), counts))
        failures = {number: them for number, them in failures.items() if them and number not in errors}
        made = Answers.of_parts(ids, found, errors, failures)
        if errors and len(self.parts) > 1:  # some parts may have read what is too much for another
            made.clear(sorted(errors))
        return made

    def labelled(self, batch: pa.RecordBatch, number: int, error: DocumentError) -> DocumentError:
        """An error that says of which document it is."""
        name = f"document {batch[self.label][number].as_py()!r}" if self.label else f"row {number + 1} of a batch"
        error.message = f"{name}: {error.message}"
        error.hint = error.hint or "on_error='keep' reports broken documents in the column `error`, and goes on"
        return error

    def _carried(self, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        """The columns of the input that are also columns of the output."""
        kept = self.keep_xml or self.broken_xml
        return {name: batch[name] for name in batch.schema.names if name != self.xml or kept}

    def _taken(self, carried: Mapping[str, pa.Array], places: npt.NDArray[np.int64], errors: Any) -> dict[str, Any]:
        """Rows of the carried columns; the XML only of those with an error, if it is for dead letters."""
        taken = {}
        for name, column in carried.items():
            if name == self.xml and not self.keep_xml:
                broken = np.zeros(len(places), dtype=bool)
                broken[list(errors)] = True
                taken[name] = column.take(pa.array(places, mask=~broken))
            else:
                taken[name] = column.take(pa.array(places))
        return taken

    def _sizes(self, carried: Mapping[str, pa.Array], count: int) -> tuple[npt.NDArray[np.int64], ...]:
        """The bytes of each document's row without and with an error."""
        common = [column for name, column in carried.items() if name != self.xml]
        sizes = bytes_of_rows(common, count)
        if self.xml not in carried:
            return sizes, sizes
        with_xml = sizes + bytes_of_rows([carried[self.xml]], count)
        return (with_xml if self.keep_xml else sizes), with_xml

    def _lists(self, batch: pa.RecordBatch, found: Answers) -> Iterator[pa.RecordBatch]:
        """One row a document."""
        carried, count = self._carried(batch), batch.num_rows
        plain, broken = self._sizes(carried, count)
        sizes = plain.copy()
        sizes[list(found.errors)] = broken[list(found.errors)]
        ends = np.cumsum(found.counts)
        totals = np.concatenate([[0], np.cumsum(found.lengths() + 8)])
        sizes += totals[ends] - totals[ends - found.counts]
        missing = _missing(batch[self.xml], found.errors)
        for begin, end in slices(sizes):
            low, high = int(ends[begin] - found.counts[begin]), int(ends[end - 1])
            errors = _between(found.errors, begin, end)
            offsets = np.concatenate([[low], ends[begin:end]]) - low
            lists = pa.ListArray.from_arrays(
                pa.array(offsets.astype(np.int32)),
                found.taken(low, high),
                mask=pa.array(missing[begin:end]) if missing[begin:end].any() else None,
            )
            yield self._batch(
                self._taken(carried, np.arange(begin, end), errors),
                **{self.output: lists},
                error=error_column(errors, end - begin),
                failures=failures_column(_between(found.failures, begin, end), end - begin),
            )

    def _rows(self, batch: pa.RecordBatch, found: Answers) -> Iterator[pa.RecordBatch]:
        """One row a match, one for each broken document, and one for each subscription that could not be decided."""
        carried, count = self._carried(batch), batch.num_rows
        plain, broken = self._sizes(carried, count)
        numbers = np.repeat(np.arange(count), found.counts)
        for begin, end in slices(plain[numbers] + found.lengths()):
            places = numbers[begin:end]
            yield self._batch(
                self._taken(carried, places, ()),
                subscription=found.taken(begin, end),
                error=error_column({}, len(places)),
            )
        told: list[tuple[int, str | None, XsiftError]] = [(n, None, found.errors[n]) for n in sorted(found.errors)]
        told += [(n, id, error) for n in sorted(found.failures) for id, error in found.failures[n].items()]
        places = np.array([number for number, _, _ in told], dtype=np.int64)
        for begin, end in slices(broken[places]):
            errors = {place: error for place, (_, _, error) in enumerate(told[begin:end])}
            yield self._batch(
                self._taken(carried, places[begin:end], errors),
                subscription=pa.array([id for _, id, _ in told[begin:end]], pa.string()),
                error=error_column(errors, end - begin),
            )

    def _nodes(self, batch: pa.RecordBatch, found: Answers) -> Iterator[pa.RecordBatch]:
        """One row a matched node, with its element as a fragment that stands alone (as bytes: in UTF-8). Only
        documents that match are read again."""
        carried = self._carried(batch)
        plain, broken = self._sizes(carried, batch.num_rows)
        documents = batch[self.xml]
        page = _Page(documents.type)
        places = sorted({*np.flatnonzero(found.counts).tolist(), *found.errors, *found.failures})
        numbers = range(len(self.parts))
        # Parts that are loaded one after the other are asked for all documents while they are there.
        for together in [[number] for number in numbers] if self.one_at_a_time else [numbers]:
            for row in chain.from_iterable(self._nodes_of(place, documents, found, together) for place in places):
                page.add(row, int((broken if row.error else plain)[row.place]))
                if page.size_bytes >= answers.BATCH_BYTES:
                    yield self._page(page, carried)
                    page = _Page(documents.type)
        if page.rows:
            yield self._page(page, carried)

    def _nodes_of(
        self, place: int, documents: pa.Array, found: Answers, numbers: Sequence[int]
    ) -> Iterator[_NodeRow]:
        """What some of the parts say of a document."""
        if place in found.errors:
            if 0 in numbers:
                yield _NodeRow(place, error=found.errors[place])
            return
        wanted = [number for number in found.parts_of(place) if number in numbers]
        if not wanted:
            return
        document = documents[place].as_py()
        encoding = self.encoding if isinstance(document, bytes) else None
        for number in wanted:
            part, loaded = self.parts[number], self._loaded(number)
            gone = loaded.gone(part.removed)
            undecided: dict[str, XsiftError] = {}
            selected = loaded.matcher.select(document, fragments=True, encoding=encoding, failures=undecided)
            for row_id, error in undecided.items():
                for id in loaded.ids_of(row_id) if row_id not in gone else ():
                    yield _NodeRow(place, id, error=error)
            for row_id, nodes in selected.items():
                for id in loaded.ids_of(row_id) if row_id not in gone else ():
                    for node in nodes:
                        yield _NodeRow(place, id, node.path, node.element, node.fragment)

    def _page(self, page: _Page, carried: Mapping[str, pa.Array]) -> pa.RecordBatch:
        errors = {number: row.error for number, row in enumerate(page.rows) if row.error is not None}
        places = np.array([row.place for row in page.rows], dtype=np.int64)
        return self._batch(
            self._taken(carried, places, errors), **page.columns(), error=error_column(errors, len(places))
        )

    def _batch(self, carried: Mapping[str, pa.Array], **added: pa.Array) -> pa.RecordBatch:
        names = [*carried, *(self.names.get(name, name) for name in added)]
        return pa.RecordBatch.from_arrays([*carried.values(), *added.values()], names=names)


@dataclass(frozen=True)
class _NodeRow:
    """A matched node, or an error."""

    place: int
    id: str | None = None
    path: str | None = None
    element: int | None = None
    fragment: str | None = None
    error: XsiftError | None = None


class _Page:
    """Nodes on their way into one outgoing batch."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        self.rows: list[_NodeRow] = []
        self.size_bytes = 0

    def add(self, row: _NodeRow, carried_bytes: int) -> None:
        self.rows.append(row)
        self.size_bytes += carried_bytes + len(row.id or "") + len(row.path or "") + len(row.fragment or "")

    def columns(self) -> dict[str, pa.Array]:
        fragments: list[Any] = [row.fragment for row in self.rows]
        if not self._text:
            fragments = [None if fragment is None else fragment.encode() for fragment in fragments]
        return {
            "subscription": pa.array([row.id for row in self.rows], pa.string()),
            "path": pa.array([row.path for row in self.rows], pa.string()),
            "element": pa.array([row.element for row in self.rows], pa.int32()),
            "fragment": pa.array(fragments, self._kind),
        }


def _measured(found: pa.RecordBatch) -> pa.RecordBatch:
    seconds = np.zeros(found.num_rows)
    if found.num_rows:
        seconds[0] = sum(_measured_seconds)
        _measured_seconds.clear()
    return found.append_column(LOAD, pa.array(seconds))


def _without(rows: Any, counts: Any, removed: Any, count: int) -> tuple[Any, Any]:
    live = np.ones(count, dtype=bool)
    live[removed] = False
    kept = live[rows]
    before = np.concatenate([[0], np.cumsum(kept)])
    ends = np.cumsum(counts)
    return rows[kept], before[ends] - before[ends - counts]


def _missing(documents: pa.Array, errors: Mapping[int, DocumentError]) -> npt.NDArray[np.bool_]:
    missing = np.zeros(len(documents), dtype=bool)
    missing[list(errors)] = True
    if documents.null_count:
        missing |= documents.is_null().to_numpy(zero_copy_only=False)
    return missing


def _between(numbered: Mapping[int, Any], begin: int, end: int) -> dict[int, Any]:
    return {number - begin: value for number, value in numbered.items() if begin <= number < end}
