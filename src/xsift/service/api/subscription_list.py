"""Subscriptions as lists: filtered, sorted, a page at a time; or all of them as NDJSON."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from pydantic_core import from_json, to_json
from sqlalchemy import Connection, Row
from starlette.responses import Response, StreamingResponse

from xsift.service.api import models
from xsift.service.api.problems import Problem
from xsift.service.api.routes import Call, Parameter, Routes, json_response
from xsift.service.api.subscriptions import OWNER, shown
from xsift.service.store import subscriptions as store
from xsift.service.store.subscriptions import Filter

__all__ = ["routes"]

routes = Routes("subscriptions")

LONGEST_CURSOR = 2000
Ranked = list[tuple[int, int]]
Page = tuple[list[Row[Any]], list[Any] | None]
"""Rows, and where the next page begins."""


@routes.add(
    "GET",
    "/subscriptions",
    "Subscriptions, a page at a time; or all of them as NDJSON.",
    roles=["subscribe"],
    gives=models.Collection,
    parameters=[
        OWNER,
        Parameter("most", "Of a page, at most 1,000.", {"type": "integer"}),
        Parameter("after", "The `next` of the page before."),
        Parameter("prefix", "Ids that begin with this."),
        Parameter("contains", "Ids or expressions that contain this."),
        Parameter("subscriber", "Those of one subscriber."),
        Parameter("label", "NAME=VALUE; may be given several times."),
        Parameter(
            "sort",
            "By owner and id; the latest change, the most matches or the most failures in the last minutes first.",
            {"enum": ["id", "changed", "matches", "failures"]},
        ),
        Parameter("count", "`true`: the answer also has the `total`.", {"enum": ["true"]}),
        Parameter("format", "`ndjson`: all, streamed, in the form that an import takes.", {"enum": ["ndjson"]}),
    ],
)
async def list_subscriptions(call: Call) -> Response:
    filter = Filter(
        call.owner_or_all(), call.query("subscriber"), call.query("prefix"), call.query("contains"), _labels(call)
    )
    if call.choice("format", "", "ndjson") == "ndjson":
        return StreamingResponse(_export(call, filter), media_type="application/x-ndjson")
    most, after = call.number("most", 100, 1, 1000), _place(call.query("after"))
    ask, counts = _asked(call, filter, after, most), call.choice("count", "", "true")
    async with call.gate.use(call.caller.owner).searches:
        rows, next_ = await call.parts.reads.run(ask)
        total = await call.parts.reads.run(lambda connection: store.count(connection, filter)) if counts else None
    answer: dict[str, Any] = {
        "items": [shown(row, call) for row in rows],
        "next": None if next_ is None else _cursor(next_),
    }
    return json_response(answer if total is None else answer | {"total": total})


def _asked(call: Call, filter: Filter, after: list[Any] | None, most: int) -> Any:
    """The question to the store, as the sort order wants it."""
    match call.choice("sort", "id", "changed", "matches", "failures"):
        case "changed":
            return partial(_by_change, filter=filter, before=_number(after), most=most)
        case "matches":
            ranked = call.parts.activity.ranked("matches")
            return partial(_by_rank, filter=filter, ranked=ranked, after=after, most=most)
        case "failures":
            ranked = call.parts.activity.ranked("failures")
            return partial(_by_rank, filter=filter, ranked=ranked, after=after, most=most)
        case _:
            return partial(_by_id, filter=filter, after=_names(after), most=most)


def _by_id(connection: Connection, filter: Filter, after: tuple[str, str] | None, most: int) -> Page:
    rows = store.page(connection, filter, after=after, most=most)
    return rows, [rows[-1].owner, rows[-1].id] if len(rows) == most else None


def _by_change(connection: Connection, filter: Filter, before: int | None, most: int) -> Page:
    rows = store.latest(connection, filter, before=before, most=most)
    return rows, [rows[-1].row] if len(rows) == most else None


def _by_rank(connection: Connection, filter: Filter, ranked: Ranked, after: list[Any] | None, most: int) -> Page:
    """Those that were counted in the last minutes, which are few, and then all others by owner and id. Counts move
    while somebody turns pages: then a row may be shown twice, or not.
    """
    rows: list[Row[Any]] = []
    if after is None or len(after) == 1:
        begin = _number(after) or 0
        while begin < len(ranked):
            some = [row for row, _ in ranked[begin : begin + store.CHUNK]]
            there = store.among(connection, some, filter)
            for number in some:
                begin += 1
                if number in there:
                    rows.append(there[number])
                    if len(rows) == most:
                        return rows, [begin]
        after = None
    counted = {row for row, _ in ranked}
    place = _names(after)
    while True:
        found = store.page(connection, filter, after=place, most=most)
        for row in found:
            place = (row.owner, row.id)
            if row.row not in counted:
                rows.append(row)
                if len(rows) == most:
                    return rows, list(place)
        if len(found) < most:
            return rows, None


def _labels(call: Call) -> dict[str, str]:
    labels = {}
    for text in call.request.query_params.getlist("label"):
        name, separator, value = text.partition("=")
        if not separator or not name or '"' in name or "\x00" in text:
            raise Problem(422, "bad-parameter", f"label is {text[:50]!r}", hint="NAME=VALUE")
        labels[name] = value
    return labels


def _cursor(place: list[Any]) -> str:
    return base64.urlsafe_b64encode(to_json(place)).decode()


def _place(cursor: str | None) -> list[Any] | None:
    if not cursor:
        return None
    try:
        place = from_json(base64.urlsafe_b64decode(cursor[:LONGEST_CURSOR].encode()))
        if not isinstance(place, list):
            raise ValueError
    except ValueError as error:
        raise _no_page() from error
    return place


def _names(place: list[Any] | None) -> tuple[str, str] | None:
    match place:
        case None:
            return None
        case [str(owner), str(id)] if "\x00" not in owner + id:  # PostgreSQL has no such character
            return owner, id
    raise _no_page()


def _number(place: list[Any] | None) -> int | None:
    match place:
        case None:
            return None
        case [int(number)] if 0 <= number < 1 << 62:
            return number
    raise _no_page()


def _no_page() -> Problem:
    return Problem(422, "bad-parameter", "after is not the `next` of a page that was sorted like this")


async def _export(call: Call, filter: Filter) -> AsyncIterator[bytes]:
    after: tuple[str, str] | None = None
    everybody = filter.owner is None
    while True:
        rows = await call.parts.reads.run(partial(store.page, filter=filter, after=after, most=1000))
        if not rows:
            return
        after = (rows[-1].owner, rows[-1].id)
        yield b"".join(to_json(_line(row, everybody)) + b"\n" for row in rows)


def _line(row: Row[Any], everybody: bool) -> dict[str, Any]:
    names = ("id", "xpath", "ordered", "namespaces", "subscriber", "deliver", "labels", "metadata")
    line = {name: row.subscriber_id if name == "subscriber" else getattr(row, name) for name in names}
    return {"owner": row.owner, **line} if everybody else line
