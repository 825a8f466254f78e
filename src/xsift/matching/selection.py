"""Selection: which nodes the matching subscriptions select, and the tuples of elements that their paths run through.

An engine says which subscriptions match. Where they match is asked of those only: their patterns are evaluated on
the document's tree, each distinct one once. What patterns cannot tell (`@*`, text nodes, comments …) is evaluated.

A short subscription on a short document can select a great deal: `//a//a//a` has millions of tuples in a kilobyte.
So an evaluation has a budget of steps, and all that one document gives has a size (Limits.result_bytes). A row that
passes either is a failure of that row alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xsift.document import Limits
from xsift.engines.pattern_evaluation import PatternEvaluation
from xsift.errors import SubscriptionError, XsiftError
from xsift.matching.engine_tuples import NUMBER_BYTES, TUPLE_BYTES, engine_tuples, is_whole_path
from xsift.matching.evaluation import DocumentViews
from xsift.matching.results import Node
from xsift.matching.rows import Rows
from xsift.matching.segment import Segment
from xsift.xpath.meaning import Selection
from xsift.xpath.pattern import from_key
from xsift.xpath.symbols import Symbols

__all__ = ["Selector"]

XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"
NODE_BYTES = 256  # what a Node takes, about, beside its path
MOST_KEPT = 1 << 22  # elements in lists that are kept for other rows with the same pattern


class Room:
    """How much may still be given for one document. What a row took that fails is put back: it fails alone."""

    def __init__(self, limits: Limits) -> None:
        self._limit = limits.result_bytes
        self.left = limits.result_bytes

    def take(self, size: int) -> None:
        """Takes that many bytes. Raises SubscriptionError if fewer are left."""
        if size > self.left:
            raise SubscriptionError(
                "result-too-large",
                f"what subscriptions select in this document takes more than {self._limit:,} bytes",
                hint="ask for less (limit= of tuples), or allow more with Limits(result_bytes=…)",
            )
        self.left -= size


class Selector:
    """Finds the nodes of rows that match."""

    def __init__(
        self,
        rows: Rows,
        symbols: Symbols,
        mappings: Sequence[Mapping[str, str]],
        limits: Limits,
        tuple_segments: Sequence[Segment] = (),  # whose engines find tuples themselves
    ) -> None:
        self._tuple_segments = tuple_segments
        self._limits = limits
        self._rows = rows
        self._symbols = symbols
        self._mappings = mappings

    def select(self, rows: list[int], views: DocumentViews) -> tuple[dict[int, list[Node]], dict[int, XsiftError]]:
        """For each row the nodes that it selects, in document order; and errors of those that cannot be told."""
        found = _Found(views, self._symbols, self._limits)
        nodes: dict[int, list[Node]] = {}
        failures: dict[int, XsiftError] = {}
        for row in rows:
            left = found.room.left
            try:
                nodes[row] = self._nodes(row, found)
            except SubscriptionError as error:
                failures[row] = error
                found.room.left = left
        return nodes, failures

    def _nodes(self, row: int, found: _Found) -> list[Node]:
        meaning = self._rows.compiled(row, self._symbols)
        if meaning.listed or not meaning.exact:
            return found.listed(row)
        nodes: set[tuple[int, str]] = set()
        for key, selection in zip(meaning.keys, meaning.selections, strict=True):
            if selection.output >= 0:
                suffix = self._suffix(selection, row)
                nodes |= {(number, suffix) for number in found.elements(key, selection.output)}
        found.room.take(NODE_BYTES * len(nodes))
        return [found.node(number, suffix) for number, suffix in sorted(nodes)]

    def _suffix(self, selection: Selection, row: int) -> str:
        if selection.kind == "text":
            return "/text()"
        if selection.kind != "attribute":
            return ""
        uri, separator, local = selection.attribute.rpartition("\x1f")
        if not separator:
            return f"/@{local}"
        bound = self._mappings[self._rows.mapping(row)].items()
        prefix = next((prefix for prefix, meant in bound if meant == uri), "xml" if uri == XML_NAMESPACE else "")
        return f"/@{prefix}:{local}"

    def tuples(
        self, rows: list[int], views: DocumentViews, limit: int | None
    ) -> tuple[dict[int, list[tuple[int, ...]]], dict[int, XsiftError]]:
        """For each row whose patterns tell, the instantiations of its path; errors of those that have too many."""
        found = _Found(views, self._symbols, self._limits)
        result: dict[int, list[tuple[int, ...]]] = {}
        known, failed = self._from_engine(rows, views, limit)
        failures: dict[int, XsiftError] = dict(failed)
        for row in rows:
            if row in known:
                result[row] = known[row]
            if row in known or row in failed:
                continue
            meaning = self._rows.compiled(row, self._symbols)
            if meaning.exact and meaning.keys and all(selection.output >= 0 for selection in meaning.selections):
                paths = [(key, sel.output) for key, sel in zip(meaning.keys, meaning.selections, strict=True)]
                left = found.room.left
                try:
                    result[row] = list(_distinct(paths, found, limit))
                except SubscriptionError as error:
                    failures[row] = error
                    found.room.left = left
        return result, failures

    def _from_engine(
        self, rows: list[int], views: DocumentViews, limit: int | None
    ) -> tuple[dict[int, list[tuple[int, ...]]], dict[int, SubscriptionError]]:
        """What the engine finds of that itself; nothing, if it is not one that does, or it takes too long."""
        if not self._tuple_segments or views.events is None:
            return {}, {}
        whole = [row for row in rows if self._is_whole_path(row)]
        return engine_tuples(self._tuple_segments, whole, views.events, self._limits, limit) or ({}, {})

    def _is_whole_path(self, row: int) -> bool:
        meaning = self._rows.compiled(row, self._symbols)
        return (
            meaning.exact
            and bool(meaning.keys)
            and all(
                is_whole_path(from_key(key, self._symbols), selection.output)
                for key, selection in zip(meaning.keys, meaning.selections, strict=True)
            )
        )


def _distinct(paths: Sequence[tuple[bytes, int]], found: _Found, limit: int | None) -> dict[tuple[int, ...], None]:
    """The first `limit` different tuples of some patterns, in their order."""
    tuples: dict[tuple[int, ...], None] = {}
    for key, output in paths:
        for instantiation in found.evaluation(key).tuples(output):
            if limit is not None and len(tuples) >= limit:
                return tuples
            if instantiation not in tuples:
                found.room.take(TUPLE_BYTES + NUMBER_BYTES * len(instantiation))
                tuples[instantiation] = None
    return tuples


class _Found:
    """What was found out about one document so far: a pattern of many rows is evaluated once, as far as memory
    allows."""

    def __init__(self, views: DocumentViews, symbols: Symbols, limits: Limits) -> None:
        self.room = Room(limits)
        self._views = views
        self._tree = views.elements
        self._symbols = symbols
        self._steps = limits.steps
        self._elements: dict[tuple[bytes, int], list[int]] = {}
        self._kept = 0

    def evaluation(self, key: bytes) -> PatternEvaluation:
        return PatternEvaluation(from_key(key, self._symbols), self._tree, self._steps)

    def elements(self, key: bytes, output: int) -> list[int]:
        known = self._elements.get((key, output))
        if known is None:
            known = self.evaluation(key).select(output)
            if self._kept + len(known) > MOST_KEPT:
                self._elements.clear()
                self._kept = 0
            self._elements[key, output] = known
            self._kept += len(known)
        return known

    def node(self, number: int, suffix: str = "") -> Node:
        """An element as a Node, for which there must be room; its path takes more."""
        start, end = self._tree.span(number)
        path = self._tree.path(number) + suffix
        self.room.take(len(path))
        return Node(path, number, start, end)

    def listed(self, row: int) -> list[Node]:
        """The nodes that a row's expression gives when it is evaluated."""
        places = self._views.evaluator.select(row)
        self.room.take(NODE_BYTES * len(places))
        return [self.node(number, suffix) if number else self._outside(suffix) for number, suffix in places]

    def _outside(self, path: str) -> Node:
        """A comment or processing instruction beside the root element."""
        start, end = self._tree.span(1)
        return Node(path, 1, start, end)
