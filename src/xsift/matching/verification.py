"""Verification: the part of a subscription that no engine can decide, on the documents that pass the part that one
can.

Two kinds of rows need it. An expression with a residual (positions, counting, other axes …) is evaluated with lxml,
on a tree that is built once a document. An ordered twig on an engine that knows no order was indexed as if
unordered, and is evaluated here on the document's elements. A row that cannot be decided is a failure of that row
alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from lxml import etree

from xsift.document import Document, DocumentTree
from xsift.engines.evaluation import Evaluation
from xsift.errors import SubscriptionError, XsiftError
from xsift.matching.rows import Rows
from xsift.xpath.symbols import Symbols

__all__ = ["DocumentViews", "Verifier"]

MOST_COMPILED = 10_000  # compiled lxml expressions kept, the least recently used go first


class DocumentViews:
    """One document as those see it who look closer than engines: as a tree of elements, and as lxml's tree. Each is
    made when it is first asked for."""

    def __init__(self, document: Document, make_elements: Callable[[Document], DocumentTree]) -> None:
        self._document = document
        self._make_elements = make_elements
        self._elements: DocumentTree | None = None
        self._nodes: Any = None

    @property
    def elements(self) -> DocumentTree:
        """The elements, with their positions and names."""
        if self._elements is None:
            self._elements = self._make_elements(self._document)
        return self._elements

    @property
    def nodes(self) -> Any:
        """lxml's tree. Raises SubscriptionError if libxml2 cannot make one."""
        if self._nodes is None:
            self._nodes = _lxml_tree(self._document)
        return self._nodes


def _lxml_tree(document: Document) -> Any:
    """The document as lxml sees it: no network, no external entities or DTD, whatever its size. The document was read
    without an error before: what libxml2 refuses on top of that (two elements with one id, namespaces that are no
    URIs), it is told to pass over."""
    xml, encoding = bytes(document.source), document.encoding
    if encoding is not None:  # lxml does not know all the names that Python has for encodings
        xml, encoding = xml.decode(encoding).encode(), "utf-8"
    parser = etree.XMLParser(
        resolve_entities=True,
        no_network=True,
        load_dtd=False,
        huge_tree=True,
        strip_cdata=True,
        recover=True,
        encoding=encoding,
    )
    try:
        root = etree.fromstring(xml, parser)
    except etree.XMLSyntaxError as error:
        raise SubscriptionError("not-verifiable", f"libxml2 does not read this document: {error.msg}") from error
    if root is None:
        raise SubscriptionError("not-verifiable", "libxml2 does not read this document")
    return root.getroottree()


class Verifier:
    """Decides rows that passed their patterns. One for all threads."""

    def __init__(self, rows: Rows, symbols: Symbols, mappings: Sequence[Mapping[str, str]]) -> None:
        self._rows = rows
        self._symbols = symbols
        self._mappings = mappings
        self._expression = lru_cache(MOST_COMPILED)(self._compiled)

    def decide(self, rows: Iterable[int], views: DocumentViews) -> tuple[list[int], dict[int, XsiftError]]:
        """Those of the rows that match, and errors of those that cannot be decided."""
        kept: list[int] = []
        failures: dict[int, XsiftError] = {}
        for row in rows:
            try:
                if self.holds(row, views):
                    kept.append(row)
            except SubscriptionError as error:
                failures[row] = error
        return kept, failures

    def holds(self, row: int, views: DocumentViews) -> bool:
        """Whether a row that passed its patterns matches."""
        meaning = self._rows.compiled(row, self._symbols)
        if self._rows.ordered(row):
            return any(Evaluation(pattern, views.elements).matches() for pattern in meaning.patterns)
        return bool(self._evaluated(f"boolean({meaning.residual})", row, views))

    def nodes(self, row: int, views: DocumentViews) -> list[Any]:
        """The nodes that a row's expression selects, by lxml; none if it is no node-set."""
        found = self._evaluated(self._rows.compiled(row, self._symbols).residual, row, views)
        return found if isinstance(found, list) else []

    def _compiled(self, residual: str, mapping: int) -> Any:
        return etree.XPath(residual, namespaces=self._mappings[mapping])

    def _evaluated(self, residual: str, row: int, views: DocumentViews) -> Any:
        try:
            return self._expression(residual, self._rows.mapping(row))(views.nodes)
        except etree.XPathError as error:
            id = self._rows.id(row)
            raise SubscriptionError(
                "verification-failed", f"libxml2 cannot evaluate subscription {id!r}: {error}", id=id
            ) from error
