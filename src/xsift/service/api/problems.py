"""Errors as answers: `application/problem+json` (RFC 9457) with xsift's stable code, the place and the hint."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError
from pydantic_core import to_json
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from xsift.errors import DocumentError, StorageError, SubscriptionError, XPathError, XsiftError
from xsift.service.store.database import is_away
from xsift.service.store.deliveries import error_fields

__all__ = ["Problem", "Stopped", "error_json", "problem_response", "status_of"]

STATUSES = {
    "unknown-id": 404,
    "unknown-subscriber": 404,
    "unknown-document": 404,
    "unknown-delivery": 404,
    "unknown-key": 404,
    "overloaded": 503,
    "closed": 503,
    "storage-away": 503,
    "storage-full": 507,
    "storage-failed": 503,  # the writer has logged why; nothing was stored, so the client may try again
    "key-reused": 422,
    "too-many-subscriptions": 429,
    "too-many-subscribers": 429,
}


class Problem(XsiftError):
    """An answer that is an error."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        hint: str = "",
        headers: dict[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(code, message, hint=hint)
        self.status = status
        self.headers = headers or {}
        self.more = more


class Stopped(Problem):
    """What ended a request of many documents in the middle, and how many of them were stored before."""

    def __init__(self, error: XsiftError, stored: int) -> None:
        headers, more = getattr(error, "headers", {}), getattr(error, "more", {})
        super().__init__(
            status_of(error), error.code, error.message, hint=error.hint, headers=headers, stored=stored, **more
        )


def status_of(error: BaseException) -> int:
    """The HTTP status of an error."""
    if isinstance(error, Problem):
        return error.status
    if isinstance(error, XsiftError):
        if error.code in STATUSES:
            return STATUSES[error.code]
        if isinstance(error, DocumentError | XPathError | SubscriptionError):
            return 422
        return 500 if isinstance(error, StorageError) else 422
    if isinstance(error, ValidationError):
        return 422
    if is_away(error):
        return 503
    return 400 if isinstance(error, ClientDisconnect) else 500


def error_json(error: XsiftError) -> dict[str, Any]:
    """An error as a field of an answer: code, detail, hint, and where."""
    fields = error_fields(error)
    return {"code": fields.pop("code"), "detail": fields.pop("message"), **fields}


def problem_response(error: BaseException) -> Response:
    """The answer for an error. What is not an error of ours says nothing of the inside."""
    status = status_of(error)
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        body: dict[str, Any] = {
            "code": "bad-request",
            "detail": f"{where}: {first['msg']}" if where else first["msg"],
        }
    elif isinstance(error, XsiftError):
        body = {**error_json(error), **getattr(error, "more", {})}
    elif status == 503:
        body = {"code": "storage-away", "detail": "the database does not answer", "hint": "repeat it later"}
    else:
        body = {"code": "internal", "detail": "the server made a mistake; its log says which"}
    headers = dict(getattr(error, "headers", {}))
    if status == 503:
        headers.setdefault("retry-after", "1")
    return Response(
        to_json({"status": status, **body}), status, headers=headers, media_type="application/problem+json"
    )
