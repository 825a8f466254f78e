"""Numbers of documents: they grow with time, are made without asking the database, and differ between servers.

41 bits of milliseconds since 2020, 10 bits of the server, 12 bits that count.
"""

from __future__ import annotations

import threading
import time

from xsift.errors import XsiftError

__all__ = [
    "MOST_AT_ONCE",
    "MOST_SERVERS",
    "Numbers",
    "delivery_id",
    "document_id",
    "first_number",
    "parse_delivery_id",
    "parse_document_id",
]

EPOCH = 1_577_836_800_000
SERVER_BITS, COUNT_BITS = 10, 12
MOST_SERVERS = 1 << SERVER_BITS
MOST_AT_ONCE = 1 << COUNT_BITS


class Numbers:
    """Makes numbers of documents, for one server: larger ones than `last`."""

    def __init__(self, server: int, last: int = 0) -> None:
        self._lock = threading.Lock()
        self._millisecond = last >> (SERVER_BITS + COUNT_BITS)
        self.move(server)

    def move(self, server: int) -> None:
        """From now on they are those of another server, and larger than all before."""
        if not 0 <= server < MOST_SERVERS:
            raise ValueError(f"server is {server}; from 0 to {MOST_SERVERS - 1}")
        with self._lock:
            self.server, self._count = server, MOST_AT_ONCE

    def take(self, number: int = 1) -> int:
        """The first of `number` consecutive numbers."""
        if not 1 <= number <= MOST_AT_ONCE:
            raise ValueError(f"number is {number}; from 1 to {MOST_AT_ONCE}")
        with self._lock:
            # A clock that goes back, also while no server ran, must not make numbers that were given out before.
            now = max(self._millisecond, time.time_ns() // 1_000_000 - EPOCH)
            if now > self._millisecond:
                self._millisecond, self._count = now, 0
            if self._count + number > MOST_AT_ONCE:
                self._millisecond, self._count = self._millisecond + 1, 0
            first = (self._millisecond << SERVER_BITS | self.server) << COUNT_BITS | self._count
            self._count += number
            return first


def first_number(at: float) -> int:
    """The least number that a document of this time, or a later one, can have."""
    return max(0, int(at * 1000) - EPOCH) << (SERVER_BITS + COUNT_BITS)


def document_id(number: int) -> str:
    """What people see."""
    return f"{number:016x}"


def parse_document_id(id: str) -> int:
    """The number of a document. Raises XsiftError if it cannot be one."""
    try:
        if len(id) == 16:
            return int(id, 16) & (1 << 63) - 1
    except ValueError:
        pass
    raise XsiftError("unknown-document", f"there is no document {id[:40]!r}")


def delivery_id(subscriber: int, place: int) -> str:
    """The id that a delivery keeps however often it is sent."""
    return f"{subscriber}-{place}"


def parse_delivery_id(id: str, subscriber: int) -> int:
    """The place of a delivery in the sequence of a subscriber. Raises XsiftError if it is none of its."""
    first, _, last = id.strip().rpartition("-")
    if last.isascii() and last.isdigit() and len(last) <= 18 and first in ("", str(subscriber)):
        return int(last)
    raise XsiftError(
        "unknown-delivery",
        f"{id[:40]!r} is no delivery to this subscriber",
        hint="use the id of one that it received",
    )
