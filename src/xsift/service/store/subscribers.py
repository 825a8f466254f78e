"""Subscribers in the store: where deliveries go, and how far each has come."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, delete, func, select, update

from xsift.errors import SubscriptionError
from xsift.service.store.inserting import insert_rows
from xsift.service.store.schema import dead_letters, deliveries, facts
from xsift.service.store.schema import subscribers as table

__all__ = ["NewSubscribers", "by_number", "check_number", "ensure", "find", "page", "put", "remove", "sent_to"]

NEW = {
    "state": "active",
    "reason": "",
    "last_place": 0,
    "acknowledged_place": 0,
    "dropped_place": 0,
    "dropped": 0,
    "attempts": 0,
    "retry_at": 0.0,
}


@dataclass(frozen=True)
class NewSubscribers:
    """How subscribers are made that a subscription names, and that are not there."""

    backlog: int
    most: int | None = None
    """So many an owner may have."""


def ensure(connection: Connection, owner: str, ids: Collection[str], new: NewSubscribers) -> dict[str, int]:
    """The numbers of subscribers; those that are not there are made, and wait to be asked (kind `pull`)."""
    wanted = sorted(ids)
    found: dict[str, int] = {}
    for begin in range(0, len(wanted), 500):
        part = wanted[begin : begin + 500]
        query = select(table.c.id, table.c.number).where(table.c.owner == owner, table.c.id.in_(part))
        found |= {row.id: row.number for row in connection.execute(query)}
    missing = [id for id in wanted if id not in found]
    if not missing:
        return found
    if new.most is not None:
        check_number(connection, owner, len(missing), new.most)
    now = time.time()
    rows = [(owner, id, "pull", "{}", new.backlog, "active", "", now, 0, 0, 0, 0, 0, 0.0) for id in missing]
    insert_rows(connection, table, tuple(column.name for column in table.c if column is not table.c.number), rows)
    return ensure(connection, owner, ids, new)


def check_number(connection: Connection, owner: str, more: int, most: int) -> None:
    """Raises SubscriptionError if an owner would have too many subscribers."""
    there = connection.scalar(select(func.count()).select_from(table).where(table.c.owner == owner)) or 0
    if there + more > most:
        raise SubscriptionError(
            "too-many-subscribers",
            f"{owner!r} may have {most:,} subscribers",
            hint="remove some, or ask the operator: limits.subscribers",
        )


def _insert(connection: Connection, owner: str, id: str, kind: str, target: dict[str, Any], backlog: int) -> int:
    row = {
        "owner": owner,
        "id": id,
        "kind": kind,
        "target": target,
        "backlog": backlog,
        "created": time.time(),
        **NEW,
    }
    inserted = connection.execute(table.insert().values(**row))
    return int(inserted.inserted_primary_key[0])  # type: ignore[index]


def put(
    connection: Connection, owner: str, id: str, *, kind: str, target: dict[str, Any], backlog: int, state: str
) -> tuple[Row[Any], bool]:
    """Makes or changes a subscriber. Returns it, and whether it is new. What waits for it stays."""
    query = select(table).where(table.c.owner == owner, table.c.id == id).with_for_update()
    there = connection.execute(query).first()
    if there is None:
        # Another server may make the same one at this moment. Who changes the set, which makes subscribers too, has
        # it to himself; so has this, and then looks again.
        connection.execute(select(facts).where(facts.c.name == "set-version").with_for_update())
        there = connection.execute(query).first()
    if there is None:
        number = _insert(connection, owner, id, kind, target, backlog)
        if state != "active":
            connection.execute(update(table).where(table.c.number == number).values(state=state))
        return by_number(connection, number), True
    values: dict[str, Any] = {"kind": kind, "target": target, "backlog": backlog, "state": state, "reason": ""}
    connection.execute(update(table).where(table.c.number == there.number).values(**values, attempts=0, retry_at=0.0))
    return by_number(connection, there.number), False


def find(connection: Connection, owner: str, id: str) -> Row[Any]:
    """A subscriber of an owner. Raises SubscriptionError if there is none."""
    row = connection.execute(select(table).where(table.c.owner == owner, table.c.id == id)).first()
    if row is None:
        raise SubscriptionError("unknown-subscriber", f"there is no subscriber {id!r}", id=id)
    return row


def by_number(connection: Connection, number: int) -> Row[Any]:
    """A subscriber. Raises SubscriptionError if it was removed."""
    row = connection.execute(select(table).where(table.c.number == number)).first()
    if row is None:
        raise SubscriptionError("unknown-subscriber", "this subscriber was removed")
    return row


def page(
    connection: Connection,
    *,
    owner: str | None,
    after: tuple[str, str] | None = None,
    most: int = 100,
    failing: bool = False,
) -> list[Row[Any]]:
    """Subscribers by owner and id; with `failing` those whose last delivery failed, or that ended."""
    query = select(table)
    if failing:
        query = query.where((table.c.attempts > 0) | (table.c.reason != "") | (table.c.state == "ended"))
    if owner is not None:
        query = query.where(table.c.owner == owner)
    if after is not None:
        query = query.where((table.c.owner > after[0]) | ((table.c.owner == after[0]) & (table.c.id > after[1])))
    return list(connection.execute(query.order_by(table.c.owner, table.c.id).limit(most)))


def sent_to(connection: Connection) -> list[Row[Any]]:
    """Subscribers that are sent to: webhooks and topics."""
    return list(connection.execute(select(table).where(table.c.kind != "pull", table.c.state == "active")))


def remove(connection: Connection, number: int) -> None:
    """Removes a subscriber with all that waits for it. Its subscriptions must have been removed."""
    # First itself: this waits for another server that delivers something at this moment, and that goes then, too.
    connection.execute(delete(table).where(table.c.number == number))
    connection.execute(delete(deliveries).where(deliveries.c.subscriber == number))
    connection.execute(delete(dead_letters).where(dead_letters.c.subscriber == number))
