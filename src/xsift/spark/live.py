"""The subscriptions of a running stream: only what changed is compiled and written.

Subscriptions are held in layers, each compiled once and never changed. A new version adds a layer with what was
added, merged with the layers before it that are not much larger; what was removed is masked in the layers that have
it. So there are about log(n) layers, workers keep those that they have, and a small change costs little.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from xsift.errors import TableError
from xsift.matching import MatcherOptions
from xsift.spark.indexes import IndexFolder
from xsift.spark.routing import Part
from xsift.tables.table import SubscriptionTable

__all__ = ["LiveSubscriptions"]

logger = logging.getLogger("xsift.spark")

MERGE_RATIO = 4  # a layer is merged into a new one that has at least a quarter of its rows
REBUILD_SHARE = 0.5  # a layer is built anew when more than this share of its rows was removed
REPORTED_ERRORS = 20
USED = ["id", "xpath", "ordered", "namespaces"]


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
    """The subscriptions of a table at one version after the other, compiled into a folder."""

    def __init__(self, table: SubscriptionTable, folder: IndexFolder, options: MatcherOptions) -> None:
        self.table = table
        self.folder = folder
        self._options = options
        self._layers: list[_Layer] = []
        self._version = 0
        self._name: str | None = None
        self._before: set[str] = set()

    def __reduce__(self) -> tuple[Any, ...]:
        return (LiveSubscriptions, (self.table, self.folder, self._options))

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts that the subscriptions are now. One at least: it takes a matcher to see that a document is
        broken."""
        if not self._layers:
            return (self.folder.save(self._options.matcher(self._options.subscriptions({}))),)
        return tuple(layer.current_part() for layer in self._layers)

    @property
    def count(self) -> int:
        """How many subscriptions there are now."""
        return sum(layer.live for layer in self._layers)

    def at(self, version: int) -> str:
        """The name of the set of indexes that is a version. Files that neither it nor the set before it has are
        deleted: a batch is over before the next one asks."""
        if self._name is not None and version == self._version:
            return self._name
        self._follow(version)
        parts = self.parts
        self._name = self.folder.write_set(parts, version)
        names = {self._name, *(part.name for part in parts)}
        self.folder.keep(names | self._before)
        self._before = names
        logger.info("subscriptions at version %d: %s in %d layers", version, f"{self.count:,}", len(self._layers))
        return self._name

    def _follow(self, version: int) -> None:
        """Brings the layers to a version; from the start if it is one before, or too much was forgotten since."""
        if self._name is not None and version > self._version:
            try:
                self._apply(self.table.changes(self._version, version))
                self._version = version
                return
            except TableError as error:
                if error.code != "version-forgotten":
                    raise
        self._layers = self._built(self.table.as_of(version).select(USED))
        self._version = version

    def _apply(self, changes: pa.Table) -> None:
        changed = changes["id"].combine_chunks()
        for layer in self._layers:
            layer.removed = layer.removed | pc.is_in(layer.rows["id"], value_set=changed).to_numpy()
        kept: list[_Layer] = []
        for layer in self._layers:
            if not layer.live:
                continue
            wasted = len(layer.removed) - layer.live
            kept += self._built(layer.live_rows()) if wasted > REBUILD_SHARE * len(layer.removed) else [layer]
        added = changes.filter(pc.invert(changes["_removed"])).select(USED)
        while added.num_rows and kept and kept[-1].live <= MERGE_RATIO * added.num_rows:
            added = pa.concat_tables([kept.pop().live_rows(), added])
        self._layers = [*kept, *self._built(added)]

    def _built(self, rows: pa.Table) -> list[_Layer]:
        made = self._options.subscriptions(self.table.namespaces)
        failed = made.add_many(rows, errors="collect")
        for _, error in failed[:REPORTED_ERRORS]:
            logger.warning("left out: %s", error)
        if not len(made):
            return []
        if failed:
            bad = pa.array([id for id, _ in failed], pa.string())
            rows = rows.filter(pc.invert(pc.is_in(rows["id"], value_set=bad)))
        part = self.folder.save(self._options.matcher(made))
        return [_Layer(rows, part, np.zeros(rows.num_rows, dtype=bool))]
