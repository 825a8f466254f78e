"""The second workload: each figure on NITF once more, on a DTD that is no part of xsift."""

from __future__ import annotations

from pathlib import Path

import pytest

from xsift.experiments import programs
from xsift.experiments.definition import load, names, read
from xsift.experiments.model import Experiment
from xsift.experiments.page import page
from xsift.experiments.plan import _file_digest, make_plan
from xsift.experiments.results import HOLDS, NOT_MEASURED, Results
from xsift.experiments.runner import run
from xsift.experiments.store import Store
from xsift.workload.dtd import read_dtd

TEXT = """
title = "Twice"
[second]
id = "published"
title = "published DTD"
workload = { dtd = "$XSIFT_DTDS/other.dtd", subscriptions = { seed = 9 } }
[defaults]
repeats = 3
seconds = 0
[defaults.workload]
dtd = "nitf"
documents = { number = 5, size_bytes = 500 }
subscriptions = { number = 50 }
[[figure]]
id = "1"
title = "NITF"
[figure.vary]
parameter = "subscriptions.seed"
values = [1]
[[figure.series]]
label = "Y"
engine = "yfilter"
[[figure.claim]]
says = "Something is measured."
check = 'always(patterns("Y") > 0)'
[[figure]]
id = "memory"
title = "Memory"
from = "1"
y = "memory_bytes"
[[figure]]
id = "2"
title = "Books"
workload = { dtd = "book" }
[figure.vary]
parameter = "subscriptions.seed"
values = [1]
[[figure.series]]
label = "Y"
engine = "yfilter"
"""
OTHER = """<!ELEMENT nitf (head, body?)> <!ELEMENT head (#PCDATA)> <!ELEMENT body (p*)>
<!ELEMENT p (#PCDATA | em)*> <!ELEMENT em (#PCDATA)>"""


def twice() -> Experiment:
    return read(TEXT, "twice")


def test_figures_on_nitf_are_there_twice() -> None:
    figures = {figure.id: figure for figure in twice().figures}
    assert list(figures) == ["1", "memory", "2", "1-published", "memory-published"]
    again = figures["1-published"]
    assert (again.second_of, again.measured_in, again.title) == ("1", "1-published", "NITF · published DTD")
    assert again.workload["dtd"] == "$XSIFT_DTDS/other.dtd"
    assert again.workload["documents"] == figures["1"].workload["documents"]
    assert figures["memory-published"].measured_in == "1-published"


def test_without_the_dtd_it_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(programs.DTDS, raising=False)
    run(twice(), Store(tmp_path))
    results = Results.of(Store(tmp_path))
    (_, first), (_, second) = results.all_verdicts()
    assert (first.state, second.state) == (HOLDS, NOT_MEASURED)
    assert "--dtds or XSIFT_DTDS says in which folder other.dtd is" in second.reason
    assert "says in which folder other.dtd is" in page(results)
    monkeypatch.setenv(programs.DTDS, str(tmp_path))
    assert "other.dtd' is not there" in make_plan(twice()).left_out["1-published"]


def test_with_the_dtd_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(programs.DTDS, str(tmp_path))
    (tmp_path / "other.dtd").write_text(OTHER, encoding="utf-8")
    run(twice(), Store(tmp_path / "out"))
    results = Results.of(Store(tmp_path / "out"))
    assert [verdict.state for _, verdict in results.all_verdicts()] == [HOLDS, HOLDS]
    points = {point.figure.id: point for point in make_plan(twice()).points}
    key = points["1-published"].key
    (tmp_path / "other.dtd").write_text(OTHER.replace("em", "strong"), encoding="utf-8")
    _file_digest.cache_clear()
    assert {point.figure.id: point for point in make_plan(twice()).points}["1-published"].key != key


@pytest.mark.parametrize("name", names())
def test_our_definitions_have_it_for_each_figure_on_nitf(name: str) -> None:
    experiment = load(name)
    again = {figure.second_of for figure in experiment.figures}
    for figure in experiment.figures:
        own = figure.measured_in == figure.id and not figure.second_of
        if own and experiment.second and figure.workload.get("dtd") in ("nitf", None):
            like = figure.workload.get("like", "")
            if figure.vary.parameter not in ("like", "dtd") and like in ("xtrie", "afilter", "predicate", "bfilter"):
                assert (figure.id in again) != ("texts" in figure.workload.get("documents", {})), figure.id


def test_a_real_dtd_where_there_is_one() -> None:
    if why := programs.why_no_dtd("$XSIFT_DTDS/nitf-2-5.dtd"):
        pytest.skip(why)
    assert len(read_dtd(programs.dtd_path("$XSIFT_DTDS/nitf-2-5.dtd")).elements) == 123
