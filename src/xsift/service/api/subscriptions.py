"""Subscriptions: put, looked at, removed, imported. Lists and exports are in subscription_list.py; what is asked
before one is made, in trying.py.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Connection, Row
from starlette.responses import Response

import xsift
from xsift.errors import XsiftError
from xsift.service.api import models
from xsift.service.api.bodies import Line, read_lines, too_long
from xsift.service.api.documents import NDJSON, in_trial
from xsift.service.api.problems import Problem, Stopped, error_json
from xsift.service.api.routes import Call, Parameter, Routes, json_response
from xsift.service.store import keys
from xsift.service.store import subscriptions as store
from xsift.service.store.subscribers import NewSubscribers
from xsift.service.store.subscriptions import Subscription

__all__ = ["OWNER", "checked_name", "routes", "shown"]

routes = Routes("subscriptions")

IMPORT_ROWS = 1000  # rows of an import that are written in one piece: documents wait for no more than that
IMPORT_BYTES = 4 << 20  # or fewer of them, if they are long
MOST_ERRORS = 1000  # that an import's report names
LONGEST_LINE = 256 << 10
_LINE = TypeAdapter(models.ImportLine)
OWNER = Parameter("owner", "For whom; for admins. Default: the caller.")


def checked_name(id: str) -> str:
    """An id out of a path."""
    if not 1 <= len(id) <= 200 or not id.isprintable() or id in (".", ".."):  # which no URL keeps
        raise Problem(422, "bad-id", f"{id[:50]!r} cannot be an id", hint="1 to 200 printable characters, without /")
    return id


def shown(row: Row[Any], call: Call | None = None) -> dict[str, Any]:
    """A row of the store as an answer."""
    answer: dict[str, Any] = {
        "id": row.id,
        "owner": row.owner,
        "xpath": row.xpath,
        "ordered": row.ordered,
        "namespaces": row.namespaces,
        "subscriber": row.subscriber_id,
        "deliver": row.deliver,
        "labels": row.labels,
        "metadata": row.metadata,
        "version": row.added,
        "changed": row.added_at,
        "changed_by": row.added_by,
    }
    if row.removed is not None:
        answer |= {"removed": row.removed_at, "removed_by": row.removed_by}
    elif call is not None:
        answer["matches"], answer["failures"] = call.parts.activity.of(row.row)
        refusal = call.parts.live_set.refusal(row.row)
        if refusal is not None:
            answer["error"] = error_json(refusal)
        last_failure = call.parts.activity.reason(row.row)
        if last_failure is not None:
            answer["last_failure"] = last_failure
    return answer


def _check(rows: Sequence[tuple[str, str, bool, dict[str, str]]], residuals: Any) -> dict[int, XsiftError]:
    """By their place, the expressions that cannot be used. They are compiled as the live set will compile them."""
    trial = xsift.Subscriptions(residuals=residuals)
    columns = {
        "id": [str(place) for place in range(len(rows))],
        "xpath": [row[1] for row in rows],
        "ordered": [row[2] for row in rows],
    }
    table = pa.table(columns)
    if any(row[3] for row in rows):
        mappings = pa.array([list(row[3].items()) for row in rows], pa.map_(pa.string(), pa.string()))
        table = table.append_column("namespaces", mappings)
    return {int(id): error for id, error in trial.add_many(table, errors="collect")}


def _named(error: XsiftError, id: str) -> XsiftError:
    if hasattr(error, "id"):
        error.id = id
    return error


# One


@routes.add(
    "PUT",
    "/subscriptions/{id}",
    "Add a subscription, or replace it. The next document is matched with it.",
    roles=["subscribe"],
    takes=models.SubscriptionIn,
    gives=models.SubscriptionOut,
    statuses=(200, 201, 422, 429),
    parameters=[OWNER],
)
async def put(call: Call) -> Response:
    id, owner = checked_name(call.path("id")), call.owner()
    wanted = await call.model(models.SubscriptionIn)
    residuals = call.parts.settings.matching.residuals
    row = (id, wanted.xpath, wanted.ordered, wanted.namespaces)
    refused = await in_trial(call, lambda: _check([row], residuals))
    if refused:
        raise _named(refused[0], id)
    most = _limit(call, call.parts.live_set.count(owner) + 1)
    subscription, new = _subscription(id, wanted, owner), _new_subscribers(call)

    def work(connection: Connection) -> tuple[store.Put, Row[Any]]:
        result = store.put_many(connection, owner, [subscription], call.caller.actor, new, most=most)
        if result.added or result.replaced:
            keys.note(
                connection, call.caller, "put-subscription", owner, id, xpath=wanted.xpath, version=result.version
            )
        return result, store.get(connection, owner, id)

    result, found = await call.parts.writer.run(work)
    await call.parts.live_set.reach(result.version)
    return json_response(shown(found), 201 if result.added else 200)


def _subscription(id: str, wanted: models.SubscriptionIn, owner: str) -> Subscription:
    return Subscription(
        id=id,
        xpath=wanted.xpath,
        subscriber=wanted.subscriber or owner,
        ordered=wanted.ordered,
        deliver=wanted.deliver,
        namespaces=wanted.namespaces,
        labels=wanted.labels,
        metadata=wanted.metadata,
    )


def _new_subscribers(call: Call) -> NewSubscribers:
    settings = call.parts.settings
    return NewSubscribers(settings.keep.backlog, settings.limits.subscribers)


def _limit(call: Call, expected: int) -> int | None:
    """The limit of an owner, if so many may pass it: then the store counts, which takes a moment for many."""
    most = call.parts.settings.limits.subscriptions
    return most if expected > most else None


@routes.add(
    "GET",
    "/subscriptions/{id}",
    "A subscription, with how often it matched in the last 15 minutes.",
    roles=["subscribe"],
    gives=models.SubscriptionOut,
    statuses=(200, 404),
    parameters=[OWNER],
)
async def get(call: Call) -> Response:
    owner, id = call.owner(), call.path("id")
    row = await call.parts.reads.run(lambda connection: store.get(connection, owner, id))
    return json_response(shown(row, call))


@routes.add(
    "DELETE",
    "/subscriptions/{id}",
    "Remove a subscription. The next document is not matched with it.",
    roles=["subscribe"],
    statuses=(204, 404),
    parameters=[OWNER],
)
async def delete(call: Call) -> Response:
    owner, id = call.owner(), call.path("id")

    def work(connection: Connection) -> int:
        store.get(connection, owner, id)
        version, _ = store.remove_many(connection, owner, [id], call.caller.actor)
        keys.note(connection, call.caller, "remove-subscription", owner, id, version=version)
        return version

    await call.parts.live_set.reach(await call.parts.writer.run(work))
    return Response(status_code=204)


@routes.add(
    "GET",
    "/subscriptions/{id}/history",
    "Every state that a subscription has had, the latest first.",
    roles=["subscribe"],
    gives=models.Collection,
    statuses=(200, 404),
    parameters=[OWNER],
)
async def history(call: Call) -> Response:
    owner, id = call.owner(), call.path("id")
    rows = await call.parts.reads.run(lambda connection: store.history(connection, owner, id))
    if not rows:
        raise Problem(404, "unknown-id", f"there never was a subscription {id[:200]!r}")
    return json_response({"items": [shown(row) for row in rows], "next": None})


# Many


@dataclass
class _Import:
    """An import under way."""

    call: Call
    owner: str
    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    refused: int = 0
    version: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list)
    expected: dict[str, int] = field(default_factory=dict)
    """By owner: so many subscriptions it has at most; the live set follows a moment later."""
    writing: asyncio.Task[None] | None = None

    async def take_all(self, pieces: AsyncIterator[list[Line]]) -> None:
        """Puts all lines, some at a time."""
        waiting: list[Line] = []
        size = 0
        async for lines in pieces:
            waiting += lines
            size += _bytes_of(lines)
            while len(waiting) >= IMPORT_ROWS or size >= IMPORT_BYTES:
                await self.take(waiting[:IMPORT_ROWS])
                del waiting[:IMPORT_ROWS]
                size = _bytes_of(waiting)
        if waiting:
            await self.take(waiting)
        await self.finish()

    async def take(self, lines: list[Line]) -> None:
        """Puts some lines; those that cannot be used are noted, the others go in. It returns while they are written,
        so that the next lines are read meanwhile.
        """
        parsed = await in_trial(self.call, lambda: self._parse(lines))
        await self.finish()
        self.writing = asyncio.create_task(self._write(parsed))

    async def finish(self) -> None:
        """Waits until what was taken is written."""
        if self.writing is not None:
            writing, self.writing = self.writing, None
            await writing

    async def _write(self, parsed: dict[str, list[Subscription]]) -> None:
        for owner, subscriptions in parsed.items():
            self.expected[owner] = max(self.expected.get(owner, 0), self.call.parts.live_set.count(owner))
            self.expected[owner] += len(subscriptions)
            most = _limit(self.call, self.expected[owner])
            result = await self.call.parts.writer.run(
                partial(self._put, owner=owner, subscriptions=subscriptions, most=most)
            )
            self.added += result.added
            self.replaced += result.replaced
            self.unchanged += result.unchanged
            self.version = max(self.version, result.version)

    def _put(
        self, connection: Connection, owner: str, subscriptions: list[Subscription], most: int | None
    ) -> store.Put:
        caller, new = self.call.caller, _new_subscribers(self.call)
        result = store.put_many(connection, owner, subscriptions, caller.actor, new, most=most)
        if result.added or result.replaced:
            counts = {"added": result.added, "replaced": result.replaced, "version": result.version}
            keys.note(connection, caller, "import-subscriptions", owner, "", **counts)
        return result

    def _parse(self, lines: list[Line]) -> dict[str, list[Subscription]]:
        good: list[tuple[int, models.ImportLine, str]] = []
        for number, line in lines:
            if line is None:
                self._refuse(number, None, too_long(LONGEST_LINE))
                continue
            try:
                parsed = _LINE.validate_json(line)
                owner = parsed.owner or self.owner
                if owner != self.owner and not self.call.caller.is_admin:
                    raise Problem(403, "not-yours", "only an admin may import for another owner")
                good.append((number, parsed, owner))
            except ValidationError as error:
                found = error.errors(include_url=False)[0]
                where = ".".join(str(part) for part in found["loc"])
                self._refuse(
                    number, None, Problem(422, "bad-line", f"{where}: {found['msg']}" if where else found["msg"])
                )
            except XsiftError as error:
                self._refuse(number, parsed.id, error)
        residuals = self.call.parts.settings.matching.residuals
        refused = _check([(row.id, row.xpath, row.ordered, row.namespaces) for _, row, _ in good], residuals)
        usable: dict[str, list[Subscription]] = {}
        for place, (number, row, owner) in enumerate(good):
            if place in refused:
                self._refuse(number, row.id, refused[place])
            else:
                usable.setdefault(owner, []).append(_subscription(row.id, row, owner))
        return usable

    def _refuse(self, line: int, id: str | None, error: XsiftError) -> None:
        self.refused += 1
        if len(self.errors) < MOST_ERRORS:
            self.errors.append({"line": line, **error_json(error), **({"id": id} if id is not None else {})})


def _bytes_of(lines: list[Line]) -> int:
    return sum(len(line) for _, line in lines if line is not None)


@routes.add(
    "POST",
    "/subscriptions",
    "Import subscriptions: NDJSON, a line each. What can be used is added or replaced, the rest is reported.",
    roles=["subscribe"],
    takes=("application/x-ndjson",),
    gives=models.ImportReport,
    statuses=(200, 413, 415, 422, 429),
    parameters=[OWNER],
)
async def import_subscriptions(call: Call) -> Response:
    kind = call.request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in NDJSON:
        raise Problem(
            415, "bad-type", f"{kind[:100]!r} is not taken here", hint="application/x-ndjson, a subscription a line"
        )
    importing = _Import(call, call.owner())
    try:
        await importing.take_all(read_lines(call.request, call.parts.settings.limits.upload_bytes, LONGEST_LINE))
    except XsiftError as error:
        # What was stored before is stored; the lines that were not may be sent again with those that were.
        with contextlib.suppress(XsiftError):
            await importing.finish()
        raise Stopped(error, importing.added + importing.replaced) from error
    importing.errors.sort(key=lambda error: int(error["line"]))
    names = ("added", "replaced", "unchanged", "refused", "version", "errors")
    await call.parts.live_set.reach(importing.version)
    return json_response({name: getattr(importing, name) for name in names})


# Versions of the set


@routes.add(
    "GET",
    "/versions",
    "Versions of the set, the latest first: who changed how many subscriptions, and when.",
    roles=["admin"],
    gives=models.Collection,
    parameters=[
        Parameter("most", "At most 1,000.", {"type": "integer"}),
        Parameter("after", "The `next` of the page before."),
    ],
)
async def versions(call: Call) -> Response:
    most = call.number("most", 100, 1, 1000)
    before = call.number("after", 0, 0, 999_999_999) or None
    rows = await call.parts.reads.run(lambda connection: store.list_versions(connection, before, most))
    items = [dict(row._mapping) for row in rows]
    return json_response({"items": items, "next": str(items[-1]["version"]) if len(items) == most else None})
