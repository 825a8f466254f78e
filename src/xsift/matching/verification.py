"""Verification: the part of a subscription that no engine can decide, on the documents that pass the part that one
can.

Two kinds of rows need it. An expression with a residual (positions, counting, other axes …) is evaluated with lxml,
on a tree that is built once a document. An ordered twig on an engine that knows no order was indexed as if
unordered, and is evaluated here on the document's elements.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lxml import etree

from xsift.document import DocumentTree
from xsift.engines.evaluation import Evaluation
from xsift.errors import DocumentError, SubscriptionError
from xsift.matching.rows import Rows
from xsift.xpath.compiled import Compiled
from xsift.xpath.compiler import Compiler

__all__ = ["Verifier", "lxml_tree"]

MOST_COMPILED = 10_000  # compiled lxml expressions kept, the least recently used go first


def lxml_tree(xml: bytes, encoding: str | None) -> Any:
    """The document as lxml sees it: no network, no external entities or DTD, whatever its size."""
    if encoding is not None:  # lxml does not know all the names that Python has for encodings
        xml, encoding = xml.decode(encoding).encode(), "utf-8"
    parser = etree.XMLParser(
        resolve_entities=True, no_network=True, load_dtd=False, huge_tree=True, strip_cdata=True, encoding=encoding
    )
    try:
        return etree.fromstring(xml, parser).getroottree()
    except etree.XMLSyntaxError as error:
        line, column = error.position or (0, 0)
        raise DocumentError(
            "not-verifiable", f"libxml2 does not read this document: {error.msg}", line=line, column=column
        ) from error


class Verifier:
    """Decides rows that passed their patterns. One for all threads: lxml's evaluators hold the GIL anyway."""

    def __init__(self, rows: Rows, compiler: Compiler, namespaces: Mapping[str, str]) -> None:
        self._rows = rows
        self._compiler = compiler
        self._namespaces = dict(namespaces)
        self._compiled: OrderedDict[int, Any] = OrderedDict()

    def compiled(self, row: int) -> Compiled:
        """What a row's expression comes to."""
        return self._compiler.compile(self._rows.text(row), ordered=self._rows.ordered(row))

    def verify(
        self, rows: Iterable[int], xml_tree: Callable[[], Any], element_tree: Callable[[], DocumentTree]
    ) -> list[int]:
        """Those of the rows that match. The trees are made by their functions, if at all."""
        return [row for row in rows if self._matches(row, xml_tree, element_tree)]

    def _matches(self, row: int, xml_tree: Callable[[], Any], element_tree: Callable[[], DocumentTree]) -> bool:
        if self._rows.ordered(row):
            tree = element_tree()
            return any(Evaluation(pattern, tree).matches() for pattern in self.compiled(row).patterns)
        return self.holds(row, xml_tree())

    def holds(self, row: int, xml_tree: Any) -> bool:
        """Whether a row's expression is true of a document, by lxml."""
        expression = self._compiled.get(row)
        if expression is None:
            residual = self.compiled(row).residual
            expression = etree.XPath(f"boolean({residual})", namespaces=self._namespaces)
            self._compiled[row] = expression
            if len(self._compiled) > MOST_COMPILED:
                self._compiled.popitem(last=False)
        else:
            self._compiled.move_to_end(row)
        return bool(self._evaluated(expression, row, xml_tree))

    def nodes(self, row: int, residual: str, xml_tree: Any) -> list[Any]:
        """The nodes that a row's expression selects, by lxml; none if it is no node-set."""
        expression = etree.XPath(residual, namespaces=self._namespaces)
        found = self._evaluated(expression, row, xml_tree)
        return found if isinstance(found, list) else []

    def _evaluated(self, expression: Any, row: int, xml_tree: Any) -> Any:
        try:
            return expression(xml_tree)
        except etree.XPathError as error:
            id = self._rows.id(row)
            raise SubscriptionError(
                "verification-failed", f"libxml2 cannot evaluate subscription {id!r}: {error}", id=id
            ) from error
