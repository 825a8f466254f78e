"""The subscriptions of a running stream: only what changed is compiled and shipped.

Subscriptions are held in layers, each compiled and shipped once and never changed. A new version adds a layer with
what was added, merged with the layers before it that are not much larger; what was removed is masked in the layers
that have it. So there are about log(n) layers, workers keep those that they have, and a small change costs little.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from xsift.matching import MatcherOptions
from xsift.spark.compiled import Compiled, ship
from xsift.spark.table import SubscriptionTable, latest_rows
from xsift.spark.worker import Part

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["LiveSubscriptions"]

logger = logging.getLogger("xsift.spark")

MERGE_RATIO = 4  # a layer is merged into a new one that has at least a quarter of its rows
REBUILD_SHARE = 0.5  # a layer is built anew when more than this share of its rows was removed


@dataclass
class _Layer:
    rows: pa.Table
    part: Part
    removed: npt.NDArray[np.bool_]

    @property
    def live(self) -> int:
        return int(len(self.removed) - np.count_nonzero(self.removed))

    def live_rows(self) -> pa.Table:
        return self.rows.filter(pa.array(~self.removed))

    def current_part(self) -> Part:
        gone = np.flatnonzero(self.removed).astype(np.int32)
        return Part(self.part.name, self.part.size_bytes, gone if len(gone) else None)


class LiveSubscriptions:
    """The subscriptions of a table at one version after the other."""

    def __init__(self, path: str, namespaces: Mapping[str, str], options: MatcherOptions) -> None:
        self._path = path
        self._namespaces = dict(namespaces)
        self._options = options
        self._layers: list[_Layer] = []
        self._version = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return (LiveSubscriptions, (self._path, self._namespaces, self._options))

    def latest_version(self, spark: SparkSession) -> int:
        """The version that the table has now."""
        return SubscriptionTable(spark, self._path).version()

    def at(self, spark: SparkSession, version: int) -> Compiled:
        """The subscriptions at a version, compiled and shipped."""
        if version < self._version:
            self._layers, self._version = [], 0
        if version > self._version:
            table = SubscriptionTable(spark, self._path)
            self._apply(spark, latest_rows(table.changes(self._version, version)))
            self._version = version
            logger.info("subscriptions at version %d: %d in %d layers", version, self._count(), len(self._layers))
        parts = tuple(layer.current_part() for layer in self._layers)
        return Compiled(parts, False, self._count(), sum(layer.part.size_bytes for layer in self._layers))

    def _count(self) -> int:
        return sum(layer.live for layer in self._layers)

    def _apply(self, spark: SparkSession, changes: pa.Table) -> None:
        changed = changes["id"].combine_chunks()
        for layer in self._layers:
            layer.removed = layer.removed | pc.is_in(layer.rows["id"], value_set=changed).to_numpy()
        kept: list[_Layer] = []
        for layer in self._layers:
            if not layer.live:
                continue
            wasted = len(layer.removed) - layer.live
            kept += self._built(spark, layer.live_rows()) if wasted > REBUILD_SHARE * len(layer.removed) else [layer]
        added = changes.filter(pc.field("xpath").is_valid())
        while added.num_rows and kept and kept[-1].live <= MERGE_RATIO * added.num_rows:
            added = pa.concat_tables([kept.pop().live_rows(), added])
        self._layers = [*kept, *self._built(spark, added)]

    def _built(self, spark: SparkSession, rows: pa.Table) -> list[_Layer]:
        made = self._options.subscriptions(self._namespaces)
        failed = made.add_many(rows, errors="collect")
        for _, error in failed:
            logger.warning("left out: %s", error)
        if not len(made):
            return []
        if failed:
            bad = pa.array([id for id, _ in failed], pa.string())
            rows = rows.filter(pc.invert(pc.is_in(rows["id"], value_set=bad)))
        part = ship(spark, self._options.matcher(made))
        return [_Layer(rows, part, np.zeros(rows.num_rows, dtype=bool))]
