"""match_documents against the library, on the same documents."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import xsift
from tests.spark.data import expected, interests, news
from xsift.matching import Limits
from xsift.spark import batch, compile_subscriptions, match_documents, match_schema
from xsift.spark.batch import _sample, _tasks
from xsift.spark.columns import Columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = interests(300)
DOCUMENTS = news(40)
EXPECTED = dict(enumerate(expected(ROWS, DOCUMENTS)))


@pytest.fixture(scope="module")
def documents(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(list(enumerate(DOCUMENTS)), "number int, xml binary").repartition(3).cache()


@pytest.fixture(scope="module")
def subscriptions(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(ROWS, "id string, xpath string, ordered boolean").coalesce(1)


def answers(matched: DataFrame) -> dict[int, tuple[list[str] | None, str | None]]:
    return {row.number: (row.matches, row.error and row.error.code) for row in matched.collect()}


def test_equals_the_library(documents: DataFrame, subscriptions: DataFrame) -> None:
    matched = documents.transform(match_documents, subscriptions=subscriptions)
    assert matched.columns == ["number", "matches", "error", "failures"]
    assert answers(matched) == EXPECTED
    assert len({error for _, error in EXPECTED.values()}) > 4


@pytest.mark.parametrize("form", ["set", "matcher", "path", "table", "compiled"])
def test_forms_of_subscriptions(spark: SparkSession, documents: DataFrame, form: str, tmp_path: Path) -> None:
    made = xsift.Subscriptions()
    made.add_many(ROWS)
    forms: dict[str, Any] = {"set": made, "matcher": made.matcher(), "path": tmp_path / "saved.xsift"}
    made.matcher().save(forms["path"])
    forms["table"] = pa.table(dict(zip(("id", "xpath", "ordered"), map(list, zip(*ROWS, strict=True)), strict=True)))
    forms["compiled"] = compile_subscriptions(spark, made)
    assert answers(match_documents(documents, subscriptions=forms[form])) == EXPECTED


def test_sharded_equals_unsharded(spark: SparkSession, documents: DataFrame, subscriptions: DataFrame) -> None:
    compiled = compile_subscriptions(spark, subscriptions, shards=3)
    assert compiled.sharded
    assert len(compiled.parts) == 3
    assert answers(match_documents(documents, subscriptions=compiled)) == EXPECTED
    rows = match_documents(documents, subscriptions=compiled, output="rows").collect()
    assert_rows(rows)


def test_a_document_that_libxml2_alone_refuses(spark: SparkSession) -> None:
    table = spark.createDataFrame(
        [(1, '<a xmlns:q="not a uri"><b/><b/></a>'), (2, "<a><b/></a>")], "number int, xml string"
    )
    rows = [("plain", "//b", {"n": "urn:n"}), ("counted", "//a[count(b) > 1]", None)]
    layered = spark.createDataFrame(rows, "id string, xpath string, namespaces map<string,string>")
    for subscriptions, shards in ((layered, None), (layered.drop("namespaces"), 2)):
        matched = match_documents(table, subscriptions=subscriptions, shards=shards)
        assert answers(matched) == {1: (["plain", "counted"], None), 2: (["plain"], None)}


@pytest.mark.parametrize(
    ("settings", "tasks"),
    [
        ({}, 64),
        ({"spark.sql.shuffle.partitions": "7", "spark.master": "local[2]"}, 7),
        ({"spark.sql.shuffle.partitions": "200", "spark.master": "local[2]"}, 8),
        ({"spark.master": "local[3,4]"}, 12),
        ({"spark.master": "local"}, 4),
        ({"spark.master": "yarn", "spark.executor.instances": "5", "spark.executor.cores": "2"}, 40),
        ({"spark.master": "spark://host:7077"}, 64),
        ({"spark.master": "local-cluster[2,3,1024]"}, 24),
    ],
)
def test_tasks(settings: dict[str, str], tasks: int) -> None:
    session: Any = SimpleNamespace(conf=settings)
    assert _tasks(session) == tasks


def test_shards_follow_from_memory(spark: SparkSession, subscriptions: DataFrame) -> None:
    whole = compile_subscriptions(spark, subscriptions)
    split = compile_subscriptions(spark, subscriptions, worker_memory_bytes=whole.index_bytes // 3)
    assert not whole.sharded
    assert len(split.parts) > 1
    assert split.index_bytes < whole.index_bytes
    assert "shards" in str(split)


def test_shards_are_found_by_trying(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first rows, by which the number is judged, are all alike and take next to nothing; the others do not."""
    monkeypatch.setattr("xsift.spark.compiled.SAMPLE_ROWS", 500)
    texts = ["//a"] * 500 + [f"//b{number}[c{number} = {number}]/d{number}" for number in range(1500)]
    rows = pa.table({"id": [str(number) for number in range(2000)], "xpath": texts})
    whole = compile_subscriptions(spark, rows, shards=1).index_bytes
    split = compile_subscriptions(spark, rows, worker_memory_bytes=whole // 2)
    assert split.index_bytes <= whole // 2
    assert split.subscriptions == 2000


def test_shards_need_no_order_and_no_names(spark: SparkSession) -> None:
    """Equal documents, equal rows, nulls, no other columns, columns of any name: answers come together by content."""
    made = [("a", "//a"), ("b", "//b"), ("also a", "//a"), ("c", "//c")]
    rows = spark.createDataFrame(made, "id string, xpath string").coalesce(1)
    texts = ["<a/>", "<a><b/></a>", "<a/>", None, "<z/>", "<broken>", "<a/>"]
    wanted: dict[str | None, Any] = {
        "<a/>": ["a", "also a"],
        "<a><b/></a>": ["a", "b", "also a"],
        "<z/>": [],
        "<broken>": None,
        None: None,
    }
    odd = "`__xsift_key` int, `key` map<string,int>, `a.b` array<string>, `shard` int, xml string"
    frame = spark.createDataFrame(
        [(number % 2, {"n": number % 2}, ["x"], None, text) for number, text in enumerate(texts)], odd
    )
    for keep_xml in (True, False):
        matched = match_documents(frame.repartition(3), subscriptions=rows, shards=3, keep_xml=keep_xml)
        assert matched.columns == [
            *(name for name in frame.columns if keep_xml or name != "xml"),
            "matches",
            "error",
            "failures",
        ]
        found = matched.collect()
        assert [row["a.b"] for row in found] == [["x"]] * len(texts)
        assert sorted(row["__xsift_key"] for row in found) == [0, 0, 0, 0, 1, 1, 1]
        if keep_xml:
            assert sorted((row.xml or "", row.matches, row.key["n"]) for row in found) == sorted(
                (text or "", wanted[text], number % 2) for number, text in enumerate(texts)
            )
    alone = match_documents(frame.select("xml"), subscriptions=rows, shards=2).collect()
    assert sorted(map(str, (row.matches for row in alone))) == sorted(str(wanted[text]) for text in texts)


def test_an_id_twice_is_found_whatever_the_shards(spark: SparkSession) -> None:
    rows = pa.table({"id": ["x", "y", "z", "x"], "xpath": ["//a", "//b", "//c", "//d"]})
    spaces = rows.slice(1).append_column(
        "namespaces", pa.array([[("n", "u")], [("n", "v")], None], pa.map_(pa.string(), pa.string()))
    )
    for table in (rows, pa.concat_tables([spaces, spaces.slice(0, 1)])):
        for shards in (None, 1, 2, 4):
            with pytest.raises(xsift.SubscriptionError, match="duplicate-id"):
                compile_subscriptions(spark, table, shards=shards)
            compiled = compile_subscriptions(spark, table, shards=shards, errors="collect")
            assert [(error.code, error.row) for _, error in compiled.failed] == [("duplicate-id", 3)]
            assert compiled.subscriptions == 3
    twice = pa.table({"id": ["x", "y", "x"], "xpath": ["//a[", "//b", "//c"]})
    compiled = compile_subscriptions(spark, twice, shards=2, errors="collect")
    assert [error.row for _, error in compiled.failed] == [0]
    assert compiled.subscriptions == 2


@pytest.mark.parametrize("shards", [None, 3])
def test_errors_tell_the_rows_of_the_whole_table(spark: SparkSession, shards: int | None) -> None:
    """Whatever was left out before them, and whichever shard they are in."""
    ids = ["x", "y", "x", "z", None, "w", "x"]
    rows = pa.table({"id": ids, "xpath": ["//a[", "//a", "//a", "//q:a", "//a", None, "//b"]})
    compiled = compile_subscriptions(spark, rows, shards=shards, errors="collect")
    assert sorted((error.row or 0, id, error.code) for id, error in compiled.failed) == [
        (0, "x", "predicate-not-closed"),
        (3, "z", "unbound-prefix"),
        (4, "row 5", "missing-value"),
        (5, "row 6", "missing-value"),
        (6, "x", "duplicate-id"),
    ]
    good = pa.table({"id": list("abcde"), "xpath": ["//a"] * 5})
    with pytest.raises(xsift.SubscriptionError, match="row 6 has no id or no xpath"):
        compile_subscriptions(spark, pa.concat_tables([good, rows.slice(5, 1)]), shards=shards)


def test_names_of_columns(spark: SparkSession) -> None:
    made = xsift.Subscriptions()
    made.add("a", "//a")
    frame = spark.createDataFrame([("<a/>", 1, 2)], "XML string, Matches int, `er.ror` int")
    with pytest.raises(xsift.XsiftError, match=r"column 'Matches' already.*names="):
        match_documents(frame, subscriptions=made)
    names = {"matches": "al.erts", "error": "problem"}
    matched = match_documents(frame, subscriptions=made, names=names)
    assert matched.columns == ["Matches", "er.ror", "al.erts", "problem", "failures"]
    assert matched.schema == match_schema(frame, names=names)
    assert [tuple(row)[:3] for row in matched.collect()] == [(1, 2, ["a"])]
    sharded = match_documents(frame, subscriptions=made, names=names, shards=1)
    assert [tuple(row)[:3] for row in sharded.collect()] == [(1, 2, ["a"])]
    two = spark.createDataFrame([("a", "//a"), ("b", "//b")], "id string, xpath string")
    for kind in ("matches", "rows", "nodes"):
        split = match_documents(frame, subscriptions=two, names=names, shards=2, kind=kind)
        assert split.schema == match_schema(frame, names=names, kind=kind)
        assert len(split.collect()) == 1
    with pytest.raises(xsift.XsiftError, match="no output column 'hits'"):
        match_documents(frame, subscriptions=made, names={"hits": "x"})
    twice = frame.selectExpr("'b' as n", "xml as xml", "'b' as Xml", "'c' as n")
    assert [tuple(row)[:4] for row in match_documents(twice, subscriptions=made).collect()] == [
        ("b", "b", "c", ["a"])
    ]
    with pytest.raises(xsift.XsiftError, match="several columns 'n'"):
        match_documents(twice, subscriptions=made, xml="n")


def test_collated_documents(spark: SparkSession) -> None:
    made = xsift.Subscriptions()
    made.add("a", "//a")
    frame = spark.createDataFrame([("<a/>",)], "xml string").selectExpr("xml collate UTF8_LCASE as xml", "1 as n")
    assert match_documents(frame, subscriptions=made).collect()[0].matches == ["a"]
    kept = match_documents(frame, subscriptions=made, kind="nodes", keep_xml=True, shards=1).collect()
    assert [(row.xml, row.fragment) for row in kept] == [("<a/>", "<a/>")]


def test_a_batch_size_that_was_set_stays(spark: SparkSession, documents: DataFrame) -> None:
    setting = "spark.sql.execution.arrow.maxBytesPerBatch"
    made = xsift.Subscriptions()
    spark.conf.unset(setting)
    match_documents(documents, subscriptions=made)
    assert spark.conf.get(setting) == "4m"
    try:
        for chosen in ("64MB", "67108864"):
            spark.conf.set(setting, chosen)
            match_documents(documents, subscriptions=made)
            assert spark.conf.get(setting) == chosen
    finally:
        spark.conf.unset(setting)


def assert_rows(rows: list[Any]) -> None:
    """One row a match, one a broken document, none for the rest."""
    found: dict[int, list[str]] = {}
    broken = {}
    for row in rows:
        if row.error:
            assert row.subscription is None
            assert row.number not in broken
            broken[row.number] = row.error.code
        else:
            found.setdefault(row.number, []).append(row.subscription)
    assert broken == {number: error for number, (_, error) in EXPECTED.items() if error}
    assert {number: sorted(ids) for number, ids in found.items()} == {
        number: sorted(ids) for number, (ids, _) in EXPECTED.items() if ids
    }


def test_a_row_a_match(documents: DataFrame, subscriptions: DataFrame) -> None:
    assert_rows(match_documents(documents, subscriptions=subscriptions, output="rows").collect())


def test_a_row_a_node(documents: DataFrame) -> None:
    made = xsift.Subscriptions()
    made.add_many([("p", "//p"), ("title", "/nitf/head/title"), ("none", "/none")])
    matcher = made.matcher()
    rows = match_documents(documents, subscriptions=made, output="nodes", keep_xml=True).collect()
    found = sorted((row.number, row.subscription, row.path, row.fragment) for row in rows if not row.error)
    wanted = []
    for number, (_, error) in EXPECTED.items():
        if not error:
            for id, nodes in matcher.select(DOCUMENTS[number]).items():
                wanted += [(number, id, node.path, DOCUMENTS[number][node.start : node.end]) for node in nodes]
    assert found == sorted(wanted)
    assert found
    assert {row.number for row in rows if row.error} == {number for number, (_, error) in EXPECTED.items() if error}


def test_text_nulls_and_empty(spark: SparkSession) -> None:
    made = xsift.Subscriptions()
    made.add("é", "//é[. = 'ü']")
    rows = [(1, "<a><é>ü</é></a>"), (2, None), (3, '<?xml version="1.0" encoding="latin-1"?><é>ü</é>'), (4, "<a/>")]
    table = spark.createDataFrame(rows, "number int, xml string")
    assert answers(match_documents(table, subscriptions=made)) == {
        1: (["é"], None),
        2: (None, None),
        3: (["é"], None),
        4: ([], None),
    }
    assert match_documents(table.limit(0), subscriptions=made).collect() == []
    nobody = match_documents(table, subscriptions=xsift.Subscriptions())
    assert answers(nobody)[4] == ([], None)
    nodes = match_documents(table, subscriptions=made, output="nodes").collect()
    assert [row.fragment for row in nodes] == ["<é>ü</é>"] * 2


def test_namespaces_of_rows_and_of_the_job(spark: SparkSession) -> None:
    rows = [("one", "//n:a", {"n": "urn:one"}), ("two", "//n:a", {"n": "urn:two"}), ("job", "//j:a", None)]
    table = spark.createDataFrame(rows, "id string, xpath string, namespaces map<string,string>")
    documents = spark.createDataFrame(
        [(1, '<a xmlns="urn:one"/>'), (2, '<a xmlns="urn:two"/>'), (3, '<a xmlns="urn:j"/>')],
        "number int, xml string",
    )
    matched = match_documents(documents, subscriptions=table, namespaces={"j": "urn:j"})
    assert answers(matched) == {1: (["one"], None), 2: (["two"], None), 3: (["job"], None)}


def test_what_goes_wrong_is_said(spark: SparkSession, documents: DataFrame) -> None:
    made = xsift.Subscriptions()
    made.add("a", "//a")
    with pytest.raises(xsift.XsiftError, match=r"no column 'text'.*'number', 'xml'"):
        match_documents(documents, subscriptions=made, xml="text")
    with pytest.raises(xsift.XsiftError, match="is int"):
        match_documents(documents, subscriptions=made, xml="number")
    with pytest.raises(xsift.XsiftError, match="column 'error' already"):
        match_documents(documents.withColumnRenamed("number", "error"), subscriptions=made)
    with pytest.raises(xsift.SubscriptionError, match=r"no column 'xpath'.*'id', 'path'"):
        match_documents(documents, subscriptions=pa.table({"id": ["a"], "path": ["//a"]}))
    with pytest.raises(TypeError, match="subscriptions is a int"):
        match_documents(documents, subscriptions=7)
    with pytest.raises(xsift.SubscriptionError, match="cannot be split"):
        match_documents(documents, subscriptions=made.matcher(), shards=2)


def test_bad_subscriptions_are_listed(spark: SparkSession) -> None:
    rows = pa.table({"id": ["good", "bad"], "xpath": ["//a", "//a["]})
    with pytest.raises(xsift.XPathError, match="bad"):
        compile_subscriptions(spark, rows)
    compiled = compile_subscriptions(spark, rows, errors="collect")
    assert [id for id, _ in compiled.failed] == ["bad"]
    assert compiled.subscriptions == 1


def test_a_broken_document_fails_the_job_if_asked(documents: DataFrame, subscriptions: DataFrame) -> None:
    from pyspark.errors import PySparkException

    matched = match_documents(documents, subscriptions=subscriptions, on_error="fail", id="number")
    with pytest.raises(PySparkException, match=r"document \d+: "):
        matched.collect()


def test_a_name_with_a_backtick_in_a_set_that_is_routed(spark: SparkSession, tmp_path: Path) -> None:
    documents = spark.createDataFrame([("<a/>",)], "`x``ml` string")
    rows = pa.table({"id": ["a", "b"], "xpath": ["//a", "//b"]})
    found = match_documents(documents, subscriptions=rows, xml="x`ml", shards=2, storage=str(tmp_path)).collect()
    assert [row.matches for row in found] == [["a"]]


def test_a_sample_is_as_large_as_the_driver_can_have(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is also of the right column, of two whose names differ in case alone."""
    frame = spark.createDataFrame([("<a/>" * 5, "<b/>")] * 30, "xml string, XML string")
    columns = Columns.of(frame)
    assert len(_sample(frame, columns)) == 30
    monkeypatch.setattr(batch, "SAMPLE_BYTES", 200)
    assert _sample(frame, columns).to_pylist() == ["<a/>" * 5] * 10
    assert not len(_sample(frame.limit(0), columns))


def test_what_only_one_shard_finds_too_large_is_told(spark: SparkSession) -> None:
    documents = spark.createDataFrame([("<a>" + "y" * 99 + "</a>",), ("<a>",)], "xml string")
    rows = pa.table({"id": ["a", "x"], "xpath": ["//a", "//a[contains(., 'x')]"]})
    limits = Limits(text_bytes=20)
    for kind, wanted in (("matches", [None]), ("rows", ["a", None]), ("nodes", ["a", None])):
        found = match_documents(documents, subscriptions=rows, shards=2, kind=kind, limits=limits).collect()  # type: ignore[arg-type]
        assert [row.error.code for row in found if row.error].count("text-too-long") == 1
        assert len(found) == len(wanted) + 1
