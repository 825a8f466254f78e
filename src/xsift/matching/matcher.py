"""Matcher: a frozen snapshot of a set of subscriptions, which matches documents.

Match, select and explain are separate calls, and each does its own work only. A matcher can be used from many
threads: what changes while a document is read is in a worker, and each call takes one that is free.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import islice
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from xsift.document import DocumentIndex, DocumentTree, Limits, Reader
from xsift.engines.evaluation import Evaluation
from xsift.errors import DocumentError, StorageError, SubscriptionError
from xsift.matching import storage
from xsift.matching.explanation import explain_pattern
from xsift.matching.results import Explanation, Match, Node
from xsift.matching.rows import Rows
from xsift.matching.segments import Built, Segments, choose_engine, make_plan
from xsift.matching.selection import Selector
from xsift.matching.verification import Verifier, lxml_tree
from xsift.matching.worker import Worker
from xsift.xpath.compiler import Compiler
from xsift.xpath.symbols import Symbols

if TYPE_CHECKING:
    from xsift.matching.worker import Found

__all__ = ["Matcher", "Source"]

Source = bytes | bytearray | memoryview | str | os.PathLike[str] | IO[bytes]
"""A document: its bytes, its text, a path, or a file opened for reading bytes."""

VERIFY = 1
BATCH = 16  # documents that a thread takes at a time in match_many: few, so that their results stay in the cache


class Matcher:
    """Matches documents against a snapshot of subscriptions. Made by `Subscriptions.matcher` or `Matcher.load`."""

    def __init__(
        self,
        *,
        rows: Rows,
        symbols: Symbols,
        compiler: Compiler,
        built: Sequence[Built],
        namespaces: Mapping[str, str],
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
        self._rows = rows
        self._symbols = symbols
        self._namespaces = dict(namespaces)
        self._built = list(built)
        self._plan = make_plan(rows, built, validate)
        self._index = DocumentIndex(symbols, [part.conditions for part in built if len(part.conditions)])
        self._verifier = Verifier(rows, compiler, namespaces)
        self._selector = Selector(rows, symbols, self._verifier, namespaces)
        self._idle: list[Worker] = []
        self._verifies = self._plan.verifies

    def __repr__(self) -> str:
        return f"<Matcher of {len(self)} subscriptions, engine {self.engine}>"

    def __len__(self) -> int:
        return int(self._plan.row_count)

    # Which subscriptions

    def match(self, document: Source, *, encoding: str | None = None) -> list[str]:
        """The ids of the subscriptions that a document matches, in the order in which they were added.

        Raises DocumentError if the document is not well-formed or passes a limit.
        """
        return self._rows.ids_of(self._matching_rows(document, encoding))

    def match_many(self, documents: Iterable[Source], *, threads: int = 1) -> Iterator[Match]:
        """A Match for each document, in their order; a broken document is an error in its Match, and the rest goes
        on.
        """
        if threads < 1:
            raise ValueError(f"threads is {threads}; at least 1")
        remaining = iter(documents)
        batches = iter(lambda: list(islice(remaining, BATCH)), [])
        if threads == 1:
            for batch in batches:
                yield from self._match_batch(batch)
            return
        with ThreadPoolExecutor(threads) as pool:
            pending: list[Future[list[Match]]] = []
            for batch in batches:
                pending.append(pool.submit(self._match_batch, batch))
                if len(pending) > 2 * threads:
                    yield from pending.pop(0).result()
            for future in pending:
                yield from future.result()

    def match_array(self, documents: pa.Array) -> tuple[pa.ListArray, dict[int, DocumentError]]:
        """The ids for each document of an Arrow array of strings or bytes, as an Arrow array of lists; a null for
        one that is broken, or is null itself. With it the errors, by the number of the document. No Python object
        is made a document or a match.
        """
        rows, ends, errors = self.match_array_rows(documents)
        starts = np.concatenate([[0], ends]).astype(np.int32)
        missing = np.zeros(len(documents), dtype=bool)
        missing[list(errors)] = True
        if documents.null_count:
            missing |= documents.is_null().to_numpy(zero_copy_only=False)
        offsets = pa.array(starts, mask=np.append(missing, False)) if missing.any() else pa.array(starts)
        return pa.ListArray.from_arrays(offsets, self.ids.take(pa.array(rows))), errors

    def match_array_rows(
        self, documents: pa.Array
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], dict[int, DocumentError]]:
        """match_array with the numbers of subscriptions (places in `ids`), all in one array, and where each
        document's end.
        """
        wide, validity, offsets, data = _buffers(documents)
        with self._worker() as worker:
            found = worker.match_buffers(len(documents), offsets, wide, data, validity, documents.offset)
        return self._verified(found, lambda number: _as_bytes(documents[number].as_py())[0])

    @property
    def ids(self) -> pa.LargeStringArray:
        """The ids of all subscriptions ever added, an Arrow array; a match's `rows` are places in it."""
        if len(self._ids_cache) < len(self._rows):
            self._ids_cache = _arrow_ids(self._rows)
        return self._ids_cache

    _ids_cache: pa.LargeStringArray = pa.array([], pa.large_string())

    def _match_batch(self, documents: Sequence[Source]) -> list[Match]:
        sources = [self._rereadable(document) for document in documents] if self._verifies else documents
        with self._worker() as worker:
            found = worker.match_batch(sources)
        rows, ends, errors = self._verified(found, lambda number: _as_bytes(sources[number])[0])
        make_ids = self._rows.ids_of
        matches, begin = [], 0
        for number, end in enumerate(ends.tolist()):
            matches.append(Match(rows, begin, end, make_ids, errors.get(number) if errors else None))
            begin = end
        return matches

    def _matching_rows(self, document: Source, encoding: str | None) -> npt.NDArray[np.int32]:
        source = self._rereadable(document)
        with self._worker() as worker:
            rows, candidates = worker.match(source, encoding=encoding)
        if not len(candidates):
            return rows
        return _merged(rows, self._verify(candidates, *_as_bytes(source, encoding)))

    def _verified(
        self, found: Found, xml_of: Callable[[int], bytes]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], dict[int, DocumentError]]:
        """Rows for each document once the candidates were verified."""
        rows, ends, candidates, candidate_ends, errors = found
        if not len(candidates):
            return rows, ends, errors
        parts: list[npt.NDArray[np.int32]] = []
        begin = candidate_begin = 0
        for number, (end, candidate_end) in enumerate(zip(ends.tolist(), candidate_ends.tolist(), strict=True)):
            part = rows[begin:end]
            if candidate_end > candidate_begin:
                try:
                    part = _merged(
                        part, self._verify(candidates[candidate_begin:candidate_end], xml_of(number), None)
                    )
                except DocumentError as error:
                    errors[number] = error
                    part = part[:0]
            parts.append(part)
            begin, candidate_begin = end, candidate_end
        return np.concatenate(parts), np.cumsum([len(part) for part in parts], dtype=np.int64), errors

    def _verify(self, candidates: npt.NDArray[np.int32], xml: bytes, encoding: str | None) -> npt.NDArray[np.int32]:
        xml_tree = cache(lambda: lxml_tree(xml, encoding))
        element_tree = cache(lambda: self._tree(xml, encoding))
        kept = self._verifier.verify(candidates.tolist(), xml_tree, element_tree)
        return np.array(kept, dtype=np.int32)

    # Which nodes

    def select(self, document: Source, *, encoding: str | None = None) -> dict[str, list[Node]]:
        """For each subscription that a document matches, the nodes that it selects, in document order."""
        xml, encoding = _as_bytes(document, encoding)
        rows = self._matching_rows(xml, encoding)
        tree = self._tree(xml, encoding)
        xml_tree = cache(lambda: lxml_tree(xml, encoding))
        nodes = self._selector.select(rows.tolist(), tree, xml_tree)
        return dict(zip(self._rows.ids_of(rows), nodes, strict=True))

    def tuples(
        self, document: Source, *, encoding: str | None = None, limit: int | None = None
    ) -> dict[str, list[tuple[int, ...]]]:
        """For each subscription that a document matches, every instantiation of its path: an element number a step.

        There can be very many: `limit` bounds them for each subscription. A subscription that is verified with
        lxml, or that selects no elements, has none to tell and is left out.
        """
        xml, encoding = _as_bytes(document, encoding)
        rows = self._matching_rows(xml, encoding)
        found = self._selector.tuples(rows.tolist(), self._tree(xml, encoding), limit)
        return {self._rows.id(row): tuples for row, tuples in found.items()}

    def explain(self, document: Source, id: str, *, encoding: str | None = None) -> Explanation:
        """Why a subscription matched a document, or where it stopped."""
        row = self._row(id)
        xml, encoding = _as_bytes(document, encoding)
        tree = self._tree(xml, encoding)
        compiled = self._verifier.compiled(row)
        patterns = [(str(pattern), explain_pattern(pattern, tree)) for pattern in compiled.patterns]
        passed = compiled.always or any(Evaluation(pattern, tree).matches() for pattern in compiled.patterns)
        verified = None
        if passed and not compiled.exact:
            passed = verified = self._verifier.holds(row, lxml_tree(xml, encoding))
        nodes = self._selector.select([row], tree, lambda: lxml_tree(xml, encoding))[0] if passed else []
        return Explanation(id, self._rows.text(row), passed, patterns, verified, compiled.residual, nodes)

    def _tree(self, xml: bytes, encoding: str | None) -> DocumentTree:
        reader = Reader(self._index, limits=self.limits, positions=True, keep_names=True)
        reader.open(xml, encoding=encoding)
        return DocumentTree(reader)

    def _row(self, id: str) -> int:
        row = int(self._rows.row_of(id))
        if row < 0 or row >= self._plan.kinds_count or self._plan.kind(row) == 2:
            raise SubscriptionError("unknown-id", f"there is no subscription {id!r} in this matcher", id=id)
        return row

    # Workers

    @contextmanager
    def _worker(self) -> Iterator[Worker]:
        """A worker that no other thread uses meanwhile."""
        try:
            worker = self._idle.pop()
        except IndexError:
            worker = Worker(self._plan, Reader(self._index, limits=self.limits))
        try:
            yield worker
        finally:
            self._idle.append(worker)

    def _rereadable(self, document: Source) -> Source:
        """A document that can be read a second time, if some row may have to be verified; else as it is."""
        if self._verifies and not isinstance(document, bytes | bytearray | memoryview | str):
            return _as_bytes(document)[0]
        return document

    # What it holds

    def memory(self) -> dict[str, int]:
        """Bytes held by the engines, by structure."""
        sizes: dict[str, int] = {}
        for segment in self._plan.segments:
            for name, size in segment.engine.memory().items():
                sizes[name] = sizes.get(name, 0) + size
        return sizes

    def counters(self) -> dict[str, int]:
        """Work done by the engines."""
        counts: dict[str, int] = {}
        for segment in self._plan.segments:
            for name, count in segment.engine.counters().items():
                counts[name] = counts.get(name, 0) + count
        return counts

    # Saving

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the matcher to a file, from which `Matcher.load` makes it again without parsing the
        subscriptions.
        """
        keys = [self._symbols.key(symbol) for symbol in range(len(self._symbols))]
        arrays: dict[str, npt.NDArray[Any]] = {
            **self._rows.saved(self._plan.removed_rows(len(self._rows))),
            "symbols.bytes": np.frombuffer(b"".join(keys), dtype=np.uint8),
            "symbols.ends": np.cumsum([len(key) for key in keys], dtype=np.int64),
        }
        segments = []
        for number, part in enumerate(self._built):
            saved = part.saved()
            segments.append(part.facts() | {"saved": saved is not None})
            arrays |= {f"{number}.{name}": array for name, array in (saved or {}).items()}
        facts = {
            "engine": self.engine,
            "options": self.options,
            "namespaces": self._namespaces,
            "segments": segments,
        }
        storage.write(path, facts, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, limits: Limits | None = None, validate: bool = True) -> Matcher:
        """The matcher that was saved in a file. Raises StorageError if it is no such file, or is damaged.

        The file is mapped: processes that load the same one share its memory. As with a pickle, load only files that
        you trust.
        """
        facts, arrays = storage.read(path)
        try:
            symbols = _restored_symbols(arrays)
            rows = Rows()
            rows.restore(arrays)
            engine, reason = choose_engine(facts["engine"])
            compiler = Compiler(symbols, namespaces=facts["namespaces"])
            segments = Segments(rows, symbols, compiler, engine, facts["options"])
            built = segments.restored(facts["segments"], arrays)
        except (KeyError, ValueError, TypeError) as error:
            raise StorageError("damaged-file", f"{os.fspath(path)} is damaged: {error}") from error
        return cls(
            rows=rows,
            symbols=symbols,
            compiler=compiler,
            built=built,
            namespaces=facts["namespaces"],
            limits=limits or Limits(),
            engine=engine,
            options=facts["options"],
            reason=reason,
            validate=validate,
        )


def _restored_symbols(arrays: Mapping[str, npt.NDArray[Any]]) -> Symbols:
    symbols = Symbols()
    blob = arrays["symbols.bytes"].tobytes()
    begin = 0
    for symbol, end in enumerate(arrays["symbols.ends"].tolist()):
        if symbols.add_key(blob[begin:end]) != symbol:
            raise ValueError("its symbols are out of order")
        begin = end
    return symbols


def _as_bytes(document: Source, encoding: str | None = None) -> tuple[bytes, str | None]:
    """A document's bytes, and the encoding that overrides what they say of themselves."""
    if isinstance(document, str):
        return document.encode("utf-8", "surrogatepass"), "utf-8"
    if isinstance(document, bytes | bytearray | memoryview):
        return bytes(document), encoding
    if isinstance(document, os.PathLike):
        with open(document, "rb") as file:
            return file.read(), encoding
    data = document.read()
    return _as_bytes(data, encoding)


def _merged(rows: npt.NDArray[np.int32], more: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    return np.sort(np.concatenate([rows, more]))


def _buffers(documents: pa.Array) -> tuple[bool, int, int, int]:
    """Whether offsets have 64 bits, and the addresses of the validity, offset and data buffers of an Arrow array."""
    kind = documents.type
    wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    if not (wide or pa.types.is_string(kind) or pa.types.is_binary(kind)):
        raise TypeError(f"documents must be an Arrow array of strings or bytes, not of {kind}")
    validity, offsets, data = documents.buffers()
    return wide, validity.address if validity else 0, offsets.address, data.address if data else 0


def _arrow_ids(rows: Rows) -> pa.LargeStringArray:
    blob, ends, row_ids = rows.distinct_ids()
    offsets = np.concatenate([[0], ends]).astype(np.int64)
    distinct = pa.LargeStringArray.from_buffers(len(ends), pa.py_buffer(offsets), pa.py_buffer(blob))
    return distinct.take(pa.array(row_ids))
