"""The two sides of the tests: what lxml says, and what patterns say if they are evaluated as naively as possible."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import lxml.etree as etree

from xsift.xpath.meaning import Meaning
from xsift.xpath.number import number
from xsift.xpath.pattern import Pattern
from xsift.xpath.symbols import Symbols

NAMESPACES = {"n": "urn:n", "m": "urn:m"}

_OPERATORS = [
    None,
    lambda a, b: a == b,
    lambda a, b: a != b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
    lambda a, b: b in a,
    lambda a, b: a.startswith(b),
]


# --- lxml


@cache
def _evaluator(text: str) -> Callable[[etree._Element | etree._ElementTree], Any]:
    return etree.XPath(text, namespaces=NAMESPACES)


def says(text: str, tree: etree._ElementTree) -> bool:
    """boolean() of an expression."""
    return bool(_evaluator(f"boolean({text})")(tree))


def owners(text: str, tree: etree._ElementTree) -> set[etree._Element]:
    """The elements that an expression selects, or that carry or contain the attributes and text that it selects."""
    found = set()
    for node in _evaluator(text)(tree):
        if isinstance(node, etree._Element):
            found.add(node)
        elif node.is_tail:
            found.add(node.getparent().getparent())
        else:
            found.add(node.getparent())
    return found


# --- patterns


@dataclass(frozen=True)
class Condition:
    """condition.hpp's Condition, read from its key."""

    subject: int
    converted: int
    transform: int
    comparison: int
    numeric: int
    negated: int
    number: float
    attribute: str
    text: str
    recipe: bytes = b""

    @staticmethod
    @cache
    def decode(key: bytes) -> Condition:
        assert key[:1] == b"C"
        (value,) = struct.unpack_from("=d", key, 7)
        (length,) = struct.unpack_from("=I", key, 15)
        attribute, rest, recipe = key[19 : 19 + length].decode(), key[19 + length :], b""
        head = bytearray(key[1:7])
        if head[2] & 0x80:
            head[2] &= 0x7F
            (length,) = struct.unpack_from("=I", rest)
            recipe, rest = rest[4 : 4 + length], rest[4 + length :]
        subject, converted, transform, comparison, numeric, negated = head
        return Condition(
            subject, converted, transform, comparison, numeric, negated, value, attribute, rest.decode(), recipe
        )

    def values(self, element: etree._Element) -> list[str]:
        if self.subject == 0:
            uri, _, local = self.attribute.rpartition("\x1f")
            value = element.get(f"{{{uri}}}{local}" if uri else local)
            return [] if value is None else [value]
        if self.subject == 1:
            prefix = f"{{{self.attribute}}}" if self.attribute else ""
            return [str(value) for name, value in element.attrib.items() if str(name).startswith(prefix)]
        if self.subject == 2:
            return [str(text) for text in _evaluator("text()")(element)]
        if self.subject == 3:
            return [str(_evaluator("string()")(element))]
        return [etree.QName(element).namespace or ""]

    def holds(self, element: etree._Element) -> bool:
        values = self.values(element)
        if self.converted:
            values = values[:1] or [""]
        return any(map(self._passes, values)) != bool(self.negated)

    def _passes(self, value: str) -> bool:
        if self.comparison == 0:
            return True
        value = changed(value, self.recipe)
        operand: object = self.text
        found: object = value
        if self.transform in (1, 3):
            found = value = re.sub(r"[ \t\r\n]+", " ", value).strip(" ")
        if self.transform in (2, 3):
            found = float(len(value))
        elif self.numeric:
            found = number(value)
        if self.numeric:
            operand = self.number
        operator = _OPERATORS[self.comparison]
        assert operator is not None
        return bool(operator(found, operand))


def changed(value: str, recipe: bytes) -> str:
    """What a recipe (recipe.hpp) makes of a value, by lxml's functions."""
    while recipe:
        change, recipe = recipe[:1], recipe[1:]
        if change == b"N":
            value = str(_function("normalize-space($value)")(_NOTHING, value=value))
            continue
        if change == b"S":
            start, length, has_length = struct.unpack_from("=ddB", recipe)
            recipe = recipe[17:]
            call = "substring($value, $start, $length)" if has_length else "substring($value, $start)"
            value = str(_function(call)(_NOTHING, value=value, start=start, length=length))
            continue
        operands = []
        for _ in range(2 if change in b"TC" else 1):
            (size,) = struct.unpack_from("=I", recipe)
            operands.append(recipe[4 : 4 + size].decode())
            recipe = recipe[4 + size :]
        one, other = operands[0], operands[-1]
        call = {
            b"T": "translate($value, $one, $other)",
            b"B": "substring-before($value, $one)",
            b"A": "substring-after($value, $one)",
            b"C": "concat($one, $value, $other)",
        }[change]
        value = str(_function(call)(_NOTHING, value=value, one=one, other=other))
    return value


_NOTHING = etree.fromstring("<nothing/>")


@cache
def _function(call: str) -> etree.XPath:
    return etree.XPath(call)


class Tree:
    """A document, with what its elements were already asked."""

    def __init__(self, text: str) -> None:
        self.tree = etree.ElementTree(etree.fromstring(text))
        self.elements = list(self.tree.getroot().iter(etree.Element))
        self.known: dict[tuple[bytes, etree._Element], bool] = {}

    def holds(self, key: bytes, element: etree._Element) -> bool:
        if (key, element) not in self.known:
            self.known[key, element] = Condition.decode(key).holds(element)
        return self.known[key, element]


class Evaluation:
    """One unordered pattern, evaluated on one document."""

    def __init__(self, pattern: Pattern, document: Tree) -> None:
        self.document = document
        self.symbols: Symbols = pattern.symbols
        self.steps = pattern.steps
        self.children: list[list[int]] = [[] for _ in self.steps]
        for index, (parent, *_) in enumerate(self.steps):
            if parent >= 0:
                self.children[parent].append(index)
        self.memo: dict[tuple[int, etree._Element], bool] = {}

    def candidates(self, step: int, element: etree._Element | None) -> list[etree._Element]:
        """The elements to which a step's axis leads."""
        child = self.steps[step][1] == 0
        if element is None:
            return [self.document.tree.getroot()] if child else self.document.elements
        if child:
            return list(element.iterchildren(etree.Element))
        return list(element.iterdescendants(etree.Element))

    def fits(self, step: int, element: etree._Element) -> bool:
        """Whether the pattern below a step can be embedded with the step at the element."""
        if (step, element) not in self.memo:
            self.memo[step, element] = self._fits(step, element)
        return self.memo[step, element]

    def _fits(self, step: int, element: etree._Element) -> bool:
        symbol = self.steps[step][2]
        if symbol and _symbol_of(element) != self.symbols.key(symbol)[1:].decode():
            return False
        for child in self.children[step]:
            _, _, symbol, is_condition = self.steps[child]
            if is_condition:
                if not self.document.holds(self.symbols.key(symbol), element):
                    return False
            elif not any(self.fits(child, other) for other in self.candidates(child, element)):
                return False
        return True

    def found(self) -> bool:
        return any(self.fits(0, element) for element in self.candidates(0, None))

    def bindings(self, output: int) -> set[etree._Element]:
        """The elements at which the step `output` can be, in embeddings of the whole pattern."""
        trail = [output]
        while self.steps[trail[-1]][0] >= 0:
            trail.append(self.steps[trail[-1]][0])
        elements = {e for e in self.candidates(0, None) if self.fits(0, e)}
        for step in reversed(trail[:-1]):
            elements = {other for e in elements for other in self.candidates(step, e) if self.fits(step, other)}
        return elements


def _symbol_of(element: etree._Element) -> str:
    name = etree.QName(element)
    return f"{name.namespace}\x1f{name.localname}" if name.namespace else name.localname


def evaluate(compiled: Meaning, document: Tree) -> bool:
    """Whether some pattern matches."""
    if compiled.always or compiled.never:
        return compiled.always
    return any(Evaluation(pattern, document).found() for pattern in compiled.patterns)


def selected(compiled: Meaning, document: Tree) -> set[etree._Element]:
    """The elements that the patterns say are selected, or carry or contain what is."""
    found: set[etree._Element] = set()
    for key, selection in zip(compiled.keys, compiled.selections, strict=True):
        pattern = next(p for p in compiled.patterns if p.key == key)
        found |= Evaluation(pattern, document).bindings(selection.output)
    return found


# --- random documents and expressions

_VALUES = ["x", "1", "2", "4", " 4 ", "xy", "yx y", "", "10", "-1", "1e1", "x  y", " x", "0", "é4"]


def random_document(rng: random.Random) -> str:
    """A small document over the names a, b, c, n:a, m:b, with attributes, text, comments and instructions."""
    parts: list[str] = []

    def attributes() -> str:
        names = [name for name in ("i", "j", "n:i", "m:j", "xml:lang") if rng.random() < 0.25]
        return "".join(f' {name}="{rng.choice(_VALUES)}"' for name in names)

    def element(depth: int) -> None:
        name = rng.choice(["a", "a", "b", "b", "c", "n:a", "m:b", "d"])
        parts.append(f"<{name}{attributes()}{NAMESPACE_DECLARATIONS if depth == 0 else ''}>")
        for _ in range(rng.choice([0, 1, 1, 2, 3]) if depth < 4 else rng.choice([0, 1])):
            kind = rng.random()
            if kind < 0.62 and depth < 5:
                element(depth + 1)
            elif kind < 0.9:
                parts.append(rng.choice(_VALUES))
            else:
                parts.append(rng.choice(["<!--x-->", "<?x y?>"]))
        parts.append(f"</{name}>")

    element(0)
    return "".join(parts)


NAMESPACE_DECLARATIONS = "".join(f' xmlns:{prefix}="{uri}"' for prefix, uri in NAMESPACES.items())


class Expressions:
    """Random expressions: mostly what subscriptions are made of, and a little of everything else."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def pick(self, *choices: str) -> str:
        return self.rng.choice(choices)

    def expression(self) -> str:
        roll = self.rng.random()
        if roll < 0.7:
            return self.nodes(3)
        return self.boolean(3) if roll < 0.95 else self.any(2)

    def any(self, depth: int) -> str:
        return self.rng.choice([self.nodes, self.boolean, self.number, self.string])(depth)

    # node-sets

    def nodes(self, depth: int) -> str:
        roll = self.rng.random()
        if depth > 0 and roll < 0.07:
            return " | ".join(self.nodes(depth - 1) for _ in range(self.rng.choice([2, 2, 3])))
        if depth > 0 and roll < 0.12:
            text = f"({self.nodes(depth - 1)})"
            text += "".join(f"[{self.predicate(depth - 1)}]" for _ in range(self.rng.choice([0, 1, 2])))
            return text + (f"{self.pick('/', '//')}{self.relative(depth - 1)}" if self.rng.random() < 0.6 else "")
        if roll < 0.13:
            return self.pick("id('x')", "(/)", "/.", "..")
        return self.pick("", "", "", "/", "//", ".//", "./") + self.relative(depth)

    def relative(self, depth: int) -> str:
        count = self.rng.choice([1, 1, 2, 2, 3])
        text = ""
        for i in range(count):
            text += (self.pick("/", "/", "//") if i else "") + self.step(depth, i == count - 1)
        return text

    def step(self, depth: int, last: bool) -> str:
        roll = self.rng.random()
        if roll < 0.05:
            return "."
        if roll < 0.07:
            return ".."
        if roll < (0.2 if last else 0.09):
            text = self.pick("@i", "@j", "@*", "@n:i", "@n:*", "text()", "@node()", "text()", "node()", "@m:j")
            text += "".join(f"[{self.test_of_string()}]" for _ in range(self.rng.choice([0, 0, 1, 2])))
        elif roll < 0.27:
            text = f"{self.axis()}::{self.test()}"
        else:
            text = self.pick("a", "a", "b", "b", "c", "*", "n:a", "n:*", "m:b", "m:*", "d")
        if depth > 0:
            for _ in range(self.rng.choice([0, 0, 0, 1, 1, 2])):
                text += f"[{self.predicate(depth - 1)}]"
        return text

    def test_of_string(self) -> str:
        """A predicate for an attribute or a text node."""
        test = self.pick(
            *[". = 'x'", "contains(., 'x')", "contains(., 'y')", "starts-with(., 'x')", ". < 4", ". != 'x'", "."],
            *["normalize-space() = '4'", "string-length() < 2"],
        )
        roll = self.rng.random()
        return test if roll < 0.6 else f"not({test})" if roll < 0.8 else f"{test} or {self.test_of_string()}"

    def axis(self) -> str:
        if self.rng.random() < 0.8:
            return self.pick("child", "descendant", "descendant-or-self", "self", "attribute", "self")
        return self.pick(
            *["parent", "ancestor", "ancestor-or-self", "following", "following-sibling", "preceding"],
            *["preceding-sibling", "namespace"],
        )

    def test(self) -> str:
        return self.pick(
            *["a", "b", "*", "n:a", "n:*", "node()", "node()", "text()", "i", "m:j", "comment()"],
            *["processing-instruction()", "processing-instruction('x')"],
        )

    # the other types

    def predicate(self, depth: int) -> str:
        roll = self.rng.random()
        if roll < 0.06:
            return self.pick("1", "2", "last()", "position() = 1", "position() > 1", "0", "1.5", "count(b)")
        return self.boolean(depth)

    def boolean(self, depth: int) -> str:
        roll = self.rng.random()
        if depth > 0 and roll < 0.12:
            joined = f" {self.pick('and', 'or')} ".join(
                self.boolean(depth - 1) for _ in range(self.rng.choice([2, 2, 3]))
            )
            return f"({joined})" if self.rng.random() < 0.3 else joined
        if depth > 0 and roll < 0.26:
            return f"not({self.boolean(depth - 1)})"
        if roll < 0.29:
            return self.pick("true()", "false()", "lang('x')", "boolean(@i)", "'x'", "''")
        if roll < 0.5:
            return self.nodes(depth - 1) if depth > 0 else self.leaf()
        if roll < 0.62:
            text = self.pick("contains", "starts-with")
            return f"{text}({self.string(depth - 1)}, {self.operand() if self.rng.random() < 0.9 else self.leaf()})"
        if roll < 0.68 and depth > 0:
            counted = f"count({self.nodes(depth - 1)})"
            return f"{counted} {self.pick('=', '!=', '<', '<=', '>', '>=')} {self.pick('0', '1', '2', '0.5', '-1')}"
        left = self.any(depth - 1) if self.rng.random() < 0.5 else self.leaf()
        right = self.operand() if self.rng.random() < 0.9 else self.any(depth - 1)
        operator = self.pick("=", "=", "!=", "<", "<=", ">", ">=")
        if self.rng.random() < 0.3:
            left, right = right, left
        return f"({left}) {operator} ({right})"

    def leaf(self) -> str:
        return self.pick(
            ".", "@i", "@j", "text()", "@*", "a", "b", "string()", "@n:i", "a/@i", ".//text()", "self::a"
        )

    def operand(self) -> str:
        roll = self.rng.random()
        if roll < 0.45:
            return self.pick("'x'", "'4'", "''", "'xy'", "'y'", "'1'", "' 4 '", "'x y'", "'é'")
        if roll < 0.85:
            return self.pick("4", "1", "0", "2", "-1", "1.5", "3 + 1", "10 div 0", "5 mod 2", "-(1)", "0 div 0")
        return self.pick("true()", "false()", "string(4)", "number('4')", "concat('x', 'y')", "string-length('ab')")

    def number(self, depth: int) -> str:
        roll = self.rng.random()
        if roll < 0.3 or depth < 0:
            return self.pick("1", "4", "0", "string-length()", "number()", "position()", "last()", "-4")
        if roll < 0.55:
            return f"count({self.nodes(depth - 1)})"
        if roll < 0.8:
            return f"{self.pick('string-length', 'number')}({self.string(depth - 1)})"
        if roll < 0.9:
            return f"{self.number(depth - 1)} {self.pick('+', '-', '*', 'div', 'mod')} {self.number(depth - 1)}"
        return self.pick("sum(b)", "floor(1.5)", "ceiling(@i)", "round(2.5)", f"- {self.leaf()}")

    def string(self, depth: int) -> str:
        roll = self.rng.random()
        if roll < 0.5 or depth < 0:
            return self.leaf()
        if roll < 0.75:
            return f"{self.pick('normalize-space', 'string')}({self.string(depth - 1)})"
        if roll < 0.85:
            return self.pick("normalize-space()", "string()", "'xy'", "name()", "local-name()", "namespace-uri(b)")
        if roll < 0.9:
            return f"concat({self.string(depth - 1)}, 'x')"
        return self.nodes(depth - 1)
