"""What several test folders share: random twigs and documents, as trees that print themselves."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass, field

from xsift.document.events import RecordedEvents
from xsift.xpath.pattern import Pattern, from_key
from xsift.xpath.symbols import Symbols

CHILD, DESCENDANT = 0, 1


@dataclass
class Twig:
    """A pattern as a tree, to be written as XPath or made into a Pattern.

    A name "@x" is the condition [@x], known at the start tag, and "#x" is [text()='x'], known at the end tag.
    """

    name: str
    axis: int = CHILD
    children: list[Twig] = field(default_factory=list)

    def text(self, first: bool = True) -> str:
        slash = ("//" if first else ".//") if self.axis == DESCENDANT else ("/" if first else "")
        if self.name.startswith("#"):
            return f"text()='{self.name[1:]}'"
        inner = "".join(f"[{child.text(False)}]" for child in self.children)
        return f"{slash}{self.name}{inner}"

    def encode(self, symbols: Symbols, ordered: bool) -> bytes:
        """The canonical encoding of the sub-tree, in the form that xsift/xpath/pattern.pyx describes."""
        is_condition = self.name[0] in "@#"
        if is_condition:
            symbol = (attribute_condition if self.name[0] == "@" else text_condition)(symbols, self.name[1:])
        else:
            symbol = 0 if self.name == "*" else symbols.element(self.name)
        conditions = sorted({c.encode(symbols, ordered) for c in self.children if c.name[0] in "@#"})
        others = [c.encode(symbols, ordered) for c in self.children if c.name[0] not in "@#"]
        if not ordered:
            others = sorted(set(others))
        children = conditions + others
        return struct.pack("<iBH", symbol, self.axis | is_condition << 1, len(children)) + b"".join(children)

    def pattern(self, symbols: Symbols, ordered: bool = False) -> Pattern:
        pattern = from_key(bytes([ordered]) + self.encode(symbols, ordered), symbols)
        return pattern if not ordered or branches(pattern) else self.pattern(symbols)


def branches(pattern: Pattern) -> bool:
    """Whether some step has two children that are not conditions."""
    parents = [parent for parent, _, _, is_condition in pattern.steps if not is_condition]
    return len(parents) != len(set(parents))


def attribute_condition(symbols: Symbols, name: str) -> int:
    """The symbol of the condition [@name]."""
    encoded = name.encode()
    return symbols.add_key(b"C" + bytes(6) + bytes(8) + struct.pack("<I", len(encoded)) + encoded)


def text_condition(symbols: Symbols, value: str) -> int:
    """The symbol of the condition [text()='value']."""
    return symbols.add_key(b"C" + bytes([2, 0, 0, 1, 0, 0]) + bytes(12) + value.encode())


@dataclass
class Element:
    """A document as a tree: a name, attribute names, children."""

    name: str
    attributes: list[str] = field(default_factory=list)
    children: list[Element] = field(default_factory=list)

    def xml(self) -> str:
        attributes = "".join(f' {name}="1"' for name in self.attributes)
        if not self.children:
            return f"<{self.name}{attributes}/>"
        return f"<{self.name}{attributes}>{''.join(child.xml() for child in self.children)}</{self.name}>"

    def codes(self, symbols: Symbols) -> list[int]:
        codes = [symbols.element(self.name)]
        codes += [-attribute_condition(symbols, name) - 1 for name in self.attributes]
        for child in self.children:
            codes += child.codes(symbols)
        return [*codes, -1]

    def document(self, symbols: Symbols) -> RecordedEvents:
        return RecordedEvents(self.codes(symbols))


def nested(names: str) -> Element:
    """Elements each in the one before: "abc" is <a><b><c/></b></a>."""
    element = Element(names[-1])
    for name in reversed(names[:-1]):
        element = Element(name, [], [element])
    return element


def random_twig(
    rng: random.Random,
    names: str = "abc",
    depth: int = 4,
    width: int = 3,
    conditions: str = "xy",
    linear: bool = False,
) -> Twig:
    """A small twig; with `linear` a path."""

    def step(level: int) -> Twig:
        name = "*" if rng.random() < 0.2 else rng.choice(names)
        twig = Twig(name, DESCENDANT if rng.random() < 0.35 else CHILD)
        if linear:
            if level < depth and rng.random() < 0.75:
                twig.children.append(step(level + 1))
            elif conditions and rng.random() < 0.2:
                twig.children.append(Twig("@" + rng.choice(conditions)))
            return twig
        if level < depth:
            number = rng.choice([0, 1, 1, 1, 2, 2, width])
            twig.children = [step(level + 1) for _ in range(number)]
        if conditions and rng.random() < 0.15:
            twig.children.append(Twig("@" + rng.choice(conditions)))
        return twig

    return step(1)


def random_element(
    rng: random.Random, names: str = "abcd", size: int = 25, deep: float = 0.5, conditions: str = "xy"
) -> Element:
    """A random document of up to `size` elements; the nearer `deep` is to 1, the deeper and more recursive."""
    root = Element(rng.choice(names))
    open_elements = [root]
    for _ in range(rng.randrange(size)):
        while len(open_elements) > 1 and rng.random() > deep:
            open_elements.pop()
        attributes = [name for name in conditions if rng.random() < 0.25]
        element = Element(rng.choice(names), attributes)
        open_elements[-1].children.append(element)
        open_elements.append(element)
    return root


def differences(
    engine: object, rng: random.Random, rounds: int, *, linear: bool = False, ordered: bool = False, twigs: int = 40
) -> list[str]:
    """Adds, removes and matches at random, beside the reference engine; returns a line for each difference."""
    from xsift.engines.reference import Evaluation, Tree

    symbols = Symbols()
    patterns: dict[int, Pattern] = {}
    found: list[str] = []
    for _ in range(rounds):
        for _ in range(rng.randrange(1, twigs)):
            twig = random_twig(rng, linear=linear)
            pattern = twig.pattern(symbols, ordered and rng.random() < 0.7)
            if not engine.refuses(pattern) and pattern not in patterns.values():  # type: ignore[attr-defined]
                patterns[engine.add(pattern)] = pattern  # type: ignore[attr-defined]
        for key in rng.sample(sorted(patterns), rng.randrange(len(patterns) // 2 + 1)):
            engine.remove(key)  # type: ignore[attr-defined]
            del patterns[key]
        for _ in range(4):
            element = random_element(rng, size=rng.choice([3, 10, 40]), deep=rng.choice([0.3, 0.6, 0.9]))
            document = element.document(symbols)
            tree = Tree(document.events)
            expected = {key for key, pattern in patterns.items() if Evaluation(pattern, tree).matches()}
            actual = set(engine.match(document).tolist())  # type: ignore[attr-defined]
            for key in expected ^ actual:
                verb = "misses" if key in expected else "invents"
                found.append(f"{verb} {patterns.get(key)!r} on {element.xml()}")
    return found
