"""Selection: which nodes the matching subscriptions select, and the tuples of elements that their paths run through.

An engine says which subscriptions match. Where they match is asked of those only: their patterns are evaluated on
the document's tree, each distinct one once. What patterns cannot tell (residuals, `@*`, comments …) lxml lists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from lxml import etree

from xsift.document import DocumentTree
from xsift.engines.evaluation import Evaluation
from xsift.matching.results import Node
from xsift.matching.rows import Rows
from xsift.matching.verification import Verifier
from xsift.xpath.compiled import Compiled, Selection
from xsift.xpath.pattern import from_key
from xsift.xpath.symbols import Symbols

__all__ = ["Selector"]


class Selector:
    """Finds the nodes of rows that match."""

    def __init__(self, rows: Rows, symbols: Symbols, verifier: Verifier, namespaces: Mapping[str, str]) -> None:
        self._rows = rows
        self._symbols = symbols
        self._verifier = verifier
        self._prefixes = {uri: prefix for prefix, uri in namespaces.items()}

    def select(self, rows: list[int], tree: DocumentTree, xml_tree: Callable[[], Any]) -> list[list[Node]]:
        """For each row, the nodes that it selects, in document order."""
        found = _Found(tree, self._symbols, xml_tree)
        return [self._nodes(self._verifier.compiled(row), row, found) for row in rows]

    def _nodes(self, compiled: Compiled, row: int, found: _Found) -> list[Node]:
        if not compiled.exact or any(_is_listed(selection) for selection in compiled.selections):
            return found.listed(self._verifier, row, compiled.residual or self._rows.text(row))
        if compiled.always:
            return found.listed(self._verifier, row, compiled.residual) if compiled.residual else []
        nodes: set[tuple[int, str]] = set()
        for key, selection in zip(compiled.keys, compiled.selections, strict=True):
            if selection.output >= 0:
                suffix = self._suffix(selection)
                nodes |= {(number, suffix) for number in found.elements(key, selection.output)}
        return [found.node(number, suffix) for number, suffix in sorted(nodes)]

    def _suffix(self, selection: Selection) -> str:
        if selection.kind == "text":
            return "/text()"
        if selection.kind != "attribute":
            return ""
        uri, separator, local = selection.attribute.rpartition("\x1f")
        if not separator:
            return f"/@{local}"
        prefix = self._prefixes.get(uri) or ("xml" if uri == "http://www.w3.org/XML/1998/namespace" else "")
        return f"/@{prefix}:{local}"

    def tuples(self, rows: list[int], tree: DocumentTree, limit: int | None) -> dict[int, list[tuple[int, ...]]]:
        """For each row whose patterns tell, the instantiations of its path."""
        found = _Found(tree, self._symbols, lambda: None)
        result: dict[int, list[tuple[int, ...]]] = {}
        for row in rows:
            compiled = self._verifier.compiled(row)
            if compiled.exact and compiled.keys and all(selection.output >= 0 for selection in compiled.selections):
                tuples: dict[tuple[int, ...], None] = {}
                for key, selection in zip(compiled.keys, compiled.selections, strict=True):
                    for instantiation in found.evaluation(key).tuples(selection.output):
                        tuples.setdefault(instantiation)
                        if limit is not None and len(tuples) >= limit:
                            break
                result[row] = list(islice(tuples, limit))
        return result


def _is_listed(selection: Selection) -> bool:
    return selection.kind == "nodes" or selection.attribute.endswith("*")


class _Found:
    """What was found out about one document so far: patterns of many rows are evaluated once."""

    def __init__(self, tree: DocumentTree, symbols: Symbols, xml_tree: Callable[[], Any]) -> None:
        self._tree = tree
        self._symbols = symbols
        self._xml_tree = xml_tree
        self._evaluations: dict[bytes, Evaluation] = {}
        self._elements: dict[tuple[bytes, int], list[int]] = {}
        self._numbers: dict[Any, int] | None = None

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

    def listed(self, verifier: Verifier, row: int, expression: str) -> list[Node]:
        """The nodes as lxml lists them."""
        xml_tree = self._xml_tree()
        if self._numbers is None:
            self._numbers = {element: number for number, element in enumerate(xml_tree.iter("*"), 1)}
        return [self._listed_node(item, xml_tree) for item in verifier.nodes(row, expression, xml_tree)]

    def _listed_node(self, item: Any, xml_tree: Any) -> Node:
        assert self._numbers is not None
        if isinstance(item, tuple):  # a namespace node: (prefix, uri); lxml does not say of which element
            return self.node(1, f"/namespace::{item[0] or '*'}")
        if isinstance(item, str):
            parent = item.getparent()  # type: ignore[attr-defined]
            if item.is_attribute:  # type: ignore[attr-defined]
                return self.node(self._numbers[parent], f"/@{_prefixed(item.attrname, parent)}")  # type: ignore[attr-defined]
            owner = parent.getparent() if item.is_tail else parent  # type: ignore[attr-defined]
            return self.node(self._numbers[owner], "/text()")
        if item in self._numbers:
            return self.node(self._numbers[item])
        owner = item.getparent()
        suffix = "/comment()" if item.tag is etree.Comment else "/processing-instruction()"
        if owner is None:
            start, end = self._tree.span(1)
            return Node(xml_tree.getpath(item), 1, start, end)
        return self.node(self._numbers[owner], suffix)


def _prefixed(name: str, element: Any) -> str:
    if not name.startswith("{"):
        return name
    qualified = etree.QName(name)
    prefixes = {uri: prefix for prefix, uri in element.nsmap.items() if prefix}
    prefixes["http://www.w3.org/XML/1998/namespace"] = "xml"
    return f"{prefixes.get(qualified.namespace, '*')}:{qualified.localname}"
