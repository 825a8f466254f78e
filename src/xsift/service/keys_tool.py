"""Keys from the command line. It works beside a server that runs: both may write to SQLite, one after the other."""

from __future__ import annotations

import time
from pathlib import Path

from sqlalchemy import Connection

from xsift.errors import XsiftError
from xsift.service.settings import Settings
from xsift.service.store import keys
from xsift.service.store.database import Database
from xsift.service.store.keys import Caller

__all__ = ["add_key", "list_keys", "revoke_key"]

CALLER = Caller("", frozenset({"admin"}), "command line")


def _database(settings: Settings) -> Database:
    if not settings.database:
        Path(settings.data).mkdir(parents=True, exist_ok=True)
    return Database(settings.database_url, readers=1, exclusive=False)


def add_key(settings: Settings, owner: str, roles: list[str], name: str) -> tuple[str, str]:
    """Makes a key; returns its id and the key."""
    if not owner or len(owner) > 200 or "/" in owner or not owner.isprintable():
        raise XsiftError(
            "bad-owner", f"{owner!r} cannot be an owner", hint="1 to 200 printable characters, without /"
        )

    def work(connection: Connection) -> tuple[str, str]:
        if "admin" not in roles and not keys.any_keys(connection):
            raise XsiftError(
                "no-admin", "the first key must be an admin's", hint="from then on nobody gets in without a key"
            )
        id, key = keys.create(connection, owner, roles, name)
        keys.note(connection, CALLER, "create-key", owner, id, roles=roles)
        return id, key

    database = _database(settings)
    try:
        with database.engine.begin() as connection:
            return work(connection)
    finally:
        database.close()


def list_keys(settings: Settings) -> list[str]:
    """A line for each key."""
    database = _database(settings)
    try:
        with database.connect() as connection:
            rows = keys.list_keys(connection)
    finally:
        database.close()
    lines = []
    for row in rows:
        created = time.strftime("%Y-%m-%d", time.localtime(row.created))
        revoked = "  revoked" if row.revoked else ""
        lines.append(f"{row.id}  {row.owner}  {row.roles}  {created}  {row.name}{revoked}".rstrip())
    return lines


def revoke_key(settings: Settings, id: str) -> None:
    """Takes a key back; a server that runs notices within seconds."""
    database = _database(settings)
    try:
        with database.engine.begin() as connection:
            keys.revoke(connection, id)
            keys.note(connection, CALLER, "revoke-key", "", id)
    finally:
        database.close()
