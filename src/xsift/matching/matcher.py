"""Matcher: a frozen snapshot of a set of subscriptions, which matches documents.

The walk of a document, whatever door it comes in by: it becomes a Document; a worker reads it and asks the
engines, which gives rows that match and rows that are still to be evaluated; these are decided; row numbers become
ids.

A matcher can be used from many threads. What changes while a document is read belongs to a desk, and each call takes
a desk that is free. Whatever happens to the Subscriptions that it was made from, it answers for the set as it was.
"""

from __future__ import annotations

import os
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from xsift.document import Document, DocumentIndex, DocumentSource, DocumentTree, Limits, Reader
from xsift.errors import DocumentError, FailureWarning, StorageError, SubscriptionError, XsiftError
from xsift.matching import storage
from xsift.matching.arguments import arrow_array, one_by_one, text, thread_count, tuple_limit, valid_limits
from xsift.matching.arrow_arrays import buffers, lists, with_nulls
from xsift.matching.desk import Desk
from xsift.matching.display import html_page, html_table, plural, printable
from xsift.matching.evaluation import Decider, DocumentViews
from xsift.matching.explanation import explain_row, report_row
from xsift.matching.fragments import Fragments
from xsift.matching.results import NO_FAILURES, ArrayMatches, BatchRows, Explanation, Match, Node, SubscriptionReport
from xsift.matching.row_evaluator import RowEvaluator
from xsift.matching.rows import Rows
from xsift.matching.segments import Built, Segments, choose_engine, make_plan
from xsift.matching.selection import Selector
from xsift.matching.worker import Worker
from xsift.xpath.symbols import Symbols

__all__ = ["Matcher"]

BATCH = 16  # documents at a time in match_many: few, so that their results stay in the cache,
BATCH_SECONDS = 0.002  # but with several threads enough of them that handing them over costs little,
MOST_IN_BATCH = 256  # as long as they are not too many


RowArray = npt.NDArray[np.int32]
EndArray = npt.NDArray[np.int64]
Source: TypeAlias = "DocumentSource | DocumentError"
Failures = dict[int, dict[str, XsiftError]]
"""By the number of a document: by id, why a subscription could not be decided on it."""


class Matcher:
    """Matches documents against a snapshot of subscriptions. Made by `Subscriptions.matcher` or `Matcher.load`."""

    def __init__(
        self,
        *,
        rows: Rows,
        symbols: Symbols,
        mappings: Sequence[Mapping[str, str]],
        built: Sequence[Built],
        limits: Limits,
        engine: str,
        options: Mapping[str, Any],
        reason: str,
        validate: bool,
    ) -> None:
        self.engine = engine
        self.options = dict(options)
        self.reason = reason
        self.limits = limits
        self.validate = validate
        self._rows = rows
        self._symbols = symbols
        self._mappings = tuple(mappings)  # which do not change, but there can be more
        self._built = list(built)
        self._plan = make_plan(rows, symbols, built, validate)
        self._removed = self._plan.removed_rows()
        self._index = DocumentIndex(symbols, [part.conditions for part in built if len(part.conditions)])
        self._decider = Decider(rows, symbols, limits.steps)
        self._selector = Selector(
            rows, symbols, self._mappings, limits, self._plan.segments if engine == "afilter" else ()
        )
        self._idle: list[Desk] = []
        self._row_ids: pa.LargeStringArray | None = None

    def __repr__(self) -> str:
        return f"<Matcher of {plural(len(self), 'subscription')}, engine {self.engine}>"

    def __str__(self) -> str:
        return "\n".join(f"{name:14} {printable(value)}" for name, value in self._facts())

    def _repr_html_(self) -> str:
        return html_page("Matcher", html_table(("", ""), self._facts()))

    def _facts(self) -> list[tuple[str, str]]:
        """What one may want to know of a matcher at a glance."""
        options = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        return [
            ("subscriptions", f"{len(self):,}"),
            ("engine", f"{self.engine}{f' with {options}' if options else ''}: {self.reason}"),
            ("index", f"{sum(self.memory().values()) / 1e6:,.1f} MB"),
            ("validate", "documents are checked to their end" if self.validate else "no further than needed"),
        ]

    def __len__(self) -> int:
        return self._plan.live_rows

    # Which subscriptions

    def match(
        self,
        document: DocumentSource,
        *,
        encoding: str | None = None,
        failures: dict[str, XsiftError] | None = None,
    ) -> list[str]:
        """The ids of the subscriptions that a document matches, in the order in which they were added.

        Raises DocumentError if the document is not well-formed or passes a limit. Subscriptions that cannot be
        decided on it are put into `failures`, by id; without that they are a FailureWarning.
        """
        opened = self._opened(document, encoding)
        with self._desk() as desk:
            rows, candidates = desk.worker.match(opened)
            if len(candidates):
                decided, failed = self._decide(candidates, lambda: desk.views(opened))
                rows = _merged(rows, decided)
                self._report(failed, failures)
        return self._rows.ids_of(rows)

    def match_many(self, documents: Iterable[DocumentSource | DocumentError], *, threads: int = 1) -> Iterator[Match]:
        """A Match for each document, in their order. A broken document, or one that cannot be opened, is the error
        of its Match, and the rest goes on. A DocumentError among the documents stands for one that was not opened.

        Documents are taken some at a time, mostly 16 or more: where each has to be waited for, use `match`. If their
        source raises an error, it is raised after the results of what came before it.
        """
        return self._match_all(one_by_one(documents), thread_count(threads))

    def _match_all(self, documents: Iterator[DocumentSource | DocumentError], threads: int) -> Iterator[Match]:
        broken: Exception | None = None  # why there are no more documents; those before it have results first
        if threads == 1:
            while broken is None:
                batch, broken = _next_batch(documents, BATCH)
                if not batch:
                    break
                yield from self._match_batch(batch)
        else:
            size = BATCH
            with ThreadPoolExecutor(threads) as pool:
                pending: deque[Future[tuple[list[Match], float]]] = deque()
                while broken is None:
                    batch, broken = _next_batch(documents, size)
                    if not batch:
                        break
                    pending.append(pool.submit(self._timed_batch, batch))
                    if len(pending) > 2 * threads:
                        matches, seconds = pending.popleft().result()
                        size = max(1, min(MOST_IN_BATCH, int(len(matches) * BATCH_SECONDS / max(seconds, 1e-9))))
                        yield from matches
                for future in pending:
                    yield from future.result()[0]
        if broken is not None:
            raise broken

    def _timed_batch(self, documents: Sequence[DocumentSource | DocumentError]) -> tuple[list[Match], float]:
        started = time.perf_counter()
        return self._match_batch(documents), time.perf_counter() - started

    def match_array(self, documents: pa.Array, *, encoding: str | None = None) -> ArrayMatches:
        """The ids for each document of an Arrow array of strings or bytes, as an Arrow array of lists; a null for
        one that is broken, or is null itself. With it the errors, by the number of the document. No Python object
        is made for a document or a match, unless bytes are said to have another `encoding` than they declare.
        """
        documents = arrow_array(documents)  # a column in pieces has other buffers
        rows, ends, errors, failures = self.match_array_rows(documents, encoding=encoding)
        missing = np.zeros(len(documents), dtype=bool)
        missing[list(errors)] = True
        if documents.null_count:
            missing |= documents.is_null().to_numpy(zero_copy_only=False)
        ids = self.row_ids.take(pa.array(rows))
        return ArrayMatches(lists(ids, ends, missing), errors, dict(failures))

    def match_array_rows(
        self, documents: pa.Array, *, encoding: str | None = None
    ) -> tuple[RowArray, EndArray, dict[int, DocumentError], Failures]:
        """match_array with the numbers of subscriptions (places in `row_ids`), all in one array, and where each
        document's end; then errors and failures, by the number of the document.
        """
        documents = arrow_array(documents)
        wide, is_text, validity, offsets, data = buffers(documents)
        overridden = "utf-8" if is_text else encoding

        def document(number: int) -> Document:
            return Document(documents[number].as_buffer(), encoding=overridden)

        with self._desk() as desk:
            if overridden is None or is_text:
                found = desk.worker.match_buffers(
                    len(documents), offsets, wide, is_text, data, validity, documents.offset
                )
            else:
                valid = np.flatnonzero(documents.is_valid().to_numpy(zero_copy_only=False)).tolist()
                found = desk.worker.match_batch([document(number) for number in valid])
                found = with_nulls(found, valid, len(documents))
            return self._decided(found, document, desk)

    def _match_batch(self, documents: Sequence[DocumentSource | DocumentError]) -> list[Match]:
        opened = [self._opened_or_error(document) for document in documents]

        def document(number: int) -> Document:
            it = opened[number]
            assert not isinstance(it, DocumentError)  # it has candidates, so it was read
            return Document(it) if isinstance(it, bytes) else it

        with self._desk() as desk:
            found = desk.worker.match_batch(opened)
            rows, ends, errors, failures = self._decided(found, document, desk)
        _, _, candidates, candidate_ends, _ = found
        make_ids = self._rows.ids_of
        matches, begin = [], 0
        for number, end in enumerate(ends.tolist()):
            it = opened[number]
            matches.append(
                Match(
                    rows,
                    begin,
                    end,
                    make_ids,
                    errors.get(number) if errors else None,
                    failures.get(number, NO_FAILURES) if failures else NO_FAILURES,
                    None if isinstance(it, bytes) else it.label,
                    candidates[candidate_ends[number - 1] if number else 0 : candidate_ends[number]]
                    if len(candidates)
                    else None,
                )
            )
            begin = end
        return matches

    def _decided(
        self, found: BatchRows, document: Callable[[int], Document], desk: Desk
    ) -> tuple[RowArray, EndArray, dict[int, DocumentError], Failures]:
        """Rows for each document of a batch, once the candidates among them are decided; errors; failures."""
        rows, ends, candidates, candidate_ends, errors = found
        failures: Failures = {}
        if not len(candidates):
            return rows, ends, errors, failures
        parts: list[RowArray] = []
        begin = candidate_begin = 0
        for number, (end, candidate_end) in enumerate(zip(ends.tolist(), candidate_ends.tolist(), strict=True)):
            part = rows[begin:end]
            if candidate_end > candidate_begin:
                asked = candidates[candidate_begin:candidate_end]
                decided, failed = self._decide(asked, lambda it=number: desk.views(document(it)))  # type: ignore[misc]
                part = _merged(part, decided)
                if failed:
                    failures[number] = self._by_id(failed)
            parts.append(part)
            begin, candidate_begin = end, candidate_end
        return np.concatenate(parts), np.cumsum([len(part) for part in parts], dtype=np.int64), errors, failures

    def _decide(
        self, candidates: RowArray, views: Callable[[], DocumentViews]
    ) -> tuple[list[int], dict[int, XsiftError]]:
        """Those of the candidates that match, and errors of those that cannot be decided."""
        failed = self._without_conditions((~candidates[candidates < 0]).tolist())
        asked = candidates[candidates >= 0]
        if not len(asked):
            return [], failed
        decided, more = self._decider.decide(asked, views())
        return decided, failed | more

    def _without_conditions(self, rows: Sequence[int]) -> dict[int, XsiftError]:
        """The error of rows that ask for conditions which were no longer tried."""
        error = SubscriptionError(
            "too-many-conditions",
            f"more than {self.limits.conditions:,} conditions hold in this document, "
            "and this subscription has one that many elements may hold (!=, <, contains(), not() …)",
            hint="allow more with Limits(conditions=…)",
        )
        return dict.fromkeys(rows, error)

    def _opened(self, document: DocumentSource, encoding: str | None = None) -> Document:
        """A document as a Document; in memory, if it may have to be looked at twice."""
        opened = Document(document, encoding=encoding)
        return opened.loaded(self.limits.bytes) if self._plan.evaluates else opened

    def _opened_or_error(self, document: DocumentSource | DocumentError) -> bytes | Document | DocumentError:
        if type(document) is bytes or isinstance(document, DocumentError):
            return document
        try:
            return self._opened(document)
        except DocumentError as error:
            return error

    def _by_id(self, failed: Mapping[int, XsiftError]) -> dict[str, XsiftError]:
        return {self._rows.id(row): error for row, error in failed.items()}

    def _report(self, failed: Mapping[int, XsiftError], failures: dict[str, XsiftError] | None) -> None:
        if failures is not None:
            failures.update(self._by_id(failed))
            return
        for id, error in self._by_id(failed).items():
            warnings.warn(f"subscription {id!r} could not be decided: {error}", FailureWarning, stacklevel=3)

    # Which nodes

    def select(
        self,
        document: DocumentSource,
        *,
        fragments: bool = False,
        encoding: str | None = None,
        failures: dict[str, XsiftError] | None = None,
    ) -> dict[str, list[Node]]:
        """For each subscription that a document matches, the nodes that it selects, in document order. Errors and
        `failures` are those of `match`.

        With `fragments=True` each node has its element as text that stands alone: with the namespaces and the
        xml:lang, xml:base and xml:space that are in scope.
        """
        with self._closer_look(document, encoding) as (rows, views, failed):
            nodes, more = self._selector.select(rows, views)
            if fragments and nodes:
                nodes, cut = _with_fragments(nodes, Fragments(views.document, views.elements, self.limits))
                more |= cut
            self._report(failed | more, failures)
        return {self._rows.id(row): found for row, found in nodes.items()}

    def tuples(
        self,
        document: DocumentSource,
        *,
        encoding: str | None = None,
        limit: int | None = None,
        failures: dict[str, XsiftError] | None = None,
    ) -> dict[str, list[tuple[int, ...]]]:
        """For each subscription that a document matches, every instantiation of its path: a tuple with the number of
        the element that each step stands for.

        There can be very many: `limit` bounds them for each subscription. Without it, a subscription that has more
        than Limits(steps=…, result_bytes=…) allow is a failure. One that is evaluated, or that selects no elements,
        has none to tell and is left out.
        """
        with self._closer_look(document, encoding) as (rows, views, failed):
            found, more = self._selector.tuples(rows, views, tuple_limit(limit))
            self._report(failed | more, failures)
        return {self._rows.id(row): tuples for row, tuples in found.items()}

    def explain(self, document: DocumentSource, id: str, *, encoding: str | None = None) -> Explanation:
        """Why a subscription matched a document, or where it stopped. Raises SubscriptionError if that costs more
        than the limits allow.
        """
        row = self._row(id)
        loaded = Document(document, encoding=encoding).loaded(self.limits.bytes)
        with self._desk() as desk:
            views = desk.views(loaded)
            if views.elements.narrowed and self._plan.broad_rows()[row]:
                raise self._without_conditions([row])[row]
            return explain_row(
                self._rows, row, self._symbols, views, self._decider, self._selector, self.limits.steps
            )

    def report(self, id: str) -> SubscriptionReport:
        """Which part of a subscription is indexed, and which is evaluated."""
        return report_row(self._rows, self._row(id), self._symbols)

    def _row(self, id: str) -> int:
        row = self._rows.row_among(text("id", id), self._removed)
        if row < 0:
            raise SubscriptionError("unknown-id", f"there is no subscription {id!r} in this matcher", id=id)
        return row

    @contextmanager
    def _closer_look(
        self, document: DocumentSource, encoding: str | None
    ) -> Iterator[tuple[list[int], DocumentViews, dict[int, XsiftError]]]:
        """The rows that a document matches, and the document for whoever looks closer. It is read once."""
        loaded = Document(document, encoding=encoding).loaded(self.limits.bytes)
        with self._desk() as desk:
            events = desk.events(loaded)
            rows, candidates = desk.worker.match_events(events)
            views = DocumentViews(loaded, desk.evaluator, lambda _: DocumentTree(events))
            views.events = events
            failed: dict[int, XsiftError] = {}
            if len(candidates):
                decided, failed = self._decide(candidates, lambda: views)
                rows = _merged(rows, decided)
            if events.narrowed:  # then it cannot be told where such rows match either
                broad = self._plan.broad_rows()[rows] == 1
                failed |= self._without_conditions(rows[broad].tolist())
                rows = rows[~broad]
            yield rows.tolist(), views, failed

    # Desks

    @contextmanager
    def _desk(self) -> Iterator[Desk]:
        """A desk that no other thread uses meanwhile."""
        try:
            desk = self._idle.pop()
        except IndexError:
            worker = Worker(self._plan, Reader(self._index, limits=self.limits))
            desk = Desk(worker, RowEvaluator(self._rows, limits=self.limits), self._index, self.limits)
        try:
            yield desk
        finally:
            desk.evaluator.end()
            self._idle.append(desk)

    # What it holds

    @property
    def ids(self) -> pa.LargeStringArray:
        """The ids of the subscriptions in this matcher, in the order in which they were added, as an Arrow array."""
        return self.row_ids.filter(pa.array(self._removed == 0))

    @property
    def row_ids(self) -> pa.LargeStringArray:
        """By row: its id, also of rows that were removed before the matcher was made. A match's `rows` are places in
        it.
        """
        if self._row_ids is None:
            blob, ends, row_ids = self._rows.distinct_ids()
            offsets = np.concatenate([[0], ends]).astype(np.int64)
            distinct = pa.LargeStringArray.from_buffers(len(ends), pa.py_buffer(offsets), pa.py_buffer(blob))
            self._row_ids = distinct.take(pa.array(row_ids[: self._plan.row_count]))
        return self._row_ids

    def memory(self) -> dict[str, int]:
        """Bytes held by the engines, by structure."""
        return _totals(segment.engine.memory() for segment in self._plan.segments)

    def counters(self) -> dict[str, int]:
        """Work done by the engines."""
        return _totals(segment.engine.counters() for segment in self._plan.segments)

    # Saving

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the matcher to a file, from which `Matcher.load` makes it again without parsing the
        subscriptions.
        """
        storage.write(path, *self._state())

    def _state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        arrays = {**self._rows.saved(self._removed), **saved_symbols(self._symbols)}
        segments = []
        for number, part in enumerate(self._built):
            saved = part.saved()
            segments.append(part.facts() | {"saved": saved is not None})
            arrays |= {f"{number}.{name}": array for name, array in (saved or {}).items()}
        facts = {
            "engine": self.engine,
            "options": self.options,
            "namespaces": self._mappings,
            "segments": segments,
        }
        return facts, arrays

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, limits: Limits | None = None, validate: bool = True) -> Matcher:
        """The matcher that was saved in a file. Raises StorageError if it is no such file, or is damaged.

        The file is mapped: processes that load the same one share its memory. As with a pickle, load only files that
        you trust.
        """
        try:
            return cls._restored(*storage.read(path), valid_limits(limits), validate)
        except (KeyError, ValueError, TypeError, IndexError, AttributeError, OverflowError, MemoryError) as error:
            raise StorageError("damaged-file", f"{os.fspath(path)} is damaged: {error}") from error

    @classmethod
    def _restored(
        cls, facts: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]], limits: Limits, validate: bool
    ) -> Matcher:
        if "engine" not in facts:
            raise StorageError("a-set", "the file holds a set", hint="Subscriptions.load(…).matcher()")
        symbols = restored_symbols(arrays)
        rows = Rows()
        rows.restore(arrays)
        mappings = [dict(mapping) for mapping in facts["namespaces"]]
        if len(rows) and rows.mappings_of_rows().max() >= len(mappings):
            raise ValueError("a row has namespaces that are not there")
        engine, reason = choose_engine(facts["engine"])
        segments = Segments(rows, symbols, engine, facts["options"])
        return cls(
            rows=rows,
            symbols=symbols,
            mappings=mappings,
            built=segments.restored(facts["segments"], arrays),
            limits=limits,
            engine=engine,
            options=facts["options"],
            reason=reason,
            validate=validate,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return (_unpickled, (storage.dumps(*self._state()), self.limits, self.validate))


def _next_batch(documents: Iterator[Source], size: int) -> tuple[list[Source], Exception | None]:
    """The next documents, at most so many, and the error that their source ended with."""
    batch: list[Source] = []
    try:
        for document in islice(documents, size):
            batch.append(document)
    except Exception as error:
        return batch, error
    return batch, None


def _unpickled(data: bytes, limits: Limits, validate: bool) -> Matcher:
    return Matcher._restored(*storage.loads(data), limits, validate)


def _with_fragments(
    nodes: Mapping[int, list[Node]], fragments: Fragments
) -> tuple[dict[int, list[Node]], dict[int, XsiftError]]:
    """The nodes of each row with their fragments, and errors of rows whose fragments are too many."""
    found: dict[int, list[Node]] = {}
    failures: dict[int, XsiftError] = {}
    for row, selected in nodes.items():
        try:
            found[row] = fragments.with_texts(selected)
        except SubscriptionError as error:
            failures[row] = error
    return found, failures


def saved_symbols(symbols: Symbols) -> dict[str, npt.NDArray[Any]]:
    """Names and conditions as arrays."""
    keys = [symbols.key(symbol) for symbol in range(len(symbols))]
    return {
        "symbols.bytes": np.frombuffer(b"".join(keys), dtype=np.uint8),
        "symbols.ends": np.cumsum([len(key) for key in keys], dtype=np.int64),
    }


def restored_symbols(arrays: Mapping[str, npt.NDArray[Any]]) -> Symbols:
    """Names and conditions from the arrays of saved_symbols."""
    symbols = Symbols()
    blob = arrays["symbols.bytes"].tobytes()
    begin = 0
    for symbol, end in enumerate(arrays["symbols.ends"].tolist()):
        if symbols.add_key(blob[begin:end]) != symbol:
            raise ValueError("its symbols are out of order")
        begin = end
    return symbols


def _totals(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for part in parts:
        for name, value in part.items():
            totals[name] = totals.get(name, 0) + value
    return totals


def _merged(rows: RowArray, more: Sequence[int]) -> RowArray:
    return np.sort(np.concatenate([rows, np.array(more, dtype=np.int32)])) if more else rows
