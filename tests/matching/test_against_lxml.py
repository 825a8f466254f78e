"""Random subscriptions on random documents: every engine gives what lxml gives; while subscriptions come and go."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

import xsift
from tests.evaluation.grammar import GrammarMaker
from tests.language import NAMESPACES, ExpressionMaker, random_xml
from xsift.engines import ENGINES
from xsift.xpath import parse, to_text


def lxml_says(xpath: str, tree: etree._Element | etree._ElementTree) -> bool:
    expression = to_text(parse(xpath, NAMESPACES), verification=True)
    return bool(etree.XPath(f"boolean({expression})", namespaces=NAMESPACES)(tree))


def check(engine: str, seed: int, rounds: int = 3, expressions: int = 25, beyond: float = 0.1) -> None:
    rng = random.Random(seed)
    maker = ExpressionMaker(rng, beyond)
    subscriptions = xsift.Subscriptions(namespaces=NAMESPACES)
    texts: dict[str, str] = {}
    for _ in range(rounds):
        for _ in range(expressions):
            id = f"s{len(texts)}-{rng.random()}"
            texts[id] = maker.expression()
            subscriptions.add(id, texts[id])
        for id in rng.sample(list(texts), rng.randrange(len(texts) // 3)):
            subscriptions.remove(id)
            del texts[id]
        matcher = subscriptions.matcher(engine)
        for _ in range(3):
            xml = random_xml(rng)
            tree = etree.fromstring(xml).getroottree()
            expected = [id for id, xpath in texts.items() if lxml_says(xpath, tree)]
            actual = matcher.match(xml)
            wrong = [texts[id] for id in set(expected) ^ set(actual)]
            assert not wrong, f"{wrong} on {xml}"
            assert actual == expected


@pytest.mark.parametrize("engine", list(ENGINES))
def test_engine_equals_lxml(engine: str) -> None:
    @settings(max_examples=25, deadline=None, derandomize=True)
    @given(st.integers(0, 2**32))
    def run(seed: int) -> None:
        check(engine, seed)

    run()


def test_indexed_expressions_equal_lxml() -> None:
    """Only what is indexed whole: nothing for lxml to put right."""
    for seed in range(40):
        check("auto", seed, beyond=0.0)


def path_by_lxml(item: Any, tree: Any) -> str:
    """What libxml2 calls a node, also where lxml has no getpath() for it."""
    if not isinstance(item, str):
        return str(tree.getpath(item))
    parent = item.getparent()  # type: ignore[attr-defined]
    if item.is_attribute:  # type: ignore[attr-defined]
        name = etree.QName(item.attrname)  # type: ignore[attr-defined]
        return f"{tree.getpath(parent)}/@{'m:' if name.namespace else ''}{name.localname}"
    owner = parent.getparent() if item.is_tail else parent  # type: ignore[attr-defined]
    texts = [(text.getparent(), text.is_tail) for text in owner.xpath("text()")]
    place = texts.index((parent, item.is_tail)) + 1  # type: ignore[attr-defined]
    return f"{tree.getpath(owner)}/text(){f'[{place}]' if len(texts) > 1 else ''}"


def check_selection(xpath: str, xml: str) -> None:
    subscriptions = xsift.Subscriptions(namespaces=NAMESPACES)
    subscriptions.add("it", xpath)
    tree = etree.fromstring(xml).getroottree()
    found = etree.XPath(to_text(parse(xpath, NAMESPACES), verification=True), namespaces=NAMESPACES)(tree)
    expected = [path_by_lxml(item, tree) for item in found] if isinstance(found, list) else []
    selected = subscriptions.matcher().select(xml).get("it", [])
    # An attribute that patterns find is called as the subscription calls it.
    assert [node.path.replace("@n:", "@m:") for node in selected] == expected, f"{xpath} on {xml}"
    elements = list(tree.iter("*"))
    for node, item in zip(selected, found if isinstance(found, list) else [], strict=True):
        if not isinstance(item, str) and item in elements:
            assert elements[node.number - 1] is item


def test_selected_nodes_equal_lxml() -> None:
    rng = random.Random(7)
    maker = ExpressionMaker(rng)
    for _ in range(400):
        check_selection(maker.path(3), random_xml(rng))


def test_selected_nodes_of_every_kind_equal_lxml() -> None:
    rng = random.Random(8)
    maker = GrammarMaker(rng, namespaces=False)
    for _ in range(1500):
        check_selection(maker.nodes(3), random_xml(rng))
