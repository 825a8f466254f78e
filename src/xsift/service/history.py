"""The last minutes as numbers: rates, percentiles, queues, a sample every two seconds; for plots in the console.

The metrics count from the start on. Here they are looked at every two seconds, and the differences are kept: so many
documents a second, and the percentiles of what was timed within these two seconds. In memory, of this server alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from prometheus_client import Counter, Histogram

from xsift.service.metrics import Metrics

__all__ = ["History"]

EVERY_SECONDS = 2.0
KEPT = 450  # samples: a quarter of an hour

RATES = ("documents", "bytes", "broken", "matches", "candidates", "deliveries", "sent", "retries", "dead", "requests")
TIMES = ("match", "queue", "publish", "commit", "lag")
Buckets = list[tuple[float, float]]
"""Upper bounds, and how many were at most that."""


class History:
    """Takes samples of the metrics."""

    def __init__(self, metrics: Metrics, gauges: Callable[[], dict[str, float]]) -> None:
        self._metrics = metrics
        self._gauges = gauges
        self._samples: deque[dict[str, float]] = deque(maxlen=KEPT)
        self._at = time.time()
        self._totals = self._count()
        self._buckets = self._look()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._go_on())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def after(self, at: float) -> list[dict[str, float]]:
        """The samples that were taken after a time."""
        return [sample for sample in self._samples if sample["at"] > at]

    @property
    def latest(self) -> dict[str, float]:
        """The last sample; empty in the first seconds."""
        return self._samples[-1] if self._samples else {}

    async def _go_on(self) -> None:
        while True:
            await asyncio.sleep(EVERY_SECONDS)
            self.take()

    def take(self) -> None:
        """Takes a sample of the time since the last one."""
        now, totals, buckets = time.time(), self._count(), self._look()
        seconds = max(now - self._at, 0.001)
        sample: dict[str, float] = {"at": round(now, 3), **self._gauges()}
        for name in RATES:
            sample[name] = round((totals[name] - self._totals[name]) / seconds, 3)
        for name in TIMES:
            new = _difference(buckets[name], self._buckets[name])
            for percent in (50, 99):
                found = percentile(new, percent / 100)
                if found is not None:
                    sample[f"{name}_p{percent}"] = round(found, 6)
        self._at, self._totals, self._buckets = now, totals, buckets
        self._samples.append(sample)

    def _count(self) -> dict[str, float]:
        return {name: total(getattr(self._metrics, name)) for name in RATES}

    def _look(self) -> dict[str, Buckets]:
        return {name: buckets_of(getattr(self._metrics, f"{name}_seconds")) for name in TIMES}


def total(counter: Counter) -> float:
    """A counter, all labels together."""
    return sum(sample.value for sample in next(iter(counter.collect())).samples if sample.name.endswith("_total"))


def buckets_of(histogram: Histogram) -> Buckets:
    """A histogram, all labels together."""
    found: dict[float, float] = {}
    for sample in next(iter(histogram.collect())).samples:
        if sample.name.endswith("_bucket"):
            bound = float(sample.labels["le"])
            found[bound] = found.get(bound, 0.0) + sample.value
    return sorted(found.items())


def _difference(now: Buckets, before: Buckets) -> Buckets:
    earlier = dict(before)
    return [(bound, number - earlier.get(bound, 0.0)) for bound, number in now]


def percentile(buckets: Buckets, share: float) -> float | None:
    """About the value that this share is at most, taken as spread evenly within its bucket; None if there is none."""
    number = buckets[-1][1] if buckets else 0.0
    if not number:
        return None
    wanted = share * number
    for (lower, below), (upper, upto) in pairwise([(0.0, 0.0), *buckets]):
        if upto >= wanted and upto > below:
            if upper == float("inf"):
                return lower
            return lower + (upper - lower) * (wanted - below) / (upto - below)
    return None


def as_columns(samples: list[dict[str, float]]) -> dict[str, list[Any]]:
    """Samples turned round: a list for each name, with null where there was nothing to measure."""
    names = dict.fromkeys(name for sample in samples for name in sample)
    return {name: [sample.get(name) for sample in samples] for name in names}
