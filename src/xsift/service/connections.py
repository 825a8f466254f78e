"""Connections of HTTP: uvicorn's, with bounds on what a client may send before anybody has asked who it is, and on
how long it may leave unread what it asked for.

A body is read as far as whoever asked for it has room. What is no body, headers, trailers and the line with the path,
the parser collects for as long as it comes. An answer that was written is kept until the client has read it.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["Connection", "HttpServer"]

MOST_HEAD_BYTES = 256 << 10  # beside those that arrive together with the first, or with a body: another 256 KB
HEAD_SECONDS = 60.0  # for the head of a request
READ_SECONDS = 60.0  # without a byte's being read of an answer
TICKS = 50  # of uvicorn, a tenth of a second each: so often it is looked who takes longer


class Connection(HttpToolsProtocol):
    """One connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._head_bytes = self._unread = 0
        self._read_at = self.loop.time()
        self._head_since: float | None = self._read_at

    def data_received(self, data: bytes) -> None:
        self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes > MOST_HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("The headers of the request are too large.")

    def on_message_begin(self) -> None:
        self._head_bytes, self._head_since = 0, self.loop.time()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head_since = None
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        super().on_body(body)

    def close_if_slow(self) -> None:
        """Ends a connection on which the head of a request has been awaited for too long, or an answer not read."""
        now, unread = self.loop.time(), self.transport.get_write_buffer_size()
        if not unread or unread != self._unread:
            self._read_at = now
        self._unread = unread
        if now - self._read_at > READ_SECONDS:
            self.transport.abort()  # to close it would wait until it is read
        elif self._head_since is not None and now - self._head_since > HEAD_SECONDS:
            self.transport.close()


class HttpServer(uvicorn.Server):
    """uvicorn, told to stop by us: we have other things to do first."""

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        yield

    async def on_tick(self, counter: int) -> bool:
        if counter % TICKS == 0:
            for connection in list(self.server_state.connections):
                if isinstance(connection, Connection):
                    connection.close_if_slow()
        return await super().on_tick(counter)
