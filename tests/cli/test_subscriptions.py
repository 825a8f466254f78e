"""`xsift subscriptions`, and tables wherever a file of subscriptions can be given."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

pytest.importorskip("deltalake")

import xsift
from xsift.cli import main
from xsift.tables import SubscriptionTable

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def table(tmp_path: Path) -> str:
    return str(tmp_path / "alerts")


def run(*arguments: str) -> int:
    return main(["subscriptions", *arguments])


def out(capsys: Capture) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_add_list_remove(table: str, capsys: Capture) -> None:
    assert run("add", table, "alice", "//hl1[contains(., 'Spark')]", "--set", "owner=alice", "--user", "me") == 0
    assert capsys.readouterr().err == "version 1: 1 added, 0 removed\n"
    assert run("add", table, "bob", "//p", "--ordered", "--set", "owner=bob") == 0
    assert run("add", table, "carol", "//q") == 0
    capsys.readouterr()
    assert run("list", table) == 0
    assert out(capsys) == [
        "alice\t//hl1[contains(., 'Spark')]\tfalse\talice",
        "bob\t//p\ttrue\tbob",
        "carol\t//q\tfalse\t",
    ]
    assert run("list", table, "--where", "owner=bob", "--json") == 0
    assert json.loads(out(capsys)[0]) == {"id": "bob", "xpath": "//p", "ordered": True, "owner": "bob"}
    assert run("list", f"{table}@1") == 0
    assert len(out(capsys)) == 1
    assert run("remove", table, "bob") == 0
    assert run("list", table, "--where", "owner=bob") == 1
    assert run("remove", table, "bob") == 2
    assert run("remove", table, "bob", "--missing-ok") == 0
    assert run("remove", table, "--where", "owner=alice") == 0
    capsys.readouterr()
    assert run("list", table) == 0
    assert out(capsys) == ["carol\t//q"]


def test_odd_ids_stay_on_their_line_and_in_their_file(table: str, tmp_path: Path, capsys: Capture) -> None:
    rows = [("tab\there", "//a"), ("#1", "//b"), ("two\nlines", "//c[. = '\\d']")]
    SubscriptionTable.create(table).add(rows)
    assert run("list", table) == 0
    assert out(capsys) == ["tab\\there\t//a", "#1\t//b", "two\\nlines\t//c[. = '\\d']"]
    assert run("diff", table, "0") == 0
    assert len(out(capsys)) == 3
    for ending in ("csv", "jsonl", "parquet"):
        assert run("export", table, str(tmp_path / f"x.{ending}")) == 0
        assert run("import", str(tmp_path / ending), str(tmp_path / f"x.{ending}")) == 0
        assert [tuple(row.values())[:2] for row in SubscriptionTable(tmp_path / ending).as_of().to_pylist()] == rows


def test_what_a_tsv_file_cannot_say_leaves_the_old_one(table: str, tmp_path: Path, capsys: Capture) -> None:
    SubscriptionTable.create(table).add([("a", "//a"), ("#1", "//b")])
    (tmp_path / "x.tsv").write_text("as before")
    assert run("export", table, str(tmp_path / "x.tsv")) == 2
    assert "subscription '#1' would be a comment there" in capsys.readouterr().err
    assert (tmp_path / "x.tsv").read_text() == "as before"


def test_what_changed_is_told(table: str, capsys: Capture) -> None:
    assert run("add", table, "a", "//p:a", "--set", "namespaces=p=urn:p", "--set", "owner=me") == 0
    assert SubscriptionTable(table).as_of()["namespaces"].to_pylist() == [[("p", "urn:p")]]
    capsys.readouterr()
    assert run("remove", table, "nobody", "--missing-ok") == 0
    assert capsys.readouterr().err == "version 1: nothing changed\n"
    for name in ("id", "xpath", "ordered"):
        assert run("add", table, "a", "//a", "--set", f"{name}=b") == 2
    assert run("add", table, "a", "//a", "--set", "namespaces=p") == 2
    assert SubscriptionTable(table).version() == 1
    for limit in ("0", "-1", "x"):
        with pytest.raises(SystemExit) as ended:
            run("history", table, "--limit", limit)
        assert ended.value.code == 2


def test_remove_reads_ids(table: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    SubscriptionTable.create(table).add([("a", "//a"), ("b c", "//b"), ("d", "//d")])
    monkeypatch.setattr("sys.stdin", io.StringIO("a\nb c\n"))
    assert run("remove", table, "-") == 0
    capsys.readouterr()
    assert run("list", table) == 0
    assert out(capsys) == ["d\t//d"]
    assert run("remove", table) == 2


def test_history_and_diff(table: str, capsys: Capture) -> None:
    made = SubscriptionTable.create(table, user="me")
    made.add([("a", "//a"), ("b", "//b")])
    made.replace([("b", "//b2"), ("c", "//c")])
    assert run("history", table) == 0
    first, second = (line.split("\t") for line in out(capsys))
    assert (first[0], first[2:], second[0], second[2:]) == ("2", ["me", "+2", "-1"], "1", ["me", "+2", "-0"])
    assert run("history", table, "--limit", "1", "--json") == 0
    assert json.loads(out(capsys)[0])["removed"] == 1
    assert run("diff", table, "1") == 0
    assert out(capsys) == ["-\ta\t//a", "+\tc\t//c", "~\tb\t//b2"]
    assert run("diff", table, "1", "1") == 1
    assert run("diff", table, "2", "1") == 2
    assert run("diff", table, "soon") == 2
    assert run("diff", table, "31/01/2030") == 2
    assert "no version" in capsys.readouterr().err


@pytest.mark.parametrize("ending", [".tsv", ".csv", ".jsonl", ".parquet"])
def test_export_and_import(table: str, tmp_path: Path, ending: str, capsys: Capture) -> None:
    made = SubscriptionTable.create(table, namespaces={"n": "urn:n"})
    rows = [("a,b", '//n:a[. = "é"]', True, "alice"), ('q"', "//b", False, None)]
    made.add([{"id": id, "xpath": x, "ordered": ordered, "owner": owner} for id, x, ordered, owner in rows])
    file, copy = str(tmp_path / f"file{ending}"), str(tmp_path / "copy")
    assert run("export", table, file) == 0
    assert run("import", copy, file) == 4  # it has no prefix n
    assert run("import", copy, file, "-n", "n=urn:n") == 0
    wanted = [(row[0], row[1], row[2], row[3] or "") for row in rows]
    found = SubscriptionTable(copy).as_of().to_pylist()
    assert [(row["id"], row["xpath"], row["ordered"], row["owner"] or "") for row in found] == wanted
    made.remove(["a,b"])
    made.add([("new", "//new")])
    assert run("export", table, file) == 0
    capsys.readouterr()
    assert run("import", copy, file, "--replace", "--if-version", "2") == 0
    assert "version 3: 1 added, 1 removed" in capsys.readouterr().err
    assert SubscriptionTable(copy).as_of()["id"].to_pylist() == ['q"', "new"]
    assert run("import", copy, file, "--if-version", "1") == 2
    assert "version-conflict" in capsys.readouterr().err


def test_namespaces_of_rows_and_labels_survive_json(table: str, tmp_path: Path) -> None:
    row = {"id": "a", "xpath": "//m:a", "namespaces": {"m": "urn:m"}, "labels": ["x", "y"]}
    SubscriptionTable.create(table).add([row, {"id": "b", "xpath": "//b"}])
    file = str(tmp_path / "file.jsonl")
    assert run("export", table, file) == 0
    assert run("import", str(tmp_path / "copy"), file) == 0
    found = SubscriptionTable(tmp_path / "copy").as_of().to_pylist()
    assert (dict(found[0]["namespaces"]), found[0]["labels"], found[1]["namespaces"]) == (
        {"m": "urn:m"},
        ["x", "y"],
        None,
    )


def test_import_with_errors(table: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "file.tsv").write_text("a\t//a\nbad\t//a[\na\t//again\n")
    assert run("import", table, str(tmp_path / "file.tsv")) == 4
    assert "--errors collect" in capsys.readouterr().err
    assert run("import", table, str(tmp_path / "file.tsv"), "--errors", "collect") == 3
    said = capsys.readouterr().err
    assert "'bad'" in said
    assert "'a' is in a row before" in said
    assert "1 added" in said


def test_what_cannot_be_done(table: str, tmp_path: Path, capsys: Capture) -> None:
    assert run("list", table) == 4
    assert "no subscription table" in capsys.readouterr().err
    assert not Path(table).exists()
    SubscriptionTable.create(table).add([("a\tb", "//a")])
    assert run("export", table, str(tmp_path / "x.tsv")) == 2
    assert run("export", table, str(tmp_path / "x.doc")) == 2
    assert run("list", table, "--where", "owner") == 2
    assert run("list", table, "--where", "owner=me") == 2
    assert run("compact", table) == 0
    assert run("compact", table, "--forget-before", "1") == 0


def test_a_version_is_not_changed_nor_taken_for_a_new_table(table: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "file.tsv").write_text("b\t//b\n")
    assert run("add", table, "a", "//a") == 0
    for action, *more in (("add", "b", "//b"), ("import", str(tmp_path / "file.tsv")), ("remove", "a"), ("history",)):
        capsys.readouterr()
        assert run(action, f"{table}@1", *more) == 2
        assert "names a version" in capsys.readouterr().err
    assert not Path(f"{table}@1").exists()
    assert run("add", f"{table}@home", "a", "//a") == 0  # a name
    assert run("list", f"{table}@home") == 0


def test_a_table_wherever_a_file_is_taken(table: str, tmp_path: Path, capsys: Capture) -> None:
    made = SubscriptionTable.create(table, namespaces={"n": "urn:n"})
    made.add([("a", "//a"), ("n", "//n:b")])
    made.remove(["a"])
    document = tmp_path / "d.xml"
    document.write_text("<a><b xmlns='urn:n'/></a>")
    for name, wanted in ((table, ["n"]), (f"{table}@1", ["a", "n"]), (f"{table}@2", ["n"])):
        assert main(["match", "-s", name, str(document)]) == 0
        assert out(capsys) == [f"{document}\t{id}" for id in wanted]
    assert main(["match", "-s", f"{table}@9", str(document)]) == 2
    assert main(["match", "-s", str(tmp_path), str(document)]) == 4
    capsys.readouterr()
    for name in ("alrets", "alrets@1"):
        assert main(["match", "-s", str(tmp_path / name), str(document)]) == 4
        assert f"there is no file and no table {tmp_path / name}" in capsys.readouterr().err
    assert main(["check", f"{table}@1"]) == 0
    assert out(capsys)[0].startswith("2 subscriptions")
    assert main(["explain", "-s", table, "--id", "n", str(document)]) == 0
    saved = str(tmp_path / "set.xsift")
    made.subscriptions(1).save(saved)
    capsys.readouterr()
    assert main(["match", "-s", saved, str(document)]) == 0
    assert len(out(capsys)) == 2
    assert list(xsift.Subscriptions.load(saved)) == ["a", "n"]
