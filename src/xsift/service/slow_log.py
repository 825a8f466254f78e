"""The slow log: which document was slow, and which subscriptions made it so.

Documents are matched some at a time, all subscriptions at once, so what is known is that a batch was slow. Who did
it is found out beside the pool: each document is matched again alone, and the subscriptions that were evaluated on
the slow ones one by one. That is done for one batch at a time; what is slow meanwhile is only counted.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TYPE_CHECKING

import xsift
from xsift.service.live_set import Found, Snapshot
from xsift.service.metrics import Metrics

if TYPE_CHECKING:
    from xsift.service.publishing import Incoming, Job, Receipt

__all__ = ["SlowLog"]

log = logging.getLogger("xsift.service.slow")

MOST_TRIED = 200  # subscriptions of a document that are looked at one by one
MOST_NAMED = 5


class SlowLog:
    """Looks into batches that were slow, on a thread of its own."""

    def __init__(self, seconds: float, metrics: Metrics) -> None:
        self._seconds = seconds
        self._metrics = metrics
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="xsift-slow-log")
        self._busy = Lock()

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def look_into(self, snapshot: Snapshot, jobs: Sequence[Job], found: Sequence[Found]) -> None:
        """A batch took longer than a document may."""
        if not self._busy.acquire(blocking=False):
            self._metrics.slow.inc()
            return
        pairs = [pair for job in jobs for pair in zip(job.documents, job.receipts, strict=True)]
        self._thread.submit(self._look_into, snapshot, pairs, found)

    def _look_into(
        self, snapshot: Snapshot, documents: Sequence[tuple[Incoming, Receipt]], found: Sequence[Found]
    ) -> None:
        try:
            for (incoming, receipt), result in zip(documents, found, strict=True):
                if result.error is None:
                    self._time(snapshot, incoming, receipt, result)
        except Exception:
            log.exception("the slow log failed")
        finally:
            self._busy.release()

    def _time(self, snapshot: Snapshot, incoming: Incoming, receipt: Receipt, result: Found) -> None:
        document = xsift.Document(incoming.body, encoding=incoming.encoding)
        started = time.thread_time()
        snapshot.match([document])
        seconds = time.thread_time() - started
        if seconds < self._seconds:
            return
        self._metrics.slow.inc()
        taken = {place: snapshot.seconds_of(place, document) for place in result.evaluated[:MOST_TRIED]}
        slowest = sorted(taken.items(), key=lambda item: -item[1])[:MOST_NAMED]
        log.warning(
            "slow document",
            extra={
                "document": receipt.id,
                "label": incoming.label,
                "bytes": len(incoming.body),
                "milliseconds": round(seconds * 1000, 1),
                "matches": len(result.caught),
                "candidates": len(result.evaluated),
                "slowest": [
                    {
                        "owner": snapshot.owner(place),
                        "subscription": snapshot.id(place),
                        "milliseconds": round(alone * 1000, 1),
                    }
                    for place, alone in slowest
                ],
            },
        )
