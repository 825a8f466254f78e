"""Documents that come by folder and by Kafka, deliveries that go to Kafka, subscriptions that come from a table."""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import xsift
from tests.service.running import RunningServer, running, until
from xsift.errors import StorageError
from xsift.service.intake import kafka as intake_module
from xsift.service.intake.folder import FolderIntake, _free
from xsift.service.intake.kafka import KafkaIntake
from xsift.service.live_set import LiveSet
from xsift.service.publishing import Incoming, Receipt
from xsift.service.settings import FolderSettings, Kafka, TableSettings
from xsift.service.store import subscriptions as store
from xsift.service.store.database import Database
from xsift.service.store.subscribers import NewSubscribers
from xsift.service.store.subscriptions import Subscription
from xsift.service.store.writer import Writer
from xsift.service.table_sync import TableSync, as_subscriptions
from xsift.tables import SubscriptionTable

kafka = pytest.importorskip("confluent_kafka")

NEW = NewSubscribers(10_000)


@pytest.fixture(scope="module")
def cluster() -> tuple[Any, str]:
    """A producer, which is the cluster as well (librdkafka has a mock of one inside), and its address."""
    producer = kafka.Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1})
    brokers = producer.list_topics(timeout=30).brokers.values()
    return producer, ",".join(f"{broker.host}:{broker.port}" for broker in brokers)


@pytest.fixture(scope="module")
def server(cluster: tuple[Any, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("sources")
    settings = f"""
[folder]
path = "{folder}/incoming"
owner = "folder"
poll_seconds = 0.1
[kafka]
servers = "{cluster[1]}"
topics = ["documents"]
owner = "kafka"
[kafka.options]
"session.timeout.ms" = 6000
"allow.auto.create.topics" = true
"topic.metadata.refresh.interval.ms" = 1000
"""
    producer = cluster[0]
    producer.produce("documents", b"<a>before</a>", key=b"first")
    assert producer.flush(30) == 0
    with running(folder, settings=settings) as server:
        yield server


def test_a_folder(server: RunningServer) -> None:
    incoming = server.folder / "incoming"
    with server.client(owner="folder") as client:
        client.add("a", "//a", subscriber="s", deliver="document")
        (incoming / ".hidden.xml").write_text("<a>hidden</a>")
        (incoming / "good.xml").write_text("<a>good</a>")
        (incoming / "bad.xml").write_text("<a>")
        (incoming / "packed.xml.gz").write_bytes(gzip.compress(b"<a>packed</a>"))
        (incoming / "not packed.gz").write_bytes(b"nonsense")
        (incoming / "done" / "good.xml").write_text("one of the same name")
        until(lambda: {path.name for path in incoming.iterdir()} == {".hidden.xml", "done", "broken"})
        assert {path.name for path in (incoming / "done").iterdir()} == {"good.xml", "good.xml.2", "packed.xml.gz"}
        assert {path.name for path in (incoming / "broken").iterdir()} == {"bad.xml", "not packed.gz"}
        found = {delivery.document["label"]: delivery.xml for delivery in client.deliveries("s")}
        assert found == {"good.xml": "<a>good</a>", "packed.xml.gz": "<a>packed</a>"}


def test_files_whatever_their_names(server: RunningServer) -> None:
    """Names that are no text, and names that begin alike for 200 characters: each file is a document of its own."""
    incoming = server.folder / "incoming"
    names = [
        b"caf\xe9.xml",
        "caffè.xml".encode(),
        b"z.xml",
        *(b"n" * 240 + b"%d.xml" % number for number in range(3)),
    ]
    with server.client(owner="folder") as client:
        client.add("name", "//name", subscriber="names")
        for name in names:
            Path(os.fsdecode(os.fsencode(incoming) + b"/" + name)).write_text("<name/>")
        until(lambda: {path.name for path in incoming.iterdir()} == {".hidden.xml", "done", "broken"})
        labels = [delivery.document["label"] for delivery in client.deliveries("names")]
        assert sorted(labels) == sorted(name.decode("utf-8", "replace") for name in names)


def test_a_name_that_many_files_had_is_counted_on_in_a_few_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1, 200):
        assert _free(tmp_path, "a").name == ("a" if number == 1 else f"a.{number}")
        _free(tmp_path, "a").touch()
    looks: list[Path] = []
    exists = Path.exists

    def look(path: Path) -> bool:
        looks.append(path)
        return exists(path)

    monkeypatch.setattr(Path, "exists", look)
    assert _free(tmp_path, "a").name == "a.200"
    assert len(looks) < 20


class Away:
    """A publisher whose database is locked, or fails, the first times."""

    def __init__(self, *codes: str) -> None:
        self.codes = list(codes)
        self.published: list[str] = []
        self.keys: list[str] = []

    def publish_blocking(self, owner: str, documents: list[Incoming], *, key: str, source: str) -> list[Receipt]:
        if self.codes:
            raise StorageError(self.codes.pop(0), "not now")
        self.published += [document.label for document in documents]
        self.keys.append(key)
        return [Receipt("1", document.label, []) for document in documents]


AWAY = ("storage-away", "storage-full", "storage-failed")


def test_a_file_waits_for_the_database(tmp_path: Path) -> None:
    publisher = Away(*AWAY)
    settings = FolderSettings(path=str(tmp_path), poll_seconds=0.01)
    intake = FolderIntake(settings, publisher, 1000)  # type: ignore[arg-type]
    (tmp_path / "a.xml").write_text("<a/>")
    intake.start()
    until(lambda: publisher.published == ["a.xml"])
    until((tmp_path / "done" / "a.xml").exists)
    intake.close()


def test_a_message_waits_for_the_database(cluster: tuple[Any, str]) -> None:
    producer, servers = cluster
    producer.produce("waiting", b"<a/>", key=b"one")
    assert producer.flush(30) == 0
    publisher = Away(*AWAY)
    settings = Kafka(servers=servers, topics=("waiting",), group="waiting")
    intake = KafkaIntake(settings, publisher)  # type: ignore[arg-type]
    intake.start()
    until(lambda: publisher.published == ["one"], 60)
    intake.close()
    with pytest.raises(xsift.XsiftError, match=r"kafka\.options"):
        KafkaIntake(Kafka(servers=servers, options={"no.such": 1}), publisher).start()  # type: ignore[arg-type]


class Message:
    """A message of a topic, as far as it is looked at."""

    def __init__(self, offset: int, milliseconds: int) -> None:
        self.offset, self.timestamp = (lambda: offset), (lambda: (kafka.TIMESTAMP_CREATE_TIME, milliseconds))
        self.topic, self.partition = (lambda: "topic"), (lambda: 0)
        self.key, self.value = (lambda: None), (lambda: b"<a/>")


def test_a_message_of_a_topic_that_was_made_anew_is_another(cluster: tuple[Any, str]) -> None:
    publisher = Away()
    intake = KafkaIntake(Kafka(servers=cluster[1]), publisher)  # type: ignore[arg-type]
    for milliseconds in (1000, 1000, 2000):
        intake._publish(Message(7, milliseconds))
    first, again, other = publisher.keys
    assert first == again, "what comes twice is published once"
    assert other != first, "it was refused: the key was used for another document"


def test_a_consumer_that_cannot_be_made_or_closed_is_made_again(
    cluster: tuple[Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Consumer:
        def __init__(self) -> None:
            made.append(self)
            if len(made) == 2:
                raise RuntimeError("it cannot be made")

        def subscribe(self, topics: list[str]) -> None: ...

        def consume(self, *arguments: Any) -> list[Any]:
            if len(made) == 3:
                raise RuntimeError("it cannot be read")
            return []

        def close(self) -> None:
            if len(made) == 3:
                raise RuntimeError("nor closed")

    made: list[Consumer] = []
    monkeypatch.setattr(intake_module, "AGAIN_SECONDS", 0.01)
    intake = KafkaIntake(Kafka(servers=cluster[1]), Away())  # type: ignore[arg-type]
    monkeypatch.setattr(intake, "_consumer", Consumer)
    intake.start()
    until(lambda: len(made) == 4)
    intake.close()


def test_a_topic_is_read_and_written(server: RunningServer, cluster: tuple[Any, str]) -> None:
    producer, servers = cluster
    with server.client(owner="kafka") as client:
        client.put_subscriber("topic", kind="kafka", topic="matches")
        client.add("a", "//a", subscriber="topic")
        for number in range(20):
            producer.produce("documents", b"<a>%d</a>" % number, key=b"%d" % number, partition=0)
        producer.produce("documents", b"<broken>", key=b"broken")
        assert producer.flush(30) == 0
        consumer = kafka.Consumer({"bootstrap.servers": servers, "group.id": "test", "auto.offset.reset": "earliest"})
        consumer.subscribe(["matches"])
        received: list[Any] = []
        deadline = time.monotonic() + 60
        while not received or json.loads(received[-1].value())["document"]["label"] != "19":
            assert time.monotonic() < deadline, "the last one did not come"
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                received.append(message)
        consumer.close()
        told = [json.loads(message.value()) for message in received]
        labels = [item["document"]["label"] for item in told]
        assert [label for label in labels if label != "first"] == [str(number) for number in range(20)]
        assert [dict(message.headers())["xsift-delivery-id"].decode() for message in received] == [
            item["id"] for item in told
        ]
        assert {message.key() for message in received} == {b"kafka/topic"}
        until(lambda: client.get_subscriber("topic")["waiting"] == 0)
        assert server.metric("xsift_documents_total") >= 20


def test_kafka_that_is_not_there(tmp_path: Path) -> None:
    with running(tmp_path) as server, server.client() as client:
        with pytest.raises(xsift.ServiceError) as raised:
            client.put_subscriber("topic", kind="kafka", topic="matches")
        assert raised.value.code == "no-kafka"


def make_table(folder: Path) -> SubscriptionTable:
    return SubscriptionTable.create(folder / "table", namespaces={"all": "urn:all"})


def live(table: SubscriptionTable) -> dict[str, str]:
    rows = table.as_of()
    return dict(zip(rows["id"].to_pylist(), rows["xpath"].to_pylist(), strict=True))


class Kept:
    """A store with its writer, without a server."""

    def __init__(self, folder: Path) -> None:
        self.database = Database(f"sqlite:///{folder}/x.db")
        self.writer = Writer(self.database)
        self.writer.start()
        self.live_set = LiveSet(self.database)
        self.live_set.load()
        self.live_set.start()

    def sync(self, table: SubscriptionTable, direction: Any) -> TableSync:
        settings = TableSettings(path="table", direction=direction, owner="team")
        return TableSync(table, settings, self.database, self.writer, self.live_set, NEW)

    def rows(self) -> dict[str, Any]:
        with self.database.connect() as connection:
            return {row.id: row for row in store.page(connection, store.Filter("team"), most=1000)}

    def close(self) -> None:
        self.live_set.close()
        self.writer.close()
        self.database.close()


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    kept = Kept(tmp_path)
    yield kept
    kept.close()


def test_the_server_follows_a_table(kept: Kept, tmp_path: Path) -> None:
    table = make_table(tmp_path)
    sync = kept.sync(table, "follow")
    table.add(
        [{"id": "a", "xpath": "//a"}, {"id": "b", "xpath": "//n:b", "namespaces": {"n": "urn:n"}, "subscriber": "s"}]
    )
    table.add([{"id": "c", "xpath": "//c", "deliver": "document", "labels": '{"l": "v"}', "metadata": '{"m": 1}'}])
    sync.follow()
    rows = kept.rows()
    assert {id: row.xpath for id, row in rows.items()} == {"a": "//a", "b": "//n:b", "c": "//c"}
    assert (rows["b"].namespaces, rows["b"].subscriber_id) == ({"all": "urn:all", "n": "urn:n"}, "s")
    assert (rows["a"].namespaces, rows["a"].subscriber_id) == ({"all": "urn:all"}, "team")
    assert (rows["c"].deliver, rows["c"].labels, rows["c"].metadata) == ("document", {"l": "v"}, {"m": 1})
    until(lambda: kept.live_set.snapshot.size == 3)
    table.remove(["a"])
    table.add([{"id": "b", "xpath": "//changed"}])
    version = kept.live_set.snapshot.version
    sync.follow()
    assert {id: row.xpath for id, row in kept.rows().items()} == {"b": "//changed", "c": "//c"}
    until(lambda: kept.live_set.snapshot.version > version)
    after = kept.rows()
    kept.sync(table, "follow").follow()
    assert {id: row.row for id, row in kept.rows().items()} == {id: row.row for id, row in after.items()}, (
        "nothing is done twice"
    )


def test_a_table_follows_the_server(kept: Kept, tmp_path: Path) -> None:
    table = make_table(tmp_path)
    sync = kept.sync(table, "write")
    put = [
        Subscription("a", "//a", "s", namespaces={"n": "urn:n"}, metadata={"m": [1]}),
        Subscription("b", "//b", "s"),
    ]
    kept.writer.run_blocking(lambda connection: store.put_many(connection, "team", put, "me", NEW))
    kept.writer.run_blocking(
        lambda connection: store.put_many(connection, "others", [Subscription("x", "//x", "s")], "me", NEW)
    )
    sync.write()
    assert live(table) == {"a": "//a", "b": "//b"}
    kept.writer.run_blocking(lambda connection: store.remove_many(connection, "team", ["a"], "me"))
    kept.writer.run_blocking(
        lambda connection: store.put_many(connection, "team", [Subscription("b", "//b2", "s")], "me", NEW)
    )
    sync.write()
    assert live(table) == {"b": "//b2"}
    version = table.version()
    sync.write()
    assert table.version() == version
    other = Kept(kept.database.path.parent / "other") if kept.database.path else None
    assert other is not None
    other.sync(table, "follow").follow()
    assert {id: row.xpath for id, row in other.rows().items()} == {"b": "//b2"}, "the way back is the same"
    other.close()


def test_rows_of_other_peoples_tables() -> None:
    table = pa.table({"id": ["a"], "xpath": ["//a"], "labels": [["urgent", "news"]], "deliver": ["nonsense"]})
    [row] = as_subscriptions(table, "team")
    assert (row.labels, row.deliver, row.subscriber, row.ordered) == (
        {"urgent": "", "news": ""},
        "ids",
        "team",
        False,
    )
