"""Definitions: what a good file gives, and that whatever is wrong with a bad one is said with its place."""

from __future__ import annotations

import pytest

from xsift.experiments.definition import load, names, read
from xsift.experiments.errors import ExperimentError
from xsift.experiments.second import overlaid

GOOD = """
title = "Tiny"
paper = "Somebody: something (2001)"
about = "A file with all that a file can have."
minutes = 5

[defaults]
repeats = 3
y_scale = "log"
[defaults.workload]
dtd = "book"
documents = { seed = 1 }
subscriptions = { number = 100, seed = 2 }

[[figure]]
id = "1"
title = "Time"
place = "section 1"
y = ["match_seconds", "memory_bytes"]
additions = 5
[figure.workload]
subscriptions = { depth = 5 }
[figure.vary]
parameter = "subscriptions.number"
values = [10, 100]
also = { "documents.number" = [4, 5] }
[[figure.series]]
label = "A"
engine = "yfilter"
until = 10
[[figure.series]]
label = "B"
engine = "reference"
workload = { subscriptions = { depth = 6 } }
deduplicate = false
ordered = true
[[figure.claim]]
says = "A is faster"
place = "section 1"
check = 'always(y("A") < y("B"))'
shows = 'ratio(y("A"), y("B"))'
note = "because"

[[figure]]
id = "2"
title = "Memory of the same runs"
from = "1"
only = ["A"]
y = "index_bytes"
[[figure.claim]]
says = "it grows"
check = 'rising(y("A"))'
"""


def test_a_good_file_gives_what_it_says() -> None:
    experiment = read(GOOD, "tiny")
    assert (experiment.name, experiment.title, experiment.minutes) == ("tiny", "Tiny", 5.0)
    first, second = experiment.figures
    assert first.measures == ("match_seconds", "memory_bytes")
    assert first.repeats == 3
    assert first.y_scale == "log"
    assert first.workload == {
        "dtd": "book",
        "documents": {"seed": 1},
        "subscriptions": {"number": 100, "seed": 2, "depth": 5},
    }
    assert first.vary.settings(1) == {"subscriptions.number": 100, "documents.number": 5}
    assert [series.label for series in first.series] == ["A", "B"]
    assert first.series[0].until == 10
    assert first.series[1].ordered is True
    assert not first.series[1].deduplicate
    assert first.claims[0].check.labels == {"A", "B"}
    assert first.all_measures == ["match_seconds", "memory_bytes"]
    assert second.measured_in == "1"
    assert [series.label for series in second.series] == ["A"]
    assert second.all_measures == ["index_bytes"]


def test_overlaid_tables_win_key_by_key() -> None:
    below = {"a": {"x": 1, "y": 2}, "b": 1, "c": [1]}
    assert overlaid(below, {"a": {"y": 3}, "c": [2]}) == {"a": {"x": 1, "y": 3}, "b": 1, "c": [2]}
    assert below == {"a": {"x": 1, "y": 2}, "b": 1, "c": [1]}


def test_choosing_a_figure_keeps_the_one_it_is_measured_in() -> None:
    experiment = read(GOOD, "tiny")
    assert [figure.id for figure in experiment.chosen(["2"]).figures] == ["1", "2"]
    assert [figure.id for figure in experiment.chosen(["1"]).figures] == ["1"]
    assert experiment.chosen([]) == experiment
    with pytest.raises(ExperimentError, match="no figure '3'"):
        experiment.chosen(["3"])


BAD = [
    # what is replaced, by what, the code, and what the message must say besides
    ("minutes = 5", "minuets = 5", "unknown-key", ["'minuets'", "did you mean 'minutes'"]),
    ("minutes = 5", "minutes = 'five'", "wrong-type", ["'minutes'", "no number"]),
    ('title = "Tiny"', "", "missing-key", ["'title'"]),
    ("repeats = 3", "repeats = 2", "bad-value", ["'repeats'", "at least 3", "figure '1'"]),
    ("repeats = 3", "repeats = true", "wrong-type", ["'repeats'", "whole number"]),
    ("repeats = 3", 'id = "x"', "unknown-key", ["'id'", "defaults"]),
    ('y_scale = "log"', 'y_scale = "cubic"', "bad-value", ["'cubic'", "linear, log"]),
    ('dtd = "book"', 'dtt = "book"', "unknown-key", ["'dtt'", "workload", "figure '1'"]),
    ('also = { "documents.number" = [4, 5] }\n', "", "missing-key", ["workload.documents.number", "--scale"]),
    (
        'y = ["match_seconds", "memory_bytes"]',
        'y = "match_second"',
        "unknown-measure",
        ["did you mean 'match_seconds'"],
    ),
    ('y = ["match_seconds", "memory_bytes"]', "y = []", "bad-value", ["'y' is empty"]),
    ('y = ["match_seconds", "memory_bytes"]', "y = 3", "unknown-measure", ["3"]),
    ('parameter = "subscriptions.number"', 'parameter = "number"', "unknown-parameter", ["'number'", "vary"]),
    ("values = [10, 100]", "values = [100, 10]", "bad-value", ["ascending"]),
    ("values = [10, 100]", "values = [10, 10]", "bad-value", ["each once"]),
    ("values = [10, 100]", "values = []", "bad-value", ["'values'"]),
    ("values = [10, 100]", 'values = [10, "100"]', "bad-value", ["some numbers, or some strings"]),
    ("values = [10, 100]", 'values = [10, 100]\nlabels = ["ten"]', "bad-value", ["'labels' has 1 members"]),
    ('"documents.number" = [4, 5]', '"documents.number" = [4]', "bad-value", ["'documents.number' has 1 members"]),
    ('"documents.number" = [4, 5]', '"documents.number" = 4', "wrong-type", ["'documents.number'", "no list"]),
    ('engine = "yfilter"', "", "no-engine", ["series 'A'"]),
    ('engine = "yfilter"', 'peer = "lxml"', "unknown-peer", ["lxml-loop", "series 'A'"]),
    ('engine = "yfilter"', 'peer = "lxml-loop"\noptions = { a = 1 }', "bad-value", ["no options"]),
    ('label = "B"', 'label = "A"', "same-label", ["'A'"]),
    ("until = 10", "untli = 10", "unknown-key", ["'untli'", "did you mean 'until'", "series 'A'"]),
    ("ordered = true", "ordered = 1", "wrong-type", ["'ordered'", "series 'B'"]),
    ('says = "A is faster"', "", "missing-key", ["'says'", "claim 1"]),
    ('y("B"))', 'y("C"))', "bad-check", ["'C'", "claim 1"]),
    ('from = "1"', 'from = "7"', "unknown-figure", ["'7'"]),
    ('only = ["A"]', 'only = ["Z"]', "unknown-label", ["'Z'"]),
    ('only = ["A"]', "repeats = 4", "unknown-key", ["'repeats'"]),
    ('id = "2"', 'id = "1"', "same-id", ["'1'"]),
    ("additions = 5", 'show = "scale"', "bad-value", ["'scale'", "scaleup"]),
    ("title = ", "title ", "not-toml", ["tiny.toml"]),
]


@pytest.mark.parametrize(("old", "new", "code", "said"), BAD)
def test_what_is_wrong_is_said_with_its_place(old: str, new: str, code: str, said: list[str]) -> None:
    assert old in GOOD
    with pytest.raises(ExperimentError) as caught:
        read(GOOD.replace(old, new, 1), "tiny")
    assert caught.value.code == code
    assert str(caught.value).startswith("tiny.toml")
    for words in said:
        assert words in str(caught.value)


def test_rates_of_additions_need_additions() -> None:
    with pytest.raises(ExperimentError, match="'additions'"):
        read(GOOD.replace('"memory_bytes"]', '"additions_per_second"]').replace("additions = 5", ""), "tiny")


def test_names_on_the_axis_make_categories() -> None:
    text = GOOD.replace("values = [10, 100]", 'values = ["nitf", "psd"]').replace("subscriptions.number", "dtd")
    with pytest.raises(ExperimentError, match="'until' needs an axis of numbers"):
        read(text, "tiny")
    assert read(text.replace("until = 10", ""), "tiny").figures[0].vary.categories
    with pytest.raises(ExperimentError, match="numbers above 0"):
        read(text.replace("until = 10", "").replace('y_scale = "log"', 'x_scale = "log"'), "tiny")


def test_every_experiment_that_comes_with_xsift_can_be_read() -> None:
    for name in names():
        assert load(name).name == name


def test_an_experiment_that_is_not_there() -> None:
    with pytest.raises(ExperimentError, match="no experiment is called 'pers'"):
        load("pers")
    with pytest.raises(ExperimentError, match="nowhere"):
        load("nowhere/at/all.toml")
