"""API keys: shown once, stored as a hash, with an owner and roles. And the audit log of who changed what.

A key is `xs_ID_SECRET`. The secret has 256 random bits, so one round of SHA-256 is enough to store it by.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, func, select, update

from xsift.errors import XsiftError
from xsift.service.store.schema import audit
from xsift.service.store.schema import keys as table

__all__ = ["ROLES", "Caller", "any_keys", "check", "create", "list_keys", "note", "page_of_audit", "parse", "revoke"]

ROLES = ("publish", "subscribe", "admin")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: an owner, with roles. `actor` is what the audit log calls it."""

    owner: str
    roles: frozenset[str]
    actor: str

    @property
    def is_admin(self) -> bool:
        return "admin" in self.roles


def create(connection: Connection, owner: str, roles: list[str], name: str = "") -> tuple[str, str]:
    """Makes a key. Returns its id, and the key itself, which is not stored."""
    unknown = sorted(set(roles) - set(ROLES))
    if unknown or not roles:
        raise XsiftError(
            "bad-role", f"there is no role {', '.join(unknown) or '(none)'}", hint=f"one of {', '.join(ROLES)}"
        )
    id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    row = {
        "id": id,
        "owner": owner,
        "roles": ",".join(role for role in ROLES if role in roles),
        "name": name,
        "digest": _digest(secret),
        "created": time.time(),
    }
    connection.execute(table.insert().values(**row))
    return id, f"xs_{id}_{secret}"


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


def parse(key: str) -> tuple[str, str]:
    """The id and the secret of a key; both empty if it cannot be one."""
    start, _, rest = key.strip().partition("_")
    id, _, secret = rest.partition("_")
    return (id, secret) if start == "xs" and id and secret else ("", "")


def check(connection: Connection, key: str) -> Caller | None:
    """Who has this key; None if nobody does."""
    id, secret = parse(key)
    row = connection.execute(select(table).where(table.c.id == id)).first() if id else None
    if row is None or row.revoked is not None or not hmac.compare_digest(bytes(row.digest), _digest(secret)):
        return None
    return Caller(row.owner, frozenset(row.roles.split(",")), f"key:{row.id}")


def any_keys(connection: Connection) -> bool:
    """Whether a key was ever made: from then on nobody gets in without one, also when all are revoked."""
    return bool(connection.scalar(select(func.count()).select_from(table)))


def list_keys(connection: Connection, owner: str | None = None) -> list[Row[Any]]:
    """All keys, without what they are."""
    query = select(table.c.id, table.c.owner, table.c.roles, table.c.name, table.c.created, table.c.revoked)
    return list(connection.execute(query if owner is None else query.where(table.c.owner == owner)))


def revoke(connection: Connection, id: str) -> None:
    """Takes a key back. Raises XsiftError if there is none."""
    changed = connection.execute(
        update(table).where(table.c.id == id, table.c.revoked.is_(None)).values(revoked=time.time())
    )
    if not changed.rowcount:
        raise XsiftError("unknown-key", f"there is no key {id!r}")


def note(connection: Connection, caller: Caller, action: str, owner: str, target: str, **detail: Any) -> None:
    """A line in the audit log, in the transaction of the change that it tells of."""
    row = {
        "at": time.time(),
        "actor": caller.actor,
        "owner": owner,
        "action": action,
        "target": target,
        "detail": detail,
    }
    connection.execute(audit.insert().values(**row))


def page_of_audit(
    connection: Connection, *, owner: str | None = None, before: int | None = None, most: int = 100
) -> list[Row[Any]]:
    """The audit log, the latest first."""
    query = select(audit).order_by(audit.c.number.desc()).limit(most)
    if owner is not None:
        query = query.where(audit.c.owner == owner)
    if before is not None:
        query = query.where(audit.c.number < before)
    return list(connection.execute(query))
