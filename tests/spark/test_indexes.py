"""Where a stream's compiled subscriptions lie: what is written, found, fetched, and deleted."""

from __future__ import annotations

import os
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

import xsift
from tests.tables.conftest import object_store, place  # noqa: F401
from xsift.matching import Matcher
from xsift.spark import indexes
from xsift.spark.indexes import IndexFolder
from xsift.spark.routing import Part


def matcher(*ids: str) -> Matcher:
    made = xsift.Subscriptions()
    made.add_many([(id, f"//{id}") for id in ids])
    return made.matcher()


@pytest.fixture
def folder(
    place: tuple[str, dict[str, str]],  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> IndexFolder:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(indexes, "_sets", OrderedDict())
    return IndexFolder.of(place[0], place[1].items())


def test_a_set_of_indexes(folder: IndexFolder) -> None:
    parts = [folder.save(matcher("a", "b")), folder.save(matcher("c"))]
    assert folder.save(matcher("c")).name == parts[1].name
    masked = Part(parts[0].name, parts[0].size_bytes, np.array([1], dtype=np.int32))
    name = folder.write_set([masked, parts[1]], 7)
    found = folder.read_set(name)
    assert found.version == 7
    assert [part.name for part in found.parts] == [part.name for part in parts]
    assert found.parts[0].removed is not None
    assert found.parts[0].removed.tolist() == [1]
    assert Matcher.load(folder.path_of(parts[1].name)).match("<c/>") == ["c"]
    assert folder.path_of(parts[1].name) == folder.path_of(parts[1].name)
    folder.keep([name, parts[0].name])
    assert sorted(folder._folder().names()) == sorted([name, parts[0].name])
    with pytest.raises(xsift.StorageError, match="missing-index"):
        folder.read_set("none.json")


def test_what_was_fetched_is_checked_and_bounded(
    object_store: dict[str, str],  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = IndexFolder.of(f"s3://tables/{tmp_path.name}", object_store.items())
    parts = [folder.save(matcher(id)) for id in "abc"]
    monkeypatch.setattr(indexes, "CACHE_BYTES", 2 * Path(folder.path_of(parts[0].name)).stat().st_size + 100)
    paths = [Path(folder.path_of(part.name)) for part in parts]
    assert [path.exists() for path in paths] == [False, True, True]
    assert Path(folder.path_of(parts[0].name)).exists()  # fetched once more
    folder._folder().write(parts[1].name, b"something else")
    for path in paths:
        path.unlink(missing_ok=True)
    with pytest.raises(xsift.StorageError, match="not what its name says"):
        folder.path_of(parts[1].name)


def test_room_is_made_while_others_fetch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexes, "CACHE_BYTES", 0)
    for name in ("old.xsift", "new.xsift", ".old.xsift.lock"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "gone.part").symlink_to("named anew")
    indexes._make_room(tmp_path / "new.xsift")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".old.xsift.lock", "gone.part", "new.xsift"]


@pytest.mark.skipif(os.getuid() != 0, reason="gives a folder to another user")
def test_a_cache_that_another_user_leads_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    (tmp_path / "mine").mkdir()
    os.chown(tmp_path / "mine", 12345, -1)
    (tmp_path / "xsift-cache-12345").symlink_to("mine")
    with pytest.raises(xsift.StorageError, match="belongs to another user"):
        indexes._cache()
