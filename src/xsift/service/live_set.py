"""The live set: the subscriptions as one immutable snapshot, which follows the store.

A keeper thread asks the store what changed after the version it has, compiles that alone, and swaps the snapshot;
what did not change is shared by both. Whoever changed something waits for the snapshot that has it, so that what was
answered is matched by the next document. Other servers look every `POLL_SECONDS`.

Subscriptions lie on shelves, a matcher each. Those that want fragments have shelves of their own, because for them nodes
are selected, which costs more. And two that mean different namespaces by the same prefix cannot be on the same shelf.
Nearly always there is one shelf of each kind.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic_core import to_json
from sqlalchemy import Connection, Row

import xsift
from xsift.errors import XsiftError
from xsift.service.store import subscriptions as store
from xsift.service.store.database import Database

__all__ = ["Caught", "Found", "LiveSet", "Snapshot"]

log = logging.getLogger("xsift.service.live_set")

POLL_SECONDS = 0.05
CHUNK = 1000  # rows compiled at a time: the kernels keep the interpreter to themselves meanwhile
MOST_CHANGES = 20_000  # rows between two snapshots: bounds how long a change waits behind an import
MOST_SHELVES = 8  # then all is put into as few as will do
MOST_GONE = 100_000  # rows that were removed, and more than are live: then all is compiled anew without them


@dataclass(slots=True)
class Caught:
    """One subscription that a document satisfies: its place, and the nodes that it selects if they are wanted."""

    place: int
    nodes: Sequence[Any] = ()


@dataclass(slots=True)
class Found:
    """What a snapshot says of one document."""

    caught: list[Caught] = field(default_factory=list)
    error: XsiftError | None = None
    failures: dict[int, XsiftError] = field(default_factory=dict)
    """By place: subscriptions that could not be decided on this document."""


class Snapshot:
    """The set at one version: matches documents, from any thread."""

    def __init__(self, version: int, matchers: Sequence[tuple[xsift.Matcher, bool]], compiled: _Compiled) -> None:
        self.version = version
        self._matchers = matchers
        self._compiled = compiled
        self.size = sum(compiled.counts.values())

    def match(self, documents: Sequence[xsift.Document], *, select: bool = True) -> list[Found]:
        """What each document satisfies; with `select` also the nodes, for subscriptions that want fragments."""
        found = [Found() for _ in documents]
        for matcher, selects in self._matchers:
            for document, result, match in zip(documents, found, matcher.match_many(documents), strict=True):
                if match.error is not None:
                    result.error = match.error
                    continue
                result.failures |= {int(id): error for id, error in match.failures.items()}
                if selects and select and len(match):
                    result.caught += [Caught(int(id), nodes) for id, nodes in matcher.select(document).items()]
                else:
                    result.caught += [Caught(int(id)) for id in match.ids]
        return found

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


class _Shelf:
    """Subscriptions that one matcher serves."""

    def __init__(self, namespaces: Mapping[str, str], selects: bool, residuals: Literal["verify", "refuse"]) -> None:
        self.namespaces = dict(namespaces)
        self.selects = selects
        self.set = xsift.Subscriptions(namespaces=namespaces, residuals=residuals)


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
        self._on_shelf = array("H")
        self._removed = bytearray()
        self._owner_names: dict[str, str] = {}
        self.shelves: list[_Shelf] = [self._new_shelf({}, False)]

    def _new_shelf(self, namespaces: Mapping[str, str], selects: bool) -> _Shelf:
        return _Shelf(namespaces, selects, self._residuals)

    def plan(self, mappings: Iterable[tuple[Mapping[str, str], bool]]) -> None:
        """Makes shelves for the namespaces that are used, as few as will do."""
        for namespaces, selects in mappings:
            for shelf in self.shelves:
                if shelf.selects == selects and _agree(shelf.namespaces, namespaces):
                    shelf.namespaces |= namespaces
                    break
            else:
                self.shelves.append(self._new_shelf(namespaces, selects))
        self.shelves = [self._new_shelf(shelf.namespaces, shelf.selects) for shelf in self.shelves]

    def add(self, rows: Iterable[Row[Any]]) -> None:
        batches: dict[int, list[tuple[str, str, bool]]] = {}
        for row in rows:
            shelf = self._shelf_for(row.namespaces, row.deliver == "fragments")
            batches.setdefault(shelf, []).append((str(self._append(row, shelf)), row.xpath, row.ordered))
        for shelf, batch in batches.items():
            for begin in range(0, len(batch), CHUNK):
                failed = self.shelves[shelf].set.add_many(batch[begin : begin + CHUNK], errors="collect")
                for id, error in failed:
                    self._refuse(int(id), error)
                time.sleep(0)  # others may have the interpreter now

    def _append(self, row: Row[Any], shelf: int) -> int:
        owner = self._owner_names.setdefault(row.owner, row.owner)
        self.counts[owner] = self.counts.get(owner, 0) + 1
        self.rows.append(row.row)
        self.subscribers.append(row.subscriber)
        self.wholes.append(row.deliver == "document")
        self.entries.append(to_json({"id": row.id, "labels": row.labels, "metadata": row.metadata})[:-1])
        self.owners.append(owner)
        self._on_shelf.append(shelf)
        self._removed.append(0)
        return len(self.rows) - 1

    def _shelf_for(self, namespaces: Mapping[str, str], selects: bool) -> int:
        for number, shelf in enumerate(self.shelves):
            if shelf.selects == selects and namespaces.items() <= shelf.namespaces.items():
                return number
        self.shelves.append(self._new_shelf(namespaces, selects))
        return len(self.shelves) - 1

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
                self.shelves[self._on_shelf[place]].set.remove(str(place))

    def snapshot(self, version: int, engine: str, limits: xsift.Limits) -> Snapshot:
        # The first shelf is asked even if it is empty: a broken document is one without subscriptions, too.
        used = [shelf for number, shelf in enumerate(self.shelves) if number == 0 or len(shelf.set)]
        matchers = [(shelf.set.matcher(engine, limits=limits), shelf.selects) for shelf in used]
        return Snapshot(version, matchers, self)


def _agree(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    return all(one.get(prefix, uri) == uri for prefix, uri in other.items())


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

    def load(self) -> None:
        """Reads the whole set: a few seconds for a million subscriptions."""
        compiled = _Compiled(self._residuals)
        with self._database.connect() as connection, connection.begin():
            version = store.current_version(connection)
            compiled.plan(store.distinct_namespaces(connection))
            for rows in store.live_rows(connection):
                compiled.add(rows)
        self._compiled = compiled
        self._swap(version)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._stop = True
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join()

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
            except Exception:
                log.exception("the set could not be brought up to date; it is tried again")
                time.sleep(1)

    def _catch_up(self) -> bool:
        """Applies what changed; whether there may be more."""
        with self._database.connect() as connection, connection.begin():
            changes = self._changes(connection)
        if changes is None:
            return False
        started = time.perf_counter()
        self._compiled.remove(changes.removed)
        self._compiled.add(changes.added)
        self._swap(changes.version)
        self.observe(time.perf_counter() - started)
        if len(self._compiled.shelves) > MOST_SHELVES or self._compiled.gone > max(MOST_GONE, self._snapshot.size):
            self.load()
        return True

    def _changes(self, connection: Connection) -> store.Changes | None:
        if store.current_version(connection) == self._snapshot.version:
            self._tell(self._snapshot.version)
            return None
        return store.changes_after(connection, self._snapshot.version, MOST_CHANGES)

    def _swap(self, version: int) -> None:
        self._snapshot = self._compiled.snapshot(version, self._engine, self._limits)
        self._tell(version)

    def _tell(self, version: int) -> None:
        with self._lock:
            reached = [tell for wanted, tell in self._waiting if wanted <= version]
            self._waiting = [(wanted, tell) for wanted, tell in self._waiting if wanted > version]
        for tell in reached:
            tell()
