"""The job that compiles a large set on executors: what it costs, into how many parts, and where they go.

The driver sees counts, a sample, and the names of files. If all parts fit a machine, a part is what one core
compiles, or as many rows as it can hold, and a worker asks them all; else they are shards, and expressions are routed
to them (planning.py).
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
from pyspark.sql.utils import is_remote

from xsift.matching import MatcherOptions
from xsift.spark.building import (
    BuiltParts,
    build_parts,
    distinct_expressions,
    expression_rows,
    expression_table,
    note_manifest,
)
from xsift.spark.census import Census, Digest, part_digests, refuse_repeated, take_census, without_repeated
from xsift.spark.indexes import IndexFolder
from xsift.spark.planning import plan_routes
from xsift.spark.routing import Part, Router
from xsift.spark.saving import own_folder, save_matcher
from xsift.tables.places import location

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["CompileJob", "Sample", "cores_of", "storage_of"]

SAMPLE_ROWS = 20_000  # by which the bytes of an index are judged
PART_EXPRESSIONS = 50_000  # a core that compiles fewer has little to do
PART_ROWS = 5_000_000  # that a task holds while it compiles; some hundred bytes each
CORES_DEFAULT = 16
STORAGE_SETTING = "spark.xsift.storage"

Sample: TypeAlias = "pa.Array | Callable[[], pa.Array] | None"
"""Some documents, or a function that gives them."""


@dataclass(frozen=True)
class CompileJob:
    """How and where a set is compiled. With `incremental` parts that did not change since the last time are kept."""

    folder: IndexFolder
    namespaces: Mapping[str, str]
    options: MatcherOptions
    errors: str
    incremental: bool

    def run(
        self, subscriptions: DataFrame, shards: int | None, budget_bytes: int, sample: Sample
    ) -> tuple[BuiltParts, Router | None, bool]:
        """What was built, the router if expressions are routed, and whether it is more than a machine may hold."""
        rows = expression_rows(subscriptions)
        cores = cores_of(subscriptions.sparkSession)
        census = take_census(rows, cores)
        if not census.again or self.errors != "collect":
            refuse_repeated(rows, census)
            return self._compiled(rows, census, cores, shards, budget_bytes, sample)
        rows, repeated, untold = without_repeated(rows)
        built, router, sharded = self._compiled(rows, take_census(rows, cores), cores, shards, budget_bytes, sample)
        built = replace(built, failed=(*repeated, *built.failed), untold=built.untold + untold)
        return built, router, sharded

    def _compiled(
        self, rows: DataFrame, census: Census, cores: int, shards: int | None, budget_bytes: int, sample: Sample
    ) -> tuple[BuiltParts, Router | None, bool]:
        """Rows of which no two have the same id."""
        shards = math.ceil(self._estimated_bytes(rows, census) / budget_bytes) if shards is None else shards
        tasks = math.ceil(census.expressions / PART_EXPRESSIONS)
        if shards > 1:
            return (*self._routed(rows, shards, max(cores, tasks), sample, census.repeated), True)
        parts = max(1, min(cores, tasks), math.ceil(census.count / PART_ROWS))
        digests = census.digests(parts) if self.incremental else {}
        built = self._built(rows, census.part(parts), parts, digests, census.repeated)
        note_manifest(self.folder, built)
        return (built if built.parts else replace(built, parts=(self._empty(),))), None, False

    def _routed(
        self, rows: DataFrame, shards: int, tasks: int, sample: Sample, repeated: bool
    ) -> tuple[BuiltParts, Router]:
        documents = sample() if callable(sample) else sample
        routes = plan_routes(
            rows,
            shards,
            pa.array([], pa.binary()) if documents is None else documents,
            self.folder,
            namespaces=self.namespaces,
            options=self.options,
            tasks=tasks,
        )
        try:
            numbered = routes.rows.withColumn("part", routes.part.cast("int"))
            digests = part_digests(numbered) if self.incremental else {}
            built = self._built(routes.rows, routes.part, routes.parts, digests, repeated)
        finally:
            routes.keyed.unpersist()
        note_manifest(self.folder, built, routes.keys)
        there = {entry["part"]: part for entry, part in zip(built.entries, built.parts, strict=True)}
        parts = [there.get(number) or self._empty() for number in range(routes.parts)]
        return replace(built, parts=tuple(parts)), routes.router

    def _built(
        self, rows: DataFrame, part: Column, parts: int, digests: Mapping[int, Digest], repeated: bool
    ) -> BuiltParts:
        return build_parts(
            rows,
            part,
            parts,
            self.folder,
            namespaces=self.namespaces,
            options=self.options,
            errors=self.errors,
            digests=digests,
            repeated=repeated,
        )

    def _empty(self) -> Part:
        """A part without subscriptions. It sees broken documents all the same."""
        return self.folder.save(self.options.matcher(self.options.subscriptions({})))

    def _estimated_bytes(self, rows: DataFrame, census: Census) -> int:
        """About how many bytes the expressions and their subscribers will take, judged by some of them."""
        distinct = distinct_expressions(rows.limit(SAMPLE_ROWS).toArrow()["expression"])[0]
        made = self.options.subscriptions(self.namespaces)
        made.add_many(expression_table(distinct), errors="collect")
        path, index_bytes = save_matcher(self.options.matcher(made))
        path.unlink()
        each = index_bytes / max(1, len(distinct))
        return int(each * census.expressions + census.id_bytes + 8 * census.count)


def storage_of(spark: SparkSession, storage: str | None, options: Mapping[str, str] | None) -> IndexFolder | None:
    """Where compiled subscriptions go that are not shipped; None if there is no such place."""
    place = storage or spark.conf.get(STORAGE_SETTING, None)
    if place:
        return IndexFolder(location(place), tuple((options or {}).items()))
    if (spark.conf.get("spark.master", None) or "").startswith("local") and not is_remote():
        return IndexFolder(str(own_folder()))
    return None


def cores_of(spark: SparkSession) -> int:
    """How many tasks run at a time, as far as the settings tell."""
    master = spark.conf.get("spark.master", None) or ""
    cluster = re.match(r"local-cluster\[(\d+),(\d+)", master)
    if cluster:
        return int(cluster[1]) * int(cluster[2])
    local = re.match(r"local(?:\[(\d+|\*)[,\]]|$)", master)
    if local:
        return (os.cpu_count() or 1) if local[1] == "*" else int(local[1] or 1)
    executors, each = (spark.conf.get(f"spark.executor.{name}", None) for name in ("instances", "cores"))
    return int(executors) * int(each or 1) if executors else CORES_DEFAULT
