"""Deliveries in the store: one sequence a subscriber, acknowledged from the front, bounded at the back.

Also the publications that make them: a document and its deliveries become durable in the same transaction, so a
document that was acknowledged has been matched, and a delivery is made once.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, bindparam, case, delete, func, select, text, tuple_, update
from sqlalchemy.dialects import postgresql, sqlite

from xsift.errors import XsiftError
from xsift.service.store.inserting import insert_rows
from xsift.service.store.schema import broken, dead_letters, documents, receipts, subscribers
from xsift.service.store.schema import deliveries as table

__all__ = [
    "Broken",
    "Outcome",
    "Publication",
    "StoredDelivery",
    "acknowledge",
    "bury",
    "crowded",
    "drop_beyond_backlog",
    "forget_dead",
    "last_document",
    "read",
    "store_publications",
    "waiting",
]

CHUNK = 500
PAGE_BYTES = 256 << 10  # that are read of deliveries at a time, or one that is larger: each reader may have them
DEAD_BYTES = 8 << 20  # likewise of dead letters, in one answer


@dataclass(slots=True)
class StoredDelivery:
    """What one subscriber is told of one document."""

    subscriber: int
    place: int
    document: int
    at: float
    content: bytes
    """Members of a JSON object: document, matches."""
    whole: bool = False
    body: bytes = b""
    """The document itself, if it is delivered."""
    encoding: str | None = None


@dataclass(slots=True)
class Outcome:
    """What matching said of one document."""

    number: int
    label: str
    body: bytes
    encoding: str | None
    error: XsiftError | None = None
    matches: int = 0
    own_matches: int = 0
    """Those of the owner who published it."""
    deliveries: list[tuple[int, bytes, bool]] = field(default_factory=list)
    """For each subscriber: its number, the content, whether it gets the document too."""


@dataclass(slots=True)
class Publication:
    """Documents that are published together: all of them are stored, or none."""

    owner: str
    outcomes: list[Outcome]
    received: float
    key: str | None = None
    answer: Any = None
    replayed: bool = False
    error: XsiftError | None = None
    made: list[StoredDelivery] = field(default_factory=list)

    def digest(self) -> bytes:
        digest = hashlib.sha256()
        for outcome in self.outcomes:
            digest.update(len(outcome.body).to_bytes(8, "big"))
            digest.update(outcome.body)
        return digest.digest()


@dataclass(slots=True)
class Broken:
    """A document that was refused: kept for a while, for people to look at."""

    owner: str
    number: int
    label: str
    received: float
    size: int
    beginning: bytes
    error: XsiftError


# Publishing


def store_publications(connection: Connection, publications: list[Publication]) -> None:
    """Stores documents and their deliveries. A publication whose key was used before is answered as it was then."""
    now = time.time()
    _keep_receipts(connection, publications, now)
    new = [publication for publication in publications if not publication.replayed and publication.error is None]
    rows = [_document_row(publication, outcome) for publication in new for outcome in _good(publication)]
    insert_rows(connection, documents, DOCUMENT_COLUMNS, rows)
    _make_deliveries(connection, new, now)


def _good(publication: Publication) -> list[Outcome]:
    return [outcome for outcome in publication.outcomes if outcome.error is None]


DOCUMENT_COLUMNS = ("number", "owner", "label", "received", "encoding", "matches", "size", "body")


def _document_row(publication: Publication, outcome: Outcome) -> tuple[Any, ...]:
    return (
        outcome.number,
        publication.owner,
        outcome.label,
        publication.received,
        outcome.encoding,
        outcome.matches,
        len(outcome.body),
        outcome.body,
    )


def _keep_receipts(connection: Connection, publications: list[Publication], now: float) -> None:
    """Notes the keys of publications, and finds those that were used before: by an earlier one, or within these."""
    leaders: dict[tuple[str, str], Publication] = {}
    for publication in publications:
        publication.replayed, publication.error = False, None
        if publication.key is not None:
            leaders.setdefault((publication.owner, publication.key), publication)
    if not leaders:
        return
    wanted = [
        {"owner": owner, "key": key, "digest": leader.digest(), "document": leader.outcomes[0].number, "at": now}
        for (owner, key), leader in sorted(leaders.items(), key=lambda item: item[0])
    ]
    seen = _insert_receipts(connection, wanted)
    for publication in publications:
        if publication.key is None:
            continue
        place = (publication.owner, publication.key)
        leader = leaders[place]
        if place in seen:
            _replay(publication, *seen[place])
        elif publication is not leader:
            _replay(publication, leader.digest(), leader.outcomes[0].number)


def _insert_receipts(
    connection: Connection, wanted: list[dict[str, Any]]
) -> dict[tuple[str, str], tuple[bytes, int]]:
    """Inserts receipts; returns those that were there already, by owner and key."""
    places = [(row["owner"], row["key"]) for row in wanted]
    if connection.dialect.name == "postgresql":
        # Another server may be given the same key at this moment: the insertion waits for it, and then gives way.
        columns = {name: [row[name] for row in wanted] for name in wanted[0]}
        new = {(row.owner, row.key) for row in connection.execute(INSERT_RECEIPTS, columns)}
        return _receipts_of(connection, [place for place in places if place not in new])
    seen = _receipts_of(connection, places)
    rows = [row for row, place in zip(wanted, places, strict=True) if place not in seen]
    if rows:
        connection.execute(receipts.insert(), rows)
    return seen


INSERT_RECEIPTS = text(
    "INSERT INTO receipts (owner, key, digest, document, at)"
    " SELECT * FROM unnest(CAST(:owner AS text[]), CAST(:key AS text[]), CAST(:digest AS bytea[]),"
    " CAST(:document AS bigint[]), CAST(:at AS float8[]))"
    " ON CONFLICT DO NOTHING RETURNING owner, key"
)


def _receipts_of(connection: Connection, places: list[tuple[str, str]]) -> dict[tuple[str, str], tuple[bytes, int]]:
    found: dict[tuple[str, str], tuple[bytes, int]] = {}
    for begin in range(0, len(places), CHUNK):
        query = select(receipts).where(tuple_(receipts.c.owner, receipts.c.key).in_(places[begin : begin + CHUNK]))
        found |= {(row.owner, row.key): (bytes(row.digest), row.document) for row in connection.execute(query)}
    return found


def _replay(publication: Publication, digest: bytes, first: int) -> None:
    """Answers a publication as the first one with its key was answered, if it is the same."""
    if digest != publication.digest():
        publication.error = XsiftError(
            "key-reused",
            "this idempotency key was used for another document",
            hint="a key belongs to one document; use a new one",
        )
        return
    publication.replayed = True
    shift = first - publication.outcomes[0].number
    for outcome in publication.outcomes:
        outcome.number += shift


def _make_deliveries(connection: Connection, publications: list[Publication], now: float) -> None:
    counts: dict[int, int] = {}
    for publication in publications:
        for outcome in _good(publication):
            for subscriber, _, _ in outcome.deliveries:
                counts[subscriber] = counts.get(subscriber, 0) + 1
    if not counts:
        return
    places = _take_places(connection, counts)
    rows: list[tuple[Any, ...]] = []
    for publication in publications:
        publication.made = []
        for outcome in _good(publication):
            for subscriber, content, whole in outcome.deliveries:
                if subscriber not in places:
                    continue  # it was removed, or has ended, since the document was matched
                places[subscriber] += 1
                delivery = StoredDelivery(subscriber, places[subscriber], outcome.number, now, content, whole)
                if whole:
                    delivery.body, delivery.encoding = outcome.body, outcome.encoding
                publication.made.append(delivery)
                rows.append(_row(delivery))
    insert_rows(connection, table, DELIVERY_COLUMNS, rows)


DELIVERY_COLUMNS = ("subscriber", "place", "document", "at", "whole", "content")


def _row(delivery: StoredDelivery) -> tuple[Any, ...]:
    return (
        delivery.subscriber,
        delivery.place,
        delivery.document,
        delivery.at,
        delivery.whole,
        delivery.content,
    )


def _take_places(connection: Connection, counts: dict[int, int]) -> dict[int, int]:
    """Moves each subscriber's sequence on; returns where each was."""
    if connection.dialect.name == "sqlite":
        moved = connection.exec_driver_sql(TAKE_PLACES, (json.dumps(counts),))
        return {number: last - counts[number] for number, last in moved}
    return _take_places_in_order(connection, counts)


TAKE_PLACES = (
    "UPDATE subscribers SET last_place = last_place + taken.value FROM json_each(?) AS taken"
    " WHERE number = CAST(taken.key AS INTEGER) AND state <> 'ended' RETURNING number, last_place"
)


def _take_places_in_order(connection: Connection, counts: dict[int, int]) -> dict[int, int]:
    """In the order of numbers, so that servers that do this at once do not wait for each other in a circle."""
    numbers = sorted(counts)
    before: dict[int, int] = {}
    for begin in range(0, len(numbers), CHUNK):
        query = select(subscribers.c.number, subscribers.c.last_place).where(
            subscribers.c.number.in_(numbers[begin : begin + CHUNK]), subscribers.c.state != "ended"
        )
        for row in connection.execute(query.order_by(subscribers.c.number).with_for_update()):
            before[row.number] = row.last_place
    changed = [{"n": number, "by": counts[number]} for number in before]
    if changed:
        statement = update(subscribers).where(subscribers.c.number == bindparam("n"))
        connection.execute(statement.values(last_place=subscribers.c.last_place + bindparam("by")), changed)
    return before


def last_document(connection: Connection) -> int:
    """The largest number of the documents that are kept; 0 if there is none."""
    return max(int(connection.scalar(select(func.max(kept.c.number))) or 0) for kept in (documents, broken))


def store_broken(connection: Connection, found: list[Broken]) -> None:
    """Keeps documents that were refused, for people to look at."""
    rows = [
        {
            "number": item.number,
            "owner": item.owner,
            "label": item.label,
            "received": item.received,
            "size": item.size,
            "body": item.beginning,
            "error": error_fields(item.error),
        }
        for item in found
    ]
    connection.execute(broken.insert(), rows)
    connection.execute(delete(broken).where(broken.c.number < _broken_horizon(connection)))


def error_fields(error: BaseException) -> dict[str, Any]:
    """An error as people and programs get to see it."""
    names = ("code", "message", "hint", "line", "column", "offset", "id")
    values = {name: getattr(error, name, None) for name in names}
    return {name: value for name, value in values.items() if value not in (None, "", 0)}


# Reading


SOURCE = table.outerjoin(documents, table.c.document == documents.c.number)


def read(connection: Connection, subscriber: int, after: int, most: int) -> list[StoredDelivery]:
    """The deliveries to a subscriber after a place, in order; fewer if they are large."""
    last, _ = page(connection, subscriber, after, most)
    return read_page(connection, subscriber, after, last)


def page(connection: Connection, subscriber: int, after: int, most: int) -> tuple[int, int]:
    """Up to which place the deliveries after a place are a page, and how large it is."""
    sizes = (
        select(table.c.place, func.length(table.c.content), case((table.c.whole, documents.c.size), else_=0))
        .select_from(SOURCE)
        .where(table.c.subscriber == subscriber, table.c.place > after)
    )
    total, last = 0, after
    for place, content, document in connection.execute(sizes.order_by(table.c.place).limit(most)):
        size = content + (document or 0)
        if total + size > PAGE_BYTES and last > after:
            break
        total, last = total + size, place
    return last, total


def read_page(connection: Connection, subscriber: int, after: int, last: int) -> list[StoredDelivery]:
    """The deliveries after a place, up to another one."""
    body = case((table.c.whole, documents.c.body), else_=None).label("body")
    query = select(table, body, documents.c.encoding).select_from(SOURCE)
    wanted = (table.c.subscriber == subscriber, table.c.place > after, table.c.place <= last)
    return [
        StoredDelivery(
            row.subscriber,
            row.place,
            row.document,
            row.at,
            bytes(row.content),
            row.whole,
            row.body or b"",
            row.encoding,
        )
        for row in connection.execute(query.where(*wanted).order_by(table.c.place))
    ]


def waiting(connection: Connection) -> dict[str, tuple[int, float]]:
    """For each kind of subscriber: deliveries that wait, and the time of the oldest of them."""
    depth = (
        select(subscribers.c.kind, func.sum(subscribers.c.last_place - _done()))
        .where(subscribers.c.state == "active")
        .group_by(subscribers.c.kind)
    )
    found = {kind: (int(number or 0), 0.0) for kind, number in connection.execute(depth)}
    oldest = (
        select(subscribers.c.kind, func.min(table.c.at))
        .select_from(subscribers.join(table, (table.c.subscriber == subscribers.c.number)))
        .where(subscribers.c.state == "active", table.c.place == _done() + 1)
        .group_by(subscribers.c.kind)
    )
    for kind, at in connection.execute(oldest):
        found[kind] = (found.get(kind, (0, 0.0))[0], float(at))
    return found


def _done() -> Any:
    """Up to which place nothing waits: acknowledged, or dropped."""
    acknowledged, dropped = subscribers.c.acknowledged_place, subscribers.c.dropped_place
    return case((acknowledged > dropped, acknowledged), else_=dropped)


# Acknowledging, dropping, burying


def acknowledge(connection: Connection, subscriber: int, place: int) -> int:
    """Everything up to a place was received. Returns where the subscriber stands now."""
    row = connection.execute(
        select(subscribers.c.acknowledged_place, subscribers.c.last_place)
        .where(subscribers.c.number == subscriber)
        .with_for_update()
    ).first()
    if row is None:
        return place
    place = min(max(place, row.acknowledged_place), row.last_place)
    if place > row.acknowledged_place:
        connection.execute(
            update(subscribers)
            .where(subscribers.c.number == subscriber)
            .values(acknowledged_place=place, attempts=0, retry_at=0.0)
        )
        connection.execute(delete(table).where(table.c.subscriber == subscriber, table.c.place <= place))
    return place


def crowded(connection: Connection, oldest: float) -> list[int]:
    """Subscribers with more deliveries than their backlog has room for, or with one that was made before `oldest`."""
    first = (table.c.subscriber == subscribers.c.number) & (table.c.place == _done() + 1)
    full = subscribers.c.last_place - subscribers.c.backlog > _done()
    query = select(subscribers.c.number).select_from(subscribers.outerjoin(table, first))
    return list(connection.scalars(query.where(full | (table.c.at < oldest))))


def drop_beyond_backlog(
    connection: Connection, numbers: Sequence[int], oldest: float, most: int
) -> tuple[int, list[int]]:
    """Drops what subscribers' backlogs have no room for, and what is older than `oldest`; the oldest first, and about
    `most` of them. Returns how many were dropped, and of which subscribers there may be more."""
    dropped = 0
    left: list[int] = []
    query = select(subscribers).where(subscribers.c.number.in_(numbers))
    for row in connection.execute(query.order_by(subscribers.c.number).with_for_update()).all():
        done = max(row.acknowledged_place, row.dropped_place)
        # They are in the order of time, so this looks at no more than it is going to drop.
        young = connection.scalar(
            select(table.c.place)
            .where(table.c.subscriber == row.number, table.c.at >= oldest)
            .order_by(table.c.place)
            .limit(1)
        )
        wanted = max(row.last_place - row.backlog, row.last_place if young is None else int(young) - 1)
        until = min(wanted, done + max(0, most - dropped))
        if until < wanted:
            left.append(row.number)
        if until > done:
            dropped += until - done
            values = {"dropped_place": until, "dropped": row.dropped + until - done}
            connection.execute(update(subscribers).where(subscribers.c.number == row.number).values(**values))
            connection.execute(delete(table).where(table.c.subscriber == row.number, table.c.place <= until))
    return dropped, left


def bury(connection: Connection, delivery: StoredDelivery, attempts: int, reason: str) -> None:
    """Makes a delivery that cannot be made a dead letter, and goes on to the next."""
    there = select(subscribers.c.number).where(subscribers.c.number == delivery.subscriber)
    if connection.scalar(there.with_for_update()) is None:
        return  # it was removed: a dead letter of nobody would be kept for ever, and its document with it
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    row = dict(zip(DELIVERY_COLUMNS, _row(delivery), strict=True))
    row |= {"failed_at": time.time(), "attempts": attempts, "reason": reason[:1000]}
    connection.execute(insert(dead_letters).values(**row).on_conflict_do_nothing())
    acknowledge(connection, delivery.subscriber, delivery.place)


Grave = tuple[float, int, int]
"""Where a dead letter is among all: when it failed, of which subscriber, its place."""


def dead(
    connection: Connection,
    *,
    owner: str | None,
    subscriber: int | None = None,
    most: int = 100,
    place: int | None = None,
    after: Grave | None = None,
    brief: bool = False,
) -> tuple[list[Any], bool]:
    """Dead letters, the latest first, with the subscriber's name, and if not `brief` with their documents; fewer if
    they are large. And whether there may be more."""
    source = dead_letters.join(subscribers, dead_letters.c.subscriber == subscribers.c.number).outerjoin(
        documents, dead_letters.c.document == documents.c.number
    )
    wanted: list[Any] = []
    if owner is not None:
        wanted.append(subscribers.c.owner == owner)
    if subscriber is not None:
        wanted.append(dead_letters.c.subscriber == subscriber)
    if place is not None:
        wanted.append(dead_letters.c.place == place)
    grave = tuple_(dead_letters.c.failed_at, dead_letters.c.subscriber, dead_letters.c.place)
    if after is not None:
        wanted.append(grave < tuple_(*after))
    order = [column.desc() for column in (dead_letters.c.failed_at, dead_letters.c.subscriber, dead_letters.c.place)]
    whole = dead_letters.c.whole & (not brief)
    sizes = select(func.length(dead_letters.c.content), case((whole, documents.c.size), else_=0))
    total = number = 0
    for content, document in connection.execute(
        sizes.select_from(source).where(*wanted).order_by(*order).limit(most)
    ):
        total += content + (document or 0)
        if total > DEAD_BYTES and number:
            break
        number += 1
    body = case((whole, documents.c.body), else_=None).label("body")
    query = select(
        dead_letters, subscribers.c.id.label("subscriber_id"), subscribers.c.owner, documents.c.encoding, body
    ).select_from(source)
    rows = list(connection.execute(query.where(*wanted).order_by(*order).limit(number)))
    return rows, number == most or total > DEAD_BYTES


def exhume(connection: Connection, subscriber: int, place: int) -> None:
    """Forgets a dead letter: it was delivered after all, or nobody wants it."""
    connection.execute(
        delete(dead_letters).where(dead_letters.c.subscriber == subscriber, dead_letters.c.place == place)
    )


def clean(connection: Connection, *, keep_from: int, receipts_before: float, most: int) -> int:
    """Removes documents and receipts that nobody needs any more, some at a time; returns how many."""
    # Written like the condition of the index: SQLAlchemy's `whole = 1` has SQLite look through all deliveries.
    needed = select(table.c.document).where(table.c.document == documents.c.number, text("deliveries.whole"))
    buried = select(dead_letters.c.document).where(dead_letters.c.document == documents.c.number)
    old = (
        select(documents.c.number)
        .where(documents.c.number < keep_from, ~needed.exists(), ~buried.exists())
        .order_by(documents.c.number)
        .limit(most)
    )
    removed = connection.execute(delete(documents).where(documents.c.number.in_(old))).rowcount
    expired = select(receipts.c.owner, receipts.c.key).where(receipts.c.at < receipts_before).limit(RECEIPTS_AT_ONCE)
    removed += connection.execute(
        delete(receipts).where(tuple_(receipts.c.owner, receipts.c.key).in_(expired))
    ).rowcount
    connection.execute(delete(broken).where(broken.c.number < keep_from))
    return removed


def forget_dead(connection: Connection, before: int, most: int) -> int:
    """Removes dead letters about documents with lower numbers, some at a time; returns how many."""
    old = (
        select(dead_letters.c.subscriber, dead_letters.c.place)
        .where(dead_letters.c.document < before)
        .order_by(dead_letters.c.document)
        .limit(most)
    )
    letter = tuple_(dead_letters.c.subscriber, dead_letters.c.place)
    return connection.execute(delete(dead_letters).where(letter.in_(old))).rowcount


RECEIPTS_AT_ONCE = 2000
MOST_BROKEN = 1000


def _broken_horizon(connection: Connection) -> int:
    query = select(broken.c.number).order_by(broken.c.number.desc()).offset(MOST_BROKEN).limit(1)
    return int(connection.scalar(query) or 0)
