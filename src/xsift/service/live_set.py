"""The live set: the subscriptions as one immutable snapshot, which follows the store.

A keeper thread asks the store what changed after the version it has, compiles that alone, and swaps the snapshot;
what did not change is shared by both. Whoever changed something waits for the snapshot that has it, so that what was
answered is matched by the next document. Other servers look every `POLL_SECONDS`.

What came bit by bit is indexed bit by bit, and each bit costs time with every document. So when nothing has changed
for a moment, another thread merges all of it into one index, tries that on the last documents, and has it swapped in.

Subscriptions that want fragments are a set of their own: for them nodes are selected, which costs more.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa
from pydantic_core import from_json, to_json
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

import xsift
from xsift.errors import XsiftError
from xsift.service.store import subscriptions as store
from xsift.service.store.database import Database
from xsift.service.threads import breathe

__all__ = ["Caught", "Found", "LiveSet", "Snapshot"]

log = logging.getLogger("xsift.service.live_set")

POLL_SECONDS = 0.05
CHUNK = 1000  # rows compiled at a time: the kernels keep the interpreter to themselves meanwhile
MOST_CHANGES = 20_000  # rows between two snapshots: bounds how long a change waits behind an import
QUIET_SECONDS = 1.0  # without a change, or as long as the last merging took; then what came is merged,
LONGEST_SECONDS = 300.0  # or when it has waited so long for that
TRIED_DOCUMENTS = 100  # that an index is tried on before it is used, so that it knows already what they lead to
MANY = 1000  # rows that came at once, from which on their index is tried too
LARGEST_TRIED = 64 << 10
MERGE_AT_MOST = 200_000  # rows that are indexed anew because something was added; the rest waits for the merging
MOST_GONE = 100_000  # rows that were removed, and more than are live: then all is compiled anew without them


@dataclass(slots=True)
class Caught:
    """One subscription that a document satisfies: its place, and the nodes that it selects if they are wanted."""

    place: int
    nodes: Sequence[Any] = ()
    error: XsiftError | None = None
    """Why there are no nodes although it matched and they were wanted: there would be too many."""


@dataclass(slots=True)
class Found:
    """What a snapshot says of one document."""

    caught: list[Caught] = field(default_factory=list)
    error: XsiftError | None = None
    failures: dict[int, XsiftError] = field(default_factory=dict)
    """By place: subscriptions that could not be decided on this document."""
    evaluated: list[int] = field(default_factory=list)
    """Places of subscriptions that the index could not decide: they were evaluated, and perhaps caught."""


class Snapshot:
    """The set at one version: matches documents, from any thread."""

    def __init__(self, version: int, matchers: Sequence[tuple[xsift.Matcher, bool]], compiled: _Compiled) -> None:
        self.version = version
        self._matchers = matchers
        self._compiled = compiled
        self.size = sum(compiled.counts.values())

    def match(self, documents: Sequence[xsift.Document | bytes], *, select: bool = True) -> list[Found]:
        """What each document satisfies; with `select` also the nodes, for subscriptions that want fragments."""
        found = [Found() for _ in documents]
        for matcher, selects in self._matchers:
            for document, result, match in zip(documents, found, matcher.match_many(documents), strict=True):
                if match.error is not None:
                    result.error = match.error
                    continue
                if match.failures:
                    result.failures |= {int(id): error for id, error in match.failures.items()}
                result.evaluated += map(int, match.evaluated)
                if selects and select and len(match):
                    result.caught += _with_nodes(matcher, document, match.ids)
                else:
                    result.caught += [Caught(int(id)) for id in match.ids]
        return found

    def seconds_of(self, place: int, document: xsift.Document | bytes) -> float:
        """How long one subscription takes on a document: to find out who is slow. Seconds of work."""
        started = time.thread_time()
        for matcher, _ in self._matchers:
            with contextlib.suppress(XsiftError):  # it is in the other matcher, or cannot be decided
                matcher.explain(document, str(place))
        return time.thread_time() - started

    def subscriber(self, place: int) -> int:
        """The number of the subscriber to which a match goes."""
        return self._compiled.subscribers[place]

    def owner(self, place: int) -> str:
        return self._compiled.owners[place]

    def wants_document(self, place: int) -> bool:
        return bool(self._compiled.wholes[place])

    def entry(self, place: int) -> bytes:
        """The id, labels and metadata of a subscription: a JSON object that is still open at its end."""
        return self._compiled.entries[place]

    def id(self, place: int) -> str:
        return str(from_json(self.entry(place) + b"}")["id"])

    def row(self, place: int) -> int:
        """The row of the store."""
        return self._compiled.rows[place]

    def memory(self) -> dict[str, int]:
        """Bytes held by the index, by structure."""
        sizes: dict[str, int] = {}
        for matcher, _ in self._matchers:
            for name, size in matcher.memory().items():
                sizes[name] = sizes.get(name, 0) + size
        return sizes


def _with_nodes(matcher: xsift.Matcher, document: xsift.Document | bytes, ids: Sequence[str]) -> list[Caught]:
    """What matched, with its nodes. One whose nodes cannot be had has matched all the same."""
    failures: dict[str, XsiftError] = {}
    nodes = matcher.select(document, fragments=True, failures=failures)
    return [Caught(int(id), nodes.get(id, ()), failures.get(id)) for id in ids]


class _Compiled:
    """Rows of the store, compiled, and what is delivered with a match of each. A place is the number of a row here;
    places are in the order of rows.
    """

    def __init__(self, residuals: Literal["verify", "refuse"]) -> None:
        self._residuals = residuals
        self.rows = array("q")
        self.subscribers = array("q")
        self.wholes = bytearray()
        self.entries: list[bytes] = []
        self.owners: list[str] = []  # one string object an owner
        self.counts: dict[str, int] = {}
        self.gone = 0
        self.refused: dict[int, XsiftError] = {}
        self._selects = bytearray()
        self._removed = bytearray()
        self._owner_names: dict[str, str] = {}
        self.sets = tuple(xsift.Subscriptions(residuals=residuals, merge_at_most=MERGE_AT_MOST) for _ in range(2))

    def add(self, rows: Iterable[Sequence[Any]]) -> None:
        """Compiles rows, each with `LIVE_COLUMNS`."""
        batches: tuple[list[_Text], ...] = ([], [])
        for row, owner, id, subscriber, xpath, ordered, deliver, namespaces, labels, metadata in rows:
            self._append(row, owner, subscriber, deliver)
            self.entries.append(
                b'{"id":%b,"labels":%b,"metadata":%b' % (to_json(id), labels.encode(), metadata.encode())
            )
            text = (str(len(self.rows) - 1), xpath, ordered, from_json(namespaces) if namespaces != "{}" else {})
            batches[deliver == "fragments"].append(text)
        for set_, batch in zip(self.sets, batches, strict=True):
            for begin in range(0, len(batch), CHUNK):
                for id, error in set_.add_many(_arrow(batch[begin : begin + CHUNK]), errors="collect"):
                    self._refuse(int(id), error)
                breathe()

    def _append(self, row: int, owner: str, subscriber: int, deliver: str) -> None:
        owner = self._owner_names.setdefault(owner, owner)
        self.counts[owner] = self.counts.get(owner, 0) + 1
        self.rows.append(row)
        self.subscribers.append(subscriber)
        self.wholes.append(deliver == "document")
        self.owners.append(owner)
        self._selects.append(deliver == "fragments")
        self._removed.append(0)

    def _refuse(self, place: int, error: XsiftError) -> None:
        self.refused[place] = error
        log.error("a stored subscription cannot be used", extra={"entry": self.entries[place], "reason": str(error)})

    def remove(self, rows: Iterable[int]) -> None:
        for row in rows:
            place = bisect_left(self.rows, row)
            if place == len(self.rows) or self.rows[place] != row or self._removed[place]:
                continue
            self._removed[place] = 1
            self.gone += 1
            self.counts[self.owners[place]] -= 1
            if self.refused.pop(place, None) is None:
                self.sets[self._selects[place]].remove(str(place))

    def merge(self, engine: str, limits: xsift.Limits, documents: Sequence[bytes]) -> bool:
        """Merges what is indexed bit by bit; whether there was anything to merge. Others may change it and match."""
        merged = [set_ for set_ in self.sets if set_.compact()]
        for set_ in merged:
            # What it learns from these documents stays with the index, for the matchers that are made of it.
            for _ in set_.matcher(engine, limits=limits).match_many(documents):
                pass
        return bool(merged)

    def snapshot(self, version: int, engine: str, limits: xsift.Limits) -> Snapshot:
        # The first set is asked even if it is empty: a document is broken whether anybody wants it or not.
        used = [(set_, bool(number)) for number, set_ in enumerate(self.sets) if number == 0 or len(set_)]
        matchers = [(set_.matcher(engine, limits=limits), selects) for set_, selects in used]
        return Snapshot(version, matchers, self)


_Text = tuple[str, str, bool, dict[str, str]]
"""A subscription as it is compiled: its place, the expression, whether it is ordered, namespaces."""


def _arrow(batch: Sequence[_Text]) -> pa.Table:
    places, texts, ordered, namespaces = zip(*batch, strict=True)
    columns = {
        "id": pa.array(places, pa.large_string()),
        "xpath": pa.array(texts, pa.large_string()),
        "ordered": pa.array(map(bool, ordered), pa.bool_()),
    }
    if any(namespaces):
        mappings = [list(mapping.items()) for mapping in namespaces]
        columns["namespaces"] = pa.array(mappings, pa.map_(pa.string(), pa.string()))
    return pa.table(columns)


class LiveSet:
    """Keeps a snapshot of the store's subscriptions."""

    def __init__(
        self,
        database: Database,
        *,
        engine: str = "auto",
        limits: xsift.Limits | None = None,
        residuals: Literal["verify", "refuse"] = "verify",
    ) -> None:
        self._database = database
        self._engine = engine
        self._limits = limits or xsift.Limits()
        self._residuals = residuals
        self._compiled = _Compiled(residuals)
        self._snapshot = self._compiled.snapshot(0, engine, self._limits)
        self._wake = threading.Event()
        self._stop = False
        self._waiting: list[tuple[int, Callable[[], None]]] = []
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._follow, name="xsift-live-set", daemon=True)
        self._merger = threading.Thread(target=self._merge, name="xsift-merge", daemon=True)
        self._last_change = 0.0
        self._changed = threading.Event()
        self._is_merged = False
        self._recent: deque[bytes] = deque(maxlen=TRIED_DOCUMENTS)
        self.observe: Callable[[float], None] = lambda seconds: None

    @property
    def snapshot(self) -> Snapshot:
        """The set as it is now."""
        return self._snapshot

    def count(self, owner: str) -> int:
        """Live subscriptions of an owner."""
        return self._compiled.counts.get(owner, 0)

    @property
    def refused(self) -> int:
        """Stored subscriptions that this version of xsift cannot use: they are not matched."""
        return len(self._compiled.refused)

    def refusal(self, row: int) -> XsiftError | None:
        """Why a stored subscription is not matched; None if it is."""
        compiled = self._compiled
        if not compiled.refused:
            return None
        place = bisect_left(compiled.rows, row)
        return compiled.refused.get(place) if place < len(compiled.rows) and compiled.rows[place] == row else None

    def owners(self) -> dict[str, int]:
        """Owners of live subscriptions, with how many each has."""
        return {owner: number for owner, number in self._compiled.counts.items() if number}

    def load(self) -> None:
        """Reads the whole set: a few seconds for a million subscriptions."""
        compiled = _Compiled(self._residuals)
        with self._database.connect() as connection, connection.begin():
            version = store.current_version(connection)
            for rows in store.live_rows(connection):
                compiled.add(rows)
        self._compiled = compiled
        self._swap(version)

    def start(self) -> None:
        self._thread.start()
        self._merger.start()

    def close(self) -> None:
        self._stop = True
        self._wake.set()
        self._changed.set()
        if self._thread.ident is not None:
            self._thread.join()  # the merger may be in the middle of seconds of work: it ends with the process

    def remember(self, document: bytes) -> None:
        """A document that was matched: the like of it will come again."""
        if len(document) <= LARGEST_TRIED:
            self._recent.append(document)

    def look(self) -> None:
        """Something changed: the keeper looks now rather than later."""
        self._wake.set()

    async def reach(self, version: int) -> None:
        """Waits until the snapshot has a version."""
        if self._snapshot.version >= version:
            return
        loop = asyncio.get_running_loop()
        reached = asyncio.Event()

        def tell() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(reached.set)

        with self._lock:
            self._waiting.append((version, tell))
        self._wake.set()
        await reached.wait()

    # The keeper

    def _follow(self) -> None:
        while not self._stop:
            # With SQLite all changes are made by this process, and whoever makes one wakes us.
            self._wake.wait(1.0 if self._database.is_sqlite else POLL_SECONDS)
            self._wake.clear()
            try:
                while not self._stop and self._catch_up():
                    pass
            except SQLAlchemyError as error:
                log.warning("the store does not answer; it is asked again", extra={"reason": str(error)[:300]})
                time.sleep(0.5)
            except Exception:
                log.exception("the set could not be brought up to date; it is tried again")
                time.sleep(1)

    def _catch_up(self) -> bool:
        """Applies what changed; whether there may be more."""
        with self._database.connect() as connection, connection.begin():
            changes = self._changes(connection)
        if changes is None:
            if self._is_merged:
                self._is_merged = False
                self._swap(self._snapshot.version)
            return False
        started, self._last_change = time.perf_counter(), float("inf")  # no rest until this is done
        self._compiled.remove(changes.removed)
        self._compiled.add(changes.added)
        self._is_merged = False
        self._swap(changes.version, try_first=len(changes.added) >= MANY)
        self.observe(time.perf_counter() - started)
        self._last_change = time.monotonic()
        self._changed.set()
        if self._compiled.gone > max(MOST_GONE, self._snapshot.size):
            self.load()
        return True

    def _merge(self) -> None:
        quiet = QUIET_SECONDS
        while not self._stop:
            self._changed.wait()
            self._changed.clear()
            waited_from = time.monotonic()
            while not self._stop and time.monotonic() - waited_from < LONGEST_SECONDS:
                left = self._last_change + quiet - time.monotonic()
                if left <= 0:
                    break
                time.sleep(min(left, 0.2))
            started = time.monotonic()
            try:
                if not self._stop and self._compiled.merge(self._engine, self._limits, list(self._recent)):
                    self._is_merged = True
                    self._wake.set()
                    # An import that stutters must not have a large index merged again and again.
                    quiet = max(QUIET_SECONDS, time.monotonic() - started)
            except Exception:
                log.exception("the index could not be merged; it goes on as it is")

    def _changes(self, connection: Connection) -> store.Changes | None:
        if store.current_version(connection) == self._snapshot.version:
            self._tell(self._snapshot.version)
            return None
        return store.changes_after(connection, self._snapshot.version, MOST_CHANGES)

    def _swap(self, version: int, *, try_first: bool = False) -> None:
        """Has documents matched with the set as it is now. With `try_first` it is tried on some before: an index
        finds its way through the first documents slowly, and those who publish would wait for it."""
        snapshot = self._compiled.snapshot(version, self._engine, self._limits)
        if try_first:
            snapshot.match(list(self._recent), select=False)
        self._snapshot = snapshot
        self._tell(version)

    def _tell(self, version: int) -> None:
        with self._lock:
            reached = [tell for wanted, tell in self._waiting if wanted <= version]
            self._waiting = [(wanted, tell) for wanted, tell in self._waiting if wanted > version]
        for tell in reached:
            tell()
