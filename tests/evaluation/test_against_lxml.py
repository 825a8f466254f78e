"""Random expressions of the whole grammar, on documents with every kind of node: a short run of differential.py."""

from __future__ import annotations

import random

import pytest

from tests.evaluation.differential import differences


@pytest.mark.parametrize("seed", range(4))
def test_random_expressions(seed: int) -> None:
    reports = list(differences(random.Random(seed), documents=40, each=60))
    assert len(reports) > 2000
    assert [report for report in reports if report] == []
