"""XFilter: its lists, its promotions, the pivot of list balance, and random recursive documents."""

from __future__ import annotations

import random

import pytest

from tests.engines.recursive import recursive_differences
from tests.support import Element, differences
from xsift.document.events import RecordedEvents
from xsift.engines.xfilter.engine import XFilter
from xsift.errors import EngineError
from xsift.xpath import Symbols, patterns

BALANCE = [True, False]


def nested(names: str) -> Element:
    """Elements each in the one before: "abc" is <a><b><c/></b></a>."""
    element = Element(names[-1])
    for name in reversed(names[:-1]):
        element = Element(name, [], [element])
    return element


def index(*expressions: str, list_balance: bool) -> tuple[XFilter, Symbols]:
    engine, symbols = XFilter(list_balance=list_balance), Symbols()
    for expression in expressions:
        engine.add(patterns(expression, symbols)[0])
    return engine, symbols


def lists(engine: XFilter, symbols: Symbols) -> dict[str, tuple[list[tuple[int, int]], list[tuple[int, int]]]]:
    """The query index by name: candidate list and wait list, of (path, step)."""
    return {symbols.text(symbol): both for symbol, both in engine.query_index().items()}


def test_query_index() -> None:
    """The first name of each path is a candidate, the others wait; `*` is no path node unless it is the last."""
    engine, symbols = index("/a/b//c", "//b/*/c", "/*/a", "//c/*", list_balance=False)
    assert lists(engine, symbols) == {
        "a": ([(0, 0), (2, 1)], []),
        "b": ([(1, 0)], [(0, 1)]),
        "c": ([(3, 0)], [(0, 2), (1, 2)]),
        "*": ([], [(3, 1)]),
    }
    engine.remove(0)
    assert lists(engine, symbols) == {
        "a": ([(2, 1)], []),
        "b": ([(1, 0)], []),
        "c": ([(3, 0)], [(1, 2)]),
        "*": ([], [(3, 1)]),
    }


def test_list_balance_picks_the_name_with_the_shortest_candidate_list() -> None:
    engine, symbols = index("/a/b/c", "/a/b/d", "/a/c", "/a/b/c/d", list_balance=True)
    assert lists(engine, symbols) == {
        "a": ([(0, 0)], []),
        "b": ([(1, 1)], [(0, 1)]),
        "c": ([(2, 1)], [(0, 2)]),
        "d": ([(3, 3)], [(1, 2)]),
    }


def test_list_balance_keeps_lists_short() -> None:
    expressions = [f"/a/b{i % 10}/c{i % 7}/d{i}" for i in range(200)]
    longest = {}
    for list_balance in BALANCE:
        engine, symbols = index(*expressions, list_balance=list_balance)
        longest[list_balance] = max(len(candidates) for candidates, _ in lists(engine, symbols).values())
    assert longest == {True: 1, False: 200}


@pytest.mark.parametrize("list_balance", BALANCE)
@pytest.mark.parametrize(
    ("expression", "document", "expected"),
    [
        ("//a//*/b", "ab", False),
        ("//a//*/b", "acb", True),
        ("//a//*/b", "aab", True),
        ("/a/*//b", "ab", False),
        ("/a/*//b", "acdb", True),
        ("/a//b/c", "abdbc", True),
        ("/a//b/c", "bac", False),
        ("/a/a//a/b", "aaab", True),
        ("/a/a//a/b", "aab", False),
        ("//a/b//a/b//c", "abcababc", True),
        ("//a/b//b/a//c", "abacbbc", False),
        ("/*/*", "ab", True),
        ("/*/*", "a", False),
        ("//*/b/*", "bb", False),
        ("//*/b/*", "abb", True),
    ],
)
def test_levels_and_prefixes(expression: str, document: str, expected: bool, list_balance: bool) -> None:
    engine, symbols = index(expression, list_balance=list_balance)
    assert (len(engine.match(nested(document).document(symbols))) == 1) == expected


def test_prefix_of_the_pivot_is_tried_further_up() -> None:
    """The nearest b above the pivot has no a above it, the next one has."""
    engine, symbols = index("//a", "//b", "/a/b//c", list_balance=True)
    assert lists(engine, symbols)["c"] == ([(2, 2)], [])
    assert engine.match(nested("abxbc").document(symbols)).tolist() == [0, 1, 2]
    assert engine.match(nested("xbabc").document(symbols)).tolist() == [0, 1]


def test_an_element_promotes_a_path_node_once() -> None:
    engine, symbols = index("//a//a//a//a//b", list_balance=False)
    engine.match(nested("a" * 100).document(symbols))
    assert engine.counters()["promotions"] == 100 + 99 + 98 + 97


@pytest.mark.parametrize("list_balance", BALANCE)
def test_end_tags_take_back_what_was_promoted(list_balance: bool) -> None:
    engine, symbols = index("/a/b/c", "//b//c", "/a[b/c]/d", list_balance=list_balance)
    a, b, c, d = (symbols.element(name) for name in "abcd")
    assert engine.match(RecordedEvents([a, b, -1, c, -1, -1])).tolist() == []
    assert engine.match(RecordedEvents([a, b, c, -1, -1, d, -1, -1])).tolist() == [0, 1, 2]
    assert engine.match(RecordedEvents([a, b])).tolist() == []  # breaks off
    assert engine.match(RecordedEvents([-1, c, -1])).tolist() == []


def test_refuses_order_and_errors() -> None:
    engine, symbols = XFilter(), Symbols()
    [pattern] = patterns("/a[b]/c", symbols, ordered=True)
    assert engine.refuses(pattern)
    with pytest.raises(EngineError, match="refuses"):
        engine.add(pattern)
    with pytest.raises(EngineError, match="list_balance='yes'"):
        XFilter(list_balance="yes")
    with pytest.raises(EngineError, match="no pattern with key"):
        engine.remove(0)


@pytest.mark.parametrize("list_balance", BALANCE)
@pytest.mark.parametrize("kind", ["linear", "twigs"])
def test_equals_reference(list_balance: bool, kind: str) -> None:
    for seed in range(4):
        found = differences(XFilter(list_balance=list_balance), random.Random(seed), 6, linear=kind == "linear")
        assert not found, found[:3]
    for seed in range(12):
        engine = XFilter(list_balance=list_balance)
        found = recursive_differences(engine, random.Random(seed), 2, linear=kind == "linear")
        assert not found, found[:3]
        assert all(size >= 0 for size in engine.memory().values())
