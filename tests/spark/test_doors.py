"""Spark's door: documents of every encoding, as text and as bytes, give what the library gives; options reach."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import xsift
from tests.matching.test_documents import ENCODINGS, EXPECTED, IDS, TEXTS, matcher
from xsift.spark import match_documents

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["matcher"]


def test_text_and_bytes_of_every_encoding(spark: SparkSession, matcher: xsift.Matcher) -> None:
    plain = [(name, data) for name, (data, override) in ENCODINGS.items() if override is None]
    for rows, kind in ((list(TEXTS.items()), "string"), (plain, "binary")):
        documents = spark.createDataFrame(rows, f"name string, xml {kind}")
        for row in match_documents(documents, subscriptions=matcher).collect():
            assert (row.matches, row.error, row.failures) == (EXPECTED, None, None), row.name
        nodes = match_documents(documents, subscriptions=matcher, kind="nodes").collect()
        assert {(row.name, row.subscription) for row in nodes} == {(name, id) for name, _ in rows for id in EXPECTED}


def test_bytes_whose_encoding_is_said(spark: SparkSession, matcher: xsift.Matcher) -> None:
    for data, encoding in ENCODINGS.values():
        if encoding is not None:
            documents = spark.createDataFrame([(1, data), (2, None)], "number int, xml binary").coalesce(1)
            texts = pa.table({"id": IDS, "xpath": [matcher.report(id).xpath for id in IDS]})
            for shards in (1, 2):
                matched = match_documents(documents, subscriptions=texts, encoding=encoding, shards=shards)
                assert {row.number: row.matches for row in matched.collect()} == {1: EXPECTED, 2: None}
            nodes = match_documents(documents, subscriptions=matcher, encoding=encoding, kind="nodes").collect()
            assert {row.subscription for row in nodes} == {*EXPECTED}


def test_limits_validation_and_residuals_reach(spark: SparkSession) -> None:
    broken_after = b"<a>" + b"<p/>" * 100_000 + b"<unclosed></a>"
    documents = spark.createDataFrame([(1, b"<a><b/></a>"), (2, broken_after)], "number int, xml binary")
    table = pa.table({"id": ["a"], "xpath": ["/a"]})

    def codes(**options: object) -> dict[int, str | None]:
        matched = match_documents(documents, subscriptions=table, **options)  # type: ignore[arg-type]
        return {row.number: row.error and row.error.code for row in matched.collect()}

    assert codes() == {1: None, 2: "tag-mismatch"}
    assert codes(validate=False) == {1: None, 2: None}
    assert codes(limits=xsift.Limits(depth=1)) == {1: "too-deep", 2: "too-deep"}
    residual = pa.table({"id": ["a"], "xpath": ["//a[2]"]})
    with pytest.raises(xsift.XsiftError, match="not-indexable"):
        match_documents(documents, subscriptions=residual, residuals="refuse")
