"""Sets that are compiled on executors into files on storage: equal to the library, by expression, built only where
they changed, routed to shards."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import xsift
from tests.spark.data import interests, news
from xsift.spark import census, compile_job, compile_subscriptions, match_documents, planning
from xsift.spark.building import expression_rows, sorted_expressions
from xsift.spark.census import part_digests, take_census
from xsift.spark.planning import packed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "id string, xpath string, ordered boolean, namespaces map<string,string>"
SPACES = {"n": "urn:one"}
ROWS: list[tuple[str, str, bool, dict[str, str] | None]] = [
    *((id, text, ordered, None) for id, text, ordered in interests(300)),
    *((f"also {id}", text, ordered, None) for id, text, ordered in interests(100)),
    ("spaced", "//n:p", False, {"n": "urn:one"}),
    ("spaced otherwise", "//n:p", False, {"n": "urn:two"}),
    ("spaced again", "//n:p", False, {"n": "urn:one"}),
]
DOCUMENTS = [*news(40), b'<p xmlns="urn:one"/>', b'<p xmlns="urn:two"><block/></p>', b"<nothing/>", b"<nothing/>"]


def library(rows: list[Any] = ROWS) -> xsift.Matcher:
    made = xsift.Subscriptions()
    for id, text, ordered, spaces in rows:
        made.add(id, text, ordered=ordered, namespaces=spaces)
    return made.matcher()


EXPECTED = {
    number: (None, match.error.code) if match.error else (sorted(match.ids), None)
    for number, match in enumerate(library().match_many(DOCUMENTS))
}


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_job, "PART_EXPRESSIONS", 50)


@pytest.fixture(scope="module")
def documents(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(list(enumerate(DOCUMENTS)), "number int, xml binary").repartition(2).cache()


@pytest.fixture(scope="module")
def subscriptions(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(ROWS, SCHEMA).cache()


def answers(matched: DataFrame) -> dict[int, Any]:
    return {
        row.number: (None if row.matches is None else sorted(row.matches), row.error and row.error.code)
        for row in matched.collect()
    }


def test_equals_the_library(
    spark: SparkSession, documents: DataFrame, subscriptions: DataFrame, tmp_path: Path
) -> None:
    compiled = compile_subscriptions(spark, subscriptions, storage=str(tmp_path))
    assert not compiled.sharded
    assert len(compiled.parts) == 2
    assert compiled.subscriptions == len(ROWS)
    assert compiled.expressions == len({(text, ordered, str(spaces)) for _, text, ordered, spaces in ROWS})
    assert compiled.expressions < len(ROWS)
    assert answers(match_documents(documents, subscriptions=compiled)) == EXPECTED
    pairs = [
        (row.number, row.subscription)
        for row in match_documents(documents, subscriptions=compiled, kind="rows").collect()
        if row.subscription
    ]
    assert sorted(pairs) == sorted((number, id) for number, (ids, _) in EXPECTED.items() for id in ids or ())
    nodes = match_documents(documents, subscriptions=compiled, kind="nodes").collect()
    assert {(row.number, row.subscription) for row in nodes if row.subscription} == set(pairs)


def test_results_by_expression(
    spark: SparkSession, documents: DataFrame, subscriptions: DataFrame, tmp_path: Path
) -> None:
    compiled = compile_subscriptions(spark, subscriptions, storage=str(tmp_path))
    found = match_documents(documents, subscriptions=compiled, kind="expressions")
    by_expression = {row.number: row.expressions for row in found.collect()}
    who: dict[str, list[str]] = {}
    for row in compiled.subscribers(spark).collect():
        who.setdefault(row.expression, []).append(row.subscription)
    assert len(who) == compiled.expressions
    joined = {
        number: None if digests is None else sorted(id for digest in digests for id in who[digest])
        for number, digests in by_expression.items()
    }
    assert joined == {number: ids for number, (ids, _) in EXPECTED.items()}
    saved = compile_subscriptions(spark, pa.table({"id": ["a"], "xpath": ["//a"]}))
    with pytest.raises(xsift.XsiftError, match="not compiled by expression"):
        saved.subscribers(spark)
    with pytest.raises(xsift.XsiftError, match="not compiled by expression"):  # before a job runs
        match_documents(documents, subscriptions=saved, kind="expressions")


def test_no_expressions(spark: SparkSession, documents: DataFrame, subscriptions: DataFrame, tmp_path: Path) -> None:
    for storage in (None, str(tmp_path)):
        found = match_documents(
            documents, subscriptions=subscriptions.limit(0), kind="expressions", storage=storage
        ).collect()
        assert {row.number: row.error is None for row in found} == {
            number: ids is not None for number, (ids, _) in EXPECTED.items()
        }
        assert not any(row.expressions for row in found)


def test_a_census_tells_how_many_expressions_there_are(spark: SparkSession, subscriptions: DataFrame) -> None:
    rows = expression_rows(subscriptions)
    census = take_census(rows, 2)
    distinct = len({(text, ordered, str(spaces)) for _, text, ordered, spaces in ROWS})
    assert census.count == len(ROWS)
    assert census.expressions == pytest.approx(distinct, rel=0.1)
    assert census.id_bytes == sum(len(id) for id, *_ in ROWS)
    assert not census.repeated
    for parts in (1, 2, 5):
        counted = rows.groupBy(census.part(parts).alias("part")).count().collect()
        assert {row.part: row["count"] for row in counted} == {
            number: digest[0] for number, digest in census.digests(parts).items()
        }
        assert part_digests(rows.withColumn("part", census.part(parts))) == census.digests(parts)
    # So many that every bin has some.
    many = spark.range(120_000).selectExpr("concat('i', id) id", "concat('//a', id % 60000) xpath")
    census = take_census(expression_rows(many), 2)
    assert census.expressions == pytest.approx(60_000, rel=0.1)
    assert census.count == 120_000
    assert census.repeated is False
    none = take_census(expression_rows(many.where("false")), 2)
    assert (none.count, none.expressions, none.digests(3)) == (0, 0, {})


@pytest.mark.parametrize("repeated", [False, True])
def test_expressions_are_sorted_with_their_rows(repeated: bool) -> None:
    texts = pa.chunked_array([["//b", "//a", "//b"], ["o\x1f\x1f//a", "//c", "//a"]])
    expressions, order, starts = sorted_expressions(texts, repeated)
    assert expressions.to_pylist() == sorted(set(expressions.to_pylist()))
    assert [order[begin:end].tolist() for begin, end in itertools.pairwise(starts)] == [[1, 5], [0, 2], [4], [3]]
    empty, order, starts = sorted_expressions(texts.slice(0, 0), repeated)
    assert (len(empty), order.tolist(), starts.tolist()) == (0, [], [0])


def test_texts_that_cannot_be_expressions(spark: SparkSession, tmp_path: Path) -> None:
    rows: list[Any] = [
        ("a", "a\x1fb", False, None),
        ("b", "o\x1f{\x1f//b", True, None),
        ("c", "//c", True, None),
        ("d", None, None, {}),
        (None, "//e", False, None),
        ("", "//e[", False, None),
        ("long" * 2000, "//c", True, None),
        ("f", "//n:f", False, {"n": None}),
    ]
    frame = spark.createDataFrame(rows, SCHEMA)
    for shards in (None, 2):
        place = str(tmp_path / str(shards))
        compiled = compile_subscriptions(spark, frame, storage=place, errors="collect", shards=shards)
        assert compiled.subscriptions == 1
        failed = {id[:4]: error.code == "missing-value" for id, error in compiled.failed}
        assert failed == {"a": False, "long": False, "": False, "a ro": True, "b": False, "d": True, "f": False}


def test_rows_as_json_is_read(spark: SparkSession) -> None:
    rows = [("a", "//n:a", 1, ("urn:n", None)), ("b", "//b", 0, (None, None)), ("c", "//c", None, None)]
    schema = "id string, xpath string, ordered int, namespaces struct<n: string, m: string>"
    found = [row.expression for row in expression_rows(spark.createDataFrame(rows, schema)).collect()]
    assert found == ['o\x1f[{"key":"n","value":"urn:n"}]\x1f//n:a', "//b", "//c"]


def test_many_subscriptions_of_an_expression(spark: SparkSession, documents: DataFrame, tmp_path: Path) -> None:
    rows = [(f"{id} {n}", text, ordered, None) for id, text, ordered in interests(30) for n in range(5)]
    compiled = compile_subscriptions(spark, spark.createDataFrame(rows, SCHEMA), storage=str(tmp_path))
    assert compiled.expressions == len({(text, ordered) for _, text, ordered, _ in rows})
    expected = {
        number: (None, match.error.code) if match.error else (sorted(match.ids), None)
        for number, match in enumerate(library(rows).match_many(DOCUMENTS))
    }
    assert answers(match_documents(documents, subscriptions=compiled)) == expected


def test_an_id_that_comes_twice(spark: SparkSession, subscriptions: DataFrame, tmp_path: Path) -> None:
    again = spark.createDataFrame([(ROWS[3][0], "//another", False, None)], SCHEMA)
    with pytest.raises(xsift.SubscriptionError, match="duplicate-id") as raised:
        compile_subscriptions(spark, subscriptions.union(again), storage=str(tmp_path))
    assert raised.value.id == ROWS[3][0]
    assert "in 2 rows" in raised.value.message


def test_only_parts_that_changed_are_built(spark: SparkSession, subscriptions: DataFrame, tmp_path: Path) -> None:
    first = compile_subscriptions(spark, subscriptions, storage=str(tmp_path))
    again = compile_subscriptions(spark, subscriptions.repartition(5), storage=str(tmp_path))
    assert (first.reused, again.reused) == (0, 2)
    assert again.parts == first.parts
    for name in (first.parts[0].name, first.parts[1].subscribers):  # an object store may delete what is old
        (tmp_path / str(name)).unlink()
        mended = compile_subscriptions(spark, subscriptions, storage=str(tmp_path))
        assert (mended.reused, mended.parts) == (1, first.parts)
        assert (tmp_path / str(name)).exists()
    more = spark.createDataFrame([("new", "//title", False, None)], SCHEMA)
    changed = compile_subscriptions(spark, subscriptions.union(more), storage=str(tmp_path))
    assert changed.reused == 1
    assert changed.subscriptions == len(ROWS) + 1
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    for entry in manifest["parts"]:
        assert (tmp_path / entry["name"]).stat().st_size == entry["size_bytes"]
        assert (tmp_path / entry["subscribers"]).stat().st_size == entry["subscribers_bytes"]
    other = compile_subscriptions(spark, subscriptions, storage=str(tmp_path), namespaces={"other": "urn:x"})
    assert other.reused == 0


def test_routed_to_shards(
    spark: SparkSession, documents: DataFrame, subscriptions: DataFrame, tmp_path: Path
) -> None:
    sample = pa.array([xml for number, xml in enumerate(DOCUMENTS) if EXPECTED[number][0] is not None], pa.binary())
    compiled = compile_subscriptions(spark, subscriptions, storage=str(tmp_path), shards=5, sample=sample)
    assert compiled.sharded
    assert compiled.router is not None
    assert compiled.subscriptions == len(ROWS)
    assert answers(match_documents(documents, subscriptions=compiled)) == EXPECTED
    pairs = [
        (row.number, row.subscription)
        for row in match_documents(documents, subscriptions=compiled, kind="rows").collect()
    ]
    broken = [(number, None) for number, (ids, _) in EXPECTED.items() if ids is None]
    wanted = broken + [(number, id) for number, (ids, _) in EXPECTED.items() for id in ids or ()]
    assert sorted(pairs, key=str) == sorted(wanted, key=str)
    task = compiled.task(xml="xml", output="matches", keep_xml=False, on_error="keep")
    visits, errors = task.visits(sample)
    assert not errors
    assert visits.mean() < 0.9
    assert visits[:, list(compiled.router.always)].all()
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    keys = {entry["part"]: entry["keys"] for entry in manifest["parts"]}
    assert all(bool(keys[part]) != (part in compiled.router.always) for part in keys)
    unsampled = match_documents(documents, subscriptions=subscriptions, storage=str(tmp_path), shards=3)
    assert answers(unsampled) == EXPECTED


def test_keys_are_more_than_a_router_holds(
    spark: SparkSession,
    documents: DataFrame,
    subscriptions: DataFrame,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every document visits the expressions of the others. What executors kept meanwhile, they keep no longer."""
    monkeypatch.setattr(planning, "MOST_KEYS", 3)
    subscriptions.count()
    kept = spark.sparkContext._jsc.getPersistentRDDs().size()
    compiled = compile_subscriptions(spark, subscriptions, storage=str(tmp_path), shards=3)
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == kept
    assert compiled.router is not None
    assert compiled.router.always
    assert compiled.subscriptions == len(ROWS)
    assert answers(match_documents(documents, subscriptions=compiled)) == EXPECTED


def test_errors(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("good", "//a"), ("bad", "//a["), ("also bad", "//a["), ("b", "//b")]
    frame = spark.createDataFrame(rows, "id string, xpath string")
    with pytest.raises(xsift.XPathError, match=r"column 5 \(subscription '(also )?bad'\)"):
        compile_subscriptions(spark, frame, storage=str(tmp_path))
    for shards in (None, 2):
        compiled = compile_subscriptions(spark, frame, storage=str(tmp_path), errors="collect", shards=shards)
        assert sorted(id for id, _ in compiled.failed) == ["also bad", "bad"]
        assert compiled.subscriptions == 2
    twice = spark.createDataFrame([*rows[:1], ("x", "//x"), ("x", "//y")], "id string, xpath string")
    with pytest.raises(xsift.SubscriptionError, match="'x' is in 2 rows"):
        compile_subscriptions(spark, twice, storage=str(tmp_path))
    left = spark.createDataFrame(
        [("x", "//y"), ("x", "//x["), ("x", "//a"), ("b", "//b"), (None, "//c"), (None, "//d"), ("b", None)],
        "id string, xpath string",
    )
    for shards in (None, 2):
        compiled = compile_subscriptions(spark, left, storage=str(tmp_path), errors="collect", shards=shards)
        told = sorted((error.code, error.message) for _, error in compiled.failed if error.code == "duplicate-id")
        assert told == [("duplicate-id", f"the id {id!r} is in {rows} rows") for id, rows in (("b", 2), ("x", 3))]
        assert [error.code for _, error in compiled.failed].count("missing-value") == 2
        documents = spark.createDataFrame([("<a/>",), ("<b/>",), ("<y/>",)], "xml string")
        found = match_documents(documents, subscriptions=compiled, keep_xml=True).collect()
        assert {row.xml: row.matches for row in found} == {"<a/>": ["x"], "<b/>": ["b"], "<y/>": []}
    monkeypatch.setattr(census, "TOLD_IDS", 1)
    compiled = compile_subscriptions(spark, left, storage=str(tmp_path / "other"), errors="collect")
    assert (len(compiled.failed), compiled.untold) == (3, 1)
    assert "4 left out" in str(compiled)
    nobody = compile_subscriptions(spark, frame.limit(0), storage=str(tmp_path))
    documents = spark.createDataFrame([("<a/>",), ("<a>",)], "xml string")
    found = match_documents(documents, subscriptions=nobody).collect()
    assert sorted(str(row.matches) for row in found) == ["None", "[]"]


def test_packing() -> None:
    """Keys that nobody has come first, those that are found together lie together, heavy ones are divided."""
    has = np.zeros((10, 7), dtype=bool)
    has[:5, [0, 1]] = True
    has[5:, [2, 3]] = True
    has[:, 4] = True
    weights = np.array([10.0, 10, 10, 10, 45, 5, 15])
    parts = packed(has, weights, 5)
    assert {len(set(them)) for them in parts[:4]} == {1}
    assert parts[0] == parts[1]
    assert parts[2] == parts[3]
    assert parts[5] == parts[6] == [0]
    assert len(set(parts[4])) >= 2
    assert sorted({number for them in parts for number in them}) == [0, 1, 2, 3, 4]


def test_packing_of_many_keys() -> None:
    """What it costs grows with the keys, not with their square."""
    has = np.zeros((100, 100_000), dtype=bool)
    has[np.arange(100_000) % 100, np.arange(100_000)] = np.arange(100_000) % 3 == 0
    parts = packed(has, np.ones(100_000), 10)
    assert np.bincount([them[0] for them in parts]).tolist() == [10_000] * 10
    assert {len(them) for them in parts} == {1}
