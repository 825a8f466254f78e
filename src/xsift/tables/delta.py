"""The rows of a table as a Delta Lake table: changes appended one after the other, each with its version.

The naive way is one row per subscription, changed in place: then one change rewrites the file it is in, and what was
before is gone when Delta Lake cleans up. Here a table is the list of its changes. A commit appends one small file
whose rows carry the version of that commit, and every version of the set can be computed from the rows alone. What
the Delta log is for is the commit itself: of two writers that try the same version exactly one succeeds (by a link on
a local disk, by a conditional put on an object store), and the other looks again.

Small files are merged as they add up, and deleted an hour later; the log is cut at its
checkpoints, so that a table that is changed every second for years stays as quick to open and to look at.
"""

from __future__ import annotations

import json
import random
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.fs
from deltalake import CommitProperties, DeltaTable, Schema, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, SchemaMismatchError, TableNotFoundError

from xsift.errors import TableError
from xsift.tables.folders import arrow_filesystem
from xsift.tables.places import check_place, is_local
from xsift.tables.rows import BOOKKEEPING, OWN, as_type, check_name

__all__ = ["Log", "not_storable"]

FORMAT = "1"
PROPERTIES = {
    "delta.checkpointInterval": "100",
    "delta.logRetentionDuration": "interval 1 hours",
    "delta.deletedFileRetentionDuration": "interval 1 hours",
    "delta.dataSkippingStatsColumns": "_version,_time",
}
ATTEMPTS = 60  # attempts to commit, while others commit; each that fails means that another writer succeeded
PAUSE_SECONDS = (0.002, 0.25)  # between attempts, at first and at most
MERGE_FILES = 64  # small files that are merged into one
MERGE_BYTES = 4 * 2**20  # what a small file is
CLEAN_VERSIONS = 1024  # dead files are deleted about once in this many versions
FETCHES = 8  # files of an object store that are fetched at the same time
DEAD_HOURS = 1  # how long a file stays that is no longer part of the table: a reader may be at it

COMMIT_ID, TABLE_ID = "xsift.commit", "xsift.table"
TOLD_CHANGES = 16  # whose table is looked at


class Log:
    """The list of changes at a location. One object is for one thread at a time."""

    def __init__(self, place: str, storage_options: Mapping[str, str]) -> None:
        self.place = place
        self._storage = dict(storage_options)
        self._is_another = False
        try:
            self._delta = DeltaTable(place, storage_options=self._storage or None)
        except TableNotFoundError:
            raise TableError(
                "no-table",
                f"there is no subscription table at {place}",
                hint="SubscriptionTable.create makes one, and so does `xsift subscriptions add`",
            ) from None
        except (DeltaError, OSError) as error:
            raise TableError("unreadable-table", f"{place} cannot be read: {_first_line(error)}") from error
        settings = self._delta.metadata().configuration
        if settings.get("xsift.format") != FORMAT:
            found = settings.get("xsift.format")
            what = f"of format {found}, which this xsift does not know" if found else "a Delta table of another kind"
            raise TableError("not-a-table", f"{place} is {what}", hint="SubscriptionTable.create(…) makes a table")

    @staticmethod
    def create(
        place: str, storage_options: Mapping[str, str], namespaces: Mapping[str, str], offset: int = 0
    ) -> None:
        """Makes an empty table, if there is none; what another made in the meantime stays as it is. Its versions
        begin with `offset`."""
        check_place(place)
        settings = {
            **PROPERTIES,
            "xsift.format": FORMAT,
            "xsift.namespaces": json.dumps(dict(namespaces), sort_keys=True),
            "xsift.offset": str(offset),
        }
        try:
            DeltaTable.create(
                place,
                pa.schema([*BOOKKEEPING, *OWN]),
                mode="ignore",
                configuration=settings,
                storage_options=dict(storage_options) or None,
                raise_if_key_not_exists=False,
            )
        except CommitFailedError:  # another one made it at the same moment
            pass
        except (DeltaError, OSError) as error:
            raise TableError("unwritable-table", f"{place} cannot be written: {_first_line(error)}") from error

    # What there is

    def _setting(self, name: str) -> str | None:
        value = self._delta.metadata().configuration.get(name)
        return None if value is None else str(value)

    @property
    def namespaces(self) -> dict[str, str]:
        """The prefixes that all expressions may use."""
        return dict(json.loads(self._setting("xsift.namespaces") or "{}"))

    @property
    def oldest(self) -> int:
        """The oldest version that can still be read."""
        return int(self._setting("xsift.oldest") or 0)

    @property
    def oldest_time(self) -> datetime | None:
        """When the oldest version was made, if versions before it were forgotten."""
        time = self._setting("xsift.oldest-time")
        return datetime.fromisoformat(time) if time else None

    @property
    def version(self) -> int:
        """The version as of the last look."""
        return int(self._delta.version()) + int(self._setting("xsift.offset") or 0)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows."""
        return pa.schema(self._delta.schema().to_arrow())

    def look(self) -> int:
        """Looks for new versions, which is cheap; returns the latest."""
        before = int(self._delta.version())
        with self._readable():
            self._delta.update_incremental()
            self._check_same(int(self._delta.version()) - before)
        return self.version

    def _check_same(self, changes: int) -> None:
        """Raises an error if the latest changes are those of another table, which was made where this one was."""
        mine = str(self._delta.metadata().id)
        entries = self._delta.history(min(changes, TOLD_CHANGES)) if changes else []
        self._is_another = self._is_another or any(entry.get(TABLE_ID, mine) != mine for entry in entries)
        if self._is_another:
            raise TableError(
                "other-table", f"the table at {self.place} was deleted, and made anew", hint="open it again"
            )

    def _properties(self, **more: str) -> CommitProperties:
        """Of a commit that is tried once."""
        metadata = {TABLE_ID: str(self._delta.metadata().id), **more}
        return CommitProperties(max_commit_retries=0, custom_metadata=metadata)

    def read(self, after: int, until: int, columns: list[str] | None = None) -> pa.Table:
        """The changes after one version until another, in their order. Only files that can have some are read."""
        version = pyarrow.dataset.field("_version")
        wanted = (version > after) & (version <= until)
        named = None if columns is None else [*dict.fromkeys(["_version", "_position", *columns])]
        with self._readable():
            try:
                rows = self._dataset(wanted).to_table(columns=named, filter=wanted)
            except FileNotFoundError:  # merged and cleaned up by another since the last look
                self._delta.update_incremental()
                rows = self._dataset(wanted).to_table(columns=named, filter=wanted)
        return _in_order(rows)

    def _dataset(self, wanted: pyarrow.dataset.Expression) -> pyarrow.dataset.Dataset:
        """The files that can have rows that are wanted, for Arrow to read.

        Arrow reads on threads of its own. One that lets go of a Python object while the interpreter ends takes the
        process down with it (`terminate called`), so they are given none: a folder is read by Arrow itself, and of
        an object store, which delta-rs reaches through Python, the files are fetched first."""
        if is_local(self.place):
            return self._delta.to_pyarrow_dataset(filesystem=arrow_filesystem(self.place, {}))
        remote = self._delta.to_pyarrow_dataset()
        paths = [fragment.path for fragment in remote.get_fragments(wanted)]
        with ThreadPoolExecutor(FETCHES) as pool:
            fetched = list(pool.map(partial(_fetched, remote.filesystem), paths))
        fragments = [remote.format.make_fragment(buffer) for buffer in fetched]
        return pyarrow.dataset.FileSystemDataset(fragments, remote.schema, remote.format)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except (DeltaError, OSError) as error:
            raise TableError("unreadable-table", f"{self.place} cannot be read: {_first_line(error)}") from error

    def last_time(self) -> datetime | None:
        """When the latest change was made, by the clock of who made it; rounded up, for Delta Lake cuts it to
        milliseconds."""
        actions = pa.table(self._delta.get_add_actions(flatten=True))
        if "max._time" not in actions.column_names or not actions.num_rows:
            return None
        times = [time for time in actions["max._time"].to_pylist() if time is not None]
        return max(times).astimezone(UTC) + timedelta(milliseconds=1) if times else None

    # Changes

    def commit(self, make: Callable[[int], pa.Table], user: str | None, if_version: int | None = None) -> int:
        """Appends the rows that `make` gives for the version at hand, as the next version, and returns that. If
        another writer was first, it is asked again. No rows, no version."""
        commit_id = uuid.uuid4().hex
        for attempt in range(ATTEMPTS):
            version = self.look()
            if if_version is not None and version != if_version:
                raise TableError(
                    "version-conflict",
                    f"the table is at version {version}, not {if_version}: this change was not made",
                    hint="look at what changed in the meantime, and try again",
                )
            rows = make(version)
            if not rows.num_rows:
                return version
            booked = self._booked(rows, version + 1, user)
            try:
                self._append(booked, commit_id)
                return version + 1
            except SchemaMismatchError as error:
                raise TableError("bad-column", f"the columns do not fit the table: {_first_line(error)}") from error
            except (DeltaError, OSError) as error:
                done = self._made_after_all(commit_id, version)
                if done is not None:
                    return done
                if not isinstance(error, CommitFailedError) or (self.version == version and attempt > 2):
                    raise TableError(
                        "unwritable-table", f"{self.place} cannot be changed: {_first_line(error)}"
                    ) from error
            _pause(attempt)
        raise TableError(
            "table-busy",
            f"{ATTEMPTS} times another writer was first at {self.place}: this change was not made",
            hint="try again, or change more rows at a time",
        )

    def import_changes(self, rows: pa.Table) -> None:
        """Appends changes that say themselves which they are, up to the version that this makes."""
        self._append(rows, uuid.uuid4().hex)

    def _append(self, rows: pa.Table, commit_id: str) -> None:
        grown = [column for column in rows.schema if column.name not in self.schema.names]
        wrong = not_storable(grown)
        if wrong is not None:
            raise TableError(
                "bad-column",
                f"the column {wrong.name!r} is {wrong.type}, which a table cannot hold",
                hint="as text it can",
            )
        write_deltalake(
            self._delta,
            _copied(rows),
            mode="append",
            schema_mode="merge" if grown else None,
            commit_properties=self._properties(**{COMMIT_ID: commit_id}),
        )

    def _made_after_all(self, commit_id: str, before: int) -> int | None:
        """The version that a commit made although an error was reported: an answer of an object store can be lost
        after the commit, and a checkpoint that follows it can fail."""
        after = self.look()
        if after == before:
            return None
        offset = after - int(self._delta.version())
        for entry in self._delta.history(after - before):
            if entry.get(COMMIT_ID) == commit_id:
                return int(entry["version"]) + offset
        return None

    def _booked(self, rows: pa.Table, version: int, user: str | None) -> pa.Table:
        """The rows with all columns of the table, and those that say which change they are."""
        count = rows.num_rows
        now = max(datetime.now(UTC), self.last_time() or datetime.min.replace(tzinfo=UTC))
        columns: dict[str, Any] = {
            "_version": pa.array(np.full(count, version)),
            "_position": pa.array(np.arange(count)),
            "_time": pa.repeat(pa.scalar(now, BOOKKEEPING.field("_time").type), count),
            "_user": pa.repeat(pa.scalar(user, pa.string()), count),
            "_removed": rows["_removed"],
        }
        known = self.schema
        for field in known:
            if field.name not in columns:
                columns[field.name] = as_type(rows, field)
        for name in rows.column_names:
            if name not in columns and not _says_nothing(rows[name].type):
                check_name(name, columns)
                columns[name] = rows[name]
        made = pa.table(columns)
        fields = [BOOKKEEPING.field(f.name) if f.name in BOOKKEEPING.names else f for f in made.schema]
        return made.cast(pa.schema(fields))

    def set_property(self, name: str, make: Callable[[], str]) -> None:
        """Sets a property of the table, as a version of its own without rows, to what `make` gives for the version at
        hand; nothing happens if it has that value."""
        for attempt in range(ATTEMPTS):
            self.look()
            value = make()
            if self._setting(name) == value:
                return
            try:
                self._delta.alter.set_table_properties(
                    {name: value},
                    raise_if_not_exists=False,
                    commit_properties=self._properties(),
                )
                return
            except CommitFailedError:
                _pause(attempt)
        raise TableError("table-busy", f"{self.place} is changed all the time by others: try again")

    # Upkeep

    def tidy(self) -> None:
        """Merges small files once there are many, and now and then deletes dead ones. Others may do the same at the
        same time; whoever is second leaves it."""
        sizes = pa.table(self._delta.get_add_actions(flatten=True))["size_bytes"].to_numpy()
        if np.count_nonzero(sizes < MERGE_BYTES) < MERGE_FILES:
            return
        try:
            self._delta.optimize.compact(target_size=MERGE_BYTES, max_concurrent_tasks=1)
            if self._delta.version() % CLEAN_VERSIONS < MERGE_FILES + 2:
                self.clean()
        except (DeltaError, OSError):  # it will be tried again after the next change
            self.look()

    def merge(self) -> None:
        """Merges all small files."""
        self.look()
        with self._readable():
            self._delta.optimize.compact(target_size=MERGE_BYTES, max_concurrent_tasks=1)

    def clean(self) -> None:
        """Deletes files that are no part of the table and have not been for an hour, also those that a writer left
        when it was killed, and the log before its last checkpoint."""
        self.look()
        with self._readable():
            self._delta.vacuum(retention_hours=DEAD_HOURS, dry_run=False, enforce_retention_duration=False, full=True)
            self._delta.create_checkpoint()
            self._delta.cleanup_metadata()

    def rewrite(self, make: Callable[[int], pa.Table]) -> None:
        """Replaces all rows by those that `make` gives for the version at hand; the set must stay the same."""
        for attempt in range(ATTEMPTS):
            rows = _copied(make(self.look()))
            try:
                write_deltalake(self._delta, rows, mode="overwrite", commit_properties=self._properties())
                return
            except CommitFailedError:
                _pause(attempt)
        raise TableError("table-busy", f"{self.place} is changed all the time by others: try again")


def _fetched(files: pyarrow.fs.FileSystem, path: str) -> pa.Buffer:
    """A file's content, in memory of Arrow's own."""
    copy = pa.BufferOutputStream()
    with files.open_input_file(path) as file:
        copy.write(file.readall())
    return copy.getvalue()


def _pause(attempt: int) -> None:
    """Waits a little, and longer each time, so that writers that met do not meet again."""
    time.sleep(random.uniform(0, min(PAUSE_SECONDS[1], PAUSE_SECONDS[0] * 2**attempt)))


def _in_order(rows: pa.Table) -> pa.Table:
    """The rows by version and position. They mostly lie so already, and a check costs less than sorting."""
    versions, positions = (rows[name].to_numpy() for name in ("_version", "_position"))
    order = np.lexsort((positions, versions))
    return rows if (np.diff(order) == 1).all() else rows.take(pa.array(order))


def _copied(rows: pa.Table) -> pa.Table:
    """The rows, in memory of their own if columns are nested: where a struct within a struct begins in the middle of
    its memory, delta-rs takes the process down."""
    if not any(pa.types.is_nested(kind) for kind in rows.schema.types):
        return rows
    return rows.take(pa.array(np.arange(rows.num_rows)))


def _says_nothing(kind: pa.DataType) -> bool:
    """Whether a column has nothing but nulls and empty lists: what it is for is known once something comes."""
    return bool(pa.types.is_null(kind) or (pa.types.is_list(kind) and _says_nothing(kind.value_type)))


def not_storable(columns: Iterable[pa.Field]) -> pa.Field | None:
    """The first column of a type that Delta Lake has not, or does not give back: with a UUID in it nobody could read
    a table any more."""
    for column in columns:
        try:
            pa.schema(Schema.from_arrow(pa.schema([column])).to_arrow())
        except Exception:
            return column
    return None


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
