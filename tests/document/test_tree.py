"""DocumentTree: numbers, parents, ranks, extents and paths are those of lxml."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from tests.document.support import ATTRIBUTE, EQUAL, TEXT, Asked, Spec
from tests.document.test_conditions import documents
from xsift.document import DocumentTree, ElementNames, NamedEvents, RecordedEvents


def compare(document: bytes) -> None:
    asked = Asked(names=["a", "{urn:n}a"])
    tree = DocumentTree(asked.reader(keep_names=True).read(document))
    root = etree.fromstring(document)
    elements = list(root.iter("*"))
    numbers = {element: number for number, element in enumerate(elements, 1)}
    order = sorted(elements, key=lambda e: (numbers[[*e.iter("*")][-1]], -len([*e.iterancestors()])))
    assert len(tree) == len(elements)
    for element, number in numbers.items():
        descendants = [*element.iter("*")]
        parent = element.getparent()
        assert tree.name(number) == element.tag
        assert tree.parent(number) == (numbers[parent] if parent is not None else 0)
        assert tree.level(number) == 1 + len([*element.iterancestors()])
        assert tree.last(number) == numbers[descendants[-1]]
        assert tree.post(number) == order.index(element) + 1
        assert tree.path(number) == root.getroottree().getpath(element)
        assert tree.symbol(number) == asked.names.get(str(element.tag), 0)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(documents())
def test_random_documents(document: bytes) -> None:
    compare(document)


@st.composite
def prefixed(draw: st.DrawFn, depth: int = 0) -> str:
    """Elements whose names differ in prefix, namespace and local name."""
    name = draw(st.sampled_from(["a", "b", "p:a", "q:a", "p:b"]))
    declared = draw(st.sampled_from(["", ' xmlns="u"', ' xmlns=""', ' xmlns:p="v"', ' xmlns:q="u"']))
    children = draw(st.lists(prefixed(depth + 1), max_size=4)) if depth < 3 else []
    return f"<{name}{declared}>{''.join(children)}</{name}>"


@settings(max_examples=150, deadline=None, derandomize=True)
@given(prefixed())
def test_paths_with_namespaces(element: str) -> None:
    compare(f'<r xmlns:p="u" xmlns:q="v">{element}{element}</r>'.encode())


def test_conditions_by_element() -> None:
    asked = Asked().add("b", Spec(ATTRIBUTE, EQUAL, "1", "x"), Spec(TEXT)).add("a", Spec(TEXT, EQUAL, "t"))
    one, text, t = (asked.condition(spec) for _, spec in asked.requests)
    tree = DocumentTree(asked.reader().read(b'<a><b x="1"><b x="1">u</b></b>t</a>'))
    assert [tree.conditions_of(number) for number in (1, 2, 3)] == [[t], [one], [one, text]]


def test_a_tree_from_a_stream() -> None:
    document = b"<a>" + b"<b><c/></b>" * 30_000 + b"</a>"
    reader = Asked().reader(positions=True, keep_names=True)
    whole = DocumentTree(reader.read(document))
    streamed = DocumentTree(reader.open(document))
    assert len(streamed) == len(whole) == 60_001
    for number in (1, 2, 3, 59_999, 60_000, 60_001):
        assert streamed.path(number) == whole.path(number)
        assert streamed.span(number) == whole.span(number)
        assert streamed.last(number) == whole.last(number)
    assert whole.path(60_001) == "/a/b[30000]/c"


def test_a_document_can_be_read_again() -> None:
    document = Asked().reader(keep_names=True).read(b"<a><b/></a>")
    assert [DocumentTree(document).path(2) for _ in range(2)] == ["/a/b", "/a/b"]
    assert isinstance(document, NamedEvents)
    assert len(document.names) == 2
    assert document.names.name(2) == "b"


def test_what_was_not_kept_is_refused() -> None:
    tree = DocumentTree(Asked().reader().read(b"<a/>"))
    with pytest.raises(ValueError, match="keep_names"):
        tree.path(1)
    with pytest.raises(ValueError, match="keep_names"):
        tree.name(1)
    with pytest.raises(ValueError, match="positions"):
        tree.span(1)
    for number in (0, -1, 2, 10**20):
        with pytest.raises(IndexError):
            tree.parent(number)
    with pytest.raises(IndexError):
        ElementNames().name(1)


def test_events_that_are_no_document() -> None:
    for codes in ([-1], [-5], [1], [1, -1, -1], [1, -1, -7]):
        with pytest.raises(ValueError, match="not the events"):
            DocumentTree(RecordedEvents(codes))
    with pytest.raises(ValueError, match="one position"):
        DocumentTree(RecordedEvents([1, -1], [0]))
    assert len(DocumentTree(RecordedEvents())) == 0
