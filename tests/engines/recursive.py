"""Harder random patterns and documents than tests/support.py's: few names, deep recursion, many `*` and `//`.

Few names and deep documents make every partial match ambiguous, which is where an engine that forgets or confuses
one of several open matches goes wrong.
"""

from __future__ import annotations

import itertools
import random

from tests.support import CHILD, DESCENDANT, Element, Twig, random_element, text_condition
from xsift.document.events import RecordedEvents
from xsift.engines.afilter.engine import AFilter
from xsift.engines.base import Engine
from xsift.engines.reference import Evaluation, Tree
from xsift.xpath.pattern import Pattern
from xsift.xpath.symbols import Symbols

END = -1
MOST_TUPLES = 300  # of a pattern on a document; those with more are left out


class Mix:
    """The odds of one run, drawn once so that runs differ in kind and not only in detail."""

    def __init__(self, rng: random.Random, linear: bool) -> None:
        self.linear = linear
        self.names = rng.choice(["a", "ab", "ab", "abc", "abcde"])
        self.star = rng.choice([0.0, 0.1, 0.4, 0.8])
        self.descendant = rng.choice([0.1, 0.4, 0.8])
        self.branching = rng.choice([0.2, 0.6, 1.0])
        self.condition = rng.choice([0.0, 0.1, 0.4])
        self.depth = rng.choice([2, 3, 4, 6])

    def twig(self, rng: random.Random, level: int = 1) -> Twig:
        name = "*" if rng.random() < self.star else rng.choice(self.names)
        twig = Twig(name, DESCENDANT if rng.random() < self.descendant else CHILD)
        if level < self.depth:
            number = rng.choice([0, 1, 1, 2, 2, 3]) if rng.random() < self.branching else rng.choice([0, 1, 1, 1])
            number = int(rng.random() < 0.8) if self.linear else number
            twig.children = [self.twig(rng, level + 1) for _ in range(number)]
        if rng.random() < self.condition and not (self.linear and twig.children):
            names = rng.sample(["@x", "@y", "@z", "#x", "#y", "#z"], 1 if self.linear else rng.randrange(1, 4))
            twig.children += [Twig(name) for name in names]
        return twig

    def element(self, rng: random.Random) -> Element:
        return random_element(
            rng,
            names=self.names if rng.random() < 0.5 else self.names + "z",
            size=rng.choice([5, 15, 40, 80, 200]),
            deep=rng.choice([0.2, 0.5, 0.7, 0.9, 0.95, 0.99]),
            conditions=rng.choice(["", "x", "xyz"]),
        )


def events(element: Element, symbols: Symbols, rng: random.Random) -> RecordedEvents:
    """The document; often with conditions on text, right before end tags, and names that nobody asks for."""
    codes = element.codes(symbols)
    if rng.random() < 0.3:
        return RecordedEvents(codes)
    unasked = symbols.element("z") if rng.random() < 0.5 else None
    odds = rng.choice([0.1, 0.3, 0.6])
    changed = []
    for code in codes:
        if code == END and rng.random() < odds:
            values = rng.sample("xyz", rng.choice([1, 1, 2]))
            changed += [-text_condition(symbols, value) - 1 for value in values]
        changed.append(0 if code == unasked else code)
    return RecordedEvents(changed)


def recursive_differences(
    engine: Engine, rng: random.Random, rounds: int, *, linear: bool = False, ordered: bool = False
) -> list[str]:
    """Adds, removes and matches at random, beside the reference engine; returns a line for each difference."""
    mix = Mix(rng, linear)
    symbols = Symbols()
    patterns: dict[int, Pattern] = {}
    found: list[str] = []
    for _ in range(rounds):
        for _ in range(rng.randrange(1, 40)):
            pattern = mix.twig(rng).pattern(symbols, ordered and rng.random() < 0.8)
            if len(pattern) <= 25 and not engine.refuses(pattern) and pattern not in patterns.values():
                patterns[engine.add(pattern)] = pattern
        for key in rng.sample(sorted(patterns), rng.randrange(len(patterns) // 2 + 1)):
            engine.remove(key)
            del patterns[key]
        for _ in range(3):
            document = events(mix.element(rng), symbols, rng)
            tree = Tree(document.events)
            expected = {key for key, pattern in patterns.items() if Evaluation(pattern, tree).matches()}
            actual = engine.match(document).tolist()
            for key in expected ^ set(actual):
                found.append(f"{'misses' if key in expected else 'invents'} {patterns[key]!r} on {document.events}")
            if len(actual) != len(set(actual)):
                found.append(f"says some pattern twice on {document.events}")
            if isinstance(engine, AFilter):
                found += tuple_differences(engine, patterns, document, tree)
            if rng.random() < 0.1:  # a document that breaks off must leave nothing behind
                engine.match(RecordedEvents(document.events[: rng.randrange(len(document))]))
    return sorted(found, key=len)


def tuple_differences(
    engine: AFilter, patterns: dict[int, Pattern], document: RecordedEvents, tree: Tree
) -> list[str]:
    """The path-tuples of all linear patterns at once, beside those of the definition; a line for each difference."""
    expected: dict[int, list[tuple[int, ...]]] = {}
    for key, pattern in patterns.items():
        if pattern.linear:
            last = max(step for step, (_, _, _, is_condition) in enumerate(pattern.steps) if not is_condition)
            tuples = sorted(itertools.islice(Evaluation(pattern, tree).tuples(last), MOST_TUPLES))
            if len(tuples) < MOST_TUPLES:
                expected[key] = tuples
    actual: dict[int, list[tuple[int, ...]]] = {key: [] for key in expected}
    for key, elements in engine.tuples(document, list(expected)):
        actual[key].append(elements)
    return [
        f"tuples of {patterns[key]!r} are {expected[key]} and not {sorted(actual[key])} on {document.events}"
        for key in expected
        if sorted(actual[key]) != expected[key]
    ]
