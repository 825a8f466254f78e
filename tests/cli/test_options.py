"""The command line's promises: options that reach, exit codes that mean something, output as its name says."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import stat
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import xsift
from xsift.cli import USAGE_CODES, main
from xsift.cli.output import Result, _TextWriter
from xsift.sources.compression import open_plain

GOOD = "<news><title>Spark</title><p>1</p><p>2</p></news>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "alerts.tsv").write_text("titles\t//title\nsecond\t//p[2]\n")
    (tmp_path / "a.xml").write_text(GOOD)
    return tmp_path


def match(folder: Path, *arguments: object) -> int:
    return main(["match", "-s", str(folder / "alerts.tsv"), *map(str, arguments)])


@pytest.mark.parametrize("threads", ["0", "-2", "x"])
def test_threads_are_a_whole_number_from_1(folder: Path, threads: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        match(folder, "--threads", threads, folder / "a.xml")
    assert caught.value.code == 2
    assert "argument --threads" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"xsift {xsift.__version__}\n"


def test_limits_and_residuals_reach(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert match(folder, "--limit", "depth=1", folder / "a.xml") == 3
    assert "too-deep" in capsys.readouterr().err
    assert match(folder, "--limit", "depth=x", folder / "a.xml") == 2
    assert match(folder, "--limit", "nothing=1", folder / "a.xml") == 2
    assert match(folder, "--residuals", "refuse", folder / "a.xml") == 3
    assert "alerts.tsv:2:" in capsys.readouterr().err
    assert main(["check", str(folder / "alerts.tsv"), "--residuals", "refuse"]) == 3


def test_encoding_reaches(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "e.tsv").write_text("umlaut\t//a[. = 'ä']\n")
    (folder / "e.xml").write_bytes("<a>ä</a>".encode("cp1252"))
    command = ["match", "-s", str(folder / "e.tsv"), str(folder / "e.xml")]
    assert main(command) == 3
    assert main([*command, "--encoding", "cp1252"]) == 0
    assert main([*command, "--encoding", "cp1252", "--record", "a"]) == 0
    for unknown in ("klingon", "undefined", "rot13", "\udcff"):
        assert main([*command, "--encoding", unknown]) == 2
        assert main(["explain", *command[1:], "--id", "umlaut", "--encoding", unknown]) == 2
    assert main(["explain", "-s", str(folder / "e.tsv"), "--id", "umlaut", "--encoding", "cp1252", command[-1]]) == 0


def test_an_error_names_its_document_whatever_it_is_called(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ids can be words that messages begin with; names of files that are in a message already are not repeated."""
    (folder / "d.jsonl").write_text('{"id": "the", "xml": "<a>"}\n{"id": "t", "xml": "<a>"}\n')
    assert match(folder, "--quiet", folder / "d.jsonl", folder / "none.xml") == 3
    told = capsys.readouterr().err.splitlines()
    assert [line.partition(" ")[0] for line in told] == ["the:1:4:", "t:1:4:", str(folder / "none.xml")]
    assert main(["explain", "-s", str(folder / "alerts.tsv"), "--id", "titles", str(folder / "none.xml")]) == 3
    assert capsys.readouterr().err.count("none.xml") == 1


def test_explain_has_the_exit_codes_of_match(folder: Path) -> None:
    (folder / "alerts.tsv").write_text("titles\t//title\nbad\t//p[\n")
    command = ["explain", "-s", str(folder / "alerts.tsv"), "--id", "titles"]
    assert main(command) == 3
    assert main([*command, str(folder / "a.xml")]) == match(folder, folder / "a.xml") == 3


def test_wrong_names_and_values_are_wrong_use(folder: Path) -> None:
    keys, table = ["serve", "--data", str(folder / "data"), "keys"], str(folder / "table")
    assert main([*keys, "add", "ops", "--role", "admin"]) == 0
    assert main([*keys, "add", "news", "--role", "reader"]) == 2
    assert main([*keys, "add", "a/b", "--role", "publish"]) == 2
    assert main([*keys, "revoke", "nobody"]) == 2
    assert main(["serve", "--database", "mysql://here/news", "keys", "list"]) == 2
    assert main(["subscriptions", "add", table, "a", "//n:a", "-n", "n=urn:n"]) == 0
    assert main(["subscriptions", "add", table, "b", "//n:b", "-n", "n=urn:m"]) == 2
    assert main(["subscriptions", "add", str(folder / "a|b"), "a", "//a"]) == 2


def test_what_means_wrong_use_is_raised_somewhere() -> None:
    files = Path(xsift.__file__).parent.rglob("*.py")
    texts = [file.read_text() for file in files if file != Path(sys.modules["xsift.cli"].__file__ or "")]
    assert {code for code in USAGE_CODES if not any(f'"{code}"' in text for text in texts)} == set()


def test_exit_code_4_says_that_it_could_not_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert match(folder, "--output", folder / "none" / "out.tsv", folder / "a.xml") == 4
    assert match(folder, "--output", folder, folder / "a.xml") == 4
    assert match(folder, "--save", folder / "none" / "m.xsift", folder / "a.xml") == 4
    (folder / "bad.xsift").write_bytes(b"no matcher")
    assert main(["match", "-s", str(folder / "bad.xsift"), str(folder / "a.xml")]) == 4
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert said.count("cannot be written") == 3


def test_without_pyspark_it_says_what_to_install(folder: Path) -> None:
    program = "import sys; sys.modules['pyspark'] = None; import xsift.cli; sys.exit(xsift.cli.main(sys.argv[1:]))"
    command = [
        "spark",
        "match",
        "-s",
        str(folder / "alerts.tsv"),
        str(folder / "a.xml"),
        "--output",
        str(folder / "o"),
    ]
    done = subprocess.run([sys.executable, "-c", program, *command], capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (4, False)
    assert "pip install 'xsift[spark]'" in done.stderr


def test_a_fault_of_our_own_is_not_nothing_matched(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr("xsift.cli.match.run", broken)
    assert match(folder, folder / "a.xml") == 4
    assert "internal-error" in capsys.readouterr().err


# Output


@pytest.mark.parametrize("ending", ["", ".gz", ".bz2", ".xz", ".zst"])
@pytest.mark.parametrize("kind", ["matches", "rows", "nodes"])
def test_outputs_are_what_their_names_say(folder: Path, kind: str, ending: str) -> None:
    expected = [("titles", "<title>Spark</title>"), ("second", "<p>2</p>")]
    for name in ("out.jsonl", "out.csv", "out.tsv", "out"):
        output = folder / f"{name}{ending}"
        assert match(folder, "--kind", kind, "--output", output, folder / "a.xml") == 0
        with open_plain(str(output)) as file:
            text = file.read(1 << 20).decode()
        if name == "out.csv":
            rows = list(csv.DictReader(io.StringIO(text)))
            assert [row["subscription"] for row in rows] == [id for id, _ in expected]
            if kind == "nodes":
                assert [(row["subscription"], row["fragment"]) for row in rows] == expected
        elif name == "out.jsonl":
            found = [json.loads(line) for line in text.splitlines()]
            if kind == "matches":
                assert found == [{"document": str(folder / "a.xml"), "matches": ["titles", "second"]}]
            else:
                assert [row["subscription"] for row in found] == [id for id, _ in expected]
        else:
            assert [line.split("\t")[1] for line in text.splitlines()] == [id for id, _ in expected]


@pytest.mark.parametrize("name", ["out.xyz", "out.json", "out.parquet.gz"])
def test_a_name_that_tells_no_format_is_refused(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert match(folder, "--output", folder / name, folder / "a.xml") == 2
    assert not (folder / name).exists()
    if name != "out.parquet.gz":
        assert match(folder, "--format", "jsonl", "--output", folder / name, folder / "a.xml") == 0


def test_ids_with_tabs_and_newlines_stay_on_their_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"id": "a\tb\nc\\d\r", "xpath": "//title"}]
    (folder / "odd.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "d.jsonl").write_text(json.dumps({"id": "x\ty", "xml": GOOD}))
    assert main(["match", "-s", str(folder / "odd.jsonl"), str(folder / "d.jsonl")]) == 0
    assert capsys.readouterr().out == "x\\ty\ta\\tb\\nc\\\\d\\r\n"
    assert main(["match", "-s", str(folder / "odd.jsonl"), "--format", "csv", str(folder / "d.jsonl")]) == 0
    assert list(csv.reader(io.StringIO(capsys.readouterr().out, newline="")))[1] == ["x\ty", rows[0]["id"]]


def test_messages_have_nothing_that_a_terminal_would_obey(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "d.jsonl").write_text(json.dumps({"id": "x\x1b[2J\n0 errors", "xml": "<a>"}))
    rows = [{"id": "\x1b]0;b\x07", "xpath": "//b["}, {"id": "c\u202e", "xpath": "//c[.='\n']"}]
    (folder / "odd.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert main(["match", "-s", str(folder / "odd.jsonl"), str(folder / "d.jsonl")]) == 3
    assert main(["check", str(folder / "odd.jsonl"), "--list"]) == 3
    assert main(["explain", "-s", str(folder / "odd.jsonl"), "--id", "d\x1b"]) == 2
    captured = capsys.readouterr()
    lines = [*captured.err.splitlines(), *captured.out.splitlines()]
    assert [line for line in lines if not line.isprintable()] == []
    assert "x\\x1b[2J\\n0 errors:1:4: the document ends" in captured.err
    assert "c\\u202e: //c[.='\\n']" in captured.out


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_names_have_nothing_that_a_terminal_would_obey(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "odd.jsonl").write_text(json.dumps({"id": "\x1b]0;b\x07é", "xpath": "//title"}))
    for terminal, shown in ((Terminal(), "\\x1b]0;b\\x07é"), (io.StringIO(), "\x1b]0;b\x07é")):
        monkeypatch.setattr(sys, "stdout", terminal)
        assert main(["match", "-s", str(folder / "odd.jsonl"), str(folder / "a.xml")]) == 0
        assert terminal.getvalue() == f"{folder / 'a.xml'}\t{shown}\n"


def test_undecided_and_broken_are_rows_of_every_kind(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from xsift.errors import SubscriptionError
    from xsift.matching.evaluation import Decider

    def undecided(_: Decider, rows: Any, __: Any) -> Any:
        return [], {row: SubscriptionError("too-costly", "no", id="second") for row in rows}

    monkeypatch.setattr(Decider, "decide", undecided)
    (folder / "bad.xml").write_text("<a>")
    for kind in ("matches", "rows", "nodes"):
        output = folder / f"{kind}.parquet"
        assert match(folder, "--kind", kind, "--output", output, folder / "a.xml", folder / "bad.xml") == 3
        rows = pyarrow.parquet.read_table(output).to_pylist()
        broken = [row for row in rows if row["document"] == str(folder / "bad.xml")]
        assert [row["error"]["code"] for row in broken] == ["truncated-document"]
        if kind == "matches":
            assert rows[0]["failures"] == [{"subscription": "second", "code": "too-costly", "message": "no"}]
        else:
            failed = [row for row in rows if row["subscription"] == "second"]
            assert [row["error"]["code"] for row in failed] == ["too-costly"]


def test_the_output_is_not_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Results in the folder of the documents would be read as rows, told as errors, and read again, for ever."""
    documents = folder / "documents"
    documents.mkdir()
    for number in range(100):
        (documents / f"{number}.xml").write_text(GOOD)
    output = documents / "out.jsonl"
    for given in (documents, documents / "*"):
        assert match(folder, "--output", output, given) == 0
        assert len(output.read_text().splitlines()) == 100
        assert f"1 file passed over, no XML: {output}" in capsys.readouterr().err
    command = [sys.executable, "-m", "xsift.cli", "match", "-s", str(folder / "alerts.tsv"), "--format", "jsonl"]
    with open(output, "w") as file:
        assert subprocess.run([*command, str(documents)], stdout=file, check=False).returncode == 0
    assert len(output.read_text().splitlines()) == 100


def test_what_is_read_is_not_written_over(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = folder / "d.jsonl"
    rows.write_text(json.dumps({"xml": GOOD}))
    (folder / "link.jsonl").symlink_to(rows)
    for name in ("d.jsonl", "link.jsonl", "alerts.tsv"):
        assert match(folder, "--output", folder / name, rows) == 2
        assert "is read as well" in capsys.readouterr().err
    assert rows.read_text() == json.dumps({"xml": GOOD})
    assert match(folder, rows) == 0


def test_rows_of_parquet_that_are_large_are_not_held_by_the_thousand(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("xsift.cli.output.PARQUET_BYTES", 20)
    documents = [folder / "a.xml"] * 6
    for kind, groups in (("matches", 3), ("nodes", 6)):
        output = folder / f"{kind}.parquet"
        assert match(folder, "--kind", kind, "--output", output, *documents) == 0
        assert pyarrow.parquet.ParquetFile(output).num_row_groups == groups
        assert len(pyarrow.parquet.read_table(output)) == (6 if kind == "matches" else 12)


def test_nodes_are_selected_no_further_ahead_than_there_are_threads(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []
    ahead: list[int] = []
    select, write = xsift.Matcher.select, _TextWriter.write

    def selecting(*given: Any, **options: Any) -> Any:
        begun.append(1)
        return select(*given, **options)

    def writing(writer: _TextWriter, result: Result) -> None:
        ahead.append(len(begun) - len(ahead))
        write(writer, result)

    monkeypatch.setattr(xsift.Matcher, "select", selecting)
    monkeypatch.setattr(_TextWriter, "write", writing)
    assert match(folder, "--kind", "nodes", "--threads", "2", *[folder / "a.xml"] * 30) == 0
    assert len(ahead) == 30
    assert max(ahead) <= 3


# Saved matchers


def test_saved_matchers_explain_and_say_what_they_cannot_follow(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = str(folder / "m.xsift")
    assert match(folder, "--save", folder / "m", folder / "a.xml") == 2  # nothing could be told to use it
    assert match(folder, "--save", saved, folder / "a.xml") == 0
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(os.stat(saved).st_mode) == 0o666 & ~mask
    assert main(["explain", "-s", saved, "--id", "second"]) == 0
    assert main(["explain", "-s", saved, "--id", "second", str(folder / "a.xml")]) == 0
    assert "selects /news/p[2]" in capsys.readouterr().out
    given: Any
    for given in (["-e", "yfilter"], ["-n", "n=urn:n"], ["-o", "x=1"], ["--residuals", "refuse"]):
        assert main(["match", "-s", saved, *given, str(folder / "a.xml")]) == 2
        assert "saved" in capsys.readouterr().err
    assert main(["match", "-s", saved, "--limit", "depth=1", str(folder / "a.xml")]) == 3


# Namespaces


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("n.toml", 'n = "urn:n"\n'),
        ("n.toml", '[namespaces]\nn = "urn:n"\n'),
        ("n.json", '{"n": "urn:n"}'),
        ("n.txt", "# ours\nn=urn:n\nm=urn:m\n"),
    ],
)
def test_namespaces_of_a_file(folder: Path, name: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "n.tsv").write_text("a\t//n:x\n")
    (folder / "n.xml").write_text("<x xmlns='urn:n'/>")
    (folder / name).write_text(text)
    command = ["match", "-s", str(folder / "n.tsv"), "--namespaces", str(folder / name), str(folder / "n.xml")]
    assert main(command) == 0
    assert main(["check", str(folder / "n.tsv"), "--namespaces", str(folder / name)]) == 0
    assert main([*command, "-n", "n=urn:n"]) == 0
    capsys.readouterr()
    assert main([*command, "-n", "n=urn:other"]) == 2
    assert "'n' means 'urn:n' and 'urn:other'" in capsys.readouterr().err


def test_a_prefix_has_one_meaning(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert match(folder, "-n", "i=a", "-n", "i=b", folder / "a.xml") == 2
    assert "namespace-conflict" in capsys.readouterr().err
    for text in ("x", "=x", "n=", "n=a b", '{"n": "x"}'):
        assert match(folder, "-n", text, folder / "a.xml") == 2
    for name, text in (("x.toml", "n = "), ("x.json", '{"n": 5}'), ("x.txt", "n"), ("y.json", "[" * 100_000)):
        (folder / name).write_text(text)
        assert match(folder, "--namespaces", folder / name, folder / "a.xml") in (2, 4)
    assert match(folder, "--namespaces", folder / "none.toml", folder / "a.xml") == 4
    assert "Traceback" not in capsys.readouterr().err


def test_nothing_matched_because_of_a_namespace(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "n.xml").write_text(GOOD.replace("<news>", "<news xmlns='urn:news'>"))
    assert match(folder, folder / "n.xml") == 1
    assert "1 element here has the name 'title' in namespace 'urn:news'" in capsys.readouterr().err
    assert match(folder, "--quiet", folder / "n.xml") == 1
    assert not capsys.readouterr().err


# Counting


def test_what_is_passed_over_is_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "docs").mkdir()
    (folder / "docs" / "README.txt").write_text("hello")
    (folder / "docs" / "a.nitf").write_text(GOOD)
    with zipfile.ZipFile(folder / "docs" / "z.zip", "w") as archive:
        archive.writestr("b.xml", GOOD)
        archive.writestr("LICENSE", "free")
    assert match(folder, folder / "docs") == 0
    captured = capsys.readouterr()
    assert "2 documents, 4 matches" in captured.err
    assert "2 files passed over, no XML: " in captured.err
    assert "README.txt" in captured.err
    assert "LICENSE" in captured.err


def test_errors_have_their_remedy(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "bad.xml").write_text("<a>\n<b>\n</a>")
    assert match(folder, folder / "bad.xml") == 3
    assert (
        f"{folder}/bad.xml:3:3: the end tag </a> does not match <b> (opened in line 2, column 1)"
        in capsys.readouterr().err
    )
    (folder / "bad.xml.gz").write_bytes(gzip.compress(b"<a>\n<b>\n</a>"))
    assert match(folder, folder / "bad.xml.gz") == 3
    assert "does not match <b> (opened in line 2, column 1)" in capsys.readouterr().err


def test_records_and_explanations_of_several(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "dump.xml").write_text(f"<d>{GOOD}<news/>{GOOD}</d>")
    assert match(folder, "--record", "news", folder / "dump.xml") == 0
    assert [line.split("\t") for line in capsys.readouterr().out.splitlines()] == [
        [f"{folder}/dump.xml:3", "titles"],
        [f"{folder}/dump.xml:3", "second"],
        [f"{folder}/dump.xml:{3 + len(GOOD) + 7}", "titles"],
        [f"{folder}/dump.xml:{3 + len(GOOD) + 7}", "second"],
    ]
    command = ["explain", "-s", str(folder / "alerts.tsv"), "--id", "titles", "--record", "news"]
    assert main([*command, str(folder / "dump.xml")]) == 0
    lines = capsys.readouterr().out.splitlines()
    places = (3, 3 + len(GOOD), 3 + len(GOOD) + 7)
    for place, says in zip(places, ("matches", "does not match", "matches"), strict=True):
        begin = lines.index(f"{folder}/dump.xml:{place}:")
        assert lines[begin + 1 : begin + 3] == ["titles: //title", says]


def test_a_table_without_ids(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pyarrow.parquet.write_table(pa.table({"xml": [GOOD] * 600}), folder / "d.parquet")
    assert match(folder, "--threads", "2", folder / "d.parquet") == 0
    labels = [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()]
    assert labels == [f"{folder}/d.parquet:{row}" for row in range(1, 601) for _ in range(2)]
