"""xsift in SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import xsift
from xsift.spark import register_functions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCUMENTS = [(1, "<a><b/></a>"), (2, "<b/>"), (3, "<broken>"), (4, None), (5, "<c/>")]


def test_functions(spark: SparkSession) -> None:
    made = xsift.Subscriptions()
    made.add_many([("a", "//a"), ("b", "//b")])
    register_functions(spark, made)
    spark.createDataFrame(DOCUMENTS, "number int, XML string").createOrReplaceTempView("news")
    rows = spark.sql("SELECT number, xsift_matches(xml) AS ids FROM news").collect()
    assert {row.number: row.ids for row in rows} == {1: ["a", "b"], 2: ["b"], 3: None, 4: None, 5: []}
    assert spark.sql("SELECT xsift_matches(NULL) AS ids").collect()[0].ids is None
    found = spark.sql("SELECT * FROM xsift_match(TABLE(news))")
    assert found.columns == ["number", "matches", "error", "failures"]
    answers = {row.number: (row.matches, row.error and row.error.line) for row in found.collect()}
    assert answers == {1: (["a", "b"], None), 2: (["b"], None), 3: (None, 1), 4: (None, None), 5: ([], None)}
    pairs = spark.sql("SELECT number, subscription FROM xsift_match(TABLE(news), kind => 'rows', xml => 'xml')")
    assert sorted(map(tuple, pairs.where("subscription is not null").collect())) == [(1, "a"), (1, "b"), (2, "b")]
    nodes = spark.sql("SELECT number, path, fragment FROM xsift_match(TABLE(news), kind => 'nodes') WHERE path != ''")
    assert (1, "/a/b", "<b/>") in set(map(tuple, nodes.collect()))
    with pytest.raises(Exception, match="no column 'text'"):
        spark.sql("SELECT * FROM xsift_match(TABLE(news), xml => 'text')").collect()
