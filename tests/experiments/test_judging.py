"""How sure a check is: made-up rounds of which it is known what is true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import pytest

from xsift.experiments.claims import Check
from xsift.experiments.judging import OWN_FLOOR, SURE, Rounds, Sureness, sureness
from xsift.experiments.rows import Setting

AXIS = (1, 2, 4, 8)
MEASURE = "match_seconds"


def rounds_of(series: Mapping[str, Sequence[Sequence[float]]]) -> Rounds:
    def row(measure: str, label: str) -> dict[int, Sequence[float]]:
        return dict(enumerate(series[label])) if measure == MEASURE else {0: [5.0]}

    return row


def judged(text: str, series: Mapping[str, Sequence[Sequence[float]]], seed: str = "s") -> Sureness:
    return sureness(Check(text, Setting(MEASURE, AXIS, list(series))), rounds_of(series), AXIS, seed)


def noisy(median: float, rounds: int, spread: float, seed: int, paces: Sequence[float] = ()) -> list[float]:
    random = Random(seed)
    return [median * (1 + random.gauss(0, spread)) * (paces[at] if paces else 1.0) for at in range(rounds)]


def test_a_clear_difference_holds_and_its_opposite_does_not() -> None:
    series = {"A": [noisy(1.0, 7, 0.02, 1)], "B": [noisy(1.3, 7, 0.02, 2)]}
    assert judged('y("A", 1) < y("B", 1)', series).share > 0.99
    assert judged('y("A", 1) > y("B", 1)', series).share < 0.01


def test_a_near_tie_is_open() -> None:
    series = {"A": [noisy(1.0, 40, 0.02, 1)], "B": [noisy(1.002, 40, 0.02, 2)]}
    assert 1 - SURE < judged('y("A", 1) < y("B", 1)', series).share < SURE


def test_no_number_of_rounds_makes_less_than_the_floor_sure() -> None:
    series = {"A": [[1.0] * 48], "B": [[1 + OWN_FLOOR / 2] * 48]}
    sure = judged('y("A", 1) < y("B", 1)', series)
    assert 0.5 < sure.share < SURE
    assert not sure.deciding  # more rounds would not help


def test_one_wild_round_decides_nothing() -> None:
    wild = {"A": [[1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 9.0]], "B": [[1.3, 1.31, 1.29, 1.3, 1.32, 1.28, 0.1]]}
    assert judged('y("A", 1) < y("B", 1)', wild).share > 0.95


def test_few_rounds_are_less_sure_than_many() -> None:
    few = {"A": [[0.9, 1.0, 1.1]], "B": [[0.99, 1.1, 1.21]]}
    many = {label: [values * 12 for values in row] for label, row in few.items()}
    # In one order the rounds of both go together, and are a matter of pace; so B's are turned about.
    few["B"], many["B"] = ([row[0][::-1]] for row in (few["B"], many["B"]))
    few_sure, many_sure = (judged('y("A", 1) < y("B", 1)', series) for series in (few, many))
    assert few_sure.share < many_sure.share
    assert (few_sure.rounds, many_sure.rounds) == (3, 36)
    assert few_sure.deciding == {0}


def test_what_slows_all_series_of_a_point_makes_their_order_no_less_sure() -> None:
    paces = [1.0, 1.3, 0.8, 1.5, 1.1, 0.9, 1.2]
    together = {"A": [noisy(1.0, 7, 0.01, 1, paces)], "B": [noisy(1.15, 7, 0.01, 2, paces)]}
    apart = {"A": together["A"], "B": [together["B"][0][::-1]]}
    check = 'y("A", 1) < y("B", 1)'
    assert judged(check, together).share > 0.97
    assert judged(check, apart).share < judged(check, together).share


def test_between_points_the_pace_counts() -> None:
    paces = [1.0, 1.3, 0.8, 1.5, 1.1, 0.9, 1.2]
    row = [noisy(size, 7, 0.01, at, paces[at:] + paces[:at]) for at, size in enumerate((1.0, 1.15))]
    series = {"A": row, "B": [list(values) for values in row]}
    assert judged('y("A", 1) < y("A", 2)', series).share < 0.97


def test_of_a_series_without_others_all_may_be_pace() -> None:
    quiet = {"A": [noisy(1.0, 40, 0.05, 1), noisy(1.03, 40, 0.05, 2)]}
    assert 1 - SURE < judged('y("A", 1) < y("A", 2)', quiet).share < SURE


def test_the_same_rounds_give_the_same_answer() -> None:
    series = {"A": [noisy(1.0, 7, 0.05, 1)], "B": [noisy(1.03, 7, 0.05, 2)]}
    one, again = (judged('y("A", 1) < y("B", 1)', series) for _ in range(2))
    assert one == again
    assert judged('y("A", 1) < y("B", 1)', series, seed="another").share == pytest.approx(one.share, abs=0.1)


def test_what_was_not_timed_is_sure() -> None:
    series = {"A": [[1.0, 2.0]], "B": [[1.0, 2.0]]}
    assert judged('counter.states("A", 1) == 5', series) == Sureness(1.0, 1)
    assert judged('memory_bytes("A", 1) > 5', series) == Sureness(0.0, 1)


def test_more_rounds_are_for_the_point_that_decides() -> None:
    quiet, random = [0.98, 1.0, 1.02, 1.0, 0.99, 1.01, 1.0], [0.9, 1.1, 1.0, 1.05, 0.95, 0.92, 1.08]
    series = {
        "A": [quiet, quiet, random],
        "B": [[3 * one for one in quiet]] * 2 + [[1.03 * one for one in random[::-1]]],
    }
    assert judged('always(y("A") < y("B"))', series).deciding == {2}


def test_the_share_is_how_often_another_run_says_the_same() -> None:
    """Runs with an error that the rounds show: of verdicts that are not open hardly any is wrong."""
    wrong = decided = 0
    for number in range(200):
        true = 1.0 if number % 2 else 1.06
        series = {"A": [noisy(1.0, 5, 0.05, 2 * number)], "B": [noisy(true, 5, 0.05, 2 * number + 1)]}
        share = judged('y("B", 1) > 1.03 * y("A", 1)', series).share
        decided += not 1 - SURE < share < SURE
        wrong += share >= SURE if true == 1.0 else share <= 1 - SURE
    assert decided > 20
    assert wrong <= 0.1 * 200
