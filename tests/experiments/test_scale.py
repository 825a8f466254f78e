"""A scaled run speaks of the numbers that it measured, and has no verdict on sizes that it did not."""

from __future__ import annotations

from pathlib import Path

import pytest

from xsift.cli import main
from xsift.experiments.claims import Check
from xsift.experiments.definition import read
from xsift.experiments.model import Experiment
from xsift.experiments.page import page
from xsift.experiments.quantities import plain
from xsift.experiments.report import terminal
from xsift.experiments.results import HOLDS, NOT_MEASURED, Results
from xsift.experiments.rows import NotMeasured, Number, Setting
from xsift.experiments.runner import run
from xsift.experiments.store import Store

TEXT = """
title = "Sizes"
[defaults]
repeats = 3
seconds = 0
[[figure]]
id = "1"
title = "1,000 to 4,000 subscriptions"
note = "Made of 4,000 subscriptions, not of 4,0001."
workload = { dtd = "book", documents = { number = 5 } }
[figure.vary]
parameter = "subscriptions.number"
values = [1_000, 2_000, 4_000]
label = "subscriptions"
[[figure.series]]
label = "Y"
engine = "yfilter"
[[figure.claim]]
says = "At 4,000 subscriptions there are some."
check = 'patterns("Y", 4_000) > 0'
[[figure.claim]]
says = "There are some at the end."
check = 'patterns("Y", last) > 0'
[[figure.claim]]
says = "There are some from so many on."
check = 'smallest(where(x >= 1_500, x)) == 2_000 and always(patterns("Y") > 0)'
[[figure.claim]]
says = "There are some in the middle."
check = 'patterns("Y", 1_000) > 0'
[[figure]]
id = "2"
title = "Odds with 4,000 subscriptions"
workload = { dtd = "book", documents = { number = 5 }, subscriptions = { number = 4_000 } }
[figure.vary]
parameter = "subscriptions.wildcard_odds"
values = [0.0, 0.5]
[[figure.series]]
label = "Y, 4,000 subscriptions"
engine = "yfilter"
[[figure.claim]]
says = "There are some."
check = 'always(patterns("Y, 4,000 subscriptions") > 0)'
"""


def measured(folder: Path, scale: float) -> Results:
    store = Store(folder)
    run(experiment(), store, scale=scale)
    return Results.of(store)


def experiment() -> Experiment:
    return read(TEXT, "sizes")


def test_a_scaled_run_says_what_it_measured(tmp_path: Path) -> None:
    results = measured(tmp_path, 0.5)
    first, second = results.experiment.figures
    at, last, where, middle = results.verdicts(first)
    assert (at.state, at.reason) == (NOT_MEASURED, "it is about 4,000, and measured was 2,000 instead")
    assert (last.state, last.reason) == (NOT_MEASURED, "4,000 was not measured: measured was 500 to 2,000")
    assert where.state == HOLDS
    assert middle.state == HOLDS  # 2,000 of the file was measured as 1,000, which is what the claim is about
    assert middle.evidence[0][1] == Number(results.row(first, "patterns", "Y")[1].median)
    (labelled,) = results.verdicts(second)
    assert labelled.state == NOT_MEASURED
    for shown in (terminal(results), page(results)):
        assert "500 to 2,000 subscriptions" in shown
        assert "Odds with 2,000 subscriptions" in shown
        assert "Y, 2,000 subscriptions" in shown
        assert "1,000 to 4,000 subscriptions" not in shown.partition("The definition")[0]
    assert "Made of 2,000 subscriptions, not of 4,0001." in page(results)


REASONS = """
[[figure.claim]]
says = "There are none."
check = 'largest(patterns("Y")) < 0'
reason = '''At 1,000 there are {patterns("Y", 1_000)}, at {smallest(x)} {patterns("Y", first)}, at 4,000 \
{patterns("Y", 4_000)}, at {largest(x)} {patterns("Y", last)}; {patterns("Y", 2_000)} of 2,000.'''
"""


def test_the_reason_of_a_scaled_run_says_the_sizes_of_which_it_has_the_numbers(tmp_path: Path) -> None:
    """The number at 1,000 was made of 500: neither 1,000 nor the number that was made of 1,000 goes with it."""
    scaled = read(TEXT.partition('[[figure]]\nid = "2"')[0] + REASONS, "sizes")
    store = Store(tmp_path)
    run(scaled, store, scale=0.5)
    results = Results.of(store)
    (figure,) = results.experiment.figures
    low, middle, high = (plain(one.median) for one in results.row(figure, "patterns", "Y").values())
    assert len({low, middle, high}) == 3
    said = f"At 500 there are {low}, at 500 {low}, at 2,000 {high}, at 2,000 {high}; {middle} of 1,000."
    assert results.verdicts(figure)[-1].reason == said
    assert said in terminal(results)


def test_progress_names_the_sizes_that_are_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    definition = tmp_path / "sizes.toml"
    definition.write_text(TEXT, encoding="utf-8")
    assert main(["experiment", "run", str(definition), "--scale", "0.5", "--output", str(tmp_path / "run")]) == 0
    told = capsys.readouterr().err
    assert "sizes: 1, subscriptions 500: took" in told
    assert "subscriptions 4,000" not in told
    assert "sizes: 2, wildcard odds 0.5: took" in told


def test_at_full_scale_all_is_as_the_file_says(tmp_path: Path) -> None:
    results = measured(tmp_path, 1.0)
    assert {verdict.state for _, verdict in results.all_verdicts()} == {HOLDS}
    assert "1,000 to 4,000 subscriptions" in terminal(results)


def test_a_place_on_the_axis_is_looked_up_among_what_was_measured() -> None:
    setting = Setting("match_seconds", [10, 100, 1000], ["A"])
    check = Check('y("A", 100) + largest(x)', setting)

    def numbers(measure: str, label: str) -> dict[int, float]:
        return {0: 1.0, 1: 2.0, 2: 3.0}

    assert check.value(numbers) == Number(1002.0)
    assert check.value(numbers, [1, 10, 100]) == Number(103.0)
    with pytest.raises(NotMeasured, match="100 was not measured: measured was 2 to 200"):
        check.value(numbers, [2, 20, 200])
