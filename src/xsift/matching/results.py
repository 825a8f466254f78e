"""What a matcher gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from xsift.errors import DocumentError, XsiftError
from xsift.matching.display import SHOWN, html_page, html_table, plural, printable, shortened

__all__ = ["ArrayMatches", "Explanation", "Match", "Node", "StepReport", "SubscriptionReport"]


class Node(NamedTuple):
    """A node that a subscription selects.

    For an element, `element` is its number, counted from 1 in document order, and document[start:end] is the element.
    An attribute, a text, a comment or a processing instruction is reported with the number and the bytes of the
    element that carries it. `fragment` is that element as text that stands alone, if it was asked for.
    """

    path: str
    element: int
    start: int
    end: int
    fragment: str | None = None

    @property
    def number(self) -> int:
        """The element's number, by its older name."""
        return self.element

    def __repr__(self) -> str:
        fragment = "" if self.fragment is None else f", fragment={self.fragment!r}"
        return f"Node(path={self.path!r}, element={self.element}, start={self.start}, end={self.end}{fragment})"


BatchRows: TypeAlias = tuple[
    npt.NDArray[np.int32],
    npt.NDArray[np.int64],
    npt.NDArray[np.int32],
    npt.NDArray[np.int64],
    dict[int, DocumentError],
]
"""What a worker found in a batch: rows that match and where each document's end; the same for rows that are still to
be evaluated; and, by number, the errors of documents."""

NO_FAILURES: Mapping[str, XsiftError] = MappingProxyType({})


class Match:
    """What one document gave: the ids of the subscriptions that it matches, or the error that it ended with.

    `failures` tells, by id, of subscriptions that could not be decided on this document; all others were. `label` is
    the document's, or None.
    """

    __slots__ = ("_begin", "_candidates", "_end", "_ids", "_make_ids", "_rows", "error", "failures", "label")

    def __init__(
        self,
        rows: npt.NDArray[np.int32],
        begin: int,
        end: int,
        make_ids: Callable[[npt.NDArray[np.int32]], list[str]],
        error: DocumentError | None = None,
        failures: Mapping[str, XsiftError] = NO_FAILURES,
        label: str | None = None,
        candidates: npt.NDArray[np.int32] | None = None,
    ) -> None:
        # Its rows are cut out of those of the batch when they are asked for: small documents are many.
        self._rows = rows
        self._begin = begin
        self._end = end
        self._make_ids = make_ids
        self._ids: list[str] | None = None
        self.error = error
        self.failures = failures
        self.label = label
        self._candidates = candidates

    @property
    def evaluated(self) -> list[str]:
        """The ids of subscriptions that the index could not decide, and that were evaluated on this document."""
        if self._candidates is None:
            return []
        return self._make_ids(self._candidates[self._candidates >= 0])  # others are undecided: see Worker.match

    @property
    def rows(self) -> npt.NDArray[np.int32]:
        """The subscriptions as numbers, ascending: places in `Matcher.row_ids`."""
        return self._rows[self._begin : self._end]

    @property
    def ids(self) -> list[str]:
        """The ids, in the order in which the subscriptions were added."""
        if self._ids is None:
            self._ids = self._make_ids(self.rows)
        return self._ids

    def __len__(self) -> int:
        return self._end - self._begin

    def __repr__(self) -> str:
        label = f", label={shortened(self.label)!r}" if self.label else ""
        failures = f", failures={dict(self.failures)!r}" if self.failures else ""
        return f"Match({f'error={self.error!r}' if self.error else self._first_ids()}{failures}{label})"

    def _first_ids(self) -> str:
        """The ids as a list; of many the first, and how many more there are."""
        shown = ", ".join(repr(shortened(id)) for id in self._make_ids(self.rows[:SHOWN]))
        more = len(self) - SHOWN
        return f"[{shown}, … {more:,} more]" if more > 0 else f"[{shown}]"

    def _repr_html_(self) -> str:
        name = self.label or "a document"
        if self.error is not None:
            return html_page(f"{name}: {self.error}", right=False)
        rows = [(id, "") for id in self._make_ids(self.rows[:SHOWN])]
        rows += [("…", f"{len(self) - SHOWN:,} more")] if len(self) > SHOWN else []
        rows += [(id, str(error)) for id, error in list(self.failures.items())[:SHOWN]]
        title = f"{name}: {plural(len(self), 'match')}"
        if self.failures:
            title += f", {plural(len(self.failures), 'failure')}"
        return html_page(title, html_table(("subscription", ""), rows) if rows else "")


class ArrayMatches(tuple[pa.ListArray, dict[int, DocumentError]]):
    """What an Arrow array of documents gave: `ids`, one list per document, and `errors`, by document number;
    it unpacks into these two. `failures` has, by the number of the document, the subscriptions that could not be
    decided on it.
    """

    failures: dict[int, Mapping[str, XsiftError]]

    def __new__(
        cls, ids: Any, errors: dict[int, DocumentError], failures: dict[int, Mapping[str, XsiftError]]
    ) -> ArrayMatches:
        self = super().__new__(cls, (ids, errors))
        self.failures = failures
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (*self, self.failures)

    @property
    def ids(self) -> pa.ListArray:
        """The ids of each document; a null for one that is broken, or is null itself."""
        return self[0]

    @property
    def errors(self) -> dict[int, DocumentError]:
        """The errors of broken documents, by number."""
        return self[1]


@dataclass(frozen=True)
class SubscriptionReport:
    """How a subscription is decided: which part is indexed, and what is evaluated on the documents that pass it."""

    id: str
    xpath: str
    ordered: bool
    patterns: list[str]
    """What is indexed: the subscription can match only if one of these does."""
    exact: bool
    """Whether the patterns decide alone."""
    residual: str
    """What is evaluated on the documents that pass the patterns; "" if nothing."""
    reason: str
    """The part of the expression that is not indexed; "" if all of it is."""
    always: bool = False
    never: bool = False

    @property
    def decided(self) -> str:
        """In a word: "indexed", if the index decides alone, or "evaluated". (One that is refused is not in a set.)"""
        return "indexed" if self.exact else "evaluated"

    def __str__(self) -> str:
        lines = [f"{self.id}: {self.xpath}" + (" (ordered)" if self.ordered else "")]
        if self.never:
            lines.append("  no document can match it")
        elif self.always and self.exact:
            lines.append("  every document matches it")
        else:
            lines += self._parts()
        return "\n".join(map(printable, lines))

    def _parts(self) -> list[str]:
        """What is indexed, and what is evaluated."""
        lines = ["  indexed:   nothing: it is evaluated on every document"] if self.always else []
        lines += [f"  indexed:   {pattern}" for pattern in self.patterns]
        if not self.exact:
            lines.append(f"  evaluated: {self.residual}")
            lines.append(f"  because:   {self.reason} cannot be indexed")
        return lines


@dataclass(frozen=True)
class StepReport:
    """How far one step of a pattern got in a document."""

    step: str
    depth: int
    found: int
    """Elements with this name at a place that the steps above allow."""
    satisfied: int
    """Those of them that also have all that the pattern asks for below."""
    hint: str = ""
    """Where the name is, if not here: in another namespace."""

    @property
    def counts(self) -> tuple[int, int]:
        """How many were found, and how many of them satisfied."""
        return self.found, self.satisfied

    def __str__(self) -> str:
        mark = "✓" if self.satisfied else "✗"
        hint = f" ({self.hint})" if self.hint else ""
        return f"{mark} {'  ' * self.depth}{self.step}: {self.found} found, {self.satisfied} satisfied{hint}"


@dataclass(frozen=True, repr=False)
class Explanation:
    """Why a subscription matched a document, or where it stopped."""

    id: str
    xpath: str
    matched: bool
    patterns: list[tuple[str, list[StepReport]]] = field(default_factory=list)
    evaluated: bool | None = None
    """What the evaluation of the expression gave; None if it was not needed."""
    residual: str = ""
    nodes: list[Node] = field(default_factory=list)

    @property
    def hints(self) -> list[str]:
        """What the steps that found nothing say: that the name is there in another namespace."""
        return list(dict.fromkeys(step.hint for _, steps in self.patterns for step in steps if step.hint))

    def __str__(self) -> str:
        lines = [f"{self.id}: {self.xpath}", "matches" if self.matched else "does not match"]
        for pattern, steps in self.patterns:
            lines.append(f"  pattern {pattern}")
            lines += [f"    {step}" for step in steps]
        if self.evaluated is not None:
            lines.append(f"  evaluated: {self.residual} is {'true' if self.evaluated else 'false'}")
        lines += [
            f"  selects {node.path} (element {node.element}, bytes {node.start} to {node.end})" for node in self.nodes
        ]
        return "\n".join(map(printable, lines))

    # Whoever asks for it in a terminal wants to read it.
    __repr__ = __str__

    def _repr_html_(self) -> str:
        title = f"{self.id}: {self.xpath} {'matches' if self.matched else 'does not match'}"
        rows = [
            ("✓" if step.satisfied else "✗", "\u00a0" * 4 * step.depth + step.step, *map(str, step.counts), step.hint)
            for _, steps in self.patterns
            for step in steps
        ]
        parts = [html_table(("", "step", "found", "satisfied", ""), rows)] if rows else []
        if self.evaluated is not None:
            parts.append(html_page(f"evaluated: {self.residual}", right=self.evaluated))
        if self.nodes:
            first = [(node.path, f"{node.element}", f"{node.start} to {node.end}") for node in self.nodes[:SHOWN]]
            first += [("…", f"{len(self.nodes) - SHOWN:,} more", "")] if len(self.nodes) > SHOWN else []
            parts.append(html_table(("selects", "element", "bytes"), first))
        return html_page(title, *parts, right=self.matched)
