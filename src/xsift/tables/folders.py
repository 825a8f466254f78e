"""A folder with small files, on this machine or an object store: the same few calls for both.

A file appears whole or not at all, so that whoever reads one never sees half of it. Object stores are reached through
delta-rs, with the same credentials as tables.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.fs

from xsift.tables.places import is_local, location

__all__ = ["Folder", "open_folder"]

CHUNK_BYTES = 8 * 2**20


class Folder(Protocol):
    """What can be done with a folder. Names may have slashes."""

    place: str

    def read(self, name: str) -> bytes | None:
        """The content of a file; None if there is none."""

    def write(self, name: str, content: bytes) -> None:
        """Writes a file, in place of one that is there."""

    def delete(self, name: str) -> None:
        """Deletes a file, if it is there."""

    def names(self) -> list[str]:
        """The files in the folder itself, without those that are still being written."""

    def holds(self, name: str) -> bool:
        """Whether there is such a file."""

    def put(self, source: Path, name: str) -> None:
        """Moves a file of this machine into the folder."""

    def fetch(self, name: str, target: Path) -> None:
        """Copies a file to this machine. Raises FileNotFoundError if there is none."""


def open_folder(path: str, storage_options: Mapping[str, str] | None = None) -> Folder:
    """The folder at a path or URL. It need not exist."""
    place = location(path)
    return LocalFolder(place) if is_local(place) else RemoteFolder(place, dict(storage_options or {}))


class LocalFolder:
    """A folder of this machine, or of a file system that all machines see."""

    def __init__(self, place: str) -> None:
        self.place = place

    def _path(self, name: str) -> Path:
        return Path(self.place, name)

    def read(self, name: str) -> bytes | None:
        try:
            return self._path(name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        target = self._path(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".", suffix=".part")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o644)  # other users may run the workers
        os.replace(temporary, target)

    def delete(self, name: str) -> None:
        self._path(name).unlink(missing_ok=True)

    def names(self) -> list[str]:
        try:
            with os.scandir(self.place) as entries:
                return sorted(entry.name for entry in entries if entry.is_file() and entry.name[0] != ".")
        except FileNotFoundError:
            return []

    def holds(self, name: str) -> bool:
        return self._path(name).exists()

    def put(self, source: Path, name: str) -> None:
        target = self._path(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".", suffix=".part")
        os.close(handle)
        shutil.move(source, temporary)
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)

    def fetch(self, name: str, target: Path) -> None:
        shutil.copyfile(self._path(name), target)


class _TakesBuffers:
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, data: Any) -> int:
        return int(self._stream.write(bytes(data)) or 0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def arrow_filesystem(place: str, storage_options: Mapping[str, str]) -> pyarrow.fs.FileSystem:
    """A location as a file system of Arrow's; paths are below it. Raises OSError if it cannot be reached."""
    if is_local(place):
        os.makedirs(place, exist_ok=True)
        return pyarrow.fs.SubTreeFileSystem(place, pyarrow.fs.LocalFileSystem())
    from deltalake.exceptions import DeltaError  # large: not loaded by those who need no object store
    from deltalake.fs import DeltaStorageHandler

    class Handler(DeltaStorageHandler):
        """The files of an object store for Arrow. Arrow hands over buffers, and delta-rs takes bytes."""

        def open_output_stream(self, path: str, metadata: dict[str, str] | None = None) -> pa.PythonFile:
            return pa.PythonFile(_TakesBuffers(self._handler.open_output_stream(path, metadata)), "w")

    try:
        return pyarrow.fs.PyFileSystem(Handler(place, dict(storage_options)))
    except DeltaError as error:
        raise OSError(f"{place} cannot be reached: {error}") from error


class RemoteFolder:
    """A folder of an object store, where a file appears when all of it was sent."""

    def __init__(self, place: str, storage_options: dict[str, str]) -> None:
        self.place = place
        self._files = arrow_filesystem(place, storage_options)

    def read(self, name: str) -> bytes | None:
        try:
            with self._files.open_input_file(name) as file:
                return bytes(file.read())
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        stream = self._files.open_output_stream(name)
        stream.write(content)
        stream.close()  # not if something went wrong: what is closed appears, whole or not

    def delete(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self._files.delete_file(name)

    def names(self) -> list[str]:
        found = self._files.get_file_info(pyarrow.fs.FileSelector("", allow_not_found=True))
        return sorted(info.base_name for info in found if info.type == pyarrow.fs.FileType.File)

    def holds(self, name: str) -> bool:
        return bool(self._files.get_file_info(name).type == pyarrow.fs.FileType.File)

    def put(self, source: Path, name: str) -> None:
        stream = self._files.open_output_stream(name)
        with source.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                stream.write(chunk)
        stream.close()  # as in write()
        source.unlink()

    def fetch(self, name: str, target: Path) -> None:
        with self._files.open_input_file(name) as stream, target.open("wb") as file:
            while chunk := stream.read(CHUNK_BYTES):
                file.write(chunk)
