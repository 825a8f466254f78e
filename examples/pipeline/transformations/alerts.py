"""News, and which alerts each item sets off: two materialized views of a Spark Declarative Pipeline."""

from __future__ import annotations

import pyarrow as pa
from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

from xsift.spark import match_documents

spark = SparkSession.active()

NEWS = [
    ("spark.xml", "<news><hl1>Spark 5 is out</hl1></news>"),
    ("rain.xml", "<news><hl1>Rain</hl1></news>"),
    ("broken.xml", "<news>"),
]
ALERTS = pa.table({"id": ["alice", "bob"], "xpath": ["//hl1[contains(., 'Spark')]", "//hl1"]})


@dp.materialized_view
def news() -> DataFrame:
    return spark.createDataFrame(NEWS, "uri string, xml string")


@dp.materialized_view
def alerts() -> DataFrame:
    return match_documents(spark.read.table("news"), subscriptions=ALERTS)
