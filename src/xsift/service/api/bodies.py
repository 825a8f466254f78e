"""Reading what is sent: bounded, unpacked (gzip, zstd) without letting a small body become a large one, line by
line.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Protocol

import zstandard
from pydantic_core import from_json
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect, Request

from xsift.service.api.problems import Problem

__all__ = [
    "FormPart",
    "Line",
    "charset_in",
    "media_type_of",
    "parse_json",
    "read_body",
    "read_form",
    "read_json",
    "read_lines",
    "too_large",
    "too_long",
]

PIECE = 64 << 10  # bytes that are unpacked at a time: who looks into them has the event loop to himself meanwhile
ZSTD_SLICE = 256  # bytes: four of them can become 128 KB
ZSTD_WINDOW = 8 << 20  # bytes that unpacking may keep: as much as RFC 9659 lets a body ask for
LONGEST_HEADER = 16 << 10  # of a part of a form


def media_type_of(request: Request) -> str:
    """The content type without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def charset_in(kind: str) -> str | None:
    """The encoding that a content type names; it overrides what a document says of itself."""
    for parameter in kind.split(";")[1:] if ";" in kind else ():
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'") or None
    return None


class _Unpacker(Protocol):
    def unpack(self, data: bytes) -> Iterator[bytes]: ...

    def finish(self) -> None: ...


class _Plain:
    def unpack(self, data: bytes) -> Iterator[bytes]:
        yield data

    def finish(self) -> None:
        """Nothing can be missing."""


class _Gzip:
    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(47)

    def unpack(self, data: bytes) -> Iterator[bytes]:
        try:
            while data:
                if self._inflate.eof:  # members that follow each other, as `cat a.gz b.gz` makes them
                    self._inflate = zlib.decompressobj(47)
                yield self._inflate.decompress(data, PIECE)
                data = self._inflate.unconsumed_tail or self._inflate.unused_data
        except zlib.error as error:
            raise Problem(400, "bad-encoding", f"the body is not gzip: {error}") from error

    def finish(self) -> None:
        if not self._inflate.eof:
            raise Problem(400, "bad-encoding", "the gzip body ends too early")


class _Zstd:
    def __init__(self) -> None:
        self._frames = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW)
        self._inflate = self._frames.decompressobj()

    def unpack(self, data: bytes) -> Iterator[bytes]:
        try:
            for begin in range(0, len(data), ZSTD_SLICE):
                part = data[begin : begin + ZSTD_SLICE]
                while part:
                    if self._inflate.eof:  # frames that follow each other, as `cat a.zst b.zst` makes them
                        self._inflate = self._frames.decompressobj()
                    unpacked = self._inflate.decompress(part)
                    for place in range(0, len(unpacked), PIECE):
                        yield unpacked[place : place + PIECE]
                    part = self._inflate.unused_data
        except zstandard.ZstdError as error:
            raise Problem(400, "bad-encoding", f"the body is not zstd: {error}") from error

    def finish(self) -> None:
        if not self._inflate.eof:
            raise Problem(400, "bad-encoding", "the zstd body ends too early")


def _unpacker(request: Request) -> _Unpacker:
    name = request.headers.get("content-encoding", "identity").strip().lower()
    if name in ("", "identity"):
        return _Plain()
    if name in ("gzip", "x-gzip"):
        return _Gzip()
    if name == "zstd":
        return _Zstd()
    raise Problem(415, "bad-encoding", f"content-encoding {name!r} is not known", hint="gzip, zstd, or none")


async def _unpacked(request: Request, most: int) -> AsyncIterator[bytes]:
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > most:
        raise too_large(most)
    unpacker = _unpacker(request)
    size = packed = 0
    async for data in request.stream():
        packed += len(data)
        if packed > most:  # of what unpacks to nothing there may be no end
            raise too_large(most)
        for piece in unpacker.unpack(data):
            size += len(piece)
            if size > most:
                raise too_large(most)
            if piece:
                yield piece
                await asyncio.sleep(0)  # what arrived in one piece may become thousands: others have their turn
    if size or not isinstance(unpacker, _Plain):
        unpacker.finish()


def too_large(most: int) -> Problem:
    return Problem(
        413, "too-large", f"the body is larger than {most:,} bytes", hint="the limit is the operator's: [limits]"
    )


async def read_body(request: Request, most: int) -> bytes:
    """The body, unpacked."""
    if "content-encoding" not in request.headers:
        return await _plain_body(request, most)
    body = bytearray()
    async for piece in _unpacked(request, most):
        body += piece
    return bytes(body)


async def _plain_body(request: Request, most: int) -> bytes:
    """The usual case: nothing to unpack, and mostly all in one piece."""
    first, more = await _received(request)
    if not more:
        if len(first) > most:
            raise too_large(most)
        return first
    body = bytearray(first)
    while more and len(body) <= most:
        piece, more = await _received(request)
        body += piece
    if len(body) > most:
        raise too_large(most)
    return bytes(body)


async def _received(request: Request) -> tuple[bytes, bool]:
    """The next piece of a body, and whether there is more."""
    message = await request.receive()
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    return message.get("body", b""), message.get("more_body", False)


async def read_json(request: Request, most: int) -> object:
    """The body as JSON."""
    return parse_json(await read_body(request, most))


def parse_json(body: bytes) -> object:
    """JSON, or a problem that says where it is not."""
    try:
        return from_json(body)
    except ValueError as error:
        raise Problem(400, "bad-json", f"the body is not JSON: {error}") from error


Line = tuple[int, bytes | None]
"""Its number, from 1 on, and the line; None if it is too long."""


async def read_lines(request: Request, most: int, longest: int) -> AsyncIterator[list[Line]]:
    """The lines of a body as it arrives, some at a time; empty ones are left out."""
    lines = _BodyLines(longest)
    async for piece in _unpacked(request, most):
        found = lines.take(piece)
        if found:
            yield found
    last = lines.end()
    if last:
        yield last


class _BodyLines:
    """Puts lines together. Of one that is too long nothing is kept: it is refused, and the others are not."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._number = 1
        self._begun = bytearray()
        self._is_too_long = False

    def take(self, piece: bytes) -> list[Line]:
        """The lines that end in a piece."""
        found: list[Line] = []
        *ends, rest = piece.split(b"\n")
        for end in ends:
            self._keep(end)
            found += self.end()
        self._keep(rest)
        return found

    def _keep(self, part: bytes) -> None:
        self._begun += part
        if len(self._begun) > self._longest:
            self._is_too_long = True
            self._begun.clear()

    def end(self) -> list[Line]:
        """The line that ends here; none if it is empty."""
        line = None if self._is_too_long else bytes(self._begun)
        number, self._number, self._is_too_long = self._number, self._number + 1, False
        self._begun.clear()
        return [(number, line)] if line is None or line.strip() else []


def too_long(longest: int) -> Problem:
    """What is said of a line that is too long."""
    return Problem(413, "line-too-long", f"a line is longer than {longest:,} bytes")


@dataclass(slots=True)
class FormPart:
    """A document in a form: a field, or a file."""

    label: str
    encoding: str | None
    body: bytes | None
    """None if it is too large."""


class _Form:
    """Takes a form apart. Of a part that is too large nothing is kept: it is refused, and the others are not."""

    def __init__(self, boundary: bytes, largest: int) -> None:
        self._largest = largest
        self._found: list[FormPart] = []
        self.is_whole = False
        self._begin()
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin,
                "on_header_field": self._name,
                "on_header_value": self._value,
                "on_header_end": self._header,
                "on_part_data": self._data,
                "on_part_end": self._end,
                "on_end": self._finish,
            },
        )

    def take(self, piece: bytes) -> list[FormPart]:
        """The parts that end in a piece."""
        try:
            self._parser.write(piece)
        except ValueError as error:  # headers of parts that are none
            raise Problem(400, "bad-form", f"the form cannot be read: {error}") from error
        found, self._found = self._found, []
        return found

    def _begin(self) -> None:
        self._headers: dict[bytes, bytes] = {}
        self._header_name, self._header_value = bytearray(), bytearray()
        self._body, self._is_too_large = bytearray(), False

    def _name(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]
        self._refuse_long_header()

    def _value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]
        self._refuse_long_header()

    def _refuse_long_header(self) -> None:
        if len(self._header_name) + len(self._header_value) > LONGEST_HEADER:
            raise ValueError(f"a header of a part is longer than {LONGEST_HEADER:,} bytes")

    def _header(self) -> None:
        self._headers[bytes(self._header_name).lower()] = bytes(self._header_value)
        self._header_name, self._header_value = bytearray(), bytearray()

    def _data(self, data: bytes, start: int, end: int) -> None:
        if len(self._body) + end - start > self._largest:
            self._is_too_large = True
            self._body.clear()
        if not self._is_too_large:
            self._body += data[start:end]

    def _end(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition"))
        if b"name" not in options:
            raise ValueError("a part has no name")
        label = (options.get(b"filename") or options[b"name"]).decode("utf-8", "replace")[:1000]
        kind = self._headers.get(b"content-type", b"").decode("latin-1") if b"filename" in options else ""
        body = None if self._is_too_large else bytes(self._body)
        self._found.append(FormPart(label, charset_in(kind), body))

    def _finish(self) -> None:
        self.is_whole = True


async def read_form(request: Request, most: int, largest: int) -> AsyncIterator[FormPart]:
    """The documents of a form as they arrive."""
    _, options = parse_options_header(request.headers.get("content-type"))
    try:
        form = _Form(options.get(b"boundary", b""), largest)
    except ValueError as error:
        raise Problem(400, "bad-form", f"the form cannot be read: {error}") from error
    async for piece in _unpacked(request, most):
        for part in form.take(piece):
            yield part
    if not form.is_whole:
        raise Problem(400, "bad-form", "the form ends too early", hint="its last boundary is missing")
