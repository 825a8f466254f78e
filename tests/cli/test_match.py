"""`xsift match`, `check`, `explain`, `engines`: files in, lines out, exit codes that scripts can use."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import xsift
from xsift.cli import main

GOOD = "<news><title>Spark</title><p>1</p><p>2</p></news>"
OTHER = "<news><q/></news>"
ROWS = [("titles", "//title"), ("spark", "//title[.='Spark']"), ("second", "//p[2]"), ("ordered", "/news[p]/title")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "alerts.tsv").write_text("".join(f"{id}\t{xpath}\n" for id, xpath in ROWS))
    news = tmp_path / "news"
    (news / "deep").mkdir(parents=True)
    (news / "a.xml").write_text(GOOD)
    (news / "deep" / "b.xml").write_text(OTHER)
    (news / "c.xml.gz").write_bytes(gzip.compress(GOOD.encode()))
    (news / "readme.txt").write_text("no XML")
    return tmp_path


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_text_output(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["match", "-s", str(folder / "alerts.tsv"), str(folder / "news")]) == 0
    captured = capsys.readouterr()
    a, c = folder / "news" / "a.xml", folder / "news" / "c.xml.gz"
    ids = ["titles", "spark", "second", "ordered"]
    assert captured.out.splitlines() == [f"{path}\t{id}" for path in (a, c) for id in ids]
    assert "3 documents, 8 matches, 4 subscriptions on engine sift" in captured.err


def test_nodes_and_json_lines(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = str(folder / "news" / "a.xml")
    assert main(["match", "-s", str(folder / "alerts.tsv"), "--nodes", document]) == 0
    assert lines(capsys)[2] == f"{document}\tsecond\t/news/p[2]\t34-42"
    assert main(["match", "-s", str(folder / "alerts.tsv"), "--nodes", "--format", "jsonl", document]) == 0
    row = json.loads(lines(capsys)[2])
    node = {"path": "/news/p[2]", "element": 4, "start": 34, "end": 42, "fragment": "<p>2</p>"}
    assert row == {"document": document, "subscription": "second", **node}
    assert main(["match", "-s", str(folder / "alerts.tsv"), "--kind", "rows", "--format", "jsonl", document]) == 0
    assert json.loads(lines(capsys)[1]) == {"document": document, "subscription": "spark"}


def test_parquet_output(folder: Path) -> None:
    output = folder / "out.parquet"
    (folder / "news" / "bad.xml").write_text("<a>\n<b></a>")
    command = ["match", "-s", str(folder / "alerts.tsv"), "--output", str(output), str(folder / "news")]
    assert main(command) == 3
    rows = {row["document"]: row for row in pyarrow.parquet.read_table(output).to_pylist()}
    assert rows[str(folder / "news" / "a.xml")]["matches"] == ["titles", "spark", "second", "ordered"]
    bad = rows[str(folder / "news" / "bad.xml")]
    assert bad["matches"] is None
    assert (bad["error"]["line"], bad["error"]["code"]) == (2, "tag-mismatch")
    assert main([*command, "--kind", "nodes"]) == 3
    rows = {row["document"]: row for row in pyarrow.parquet.read_table(output).to_pylist()}
    assert rows[str(folder / "news" / "bad.xml")]["error"]["code"] == "tag-mismatch"
    assert rows[str(folder / "news" / "bad.xml")]["subscription"] is None
    assert rows[str(folder / "news" / "a.xml")]["fragment"].startswith("<")


def test_archives_and_tables(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with zipfile.ZipFile(folder / "d.zip", "w") as archive:
        archive.writestr("in/1.xml", GOOD)
    with tarfile.open(folder / "d.tar.gz", "w:gz") as tar:
        info = tarfile.TarInfo("2.xml")
        info.size = len(GOOD)
        tar.addfile(info, io.BytesIO(GOOD.encode()))
    (folder / "d.jsonl").write_text(
        json.dumps({"id": "three", "xml": GOOD}) + "\n\n" + json.dumps({"xml": OTHER}) + "\n"
    )
    pyarrow.parquet.write_table(pa.table({"id": ["four"], "xml": [GOOD.encode()]}), folder / "d.parquet")
    (folder / "d.xml.gz").write_bytes(gzip.compress(GOOD.encode()))
    sources = [str(folder / name) for name in ("d.zip", "d.tar.gz", "d.jsonl", "d.parquet", "*.xml.gz")]
    assert main(["match", "-s", str(folder / "alerts.tsv"), "--threads", "2", *sources]) == 0
    found = {line.split("\t")[0] for line in lines(capsys)}
    assert found == {f"{folder}/d.zip/in/1.xml", f"{folder}/d.tar.gz/2.xml", "three", "four", f"{folder}/d.xml.gz"}


def test_standard_input_and_module(folder: Path) -> None:
    command = [sys.executable, "-m", "xsift.cli", "match", "-s", str(folder / "alerts.tsv"), "-"]
    done = subprocess.run(command, input=GOOD, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == "-\ttitles"


def test_exit_codes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    alerts = str(folder / "alerts.tsv")
    assert main(["match", "-s", alerts, str(folder / "news" / "deep")]) == 1
    assert main(["match", "-s", alerts, str(folder / "missing.xml"), str(folder / "news" / "a.xml")]) == 3
    assert "cannot be read" in capsys.readouterr().err
    (folder / "broken.zip").write_bytes(b"PK no")
    assert main(["match", "-s", alerts, str(folder / "broken.zip")]) == 3
    assert main(["match", "-s", str(folder / "none.tsv"), "x"]) == 4
    assert main(["match", "-s", alerts, "--format", "parquet", str(folder / "news")]) == 2
    with pytest.raises(SystemExit) as caught:
        main(["match"])
    assert caught.value.code == 2


def test_bad_subscriptions_are_listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open(folder / "alerts.tsv", "a") as file:
        file.write("broken\t//a[\n")
    document = str(folder / "news" / "a.xml")
    assert main(["match", "-s", str(folder / "alerts.tsv"), "--errors", "raise", document]) == 4
    captured = capsys.readouterr()
    assert f"{folder / 'alerts.tsv'}:5: predicate is not closed, column 5 (subscription 'broken')" in captured.err
    assert not captured.out
    assert main(["match", "-s", str(folder / "alerts.tsv"), document]) == 3
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 4
    assert "4 subscriptions (1 cannot be used)" in captured.err
    assert main(["check", str(folder / "alerts.tsv")]) == 3
    captured = capsys.readouterr()
    assert "5 subscriptions, 4 distinct patterns" in captured.out
    assert "1 (20%) refused: they cannot be used" in captured.out
    assert main(["check", "--json", str(folder / "alerts.tsv")]) == 3
    error = json.loads(capsys.readouterr().out)["errors"][0]
    assert (error["code"], error["id"], error["place"]) == (
        "predicate-not-closed",
        "broken",
        f"{folder}/alerts.tsv:5",
    )


@pytest.mark.parametrize("ending", [".tsv", ".csv", ".jsonl", ".parquet", ".tsv.gz", ".csv.gz"])
@pytest.mark.parametrize("header", [True, False])
def test_formats_of_subscriptions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ending: str, header: bool
) -> None:
    path = tmp_path / f"s{ending}"
    rows = [("a", "//title", "false"), ("b,c", "/news[p]/title[. = 'x, y']", "true")]
    if ending == ".parquet":
        pyarrow.parquet.write_table(pa.table({"id": ["a", "b,c"], "xpath": [row[1] for row in rows]}), path)
    else:
        quoted = [
            (
                '"b,c"' if row[0] == "b,c" and "csv" in ending else row[0],
                f'"{row[1]}"' if "csv" in ending else row[1],
                row[2],
            )
            for row in rows
        ]
        text = "".join(("," if "csv" in ending else "\t").join(row) + "\n" for row in quoted)
        if header:
            text = ("id,xpath,ordered\n" if "csv" in ending else "id\txpath\tordered\n") + text
        if ending == ".jsonl":
            text = "".join(json.dumps(dict(zip(("id", "xpath", "ordered"), row, strict=True))) + "\n" for row in rows)
        path.write_bytes(gzip.compress(text.encode()) if ending.endswith(".gz") else text.encode())
    assert main(["check", "--list", str(path)]) == 0
    out = capsys.readouterr().out
    assert "b,c: /news[p]/title[. = 'x, y']" in out
    assert ("(ordered)" in out) == (ending != ".parquet")


def test_files_that_are_no_subscriptions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.txt").write_text("a\t//b\n")
    assert main(["check", str(tmp_path / "s.txt")]) == 2
    assert ".tsv" in capsys.readouterr().err
    (tmp_path / "s.jsonl").write_text('{"id": "a", "path": "//b"}\n')
    assert main(["check", str(tmp_path / "s.jsonl")]) == 0  # a path is an xpath
    (tmp_path / "s.jsonl").write_text('{"id": "a", "rule": "//b"}\n')
    assert main(["check", str(tmp_path / "s.jsonl")]) == 3
    assert "s.jsonl:1: it has no xpath; it has 'id', 'rule'" in capsys.readouterr().err
    (tmp_path / "s.tsv").write_text("a\t//b\tperhaps\n")
    assert main(["check", str(tmp_path / "s.tsv")]) == 3
    assert "s.tsv:1: ordered is 'perhaps'" in capsys.readouterr().err
    (tmp_path / "s.tsv").write_text("a\t//b\nc\n")
    assert main(["check", str(tmp_path / "s.tsv")]) == 3
    assert "s.tsv:2: it has only 1 cell: 'c'" in capsys.readouterr().err
    (tmp_path / "e.tsv").write_text("")
    assert main(["check", str(tmp_path / "e.tsv")]) == 0


def test_saved_matchers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document, saved = str(folder / "news" / "a.xml"), str(folder / "alerts.xsift")
    assert main(["match", "-s", str(folder / "alerts.tsv"), "-e", "yfilter", "--save", saved, document]) == 0
    first = lines(capsys)
    assert main(["match", "-s", saved, document]) == 0
    assert lines(capsys) == first


def test_explain(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    alerts = str(folder / "alerts.tsv")
    assert main(["explain", "-s", alerts, "--id", "second"]) == 0
    assert "evaluated: //p[2]" in capsys.readouterr().out
    assert main(["explain", "-s", alerts, "--id", "second", str(folder / "news" / "a.xml")]) == 0
    assert "selects /news/p[2]" in capsys.readouterr().out
    assert main(["explain", "-s", alerts, "--id", "spark", str(folder / "news" / "deep" / "b.xml")]) == 1
    assert "✗ //title: 0 found" in capsys.readouterr().out
    assert main(["explain", "-s", alerts, "--id", "nobody"]) == 2


def test_engines_and_options(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["engines"]) == 0
    out = capsys.readouterr().out
    assert all(engine.name in out for engine in xsift.list_engines())
    assert main(["engines", "--json"]) == 0
    assert {row["name"] for row in json.loads(capsys.readouterr().out)} == {
        engine.name for engine in xsift.list_engines()
    }
    document = str(folder / "news" / "a.xml")
    assert main(["match", "-s", str(folder / "alerts.tsv"), "-e", "sift", "-o", "cache_bytes=1000", document]) == 0
    assert main(["match", "-s", str(folder / "alerts.tsv"), "-e", "sift", "-o", "nonsense=1", document]) == 2
    assert main(["match", "-s", str(folder / "alerts.tsv"), "-o", f"cache_bytes={10**20}", document]) == 2


def test_namespaces(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "n.tsv").write_text("a\t//n:x\n")
    (folder / "n.xml").write_text("<x xmlns='urn:n'/>")
    assert main(["match", "-s", str(folder / "n.tsv"), "-n", "n=urn:n", str(folder / "n.xml")]) == 0
    assert main(["match", "-s", str(folder / "n.tsv"), str(folder / "n.xml")]) == 3
    assert main(["match", "-s", str(folder / "n.tsv"), "-n", "nonsense", str(folder / "n.xml")]) == 2


def test_demo_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--documents", "5", "--subscriptions", "200"]) == 0
    assert "documents a second" in capsys.readouterr().out
