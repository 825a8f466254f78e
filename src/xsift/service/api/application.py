"""The application: all routes, in an order in which the busy ones are found first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from xsift.service import console
from xsift.service.api import (
    administration,
    documents,
    openapi,
    operations,
    subscribers,
    subscription_list,
    subscriptions,
    trying,
)
from xsift.service.api.problems import Problem, problem_response
from xsift.service.api.routes import Route, add_headers, as_starlette
from xsift.service.api.security import Gate
from xsift.service.parts import Parts

__all__ = ["Application", "all_routes", "make_application"]

PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


def all_routes() -> list[Route]:
    """Every route of the API."""
    modules = (documents, subscriptions, subscription_list, trying, subscribers, operations, administration)
    return [route for module in modules for route in module.routes.routes]


class Application:
    """The ASGI application of a server. A path that stands for itself is found by one look-up, before the router
    tries one pattern after the other.
    """

    def __init__(self, router: Router, plain: Mapping[str, ASGIApp]) -> None:
        self._router, self._plain = router, plain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._plain.get(scope["path"], self._router)(scope, receive, send)


def make_application(parts: Parts, gate: Gate) -> Application:
    """The ASGI application of a server."""
    routes = all_routes()
    description = openapi.describe(routes)
    pages = {
        "/openapi.json": (to_json(description), "application/json"),
        "/docs": (openapi.page(description).encode(), "text/html; charset=utf-8"),
        "/docs.css": (openapi.CSS.encode(), "text/css; charset=utf-8"),
    }

    def page(body: bytes, kind: str) -> Response:
        return _with_headers(Response(body, media_type=kind, headers={"content-security-policy": PAGE_POLICY}))

    def endpoint_of(path: str):  # type: ignore[no-untyped-def]
        async def show(request: Request) -> Response:
            return page(*pages[path])

        return show

    shown = [StarletteRoute(path, endpoint_of(path)) for path in pages]
    shown += [StarletteRoute(path, _show_asset(asset)) for path, asset in console.assets().items()]
    # The router alone: what Starlette puts around it handles errors, which our endpoints do themselves.
    patterns, plain = as_starlette(routes, parts, gate)
    return Application(Router([*patterns, *shown], redirect_slashes=False, default=_nothing_here), plain)


def _show_asset(asset: console.Asset) -> Callable[[Request], Awaitable[Response]]:
    headers = {"etag": asset.tag, "cache-control": "no-cache", "content-security-policy": console.POLICY}

    async def show(request: Request) -> Response:
        known = request.headers.get("if-none-match") == asset.tag
        body, status = (b"", 304) if known else (asset.body, 200)
        return _with_headers(Response(body, status, headers=headers, media_type=asset.media_type))

    return show


def _with_headers(response: Response) -> Response:
    add_headers(response)
    return response


async def _nothing_here(scope: Scope, receive: Receive, send: Send) -> None:
    problem = Problem(404, "unknown-path", "there is nothing here", hint="/docs lists what there is")
    await _with_headers(problem_response(problem))(scope, receive, send)
