"""sift: what is there against costs out of proportion: a cache that stays small, a join that does not look at all."""

from __future__ import annotations

import itertools
import random

import pytest

from tests.support import Element, random_element
from xsift.document.events import RecordedEvents
from xsift.engines.reference import Evaluation, Tree
from xsift.engines.sift.engine import Sift
from xsift.xpath import Symbols, patterns


@pytest.mark.parametrize("cache_bytes", [1 << 16, 1 << 18])
def test_the_cache_stays_as_small_as_it_is_told_however_often_it_is_emptied(cache_bytes: int) -> None:
    symbols = Symbols()
    engine = Sift(cache_bytes=cache_bytes, remember="always")
    names = [f"n{number}" for number in range(40)]
    rng = random.Random(1)
    texts = {f"//{rng.choice(names)}[.//{rng.choice(names)}]/{rng.choice(names)}" for _ in range(300)}
    for pattern in [one for text in sorted(texts) for one in patterns(text, symbols)]:
        engine.add(pattern)
    most = 0
    for _ in range(150):
        engine.match(_of_names(rng, names, 150).document(symbols))
        most = max(most, engine.memory()["run-time states"])
    assert engine.counters()["flushes"] > 20
    assert most < 2 * cache_bytes


def _of_names(rng: random.Random, names: list[str], size: int) -> Element:
    """A document of so many elements, some deep in others."""
    root = Element("r")
    around = [root]
    for _ in range(size):
        while len(around) > 1 and (len(around) > 12 or rng.random() > 0.6):
            around.pop()
        element = Element(rng.choice(names))
        around[-1].children.append(element)
        around.append(element)
    return root


@pytest.mark.parametrize("text", ["//x[.//b{0}][.//c{0}]", "//x[b{0}][d]", "//x[b{0}][d][.//c{0}]"])
def test_twigs_that_each_have_another_element_to_hold_for_are_all_found(text: str) -> None:
    """That this takes no longer than there are twigs, `python -m benchmarks hostile` sees."""
    symbols = Symbols()
    engine = Sift(remember="never")
    keys = [engine.add(one) for i in range(2000) for one in patterns(text.format(i), symbols)]
    below = [[Element(f"b{i}"), Element(f"c{i}"), Element("d")] for i in range(2000)]
    document = Element("r", children=[Element("x", children=children) for children in below])
    assert engine.match(document.document(symbols)).tolist() == keys
    for children in below[::2]:
        del children[0]
    assert engine.match(document.document(symbols)).tolist() == keys[1::2]


def test_the_join_keeps_no_more_than_it_is_told() -> None:
    """Twigs that nearly hold, for elements that are not the same: each branch is below all of its elements."""
    symbols = Symbols()
    ways = itertools.product(["/r", "//r", "/*", "//*"], repeat=4)
    asked = [one for way in ways for one in patterns(f"{''.join(way)}/b[c][d]", symbols)]
    engine = Sift(remember="never", cache_bytes=1 << 19)
    keys = [engine.add(pattern) for pattern in asked]
    below = [Element("b", children=[Element("cd"[number % 2])]) for number in range(2000)]
    document = Element("r", children=[Element("r", children=[Element("r", children=[Element("r", children=below)])])])
    for _ in range(3):
        assert not engine.match(document.document(symbols)).size
    assert engine.memory()["run-time marks"] < 1_500_000  # of elements there are 256 times 2000
    below[-1].children.append(Element("c"))
    assert engine.match(document.document(symbols)).tolist() == keys


def test_branch_points_around_each_other_are_all_found() -> None:
    """What is around an element where a `//` begins: nested, side by side, in each other's last child, or nothing."""
    symbols = Symbols()
    texts = [
        "//a[.//b][.//c]",
        "//a[.//b]//a[c][.//d]",
        "//a[a//b][a/c][.//d/b]",
        "//*[.//a//c][.//b//d][a]",
        "//a[b]/a[.//c]",
    ]
    asked = [one for text in texts for one in patterns(text, symbols)]
    engine = Sift(remember="never")
    keys = [engine.add(pattern) for pattern in asked]
    rng = random.Random(4)
    some = 0
    for number in range(600):
        document = random_element(rng, "aaabcd", size=rng.choice((6, 15, 40)), deep=rng.choice((0.4, 0.7, 0.95)))
        codes = document.codes(symbols)
        if number % 3 == 0:  # breaks off, and is no document
            engine.match(RecordedEvents(codes[: rng.randrange(len(codes))]))
        tree = Tree(codes)
        expected = [key for key, pattern in zip(keys, asked, strict=True) if Evaluation(pattern, tree).matches()]
        assert engine.match(document.document(symbols)).tolist() == expected
        some += 0 < len(expected) < len(keys)
    assert some > 100
