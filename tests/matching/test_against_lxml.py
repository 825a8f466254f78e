"""Random subscriptions on random documents: every engine gives what lxml gives; while subscriptions come and go."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

import xsift
from tests.language import NAMESPACES, ExpressionMaker, random_xml
from xsift.engines import ENGINES
from xsift.xpath import parse, to_text


def lxml_says(xpath: str, tree: object) -> bool:
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


def nodes_by_lxml(xpath: str, tree: object) -> list[int]:
    numbers = {element: number for number, element in enumerate(tree.iter("*"), 1)}  # type: ignore[attr-defined]
    expression = to_text(parse(xpath, NAMESPACES), verification=True)
    found = etree.XPath(expression, namespaces=NAMESPACES)(tree)
    return [numbers[item] for item in found if item in numbers]  # type: ignore[union-attr]


def is_element(node: xsift.Node) -> bool:
    last = node.path.rpartition("/")[2]
    return not last.startswith("@") and not last.endswith(")")


def test_selected_elements_equal_lxml() -> None:
    rng = random.Random(7)
    maker = ExpressionMaker(rng)
    for _ in range(400):
        xml, xpath = random_xml(rng), maker.path(3)
        subscriptions = xsift.Subscriptions(namespaces=NAMESPACES)
        subscriptions.add("it", xpath)
        tree = etree.fromstring(xml).getroottree()
        selected = [node for node in subscriptions.matcher().select(xml).get("it", []) if is_element(node)]
        assert [node.number for node in selected] == nodes_by_lxml(xpath, tree), f"{xpath} on {xml}"
        elements = list(tree.iter("*"))
        for node in selected:
            assert node.path == tree.getpath(elements[node.number - 1])
