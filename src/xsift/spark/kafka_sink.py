"""KafkaSink: a message for each match.

Kafka cannot replace what a batch has sent before it crashed. Without transactions each message carries a header that
is the same when it is sent again, by which consumers can tell. With transactions each of a fixed number of parts of a
micro-batch is one transaction, which also writes the batch's number into a topic of ours. A part whose number is
there already is not sent again. So a consumer with isolation.level=read_committed sees each match once.

The parts must be the same when a batch comes again: a row belongs to one by a hash of what it says, whatever tasks
Spark makes of it. Whoever begins a part fences off those that began it before (`transactional.id`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as sql

from xsift.errors import XsiftError
from xsift.spark.columns import ERROR_SCHEMA
from xsift.spark.requirements import require_kafka
from xsift.spark.sinks import needs_rows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

__all__ = ["KafkaSink"]

TIMEOUT_SECONDS = 60.0
CREATE_SECONDS = 15.0
LOOK_BACK = 1000  # offsets of the progress topic that are read first to find the last batch
PART = "__xsift_part"


@dataclass(frozen=True)
class KafkaSink:
    """Kafka: each match is a message in the topic that `route` gives for its subscription; the key is the
    subscription.

    Ids are chosen by subscribers, and so is what `route` makes of them: `topics` says which topics may be sent to. A
    match that would go elsewhere goes to `otherwise`, or is an error (code "topic-not-allowed") if that is None.

    The value is the column `value`: "fragment" with kind="nodes", or the XML column with kind="rows" and
    keep_xml=True; a null is a message without a value. Each message carries the header `xsift-id`, which is the same
    when it is sent again. `settings` are those of librdkafka.

    With `transactions` each micro-batch is sent exactly once, to consumers that read with
    isolation.level=read_committed. It is sent in `parts` transactions, whose progress is kept in the topic
    `progress_topic` (made if it is not there; do not change `parts` while a batch is to be run again). `query` names
    whoever sends; match_stream gives the id of its query, which a restart keeps.
    """

    servers: str
    route: Callable[[str], str]
    value: str = "fragment"
    settings: Mapping[str, Any] = field(default_factory=dict)
    topics: Collection[str] | None = None
    otherwise: str | None = None
    transactions: bool = False
    parts: int = 4
    progress_topic: str = "xsift-progress"
    query: str | None = None
    matches_only = True  # of a broken document there is nothing to send
    _state: dict[str, bool] = field(default_factory=dict, compare=False, repr=False)
    """Whether the topic of the progress was seen since the driver started."""

    def topic_of(self, subscription: str) -> str:
        """The topic of a subscription's matches."""
        topic = self.route(subscription)
        if self.topics is None or topic in self.topics:
            return topic
        if self.otherwise is None:
            raise XsiftError(
                "topic-not-allowed",
                f"the matches of subscription {subscription!r} would go to the topic {topic!r}",
                hint="add it to topics=, or say with otherwise= where such matches go",
            )
        return self.otherwise

    def for_query(self, id: str) -> KafkaSink:
        """This sink for the query with an id."""
        return self if self.query else replace(self, query=id, _state={})

    def check(self, schema: StructType) -> None:
        """Raises an error if matches with these columns cannot be sent."""
        needs_rows(schema.names)
        if self.value not in schema.names:
            there = ", ".join(map(repr, schema.names))
            raise XsiftError(
                "missing-column", f"the matches have no column {self.value!r}", hint=f"value= can be one of {there}"
            )

    def __call__(self, matches: DataFrame, batch_id: int) -> None:
        """Sends a micro-batch; returns when the brokers have all of it."""
        self.check(matches.schema)
        if self.transactions and not self.query:
            raise XsiftError("no-query", "the sink does not know for which query it sends", hint="KafkaSink(query=…)")
        names = tuple(matches.columns)
        if not self.transactions:  # equal matches in one task, where they are counted
            delivered, said = self._delivered(matches)
            sent = delivered.repartition(said).mapInArrow(_Send(self, names, batch_id), "sent bigint")
            sent.agg(sql.sum("sent")).collect()
            return
        if not self._state.get("has progress"):
            self._make_progress_topic()
            self._state["has progress"] = True
        sent = self._parted(matches).mapInArrow(_SendParts(self, names, batch_id), "sent bigint")
        sent.agg(sql.sum("sent")).collect()

    def _delivered(self, matches: DataFrame) -> tuple[DataFrame, Column]:
        """What is sent, its columns under names that PySpark finds (it looks for `a.b` inside of `a`); and a hash
        that equal matches have in common."""
        plain = {name: f"c{place}" for place, name in enumerate(matches.columns)}
        delivered = matches.toDF(*plain.values()).where(f"{plain['subscription']} is not null")
        errors = [field.name for field in matches.schema.fields if field.dataType == ERROR_SCHEMA]
        if errors:  # of a subscription that could not be decided: nothing was found that could be sent
            delivered = delivered.where(f"{plain[errors[-1]]} is null")
        said = [plain[name] for name in ("subscription", "path", "element", self.value) if name in plain]
        return delivered, sql.xxhash64(*said)

    def _parted(self, matches: DataFrame) -> DataFrame:
        """What is sent, that of a part in one task."""
        delivered, said = self._delivered(matches)
        part = sql.pmod(said, sql.lit(self.parts)).cast("int")
        return delivered.withColumn(PART, part).repartitionById(self.parts, sql.col(PART))

    def client(self, **more: Any) -> dict[str, Any]:
        """The settings of a client of librdkafka."""
        return {"bootstrap.servers": self.servers, **self.settings, **more}

    def _make_progress_topic(self) -> None:
        require_kafka("KafkaSink")
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

        admin = AdminClient(self.client())
        known = admin.list_topics(timeout=TIMEOUT_SECONDS).topics.get(self.progress_topic)
        if known is None or not known.partitions:
            settings = {"cleanup.policy": "compact"}
            topic = NewTopic(self.progress_topic, self.parts, -1, config=settings)
            made = admin.create_topics([topic], request_timeout=CREATE_SECONDS)
            try:
                made[self.progress_topic].result(TIMEOUT_SECONDS)
            except KafkaException as error:  # brokers that make topics by themselves, or another driver was first
                if self._partitions(admin) < 1:
                    raise XsiftError(
                        "no-topic", f"the topic {self.progress_topic!r} cannot be made: {error}", hint="make it"
                    ) from error
        count = self._partitions(admin)
        if count < self.parts:
            raise XsiftError(
                "too-few-partitions",
                f"the topic {self.progress_topic!r} has {count} partitions, and needs one for each part",
                hint=f"KafkaSink(parts={count}), or add partitions",
            )

    def _partitions(self, admin: Any) -> int:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while True:
            topics = admin.list_topics(self.progress_topic, timeout=TIMEOUT_SECONDS).topics
            count = len(topics[self.progress_topic].partitions)
            if count or time.monotonic() > deadline:
                return count
            time.sleep(0.2)


class _Sender:
    """Sends the rows of Arrow batches through a producer."""

    def __init__(self, sink: KafkaSink, batch_id: int, producer: Any) -> None:
        self._sink = sink
        self._batch_id = batch_id
        self._producer = producer
        self._failures: list[Any] = []
        self._equal: dict[bytes, int] = {}
        self.count = 0

    def send(self, batch: pa.RecordBatch) -> None:
        for row in batch.to_pylist():
            row.pop(PART, None)
            value = row[self._sink.value]
            payload = value if value is None or isinstance(value, bytes) else str(value).encode()
            identity = self._identity(row)
            self.produce(
                topic=self._sink.topic_of(row["subscription"]),
                key=row["subscription"].encode(),
                value=payload,
                headers=[("xsift-id", identity.hex().encode())],
            )
            self.count += 1

    def _identity(self, row: Mapping[str, Any]) -> bytes:
        """What is the same when a match is sent again, and for no other of its batch: what it says, and if others
        say the same, how many did before it."""
        said = repr((self._batch_id, sorted(row.items(), key=lambda item: item[0]))).encode()
        identity = blake2b(said, digest_size=16).digest()
        before = self._equal.get(identity, 0)
        self._equal[identity] = before + 1
        return blake2b(b"%d %b" % (before, said), digest_size=16).digest() if before else identity

    def produce(self, **message: Any) -> None:
        while True:
            try:
                self._producer.produce(**message, on_delivery=self._delivered)
                self._producer.poll(0)
                return
            except BufferError:  # the queue is full: wait until some were sent
                self._producer.poll(0.1)

    def _delivered(self, error: Any, _: Any) -> None:
        if error:
            self._failures.append(error)

    def finish(self) -> None:
        """Returns when the brokers have all."""
        from confluent_kafka import KafkaException

        self._producer.flush()
        if self._failures:
            raise KafkaException(self._failures[0])


@dataclass(frozen=True)
class _Send:
    sink: KafkaSink
    names: tuple[str, ...]
    """The names of the columns."""
    batch_id: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        require_kafka("KafkaSink")
        from confluent_kafka import Producer

        settings = {"enable.idempotence": True, "linger.ms": 5}
        sender = _Sender(self.sink, self.batch_id, Producer({**settings, **self.sink.client()}))
        for batch in batches:
            sender.send(batch.rename_columns(list(self.names)))
        sender.finish()
        yield _sent(sender.count)


@dataclass(frozen=True)
class _SendParts:
    """Sends the parts that come, each as a transaction, unless it was sent before. That a task is a first
    attempt says nothing: of a stage that is run again, because an executor died, all tasks are."""

    sink: KafkaSink
    names: tuple[str, ...]
    batch_id: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        transactions: dict[int, _Transaction | None] = {}
        count = 0
        for each in batches:
            batch = each.rename_columns([*self.names, PART])
            numbers = batch[PART].to_numpy()
            for part in np.unique(numbers).tolist():
                if part not in transactions:
                    transactions[part] = _begin(self.sink, self.batch_id, part)
                transaction = transactions[part]
                if transaction is not None:
                    transaction.sender.send(batch.filter(pa.array(numbers == part)))
        for transaction in transactions.values():
            if transaction is not None:
                transaction.commit()
                count += transaction.sender.count
        yield _sent(count)


class _Transaction:
    """A transaction that has begun."""

    def __init__(self, sink: KafkaSink, batch_id: int, part: int, producer: Any) -> None:
        self._sink, self._batch_id, self._part, self._producer = sink, batch_id, part, producer
        self.sender = _Sender(sink, batch_id, producer)

    def commit(self) -> None:
        """Sends the batch's number with the rest, and commits both. What goes wrong aborts both."""
        key, value = f"{self._sink.query}".encode(), str(self._batch_id).encode()
        try:
            self.sender.produce(topic=self._sink.progress_topic, partition=self._part, key=key, value=value)
            self.sender.finish()
            self._producer.commit_transaction(TIMEOUT_SECONDS)
        except BaseException:
            self._producer.abort_transaction(TIMEOUT_SECONDS)
            raise


def _begin(sink: KafkaSink, batch_id: int, part: int) -> _Transaction | None:
    """Begins the transaction of a part; None if it was committed before."""
    require_kafka("KafkaSink")
    from confluent_kafka import Producer

    producer = Producer(sink.client(**{"transactional.id": f"xsift-{sink.query}-{part}", "linger.ms": 5}))
    # First of all: whoever may still be at this part is fenced off, and what it began is aborted or committed.
    producer.init_transactions(TIMEOUT_SECONDS)
    if _last_batch(sink, part) >= batch_id:
        return None
    producer.begin_transaction()
    return _Transaction(sink, batch_id, part, producer)


def _last_batch(sink: KafkaSink, part: int) -> int:
    """The number of the last batch of which a part was committed; -1 if there is none."""
    from confluent_kafka import Consumer, TopicPartition

    settings = {
        "group.id": f"xsift-{sink.query}",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
    }
    with closing(Consumer(sink.client(**settings))) as consumer:
        place = TopicPartition(sink.progress_topic, part)
        low, high = consumer.get_watermark_offsets(place, timeout=TIMEOUT_SECONDS)
        look_back = LOOK_BACK
        while True:
            begin = max(low, high - look_back)
            last = _last_batch_from(consumer, sink, part, begin) if high > low else -1
            if last >= 0 or begin <= low:
                return last
            look_back *= 10  # other queries, who write there too, were busy


def _last_batch_from(consumer: Any, sink: KafkaSink, part: int, begin: int) -> int:
    """The number of the last batch that was noted from an offset on; -1 if there is none."""
    from confluent_kafka import KafkaError, KafkaException, TopicPartition

    last = -1
    consumer.assign([TopicPartition(sink.progress_topic, part, begin)])
    while True:
        message = consumer.poll(TIMEOUT_SECONDS)
        if message is None:
            raise XsiftError("kafka-timeout", f"{sink.progress_topic}:{part} cannot be read")
        error = message.error()
        if error is not None and error.code() == KafkaError._PARTITION_EOF:
            return last
        if error is not None:
            raise KafkaException(error)
        if (message.key() or b"").decode() == sink.query:
            last = max(last, int(message.value() or -1))


def _sent(count: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"sent": pa.array([count], pa.int64())})
