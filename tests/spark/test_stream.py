"""match_stream against tables that change, what it leaves behind, and the sinks."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.sql.types import StructType

import xsift
from tests.spark.data import BROKEN, expected, finish, interests, news
from xsift.matching import MatcherOptions
from xsift.spark import FolderSink, match_documents, match_stream, progress_of, stream, versions_used
from xsift.spark.columns import Columns
from xsift.spark.indexes import IndexFolder
from xsift.spark.live import LiveSubscriptions
from xsift.spark.notes import Notes, check_output
from xsift.tables import SubscriptionTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOW = {"availableNow": True}


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


def test_only_what_changed_is_compiled(tmp_path: Path) -> None:
    table = SubscriptionTable.create(tmp_path / "table")
    table.add([(f"s{number}", f"//a{number}") for number in range(100)])
    live = LiveSubscriptions(table, IndexFolder.of(str(tmp_path / "checkpoint")), xsift.MatcherOptions())
    live.at(1)
    first = live.parts
    table.add([("new", "//new"), ("s3", "//changed")])
    table.remove(["s5", "new"])
    live.at(2)
    assert live.parts[0].name == first[0].name
    assert len(live.parts) == 2
    assert live.count == 101
    second = [part.name for part in live.parts]
    live.at(3)
    assert [part.name for part in live.parts] == second
    assert live.count == 99
    live.at(1)
    assert live.parts == first


def test_indexes_that_no_batch_can_need_are_removed(tmp_path: Path) -> None:
    table = SubscriptionTable.create(tmp_path / "table")
    live = LiveSubscriptions(table, IndexFolder.of(str(tmp_path / "checkpoint")), xsift.MatcherOptions())
    files = []
    for number in range(60):
        table.add([(f"s{number % 40}", f"//a{number}")])
        name = live.at(table.version())
        there = {path.name for path in (tmp_path / "checkpoint" / "xsift-indexes").iterdir()}
        assert there >= {name, *(part.name for part in live.parts)}
        files.append(len(there))
    assert live.count == 40
    assert max(files) <= 20


def test_notes_are_bounded_and_one_is_looked_up(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    notes = Notes(str(checkpoint), None, retained=100)
    for batch_id in range(300):
        notes.note(batch_id, batch_id // 10)
    assert versions_used(str(checkpoint)) == {batch_id: batch_id // 10 for batch_id in range(200, 300)}
    opened: list[str] = []
    again = Notes(str(checkpoint), None, retained=100)
    folder, read = again._folder, again._folder.read
    folder.read = lambda name: opened.append(name) or read(name)  # type: ignore[method-assign, func-returns-value]
    assert again.version_of(299) == 29
    assert opened == ["299.json"]
    assert again.version_of(150) is None


def test_notes_of_before_are_read_once(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint" / "xsift-versions"
    for batch_id in range(500):
        (folder / f"batch_id={batch_id}").mkdir(parents=True)
    note = pa.table({"version": pa.array([7], pa.int64())})
    pyarrow.parquet.write_table(note, folder / "batch_id=499" / "part-0.parquet")
    notes = Notes(str(tmp_path / "checkpoint"), None)
    assert notes.version_of(499) == 7
    assert notes.version_of(500) is None
    notes.note(500, 8)
    assert [path.name for path in folder.iterdir()] == ["500.json"]


def test_stream_equals_library_while_subscriptions_change(spark: SparkSession, tmp_path: Path) -> None:
    rows = interests(150)
    documents = news(20)
    inbox = Inbox(spark, tmp_path / "inbox")
    table = SubscriptionTable.create(tmp_path / "table")
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
    assert versions_used(checkpoint) == {0: 1, 1: 3}


def test_a_restart_after_a_hundred_thousand_batches(spark: SparkSession, tmp_path: Path) -> None:
    """What a query finds that has run for long, made from one that has just begun."""
    inbox = Inbox(spark, tmp_path / "inbox")
    inbox.put([b"<a/>"])
    table = SubscriptionTable.create(tmp_path / "table")
    table.add([("a", "//a")])
    out, checkpoint, last = str(tmp_path / "out"), tmp_path / "checkpoint", 99_999

    def run() -> None:
        state = str(checkpoint)
        finish(lambda: match_stream(inbox.stream(), subscriptions=table, sink=out, checkpoint=state, trigger=NOW))

    run()
    for kind in ("offsets", "commits"):
        for batch_id in (last - 1, last):
            shutil.copy(checkpoint / kind / "0", checkpoint / kind / str(batch_id))
        (checkpoint / kind / "0").unlink()
        (checkpoint / kind / ".0.crc").unlink(missing_ok=True)
    notes = checkpoint / "xsift-versions"
    (notes / "0.json").unlink()
    for batch_id in range(last - 200, last + 1):
        (notes / f"{batch_id}.json").write_text('{"version": 1}')
    (notes / f"{last + 1}.json").write_text('{"version": 1}')  # the next batch noted its version, and died
    table.add([("late", "//a")])
    inbox.put([b"<a/>"], 1)
    run()
    inbox.put([b"<a/>"], 2)
    run()
    rows = {row.number: (row.batch_id, row.matches) for row in spark.read.parquet(out).collect()}
    assert rows == {0: (0, ["a"]), 1: (last + 1, ["a"]), 2: (last + 2, ["a", "late"])}
    assert len(versions_used(str(checkpoint))) == 100


def test_progress(spark: SparkSession, tmp_path: Path) -> None:
    inbox = Inbox(spark, tmp_path / "inbox")
    inbox.put([b"<a><b/></a>", b"<b/>", b"<c/>", b"<broken>"])
    table = SubscriptionTable.create(tmp_path / "table")
    table.add([("a", "//a"), ("b", "//b")])
    arriving = inbox.stream().selectExpr("*", "current_timestamp() - interval 1 hour as came")
    for place, output in enumerate(["matches", "rows", "nodes"]):
        for subscriptions in (table, table.subscriptions()):
            state = str(tmp_path / f"{output}-{type(subscriptions).__name__}")
            query = finish(
                lambda: match_stream(
                    arriving,
                    subscriptions=subscriptions,  # noqa: B023
                    output=output,  # type: ignore[arg-type]  # noqa: B023
                    sink=f"{state}-out",  # noqa: B023
                    dead_letters=f"{state}-dead" if place else None,  # noqa: B023
                    checkpoint=state,  # noqa: B023
                    arrived="came",
                    trigger=NOW,
                )
            )
            done = progress_of(query.lastProgress)
            assert done is not None
            assert (done.documents, done.matches, done.broken) == (4, 3, 1)
            assert done.version == (1 if subscriptions is table else None)
            assert done.lag_seconds is not None
            assert done.load_seconds >= 0
            assert 3600 <= done.lag_seconds < 3900
            assert str(done).startswith("batch 0: 4 documents, 3 matches, 1 broken")


@pytest.mark.parametrize("followed", [True, False])
def test_storage_and_metrics_of_a_stream(spark: SparkSession, tmp_path: Path, followed: bool) -> None:
    """Indexes lie where storage= says, and progress has the name that metrics= gives."""
    rows, documents = interests(80), news(10)
    wanted = dict(enumerate(expected(rows, documents)))
    inbox = Inbox(spark, tmp_path / "inbox")
    inbox.put(documents)
    subscriptions: Any = spark.createDataFrame(rows, "id string, xpath string, ordered boolean")
    if followed:
        subscriptions = SubscriptionTable.create(tmp_path / "table")
        subscriptions.add(rows)
    storage, out, state = tmp_path / "indexes", str(tmp_path / "out"), tmp_path / "checkpoint"
    settings: dict[str, Any] = {
        "subscriptions": subscriptions,
        "sink": out,
        "checkpoint": str(state),
        "storage": str(storage),
        "metrics": "news",
        "trigger": NOW,
    }

    def run() -> Any:
        return finish(lambda: match_stream(inbox.stream(), **settings))

    query = run()
    found = {
        row.number: (row.matches and sorted(row.matches), row.error and row.error.code)
        for row in spark.read.parquet(out).collect()
    }
    assert found == {number: (ids and sorted(ids), error) for number, (ids, error) in wanted.items()}
    indexes = sorted(storage.rglob("*.xsift"))
    assert indexes
    assert not list(state.rglob("*.xsift"))
    assert set(query.lastProgress.observedMetrics) == {"news", "news_input"}
    assert progress_of(query.lastProgress) is None
    done = progress_of(query.lastProgress, "news")
    assert done is not None
    assert (done.documents, done.broken) == (len(documents), len(BROKEN))
    assert done.matches == sum(len(ids or ()) for ids, _ in wanted.values())
    assert done.version == (1 if followed else None)
    inbox.put([b"<a/>"], 1000)
    run()  # what is there is used again
    assert sorted(storage.rglob("*.xsift")) == indexes
    assert spark.read.parquet(out).where("number = 1000").collect()[0].matches == ["any"]
    if followed:
        with pytest.raises(xsift.XsiftError, match="not split"):
            match_stream(inbox.stream(), **settings, shards=2)


def test_two_streams_share_a_storage(spark: SparkSession, tmp_path: Path) -> None:
    """Each deletes what it needs no longer, and nothing of the other."""
    inbox = Inbox(spark, tmp_path / "inbox")
    inbox.put([b"<a/>"])
    storage = tmp_path / "indexes"
    for name in ("a", "b"):
        table = SubscriptionTable.create(tmp_path / name)
        table.add([(name, "//a")])
        place: dict[str, Any] = {"storage": str(storage), "sink": f"{tmp_path}/out-{name}"}
        state = f"{tmp_path}/state-{name}"
        finish(
            lambda: match_stream(inbox.stream(), subscriptions=table, checkpoint=state, trigger=NOW, **place)  # noqa: B023
        )
    assert len(list(storage.rglob("*.xsift"))) == 2
    assert len(list(storage.iterdir())) == 2


def test_progress_of_any_name_is_logged(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = xsift.Subscriptions()
    made.add("a", "//a")
    inbox = Inbox(spark, tmp_path / "inbox")
    inbox.put([b"<a/>", b"<b/>"])
    out, state = str(tmp_path / "out"), str(tmp_path / "checkpoint")
    with caplog.at_level("INFO", logger="xsift.spark"):
        finish(
            lambda: match_stream(
                inbox.stream(), subscriptions=made, sink=out, checkpoint=state, metrics="mine", trigger=NOW
            )
        )
        deadline = time.monotonic() + 30
        while "batch 0: 2 documents, 1 match, 0 broken" not in caplog.text and time.monotonic() < deadline:
            time.sleep(0.1)
    assert "batch 0: 2 documents, 1 match, 0 broken" in caplog.text


def test_metrics_reach_a_listener(spark: SparkSession, tmp_path: Path) -> None:
    """Also of match_documents alone, with any sink, and with names of columns that PySpark does not find."""
    from pyspark.sql.streaming.listener import StreamingQueryListener

    told: list[Any] = []

    class Listener(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None: ...

        def onQueryProgress(self, event: Any) -> None:
            told.append({name: row.asDict() for name, row in event.progress.observedMetrics.items()})

        def onQueryTerminated(self, event: Any) -> None: ...

    made = xsift.Subscriptions()
    made.add_many([("a", "//a"), ("b", "//b"), ("no worker has this set loaded", "//none")])
    inbox = Inbox(spark, tmp_path / "inbox")
    inbox.put([b"<a><b/></a>", b"<b/>", b"<c/>", b"<broken>"])
    frame = inbox.stream().withColumnRenamed("number", "the.number")
    matched = match_documents(frame, subscriptions=made, metrics="news", names={"matches": "ids"})
    listener = Listener()
    spark.streams.addListener(listener)
    try:
        writer = matched.writeStream.format("memory").queryName("metrics")
        query = finish(lambda: writer.trigger(availableNow=True).start())
        wanted = {"matches": 3, "broken": 1, "failures": 0}
        progress = query.lastProgress.observedMetrics
        assert progress["news_input"].documents == 4
        assert {name: progress["news"][name] for name in wanted} == wanted
        assert progress["news"].load_seconds > 0
        deadline = time.monotonic() + 30
        while not told and time.monotonic() < deadline:
            time.sleep(0.1)
        assert {name: told[-1]["news"][name] for name in wanted} == wanted
    finally:
        spark.streams.removeListener(listener)
    assert spark.table("metrics").columns == ["the.number", "ids", "error", "failures"]
    table = SubscriptionTable.create(tmp_path / "table")
    table.add([("a", "//a")])
    out, state = str(tmp_path / "out"), str(tmp_path / "checkpoint")
    finish(lambda: match_stream(frame, subscriptions=table, sink=out, checkpoint=state, trigger=NOW))
    assert sorted(row["the.number"] for row in spark.read.parquet(out).collect()) == [0, 1, 2, 3]


def test_a_sink_may_read_its_batch_as_an_rdd(spark: SparkSession, tmp_path: Path) -> None:
    inbox = Inbox(spark, tmp_path / "inbox")
    inbox.put([b"<a/>", b"<b/>"])
    table = SubscriptionTable.create(tmp_path / "table")
    table.add([("a", "//a")])
    found: list[Any] = []

    def sink(matches: DataFrame, _: int) -> None:
        found.extend(matches.rdd.map(lambda row: (row.number, row.matches)).collect())

    state = str(tmp_path / "checkpoint")
    finish(lambda: match_stream(inbox.stream(), subscriptions=table, sink=sink, checkpoint=state, trigger=NOW))
    assert sorted(found) == [(0, ["a"]), (1, [])]


def test_a_batch_that_comes_again_uses_its_version(spark: SparkSession, tmp_path: Path) -> None:
    inbox = Inbox(spark, tmp_path / "inbox")
    inbox.put([b"<a/>", b"<b/>"])
    table = SubscriptionTable.create(tmp_path / "table")
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


def test_shards_in_a_stream_with_any_sink(spark: SparkSession, tmp_path: Path) -> None:
    rows, documents = interests(60), news(8)
    wanted = dict(enumerate(expected(rows, documents)))
    table = spark.createDataFrame(rows, "id string, xpath string, ordered boolean").coalesce(1)
    inbox = Inbox(spark, tmp_path / "inbox")
    inbox.put(documents)
    out, state = str(tmp_path / "out"), str(tmp_path / "checkpoint")
    matched = inbox.stream().transform(match_documents, subscriptions=table, shards=3)
    writer = matched.writeStream.format("parquet").option("checkpointLocation", state)
    finish(lambda: writer.trigger(availableNow=True).start(out))
    found = {row.number: (row.matches, row.error and row.error.code) for row in spark.read.parquet(out).collect()}
    assert found == wanted
    again: dict[str, Any] = {
        "sink": f"{out}2",
        "checkpoint": f"{state}2",
        "trigger": NOW,
        "shards": 2,
        "errors": "collect",
    }
    query = finish(lambda: match_stream(inbox.stream(), subscriptions=table, kind="rows", **again))
    done = progress_of(query.lastProgress)
    assert done is not None
    assert done.matches == sum(len(ids or ()) for ids, _ in wanted.values())
    pairs = [(row.number, row.subscription) for row in spark.read.parquet(f"{out}2").collect() if row.subscription]
    assert sorted(pairs) == sorted((number, id) for number, (ids, _) in wanted.items() for id in ids or ())


def test_an_empty_table_still_sees_broken_documents(spark: SparkSession, tmp_path: Path) -> None:
    table = SubscriptionTable.create(tmp_path / "table")
    inbox = Inbox(spark, tmp_path / "inbox")
    inbox.put([b"<a/>", b"<a>"])
    out, state = str(tmp_path / "out"), str(tmp_path / "checkpoint")
    finish(lambda: match_stream(inbox.stream(), subscriptions=table, sink=out, checkpoint=state, trigger=NOW))
    found = {row.number: (row.matches, row.error is None) for row in spark.read.parquet(out).collect()}
    assert found == {0: ([], True), 1: (None, False)}


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
    with pytest.raises(xsift.XsiftError, match="a row for each match"):
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


def test_ids_that_look_like_numbers_come_back_as_they_are(spark: SparkSession, tmp_path: Path) -> None:
    ids = ["007", "1e3", "", "7", "2030-01-31", "true", "-1.5", ".5", "NaN", "Infinity", "12:30", "1d", "null"]
    frame = spark.createDataFrame([(id, b"<a/>") for id in ids], "subscription string, xml binary")
    FolderSink(str(tmp_path / "out"))(frame, 0)
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted(row.subscriber for row in rows) == sorted(ids)
    assert all(isinstance(row.subscription, str) for row in rows)
    assert len({row.subscription for row in rows}) == len(ids)


@pytest.mark.parametrize("buckets", [None, 5])
def test_a_batch_that_gives_less_the_second_time(spark: SparkSession, tmp_path: Path, buckets: int | None) -> None:
    """A new driver runs it again, with another sink object: what the first one wrote and this one did not goes."""
    rows = [(f"s{number}", b"<a/>") for number in range(9)]
    frame = spark.createDataFrame(rows, "subscription string, xml binary")
    out = str(tmp_path / "out")
    sink = FolderSink(out, buckets=buckets)
    sink(frame, 0)
    sink(frame, 1)
    for again in (FolderSink(out, buckets=buckets and 3), sink):
        again(frame.where("subscription in ('s1', 's2')"), 1)
        found = spark.read.parquet(out).collect()
        assert sorted(row.subscription for row in found if row.batch_id == 1) == ["s1", "s2"]
        assert sorted(row.subscription for row in found if row.batch_id == 0) == [f"s{n}" for n in range(9)]
        again(frame, 1)


def test_a_restart_with_another_output_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    made = xsift.Subscriptions()
    made.add("a", "//a")
    inbox = Inbox(spark, tmp_path / "inbox")
    inbox.put([b"<a/>"])
    settings: dict[str, Any] = {
        "subscriptions": made,
        "sink": str(tmp_path / "out"),
        "checkpoint": str(tmp_path / "checkpoint"),
        "trigger": NOW,
    }
    finish(lambda: match_stream(inbox.stream(), **settings))
    finish(lambda: match_stream(inbox.stream(), **settings))
    others: list[dict[str, Any]] = [
        {"kind": "rows"},
        {"keep_xml": True},
        {"names": {"matches": "m"}},
        {"dead_letters": str(tmp_path / "dead")},
    ]
    for other in others:
        with pytest.raises(xsift.XsiftError, match=f"has {next(iter(other))}="):
            match_stream(inbox.stream(), **settings, **other)


@pytest.mark.parametrize("checkpoint", ["wasbs://box@account/state", "dbfs:/state"])
def test_a_checkpoint_that_only_spark_can_reach(checkpoint: str, caplog: pytest.LogCaptureFixture) -> None:
    assert not check_output(checkpoint, {}, {"kind": "rows"})
    assert "cannot be reached" in caplog.text


def test_a_batch_whose_version_was_forgotten_says_what_to_do(tmp_path: Path) -> None:
    table = SubscriptionTable.create(tmp_path / "table")
    for number in range(3):
        table.add([(f"s{number}", "//a")])
    checkpoint = str(tmp_path / "checkpoint")
    Notes(checkpoint, None).note(7, 1)
    table.compact(forget_before=3)
    live = LiveSubscriptions(table, IndexFolder.of(checkpoint), MatcherOptions())
    place = stream._Place(checkpoint, (), 100)
    columns = Columns.of(StructType().add("xml", "string"))
    process = stream._Process(live, place, lambda *_: None, None, columns, False)
    with pytest.raises(xsift.TableError, match=f"without {checkpoint}/xsift-versions/7.json it uses the latest"):
        process(SimpleNamespace(sparkSession=None), 7)  # type: ignore[arg-type]
