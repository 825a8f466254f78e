"""What people give, as the rows of a table: ids, expressions and columns of their own. They are checked before
anything is written.

A row can be wrong in itself (its expression, its id), or because its id was in a row before it. Each such row is one
error; with errors="collect" the others go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from xsift.errors import SubscriptionError, TableError, XsiftError
from xsift.matching.subscriptions import Subscriptions

__all__ = [
    "BOOKKEEPING",
    "MOST_ID_BYTES",
    "OWN",
    "Errors",
    "Given",
    "as_type",
    "check_name",
    "checked",
    "filtered",
    "given_rows",
    "latest",
]

Errors = Literal["raise", "collect"]
Given: TypeAlias = "pa.Table | Subscriptions | Iterable[Sequence[Any] | Mapping[str, Any]]"
"""An Arrow table, a set, or rows: (id, xpath), (id, xpath, ordered), or mappings from column to value."""

MOST_ID_BYTES = 4096  # as in a set (matching/rows.pxd)
Places = npt.NDArray[np.int64]

SIGNED = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.int64()}
UNUSUAL = (pa.types.is_list_view, pa.types.is_large_list_view, pa.types.is_run_end_encoded)
NAMESPACES = pa.map_(pa.string(), pa.string())
BOOKKEEPING = pa.schema(
    [
        pa.field("_version", pa.int64(), nullable=False),
        pa.field("_position", pa.int64(), nullable=False),
        pa.field("_time", pa.timestamp("us", "UTC"), nullable=False),
        pa.field("_user", pa.string()),
        pa.field("_removed", pa.bool_(), nullable=False),
    ]
)
"""The columns that say which change a row is: its version, its place therein, when and by whom, and whether it takes
the id out of the set."""
OWN = pa.schema([("id", pa.string()), ("xpath", pa.string()), ("ordered", pa.bool_()), ("namespaces", NAMESPACES)])
"""The columns that every table has. The others are those that users brought."""


def given_rows(rows: Any) -> pa.Table:
    """Rows in any form that people have them in, as an Arrow table whose own columns have their types."""
    if isinstance(rows, Subscriptions):
        table = rows.table()
    elif isinstance(rows, pa.Table):
        table = rows
    elif hasattr(rows, "toArrow"):  # a Spark DataFrame
        table = rows.toArrow()
    else:
        table = _of_rows(rows)
    for column in ("id", "xpath"):
        if column not in table.column_names:
            there = ", ".join(map(repr, table.column_names)) or "none"
            raise SubscriptionError(
                "missing-column", f"the rows have no column {column!r}", hint=f"they have {there}"
            )
    reserved = [name for name in table.column_names if name.startswith("_")]
    if reserved:
        raise TableError("bad-column", f"the column {reserved[0]!r} begins with _", hint="such names are the table's")
    return _typed(table)


def _of_rows(rows: Iterable[Any]) -> pa.Table:
    listed: list[dict[str, Any]] = []
    for number, row in enumerate(rows, 1):
        if isinstance(row, Mapping):
            listed.append(dict(row))
        elif not isinstance(row, str | bytes) and isinstance(row, Sequence) and 2 <= len(row) <= 3:
            listed.append(dict(zip(("id", "xpath", "ordered"), row, strict=False)))
        else:
            raise SubscriptionError(
                "bad-row",
                f"row {number} is {row!r}",
                hint="a row is (id, xpath), (id, xpath, ordered), or a mapping from column to value",
            )
    names = {name: None for row in listed for name in row} or {"id": None, "xpath": None}
    columns = {name: _column(name, [row.get(name) for row in listed]) for name in names}
    return pa.table(columns)


def _column(name: str, values: list[Any]) -> pa.Array:
    kind = OWN.field(name).type if name in OWN.names else None
    try:
        if name == "namespaces":
            values = [None if value is None else list(dict(value).items()) for value in values]
        return pa.array(values, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise TableError("bad-column", f"the column {name!r} cannot be stored: {error}") from error


def _typed(table: pa.Table) -> pa.Table:
    """The table with all own columns first, in their types, and then the others."""
    columns: dict[str, Any] = {}
    for field in OWN:
        if field.name not in table.column_names:
            columns[field.name] = pa.nulls(table.num_rows, field.type)
            continue
        column = table[field.name]
        if field.name == "namespaces" and pa.types.is_struct(column.type):  # as JSON Lines are read
            column = _maps(column)
        try:
            columns[field.name] = column.cast(field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise TableError("bad-column", f"the column {field.name!r} cannot be {field.type}: {error}") from error
    columns["ordered"] = pc.fill_null(columns["ordered"], False)
    for name in table.column_names:
        if name not in OWN.names:
            try:
                columns[name] = _plain(table[name])
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise TableError("bad-column", f"the column {name!r} cannot be stored: {error}") from error
    return pa.table(columns)


def _maps(column: pa.ChunkedArray) -> pa.Array:
    values = [
        None if value is None else [(prefix, uri) for prefix, uri in value.items() if uri is not None]
        for value in column.to_pylist()
    ]
    return pa.array(values, NAMESPACES)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of a type that Delta Lake has: no dictionaries, no large types, no sizes without a sign, times in
    microseconds."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType) or any(test(kind) for test in UNUSUAL):
        raise pa.ArrowInvalid(f"it is {kind}; as text it can be")
    if pa.types.is_unsigned_integer(kind):
        return column.cast(SIGNED[kind])
    if pa.types.is_dictionary(kind):
        return _plain(column.cast(kind.value_type))
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return column.cast(pa.string())
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return column.cast(pa.binary())
    if pa.types.is_timestamp(kind) and (kind.unit, kind.tz) not in (("us", None), ("us", "UTC")):
        return column.cast(pa.timestamp("us", kind.tz and "UTC"), safe=False)
    if pa.types.is_large_list(kind):
        return column.cast(pa.list_(kind.value_type))
    return column


def as_type(rows: pa.Table, field: pa.Field) -> pa.ChunkedArray | pa.Array:
    """A column in the type that the table has for it."""
    if field.name not in rows.column_names:
        return pa.nulls(rows.num_rows, field.type)
    column = rows[field.name]
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise TableError(
            "bad-column",
            f"the column {field.name!r} is {field.type} in the table; {column.type} does not fit: {error}",
        ) from error


def check_name(name: str, known: Iterable[str]) -> None:
    """Raises an error if a table with these columns cannot get one more of a name."""
    for other in known:
        if other.lower() == name.lower():
            raise TableError(
                "bad-column",
                f"the column {name!r} is called {other!r} in the table",
                hint="names cannot differ in the case of their letters alone",
            )


# Checks


def checked(
    rows: pa.Table, namespaces: Mapping[str, str], errors: Errors
) -> tuple[pa.Table, list[tuple[str, XsiftError]]]:
    """The rows that can be used, and (id, error) of the others, in their order. With errors="raise" the first of
    these is raised."""
    if errors not in ("raise", "collect"):
        raise ValueError(f"errors is {errors!r}; it can be 'raise' or 'collect'")
    rows = _own_namespaces(rows, namespaces)
    failed = _missing(rows) | _long_ids(rows)
    good = np.ones(rows.num_rows, dtype=bool)
    good[list(failed)] = False
    failed |= _unusable(rows, np.flatnonzero(good), namespaces)
    good[list(failed)] = False
    places = np.flatnonzero(good)
    for place in _repeated(rows["id"].take(pa.array(places))).tolist():
        number = int(places[place])
        id = rows["id"][number].as_py()
        failed[number] = SubscriptionError(
            "duplicate-id", f"the id {id!r} is in a row before", id=id, hint="each id can be added once at a time"
        )
        good[number] = False
    for number, error in failed.items():
        error.row = number
    listed = [(str(rows["id"][number].as_py()), failed[number]) for number in sorted(failed)]
    if listed and errors == "raise":
        raise listed[0][1]
    return (rows.filter(pa.array(good)) if failed else rows), listed


def _missing(rows: pa.Table) -> dict[int, XsiftError]:
    """Rows without an id or an expression, by number."""
    failed: dict[int, XsiftError] = {}
    for column in ("id", "xpath"):
        if rows[column].null_count:
            for number in np.flatnonzero(rows[column].is_null().to_numpy()).tolist():
                failed[number] = SubscriptionError(
                    "missing-value", f"row {number + 1} has no {column}", id=rows["id"][number].as_py()
                )
    return failed


def _long_ids(rows: pa.Table) -> dict[int, XsiftError]:
    """Rows whose id no set would take, by number."""
    failed: dict[int, XsiftError] = {}
    sizes = pc.fill_null(pc.binary_length(rows["id"]), 0).to_numpy()
    for number in np.flatnonzero(sizes > MOST_ID_BYTES).tolist():
        id = rows["id"][number].as_py()
        failed[number] = SubscriptionError(
            "id-too-long",
            f"the id that begins with {id[:40]!r} has {sizes[number]:,} bytes",
            id=id,
            hint=f"an id has at most {MOST_ID_BYTES:,}",
        )
    return failed


def _unusable(rows: pa.Table, tried: Places, namespaces: Mapping[str, str]) -> dict[int, XsiftError]:
    """Rows whose expression cannot be used, by number. They are tried under their numbers, so that an id which comes
    twice does not hide which of its rows is wrong."""
    part = rows.select(OWN.names).take(pa.array(tried))
    labelled = part.set_column(0, "id", pa.array(tried).cast(pa.string()))
    failed: dict[int, XsiftError] = {}
    for label, error in Subscriptions(namespaces=namespaces).add_many(labelled, errors="collect"):
        error.id = rows["id"][int(label)].as_py()  # type: ignore[attr-defined]
        failed[int(label)] = error
    return failed


def _own_namespaces(rows: pa.Table, namespaces: Mapping[str, str]) -> pa.Table:
    """The rows with the prefixes that the set does not give them anyway."""
    column = rows["namespaces"]
    if column.null_count == rows.num_rows:
        return rows
    values = [
        [(prefix, uri) for prefix, uri in value or () if namespaces.get(prefix) != uri] or None
        for value in column.to_pylist()
    ]
    return rows.set_column(rows.column_names.index("namespaces"), "namespaces", pa.array(values, NAMESPACES))


def _repeated(ids: pa.ChunkedArray) -> Places:
    """The places of ids that were there before."""
    numbered = pa.table({"id": ids, "row": np.arange(len(ids))})
    first = numbered.group_by("id").aggregate([("row", "min")])["row_min"].to_numpy()
    if len(first) == len(ids):
        return np.array([], dtype=np.int64)
    again = np.ones(len(ids), dtype=bool)
    again[first] = False
    return np.flatnonzero(again)


# Changes to sets


def latest(changes: pa.Table) -> pa.Table:
    """The last change of each id, in the order in which these came. The changes must be in their order."""
    numbered = pa.table({"id": changes["id"], "row": np.arange(changes.num_rows)})
    last = numbered.group_by("id").aggregate([("row", "max")])["row_max"].to_numpy()
    return changes if len(last) == changes.num_rows else changes.take(pa.array(np.sort(last)))


def filtered(rows: pa.Table, where: Mapping[str, Any] | pc.Expression | None) -> pa.Table:
    """The rows for which a condition holds: an Arrow expression, or a mapping from column to value, where a list
    column holds the value among others."""
    if where is None:
        return rows
    try:
        if isinstance(where, pc.Expression):
            return rows.filter(where)
        for name, value in where.items():
            rows = rows.filter(_holds(rows, name, value))
    except (pa.ArrowException, KeyError) as error:
        there = ", ".join(map(repr, rows.column_names))
        raise TableError(
            "bad-condition", f"the condition cannot be used: {error}", hint=f"columns: {there}"
        ) from error
    return rows


def _holds(rows: pa.Table, name: str, value: Any) -> pa.Array:
    if name not in rows.column_names:
        raise KeyError(f"there is no column {name!r}")
    column = rows[name]
    if value is None:
        return column.is_null()
    if pa.types.is_list(column.type):
        return pa.array([value in (items or ()) for items in column.to_pylist()], pa.bool_())
    wanted = pa.scalar(value).cast(column.type) if isinstance(value, str) else pa.scalar(value, column.type)
    return pc.fill_null(pc.equal(column, wanted), False)
