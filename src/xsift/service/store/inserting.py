"""Many rows at once, as tuples. SQLAlchemy looks at every value of every row that it inserts, which costs more than
the insertion; here it writes the statement, once a database, and the driver gets the rows as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Dialect, Table

__all__ = ["insert_rows"]


def insert_rows(
    connection: Connection, table: Table, names: tuple[str, ...], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Inserts rows, each the values of the named columns in the order of the table. JSON is given as text."""
    if rows:
        connection.exec_driver_sql(_statement(type(connection.dialect), table, names), rows)  # type: ignore[arg-type]


@cache
def _statement(kind: type[Dialect], table: Table, names: tuple[str, ...]) -> str:
    dialect = kind(paramstyle="qmark" if kind.name == "sqlite" else "format")  # type: ignore[call-arg]
    compiled = table.insert().inline().compile(dialect=dialect, column_keys=list(names))
    expected = tuple(compiled.positiontup or ())
    if expected != names:
        raise ValueError(f"the columns of {table.name} are {', '.join(expected)}")
    return str(compiled)
