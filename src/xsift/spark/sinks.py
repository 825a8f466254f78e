"""Where the matches of a stream go: functions of (matches, batch number) that write by that number.

A batch that comes again after a crash replaces what it wrote the first time, so nothing is lost and nothing is there
twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as sql

from xsift.errors import XsiftError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["FolderSink", "KafkaSink", "ParquetSink"]


@dataclass(frozen=True)
class ParquetSink:
    """A folder of Parquet with a folder `batch_id=N` for each micro-batch."""

    path: str

    def __call__(self, matches: DataFrame, batch_id: int) -> None:
        """Writes a micro-batch, in place of what it wrote before."""
        matches.write.mode("overwrite").parquet(f"{self.path.rstrip('/')}/batch_id={batch_id}")


@dataclass(frozen=True)
class FolderSink:
    """A folder for each subscriber: `subscription=ID/batch_id=N`; with `buckets` one for each of so many hashes:
    `bucket=B/batch_id=N`.

    An id that would make no good name of a folder (longer than 80 bytes, empty, with a tilde) is shortened there,
    with a hash, so that no two ids share a folder. The files have the whole id in the column `subscriber`.

    It takes output="rows" (with keep_xml=True for whole documents) or output="nodes" (fragments).
    """

    path: str
    buckets: int | None = None

    def __call__(self, matches: DataFrame, batch_id: int) -> None:
        """Writes a micro-batch, in place of what it wrote before."""
        _needs_rows(matches)
        folder = "subscription" if self.buckets is None else "bucket"
        delivered = matches.where("subscription is not null").withColumn("batch_id", sql.lit(batch_id))
        if self.buckets is not None:
            delivered = delivered.withColumn("bucket", sql.pmod(sql.xxhash64("subscription"), sql.lit(self.buckets)))
        else:
            delivered = delivered.withColumn("subscriber", sql.col("subscription"))
            delivered = delivered.withColumn("subscription", _folder_name(sql.col("subscription")))
        (
            delivered.repartition(sql.col(folder))
            .write.mode("overwrite")
            .option("partitionOverwriteMode", "dynamic")
            .partitionBy(folder, "batch_id")
            .parquet(self.path)
        )


def _folder_name(id: Column) -> Column:
    """An id as the name of a folder. (Spark escapes what file systems do not take, in three bytes each.)"""
    odd = (sql.octet_length(id) > 80) | id.contains("~") | (id == "") | id.startswith("__HIVE")
    return sql.when(odd, sql.concat(sql.substring(id, 1, 8), sql.lit("~"), sql.sha2(id, 256))).otherwise(id)


@dataclass(frozen=True)
class KafkaSink:
    """Kafka: each match is a message in the topic that `route` gives for its subscription; the key is the
    subscription.

    Ids are chosen by subscribers, and so is what `route` makes of them: `topics` says which topics may be sent to. A
    match that would go elsewhere goes to `otherwise`, or is an error (code "topic-not-allowed") if that is None.

    The value is the column `value`: "fragment" with output="nodes", or the XML column with output="rows" and
    keep_xml=True; a null is a message without a value. Kafka cannot replace what a crashed batch has sent, so each
    message carries the header `xsift-id`, which is the same when it is sent again.
    """

    servers: str
    route: Callable[[str], str]
    value: str = "fragment"
    settings: Mapping[str, Any] = field(default_factory=dict)
    topics: Collection[str] | None = None
    otherwise: str | None = None

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

    def __call__(self, matches: DataFrame, batch_id: int) -> None:
        """Sends a micro-batch; returns when the brokers have all of it."""
        _needs_rows(matches)
        if self.value not in matches.columns:
            there = ", ".join(map(repr, matches.columns))
            raise XsiftError(
                "missing-column", f"the matches have no column {self.value!r}", hint=f"value= can be one of {there}"
            )
        delivered = matches.where("subscription is not null")
        sent = delivered.mapInArrow(_Send(self, batch_id), "sent bigint")
        sent.agg(sql.sum("sent")).collect()


@dataclass(frozen=True)
class _Send:
    sink: KafkaSink
    batch_id: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from confluent_kafka import KafkaException, Producer

        failures: list[Any] = []
        settings = {"enable.idempotence": True, "linger.ms": 5, **self.sink.settings}
        producer = Producer({"bootstrap.servers": self.sink.servers, **settings})
        count = 0
        for batch in batches:
            for row in batch.to_pylist():
                value = row[self.sink.value]
                payload = value if value is None or isinstance(value, bytes) else str(value).encode()
                self._produce(producer, row, payload, failures)
                count += 1
        producer.flush()
        if failures:
            raise KafkaException(failures[0])
        yield pa.RecordBatch.from_pydict({"sent": pa.array([count], pa.int64())})

    def _produce(self, producer: Any, row: dict[str, Any], payload: bytes | None, failures: list[Any]) -> None:
        identity = repr((self.batch_id, sorted(row.items(), key=lambda item: item[0]))).encode()
        message = {
            "topic": self.sink.topic_of(row["subscription"]),
            "key": row["subscription"].encode(),
            "value": payload,
            "headers": [("xsift-id", blake2b(identity, digest_size=16).hexdigest().encode())],
            "on_delivery": lambda error, _: failures.append(error) if error else None,
        }
        while True:
            try:
                producer.produce(**message)
                producer.poll(0)
                return
            except BufferError:  # the queue is full: wait until some were sent
                producer.poll(0.1)


def _needs_rows(matches: DataFrame) -> None:
    if "subscription" not in matches.columns:
        raise XsiftError("wrong-output", "deliveries need a row a match", hint="output='rows' or output='nodes'")
