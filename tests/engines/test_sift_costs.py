"""sift: what it costs in memory and time does not grow out of proportion, whatever documents are like."""

from __future__ import annotations

import random

import pytest

from tests.support import Element
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
