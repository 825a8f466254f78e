"""SubscriptionTable: a set of subscriptions that lasts, with a version for each change.

Anyone may change a table, from any process or machine, without Spark. Each change is one new version, made whole or
not at all. Two that come at the same moment become two versions, one after the other; a change that the other made
impossible (both remove the same id) is an error and changes nothing. Every version can be read again, so a stream
that repeats a batch after a crash finds the subscriptions that it used the first time.
"""

from __future__ import annotations

import getpass
import json
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from xsift.errors import SubscriptionError, TableError, XsiftError
from xsift.matching.subscriptions import Subscriptions
from xsift.tables.conversion import convert_old_table
from xsift.tables.delta import Log
from xsift.tables.places import is_old_table, is_table, location
from xsift.tables.rows import BOOKKEEPING, OWN, Errors, Given, as_type, checked, filtered, given_rows, latest

__all__ = ["Diff", "SubscriptionTable", "Version"]

When: TypeAlias = int | datetime
"""A version, or a time: the version that was the latest then."""
Where: TypeAlias = "Mapping[str, Any] | pc.Expression"
FOLD_CHANGES = 20_000  # of ids, before they are folded into the list of ids that is kept
FEW_IDS = 16  # which are looked for one by one

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Version:
    """One change of a table: who made it, when, and how many subscriptions it added or replaced, and removed."""

    version: int
    time: datetime
    user: str | None
    added: int
    removed: int


@dataclass(frozen=True)
class Diff:
    """What is different between two versions: rows that came, rows that went (as they were), and rows that changed
    (as they are now)."""

    added: pa.Table
    removed: pa.Table
    changed: pa.Table


def _alone(method: Callable[Concatenate[SubscriptionTable, P], T]) -> Callable[Concatenate[SubscriptionTable, P], T]:
    """A method that one thread runs at a time."""

    @wraps(method)
    def locked(self: SubscriptionTable, *args: P.args, **options: P.kwargs) -> T:
        with self._lock:
            return method(self, *args, **options)

    return locked  # type: ignore[return-value]


class SubscriptionTable:
    """A table of subscriptions at a path or URL (a folder, s3://, gs://, abfss://).

    `storage_options` are those of delta-rs: credentials, endpoints; without them they come from the environment.
    `user` is who the history names, by default the user of this process. A table in the old format (Parquet
    without Delta Lake) is converted when it is opened.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        storage_options: Mapping[str, str] | None = None,
        user: str | None = None,
    ) -> None:
        self.path = location(path)
        self.storage_options = dict(storage_options or {})
        self.user = user or _this_user()
        self._lock = threading.RLock()
        if is_old_table(self.path):
            convert_old_table(self.path)
        self._log = Log(self.path, self.storage_options)
        self._ids: _Ids | None = None

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        namespaces: Mapping[str, str] | None = None,
        storage_options: Mapping[str, str] | None = None,
        user: str | None = None,
        exist_ok: bool = False,
    ) -> SubscriptionTable:
        """Makes an empty table. `namespaces` are the prefixes that all its expressions may use.

        Raises TableError if there is one; with exist_ok=True that one is opened, and gets the prefixes that it does
        not have.
        """
        place = location(path)
        if is_table(place, storage_options):
            if not exist_ok:
                raise TableError(
                    "table-exists", f"there is a table at {place} already", hint="SubscriptionTable(…) opens it"
                )
        else:
            _check_namespaces(namespaces or {})
            Log.create(place, storage_options or {}, namespaces or {})
        table = cls(place, storage_options=storage_options, user=user)
        table.add_namespaces(namespaces or {})
        return table

    def __reduce__(self) -> tuple[Any, ...]:
        return (_opened, (self.path, self.storage_options, self.user))

    def __repr__(self) -> str:
        return f"SubscriptionTable({self.path!r})"

    # What there is

    @_alone
    def version(self) -> int:
        """The latest version; 0 as long as nothing was changed. Looking takes a millisecond on a disk."""
        return self._log.look()

    @property
    def namespaces(self) -> dict[str, str]:
        """The prefixes that all expressions may use, now. Of rows that were read before it has all."""
        with self._lock:
            self._log.look()
            return self._log.namespaces

    @property
    def columns(self) -> list[str]:
        """The columns that users brought, beside id, xpath, ordered and namespaces."""
        with self._lock:
            self._log.look()
            return [name for name in self._log.schema.names if name not in (*BOOKKEEPING.names, *OWN.names)]

    @_alone
    def as_of(self, version: When | None = None, *, where: Where | None = None) -> pa.Table:
        """The subscriptions at a version or time, by default now, in the order in which they were added: id, xpath,
        ordered, namespaces, and the columns that users brought.

        `where` is a mapping from column to value ({"owner": "alice", "labels": "urgent"}: a column that holds lists
        is asked whether it has the value), or an Arrow expression.
        """
        until = self._resolved(version)
        return filtered(_public(_live(self._log.read(-1, until))), where)

    def subscriptions(
        self, version: When | None = None, *, where: Where | None = None, errors: Errors = "raise"
    ) -> Subscriptions:
        """The same as a set, which makes matchers. With errors="collect" expressions that this xsift cannot use are
        left out."""
        rows = self.as_of(version, where=where).select(OWN.names)
        made = Subscriptions(namespaces=self.namespaces)
        made.add_many(rows, errors=errors)
        return made

    @_alone
    def changes(self, after: int, until: int | None = None) -> pa.Table:
        """What changed after one version until another (by default the latest): the last change of each id, in the
        order in which these came. `_version` and `_removed` say when and what; of a removal there is the id alone."""
        latest_version = self._log.look()
        until = latest_version if until is None else until
        self._check_version(until, latest_version)
        if after < self._log.oldest:
            self._forgotten(after)
        self._check_version(after, latest_version)
        _check_order(after, until)
        rows = latest(self._log.read(after, until)) if after < until else self._log.schema.empty_table()
        return rows.drop_columns(["_position", "_time", "_user"])

    @_alone
    def diff(self, after: When, until: When | None = None) -> Diff:
        """What is different between two versions or times. A row that was changed and changed back is not."""
        before, now = self._resolved(after), self._resolved(until)
        _check_order(before, now)
        changes = latest(self._log.read(before, now))
        touched = changes["id"].combine_chunks()
        old = _live(self._log.read(-1, before))
        old = _public(old.filter(pc.is_in(old["id"], value_set=touched)))
        new = _public(changes.filter(pc.invert(changes["_removed"])))
        added = new.filter(pc.invert(pc.is_in(new["id"], value_set=old["id"].combine_chunks())))
        removed = old.filter(pc.invert(pc.is_in(old["id"], value_set=new["id"].combine_chunks())))
        both = new.filter(pc.is_in(new["id"], value_set=old["id"].combine_chunks()))
        return Diff(added, removed, both.filter(pa.array(_different(both, old))))

    @_alone
    def history(self, limit: int | None = None) -> list[Version]:
        """The changes, latest first: who, when, how many. Versions without a change (of files or prefixes) are left
        out."""
        until = self._log.look()
        columns = ["_time", "_user", "_removed"]
        rows = self._log.read(self._log.oldest, until, columns)
        rows = rows.append_column("gone", rows["_removed"].cast(pa.int64()))
        counted = rows.group_by("_version").aggregate(
            [("_time", "max"), ("_user", "max"), ("gone", "sum"), ("gone", "count")]
        )
        found = counted.sort_by([("_version", "descending")]).slice(0, limit)
        return [
            Version(row["_version"], row["_time_max"], row["_user_max"], row["gone_count"] - row["gone_sum"],
                    row["gone_sum"])
            for row in found.to_pylist()
        ]  # fmt: skip

    def _resolved(self, version: When | None) -> int:
        """A version that can be read."""
        newest = self._log.look()
        if version is None:
            return newest
        if isinstance(version, datetime):
            oldest = self._log.oldest_time
            if oldest is not None and version.astimezone(UTC) < oldest:
                self._forgotten(version)
            return self._version_at(version, newest)
        self._check_version(version, newest)
        if version < self._log.oldest:
            self._forgotten(version)
        return version

    def _version_at(self, time: datetime, newest: int) -> int:
        """The version that was the latest at a time; the oldest there is, if that was later."""
        times = self._log.read(self._log.oldest, newest, ["_time"])
        before = times.filter(pc.less_equal(times["_time"], pa.scalar(time.astimezone(UTC))))
        return max(int(pc.max(before["_version"]).as_py() or 0), self._log.oldest)

    def _check_version(self, version: int, newest: int) -> None:
        if not 0 <= version <= newest:
            raise TableError("unknown-version", f"there is no version {version}", hint=f"the latest is {newest}")

    def _forgotten(self, version: When) -> None:
        time = self._log.oldest_time
        since = f", of {time.astimezone().isoformat(' ', 'seconds')}" if time else ""
        raise TableError(
            "version-forgotten",
            f"version {version} was forgotten when the table was compacted"
            if isinstance(version, int)
            else f"what the table was at {version} was forgotten when it was compacted",
            hint=f"the oldest that can be read is {self._log.oldest}{since}",
        )

    # Changes

    @_alone
    def add(
        self, rows: Given, *, errors: Errors = "raise", if_version: int | None = None
    ) -> list[tuple[str, XsiftError]]:
        """Adds subscriptions, as one new version. One whose id is there already replaces it.

        Rows are (id, xpath), (id, xpath, ordered), mappings, an Arrow table, a set, or a Spark DataFrame. Columns
        beside id, xpath, ordered and namespaces are kept: owner, labels, whatever you bring. Expressions are checked
        first. Returns (id, error) of rows that cannot be used, with errors="collect"; else the first error is raised
        and nothing changes. An id that comes twice counts once, the later rows are errors. With `if_version` the
        change is only made on that version; else TableError "version-conflict".
        """
        good, failed = checked(given_rows(rows), self.namespaces, errors)
        if good.num_rows or if_version is not None:
            added = good.append_column("_removed", pa.repeat(pa.scalar(False), good.num_rows))
            self._changed(lambda _: added, if_version)
        return failed

    @_alone
    def remove(self, ids: Iterable[str], *, missing_ok: bool = False, if_version: int | None = None) -> None:
        """Removes subscriptions, as one new version. Raises SubscriptionError if one of them is not there, and
        nothing changes; with missing_ok=True those that are there go."""
        gone = pc.unique(pa.array([ids] if isinstance(ids, str) else list(ids), pa.string()))

        def make(version: int) -> pa.Table:
            there = self._known_ids(version).contain(gone)
            if not there.all() and not missing_ok:
                id = gone[int(np.argmin(there))].as_py()
                raise SubscriptionError("unknown-id", f"there is no subscription {id!r}", id=id)
            return _removals(gone.filter(pa.array(there)))

        self._changed(make, if_version)

    @_alone
    def replace(
        self, rows: Given, *, errors: Errors = "raise", if_version: int | None = None
    ) -> list[tuple[str, XsiftError]]:
        """Makes these rows the whole set, as one new version that has only what is different: rows that are new or
        changed are added, those that are not among them removed. Errors are as with `add`."""
        good, failed = checked(given_rows(rows), self.namespaces, errors)

        def make(version: int) -> pa.Table:
            old = _public(_live(self._log.read(-1, version)))
            new = _with_columns(good, old.schema)
            came = pc.invert(pc.is_in(new["id"], value_set=old["id"].combine_chunks())).to_numpy()
            went = old["id"].filter(pc.invert(pc.is_in(old["id"], value_set=new["id"].combine_chunks())))
            came[~came] = _different(new.filter(pa.array(~came)), old)
            added = new.filter(pa.array(came))
            added = added.append_column("_removed", pa.repeat(pa.scalar(False), added.num_rows))
            return pa.concat_tables([_removals(went.combine_chunks()), added], promote_options="default")

        self._changed(make, if_version)
        return failed

    @_alone
    def add_namespaces(self, namespaces: Mapping[str, str]) -> None:
        """Gives the table more prefixes. One that it has cannot be changed: that would change what expressions
        mean."""
        _check_namespaces(namespaces)

        def make() -> str:
            known = self._log.namespaces
            for prefix, uri in namespaces.items():
                if known.get(prefix, uri) != uri:
                    raise TableError(
                        "other-namespace",
                        f"the prefix {prefix!r} stands for {known[prefix]!r} in this table, not for {uri!r}",
                        hint="choose another prefix, or give the row namespaces of its own",
                    )
            return json.dumps({**known, **namespaces}, sort_keys=True)

        if namespaces:
            self._log.set_property("xsift.namespaces", make)

    def _changed(self, make: Callable[[int], pa.Table], if_version: int | None) -> None:
        self._log.commit(make, self.user, if_version)
        self._log.tidy()

    def _known_ids(self, version: int) -> _Ids:
        """The ids at a version. Those of the last time are kept, and only what changed since is read."""
        if self._ids is None or self._ids.version > version or self._ids.version < self._log.oldest:
            self._ids = _Ids(version, _live(self._log.read(-1, version, ["id", "_removed"]))["id"].combine_chunks())
        elif self._ids.version < version:
            self._ids.follow(version, self._log.read(self._ids.version, version, ["id", "_removed"]))
        return self._ids

    # Upkeep

    @_alone
    def compact(self, *, forget_before: When | None = None) -> None:
        """Merges files and deletes dead ones. Writers do this as they go; a call does all of it now.

        `forget_before` also drops what is only needed for versions before that one or that time, which then cannot
        be read any more. Without it every version stays.
        """
        if forget_before is not None:
            if isinstance(forget_before, datetime):
                horizon = self._version_at(forget_before, self._log.look())
            else:
                horizon = self._resolved(forget_before)
            times = self._log.read(-1, horizon, ["_time"])["_time"]
            since = pc.max(times).as_py() if horizon > self._log.oldest else None
            if since is not None:  # first, for without it a time before the oldest version would mean that one
                self._log.set_property("xsift.oldest-time", lambda: _later(since, self._log.oldest_time))
            self._log.set_property("xsift.oldest", lambda: str(max(horizon, self._log.oldest)))
            self._log.rewrite(lambda version: _without_superseded(self._log.read(-1, version), horizon))
        self._log.merge()
        self._log.clean()


class _Ids:
    """The ids of a table at one version after the other: a list, and what changed since it was made."""

    def __init__(self, version: int, ids: pa.Array) -> None:
        self.version = version
        self._base = ids
        self._since: dict[str, bool] = {}

    def follow(self, version: int, changes: pa.Table) -> None:
        self.version = version
        self._since.update(zip(changes["id"].to_pylist(), pc.invert(changes["_removed"]).to_pylist(), strict=True))
        if len(self._since) > FOLD_CHANGES:
            touched = pa.array(self._since, pa.string())
            kept = self._base.filter(pc.invert(pc.is_in(self._base, value_set=touched)))
            came = pa.array([id for id, there in self._since.items() if there], pa.string())
            self._base, self._since = pa.concat_arrays([kept, came]), {}

    def contain(self, ids: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which of these ids are there."""
        if len(ids) <= FEW_IDS:
            base = [bool(pc.any(pc.equal(self._base, id)).as_py()) for id in ids]
        else:
            base = pc.is_in(ids, value_set=self._base).to_pylist()
        there = [self._since.get(id, before) for id, before in zip(ids.to_pylist(), base, strict=True)]
        return np.array(there, dtype=bool)


def _live(changes: pa.Table) -> pa.Table:
    """The rows that are in the set after these changes."""
    last = latest(changes)
    return last.filter(pc.invert(last["_removed"])) if pc.any(last["_removed"]).as_py() else last


def _public(rows: pa.Table) -> pa.Table:
    return rows.drop_columns([name for name in BOOKKEEPING.names if name in rows.column_names])


def _removals(ids: pa.Array) -> pa.Table:
    return pa.table({"id": ids, "_removed": pa.repeat(pa.scalar(True), len(ids))})


def _without_superseded(changes: pa.Table, horizon: int) -> pa.Table:
    """The changes less those up to a version that only versions before it need."""
    versions = changes["_version"].to_numpy()
    end = int(np.searchsorted(versions, horizon, side="right"))
    return pa.concat_tables([_live(changes.slice(0, end)), changes.slice(end)])


def _with_columns(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with all columns of a schema first, in their types."""
    known = {field.name: as_type(rows, field) for field in schema}
    more = {name: rows[name] for name in rows.column_names if name not in known}
    return pa.table({**known, **more})


def _different(new: pa.Table, old: pa.Table) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which of the new rows, whose ids are all among the old, differ from the old row of that id."""
    before = old.take(pc.index_in(new["id"], value_set=old["id"].combine_chunks()))
    different = np.zeros(new.num_rows, dtype=bool)
    for name in new.column_names:
        if name not in before.column_names:
            different |= new[name].is_valid().to_numpy()
        elif pa.types.is_nested(new[name].type):
            pairs = zip(new[name].to_pylist(), before[name].to_pylist(), strict=True)
            different |= np.fromiter((one != other for one, other in pairs), dtype=bool, count=new.num_rows)
        else:
            equal = pc.fill_null(pc.equal(new[name], before[name]), False)
            nulls = pc.and_(new[name].is_null(), before[name].is_null())
            different |= pc.invert(pc.or_(equal, nulls)).to_numpy()
    return different


def _check_order(before: int, now: int) -> None:
    if before > now:
        raise TableError("bad-version", f"version {before} is after version {now}", hint="the older one first")


def _later(time: datetime, known: datetime | None) -> str:
    return max(time, known or time).astimezone(UTC).isoformat()


def _check_namespaces(namespaces: Mapping[str, str]) -> None:
    Subscriptions(namespaces=namespaces)  # raises if a prefix cannot be one


def _opened(path: str, storage_options: dict[str, str], user: str) -> SubscriptionTable:
    return SubscriptionTable(path, storage_options=storage_options, user=user)


def _this_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without names for its users
        return str(os.getuid())
