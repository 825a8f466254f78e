"""The driver of a stream that the test kills and starts again. With `finish` it ends when everything was read."""

from __future__ import annotations

import sys

from xsift.spark import FolderSink, make_session, match_stream
from xsift.tables import SubscriptionTable


def main(folder: str, finish: bool) -> None:
    spark = make_session("local[2]", settings={"spark.sql.shuffle.partitions": "2"})
    stream = (
        spark.readStream.schema("number int, xml binary").option("maxFilesPerTrigger", 1).parquet(f"{folder}/inbox")
    )
    query = match_stream(
        stream,
        subscriptions=SubscriptionTable(f"{folder}/table"),
        sink=FolderSink(f"{folder}/out", buckets=2),
        dead_letters=f"{folder}/dead",
        checkpoint=f"{folder}/checkpoint",
        output="rows",
        trigger={"availableNow": True} if finish else {"processingTime": "0 seconds"},
    )
    query.awaitTermination()
    assert query.exception() is None


main(sys.argv[1], sys.argv[2:] == ["finish"])
