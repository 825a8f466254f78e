"""The join of path matches: which twigs it evaluates, what it keeps, and what it gives up."""

from __future__ import annotations

import random

import pytest

from tests.engines.recursive import recursive_differences
from tests.support import Element, differences, nested
from xsift.document.events import RecordedEvents
from xsift.engines import create
from xsift.engines.paths import PathEngine
from xsift.xpath import Symbols, patterns

ENGINES = ("yfilter", "xfilter", "afilter", "predicate", "indexfilter")


def made(name: str) -> PathEngine:
    engine = create(name)
    assert isinstance(engine, PathEngine)
    return engine


def index(name: str, *expressions: str) -> tuple[PathEngine, Symbols]:
    engine, symbols = made(name), Symbols()
    for expression in expressions:
        engine.add(patterns(expression, symbols)[0])
    return engine, symbols


def b_in(*parents: str) -> list[Element]:
    """One element for each name, with a b in it."""
    return [Element(name, [], [Element("b")]) for name in parents]


@pytest.mark.parametrize("name", ENGINES)
def test_a_twig_is_evaluated_only_if_all_its_paths_match(name: str) -> None:
    engine, symbols = index(name, "//a[b]/c", "//a[b]/d", "//a[b][@x]/c", "//a[b][c][d]/*")
    root = Element("r", [], [nested("ab"), nested("ac")])
    assert engine.match(root.document(symbols)).tolist() == []
    assert engine.counters()["twigs evaluated"] == 1


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize(
    ("expression", "document", "expected"),
    [
        # Each branch has its element, but not the same one.
        ("/r/a[b]/c", Element("r", [], [nested("ab"), nested("ac")]), False),
        ("/r/a[b]/c", Element("r", [], [nested("ab"), Element("a", [], [Element("b"), Element("c")])]), True),
        # Nested branches: each a has what one branch wants, no a has both below one b.
        ("//a[b[c]/d]/e", Element("a", [], [nested("bc"), nested("bd"), Element("e")]), False),
        ("//a[b[c]/d]/e", Element("a", [], [Element("b", [], [nested("c"), nested("d")]), Element("e")]), True),
        # The same path twice in one twig.
        ("/a[b/c]/b[c]/d", Element("a", [], [nested("bc"), Element("b", [], [Element("c"), Element("d")])]), True),
        ("/a[b/c]/b[c]/d", Element("a", [], [nested("bc"), nested("bd")]), False),
        # `//` above and below the branching step: which of the nested b's is meant is not known from the leaf.
        ("//a/b[.//c]/d", Element("a", [], [Element("b", [], [nested("bc"), Element("d")])]), True),
        ("//a/b[.//c]/d", Element("a", [], [nested("bbc"), nested("bd")]), False),
        ("//a/b[.//c]//d", Element("a", [], [Element("b", [], [Element("b", [], b_in("c", "d"))])]), True),
        (
            "//x/b[.//c]/d",
            Element("x", [], [Element("b", [], [Element("b", [], [Element("c"), Element("d")])])]),
            False,
        ),
        # `//` below, `/` above: the element is the one at that level.
        ("/a/*[.//c]/d", Element("a", [], [nested("bbc"), nested("bd")]), False),
        ("/a/*[.//c]/d", Element("a", [], [Element("b", [], [nested("bc"), Element("d")])]), True),
        # Conditions hold for the element itself.
        ("//a[@x][@y]", Element("a", ["x"], [Element("a", ["y"])]), False),
        ("//a[@x][@y]", Element("a", [], [Element("a", ["x", "y"])]), True),
        ("//a[@x]/b[@y]", Element("a", ["x"], [Element("b"), Element("b", ["y"])]), True),
        ("//a[@x]/b[@y]", Element("a", ["y"], [Element("b", ["x", "y"])]), False),
        ("/*[*][@x]//*[@y]", Element("a", ["x"], [Element("b", [], [Element("c", ["y"])])]), True),
    ],
)
def test_cases(name: str, expression: str, document: Element, expected: bool) -> None:
    engine, symbols = index(name, expression)
    for engine.note_limit in (1 << 20, 1):
        assert bool(engine.match(document.document(symbols)).size) == expected


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("note_limit", [1, 3, 10, 50, 1 << 20])
def test_equals_reference_however_few_notes_are_kept(name: str, note_limit: int) -> None:
    for seed in range(8):
        engine = made(name)
        engine.note_limit = note_limit
        found = recursive_differences(engine, random.Random(seed), 3)
        assert not found, found[:3]
    for seed in range(2):
        engine = made(name)
        engine.note_limit = note_limit
        found = differences(engine, random.Random(seed), 6)
        assert not found, found[:3]


@pytest.mark.parametrize("name", ["yfilter", "xfilter", "afilter", "predicate"])
def test_notes_are_bounded_however_long_the_document(name: str) -> None:
    """Two hundred times the elements, and yet no more memory; what came first still counts."""
    twigs = ["/r[x]/a[b]", "//a[b]//c", "//*[b]/*[c]", "/r[a/b]//y", "//r[x][.//y]"]
    sizes = []
    for repeats in (1000, 200_000):
        engine, symbols = index(name, *twigs)
        engine.note_limit = 1000
        r, x, a, b, y = (symbols.element(name) for name in "rxaby")
        codes = [r, x, -1, *([a, b, -1, -1] * (repeats // 2)), y, -1, -1]
        assert engine.match(RecordedEvents(codes)).tolist() == [0, 3, 4]
        sizes.append(engine.memory()["run-time join"])
    assert sizes[1] <= sizes[0] + 1000


@pytest.mark.parametrize("name", ENGINES)
def test_many_nested_branches(name: str) -> None:
    depth = 40
    engine, symbols = index(name, "/" + "/".join(["a[b]"] * depth), "//" + "//".join(["a[b]"] * depth))
    element = Element("a", [], [Element("b")])
    for _ in range(depth - 2):
        element = Element("a", [], [Element("b"), element])
    assert engine.match(element.document(symbols)).tolist() == []
    assert engine.match(Element("a", [], [element, Element("b")]).document(symbols)).tolist() == [0, 1]


@pytest.mark.parametrize("name", ENGINES)
def test_a_twig_with_very_many_branches(name: str) -> None:
    names = [f"n{number}" for number in range(300)]
    engine, symbols = index(name, "//a" + "".join(f"[{name}]" for name in names))
    document = Element("r", [], [Element("a", [], [Element(name) for name in names[1:]]), nested("a")])
    assert engine.match(document.document(symbols)).tolist() == []
    document.children[0].children.append(Element(names[0]))
    assert engine.match(document.document(symbols)).tolist() == [0]


@pytest.mark.parametrize("name", ENGINES)
def test_what_was_removed_comes_back(name: str) -> None:
    """Branches and paths keep their numbers; twigs and their places in lists do not."""
    engine, symbols = create(name), Symbols()
    twigs = [patterns(text, symbols)[0] for text in ("//a[b]/c", "//a[b]/d", "//a[b][c]/d", "//a[c]/d", "/a/b")]
    document = Element("a", [], [Element("b"), Element("d")]).document(symbols)
    for _ in range(3):
        keys = [engine.add(twig) for twig in twigs]
        assert engine.match(document).tolist() == sorted([keys[1], keys[4]])
        for key in (keys[2], keys[0], keys[4]):
            engine.remove(key)
        assert engine.match(document).tolist() == [keys[1]]
        for key in (keys[3], keys[1]):
            engine.remove(key)
        assert engine.match(document).tolist() == []


def test_memory_by_structure() -> None:
    engine, symbols = index("yfilter", "//a[b]/c")
    assert engine.memory()["twigs"] > 0
    engine.match(nested("abc").document(symbols))
    assert engine.memory()["run-time join"] > 0
