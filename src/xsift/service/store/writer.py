"""The one thread that writes: it takes all that waits, writes it in one transaction, and answers when that is
durable.

A commit waits for the disk, some milliseconds. What arrives meanwhile is the next group, so thousands of documents
a second cost a hundred commits. Each piece of work has a savepoint of its own: one that fails fails alone. If the
commit itself fails (the disk is full), all of the group are told so, and nothing of it is there. If the database
refuses something in a group, all of it is written again, one by one, and what is refused then fails alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from xsift.errors import StorageError
from xsift.service.store.database import Database, is_away, is_full, is_locked, is_transient

__all__ = ["Batched", "Writer"]

Result = TypeVar("Result")
Item = TypeVar("Item")
log = logging.getLogger("xsift.service.store")

MOST_ITEMS = 512  # of a kind in one transaction: bounds how long the last of them waits for the first
TRIES = 5


@dataclass
class Batched(Generic[Item]):
    """A kind of work that is written many at a time. `write` does it in a transaction, `done` is called once that
    is durable, or with what went wrong; both in the writer's thread.
    """

    write: Callable[[Connection, list[Item]], Any]
    done: Callable[[list[Item], Any, BaseException | None], None]


@dataclass
class _Work:
    """One piece of work, and who waits for it."""

    run: Callable[[Connection], Any]
    answer: Callable[[Any, BaseException | None], None]
    result: Any = None
    error: BaseException | None = None


@dataclass
class _Group:
    works: list[_Work] = field(default_factory=list)
    batches: dict[int, tuple[Batched[Any], list[Any]]] = field(default_factory=dict)
    results: dict[int, Any] = field(default_factory=dict)


class Writer:
    """Group commit, on a thread of its own."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._works: deque[_Work] = deque()
        self._pauses: deque[Callable[[], None]] = deque()
        self._batches: dict[int, tuple[Batched[Any], deque[Any]]] = {}
        self._wake = threading.Condition()
        self._closing = self._closed = False
        self._thread = threading.Thread(target=self._loop, name="xsift-writer", daemon=True)
        self._connection: Connection | None = None
        self.healthy = True
        """Whether the last transaction was made durable."""
        self.observe: Callable[[int, float], None] = lambda items, seconds: None

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Writes what waits, then stops."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        if self._thread.ident is not None:
            self._thread.join()

    @property
    def depth(self) -> int:
        """Pieces of work that wait."""
        return len(self._works) + sum(len(items) for _, items in self._batches.values())

    # Work to be done

    async def run(self, work: Callable[[Connection], Result]) -> Result:
        """Does work in a transaction; returns what it returns once that is durable."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()

        def answer(result: Any, error: BaseException | None) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_resolve, future, result, error)

        self._submit(_Work(work, answer))
        return await future

    async def between(self, work: Callable[[], Result]) -> Result:
        """Does work between two transactions: nobody writes meanwhile."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()

        def pause() -> None:
            try:
                result, error = work(), None
            except Exception as failure:
                result, error = None, failure
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_resolve, future, result, error)

        with self._wake:
            self._refuse_if_closed()
            self._pauses.append(pause)
            self._wake.notify()
        return await future

    def run_blocking(self, work: Callable[[Connection], Result]) -> Result:
        """The same, for a thread that can wait."""
        done = threading.Event()
        outcome: list[Any] = []

        def answer(result: Any, error: BaseException | None) -> None:
            outcome.extend((result, error))
            done.set()

        self._submit(_Work(work, answer))
        done.wait()
        if outcome[1] is not None:
            raise outcome[1]
        return outcome[0]  # type: ignore[no-any-return]

    def add(self, kind: Batched[Item], items: Sequence[Item]) -> None:
        """Hands over work that is written many at a time."""
        with self._wake:
            self._refuse_if_closed()
            _, waiting = self._batches.setdefault(id(kind), (kind, deque()))
            waiting.extend(items)
            self._wake.notify()

    def _submit(self, work: _Work) -> None:
        with self._wake:
            self._refuse_if_closed()
            self._works.append(work)
            self._wake.notify()

    def _refuse_if_closed(self) -> None:
        if self._closed or (self._closing and not self._thread.is_alive()):
            raise StorageError("closed", "the server is stopping", hint="try again with the one that takes over")

    # The thread

    def _loop(self) -> None:
        while True:
            with self._wake:
                while not self._closing and not self.depth and not self._pauses:
                    self._wake.wait()
                if self._closing and not self.depth and not self._pauses:
                    self._closed = True  # from here on nobody takes what is handed over
                    break
                group = self._take()
            while self._pauses:
                self._pauses.popleft()()
            if not _size(group):
                continue
            started = time.perf_counter()
            error = self._write_or_retry(group)
            self.observe(_size(group), time.perf_counter() - started)
            if error is not None and _is_refused(error) and _size(group) > 1:
                for alone in _apart(group):
                    self._answer(alone, self._write_or_retry(alone))
            else:
                self._answer(group, error)
        if self._connection is not None:
            self._connection.close()

    def _take(self) -> _Group:
        group = _Group()
        while self._works and len(group.works) < MOST_ITEMS:
            group.works.append(self._works.popleft())
        for key, (kind, waiting) in self._batches.items():
            items = [waiting.popleft() for _ in range(min(MOST_ITEMS, len(waiting)))]
            if items:
                group.batches[key] = (kind, items)
        return group

    def _write_or_retry(self, group: _Group) -> BaseException | None:
        for attempt in range(TRIES):
            try:
                self._write(group)
            except (SQLAlchemyError, OSError) as error:
                self._reset()
                if is_transient(error) and attempt < TRIES - 1:
                    log.warning("a transaction is tried again", extra={"reason": str(error)[:300]})
                    time.sleep(0.05 * 4**attempt)
                    continue
                self.healthy = False
                log.error("a transaction failed", extra={"reason": str(error)[:300], "items": _size(group)})
                return _storage_error(error)
            except Exception as error:  # a mistake of ours in a batch: its items fail, the thread lives on
                self._reset()
                log.exception("a transaction failed")
                return error
            self.healthy = True
            return None
        raise AssertionError("the last attempt returns")

    def _write(self, group: _Group) -> None:
        if self._connection is None:
            self._connection = self._database.engine.connect()
        connection = self._connection
        with connection.begin():
            for work in group.works:
                work.result = work.error = None
                try:
                    with connection.begin_nested():
                        work.result = work.run(connection)
                except (SQLAlchemyError, OSError) as error:
                    if is_transient(error) or is_full(error) or is_locked(error):
                        raise
                    work.error = error
                except Exception as error:
                    work.error = error
            for key, (kind, items) in group.batches.items():
                group.results[key] = kind.write(connection, items)

    def _reset(self) -> None:
        """A connection after an error may be of no use: the next transaction gets a new one."""
        if self._connection is not None:
            with contextlib.suppress(SQLAlchemyError, OSError):
                self._connection.rollback()
            with contextlib.suppress(SQLAlchemyError, OSError):
                self._connection.invalidate() if not self._database.is_sqlite else None
                self._connection.close()
            self._connection = None

    def _answer(self, group: _Group, error: BaseException | None) -> None:
        for work in group.works:
            work.answer(None if error else work.result, error or work.error)
        for key, (kind, items) in group.batches.items():
            try:
                kind.done(items, group.results.get(key), error)
            except Exception:
                log.exception("what follows a commit failed")


def _resolve(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if not future.done():
        future.set_exception(error) if error is not None else future.set_result(result)


def _size(group: _Group) -> int:
    return len(group.works) + sum(len(items) for _, items in group.batches.values())


def _apart(group: _Group) -> Iterator[_Group]:
    """A group for each piece of work and each item."""
    for work in group.works:
        yield _Group([work])
    for key, (kind, items) in group.batches.items():
        for item in items:
            yield _Group([], {key: (kind, [item])})


def _is_refused(error: BaseException) -> bool:
    """Whether it failed for what was to be written: not because the disk is full, or the database away."""
    return not isinstance(error, StorageError) or error.code == "storage-failed"


def _storage_error(error: BaseException) -> StorageError:
    if is_full(error):
        return StorageError(
            "storage-full", "the disk is full, nothing was stored", hint="free some space, then repeat"
        )
    if is_transient(error) or is_away(error):
        return StorageError(
            "storage-away", "the database does not answer, nothing was stored", hint="repeat it later"
        )
    return StorageError(
        "storage-failed", "the database refused it, nothing was stored", hint="the server's log says why"
    )
