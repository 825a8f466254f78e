"""A set in memory that keeps up with a table: what a long-running process matches with.

follower = Follower(table)
while True:
    follower.follow()                       # a look costs a millisecond; a change what it changes
    follower.matcher().match(next_document)
"""

from __future__ import annotations

import logging

import pyarrow.compute as pc

from xsift.errors import TableError
from xsift.matching import Matcher, MatcherOptions, Subscriptions
from xsift.tables.rows import OWN
from xsift.tables.table import SubscriptionTable

__all__ = ["Follower"]

logger = logging.getLogger("xsift.tables")


class Follower:
    """The subscriptions of a table, at the version of the last look. An expression that this xsift cannot use (the
    table may have been written by another) is left out, and logged."""

    def __init__(self, table: SubscriptionTable, options: MatcherOptions | None = None) -> None:
        self.table = table
        self.options = options or MatcherOptions()
        self.version = -1
        self._subscriptions: Subscriptions | None = None
        self._matcher: Matcher | None = None
        self.follow()

    @property
    def subscriptions(self) -> Subscriptions:
        """The set. Leave its changes to the table."""
        assert self._subscriptions is not None
        return self._subscriptions

    def matcher(self) -> Matcher:
        """A matcher of the set as it is; a new one only after a change."""
        if self._matcher is None:
            self._matcher = self.options.matcher(self.subscriptions)
        return self._matcher

    def follow(self) -> bool:
        """Looks at the table, and takes over what changed. Returns whether something did."""
        version = self.table.version()
        if version == self.version:
            return False
        if self._subscriptions is None or self._subscriptions.namespaces != self.table.namespaces:
            changed = self._start_over(version)
        else:
            try:
                changed = self._apply(self._subscriptions, version)
            except TableError as error:
                if error.code != "version-forgotten":
                    raise
                changed = self._start_over(version)
        self.version = version
        if changed:
            self._matcher = None
        return changed

    def _start_over(self, version: int) -> bool:
        made = self.options.subscriptions(self.table.namespaces)
        self._add(made, self.table.as_of(version))
        self._subscriptions = made
        return True

    def _apply(self, subscriptions: Subscriptions, version: int) -> bool:
        changes = self.table.changes(self.version, version)
        for id in changes["id"].to_pylist():
            if id in subscriptions:
                subscriptions.remove(id)
        self._add(subscriptions, changes.filter(pc.invert(changes["_removed"])))
        return bool(changes.num_rows)

    def _add(self, subscriptions: Subscriptions, rows: object) -> None:
        for _, error in subscriptions.add_many(rows.select(OWN.names), errors="collect"):  # type: ignore[attr-defined]
            logger.warning("left out: %s", error)
