"""Migrations: the steps from an empty database to the schema of this version, each applied once, in order.

A step never changes after a release. The first one makes the tables as `schema.py` has them; a later one changes
tables that are there, and `schema.py` is changed along with it, so a new database does not need it.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, Engine, inspect, select

from xsift.errors import StorageError
from xsift.service.store import schema

__all__ = ["SCHEMA_VERSION", "migrate"]


STEPS: dict[int, Callable[[Connection], None]] = {}
"""From version n - 1 to version n. Version 1 is what `schema.py` makes."""

SCHEMA_VERSION = 1
LOCK = 0x78736966  # "xsif": two servers that start at once on one PostgreSQL migrate one after the other


def migrate(engine: Engine) -> None:
    """Brings a database to the schema of this version. Raises StorageError if it is of a later one."""
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")
        found = _version(connection)
        if found > SCHEMA_VERSION:
            raise StorageError(
                "newer-database",
                f"the database has schema {found}; this version of xsift knows schemas up to {SCHEMA_VERSION}",
                hint="use the version of xsift that wrote it, or a later one",
            )
        if found == 0:
            schema.metadata.create_all(connection)
            connection.execute(schema.facts.insert(), {"name": "schema", "value": str(SCHEMA_VERSION)})
            connection.execute(schema.facts.insert(), {"name": "set-version", "value": "0"})
            return
        for step in range(found + 1, SCHEMA_VERSION + 1):
            STEPS[step](connection)
        if found < SCHEMA_VERSION:
            changed = schema.facts.update().where(schema.facts.c.name == "schema").values(value=str(SCHEMA_VERSION))
            connection.execute(changed)


def _version(connection: Connection) -> int:
    if not inspect(connection).has_table("facts"):
        return 0
    value = connection.scalar(select(schema.facts.c.value).where(schema.facts.c.name == "schema"))
    return int(value or 0)
