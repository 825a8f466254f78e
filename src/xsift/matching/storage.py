"""A file of named arrays that can be mapped into memory: what a saved matcher is made of.

Layout: the 8 bytes of MAGIC, an 8-byte length, a 4-byte checksum of all that follows, a JSON header of that length,
then the arrays one after the other, each at a multiple of 64 bytes. The header has free-form `facts` and, for each
array, its name, type, shape and offset. Reading maps the file, so that processes which map the same file share its
pages.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from xsift.errors import StorageError

MAGIC = b"xsift\x00\x00\x02"  # the last byte grows when the layout of an array changes
BODY = len(MAGIC) + 8 + 4  # where the header begins
ALIGNMENT = 64

Array = npt.NDArray[Any]


def write(path: str | os.PathLike[str], facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Writes a file whole or not at all: a reader never sees half of one."""
    target = Path(path)
    entries, offset = [], 0
    for name, array in arrays.items():
        offset = _aligned(offset)
        entries.append({"name": name, "type": array.dtype.str, "shape": list(array.shape), "offset": offset})
        offset += array.nbytes
    header = json.dumps({"facts": dict(facts), "arrays": entries, "bytes": offset}).encode()
    start = _aligned(BODY + len(header))
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(MAGIC + struct.pack("<QI", len(header), 0) + header)
            for entry, array in zip(entries, arrays.values(), strict=True):
                file.seek(start + entry["offset"])  # type: ignore[operator]
                file.write(np.ascontiguousarray(array).tobytes())
            file.truncate(start + offset)
        _write_checksum(temporary)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Array]]:
    """The facts and the arrays of a file; the arrays are read-only views of the mapped file."""
    try:
        with open(path, "rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError as error:
        raise StorageError("not-a-matcher", f"{os.fspath(path)} is empty") from error
    except OSError as error:
        raise StorageError("unreadable-file", f"{os.fspath(path)} cannot be read: {error.strerror}") from error
    try:
        return _parse(mapped)
    except (ValueError, KeyError, TypeError, struct.error) as error:
        hint = "it was written by another version of xsift, or is damaged: save the matcher again"
        raise StorageError(
            "not-a-matcher", f"{os.fspath(path)} is not a saved matcher ({error})", hint=hint
        ) from error


def _parse(mapped: mmap.mmap) -> tuple[dict[str, Any], dict[str, Array]]:
    if mapped[: len(MAGIC)] != MAGIC:
        raise ValueError("it does not begin as one")
    length, checksum = struct.unpack_from("<QI", mapped, len(MAGIC))
    if _checksum(mapped) != checksum:
        raise ValueError("its checksum is wrong")
    header = json.loads(mapped[BODY : BODY + length])
    start = _aligned(BODY + length)
    if start + header["bytes"] != len(mapped):
        raise ValueError("its length is wrong")
    arrays = {}
    for entry in header["arrays"]:
        shape = tuple(entry["shape"])
        arrays[entry["name"]] = np.ndarray(shape, np.dtype(entry["type"]), mapped, start + entry["offset"])
    return header["facts"], arrays


def _checksum(mapped: mmap.mmap) -> int:
    with memoryview(mapped) as view, view[BODY:] as body:
        return zlib.crc32(body)


def _write_checksum(path: str) -> None:
    with open(path, "r+b") as file:
        with mmap.mmap(file.fileno(), 0) as mapped:
            checksum = _checksum(mapped)
        file.seek(len(MAGIC) + 8)
        file.write(struct.pack("<I", checksum))


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT
