"""A folder is used in the same way on a disk and on an object store."""

from __future__ import annotations

import io
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from xsift.tables.folders import RemoteFolder, open_folder


def test_folder(place: tuple[str, dict[str, str]], tmp_path: Path) -> None:
    folder = open_folder(f"{place[0]}/sub/folder", place[1])
    assert folder.names() == []
    assert folder.read("a") is None
    folder.write("a", b"1")
    folder.write("a", b"22")
    folder.write("b", b"")
    assert folder.names() == ["a", "b"]
    assert folder.read("a") == b"22"
    assert folder.read("b") == b""
    large = bytes(range(256)) * 100_000
    (tmp_path / "large").write_bytes(large)
    folder.put(tmp_path / "large", "c")
    assert not (tmp_path / "large").exists()
    folder.fetch("c", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == large
    with pytest.raises(FileNotFoundError):
        folder.fetch("none", tmp_path / "none")
    folder.delete("a")
    folder.delete("a")
    assert open_folder(f"{place[0]}/sub/folder/", place[1]).names() == ["b", "c"]


def test_a_put_that_is_interrupted_leaves_nothing(tmp_path: Path) -> None:
    """Files are named by their content: half of one would be taken for all of it ever after."""

    class Interrupted(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell():
                raise KeyboardInterrupt
            return super().read(10)

    folder = RemoteFolder(f"file://{tmp_path}", {})
    source: Any = SimpleNamespace(open=lambda _: Interrupted(bytes(100)))
    with pytest.raises(KeyboardInterrupt):
        folder.put(source, "a")
    assert not folder.holds("a")


def test_two_put_a_file_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks of two machines may be processes of the same number."""
    folder, other, move = open_folder(str(tmp_path / "folder")), tmp_path / "other", shutil.move
    (tmp_path / "one").write_bytes(b"whole")
    other.write_bytes(b"whole")

    def moved(source: Path, target: Any) -> None:
        move(source, target)
        if other.exists() and source != other:
            folder.put(other, "a")
            assert folder.read("a") == b"whole"

    monkeypatch.setattr(shutil, "move", moved)
    folder.put(tmp_path / "one", "a")
    assert folder.read("a") == b"whole"
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["a"]
