"""A server from start to stop: which parts there are, and in which order they come and go.

It stops in the order in which documents flow: nothing new is taken, what was taken is matched, what was matched is
stored, streams end, couriers note how far they came. Whatever is lost by being killed instead is lost by nobody who
was answered: see "The service" in DESIGN.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import resource
import secrets
import signal
import socket
import ssl
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import sqlalchemy
import uvicorn
import uvloop

import xsift
from xsift.errors import XsiftError
from xsift.service.activity import Activity
from xsift.service.api.application import make_application
from xsift.service.api.security import TRIALS_OF_ONE, Gate
from xsift.service.connections import Connection, HttpServer
from xsift.service.delivery.courier import Couriers, Sender
from xsift.service.delivery.kafka import KafkaSender
from xsift.service.delivery.outbox import Outbox, Reads
from xsift.service.delivery.webhooks import WebhookSender
from xsift.service.history import History
from xsift.service.intake.folder import FolderIntake
from xsift.service.intake.kafka import KafkaIntake
from xsift.service.janitor import Janitor
from xsift.service.live_set import LiveSet
from xsift.service.logs import configure_logs
from xsift.service.metrics import Metrics
from xsift.service.parts import Parts
from xsift.service.publishing import Publisher
from xsift.service.settings import Settings, Tls
from xsift.service.store import deliveries, keys, leases
from xsift.service.store.database import Database
from xsift.service.store.numbers import MOST_SERVERS, Numbers
from xsift.service.store.subscribers import NewSubscribers
from xsift.service.store.writer import Writer
from xsift.service.table_sync import SetTable, TableSync

__all__ = ["Server", "run"]

log = logging.getLogger("xsift.service")

# Threads change over after this time when one computes: the event loop must not wait long for the others.
SWITCH_SECONDS = 0.001
GARBAGE_THRESHOLDS = (5000, 20, 20)  # little of what a document leaves behind is a cycle


def run(settings: Settings) -> int:
    """Runs a server until it is told to stop; returns the exit code."""
    configure_logs(settings.log_format, settings.log_level)
    sys.setswitchinterval(SWITCH_SECONDS)
    _take_all_files()
    _check_certificate(settings.tls)
    with contextlib.closing(_open_database(settings)) as database:
        _refuse_if_open_to_all(settings, database)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(settings, database))
    return 0


def _take_all_files() -> None:
    """Each connection is a file, and systems give a process 1,024 unless it asks for more: fewer than the streams of
    one owner."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # there are systems that have no such number
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _check_certificate(tls: Tls) -> None:
    if not tls.certificate:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tls.certificate, tls.key or None, lambda: "")
    except OSError as error:
        both = f"{tls.certificate} and {tls.key}" if tls.key else tls.certificate
        hint = "a certificate and its key, as PEM without a password"
        raise XsiftError("bad-config", f"tls: {both} cannot be used: {error}", hint=hint) from error


async def _serve(settings: Settings, database: Database) -> None:
    await Server(settings, database).serve()


def _open_database(settings: Settings) -> Database:
    if not settings.database:
        try:
            Path(settings.data).mkdir(parents=True, exist_ok=True)
            os.chmod(settings.data, 0o700)  # documents, and secrets of webhooks
        except OSError as error:
            raise XsiftError("bad-config", f"the folder {settings.data} cannot be used: {error.strerror}") from error
    return Database(settings.database_url)


def _refuse_if_open_to_all(settings: Settings, database: Database) -> None:
    if settings.host in ("localhost", "127.0.0.1", "::1") or settings.insecure:
        return
    with database.connect() as connection:
        if not keys.any_keys(connection):
            raise XsiftError(
                "no-keys",
                f"without an API key, everybody who can reach {settings.host} would be an admin",
                hint="make one with `xsift serve keys add OWNER --role admin`, or say --insecure",
            )


def _open_table(path: str) -> SetTable:
    from xsift.tables import SubscriptionTable  # it says what to install if there are none

    return SubscriptionTable.create(path, exist_ok=True)


async def _until_over(server: uvicorn.Server) -> None:
    with contextlib.suppress(SystemExit):  # it cannot listen; left alone, this would end the process without a word
        await server.serve()


class Server:
    """One server process."""

    def __init__(self, settings: Settings, database: Database) -> None:
        self._settings = settings
        self._name = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self.parts = self._make(database)
        self._gate = Gate(settings, self.parts.reads)
        self._janitor = Janitor(
            database,
            self.parts.reads,
            self.parts.writer,
            self.parts.metrics,
            settings.keep,
            self._numbers,
            self._name,
        )
        self._intakes: list[FolderIntake | KafkaIntake | TableSync] = []
        if settings.folder.path:
            self._intakes.append(FolderIntake(settings.folder, self.parts.publisher, settings.limits.body_bytes))
        if settings.kafka.topics:
            self._intakes.append(KafkaIntake(settings.kafka, self.parts.publisher))
        if settings.table.path:
            parts = self.parts
            table, new = _open_table(settings.table.path), NewSubscribers(settings.keep.backlog)
            self._intakes.append(TableSync(table, settings.table, database, parts.writer, parts.live_set, new))
        self._stop = asyncio.Event()

    def _make(self, database: Database) -> Parts:
        settings = self._settings
        metrics = Metrics()
        writer = Writer(database)
        writer.observe = lambda items, seconds: metrics.commit_seconds.observe(seconds)
        reads = Reads(database)
        limits = xsift.Limits(depth=settings.matching.document_depth, bytes=settings.limits.body_bytes)
        live_set = LiveSet(
            database, engine=settings.matching.engine, limits=limits, residuals=settings.matching.residuals
        )
        live_set.observe = metrics.swap_seconds.observe
        writer.start()
        number = writer.run_blocking(lambda connection: leases.take_number(connection, self._name, MOST_SERVERS))
        self._numbers = Numbers(number, writer.run_blocking(deliveries.last_document))
        outbox = Outbox(reads, alone=database.is_sqlite)
        activity = Activity()
        publisher = Publisher(
            live_set,
            writer,
            self._numbers,
            metrics,
            settings.matching,
            activity,
            settings.limits.fragment_bytes,
            outbox.committed,
        )
        webhooks = WebhookSender(settings.webhooks)
        senders: list[Sender] = [webhooks]
        if settings.kafka.servers:
            senders.append(KafkaSender(settings.kafka))
        couriers = Couriers(senders, outbox, reads, writer, metrics, settings.webhooks, self._name)

        def gauges() -> dict[str, float]:
            return {
                "match_queue": publisher.waiting,
                "write_queue": writer.depth,
                "couriers": couriers.at_work,
                "subscriptions": live_set.snapshot.size,
                "version": live_set.snapshot.version,
            }

        trials = ThreadPoolExecutor(TRIALS_OF_ONE + 2, thread_name_prefix="xsift-trial")
        return Parts(
            settings,
            database,
            writer,
            reads,
            live_set,
            publisher,
            outbox,
            couriers,
            webhooks,
            metrics,
            activity,
            History(metrics, gauges),
            trials,
        )

    async def serve(self) -> None:
        """Serves until SIGTERM or SIGINT."""
        loop = asyncio.get_running_loop()
        for sign in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(sign, self._told_to_stop)
        config = uvicorn.Config(
            make_application(self.parts, self._gate),
            host=self._settings.host,
            port=self._settings.port,
            loop="none",
            http=Connection,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=round(self._settings.shutdown_seconds),
            ssl_certfile=self._settings.tls.certificate or None,
            ssl_keyfile=self._settings.tls.key or None,
        )
        server = HttpServer(config)
        serving = asyncio.create_task(_until_over(server))
        try:
            async with self._running():
                await self._said_where(server, serving)
                stopping = asyncio.create_task(self._stop.wait())
                await asyncio.wait({stopping, serving}, return_when=asyncio.FIRST_COMPLETED)
                stopping.cancel()
                log.info("stopping")
                self.parts.ready = False
                self.parts.outbox.close_readers()
                server.should_exit = True
                await serving
        finally:
            server.should_exit = True
            await serving
        log.info("stopped")

    def _told_to_stop(self) -> None:
        if self._stop.is_set():
            log.warning("told twice: stopping at once")
            os._exit(1)  # durable is what was answered
        self._stop.set()

    async def _said_where(self, server: uvicorn.Server, serving: asyncio.Task[None]) -> None:
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        if serving.done():
            raise XsiftError(
                "cannot-listen",
                f"{self._settings.host}:{self._settings.port} cannot be used",
                hint="is another server there?",
            )
        port = server.servers[0].sockets[0].getsockname()[1]
        scheme = "https" if self._settings.tls.certificate else "http"
        host = f"[{self._settings.host}]" if ":" in self._settings.host else self._settings.host
        log.info(
            "serving",
            extra={
                "url": f"{scheme}://{host}:{port}",
                "subscriptions": self.parts.live_set.snapshot.size,
                "keys": "needed" if self._gate.needs_key else "none: everybody on this machine may do everything",
            },
        )

    @contextlib.asynccontextmanager
    async def _running(self) -> AsyncIterator[None]:
        parts = self.parts
        parts.activity.start(asyncio.get_running_loop())
        try:
            await self._gate.refresh()
            await asyncio.to_thread(parts.live_set.load)
            parts.live_set.start()
            parts.publisher.start()
            await parts.outbox.start()
            await parts.couriers.start()
            await self._janitor.start()
            parts.history.start()
            for intake in self._intakes:
                intake.start()
            # What is here now stays: the collector need not look through all of it again and again, for tens of
            # milliseconds in which everybody waits.
            gc.collect()
            gc.freeze()
            gc.set_threshold(*GARBAGE_THRESHOLDS)
            parts.ready = True
            yield
        finally:
            await self._close()

    async def _close(self) -> None:
        parts = self.parts
        for intake in self._intakes:
            await asyncio.to_thread(intake.close)
        await asyncio.to_thread(parts.publisher.close)
        await parts.history.close()
        await parts.couriers.close()
        await self._janitor.close()
        await parts.outbox.close()
        await asyncio.to_thread(parts.live_set.close)

        def give_back(connection: sqlalchemy.Connection) -> None:
            leases.release_all(connection, self._name)

        with contextlib.suppress(XsiftError):
            await parts.writer.run(give_back)
        await asyncio.to_thread(parts.writer.close)
        parts.reads.close()
        parts.trials.shutdown(wait=False, cancel_futures=True)
        with contextlib.suppress(Exception):  # the log is copied when the database is opened the next time, too
            await asyncio.to_thread(parts.database.checkpoint)
        if threading.active_count() > 1:
            log.debug("threads at the end", extra={"threads": [thread.name for thread in threading.enumerate()]})
