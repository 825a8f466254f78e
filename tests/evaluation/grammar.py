"""Random expressions of the whole grammar of XPath 1.0 but variables, random documents with every kind of node, and
what lxml says of them."""

from __future__ import annotations

import random
from functools import lru_cache
from typing import Any, cast

from lxml import etree

from xsift.xpath.expression import parse
from xsift.xpath.printer import to_text

NAMESPACES = {"n": "urn:n", "m": "urn:m"}
AXES = [
    "ancestor", "ancestor-or-self", "attribute", "child", "descendant", "descendant-or-self", "following",
    "following-sibling", "namespace", "parent", "preceding", "preceding-sibling", "self",
]  # fmt: skip
NAMES = ["a", "a", "b", "b", "c", "n:a", "n:b", "d", "x", "y", "zz"]
TESTS = ["*", "n:*", "node()", "text()", "comment()", "processing-instruction()", "processing-instruction('p')"]
STRINGS = [
    "",
    "1",
    "2",
    "a",
    "b",
    "ab",
    " a  b ",
    "-1.5",
    "x",
    "é",
    "1 2",
    "en",
    "k1",
    "k1 k2",
    "urn:n",
    "n",
    "aAbB",
    "3x",
    ".1",
    "0.2",
    "0.7",
]
NUMBERS = ["0", "1", "2", "3", "1.5", "0.5", "10", "1000000000000", "0.000001", "123.456", "2.5"]
COMPARISONS = ["=", "!=", "<", "<=", ">", ">="]


class GrammarMaker:
    """Writes expressions. Arguments are of any type that XPath converts; now and then of one that it does not."""

    def __init__(self, rng: random.Random, wrong: float = 0.0, namespaces: bool = True) -> None:
        self.rng = rng
        self.axes = AXES if namespaces else [axis for axis in AXES if axis != "namespace"]
        self.wrong = wrong  # the odds of a wrong number of arguments, or a string where only nodes will do

    def expression(self, depth: int = 3) -> str:
        return self.rng.choice([self.nodes, self.nodes, self.boolean, self.number, self.string])(depth)

    def any(self, depth: int) -> str:
        return self.rng.choice([self.nodes, self.nodes, self.boolean, self.number, self.string])(depth)

    # Node-sets

    def nodes(self, depth: int) -> str:
        roll = self.rng.random()
        if depth > 0 and roll < 0.08:
            return f"{self.path(depth - 1)} | {self.path(depth - 1)}"
        if depth > 0 and roll < 0.14:
            return f"({self.nodes(depth - 1)}){self.predicates(depth - 1, 1)}"
        if depth > 0 and roll < 0.18:
            return f"({self.nodes(depth - 1)})/{self.relative(depth - 1)}"
        if depth > 0 and roll < 0.22:
            return f"id({self.any(depth - 1)})"
        return self.path(depth)

    def path(self, depth: int) -> str:
        start = self.rng.choice(["/", "//", "", "", "", "./", ".//", "../"])
        return "/" if start == "/" and self.rng.random() < 0.1 else start + self.relative(depth)

    def relative(self, depth: int) -> str:
        text = self.step(depth)
        for _ in range(self.rng.choice([0, 0, 1, 1, 2])):
            text += self.rng.choice(["/", "/", "//"]) + self.step(depth)
        return text

    def step(self, depth: int) -> str:
        roll = self.rng.random()
        if roll < 0.07:
            return "."
        if roll < 0.14:
            return ".."
        if roll < 0.22:
            return "@" + self.rng.choice(["x", "y", "n:x", "*", "n:*", "xml:lang", "node()", "xml:id"])
        test = self.rng.choice(NAMES) if self.rng.random() < 0.6 else self.rng.choice(TESTS)
        if roll < 0.55:
            return test + self.predicates(depth)
        axis = self.rng.choice(self.axes)
        if axis == "namespace":
            test = self.rng.choice(["*", "n", "node()", "xml"])
        return f"{axis}::{test}{self.predicates(depth)}"

    def predicates(self, depth: int, least: int = 0) -> str:
        if depth <= 0 and not least:
            return ""
        number = max(least, self.rng.choice([0, 0, 0, 1, 1, 2]))
        return "".join(f"[{self.predicate(depth - 1)}]" for _ in range(number))

    def predicate(self, depth: int) -> str:
        roll = self.rng.random()
        if roll < 0.2:
            return self.rng.choice(
                ["1", "2", "last()", "last() - 1", "position() = 2", "position() < 3", "position() mod 2 = 1",
                 "position() = last()", "position() != last()", "0", "1.5", "last() > 1", "position() > 1"]
            )  # fmt: skip
        if depth <= 0:
            return self.rng.choice(["a", "@x", "text()", ".", "..", "@x = 1", ". = 'a'", "not(b)", "name() = 'a'"])
        return self.rng.choice([self.boolean, self.boolean, self.any])(depth)

    # Booleans

    def boolean(self, depth: int) -> str:
        if depth <= 0:
            return self.rng.choice(["true()", "false()", "a", "not(a)", ". = 1", "@x = '1'"])
        return self.rng.choice(
            [self.comparison, self.comparison, self.comparison, self.connective, self.connective, self.boolean_call]
        )(depth)

    def comparison(self, depth: int) -> str:
        operator = self.rng.choice(COMPARISONS)
        return f"{self.operand(depth - 1)} {operator} {self.operand(depth - 1)}"

    def operand(self, depth: int) -> str:
        text = self.any(depth)
        return (
            f"({text})"
            if self.rng.random() < 0.2 or any(o in text for o in ("=", "<", ">", " or ", " and "))
            else text
        )

    def connective(self, depth: int) -> str:
        joint = self.rng.choice([" and ", " or "])
        return joint.join(f"({self.any(depth - 1)})" for _ in range(self.rng.choice([2, 2, 3])))

    def boolean_call(self, depth: int) -> str:
        return self.rng.choice(
            [
                f"not({self.any(depth - 1)})",
                f"not({self.any(depth - 1)})",
                f"boolean({self.any(depth - 1)})",
                f"contains({self.any(depth - 1)}, {self.any(depth - 1)})",
                f"starts-with({self.any(depth - 1)}, {self.any(depth - 1)})",
                f"lang({self.any(depth - 1)})",
                f"lang('{self.rng.choice(['en', 'EN', 'de', 'en-GB', ''])}')",
            ]
        )

    # Numbers

    def number(self, depth: int) -> str:
        if depth <= 0:
            return self.rng.choice([*NUMBERS, "position()", "last()", "count(*)", "string-length()", "number()"])
        return self.rng.choice([self.arithmetic, self.number_call, self.number_call])(depth)

    def arithmetic(self, depth: int) -> str:
        operator = self.rng.choice([" + ", " - ", " * ", " div ", " mod "])
        left, right = f"({self.any(depth - 1)})", f"({self.any(depth - 1)})"
        return self.rng.choice([f"{left}{operator}{right}", f"-{left}", f"--{left}"])

    def number_call(self, depth: int) -> str:
        inner = self.any(depth - 1)
        if self.rng.random() < self.wrong:
            return self.rng.choice([f"count({self.string(depth - 1)})", f"sum({self.number(depth - 1)})", "round()"])
        return self.rng.choice(
            [f"number({inner})", f"string-length({inner})", f"round({inner})", f"floor({inner})", f"ceiling({inner})",
             f"count({self.nodes(depth - 1)})", f"sum({self.nodes(depth - 1)})", f"count({self.nodes(depth - 1)})"]
        )  # fmt: skip

    # Strings

    def literal(self) -> str:
        return f"'{self.rng.choice(STRINGS)}'"

    def string(self, depth: int) -> str:
        if depth <= 0:
            return self.rng.choice(
                [self.literal(), self.literal(), "string()", "name()", "local-name()", "string(@x)"]
            )
        one, two, three = self.any(depth - 1), self.any(depth - 1), self.any(depth - 1)
        if self.rng.random() < self.wrong:
            return self.rng.choice(
                [f"concat({one})", f"name({self.string(0)})", f"translate({one}, {two})", "contains()"]
            )
        return self.rng.choice(
            [
                self.literal(),
                f"string({one})",
                f"concat({one}, {two})",
                f"concat({one}, {two}, {three})",
                f"substring({one}, {self.number(depth - 1)})",
                f"substring({one}, {two}, {three})",
                f"substring({one}, {self.rng.choice(['-1', '0', '1', '1.5', '2', '-42', '0.5'])}, "
                f"{self.rng.choice(['1', '2', '1.5', '2.6', '1 div 0', '0 div 0', '-1'])})",
                f"substring-before({one}, {self.literal()})",
                f"substring-after({one}, {self.literal()})",
                f"normalize-space({one})",
                "normalize-space()",
                f"translate({one}, {self.literal()}, {self.literal()})",
                f"translate({one}, 'abcdefé', 'ABCé')",
                f"name({self.nodes(depth - 1)})",
                f"local-name({self.nodes(depth - 1)})",
                f"namespace-uri({self.nodes(depth - 1)})",
                "namespace-uri()",
            ]
        )


def random_document(rng: random.Random, size: int = 25) -> str:
    """A document with every kind of node."""
    remaining = rng.randrange(size)
    ids = [f"k{number}" for number in range(1, 6)]
    rng.shuffle(ids)

    def attributes(depth: int) -> str:
        found = [name for name in ("x", "y", "n:x", "m:y") if rng.random() < 0.25]
        text = "".join(f' {name}="{rng.choice(STRINGS)}"' for name in found)
        if rng.random() < 0.1:
            text += f' xml:lang="{rng.choice(["en", "EN-gb", "de", "", "en-US"])}"'
        if ids and rng.random() < 0.1:
            text += f' xml:id="{ids.pop()}"'
        if depth and rng.random() < 0.08:
            text += rng.choice([' xmlns="urn:n"', ' xmlns=""', ' xmlns:m="urn:other"', ' xmlns:o="urn:o"'])
        return text

    def content() -> str:
        roll = rng.random()
        if roll < 0.5:
            return ""
        if roll < 0.65:
            return rng.choice(
                ["<!--1-->", "<!--a-->", "<?p a?>", "<?q  b c ?>", "<![CDATA[1]]>", "<![CDATA[]]>", "<?a?>"]
            )
        return rng.choice(STRINGS) + rng.choice(["", "", "\n", "&#233;"])

    def element(depth: int) -> str:
        nonlocal remaining
        tag = rng.choice(["a", "a", "b", "b", "c", "d", "n:a", "n:b", "m:a"])
        parts = [content()]
        while remaining > 0 and depth < 9 and rng.random() < 0.65:
            remaining -= 1
            parts += [element(depth + 1), content()]
        declared = ' xmlns:n="urn:n" xmlns:m="urn:m"' if depth == 0 else ""
        return f"<{tag}{declared}{attributes(depth)}>{''.join(parts)}</{tag}>"

    before = rng.choice(["", "", "", "<!--a-->", "<?p 1?>"])
    after = rng.choice(["", "<!--a-->", "<?p 1?>"]) if before else ""  # see test_against_lxml: a fault of libxml2
    return before + element(0) + after


def meaning(expression: str) -> str:
    """The expression with what a subscription implies made explicit, for lxml."""
    return to_text(parse(expression, NAMESPACES), verification=True)


@lru_cache(maxsize=4096)
def evaluator(text: str) -> Any:
    return etree.XPath(text, namespaces=NAMESPACES)


class LxmlDocument:
    """A document as lxml has it, whose nodes are named by their numbers in a NodeTree."""

    def __init__(self, xml: str) -> None:
        self.tree = etree.ElementTree(etree.fromstring(xml.encode()))
        self.items = cast(list[Any], self.tree.xpath("//node() | //@*"))
        self.numbers = {_key(item): number for number, item in enumerate(self.items, 1)}

    def value(self, text: str) -> Any:
        """A boolean, number or string; for nodes, their numbers (namespace nodes as they are)."""
        found = evaluator(text)(self.tree)
        if not isinstance(found, list):
            return found
        return [self._number(item) for item in found]

    def _number(self, item: Any) -> Any:
        if isinstance(item, tuple):
            return item
        if isinstance(item, etree._ElementTree):
            return 0
        return self.numbers[_key(item)]


def _key(item: Any) -> Any:
    if isinstance(item, str):
        parent = item.getparent()  # type: ignore[attr-defined]
        return (parent, item.attrname if item.is_attribute else item.is_tail)  # type: ignore[attr-defined]
    return item
