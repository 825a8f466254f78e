"""Files of subscriptions: headers by what they are called, a bad row is one error with its line, nothing is lost."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import json
import lzma
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import xsift
from xsift.errors import SubscriptionError
from xsift.sources.subscriptions import SubscriptionFile, read_subscriptions

BOM = codecs.BOM_UTF8.decode()


def read(folder: Path, name: str, content: str | bytes, **options: Any) -> SubscriptionFile:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_subscriptions(path, **options)


def pairs(found: SubscriptionFile) -> list[tuple[str, str]]:
    return list(zip(found.table["id"].to_pylist(), found.table["xpath"].to_pylist(), strict=True))


def lines_of(found: SubscriptionFile) -> list[int]:
    assert found.lines is not None
    return [line.as_py() for line in found.lines]


def faults(found: SubscriptionFile) -> list[tuple[str, str]]:
    return [(Path(error.place).name, error.code) for error in found.errors]


@pytest.mark.parametrize("mark", ["", BOM])
@pytest.mark.parametrize("header", ["id,xpath", "ID,XPath", "name,query", "Id , Expression", '"id","xpath"', ""])
def test_headers_of_csv_are_known_by_their_names(tmp_path: Path, mark: str, header: str) -> None:
    found = read(
        tmp_path, "s.csv", f"{mark}{header}\n" * bool(header) + "alice,\"//a[contains(.,'x,y')]\"\nbob,//b\n"
    )
    assert pairs(found) == [("alice", "//a[contains(.,'x,y')]"), ("bob", "//b")]
    assert not found.errors


@pytest.mark.parametrize("name", ["s.tsv", "s.csv"])
@pytest.mark.parametrize("header", ["id\texpression", f"{BOM}ID\tXPATH", "name\tquery"])
def test_a_header_tells_the_delimiter(tmp_path: Path, name: str, header: str) -> None:
    assert pairs(read(tmp_path, name, f"{header}\nalice\t//a[b,c]\n")) == [("alice", "//a[b,c]")]


def test_a_header_with_semicolons(tmp_path: Path) -> None:
    found = read(tmp_path, "s.csv", "id;xpath\n# all\nalice;\"//a[. = ';']\"\n")
    assert pairs(found) == [("alice", "//a[. = ';']")]
    assert found.comments == 1


def test_columns_in_another_order_and_unknown_ones(tmp_path: Path) -> None:
    found = read(tmp_path, "s.tsv", "comment\txpath\tid\tordered\nx\t//a\talice\ttrue\ny\t//b\tbob\nz\t//c\n")
    assert pairs(found) == [("alice", "//a"), ("bob", "//b")]
    assert found.table["ordered"].to_pylist() == [True, False]
    assert faults(found) == [("s.tsv:4", "missing-value")]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("s.csv", "id,rule\na,//b\n"),
        ("s.tsv", "hello\n"),
        ("s.tsv", "a //b\n"),
        ("s.csv", "name,key,xpath\n"),
        ("s.tsv", "key\tfoo\n"),
    ],
)
def test_what_is_not_understood_shows_the_first_line(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(SubscriptionError) as caught:
        read(tmp_path, name, text)
    assert caught.value.code == "unknown-columns"
    assert text.splitlines()[0].split(",")[0].split("\t")[0] in str(caught.value)


def test_a_column_by_its_own_name_leaves_others_to_their_owners(tmp_path: Path) -> None:
    found = read(tmp_path, "s.csv", "id,xpath,name,subscriber,n\na,//a,x,,5\nb,//b,y,z,\n", all_columns=True)
    assert pairs(found) == [("a", "//a"), ("b", "//b")]
    others = found.table.select(["name", "subscriber", "n"]).to_pydict()
    assert others == {"name": ["x", "y"], "subscriber": [None, "z"], "n": ["5", None]}
    lines = [{"id": "a", "xpath": "//a", "name": "x", "k": 1}, {"id": "b", "xpath": "//b", "k": "two"}]
    found = read(tmp_path, "s.jsonl", "\n".join(map(json.dumps, lines)), all_columns=True)
    assert found.table.select(["name", "k"]).to_pydict() == {"name": ["x", None], "k": ["1", "two"]}
    pyarrow.parquet.write_table(pa.table({"id": ["a"], "xpath": ["//a"], "query": ["q"]}), tmp_path / "s.parquet")
    table = read_subscriptions(tmp_path / "s.parquet", all_columns=True).table
    assert (table["xpath"].to_pylist(), table["query"].to_pylist()) == (["//a"], ["q"])


def test_what_a_quote_encloses_is_looked_through_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []
    reader = csv.reader

    def counting(lines: Iterable[str], **options: Any) -> Any:
        def counted() -> Iterator[str]:
            for line in lines:
                given.append(len(line))
                yield line

        return reader(counted(), **options)

    monkeypatch.setattr(csv, "reader", counting)
    text = 'a,"\n' + '""\n' * 500
    found = read(tmp_path, "s.csv", text)
    assert len(found.errors) == 501
    assert sum(given) < 3 * len(text)
    assert pairs(read(tmp_path, "s.csv", text + '//a"\nb,//b\n')) == [("a", "\n" + '"\n' * 500 + "//a"), ("b", "//b")]


def test_a_column_may_be_called_line(tmp_path: Path) -> None:
    found = read(tmp_path, "s.csv", "id,xpath,line,,\na,//a,7,,\n\nb,//b,8,,\nc,//c[,9,,\n", all_columns=True)
    assert found.table["line"].to_pylist() == ["7", "8", "9"]
    (error,) = found.located(xsift.Subscriptions().add_many(found.table, errors="collect"))
    assert error.place == f"{tmp_path}/s.csv:5"


def test_a_column_that_is_there_twice_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    pyarrow.parquet.write_table(pa.table([["a"], ["//a"], ["1"], ["2"]], names=["id", "xpath", "x", "x"]), path)
    assert pairs(read_subscriptions(path)) == [("a", "//a")]
    assert pairs(read(tmp_path, "s.csv", "id,xpath,x,x\na,//a,1,2\n")) == [("a", "//a")]
    for name in ("s.parquet", "s.csv"):
        with pytest.raises(SubscriptionError, match="'x' is there twice"):
            read_subscriptions(tmp_path / name, all_columns=True)


def test_bad_rows_and_comments_of_a_tsv(tmp_path: Path) -> None:
    text = b"# news\na\t//a\n\nlonely\nb\t//b\tperhaps\n\xff\xfe\t//c\nd\t//d\t\t\textra\n\t//e\nf\t//f\r\n"
    found = read(tmp_path, "s.tsv", text)
    assert pairs(found) == [("a", "//a"), ("f", "//f")]
    assert lines_of(found) == [2, 9]
    assert found.comments == 1
    assert faults(found) == [
        ("s.tsv:4", "bad-row"),
        ("s.tsv:5", "bad-value"),
        ("s.tsv:6", "bad-row"),
        ("s.tsv:7", "bad-row"),
        ("s.tsv:8", "missing-value"),
    ]
    assert found.rows == 7


def test_quotes_of_a_csv(tmp_path: Path) -> None:
    text = 'a,"//a[\n. = ""x""]"\nb,"//b\nc,//c[@x="1"]\nd,"//d"x\ne,//e[. = \'"\']\nf,"//f"\ng,//g[contains(.,1)]\n'
    found = read(tmp_path, "s.csv", text)
    assert pairs(found) == [
        ("a", '//a[\n. = "x"]'),
        ("c", '//c[@x="1"]'),
        ("e", "//e[. = '\"']"),
        ("f", "//f"),
    ]
    assert faults(found) == [("s.csv:3", "bad-row"), ("s.csv:5", "bad-row"), ("s.csv:8", "bad-value")]
    assert lines_of(found) == [1, 4, 6, 7]


def test_a_quote_that_never_closes_costs_one_row(tmp_path: Path) -> None:
    rows = "".join(f"s{number},//a{number}\n" for number in range(5000))
    found = read(tmp_path, "s.csv", 'x,"//broken\n' + rows)
    assert found.table.num_rows == 5000
    assert faults(found) == [("s.csv:1", "bad-row")]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_files_of_spreadsheets(tmp_path: Path, encoding: str) -> None:
    found = read(tmp_path, "s.tsv", "ID\tXPath\r\nälice\t//ä\r\n".encode(encoding))
    assert pairs(found) == [("älice", "//ä")]
    broken = "id\txpath\na\t//a\n".encode("utf-16") + b"\x00\xd8b\0\t\0/\0/\0b\0\n\0c\0"
    assert read(tmp_path, "t.tsv", broken).table["id"].to_pylist() == ["a"]
    assert len(read(tmp_path, "t.tsv", broken).errors) == 2


def test_json_lines(tmp_path: Path) -> None:
    rows: list[Any] = [
        {"ID": "a", "xpath": "//a"},
        {"id": 7, "Query": "//b", "ordered": True, "more": [1]},
        {"id": "c"},
        {"id": None, "xpath": "//d"},
        {"id": "e", "xpath": 5},
        {"id": "\ud800", "xpath": "//f"},
        [1],
    ]
    lines = [
        BOM + json.dumps(rows[0]),
        *map(json.dumps, rows[1:]),
        "{oops",
        "",
        "[" * 100_000,
        '{"id": "z", "xpath": "//z"}',
    ]
    found = read(tmp_path, "s.jsonl", "\n".join(lines))
    assert pairs(found) == [("a", "//a"), ("7", "//b"), ("z", "//z")]
    assert found.table["ordered"].to_pylist() == [False, True, False]
    assert [int(error.place.rpartition(":")[2]) for error in found.errors] == [3, 4, 5, 6, 7, 8, 10]
    assert [error.message for error in found.errors[:2]] == ["it has no xpath; it has 'id'", "its id is null"]
    assert found.rows == 10


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    ids, xpaths = ["a", None, "c", ""], ["//a", "//b", None, "//d"]
    pyarrow.parquet.write_table(pa.table({"Name": ids, "expression": xpaths, "x": [1, 2, 3, 4]}), path)
    found = read_subscriptions(path)
    assert pairs(found) == [("a", "//a")]
    assert [error.place for error in found.errors] == [f"{path}:{row}" for row in (2, 3, 4)]
    pyarrow.parquet.write_table(pa.table({"id": [1, 2], "xpath": ["//a", "//b"]}), path)
    assert pairs(read_subscriptions(path)) == [("1", "//a"), ("2", "//b")]
    pyarrow.parquet.write_table(pa.table({"id": [1.5], "xpath": ["//a"]}), path)
    assert [error.code for error in read_subscriptions(path).errors] == ["bad-value"]


@pytest.mark.parametrize(
    ("ending", "compress"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress), (".zst", None)]
)
def test_compressed_files(tmp_path: Path, ending: str, compress: Any) -> None:
    data = b"a\t//a\nb\t//b\n"
    packed = compress(data) if compress else pa.Codec("zstd").compress(data, asbytes=True)
    assert pairs(read(tmp_path, f"s.tsv{ending}", packed)) == [("a", "//a"), ("b", "//b")]
    with pytest.raises(SubscriptionError) as caught:
        read(tmp_path, f"t.tsv{ending}", packed[:-5])
    assert caught.value.code == "unreadable-file"


NAMESPACES = {"n": "urn:n", "m": "urn:m"}


def test_namespaces_as_data_in_every_format(tmp_path: Path) -> None:
    tsv = "id\txpath\tnamespaces\na\t//n:a\tn=urn:n m=urn:m\nb\t//b\t\nc\t//x:c\tx=urn:1 x=urn:2\nd\t//d\tnonsense\n"
    found = read(tmp_path, "s.tsv", tsv)
    assert [dict(value or ()) for value in found.table["namespaces"].to_pylist()] == [NAMESPACES, {}]
    assert faults(found) == [("s.tsv:4", "namespace-conflict"), ("s.tsv:5", "bad-namespace")]
    found = read(tmp_path, "s.csv", 'a,//n:a,,"{""n"": ""urn:n"", ""m"": ""urn:m""}"\n')
    assert dict(found.table["namespaces"][0].as_py()) == NAMESPACES
    lines = [{"id": "a", "xpath": "//n:a", "namespaces": NAMESPACES}, {"id": "b", "xpath": "//b", "namespaces": 5}]
    found = read(tmp_path, "s.jsonl", "\n".join(map(json.dumps, lines)))
    assert dict(found.table["namespaces"][0].as_py()) == NAMESPACES
    assert faults(found) == [("s.jsonl:2", "bad-namespace")]
    kinds = [pa.map_(pa.string(), pa.string()), pa.struct([("n", pa.string()), ("m", pa.string())]), pa.string()]
    for kind, value in zip(kinds, [list(NAMESPACES.items()), NAMESPACES, "n=urn:n m=urn:m"], strict=True):
        table = pa.table({"id": ["a"], "xpath": ["//n:a"], "namespaces": pa.array([value], kind)})
        pyarrow.parquet.write_table(table, tmp_path / "s.parquet")
        assert dict(read_subscriptions(tmp_path / "s.parquet").table["namespaces"][0].as_py()) == NAMESPACES


def test_a_conflict_with_the_namespaces_of_all_is_an_error_of_the_row(tmp_path: Path) -> None:
    text = "id\txpath\tnamespaces\na\t//n:a\tn=urn:n\nb\t//n:b\tn=urn:other\n"
    found = read(tmp_path, "s.tsv", text, namespaces={"n": "urn:n"})
    assert pairs(found) == [("a", "//n:a")]
    assert faults(found) == [("s.tsv:3", "namespace-conflict")]


def test_errors_of_add_many_have_their_line(tmp_path: Path) -> None:
    text = "# x\na\t//a\na\t//b\nc\t//c[\nlonely\nd\t//d\td=1\n"
    found = read(tmp_path, "s.tsv", text)
    subscriptions = xsift.Subscriptions()
    located = found.located(subscriptions.add_many(found.table, errors="collect"))
    assert [(Path(error.place).name, error.code) for error in located] == [
        ("s.tsv:3", "duplicate-id"),
        ("s.tsv:4", "predicate-not-closed"),
        ("s.tsv:5", "bad-row"),
        ("s.tsv:6", "bad-value"),
    ]
    assert len(subscriptions) + len(located) == found.rows
    assert str(located[1]).startswith(f"{tmp_path}/s.tsv:4: predicate is not closed, column 5")


def test_rows_of_failures_through_nulls_and_namespaces() -> None:
    namespaces = [None, [("n", "urn:n")], [("1", "urn:n")], None, [("n", "urn:n")], None]
    table = pa.table(
        {
            "id": ["a", "b", "c", None, "e", "f"],
            "xpath": ["//a[", "//n:b", "//c", "//d", "//n:e[", "//n:f"],
            "namespaces": pa.array(namespaces, pa.map_(pa.string(), pa.string())),
        }
    )
    subscriptions = xsift.Subscriptions()
    failed = subscriptions.add_many(table, errors="collect")
    assert sorted((error.row, id, error.code) for id, error in failed) == [
        (0, "a", "predicate-not-closed"),
        (2, "c", "bad-namespace"),
        (3, "row 4", "missing-value"),
        (4, "e", "predicate-not-closed"),
        (5, "f", "unbound-prefix"),
    ]
    assert list(subscriptions) == ["b"]


def test_a_row_is_no_word() -> None:
    with pytest.raises(SubscriptionError) as caught:
        xsift.Subscriptions().add_many(["ab"])
    assert caught.value.code == "bad-row"
