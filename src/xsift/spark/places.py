"""Files by path, folder or glob, on this machine or wherever Arrow can read (s3://, gs://, hdfs://, …), plain or
compressed."""

from __future__ import annotations

import bz2
import glob
import gzip
import os
from collections.abc import Iterator
from typing import Any

import pyarrow.fs

from xsift.errors import DocumentError

__all__ = ["chunks_of", "compressed", "find_files", "size_of"]

CHUNK_BYTES = 4 * 2**20


def _filesystem(path: str) -> tuple[Any, str]:
    if "://" not in path:
        path = os.path.abspath(path.removeprefix("file:"))
        return pyarrow.fs.LocalFileSystem(), path
    return pyarrow.fs.FileSystem.from_uri(path)  # type: ignore[no-any-return]


def find_files(path: str) -> list[str]:
    """The files that a path names, sorted; hidden ones and those that are still being written (._, _, .part, .tmp)
    left out."""
    if "://" not in path and glob.has_magic(path) and not os.path.exists(path):
        found = [name for name in glob.glob(path, recursive=True) if os.path.isfile(name)]
        return sorted(name for name in found if _visible(name))
    system, name = _filesystem(path)
    information = system.get_file_info(name)
    if information.type == pyarrow.fs.FileType.NotFound:
        raise DocumentError("unreadable-file", f"{path} does not exist")
    if information.type == pyarrow.fs.FileType.File:
        return [path]
    inside = system.get_file_info(pyarrow.fs.FileSelector(name, recursive=True))
    files = [found.path for found in inside if found.type == pyarrow.fs.FileType.File and _visible(found.path)]
    prefix = path[: path.index("://") + 3] if "://" in path else ""
    return sorted(prefix + file.lstrip("/") if prefix and prefix != "file://" else prefix + file for file in files)


def _visible(path: str) -> bool:
    return not os.path.basename(path).startswith((".", "_")) and not path.endswith((".part", ".tmp"))


def compressed(path: str) -> bool:
    """Whether a file is compressed, by its name."""
    return path.endswith((".gz", ".bz2"))


def size_of(path: str) -> int:
    """The bytes of a file as it is stored."""
    system, name = _filesystem(path)
    return int(system.get_file_info(name).size or 0)


def chunks_of(path: str, begin: int = 0, end: int | None = None) -> Iterator[bytes]:
    """The bytes of a file, decompressed, in chunks."""
    system, name = _filesystem(path)
    with system.open_input_file(name) as raw:
        if compressed(path):
            opened = gzip.GzipFile(fileobj=raw) if path.endswith(".gz") else bz2.BZ2File(raw)
            with opened as stream:
                while chunk := stream.read(CHUNK_BYTES):
                    yield chunk
            return
        raw.seek(begin)
        remaining = (end if end is not None else raw.size()) - begin
        while remaining > 0 and (chunk := raw.read(min(CHUNK_BYTES, remaining))):
            remaining -= len(chunk)
            yield chunk
