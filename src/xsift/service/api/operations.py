"""For operators: is it alive, is it ready, what does it do."""

from __future__ import annotations

import time
from typing import Any

from starlette.responses import Response

from xsift.service.api.routes import Call, Routes, json_response
from xsift.service.parts import Parts
from xsift.service.store import deliveries

__all__ = ["routes"]

routes = Routes("operations")


@routes.add("GET", "/healthz", "Whether the process is alive.", gives="text/plain")
async def health(call: Call) -> Response:
    return Response("alive\n", media_type="text/plain")


@routes.add(
    "GET",
    "/readyz",
    "Whether documents are taken: the set is loaded, the disk takes writes.",
    gives="text/plain",
    statuses=(200, 503),
)
async def readiness(call: Call) -> Response:
    parts = call.parts
    if not parts.ready:
        return Response("starting or stopping\n", 503, media_type="text/plain")
    if not parts.writer.healthy:
        return Response("the last transaction failed: is the disk full?\n", 503, media_type="text/plain")
    return Response("ready\n", media_type="text/plain")


@routes.add("GET", "/metrics", "Metrics, for Prometheus.", gives="text/plain")
async def metrics(call: Call) -> Response:
    if call.gate.needs_key and not call.parts.settings.open_metrics:
        caller = await call.gate.caller(call.request)
        if not caller.is_admin:
            from xsift.service.api.problems import Problem

            raise Problem(403, "not-allowed", "metrics are for admins", hint="or set open_metrics")
    await refresh_gauges(call.parts)
    return Response(call.parts.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


async def refresh_gauges(parts: Parts) -> dict[str, tuple[int, float]]:
    """Brings what is not counted but looked at up to date."""
    metrics, snapshot = parts.metrics, parts.live_set.snapshot
    metrics.match_queue.set(parts.publisher.waiting)
    metrics.write_queue.set(parts.writer.depth)
    metrics.set_size.set(snapshot.size)
    metrics.set_version.set(snapshot.version)
    metrics.set_refused.set(parts.live_set.refused)
    for structure, size in snapshot.memory().items():
        metrics.index_bytes.labels(structure).set(size)
    waiting = await parts.reads.run(deliveries.waiting)
    now = time.time()
    for kind in ("pull", "webhook", "kafka"):
        number, oldest = waiting.get(kind, (0, 0.0))
        metrics.waiting.labels(kind).set(number)
        metrics.oldest.labels(kind).set(now - oldest if oldest else 0)
    return waiting


@routes.add("GET", "/status", "What an operator wants to see at a glance, as JSON.", roles=["admin"])
async def status(call: Call) -> Response:
    parts = call.parts
    waiting = await refresh_gauges(parts)
    snapshot = parts.live_set.snapshot
    now = time.time()
    return json_response(
        {
            "ready": parts.ready and parts.writer.healthy,
            "set": {
                "version": snapshot.version,
                "subscriptions": snapshot.size,
                "refused": parts.live_set.refused,
                "memory": snapshot.memory(),
            },
            "queues": {
                "documents": parts.publisher.waiting,
                "writes": parts.writer.depth,
                "couriers": parts.couriers.at_work,
                "deliveries": {
                    kind: {"waiting": number, "oldest_seconds": now - oldest if oldest else 0}
                    for kind, (number, oldest) in waiting.items()
                },
            },
            "totals": _totals(parts),
            "seconds": {
                name: _percentiles(getattr(parts.metrics, f"{name}_seconds"))
                for name in ("match", "queue", "commit", "publish", "swap")
            },
        }
    )


def _totals(parts: Parts) -> dict[str, float]:
    names = {
        "documents": parts.metrics.documents,
        "broken": parts.metrics.broken,
        "matches": parts.metrics.matches,
        "deliveries": parts.metrics.deliveries,
        "retries": parts.metrics.retries,
        "dead_letters": parts.metrics.dead,
        "dropped": parts.metrics.dropped,
        "slow": parts.metrics.slow,
    }
    return {
        name: sum(sample.value for sample in next(iter(metric.collect())).samples if sample.name.endswith("_total"))
        for name, metric in names.items()
    }


def _percentiles(histogram: Any) -> dict[str, float]:
    """Upper bounds of the median and the 99th percentile, since the start."""
    buckets = [
        (float(sample.labels["le"]), sample.value)
        for sample in next(iter(histogram.collect())).samples
        if sample.name.endswith("_bucket")
    ]
    total = buckets[-1][1] if buckets else 0
    if not total:
        return {"count": 0}
    found: dict[str, float] = {"count": total}
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        bound = next(bound for bound, count in buckets if count >= share * total)
        found[name] = bound if bound != float("inf") else buckets[-2][0]
    return found
