"""xsift on Spark: batches and streams of more documents than one process can take, against more subscriptions than
one worker holds.

    documents.transform(match_documents, subscriptions=table, xml="xml")

- `batch.py`: match_documents. `compiled.py`: subscriptions, compiled and shipped. `worker.py`: what runs in the
  Python workers.
- `stream.py`: match_stream. `live.py` follows a subscription table (xsift.tables), `indexes.py` has what it compiled
  where workers find it, `notes.py` which version each micro-batch used, `progress.py` what it did.
- `sinks.py`, `delta_sink.py`, `kafka_sink.py`: where matches go.
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
from xsift.spark.delta_sink import DeltaSink  # noqa: E402
from xsift.spark.kafka import KafkaSource  # noqa: E402
from xsift.spark.kafka_sink import KafkaSink  # noqa: E402
from xsift.spark.notes import versions_used  # noqa: E402
from xsift.spark.progress import BatchProgress, progress_of  # noqa: E402
from xsift.spark.session import make_session  # noqa: E402
from xsift.spark.sinks import FolderSink, ParquetSink  # noqa: E402
from xsift.spark.source import RecordSource  # noqa: E402
from xsift.spark.stream import match_stream  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "BatchProgress",
    "Compiled",
    "DeltaSink",
    "FolderSink",
    "KafkaSink",
    "KafkaSource",
    "ParquetSink",
    "RecordSource",
    "compile_subscriptions",
    "make_session",
    "match_documents",
    "match_stream",
    "progress_of",
    "register_sources",
    "versions_used",
]


def register_sources(spark: SparkSession) -> None:
    """Makes the data sources of xsift known to a session: the formats `xsift` and `xsift-kafka`."""
    for source in (RecordSource, KafkaSource):
        spark.dataSource.register(source)
