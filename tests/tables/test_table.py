"""SubscriptionTable: versions, columns of one's own, errors, upkeep."""

from __future__ import annotations

import os
import pickle
import random
import shutil
import time
import uuid
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from datetime import time as dt_time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.fs
import pyarrow.parquet
import pytest
from deltalake import DeltaTable, write_deltalake

import xsift
from xsift.tables import Follower, SubscriptionTable, delta, is_table, split_version
from xsift.tables.places import location

Place = tuple[str, dict[str, str]]


def listed(table: SubscriptionTable, version: Any = None) -> list[tuple[str, str, bool]]:
    return [(row["id"], row["xpath"], row["ordered"]) for row in table.as_of(version).to_pylist()]


def test_versions(place: Place) -> None:
    path, options = place
    table = SubscriptionTable.create(path, storage_options=options)
    assert table.version() == 0
    assert table.as_of().num_rows == 0
    assert table.add([("a", "//a"), ("b", "//b", True)]) == []
    table.remove(["a"])
    failed = table.add([("c", "//c"), ("bad", "//c["), ("b", "//b2")], errors="collect")
    assert [(id, error.code) for id, error in failed] == [("bad", "predicate-not-closed")]
    again = SubscriptionTable(path, storage_options=options)
    assert again.version() == 3
    assert again.changes(3).num_rows == 0
    for after, until in ((4, None), (2, 1)):  # whoever asks so has followed another table
        with pytest.raises(xsift.TableError, match="-version"):
            again.changes(after, until)
    assert [listed(again, version) for version in range(4)] == [
        [],
        [("a", "//a", False), ("b", "//b", True)],
        [("b", "//b", True)],
        [("c", "//c", False), ("b", "//b2", False)],
    ]


def test_a_change_is_made_whole_or_not_at_all(tmp_path: Path) -> None:
    table = SubscriptionTable.create(tmp_path / "table")
    table.add([("a", "//a")])
    with pytest.raises(xsift.XPathError):
        table.add([("d", "//d"), ("e", "//[")])
    with pytest.raises(xsift.SubscriptionError, match="no subscription 'z'"):
        table.remove(["a", "z"])
    with pytest.raises(xsift.SubscriptionError, match="has no xpath"):
        table.add(pa.table({"id": ["x"], "xpath": pa.nulls(1, pa.string())}))
    with pytest.raises(xsift.TableError, match="no version 9"):
        table.as_of(9)
    assert table.version() == 1
    assert listed(table) == [("a", "//a", False)]
    table.remove(["a", "z"], missing_ok=True)
    table.remove(["a"], missing_ok=True)
    assert (table.version(), listed(table)) == (2, [])


def test_an_id_twice_counts_once(tmp_path: Path) -> None:
    table = SubscriptionTable.create(tmp_path / "table")
    rows = [("x", "//x["), ("y", "//y"), ("x", "//x1"), ("x", "//x2"), ("y", "//y"), ("z", "//z")]
    failed = table.add(rows, errors="collect")
    assert [(id, error.code) for id, error in failed] == [
        ("x", "predicate-not-closed"),
        ("x", "duplicate-id"),
        ("y", "duplicate-id"),
    ]
    assert listed(table) == [("y", "//y", False), ("x", "//x1", False), ("z", "//z", False)]
    with pytest.raises(xsift.SubscriptionError, match="'x' is in a row before"):
        table.add([("x", "//x"), ("x", "//x")])


def test_columns_that_users_bring(place: Place) -> None:
    path, options = place
    table = SubscriptionTable.create(path, storage_options=options)
    table.add([("plain", "//a")])
    created = datetime(2030, 1, 2, tzinfo=UTC)
    table.add(
        [
            {"id": "1", "xpath": "//a", "owner": "alice", "labels": ["urgent", "eu"], "created": created},
            {"id": "2", "xpath": "//b", "owner": "bob", "labels": ["us"]},
            {"id": "3", "xpath": "//c", "owner": "alice"},
        ]
    )
    assert table.columns == ["owner", "labels", "created"]
    assert table.as_of(where={"owner": "alice"})["id"].to_pylist() == ["1", "3"]
    assert table.as_of(where={"labels": "us"})["id"].to_pylist() == ["2"]
    assert table.as_of(where={"owner": None})["id"].to_pylist() == ["plain"]
    assert table.as_of(where=pc.field("created") < datetime.now(UTC) + timedelta(days=9999))["id"].to_pylist() == [
        "1"
    ]
    assert table.as_of()["created"].to_pylist()[1] == created
    assert list(table.subscriptions(where={"owner": "bob"})) == ["2"]
    table.add([("3", "//d")])
    assert table.as_of(where={"id": "3"}).to_pylist()[0]["owner"] is None
    with pytest.raises(xsift.TableError, match=r"owner.*does not fit"):
        table.add([{"id": "4", "xpath": "//d", "owner": ["x"]}])
    with pytest.raises(xsift.TableError, match="begins with _"):
        table.add([{"id": "4", "xpath": "//d", "_version": 7}])
    with pytest.raises(xsift.TableError, match="no column 'color'"):
        table.as_of(where={"color": "red"})


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.string()), pa.string_view()])
def test_kinds_of_strings(tmp_path: Path, kind: pa.DataType) -> None:
    table = SubscriptionTable.create(tmp_path / "table")
    strings = pa.array(["a", "b"]).cast(kind)
    table.add(pa.table({"id": strings, "xpath": pa.array(["//a", "//b"]), "owner": strings}))
    assert table.as_of(where={"owner": "b"})["id"].to_pylist() == ["b"]


def test_namespaces_of_set_and_row(tmp_path: Path) -> None:
    table = SubscriptionTable.create(tmp_path / "table", namespaces={"n": "urn:n"})
    with pytest.raises(xsift.XPathError):
        table.add([("a", "//m:a")])
    with pytest.raises(xsift.TableError, match="'namespaces' cannot be stored"):
        table.add([{"id": "a", "xpath": "//m:a", "namespaces": "m=urn:m"}])
    table.add([("a", "//n:a"), {"id": "b", "xpath": "//m:b", "namespaces": {"m": "urn:m"}}])
    assert SubscriptionTable(tmp_path / "table").namespaces == {"n": "urn:n"}
    assert dict(table.as_of().to_pylist()[1]["namespaces"]) == {"m": "urn:m"}
    table.add_namespaces({"m": "urn:other"})
    table.add([("c", "//m:c")])
    with pytest.raises(xsift.TableError, match="stands for 'urn:n'"):
        table.add_namespaces({"n": "urn:other"})
    with pytest.raises(xsift.TableError, match="stands for 'urn:n'"):
        SubscriptionTable.create(tmp_path / "table", namespaces={"n": "urn:x"}, exist_ok=True)
    brought = xsift.Subscriptions(namespaces={"n": "urn:own"})
    brought.add("d", "//n:d", ordered=True)
    table.add(brought)
    row = table.as_of().to_pylist()[-1]
    assert (row["id"], row["ordered"], dict(row["namespaces"])) == ("d", True, {"n": "urn:own"})
    matcher = table.subscriptions().matcher()
    assert matcher.match("<a xmlns='urn:n'/>") == ["a"]
    assert matcher.match("<d xmlns='urn:own'><b xmlns='urn:m'/><c xmlns='urn:other'/></d>") == ["b", "c", "d"]
    assert matcher.match("<d xmlns='urn:n'><c xmlns='urn:m'/></d>") == []


def test_replace_writes_what_is_different(place: Place) -> None:
    path, options = place
    table = SubscriptionTable.create(path, storage_options=options)
    table.add([{"id": id, "xpath": f"//{id}", "labels": [id]} for id in "abcd"])
    rows = [{"id": id, "xpath": f"//{id}", "labels": [id]} for id in "bc"]
    rows += [
        {"id": "d", "xpath": "//d", "labels": ["new"]},
        {"id": "e", "xpath": "//e"},
        {"id": "bad", "xpath": "//["},
    ]
    assert [id for id, _ in table.replace(rows, errors="collect")] == ["bad"]
    assert sorted(table.as_of()["id"].to_pylist()) == ["b", "c", "d", "e"]
    changes = {row["id"]: row["_removed"] for row in table.changes(1).to_pylist()}
    assert changes == {"a": True, "d": False, "e": False}
    assert table.replace([row for row in rows if row["id"] != "bad"]) == []
    assert table.version() == 2
    diff = table.diff(1, 2)
    assert [part["id"].to_pylist() for part in (diff.added, diff.removed, diff.changed)] == [["e"], ["a"], ["d"]]
    table.replace([])
    assert listed(table) == []


def test_history_and_times(tmp_path: Path) -> None:
    start = datetime.now(UTC)
    SubscriptionTable.create(tmp_path / "table", user="alice").add([("a", "//a"), ("b", "//b")])
    time.sleep(0.002)
    between = datetime.now(UTC)
    time.sleep(0.002)
    table = SubscriptionTable(tmp_path / "table", user="bob")
    table.remove(["a"])
    table.compact()
    found = table.history()
    assert [(entry.version, entry.user, entry.added, entry.removed) for entry in found] == [
        (2, "bob", 0, 1),
        (1, "alice", 2, 0),
    ]
    assert start <= found[1].time <= between <= found[0].time
    assert table.history(1) == found[:1]
    assert listed(table, between) == listed(table, 1)
    assert listed(table, between.astimezone().replace(tzinfo=None)) == listed(table, 1)  # a time of this machine
    assert listed(table, start) == []
    assert listed(table, datetime.now()) == listed(table, 2)


def test_times_where_clocks_go_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = SubscriptionTable.create(tmp_path / "table")
    times = iter(datetime(2030, 1, 1, 12 - hour, 0, 0, 999, UTC) for hour in range(5))
    monkeypatch.setattr(delta, "datetime", SimpleNamespace(now=lambda _: next(times), min=datetime.min))
    for number in range(5):
        table.add([(f"s{number}", "//a")])
    for entry in table.history():
        assert table.as_of(entry.time).num_rows == entry.version


def test_a_change_for_one_version(place: Place) -> None:
    path, options = place
    table = SubscriptionTable.create(path, storage_options=options)
    table.add([("a", "//a")], if_version=0)
    for change in (table.add, table.replace):
        with pytest.raises(xsift.TableError, match="version-conflict"):
            change([("b", "//b")], if_version=0)
    with pytest.raises(xsift.TableError, match="version-conflict"):
        table.remove(["a"], if_version=0)
    table.remove(["a"], if_version=1)
    assert table.version() == 2


def test_random_changes_equal_a_dictionary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta, "MERGE_FILES", 7)
    monkeypatch.setattr(delta, "CLEAN_VERSIONS", 20)
    monkeypatch.setattr("xsift.tables.table.FOLD_CHANGES", 10)
    rng = random.Random(7)
    tables = [SubscriptionTable.create(tmp_path / "table", exist_ok=True) for _ in range(3)]
    model: dict[str, str] = {}
    versions: dict[int, dict[str, str]] = {0: {}}
    for step in range(150):
        table = rng.choice(tables)
        kind = rng.random()
        if kind < 0.5 or not model:
            rows = {f"s{rng.randrange(25)}": f"//a{step}" for _ in range(rng.randrange(1, 4))}
            table.add(list(rows.items()))
            for id in rows:
                model.pop(id, None)
            model |= rows
        elif kind < 0.8:
            gone = rng.sample(sorted(model), rng.randrange(1, min(20, len(model)) + 1))
            table.remove(gone)
            for id in gone:
                del model[id]
        elif kind < 0.9:
            rows = {id: rng.choice([xpath, "//new"]) for id, xpath in model.items() if rng.random() < 0.7}
            table.replace(list(rows.items()))
            model = rows
        elif kind < 0.97:
            table.compact()
        else:
            with pytest.raises(xsift.SubscriptionError):
                table.remove(["nobody"])
        for version in range(max(versions) + 1, table.version() + 1):  # the change, and perhaps upkeep after it
            versions[version] = dict(model)
    table = SubscriptionTable(tmp_path / "table")
    newest = table.version()
    assert newest > 150  # files were merged in between, and that takes versions too
    for version in range(newest + 1):
        assert {id: xpath for id, xpath, _ in listed(table, version)} == versions[version]
    for _ in range(30):
        after, until = sorted(rng.choices(sorted(versions), k=2))
        followed = dict(versions[after])
        for row in table.changes(after, until).to_pylist():
            followed.pop(row["id"], None)
            if not row["_removed"]:
                followed[row["id"]] = row["xpath"]
        assert followed == versions[until]
        diff = table.diff(after, until)
        old, new = versions[after], versions[until]
        assert set(diff.added["id"].to_pylist()) == set(new) - set(old)
        assert set(diff.removed["id"].to_pylist()) == set(old) - set(new)
        assert set(diff.changed["id"].to_pylist()) == {id for id in set(old) & set(new) if old[id] != new[id]}


def test_old_versions_can_be_forgotten(tmp_path: Path) -> None:
    table = SubscriptionTable.create(tmp_path / "table")
    follower = SubscriptionTable(tmp_path / "table")
    for number in range(10):
        table.add([("same", f"//a{number}"), (f"s{number}", "//b")])
    table.remove(["s3"])
    before = {version: listed(table, version) for version in range(8, 12)}
    table.compact(forget_before=8)
    rows = DeltaTable(tmp_path / "table").to_pyarrow_table()
    assert rows.num_rows == 9 + 2 * 2 + 1  # the set at version 8, and the changes since
    for version, wanted in before.items():
        assert listed(follower, version) == wanted
    for read in (follower.as_of, follower.changes):
        with pytest.raises(xsift.TableError, match="the oldest that can be read is 8"):
            read(7)
    assert [entry.version for entry in table.history()] == [11, 10, 9]
    follower.add([("s3", "//again")])
    assert len(listed(table)) == 11


def test_times_before_the_oldest_version_are_forgotten_too(tmp_path: Path) -> None:
    table = SubscriptionTable.create(tmp_path / "table")
    times = [datetime.now(UTC)]
    for change in (lambda: table.add([("a", "//a"), ("b", "//b")]), lambda: table.remove(["a"])):
        change()
        time.sleep(0.002)
        times.append(datetime.now(UTC))
    table.add([("c", "//c")])
    table.compact(forget_before=times[2])
    assert [id for id, _, _ in listed(table, times[2])] == ["b"]
    for early in times[:2]:
        for read in (table.as_of, table.diff):
            with pytest.raises(xsift.TableError, match="version-forgotten"):
                read(early)
        table.compact(forget_before=early)  # nothing is left to do
    assert [id for id, _, _ in listed(table, 2)] == ["b"]


@pytest.mark.parametrize("steps", range(4))
def test_forgetting_that_is_killed_gives_no_wrong_answers(
    tmp_path: Path, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = SubscriptionTable.create(tmp_path / "table")
    for number in range(4):
        table.add([(f"s{number}", "//a")])
    first = table.history()[-1]
    done: list[Any] = []

    def killed(step: Any) -> Any:
        def after(*arguments: Any) -> None:
            if len(done) == steps:
                raise KeyboardInterrupt
            done.append(step)
            step(*arguments)

        return after

    with monkeypatch.context() as patched, suppress(KeyboardInterrupt):
        for name in ("set_property", "rewrite"):
            patched.setattr(delta.Log, name, killed(getattr(delta.Log, name)))
        table.compact(forget_before=3)

    def told(when: Any) -> Any:
        try:
            return listed(table, when)
        except xsift.TableError as error:
            return error.code

    for when in (first.time, first.version):
        assert told(when) in ([("s0", "//a", False)], "version-forgotten")
    assert len(listed(table)) == 4


def test_columns_that_cannot_be_kept(tmp_path: Path) -> None:
    table = SubscriptionTable.create(tmp_path / "table")
    table.add([{"id": "a", "xpath": "//a", "owner": "x", "number": 1}])
    for column, message in (
        ({"Owner": "x"}, "'Owner' is called 'owner'"),
        ({"at": dt_time(1)}, "'at' is time64"),
        ({"large": 2**64}, "'large' cannot be stored"),
        ({"key": uuid.uuid4()}, "'key' cannot be stored: it is extension"),
        ({"namespaces": "n=u"}, "'namespaces' cannot be stored"),
    ):
        with pytest.raises(xsift.TableError, match=message):
            table.add([{"id": "b", "xpath": "//b", **column}])
    with pytest.raises(xsift.TableError, match="'number' is int64 in the table"):
        table.replace([{"id": "b", "xpath": "//b", "number": "one"}])
    with pytest.raises(xsift.TableError, match="bad-condition"):
        table.as_of(where={"owner": 5})
    with pytest.raises(xsift.TableError, match="cannot have"):
        SubscriptionTable.create(tmp_path / "a[b")
    assert listed(SubscriptionTable(table.path)) == [("a", "//a", False)]


def test_columns_that_are_a_part_of_others(tmp_path: Path) -> None:
    """delta-rs took the process down where a struct in a struct did not begin where its memory begins."""
    table = SubscriptionTable.create(tmp_path / "table")
    values = [{"a": {"b": [number]}} for number in range(9)]
    ids = [f"s{number}" for number in range(9)]
    counts = pa.array(range(9), pa.uint32())  # delta-rs has no numbers without a sign
    rows = pa.table({"id": ids, "xpath": ["//a"] * 9, "facts": values, "count": counts})
    table.add(rows.slice(5))
    table.add(rows.slice(0, 2))
    table.compact(forget_before=1)
    found = [(row["facts"], row["count"]) for row in SubscriptionTable(table.path).as_of().to_pylist()]
    assert found == [(values[number], number) for number in (5, 6, 7, 8, 0, 1)]


def test_a_column_of_empty_lists_is_for_anything(tmp_path: Path) -> None:
    table = SubscriptionTable.create(tmp_path / "table")
    table.add([{"id": "a", "xpath": "//a", "labels": []}])
    table.add([{"id": "b", "xpath": "//b", "labels": ["urgent"]}])
    table.add([{"id": "c", "xpath": "//c", "labels": []}])
    assert table.as_of()["labels"].to_pylist() == [None, ["urgent"], []]


def test_errors_tell_their_rows(tmp_path: Path) -> None:
    table = SubscriptionTable.create(tmp_path / "table")
    rows = [("x", None), ("a", "//a"), ("b", "//b["), ("a", "//c"), ("long" * 1025, "//d")]
    failed = table.add(rows, errors="collect")
    assert [(id[:4], error.row) for id, error in failed] == [("x", 0), ("b", 2), ("a", 3), ("long", 4)]
    assert len(table.subscriptions()) == 1


def test_upkeep_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files and log do not grow with the number of changes."""
    settings = {"delta.logRetentionDuration": "interval 1 seconds", "delta.checkpointInterval": "20"}
    monkeypatch.setattr(delta, "PROPERTIES", {**delta.PROPERTIES, **settings})
    monkeypatch.setattr(delta, "MERGE_FILES", 10)
    monkeypatch.setattr(delta, "CLEAN_VERSIONS", 30)
    monkeypatch.setattr(delta, "DEAD_HOURS", 0)
    table = SubscriptionTable.create(tmp_path / "table")
    counts = []
    for number in range(240):
        table.add([(f"s{number % 7}", f"//a{number}")])
        counts.append((len(os.listdir(tmp_path / "table")), len(os.listdir(tmp_path / "table" / "_delta_log"))))
        if number % 20 == 0:
            time.sleep(0.3)
    assert max(files for files, _ in counts) < 60
    assert max(entries for _, entries in counts[120:]) <= max(entries for _, entries in counts[:120]) + 40
    assert len(listed(SubscriptionTable(tmp_path / "table"), 100)) == 7


def test_what_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(xsift.TableError, match="no subscription table"):
        SubscriptionTable(tmp_path / "none")
    assert not (tmp_path / "none").exists()
    (tmp_path / "file").write_text("x")
    with pytest.raises(xsift.TableError):
        SubscriptionTable(tmp_path / "file")
    write_deltalake(tmp_path / "other", pa.table({"a": [1]}))
    with pytest.raises(xsift.TableError, match="Delta table of another kind"):
        SubscriptionTable(tmp_path / "other")
    SubscriptionTable.create(tmp_path / "table")
    with pytest.raises(xsift.TableError, match="already"):
        SubscriptionTable.create(tmp_path / "table")
    assert is_table(tmp_path / "table")
    assert not is_table(tmp_path / "file")
    with pytest.raises(xsift.SubscriptionError, match="bad-row"):
        SubscriptionTable(tmp_path / "table").add(["ab"])


def test_a_table_travels(tmp_path: Path) -> None:
    table = SubscriptionTable.create(f"file://{tmp_path}/table", user="me")
    there = pickle.loads(pickle.dumps(table))
    there.add([("a", "//a")])
    assert table.history()[0].user == "me"


def test_a_table_that_is_made_anew_is_another(tmp_path: Path) -> None:
    """Its changes are none to what was there before."""
    table = SubscriptionTable.create(tmp_path / "table")
    table.add([("a", "//a")])
    opened, followed = SubscriptionTable(table.path), Follower(SubscriptionTable(table.path))
    shutil.rmtree(table.path)
    anew = SubscriptionTable.create(tmp_path / "table")
    for id in "xyz":
        anew.add([(id, "//x")])
    for step in (opened.version, lambda: opened.add([("b", "//b")]), followed.follow):
        with pytest.raises(xsift.TableError, match="made anew"):
            step()
    assert [id for id, _, _ in listed(SubscriptionTable(table.path))] == ["x", "y", "z"]


def test_names_of_versions(tmp_path: Path) -> None:
    assert split_version("alerts") == ("alerts", None)
    assert split_version("alerts@12") == ("alerts", 12)
    assert split_version("s3://me@host/alerts") == ("s3://me@host/alerts", None)
    assert location("dbfs:/alerts") == "dbfs:///alerts"  # no folder of this machine
    assert split_version("a@2030-01-31T12:00") == ("a", datetime(2030, 1, 31, 12))
    (tmp_path / "a@1").mkdir()
    assert split_version(str(tmp_path / "a@1")) == (str(tmp_path / "a@1"), None)
    with pytest.raises(xsift.TableError, match="'soon' is no version"):
        split_version("alerts@soon")


def old_version(folder: Path, version: int, rows: list[tuple[str, str | None]], writer: str = "w") -> Path:
    """A file as tables were before."""
    columns = {
        "version": pa.array([version] * len(rows), pa.int64()),
        "position": pa.array(range(len(rows)), pa.int64()),
        "id": pa.array([id for id, _ in rows], pa.string()),
        "xpath": pa.array([xpath for _, xpath in rows], pa.string()),
        "ordered": pa.array([None if xpath is None else False for _, xpath in rows], pa.bool_()),
        "writer": pa.array([writer] * len(rows), pa.string()),
    }
    path = folder / f"part-{version}-{writer}.snappy.parquet"
    pyarrow.parquet.write_table(pa.table(columns), path)
    return path


def test_a_table_of_before_is_converted(tmp_path: Path) -> None:
    folder = tmp_path / "table"
    folder.mkdir()
    old_version(folder, 1, [("a", "//a"), ("b", "//n:b")])
    first = old_version(folder, 2, [("a", None), ("c", "//c")], "first")
    second = old_version(folder, 2, [("lost", "//c")], "second")
    old_version(folder, 3, [("b", "//b2")])
    os.utime(first, (1000, 1000))
    os.utime(second, (2000, 2000))
    (folder / "_xsift.lock").touch()
    (folder / "_SUCCESS").touch()
    assert is_table(folder)
    table = SubscriptionTable(folder)
    assert [listed(table, version) for version in range(4)] == [
        [],
        [("a", "//a", False), ("b", "//n:b", False)],
        [("b", "//n:b", False), ("c", "//c", False)],
        [("c", "//c", False), ("b", "//b2", False)],
    ]
    assert table.version() == 3
    assert [(entry.version, entry.added, entry.removed) for entry in table.history()] == [
        (3, 1, 0),
        (2, 1, 1),
        (1, 2, 0),
    ]
    table.add([("d", "//d")])
    again = SubscriptionTable(folder)
    assert again.version() == 4
    assert len(listed(again)) == 3
    again.compact()
    assert not [path for path in folder.iterdir() if path.name.startswith(("part-1-", "_xsift", "_conv", "_SUCC"))]
    assert listed(again, 1) == [("a", "//a", False), ("b", "//n:b", False)]


@pytest.mark.parametrize("call", ["rename", "unlink"])
def test_a_conversion_that_is_killed_comes_again(tmp_path: Path, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "table"
    folder.mkdir()
    old_version(folder, 1, [("a", "//a")])
    done = getattr(Path, call)

    def killed(path: Path, *arguments: Any, **options: Any) -> Any:
        if path.suffix != ".parquet" or call == "unlink":
            raise KeyboardInterrupt
        return done(path, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(Path, call, killed)
        with pytest.raises(KeyboardInterrupt):
            SubscriptionTable(folder)
    assert is_table(folder)
    assert listed(SubscriptionTable(folder)) == [("a", "//a", False)]


def test_arrow_reads_without_python(place: Place) -> None:
    """Arrow's threads outlive a read. One that lets go of a Python object while the interpreter ends aborts it:
    `xsift subscriptions add` did its work and died with `terminate called`, once in ten times on a busy machine."""
    path, options = place
    table = SubscriptionTable.create(path, storage_options=options)
    table.add([("a", "//a")])
    log = delta.Log(table.path, options)
    dataset = log._dataset(pyarrow.dataset.field("_version") > 0)
    [fragment] = dataset.get_fragments()
    if options:
        assert fragment.path == "<Buffer>"
    else:
        assert not isinstance(dataset.filesystem, pyarrow.fs.PyFileSystem)
    assert dataset.to_table(columns=["id"]).to_pylist() == [{"id": "a"}]
