"""A file of named arrays that can be mapped into memory: what a saved matcher is made of.

Layout: the 8 bytes of MAGIC, an 8-byte length, a 4-byte checksum of all that follows, a JSON header of that length,
then the arrays one after the other, each at a multiple of 64 bytes. The header has free-form `facts` and, for each
array, its name, type, shape and offset. Reading maps the file, so that processes which map the same file share its
pages.
"""

from __future__ import annotations

import errno
import io
import json
import mmap
import os
import secrets
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from xsift.errors import StorageError

MAGIC = b"xsift\x00\x00\x05"  # the last byte grows when the layout of an array changes
BODY = len(MAGIC) + 8 + 4  # where the header begins
ALIGNMENT = 64
KINDS = ("|u1", "<i4", "<i8")  # of elements of arrays

Array = npt.NDArray[Any]


def write(path: str | os.PathLike[str], facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Writes a file whole or not at all: a reader never sees half of one. A link stays one, to the new file."""
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(target.parent))
    if target.exists() and not target.is_file():  # a device or a pipe would be gone, for everybody
        raise OSError(errno.EINVAL, "it is no file", str(target))
    temporary = target.with_name(f"{target.name}.{secrets.token_hex(8)}.part")
    try:
        with open(temporary, "xb") as file:
            _write(file, facts, arrays)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def dumps(facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """The same as bytes, for `loads`."""
    file = io.BytesIO()
    _write(file, facts, arrays)
    return file.getvalue()


def loads(data: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """The facts and the arrays of what `dumps` gave."""
    return _parse(data)


def _write(file: BinaryIO, facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    entries, offset = [], 0
    for name, array in arrays.items():
        offset = _aligned(offset)
        entries.append(
            (offset, {"name": name, "type": array.dtype.str, "shape": list(array.shape), "offset": offset})
        )
        offset += array.nbytes
    described = [entry for _, entry in entries]
    header = json.dumps({"facts": dict(facts), "arrays": described, "bytes": offset}).encode()
    start = _aligned(BODY + len(header))
    file.write(MAGIC + struct.pack("<QI", len(header), 0) + header)
    checksum = zlib.crc32(header)
    at = BODY + len(header)
    for (place, _), array in zip(entries, arrays.values(), strict=True):
        # As it lies in memory: an index of gigabytes is not copied only to be written.
        for piece in (bytes(start + place - at), np.ascontiguousarray(array).reshape(-1).view(np.uint8).data):
            checksum = zlib.crc32(piece, checksum)
            file.write(piece)
        at = start + place + array.nbytes
    rest = bytes(start + offset - at)
    file.write(rest)
    file.seek(len(MAGIC) + 8)
    file.write(struct.pack("<I", zlib.crc32(rest, checksum)))


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
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError, struct.error) as error:
        hint = "it was written by another version of xsift, or is damaged: save the matcher again"
        raise StorageError(
            "not-a-matcher", f"{os.fspath(path)} is not a saved matcher ({error})", hint=hint
        ) from error


def _parse(data: mmap.mmap | bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    if data[: len(MAGIC)] != MAGIC:
        raise ValueError("it does not begin as one")
    length, checksum = struct.unpack_from("<QI", data, len(MAGIC))
    with memoryview(data) as view, view[BODY:] as body:
        if zlib.crc32(body) != checksum:
            raise ValueError("its checksum is wrong")
    header = json.loads(data[BODY : BODY + length])
    start = _aligned(BODY + length)
    if start + header["bytes"] != len(data):
        raise ValueError("its length is wrong")
    arrays = {}
    for entry in header["arrays"]:
        kind, offset = entry["type"], entry["offset"]
        if kind not in KINDS or not isinstance(offset, int) or offset < 0 or offset % ALIGNMENT:
            raise ValueError(f"the array {entry['name']!r} is of a kind that cannot be")
        arrays[entry["name"]] = np.ndarray(tuple(entry["shape"]), np.dtype(kind), data, start + offset)
    return header["facts"], arrays


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT
