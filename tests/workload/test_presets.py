"""Presets are complete and can be made; figures are measured right, and are like the papers'."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest

from xsift.errors import WorkloadError
from xsift.workload import PRESETS, DocumentGenerator, SubscriptionGenerator, find_preset
from xsift.workload.figures import Comparison, compare, match_rate, measure_documents, measure_subscriptions, table
from xsift.workload.presets import PaperFigure


@pytest.mark.parametrize("name", PRESETS)
def test_presets_can_be_made(name: str) -> None:
    preset = find_preset(name)
    assert len(list(islice(DocumentGenerator(preset.documents), 3))) == 3
    texts = list(SubscriptionGenerator(replace(preset.subscriptions, number=300)))
    assert len(texts) == 300
    if preset.subscriptions.distinct:
        assert len(set(texts)) == 300


def test_every_paper_has_one() -> None:
    assert {"yfilter", "xtrie", "afilter", "ifist", "predicate", "bfilter"} <= set(PRESETS)
    with pytest.raises(WorkloadError) as caught:
        find_preset("zfilter")
    assert caught.value.code == "preset-unknown"
    assert "yfilter" in caught.value.hint


def test_documents_are_measured() -> None:
    figures = measure_documents([b"<a><b><c/></b><b/></a>", b"<a/>"])
    assert (figures.number, figures.tags, figures.depth, figures.bytes, figures.names) == (2, 2.5, 2.0, 13.0, 3)
    assert measure_documents([]).tags == 0


def test_subscriptions_are_measured() -> None:
    texts = ["/a//b.c[@x=1][d/*][.//e]/f", "/a//b.c[@x=1][d/*][.//e]/f", '/*[text()=1][@y="z.z"]']
    figures = measure_subscriptions(texts)
    assert (figures.number, figures.distinct, figures.longest) == (3, 2, 3)
    assert figures.steps == pytest.approx(7 / 3)
    assert figures.nodes == pytest.approx(13 / 3)
    assert figures.leaves == pytest.approx(7 / 3)


def test_match_rate() -> None:
    assert match_rate(["/a", "//b", "/c"], [b"<a><b/></a>", b"<a/>"]) == 0.5
    assert match_rate([], []) == 0
    assert match_rate(["/a"], [b"<a/>", b"<a/>"], matcher=lambda texts, documents: [1]) == 0.5


QUICK = {"tags", "depth", "bytes", "elements", "attributes"}


@pytest.mark.parametrize("name", sorted({preset.name for preset in PRESETS.values() if preset.figures}))
def test_figures_are_near_the_papers(name: str) -> None:
    preset = find_preset(name)
    quick = [figure for figure in preset.figures if figure.measure in QUICK and figure.argument < 20_000]
    for comparison in compare(replace(preset, figures=tuple(quick)), sample=60 if "ifist" in name else 300):
        assert comparison.ours == pytest.approx(comparison.figure.paper, rel=0.15), comparison


def test_match_rates_are_near_the_paper() -> None:
    """At a smaller scale than the paper's, where more match: see the documentation for the full one."""
    preset = find_preset("predicate-psd")
    figure = PaperFigure("match rate", 0.75, "§5.2", "match rate", 2_000)
    (comparison,) = compare(replace(preset, figures=(figure,)), sample=20)
    assert 0.65 < comparison.ours < 0.85
    figure = PaperFigure("distinct of 50,000", 3_200, "", "distinct", 50_000)
    (comparison,) = compare(replace(preset, figures=(figure,)))
    assert 2_500 < comparison.ours < 4_000


def test_table() -> None:
    rows = [
        Comparison("x", PaperFigure("match rate", 0.06, "§5", "match rate"), 0.0551),
        Comparison("x", PaperFigure("bytes", 8770, "§5", "bytes"), 8852.4),
        Comparison("x", PaperFigure("depth", 8.13, "Table V", "depth"), 8.0),
    ]
    assert table(rows).splitlines() == [
        "| preset | figure | paper | ours | where in the paper |",
        "| --- | --- | ---: | ---: | --- |",
        "| `x` | match rate | 6.0% | 5.5% | §5 |",
        "| `x` | bytes | 8,770 | 8,852 | §5 |",
        "| `x` | depth | 8.1 | 8 | Table V |",
    ]
