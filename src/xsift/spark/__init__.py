"""xsift on Spark: batches and streams of more documents than one process can take, against more subscriptions than
one worker holds.

    documents.transform(match_documents, subscriptions=table, xml="xml")

- `batch.py`: match_documents. `compiled.py`: subscriptions, compiled and shipped. `worker.py`: what runs in the
  Python workers.
- `stream.py`: match_stream. `table.py`: subscriptions with versions; `live.py` follows them. `sinks.py`: where
  matches go.
- `source.py`: the data source for large XML; `records.py` cuts it, `places.py` opens it. `kafka.py`: the data source
  for Kafka.

Nothing here uses the JVM directly, so classic sessions and Spark Connect both work. Importing it starts nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xsift.spark.requirements import require_pyspark

require_pyspark()

from xsift.spark.batch import match_documents  # noqa: E402
from xsift.spark.compiled import Compiled, compile_subscriptions  # noqa: E402
from xsift.spark.kafka import KafkaSource  # noqa: E402
from xsift.spark.session import make_session  # noqa: E402
from xsift.spark.sinks import FolderSink, KafkaSink, ParquetSink  # noqa: E402
from xsift.spark.source import RecordSource  # noqa: E402
from xsift.spark.stream import match_stream, versions_used  # noqa: E402
from xsift.spark.table import SubscriptionTable  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "Compiled",
    "FolderSink",
    "KafkaSink",
    "KafkaSource",
    "ParquetSink",
    "RecordSource",
    "SubscriptionTable",
    "compile_subscriptions",
    "make_session",
    "match_documents",
    "match_stream",
    "register_sources",
    "versions_used",
]


def register_sources(spark: SparkSession) -> None:
    """Makes the data sources of xsift known to a session: the formats `xsift` and `xsift-kafka`."""
    for source in (RecordSource, KafkaSource):
        spark.dataSource.register(source)
