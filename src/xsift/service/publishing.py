"""From documents to deliveries. What is published is matched at once in a bounded pool, then stored together with
what it was found to be for, in one transaction. So the answer to a publisher means: stored, matched, and on its
way.

The pool takes documents from a queue that is fair: owners take turns, so one who publishes a great deal delays
himself. When the queue is full, publishers are told to come back.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import to_json

import xsift
from xsift.errors import StorageError, XsiftError
from xsift.service.activity import MOST_REASONS, Activity
from xsift.service.live_set import Found, LiveSet, Snapshot
from xsift.service.metrics import Metrics
from xsift.service.settings import Matching
from xsift.service.slow_log import SlowLog
from xsift.service.store.deliveries import (
    Broken,
    Outcome,
    Publication,
    StoredDelivery,
    error_fields,
    store_broken,
    store_publications,
)
from xsift.service.store.numbers import MOST_AT_ONCE, Numbers, document_id, parse_document_id
from xsift.service.store.writer import Batched, Writer

__all__ = ["Incoming", "Overloaded", "Publisher", "Receipt"]

log = logging.getLogger("xsift.service.publishing")

BATCH = 32  # documents that a thread of the pool takes at a time
MOST_NAMED = 5  # in the log, of the subscriptions that could not be decided on a document
KEPT_OF_BROKEN = 64 << 10  # bytes of a broken document that are kept for people to look at


@dataclass(slots=True)
class Incoming:
    """A document that somebody publishes."""

    body: bytes
    label: str = ""
    encoding: str | None = None


@dataclass(slots=True)
class Receipt:
    """What a publisher is told of one document."""

    id: str
    label: str
    matches: list[bytes]
    """The entries of the publisher's own subscriptions that matched, each a JSON object."""
    error: XsiftError | None = None
    failures: list[tuple[bytes, XsiftError]] = field(default_factory=list)
    """Those that could not be decided on it, and why."""


class Overloaded(XsiftError):
    """More documents wait than there is room for."""

    def __init__(self) -> None:
        super().__init__("overloaded", "too many documents wait to be matched", hint="publish it again in a second")


@dataclass(slots=True)
class Job:
    """A publication on its way through the pool."""

    owner: str
    documents: list[Incoming]
    key: str | None
    source: str
    sees_all: bool
    waiter: asyncio.Future[tuple[list[Receipt], bool]] | Future[tuple[list[Receipt], bool]]
    """Whoever waits for the answer: a coroutine, or a thread."""
    bytes: int
    received: float = field(default_factory=time.time)
    started: float = field(default_factory=time.perf_counter)
    receipts: list[Receipt] = field(default_factory=list)
    publication: Publication | None = None


class _FairQueue:
    """Jobs under way: bounded, and taken from one owner after the other."""

    def __init__(self, most_documents: int, most_bytes: int) -> None:
        self._most_documents, self._most_bytes = most_documents, most_bytes
        self._waiting: OrderedDict[str, deque[Job]] = OrderedDict()
        self._changed = threading.Condition()
        self._closed = False
        self.documents = self.bytes = 0

    def put(self, job: Job) -> None:
        with self._changed:
            if self._closed:
                raise StorageError("closed", "the server is stopping", hint="publish it again in a moment")
            # A job that is larger than the queue is taken when the queue is empty.
            room = self.documents + len(job.documents) <= self._most_documents
            if self.documents and not (room and self.bytes + job.bytes <= self._most_bytes):
                raise Overloaded
            self._waiting.setdefault(job.owner, deque()).append(job)
            self.documents += len(job.documents)
            self.bytes += job.bytes
            self._changed.notify()

    def take(self) -> list[Job]:
        """The next jobs, about BATCH documents; none when the queue was closed."""
        jobs: list[Job] = []
        with self._changed:
            while not self._waiting and not self._closed:
                self._changed.wait()
            taken = 0
            while self._waiting and taken < BATCH:
                owner, waiting = self._waiting.popitem(last=False)
                job = waiting.popleft()
                if waiting:
                    self._waiting[owner] = waiting
                jobs.append(job)
                taken += len(job.documents)
        return jobs

    def release(self, jobs: list[Job]) -> None:
        """Jobs were answered: until then they take room, so that what waits for the disk is bounded too."""
        with self._changed:
            for job in jobs:
                self.documents -= len(job.documents)
                self.bytes -= job.bytes

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()


class Publisher:
    """The pool, and the way from it to the store."""

    def __init__(
        self,
        live_set: LiveSet,
        writer: Writer,
        numbers: Numbers,
        metrics: Metrics,
        settings: Matching,
        activity: Activity,
        fragment_bytes: int,
        deliver: Callable[[list[StoredDelivery]], None],
    ) -> None:
        self._live_set = live_set
        self._writer = writer
        self._numbers = numbers
        self._metrics = metrics
        self._slow_seconds = settings.slow_milliseconds / 1000
        self._slow_log = SlowLog(self._slow_seconds, metrics)
        self._activity = activity
        self._fragment_bytes = fragment_bytes
        self._deliver = deliver
        self._queue = _FairQueue(settings.waiting_documents, settings.waiting_bytes)
        self._threads = [
            threading.Thread(target=self._work, name=f"xsift-match-{number}", daemon=True)
            for number in range(settings.threads)
        ]
        self._jobs: Batched[Job] = Batched(self._store, self._stored)
        self._broken: Batched[Broken] = Batched(store_broken, lambda items, result, error: None)

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Matches what waits, then stops. Close the writer after it."""
        self._queue.close()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()
        self._slow_log.close()

    @property
    def waiting(self) -> int:
        """Documents under way: not matched yet, or not durable yet."""
        return self._queue.documents

    # In

    async def publish(
        self,
        owner: str,
        documents: list[Incoming],
        *,
        key: str | None = None,
        source: str = "http",
        sees_all: bool = False,
    ) -> tuple[list[Receipt], bool]:
        """Publishes documents, all or none of those that are not broken. Returns once they are durable: a receipt
        each, and whether they had been published before with this key.
        """
        future: asyncio.Future[tuple[list[Receipt], bool]] = asyncio.get_running_loop().create_future()
        self._submit(owner, documents, key, source, sees_all, future)
        return await future

    def publish_blocking(
        self, owner: str, documents: list[Incoming], *, key: str | None = None, source: str
    ) -> list[Receipt]:
        """The same, for a thread that can wait."""
        future: Future[tuple[list[Receipt], bool]] = Future()
        self._submit(owner, documents, key, source, False, future)
        return future.result()[0]

    def _submit(
        self, owner: str, documents: list[Incoming], key: str | None, source: str, sees_all: bool, waiter: Any
    ) -> None:
        if not 1 <= len(documents) <= MOST_AT_ONCE:
            raise ValueError(f"{len(documents)} documents at once; from 1 to {MOST_AT_ONCE}")
        for document in documents:
            document.label = document.label.replace("\x00", "")  # PostgreSQL has no such character
        size = sum(len(document.body) for document in documents)
        self._queue.put(Job(owner, documents, key, source, sees_all, waiter, size))

    # The pool

    def _work(self) -> None:
        while jobs := self._queue.take():
            self._match_or_fail(jobs)

    def _match_or_fail(self, jobs: list[Job]) -> None:
        """Matches jobs. Where we make a mistake one fails alone, and the pool lives on."""
        try:
            self._match(jobs)
        except Exception as error:
            log.exception("matching failed")
            if len(jobs) == 1:
                self._answer(jobs, error)
            else:
                for job in jobs:
                    self._match_or_fail([job])

    def _answer(self, jobs: list[Job], error: BaseException | None = None) -> None:
        """Tells those who wait: all coroutines together, because each call into the event loop wakes it."""
        self._queue.release(jobs)
        waiting = []
        for job in jobs:
            if isinstance(job.waiter, Future):
                _resolve([job], error)
            else:
                waiting.append(job)
        if waiting:
            loop = waiting[0].waiter.get_loop()  # type: ignore[union-attr]
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_resolve, waiting, error)

    def _match(self, jobs: list[Job]) -> None:
        snapshot = self._live_set.snapshot
        began, began_work = time.perf_counter(), time.thread_time()
        for job in jobs:
            self._metrics.queue_seconds.observe(began - job.started)
        documents = [
            xsift.Document(item.body, encoding=item.encoding) if item.encoding else item.body
            for job in jobs
            for item in job.documents
        ]
        self._live_set.remember(jobs[-1].documents[-1].body)
        found = snapshot.match(documents)
        # They are matched together, so what each took is known on average. A slow one makes the others look slow:
        # which it was is found out when it is logged.
        seconds = (time.perf_counter() - began) / len(documents)
        begin = 0
        for job in jobs:
            end = begin + len(job.documents)
            self._address_job(job, snapshot, found[begin:end])
            begin = end
        for _ in documents:
            self._metrics.match_seconds.observe(seconds)
        # What counts is the work, not the time: on a busy machine everything takes long, and nobody is to blame.
        slow = time.perf_counter() - began > self._slow_seconds
        if slow and time.thread_time() - began_work > self._slow_seconds:
            self._slow_log.look_into(snapshot, jobs, found)
        self._activity.count(
            [snapshot.row(caught.place) for result in found for caught in result.caught],
            [snapshot.row(place) for result in found for place in result.failures],
        )
        stored = [job for job in jobs if any(receipt.error is None for receipt in job.receipts)]
        if stored:
            self._writer.add(self._jobs, stored)
        if len(stored) < len(jobs):
            self._answer([job for job in jobs if all(receipt.error is not None for receipt in job.receipts)])

    def _address_job(self, job: Job, snapshot: Snapshot, found: Sequence[Found]) -> None:
        first = self._numbers.take(len(found))
        outcomes = []
        job.receipts = []
        for number, (incoming, result) in enumerate(zip(job.documents, found, strict=True), first):
            outcome = Outcome(number, incoming.label, incoming.body, incoming.encoding, result.error)
            receipt = Receipt(document_id(number), incoming.label, [], result.error)
            job.receipts.append(receipt)
            outcomes.append(outcome)
            if result.error is None:
                self._address(outcome, receipt, result, snapshot, job)
            else:
                self._note_broken(job, incoming, receipt, result.error)
            if result.evaluated:
                self._metrics.candidates.inc(len(result.evaluated))
            if result.failures:
                self._note_failures(snapshot, receipt, result)
                receipt.failures += (
                    (snapshot.entry(place) + b"}", failure)
                    for place, failure in result.failures.items()
                    if job.sees_all or snapshot.owner(place) == job.owner
                )
        job.publication = Publication(job.owner, outcomes, job.received, job.key)

    def _address(self, outcome: Outcome, receipt: Receipt, result: Found, snapshot: Snapshot, job: Job) -> None:
        """One delivery a subscriber, with all of its subscriptions that matched."""
        outcome.matches = len(result.caught)
        entries: dict[int, list[bytes]] = {}
        whole: set[int] = set()
        room: dict[int, int] = {}  # bytes that are left for fragments, by subscriber
        for caught in result.caught:
            subscriber = snapshot.subscriber(caught.place)
            entry = snapshot.entry(caught.place)
            if caught.nodes:
                left = room.get(subscriber, self._fragment_bytes)
                fragments, room[subscriber] = _fragments(caught.nodes, left)
                entry += fragments
            if caught.error is not None:
                entry += b',"error":' + to_json(error_fields(caught.error))
            entry += b"}"
            entries.setdefault(subscriber, []).append(entry)
            if snapshot.wants_document(caught.place):
                whole.add(subscriber)
            own = snapshot.owner(caught.place) == job.owner
            outcome.own_matches += own
            if own or job.sees_all:
                receipt.matches.append(entry)
        head = {"id": receipt.id, "label": outcome.label, "received": job.received, "size": len(outcome.body)}
        start = b'"document":' + to_json(head) + b',"matches":['
        outcome.deliveries = [
            (subscriber, start + b",".join(found) + b"]", subscriber in whole)
            for subscriber, found in entries.items()
        ]

    def _note_broken(self, job: Job, incoming: Incoming, receipt: Receipt, error: XsiftError) -> None:
        """Keeps a document that is refused, for people to look at."""
        self._metrics.broken.labels(error.code).inc()
        told = {"id": receipt.id, "owner": job.owner, "label": incoming.label, "received": job.received}
        self._activity.tell({**told, "size": len(incoming.body), "error": error_fields(error)})
        number, start = parse_document_id(receipt.id), incoming.body[:KEPT_OF_BROKEN]
        broken = Broken(job.owner, number, incoming.label, job.received, len(incoming.body), start, error)
        self._writer.add(self._broken, [broken])

    def _note_failures(self, snapshot: Snapshot, receipt: Receipt, result: Found) -> None:
        self._metrics.failures.inc(len(result.failures))
        failures = list(result.failures.items())
        for place, failure in failures[-MOST_REASONS:]:
            told = {"document": receipt.id, "at": time.time(), **error_fields(failure)}
            self._activity.failed(snapshot.row(place), told)
        for place, failure in failures[:MOST_NAMED]:
            log.warning(
                "a subscription could not be decided",
                extra={
                    "document": receipt.id,
                    "owner": snapshot.owner(place),
                    "subscription": snapshot.id(place),
                    "reason": str(failure),
                },
            )

    # Out

    def _store(self, connection: Any, jobs: list[Job]) -> None:
        store_publications(connection, [job.publication for job in jobs if job.publication is not None])

    def _stored(self, jobs: list[Job], _result: Any, error: BaseException | None) -> None:
        """In the writer's thread, once it is durable."""
        if error is not None:
            self._answer(jobs, error)
            return
        made: list[StoredDelivery] = []
        new: list[Job] = []
        for job in jobs:
            publication = job.publication
            assert publication is not None
            if publication.error is None and not publication.replayed:
                made += publication.made
                new.append(job)
            elif publication.replayed:
                for outcome, receipt in zip(publication.outcomes, job.receipts, strict=True):
                    receipt.id = document_id(outcome.number)  # of the first time
        if made:
            self._deliver(made)
        self._answer(jobs)
        self._count(new, len(made))

    def _count(self, jobs: list[Job], deliveries: int) -> None:
        now, size, matches = time.perf_counter(), 0, 0
        stored: dict[str, int] = {}
        for job in jobs:
            self._metrics.publish_seconds.observe(now - job.started)
            for outcome in job.publication.outcomes:  # type: ignore[union-attr]
                if outcome.error is not None:
                    continue
                stored[job.source] = stored.get(job.source, 0) + 1
                size += len(outcome.body)
                matches += outcome.matches
                self._activity.tell(
                    {
                        "id": document_id(outcome.number),
                        "owner": job.owner,
                        "label": outcome.label,
                        "received": job.received,
                        "size": len(outcome.body),
                        "matches": outcome.matches,
                        "own_matches": outcome.own_matches,
                        "deliveries": len(outcome.deliveries),
                    }
                )
        for source, number in stored.items():
            self._metrics.documents.labels(source).inc(number)
        self._metrics.bytes.inc(size)
        self._metrics.matches.inc(matches)
        self._metrics.deliveries.inc(deliveries)


def _resolve(jobs: list[Job], error: BaseException | None) -> None:
    """Answers those who wait; on the thread that they wait on."""
    for job in jobs:
        if job.waiter.done():
            continue  # who waited has gone
        publication = job.publication
        failure = error or (publication.error if publication is not None else None)
        if failure is not None:
            job.waiter.set_exception(failure)
        else:
            job.waiter.set_result((job.receipts, publication is not None and publication.replayed))


def _fragments(nodes: Sequence[Any], room: int) -> tuple[bytes, int]:
    """The fragments of nodes as a member of a JSON object, as far as there is room; and the room that is left."""
    found = []
    for node in nodes:
        room -= len(node.fragment)
        if room < 0:
            break
        found.append({"path": node.path, "xml": node.fragment})
    members = b',"fragments":' + to_json(found)
    if len(found) < len(nodes):
        members += b',"fragments_left_out":%d' % (len(nodes) - len(found))
    return members, max(room, 0)
