"""Subscriptions: a set of standing XPath expressions, and the matchers made from it.

A set is a list of rows (rows.pyx). A matcher is a frozen snapshot of it: segments (segments.py), each an engine
with the patterns of a range of rows, and a flag for each row. Matchers share the segments, so a new snapshot costs
what has changed since the last one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from xsift.document import Limits
from xsift.errors import SubscriptionError, XPathError, XsiftError
from xsift.matching.matcher import Matcher
from xsift.matching.results import SubscriptionReport
from xsift.matching.rows import Rows
from xsift.matching.segments import Segments, choose_engine
from xsift.xpath.compiler import Compiler
from xsift.xpath.symbols import Symbols

__all__ = ["Subscriptions"]

Errors = Literal["raise", "collect"]


class Subscriptions:
    """A set of subscriptions: ids and XPath expressions.

    `namespaces` maps the prefixes that expressions may use. `residuals="refuse"` refuses expressions of which only
    a part can be indexed; otherwise the rest is verified with lxml, which is exact, but takes time that the author
    of the expression decides.
    """

    def __init__(
        self, *, namespaces: Mapping[str, str] | None = None, residuals: Literal["verify", "refuse"] = "verify"
    ) -> None:
        if residuals not in ("verify", "refuse"):
            raise ValueError(f"residuals is {residuals!r}; it can be 'verify' or 'refuse'")
        self._namespaces = dict(namespaces or {})
        self._refuse_residuals = residuals == "refuse"
        self._symbols = Symbols()
        self._compiler = Compiler(self._symbols, namespaces=self._namespaces)
        self._rows = Rows()
        self._segments: dict[tuple[Any, ...], Segments] = {}

    # The set

    @property
    def namespaces(self) -> dict[str, str]:
        """The prefixes that expressions may use."""
        return dict(self._namespaces)

    def add(self, id: str, xpath: str, *, ordered: bool = False) -> None:
        """Adds a subscription.

        Raises XPathError if the expression cannot be used, SubscriptionError if there is a subscription with this id.
        """
        self._rows.add(id, xpath, ordered, self._compiler)
        if self._refuse_residuals:
            self._refuse_residual_of(id)

    def add_many(
        self, rows: pa.Table | Iterable[Sequence[Any]], *, errors: Errors = "raise"
    ) -> list[tuple[str, XsiftError]]:
        """Adds many subscriptions: an Arrow table with the columns id, xpath and perhaps ordered, or rows of (id,
        xpath) or (id, xpath, ordered).

        Returns (id, error) of those that cannot be used, with errors="collect"; else the first error is raised, and
        the rows before it stay.
        """
        if errors not in ("raise", "collect"):
            raise ValueError(f"errors is {errors!r}; it can be 'raise' or 'collect'")
        table = rows if isinstance(rows, pa.Table) else _table_of(rows)
        for column in ("id", "xpath"):
            if column not in table.column_names:
                there = ", ".join(map(repr, table.column_names))
                raise SubscriptionError(
                    "missing-column", f"the table has no column {column!r}", hint=f"it has {there}"
                )
        if self._refuse_residuals:
            return self._add_one_by_one(table, errors)
        failed: list[tuple[str, XsiftError]] = []
        for batch in table.to_batches():
            ids, texts = (batch[column].cast(pa.large_string()) for column in ("id", "xpath"))
            for column, values in (("id", ids), ("xpath", texts)):
                if values.null_count:
                    raise SubscriptionError("missing-value", f"the column {column!r} contains a null")
            ordered = _ordered_flags(batch)
            failed += self._rows.add_arrow(ids, texts, ordered, self._compiler, errors == "collect")
        return failed

    def _add_one_by_one(self, table: pa.Table, errors: Errors) -> list[tuple[str, XsiftError]]:
        failed: list[tuple[str, XsiftError]] = []
        for row in table.to_pylist():
            try:
                self.add(row["id"], row["xpath"], ordered=bool(row.get("ordered")))
            except XsiftError as error:
                if errors == "raise":
                    raise
                failed.append((row["id"], error))
        return failed

    def _refuse_residual_of(self, id: str) -> None:
        report = self.explain(id)
        if not report.exact:
            self._rows.remove(id)
            raise XPathError(
                "not-indexable",
                f"{report.reason} cannot be indexed",
                id=id,
                hint="this set was made with residuals='refuse', and takes only what can be indexed whole",
            )

    def remove(self, id: str) -> None:
        """Removes a subscription. Raises SubscriptionError if there is none with this id."""
        self._rows.remove(id)

    def __len__(self) -> int:
        return int(self._rows.count)

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and self._rows.row_of(id) >= 0

    def __iter__(self) -> Iterator[str]:
        """The ids, in the order in which they were added."""
        removed = self._rows.removed_rows()
        return (self._rows.id(row) for row in range(len(removed)) if not removed[row])

    def xpath(self, id: str) -> str:
        """The expression of a subscription, as it was given."""
        return str(self._rows.text(self._row(id)))

    def explain(self, id: str) -> SubscriptionReport:
        """Which part of a subscription is indexed, and which is verified."""
        row = self._row(id)
        text, ordered = self._rows.text(row), self._rows.ordered(row)
        compiled = self._compiler.compile(text, ordered=ordered)
        return SubscriptionReport(
            id=id,
            xpath=text,
            ordered=ordered,
            patterns=[str(pattern) for pattern in compiled.patterns],
            exact=compiled.exact,
            residual="" if compiled.exact else compiled.residual,
            reason=compiled.reason,
            always=compiled.always,
            never=compiled.never,
        )

    def _row(self, id: str) -> int:
        row = int(self._rows.row_of(id))
        if row < 0:
            raise SubscriptionError("unknown-id", f"there is no subscription {id!r}", id=id)
        return row

    def memory(self) -> dict[str, int]:
        """Bytes held, by structure; matchers not included."""
        return {**self._rows.memory(), "symbols": self._symbols.memory()}

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
        key = (name, *sorted(options.items()))
        if key not in self._segments:
            self._segments[key] = Segments(self._rows, self._symbols, self._compiler, name, options)
        built = self._segments[key].update()
        return Matcher(
            rows=self._rows,
            symbols=self._symbols,
            compiler=self._compiler,
            built=built,
            namespaces=self._namespaces,
            limits=limits or Limits(),
            engine=name,
            options=options,
            reason=reason,
            validate=validate,
        )


def _table_of(rows: Iterable[Sequence[Any]]) -> pa.Table:
    ids, texts, ordered = [], [], []
    for number, row in enumerate(rows, 1):
        if not 2 <= len(row) <= 3 or not isinstance(row[0], str) or not isinstance(row[1], str):
            raise SubscriptionError(
                "bad-row", f"row {number} is {row!r}", hint="a row is (id, xpath) or (id, xpath, ordered)"
            )
        ids.append(row[0])
        texts.append(row[1])
        ordered.append(bool(row[2]) if len(row) == 3 else False)
    columns = [pa.array(ids, pa.large_string()), pa.array(texts, pa.large_string()), pa.array(ordered, pa.bool_())]
    return pa.table(columns, names=["id", "xpath", "ordered"])


def _ordered_flags(batch: pa.RecordBatch) -> np.ndarray[Any, np.dtype[np.uint8]]:
    if "ordered" not in batch.schema.names:
        return np.zeros(batch.num_rows, dtype=np.uint8)
    flags = batch["ordered"].fill_null(False).to_numpy(zero_copy_only=False)
    return flags.astype(np.uint8)  # type: ignore[no-any-return]
