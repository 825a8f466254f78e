"""Several writers at once, writers that are killed: nothing that was acknowledged is lost, and versions stay as they
are."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from deltalake import write_deltalake
from deltalake.exceptions import CommitFailedError

import xsift
from xsift.tables import SubscriptionTable, delta

Place = tuple[str, dict[str, str]]
WRITERS, CHANGES = 4, 15


def test_writers_at_once_all_succeed(place: Place) -> None:
    path, options = place
    SubscriptionTable.create(path, storage_options=options)

    def write(writer: int) -> list[tuple[int, str]]:
        table = SubscriptionTable(path, storage_options=options, user=f"w{writer}")
        for number in range(CHANGES):
            table.add([(f"{writer}-{number}", "//a"), ("everybody", f"//w{writer}")])
            if number % 3 == 2:
                table.remove([f"{writer}-{number - 1}"])
        return [(entry.version, entry.user or "") for entry in table.history()]

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(WRITERS)))
    table = SubscriptionTable(path, storage_options=options)
    ids = set(table.as_of()["id"].to_pylist())
    wanted = {f"{writer}-{number}" for writer in range(WRITERS) for number in range(CHANGES) if number % 3 != 1}
    assert ids == wanted | {"everybody"}
    history = table.history()
    assert len(history) == WRITERS * (CHANGES + CHANGES // 3)
    last = next(entry for entry in history if entry.added)
    assert table.as_of(where={"id": "everybody"})["xpath"].to_pylist() == [f"//{last.user}"]


def test_all_make_the_table_at_once(place: Place) -> None:
    path, options = place

    def make(number: int) -> None:
        table = SubscriptionTable.create(path, storage_options=options, exist_ok=True)
        table.add([(f"s{number}", "//a")])

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(make, range(WRITERS)))
    assert SubscriptionTable(path, storage_options=options).as_of().num_rows == WRITERS


def test_prefixes_that_come_at_once_all_stay(place: Place) -> None:
    path, options = place
    SubscriptionTable.create(path, storage_options=options)

    def declare(number: int) -> None:
        SubscriptionTable(path, storage_options=options).add_namespaces({f"n{number}": f"urn:{number}"})

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(declare, range(2 * WRITERS)))
    found = SubscriptionTable(path, storage_options=options).namespaces
    assert found == {f"n{number}": f"urn:{number}" for number in range(2 * WRITERS)}


def test_prefixes_that_another_gave_can_be_used_at_once(place: Place) -> None:
    path, options = place
    one = SubscriptionTable.create(path, storage_options=options)
    other, third = (SubscriptionTable(path, storage_options=options) for _ in range(2))
    one.add_namespaces({"n": "urn:n"})
    other.add([("a", "//n:p")])
    assert len(third.subscriptions()) == 1
    one.add_namespaces({"m": "urn:m"})
    other.replace([{"id": "a", "xpath": "//m:p", "owner": "me"}])
    assert third.columns == ["owner"]
    assert third.namespaces == {"n": "urn:n", "m": "urn:m"}


def test_of_two_that_remove_the_same_one_gets_an_error(place: Place) -> None:
    path, options = place
    one = SubscriptionTable.create(path, storage_options=options)
    other = SubscriptionTable(path, storage_options=options)
    one.add([("a", "//a")])
    assert other.version() == 1

    def remove(table: SubscriptionTable) -> bool:
        try:
            table.remove(["a"])
        except xsift.SubscriptionError as error:
            return error.code != "unknown-id"
        return True

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(remove, [one, other])) == [False, True]
    assert one.version() == 2


def test_a_reader_sees_each_version_as_it_was_made(place: Place) -> None:
    path, options = place
    writer = SubscriptionTable.create(path, storage_options=options)
    reader = SubscriptionTable(path, storage_options=options)
    seen: dict[int, list[str]] = {}
    for number in range(8):
        writer.add([(f"s{number}", "//a")])
        version = reader.version()
        seen[version] = reader.as_of(version)["id"].to_pylist()
    assert seen == {version: [f"s{number}" for number in range(version)] for version in range(1, 9)}
    assert {version: reader.as_of(version)["id"].to_pylist() for version in seen} == seen


def test_a_commit_whose_answer_is_lost_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = SubscriptionTable.create(tmp_path / "table")
    table.add([("a", "//a")])

    def loses_its_answer(*args: Any, **options: Any) -> None:
        write_deltalake(*args, **options)
        raise CommitFailedError("timeout")

    monkeypatch.setattr(delta, "write_deltalake", loses_its_answer)
    table.remove(["a"])
    assert table.version() == 2
    assert table.as_of().num_rows == 0


def test_a_table_that_cannot_be_written_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = SubscriptionTable.create(tmp_path / "table")

    def fails(*args: object, **options: object) -> None:
        raise CommitFailedError("no space left")

    monkeypatch.setattr(delta, "write_deltalake", fails)
    with pytest.raises(xsift.TableError, match=r"no space left.*unwritable-table"):
        table.add([("a", "//a")])
    monkeypatch.undo()
    assert table.version() == 0


def test_a_reader_whose_files_are_gone_looks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are kept for an hour after they were merged; a reader may have looked before that."""
    monkeypatch.setattr(delta, "DEAD_HOURS", 0)
    writer = SubscriptionTable.create(tmp_path / "table")
    for number in range(5):
        writer.add([(f"s{number}", "//a")])
    reader = SubscriptionTable(tmp_path / "table")
    seen = reader.version()
    writer.compact()
    monkeypatch.setattr(type(reader._log), "look", lambda self: seen)
    assert reader.as_of().num_rows == 5
    assert reader.changes(2).num_rows == 3


def writes_and_tells(path: str, writer: str) -> None:
    table = SubscriptionTable(path)
    number = 0
    while True:
        table.add([(f"{writer}-{number}", "//a")])
        print(f"{writer}-{number}", flush=True)
        if number % 4 == 3:
            table.remove([f"{writer}-{number}"])
            print(f"-{writer}-{number}", flush=True)
        number += 1


@pytest.mark.parametrize("kills", [4])
def test_writers_that_are_killed(tmp_path: Path, kills: int) -> None:
    rng = random.Random(3)
    table = SubscriptionTable.create(tmp_path / "table")
    acknowledged: set[str] = set()
    for kill in range(kills):
        call = f"writes_and_tells({str(tmp_path / 'table')!r}, '{kill}')"
        program = f"from tests.tables.test_writers import writes_and_tells; {call}"
        process = subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True, text=True
        )
        assert process.stdout is not None
        first = process.stdout.readline().strip()
        time.sleep(rng.uniform(0, 0.6))
        os.killpg(process.pid, signal.SIGKILL)
        for line in [first, *process.stdout.read().split()]:
            if line.startswith("-"):
                acknowledged.discard(line[1:])
            else:
                acknowledged.add(line)
        process.wait()
        process.stdout.close()
    found = set(table.as_of()["id"].to_pylist())
    late = acknowledged ^ found  # what was done when its writer could not tell any more: one change a writer at most
    assert len(late) <= kills
    for version in range(1, table.version() + 1):
        assert table.as_of(version).num_rows <= len(found) + kills
    table.add([("still", "//works")])
    table.compact()
    assert "still" in table.as_of()["id"].to_pylist()


def _one_change(path: str, number: int) -> None:
    SubscriptionTable(path).add([(f"p{number}", "//a")])


def test_processes_that_make_one_change_each(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_one_change, args=(path, number)) for number in range(4)]
    SubscriptionTable.create(path)
    for process in processes:
        process.start()
    for process in processes:
        process.join(600)  # a bound for what hangs: each imports everything, and the machine may be busy
        assert process.exitcode == 0
    assert sorted(SubscriptionTable(path).as_of()["id"].to_pylist()) == ["p0", "p1", "p2", "p3"]
