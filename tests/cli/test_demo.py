"""`xsift demo`: its report, and what it leaves alone. That it works is tested beside Spark, in tests/spark."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from xsift.cli import main
from xsift.cli.demo import Demo, page


def test_report_says_what_was_found_and_where_the_time_went() -> None:
    demo = Demo(2000, 100_000, matches=1234, documents_per_second=567.8)
    demo.steps = [(1.5, "made <b>"), (3.0, "matched:")]
    demo.popular = [("a&b", 12, "/a[b < 3]")]
    demo.batches = [(1, 500, 42, 0.5)]
    report = page(demo)
    assert "1,234" in report
    assert "568" in report
    assert "made &lt;b&gt;" in report
    assert "width:50.0%" in report
    assert "<td>a&amp;b<td><code>/a[b &lt; 3]</code>" in report
    assert "<td class=n>1<td class=n>500<td class=n>42<td class=n>0.50 s" in report


def test_other_files_are_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "matches").write_text("mine")
    assert main(["demo", "--output", str(tmp_path)]) == 2
    assert "other files" in capsys.readouterr().err
    assert main(["demo", "--output", str(tmp_path / "matches")]) == 2
    assert "no folder" in capsys.readouterr().err
    assert main(["demo", "--documents", "1", "--output", str(tmp_path / "new")]) == 2
    assert (tmp_path / "matches").read_text() == "mine"
    assert not (tmp_path / "new").exists()
