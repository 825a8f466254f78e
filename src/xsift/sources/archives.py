"""The files in .zip and .tar archives, one after the other. What they claim is not trusted.

Archives come from anywhere. A member is read in pieces, up to the bytes that a document may have; what a small
archive claims to contain is never believed. tar files are read here rather than by `tarfile`, which reads headers of
any length into memory and keeps a note of every member.
"""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from xsift.errors import DocumentError
from xsift.sources.compression import (
    READ_ERRORS,
    ByteStream,
    LazyStream,
    Meter,
    decompressed,
    plain_name,
    reason_of,
)
from xsift.sources.kinds import is_xml

__all__ = ["Member", "archive_kind", "members_of_tar", "members_of_zip"]

SMALL_BYTES = 1 << 20  # a member up to this size is read at once; a larger one when it is its turn
PIECE_BYTES = 1 << 16
HEAD_BYTES = 64  # of a member that is not read, to see what it is
BLOCK = 512  # of a tar file
HEADER_LIMIT_BYTES = 1 << 20  # of a tar member's extended header
TAR_ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".tar.zst")
SHORT_ENDINGS = {".tgz": ".gz", ".tbz2": ".bz2", ".txz": ".xz"}


@dataclass(frozen=True)
class Member:
    """A file in an archive: its name, how it begins, and its bytes, or why it has none."""

    name: str
    head: bytes
    content: bytes | LazyStream | IO[bytes] | DocumentError

    @property
    def is_document(self) -> bool:
        """Whether it is an XML document. One that cannot be read may be; if its beginning is known, that tells."""
        is_unknown = isinstance(self.content, DocumentError) and not self.head
        return is_unknown or is_xml(plain_name(self.name), self.head)


def archive_kind(name: str) -> str:
    """ "zip", "tar", or "" if a file's name is not that of an archive."""
    lower = name.lower()
    return "zip" if lower.endswith(".zip") else "tar" if lower.endswith(TAR_ENDINGS) else ""


def _failed(name: str, reason: str, head: bytes = b"") -> Member:
    return Member(name, head, DocumentError("unreadable-file", f"it cannot be read: {reason}"))


# zip


def members_of_zip(source: str | IO[bytes], most_bytes: int, meter: Meter | None = None) -> Iterator[Member]:
    """The files of a .zip archive, given by path or as a file that can seek."""
    archive = zipfile.ZipFile(source)  # closed when the last of its members is let go
    for entry in archive.infolist():
        if not entry.is_dir():
            yield _zip_member(archive, entry, most_bytes)
        if meter:
            meter.done += entry.compress_size


def _zip_member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, most_bytes: int) -> Member:
    name = entry.filename
    if entry.flag_bits & 1:
        return _failed(name, "it is encrypted; unpack the archive first")
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2):
        return _failed(name, f"it is compressed by method {entry.compress_type}; unpack the archive first")

    def opener() -> ByteStream:
        return decompressed(archive.open(entry), name)

    too_large = entry.file_size > most_bytes
    try:
        file = opener()
        head = _read(file, HEAD_BYTES if too_large else SMALL_BYTES + 1)
    except READ_ERRORS as error:
        return _failed(name, reason_of(error))
    if too_large:
        return _too_large(name, head, entry.file_size, most_bytes)
    if len(head) <= SMALL_BYTES:
        return Member(name, head, head)
    return Member(name, head, LazyStream(opener))


def _too_large(name: str, head: bytes, size: int, most_bytes: int) -> Member:
    message = f"the document is too large: {size:,} bytes, where {most_bytes:,} are allowed"
    hint = "raise Limits(bytes=…), --limit bytes=… on the command line, if the document can be trusted"
    return Member(name, head, DocumentError("too-large", message, hint=hint))


def _read(file: ByteStream, size: int) -> bytes:
    """So many bytes, or what there is."""
    pieces, left = [], size
    while left and (piece := file.read(min(left, PIECE_BYTES))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


# tar


def members_of_tar(
    source: str | IO[bytes], name: str, most_bytes: int, meter: Meter | None = None
) -> Iterator[Member]:
    """The files of a .tar archive, compressed or not, given by path or as a file."""
    lower = name.lower()
    ending = next(
        (lower[: -len(short)] + ".tar" + long for short, long in SHORT_ENDINGS.items() if lower.endswith(short)),
        lower,
    )
    if isinstance(source, str):
        file: Any = open(source, "rb")  # noqa: SIM115 closed with the stream
        stream = decompressed(meter.counted(file) if meter else file, ending)
    else:
        stream = decompressed(source, ending)
    try:
        yield from _TarReader(stream, most_bytes).members()
    finally:
        stream.close()


class _TarReader:
    """Reads a tar stream from its beginning to its end: ustar, with the long names of GNU and of pax."""

    def __init__(self, stream: ByteStream, most_bytes: int) -> None:
        self._stream = stream
        self._most_bytes = most_bytes

    def members(self) -> Iterator[Member]:
        """The regular files. Raises OSError if this is no tar file, or it breaks off."""
        long_name = ""
        pax: dict[str, str] = {}
        seen = False
        while (header := self._header(seen)) is not None:
            seen = True
            kind, name, size = header
            size = int(pax["size"]) if pax.get("size", "").isdigit() and len(pax["size"]) < 20 else size
            if kind in (b"L", b"x"):
                text = self._text(size)
                if kind == b"L":
                    long_name = text.rstrip(b"\0").decode("utf-8", "backslashreplace")
                else:
                    pax = _pax_records(text)
                continue
            name = pax.get("path") or long_name or name
            sparse = kind == b"S" or any(key.startswith("GNU.sparse") for key in pax)
            long_name, pax = "", {}
            if kind in (b"1", b"2"):  # no bytes are behind it, whatever its size; what it is, only its name says
                yield _failed(name, "it is stored as a link; unpack the archive first", head=b"link")
            elif kind not in (b"0", b"\0", b"7", b"S") or name.endswith("/"):
                self._skip(size)  # folders, devices, global headers
            elif sparse:
                yield _failed(name, "it is stored as a sparse file; unpack the archive first")
                self._skip(size)
            else:
                yield self._member(name, size)

    def _header(self, seen: bool) -> tuple[bytes, str, int] | None:
        block = _read(self._stream, BLOCK)
        if not block.strip(b"\0"):  # the end: two empty blocks, or nothing
            if block or seen:
                return None
            raise OSError("it is empty")
        if len(block) < BLOCK or _number(block[148:156]) != sum(block[:148]) + 256 + sum(block[156:]):
            raise OSError("it is damaged, or no tar archive" if seen else "it is no tar archive")
        name = block[:100].partition(b"\0")[0]
        prefix = block[345:500].partition(b"\0")[0] if block[257:263] == b"ustar\0" else b""
        full = (prefix + b"/" + name if prefix else name).decode("utf-8", "backslashreplace")
        size = _number(block[124:136])
        if size is None:
            raise OSError("it is damaged: a member has no size")
        return block[156:157], full, size

    def _text(self, size: int) -> bytes:
        if size > HEADER_LIMIT_BYTES:
            raise OSError(f"the header of a member has {size:,} bytes, where {HEADER_LIMIT_BYTES:,} are allowed")
        text = _read(self._stream, size)
        self._pad(size)
        return text

    def _member(self, name: str, size: int) -> Member:
        if size > self._most_bytes:
            head = _read(self._stream, min(size, HEAD_BYTES))
            self._skip(size, len(head))
            return _too_large(name, head, size, self._most_bytes)
        if size <= SMALL_BYTES:
            content: bytes | IO[bytes] = self._exactly(name, size)
            head = bytes(content)  # type: ignore[arg-type]
        else:
            # The stream goes on before the document is read, so a large one waits in a file.
            content = tempfile.TemporaryFile()  # noqa: SIM115
            left = size
            while left:
                piece = self._exactly(name, min(left, PIECE_BYTES))
                content.write(piece)
                left -= len(piece)
            content.seek(0)
            head = content.read(PIECE_BYTES)
            content.seek(0)
        self._pad(size)
        return _inner(name, head, content)

    def _exactly(self, name: str, size: int) -> bytes:
        data = _read(self._stream, size)
        if len(data) < size:
            raise OSError(f"it breaks off inside of {name}")
        return data

    def _skip(self, size: int, seen: int = 0) -> None:
        left = size + -size % BLOCK - seen
        while left and (piece := self._stream.read(min(left, PIECE_BYTES))):
            left -= len(piece)

    def _pad(self, size: int) -> None:
        _read(self._stream, -size % BLOCK)


def _inner(name: str, head: bytes, content: bytes | IO[bytes]) -> Member:
    """A member of a tar file, decompressed if it is itself compressed."""
    file: IO[bytes] = io.BytesIO(content) if isinstance(content, bytes) else content
    plain = decompressed(file, name)
    if plain is file:
        return Member(name, head, content)
    try:
        start = _read(plain, SMALL_BYTES + 1)
    except OSError as error:
        return _failed(name, reason_of(error))
    if len(start) <= SMALL_BYTES:
        return Member(name, start, start)
    return Member(name, start, LazyStream(None, plain, start))


def _number(field: bytes) -> int | None:
    """A number of a tar header: octal digits, or binary if its first bit is set."""
    if field[0] & 0x80:
        return int.from_bytes(field[1:], "big") if field[0] == 0x80 else None
    digits = field.strip(b" \0")
    if not digits:
        return 0
    return int(digits, 8) if digits.isdigit() and not digits.strip(b"01234567") else None


def _pax_records(text: bytes) -> dict[str, str]:
    """ "length key=value" and a newline, again and again; what is not of this form ends it."""
    records: dict[str, str] = {}
    place = 0
    while place < len(text):
        digits, _, _ = text[place : place + 20].partition(b" ")
        if not digits.isdigit():
            break
        length = int(digits)
        if length <= len(digits) + 1:
            break
        key, _, value = text[place + len(digits) + 1 : place + length - 1].partition(b"=")
        records[key.decode("utf-8", "backslashreplace")] = value.decode("utf-8", "backslashreplace")
        place += length
    return records
