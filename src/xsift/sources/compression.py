"""Compressed files as streams of plain bytes: .gz, .bz2, .xz, .zst, by the file's name.

A small file can decompress to any size. So nothing here reads a file whole: whoever reads asks for a number of bytes
and gets no more, and a decompressor that wants much memory for itself is refused.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any, Protocol

import pyarrow as pa

__all__ = [
    "COMPRESSED",
    "READ_ERRORS",
    "ByteStream",
    "LazyStream",
    "Meter",
    "chunks_of",
    "decompressed",
    "open_plain",
    "plain_name",
    "reason_of",
]

COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
CHUNK_BYTES = 1 << 18
READ_ERRORS = (
    OSError,
    EOFError,
    ValueError,
    ArithmeticError,
    RuntimeError,
    MemoryError,
    struct.error,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    pa.ArrowException,
)
"""What readers of compressed files, archives and tables raise about files that are damaged, or made to harm."""
XZ_MEMORY_BYTES = 256 << 20  # what `xz -9` needs is a quarter of it


class ByteStream(Protocol):
    """What all sources of bytes can do."""

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes; none at the end."""
        ...


class Meter:
    """How many bytes of the files on disk have been read, for those who want to show it."""

    def __init__(self) -> None:
        self.done = 0

    def counted(self, file: IO[bytes]) -> IO[bytes]:
        """A file whose reads are counted."""
        return _Counted(file, self)  # type: ignore[return-value]


class _Counted:
    def __init__(self, file: IO[bytes], meter: Meter) -> None:
        self._file = file
        self._meter = meter
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._meter.done += len(data)
        return data

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True
        self._file.close()

    def __enter__(self) -> _Counted:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def plain_name(name: str) -> str:
    """A name in lower case, without the ending of a compression."""
    lower = name.lower()
    return next((lower[: -len(ending)] for ending in COMPRESSED if lower.endswith(ending)), lower)


def open_plain(path: str, meter: Meter | None = None) -> IO[bytes]:
    """A file, opened for reading its plain bytes. What goes wrong while it is read is an OSError."""
    file: Any = open(path, "rb")  # noqa: SIM115 closed with the stream that is returned
    try:
        return decompressed(meter.counted(file) if meter else file, path)
    except BaseException:
        file.close()
        raise


def decompressed(file: IO[bytes], name: str) -> IO[bytes]:
    """A file's plain bytes; its name says how it is compressed."""
    lower = name.lower()
    if not lower.endswith(COMPRESSED):
        return file
    return _Decompressed(file, lower)  # type: ignore[return-value]


class _Decompressed:
    """A decompressor that closes its file with itself, and whose errors are all OSErrors."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file = file
        self._plain: Any = None
        self._name = name

    def read(self, size: int = CHUNK_BYTES) -> bytes:
        try:
            if self._plain is None:
                self._plain = _decompressor(self._file, self._name)
            data = self._plain.read(size if size >= 0 else CHUNK_BYTES)
        except READ_ERRORS as error:
            raise OSError(reason_of(error)) from error
        return bytes(data)

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> _Decompressed:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _decompressor(file: IO[bytes], name: str) -> Any:
    if name.endswith(".gz"):
        return gzip.GzipFile(fileobj=file, mode="rb")
    if name.endswith(".bz2"):
        return bz2.BZ2File(file)
    if name.endswith(".xz"):
        return _XzFile(file)
    return _ZstandardFile(file)


class _XzFile:
    """An .xz file: one or more streams, with zeros between them. Unlike lzma's own class it bounds memory."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decompressor = lzma.LZMADecompressor(memlimit=XZ_MEMORY_BYTES)

    def read(self, size: int) -> bytes:
        while True:
            data = b""
            if self._decompressor.eof:
                data = self._next_stream()
                if not data:
                    return b""
                self._decompressor = lzma.LZMADecompressor(memlimit=XZ_MEMORY_BYTES)
            elif self._decompressor.needs_input:
                data = self._file.read(CHUNK_BYTES)
                if not data:
                    raise EOFError("it ends inside of its compressed data")
            plain = self._decompressor.decompress(data, size)
            if plain:
                return plain

    def _next_stream(self) -> bytes:
        """What follows the stream that ended, without the padding."""
        data = self._decompressor.unused_data.lstrip(b"\0")
        while not data:
            data = self._file.read(CHUNK_BYTES)
            if not data:
                return b""
            data = data.lstrip(b"\0")
        return data


class _ZstandardFile:
    """A .zst file, through Arrow, which refuses windows of more than 128 MiB."""

    def __init__(self, file: IO[bytes]) -> None:
        self._stream = pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd")

    def read(self, size: int) -> bytes:
        return self._stream.read(size)  # type: ignore[no-any-return]


class LazyStream:
    """A stream that is opened when it is first read, and closed at its end. Its errors are OSErrors, which those who
    read documents turn into the error of that document."""

    def __init__(
        self, opener: Callable[[], ByteStream] | None, file: ByteStream | None = None, head: bytes = b""
    ) -> None:
        """`opener` opens the stream, as often as it is asked to; or it is a `file` that is open, behind a `head` that
        was read already."""
        self._opener = opener
        self._head = head
        self._file = file
        self._ended = False

    def read(self, size: int = CHUNK_BYTES, /) -> bytes:
        """At most `size` bytes; none at the end."""
        if self._head:
            data, self._head = self._head[:size], self._head[size:]
            return data
        if self._ended:
            return b""
        try:
            if self._file is None and self._opener is not None:
                self._file = self._opener()
            assert self._file is not None
            data = self._file.read(size)
        except READ_ERRORS as error:
            self.close()
            raise OSError(reason_of(error)) from error
        if not data:
            self.close()
        return bytes(data)

    def first_bytes(self, size: int) -> bytes:
        """The beginning once more, for those who want to know what was wrong; nothing if it is gone."""
        if self._opener is None:
            return b""
        again = LazyStream(self._opener)
        try:
            pieces = []
            while size > 0 and (piece := again.read(min(size, CHUNK_BYTES))):
                pieces.append(piece)
                size -= len(piece)
            return b"".join(pieces)
        except OSError:
            return b""
        finally:
            again.close()

    def close(self) -> None:
        """Lets go of the file."""
        self._ended = True
        if self._file is not None and hasattr(self._file, "close"):
            self._file.close()
        self._file = None


def chunks_of(file: ByteStream, size: int = CHUNK_BYTES) -> Iterator[bytes]:
    """The bytes of a stream, chunk by chunk."""
    while chunk := file.read(size):
        yield chunk


def reason_of(error: BaseException) -> str:
    """What was wrong, in a line. The standard library's own words, or the kind of error if it has none."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else "") or type(error).__name__
