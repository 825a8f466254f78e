"""The driver of a stream that the test kills and starts again. It writes to every sink. With `finish` it ends when
everything was read."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from xsift.spark import DeltaSink, FolderSink, KafkaSink, ParquetSink, make_session, match_stream
from xsift.tables import SubscriptionTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def route(_: str) -> str:
    return "matches"


def route_transacted(_: str) -> str:
    return "transacted"


class EverySink:
    """One sink after the other, each driver in another order, so that a kill can come in the middle of any."""

    def __init__(self, folder: str, servers: str, query: str = "") -> None:
        self.folder, self.servers = folder, servers
        self.sinks: list[Callable[[DataFrame, int], None]] = [
            DeltaSink(f"{folder}/delta", partition_by=["subscription"], compact_every=3, query=query),
            ParquetSink(f"{folder}/parquet"),
            FolderSink(f"{folder}/folder", buckets=2),
            KafkaSink(servers, route, value="number"),
            KafkaSink(servers, route_transacted, value="number", transactions=True, parts=2, query=query),
        ]
        random.shuffle(self.sinks)

    def for_query(self, id: str) -> EverySink:
        return EverySink(self.folder, self.servers, id)

    def __call__(self, matches: DataFrame, batch_id: int) -> None:
        for sink in self.sinks:
            sink(matches, batch_id)


def main(folder: str, servers: str, finish: bool) -> None:
    spark = make_session("local[2]", settings={"spark.sql.shuffle.partitions": "2"})
    stream = (
        spark.readStream.schema("number int, xml binary").option("maxFilesPerTrigger", 1).parquet(f"{folder}/inbox")
    )
    query = match_stream(
        stream,
        subscriptions=SubscriptionTable(f"{folder}/table"),
        sink=EverySink(folder, servers),
        dead_letters=f"{folder}/dead",
        checkpoint=f"{folder}/checkpoint",
        output="rows",
        trigger={"availableNow": True} if finish else {"processingTime": "0 seconds"},
    )
    query.awaitTermination()
    assert query.exception() is None


main(sys.argv[1], sys.argv[2], sys.argv[3:] == ["finish"])
