"""Keys, the session of the console, the audit log."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection
from starlette.responses import Response

from xsift.service.api import models
from xsift.service.api.problems import Problem
from xsift.service.api.routes import Call, Parameter, Routes, json_response
from xsift.service.api.security import COOKIE
from xsift.service.store import keys

__all__ = ["routes"]

routes = Routes("administration")


@routes.add(
    "POST",
    "/keys",
    "Make an API key. The answer is the only place where it is shown.",
    roles=["admin"],
    takes=models.KeyIn,
    gives=models.Key,
    statuses=(201, 422),
)
async def create_key(call: Call) -> Response:
    wanted = await call.model(models.KeyIn)

    def work(connection: Connection) -> dict[str, Any]:
        if "admin" not in wanted.roles and not keys.any_keys(connection):
            raise Problem(
                422, "no-admin", "the first key must be an admin's", hint="from then on nobody gets in without a key"
            )
        id, key = keys.create(connection, wanted.owner, list(wanted.roles), wanted.name)
        keys.note(connection, call.caller, "create-key", wanted.owner, id, roles=list(wanted.roles))
        row = next(row for row in keys.list_keys(connection) if row.id == id)
        return {**_shown(row), "key": key}

    answer = await call.parts.writer.run(work)
    call.gate.forget()
    await call.gate.refresh()
    return json_response(answer, 201)


def _shown(row: Any) -> dict[str, Any]:
    return {**row._mapping, "roles": row.roles.split(",")}


@routes.add("GET", "/keys", "The keys there are, without what they are.", roles=["admin"], gives=models.Collection)
async def list_keys(call: Call) -> Response:
    rows = await call.parts.reads.run(keys.list_keys)
    return json_response({"items": [_shown(row) for row in rows], "next": None})


@routes.add("DELETE", "/keys/{id}", "Revoke a key.", roles=["admin"], statuses=(204, 404))
async def revoke_key(call: Call) -> Response:
    id = call.path("id")

    def work(connection: Connection) -> None:
        keys.revoke(connection, id)
        keys.note(connection, call.caller, "revoke-key", call.caller.owner, id)

    await call.parts.writer.run(work)
    call.gate.forget()
    return Response(status_code=204)


@routes.add(
    "GET",
    "/session",
    "Who the caller is.",
    roles=["publish", "subscribe", "admin"],
    gives=models.Session,
    statuses=(200, 401),
)
async def session(call: Call) -> Response:
    return json_response(
        {"owner": call.caller.owner, "roles": sorted(call.caller.roles), "needs_key": call.gate.needs_key}
    )


@routes.add(
    "POST",
    "/session",
    "Sign in to the console: the key that comes with this request is kept in a cookie that no script can read.",
    roles=["publish", "subscribe", "admin"],
    gives=models.Session,
    statuses=(200, 401),
)
async def sign_in(call: Call) -> Response:
    response = json_response({"owner": call.caller.owner, "roles": sorted(call.caller.roles)})
    scheme, _, key = call.request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and call.gate.needs_key:
        secure = call.request.url.scheme == "https"
        response.set_cookie(COOKIE, key.strip(), httponly=True, samesite="strict", secure=secure, path="/")
    return response


@routes.add("DELETE", "/session", "Sign out.", statuses=(204,))
async def sign_out(call: Call) -> Response:
    response = Response(status_code=204)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict", path="/")
    return response


@routes.add(
    "GET",
    "/audit",
    "Who changed what, the latest first; an owner sees what concerns it.",
    roles=["subscribe", "admin"],
    gives=models.Collection,
    parameters=[
        Parameter("most", "At most 1,000.", {"type": "integer"}),
        Parameter("after", "The `next` of the page before.", {"type": "integer"}),
        Parameter("owner", "About whom; for admins."),
    ],
)
async def audit(call: Call) -> Response:
    owner, most = call.owner_or_all(), call.number("most", 100, 1, 1000)
    before = call.number("after", 0, 0, 999_999_999) or None
    rows = await call.parts.reads.run(
        lambda connection: keys.page_of_audit(connection, owner=owner, before=before, most=most)
    )
    items = [dict(row._mapping) for row in rows]
    return json_response({"items": items, "next": str(items[-1]["number"]) if len(items) == most else None})
