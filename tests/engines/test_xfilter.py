"""XFilter: its lists, its promotions, the pivot of list balance, and random recursive documents."""

from __future__ import annotations

import random
from itertools import product

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
def test_an_end_tag_costs_what_its_element_promoted(list_balance: bool) -> None:
    """Children that promote nothing cost nothing, however much is promoted above them."""

    def taken_back(children: list[str]) -> int:
        engine, symbols = index(*(f"/a/b{i}//c" for i in range(100)), "//q//c", list_balance=list_balance)
        engine.match(Element("a", [], [Element(name) for name in children]).document(symbols))
        assert engine.counters()["promotions taken back"] == engine.counters()["promotions"]
        return engine.counters()["promotions taken back"]

    few = taken_back(["x"])
    assert few > 0
    assert taken_back(["x"] * 500) == few
    assert taken_back(["x", *(["q"] * 50)]) == few + 50


def test_candidates_that_fail_alike_are_checked_once() -> None:
    """All 200 paths wait for an a at level 1 or 2: at level 3 two checks, or a few more, say no to all of them."""
    engine, symbols = index(*(f"/a/b{i}" if i % 2 else f"/*/a/b{i}" for i in range(200)), list_balance=False)
    engine.match(nested("xxa").document(symbols))
    counters = engine.counters()
    assert counters["candidates checked"] + counters["checks spared"] == 200
    assert counters["candidates checked"] <= 2 + 200 // 5  # a fifth of a list may not be grouped yet
    assert engine.match(Element("a", [], [Element("b7"), Element("b8")]).document(symbols)).tolist() == [7]
    for key in range(1, 200, 2):
        engine.remove(key)
    assert engine.match(Element("a", [], [Element("b7")]).document(symbols)).tolist() == []
    assert engine.match(Element("x", [], [Element("a", [], [Element("b8")])]).document(symbols)).tolist() == [8]


def test_pivots_below_the_same_name_share_its_check() -> None:
    """With only a, b and c to choose from, lists of pivots are long; what must be above them is mostly not there."""
    expressions = [f"/{'/'.join(names)}" for n in range(3, 7) for names in product("abc", repeat=n)]
    engine, symbols = index(*expressions, list_balance=True)
    assert engine.match(nested("xxxxxa").document(symbols)).tolist() == []
    counters = engine.counters()
    assert counters["prefixes checked"] == 0
    assert counters["candidates checked"] < counters["checks spared"]
    assert engine.match(nested("abcabc").document(symbols)).tolist() == [
        expressions.index(expression) for expression in ("/a/b/c", "/a/b/c/a", "/a/b/c/a/b", "/a/b/c/a/b/c")
    ]


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
