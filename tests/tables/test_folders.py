"""A folder is used in the same way on a disk and on an object store."""

from __future__ import annotations

from pathlib import Path

import pytest

from xsift.tables.folders import open_folder


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
