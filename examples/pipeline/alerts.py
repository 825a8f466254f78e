"""News alerts as a declarative pipeline: tables are defined, and Spark keeps them up to date.

spark-pipelines run --spec examples/pipeline/spark-pipeline.yml
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import pipelines as dp
from pyspark.sql import SparkSession

import xsift
from xsift.spark import match_documents

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NEWS = Path(__file__).parent.parent / "data" / "news"
INDEX = "/tmp/xsift-pipeline/index"  # on a cluster: a place that all machines see
FILES = "path string, modificationTime timestamp, length bigint, content binary"

interests = xsift.Subscriptions()
interests.add("alice", "/nitf/body//hl1[contains(., 'Spark')]")
interests.add("bob", "//p[@lede = 'true']")
interests.add("carol", "//hl1")

spark = SparkSession.active()
files = spark.readStream.format("binaryFile").schema(FILES).load(str(NEWS))
documents = files.selectExpr("path AS file", "content AS xml")
# Out here: functions that define a table may not look at columns, and match_documents does. The index lies on
# storage: Spark runs each table in a session of its own, which does not get the files that are shipped with this one.
matched = match_documents(documents, subscriptions=interests, kind="rows", storage=INDEX)


@dp.table
def alerts() -> DataFrame:
    """A row for each match. New files are matched when the pipeline runs again."""
    return matched


@dp.materialized_view
def alerts_by_subscription() -> DataFrame:
    """How many documents each subscription matched."""
    found = spark.read.table("alerts").where("subscription IS NOT NULL")
    return found.groupBy("subscription").count()
