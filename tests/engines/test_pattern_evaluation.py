"""The compiled evaluation says what the reference says: matches, selected elements, tuples."""

from __future__ import annotations

import random

import pytest

from tests.support import random_element, random_twig
from xsift.document.tree import DocumentTree
from xsift.engines.pattern_evaluation import PatternEvaluation
from xsift.engines.reference import Evaluation, Tree
from xsift.xpath.symbols import Symbols


@pytest.mark.parametrize("ordered", [False, True])
def test_evaluation_equals_reference(ordered: bool) -> None:
    rng = random.Random(ordered)
    symbols = Symbols()
    for _ in range(1500):
        pattern = random_twig(rng, "ab").pattern(symbols, ordered)
        document = random_element(rng, "abc", size=rng.choice([4, 15, 40]), deep=rng.random()).document(symbols)
        expected = Evaluation(pattern, Tree(document.events))
        actual = PatternEvaluation(pattern, DocumentTree(document))
        assert actual.matches() == expected.matches()
        for output, (_, _, _, is_condition) in enumerate(pattern.steps):
            if not is_condition:
                assert actual.select(output) == expected.select(output)
                assert list(actual.tuples(output)) == list(expected.tuples(output))


def test_a_condition_is_no_step_to_select() -> None:
    symbols = Symbols()
    from tests.support import Element, Twig

    pattern = Twig("a", 0, [Twig("@x")]).pattern(symbols)
    evaluation = PatternEvaluation(pattern, DocumentTree(Element("a", ["x"]).document(symbols)))
    assert evaluation.select(0) == [1]
    with pytest.raises(IndexError, match="no step 1"):
        evaluation.select(1)
