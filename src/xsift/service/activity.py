"""What happened in the last minutes, for people who look: how often each subscription matched, a feed of events.

It is kept in memory, is bounded, and is of this server alone. What must be right is in the store and in the metrics.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, deque
from typing import Any, Literal

__all__ = ["Activity"]

MINUTES = 15
MOST_SUBSCRIPTIONS = 200_000  # that are counted a minute; a set in which everything matches stays bounded
FEED = 200
MOST_REASONS = 1000  # subscriptions whose last failure is remembered


class Activity:
    """Counts by minute, and a feed of what came in."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._minutes: deque[tuple[int, Counter[int], Counter[int]]] = deque(maxlen=MINUTES)
        self.feed: deque[dict[str, Any]] = deque(maxlen=FEED)
        self._reasons: dict[int, dict[str, Any]] = {}
        self._watchers: set[asyncio.Queue[dict[str, Any]]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def count(self, matched: list[int], failed: list[int]) -> None:
        """Rows of the store that matched a document, and that could not be decided on it."""
        minute = int(time.time() // 60)
        with self._lock:
            if not self._minutes or self._minutes[-1][0] != minute:
                self._minutes.append((minute, Counter(), Counter()))
            _, matches, failures = self._minutes[-1]
            if len(matches) < MOST_SUBSCRIPTIONS:
                matches.update(matched)
            if len(failures) < MOST_SUBSCRIPTIONS:
                failures.update(failed)

    def of(self, row: int) -> tuple[int, int]:
        """Matches and failures of a row in the last minutes."""
        oldest = time.time() // 60 - MINUTES
        with self._lock:
            kept = [(matches[row], failures[row]) for minute, matches, failures in self._minutes if minute > oldest]
        return sum(matches for matches, _ in kept), sum(failures for _, failures in kept)

    def failed(self, row: int, reason: dict[str, Any]) -> None:
        """Why a row could not be decided on a document, the last time."""
        with self._lock:
            self._reasons.pop(row, None)
            self._reasons[row] = reason
            if len(self._reasons) > MOST_REASONS:
                del self._reasons[next(iter(self._reasons))]

    def reason(self, row: int) -> dict[str, Any] | None:
        """The last failure of a row, if it is remembered."""
        with self._lock:
            return self._reasons.get(row)

    def ranked(self, what: Literal["matches", "failures"]) -> list[tuple[int, int]]:
        """Rows with how often they matched, or failed, in the last minutes; the most often first."""
        oldest = time.time() // 60 - MINUTES
        total: Counter[int] = Counter()
        with self._lock:
            for minute, matches, failures in self._minutes:
                if minute > oldest:
                    total.update(matches if what == "matches" else failures)
        return sorted(
            ((row, number) for row, number in total.items() if number), key=lambda item: (-item[1], item[0])
        )

    # The feed

    def tell(self, event: dict[str, Any]) -> None:
        """Something happened; from any thread."""
        self.feed.append(event)
        if self._watchers and self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(self._pass_on, event)
            except RuntimeError:  # the loop is closed
                return

    def _pass_on(self, event: dict[str, Any]) -> None:
        for queue in self._watchers:
            if not queue.full():  # who does not keep up misses some: it is a view, not a delivery
                queue.put_nowait(event)

    def watch(self) -> asyncio.Queue[dict[str, Any]]:
        """A queue of what happens from now on. `unwatch` it."""
        queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue(1000)
        self._watchers.add(queue)
        return queue

    def unwatch(self, queue: asyncio.Queue[dict[str, Any]]) -> None:
        self._watchers.discard(queue)
