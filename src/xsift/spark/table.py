"""SubscriptionTable: subscriptions that change while streams run, with a version for each change.

The naive way is a table that is overwritten; then a stream that reads a batch again after a crash may find other
subscriptions than the first time, and give another answer. Here nothing is ever overwritten: each change appends one
Parquet file with its version, written whole or not at all, and any version can be read again.

Any number of processes may read a table; one at a time may change it. Two that try would both write the version after
the one they saw. On a file system of this machine a lock makes the second wait. Elsewhere (object stores have no
locks that Spark knows of) every file carries the name of its writer, the file that was written first counts, and the
other writer, which reads its version again afterwards, gets an error: its change was not made.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sql

from xsift.errors import SubscriptionError, XsiftError
from xsift.matching.subscriptions import Subscriptions
from xsift.spark.compiled import Errors, table_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SubscriptionTable", "latest_rows"]

SCHEMA = "version bigint, position bigint, id string, xpath string, ordered boolean, writer string"
"""A row whose xpath is null removes the subscription."""
WRITTEN = "_metadata.file_modification_time"
LOCK = "_xsift.lock"  # Spark does not read files whose name begins like this
LOCK_SECONDS = 60.0
LOCK_POLL_SECONDS = 0.05
_NAMESPACES_HINT = "SubscriptionTable(…, namespaces=) gives the prefixes that all its subscriptions may use"


class SubscriptionTable:
    """Subscriptions on any path that Spark can write. `namespaces` are the prefixes that expressions may use."""

    def __init__(self, spark: SparkSession, path: str, *, namespaces: Mapping[str, str] | None = None) -> None:
        self.path = str(path)
        self.namespaces = dict(namespaces or {})
        self._spark = spark

    def version(self) -> int:
        """The latest version; 0 as long as nothing was added."""
        try:
            row = self._read().agg(sql.max("version").alias("version")).first()
        except AnalysisException as error:
            if error.getCondition() == "PATH_NOT_FOUND":
                return 0
            raise
        return int(row["version"] or 0) if row is not None else 0

    def add(
        self, rows: DataFrame | pa.Table | Subscriptions | Iterable[Sequence[Any]], *, errors: Errors = "raise"
    ) -> list[tuple[str, XsiftError]]:
        """Adds subscriptions, as one new version. One whose id is there already replaces it.

        Returns (id, error) of those that cannot be used, with errors="collect"; else the first error is raised, and
        nothing changes.
        """
        table = self._as_table(rows)
        failed = Subscriptions(namespaces=self.namespaces).add_many(table, errors=errors)
        if failed:
            bad = pa.array([id for id, _ in failed], pa.string())
            table = table.filter(pc.invert(pc.is_in(table["id"].cast(pa.string()), value_set=bad)))
        if table.num_rows:
            ordered = table["ordered"] if "ordered" in table.column_names else pa.nulls(table.num_rows, pa.bool_())
            with self._alone():
                self._append(table["id"], table["xpath"], ordered.fill_null(False))
        return failed

    def remove(self, ids: Iterable[str]) -> None:
        """Removes subscriptions, as one new version. Raises SubscriptionError if one of them is not there; then
        nothing changes."""
        gone = pa.array(list(ids), pa.string())
        with self._alone():
            missing = gone.filter(pc.invert(pc.is_in(gone, value_set=self.as_of()["id"].combine_chunks())))
            if len(missing):
                raise SubscriptionError(
                    "unknown-id", f"there is no subscription {missing[0].as_py()!r}", id=missing[0].as_py()
                )
            if len(gone):
                self._append(gone, pa.nulls(len(gone), pa.string()), pa.nulls(len(gone), pa.bool_()))

    def as_of(self, version: int | None = None) -> pa.Table:
        """The subscriptions (id, xpath, ordered) at a version, by default the latest, in the order in which they were
        added."""
        latest = self.version()
        wanted = latest if version is None else version
        if not 0 <= wanted <= latest:
            raise SubscriptionError(
                "unknown-version", f"there is no version {wanted}", hint=f"the latest is {latest}"
            )
        return (
            latest_rows(self.changes(0, wanted))
            .filter(pc.field("xpath").is_valid())
            .select(["id", "xpath", "ordered"])
        )

    def changes(self, after: int, until: int) -> pa.Table:
        """What changed after one version until another, in the order in which it did."""
        if after >= until:
            return pa.table(
                {
                    "id": pa.array([], pa.string()),
                    "xpath": pa.array([], pa.string()),
                    "ordered": pa.array([], pa.bool_()),
                }
            )
        chosen = self._read().where((sql.col("version") > after) & (sql.col("version") <= until))
        found = chosen.select("*", sql.col(WRITTEN).alias("written")).toArrow()
        counted = _without_late_writers(found)
        ordered = counted.sort_by([("version", "ascending"), ("position", "ascending")])
        return ordered.select(["id", "xpath", "ordered"])

    def _read(self) -> DataFrame:
        return self._spark.read.schema(SCHEMA).parquet(self.path)

    def _as_table(self, rows: Any) -> pa.Table:
        if isinstance(rows, Subscriptions) and not rows.namespaces.items() <= self.namespaces.items():
            raise SubscriptionError(
                "other-namespaces", "the set has namespaces that the table has not", hint=_NAMESPACES_HINT
            )
        if isinstance(rows, pa.Table | Subscriptions) or hasattr(rows, "toArrow"):
            table = table_of(rows)
            if "namespaces" not in table.column_names:
                return table
            if any(table["namespaces"].to_pylist()):
                raise SubscriptionError(
                    "other-namespaces", "subscriptions of a table share its namespaces", hint=_NAMESPACES_HINT
                )
            return table.drop_columns(["namespaces"])
        listed = [(*row, False)[:3] for row in rows]
        names = ("id", "xpath", "ordered")
        columns: list[list[Any]] = [[row[place] for row in listed] for place in range(3)]
        types = (pa.string(), pa.string(), pa.bool_())
        return pa.table(
            [pa.array(values, kind) for values, kind in zip(columns, types, strict=True)], names=list(names)
        )

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Holds the lock of a table on a file system of this machine. It goes with the process that holds it, however
        that ends."""
        folder = os.path.abspath(self.path.removeprefix("file://").removeprefix("file:"))
        if "://" in self.path.removeprefix("file://") or not os.path.isdir(os.path.dirname(folder)):
            yield
            return
        import fcntl

        os.makedirs(folder, exist_ok=True)
        deadline = time.monotonic() + LOCK_SECONDS
        with open(os.path.join(folder, LOCK), "ab") as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise SubscriptionError(
                            "table-busy",
                            f"another process has been changing {self.path} for {LOCK_SECONDS:.0f} s",
                            hint="one process at a time may change a table",
                        ) from None
                    time.sleep(LOCK_POLL_SECONDS)
            yield

    def _append(self, ids: Any, xpaths: Any, ordered: Any) -> None:
        """Appends one file: it appears whole or not at all."""
        count, version, writer = len(ids), self.version() + 1, uuid.uuid4().hex
        table = pa.table(
            {
                "version": pa.array(np.full(count, version)),
                "position": pa.array(np.arange(count)),
                "id": ids.cast(pa.string()),
                "xpath": xpaths.cast(pa.string()),
                "ordered": ordered,
                "writer": pa.repeat(pa.scalar(writer), count),
            }
        )
        self._spark.createDataFrame(table).coalesce(1).write.mode("append").parquet(self.path)
        written = self._read().where(sql.col("version") == version)
        first = written.select("writer", sql.col(WRITTEN).alias("written")).orderBy("written", "writer").first()
        if first is None or first["writer"] != writer:
            raise SubscriptionError(
                "two-writers",
                f"another process wrote version {version} of {self.path} at the same time: this change was not made",
                hint="try again; one process at a time may change a table",
            )


def _without_late_writers(changes: pa.Table) -> pa.Table:
    """The changes less those of a writer that came second to a version."""
    each = changes.group_by(["version", "writer"]).aggregate([("written", "min")])
    if len(each) == len(pc.unique(each["version"])):
        return changes
    ranked = each.sort_by([("written_min", "ascending"), ("writer", "ascending")])
    seen: set[int] = set()
    late = []
    for version, writer in zip(ranked["version"].to_pylist(), ranked["writer"].to_pylist(), strict=True):
        if version in seen:
            late.append(writer)
        seen.add(version)
    return changes.filter(pc.invert(pc.is_in(changes["writer"], value_set=pa.array(late, pa.string()))))


def latest_rows(changes: pa.Table) -> pa.Table:
    """The last change of each id, in the order in which these came."""
    numbered = changes.append_column("row", pa.array(np.arange(changes.num_rows)))
    last = numbered.group_by("id").aggregate([("row", "max")])["row_max"]
    return changes.take(pa.array(np.sort(last.to_numpy())))
