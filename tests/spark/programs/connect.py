"""On a Spark Connect session: batch, shards, nodes, a table with versions, a stream. Prints `ok`."""

from __future__ import annotations

import sys
from typing import Any

from deltalake import DeltaTable

import xsift
from tests.spark.data import expected, finish, interests, news
from xsift.spark import DeltaSink, make_session, match_documents, match_stream, progress_of, register_sources
from xsift.tables import SubscriptionTable


def into_delta(folder: str, stream: Any, table: SubscriptionTable, wanted: dict[int, Any]) -> None:
    """The same stream into a Delta table, twice: the second query finds its batch there."""
    state, now = f"{folder}/delta-checkpoint", {"availableNow": True}
    sink = DeltaSink(f"{folder}/delta", partition_by=["subscription"], query="q")

    def run(number: int) -> Any:
        place = f"{state}{number}"
        options: dict[str, Any] = {"sink": sink, "checkpoint": place, "output": "rows", "trigger": now}
        return finish(lambda: match_stream(stream, subscriptions=table, **options))

    done = progress_of(run(0).lastProgress)
    assert done is not None
    matches = sum(len(ids or ()) for ids, _ in wanted.values())
    assert (done.documents, done.matches, done.version) == (len(wanted), matches, 1)
    run(1)
    found = DeltaTable(f"{folder}/delta").to_pyarrow_table().to_pylist()
    pairs = sorted((row["number"], row["subscription"]) for row in found if row["subscription"])
    assert pairs == sorted((number, id) for number, (ids, _) in wanted.items() for id in ids or ())


def main(folder: str) -> None:
    spark = make_session(remote="local[2]", settings={"spark.sql.shuffle.partitions": "2"})
    rows, documents = interests(60), news(10)
    wanted = dict(enumerate(expected(rows, documents)))
    frame = spark.createDataFrame([(n, bytearray(xml)) for n, xml in enumerate(documents)], "number int, xml binary")
    table = spark.createDataFrame(rows, "id string, xpath string, ordered boolean")
    for shards in (1, 2):
        found = match_documents(frame, subscriptions=table, shards=shards).collect()
        assert {row.number: (row.matches, row.error and row.error.code) for row in found} == wanted
    made = xsift.Subscriptions()
    made.add("p", "//p")
    assert match_documents(frame, subscriptions=made, output="nodes").count() > 0
    versions = SubscriptionTable.create(f"{folder}/table")
    versions.add(rows)
    frame.coalesce(1).write.parquet(f"{folder}/inbox")
    stream = spark.readStream.schema("number int, xml binary").parquet(f"{folder}/inbox")
    out = f"{folder}/out"
    state, now = f"{folder}/checkpoint", {"availableNow": True}
    finish(lambda: match_stream(stream, subscriptions=versions, sink=out, checkpoint=state, trigger=now))
    found = spark.read.parquet(out).collect()
    assert {row.number: (row.matches, row.error and row.error.code) for row in found} == wanted
    into_delta(folder, stream, versions, wanted)
    register_sources(spark)
    with open(f"{folder}/dump.xml", "w") as file:
        file.write("<d><r>1</r><r/></d>")
    assert spark.read.format("xsift").option("record", "r").load(f"{folder}/dump.xml").count() == 2
    print("ok", flush=True)
    spark.stop()


main(sys.argv[1])
