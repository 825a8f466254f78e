"""The peer Spark: the same answers as the others, by its own clock, on as many documents as it is asked for."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import pytest

from tests.experiments.conftest import FIGURE, tiny
from xsift.experiments import programs
from xsift.experiments.plan import make_plan
from xsift.experiments.results import Results
from xsift.experiments.spark_xpath import _literal

SPARK = FIGURE.replace("[4, 8]", "[8]") + '[[figure.series]]\nlabel = "S"\npeer = "spark-xpath"\ndocuments = 2\n'


def test_it_agrees(measured: Callable[[str], Results]) -> None:
    if why := programs.why_missing(programs.SPARK):
        pytest.skip(why)
    results = measured(SPARK)
    (figure,) = results.experiment.figures
    assert results.failures(figure) == []
    record = results.record(figure, "S", 0)
    assert record["documents"] == 2
    assert record["matches"] == results.record(figure, "R", 0)["matches"][:2]
    assert [len(round_) for round_ in record["match_rounds"]] == [2, 2, 2]
    assert record["match_rounds"][0][0] == record["match_rounds"][0][1]  # an equal share each
    assert len(record["match_cpu_rounds"]) == 3
    assert record["parse_cpu_rounds"] is not None


def test_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "pip install 'xsift[spark]'" in make_plan(tiny(SPARK)).missing["spark-xpath"]


def test_expressions_are_written_as_sql_does() -> None:
    assert _literal("""/a[@b="it's"]""") == """'/a[@b="it\\'s"]'"""
