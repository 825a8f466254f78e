"""match_stream, SubscriptionTable and the sinks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import xsift
from tests.spark.data import BROKEN, expected, finish, interests, news
from xsift.spark import FolderSink, SubscriptionTable, match_stream, versions_used
from xsift.spark.live import LiveSubscriptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOW = {"availableNow": True}
MAP = pa.map_(pa.string(), pa.string())


class Inbox:
    """A folder of JSON files with documents, read as a stream."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self.path = path
        self._spark = spark
        self._files = 0
        path.mkdir()

    def put(self, documents: list[bytes], first: int = 0) -> None:
        rows = [(number, bytearray(xml)) for number, xml in enumerate(documents, first)]
        frame = self._spark.createDataFrame(rows, "number int, xml binary").coalesce(1)
        frame.write.mode("append").parquet(str(self.path))

    def stream(self) -> DataFrame:
        return self._spark.readStream.schema("number int, xml binary").parquet(str(self.path))


def test_table_versions(spark: SparkSession, tmp_path: Path) -> None:
    table = SubscriptionTable(spark, str(tmp_path / "table"))
    assert table.version() == 0
    assert table.as_of().num_rows == 0
    assert table.add([("a", "//a"), ("b", "//b", True)]) == []
    table.remove(["a"])
    failed = table.add([("c", "//c"), ("bad", "//c["), ("b", "//b2")], errors="collect")
    assert [id for id, _ in failed] == ["bad"]
    assert table.version() == 3
    listed = [[tuple(row.values()) for row in table.as_of(version).to_pylist()] for version in range(4)]
    assert listed == [
        [],
        [("a", "//a", False), ("b", "//b", True)],
        [("b", "//b", True)],
        [("c", "//c", False), ("b", "//b2", False)],
    ]
    with pytest.raises(xsift.XPathError):
        table.add([("d", "//d"), ("e", "//[")])
    with pytest.raises(xsift.SubscriptionError, match="no subscription 'z'"):
        table.remove(["b", "z"])
    with pytest.raises(xsift.SubscriptionError, match="no version 9"):
        table.as_of(9)
    assert table.version() == 3


def test_writers_of_a_table_take_turns(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "table")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda id: SubscriptionTable(spark, path).add([(id, "//a")]), "abcd"))
    table = SubscriptionTable(spark, path)
    assert table.version() == 4
    assert sorted(table.as_of()["id"].to_pylist()) == list("abcd")
    monkeypatch.setattr("xsift.spark.table.LOCK_SECONDS", 0.1)
    with table._alone(), pytest.raises(xsift.SubscriptionError, match="table-busy"):
        SubscriptionTable(spark, f"file:{path}").remove(["a"])
    assert table.version() == 4


def test_a_second_writer_is_refused_where_there_are_no_locks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = SubscriptionTable(spark, str(tmp_path / "table"))
    late = SubscriptionTable(spark, table.path)
    table.add([("a", "//a")])
    table.add([("b", "//b")])
    before = table.as_of(2)
    monkeypatch.setattr(late, "_alone", nullcontext)
    monkeypatch.setattr(late, "version", lambda: 1)  # it looked before b was added
    with pytest.raises(xsift.SubscriptionError, match="two-writers"):
        late.add([("c", "//c"), ("b", "//other")])
    assert table.version() == 2
    assert table.as_of(2) == before
    table.add([("c", "//c")])
    assert table.as_of()["id"].to_pylist() == ["a", "b", "c"]


def test_namespaces_of_a_table(spark: SparkSession, tmp_path: Path) -> None:
    table = SubscriptionTable(spark, str(tmp_path / "table"), namespaces={"n": "urn:n"})
    own = pa.table({"id": ["a"], "xpath": ["//n:a"], "namespaces": pa.array([[("n", "urn:other")]], MAP)})
    with pytest.raises(xsift.SubscriptionError, match="share its namespaces"):
        table.add(own)
    with pytest.raises(xsift.SubscriptionError, match="namespaces that the table has not"):
        table.add(xsift.Subscriptions(namespaces={"n": "urn:other"}))
    assert table.version() == 0


def test_only_what_changed_is_compiled(spark: SparkSession, tmp_path: Path) -> None:
    table = SubscriptionTable(spark, str(tmp_path / "table"))
    table.add([(f"s{number}", f"//a{number}") for number in range(100)])
    live = LiveSubscriptions(table.path, {}, xsift.MatcherOptions())
    first = live.at(spark, 1)
    table.add([("new", "//new"), ("s3", "//changed")])
    table.remove(["s5", "new"])
    second = live.at(spark, 2)
    assert second.parts[0].name == first.parts[0].name
    assert len(second.parts) == 2
    assert second.subscriptions == 101
    third = live.at(spark, 3)
    assert [part.name for part in third.parts] == [part.name for part in second.parts]
    assert third.subscriptions == 99
    assert live.at(spark, 1).parts == first.parts


def test_stream_equals_library_while_subscriptions_change(spark: SparkSession, tmp_path: Path) -> None:
    rows = interests(150)
    documents = news(20)
    inbox = Inbox(spark, tmp_path / "inbox")
    table = SubscriptionTable(spark, str(tmp_path / "table"))
    out, dead, checkpoint = (str(tmp_path / name) for name in ("out", "dead", "checkpoint"))

    def run() -> None:
        finish(
            lambda: match_stream(
                inbox.stream(), subscriptions=table, sink=out, dead_letters=dead, checkpoint=checkpoint, trigger=NOW
            )
        )

    table.add(rows[:100])
    inbox.put(documents)
    run()
    table.add(rows[100:])
    table.remove([rows[0][0]])
    inbox.put(documents, 1000)
    run()
    wanted = dict(enumerate(expected(rows[:100], documents)))
    wanted |= {1000 + number: answer for number, answer in enumerate(expected(rows[1:], documents))}
    found = {row.number: row.matches for row in spark.read.parquet(out).collect()}
    assert found == {number: ids for number, (ids, error) in wanted.items() if not error}
    broken = [(row.number, row.error.code, bytes(row.xml)) for row in spark.read.parquet(dead).collect()]
    assert sorted(broken) == sorted((n, error, documents[n % 1000]) for n, (_, error) in wanted.items() if error)
    assert len(broken) == 2 * len(BROKEN)
    assert versions_used(spark, checkpoint) == {0: 1, 1: 3}


def test_a_batch_that_comes_again_uses_its_version(spark: SparkSession, tmp_path: Path) -> None:
    inbox = Inbox(spark, tmp_path / "inbox")
    inbox.put([b"<a/>", b"<b/>"])
    table = SubscriptionTable(spark, str(tmp_path / "table"))
    table.add([("first", "//a")])
    out, checkpoint = str(tmp_path / "out"), tmp_path / "checkpoint"

    def run(sink: Any) -> None:
        finish(
            lambda: match_stream(
                inbox.stream(), subscriptions=table, sink=sink, checkpoint=str(checkpoint), trigger=NOW
            )
        )

    def fails(matches: DataFrame, batch_id: int) -> None:
        matches.write.mode("overwrite").parquet(f"{out}/batch_id={batch_id}")
        raise RuntimeError("the sink broke after it wrote")

    with pytest.raises(Exception, match="the sink broke"):
        run(fails)
    table.add([("second", "//b")])
    run(out)
    rows = {row.number: row.matches for row in spark.read.parquet(out).collect()}
    assert rows == {0: ["first"], 1: []}
    inbox.put([b"<b/>"], 2)
    run(out)
    rows = {row.number: row.matches for row in spark.read.parquet(out).collect()}
    assert rows == {0: ["first"], 1: [], 2: ["second"]}


@pytest.mark.parametrize("buckets", [None, 3])
def test_delivery_by_subscriber(spark: SparkSession, tmp_path: Path, buckets: int | None) -> None:
    made = xsift.Subscriptions()
    made.add_many([("alice/é", "//p"), ("bob", "/d/q"), ("nobody", "/none")])
    inbox = Inbox(spark, tmp_path / "inbox")
    inbox.put([b"<d><p>1</p><p>2</p></d>", b"<d><q/></d>", b"<d>"])
    sink = FolderSink(str(tmp_path / "out"), buckets=buckets)
    finish(
        lambda: match_stream(
            inbox.stream(), subscriptions=made, output="nodes", sink=sink, checkpoint=str(tmp_path / "c"), trigger=NOW
        )
    )
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted((row.subscription, row.number, row.path, bytes(row.fragment)) for row in rows) == [
        ("alice/é", 0, "/d/p[1]", b"<p>1</p>"),
        ("alice/é", 0, "/d/p[2]", b"<p>2</p>"),
        ("bob", 1, "/d/q", b"<q/>"),
    ]
    folders = sorted(path.name for path in (tmp_path / "out").glob("*=*"))
    if buckets is None:
        assert folders[-1] == "subscription=bob"
        assert len(folders) == 2
    else:
        assert 1 <= len(folders) <= 2
        assert folders[0].startswith("bucket=")


def test_whole_documents_are_delivered_once_when_a_batch_comes_again(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame([("a", b"<a/>"), ("b", b"<b/>")], "subscription string, xml binary")
    sink = FolderSink(str(tmp_path / "out"))
    for batch_id in (0, 1, 1):
        sink(frame, batch_id)
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted((row.subscription, row.batch_id) for row in rows) == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    with pytest.raises(xsift.XsiftError, match="a row a match"):
        sink(frame.drop("subscription"), 2)


def test_folders_of_long_and_odd_ids(spark: SparkSession, tmp_path: Path) -> None:
    long = "x" * 3000
    ids = [
        "",
        "a",
        "a~b",
        "..",
        "../../up",
        long,
        long + "y",
        "é" * 60,
        "%2F",
        "__HIVE_DEFAULT_PARTITION__",
        "a=b:c\n*",
    ]
    frame = spark.createDataFrame([(id, b"<a/>") for id in ids], "subscription string, xml binary")
    FolderSink(str(tmp_path / "out"))(frame, 0)
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted(row.subscriber for row in rows) == sorted(ids)
    assert len({row.subscription for row in rows}) == len(ids)
    assert {row.subscription for row in rows if row.subscriber in ("a", "..", "../../up")} == {"a", "..", "../../up"}
    assert {path.parent for path in tmp_path.rglob("subscription=*")} == {tmp_path / "out"}
