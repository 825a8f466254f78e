"""The runner on workloads of a few documents: what it measures, what it finds wrong, what it does not do twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.experiments.conftest import FIGURE, tiny
from xsift.experiments import runner, worker
from xsift.experiments.definition import read
from xsift.experiments.measures import MEASURES, numbers
from xsift.experiments.plan import Point
from xsift.experiments.results import Results
from xsift.experiments.runner import Estimate, Progress, run
from xsift.experiments.store import Measured, Store
from xsift.experiments.workloads import texts

Measure = Callable[[str], Results]


def with_series(engine: str, more: str = "") -> str:
    return FIGURE + f'[[figure.series]]\nlabel = "other"\nengine = "{engine}"\n{more}\n'


def test_everything_is_measured(measured: Measure) -> None:
    results = measured(FIGURE.replace('"memory_bytes"]', '"memory_bytes", "counter.evaluations"]'))
    (figure,) = results.experiment.figures
    assert results.failures(figure) == []
    for label in ("R", "Y"):
        for position in (0, 1):
            record = results.record(figure, label, position)
            for measure in set(MEASURES) - {"additions_per_second", "removals_per_second"}:
                assert results.summary(figure, measure, label, position) is not None, measure
            assert len(record["match_rounds"]) == 3
            assert all(len(round_) == 3 for round_ in record["match_rounds"])
    # /a/b and /a[b]/d and /a[d]/b match the first two documents, //c only the first
    assert results.record(figure, "R", 0)["matches"] == [4, 3, 0]
    assert results.record(figure, "R", 1)["matches"] == [7, 5, 1]
    assert results.record(figure, "R", 1)["patterns"] == 6  # /a[b]/d is /a[d]/b, and /a/b is there twice
    counted = results.summary(figure, "counter.evaluations", "R", 1)
    assert counted is not None
    assert counted.median == 6  # a document
    (facts,) = results.points["1", 1].workloads
    assert facts["subscriptions"] == 8
    assert facts["depth"] == 2
    assert results.run["machine"]["python"]


FAULTS = [
    ("liar", "wrong answer: it misses"),
    ("crasher", "SIGKILL"),
    ("refuser", "it is in no mood"),
    ("thrower", "ZeroDivisionError: oh"),
]


@pytest.mark.parametrize(("engine", "reason"), FAULTS)
def test_a_fault_is_reported_and_not_timed(measured: Measure, engine: str, reason: str) -> None:
    results = measured(with_series(engine))
    (figure,) = results.experiment.figures
    failures = results.failures(figure)
    assert [failure.label for failure in failures] == ["other", "other"]
    assert reason in failures[0].reason
    assert results.record(figure, "other", 0) == {}
    assert results.record(figure, "Y", 0)["match_rounds"]


def test_what_takes_too_long_is_ended(measured: Measure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "LIMIT_SECONDS", 1.0)
    results = measured(with_series("sleeper", "until = 4"))
    (failure,) = results.failures(results.experiment.figures[0])
    assert "took longer than 1 s" in failure.reason


def test_ordered_patterns_are_refused_by_who_cannot_have_them(measured: Measure) -> None:
    results = measured(FIGURE.replace('engine = "yfilter"', 'engine = "yfilter"\nordered = true'))
    assert "ordered" in results.failures(results.experiment.figures[0])[0].reason


def test_options_structures_and_properties(measured: Measure) -> None:
    figure = with_series("counted", "options = {size = 2}").replace(
        '["match_seconds", "memory_bytes"]',
        '["property.segments", "memory.segment_table", "index_bytes", "run_time_bytes"]',
    )
    results = measured(figure)
    (shown,) = results.experiment.figures
    values = [results.row(shown, measure, "other")[0].median for measure in shown.measures]
    assert values == [14, 200, 200, 10]
    assert results.row(shown, "property.segments", "R") == {}


def test_subscriptions_one_by_one_where_sharing_is_the_point(measured: Measure) -> None:
    results = measured(with_series("reference", "deduplicate = false"))
    (figure,) = results.experiment.figures
    assert results.record(figure, "other", 1)["matches"] == results.record(figure, "R", 1)["matches"]
    memory = [results.row(figure, "memory_bytes", label)[1].median for label in ("other", "R")]
    assert memory[0] > memory[1]


ORDER_DEPENDENT = FIGURE.replace("additions = 0", "drop_order_dependent = true") + (
    '[[figure.series]]\nlabel = "ordered"\nengine = "reference"\nordered = true\n'
)


def test_order_dependent_subscriptions_can_be_dropped(measured: Measure) -> None:
    """/a[d]/b matches both documents unordered, the first one not in order: b comes before d there."""
    results = measured(ORDER_DEPENDENT)
    (shown,) = results.experiment.figures
    assert results.failures(shown) == []
    assert results.record(shown, "R", 0)["subscriptions"] == 2
    assert results.record(shown, "R", 0)["matches"] == results.record(shown, "ordered", 0)["matches"] == [2, 1, 0]


def test_what_depends_on_the_order_is_found_on_all_documents(measured: Measure) -> None:
    """Also where a series is asked about the first of them only."""
    results = measured(ORDER_DEPENDENT.replace("ordered = true", "ordered = true\ndocuments = 1"))
    (shown,) = results.experiment.figures
    assert results.failures(shown) == []
    assert results.record(shown, "R", 0)["subscriptions"] == 2


def test_without_what_depends_on_the_order_nothing_is_measured(measured: Measure) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "QUICK", "no-such-engine")
        results = measured(ORDER_DEPENDENT)
    (shown,) = results.experiment.figures
    assert {failure.label for failure in results.failures(shown)} == {"R", "Y", "ordered"}
    assert "depend on the order" in results.failures(shown)[0].reason


def test_a_run_beside_another_takes_from_it_what_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other, alone = Store(tmp_path / "one"), Store(tmp_path / "other"), Store(tmp_path / "alone")
    run(tiny(ORDER_DEPENDENT), one)
    monkeypatch.setattr(runner, "order_dependent", lambda *answers: np.array([0, 1, 2, 3]))
    run(tiny(ORDER_DEPENDENT), other, beside=one)
    run(tiny(ORDER_DEPENDENT), alone)

    def left(store: Store) -> list[int]:
        results = Results.of(store)
        return [results.record(results.experiment.figures[0], "R", at).get("subscriptions", 0) for at in (0, 1)]

    assert left(one) == left(other) != left(alone)


def test_peers_agree(measured: Measure) -> None:
    series = "".join(
        f'[[figure.series]]\nlabel = "{peer}"\npeer = "{peer}"\n' for peer in ("lxml-loop", "lxml-block", "lxml-xslt")
    )
    results = measured(FIGURE + series)
    (figure,) = results.experiment.figures
    assert results.failures(figure) == []
    assert {series.label for series in figure.series if results.row(figure, "match_seconds", series.label)} == {
        "R", "Y", "lxml-loop", "lxml-block", "lxml-xslt",
    }  # fmt: skip
    assert results.row(figure, "memory_bytes", "lxml-loop") == {}


GENERATED = """
[[figure]]
id = "1"
title = "Additions"
y = ["additions_per_second", "removals_per_second"]
additions = 20
workload = { dtd = "book", documents = { number = 3 }, subscriptions = { number = 30, distinct = true } }
[figure.vary]
parameter = "subscriptions.seed"
values = [1]
[[figure.series]]
label = "Y"
engine = "yfilter"
[[figure.series]]
label = "other"
engine = "forgetter"
"""


def without_texts(tmp_path: Path, figures: str) -> Results:
    store = Store(tmp_path / "generated")
    run(read('title = "Generated"\n[defaults]\nrepeats = 3\nseconds = 0\n' + figures, "generated"), store)
    return Results.of(store)


def test_additions_are_timed_and_must_leave_no_trace(tmp_path: Path) -> None:
    results = without_texts(tmp_path, GENERATED)
    (figure,) = results.experiment.figures
    assert results.record(figure, "Y", 0)["additions"] == 20
    assert results.row(figure, "additions_per_second", "Y")[0].number == 3
    (failure,) = results.failures(figure)
    assert failure.label == "other"
    assert "not what they were before" in failure.reason


def test_a_mix_has_equal_parts_of_each(tmp_path: Path) -> None:
    mix = GENERATED.replace('dtd = "book", ', 'mix = [{ dtd = "book" }, { dtd = "psd" }], ').replace(
        'engine = "forgetter"', 'engine = "reference"'
    )
    results = without_texts(tmp_path, mix)
    (figure,) = results.experiment.figures
    assert results.failures(figure) == []
    record = results.record(figure, "Y", 0)
    assert (record["documents"], record["subscriptions"]) == (3, 30)
    assert record["additions"] > 0


def test_documents_of_a_mix_take_turns() -> None:
    """A series that is asked about the first few of them is asked about all parts."""
    parts = [{"documents": {"texts": ["<a/>", "<b/>"]}}, {"documents": {"texts": ["<c/>"]}}]
    made = texts({"mix": parts, "subscriptions": {"texts": ["/a"]}}, 0)
    assert made.documents == [b"<a/>", b"<c/>", b"<b/>"]


def test_a_share_of_the_documents_can_be_asked_to_match(tmp_path: Path) -> None:
    some = GENERATED.replace("documents = { number = 3 }", "documents = { number = 10, matching_share = 0.3 }")
    some = some.replace("number = 30, distinct = true", "number = 2, maximum_depth = 6, minimum_depth = 5")
    results = without_texts(tmp_path, some.replace("additions = 20", "additions = 0").replace("y = ", "# "))
    matches = results.record(results.experiment.figures[0], "Y", 0)["matches"]
    assert sum(number > 0 for number in matches) == 3
    assert len(matches) == 10


def test_a_workload_that_cannot_be_is_reported_and_tried_again(tmp_path: Path) -> None:
    spy = Spy()
    for _ in range(2):
        run(read(tiny().text.replace('"//c"', '"count(//c) = 1"'), "tiny"), Store(tmp_path), progress=spy)
        results = Results.of(Store(tmp_path))
        failures = results.failures(results.experiment.figures[0])
        assert len(failures) == 4
        assert "there is no such workload: the subscription 'count(//c) = 1' is not one pattern" in failures[0].reason
    assert spy.measured == [4, 8, 4, 8]


class Spy(Progress):
    """Notes which points are measured, which were there already."""

    def __init__(self) -> None:
        self.measured: list[object] = []
        self.resumed: list[object] = []
        self.left: list[float] = []

    def point(self, point: Point, estimate: Estimate) -> None:
        self.left.append(estimate.seconds_left)

    def done(self, point: Point, measured: Measured, resumed: bool, estimate: Estimate) -> None:
        (self.resumed if resumed else self.measured).append(point.x)


def test_what_is_measured_is_not_measured_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    runs = [Spy() for _ in range(4)]
    run(tiny(), store, progress=runs[0])
    assert (runs[0].measured, runs[0].resumed) == ([4, 8], [])
    assert len(runs[0].left) == 2
    assert min(runs[0].left) > 0
    run(tiny(FIGURE.replace("[4, 8]", "[4, 6, 8]")), store, progress=runs[1])
    assert (runs[1].measured, runs[1].resumed) == ([6], [4, 8])
    run(tiny(FIGURE.replace('engine = "yfilter"', 'engine = "yfilter"\nuntil = 4')), store, progress=runs[2])
    assert (runs[2].measured, runs[2].resumed) == ([8], [4])
    run(tiny(), store, fresh=True, progress=runs[3])
    assert (runs[3].measured, runs[3].resumed) == ([4, 8], [])


TWO = FIGURE + FIGURE.replace('id = "1"', 'id = "2"').replace("[4, 8]", "[5]")


def test_figures_measured_one_by_one_are_reported_together(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run(tiny(TWO), store, figures=["2"])
    assert [figure.id for figure in Results.of(store).experiment.figures] == ["2"]
    run(tiny(TWO), store, figures=["1"])
    assert [figure.id for figure in Results.of(store).experiment.figures] == ["1", "2"]
    spy = Spy()
    run(tiny(TWO), store, progress=spy)
    assert spy.measured == []
    run(tiny(TWO.replace("[5]", "[6]")), store, figures=["1"])
    assert [figure.id for figure in Results.of(store).experiment.figures] == ["1"]


def test_an_interrupted_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    measure = runner.measure

    def interrupted(point: Point, tell: runner.Tell, **known: Any) -> Measured:
        if point.x == 8:
            raise KeyboardInterrupt
        return measure(point, tell)

    monkeypatch.setattr(runner, "measure", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(tiny(), store)
    results = Results.of(store)
    assert not results.run["finished"]
    assert list(results.row(results.experiment.figures[0], "match_seconds", "Y")) == [0]
    monkeypatch.setattr(runner, "measure", measure)
    spy = Spy()
    run(tiny(), store, progress=spy)
    assert (spy.measured, spy.resumed) == ([8], [4])
    assert Results.of(store).run["finished"]


def test_a_spoilt_point_is_measured_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run(tiny(), store)
    for path in (tmp_path / "points").iterdir():
        path.write_text("{", encoding="utf-8")
        break
    spy = Spy()
    run(tiny(), store, progress=spy)
    assert len(spy.measured) == len(spy.resumed) == 1


def test_a_small_index_is_built_anew_for_each_round(measured: Measure) -> None:
    results = measured(FIGURE)
    assert len(results.record(results.experiment.figures[0], "Y", 0)["build_seconds"]) == 1 + 3


def test_one_that_takes_long_for_its_documents_is_not(measured: Measure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "LONG_PASS", 0.0)
    results = measured(FIGURE)
    assert len(results.record(results.experiment.figures[0], "Y", 0)["build_seconds"]) == worker.FEW_BUILDS


def learning(measured: Measure, warm_up: int) -> list[float]:
    """What an engine that learns from its first three passes still takes for it in each round."""
    results = measured(with_series("learner").replace("additions = 0", f"warm_up = {warm_up}"))
    return numbers(results.record(results.experiment.figures[0], "other", 0), "counter.learning_nanoseconds")


def test_every_index_is_warmed_up_as_often_as_asked_for(measured: Measure) -> None:
    assert learning(measured, 2) == [100.0] * 3
    assert learning(measured, 3) == [0.0] * 3


def test_so_is_one_that_is_not_built_anew(measured: Measure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "LONG_PASS", 0.0)
    assert learning(measured, 2) == [100.0, 0.0, 0.0]
    assert learning(measured, 3) == [0.0] * 3


def test_warming_up_ends_when_it_has_taken_long(measured: Measure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "LONG_WARM_UP", 0.0)
    assert learning(measured, 50) == [100.0] * 3


def test_a_counter_that_is_a_time_has_a_number_a_round(measured: Measure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "SHORTEST_ROUND", 0.001)  # several passes a round
    results = measured(with_series("counted", "options = {size = 2}"))
    (figure,) = results.experiment.figures
    record = results.record(figure, "other", 0)
    assert numbers(record, "counter.matching_nanoseconds") == [200.0] * 3
    assert numbers(record, "counter.documents") == [1.0]
