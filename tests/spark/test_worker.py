"""What runs in a Python worker, without Spark: batches of bounded size, empty sets, memory."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import xsift
from xsift.matching import Limits
from xsift.spark import answers, memory, worker
from xsift.spark.routing import Part
from xsift.spark.spread import Spread
from xsift.spark.worker import Task


class Files:
    """Saved matchers in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path_of(self, name: str) -> str:
        return str(self.folder / name)

    def part(self, rows: list[tuple[str, str]], removed: list[int] | None = None) -> Part:
        made = xsift.Subscriptions()
        made.add_many(rows)
        name = f"{len(list(self.folder.iterdir()))}.xsift"
        made.matcher().save(self.folder / name)
        return Part(name, 0, None if removed is None else np.array(removed, dtype=np.int32))


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Files]:
    worker._loaded.clear()
    yield Files(tmp_path)
    worker._loaded.clear()


def batches(files: Files, batch: pa.RecordBatch, output: str, *parts: Part, **more: Any) -> Iterator[pa.RecordBatch]:
    settings = {"xml": "xml", "keep_xml": False, "on_error": "keep", "folder": files, **more}
    return Task(parts, output=output, **settings)(iter([batch]))


def documents(*values: bytes | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {"number": pa.array(range(len(values)), pa.int32()), "xml": pa.array(values, pa.binary())}
    )


def test_rows_of_more_than_two_gigabytes(files: Files) -> None:
    """200 documents of 8 KB, each carried along with each of 2,000 matches: 3.3 GB."""
    part = files.part([(f"s{number}", "//a") for number in range(2000)])
    xml = b"<a>" + b"x" * 8192 + b"</a>"
    rows, largest, first = 0, 0, None
    for batch in batches(files, documents(*[xml] * 200), "rows", part, keep_xml=True):
        rows += batch.num_rows
        largest = max(largest, batch.nbytes)
        first = first or batch.slice(0, 1).to_pylist()[0]
    assert rows == 200 * 2000
    assert largest < 2 * answers.BATCH_BYTES
    assert first is not None
    assert (first["number"], first["xml"], first["subscription"], first["error"]) == (0, xml, "s0", None)


def test_nodes_of_more_than_two_gigabytes(files: Files) -> None:
    """A document of 2 MB, carried along with each of 1,200 nodes, and as their fragment: 4.8 GB."""
    part = files.part([(f"s{number}", "/a") for number in range(1200)])
    xml = b"<a>" + b"x" * 2**21 + b"</a>"
    ids = set()
    for batch in batches(files, documents(xml), "nodes", part, keep_xml=True, limits=Limits(result_bytes=2**40)):
        assert batch.nbytes < 3 * answers.BATCH_BYTES
        assert batch["fragment"][0].as_py() == batch["xml"][0].as_py() == xml
        ids |= set(batch["subscription"].to_pylist())
    assert len(ids) == 1200


@pytest.mark.parametrize("output", ["matches", "rows", "nodes"])
@pytest.mark.parametrize("bound", [1, 300, 10**6])
def test_small_batches_say_the_same_as_large_ones(
    files: Files, output: str, bound: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [
        files.part([("a", "//a"), ("gone", "//*"), ("long" * 99, "//b")], removed=[1]),
        files.part([("also a", "//a"), ("c", "//c[count(d) > 1]"), ("é", "//b")]),
    ]
    given = documents(b"<a><b/><b/></a>", b"<a>", None, b"<c><d/><d/></c>", b"<b/>", b"<z/>")
    wide = given.append_column("names", pa.array([["x" * n] * n for n in range(6)], pa.list_(pa.string())))
    whole = pa.Table.from_batches(batches(files, wide, output, *parts)).to_pylist()
    monkeypatch.setattr(answers, "BATCH_BYTES", bound)
    several = list(batches(files, wide, output, *parts))
    assert pa.Table.from_batches(several).to_pylist() == whole
    assert (len(several) > 2) == (bound < 10**6)
    if output == "matches":
        assert [row["matches"] for row in whole] == [
            ["a", "long" * 99, "also a", "é"],
            None,
            None,
            ["c"],
            ["long" * 99, "é"],
            [],
        ]
    worker._loaded.clear()
    loads: list[str] = []
    monkeypatch.setattr(worker, "check_room", loads.append)
    one_by_one = list(batches(files, wide, output, *parts, one_at_a_time=True))
    assert sorted(pa.Table.from_batches(one_by_one).to_pylist(), key=str) == sorted(whole, key=str)
    assert len(loads) == (4 if output == "nodes" else 2)  # for matching, and for nodes


def test_more_ids_than_a_list_holds_is_an_error_of_that_document(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = files.part([(f"{number}" * 10, "//a") for number in range(50)] + [("b", "//b")])
    monkeypatch.setattr(answers, "LIST_BYTES", 100)
    found = pa.Table.from_batches(batches(files, documents(b"<a/>", b"<b/>", b"<a><b/></a>"), "matches", part))
    assert [row["matches"] for row in found.to_pylist()] == [None, ["b"], None]
    assert [row["error"] and row["error"]["code"] for row in found.to_pylist()] == [
        "too-many-matches",
        None,
        "too-many-matches",
    ]


@pytest.mark.parametrize("output", ["matches", "rows", "nodes"])
def test_what_is_too_much_for_one_part_is_an_error_of_the_document(files: Files, output: str) -> None:
    rows = [("a", "//a"), ("budget", "//a[count(.//*) > 0]"), ("x", "//a[contains(., 'x')]")]
    given = documents(b"<a>" + b"y" * 99 + b"</a>", b"<a>x</a>")
    several = [files.part(rows[:2]), files.part(rows[2:])]
    found = [
        pa.Table.from_batches(batches(files, given, output, *parts, limits=Limits(text_bytes=20))).to_pylist()
        for parts in ([files.part(rows)], several)
    ]
    assert found[0] == found[1]
    assert [row["error"]["code"] for row in found[0] if row["number"] == 0] == ["text-too-long"]


def test_dead_letters_alone_have_the_xml(files: Files) -> None:
    part = files.part([("a", "//a"), ("budget", "//a[count(.//*[count(.//*) > 0]) > 1]")])
    given = documents(b"<a/>", b"<a>", b"<b/>")
    for output in ("matches", "rows", "nodes"):
        found = pa.Table.from_batches(batches(files, given, output, part, broken_xml=True)).to_pylist()
        for row in found:
            assert row["xml"] == (b"<a>" if row["number"] == 1 else None)
        assert {row["number"] for row in found} == ({0, 1, 2} if output == "matches" else {0, 1})


def test_nulls_do_not_all_go_to_one_task(files: Files) -> None:
    """They meet no answers, and where they go does not depend on the rows beside them: tasks are run again."""
    task = Task((files.part([("a", "//a")]),), "xml", "matches", False, "keep", folder=files)
    given = documents(*[None] * 50)
    spread = Spread(task, ("number",), 8, True)
    whole = pa.Table.from_batches(spread(iter([given])))
    halves = pa.Table.from_batches(spread(iter([given.slice(25), given.slice(0, 25)])))
    assert len(set(whole["target"].to_pylist())) > 4
    assert sorted(whole["key"].to_pylist()) == sorted(halves["key"].to_pylist())


def test_an_empty_set_still_sees_broken_documents(files: Files) -> None:
    part = files.part([])
    found = pa.Table.from_batches(batches(files, documents(b"<a/>", b"<a>"), "matches", part)).to_pylist()
    assert [(row["matches"], row["error"] and row["error"]["line"]) for row in found] == [([], None), (None, 1)]
    with pytest.raises(xsift.DocumentError, match="row 2"):
        list(batches(files, documents(b"<a/>", b"<a>"), "matches", part, on_error="fail"))


def test_an_index_that_does_not_fit_says_so(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    part = files.part([(f"s{number}", f"//a{number}") for number in range(100)])
    limit = (2**20, resource.RLIM_INFINITY)
    monkeypatch.setattr(resource, "getrlimit", lambda _: limit)
    with pytest.raises(xsift.StorageError, match=r"does not fit.*spark\.executor\.pyspark\.memory"):
        list(batches(files, documents(b"<a/>"), "matches", part))


@pytest.mark.parametrize(
    ("settings", "mib"),
    [
        ({}, 2048),
        ({"spark.executor.pyspark.memory": "2g", "spark.executor.cores": "2"}, 1024 - 450),
        ({"spark.executor.pyspark.memory": "8g", "spark.executor.cores": "2"}, 4096 - 450 - 1024),
        (
            {
                "spark.executor.pyspark.memory": "8192",
                "spark.executor.cores": "2",
                "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL": "system",
            },
            4096 - 450,
        ),
        ({"spark.executor.pyspark.memory": "512MB", "spark.executor.cores": "4"}, 16),
    ],
)
def test_what_a_worker_may_hold(settings: dict[str, str], mib: int) -> None:
    session: Any = SimpleNamespace(conf=settings)
    assert memory.worker_memory_bytes(session) == mib * 2**20
