"""How a delivery looks outside."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable

from pydantic_core import to_json

from xsift.service.store.deliveries import StoredDelivery
from xsift.service.store.numbers import delivery_id

__all__ = ["as_json", "gap_event", "match_events"]

DECLARED = re.compile(rb"""^<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]*)""")


def as_json(delivery: StoredDelivery, subscriber: str) -> bytes:
    """A JSON object: id, subscriber, document, matches, and the document's text if that is delivered."""
    start = b'{"id":"%s","subscriber":%s,' % (
        delivery_id(delivery.subscriber, delivery.place).encode(),
        to_json(subscriber),
    )
    return start + delivery.content + (_body(delivery) if delivery.whole else b"") + b"}"


def _body(delivery: StoredDelivery) -> bytes:
    """The document as text; bytes that are no text in the encoding that they declare go as base64."""
    try:
        return b',"xml":' + to_json(delivery.body.decode(delivery.encoding or _encoding(delivery.body)))
    except (UnicodeDecodeError, LookupError):
        return b',"xml_base64":"' + base64.b64encode(delivery.body) + b'"'


def _encoding(body: bytes) -> str:
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    declared = DECLARED.match(body.removeprefix(b"\xef\xbb\xbf"))
    return "utf-8-sig" if declared is None else declared[1].decode()


def match_events(deliveries: Iterable[StoredDelivery], subscriber: str) -> bytes:
    """Server-sent events: JSON has no line breaks, so each is one line of data."""
    return b"".join(
        b"id: %d-%d\nevent: match\ndata: %s\n\n" % (item.subscriber, item.place, as_json(item, subscriber))
        for item in deliveries
    )


def gap_event(subscriber: int, first: int, last: int) -> bytes:
    """Says that deliveries were dropped, so that nobody takes silence for completeness."""
    told = to_json(
        {"first": delivery_id(subscriber, first), "last": delivery_id(subscriber, last), "dropped": last - first + 1}
    )
    return b"id: %d-%d\nevent: gap\ndata: %s\n\n" % (subscriber, last, told)
