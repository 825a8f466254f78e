"""DeltaSink: each micro-batch once, partitions, compaction, what it refuses."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

import xsift
from tests.spark.data import finish
from tests.spark.test_stream import NOW, Inbox
from xsift.spark import DeltaSink, FolderSink, KafkaSink, ParquetSink, delta_sink, match_stream
from xsift.tables import SubscriptionTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def rows_of(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pa.table(DeltaTable(path).to_pyarrow_table()).to_pylist()
    return found


def test_a_stream_into_delta(spark: SparkSession, tmp_path: Path) -> None:
    table = SubscriptionTable.create(tmp_path / "table")
    table.add([("p", "//p"), ("q", "//q")])
    inbox = Inbox(spark, tmp_path / "inbox")
    for kind in ("matches", "rows", "nodes"):
        sink = DeltaSink(str(tmp_path / kind), partition_by=[] if kind == "matches" else ["subscription"])

        def run(sink: DeltaSink = sink, kind: Any = kind) -> None:
            finish(
                lambda: match_stream(
                    inbox.stream(),
                    subscriptions=table,
                    sink=sink,
                    dead_letters=DeltaSink(str(tmp_path / f"dead-{kind}")),
                    output=kind,
                    checkpoint=str(tmp_path / f"c-{kind}"),
                    trigger=NOW,
                )
            )

        if kind == "matches":
            inbox.put([b"<d><p>1</p><p>2</p></d>", b"<d><q/><p/></d>", b"<d>", b"<r/>"])
        run()
        run()
    assert sorted((row["number"], tuple(row["matches"])) for row in rows_of(tmp_path / "matches")) == [
        (0, ("p",)),
        (1, ("p", "q")),
        (3, ()),
    ]
    assert sorted((row["number"], row["subscription"]) for row in rows_of(tmp_path / "rows")) == [
        (0, "p"),
        (1, "p"),
        (1, "q"),
    ]
    nodes = rows_of(tmp_path / "nodes")
    assert sorted((row["subscription"], row["path"], row["fragment"]) for row in nodes) == [
        ("p", "/d/p", b"<p/>"),
        ("p", "/d/p[1]", b"<p>1</p>"),
        ("p", "/d/p[2]", b"<p>2</p>"),
        ("q", "/d/q", b"<q/>"),
    ]
    assert DeltaTable(tmp_path / "nodes").metadata().partition_columns == ["subscription"]
    for kind in ("matches", "rows", "nodes"):
        dead = rows_of(tmp_path / f"dead-{kind}")
        assert [(row["number"], row["xml"], row["error"]["line"]) for row in dead] == [(2, b"<d>", 1)]


def frame(spark: SparkSession, rows: list[tuple[Any, ...]]) -> DataFrame:
    return spark.createDataFrame(rows, "subscription string, day date, number int, urgent boolean")


DAYS = [datetime.date(2030, 1, day) for day in (1, 2)]


def test_a_batch_that_comes_again_is_appended_once(spark: SparkSession, tmp_path: Path) -> None:
    sink = DeltaSink(str(tmp_path / "out"), partition_by=["day", "urgent"], compact_every=4, query="q")
    batches = [[("a", DAYS[n % 2], n, None), ("é/=", None, n, n % 2 == 0)] for n in range(6)]
    for batch_id in (0, 1, 1, 2, 0, 3, 4, 3, 5, 5):
        sink(frame(spark, batches[batch_id]), batch_id)
    found = [(r["subscription"], r["day"], r["number"], r["urgent"]) for r in rows_of(tmp_path / "out")]
    assert sorted(found, key=repr) == sorted((row for batch in batches for row in batch), key=repr)
    assert {row["number"]: row["batch_id"] for row in rows_of(tmp_path / "out")} == {n: n for n in range(6)}
    assert len(DeltaTable(tmp_path / "out").file_uris()) < 12  # it was compacted once
    other = DeltaSink(str(tmp_path / "out"), partition_by=["day", "urgent"], query="another")
    other(frame(spark, batches[0]), 0)
    assert len(rows_of(tmp_path / "out")) == 14
    other(frame(spark, []), 1)
    assert len(rows_of(tmp_path / "out")) == 14


def test_a_task_has_one_file_open_at_a_time(spark: SparkSession, tmp_path: Path) -> None:
    """Whatever the number of values of the partitions: a process may have a thousand files open."""
    rows = pa.table({"day": ["a", "a", None, "b", "b", "b"], "number": range(6), "batch_id": [1] * 6})
    write = delta_sink._Write(str(tmp_path / "files"), (), ("day",), bytes(rows.schema.serialize()))
    found = []
    for batch in write(iter(rows.to_batches(max_chunksize=4))):
        found += batch.select(["rows", "partition"]).to_pylist()
        assert len(list((tmp_path / "files").iterdir())) == len(found)
    assert [tuple(row.values()) for row in found] == [(2, '{"day": "a"}'), (1, '{"day": null}'), (3, '{"day": "b"}')]
    sink = DeltaSink(str(tmp_path / "out"), partition_by=["subscription"], query="q")
    sink(frame(spark, [(f"s{n % 5}", None, n, None) for n in range(40)]), 0)
    assert len(DeltaTable(tmp_path / "out").file_uris()) == 5


def test_a_driver_that_dies_before_its_commit_leaves_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = DeltaSink(str(tmp_path / "out"), query="q")
    sink(frame(spark, [("a", None, 1, None)]), 0)

    def dies(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(DeltaSink, "_commit", dies)
        with pytest.raises(KeyboardInterrupt):
            sink(frame(spark, [("b", None, 2, None)]), 1)
    assert len(list((tmp_path / "out").glob("*.parquet"))) == 2
    assert len(rows_of(tmp_path / "out")) == 1
    sink(frame(spark, [("b", None, 2, None)]), 1)
    assert sorted(row["number"] for row in rows_of(tmp_path / "out")) == [1, 2]
    monkeypatch.setattr(delta_sink, "DEAD_HOURS", 0)
    sink.compact()
    assert len(list((tmp_path / "out").glob("*.parquet"))) == 1
    assert sorted(row["number"] for row in rows_of(tmp_path / "out")) == [1, 2]


def test_a_table_that_another_makes_at_the_same_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = pa.schema([("x", pa.int64()), ("batch_id", pa.int64())])
    make = DeltaTable.create

    def second(place: str, wanted: pa.Schema, **options: Any) -> None:
        make(place, wanted.append(pa.field("more", pa.string())), **options)
        raise CommitFailedError("version 0 is there")

    monkeypatch.setattr(DeltaTable, "create", second)
    assert DeltaSink(str(tmp_path / "fits"))._table(schema).version() == 0
    with pytest.raises(xsift.XsiftError, match="partitions by"):
        DeltaSink(str(tmp_path / "fits"), partition_by=["x"])._table(schema)


def test_what_a_delta_sink_refuses(spark: SparkSession, tmp_path: Path) -> None:
    rows = frame(spark, [("a", None, 1, None)])
    with pytest.raises(xsift.XsiftError, match="no-query"):
        DeltaSink(str(tmp_path / "out"))(rows, 0)
    with pytest.raises(xsift.XsiftError, match="no column 'color'"):
        DeltaSink(str(tmp_path / "out"), partition_by=["color"], query="q")(rows, 0)
    with pytest.raises(xsift.XsiftError, match="partitions are by"):
        DeltaSink(str(tmp_path / "out"), partition_by=["when"], query="q")(rows.selectExpr("now() as when"), 0)
    DeltaSink(str(tmp_path / "out"), query="q")(rows, 0)
    with pytest.raises(xsift.XsiftError, match="write to another path"):
        DeltaSink(str(tmp_path / "out"), query="q")(rows.selectExpr("*", "1 as more"), 1)
    with pytest.raises(xsift.XsiftError, match="'number' of another type"):
        DeltaSink(str(tmp_path / "out"), query="q")(rows.withColumn("number", rows.number.cast("string")), 1)
    with pytest.raises(xsift.XsiftError, match="write to another path"):
        DeltaSink(str(tmp_path / "out"), query="q", partition_by=["day"])(rows, 1)
    with pytest.raises(xsift.XsiftError, match="a column 'Batch_ID'"):
        DeltaSink(str(tmp_path / "new"), query="q")(rows.withColumnRenamed("number", "Batch_ID"), 0)


def test_what_cannot_be_written_is_said_before_anything_is_done(spark: SparkSession, tmp_path: Path) -> None:
    """So the same checkpoint does once what was wrong is right."""
    made = xsift.Subscriptions()
    made.add("a", "//a")
    inbox = Inbox(spark, tmp_path / "inbox")
    inbox.put([b"<a/>", b"<a>"])
    out = str(tmp_path / "out")
    settings: dict[str, Any] = {"subscriptions": made, "checkpoint": str(tmp_path / "checkpoint"), "trigger": NOW}
    table = SubscriptionTable.create(tmp_path / "table")
    numbered = inbox.stream().withColumnRenamed("number", "batch_id")
    timed = inbox.stream().selectExpr("*", "interval 1 day as due")
    owned = inbox.stream().withColumnRenamed("number", "subscriber")
    refused: list[tuple[dict[str, Any], str]] = [
        ({"sink": FolderSink(out)}, "a row for each match"),
        ({"sink": KafkaSink("localhost:1", str)}, "a row for each match"),
        ({"sink": KafkaSink("localhost:1", str), "kind": "rows"}, "no column 'fragment'"),
        ({"sink": DeltaSink(out, partition_by=["color"])}, "no column 'color'"),
        ({"sink": DeltaSink(out, partition_by=["error"]), "dead_letters": "dead"}, "no column 'error'"),
        ({"sink": out, "dead_letters": FolderSink(out), "kind": "rows"}, "leaves out broken documents"),
        ({"sink": out, "documents": numbered}, "a column 'batch_id'"),
        ({"sink": DeltaSink(out), "documents": numbered}, "a column 'batch_id'"),
        ({"sink": DeltaSink(out), "documents": timed}, "'due' is duration"),
        ({"sink": FolderSink(out), "documents": owned, "kind": "rows"}, "a column 'subscriber'"),
        ({"sink": out, "dead_letters": f"{out}/"}, "written to one place"),
        ({"sink": DeltaSink(out), "dead_letters": f"{out}/broken"}, "dead_letters= lies in the table of sink="),
        ({"sink": DeltaSink(out), "checkpoint": out}, "checkpoint= lies in the table of sink="),
        ({"sink": out, "subscriptions": table, "checkpoint": f"{table.path}/state"}, "table of subscriptions="),
    ]
    for options, message in refused:
        documents = options.pop("documents", inbox.stream())
        with pytest.raises(xsift.XsiftError, match=message):
            match_stream(documents, **{**settings, **options})
    for trigger, message in (({"processingTime": 7}, "processingTime"), ({"realTime": "5 seconds"}, "REAL_TIME")):
        with pytest.raises(Exception, match=message):
            match_stream(inbox.stream(), sink=out, **{**settings, "trigger": trigger})
    finish(lambda: match_stream(inbox.stream(), sink=FolderSink(out), kind="rows", **settings))
    assert [row.subscription for row in spark.read.parquet(out).collect()] == ["a"]


def test_names_with_dots_into_every_sink(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame([("a", 1, b"<a/>")], "subscription string, `a.b` int, `x``.y` binary")
    DeltaSink(str(tmp_path / "delta"), partition_by=["a.b"], query="q")(frame, 0)
    assert rows_of(tmp_path / "delta") == [{"subscription": "a", "a.b": 1, "x`.y": b"<a/>", "batch_id": 0}]
    ParquetSink(str(tmp_path / "parquet"))(frame, 0)
    FolderSink(str(tmp_path / "folders"))(frame, 0)
    for folder in ("parquet", "folders"):
        row = spark.read.parquet(str(tmp_path / folder)).collect()[0]
        assert (row["subscription"], row["a.b"], bytes(row["x`.y"])) == ("a", 1, b"<a/>")
