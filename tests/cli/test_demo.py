"""`xsift demo`: its report, and what it leaves alone. That it works is tested beside Spark, in tests/spark."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

import xsift
from xsift.cli import main
from xsift.cli.demo import Demo
from xsift.cli.demo_report import page


def finished() -> Demo:
    demo = Demo(2000, 100_000, matches=1234, documents_per_second=567.8, seconds=2.0)
    demo.naive_documents, demo.naive_subscriptions, demo.naive_seconds = 4, 10_000, 0.24
    demo.steps = [(1.5, "made <b>"), (3.0, "matched:")]
    demo.starts = [(9.0, "Spark started on local[2]")]
    demo.popular = [("a&b", 12, "/a[b < 3]")]
    demo.batches = [(1, 500, 42, 0.5)]
    document = "<news><p>Ünder &amp; <b>way</b></p><q/></news>".encode()
    [p], [b], [q] = (_nodes(document, path) for path in ("/news/p", "//b", "/news/q"))
    demo.shown = ("news-1", document, [("<alice>", "/news/p", p), ("bob", "//b", b), ("carol", "/news/q", q)])
    return demo


def _nodes(document: bytes, path: str) -> list[xsift.Node]:
    subscriptions = xsift.Subscriptions()
    subscriptions.add("it", path)
    return subscriptions.matcher().select(document, fragments=True)["it"]


def test_report_says_what_was_found_and_where_the_time_went() -> None:
    report = page(finished())
    assert "1,234" in report
    assert "568" in report
    assert "made &lt;b&gt;" in report
    assert "width:50.0%" in report
    assert "<td>a&amp;b<td><code>/a[b &lt; 3]</code>" in report
    assert "<td class=n>1<td class=n>500<td class=n>42<td class=n>0.50 s" in report


def test_report_shows_a_document_and_who_got_which_part_of_it() -> None:
    report = page(finished())
    assert (
        "&lt;news&gt;<mark><sup>1</sup>&lt;p&gt;Ünder &amp;amp; &lt;b&gt;way&lt;/b&gt;&lt;/p&gt;</mark>"
        "<mark><sup>3</sup>&lt;q/&gt;</mark>&lt;/news&gt;"
    ) in report
    assert "<td>&lt;alice&gt;<td><code>/news/p</code><td><code>&lt;p&gt;Ünder" in report
    assert "<td>bob<td><code>//b</code><td><code>&lt;b&gt;way&lt;/b&gt;</code>" in report


def test_report_has_the_naive_time_beside_ours_and_no_bar_for_what_only_starts() -> None:
    report = page(finished())
    assert "600 times as fast as a loop" in report
    assert "1,200 s" in report  # 0.24 s for 4 documents and a tenth of the subscriptions
    assert "Besides, once: Spark started on local[2]: 9.00 s." in report
    assert report.count("<i class=") == 4  # the loop and ours; two steps


def test_other_files_are_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "matches").write_text("mine")
    assert main(["demo", "--output", str(tmp_path)]) == 2
    assert "other files" in capsys.readouterr().err
    assert main(["demo", "--output", str(tmp_path / "matches")]) == 2
    assert "no folder" in capsys.readouterr().err
    assert main(["demo", "--documents", "1", "--output", str(tmp_path / "new")]) == 2
    assert (tmp_path / "matches").read_text() == "mine"
    assert not (tmp_path / "new").exists()
