"""Unsure verdicts get more rounds where they help; a budget leaves figures out, and says so."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.conftest import FIGURE, tiny
from xsift.cli import main
from xsift.experiments import runner
from xsift.experiments.budget import Estimate, by_worth
from xsift.experiments.plan import Point, make_plan
from xsift.experiments.report import terminal
from xsift.experiments.results import DOES_NOT_HOLD, HOLDS, NOT_MEASURED, OPEN, Results
from xsift.experiments.runner import run
from xsift.experiments.settling import MOST_ROUNDS, joined
from xsift.experiments.store import Measured, Store

CLAIM = """
[[figure.claim]]
says = "Y is never slower."
check = 'always(y("Y") <= y("R"))'
reason = 'R takes {y("R", last)}.'
"""


def rehearsed(
    monkeypatch: pytest.MonkeyPatch,
    times: Sequence[float],
    took: float = 0.001,
    drops: Mapping[str, list[int]] | None = None,
) -> list[tuple[object, tuple[str, ...], int]]:
    """Measurements with made-up times: Y takes these, round after round and over and over; R, T a second."""
    asked: list[tuple[object, tuple[str, ...], int]] = []

    def measure(
        point: Point, tell: Any, labels: Sequence[str] = (), rounds: int = 0, dropped: Any = None
    ) -> Measured:
        asked.append((point.x, tuple(labels), rounds))
        before = sum(number or 3 for x, _, number in asked[:-1] if x == point.x)
        y = [times[at % len(times)] for at in range(before, before + (rounds or 3))]
        records = {
            label: {f"{part}_cpu_rounds": values for part in ("match", "parse", "deliver")}
            | {f"{part}_rounds": [[value] for value in values] for part in ("match", "parse", "deliver")}
            for label, values in {"Y": y, "R": [1.0] * len(y), "T": [1.0] * len(y)}.items()
        }
        return Measured(point.key, records, {}, [], took, 1.0, "now", drops or {})

    monkeypatch.setattr(runner, "measure", measure)
    return asked


def verdict_of(store: Store) -> tuple[str, int]:
    results = Results.of(store)
    (verdict,) = results.verdicts(results.experiment.figures[0])
    return verdict.state, verdict.sureness.rounds


def test_rounds_are_added_until_the_verdict_is_settled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = rehearsed(monkeypatch, [0.8, 1.05, 1.2, *[1.1, 1.11, 1.12] * 40])
    run(tiny(FIGURE + CLAIM), Store(tmp_path))
    assert verdict_of(Store(tmp_path)) == (DOES_NOT_HOLD, 7)
    assert asked == [(4, (), 0), (8, (), 0), (4, ("R", "Y"), 4), (8, ("R", "Y"), 4)]
    assert "R takes 1.00 s." in terminal(Results.of(Store(tmp_path)))


@pytest.mark.parametrize(("drops", "again"), [({}, ("R", "Y", "T")), ({"a workload": [2]}, ("R", "Y"))])
def test_where_it_is_known_what_is_dropped_only_the_series_in_question_get_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drops: Mapping[str, list[int]], again: tuple[str, ...]
) -> None:
    asked = rehearsed(monkeypatch, [0.8, 1.05, 1.2, *[1.1, 1.11, 1.12] * 40], drops=drops)
    figure = FIGURE.replace("additions = 0", "drop_order_dependent = true")
    third = '[[figure.series]]\nlabel = "T"\nengine = "yfilter"\nordered = false\n'
    run(tiny(figure + third + CLAIM), Store(tmp_path))
    assert {labels for _, labels, _ in asked[2:]} == {again}


def test_what_no_rounds_settle_is_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rehearsed(monkeypatch, [0.9, 1.1])
    run(tiny(FIGURE + CLAIM), Store(tmp_path))
    assert verdict_of(Store(tmp_path)) == (OPEN, MOST_ROUNDS)
    assert re.search(r"open, \d+ % for it: Y is never slower", terminal(Results.of(Store(tmp_path))))


def test_where_rounds_are_not_what_makes_it_open_none_are_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = rehearsed(monkeypatch, [1.0])
    run(tiny(FIGURE + CLAIM), Store(tmp_path))
    assert verdict_of(Store(tmp_path)) == (OPEN, 3)
    assert len(asked) == 2


def test_what_is_clear_needs_no_more_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = rehearsed(monkeypatch, [0.4, 0.5, 0.6])
    run(tiny(FIGURE + CLAIM), Store(tmp_path))
    assert verdict_of(Store(tmp_path)) == (HOLDS, 3)
    assert len(asked) == 2


def test_when_time_is_up_it_stays_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = rehearsed(monkeypatch, [0.5, 2.0])
    monkeypatch.setattr(runner, "unsettled", lambda plan, store: [])
    run(tiny(FIGURE + CLAIM), Store(tmp_path))
    assert verdict_of(Store(tmp_path))[0] == OPEN
    assert len(asked) == 2


def test_who_fails_the_second_time_keeps_its_rounds() -> None:
    one = Measured(
        "k",
        {
            "A": {"match_rounds": [[1.0]], "n": 3, "counter_rounds": {"t_nanoseconds": [5.0]}},
            "B": {"match_rounds": [[2.0]]},
        },
        {},
        [],
        1.0,
        0.5,
        "",
    )
    two = Measured(
        "k",
        {"A": {"match_rounds": [[3.0]], "n": 3, "counter_rounds": {"t_nanoseconds": [7.0]}}},
        {"B": "it crashed"},
        [],
        2.0,
        0.7,
        "",
    )
    both = joined(one, two)
    times = {"t_nanoseconds": [5.0, 7.0]}
    assert both.records["A"] == {"match_rounds": [[1.0], [3.0]], "n": 3, "counter_rounds": times}
    assert both.records["B"] == {"match_rounds": [[2.0]]}
    assert (both.failures, both.elapsed_seconds, both.load) == ({}, 3.0, 0.7)
    assert (both.rounds(["A"]), both.rounds(["A", "B"]), both.rounds([])) == (2, 1, 0)


TWO = FIGURE + CLAIM + FIGURE.replace('id = "1"', 'id = "2"').replace("[4, 8]", "[5, 9]")


def test_a_budget_leaves_out_what_gives_the_fewest_verdicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rehearsed(monkeypatch, [0.5], took=40.0)
    assert by_worth(make_plan(tiny(TWO))) == ["1", "2"]  # the second has no claim
    monkeypatch.setattr(Estimate, "expected", staticmethod(lambda point: 40.0 if point.figure.id == "1" else 100.0))
    definition = tmp_path / "two.toml"
    definition.write_text(tiny(TWO).text + CLAIM, encoding="utf-8")
    folder = tmp_path / "out"
    assert main(["experiment", "run", str(definition), "--output", str(folder), "--budget", "2"]) == 0
    results = Results.of(Store(folder))
    assert results.figures_left_out() == {"2": "it does not fit into the budget of 2 minutes"}
    assert [verdict.state for _, verdict in results.all_verdicts()][1] == NOT_MEASURED
    shown = capsys.readouterr().out
    assert "Figure 2 was not measured: it does not fit into the budget of 2 minutes." in shown
    with pytest.raises(SystemExit):
        main(["experiment", "run", str(definition), "--budget", "0"])
