"""The data source for large XML, batch and streaming."""

from __future__ import annotations

import bz2
import gzip
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles

import xsift
from tests.sources.test_records import TRICKY, records
from tests.spark.data import finish
from xsift.spark import read_records, register_sources
from xsift.spark.places import _named, chunks_of, find_files, size_of
from xsift.spark.source import RecordStreamReader, SourceSettings, packed, read_pack

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
    with pytest.raises(PySparkException, match="mode is 'LENIENT'"):
        spark.read.format("xsift").option("record", "a").option("mode", "lenient").load(str(tmp_path)).collect()
    for paths in ([], [""]):
        with pytest.raises(xsift.XsiftError, match="needs 'path'"):
            read_records(spark, paths, "a")


def test_modes(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.errors import PySparkException

    (tmp_path / "cut.xml.gz").write_bytes(gzip.compress(DUMP)[:-2000])
    (tmp_path / "empty.xml").write_bytes(b"")
    (tmp_path / "good.xml").write_bytes(TRICKY)
    (tmp_path / "none.xml").write_bytes(b"this is no XML")
    reader = spark.read.format("xsift").option("record", "article")
    rows = reader.load(str(tmp_path)).collect()
    bad = {Path(row.file).name: row.read_error for row in rows if row.xml is None}
    assert set(bad) == {"cut.xml.gz", "empty.xml", "none.xml"}
    assert "cannot be read" in bad["cut.xml.gz"]
    assert [bytes(row.xml) for row in rows if row.file.endswith("good.xml")] == records(TRICKY)
    kept = reader.option("mode", "DropMalformed").load(str(tmp_path)).collect()
    assert len(kept) == len(rows) - 3
    assert all(row.xml for row in kept)
    with pytest.raises(PySparkException, match=r"cut\.xml\.gz cannot be read"):
        reader.option("mode", "failfast").load(str(tmp_path / "cut.xml.gz")).collect()


def test_small_files_share_tasks(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"{number:03}.xml").write_bytes(b"<d><r>%d</r></d>" % number)
    frame = spark.read.format("xsift").option("record", "r").load(str(tmp_path))
    assert frame.rdd.getNumPartitions() <= 16
    assert sorted(row.xml for row in frame.collect()) == sorted(b"<r>%d</r>" % number for number in range(300))


def test_what_is_hidden_lists_and_globs(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("a/x.xml", "a/b/y.xml", "c/z.xml", "_temporary/0/t.xml", "a/.hidden/u.xml", "a/_v.xml", "a/w.part"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"<d><r/></d>")
    reader = spark.read.format("xsift").option("record", "r")

    def names(paths: str | list[str]) -> list[str]:
        return sorted(Path(row.file).name for row in reader.load(paths).collect())

    here = str(tmp_path)
    assert names(here) == ["x.xml", "y.xml", "z.xml"]
    assert names([f"{here}/c", f"{here}/a/b", f"{here}/c/z.xml"]) == ["y.xml", "z.xml"]
    assert names(f"{here}/*/[xz].xml") == ["x.xml", "z.xml"]
    assert names(f"file://{here}/a/**/*.xml") == ["x.xml", "y.xml"]
    assert names(f"file://{here}/?") == ["x.xml", "y.xml", "z.xml"]


def test_places_are_found_on_executors(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("one.xml", "two.xml"):
        (tmp_path / name).write_bytes(DUMP)
    (tmp_path / "small.xml").write_bytes(b"<d><article/></d>")
    (tmp_path / "bad.xml").write_bytes(b"<d><article>" + b"x" * 50_000)
    frame = read_records(spark, str(tmp_path), "article", splitBytes=40_000)
    rows = sorted(frame.collect(), key=lambda row: (row.file, row.position))
    for name in ("one.xml", "two.xml"):
        assert [bytes(row.xml) for row in rows if row.file.endswith(name)] == records(DUMP)
    assert frame.rdd.getNumPartitions() > 6
    assert [bytes(row.xml) for row in rows if row.file.endswith("small.xml")] == [b"<article/>"]
    assert any(row.file.endswith("bad.xml") for row in rows)


def test_a_file_that_becomes_shorter_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "dump.xml"
    path.write_bytes(DUMP)
    settings = SourceSettings.of({"path": str(path), "record": "article", "splitBytes": "40000"})
    packs = packed(find_files(str(path)), settings)
    path.write_bytes(DUMP[:100_000])
    rows = [row for pack in packs for batch in read_pack(pack.splits, settings) for row in batch.to_pylist()]
    told = [row["read_error"] for row in rows if row["read_error"]]
    assert len(told) == sum(pack.splits[0].end > 100_000 for pack in packs) > 1
    assert f"{path} cannot be read: it has no more than 100,000 bytes now" in told[0]


def test_offsets_are_compact(tmp_path: Path) -> None:
    for number in range(2000):
        (tmp_path / f"{'long' * 20}{number:05}.xml").write_bytes(b"<d><r/></d>")
    reader = RecordStreamReader(SourceSettings.of({"path": str(tmp_path), "record": "r"}))
    before = {"files": json.dumps([str(tmp_path / f"{'long' * 20}{number:05}.xml") for number in range(500)])}
    offset = reader.latestOffset(before, ReadMaxFiles(10))
    files = [split.file for pack in reader.partitions(before, offset) for split in cast(Any, pack).splits]
    assert [Path(file).name[-9:] for file in files] == [f"{number:05}.xml" for number in range(500, 510)]
    for _ in range(30):
        offset = reader.latestOffset(offset, ReadMaxFiles(50))
    assert reader.latestOffset(offset, ReadAllAvailable()) == offset
    assert len(json.dumps(offset)) < 40_000
    for number in range(1990):
        (tmp_path / f"{'long' * 20}{number:05}.xml").unlink()
    (tmp_path / "late.xml").write_bytes(b"<d><r/></d>")
    later = reader.latestOffset(offset, ReadAllAvailable())
    assert json.loads(later["new"]) == [str(tmp_path / "late.xml")]
    assert len(json.dumps(later)) < 1000


def test_a_folder_that_is_gone_for_a_while(tmp_path: Path) -> None:
    """An object store has no empty folders: whoever moves the last file away takes the folder with it."""
    inbox = tmp_path / "inbox"
    reader = RecordStreamReader(SourceSettings.of({"path": str(inbox), "record": "r"}))
    with pytest.raises(xsift.DocumentError, match="does not exist"):
        reader.initialOffset()
    inbox.mkdir()
    (inbox / "a.xml").write_text("<d><r/></d>")
    offset = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    shutil.rmtree(inbox)
    assert reader.latestOffset(offset, ReadAllAvailable()) == offset
    inbox.mkdir()
    (inbox / "b.xml").write_text("<d><r/></d>")
    assert json.loads(reader.latestOffset(offset, ReadAllAvailable())["new"]) == [str(inbox / "b.xml")]


def test_files_by_url(tmp_path: Path) -> None:
    """Names that no URL can have as they are; what a URL says of host, account and options stays."""
    names = ["a b.xml", "c%20d.xml", "e#f.xml", "g?h.xml", "x[1].xml", "plain+.xml", "v{w}.xml", "\u00e9.xml"]
    folder = tmp_path / "a folder"
    folder.mkdir()
    for name in names:
        (folder / name).write_text(name)
    for url in (f"file://{folder}", f"file://{tmp_path}/a%20folder/", f"file://{tmp_path}/a *r/*.xml"):
        found = find_files(url)
        assert sorted(b"".join(chunks_of(file.path)).decode() for file in found) == sorted(names)
        assert [size_of(file.path) for file in found] == [file.size_bytes for file in found]
    assert [file.size_bytes for file in find_files(f"file://{folder}/[ap]*.xml")] == [7, 10]
    assert _named("abfss://box@account.dfs.core.windows.net/in", "", "a/b c.xml") == (
        "abfss://box@account.dfs.core.windows.net/in/a/b%20c.xml"
    )
    with pytest.raises(xsift.DocumentError, match="no://where"):
        find_files("no://where")
    assert [Path(file.path).name for file in find_files(f"file://{folder}/?lain+.xml")] == ["plain+.xml"]
    assert _named("s3://box/in/*/x*.xml?region=eu", "*/x*.xml", "a/x1.xml") == "s3://box/in/a/x1.xml?region=eu"
