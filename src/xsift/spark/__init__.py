"""xsift on Spark: batches and streams of more documents than one process can take, against more subscriptions than
one worker holds.

    documents.transform(match_documents, subscriptions=table, xml="xml")

- `batch.py`: match_documents; `columns.py` what it reads and gives. `compiled.py`: subscriptions, compiled and
  shipped. `worker.py`: what runs in the Python workers; `answers.py` the Arrow batches that they give.
- `compile_job.py`: large sets, compiled on executors: `census.py` what they are like, `building.py` into files on
  storage, `subscribers.py` who subscribed to each expression, `planning.py` which part an expression belongs to.
- `spread.py`: sets in shards; `routing.py` which of them a document must visit. `memory.py`: what workers may hold.
- `functions.py`: the same in SQL.
- `stream.py`: match_stream. `live.py` follows a subscription table (xsift.tables), `indexes.py` has what it compiled
  where workers find it, `notes.py` which version each micro-batch used, `progress.py` what it did.
- `sinks.py`, `delta_sink.py`, `kafka_sink.py`: where matches go.
- `source.py`: the data source for large XML; `places.py` finds and opens files. `kafka.py`: the data source
  for Kafka. `files.py`: files as documents, for the command line.
- `session.py`: a session with the settings that suit xsift. `saving.py`: matchers in files, on their way to workers.
  `requirements.py`: whether PySpark and confluent-kafka are there.

Nothing here uses the JVM directly, so classic sessions and Spark Connect both work. Importing it starts nothing, and
loads nothing: names are looked up when they are asked for, because every Python worker imports this package too, and
what a worker loads counts against its memory.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from xsift.spark.requirements import require_pyspark

require_pyspark()

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xsift.spark.batch import match_documents
    from xsift.spark.columns import match_schema
    from xsift.spark.compiled import Compiled, compile_subscriptions
    from xsift.spark.delta_sink import DeltaSink
    from xsift.spark.functions import register_functions
    from xsift.spark.kafka import KafkaSource
    from xsift.spark.kafka_sink import KafkaSink
    from xsift.spark.notes import versions_used
    from xsift.spark.progress import BatchProgress, progress_of
    from xsift.spark.session import make_session
    from xsift.spark.sinks import FolderSink, ParquetSink
    from xsift.spark.source import RecordSource, read_records
    from xsift.spark.stream import match_stream

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
    "match_schema",
    "match_stream",
    "progress_of",
    "read_records",
    "register_functions",
    "register_sources",
    "versions_used",
]

_PLACES = {
    "match_documents": "batch",
    "match_schema": "columns",
    "Compiled": "compiled",
    "compile_subscriptions": "compiled",
    "DeltaSink": "delta_sink",
    "register_functions": "functions",
    "KafkaSource": "kafka",
    "KafkaSink": "kafka_sink",
    "versions_used": "notes",
    "BatchProgress": "progress",
    "progress_of": "progress",
    "make_session": "session",
    "FolderSink": "sinks",
    "ParquetSink": "sinks",
    "RecordSource": "source",
    "read_records": "source",
    "match_stream": "stream",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def register_sources(spark: SparkSession) -> None:
    """Makes the data sources of xsift known to a session: the formats `xsift` and `xsift-kafka`."""
    from xsift.spark.kafka import KafkaSource
    from xsift.spark.source import RecordSource

    for source in (RecordSource, KafkaSource):
        spark.dataSource.register(source)
