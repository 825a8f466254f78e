"""Where the matches of a stream go: functions of (matches, batch number) that write by that number.

A batch that comes again after a crash replaces what it wrote the first time, so nothing is lost and nothing is there
twice. delta_sink.py and kafka_sink.py have those that recognise it instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

from xsift.errors import XsiftError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["FolderSink", "ParquetSink", "needs_free", "needs_rows"]


@dataclass(frozen=True)
class ParquetSink:
    """A folder of Parquet with a folder `batch_id=N` for each micro-batch."""

    path: str

    def check(self, schema: StructType) -> None:
        """Raises an error if matches with these columns cannot be written."""
        needs_free(schema.names, "batch_id")

    def __call__(self, matches: DataFrame, batch_id: int) -> None:
        """Writes a micro-batch, in place of what it wrote before."""
        self.check(matches.schema)
        matches.write.mode("overwrite").parquet(f"{self.path.rstrip('/')}/batch_id={batch_id}")


@dataclass(frozen=True)
class FolderSink:
    """A folder for each subscriber: `subscription=ID/batch_id=N`; with `buckets` one for each of so many hashes:
    `bucket=B/batch_id=N`.

    An id that would make no good name of a folder (longer than 80 bytes, empty, with a tilde, or one that Spark
    would read back as a number or a date) is shortened there, with a hash, so that no two ids share a folder. The
    files have the whole id in the column `subscriber`.

    It takes kind="rows" (with keep_xml=True for whole documents) or kind="nodes" (fragments).
    """

    path: str
    buckets: int | None = None
    matches_only = True  # of a broken document there is nothing to deliver
    _begun: dict[str, int] = field(default_factory=dict, compare=False, repr=False)
    """The last batch that was begun since the driver started."""

    def check(self, schema: StructType) -> None:
        """Raises an error if matches with these columns cannot be written."""
        needs_rows(schema.names)
        needs_free(schema.names, "batch_id", "subscriber" if self.buckets is None else "bucket")

    def __call__(self, matches: DataFrame, batch_id: int) -> None:
        """Writes a micro-batch, in place of what it wrote before."""
        self.check(matches.schema)
        folder = "subscription" if self.buckets is None else "bucket"
        delivered = matches.where("subscription is not null").withColumn("batch_id", sql.lit(batch_id))
        if self.buckets is not None:
            delivered = delivered.withColumn("bucket", sql.pmod(sql.xxhash64("subscription"), sql.lit(self.buckets)))
        else:
            delivered = delivered.withColumn("subscriber", sql.col("subscription"))
            delivered = delivered.withColumn("subscription", _folder_name(sql.col("subscription")))
        spark = matches.sparkSession
        before = set() if batch_id > self._begun.get("batch", batch_id) else self._files(spark, batch_id)
        self._begun["batch"] = batch_id
        (
            delivered.repartition(sql.col(folder))
            .write.mode("overwrite")
            .option("partitionOverwriteMode", "dynamic")
            .partitionBy(folder, "batch_id")
            .parquet(self.path)
        )
        if before:
            self._empty(spark, before & self._files(spark, batch_id), delivered.drop(folder, "batch_id"))

    def _files(self, spark: SparkSession, batch_id: int) -> set[str]:
        """The files of a batch that are there. Only one that may have run before has any."""
        from pyspark.errors import AnalysisException

        try:
            files = spark.read.format("binaryFile").load(f"{self.path.rstrip('/')}/*/batch_id={batch_id}")
            return {row.path for row in files.select("path").collect()}
        except AnalysisException as error:
            if error.getCondition() == "PATH_NOT_FOUND":
                return set()
            raise

    def _empty(self, spark: SparkSession, files: set[str], like: DataFrame) -> None:
        """Empties the folders of files that the batch wrote the first time, and not again: to Spark a folder without
        rows is no folder to overwrite."""
        nothing = like.limit(0).coalesce(1)
        for folder in sorted({file.rpartition("/")[0] for file in files}):
            nothing.write.mode("overwrite").parquet(folder)


def _folder_name(id: Column) -> Column:
    """An id as the name of a folder. (Spark escapes what file systems do not take, in three bytes each.)"""
    odd = (sql.octet_length(id) > 80) | id.contains("~") | (id == "") | id.startswith("__HIVE")
    # What reads as a number, a date or a truth comes back as one.
    typed = id.rlike(r"(?i)^[\s+-]*\.?[0-9]|^[\s+-]*(nan|inf)") | sql.lower(id).isin("true", "false", "null")
    return sql.when(odd | typed, sql.concat(sql.substring(id, 1, 8), sql.lit("~"), sql.sha2(id, 256))).otherwise(id)


def needs_rows(columns: Sequence[str]) -> None:
    """Raises an error unless there is a row for each match."""
    if "subscription" not in columns:
        raise XsiftError("wrong-output", "deliveries need a row for each match", hint="kind='rows' or kind='nodes'")


def needs_free(columns: Sequence[str], *added: str) -> None:
    """Raises an error if there is a column already that a sink adds: one of both would be lost."""
    there = {name.lower(): name for name in columns}
    for name in added:
        if name in there:
            raise XsiftError(
                "column-exists",
                f"the matches have a column {there[name]!r}, and the sink adds one of that name",
                hint="rename or drop it",
            )
