"""Structured logs: a line for each record, as text for eyes or as JSON for machines. What a record tells beside its
sentence is in its `extra` fields, so that a log can be searched by subscription, document or subscriber.
"""

from __future__ import annotations

import logging
import sys
import time
from typing import Any

from pydantic_core import to_json

__all__ = ["configure_logs"]

KNOWN = {*logging.makeLogRecord({}).__dict__, "message", "asctime", "color_message", "taskName"}


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in record.__dict__.items() if name not in KNOWN}


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "time": f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_extra(record),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return to_json(fields, fallback=str).decode()


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = time.strftime("%H:%M:%S", time.localtime(record.created))
        more = "".join(f" {name}={value}" for name, value in _extra(record).items())
        line = _visible(f"{at} {record.levelname.lower():7} {record.getMessage()}{more}")
        traced = self.formatException(record.exc_info).split("\n") if record.exc_info else []
        return "\n".join([line, *map(_visible, traced)])


def _visible(text: str) -> str:
    """A text as one line that does nothing to a terminal: labels and names in it are strangers'."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def configure_logs(kind: str, level: str) -> None:
    """Sends the logs of the service to standard error, a line each whoever speaks."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if kind == "json" else _Text())
    # Others are heard when they warn: uvicorn, asyncio.
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("xsift").setLevel(level.upper())
