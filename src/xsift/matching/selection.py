"""Selection: which nodes the matching subscriptions select, and the tuples of elements that their paths run through.

An engine says which subscriptions match. Where they match is asked of those only: their patterns are evaluated on
the document's tree, each distinct one once. What patterns cannot tell (`@*`, text nodes, comments …) is evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from xsift.engines.evaluation import Evaluation
from xsift.errors import SubscriptionError, XsiftError
from xsift.matching.evaluation import DocumentViews
from xsift.matching.results import Node
from xsift.matching.rows import Rows
from xsift.xpath.compiled import Selection
from xsift.xpath.pattern import from_key
from xsift.xpath.symbols import Symbols

__all__ = ["Selector"]

XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"


class Selector:
    """Finds the nodes of rows that match."""

    def __init__(self, rows: Rows, symbols: Symbols, mappings: Sequence[Mapping[str, str]]) -> None:
        self._rows = rows
        self._symbols = symbols
        self._prefixes = [{uri: prefix for prefix, uri in mapping.items()} for mapping in mappings]

    def select(self, rows: list[int], views: DocumentViews) -> tuple[dict[int, list[Node]], dict[int, XsiftError]]:
        """For each row the nodes that it selects, in document order; and errors of those that cannot be told."""
        found = _Found(views, self._symbols)
        nodes: dict[int, list[Node]] = {}
        failures: dict[int, XsiftError] = {}
        for row in rows:
            try:
                nodes[row] = self._nodes(row, found)
            except SubscriptionError as error:
                failures[row] = error
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
        return [found.node(number, suffix) for number, suffix in sorted(nodes)]

    def _suffix(self, selection: Selection, row: int) -> str:
        if selection.kind == "text":
            return "/text()"
        if selection.kind != "attribute":
            return ""
        uri, separator, local = selection.attribute.rpartition("\x1f")
        if not separator:
            return f"/@{local}"
        prefix = self._prefixes[self._rows.mapping(row)].get(uri) or ("xml" if uri == XML_NAMESPACE else "")
        return f"/@{prefix}:{local}"

    def tuples(self, rows: list[int], views: DocumentViews, limit: int | None) -> dict[int, list[tuple[int, ...]]]:
        """For each row whose patterns tell, the instantiations of its path."""
        found = _Found(views, self._symbols)
        result: dict[int, list[tuple[int, ...]]] = {}
        for row in rows:
            meaning = self._rows.compiled(row, self._symbols)
            if meaning.exact and meaning.keys and all(selection.output >= 0 for selection in meaning.selections):
                tuples: dict[tuple[int, ...], None] = {}
                for key, selection in zip(meaning.keys, meaning.selections, strict=True):
                    for instantiation in found.evaluation(key).tuples(selection.output):
                        tuples.setdefault(instantiation)
                        if limit is not None and len(tuples) >= limit:
                            break
                result[row] = list(islice(tuples, limit))
        return result


class _Found:
    """What was found out about one document so far: patterns of many rows are evaluated once."""

    def __init__(self, views: DocumentViews, symbols: Symbols) -> None:
        self._views = views
        self._tree = views.elements
        self._symbols = symbols
        self._evaluations: dict[bytes, Evaluation] = {}
        self._elements: dict[tuple[bytes, int], list[int]] = {}

    def evaluation(self, key: bytes) -> Evaluation:
        if key not in self._evaluations:
            self._evaluations[key] = Evaluation(from_key(key, self._symbols), self._tree)
        return self._evaluations[key]

    def elements(self, key: bytes, output: int) -> list[int]:
        if (key, output) not in self._elements:
            self._elements[key, output] = self.evaluation(key).select(output)
        return self._elements[key, output]

    def node(self, number: int, suffix: str = "") -> Node:
        start, end = self._tree.span(number)
        return Node(self._tree.path(number) + suffix, number, start, end)

    def listed(self, row: int) -> list[Node]:
        """The nodes that a row's expression gives when it is evaluated."""
        return [
            self.node(number, suffix) if number else self._outside(suffix)
            for number, suffix in self._views.evaluator.select(row)
        ]

    def _outside(self, path: str) -> Node:
        """A comment or processing instruction beside the root element."""
        start, end = self._tree.span(1)
        return Node(path, 1, start, end)
