"""Reading what is sent: bounded, unpacked (gzip, zstd) without letting a small body become a large one, line by
line.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterator
from typing import Protocol

import zstandard
from pydantic_core import from_json
from starlette.requests import ClientDisconnect, Request

from xsift.service.api.problems import Problem

__all__ = ["charset_of", "media_type_of", "parse_json", "read_body", "read_json", "read_lines"]

PIECE = 1 << 20  # bytes that are unpacked at a time
ZSTD_SLICE = 256  # bytes: four of them can become 128 KB


def media_type_of(request: Request) -> str:
    """The content type without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def charset_of(request: Request) -> str | None:
    """The encoding that the content type names; it overrides what a document says of itself."""
    kind = request.headers.get("content-type", "")
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
        self._inflate = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()

    def unpack(self, data: bytes) -> Iterator[bytes]:
        try:
            for begin in range(0, len(data), ZSTD_SLICE):
                yield self._inflate.decompress(data[begin : begin + ZSTD_SLICE])
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
    size = 0
    async for data in request.stream():
        for piece in unpacker.unpack(data):
            size += len(piece)
            if size > most:
                raise too_large(most)
            if piece:
                yield piece
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
    pieces = [piece async for piece in _unpacked(request, most)]
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


async def _plain_body(request: Request, most: int) -> bytes:
    """The usual case: nothing to unpack, and mostly all in one piece."""
    body = b""
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        piece: bytes = message.get("body", b"")
        body = body + piece if body else piece
        if len(body) > most:
            raise too_large(most)
        if not message.get("more_body", False):
            return body


async def read_json(request: Request, most: int) -> object:
    """The body as JSON."""
    return parse_json(await read_body(request, most))


def parse_json(body: bytes) -> object:
    """JSON, or a problem that says where it is not."""
    try:
        return from_json(body)
    except ValueError as error:
        raise Problem(400, "bad-json", f"the body is not JSON: {error}") from error


async def read_lines(request: Request, most: int, longest: int) -> AsyncIterator[list[tuple[int, bytes]]]:
    """The lines of a body as it arrives, some at a time, with their numbers; empty ones are left out."""
    rest, number = b"", 0
    async for piece in _unpacked(request, most):
        lines = (rest + piece).split(b"\n")
        rest = lines.pop()
        if len(rest) > longest or any(len(line) > longest for line in lines):
            raise Problem(413, "line-too-long", f"a line is longer than {longest:,} bytes")
        found = [(place, line) for place, line in enumerate(lines, number + 1) if line.strip()]
        number += len(lines)
        if found:
            yield found
    if rest.strip():
        yield [(number + 1, rest)]
