"""Subscriptions, in any of the forms that people have them in, compiled into files and shipped to Spark's workers.

The naive way is to broadcast the matcher: then every Python worker unpickles a copy of its own. A file that was
shipped (`addArtifacts`) is mapped instead, and all workers of a machine share its pages. It also works on Spark
Connect.
"""

from __future__ import annotations

import hashlib
import logging
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from xsift.errors import SubscriptionError, XsiftError
from xsift.matching import Matcher, MatcherOptions, Residuals, Subscriptions
from xsift.spark.building import BuiltParts
from xsift.spark.compile_job import CompileJob, storage_of
from xsift.spark.indexes import IndexFolder
from xsift.spark.memory import node_memory_bytes
from xsift.spark.memory import worker_memory_bytes as worker_share
from xsift.spark.routing import Part, Router
from xsift.spark.saving import save_matcher
from xsift.spark.subscribers import ReadSubscribers
from xsift.spark.worker import Task
from xsift.tables.table import SubscriptionTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Compiled", "SubscriptionSource", "compile_subscriptions", "compile_table", "save_matcher", "table_of"]

logger = logging.getLogger("xsift.spark")

SubscriptionSource: TypeAlias = (
    "DataFrame | pa.Table | Subscriptions | SubscriptionTable | Matcher | str | os.PathLike[str] | Compiled"
)
"""A DataFrame or Arrow table (id, xpath, and if you like ordered and namespaces), a set, a SubscriptionTable as it is
now, a matcher, or the path of a saved one."""

Errors = Literal["raise", "collect"]
REPORTED_ERRORS = 20
SAMPLE_ROWS = 50_000  # by which the number of shards is judged first
SHARD_ATTEMPTS = 3
BY_EXPRESSION = "compile_subscriptions(…, by_expression=True)"
ROW = "row"  # the column with the number of each row of a table
DRIVER_ROWS = 200_000  # as many are compiled on the driver, which is quicker than to start a job


@dataclass(frozen=True)
class Compiled:
    """Subscriptions that workers can load: parts that were shipped. `index_bytes` is what one worker holds at most at
    a time."""

    parts: tuple[Part, ...]
    sharded: bool
    subscriptions: int
    index_bytes: int
    failed: tuple[tuple[str, XsiftError], ...] = ()
    router: Router | None = None
    folder: IndexFolder | None = None
    expressions: int | None = None
    """How many distinct expressions there are, if they were counted."""
    reused: int = 0
    """How many parts were there already when it was compiled."""
    untold: int = 0
    """How many more were left out than `failed` tells of, which are the first thousand of each part."""

    def task(self, **settings: Any) -> Task:
        """The function that workers run; `settings` are those of Task."""
        asked = settings.get("output") == "expressions" and self.subscriptions
        if asked and not any(part.subscribers for part in self.parts):
            raise XsiftError("no-expressions", "this set was not compiled by expression", hint=BY_EXPRESSION)
        return Task(self.parts, **settings, router=self.router, folder=self.folder, one_at_a_time=self.sharded)

    def subscribers(self, spark: SparkSession) -> DataFrame:
        """Who subscribed to what, for results by expression: the columns `expression` and `subscription`."""
        names = [(part.subscribers,) for part in self.parts if part.subscribers]
        if not names or self.folder is None:
            raise XsiftError("no-expressions", "this set was not compiled by expression", hint=BY_EXPRESSION)
        files = spark.createDataFrame(sorted(set(names)), "name string").repartition(len(set(names)))
        found: DataFrame = files.mapInArrow(ReadSubscribers(self.folder), "expression string, subscription string")
        return found

    def __str__(self) -> str:
        shards = f" in {len(self.parts)} shards" if self.sharded else ""
        distinct = "" if self.expressions is None else f" ({self.expressions:,} distinct expressions)"
        left_out = f", {len(self.failed) + self.untold:,} left out" if self.failed else ""
        return (
            f"{self.subscriptions:,} subscriptions{distinct}{shards}{left_out}; "
            f"at most {self.index_bytes / 2**20:,.1f} MiB of index for each Python worker"
        )


def compile_subscriptions(
    spark: SparkSession,
    subscriptions: SubscriptionSource,
    *,
    namespaces: Mapping[str, str] | None = None,
    engine: str = "auto",
    engine_options: Mapping[str, Any] | None = None,
    residuals: Residuals = "verify",
    errors: Errors = "raise",
    shards: int | None = None,
    worker_memory_bytes: int | None = None,
    storage: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    sample: pa.Array | Callable[[], pa.Array] | None = None,
    by_expression: bool = False,
) -> Compiled:
    """Compiles subscriptions and brings them to where workers find them. What it returns can be given to
    match_documents many times.

    Small sets are compiled on the driver and shipped. Large ones (more than 200,000 rows), those with `storage`, and
    all with `by_expression` are compiled on executors (building.py), into files below `storage`: a path or URL that
    all machines see (spark.xsift.storage by default; with a local master a temporary folder does). There a set that
    is compiled again is built only where it changed. `sample` are some documents (an Arrow array, or a function that
    gives one), by which a set that has to be split is split so that documents visit few of its parts.

    `engine`, `engine_options` and `residuals` are those of Subscriptions and its matchers. `shards` splits the set;
    by default into as many parts as it takes for each to fit `worker_memory_bytes`, which is by default what
    spark.executor.pyspark.memory leaves each worker if that is set (memory.py), else 2 GiB. With errors="collect"
    subscriptions that cannot be used are left out and listed in `failed` (of a set that is compiled on executors the
    first thousand of each part; `untold` says how many more there are).
    """
    if isinstance(subscriptions, Compiled):
        return subscriptions
    if shards is not None and shards < 1:
        raise ValueError(f"shards is {shards}; at least 1")
    if errors not in ("raise", "collect"):
        raise ValueError(f"errors is {errors!r}; it can be 'raise' or 'collect'")
    if isinstance(subscriptions, SubscriptionTable):
        rows = subscriptions.as_of()
        namespaces = subscriptions.namespaces | dict(namespaces or {})
        subscriptions = rows
    memory_bytes = worker_memory_bytes or worker_share(spark)
    options = MatcherOptions(engine=engine, engine_options=dict(engine_options or {}), residuals=residuals)
    where = storage_of(spark, storage, storage_options)
    if not isinstance(subscriptions, Matcher | str | os.PathLike):
        if isinstance(subscriptions, Subscriptions):
            namespaces = subscriptions.namespaces | dict(namespaces or {})
        on_executors = where is not None and bool(by_expression or storage)
        given, large = _given(spark, subscriptions, where is not None, on_executors)
        if where is not None and large:
            frame = given if not isinstance(given, pa.Table) else spark.createDataFrame(given)
            budget = worker_memory_bytes or node_memory_bytes(spark)
            job = CompileJob(where, dict(namespaces or {}), options, errors, incremental=storage is not None)
            return _stated(_compiled(job, *job.run(frame, shards, budget, sample)), budget)
        if by_expression:
            raise XsiftError("no-storage", "results by expression need a place for the index", hint="storage=…")
        subscriptions = subscriptions if isinstance(subscriptions, Subscriptions) else given
    if isinstance(subscriptions, Matcher | str | os.PathLike):
        compiled = _ship_saved(spark, subscriptions, shards)
    else:
        if isinstance(subscriptions, Subscriptions):
            namespaces = subscriptions.namespaces | dict(namespaces or {})
            if shards in (None, 1):
                compiled = _ship_whole(spark, subscriptions, options)
                if shards == 1 or compiled.index_bytes <= memory_bytes:
                    return _stated(compiled, memory_bytes)
        table = table_of(subscriptions)
        compiled = compile_table(
            spark, table, namespaces or {}, options=options, errors=errors, shards=shards, memory_bytes=memory_bytes
        )
    return _stated(compiled, memory_bytes)


def _given(spark: SparkSession, subscriptions: Any, can_be_large: bool, is_large: bool) -> tuple[Any, bool]:
    """The rows: as a table if they are few, or are here anyway; and whether they are compiled as many are. If that is
    decided (`is_large`), they need not be counted."""
    if isinstance(subscriptions, Subscriptions | pa.Table) or not hasattr(subscriptions, "columns"):
        table = table_of(subscriptions)
        return table, is_large or (can_be_large and table.num_rows > DRIVER_ROWS)
    wanted = _checked_columns(subscriptions, subscriptions.columns)
    if not can_be_large:
        return table_of(subscriptions), False
    if is_large:
        return subscriptions.select(*wanted), True
    first = subscriptions.select(*wanted).limit(DRIVER_ROWS + 1).toArrow()
    if first.num_rows <= DRIVER_ROWS:
        return first, False
    return subscriptions.select(*wanted), True


def _compiled(job: CompileJob, built: BuiltParts, router: Router | None, sharded: bool) -> Compiled:
    sizes = [part.size_bytes for part in built.parts]
    return Compiled(
        built.parts,
        sharded and len(sizes) > 1,
        built.subscriptions,
        max(sizes) if sharded else sum(sizes),
        built.failed,
        router,
        job.folder,
        built.expressions,
        built.reused,
        built.untold,
    )


def _stated(compiled: Compiled, memory_bytes: int) -> Compiled:
    """Says what a worker will hold, before the job starts."""
    logger.info("%s", compiled)
    for _, error in compiled.failed[:REPORTED_ERRORS]:
        logger.warning("left out: %s", error)
    if compiled.index_bytes > memory_bytes:
        logger.warning(
            "the index of a worker (%.0f MiB) is larger than its memory (%.0f MiB): give shards=, or more memory",
            compiled.index_bytes / 2**20,
            memory_bytes / 2**20,
        )
    return compiled


def table_of(subscriptions: DataFrame | pa.Table | Subscriptions) -> pa.Table:
    """The subscriptions as an Arrow table with the columns id, xpath, ordered, and namespaces if there is such a
    column."""
    if isinstance(subscriptions, Subscriptions):
        return subscriptions.table()
    names = (
        subscriptions.column_names if isinstance(subscriptions, pa.Table) else getattr(subscriptions, "columns", None)
    )
    if names is None:
        raise TypeError(
            f"subscriptions is a {type(subscriptions).__name__}; it can be a DataFrame, an Arrow table, "
            "xsift.Subscriptions, a matcher, or the path of a saved matcher"
        )
    wanted = _checked_columns(subscriptions, names)
    if isinstance(subscriptions, pa.Table):
        return subscriptions.select(wanted)
    return subscriptions.select(*wanted).toArrow()


def _checked_columns(subscriptions: Any, names: Sequence[str]) -> list[str]:
    for column in ("id", "xpath"):
        if column not in names:
            there = ", ".join(map(repr, names)) or "none"
            raise SubscriptionError(
                "missing-column", f"the subscriptions have no column {column!r}", hint=f"they have {there}"
            )
    return [name for name in ("id", "xpath", "ordered", "namespaces") if name in names]


def compile_table(
    spark: SparkSession,
    table: pa.Table,
    namespaces: Mapping[str, str],
    *,
    options: MatcherOptions,
    errors: Errors,
    shards: int | None,
    memory_bytes: int,
) -> Compiled:
    """Compiles a table, one shard after the other, so that the driver holds one index at a time. If `shards` is not
    given, it is found by trying: the size of an index is not in proportion to its rows."""
    numbered = table.append_column(ROW, pa.array(np.arange(table.num_rows)))
    table, repeated = _without_repeated(numbered, namespaces, options, errors)
    compiled = _compile_fitting(spark, table, namespaces, options, errors, shards, memory_bytes)
    return replace(compiled, failed=(*repeated, *compiled.failed)) if repeated else compiled


def _without_repeated(
    table: pa.Table, namespaces: Mapping[str, str], options: MatcherOptions, errors: Errors
) -> tuple[pa.Table, list[tuple[str, XsiftError]]]:
    """The table without rows whose id is that of a good row before: shards do not see each other's ids. Rows with an
    id that comes again are tried together, so that they are judged as in one set."""
    counts = table.group_by("id").aggregate([([], "count_all")])
    again = counts.filter(pc.greater(counts["count_all"], 1))["id"]
    if not len(again):
        return table, []
    places = np.flatnonzero(pc.is_in(table["id"], value_set=again.combine_chunks()).to_numpy(zero_copy_only=False))
    failed = _add(options.subscriptions(namespaces), table.take(pa.array(places)), errors)
    good = np.ones(table.num_rows, dtype=bool)
    good[[error.row or 0 for _, error in failed]] = False
    return table.filter(pa.array(good)), failed


def _add(made: Subscriptions, rows: pa.Table, errors: Errors) -> list[tuple[str, XsiftError]]:
    """Adds some rows of a table. Errors tell the numbers that these have in the whole table."""
    failed = []
    for id, error in made.add_many(rows.drop_columns(ROW), errors="collect"):
        assert error.row is not None
        here, error.row = f"row {error.row + 1}", rows[ROW][error.row].as_py()
        if error.code == "missing-value":  # such a row is called by its number
            there = f"row {error.row + 1}"
            error.message = error.message.replace(here, there, 1)
            id = there if id == here else id
        failed.append((id, error))
    if failed and errors == "raise":
        raise failed[0][1]
    return failed


def _compile_fitting(
    spark: SparkSession,
    table: pa.Table,
    namespaces: Mapping[str, str],
    options: MatcherOptions,
    errors: Errors,
    shards: int | None,
    memory_bytes: int,
) -> Compiled:
    if shards is not None:
        return _compile_shards(spark, table, namespaces, options, errors, shards)
    shards = _shards_needed(table, namespaces, options, memory_bytes)
    for _ in range(SHARD_ATTEMPTS):
        try:
            return _compile_shards(spark, table, namespaces, options, errors, shards, memory_bytes)
        except _TooLarge as found:
            logger.info("%d shards are too large: %d bytes of index", shards, found.size_bytes)
            shards = min(table.num_rows, math.ceil(shards * max(1.2, 1.1 * found.size_bytes / memory_bytes)))
    return _compile_shards(spark, table, namespaces, options, errors, shards)


class _TooLarge(Exception):
    """A worker would hold more than it may."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes)
        self.size_bytes = size_bytes


def _compile_shards(
    spark: SparkSession,
    table: pa.Table,
    namespaces: Mapping[str, str],
    options: MatcherOptions,
    errors: Errors,
    shards: int,
    limit_bytes: int | None = None,
) -> Compiled:
    """Compiles and ships so many shards. Raises _TooLarge as soon as a worker would hold more than `limit_bytes` and
    there is something left to split."""
    parts: list[Part] = []
    failed: list[tuple[str, XsiftError]] = []
    count = held_bytes = 0
    shards = max(1, min(shards, table.num_rows))  # one at least: it takes a matcher to see that a document is broken
    for number in range(shards):
        begin, end = (table.num_rows * n // shards for n in (number, number + 1))
        made = options.subscriptions(namespaces)
        failed += _add(made, table.slice(begin, end - begin), errors)
        path, size_bytes = save_matcher(options.matcher(made))
        held_bytes = max(held_bytes, size_bytes)
        if limit_bytes is not None and held_bytes > limit_bytes and end - begin > 1:
            path.unlink()
            raise _TooLarge(held_bytes)
        parts.append(_shipped(spark, path, size_bytes))
        count += len(made)
    return Compiled(tuple(parts), len(parts) > 1, count, held_bytes, tuple(failed))


def _shards_needed(table: pa.Table, namespaces: Mapping[str, str], options: MatcherOptions, memory_bytes: int) -> int:
    """About how many shards fit a worker each, judged by a piece of the subscriptions: the index of all may not fit
    here either."""
    piece = table.slice(0, SAMPLE_ROWS)
    made = options.subscriptions(namespaces)
    made.add_many(piece.drop_columns(ROW), errors="collect")
    path, size_bytes = save_matcher(options.matcher(made))
    path.unlink()
    total_bytes: float = size_bytes * (table.num_rows / max(1, piece.num_rows))
    return max(1, math.ceil(total_bytes / memory_bytes))


def _ship_whole(spark: SparkSession, subscriptions: Subscriptions, options: MatcherOptions) -> Compiled:
    part = ship(spark, options.matcher(subscriptions))
    return Compiled((part,), False, len(subscriptions), part.size_bytes)


def _ship_saved(spark: SparkSession, saved: Matcher | str | os.PathLike[str], shards: int | None) -> Compiled:
    if shards not in (None, 1):
        raise SubscriptionError(
            "not-splittable",
            "a matcher that is already compiled cannot be split",
            hint="give the subscriptions for shards=",
        )
    matcher = saved if isinstance(saved, Matcher) else Matcher.load(saved)
    part = ship(spark, matcher)
    return Compiled((part,), False, len(matcher), part.size_bytes)


def ship(spark: SparkSession, matcher: Matcher) -> Part:
    """Saves a matcher and makes the file known to all workers. Its name tells its content, so equal ones are shipped
    once.

    A classic session hands out the file itself whenever an executor asks for it, so it stays until the driver ends.
    """
    return _shipped(spark, *save_matcher(matcher))


def _shipped(spark: SparkSession, saved: Path, size_bytes: int) -> Part:
    with saved.open("rb") as file:
        digest = hashlib.file_digest(file, "blake2b").hexdigest()[:32]
    named = saved.replace(saved.with_name(f"xsift-{digest}.xsift"))
    spark.addArtifacts(str(named), file=True)
    return Part(named.name, size_bytes)
