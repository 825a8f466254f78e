"""What the experiments' tests share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.experiments.faulty import FAULTY
from xsift.engines import ENGINES
from xsift.experiments import worker
from xsift.experiments.definition import read
from xsift.experiments.model import Experiment
from xsift.experiments.results import Results
from xsift.experiments.runner import run
from xsift.experiments.store import Store

TINY = """
title = "Tiny"
paper = "Somebody: something <small> (2001)"
about = "First paragraph.\\n\\nSecond & last."
[defaults]
repeats = 3
seconds = 0
[defaults.workload]
documents = { texts = ["<a><b><c/></b><d/></a>", "<a><d/><b/></a>", "<x/>"] }
subscriptions = { texts = ["/a/b", "//c", "/a[b]/d", "/a[d]/b", "/x", "/a/*/c", "//b", "/a/b"] }
"""

FIGURE = """
[[figure]]
id = "1"
title = "Times"
y = ["match_seconds", "memory_bytes"]
additions = 0
[figure.vary]
parameter = "subscriptions.number"
values = [4, 8]
label = "subscriptions"
[[figure.series]]
label = "R"
engine = "reference"
[[figure.series]]
label = "Y"
engine = "yfilter"
"""


@pytest.fixture(autouse=True)
def _faulty_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module in FAULTY.items():
        monkeypatch.setitem(ENGINES, name, module)
    monkeypatch.setattr(worker, "SHORTEST_OTHER", 0.0)
    monkeypatch.setattr(worker, "SHORTEST_ROUND", 0.0)  # nothing here is about how long anything takes


def tiny(figures: str = FIGURE) -> Experiment:
    return read(TINY + figures, "tiny")


@pytest.fixture
def measured(tmp_path: Path) -> Callable[[str], Results]:
    """Runs a definition's figures over the tiny workload, and gives the results."""

    def measure(figures: str) -> Results:
        store = Store(tmp_path / "results")
        run(tiny(figures), store)
        return Results.of(store)

    return measure
