"""Couriers: a loop for each subscriber that is sent to, so that a slow or dead one delays nobody else.

Deliveries go out in order, one subscriber's after the other. One that fails is tried again, later each time and
not at the same moment as all others; after the last attempt it is a dead letter, and the next one has its turn.
How often it was tried is in the store, so a restart does not start over. Of several servers one at a time has the
couriers.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from dataclasses import dataclass
from typing import Any, Protocol

from sqlalchemy import update
from sqlalchemy.exc import DBAPIError

from xsift.errors import SubscriptionError, XsiftError
from xsift.service.delivery.outbox import Outbox, Reads, SequenceReader
from xsift.service.metrics import Metrics
from xsift.service.settings import Webhooks
from xsift.service.store import deliveries as store
from xsift.service.store import leases, subscribers
from xsift.service.store.deliveries import StoredDelivery
from xsift.service.store.schema import subscribers as table
from xsift.service.store.writer import Writer

__all__ = ["Couriers", "SendVerdict", "Sender"]

log = logging.getLogger("xsift.service.delivery")

ACKNOWLEDGE_EVERY = 50  # deliveries; what was sent after the last time is sent again after a crash, with the same ids
LONGEST_WAIT = 86_400.0  # seconds that whoever receives may ask for
IDLE_SECONDS = 5.0  # a courier without work goes home
LOOK_SECONDS = (
    1.0  # how often somebody looks for work that was not told of: other servers', paused ones', after a crash
)


@dataclass(frozen=True)
class SendVerdict:
    """What became of deliveries that were sent: how many were received, and why not the next."""

    done: int
    reason: str = ""
    retry_after: float = 0.0
    ends: bool = False
    """The subscriber wants no more."""
    counts: bool = True
    """Whether it was an attempt."""
    hopeless: bool = False
    """It will never succeed."""


class Sender(Protocol):
    """A way to send deliveries."""

    kind: str

    async def send(self, subscriber: Any, deliveries: list[StoredDelivery]) -> SendVerdict: ...

    async def close(self) -> None: ...


class Couriers:
    """All couriers of a server."""

    def __init__(
        self,
        senders: list[Sender],
        outbox: Outbox,
        reads: Reads,
        writer: Writer,
        metrics: Metrics,
        settings: Webhooks,
        server: str,
    ) -> None:
        self._senders = {sender.kind: sender for sender in senders}
        self._outbox = outbox
        self._reads = reads
        self._writer = writer
        self._metrics = metrics
        self._settings = settings
        self._server = server
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._known: dict[int, Any] = {}  # subscribers that are sent to, and where
        self._watch: asyncio.Task[None] | None = None
        self._ours = False
        self._longest = max(LONGEST_WAIT, settings.longest_retry_seconds)

    async def start(self) -> None:
        self._outbox.on_arrival = self._arrived
        self._watch = asyncio.create_task(self._look_for_work())

    async def close(self) -> None:
        """Lets requests that are under way end, and notes how far each subscriber has come."""
        tasks = [task for task in (self._watch, *self._tasks.values()) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for sender in self._senders.values():
            await sender.close()

    @property
    def at_work(self) -> int:
        return len(self._tasks)

    def _arrived(self, numbers: set[int]) -> None:
        if self._ours:
            for number in numbers & self._known.keys():
                self._start(number)

    def changed(self, number: int) -> None:
        """A subscriber was changed: its courier begins anew with what it is now."""
        task = self._tasks.pop(number, None)
        if task is not None:
            task.cancel()
        self._outbox.wake_all(number)

    def _start(self, number: int) -> None:
        if number not in self._tasks:
            task = self._tasks[number] = asyncio.create_task(self._serve(number))
            task.add_done_callback(lambda ended: self._ended(number, ended))

    def _ended(self, number: int, task: asyncio.Task[None]) -> None:
        if self._tasks.get(number) is task:
            del self._tasks[number]
        if task.cancelled() or (error := task.exception()) is None:
            return
        if isinstance(error, DBAPIError):  # the database is away, or full
            facts = {"subscriber": number, "reason": str(error)[:300]}
            log.warning("a courier failed; it is tried again", extra=facts)
        else:
            log.error("a courier failed; it is tried again", exc_info=error, extra={"subscriber": number})

    async def _look_for_work(self) -> None:
        while True:
            with contextlib.suppress(Exception):  # the database is away, or full: the next look will tell
                self._ours = await self._writer.run(
                    lambda connection: leases.take(connection, "couriers", self._server)
                )
                if self._ours:
                    self._see(await self._reads.run(subscribers.sent_to))
                else:
                    for task in list(self._tasks.values()):
                        task.cancel()
            await asyncio.sleep(LOOK_SECONDS)

    def _see(self, rows: list[Any]) -> None:
        """Those that are sent to, as they are now: another server may have been told to change them."""
        before, self._known = self._known, {row.number: (row.kind, row.target) for row in rows}
        for number in list(self._tasks):
            if self._known.get(number) != before.get(number):
                self.changed(number)
        for row in rows:
            if row.last_place > row.acknowledged_place:
                self._start(row.number)

    async def send_once(self, subscriber: Any, delivery: StoredDelivery) -> SendVerdict:
        """Sends one delivery out of its turn: a dead letter that somebody wants to be tried again."""
        sender = self._senders.get(subscriber.kind)
        if sender is None:
            return SendVerdict(0, reason=f"this server does not send to {subscriber.kind}")
        return await sender.send(subscriber, [delivery])

    # One courier

    async def _serve(self, number: int) -> None:
        row = await self._reads.run(lambda connection: subscribers.by_number(connection, number))
        sender = self._senders.get(row.kind)
        if sender is None or row.state != "active":
            return
        reader = await self._outbox.attach(number, max(row.acknowledged_place, row.dropped_place), row.owner)
        try:
            await self._send_all(row, sender, reader)
        finally:
            reader.close()

    async def _send_all(self, row: Any, sender: Sender, reader: SequenceReader) -> None:
        attempts, retry_at = row.attempts, row.retry_at
        noted = sent = reader.place
        pending: list[StoredDelivery] = []
        try:
            while True:
                # Never longer than any failure asks for: when it was noted, the clock may have been wrong.
                await asyncio.sleep(min(max(0.0, retry_at - time.time()), self._longest))
                if not pending:
                    if sent > noted and not reader.available():
                        noted = await self._acknowledge(row.number, sent)
                    pending = await reader.next(IDLE_SECONDS)
                    if not pending:
                        return
                verdict = await sender.send(row, pending)
                now = time.time()
                for delivery in pending[: verdict.done]:
                    self._metrics.sent.labels(sender.kind).inc()
                    self._metrics.lag_seconds.labels(sender.kind).observe(max(0.0, now - delivery.at))
                    sent = delivery.place
                pending = pending[verdict.done :]
                if verdict.done:
                    attempts, retry_at = 0, 0.0
                if sent - noted >= ACKNOWLEDGE_EVERY or (verdict.reason and sent > noted):
                    noted = await self._acknowledge(row.number, sent)
                if verdict.ends:
                    await self._end(row.number, verdict.reason)
                    return
                if verdict.reason and pending:
                    attempts, retry_at = await self._failed(row, sender, pending[0], attempts, verdict)
                    if not attempts and verdict.counts:  # it was buried
                        sent = noted = pending[0].place
                    # It may wait for an hour: it keeps no documents meanwhile, and what is dropped is not sent.
                    pending, reader.place = [], sent
                    reader.release()
        finally:
            if sent > noted:  # also when the server stops: what was sent is not sent again
                await asyncio.shield(self._acknowledge(row.number, sent))

    async def _failed(
        self, row: Any, sender: Sender, delivery: StoredDelivery, attempts: int, verdict: SendVerdict
    ) -> tuple[int, float]:
        """Notes a failure; returns the attempts so far and when to try again; no attempts if it was given up."""
        if verdict.counts:
            attempts += 1
        extra = {"subscriber": row.id, "place": delivery.place, "attempt": attempts, "reason": verdict.reason}
        if verdict.hopeless or (verdict.counts and attempts >= self._settings.attempts):
            log.warning("a delivery was given up", extra=extra)
            self._metrics.dead.labels(sender.kind).inc()
            await self._persist(lambda connection: store.bury(connection, delivery, attempts, verdict.reason))
            return 0, 0.0
        delay = max(verdict.retry_after, self._delay(attempts))
        retry_at = time.time() + delay
        if verdict.counts:
            log.info("a delivery failed", extra=extra | {"retry_seconds": round(delay, 3)})
            self._metrics.retries.labels(sender.kind).inc()
            values = {"attempts": attempts, "retry_at": retry_at, "reason": verdict.reason[:500]}
            await self._persist(
                lambda connection: connection.execute(
                    update(table).where(table.c.number == row.number).values(**values)
                )
            )
        return attempts, retry_at

    def _delay(self, attempts: int) -> float:
        """Longer each time, and never the same for all: half of it is chance."""
        if attempts < 1:
            return 0.0
        longest = min(
            self._settings.longest_retry_seconds, self._settings.first_retry_seconds * 2.0 ** min(attempts - 1, 40)
        )
        return longest * random.uniform(0.5, 1.0)

    async def _acknowledge(self, number: int, place: int) -> int:
        await self._persist(lambda connection: store.acknowledge(connection, number, place))
        return place

    async def _end(self, number: int, reason: str) -> None:
        log.warning("a subscriber has ended", extra={"subscriber": number, "reason": reason})
        values = {"state": "ended", "reason": reason}
        await self._persist(
            lambda connection: connection.execute(update(table).where(table.c.number == number).values(**values))
        )
        self._known.pop(number, None)

    async def _persist(self, work: Any) -> None:
        """Writes; if the disk is full, waits until it has room: nothing may be sent that is then forgotten."""
        while True:
            try:
                await self._writer.run(work)
                return
            except SubscriptionError:
                return
            except XsiftError as error:
                if error.code == "closed":
                    return
                await asyncio.sleep(1)
