"""How a delivery looks outside."""

from __future__ import annotations

import base64
from collections.abc import Iterable

from pydantic_core import to_json

from xsift.errors import DocumentError
from xsift.service.store.deliveries import StoredDelivery
from xsift.service.store.numbers import delivery_id
from xsift.service.texts import as_text

__all__ = ["as_json", "gap_event", "match_events"]


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
        return b',"xml":' + to_json(as_text(delivery.body, delivery.encoding))
    except DocumentError:
        return b',"xml_base64":"' + base64.b64encode(delivery.body) + b'"'


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
