"""A Kafka stream: orders from one topic, each matched fragment into its subscriber's topic.

    python examples/kafka_stream.py [SERVERS]

Without arguments it runs on the mock cluster that librdkafka has inside, so that no server is needed.
"""

from __future__ import annotations

import sys
import tempfile
from typing import Any

from confluent_kafka import Producer

import xsift
from xsift.spark import KafkaSink, make_session, match_stream, register_sources

SECONDS = 300


def topic_of(subscription: str) -> str:
    return f"alerts-{subscription}"


def connect(servers: str | None) -> tuple[Any, str]:
    """A producer and its servers; without servers the producer is a cluster itself."""
    if servers:
        return Producer({"bootstrap.servers": servers}), servers
    producer = Producer({"test.mock.num.brokers": 1})
    brokers = producer.list_topics(timeout=30).brokers.values()
    return producer, ",".join(f"{broker.host}:{broker.port}" for broker in brokers)


def main(servers: str | None, folder: str) -> None:
    producer, servers = connect(servers)
    for number in range(10):
        producer.produce("orders", f"<order><item sku='{number % 3}'>{number}</item></order>")
    producer.produce("orders", "<order>cut o")
    producer.flush(30)

    spark = make_session("local[2]")
    register_sources(spark)
    subscriptions = xsift.Subscriptions()
    subscriptions.add("first-shelf", "//item[@sku = '0']")
    orders = spark.readStream.format("xsift-kafka").option("servers", servers).option("topics", "orders").load()
    match_stream(
        orders,
        subscriptions=subscriptions,
        xml="value",
        kind="nodes",
        sink=KafkaSink(servers, topic_of),
        dead_letters=f"{folder}/broken",
        checkpoint=f"{folder}/checkpoint",
        trigger={"availableNow": True},  # what is there now; without it the stream goes on
    ).awaitTermination(SECONDS)
    alerts = spark.read.format("xsift-kafka").option("servers", servers).option("topics", "alerts-first-shelf").load()
    for row in alerts.orderBy("value").collect():
        print(f"{row.topic}: {bytes(row.value).decode()}")
    for row in spark.read.parquet(f"{folder}/broken").collect():
        print(f"broken: {bytes(row.value).decode()}: {row.error.message}")
    spark.stop()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="kafka-stream-") as made:
        main(sys.argv[1] if sys.argv[1:] else None, made)
