"""Reports: verdicts with their numbers, in the terminal, in HTML that needs nothing else, and as data."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.experiments.conftest import FIGURE, tiny
from xsift.cli import main
from xsift.experiments import report
from xsift.experiments.definition import names
from xsift.experiments.errors import ExperimentError
from xsift.experiments.markup import expression
from xsift.experiments.measures import described, numbers, summary
from xsift.experiments.plan import make_plan
from xsift.experiments.plot import Axis, Line, Mark, plot
from xsift.experiments.quantities import plain, quantity, short
from xsift.experiments.results import HOLDS, NOT_MEASURED, OPEN, Results
from xsift.experiments.runner import _note, run
from xsift.experiments.store import Measured, Store

CLAIMS = """
[[figure.claim]]
says = "R takes twice as long as Y, or longer."
place = "section 3"
check = 'always(y("R") >= 2 * y("Y"))'
[[figure.claim]]
says = "R grows with <x>."
check = 'growth(y("R")) > 10'
note = "It does not here because & so on."
[[figure.claim]]
says = "Additions are fast."
check = 'y("Y", last) < 1 and always(build_seconds("R") > 0) and always(counter.probes("Y") > 0)'
[[figure]]
id = "2"
title = "Memory of the same runs"
from = "1"
only = ["Y"]
y = "memory_bytes"
show = "scaleup"
[[figure.claim]]
says = "it grows"
check = 'rising(y("Y"))'
"""


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """Results with made-up numbers: no test depends on how long anything takes."""
    store = Store(tmp_path)
    store.create()
    plan = make_plan(tiny(FIGURE + CLAIMS))
    _note(plan, store, {}, finished=True)
    for point in plan.points:
        records = {}
        for factor, entry in zip((3.0, 1.0), point.entries, strict=True):
            rounds = [[factor * (1 + 0.1 * number) * 1e-3] * 3 for number in range(3)]
            if entry.label == "Y" and point.position == 1:
                rounds[2] = [9e-3] * 3
            records[entry.label] = {
                "match_rounds": rounds,
                "parse_rounds": rounds,
                "deliver_rounds": rounds,
                **{f"{part}_cpu_rounds": [round_[0] for round_ in rounds] for part in ("match", "parse", "deliver")},
                "memory": {"NFA": 1000 * (1 + point.position), "run-time stack": 24},
                "build_seconds": [0.5],
                "build_cpu_seconds": [0.5],
            }
        failures = {"R": "wrong answer: it misses '/a<b'"} if point.position else {}
        for label in failures:
            del records[label]
        store.put_point(Measured(point.key, records, failures, [], 1.0, 9.5, "now"))
    return Results.of(store)


def test_verdicts(results: Results) -> None:
    first, second = results.experiment.figures
    holds, not_, unknown = results.verdicts(first)
    assert (holds.state, holds.sureness.share, holds.sureness.rounds) == (HOLDS, 1.0, 3)
    assert [text for text, _ in holds.evidence] == ['y("R")', 'y("Y")', "ratio"]
    assert not_.state == NOT_MEASURED
    assert "two points" in not_.reason
    assert unknown.state == NOT_MEASURED
    assert "counter.probes of 'Y'" in unknown.reason
    (grows,) = results.verdicts(second)
    assert (grows.state, grows.sureness.share, grows.sureness.rounds, grows.sure_text) == (HOLDS, 1.0, 1, "")
    assert results.shown(second, "memory_bytes", "Y")[1].median == 1000


def test_a_verdict_that_hangs_on_noise_is_open(results: Results) -> None:
    text = FIGURE + '[[figure.claim]]\nsays = "s"\ncheck = \'y("Y", 8) < 1.02 * y("Y", 4)\'\n'
    shares = []
    for check in (text, text.replace("<", ">=")):
        doubtful = Results(tiny(check), results.run, results.points)
        (verdict,) = doubtful.verdicts(doubtful.experiment.figures[0])
        assert (verdict.state, verdict.sureness.rounds) == (OPEN, 3)
        assert verdict.sure_text == f"{100 * verdict.sureness.share:.0f} % for it"
        shares.append(verdict.sureness.share)
    assert sum(shares) == pytest.approx(1.0)


def test_the_terminal_shows_tables_verdicts_and_failures(results: Results) -> None:
    text = report.terminal(results)
    assert "3.30 ms" in text
    assert "The machine was busy (load up to 9.5)" in text
    assert "+ holds, sure to more than 99 %: R takes twice as long as Y" in text
    assert "? not measured: growth needs two points" in text
    assert "! R at 8: wrong answer" in text
    assert "2 of 4 claims hold, 2 not measured" in text


def test_a_machine_that_is_busy_for_a_moment_is_not_busy(results: Results) -> None:
    """What the system itself does now and then is seen at a point or two; others are seen at many."""
    (point, *_) = results.points.values()
    quiet = [replace(point, load=1.1)] * 17
    for loads, busy in (([], False), ([1.8], False), ([1.8, 3.0], True)):
        points = dict(enumerate([*quiet, *(replace(point, load=load) for load in loads)]))
        run = {**results.run, "machine": {**results.run["machine"], "cores": 2}}
        assert Results(results.experiment, run, {("1", at): one for at, one in points.items()}).busy == busy


class _Page(HTMLParser):
    """Collects what a page refers to, and that its elements are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.references: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.references += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href")]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_complete_in_itself(results: Results, tmp_path: Path) -> None:
    _, path = report.write(Store(tmp_path))
    text = path.read_text(encoding="utf-8")
    parser = _Page()
    parser.feed(text)
    assert parser.open == []
    assert all(reference.startswith(("#", "data:")) for reference in parser.references)
    assert "url(" not in text
    assert "@import" not in text
    for words in (
        "2 of 4 claims hold, 2 not measured",
        "Somebody: something &lt;small&gt; (2001)",
        "R grows with &lt;x&gt;.",
        "It does not here because &amp; so on.",
        "sure to more than 99 %",
        "wrong answer: it misses '/a&lt;b'",
        "section 3",
        "its load was up to 9.5",
        "prefers-color-scheme: dark",
    ):
        assert words in text
    for kind in ("wide", "narrow"):  # a phone shows the narrow ones alone, so these are described too
        drawn = re.findall(f'<svg class="plot {kind}"[^>]*>', text)
        assert len(drawn) == 3
        assert all('role="img"' in one and "over subscriptions: " in one for one in drawn)
    assert re.findall(r"<th>(verdict|claim|figure)</th>", text) == ["verdict", "claim", "figure"]
    assert "nine of ten rounds" not in text  # a verdict is taken from draws of the medians, and from two runs


def test_the_numbers_as_data(results: Results, tmp_path: Path) -> None:
    report.write(Store(tmp_path))
    rows = list(csv.DictReader(io.StringIO((tmp_path / "figures.csv").read_text(encoding="utf-8"))))
    (row,) = [r for r in rows if (r["figure"], r["series"], r["x"], r["measure"]) == ("1", "R", "4", "match_seconds")]
    assert float(row["median"]) == pytest.approx(0.0033)
    assert row["rounds"] == "3"
    timings = pq.read_table(tmp_path / "timings.parquet").to_pylist()
    assert len(timings) == 3 * 3 * 3 * 3  # three series measured, three kinds of timings, rounds, documents
    assert timings[0] == {
        "figure": "1", "series": "R", "x": "4", "what": "match", "round": 0, "document": 0, "seconds": 0.003,
    }  # fmt: skip


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    definition = tmp_path / "mine.toml"
    definition.write_text(tiny(FIGURE + CLAIMS).text, encoding="utf-8")
    folder = tmp_path / "out"
    assert main(["experiment", "run", str(definition), "--output", str(folder), "--figures", "2"]) == 0
    shown = capsys.readouterr()
    assert "Memory of the same runs" in shown.out
    assert str(folder / "report.html") in shown.out
    assert "mine: 1, subscriptions 8: took 0:0" in shown.err
    (folder / "report.html").unlink()
    assert main(["experiment", "report", str(folder)]) == 0
    assert (folder / "report.html").exists()
    assert main(["experiment", "report", str(tmp_path / "nothing")]) == 2
    assert "no-run" in capsys.readouterr().err
    assert main(["experiment", "run", "nothing-like-it"]) == 2
    assert main(["experiment", "list"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in names())


def test_quantities() -> None:
    assert [plain(value) for value in (0, 1, 12.345, 123.4, 1234.5, 0.01234, 1e-5)] == [
        "0", "1.00", "12.3", "123", "1,234", "0.0123", "1.00e-05",
    ]  # fmt: skip
    assert quantity(0.00123, "s") == "1.23 ms"
    assert quantity(3 * 2**20, "B") == "3.00 MB"
    assert quantity(0, "s") == "0 s"
    assert quantity(1500, "1/s") == "1,500/s"
    assert [short(value) for value in (0, 10, 1000, 25_000, 1_000_000, 0.25)] == [
        "0",
        "10",
        "1k",
        "25k",
        "1M",
        "0.25",
    ]
    assert short(0.0025, "s") == "2.5 ms"
    assert [short(value, "size") for value in (1000, 50_000, 2048, 0)] == ["1 kB", "50 kB", "2 KB", "0"]
    assert quantity(0, "B") == "0 B"


def test_summaries() -> None:
    assert summary([]) is None
    one = summary([5.0, 1.0, 3.0, 2.0, 4.0])
    assert one is not None
    assert (one.median, one.lower_quartile, one.upper_quartile, one.least, one.most, one.number) == (3, 2, 4, 1, 5, 5)
    record = {"memory": {"run-time stack": 1, "NFA (states)": 2}, "counters": {"hits": 30}, "documents": 10}
    assert numbers(record, "memory.NFA__states_") == [2]
    assert numbers(record, "counter.hits") == [3]
    assert numbers(record, "memory.trie") == []
    assert numbers(record, "total_seconds") == []


def test_an_expression_can_be_broken_where_a_column_is_narrow() -> None:
    assert expression('counter.paths_matched("a<b") / 10_000.5') == (
        '<code>counter.<wbr/>paths_<wbr/>matched(<wbr/>"a&lt;b") / 10_000.5</code>'
    )


def test_a_counter_is_called_by_what_it_counts() -> None:
    names = ("counter.stack_tests", "memory.NFA", "property.segments")
    assert [described(name) for name in names] == ["stack tests a document", "memory of NFA", "segments"]


def mark(x: float, y: float) -> Mark:
    return Mark(x, y, y, y, y, y, "")


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("values", [[1.0], [0.0, 1.0], [-3.0, 5.0], [1e-9, 1e9], [7.0, 7.0], [0.0]])
@pytest.mark.parametrize("unit", ["", "s", "B"])
def test_plots_of_odd_numbers(values: list[float], log: bool, unit: str) -> None:
    lines = [Line("A", [mark(float(at), value) for at, value in enumerate(values, 1)]), Line("B", [])]
    drawn = plot(lines, Axis("x", values=range(1, len(values) + 1), log=log), Axis("y", unit, log), "odd")
    assert "nan" not in drawn
    assert "inf" not in drawn
    bars = plot(lines, Axis("x", names=["p"] * (len(values) + 1)), Axis("y", unit, log), "odd")
    assert bars.count("<rect") == len(values) + 1


def test_a_plot_of_nothing_says_so() -> None:
    assert "Nothing was measured" in plot([Line("A", [])], Axis("x"), Axis("y"), "nothing")


def test_a_hundred_lines_have_their_labels_apart() -> None:
    lines = [Line(f"line {number}", [mark(1, 1.0), mark(2, 1.0)]) for number in range(15)]
    drawn = plot(lines, Axis("x", values=[1, 2]), Axis("y"), "many")
    places = sorted(float(y) for y in re.findall(r'class="label" x="[\d.]+" y="([\d.]+)"', drawn))
    assert len(places) == 15
    assert min(b - a for a, b in pairwise(places)) > 10


def test_the_last_tick_of_a_narrow_plot_is_not_cut_off() -> None:
    lines = [Line("A", [mark(5e3, 1.0), mark(193e3, 2.0)])]
    drawn = plot(lines, Axis("x", "size", values=[5_000, 193_000]), Axis("y"), "sizes", narrow=True)
    width = float(re.findall(r'viewBox="0 0 (\d+) ', drawn)[0])
    (place,) = (float(x) for x in re.findall(r'x="([\d.]+)"[^>]*>193 kB<', drawn))
    assert place + len("193 kB") * 7.5 / 2 < width


def test_a_folder_without_a_definition(tmp_path: Path) -> None:
    run(tiny(), Store(tmp_path))
    (tmp_path / "definition.toml").unlink()
    with pytest.raises(ExperimentError, match=r"definition\.toml"):
        Results.of(Store(tmp_path))
