"""The OpenAPI description, made from the table of routes, and a page that shows it without fetching anything."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

import xsift
from xsift.service.api.routes import Route

__all__ = ["describe", "page"]

MEANINGS = {
    200: "Done.",
    201: "Made.",
    202: "Durable, and matched.",
    204: "Done; nothing to say.",
    401: "No API key, or one that is not valid.",
    403: "Not with this key.",
    404: "There is no such thing, or it belongs to another owner.",
    409: "Not in this state.",
    413: "Too large.",
    415: "Not a media type that is taken here.",
    422: "It was understood, and is wrong: code, detail, hint, and where.",
    429: "Too much at once: come back after Retry-After.",
    502: "The subscriber did not take it.",
    503: "Not now: come back after Retry-After.",
    507: "The disk is full; nothing was stored.",
}
PROBLEM = {
    "type": "object",
    "required": ["status", "code", "detail"],
    "properties": {
        "status": {"type": "integer"},
        "code": {"type": "string", "description": "Stable: programs may test it."},
        "detail": {"type": "string", "description": "For people."},
        "hint": {"type": "string"},
        "line": {"type": "integer"},
        "column": {"type": "integer"},
        "offset": {"type": "integer"},
        "id": {"type": "string"},
    },
}


def describe(routes: Sequence[Route]) -> dict[str, Any]:
    """An OpenAPI 3.1 document."""
    models: list[type[BaseModel]] = []
    for route in routes:
        for model in (route.takes, route.gives):
            if isinstance(model, type) and model not in models:
                models.append(model)
    _, schemas = models_json_schema(
        [(model, "validation") for model in models], ref_template="#/components/schemas/{model}"
    )
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "xsift",
            "version": xsift.__version__,
            "description": "Documents are published, subscriptions catch them, subscribers are told.",
        },
        "paths": paths,
        "components": {
            "schemas": {**schemas.get("$defs", {}), "Problem": PROBLEM},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    names = [part[1:-1] for part in route.path.split("/") if part.startswith("{")]
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}} for name in names
    ]
    parameters += [
        {"name": item.name, "in": "query", "description": item.description, "schema": dict(item.schema)}
        for item in route.parameters
    ]
    statuses = dict.fromkeys(route.statuses)
    if route.roles:
        statuses |= dict.fromkeys((401, 403, 429))
    operation: dict[str, Any] = {
        "summary": route.summary,
        "tags": [route.tag],
        "operationId": f"{route.tag}_{route.endpoint.__name__}",
        "parameters": parameters,
        "responses": {str(status): _answer(route, status) for status in sorted(statuses)},
    }
    if route.takes is not None:
        operation["requestBody"] = {"required": True, "content": _content(route.takes)}
    if route.roles:
        operation["security"] = [{"key": []}]
        operation["x-roles"] = sorted(route.roles)
    return operation


def _content(takes: type[BaseModel] | Sequence[str]) -> dict[str, Any]:
    if isinstance(takes, type):
        return {"application/json": {"schema": {"$ref": f"#/components/schemas/{takes.__name__}"}}}
    return {kind: {"schema": {"type": "string"}} for kind in takes}


def _answer(route: Route, status: int) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": MEANINGS.get(status, "")}
    if status >= 400 and isinstance(route.gives, str) and route.gives == "text/plain":
        return answer
    if status >= 400:
        answer["content"] = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    elif isinstance(route.gives, str):
        answer["content"] = {route.gives: {"schema": {"type": "string"}}}
    elif route.gives is not None:
        answer["content"] = _content(route.gives)
    return answer


def page(description: dict[str, Any]) -> str:
    """The description as a page for people."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        "<title>xsift: the API</title><link rel=stylesheet href=/docs.css><main><h1>xsift: the API</h1>"
        f"<p>{html.escape(description['info']['description'])} "
        "The same for programs: <a href=/openapi.json>openapi.json</a>.</p>"
    ]
    tags: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            tags.setdefault(operation["tags"][0], []).append((method.upper(), path, operation))
    for tag, entries in tags.items():
        parts.append(f"<h2>{html.escape(tag)}</h2>")
        parts += [_entry(method, path, operation, description) for method, path, operation in entries]
    return "".join(parts) + "</main></html>"


def _entry(method: str, path: str, operation: dict[str, Any], description: dict[str, Any]) -> str:
    rows = [
        f"<tr><td><code>{html.escape(item['name'])}</code><td>{html.escape(item.get('description', item['in']))}"
        for item in operation["parameters"]
    ]
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        rows.append(f"<tr><td>body<td>{html.escape(kind)}{_fields(content['schema'], description)}")
    for status, answer in operation["responses"].items():
        fields = "".join(_fields(content["schema"], description) for content in answer.get("content", {}).values())
        rows.append(f"<tr><td>{status}<td>{html.escape(answer['description'])}{fields if status < '300' else ''}")
    roles = ", ".join(operation.get("x-roles", ())) or "nobody needs a key"
    return (
        f"<section><h3><b>{method}</b> <code>{html.escape(path)}</code></h3><p>{html.escape(operation['summary'])}"
        f" <small>({roles})</small></p><table>{''.join(rows)}</table></section>"
    )


def _fields(schema: dict[str, Any], description: dict[str, Any]) -> str:
    name = schema.get("$ref", "").rpartition("/")[2]
    found = description["components"]["schemas"].get(name, {})
    items = [
        f"<li><code>{html.escape(field)}</code> {html.escape(str(value.get('description', '')))}"
        for field, value in found.get("properties", {}).items()
    ]
    return f"<ul>{''.join(items)}</ul>" if items else ""


CSS = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 }
:root { color: CanvasText; background: Canvas; color-scheme: light dark }
main { max-width: 60rem; margin: 0 auto; padding: 1rem }
h3 { margin: 1.5rem 0 0 } h3 b { color: #06c } p { margin: .25rem 0 } small { opacity: .7 }
table { border-collapse: collapse }
td { vertical-align: top; padding: .15rem .75rem .15rem 0 }
ul { margin: 0; padding-left: 1.2rem }
"""
