"""The programs in examples/, each run as it is."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet
import pytest

from tests.spark.connect_port import connect_port

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.fixture
def run(here: SparkSession, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Runner:
    return Runner(monkeypatch, capfd)


class Runner:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capfd = capfd

    def __call__(self, name: str, *arguments: str) -> list[str]:
        """The lines that a program prints."""
        self._monkeypatch.setattr(sys, "argv", [name, *arguments])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return self._capfd.readouterr().out.splitlines()


def test_news_alerts(run: Runner) -> None:
    lines = run("news_alerts.py")
    assert lines[:5] == [
        "alice  later.xml  <p>And more.</p>",
        "alice  spark.xml  <p lede='true'>Faster.</p>",
        "alice  spark.xml  <p>Much faster.</p>",
        "bob    rain.xml   <p lede='true'>Take an umbrella.</p>",
        "bob    spark.xml  <p lede='true'>Faster.</p>",
    ]
    assert lines[5] == "carol  later.xml  <hl1>More Spark</hl1>"
    assert lines[6].startswith("broken broken.xml: ")


def test_large_dump(run: Runner, tmp_path: Path) -> None:
    lines = run("large_dump.py")
    assert lines[0] == "20,000 records"
    assert [line.partition(": ")[2] for line in lines[1:]] == [
        f'/*/*: <title xmlns="urn:example:dump">Article {number}</title>' for number in (4999, 9999, 14999, 19999)
    ]
    (tmp_path / "own.xml").write_text("<d><r>1</r><r>2</r></d>")
    assert run("large_dump.py", str(tmp_path / "own.xml"), "r", "/r[. = 2]") == [
        "2 records",
        "byte 11: /r: <r>2</r>",
    ]


def test_kafka_stream(run: Runner) -> None:
    pytest.importorskip("confluent_kafka")
    lines = run("kafka_stream.py")
    assert lines[:4] == [f"alerts-first-shelf: <item sku='0'>{number}</item>" for number in (0, 3, 6, 9)]
    assert lines[4].startswith("broken: <order>cut o: ")


def test_pipeline(tmp_path: Path) -> None:
    """A declarative pipeline, run as its command does: in a process of its own, on Spark Connect."""
    pytest.importorskip("yaml")
    shutil.copytree(EXAMPLES / "pipeline", tmp_path / "pipeline")
    shutil.copytree(EXAMPLES / "data" / "news", tmp_path / "data" / "news")
    specification = tmp_path / "pipeline" / "spark-pipeline.yml"
    for file in (specification, tmp_path / "pipeline" / "alerts.py"):
        file.write_text(file.read_text().replace("/tmp/xsift-pipeline", f"{tmp_path}/storage"))
    source = EXAMPLES.parent / "src"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")])}
    command = [shutil.which("spark-pipelines", path=Path(sys.executable).parent), "run", "--spec", specification]
    with connect_port():
        done = subprocess.run(
            [str(word) for word in command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    counts = pyarrow.parquet.read_table(tmp_path / "spark-warehouse" / "alerts_by_subscription").to_pylist()
    assert {row["subscription"]: row["count"] for row in counts} == {"alice": 1, "bob": 2, "carol": 3}
