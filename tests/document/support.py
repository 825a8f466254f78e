"""Conditions for tests, what lxml says of them, and what the reader says.

A condition is written as a `Spec`, encoded as Symbols keeps it (condition.hpp), and translated to an XPath expression
whose operand is a variable: so lxml sees exactly the same number or string, NaN and infinity included.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from lxml import etree

from xsift.document import ConditionIndex, DocumentIndex, DocumentTree, Reader
from xsift.xpath.symbols import Symbols

ATTRIBUTE, ANY_ATTRIBUTE, TEXT, STRING, NAMESPACE = range(5)
NONE, NORMALIZE, LENGTH, NORMALIZE_LENGTH = range(4)
EXISTS, EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, CONTAINS, STARTS_WITH = range(9)

OPERATORS = {EQUAL: "=", NOT_EQUAL: "!=", LESS: "<", LESS_EQUAL: "<=", GREATER: ">", GREATER_EQUAL: ">="}
TRANSFORMS = {
    NONE: "{}",
    NORMALIZE: "normalize-space({})",
    LENGTH: "string-length({})",
    NORMALIZE_LENGTH: "string-length(normalize-space({}))",
}


@dataclass(frozen=True)
class Spec:
    """A condition; see condition.hpp for what the fields mean. The operand is a number or a text."""

    subject: int = ATTRIBUTE
    comparison: int = EXISTS
    operand: str | float = ""
    attribute: str = ""
    transform: int = NONE
    converted: bool = False
    negated: bool = False

    def key(self) -> bytes:
        numeric = isinstance(self.operand, float)
        number, text = (self.operand, b"") if isinstance(self.operand, float) else (0.0, self.operand.encode())
        attribute = self.attribute.encode()
        head = bytes([self.subject, self.converted, self.transform, self.comparison, numeric, self.negated])
        return b"C" + head + struct.pack("<dI", number + 0.0 if number else 0.0, len(attribute)) + attribute + text

    def xpath(self) -> str:
        """The same in XPath 1.0, with the operand as $operand and the attribute's parts as $local and $uri."""
        nodes = self._nodes()
        if self.comparison == EXISTS:
            test = "true()" if self.converted or self.subject == NAMESPACE else f"boolean({nodes})"
        elif self.subject == NAMESPACE:
            test = self._test(nodes)
        elif self.converted:
            test = self._test(f"string({nodes})")
        elif self.transform == NONE and self.comparison in OPERATORS:
            test = f"{nodes} {OPERATORS[self.comparison]} $operand"  # XPath's own comparison of node-sets
        else:
            test = f"boolean({nodes}[{self._test('string(.)')}])"
        return f"not({test})" if self.negated else test

    def _nodes(self) -> str:
        if self.subject == ATTRIBUTE:
            return "@*[local-name() = $local and namespace-uri() = $uri]"
        if self.subject == ANY_ATTRIBUTE:
            return "@*[namespace-uri() = $uri]" if self.attribute else "@*"
        return {TEXT: "text()", STRING: "self::node()", NAMESPACE: "namespace-uri()"}[self.subject]

    def _test(self, value: str) -> str:
        value = TRANSFORMS[self.transform].format(value)
        if self.comparison == CONTAINS:
            return f"contains({value}, $operand)"
        if self.comparison == STARTS_WITH:
            return f"starts-with({value}, $operand)"
        return f"{value} {OPERATORS[self.comparison]} $operand"

    def holds(self, element: etree._Element) -> bool:
        """What lxml says."""
        uri, _, local = self.attribute.rpartition("\x1f")
        if self.subject == ANY_ATTRIBUTE:
            uri = self.attribute
        return bool(_compiled(self.xpath())(element, operand=self.operand, local=local, uri=uri))


@cache
def _compiled(expression: str) -> etree.XPath:
    return etree.XPath(expression)


class Asked:
    """Names and conditions that are asked for, and the reader for them."""

    def __init__(self, names: Iterable[str] = ("a", "b", "c")) -> None:
        self.symbols = Symbols()
        self.index = ConditionIndex(self.symbols)
        self.requests: list[tuple[str, Spec]] = []
        self.names = {"*": 0}
        for name in names:
            self.name(name)

    def name(self, name: str) -> int:
        """The symbol of "*", "local" or "{uri}local"."""
        if name not in self.names:
            uri, _, local = name.rpartition("}")
            self.names[name] = self.symbols.element(local, uri[1:])
        return self.names[name]

    def condition(self, spec: Spec) -> int:
        return self.symbols.add_key(spec.key())

    def add(self, name: str, *specs: Spec) -> Asked:
        for spec in specs:
            self.index.add(self.name(name), self.condition(spec))
            self.requests.append((name, spec))
        return self

    def remove(self, name: str, spec: Spec) -> None:
        self.index.remove(self.name(name), self.condition(spec))
        self.requests.remove((name, spec))

    def document_index(self) -> DocumentIndex:
        return DocumentIndex(self.symbols, [self.index])

    def reader(self, **options: Any) -> Reader:
        return Reader(self.document_index(), **options)

    def holding(self, document: bytes | str, reader: Reader | None = None) -> list[list[int]]:
        """What the reader says: for each element the conditions that hold, sorted. Duplicates would show."""
        tree = DocumentTree((reader or self.reader()).read(document))
        return [sorted(tree.conditions_of(number)) for number in range(1, len(tree) + 1)]

    def expected(self, document: bytes | str) -> list[list[int]]:
        """What lxml says."""
        root = etree.fromstring(document)
        return [
            sorted(
                {
                    self.condition(spec)
                    for name, spec in set(self.requests)
                    if self._is(element, name) and spec.holds(element)
                }
            )
            for element in root.iter("*")
        ]

    @staticmethod
    def _is(element: etree._Element, name: str) -> bool:
        return name in ("*", element.tag)
