"""Plans: defaults, overrides, scale and axis worked out; what does not exist is said with its place."""

from __future__ import annotations

import pytest

from tests.experiments.conftest import FIGURE, tiny
from xsift.experiments.definition import read
from xsift.experiments.errors import ExperimentError
from xsift.experiments.model import Experiment
from xsift.experiments.plan import make_plan

GENERATED = """
title = "Generated"
minutes = 1
[defaults]
seconds = 60
[defaults.workload]
dtd = "book"
documents = { number = 20, seed = 1, levels = 6 }
subscriptions = { number = 1000, seed = 2 }
[[figure]]
id = "1"
title = "Depth"
additions = 100
[figure.vary]
parameter = "subscriptions.maximum_depth"
values = [3, 5]
also = { "documents.levels" = [5, 7] }
[[figure.series]]
label = "A"
engine = "yfilter"
until = 3
[[figure.series]]
label = "B"
engine = "counted"
workload = { subscriptions = { wildcard_odds = 0.5 } }
"""


def generated(old: str = "", new: str = "") -> Experiment:
    assert old in GENERATED
    return read(GENERATED.replace(old, new), "generated")


def test_axis_overrides_and_until() -> None:
    first, second = make_plan(generated()).points
    assert [entry.label for entry in first.entries] == ["A", "B"]
    assert [entry.label for entry in second.entries] == ["B"]
    assert first.entries[0].workload["subscriptions"] == {"number": 1000, "seed": 2, "maximum_depth": 3}
    assert second.entries[0].workload["subscriptions"]["maximum_depth"] == 5
    assert second.entries[0].workload["subscriptions"]["wildcard_odds"] == 0.5
    assert second.entries[0].workload["documents"]["levels"] == 7
    assert first.seconds == pytest.approx(15)  # two points share half of a minute


def test_scale_multiplies_numbers_and_nothing_else() -> None:
    point = make_plan(generated(), 0.1).points[0]
    assert point.entries[0].workload["subscriptions"] == {"number": 100, "seed": 2, "maximum_depth": 3}
    assert point.entries[0].workload["documents"]["number"] == 5
    assert point.additions == 10
    assert point.x == point.x_measured == 3
    axis = make_plan(tiny(), 0.5).points
    assert [(point.x, point.x_measured) for point in axis] == [(4, 2), (8, 4)]


def test_keys_depend_on_what_is_measured() -> None:
    key = make_plan(generated()).points[1].key
    assert make_plan(generated()).points[1].key == key
    assert make_plan(generated("seed = 2", "seed = 3")).points[1].key != key
    assert make_plan(generated("seconds = 60", "seconds = 1")).points[1].key == key  # rounds can be added
    assert make_plan(generated('engine = "counted"', 'engine = "counted"\noptions = {size = 2}')).points[1].key != key
    assert make_plan(generated('title = "Depth"', 'title = "Height"')).points[1].key == key
    assert make_plan(generated(), 0.5).points[1].key != key


def test_an_option_varies_for_the_engines_that_have_it() -> None:
    figure = FIGURE.replace('"subscriptions.number"', '"option.size"').replace("[4, 8]", "[1, 3]")
    figure = figure.replace('"reference"', '"counted"')
    points = make_plan(tiny(figure)).points
    assert [dict(entry.options) for entry in points[1].entries] == [{"size": 3}, {}]
    with pytest.raises(ExperimentError, match="no series has an engine with an option 'sise'"):
        make_plan(tiny(figure.replace("option.size", "option.sise")))


BAD = [
    ('engine = "yfilter"', 'engine = "zfilter"', "no-engine", ["'zfilter'", "series 'A'", 'if_missing = "skip"']),
    ('engine = "yfilter"', 'engine = "yfilter"\noptions = {a = 1}', "bad-option", ["'a'", "series 'A'"]),
    ("levels = 6", "level = 6", "unknown-parameter", ["'level'", "did you mean 'levels'", "series 'A'"]),
    ("wildcard_odds = 0.5", "wildcard_odds = 5", "parameter-out-of-range", ["'wildcard_odds'", "series 'B'"]),
    ('dtd = "book"', 'dtd = "nowhere.dtd"', None, ["nowhere.dtd"]),
    ('dtd = "book"', 'like = "nobody"', None, ["nobody"]),
    ("number = 1000, seed = 2", "texts = [1]", "bad-value", ["'texts'", "a list of strings"]),
    ("number = 1000, seed = 2", 'texts = ["/a"], seed = 1', "unknown-key", ["'maximum_depth'", "'texts'"]),
]


@pytest.mark.parametrize(("old", "new", "code", "said"), BAD)
def test_what_does_not_exist_is_said_with_its_place(old: str, new: str, code: str | None, said: list[str]) -> None:
    with pytest.raises(ExperimentError) as caught:
        make_plan(generated(old, new))
    assert code in (None, caught.value.code)
    assert str(caught.value).startswith("generated.toml, figure '1'")
    for words in said:
        assert words in str(caught.value)


@pytest.mark.parametrize("scale", [0, -1, 1000])
def test_bad_scales(scale: float) -> None:
    with pytest.raises(ExperimentError, match="the scale is"):
        make_plan(generated(), scale)


def test_figures_that_were_not_asked_for_may_name_what_is_not_there() -> None:
    text = tiny().text + FIGURE.replace('id = "1"', 'id = "2"').replace('"yfilter"', '"zfilter"')
    experiment = read(text, "tiny")
    plan = make_plan(experiment, figures=["1"])
    assert len(plan.points) == 2
    assert plan.others == ()
    with pytest.raises(ExperimentError, match="'zfilter'"):
        make_plan(experiment)
    with pytest.raises(ExperimentError, match="no figure '3'"):
        make_plan(experiment, figures=["3"])


def test_a_missing_engine_can_be_left_out() -> None:
    plan = make_plan(generated('engine = "yfilter"', 'engine = "zfilter"\nif_missing = "skip"'))
    assert "zfilter" in plan.missing
    assert [entry.label for entry in plan.points[0].entries] == ["B"]
