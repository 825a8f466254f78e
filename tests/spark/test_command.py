"""`xsift spark`, run as a user would."""

from __future__ import annotations

import gzip
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet
import pytest

import xsift
from tests.sources.test_records import TRICKY
from xsift.cli import main
from xsift.tables import SubscriptionTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def dump(tmp_path: Path) -> list[str]:
    """The arguments that all commands have in common here."""
    (tmp_path / "alerts.tsv").write_text("two\t//article[@id = 2]\nnested\t/article/article\n")
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "a.xml").write_bytes(TRICKY.replace(b'xmlns="urn:d"', b""))
    return ["-s", str(tmp_path / "alerts.tsv"), str(tmp_path / "dump"), "--record", "article"]


def test_match_in_a_process_of_its_own(dump: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "xsift.cli", "spark", "match", *dump, "--kind", "rows", "--master", "local[1]"]
    done = subprocess.run(
        [*command, "--output", str(tmp_path / "out")], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "MiB of index for each Python worker" in done.stderr
    assert "2 matches, 0 broken" in done.stderr
    found = pyarrow.parquet.read_table(tmp_path / "out")
    assert sorted(found["subscription"].to_pylist()) == ["nested", "two"]


def test_stream(here: SparkSession, dump: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, state = str(tmp_path / "out"), str(tmp_path / "state")
    assert main(["spark", "stream", *dump, "--output", out, "--checkpoint", state, "--once"]) == 0
    assert "batch 0: 4 documents" in capsys.readouterr().err
    streamed = pyarrow.parquet.read_table(out)
    assert sorted(filter(None, streamed["matches"].to_pylist())) == [["nested"], ["two"]]


def test_stream_against_a_table(
    here: SparkSession, dump: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = SubscriptionTable.create(tmp_path / "table")
    table.add([("all", "//article")])
    out, state, broken = (str(tmp_path / name) for name in ("out", "state", "broken"))
    (tmp_path / "dump" / "b.xml").write_bytes(b"<d><article>cut off")
    dump[1] = table.path
    options = ["--output", out, "--checkpoint", state, "--dead-letters", broken, "--once"]
    assert main(["spark", "stream", *dump, *options]) == 0
    assert pyarrow.parquet.read_table(out)["matches"].to_pylist() == [["all"]] * 4
    assert pyarrow.parquet.read_table(broken)["xml"].to_pylist() == [b"<article>cut off"]


def test_bad_subscriptions_are_listed(here: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "alerts.tsv").write_text("good\t//a\nbad\t//a[\n")
    (tmp_path / "a.xml").write_text("<b/>")
    common = ["spark", "match", "-s", str(tmp_path / "alerts.tsv"), str(tmp_path / "a.xml"), "--output"]
    assert main([*common, str(tmp_path / "out"), "--errors", "raise"]) == 4
    said = capsys.readouterr().err
    assert f"{tmp_path}/alerts.tsv:2: predicate is not closed, column 5 (subscription 'bad')" in said
    assert "--errors collect" in said
    assert main([*common, str(tmp_path / "out"), "--shards", "2"]) == 3
    assert "alerts.tsv:2: " in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["matches", "rows"])
def test_what_could_not_be_decided_is_counted(
    here: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    costly = "//a[count(//*[count(following::*) > count(preceding::*)]) > 1]"
    (tmp_path / "alerts.tsv").write_text(f"one\t//a\ncostly\t{costly}\n")
    (tmp_path / "a.xml").write_text("<a>" + "<b/>" * 200 + "</a>")
    options = ["--limit", "steps=100", "--kind", kind, "--output", str(tmp_path / "out")]
    assert main(["spark", "match", "-s", str(tmp_path / "alerts.tsv"), str(tmp_path / "a.xml"), *options]) == 3
    assert "1 match, 0 broken, 1 not decided" in capsys.readouterr().err


def test_a_saved_set_is_compiled(here: SparkSession, tmp_path: Path) -> None:
    subscriptions = xsift.Subscriptions()
    subscriptions.add("all", "//a")
    subscriptions.save(tmp_path / "set.xsift")
    (tmp_path / "a.xml").write_text("<d><a/></d>")
    common = ["-s", str(tmp_path / "set.xsift"), str(tmp_path / "a.xml"), "--output", str(tmp_path / "out")]
    assert main(["spark", "match", *common]) == 0
    assert pyarrow.parquet.read_table(tmp_path / "out")["matches"].to_pylist() == [["all"]]
    assert main(["spark", "match", *common, "--overwrite", "--shards", "2"]) == 2
    assert main(["spark", "match", *common, "--overwrite", "--residuals", "refuse"]) == 2


def test_a_stream_says_what_it_went_without(
    here: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "alerts.tsv").write_text("good\t//a\nbad\t//a[\n")
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "a.xml").write_text("<d><a/></d>")
    common = ["--output", str(tmp_path / "out"), "--checkpoint", str(tmp_path / "state"), "--once"]
    inbox = str(tmp_path / "inbox")
    assert main(["spark", "stream", "-s", str(tmp_path / "alerts.tsv"), inbox, *common]) == 3
    table = SubscriptionTable.create(tmp_path / "table", namespaces={"n": "urn:n"})
    table.add([("all", "//a")])
    assert main(["spark", "stream", "-s", table.path, inbox, *common, "-n", "n=urn:m"]) == 2
    assert "other-namespace" in capsys.readouterr().err


def test_folders_below_and_archives(here: SparkSession, tmp_path: Path) -> None:
    """What `xsift match` takes apart, Spark's command line takes apart too."""
    news = tmp_path / "news"
    (news / "deep" / "er").mkdir(parents=True)
    (news / "deep" / "er" / "a.xml").write_text("<a/>")
    (news / "b.xml.gz").write_bytes(gzip.compress(b"<a/>"))
    (news / "broken.tar").write_bytes(b"no archive")
    with zipfile.ZipFile(news / "c.zip", "w") as archive:
        archive.writestr("1.xml", "<a/>")
        archive.writestr("2.xml", "<b/>")
        archive.writestr("README.txt", "hello")
    (tmp_path / "alerts.tsv").write_text("all\t//a\n")
    out = tmp_path / "out"
    assert main(["spark", "match", "-s", str(tmp_path / "alerts.tsv"), str(news), "--output", str(out)]) == 3
    rows = {row["document"].removeprefix(f"file:{news}/"): row for row in pyarrow.parquet.read_table(out).to_pylist()}
    assert {name: row["matches"] for name, row in rows.items()} == {
        "deep/er/a.xml": ["all"],
        "b.xml.gz": ["all"],
        "broken.tar": None,
        "c.zip/1.xml": ["all"],
        "c.zip/2.xml": [],
    }


@pytest.mark.parametrize("kind", ["matches", "rows", "nodes"])
def test_what_cannot_be_read_is_broken(here: SparkSession, tmp_path: Path, kind: str) -> None:
    """Empty files, and with --record files in which no records can be found, whatever is asked for."""
    news = tmp_path / "news of the day"
    news.mkdir()
    (news / "a.xml").write_text("<d><a/></d>")
    empty = news / "empty #1? 20%20é.xml"
    empty.write_text("")
    (tmp_path / "alerts.tsv").write_text("all\t//a\n")
    for number, options in enumerate(([], ["--record", "a"])):
        out = tmp_path / f"out{number}"
        common = ["-s", str(tmp_path / "alerts.tsv"), str(news), "--output", str(out), "--kind", kind]
        assert main(["spark", "match", *common, *options]) == 3
        rows = pyarrow.parquet.read_table(out).to_pylist()
        names = [row.get("document") or row["file"] for row in rows if row["error"]]
        assert [name.removeprefix("file:") for name in names] == [str(empty)]
        assert len(rows) == 2
    assert [row["read_error"] is None for row in rows] == [row["error"] is None for row in rows]


def test_namespaces_of_a_row_and_of_a_file(here: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "alerts.tsv").write_text("id\txpath\tnamespaces\nrow\t//n:a\tn=urn:n\nfile\t//m:a\t\n")
    (tmp_path / "names.toml").write_text('m = "urn:n"\n')
    (tmp_path / "a.xml").write_text("<d xmlns:x='urn:n' xml:lang='de'><x:a/></d>")
    common = [
        "-s",
        str(tmp_path / "alerts.tsv"),
        "--namespaces",
        str(tmp_path / "names.toml"),
        str(tmp_path / "a.xml"),
    ]
    assert main(["spark", "match", *common, "--kind", "nodes", "--output", str(tmp_path / "out")]) == 0
    rows = pyarrow.parquet.read_table(tmp_path / "out").to_pylist()
    fragment = b"<x:a xmlns:x='urn:n' xml:lang='de'/>"
    assert sorted((row["subscription"], row["fragment"]) for row in rows) == [("file", fragment), ("row", fragment)]


def test_an_output_that_is_there_is_kept(
    here: SparkSession, dump: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("kept")
    assert main(["spark", "match", *dump, "--output", str(tmp_path / "out")]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert main(["spark", "match", *dump, "--output", str(tmp_path / "out2"), "--quiet"]) == 0
    assert main(["spark", "match", *dump, "--output", str(tmp_path / "out2"), "--overwrite"]) == 0
    assert (tmp_path / "out" / "mine").read_text() == "kept"


def test_documents_that_are_not_there(
    here: SparkSession, dump: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump[2] = str(tmp_path / "none")
    for options in (dump, dump[:3]):
        assert main(["spark", "match", *options, "--output", str(tmp_path / "out")]) == 4
        said = capsys.readouterr().err
        assert "none" in said
        assert "exist" in said
        assert "Traceback" not in said


def test_demo(here: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "demo"
    assert main(["demo", "--documents", "12", "--subscriptions", "200", "--output", str(output)]) == 0
    said = capsys.readouterr().out
    assert "100 subscriptions added while it runs, version 2" in said
    assert "micro-batch 3: 3 documents, version 2" in said
    assert sorted(path.name for path in output.iterdir()) == ["matches", "report.html", "stream"]
    batch = {row.uri: row.matches for row in here.read.parquet(str(output / "matches")).collect()}
    stream = {row.uri: row for row in here.read.parquet(str(output / "stream")).collect()}
    assert sorted(batch) == sorted(stream)
    for uri, row in stream.items():
        known = [id for id in batch[uri] if row.batch_id > 1 or int(id.partition("-")[2]) <= 100]
        assert row.matches == known
    assert "Where the time went" in (output / "report.html").read_text()
