"""Subscriptions in the store: put, removed, listed, with the history of each, and the changes between two
versions.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import to_json
from sqlalchemy import ColumnElement, Connection, Result, Row, Text, cast, func, or_, select, tuple_, update

from xsift.errors import SubscriptionError
from xsift.service.store import subscribers
from xsift.service.store.inserting import insert_rows
from xsift.service.store.schema import facts, versions
from xsift.service.store.schema import subscribers as subscribers_table
from xsift.service.store.schema import subscriptions as table
from xsift.service.store.subscribers import NewSubscribers
from xsift.service.threads import breathe

__all__ = [
    "Changes",
    "Filter",
    "Put",
    "Subscription",
    "among",
    "changes_after",
    "count",
    "current_version",
    "get",
    "history",
    "latest",
    "list_versions",
    "live_rows",
    "page",
    "put_many",
    "remove_many",
]

CHUNK = 500  # ids in one query
PAGE = 5000  # rows that are read at a time
PIECE = 1000  # rows that are fetched without a breath: some milliseconds

LIVE_COLUMNS = (
    *(table.c.row, table.c.owner, table.c.id, table.c.subscriber, table.c.xpath, table.c.ordered, table.c.deliver),
    *(cast(column, Text) for column in (table.c.namespaces, table.c.labels, table.c.metadata)),
)
JOINED = table.join(subscribers_table, table.c.subscriber == subscribers_table.c.number)


@dataclass(slots=True)
class Subscription:
    """What a subscription says: the part that an owner writes."""

    id: str
    xpath: str
    subscriber: str
    ordered: bool = False
    deliver: str = "ids"
    namespaces: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Put:
    """What became of subscriptions that were put."""

    version: int
    added: int
    replaced: int
    unchanged: int


LiveRow = Row[Any]
"""What the live set needs of a row: `LIVE_COLUMNS`. Namespaces, labels and metadata are JSON as text."""


@dataclass(frozen=True)
class Changes:
    """From one version of the set to another: rows that came, numbers of rows that went."""

    version: int
    added: list[LiveRow]
    removed: list[int]


def current_version(connection: Connection, *, lock: bool = False) -> int:
    """The version of the set. With `lock` nobody else changes the set until the transaction ends."""
    query = select(facts.c.value).where(facts.c.name == "set-version")
    return int(connection.scalar(query.with_for_update() if lock else query) or 0)


def _note_version(connection: Connection, version: int, actor: str, added: int, removed: int) -> None:
    connection.execute(update(facts).where(facts.c.name == "set-version").values(value=str(version)))
    row = {"version": version, "at": time.time(), "actor": actor, "added": added, "removed": removed}
    connection.execute(versions.insert(), row)


# Changing


def put_many(
    connection: Connection,
    owner: str,
    wanted: Iterable[Subscription],
    actor: str,
    new_subscribers: NewSubscribers,
    *,
    most: int | None = None,
) -> Put:
    """Adds subscriptions, or replaces those that have other contents. One version for all of them. Raises
    SubscriptionError if the owner would then have more than `most`, or too many subscribers.
    """
    last = {subscription.id: subscription for subscription in wanted}  # the last one of an id counts
    version = current_version(connection, lock=True)
    named = {subscription.subscriber for subscription in last.values()}
    numbers = subscribers.ensure(connection, owner, named, new_subscribers)
    there = _live_by_id(connection, owner, list(last))
    new, replaced, unchanged = [], [], 0
    for id, subscription in last.items():
        found = there.get(id)
        if found is not None and _is_same(found, subscription, numbers[subscription.subscriber]):
            unchanged += 1
            continue
        if found is not None:
            replaced.append(found.row)
        new.append(subscription)
    if not new:
        return Put(version, 0, 0, unchanged)
    if (
        most is not None
        and len(new) > len(replaced)
        and count(connection, Filter(owner)) + len(new) - len(replaced) > most
    ):
        raise SubscriptionError(
            "too-many-subscriptions",
            f"{owner!r} may have {most:,} subscriptions",
            hint="remove some, or ask the operator",
        )
    version += 1
    now = time.time()
    _mark_removed(connection, replaced, version, now, actor)
    stamp = (version, now, actor)
    rows = [(owner, *_row(subscription, numbers[subscription.subscriber]), *stamp) for subscription in new]
    insert_rows(connection, table, COLUMNS, rows)
    _note_version(connection, version, actor, len(new), len(replaced))
    return Put(version, len(new) - len(replaced), len(replaced), unchanged)


COLUMNS = (
    *("owner", "id", "subscriber", "xpath", "ordered", "deliver", "namespaces", "labels", "metadata"),
    *("added", "added_at", "added_by"),
)


def _row(subscription: Subscription, subscriber: int) -> tuple[Any, ...]:
    return (
        subscription.id,
        subscriber,
        subscription.xpath,
        subscription.ordered,
        subscription.deliver,
        _json(subscription.namespaces),
        _json(subscription.labels),
        _json(subscription.metadata),
    )


def _json(value: Mapping[str, Any]) -> str:
    return to_json(dict(value), inf_nan_mode="null").decode() if value else "{}"


def _values(subscription: Subscription, subscriber: int) -> dict[str, Any]:
    return {
        "id": subscription.id,
        "subscriber": subscriber,
        "xpath": subscription.xpath,
        "ordered": subscription.ordered,
        "deliver": subscription.deliver,
        "namespaces": dict(subscription.namespaces),
        "labels": dict(subscription.labels),
        "metadata": dict(subscription.metadata),
    }


def _is_same(found: Row[Any], subscription: Subscription, subscriber: int) -> bool:
    return all(getattr(found, name) == value for name, value in _values(subscription, subscriber).items())


def _live_by_id(connection: Connection, owner: str, ids: Sequence[str]) -> dict[str, Row[Any]]:
    found: dict[str, Row[Any]] = {}
    for begin in range(0, len(ids), CHUNK):
        query = select(table).where(
            table.c.owner == owner, table.c.id.in_(ids[begin : begin + CHUNK]), table.c.removed.is_(None)
        )
        found |= {row.id: row for row in connection.execute(query)}
    return found


def _mark_removed(connection: Connection, rows: Sequence[int], version: int, at: float, actor: str) -> None:
    for begin in range(0, len(rows), CHUNK):
        connection.execute(
            update(table)
            .where(table.c.row.in_(rows[begin : begin + CHUNK]))
            .values(removed=version, removed_at=at, removed_by=actor)
        )


def remove_many(connection: Connection, owner: str, ids: Sequence[str], actor: str) -> tuple[int, list[str]]:
    """Removes subscriptions. Returns the version and the ids that were there."""
    version = current_version(connection, lock=True)
    there = _live_by_id(connection, owner, ids)
    if not there:
        return version, []
    version += 1
    _mark_removed(connection, [row.row for row in there.values()], version, time.time(), actor)
    _note_version(connection, version, actor, 0, len(there))
    return version, list(there)


def remove_of_subscriber(connection: Connection, owner: str, subscriber: int, actor: str) -> int:
    """Removes all subscriptions that are delivered to a subscriber of an owner; returns how many there were."""
    version = current_version(connection, lock=True) + 1
    removed = connection.execute(
        update(table)
        .where(table.c.owner == owner, table.c.subscriber == subscriber, table.c.removed.is_(None))
        .values(removed=version, removed_at=time.time(), removed_by=actor)
    ).rowcount
    if removed:
        _note_version(connection, version, actor, 0, removed)
    return removed


# Reading

SHOWN = (table, subscribers_table.c.id.label("subscriber_id"))


def get(connection: Connection, owner: str, id: str) -> Row[Any]:
    """A subscription that is live. Raises SubscriptionError if there is none."""
    query = select(*SHOWN).select_from(JOINED)
    row = connection.execute(query.where(table.c.owner == owner, table.c.id == id, table.c.removed.is_(None))).first()
    if row is None:
        raise SubscriptionError("unknown-id", f"there is no subscription {id!r}", id=id)
    return row


def history(connection: Connection, owner: str, id: str, most: int = 100) -> list[Row[Any]]:
    """Every state that a subscription has had, the latest first. A subscriber that was removed has no name."""
    joined = table.outerjoin(subscribers_table, table.c.subscriber == subscribers_table.c.number)
    named = func.coalesce(subscribers_table.c.id, "").label("subscriber_id")
    query = select(table, named).select_from(joined).where(table.c.owner == owner, table.c.id == id)
    return list(connection.execute(query.order_by(table.c.row.desc()).limit(most)))


@dataclass(frozen=True)
class Filter:
    """Which of the live subscriptions are meant; without anything, all."""

    owner: str | None = None
    subscriber: str | None = None
    prefix: str | None = None
    contains: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    def conditions(self) -> list[ColumnElement[bool]]:
        wanted: list[ColumnElement[bool]] = [table.c.removed.is_(None)]
        if self.owner is not None:
            wanted.append(table.c.owner == self.owner)
        if self.subscriber is not None:
            wanted.append(subscribers_table.c.id == self.subscriber)
        if self.prefix:
            wanted.append(table.c.id.startswith(self.prefix, autoescape=True))
        if self.contains:
            within = [column.contains(self.contains, autoescape=True) for column in (table.c.xpath, table.c.id)]
            wanted.append(or_(*within))
        for name, value in self.labels.items():
            wanted.append(table.c.labels[name].as_string() == value)
        return wanted


EVERYTHING = Filter()


def page(
    connection: Connection,
    filter: Filter = EVERYTHING,
    *,
    after: tuple[str, str] | None = None,
    most: int = 100,
) -> list[Row[Any]]:
    """Live subscriptions by owner and id, those after `after`."""
    query = select(*SHOWN).select_from(JOINED).where(*filter.conditions())
    if after is not None:
        # Written so that the index leads there: a page costs the same wherever it is.
        one, every = table.c.id > after[1], tuple_(table.c.owner, table.c.id) > tuple_(*after)
        query = query.where(every if filter.owner is None else one)
    return list(connection.execute(query.order_by(table.c.owner, table.c.id).limit(most)))


def latest(
    connection: Connection, filter: Filter = EVERYTHING, *, before: int | None = None, most: int = 100
) -> list[Row[Any]]:
    """Live subscriptions, those that were changed last first; rows before `before`."""
    query = select(*SHOWN).select_from(JOINED).where(*filter.conditions())
    if before is not None:
        query = query.where(table.c.row < before)
    return list(connection.execute(query.order_by(table.c.row.desc()).limit(most)))


def among(connection: Connection, rows: Sequence[int], filter: Filter = EVERYTHING) -> dict[int, Row[Any]]:
    """Those of some rows that are live and meant."""
    found: dict[int, Row[Any]] = {}
    for begin in range(0, len(rows), CHUNK):
        query = select(*SHOWN).select_from(JOINED).where(*filter.conditions())
        query = query.where(table.c.row.in_(rows[begin : begin + CHUNK]))
        found |= {row.row: row for row in connection.execute(query)}
    return found


def live_rows(connection: Connection) -> Iterator[list[LiveRow]]:
    """All live subscriptions by row, some thousands at a time."""
    last = 0
    while True:
        query = select(*LIVE_COLUMNS).where(table.c.row > last, table.c.removed.is_(None))
        rows = _in_pieces(connection.execute(query.order_by(table.c.row).limit(PAGE)))
        if not rows:
            return
        yield rows
        last = rows[-1].row


def changes_after(connection: Connection, version: int, most: int) -> Changes:
    """What changed after a version: all that there is, or about the first `most` rows of it, whole versions."""
    now = current_version(connection)
    until = now
    if now > version + 1:
        query = select(versions.c.version, versions.c.added, versions.c.removed).where(versions.c.version > version)
        rows = 0
        for found in connection.execute(query.order_by(versions.c.version)):
            rows += found.added + found.removed
            until = found.version
            if rows >= most:
                break
    added = connection.execute(
        select(*LIVE_COLUMNS)
        .where(
            table.c.added > version, table.c.added <= until, or_(table.c.removed.is_(None), table.c.removed > until)
        )
        .order_by(table.c.row)
    )
    removed = connection.scalars(
        select(table.c.row).where(table.c.removed > version, table.c.removed <= until, table.c.added <= version)
    )
    return Changes(until, _in_pieces(added), list(removed))


def _in_pieces(result: Result[Any]) -> list[LiveRow]:
    """All rows, while others may work."""
    rows: list[LiveRow] = []
    for some in result.partitions(PIECE):
        rows += some
        breathe()
    return rows


def list_versions(connection: Connection, before: int | None, most: int) -> list[Row[Any]]:
    """Versions of the set, the latest first: who, when, how many."""
    query = select(versions).order_by(versions.c.version.desc()).limit(most)
    return list(connection.execute(query if before is None else query.where(versions.c.version < before)))


def count(connection: Connection, filter: Filter = EVERYTHING) -> int:
    """How many live subscriptions are meant."""
    source = table if filter.subscriber is None else JOINED
    query = select(func.count()).select_from(source).where(*filter.conditions())
    return int(connection.scalar(query) or 0)
