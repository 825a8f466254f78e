"""A table of subscriptions and the server's set kept alike, so that a Spark stream and a server follow the same
ones.

The table has versions, and can tell the changes between them. Either it leads and the server follows it
(`direction = "follow"`), or the server leads and writes what its owner's set becomes. How far it has come is
stored together with what it did, so a crash repeats at most what is harmless to repeat.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection, select, update

from xsift.errors import XsiftError
from xsift.service.live_set import LiveSet
from xsift.service.settings import TableSettings
from xsift.service.store import subscriptions as store
from xsift.service.store.database import Database
from xsift.service.store.schema import facts
from xsift.service.store.schema import subscribers as subscribers_table
from xsift.service.store.schema import subscriptions as subscriptions_table
from xsift.service.store.subscribers import NewSubscribers
from xsift.service.store.subscriptions import Subscription
from xsift.service.store.writer import Writer

__all__ = ["SetTable", "TableSync", "as_rows", "as_subscriptions"]

log = logging.getLogger("xsift.service.table")

CHUNK = 1000
ACTOR = "table"


class SetTable(Protocol):
    """What a table of subscriptions must be able to do: `xsift.tables.SubscriptionTable` is one."""

    @property
    def namespaces(self) -> dict[str, str]: ...

    def version(self) -> int: ...

    def as_of(self, version: int | None = None) -> pa.Table: ...

    def changes(self, after: int, until: int | None = None) -> pa.Table: ...

    def add(self, rows: Any, *, errors: Any = "raise") -> list[tuple[str, XsiftError]]: ...

    def remove(self, ids: Iterable[str], *, missing_ok: bool = False) -> None: ...


class TableSync:
    """Keeps one owner's subscriptions and a table alike, on a thread of its own."""

    def __init__(
        self,
        table: SetTable,
        settings: TableSettings,
        database: Database,
        writer: Writer,
        live_set: LiveSet,
        new_subscribers: NewSubscribers,
    ) -> None:
        self._table = table
        self._settings = settings
        self._database = database
        self._writer = writer
        self._live_set = live_set
        self._new_subscribers = new_subscribers
        self._fact = f"table:{settings.direction}:{settings.path}"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="xsift-table", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        step = self.follow if self._settings.direction == "follow" else self.write
        while not self._stop.is_set():
            try:
                step()
            except Exception as error:
                log.warning("the table could not be followed; it is tried again", extra={"reason": str(error)[:500]})
            self._stop.wait(self._settings.poll_seconds)

    def _seen(self) -> int:
        with self._database.connect() as connection:
            return int(connection.scalar(select(facts.c.value).where(facts.c.name == self._fact)) or 0)

    def _note(self, connection: Connection, version: int) -> None:
        changed = connection.execute(update(facts).where(facts.c.name == self._fact).values(value=str(version)))
        if not changed.rowcount:
            connection.execute(facts.insert(), {"name": self._fact, "value": str(version)})

    # The table leads

    def follow(self) -> None:
        """Brings the owner's set to the table's latest version."""
        seen, latest = self._seen(), self._table.version()
        if latest == seen:
            return
        came, gone = self._changes(seen, latest)
        owner = self._settings.owner
        for begin in range(0, len(gone), CHUNK):
            part = gone[begin : begin + CHUNK]
            self._writer.run_blocking(lambda connection, part=part: store.remove_many(connection, owner, part, ACTOR))  # type: ignore[misc]
        for begin in range(0, len(came), CHUNK):
            rows = came[begin : begin + CHUNK]
            new = self._new_subscribers
            self._writer.run_blocking(
                partial(store.put_many, owner=owner, wanted=rows, actor=ACTOR, new_subscribers=new)
            )
        self._writer.run_blocking(lambda connection: self._note(connection, latest))
        self._live_set.look()
        log.info("followed the table", extra={"version": latest, "changed": len(came), "removed": len(gone)})

    def _changes(self, seen: int, latest: int) -> tuple[list[Subscription], list[str]]:
        """Subscriptions that came or changed, and ids of those that went."""
        owner, namespaces = self._settings.owner, self._table.namespaces
        if seen:
            try:
                changes = self._table.changes(seen, latest)
            except XsiftError as error:  # it has forgotten what changed since then: the whole set tells
                log.info("the whole table is read", extra={"reason": str(error)})
            else:
                kept = changes.filter(pc.invert(changes["_removed"]))
                gone = changes.filter(changes["_removed"])["id"].to_pylist()
                return list(as_subscriptions(kept, owner, namespaces)), gone
        came = list(as_subscriptions(self._table.as_of(latest), owner, namespaces))
        there = {subscription.id for subscription in came}
        table = subscriptions_table
        with self._database.connect() as connection:
            live = connection.scalars(select(table.c.id).where(table.c.owner == owner, table.c.removed.is_(None)))
            return came, [id for id in live if id not in there]

    # The server leads

    def write(self) -> None:
        """Brings the table to the owner's set."""
        seen = self._seen()
        with self._database.connect() as connection, connection.begin():
            latest = store.current_version(connection)
            if latest == seen:
                return
            came, gone = _changes_of(connection, self._settings.owner, seen, latest)
        if gone:
            self._table.remove(gone, missing_ok=True)
        if came:
            failed = self._table.add(as_rows(came), errors="collect")
            for id, error in failed:
                log.warning(
                    "the table does not take a subscription", extra={"subscription": id, "reason": str(error)}
                )
        self._writer.run_blocking(lambda connection: self._note(connection, latest))
        log.info("wrote to the table", extra={"version": latest, "changed": len(came), "removed": len(gone)})


def _changes_of(connection: Connection, owner: str, after: int, until: int) -> tuple[list[Any], list[str]]:
    table = subscriptions_table
    live = (table.c.owner == owner, table.c.removed.is_(None))
    source = table.join(subscribers_table, table.c.subscriber == subscribers_table.c.number)
    query = select(table, subscribers_table.c.id.label("subscriber_id")).select_from(source)
    came = list(
        connection.execute(query.where(*live, table.c.added > after, table.c.added <= until).order_by(table.c.row))
    )
    removed = set(
        connection.scalars(
            select(table.c.id).where(table.c.owner == owner, table.c.removed > after, table.c.removed <= until)
        )
    )
    there = {row.id for row in came}
    candidates = sorted(removed - there)
    still: set[str] = set()
    for begin in range(0, len(candidates), CHUNK):
        part = candidates[begin : begin + CHUNK]
        still |= set(connection.scalars(select(table.c.id).where(*live, table.c.id.in_(part))))
    return came, [id for id in candidates if id not in still]


def as_rows(rows: Iterable[Any]) -> list[dict[str, Any]]:
    """Subscriptions of the store as rows of a table. Labels and metadata are JSON in a column."""
    return [
        {
            "id": row.id,
            "xpath": row.xpath,
            "ordered": row.ordered,
            "namespaces": dict(row.namespaces),
            "subscriber": row.subscriber_id,
            "deliver": row.deliver,
            "labels": json.dumps(row.labels, sort_keys=True),
            "metadata": json.dumps(row.metadata, sort_keys=True),
        }
        for row in rows
    ]


def as_subscriptions(table: pa.Table, owner: str, common: Mapping[str, str] | None = None) -> Iterator[Subscription]:
    """Rows of a table as subscriptions. Columns that a table does not have, or that are null, are as if not said.
    `common` are the prefixes that all rows may use.
    """
    for row in table.to_pylist():
        namespaces = row.get("namespaces") or {}
        yield Subscription(
            id=row["id"],
            xpath=row["xpath"],
            subscriber=row.get("subscriber") or owner,
            ordered=bool(row.get("ordered")),
            deliver=row.get("deliver") if row.get("deliver") in ("ids", "document", "fragments") else "ids",
            namespaces={**(common or {}), **dict(namespaces)},
            labels={str(name): str(value) for name, value in _mapping(row.get("labels")).items()},
            metadata=_mapping(row.get("metadata")),
        )


def _mapping(value: Any) -> Mapping[str, Any]:
    """Labels or metadata, however a table has them: JSON text, a map (a list of pairs to Arrow), a struct, a list."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {value: ""}
    if isinstance(value, Mapping):
        return value
    if isinstance(value, list):
        pairs = [item if isinstance(item, tuple | list) and len(item) == 2 else (item, "") for item in value]
        return {str(name): found for name, found in pairs}
    return {}
