"""The data source for large XML, batch and streaming."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.sources.test_records import TRICKY, records
from tests.spark.data import finish
from xsift.spark import register_sources

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DUMP = (
    b'<?xml version="1.0"?><dump xmlns:n="urn:n">'
    + b"".join(
        b"<!-- <article> --><article n:id='%d'>%s<article/></article>\n" % (number, b"text " * (number % 50))
        for number in range(2000)
    )
    + b"</dump>"
)


@pytest.fixture(autouse=True)
def registered(spark: SparkSession) -> None:
    register_sources(spark)


def test_a_split_file_is_the_same_as_a_whole_one(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "dump.xml").write_bytes(DUMP)
    reader = spark.read.format("xsift").option("record", "article")
    split = reader.option("splitBytes", 40_000).load(str(tmp_path / "dump.xml"))
    rows = split.collect()
    assert split.rdd.getNumPartitions() > 3
    assert [bytes(row.xml) for row in sorted(rows, key=lambda row: row.position)] == records(DUMP)
    assert all(DUMP[row.position :].startswith(b"<article n:id") for row in rows)


def test_folders_and_compressed_files(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_bytes(TRICKY)
    (tmp_path / "b.xml.gz").write_bytes(gzip.compress(TRICKY))
    (tmp_path / "c.xml.bz2").write_bytes(bz2.compress(TRICKY))
    (tmp_path / "_d.xml").write_bytes(b"hidden")
    rows = spark.read.format("xsift").option("record", "article").load(str(tmp_path)).collect()
    for name in ("a.xml", "b.xml.gz", "c.xml.bz2"):
        assert [bytes(row.xml) for row in rows if row.file.endswith(name)] == records(TRICKY)
    assert len(rows) == 3 * len(records(TRICKY))


def test_a_stream_takes_each_file_once(spark: SparkSession, tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    stream = (
        spark.readStream.format("xsift").option("record", "article").option("maxFilesPerTrigger", 1).load(str(inbox))
    )

    def run() -> list[str]:
        writer = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        finish(lambda: writer.trigger(availableNow=True).start(str(tmp_path / "out")))
        return sorted(
            Path(row.file).name for row in spark.read.parquet(str(tmp_path / "out")).select("file").collect()
        )

    each = len(records(TRICKY))
    for name in ("a.xml", "b.xml"):
        (inbox / name).write_bytes(TRICKY)
    assert run() == ["a.xml"] * each + ["b.xml"] * each
    (inbox / "0.xml").write_bytes(TRICKY)
    assert run() == ["0.xml"] * each + ["a.xml"] * each + ["b.xml"] * each


def test_what_goes_wrong_is_said(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match="needs 'record'"):
        spark.read.format("xsift").load(str(tmp_path)).collect()
    with pytest.raises(PySparkException, match="does not exist"):
        spark.read.format("xsift").option("record", "a").load(str(tmp_path / "none")).collect()
    (tmp_path / "cut.xml.gz").write_bytes(gzip.compress(DUMP)[:-100])
    with pytest.raises(PySparkException, match=r"cut\.xml\.gz cannot be read"):
        spark.read.format("xsift").option("record", "a").load(str(tmp_path)).collect()
