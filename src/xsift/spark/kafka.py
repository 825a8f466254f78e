"""The data source `xsift-kafka`: Kafka through confluent-kafka, where Spark's own connector is not installed.

    register_sources(spark)
    spark.readStream.format("xsift-kafka").option("servers", "localhost:9092").option("topics", "news").load()

Options: `servers`, `topics` (comma-separated), `startingOffsets` (earliest, which is the default, or latest),
`maxOffsetsPerTrigger`, `failOnDataLoss` (true), and `kafka.NAME` for any setting of librdkafka. Columns are those of
Spark's connector. Offsets are kept by Spark in the checkpoint, not by Kafka; no consumer group takes part, so tasks
can be repeated.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from xsift.errors import XsiftError
from xsift.spark.requirements import require_kafka

__all__ = ["KafkaSource"]

TIMEOUT_SECONDS = 30.0
POLL_SECONDS = 0.2
BATCH_MESSAGES = 1000
SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
    ]
)

Offsets = dict[str, int]
"""The next offset to read of each `topic:partition`."""


@dataclass
class Range(InputPartition):
    """Messages of one partition of a topic, from `begin` up to but not including `end`."""

    topic: str
    partition: int
    begin: int
    end: int

    def __post_init__(self) -> None:
        super().__init__(None)


@dataclass(frozen=True)
class KafkaSettings:
    """The options of a read."""

    topics: tuple[str, ...]
    latest: bool
    limit: int | None
    fail_on_data_loss: bool
    client: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, options: Mapping[str, str]) -> KafkaSettings:
        """The options, checked."""
        for name in ("servers", "topics"):
            if not options.get(name):
                raise XsiftError(
                    "missing-option", f"the data source xsift-kafka needs {name!r}", hint=f".option({name!r}, …)"
                )
        starting = options.get("startingOffsets") or "earliest"
        if starting not in ("earliest", "latest"):
            raise XsiftError("bad-option", f"startingOffsets is {starting!r}", hint="earliest or latest")
        limit = options.get("maxOffsetsPerTrigger")
        if limit is not None and not (limit.isdigit() and int(limit)):
            raise XsiftError("bad-option", f"maxOffsetsPerTrigger is {limit!r}", hint="a whole number from 1")
        client = {name[6:]: value for name, value in options.items() if name.lower().startswith("kafka.")}
        return cls(
            tuple(topic.strip() for topic in options["topics"].split(",")),
            starting == "latest",
            int(limit) if limit else None,
            (options.get("failOnDataLoss") or "true").lower() != "false",
            tuple({**client, "bootstrap.servers": options["servers"]}.items()),
        )


class KafkaSource(DataSource):
    """`spark.readStream.format("xsift-kafka")`, and `spark.read`: topics of Kafka, through confluent-kafka.

    Options: `servers`, `topics` (comma-separated), `startingOffsets`, `maxOffsetsPerTrigger`, `failOnDataLoss`, and
    `kafka.NAME` for any setting of librdkafka. Columns are those of Spark's own connector. `register_sources` makes
    it known to a session.
    """

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "xsift-kafka"

    def schema(self) -> str:
        """The columns of every read."""
        return "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp"

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reads all that is there now."""
        return KafkaReader(KafkaSettings.of(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Reads what arrives."""
        return KafkaStreamReader(KafkaSettings.of(self.options))


def _consumer(settings: KafkaSettings) -> Any:
    from confluent_kafka import Consumer

    fixed = {
        "group.id": "xsift",
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "enable.partition.eof": True,
    }
    return Consumer({**fixed, **dict(settings.client)})


def _watermarks(settings: KafkaSettings) -> dict[str, tuple[int, int]]:
    """The first offset and the one after the last of each partition."""
    require_kafka("the data source")
    from confluent_kafka import TopicPartition

    found = {}
    with closing(_consumer(settings)) as consumer:
        for topic in settings.topics:
            described = consumer.list_topics(topic, timeout=TIMEOUT_SECONDS).topics[topic]
            if described.error is not None or not described.partitions:
                raise XsiftError(
                    "unknown-topic",
                    f"the topic {topic!r} cannot be read: {described.error or 'it has no partitions'}",
                )
            for partition in described.partitions:
                marks = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=TIMEOUT_SECONDS)
                found[f"{topic}:{partition}"] = marks
    return found


def _ranges(begin: Mapping[str, int], end: Mapping[str, int]) -> list[Range]:
    ranges = []
    for place, stop in end.items():
        topic, _, partition = place.rpartition(":")
        if stop > begin.get(place, 0):
            ranges.append(Range(topic, int(partition), begin.get(place, 0), stop))
    return ranges


def _read(part: Range, settings: KafkaSettings) -> Iterator[pa.RecordBatch]:
    require_kafka("the data source")
    from confluent_kafka import KafkaError, KafkaException, TopicPartition

    with closing(_consumer(settings)) as consumer:
        first, _ = consumer.get_watermark_offsets(TopicPartition(part.topic, part.partition), timeout=TIMEOUT_SECONDS)
        begin = part.begin
        if first > begin:
            if settings.fail_on_data_loss:
                raise XsiftError(
                    "data-loss",
                    f"{part.topic}:{part.partition} begins at offset {first}; offset {begin} is gone",
                    hint="failOnDataLoss=false goes on without what is gone",
                )
            begin = first
        consumer.assign([TopicPartition(part.topic, part.partition, begin)])
        done = begin >= part.end
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not done:
            # consume() waits until it has as many as asked for, or the timeout is over: it must be short.
            messages = consumer.consume(min(BATCH_MESSAGES, part.end - begin), timeout=POLL_SECONDS)
            if messages:
                deadline = time.monotonic() + TIMEOUT_SECONDS
            elif time.monotonic() > deadline:
                place = f"{part.topic}:{part.partition}"
                raise XsiftError("kafka-timeout", f"{place}: nothing came for {TIMEOUT_SECONDS:.0f} s")
            taken = []
            for message in messages:
                error = message.error()
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    done = done or message.offset() >= part.end
                elif error is not None:
                    raise KafkaException(error)
                elif message.offset() < part.end:
                    taken.append(message)
                done = done or (error is None and message.offset() >= part.end - 1)
            if taken:
                begin = taken[-1].offset() + 1
                yield _batch(taken)


def _batch(messages: Sequence[Any]) -> pa.RecordBatch:
    columns = [
        [message.key() for message in messages],
        [message.value() for message in messages],
        [message.topic() for message in messages],
        [message.partition() for message in messages],
        [message.offset() for message in messages],
        [message.timestamp()[1] * 1000 for message in messages],
    ]
    return pa.RecordBatch.from_arrays(
        [pa.array(values, kind.type) for values, kind in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


class KafkaReader(DataSourceReader):
    """The batch reader."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings

    def partitions(self) -> Sequence[InputPartition]:
        """All messages there are, a range for each partition."""
        marks = _watermarks(self._settings)
        return _ranges(
            {place: first for place, (first, _) in marks.items()}, {place: end for place, (_, end) in marks.items()}
        )

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The messages of a range, in Arrow batches."""
        assert isinstance(partition, Range)
        return _read(partition, self._settings)


class KafkaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The streaming reader."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._target: Offsets | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Where a new query begins."""
        marks = _watermarks(self._settings)
        return _as_offset({place: end if self._settings.latest else first for place, (first, end) in marks.items()})

    def getDefaultReadLimit(self) -> ReadLimit:
        """As many messages a micro-batch as maxOffsetsPerTrigger says."""
        return ReadMaxRows(self._settings.limit) if self._settings.limit else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """The messages there are now are all that this run reads."""
        self._target = {place: end for place, (_, end) in _watermarks(self._settings).items()}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The end of what is there; with a limit, a share of it that is as large for each partition as what waits
        there."""
        end = self._target
        if end is None:
            end = {place: stop for place, (_, stop) in _watermarks(self._settings).items()}
        begin = self._begins(_from_offset(start), end)
        waiting = {place: stop - begin.get(place, 0) for place, stop in end.items()}
        total = sum(waiting.values())
        if isinstance(limit, ReadMaxRows) and total > limit.max_rows:
            return _as_offset(_limited(begin, waiting, limit.max_rows))
        return _as_offset({**begin, **end})

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The messages between two offsets, a range for each partition."""
        stops = _from_offset(end)
        begins = {place: 0 if stops.get(place, at) < at else at for place, at in _from_offset(start).items()}
        return _ranges(begins, stops)

    def _begins(self, begin: Offsets, end: Offsets) -> Offsets:
        """Where to go on. A partition that ends before that is another one of the same name: to wait until it has as
        many messages would lose them all."""
        anew = [place for place, stop in end.items() if stop < begin.get(place, 0)]
        if anew and self._settings.fail_on_data_loss:
            place = anew[0]
            raise XsiftError(
                "data-loss",
                f"{place} ends at offset {end[place]}, and was read up to {begin[place]}: it was made anew",
                hint="failOnDataLoss=false reads it from its beginning",
            )
        return {**begin, **dict.fromkeys(anew, 0)}

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The messages of a range, in Arrow batches."""
        assert isinstance(partition, Range)
        return _read(partition, self._settings)


def _limited(begin: Offsets, waiting: Offsets, limit: int) -> Offsets:
    """Offsets that `limit` messages reach: shares in proportion to what waits, what rounding leaves to the first that
    can take it."""
    total = sum(waiting.values())
    shares = {place: count * limit // total for place, count in waiting.items()}
    left = limit - sum(shares.values())
    for place, count in waiting.items():
        more = min(left, count - shares[place])
        shares[place] += more
        left -= more
    return {**begin, **{place: begin.get(place, 0) + share for place, share in shares.items()}}


def _as_offset(offsets: Offsets) -> dict[str, Any]:
    return {"offsets": json.dumps(offsets, sort_keys=True)}


def _from_offset(offset: Mapping[str, Any]) -> Offsets:
    return {str(place): int(value) for place, value in json.loads(offset["offsets"]).items()}
