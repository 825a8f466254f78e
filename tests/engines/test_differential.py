"""Every engine says what the reference says, on random patterns and documents, with additions and removals."""

from __future__ import annotations

import random

import pytest

from tests.support import differences
from xsift.engines import ENGINES, create


@pytest.mark.parametrize("name", [name for name in ENGINES if name != "reference"])
@pytest.mark.parametrize("kind", ["linear", "twigs", "ordered"])
def test_engine_equals_reference(name: str, kind: str) -> None:
    for seed in range(6):
        engine = create(name)
        found = differences(engine, random.Random(seed), 8, linear=kind == "linear", ordered=kind == "ordered")
        assert not found, found[:5]
        assert all(size >= 0 for size in engine.memory().values())
