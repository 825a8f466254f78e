"""Subscribers: where deliveries go. Streams of events, long polls, acknowledgements, dead letters."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from fnmatch import fnmatchcase
from typing import Any

from pydantic_core import from_json, to_json
from sqlalchemy import Connection, Row, select, update
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from xsift.service.api import models
from xsift.service.api.documents import WHOSE
from xsift.service.api.problems import Problem
from xsift.service.api.routes import PIECE, Call, Parameter, Routes, json_response
from xsift.service.api.security import Standing
from xsift.service.api.subscriptions import OWNER, checked_name
from xsift.service.delivery.events import as_json, gap_event, match_events
from xsift.service.delivery.outbox import SequenceReader
from xsift.service.delivery.webhooks import new_secret, secret_bytes
from xsift.service.store import deliveries, keys
from xsift.service.store import subscribers as store
from xsift.service.store import subscriptions as subscriptions_store
from xsift.service.store.deliveries import StoredDelivery
from xsift.service.store.numbers import delivery_id, parse_delivery_id
from xsift.service.store.schema import subscribers as table

__all__ = ["routes"]

routes = Routes("subscribers")

HEARTBEAT_SECONDS = 15.0  # a comment in a stream, so that nobody on the way takes it for dead
SEND_SECONDS = 60.0  # a client that reads nothing for so long is cut off; it resumes where it was
LONGEST_POLL = 60
PEEKED = 20  # deliveries that a look at a stream begins with
PULSE_SECONDS = 2.0
LARGEST_POLL = 8 << 20  # bytes after which no more deliveries are added to an answer


def shown(row: Row[Any], secret: str | None = None) -> dict[str, Any]:
    """A subscriber as an answer."""
    done = max(row.acknowledged_place, row.dropped_place)
    answer: dict[str, Any] = {
        "id": row.id,
        "owner": row.owner,
        "kind": row.kind,
        "backlog": row.backlog,
        "state": row.state,
        "reason": row.reason,
        "created": row.created,
        "last": delivery_id(row.number, row.last_place),
        "acknowledged": delivery_id(row.number, row.acknowledged_place),
        "waiting": row.last_place - done,
        "dropped": row.dropped,
        "attempts": row.attempts,
    }
    for name in ("url", "topic"):
        if name in row.target:
            answer[name] = row.target[name]
    if row.retry_at > time.time():
        answer["retry_at"] = row.retry_at
    return answer if secret is None else answer | {"secret": secret}


@routes.add(
    "PUT",
    "/subscribers/{id}",
    "Say where deliveries to a subscriber go. What waits for it stays.",
    roles=["subscribe"],
    takes=models.SubscriberIn,
    gives=models.SubscriberOut,
    statuses=(200, 201, 403, 422, 429),
    parameters=[OWNER],
)
async def put(call: Call) -> Response:
    id, owner, settings = checked_name(call.path("id")), call.owner(), call.parts.settings
    wanted = await call.model(models.SubscriberIn)
    secret: str | None = None
    if wanted.url is not None:
        await call.parts.webhooks.check(wanted.url, owner)
    if wanted.kind == "kafka" and not settings.kafka.servers:
        raise Problem(422, "no-kafka", "this server has no Kafka", hint="the operator sets kafka.servers")
    if wanted.topic is not None:
        _check_topic(call, wanted.topic)
    if wanted.secret is not None:
        secret_bytes(wanted.secret)
    backlog = min(wanted.backlog or settings.keep.backlog, settings.keep.largest_backlog)

    def work(connection: Connection) -> tuple[Row[Any], bool]:
        nonlocal secret
        there = connection.execute(select(table).where(table.c.owner == owner, table.c.id == id)).first()
        if there is None:
            store.check_number(connection, owner, 1, settings.limits.subscribers)
        target: dict[str, Any] = {}
        if wanted.url is not None:
            before = there.target.get("secret") if there is not None else None
            if wanted.secret is None and before is None:
                secret = new_secret()
            target = {"url": wanted.url, "secret": wanted.secret or before or secret}
        elif wanted.topic is not None:
            target = {"topic": wanted.topic}
        row, new = store.put(
            connection, owner, id, kind=wanted.kind, target=target, backlog=backlog, state=wanted.state
        )
        detail = {"kind": wanted.kind, "state": wanted.state, "url": wanted.url, "topic": wanted.topic}
        keys.note(connection, call.caller, "put-subscriber", owner, id, **detail)
        return row, new

    row, new = await call.parts.writer.run(work)
    call.parts.couriers.changed(row.number)
    return json_response(shown(row, secret), 201 if new else 200)


def _check_topic(call: Call, topic: str) -> None:
    """Others may read a topic, and do what it says: who may write to which is the operator's to decide."""
    allowed = call.parts.settings.kafka.allow_topics
    if not call.caller.is_admin and not any(fnmatchcase(topic, pattern) for pattern in allowed):
        hint = "an admin may name it, or the operator allows topics: kafka.allow_topics"
        raise Problem(403, "topic-not-allowed", f"deliveries may not go to the topic {topic!r}", hint=hint)


@routes.add(
    "GET",
    "/subscribers/{id}",
    "A subscriber, and how far it has come.",
    roles=["subscribe"],
    gives=models.SubscriberOut,
    statuses=(200, 404),
    parameters=[OWNER],
)
async def get(call: Call) -> Response:
    return json_response(shown(await _find(call)))


async def _find(call: Call) -> Row[Any]:
    owner, id = call.owner(), call.path("id")
    return await call.parts.reads.run(lambda connection: store.find(connection, owner, id))


@routes.add(
    "GET",
    "/subscribers",
    "Subscribers by owner and id.",
    roles=["subscribe"],
    gives=models.Collection,
    parameters=[
        OWNER,
        Parameter("most", "At most 1,000.", {"type": "integer"}),
        Parameter("after", "The `next` of the page before."),
        Parameter("failing", "`true`: those that could not be delivered to lately.", {"enum": ["true"]}),
    ],
)
async def list_subscribers(call: Call) -> Response:
    most, owner = call.number("most", 100, 1, 1000), call.owner_or_all()
    text = call.query("after")
    after = None
    if text:
        first, separator, last = text.partition("/")
        if not separator:
            raise Problem(422, "bad-parameter", "after is not the `next` of a page")
        after = (first, last)
    failing = bool(call.choice("failing", "", "true"))
    rows = await call.parts.reads.run(
        lambda connection: store.page(connection, owner=owner, after=after, most=most, failing=failing)
    )
    next_ = f"{rows[-1].owner}/{rows[-1].id}" if len(rows) == most else None
    return json_response({"items": [shown(row) for row in rows], "next": next_})


@routes.add(
    "DELETE",
    "/subscribers/{id}",
    "Remove a subscriber, its subscriptions, and all that waits for it.",
    roles=["subscribe"],
    statuses=(204, 404),
    parameters=[OWNER],
)
async def delete(call: Call) -> Response:
    owner, id = call.owner(), call.path("id")

    def work(connection: Connection) -> tuple[int, int]:
        row = store.find(connection, owner, id)
        removed = subscriptions_store.remove_of_subscriber(connection, owner, row.number, call.caller.actor)
        store.remove(connection, row.number)
        keys.note(connection, call.caller, "remove-subscriber", owner, id, subscriptions=removed)
        return row.number, subscriptions_store.current_version(connection)

    number, version = await call.parts.writer.run(work)
    call.parts.couriers.changed(number)
    call.parts.outbox.end(number)
    await call.parts.live_set.reach(version)
    return Response(status_code=204)


# Receiving


class _EventStream(Response):
    """Server-sent events, until the client goes or the server stops."""

    media_type = "text/event-stream"

    def __init__(self, call: Call, row: Row[Any], reader: SequenceReader, *, peek: bool) -> None:
        super().__init__(headers={"x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._call, self._row, self._reader = call, row, reader
        self._peek = peek
        self._standing = Standing(call.gate, call.request, call.caller)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        metrics = self._call.parts.metrics
        metrics.streams.inc()
        gone = asyncio.create_task(_until_gone(receive))
        sending = asyncio.create_task(self._send_all(send))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await asyncio.wait({gone, sending}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (gone, sending):
                task.cancel()
            await asyncio.gather(gone, sending, return_exceptions=True)
            metrics.streams.dec()

    async def _send_all(self, send: Send) -> None:
        reader, metrics = self._reader, self._call.parts.metrics
        await _send_body(send, b"retry: 1000\n\n")
        sent, lag = metrics.sent.labels("stream"), metrics.lag_seconds.labels("stream")
        while not reader.closed:
            found = await reader.next(HEARTBEAT_SECONDS)
            body = b""
            if reader.dropped is not None:
                body = gap_event(reader.subscriber, *reader.dropped)
                reader.dropped = None
            if found:
                body += match_events(found, self._row.id)
            if not await self._standing.holds():
                break
            await _send_body(send, body or b": still here\n\n")
            if self._peek:  # somebody looks; nothing was delivered
                continue
            now = time.time()
            sent.inc(len(found))
            for delivery in found:
                lag.observe(max(0.0, now - delivery.at))
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _send_body(send: Send, body: bytes) -> None:
    """Returns when most of it was read."""
    for begin in range(0, len(body), PIECE):
        async with asyncio.timeout(SEND_SECONDS):
            await send({"type": "http.response.body", "body": body[begin : begin + PIECE], "more_body": True})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _attach(call: Call, after: str | None, *, peek: bool = False) -> tuple[Row[Any], SequenceReader]:
    call.under_way.callback(call.gate.enter_stream(call.caller.owner).leave_stream)
    row = await _find(call)
    if after:
        # Who resumes after an event has received it, and all before it.
        place = min(parse_delivery_id(after, row.number), row.last_place)
        if place > row.acknowledged_place and not peek:
            await call.parts.writer.run(lambda connection: deliveries.acknowledge(connection, row.number, place))
    else:
        place = row.acknowledged_place  # what was dropped since then is told
        if peek:
            place = max(place, row.dropped_place, row.last_place - PEEKED)
    reader = await call.parts.outbox.attach(row.number, place, row.owner)
    call.under_way.callback(reader.close)
    return row, reader


@routes.add(
    "GET",
    "/subscribers/{id}/events",
    "Deliveries as server-sent events, in order, from the first that was not acknowledged; or after Last-Event-ID.",
    roles=["subscribe"],
    gives="text/event-stream",
    statuses=(200, 404, 429),
    parameters=[
        OWNER,
        Parameter("after", "Like Last-Event-ID."),
        Parameter(
            "peek",
            "`true`: only look. Begins with the last 20 that wait, and acknowledges nothing.",
            {"enum": ["true"]},
        ),
    ],
    streams=True,
)
async def events(call: Call) -> Response:
    after = call.request.headers.get("last-event-id") or call.query("after")
    peek = bool(call.choice("peek", "", "true"))
    row, reader = await _attach(call, after, peek=peek)
    return _EventStream(call, row, reader, peek=peek)


@routes.add(
    "GET",
    "/subscribers/{id}/deliveries",
    "The next deliveries; waits for one if there is none. They come again until they are acknowledged.",
    roles=["subscribe"],
    gives=models.Deliveries,
    statuses=(200, 404, 429),
    parameters=[
        OWNER,
        Parameter("after", "The id of a delivery: only those after it. This acknowledges nothing."),
        Parameter("wait", "Seconds to wait for one, at most 60; default 0.", {"type": "integer"}),
        Parameter("most", "How many, at most 1,000.", {"type": "integer"}),
    ],
    streams=True,
)
async def poll(call: Call) -> Response:
    wait, most = call.number("wait", 0, 0, LONGEST_POLL), call.number("most", 100, 1, 1000)
    after = call.query("after")
    row, reader = await _attach(call, None)
    if after:
        reader.place = min(parse_delivery_id(after, row.number), row.last_place)
    found = await _poll(call, reader, wait, most)
    dropped = reader.dropped[1] - reader.dropped[0] + 1 if reader.dropped else 0
    call.parts.metrics.sent.labels("poll").inc(len(found))
    body = b",".join(as_json(delivery, row.id) for delivery in found)
    return Response(b'{"deliveries":[' + body + b'],"dropped":%d}' % dropped, media_type="application/json")


async def _poll(call: Call, reader: SequenceReader, wait: int, most: int) -> list[StoredDelivery]:
    """Waits for the first, then takes what is there."""
    gone = asyncio.create_task(_until_gone(call.request.receive))
    reading = asyncio.create_task(reader.next(wait or 0.5))
    try:
        if not wait and reader.caught_up:
            return []
        await asyncio.wait({gone, reading}, return_when=asyncio.FIRST_COMPLETED)
        found = reading.result() if reading.done() else []
        while found and len(found) < most and not reader.caught_up:
            if sum(len(delivery.content) + len(delivery.body) for delivery in found) > LARGEST_POLL:
                break  # the rest comes with the next one
            found += await reader.next(0.5)
        return found[:most]
    finally:
        gone.cancel()
        reading.cancel()
        await asyncio.gather(gone, reading, return_exceptions=True)


@routes.add(
    "POST",
    "/subscribers/{id}/ack",
    "Acknowledge a delivery and all before it: they are forgotten.",
    roles=["subscribe"],
    takes=models.Acknowledgement,
    gives=models.SubscriberOut,
    statuses=(200, 404, 422),
    parameters=[OWNER],
)
async def acknowledge(call: Call) -> Response:
    row = await _find(call)
    wanted = await call.model(models.Acknowledgement)
    place = parse_delivery_id(wanted.id, row.number)
    if place > row.last_place:
        raise Problem(404, "unknown-delivery", f"there is no delivery {wanted.id!r} yet")

    def work(connection: Connection) -> Row[Any]:
        deliveries.acknowledge(connection, row.number, place)
        return store.by_number(connection, row.number)

    return json_response(shown(await call.parts.writer.run(work)))


# Dead letters


@routes.add(
    "GET",
    "/dead-letters",
    "Deliveries that were given up, the latest first.",
    roles=["subscribe"],
    gives=models.Collection,
    parameters=[
        OWNER,
        Parameter("subscriber", "Of one subscriber."),
        Parameter("most", "At most 1,000; fewer if they are large.", {"type": "integer"}),
        Parameter("after", "The `next` of the page before."),
        Parameter("brief", "`true`: without documents and fragments.", {"enum": ["true"]}),
    ],
)
async def dead_letters(call: Call) -> Response:
    owner, most, named = call.owner_or_all(), call.number("most", 100, 1, 1000), call.query("subscriber")
    after, brief = _grave(call.query("after")), bool(call.choice("brief", "", "true"))

    def ask(connection: Connection) -> dict[str, Any]:
        number = store.find(connection, call.owner(), named).number if named else None
        rows, more = deliveries.dead(connection, owner=owner, subscriber=number, most=most, after=after, brief=brief)
        next_ = f"{rows[-1].failed_at!r}/{delivery_id(rows[-1].subscriber, rows[-1].place)}" if more else None
        return {"items": [_dead(row, brief=brief) for row in rows], "next": next_}

    return json_response(await call.parts.reads.run(ask))


def _grave(after: str | None) -> deliveries.Grave | None:
    """Where a page of dead letters begins."""
    if not after:
        return None
    failed_at, _, id = after.partition("/")
    try:
        return (float(failed_at), *_numbers_of(id))
    except ValueError as error:
        raise Problem(422, "bad-parameter", "after is not the `next` of a page") from error


def _numbers_of(id: str) -> tuple[int, int]:
    """The subscriber and the place that the id of a delivery names. Raises ValueError if it is none."""
    subscriber, _, place = id.partition("-")
    if not all(number.isascii() and number.isdigit() and len(number) <= 18 for number in (subscriber, place)):
        raise ValueError(id)
    return int(subscriber), int(place)


def _delivery_of(row: Any) -> StoredDelivery:
    body = bytes(row.body or b"")
    return StoredDelivery(
        row.subscriber, row.place, row.document, row.at, bytes(row.content), row.whole, body, row.encoding
    )


def _dead(row: Any, *, brief: bool) -> dict[str, Any]:
    delivery = from_json(as_json(_delivery_of(row), row.subscriber_id))
    if brief:
        matches = [{"id": match["id"]} for match in delivery["matches"]]
        delivery = {"document": delivery["document"], "matches": matches}
    return {
        "id": delivery_id(row.subscriber, row.place),
        "subscriber": row.subscriber_id,
        "owner": row.owner,
        "made": row.at,
        "failed": row.failed_at,
        "attempts": row.attempts,
        "reason": row.reason,
        "delivery": delivery,
    }


def _dead_letter(connection: Connection, id: str, owner: str | None) -> Any:
    with contextlib.suppress(ValueError):
        subscriber, place = _numbers_of(id)
        found, _ = deliveries.dead(connection, owner=owner, subscriber=subscriber, place=place)
        if found:
            return found[0]
    raise Problem(404, "unknown-delivery", f"there is no dead letter {id[:40]!r}")


@routes.add(
    "POST",
    "/dead-letters/{id}/replay",
    "Send a dead letter again, now, with the id that it had. If it is received, it is a dead letter no more.",
    roles=["subscribe"],
    statuses=(200, 404, 409, 502),
    parameters=[OWNER],
)
async def replay(call: Call) -> Response:
    id, owner = call.path("id"), call.owner_or_all()
    row = await call.parts.reads.run(lambda connection: _dead_letter(connection, id, owner))
    subscriber = await call.parts.reads.run(lambda connection: store.by_number(connection, row.subscriber))
    if subscriber.kind == "pull":
        raise Problem(409, "not-sent", "this subscriber is not sent to any more: it asks for its deliveries")
    verdict = await call.parts.couriers.send_once(subscriber, _delivery_of(row))
    if not verdict.done:
        raise Problem(502, "not-received", f"it failed again: {verdict.reason}")

    def work(connection: Connection) -> None:
        deliveries.exhume(connection, row.subscriber, row.place)
        if subscriber.state == "ended":
            connection.execute(
                update(table).where(table.c.number == subscriber.number).values(reason=subscriber.reason)
            )
        keys.note(connection, call.caller, "replay-dead-letter", subscriber.owner, id)

    await call.parts.writer.run(work)
    return json_response({"id": id, "received": True})


@routes.add(
    "DELETE",
    "/dead-letters/{id}",
    "Forget a dead letter.",
    roles=["subscribe"],
    statuses=(204, 404),
    parameters=[OWNER],
)
async def forget(call: Call) -> Response:
    id, owner = call.path("id"), call.owner_or_all()

    def work(connection: Connection) -> None:
        row = _dead_letter(connection, id, owner)
        deliveries.exhume(connection, row.subscriber, row.place)
        keys.note(connection, call.caller, "forget-dead-letter", row.owner, id)

    await call.parts.writer.run(work)
    return Response(status_code=204)


# For people who look


@routes.add(
    "GET",
    "/activity",
    "What comes in, as server-sent events: documents, broken ones with their error, and a pulse with the time and, "
    "for admins, the rates. A view, no delivery.",
    roles=["publish", "subscribe"],
    gives="text/event-stream",
    parameters=[WHOSE],
    streams=True,
)
async def activity(call: Call) -> Response:
    owner = call.owner_or_all()
    call.under_way.callback(call.gate.enter_stream(call.caller.owner).leave_stream)

    def shown_event(event: dict[str, Any]) -> bytes:
        if owner not in (None, event["owner"]):
            return b""
        if not call.caller.is_admin:  # how many subscriptions others have that match is theirs to know
            event = {name: value for name, value in event.items() if name not in ("matches", "deliveries")}
        return b"event: document\ndata: " + to_json(event) + b"\n\n"

    def pulse() -> bytes:
        rates = call.parts.history.latest if call.caller.is_admin else {}
        return b"event: pulse\ndata: " + to_json({"now": time.time(), "rates": rates}) + b"\n\n"

    async def stream() -> AsyncIterator[bytes]:
        queue = call.parts.activity.watch()
        try:
            yield b"retry: 1000\n\n" + b"".join(map(shown_event, list(call.parts.activity.feed)))
            pulsed = 0.0
            standing = Standing(call.gate, call.request, call.caller)
            while call.parts.ready and await standing.holds():
                if time.monotonic() - pulsed >= PULSE_SECONDS:
                    pulsed = time.monotonic()
                    yield pulse()
                with contextlib.suppress(TimeoutError):
                    yield shown_event(await asyncio.wait_for(queue.get(), PULSE_SECONDS))
        finally:
            call.parts.activity.unwatch(queue)

    return StreamingResponse(stream(), media_type="text/event-stream", headers={"x-accel-buffering": "no"})
