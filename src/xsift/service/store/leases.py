"""Leases: what only one of several servers does at a time. A server that dies loses its leases after some seconds."""

from __future__ import annotations

import time

from sqlalchemy import Connection, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from xsift.service.store.schema import leases as table

__all__ = ["LEASE_SECONDS", "release_all", "take"]

LEASE_SECONDS = 10.0
FAR = 10 * LEASE_SECONDS  # so late no lease ends: a clock was wrong when it was taken, and its holder may be dead


def take(connection: Connection, name: str, holder: str) -> bool:
    """Takes or renews a lease; whether it is ours now."""
    now = time.time()
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    new = insert(table).values(name=name, holder=holder, until=now + LEASE_SECONDS)
    connection.execute(new.on_conflict_do_nothing())
    connection.execute(
        update(table)
        .where(table.c.name == name, or_(table.c.holder == holder, table.c.until < now, table.c.until > now + FAR))
        .values(holder=holder, until=now + LEASE_SECONDS)
    )
    return bool(connection.scalar(select(table.c.holder).where(table.c.name == name)) == holder)


def take_number(connection: Connection, holder: str, most: int) -> int:
    """A number below `most` that no other server has."""
    now = time.time()
    taken = set(
        connection.scalars(select(table.c.name).where(table.c.name.startswith("server-"), table.c.until >= now))
    )
    for number in range(most):
        if f"server-{number}" not in taken and take(connection, f"server-{number}", holder):
            return number
    raise RuntimeError("there are more servers than numbers for them")


def keep_number(connection: Connection, holder: str, number: int, most: int) -> int:
    """Renews the lease of a number. If another server took it, because this one did not renew it in time, then a
    number that is free."""
    return number if take(connection, f"server-{number}", holder) else take_number(connection, holder, most)


def release_all(connection: Connection, holder: str) -> None:
    """Gives back what a server holds."""
    connection.execute(update(table).where(table.c.holder == holder).values(until=0.0))
