"""Proposals select what was pointed at, and what is said of them is true."""

from __future__ import annotations

import random
from typing import Any

import pytest
from lxml import etree

import xsift
from xsift.matching.proposals import Outline

FEED = """<feed xmlns="http://www.w3.org/2005/Atom" xmlns:x="urn:x"><title>Releases</title>
<entry x:rank="7" lang="it's &quot;odd&quot;"><title>A note on namespaces</title><n>12.50</n></entry>
<entry x:rank="8"><title>xsift</title></entry><!-- the end --></feed>"""


def texts(xml: str, element: int, attribute: str | None = None, **namespaces: str) -> list[str]:
    return [item.xpath for item in Outline(xsift.Document(xml)).propose(element, attribute, namespaces)[0]]


def test_from_general_to_particular() -> None:
    outline = Outline(xsift.Document(FEED))
    proposals, namespaces = outline.propose(4)
    assert namespaces == {"atom": "http://www.w3.org/2005/Atom"}
    assert [(item.xpath, item.selects) for item in proposals] == [
        ("//atom:title", 3),
        ("//atom:entry/atom:title", 2),
        ("/atom:feed/atom:entry/atom:title", 2),
        ("//atom:title[contains(., 'namespaces')]", 1),
        ("//atom:title[. = 'A note on namespaces']", 1),
        ("/atom:feed/atom:entry[1]/atom:title", 1),
    ]


def test_prefixes_that_are_bound_are_used_and_never_taken_for_another_namespace() -> None:
    assert texts(FEED, 4, a="http://www.w3.org/2005/Atom")[0] == "//a:title"
    assert texts(FEED, 4, atom="urn:other")[0] == "//atom2:title"
    assert texts("<a xml:lang='en'/>", 1, "xml:lang")[0] == "//@xml:lang"


def test_attributes_and_numbers() -> None:
    proposed = texts(FEED, 3, "x:rank")
    assert proposed[0] == "//@x:rank"
    assert {"//atom:entry[@x:rank >= 7]", "//atom:entry[@x:rank = '7']"} <= set(proposed)
    assert "//atom:n[. >= 12.50]" in texts(FEED, 5)


def test_values_that_cannot_be_written_are_left_out() -> None:
    assert not [text for text in texts(FEED, 3) if "odd" in text]  # both kinds of quotes
    assert '//a[. = "it\'s"]' in texts("<r><a>it's</a></r>", 2)
    assert all(len(text) < 100 for text in texts(f"<r><a>{'x' * 5000}</a></r>", 2))


def test_depth_is_bounded() -> None:
    deep = "<a>" * 500 + "</a>" * 500
    assert texts(deep, 400) == ["//a"]


@pytest.mark.parametrize(("element", "attribute"), [(0, None), (99, None), (1, "nope")])
def test_what_is_not_there(element: int, attribute: str | None) -> None:
    with pytest.raises(xsift.SubscriptionError) as caught:
        Outline(xsift.Document("<a b='1'/>")).propose(element, attribute)
    assert caught.value.code == "unknown-node"


def test_namespaces_of_a_document() -> None:
    outline = Outline(xsift.Document(FEED))
    assert [(item.uri, item.prefix, item.elements) for item in outline.namespaces()] == [
        ("http://www.w3.org/2005/Atom", "", 7)
    ]
    assert outline.namespaces_of("title") == ["http://www.w3.org/2005/Atom"]
    assert outline.namespaces_of("nothing") == []


def random_document(choose: random.Random) -> str:
    names, prefixes = ("a", "b", "p:a", "p:b"), ("u", "v")

    def element(depth: int) -> str:
        name = choose.choice(names)
        attributes = "".join(
            f' {each}="{choose.choice(("1", "22.5", "it&apos;s", "two words", "ä"))}"'
            for each in choose.sample(("x", "y", "p:x"), choose.randint(0, 3))
        )
        scope = f' xmlns:p="urn:{choose.choice(prefixes)}"' if depth == 0 or choose.random() < 0.1 else ""
        scope += ' xmlns="urn:d"' if choose.random() < 0.1 else ""
        inner = "".join(element(depth + 1) for _ in range(choose.randint(0, 3 if depth < 5 else 0)))
        text = choose.choice(("", "some text here", "7", "&lt;b>", " \n ", " 7\n", "\n  some  text ", "\u00a0it's"))
        return f"<{name}{scope}{attributes}>{text}{inner}</{name}>"

    return element(0)


@pytest.mark.parametrize("seed", range(60))
def test_each_selects_what_was_pointed_at_and_as_many_as_it_says(seed: int) -> None:
    """Beside lxml, on documents with namespaces that change their prefixes."""
    choose = random.Random(seed)
    xml = random_document(choose)
    root = etree.fromstring(xml)
    elements = list(root.iter("*"))
    outline = Outline(xsift.Document(xml))
    for number in choose.sample(range(len(elements)), min(4, len(elements))):
        node = elements[number]
        written = [None, *(_written(node, str(name)) for name in node.attrib)]
        for attribute in written:
            proposals, namespaces = outline.propose(number + 1, attribute)
            assert proposals
            for proposal in proposals:
                found: Any = root.getroottree().xpath(proposal.xpath, namespaces=namespaces)
                assert len(found) == proposal.selects, (xml, proposal)
                owners = [item if isinstance(item, etree._Element) else item.getparent() for item in found]
                assert node in owners, (xml, proposal)


def _written(node: etree._Element, name: str) -> str:
    uri, _, local = name.rpartition("}")
    if not uri:
        return local
    prefix = next(prefix for prefix, bound in node.nsmap.items() if bound == uri[1:] and prefix)
    return f"{prefix}:{local}"
