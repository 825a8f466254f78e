"""Index-Filter: its prefix tree, its streams, leaps, twigs, and random recursive documents."""

from __future__ import annotations

import random

import pytest

from tests.engines.recursive import recursive_differences
from tests.support import Element, differences, nested
from xsift.document.events import RecordedEvents
from xsift.engines.indexfilter.engine import IndexFilter
from xsift.errors import EngineError
from xsift.xpath import Symbols, patterns

EVALUATIONS = ["depth-first", "together"]


def index(*expressions: str, evaluation: str = "depth-first") -> tuple[IndexFilter, Symbols]:
    engine, symbols = IndexFilter(evaluation=evaluation), Symbols()
    for expression in expressions:
        engine.add(patterns(expression, symbols)[0])
    return engine, symbols


def test_prefix_tree() -> None:
    engine, symbols = index("/a/b", "/a/b//c", "/a//c", "//b")
    assert engine.prefix_tree(symbols) == {"/a": -1, "/a/b": 0, "/a/b//c": 1, "/a//c": 2, "//b": 3}
    engine.remove(1)
    assert engine.prefix_tree(symbols) == {"/a": -1, "/a/b": 0, "/a//c": 2, "//b": 3}
    engine.remove(0)
    engine.remove(2)
    assert engine.prefix_tree(symbols) == {"//b": 3}
    engine.add(patterns("/b/a", symbols)[0])
    assert engine.match(nested("ba").document(symbols)).tolist() == [2, 3]


def test_index_streams() -> None:
    """(start, end, level): b is inside a if a's start < b's start and b's start <= a's end."""
    engine, symbols = index("//a/*", "//b")
    root = Element("a", [], [Element("b", [], [Element("a")]), Element("c"), Element("b")])
    assert engine.index_streams(root.document(symbols), symbols) == {
        "*": [(1, 5, 1), (2, 3, 2), (3, 3, 3), (4, 4, 2), (5, 5, 2)],
        "a": [(1, 5, 1), (3, 3, 3)],
        "b": [(2, 3, 2), (5, 5, 2)],
    }


def test_streams_are_gone_through_together_in_document_order() -> None:
    """Each query node has its turns only while the stack above it is not empty, and ends with its first match."""
    engine, symbols = index("//a/b", "//a//c", "/r/d/e", evaluation="together")
    root = Element("r", [], [nested("b"), nested("c"), nested("ab"), nested("axc"), nested("ab"), nested("e")])
    assert engine.match(root.document(symbols)).tolist() == [0, 1]
    counters = engine.counters()
    # r once; three a's; of the b's and c's the first inside an a each; no d, and so no e.
    assert counters["elements read"] == 1 + 3 + 1 + 1
    assert counters["leaps"] == 2


def test_a_prefix_is_joined_once_and_a_query_stops_at_its_first_match() -> None:
    engine, symbols = index(*(f"//a/b/{name}" for name in "cdef"))
    root = Element("r", [], [nested("abc") for _ in range(50)])
    assert engine.match(root.document(symbols)).tolist() == [0]
    counters = engine.counters()
    assert counters["query nodes visited"] == 6
    assert counters["elements read"] <= 50 + 50 + 2  # all a's, all b's, the first c


@pytest.mark.parametrize("evaluation", EVALUATIONS)
def test_elements_that_cannot_match_are_leapt_over(evaluation: str) -> None:
    engine, symbols = index("//a/b", evaluation=evaluation)
    root = Element("r", [], [Element("b") for _ in range(1000)])
    root.children.append(nested("ab"))
    assert engine.match(root.document(symbols)).tolist() == [0]
    counters = engine.counters()
    assert counters["leaps"] == 1
    assert counters["elements read"] <= 4


@pytest.mark.parametrize(
    ("expression", "document", "expected"),
    [
        ("/a", nested("ba"), False),
        ("/*/*/c", nested("abc"), True),
        ("//*/c", nested("c"), False),
        ("//a//a/b", nested("acaab"), True),
        ("//a//a/b", nested("acab"), True),
        ("//a/a/b", nested("acab"), False),
        ("/a[b]/c", Element("a", [], [Element("b"), Element("c")]), True),
        ("//a[b]/c", Element("r", [], [nested("ab"), nested("ac")]), False),
        ("//a[b//c]/b/d", Element("a", [], [nested("bxc"), nested("bd")]), True),
        ("//*[@x]/b[@y]", Element("a", ["x"], [Element("b", ["y"])]), True),
        ("//*[@x]/b[@y]", Element("a", ["y"], [Element("b", ["x"])]), False),
        ("/a//*[@x]", Element("a", ["x"], [Element("b")]), False),
        ("/*[b][c]", Element("r", [], [Element("a", [], [Element("b"), Element("c")])]), False),
    ],
)
@pytest.mark.parametrize("evaluation", EVALUATIONS)
def test_cases(expression: str, document: Element, expected: bool, evaluation: str) -> None:
    engine, symbols = index(expression, evaluation=evaluation)
    assert bool(engine.match(document.document(symbols)).size) == expected


def test_twigs_are_evaluated_only_if_all_their_paths_match() -> None:
    engine, symbols = index("//a[b]/c", "//a[b]/d")
    root = Element("r", [], [nested("ab"), nested("ac")])
    assert engine.match(root.document(symbols)).tolist() == []
    assert engine.counters()["twigs evaluated"] == 1


@pytest.mark.parametrize("evaluation", EVALUATIONS)
def test_a_long_path_does_not_recurse(evaluation: str) -> None:
    engine, symbols = index("/a" * 300, "//a" * 300, evaluation=evaluation)
    assert engine.match(nested("a" * 299).document(symbols)).tolist() == []
    assert engine.match(nested("a" * 300).document(symbols)).tolist() == [0, 1]


def test_events_that_are_no_document() -> None:
    engine, symbols = index("//a//b", "/*")
    a, b = symbols.element("a"), symbols.element("b")
    assert engine.match(RecordedEvents([])).tolist() == []
    assert engine.match(RecordedEvents([-1, -5, -1])).tolist() == []
    assert engine.match(RecordedEvents([a, b])).tolist() == [0, 1]


@pytest.mark.parametrize("evaluation", EVALUATIONS)
@pytest.mark.parametrize("linear", [True, False])
def test_random_documents(linear: bool, evaluation: str) -> None:
    for seed in range(6):
        assert differences(IndexFilter(evaluation=evaluation), random.Random(seed), 12, linear=linear) == []


@pytest.mark.parametrize("evaluation", EVALUATIONS)
@pytest.mark.parametrize("linear", [True, False])
def test_recursive_documents(linear: bool, evaluation: str) -> None:
    for seed in range(12):
        engine = IndexFilter(evaluation=evaluation)
        assert recursive_differences(engine, random.Random(seed), 4, linear=linear) == []


def test_ordered_twigs_are_refused() -> None:
    engine, symbols = index()
    pattern = patterns("/a[b]/c", symbols, ordered=True)[0]
    with pytest.raises(EngineError, match="order"):
        engine.add(pattern)


def test_memory_by_structure() -> None:
    engine, symbols = index("//a/b")
    engine.match(nested("abc").document(symbols))
    sizes = engine.memory()
    assert min(sizes["prefix tree"], sizes["run-time index streams"], sizes["run-time walk"]) > 0
