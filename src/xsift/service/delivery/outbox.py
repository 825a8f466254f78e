"""The outbox: deliveries that were made durable, for whoever reads them.

A reader has a place in a subscriber's sequence. What is new it gets from memory, where the last deliveries to
subscribers with readers are kept; when it is further behind, from the store, a page at a time. So a slow reader
costs a page of memory, and nobody waits for it. A page that is large, because one delivery is, takes room until it
was passed on, and there is so much of that for an owner.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar
from weakref import WeakValueDictionary

from sqlalchemy import Connection, select

from xsift.service.store import deliveries as store
from xsift.service.store.database import Database
from xsift.service.store.deliveries import StoredDelivery
from xsift.service.store.schema import subscribers

__all__ = ["Outbox", "Reads", "SequenceReader"]

Result = TypeVar("Result")

TAIL = 256  # deliveries of a subscriber that are kept in memory for its readers
TAIL_BYTES = 64 << 20  # of all subscribers together
PAGE = 100
LARGE = 1 << 20  # bytes of a page that takes room,
ROOM = 128 << 20  # and how much there is for an owner's readers, or for one page that is larger
POLL_SECONDS = 0.1  # how often a server looks for deliveries that other servers made


class Reads:
    """Questions to the store, on a few threads of their own."""

    def __init__(self, database: Database, threads: int = 6) -> None:
        self._database = database
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="xsift-read")

    async def run(self, question: Callable[[Connection], Result]) -> Result:
        """What the store answers."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, self.run_blocking, question)

    def run_blocking(self, question: Callable[[Connection], Result]) -> Result:
        with self._database.connect() as connection, connection.begin():
            return question(connection)

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


class _Room:
    """Room for large pages: who reads one has it until it was passed on. Who asks first has it first."""

    def __init__(self, size: int) -> None:
        self._size = self._free = size
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def take(self, size: int) -> int:
        """Waits for room; returns how much is to be given back."""
        size = min(size, self._size)
        if not self._waiting and size <= self._free:
            self._free -= size
            return size
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        try:
            await turn
        except asyncio.CancelledError:
            self.give(0 if turn.cancelled() else size)
            raise
        return size

    def give(self, size: int) -> None:
        self._free += size
        while self._waiting:
            wanted, turn = self._waiting[0]
            if not turn.done():  # else who waited has gone
                if wanted > self._free:
                    return
                self._free -= wanted
                turn.set_result(None)
            self._waiting.popleft()


class _Channel:
    """The last deliveries to one subscriber that has readers."""

    __slots__ = ("last", "readers", "size", "tail")

    def __init__(self, last: int) -> None:
        self.last = last
        self.tail: deque[StoredDelivery] = deque()
        self.size = 0
        self.readers: set[SequenceReader] = set()


class Outbox:
    """Hands deliveries to readers. All but `committed` belongs to the event loop."""

    def __init__(self, reads: Reads, *, alone: bool) -> None:
        self._reads = reads
        self._alone = alone
        self._channels: dict[int, _Channel] = {}
        self._rooms: WeakValueDictionary[str, _Room] = WeakValueDictionary()  # by owner
        self._size = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._watch: asyncio.Task[None] | None = None
        self.on_arrival: Callable[[set[int]], None] = lambda numbers: None
        """Called with the subscribers that something was delivered to."""

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        if not self._alone:
            self._watch = asyncio.create_task(self._watch_others())

    async def close(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watch

    def committed(self, made: list[StoredDelivery]) -> None:
        """From the writer's thread: these are durable."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: readers find them after the next start
                self._loop.call_soon_threadsafe(self._arrived, made)

    def _arrived(self, made: list[StoredDelivery]) -> None:
        touched: set[int] = set()
        for delivery in made:
            touched.add(delivery.subscriber)
            channel = self._channels.get(delivery.subscriber)
            if channel is not None:
                self._append(channel, delivery)
        for number in touched & self._channels.keys():
            for reader in self._channels[number].readers:
                reader.changed.set()
        self.on_arrival(touched)

    def _append(self, channel: _Channel, delivery: StoredDelivery) -> None:
        if channel.tail and channel.tail[-1].place + 1 != delivery.place:
            self._forget(channel)  # another server made one in between
        channel.tail.append(delivery)
        channel.last = max(channel.last, delivery.place)
        size = _size(delivery)
        channel.size += size
        self._size += size
        while len(channel.tail) > TAIL or (self._size > TAIL_BYTES and channel.tail):
            gone = _size(channel.tail.popleft())
            channel.size -= gone
            self._size -= gone

    def _forget(self, channel: _Channel) -> None:
        self._size -= channel.size
        channel.size = 0
        channel.tail.clear()

    async def attach(self, subscriber: int, after: int, owner: str) -> SequenceReader:
        """A reader of what comes after a place, to a subscriber of an owner. Close it."""
        channel = self._channels.get(subscriber)
        if channel is None:
            channel = self._channels[subscriber] = _Channel(0)
        room = self._rooms.setdefault(owner, _Room(ROOM))
        reader = SequenceReader(self, subscriber, after, channel, room)
        channel.readers.add(reader)
        # What is made from now on arrives in the channel; what was made before is in the store.
        query = select(subscribers.c.last_place).where(subscribers.c.number == subscriber)
        try:
            last = await self._reads.run(lambda connection: connection.scalar(query))
        except BaseException:
            self.detach(reader)
            raise
        channel.last = max(channel.last, int(last or 0))
        return reader

    def detach(self, reader: SequenceReader) -> None:
        channel = self._channels.get(reader.subscriber)
        if channel is not None:
            channel.readers.discard(reader)
            if not channel.readers:
                self._forget(channel)
                del self._channels[reader.subscriber]

    def wake_all(self, subscriber: int) -> None:
        """Makes readers of a subscriber look up: it was changed or removed."""
        channel = self._channels.get(subscriber)
        for reader in channel.readers if channel is not None else ():
            reader.changed.set()

    def end(self, subscriber: int) -> None:
        """A subscriber was removed: its readers wait for nothing any more."""
        channel = self._channels.get(subscriber)
        for reader in channel.readers if channel is not None else ():
            reader.closed = True
            reader.changed.set()

    def close_readers(self) -> None:
        """The server stops: streams end, so that clients come back to another one."""
        for number in self._channels:
            self.end(number)

    async def read_store(
        self, subscriber: int, after: int, largest: float = float("inf")
    ) -> tuple[int, list[StoredDelivery]]:
        """The size of the next page, and the page, unless it is that large."""

        def ask(connection: Connection) -> tuple[int, list[StoredDelivery]]:
            last, size = store.page(connection, subscriber, after, PAGE)
            return size, store.read_page(connection, subscriber, after, last) if size < largest else []

        return await self._reads.run(ask)

    async def _watch_others(self) -> None:
        """Deliveries that other servers made."""
        while True:
            await asyncio.sleep(POLL_SECONDS)
            numbers = list(self._channels)
            if not numbers:
                continue
            with contextlib.suppress(Exception):  # the database is away: the next look will tell
                found = dict(await self._reads.run(partial(_last_places, numbers=numbers)))
                for number in set(numbers) - found.keys():
                    self.end(number)
                for number, last in found.items():
                    channel = self._channels.get(number)
                    if channel is not None and last > channel.last:
                        channel.last = last
                        self.wake_all(number)


def _last_places(connection: Connection, numbers: Sequence[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for begin in range(0, len(numbers), 1000):
        query = select(subscribers.c.number, subscribers.c.last_place)
        rows = connection.execute(query.where(subscribers.c.number.in_(numbers[begin : begin + 1000])))
        found += [(row.number, row.last_place) for row in rows]
    return found


def _size(delivery: StoredDelivery) -> int:
    return len(delivery.content) + len(delivery.body) + 200


class SequenceReader:
    """Reads a subscriber's sequence from a place on."""

    def __init__(self, outbox: Outbox, subscriber: int, after: int, channel: _Channel, room: _Room) -> None:
        self._outbox = outbox
        self._channel = channel
        self._room = room
        self._held = 0
        self.subscriber = subscriber
        self.place = after
        self.changed = asyncio.Event()
        self.closed = False
        self.dropped: tuple[int, int] | None = None
        """The first and last place of what was dropped before the deliveries that `next` returned."""

    async def next(self, timeout: float | None = None) -> list[StoredDelivery]:
        """The next deliveries, one or more; none if the time is over or the server stops. Those before them were
        passed on."""
        try:
            async with asyncio.timeout(timeout):
                return await self._next()
        except TimeoutError:
            return []

    async def _next(self) -> list[StoredDelivery]:
        self.release()
        while not self.closed:
            self.changed.clear()
            found = self.available()
            if found:
                await self._take_room(sum(map(_size, found)))
            elif self._channel.last > self.place:
                size, found = await self._outbox.read_store(self.subscriber, self.place, LARGE)
                if size >= LARGE:
                    await self._take_room(size)
                    _, found = await self._outbox.read_store(self.subscriber, self.place)
                if not found:
                    self.release()
                if not found and self._channel.last > self.place:
                    self._skip_to(self._channel.last)  # dropped or acknowledged elsewhere, all of it
            if found:
                self._skip_to(found[0].place - 1)
                self.place = found[-1].place
                return found
            await self.changed.wait()
        return []

    @property
    def caught_up(self) -> bool:
        """Whether there is nothing to read at the moment."""
        return self._channel.last <= self.place

    def available(self) -> list[StoredDelivery]:
        """What comes next, as far as it is in memory."""
        tail = self._channel.tail
        if not tail or not tail[0].place <= self.place + 1 <= tail[-1].place:
            return []
        found: list[StoredDelivery] = []
        size = 0
        for delivery in tail:
            if delivery.place > self.place:
                size += _size(delivery)
                if found and (size > store.PAGE_BYTES or len(found) == PAGE):
                    break
                found.append(delivery)
        return found

    async def _take_room(self, size: int) -> None:
        if size >= LARGE:
            self._held = await self._room.take(size)

    def release(self) -> None:
        """What `next` returned was passed on, or is not wanted any more."""
        held, self._held = self._held, 0
        if held:
            self._room.give(held)

    def _skip_to(self, place: int) -> None:
        if place > self.place:
            self.dropped = (self.place + 1, place)
            self.place = place

    def close(self) -> None:
        self.release()
        self._outbox.detach(self)
