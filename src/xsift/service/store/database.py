"""A connection to the database: SQLite in WAL mode, or PostgreSQL. What differs between them is said here alone."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from pathlib import Path
from typing import IO, Any

import sqlalchemy
from pydantic_core import from_json, to_json
from sqlalchemy import Connection, Engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, OperationalError

from xsift.errors import StorageError
from xsift.service.store.migrations import migrate

__all__ = ["LARGE_LOG", "Database", "is_away", "is_full", "is_locked", "is_transient"]

BUSY_SECONDS = 30
LARGE_LOG = 128 << 20  # bytes of SQLite's log, from which on it is to begin anew
TRANSIENT = ("40001", "40P01", "08", "57P01", "57P02", "57P03")  # SQLSTATEs: deadlock, connection lost, restarting


class Database:
    """The engine for readers, one connection for the writer, and for SQLite the lock that keeps others out."""

    def __init__(self, url: str, *, readers: int = 8, exclusive: bool = True) -> None:
        try:
            parsed = make_url(url)
        except ArgumentError as error:
            raise StorageError(
                "bad-database-url",
                f"{url!r} is not the URL of a database",
                hint="sqlite:///FILE or postgresql://USER@HOST/NAME",
            ) from error
        if parsed.get_backend_name() == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        elif parsed.get_backend_name() != "sqlite":
            raise StorageError(
                "bad-database-url",
                f"{parsed.get_backend_name()} is not supported",
                hint="sqlite:///FILE or postgresql://USER@HOST/NAME",
            )
        self.is_sqlite = parsed.get_backend_name() == "sqlite"
        self._lock: IO[str] | None = None
        self.path = Path(parsed.database or "") if self.is_sqlite else None
        if self.path is not None and exclusive:
            self._lock = _locked(self.path)
        json = {"json_serializer": _dumps, "json_deserializer": from_json}
        try:
            self.engine: Engine = sqlalchemy.create_engine(
                parsed,
                pool_size=readers,
                max_overflow=2,
                pool_pre_ping=not self.is_sqlite,
                hide_parameters=True,  # documents and secrets have no place in a log
                **json,
            )
        except (NoSuchModuleError, ModuleNotFoundError) as error:
            raise StorageError(
                "no-driver", f"the driver for {parsed.drivername} is missing", hint="pip install 'xsift[serve]'"
            ) from error
        if self.is_sqlite:
            event.listen(self.engine, "connect", _prepare_sqlite)
            event.listen(self.engine, "begin", _begin_sqlite)
            self._for_reading = self.engine.execution_options(reads=True)
        else:
            self._for_reading = self.engine.execution_options(isolation_level="REPEATABLE READ")
        try:
            migrate(self.engine)
        except DBAPIError as error:
            raise StorageError(
                "no-database",
                f"the database cannot be opened: {error.orig}",
                hint=f"is {parsed.render_as_string(hide_password=True)} right, and is it running?",
            ) from error

    def connect(self) -> Connection:
        """A connection for reading: all that is asked in one transaction is answered from one state, as it is in
        SQLite. Else what changes between two questions is seen by one of them."""
        return self._for_reading.connect()

    def checkpoint(self) -> tuple[int, int]:
        """Copies SQLite's write-ahead log into the database, beside whoever writes. Returns the bytes that are left
        to copy, and those that the log has."""
        if self.path is None:
            return 0, 0
        connection = sqlite3.connect(self.path, isolation_level=None, timeout=1)
        try:
            page_bytes = connection.execute("PRAGMA page_size").fetchone()[0]
            _, pages, copied = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            return max(0, pages - copied) * page_bytes, max(0, pages) * page_bytes
        finally:
            connection.close()

    def close(self) -> None:
        """Closes every connection, and lets others use the database."""
        self.engine.dispose()
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _dumps(value: Any) -> str:
    return to_json(value).decode()


def _locked(path: Path) -> IO[str]:
    """SQLite is for one server: two would each count deliveries on their own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = open(f"{path}.lock", "a+", encoding="ascii")  # noqa: SIM115 - held as long as the database is open
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.seek(0)
        holder = lock.read().strip()
        lock.close()
        raise StorageError(
            "database-in-use",
            f"{path} is used by another server (process {holder or 'unknown'})",
            hint="stop it, choose another --data folder, or use PostgreSQL for several servers",
        ) from error
    lock.truncate(0)
    lock.write(f"{os.getpid()}\n")
    lock.flush()
    return lock


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # transactions begin where we say so, not where the driver guesses
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")  # a commit is on the disk, not only in the operating system
    cursor.execute("PRAGMA wal_autocheckpoint = 0")  # Database.checkpoint does it, beside the writer
    cursor.execute(f"PRAGMA journal_size_limit = {LARGE_LOG}")  # what it keeps of its size when it begins anew
    cursor.execute("PRAGMA cache_size = -65536")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    # Who reads first and then writes fails at once if another process wrote in between. Who says at the beginning
    # that he is going to write waits for his turn.
    connection.exec_driver_sql("BEGIN" if connection.get_execution_options().get("reads") else "BEGIN IMMEDIATE")


def is_full(error: BaseException) -> bool:
    """Whether a write failed because the disk is full, or cannot be written at the moment."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(cause, OSError):
        return True
    if getattr(cause, "sqlite_errorname", "") in ("SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_FSYNC"):
        return True
    return str(getattr(cause, "sqlstate", "") or "").startswith("53") or "disk is full" in str(cause)


def is_locked(error: BaseException) -> bool:
    """Whether another process writes to SQLite's file, and went on for longer than we wait."""
    return _sqlite_name(error).startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def is_away(error: BaseException) -> bool:
    """Whether the database cannot be asked at the moment, whatever it is asked."""
    if not isinstance(error, OperationalError):
        return False
    name = _sqlite_name(error)
    return is_locked(error) or name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_FULL")) or not name


def _sqlite_name(error: BaseException) -> str:
    cause = error.orig if isinstance(error, DBAPIError) else error
    return str(getattr(cause, "sqlite_errorname", ""))


def is_transient(error: BaseException) -> bool:
    """Whether the same transaction may well succeed when it is tried again: a deadlock, a restart of PostgreSQL."""
    if not isinstance(error, DBAPIError):
        return False
    state = str(getattr(error.orig, "sqlstate", "") or "")
    return state.startswith(TRANSIENT) or error.connection_invalidated
