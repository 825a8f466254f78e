"""The janitor: keeps what is bounded within its bounds. Backlogs, dead letters, documents, receipts, SQLite's
write-ahead log."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable

from sqlalchemy import Connection, select

from xsift.service.delivery.outbox import Reads
from xsift.service.metrics import Metrics
from xsift.service.settings import Keeping
from xsift.service.store import deliveries, leases
from xsift.service.store.database import LARGE_LOG, Database
from xsift.service.store.numbers import MOST_SERVERS, Numbers, first_number
from xsift.service.store.schema import documents
from xsift.service.store.writer import Writer

__all__ = ["Janitor"]

log = logging.getLogger("xsift.service.janitor")

ROUND_SECONDS = 1.0
LONG_ROUND = 10  # every so many rounds it removes what is not kept
BOUNDED_AT_ONCE = 20  # subscribers: the writer has others to serve,
DROPPED_AT_ONCE = 2000  # deliveries, or dead letters,
CLEANED_AT_ONCE = 50  # and so many documents
LEAST_PAUSE = 0.01  # seconds, after a piece of work of the writer; or as long as that took
LITTLE_LOG = 2 << 20  # bytes that are left to copy of SQLite's log: the writer can wait for these
MOST_CHECKPOINTS = 5  # until that is so


class Janitor:
    """Goes round once a second."""

    def __init__(
        self,
        database: Database,
        reads: Reads,
        writer: Writer,
        metrics: Metrics,
        settings: Keeping,
        numbers: Numbers,
        server: str,
    ) -> None:
        self._database = database
        self._reads = reads
        self._writer = writer
        self._metrics = metrics
        self._settings = settings
        self._numbers = numbers
        self._server = server
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._go_round())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _go_round(self) -> None:
        rounds = 0
        while True:
            await asyncio.sleep(ROUND_SECONDS)
            rounds += 1
            try:
                await self._bound_backlogs()
                await self._checkpoint()
                if rounds % 3 == 0:
                    await self._keep_number()
                if rounds % LONG_ROUND == 0:
                    await self._clean()
            except Exception as error:
                log.warning("cleaning failed; it is tried again", extra={"reason": str(error)[:300]})

    async def _keep_number(self) -> None:
        """Two servers that count with one number make the same ones: who lost his takes another."""
        number = self._numbers.server
        kept = await self._writer.run(
            lambda connection: leases.keep_number(connection, self._server, number, MOST_SERVERS)
        )
        if kept != number:
            self._numbers.move(kept)
            log.warning("another server has taken this one's number", extra={"number": number, "now": kept})

    async def _checkpoint(self) -> None:
        """Empties SQLite's write-ahead log. Beside the writer as far as possible; but it begins anew only when there
        is nothing left in it, so when it is large a short last bit is done while the writer waits.
        """
        size = 0
        for _ in range(MOST_CHECKPOINTS):
            left, size = await asyncio.to_thread(self._database.checkpoint)
            if left < LITTLE_LOG:
                break
        if size > LARGE_LOG:
            await self._writer.between(self._database.checkpoint)

    async def _bound_backlogs(self) -> None:
        oldest = time.time() - self._settings.deliveries_hours * 3600
        numbers = await self._reads.run(lambda connection: deliveries.crowded(connection, oldest))
        total = 0
        while numbers:
            part, numbers = numbers[:BOUNDED_AT_ONCE], numbers[BOUNDED_AT_ONCE:]
            started = time.perf_counter()
            dropped, left = await self._writer.run(
                lambda connection, part=part: deliveries.drop_beyond_backlog(
                    connection, part, oldest, DROPPED_AT_ONCE
                )  # type: ignore[misc]
            )
            numbers += left
            total += dropped
            await asyncio.sleep(max(LEAST_PAUSE, time.perf_counter() - started))
        if total:
            self._metrics.dropped.inc(total)
            log.warning("deliveries were dropped: a backlog is full, or they are too old", extra={"dropped": total})

    async def _clean(self) -> None:
        now, settings = time.time(), self._settings
        dead_from = first_number(now - settings.dead_letters_hours * 3600)
        forgotten = await self._in_pieces(
            lambda connection: deliveries.forget_dead(connection, dead_from, DROPPED_AT_ONCE)
        )
        if forgotten:
            log.warning("dead letters were forgotten: they are too old", extra={"forgotten": forgotten})
        keep_from = await self._reads.run(self._horizon)
        receipts = now - settings.receipts_hours * 3600
        await self._in_pieces(
            lambda connection: deliveries.clean(
                connection, keep_from=keep_from, receipts_before=receipts, most=CLEANED_AT_ONCE
            )
        )

    async def _in_pieces(self, work: Callable[[Connection], int]) -> int:
        """Has the writer do a piece of work again and again, until nothing is left of it; with rests for others."""
        total = 0
        while True:
            started = time.perf_counter()
            done = await self._writer.run(work)
            if not done:
                return total
            total += done
            await asyncio.sleep(max(LEAST_PAUSE, time.perf_counter() - started))

    def _horizon(self, connection: Connection) -> int:
        """The first document that is kept."""
        query = select(documents.c.number, documents.c.size).order_by(documents.c.number.desc())
        kept, size = 0, 0
        for number, row in enumerate(connection.execute(query.limit(self._settings.documents + 1))):
            size += row.size
            if number == self._settings.documents or size > self._settings.document_bytes:
                return int(row.number) + 1
            kept = row.number
        return int(kept)
