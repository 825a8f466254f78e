"""Routes: a table of what there is, who may use it, what goes in and what comes out.

The same table makes the application and its OpenAPI description, so that they cannot differ. An endpoint is a
coroutine function of a `Call`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel
from pydantic_core import to_json
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute
from starlette.types import Message, Receive, Scope, Send

from xsift.service.api.bodies import read_json
from xsift.service.api.problems import Problem, problem_response, status_of
from xsift.service.api.security import Gate
from xsift.service.parts import Parts
from xsift.service.store.keys import Caller

__all__ = ["Call", "Parameter", "PlainAnswer", "Route", "Routes", "add_headers", "as_starlette", "json_response"]

log = logging.getLogger("xsift.service.api")
Model = TypeVar("Model", bound=BaseModel)

# Answers of the API are data: a browser shall neither run nor frame nor keep nor guess at them.
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]
LARGEST_JSON = 1 << 20
PIECE = 256 << 10  # bytes of an answer that are sent at a time
PATIENCE_SECONDS = 10.0  # with a client that goes on sending what was refused


@dataclass(frozen=True)
class Parameter:
    """A parameter of the query."""

    name: str
    description: str
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})


@dataclass(frozen=True)
class Route:
    """An endpoint, and all that is to be said about it."""

    method: str
    path: str
    endpoint: Callable[[Call], Awaitable[Response]]
    summary: str
    tag: str
    roles: frozenset[str]
    """Any of these will do; nobody needs a key for a route without roles."""
    takes: type[BaseModel] | Sequence[str] | None
    """A model, or the media types of what goes in."""
    gives: type[BaseModel] | str | None
    """A model, or the media type of what comes out."""
    statuses: tuple[int, ...]
    parameters: tuple[Parameter, ...]
    streams: bool


class _Headers(Headers):
    """Headers that are found by one look-up; Starlette's look through all of them each time."""

    def __init__(self, raw: list[tuple[bytes, bytes]]) -> None:
        super().__init__(raw=raw)
        # Of headers that come twice the first one counts.
        self._named = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(raw)}

    def get(self, key: str, default: Any = None) -> Any:
        return self._named.get(key.lower(), default)

    def __getitem__(self, key: str) -> str:
        return self._named[key.lower()]

    def __contains__(self, key: Any) -> bool:
        return key.lower() in self._named


class _Request(Request):
    @property
    def headers(self) -> Headers:
        if not hasattr(self, "_headers"):
            self._headers = _Headers(self.scope["headers"])
        return self._headers


class _Body:
    """The body of a request, which knows whether all of it was read."""

    __slots__ = ("_receive", "is_over")

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.is_over = False

    async def __call__(self) -> Message:
        message = await self._receive()
        self.is_over = not message.get("more_body", False)
        return message

    async def read_to_the_end(self, headers: Headers) -> None:
        """Reads what is left of a body that is refused. A connection that is closed while the client sends is reset,
        and then the client never sees the answer that says why.
        """
        if headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not self.is_over:
                    await self()


class Call:
    """One request: who asks, with what, and the parts of the server that can answer."""

    __slots__ = ("_query", "caller", "gate", "parts", "request", "under_way")

    def __init__(
        self, request: Request, parts: Parts, gate: Gate, caller: Caller, under_way: contextlib.ExitStack
    ) -> None:
        self.request = request
        self.parts = parts
        self.gate = gate
        self.caller = caller
        self.under_way = under_way
        """What is to be given back when the answer was read."""
        self._query: dict[str, str] | None = None

    def path(self, name: str) -> str:
        """A part of the path."""
        return _without_nul(name, str(self.request.path_params[name]))

    def query(self, name: str, default: str | None = None) -> str | None:
        if self._query is None:
            self._query = _parsed(self.request.scope["query_string"].decode("latin-1"))
        value = self._query.get(name, default)
        return None if value is None else _without_nul(name, value)

    def number(self, name: str, default: int, least: int, most: int) -> int:
        """A whole number of the query."""
        text = self.query(name)
        if text is None:
            return default
        if not (text.isascii() and text.isdigit() and len(text) < 10 and least <= int(text) <= most):
            raise Problem(422, "bad-parameter", f"{name} is {text[:50]!r}", hint=f"a number from {least} to {most}")
        return int(text)

    def choice(self, name: str, default: str, *choices: str) -> str:
        """One of some words in the query."""
        text = self.query(name) or default
        if text not in (default, *choices):
            raise Problem(
                422, "bad-parameter", f"{name} is {text[:50]!r}", hint=f"one of {', '.join((default, *choices))}"
            )
        return text

    async def model(self, kind: type[Model], most: int = LARGEST_JSON) -> Model:
        """The body, as a model."""
        return kind.model_validate(await read_json(self.request, most))

    def owner(self) -> str:
        """For whom this is: the caller, or whom an admin names with `?owner=`."""
        named = self.query("owner")
        if named is None or named == self.caller.owner:
            return self.caller.owner
        if not self.caller.is_admin:
            raise Problem(403, "not-yours", "only an admin may act for another owner")
        if not 1 <= len(named) <= 200 or "/" in named or not named.isprintable():
            raise Problem(422, "bad-parameter", f"owner is {named[:50]!r}", hint="1 to 200 characters, without /")
        return named

    def owner_or_all(self) -> str | None:
        """Likewise, but an admin who names nobody sees everybody's: None."""
        if self.caller.is_admin and self.query("owner") is None:
            return None
        return self.owner()


def _without_nul(name: str, value: str) -> str:
    if "\x00" in value:  # PostgreSQL has no such character
        raise Problem(422, "bad-parameter", f"{name} has a NUL character")
    return value


def _parsed(query: str) -> dict[str, str]:
    """A query string. The usual one has nothing to be decoded, and is taken apart in a fraction of the time."""
    if not query:
        return {}
    if "%" in query or "+" in query:
        return dict(parse_qsl(query, keep_blank_values=True))
    pairs = [pair.partition("=") for pair in query.split("&") if pair]
    return {name: value for name, _, value in pairs}


class Routes:
    """A table of routes that is filled by decorators."""

    def __init__(self, tag: str) -> None:
        self._tag = tag
        self.routes: list[Route] = []

    def add(
        self,
        method: str,
        path: str,
        summary: str,
        *,
        roles: Sequence[str] = (),
        takes: type[BaseModel] | Sequence[str] | None = None,
        gives: type[BaseModel] | str | None = None,
        statuses: Sequence[int] = (200,),
        parameters: Sequence[Parameter] = (),
        streams: bool = False,
    ) -> Callable[[Callable[[Call], Awaitable[Response]]], Callable[[Call], Awaitable[Response]]]:
        """Puts a function into the table."""

        def note(endpoint: Callable[[Call], Awaitable[Response]]) -> Callable[[Call], Awaitable[Response]]:
            self.routes.append(
                Route(
                    method,
                    path,
                    endpoint,
                    summary,
                    self._tag,
                    frozenset(roles),
                    takes,
                    gives,
                    tuple(statuses),
                    tuple(parameters),
                    streams,
                )
            )
            return endpoint

        return note


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Anything that pydantic can write, as JSON."""
    if isinstance(value, BaseModel):
        value = value.model_dump(exclude_none=True)
    return Response(to_json(value), status, headers=headers, media_type="application/json")


def add_headers(response: Response) -> None:
    """Adds the headers that every answer has, unless it has its own."""
    present = {name for name, _ in response.raw_headers}
    response.raw_headers += [header for header in HEADERS if header[0] not in present]


class PlainAnswer(Response):
    """Bytes with their headers, as they are sent: for what is answered thousands of times a second."""

    def __init__(self, body: bytes, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        self.body, self.status_code, self.background = body, status, None
        self.raw_headers = [*headers, (b"content-length", b"%d" % len(body)), *HEADERS]


async def _send_in_pieces(response: Response, send: Send) -> None:
    """Sends a large answer: a piece when most of the one before was read, so that it ends when all is."""
    await send({"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers})
    body = bytes(response.body)
    for begin in range(0, len(body), PIECE):
        more = begin + PIECE < len(body)
        await send({"type": "http.response.body", "body": body[begin : begin + PIECE], "more_body": more})


class _Endpoint:
    """A route as an ASGI application: lets the caller in, calls, counts, and makes errors into answers."""

    def __init__(self, route: Route, parts: Parts, gate: Gate) -> None:
        self._route = route
        self._parts = parts
        self._gate = gate
        self._counters: dict[int, Any] = {}
        self.streams = route.streams
        self._seconds = parts.metrics.request_seconds.labels(route.path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = _Body(receive)
        request = _Request(scope, body)
        started = time.perf_counter()
        with contextlib.ExitStack() as under_way:  # until the answer is read: so many an owner may have at a time
            try:
                response = await self._respond(request, under_way)
            except ClientDisconnect:
                self._count(499)
                return
            except Exception as error:
                if status_of(error) == 500:
                    log.exception("a request failed", extra={"method": self._route.method, "path": request.url.path})
                response = problem_response(error)
                await body.read_to_the_end(request.headers)
            self._count(response.status_code)
            if not self._route.streams:
                self._seconds.observe(time.perf_counter() - started)
            if not isinstance(response, PlainAnswer):
                add_headers(response)
            if len(getattr(response, "body", b"")) > PIECE:
                await _send_in_pieces(response, send)
            else:
                await response(scope, receive, send)

    async def _respond(self, request: Request, under_way: contextlib.ExitStack) -> Response:
        route = self._route
        if not route.roles:
            return await route.endpoint(Call(request, self._parts, self._gate, NOBODY, under_way))
        if not self._parts.ready:  # without the whole set, an answer would be wrong
            raise Problem(503, "not-ready", "the server is starting or stopping", hint="try again in a moment")
        caller = await self._gate.caller(request)
        if not caller.roles & route.roles and not caller.is_admin:
            raise Problem(
                403,
                "not-allowed",
                "this API key does not have the role",
                hint=f"it needs {' or '.join(sorted(route.roles))}",
            )
        if not route.streams:
            under_way.callback(self._gate.enter(caller.owner).leave)
        return await route.endpoint(Call(request, self._parts, self._gate, caller, under_way))

    def _count(self, status: int) -> None:
        counter = self._counters.get(status)
        if counter is None:
            route = self._route
            counter = self._counters[status] = self._parts.metrics.requests.labels(
                route.method, route.path, str(status)
            )
        counter.inc()


NOBODY = Caller("", frozenset(), "nobody")


class _Path:
    """All methods of a path."""

    def __init__(self, endpoints: dict[str, _Endpoint]) -> None:
        self._endpoints = endpoints
        if "GET" in endpoints and not endpoints["GET"].streams:
            self._endpoints = {**endpoints, "HEAD": endpoints["GET"]}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = self._endpoints.get(scope["method"])
        if endpoint is not None:
            await endpoint(scope, receive, send)
            return
        allow = {"allow": ", ".join(sorted(self._endpoints))}
        problem = Problem(405, "wrong-method", f"{scope['method']} is not for this path", hint="/docs", headers=allow)
        await problem_response(problem)(scope, receive, send)


def as_starlette(
    routes: Sequence[Route], parts: Parts, gate: Gate
) -> tuple[list[StarletteRoute], dict[str, Callable[[Scope, Receive, Send], Awaitable[None]]]]:
    """The routes for Starlette, one a path; and those of paths that stand for nothing else, by path."""
    paths: dict[str, dict[str, _Endpoint]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method] = _Endpoint(route, parts, gate)
    made: list[StarletteRoute] = []
    plain: dict[str, Callable[[Scope, Receive, Send], Awaitable[None]]] = {}
    for path, endpoints in paths.items():
        # /subscriptions/validate is an action when it is posted to, and else the subscription of this name.
        shadows = "{" not in path and any("{" in other and _covers(other, path) for other in paths)
        methods = list(endpoints) if shadows else None
        endpoint = _Path(endpoints)
        made.insert(0 if shadows else len(made), StarletteRoute(path, endpoint=endpoint, methods=methods))
        if "{" not in path and not shadows:
            plain[path] = endpoint
    return made, plain


def _covers(pattern: str, path: str) -> bool:
    ours, theirs = pattern.split("/"), path.split("/")
    return len(ours) == len(theirs) and all(
        one.startswith("{") or one == other for one, other in zip(ours, theirs, strict=True)
    )
