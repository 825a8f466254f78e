"""Figures in which each round has documents of its own: nothing is asked twice, and all answers are compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from xsift.experiments.definition import read
from xsift.experiments.errors import ExperimentError
from xsift.experiments.measures import numbers
from xsift.experiments.model import Experiment
from xsift.experiments.plan import make_plan
from xsift.experiments.results import Results
from xsift.experiments.runner import measure, run
from xsift.experiments.store import Store
from xsift.experiments.workloads import with_documents

DOCUMENTS = 5
FIGURE = """
title = "New"
[[figure]]
id = "1"
title = "Times"
new_documents = true
repeats = 3
seconds = 0
workload = { dtd = "book", documents = { number = 5, seed = 1 }, subscriptions = { number = 30, seed = 2 } }
[figure.vary]
parameter = "subscriptions.nested_paths"
values = [1]
[[figure.series]]
label = "Y"
engine = "yfilter"
[[figure.series]]
label = "other"
engine = "witness"
"""


def experiment(text: str = FIGURE) -> Experiment:
    return read(text, "new")


def results(folder: Path, text: str = FIGURE) -> Results:
    store = Store(folder)
    run(experiment(text), store)
    return Results.of(store)


def test_no_round_has_a_document_of_another(tmp_path: Path) -> None:
    found = results(tmp_path)
    (figure,) = found.experiment.figures
    assert found.failures(figure) == []
    record = found.record(figure, "other", 0)
    assert numbers(record, "counter.again_nanoseconds") == [0.0] * 3
    assert [len(round_) for round_ in record["match_rounds"]] == [DOCUMENTS] * 3
    assert len(record["matches"]) == DOCUMENTS
    assert record["documents"] == DOCUMENTS
    assert found.points["1", 0].workloads[0]["documents"] == DOCUMENTS * 4


def test_without_it_every_round_has_the_same(tmp_path: Path) -> None:
    found = results(tmp_path, FIGURE.replace("new_documents = true", ""))
    record = found.record(found.experiment.figures[0], "other", 0)
    assert numbers(record, "counter.again_nanoseconds") == [1.0] * 3


def test_a_pass_is_one_however_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xsift.experiments.worker.SHORTEST_ROUND", 0.5)
    found = results(tmp_path)
    record = found.record(found.experiment.figures[0], "other", 0)
    assert numbers(record, "counter.again_nanoseconds") == [0.0] * 3


def test_a_wrong_answer_in_a_round_is_found(tmp_path: Path) -> None:
    found = results(tmp_path, FIGURE.replace("witness", "late-liar"))
    (figure,) = found.experiment.figures
    (failure,) = found.failures(figure)
    assert failure.label == "other"
    assert failure.reason.startswith("wrong answer: it misses")
    assert not found.record(figure, "other", 0)
    assert found.record(figure, "Y", 0)


def test_who_goes_through_some_documents_only_does_so_in_each_round(tmp_path: Path) -> None:
    found = results(tmp_path, FIGURE + "documents = 2\n")
    (figure,) = found.experiment.figures
    record = found.record(figure, "other", 0)
    assert [len(round_) for round_ in record["match_rounds"]] == [2, 2, 2]
    assert numbers(record, "counter.again_nanoseconds") == [0.0] * 3
    assert found.failures(figure) == []


def test_more_rounds_have_more_documents() -> None:
    (point,) = make_plan(experiment()).points
    measured = measure(point, lambda text: None, ["other"], rounds=6)
    assert numbers(measured.records["other"], "counter.again_nanoseconds") == [0.0] * 6


def test_points_with_and_without_are_told_apart() -> None:
    (new,) = make_plan(experiment()).points
    (same,) = make_plan(experiment(FIGURE.replace("new_documents = true", "new_documents = false"))).points
    assert new.key != same.key


def test_each_part_of_a_mix_has_more() -> None:
    mixed = {"documents": {"number": 4}, "mix": [{"dtd": "nitf"}, {"dtd": "book", "documents": {"number": 3}}]}
    more = with_documents(mixed, 3)
    assert more == {
        "documents": {"number": 12},
        "mix": [{"dtd": "nitf"}, {"dtd": "book", "documents": {"number": 9}}],
    }
    assert mixed["documents"] == {"number": 4}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('engine = "witness"', 'peer = "lxml-loop"', "for engines"),
        ("repeats = 3", "repeats = 3\ndrop_order_dependent = true", "'drop_order_dependent'"),
        ("number = 5, seed = 1", 'texts = ["<a/>"]', "'documents.texts'"),
        ("number = 5, seed = 1", "number = 5, matching_share = 0.5", "'documents.matching_share'"),
        ("number = 30, seed = 2", "number = 30, selectivity = 0.1", "'subscriptions.selectivity'"),
    ],
)
def test_what_does_not_go_with_it_is_refused(old: str, new: str, said: str) -> None:
    with pytest.raises(ExperimentError, match=said):
        make_plan(experiment(FIGURE.replace(old, new)))
