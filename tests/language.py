"""Random XPath expressions in every feature of the language, and random documents on which they have a chance."""

from __future__ import annotations

import random

NAMESPACES = {"n": "urn:n"}
NAMES = ["a", "b", "c", "n:a", "n:b"]
ATTRIBUTES = ["x", "y", "n:x"]
STRINGS = ["", "1", "2", "10", "a", "ab", "b a", " 1 ", "-1", "1.5", "x"]
NUMBERS = ["0", "1", "2", "1.5", "10", "-1"]
OPERATORS = ["=", "!=", "<", "<=", ">", ">="]
OTHER_AXES = [
    "parent", "ancestor", "ancestor-or-self", "following", "following-sibling", "preceding", "preceding-sibling",
]  # fmt: skip


class ExpressionMaker:
    """Writes random expressions. `beyond` is the odds of things that only lxml can decide."""

    def __init__(self, rng: random.Random, beyond: float = 0.1) -> None:
        self.rng = rng
        self.beyond = beyond

    def expression(self) -> str:
        roll = self.rng.random()
        if roll < self.beyond * 0.5:
            return self.rng.choice(
                [
                    f"count({self.path(2)}) {self.rng.choice(OPERATORS)} {self.rng.randrange(3)}",
                    f"{self.path(2)} | {self.path(2)}",
                    f"{self.path(2)} and {self.path(1)}",
                    f"not({self.path(2)})",
                    f"{self.path(2)} or not({self.path(1)})",
                    f"({self.path(2)})[{self.rng.randrange(1, 3)}]",
                    f"{self.path(2)} = {self.operand()}",
                ]
            )
        return self.path(3)

    def path(self, depth: int) -> str:
        start = self.rng.choice(["/", "//", "//", "", "/descendant::", ".//"])
        return start + self.relative(depth, bare_first=start.endswith(":"))

    def relative(self, depth: int, bare_first: bool = False) -> str:
        text = self.step(depth, bare_first)
        for _ in range(self.rng.choice([0, 0, 1, 1, 2, 3])):
            text += self.rng.choice(["/", "/", "/", "//"]) + self.step(depth)
        if self.rng.random() < 0.15:
            text += self.rng.choice(["/", "//"]) + self.value_step()
        return text

    def step(self, depth: int, bare: bool = False) -> str:
        roll = self.rng.random()
        test = "*" if self.rng.random() < 0.2 else "n:*" if self.rng.random() < 0.05 else self.rng.choice(NAMES)
        if bare or roll < 0.75:
            text = test
        elif roll < 0.8:
            return "."
        elif roll < 0.8 + 0.5 * self.beyond:
            axis = self.rng.choice(OTHER_AXES)
            text = f"{axis}::{test}"
        else:
            axis = self.rng.choice(["child", "descendant", "self", "descendant-or-self"])
            text = f"{axis}::{self.rng.choice([test, test, 'node()'])}"
        for _ in range(self.rng.choice([0, 0, 0, 1, 1, 2]) if depth else 0):
            text += f"[{self.predicate(depth - 1)}]"
        return text

    def value_step(self) -> str:
        step = self.rng.choice(["@x", "@n:x", "@*", "text()", "attribute::y"])
        return step + (f"[. {self.rng.choice(OPERATORS)} {self.operand()}]" if self.rng.random() < 0.2 else "")

    def predicate(self, depth: int) -> str:
        roll = self.rng.random()
        if depth > 0 and roll < 0.25:
            joint = self.rng.choice([" and ", " or "])
            return joint.join(self.predicate(depth - 1) for _ in range(2))
        if roll < 0.35:
            return f"not({self.predicate(max(0, depth - 1))})"
        if roll < 0.35 + self.beyond:
            return self.rng.choice(
                ["1", "2", "last()", "position() = 1", "position() < 3", f"count({self.relative(0)}) > 1", "@x = @y",
                 f"@x + 1 = {self.rng.choice(NUMBERS)}", "name() = 'a'", "local-name() = 'b'", "../@x"]
            )  # fmt: skip
        if roll < 0.65:
            return self.comparison(depth)
        inner = self.relative(depth)
        return self.rng.choice([inner, inner, f".//{inner}", f"boolean({inner})"])

    def operand(self) -> str:
        return self.rng.choice(NUMBERS) if self.rng.random() < 0.5 else f"'{self.rng.choice(STRINGS)}'"

    def subject(self, depth: int) -> str:
        simple = ["@x", "@y", "@n:x", "text()", ".", "@*"]
        return self.rng.choice([*simple, self.relative(0)] if depth else simple)

    def comparison(self, depth: int) -> str:
        subject, string = self.subject(depth), f"'{self.rng.choice(STRINGS)}'"
        operator = self.rng.choice(OPERATORS)
        return self.rng.choice(
            [
                f"{subject} {operator} {self.operand()}",
                f"{subject} {operator} {self.operand()}",
                f"{self.operand()} {operator} {subject}",
                f"contains({subject}, {string})",
                f"starts-with({subject}, {string})",
                f"string-length({subject}) {operator} {self.rng.choice(NUMBERS)}",
                f"normalize-space({subject}) {self.rng.choice(['=', '!='])} {string}",
                f"contains(normalize-space({subject}), {string})",
                f"number({subject}) {operator} {self.rng.choice(NUMBERS)}",
                f"{self.transformed(subject)} {operator} {self.operand()}",
                f"contains({self.transformed(subject)}, {string})",
                f"string-length({self.transformed(subject)}) {operator} {self.rng.choice(NUMBERS)}",
                f"string({subject}) = {string}",
            ]
        )

    def transformed(self, subject: str) -> str:
        return self.rng.choice(
            [f"translate({subject}, 'ab1', 'AB')", f"substring({subject}, {self.rng.choice(NUMBERS)}, 1.5)",
             f"substring({subject}, 2)", f"substring-before({subject}, 'a')", f"substring-after({subject}, '1')",
             f"concat('1', {subject}, '')", f"translate(normalize-space({subject}), ' ', '.')",
             f"normalize-space(translate({subject}, '-', ' '))"]
        )  # fmt: skip


def random_xml(rng: random.Random, size: int = 20) -> str:
    """A document with the names, attributes, namespaces and texts that the expressions speak of."""

    def name() -> str:
        return rng.choice(["a", "a", "b", "b", "c", "d", "m:a", "m:b"])

    def text() -> str:
        roll = rng.random()
        if roll < 0.55:
            return ""
        if roll < 0.65:
            return rng.choice(["<!-- 1 -->", "<?p a?>", "<![CDATA[1]]>", "<![CDATA[]]>"])
        return rng.choice(STRINGS)

    def attributes() -> str:
        found = [attribute for attribute in ("x", "y", "m:x") if rng.random() < 0.3]
        return "".join(f' {attribute}="{rng.choice(STRINGS)}"' for attribute in found)

    remaining = rng.randrange(size)

    def element(depth: int) -> str:
        nonlocal remaining
        tag = name()
        parts = [text()]
        while remaining > 0 and depth < 12 and rng.random() < 0.6:
            remaining -= 1
            parts += [element(depth + 1), text()]
        declaration = ' xmlns:m="urn:n"' if depth == 0 else ' xmlns="urn:n"' if rng.random() < 0.05 else ""
        return f"<{tag}{declaration}{attributes()}>{''.join(parts)}</{tag}>"

    return element(0)
