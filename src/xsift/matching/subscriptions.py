"""Subscriptions: a set of standing XPath expressions, and the matchers made from it.

A set is a list of rows (rows.pyx). A matcher is a frozen snapshot of it: segments (segments.py), each an engine
with the patterns of a range of rows, and a flag for each row. Matchers share the segments, so a new snapshot costs
what has changed since the last one.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from xsift.document import Limits
from xsift.errors import StorageError, SubscriptionError, XPathError, XsiftError
from xsift.matching import storage
from xsift.matching.arguments import is_flag, text, valid_limits
from xsift.matching.display import SHOWN, html_page, html_table, printable, shortened
from xsift.matching.explanation import report_row
from xsift.matching.matcher import Matcher, restored_symbols, saved_symbols
from xsift.matching.options import Residuals
from xsift.matching.results import SubscriptionReport
from xsift.matching.rows import Rows, utf8
from xsift.matching.segments import Segments, choose_engine
from xsift.xpath.compiler import Compiler
from xsift.xpath.symbols import Symbols

__all__ = ["Subscriptions"]

Errors = Literal["raise", "collect"]
Failed = list[tuple[str, XsiftError]]
Unusable = dict[int, XsiftError]
"""By number, why rows cannot be used."""
NAMESPACES_TYPE = pa.map_(pa.string(), pa.string())
COLUMNS = {"id": pa.large_string(), "xpath": pa.large_string(), "ordered": pa.bool_()}
"""What `add_many` looks at in a table, beside namespaces."""


class Subscriptions:
    """A set of subscriptions: ids and XPath expressions.

    `namespaces` maps the prefixes that expressions may use; a subscription can bring more of its own.
    `residuals="refuse"` refuses expressions of which only a part can be indexed; otherwise they are evaluated on the
    documents that pass that part, within a budget (`Limits.steps`). A set may be changed by one thread
    while others use matchers that were made from it, or make new ones.

    What is added bit by bit is indexed bit by bit, and bits of similar size are merged when a matcher is made, which
    takes seconds for a large set. With `merge_at_most` larger bits than that are left to `compact`, so that whoever
    adds some and makes a matcher waits for no more than so many subscriptions.
    """

    def __init__(
        self,
        *,
        namespaces: Mapping[str, str] | None = None,
        residuals: Residuals = "verify",
        merge_at_most: int | None = None,
    ) -> None:
        if residuals not in get_args(Residuals):
            raise ValueError(f"residuals is {residuals!r}; it can be 'verify' or 'refuse'")
        self._refuse_residuals = residuals == "refuse"
        self._merge_at_most = merge_at_most
        self._symbols = Symbols()
        self._rows = Rows()
        self._segments: dict[str, Segments] = {}
        self._mappings: list[dict[str, str]] = []  # the set's own first; a row has the number of one
        self._compilers: list[Compiler] = []
        self._mapping_numbers: dict[tuple[tuple[str, str], ...], int] = {}
        self._lock = threading.RLock()
        self._mapping_of(dict(namespaces or {}))

    # The set

    @property
    def namespaces(self) -> dict[str, str]:
        """The prefixes that every expression may use."""
        return dict(self._mappings[0])

    def add(self, id: str, xpath: str, *, ordered: bool = False, namespaces: Mapping[str, str] | None = None) -> None:
        """Adds a subscription. `namespaces` are prefixes for this one alone, beside those of the set.

        Raises XPathError if the expression cannot be used, SubscriptionError if there is a subscription with this id.
        """
        text("id", id)
        text("xpath", xpath)
        if not is_flag(ordered):
            raise SubscriptionError("bad-value", f"ordered must be True or False, not {ordered!r:.80}", id=id)
        with self._lock:
            mapping = self._mapping_of({**self._mappings[0], **namespaces}) if namespaces else 0
            self._rows.add(
                id,
                xpath,
                self._compilers[mapping],
                ordered=bool(ordered),
                mapping=mapping,
                refuse_residuals=self._refuse_residuals,
            )

    def add_many(self, rows: pa.Table | Iterable[Sequence[Any]], *, errors: Errors = "raise") -> Failed:
        """Adds many subscriptions: an Arrow table with the columns id, xpath and perhaps ordered and namespaces (a
        map of prefixes), or rows of (id, xpath) or (id, xpath, ordered).

        Returns (id, error) of those that cannot be used, with errors="collect"; else the first error is raised, and
        the rows before it stay.
        """
        if errors not in get_args(Errors):
            raise ValueError(f"errors is {errors!r}; it can be 'raise' or 'collect'")
        table, unusable = (rows, {}) if isinstance(rows, pa.Table) else _table_of(rows)
        table = _with_types(table)
        failed: Failed = []
        number = 0
        with self._lock:
            for batch in table.to_batches():
                failed += self._add_batch(batch, number, errors == "collect", unusable)
                number += batch.num_rows
        return failed

    def _add_batch(self, batch: pa.RecordBatch, first: int, collect: bool, known: Unusable) -> Failed:
        """The rows of a batch, one run of equal namespaces after the other. An error has the number of its row."""
        numbers = np.arange(first, first + batch.num_rows)
        mappings, unusable = self._mappings_of(batch)
        missing = _missing_values(batch)
        for row in np.flatnonzero(missing).tolist():
            unusable[row] = known.get(first + row) or SubscriptionError(
                "missing-value", f"row {first + row + 1} has no id or no xpath"
            )
        failed: Failed = []
        for row, reason in unusable.items():
            reason.row = first + row
            name = f"row {first + row + 1}" if missing[row] else str(batch["id"][row].as_py())
            failed.append((name, reason))
        refused: XsiftError | None = None
        if unusable and not collect:  # the rows before it stay
            end = min(unusable)
            refused = unusable[end]
            batch, numbers, mappings = batch.slice(0, end), numbers[:end], mappings[:end]
        elif unusable:
            usable = np.ones(batch.num_rows, dtype=bool)
            usable[list(unusable)] = False
            batch, numbers, mappings = batch.filter(pa.array(usable)), numbers[usable], mappings[usable]
        failed += self._add_usable(batch, numbers, mappings, collect)
        if refused is not None:
            raise refused
        return sorted(failed, key=lambda pair: pair[1].row or 0)

    def _add_usable(
        self, batch: pa.RecordBatch, numbers: npt.NDArray[np.int64], mappings: npt.NDArray[np.int64], collect: bool
    ) -> Failed:
        """Rows that have all that they need. `numbers` are their places in what was given."""
        failed: Failed = []
        ordered = _ordered_flags(batch)
        for begin, end in _runs(mappings):
            try:
                refused = self._rows.add_arrow(
                    batch["id"].slice(begin, end - begin),
                    batch["xpath"].slice(begin, end - begin),
                    ordered[begin:end],
                    self._compilers[mappings[begin]],
                    mapping=int(mappings[begin]),
                    collect=collect,
                    refuse_residuals=self._refuse_residuals,
                )
            except XsiftError as error:
                error.row = int(numbers[begin + (error.row or 0)])
                raise
            for _, reason in refused:
                assert reason.row is not None
                reason.row = int(numbers[begin + reason.row])
            failed += refused
        return failed

    def _mappings_of(self, batch: pa.RecordBatch) -> tuple[npt.NDArray[np.int64], dict[int, XsiftError]]:
        """The number of the namespaces of each row, and errors of those that cannot be."""
        mappings = np.zeros(batch.num_rows, dtype=np.int64)
        errors: dict[int, XsiftError] = {}
        if "namespaces" in batch.schema.names:
            for row, value in enumerate(batch["namespaces"].to_pylist()):
                if isinstance(value, dict):  # a struct, which has all prefixes in all rows
                    value = [(prefix, uri) for prefix, uri in value.items() if uri is not None]
                if value:
                    try:
                        mappings[row] = self._mapping_of({**self._mappings[0], **dict(value)})
                    except XPathError as error:
                        errors[row] = error
        return mappings, errors

    def _mapping_of(self, namespaces: Mapping[str, str]) -> int:
        """The number of a mapping of prefixes, new or known."""
        key = tuple(sorted(namespaces.items()))
        if key not in self._mapping_numbers:
            compiler = Compiler(self._symbols, namespaces=namespaces)  # raises if a prefix cannot be one
            self._mapping_numbers[key] = len(self._mappings)
            self._mappings.append(dict(namespaces))
            self._compilers.append(compiler)
        return self._mapping_numbers[key]

    def remove(self, id: str) -> None:
        """Removes a subscription. Raises SubscriptionError if there is none with this id."""
        with self._lock:
            self._rows.remove(text("id", id))

    def __len__(self) -> int:
        return self._rows.count

    def __repr__(self) -> str:
        shown = [repr(shortened(id)) for id, _ in self._first()]
        more = [f"… {len(self) - len(shown):,} more"] if len(self) > len(shown) else []
        return f"<Subscriptions: {len(self):,}{': ' if shown else ''}{', '.join(shown + more)}>"

    def __str__(self) -> str:
        rows = [(printable(shortened(id)), printable(shortened(text))) for id, text in self._first()]
        width = max((len(id) for id, _ in rows), default=0)
        lines = [f"{id:{width}}  {text}" for id, text in rows]
        if len(self) > len(rows):
            lines.append(f"… {len(self) - len(rows):,} more")
        return "\n".join(lines) if lines else "no subscriptions"

    def _repr_html_(self) -> str:
        rows = self._first()
        rows += [("…", f"{len(self) - len(rows):,} more")] if len(self) > len(rows) else []
        return html_page(f"Subscriptions: {len(self):,}", html_table(("id", "xpath"), rows) if rows else "")

    def _first(self) -> list[tuple[str, str]]:
        """The first ids and expressions: what there is room for."""
        with self._lock:
            return [(id, self.xpath(id)) for id in islice(self, SHOWN)]

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and self._rows.row_of(id) >= 0

    def __iter__(self) -> Iterator[str]:
        """The ids, in the order in which they were added."""
        removed = self._rows.removed_rows()
        return (self._rows.id(row) for row in range(len(removed)) if not removed[row])

    def xpath(self, id: str) -> str:
        """The expression of a subscription, as it was given."""
        return self._rows.text(self._row(id))

    def table(self) -> pa.Table:
        """The set as an Arrow table: id, xpath, ordered, and what a subscription's namespaces are. `add_many` takes
        it.
        """
        with self._lock:
            blob, ends, row_ids = self._rows.distinct_ids()
            texts, text_ends = self._rows.expressions()
            flags, mappings = self._rows.flags_of_rows(), self._rows.mappings_of_rows()
            live = pa.array(self._rows.removed_rows() == 0)
            namespaces = pa.array([list(mapping.items()) for mapping in self._mappings], NAMESPACES_TYPE)
        ids = _strings(blob, ends).take(pa.array(row_ids))
        ordered = pa.array(flags & ORDERED != 0)
        columns = [ids, _strings(texts, text_ends), ordered, namespaces.take(pa.array(mappings))]
        return pa.table(columns, names=["id", "xpath", "ordered", "namespaces"]).filter(live)

    def explain(self, id: str) -> SubscriptionReport:
        """Which part of a subscription is indexed, and which is evaluated."""
        with self._lock:
            return report_row(self._rows, self._row(id), self._symbols)

    def _row(self, id: str) -> int:
        row = self._rows.row_of(text("id", id))
        if row < 0:
            raise SubscriptionError("unknown-id", f"there is no subscription {id!r}", id=id)
        return row

    def memory(self) -> dict[str, int]:
        """Bytes held, by structure; matchers not included."""
        return {**self._rows.memory(), "symbols": self._symbols.memory()}

    # Saving

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the set to a file, from which `Subscriptions.load` makes it again without parsing it. The file is
        one of this version of xsift; to keep a set for long, or for others, use a table (xsift.tables) or `table()`.
        """
        with self._lock:
            arrays = {**self._rows.saved(self._rows.removed_rows()), **saved_symbols(self._symbols)}
            residuals = "refuse" if self._refuse_residuals else "verify"
            storage.write(path, {"namespaces": self._mappings, "residuals": residuals}, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Subscriptions:
        """The set that was saved in a file, by itself or as part of a matcher. Raises StorageError if it is no such
        file, or is damaged. As with a pickle, load only files that you trust.
        """
        facts, arrays = storage.read(path)
        try:
            first, *others = [dict(mapping) for mapping in facts["namespaces"]]
            made = cls(namespaces=first, residuals=facts.get("residuals", "verify"))
            made._symbols = restored_symbols(arrays)
            made._compilers = [Compiler(made._symbols, namespaces=first)]
            for mapping in others:
                made._mapping_of(mapping)
            made._rows.restore(arrays)
            if len(made._rows) and made._rows.mappings_of_rows().max() >= len(made._mappings):
                raise ValueError("a row has namespaces that are not there")
        except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
            raise StorageError("damaged-file", f"{os.fspath(path)} is damaged: {error}") from error
        return made

    # Matchers

    def matcher(
        self, engine: str = "auto", *, limits: Limits | None = None, validate: bool = True, **options: Any
    ) -> Matcher:
        """A frozen snapshot that matches documents. What follows `engine` are options of that engine.

        `limits` bounds what a document may cost. With `validate=False` the rest of a document is not read once every
        subscription is decided, so that an error there goes unnoticed. Later changes of the set do not show in the
        matcher: ask for another one; it shares with this one whatever did not change.
        """
        name, reason = choose_engine(engine)
        key = f"{name} {sorted(options.items())}"  # values may be of any kind: the engine says which it takes
        with self._lock:
            if key not in self._segments:
                self._segments[key] = Segments(self._rows, self._symbols, name, options, self._merge_at_most)
            return Matcher(
                rows=self._rows,
                symbols=self._symbols,
                mappings=self._mappings,
                built=self._segments[key].update(),
                limits=valid_limits(limits),
                engine=name,
                options=options,
                reason=reason,
                validate=validate,
            )

    def compact(self) -> bool:
        """Merges what was indexed bit by bit, as it was added, into one index: matchers that are made afterwards are
        as fast as if all had been added at once. Takes as long as that, seconds for a million; other threads may
        match, change the set and make matchers meanwhile. Returns whether there was anything worth merging.
        """
        with self._lock:
            begun = [(segments, segments.begin_merging()) for segments in self._segments.values()]
        for segments, end in begun:
            merged = None
            try:
                merged = segments.merged(end) if end else None
            finally:
                if end:
                    with self._lock:
                        segments.end_merging(merged)
        return any(end for _, end in begun)


ORDERED = 4  # RowFlag in rows.pxd


def _table_of(rows: Iterable[Sequence[Any]]) -> tuple[pa.Table, Unusable]:
    """Rows as a table, and the errors of those that are none, by number: these have no id in the table."""
    ids: list[str | None] = []
    texts: list[str | None] = []
    ordered: list[bool] = []
    unusable: Unusable = {}
    for number, row in enumerate(rows):
        if (
            # Whether something is a sequence takes as long as all the rest: tuples are known to be.
            (type(row) is not tuple and (not isinstance(row, Sequence) or isinstance(row, str | bytes)))
            or not 2 <= len(row) <= 3
            or not isinstance(row[0], str)
            or not isinstance(row[1], str)
            or not (len(row) == 2 or is_flag(row[2]))
        ):
            unusable[number] = SubscriptionError(
                "bad-row",
                f"row {number + 1} is {row!r}",
                hint="a row is (id, xpath) or (id, xpath, ordered); ordered is True or False",
            )
            row = (None, None)
        ids.append(row[0])
        texts.append(row[1])
        ordered.append(bool(row[2]) if len(row) == 3 else False)
    try:
        columns = [pa.array(ids, pa.large_string()), pa.array(texts, pa.large_string())]
    except UnicodeEncodeError:  # halves of surrogate pairs, which Python lets into a str
        for number, (id, xpath) in enumerate(zip(ids, texts, strict=True)):
            try:
                utf8(id or "", "id")
                utf8(xpath or "", "expression")
            except XsiftError as error:
                unusable[number] = error
                ids[number] = None
        texts = [None if id is None else xpath for id, xpath in zip(ids, texts, strict=True)]
        columns = [pa.array(ids, pa.large_string()), pa.array(texts, pa.large_string())]
    return pa.table([*columns, pa.array(ordered, pa.bool_())], names=["id", "xpath", "ordered"]), unusable


def _with_types(table: pa.Table) -> pa.Table:
    """The columns of a table that are used, with the types that they need. Raises SubscriptionError if that cannot
    be."""
    columns = {}
    for name in (*COLUMNS, "namespaces"):
        if table.column_names.count(name) > 1:
            raise SubscriptionError("bad-column", f"the table has several columns {name!r}")
        if name in table.column_names:
            columns[name] = _with_type(name, table[name])
        elif name in ("id", "xpath"):
            there = ", ".join(map(repr, table.column_names))
            raise SubscriptionError("missing-column", f"the table has no column {name!r}", hint=f"it has {there}")
    return pa.table(columns)


def _with_type(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if name == "namespaces":
        if pa.types.is_map(kind) or pa.types.is_struct(kind) or pa.types.is_null(kind):
            return column
        raise SubscriptionError("bad-column", f"the column 'namespaces' is of type {kind}, not a map of strings")
    try:
        return column.cast(COLUMNS[name])
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        reason = f"the column {name!r}, of type {kind}, cannot be read as {COLUMNS[name]}: {error}"
        raise SubscriptionError("bad-column", reason) from error


def _missing_values(batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
    """Which rows have no id or no expression."""
    missing = np.zeros(batch.num_rows, dtype=bool)
    for column in ("id", "xpath"):
        if batch[column].null_count:
            missing |= batch[column].is_null().to_numpy(zero_copy_only=False)
    return missing


def _runs(mappings: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Ranges of rows with equal namespaces."""
    if not len(mappings):
        return
    begins = [0, *(np.flatnonzero(np.diff(mappings)) + 1).tolist()]
    yield from zip(begins, [*begins[1:], len(mappings)], strict=True)


def _ordered_flags(batch: pa.RecordBatch) -> npt.NDArray[np.uint8]:
    if "ordered" not in batch.schema.names:
        return np.zeros(batch.num_rows, dtype=np.uint8)
    flags = batch["ordered"].fill_null(False).to_numpy(zero_copy_only=False)
    return flags.astype(np.uint8)  # type: ignore[no-any-return]


def _strings(blob: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64]) -> pa.LargeStringArray:
    offsets = np.concatenate([[0], ends]).astype(np.int64)
    return pa.LargeStringArray.from_buffers(len(ends), pa.py_buffer(offsets), pa.py_buffer(blob))
