"""Kafka from end to end, on the mock cluster that librdkafka has inside."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import xsift
from tests.spark.data import finish
from xsift.spark import KafkaSink, kafka_sink, match_stream, register_sources
from xsift.spark.kafka import KafkaSettings, KafkaStreamReader, _limited

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

kafka = pytest.importorskip("confluent_kafka")


@pytest.fixture(scope="module")
def cluster() -> tuple[Any, str]:
    """A producer, which is the cluster as well, and its address."""
    producer = kafka.Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1})
    brokers = producer.list_topics(timeout=30).brokers.values()
    return producer, ",".join(f"{broker.host}:{broker.port}" for broker in brokers)


def send(producer: Any, topic: str, values: list[bytes], partition: int | None = None) -> None:
    for value in values:
        where = {} if partition is None else {"partition": partition}
        producer.produce(topic, value, key=b"k", **where)
    assert producer.flush(30) == 0


def route(subscription: str) -> str:
    return f"to-{subscription}"


def test_without_confluent_kafka_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    sink = KafkaSink("none", route, query="q")
    settings = KafkaSettings.of({"servers": "none", "topics": "news"})
    for work in (
        lambda: list(kafka_sink._Send(sink, (), 0)(iter([]))),
        lambda: kafka_sink._begin(sink, 0, 0),
        sink._make_progress_topic,
        lambda: KafkaStreamReader(settings).initialOffset(),
    ):
        with pytest.raises(xsift.XsiftError, match=r"pip install 'xsift\[kafka\]'"):
            work()


def test_end_to_end(spark: SparkSession, cluster: tuple[Any, str], tmp_path: Path) -> None:
    producer, servers = cluster
    register_sources(spark)
    send(producer, "news", [b"<a><b>%d</b></a>" % number for number in range(25)] + [b"<broken>"])
    made = xsift.Subscriptions()
    made.add_many([("all", "//b"), ("seven", "//b[. = 7]")])
    reader = spark.readStream.format("xsift-kafka").option("servers", servers).option("topics", "news")
    stream = reader.option("maxOffsetsPerTrigger", 15).load()
    settings: dict[str, Any] = {
        "xml": "value",
        "output": "nodes",
        "checkpoint": str(tmp_path / "c"),
        "trigger": {"availableNow": True},
    }

    def run() -> None:
        sink = KafkaSink(servers, route)
        dead = str(tmp_path / "dead")
        query = finish(lambda: match_stream(stream, subscriptions=made, sink=sink, dead_letters=dead, **settings))
        assert [progress for progress in query.recentProgress if progress.numInputRows]

    run()
    send(producer, "news", [b"<b>7</b>"])
    run()
    batch = spark.read.format("xsift-kafka").option("servers", servers)
    everything = batch.option("topics", "to-all").load().collect()
    wanted = sorted([b"<b>%d</b>" % number for number in range(25)] + [b"<b>7</b>"])
    assert sorted(bytes(row.value) for row in everything) == wanted
    seven = batch.option("topics", "to-seven").load().collect()
    assert [(bytes(row.key), bytes(row.value)) for row in seven] == [(b"seven", b"<b>7</b>")] * 2
    dead = spark.read.parquet(str(tmp_path / "dead")).collect()
    assert [bytes(row.value) for row in dead] == [b"<broken>"]


def messages(servers: str, topic: str) -> list[tuple[bytes, bytes]]:
    """All keys and values of a topic."""
    return sorted((message.key(), message.value()) for message in received(servers, topic))


def received(servers: str, topic: str) -> list[Any]:
    settings = {"bootstrap.servers": servers, "group.id": "test", "isolation.level": "read_committed"}
    consumer = kafka.Consumer({**settings, "enable.partition.eof": True, "enable.auto.commit": False})
    places = consumer.list_topics(topic, timeout=30).topics[topic].partitions
    consumer.assign([kafka.TopicPartition(topic, partition, 0) for partition in places])
    found, ends = [], 0
    while ends < len(places):
        message = consumer.poll(30)
        assert message is not None
        if message.error():
            ends += 1
        else:
            found.append(message)
    consumer.close()
    return found


def same_topic(subscription: str) -> str:
    return "once"


def test_transactions_send_a_batch_once(spark: SparkSession, cluster: tuple[Any, str]) -> None:
    """What the mock cluster cannot show: it hands out what was aborted, and fences nobody off. A broker does both."""
    producer, servers = cluster
    for topic in ("xsift-progress", "once"):
        producer.list_topics(topic, timeout=30)  # which makes it
    batches = [[(f"s{number % 5}", f"<b>{batch}-{number}</b>") for number in range(40)] for batch in range(3)]
    frames = [spark.createDataFrame(rows, "subscription string, fragment string") for rows in batches]

    def new_driver() -> KafkaSink:
        return KafkaSink(servers, same_topic, transactions=True).for_query("query-1")

    sink = new_driver()
    sink(frames[0], 0)
    sink(frames[1], 1)
    sink(frames[1], 1)  # as where an executor died that had sent it, and Spark runs the stage again
    again = new_driver()
    again(frames[1].repartition(3), 1)  # in other tasks than before
    again(frames[2], 2)
    new_driver()(frames[2], 2)
    wanted = sorted((id.encode(), xml.encode()) for rows in batches for id, xml in rows)
    assert messages(servers, "once") == wanted
    assert {value for _, value in messages(servers, "xsift-progress")} == {b"0", b"1", b"2"}
    other = KafkaSink(servers, same_topic, transactions=True, query="query-2")
    other(frames[0], 0)
    assert len(messages(servers, "once")) == len(wanted) + 40


def test_a_part_that_was_not_sent_is_sent_when_a_batch_comes_again(
    spark: SparkSession, cluster: tuple[Any, str]
) -> None:
    producer, servers = cluster
    producer.list_topics("once-parts", timeout=30)
    rows = [(f"s{number}", f"<b>{number}</b>") for number in range(30)]
    frame = spark.createDataFrame(rows, "subscription string, fragment string")
    sink = KafkaSink(servers, lambda _: "once-parts", transactions=True, query="query-3")
    parted = sink._parted(frame)
    some = parted.where("__xsift_part < 2").drop("__xsift_part").toDF(*frame.columns)
    assert 0 < some.count() < 30
    KafkaSink(servers, sink.route, transactions=True, query="query-3")(some, 7)  # the driver died after two parts
    sink(frame, 7)
    wanted = sorted((id.encode(), xml.encode()) for id, xml in rows)
    assert messages(servers, "once-parts") == wanted


def test_a_batch_is_found_behind_those_of_busy_queries(
    cluster: tuple[Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_sink, "LOOK_BACK", 2)
    producer, servers = cluster
    producer.list_topics("busy-progress", timeout=30)
    sink = KafkaSink(servers, same_topic, transactions=True, query="mine", progress_topic="busy-progress")
    for query, batch_id in [("mine", 6), ("mine", 7), *(("other", number) for number in range(50))]:
        producer.produce("busy-progress", key=query.encode(), value=str(batch_id).encode(), partition=0)
    producer.flush()
    assert kafka_sink._last_batch(sink, 0) == 7
    assert kafka_sink._last_batch(replace(sink, query="new"), 0) == -1
    assert kafka_sink._last_batch(sink, 1) == -1


def test_what_transactions_need(spark: SparkSession, cluster: tuple[Any, str]) -> None:
    producer, servers = cluster
    producer.list_topics("xsift-progress", timeout=30)
    frame = spark.createDataFrame([("s", "<b/>")], "subscription string, fragment string")
    with pytest.raises(xsift.XsiftError, match="no-query"):
        KafkaSink(servers, same_topic, transactions=True)(frame, 0)
    with pytest.raises(xsift.XsiftError, match="4 partitions, and needs one for each part"):
        KafkaSink(servers, same_topic, transactions=True, parts=9, query="q")(frame, 0)


def test_offsets_and_limits(cluster: tuple[Any, str]) -> None:
    producer, servers = cluster
    send(producer, "limits", [b"x"] * 7, partition=0)
    send(producer, "limits", [b"x"] * 3, partition=1)
    reader = KafkaStreamReader(
        KafkaSettings.of({"servers": servers, "topics": "limits", "maxOffsetsPerTrigger": "4"})
    )
    start = reader.initialOffset()
    seen, steps = start, 0
    reader.prepareForTriggerAvailableNow()
    send(producer, "limits", [b"later"], partition=0)
    while (end := reader.latestOffset(seen, reader.getDefaultReadLimit())) != seen:
        ranges = reader.partitions(seen, end)
        assert 0 < sum(part.end - part.begin for part in ranges) <= 4  # type: ignore[attr-defined]
        read = [batch for part in ranges for batch in reader.read(part)]
        assert sum(batch.num_rows for batch in read) == sum(part.end - part.begin for part in ranges)  # type: ignore[attr-defined]
        seen, steps = end, steps + 1
    assert steps == 3
    fresh = KafkaStreamReader(KafkaSettings.of({"servers": servers, "topics": "limits", "startingOffsets": "latest"}))
    assert (
        fresh.partitions(
            fresh.initialOffset(), fresh.latestOffset(fresh.initialOffset(), fresh.getDefaultReadLimit())
        )
        == []
    )


def test_a_topic_that_was_made_anew(cluster: tuple[Any, str]) -> None:
    """Its offsets begin again: what comes now is an error, or read from there on."""
    producer, servers = cluster
    producer.list_topics("anew", timeout=30)
    send(producer, "anew", [b"<a/>", b"<b/>"], partition=0)
    options = {"servers": servers, "topics": "anew"}
    before = {"offsets": json.dumps({"anew:0": 100})}
    reader = KafkaStreamReader(KafkaSettings.of(options))
    with pytest.raises(xsift.XsiftError, match="data-loss"):
        reader.latestOffset(before, reader.getDefaultReadLimit())
    reader = KafkaStreamReader(KafkaSettings.of({**options, "failOnDataLoss": "false"}))
    after = reader.latestOffset(before, reader.getDefaultReadLimit())
    assert json.loads(after["offsets"])["anew:0"] == 2
    (part,) = reader.partitions(before, after)
    assert [value for batch in reader.read(part) for value in batch["value"].to_pylist()] == [b"<a/>", b"<b/>"]
    assert reader.latestOffset(after, reader.getDefaultReadLimit()) == after


def test_shares_of_a_limit() -> None:
    assert _limited({"a:0": 5}, {"a:0": 10, "a:1": 10, "a:2": 0}, 7) == {"a:0": 9, "a:1": 3, "a:2": 0}


def test_what_goes_wrong_is_said() -> None:
    with pytest.raises(xsift.XsiftError, match="needs 'topics'"):
        KafkaSettings.of({"servers": "x"})
    with pytest.raises(xsift.XsiftError, match="earliest or latest"):
        KafkaSettings.of({"servers": "x", "topics": "t", "startingOffsets": "7"})


def test_only_allowed_topics_are_sent_to(spark: SparkSession, cluster: tuple[Any, str]) -> None:
    producer, servers = cluster
    register_sources(spark)
    send(producer, "to-a", [b"before"])
    send(producer, "lost", [b"before"])
    frame = spark.createDataFrame([("a", b"1"), ("b", b"2"), ("a", None)], "subscription string, fragment binary")
    sink = KafkaSink(servers, route, topics=["to-a"], otherwise="lost")
    sink(frame, 0)
    batch = spark.read.format("xsift-kafka").option("servers", servers)
    got = {topic: [row.value for row in batch.option("topics", topic).load().collect()] for topic in ("to-a", "lost")}
    assert sorted((bytes(value) if value is not None else b"") for value in got["to-a"]) == [b"", b"1", b"before"]
    assert sorted(bytes(value) for value in got["lost"]) == [b"2", b"before"]
    strict = KafkaSink(servers, route, topics=["to-a"])
    assert strict.topic_of("a") == "to-a"
    with pytest.raises(xsift.XsiftError) as caught:
        strict.topic_of("b")
    assert caught.value.code == "topic-not-allowed"


def test_equal_documents_of_a_batch_are_told_apart(spark: SparkSession, cluster: tuple[Any, str]) -> None:
    _, servers = cluster
    rows = [("twins", 7), ("twins", 7), ("twins", 8), ("twins", 7)]
    frame = spark.createDataFrame(rows, "subscription string, number int").repartition(3)
    sink = KafkaSink(servers, route, value="number")
    sink(frame, 0)
    sink(frame.coalesce(1), 0)  # once more, in other tasks
    ids = [message.headers()[0][1] for message in received(servers, "to-twins")]
    assert len(ids) == 8
    assert len(set(ids)) == 4


@pytest.mark.parametrize("transactions", [False, True])
def test_only_matches_are_sent(spark: SparkSession, cluster: tuple[Any, str], transactions: bool) -> None:
    """Not a document for a subscription that could not be decided on it, whatever the columns are called."""
    _, servers = cluster
    problem = "struct<code:string,message:string,line:int,column:int>"
    rows = [("a", b"<a/>", None), ("a", b"<b/>", ("too-deep", "it could not be decided", 1, 1)), (None, b"<c>", None)]
    frame = spark.createDataFrame(rows, f"subscription string, `x.ml` binary, `er.ror` {problem}")
    topic = f"matches-only-{transactions}"
    sink = KafkaSink(servers, _To(topic), value="x.ml", transactions=transactions, query=topic)
    sink(frame, 0)
    assert messages(servers, topic) == [(b"a", b"<a/>")]


class _To:
    """A route to one topic."""

    def __init__(self, topic: str) -> None:
        self.topic = topic

    def __call__(self, subscription: str) -> str:
        return self.topic
