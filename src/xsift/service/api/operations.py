"""For operators: is it alive, is it ready, what does it do."""

from __future__ import annotations

import time
from typing import Any

from starlette.responses import Response

from xsift.service.api import models
from xsift.service.api.problems import Problem
from xsift.service.api.routes import Call, Parameter, Routes, json_response
from xsift.service.history import EVERY_SECONDS, as_columns, buckets_of, percentile, total
from xsift.service.parts import Parts
from xsift.service.store import deliveries
from xsift.service.threads import cpu_seconds

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
    if not call.parts.settings.open_metrics:
        caller = await call.gate.caller(call.request)
        if not caller.is_admin:
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
    metrics.breakers.set(parts.webhooks.spared)
    for structure, size in snapshot.memory().items():
        metrics.index_bytes.labels(structure).set(size)
    for purpose, seconds in cpu_seconds().items():
        metrics.thread_seconds.labels(purpose).set(seconds)
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


@routes.add(
    "GET",
    "/history",
    "The last quarter of an hour on this server, a sample every two seconds: rates, percentiles, queues.",
    roles=["admin"],
    gives=models.Samples,
    parameters=[Parameter("after", "Only samples after this time, in seconds since 1970.", {"type": "number"})],
)
async def history(call: Call) -> Response:
    text = call.query("after") or "0"
    try:
        after = float(text)
    except ValueError as error:
        raise Problem(422, "bad-parameter", f"after is {text[:50]!r}", hint="seconds since 1970") from error
    samples = call.parts.history.after(after)
    return json_response({"now": time.time(), "every": EVERY_SECONDS, "samples": as_columns(samples)})


@routes.add(
    "GET",
    "/owners",
    "Owners of subscriptions, with how many each has.",
    roles=["admin"],
    gives=models.Collection,
)
async def owners(call: Call) -> Response:
    found = sorted(call.parts.live_set.owners().items())
    return json_response({"items": [{"owner": owner, "subscriptions": number} for owner, number in found]})


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
    return {name: total(metric) for name, metric in names.items()}


def _percentiles(histogram: Any) -> dict[str, float]:
    """The median and the 99th percentile, about, since the start."""
    buckets = buckets_of(histogram)
    found = {"count": buckets[-1][1] if buckets else 0.0}
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        value = percentile(buckets, share)
        if value is not None:
            found[name] = value
    return found
