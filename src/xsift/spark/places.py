"""Files by path, folder or glob, on this machine or wherever Arrow can read (s3://, gs://, hdfs://, …), plain or
compressed."""

from __future__ import annotations

import bz2
import glob
import gzip
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pyarrow
import pyarrow.fs

from xsift.errors import DocumentError

__all__ = ["File", "chunks_of", "compressed", "find_files", "size_of"]

CHUNK_BYTES = 4 * 2**20
IN_NAMES = "/:@!$&'()*+,;=~"  # stays as it is in a URL
OPTIONS = re.compile(r"\?\w+=.*")


def _filesystem(path: str) -> tuple[Any, str]:
    if "://" not in path:
        path = os.path.abspath(path.removeprefix("file:"))
        return pyarrow.fs.LocalFileSystem(), path
    place, options = _taken_apart(re.sub("^s3[an]://", "s3://", path))
    url = quote(place, safe=IN_NAMES + "%") + options  # whoever gives a URL may have escaped what cannot be in one
    try:
        return pyarrow.fs.FileSystem.from_uri(url)  # type: ignore[no-any-return]
    except pyarrow.ArrowInvalid as error:
        raise DocumentError("unreadable-file", f"{path} cannot be read: {error}") from error


def _taken_apart(url: str) -> tuple[str, str]:
    """A URL without its options (`?region=…`), and these. A `?` without them is of a glob or a name."""
    found = OPTIONS.search(url)
    return (url[: found.start()], found[0]) if found else (url, "")


@dataclass(frozen=True, order=True)
class File:
    """A file by its path or URL, and the bytes that it is stored in."""

    path: str
    size_bytes: int


def find_files(paths: str | Sequence[str], *, missing_ok: bool = False) -> list[File]:
    """The files that paths, folders and globs name, sorted, each once. Left out are hidden ones, those in hidden
    folders, and those that are still being written (`_temporary/…`, `.name`, `_name`, `.part`, `.tmp`), as Spark
    does. A path that is not there is an error, unless that is all right: an object store has no empty folders."""
    listed = [paths] if isinstance(paths, str) else list(paths)
    return sorted({file for path in listed for file in _files_at(path, missing_ok)})


def _files_at(path: str, missing_ok: bool) -> Iterator[File]:
    system, name = _filesystem(path)
    information = system.get_file_info(name)
    if information.type == pyarrow.fs.FileType.File:
        yield File(path, information.size)
        return
    below, pattern = name, ""
    if information.type == pyarrow.fs.FileType.NotFound:
        if not glob.has_magic(name):
            if missing_ok:
                return
            raise DocumentError("unreadable-file", f"{path} does not exist")
        below = _before_magic(name)
        pattern = name[len(below) :].lstrip("/")
        if system.get_file_info(below).type != pyarrow.fs.FileType.Directory:
            return
    matches = _matcher_of(pattern)
    for found in system.get_file_info(pyarrow.fs.FileSelector(below, recursive=True)):
        inside = found.path[len(below) :].lstrip("/")
        if found.type == pyarrow.fs.FileType.File and _visible(inside) and matches(inside):
            yield File(_named(path, pattern, inside) if "://" in path else found.path, found.size)


def _before_magic(name: str) -> str:
    """The folder above the first part of a path that has a star or the like in it."""
    parts = name.split("/")
    first = next(place for place, part in enumerate(parts) if glob.has_magic(part))
    return "/".join(parts[:first]) or "/"


def _matcher_of(pattern: str) -> Callable[[str], bool]:
    """Whether a path below the folder is one that a glob means: a file that it names, or one in a folder that it
    names. `**` stands for any number of folders."""
    if not pattern:
        return lambda _: True
    parts = [".*" if part == "**" else _part_pattern(part) for part in pattern.split("/")]
    expression = re.compile("/".join(parts).replace(".*/", "(?:.*/)?") + "(?:/.*)?", re.DOTALL)
    return lambda inside: expression.fullmatch(inside) is not None


def _part_pattern(part: str) -> str:
    translated = re.escape(part).replace(r"\*", "[^/]*").replace(r"\?", "[^/]")
    return re.sub(
        r"\\\[(.*?)\\\]", lambda found: "[" + found[1].replace("\\", "").replace("!", "^", 1) + "]", translated
    )


def _named(url: str, pattern: str, inside: str) -> str:
    """The URL of a file that was found below the folder of a URL, which may have a pattern at its end. (What a file
    system calls it is without the host or account.)"""
    place, options = _taken_apart(url)
    folder = place.rsplit("/", pattern.count("/") + 1)[0] if pattern else place.rstrip("/")
    return f"{folder}/{quote(inside, safe=IN_NAMES)}{options}"


def _visible(inside: str) -> bool:
    return not inside.endswith((".part", ".tmp")) and not any(part[:1] in ("_", ".") for part in inside.split("/"))


def compressed(path: str) -> bool:
    """Whether a file is compressed, by its name."""
    return path.endswith((".gz", ".bz2"))


def size_of(path: str) -> int:
    """The bytes of a file as it is stored; 0 if it is not there any more."""
    system, name = _filesystem(path)
    return int(system.get_file_info(name).size or 0)


def chunks_of(path: str, begin: int = 0, end: int | None = None) -> Iterator[bytes]:
    """The bytes of a file, decompressed, in chunks. Raises EOFError if it has become shorter than `end`."""
    system, name = _filesystem(path)
    with system.open_input_file(name) as raw:
        if compressed(path):
            opened = gzip.GzipFile(fileobj=raw) if path.endswith(".gz") else bz2.BZ2File(raw)
            with opened as stream:
                while chunk := stream.read(CHUNK_BYTES):
                    yield chunk
            return
        raw.seek(begin)
        stop = raw.size() if end is None else end
        remaining = stop - begin
        while remaining > 0 and (chunk := raw.read(min(CHUNK_BYTES, remaining))):
            remaining -= len(chunk)
            yield chunk
        if remaining > 0:
            raise EOFError(f"it has no more than {raw.size():,} bytes now, and had {stop:,}")
