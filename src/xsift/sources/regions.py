"""Where to split one huge XML file, found by many tasks at once.

Whether a byte in the middle of a file lies in a comment, in CDATA or in a record depends on all that comes before it,
so the plain way to find places is one pass from the beginning (records.split_places). Here a file is cut into regions
of equal size, and each is looked through on its own, as if its beginning were what it most likely is (`guessed`).
What is kept of a region is small: what was taken for its beginning, what that makes of its end, the first record in
it, the elements that it opens and closes. Then one walk over these goes from region to region: where the end of one
is not what was guessed of the next, and only there, that next one is looked through again. So the result is exact,
whatever was guessed.

A region begins at a `<`. So no tag lies in two of them: there is no `<` inside of a tag, nor in what ends a comment,
CDATA or a processing instruction.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from xsift.errors import DocumentError
from xsift.sources.records import (
    ANCESTOR_LIMIT,
    MARKUP,
    OUTSIDE,
    REST_OF_TAG,
    Ancestors,
    Declarations,
    declarations_of,
)

__all__ = ["Edge", "Region", "cut_region", "look_through", "places_of"]

ENDINGS = {b"<![CDATA[": b"]]>", b"<!--": b"-->", b"<?": b"?>"}
STEP_BYTES = 64 << 10  # that are read at a time while the `<` after a region is looked for

Read = Callable[[int, int], bytes]
"""The bytes of a file from one place to another, or to its end."""


class Edge(NamedTuple):
    """What is open at a place that has a `<`."""

    ending: bytes
    """What ends the comment, CDATA or processing instruction that it lies in; empty if it lies in none."""
    records: int
    """Records that are open, one inside the other."""


OUTSIDE_OF_ALL = Edge(b"", 0)


@dataclass(frozen=True)
class Region:
    """A part of a file, looked through."""

    begin: int
    end: int
    start: Edge
    """What its beginning was taken for."""
    finish: Edge | None
    """What its end is then; None if it cannot be told: too much would be open, or a tag does not end."""
    first: int | None
    """Where its first record begins, of those that are not inside of another."""
    first_closed: int
    """How many elements of before the region are closed there,"""
    first_opened: Ancestors
    """and which ones of the region are open."""
    closed: int
    opened: Ancestors


def cut_region(read: Read, size: int, number: int, region_bytes: int) -> tuple[int, bytes]:
    """A region by its number: where it begins, and its bytes. It reaches from the first `<` of its share of the file
    to the first one after that; it is empty if there is none in its share."""
    begin, end = number * region_bytes, min(size, (number + 1) * region_bytes)
    data = read(begin, end)
    first = data.find(b"<")
    if first < 0:
        return end, b""
    pieces = [data[first:]]
    while end < size:
        piece = read(end, min(size, end + STEP_BYTES))
        stop = piece.find(b"<")
        pieces.append(piece if stop < 0 else piece[:stop])
        if stop >= 0 or not piece:
            break
        end += len(piece)
    return begin + first, b"".join(pieces)


def guessed(data: bytes, record: bytes) -> Edge:
    """What the beginning of a region most likely is. An ending without a beginning before it says that it lies
    inside; an end tag of a record before any start tag, that a record is open. So does no tag of a record at all."""
    inside, place = b"", 0
    for opening, ending in ENDINGS.items():
        end = data.find(ending)
        if end >= 0 and data.find(opening, 0, end) < 0:
            inside, place = ending, end
            break
    tag = re.compile(rb"<(/?)" + re.escape(record) + rb"(?=[\s/>])").search(data, place)
    return Edge(inside, 1 if tag is None or tag[1] else 0)


def look_through(data: bytes, begin: int, record: str, start: Edge | None = None) -> Region:
    """Looks through a region that begins at a place of its file; by default as if it began with what is guessed."""
    name = record.encode()
    if start is None:
        start = guessed(data, name)
    inside = re.compile(MARKUP % (rb"/?" + re.escape(name) + rb"(?=[\s/>])"))
    ending, records = start
    place, closed = 0, 0
    opened: list[Declarations] = []
    first: tuple[int, int, Ancestors] | None = None
    finish: Edge | None = None
    while True:
        if ending:
            found_end = data.find(ending, place)
            if found_end < 0:
                finish = Edge(ending, records)
                break
            place, ending = found_end + len(ending), b""
        found = (inside if records else OUTSIDE).search(data, place)
        if found is None:
            finish = Edge(b"", records)
            break
        text = found[0]
        if text in ENDINGS:
            place, ending = found.end(), ENDINGS[text]
            continue
        rest = REST_OF_TAG.match(data, found.end())
        if rest is None:  # the file ends in it, or it is no XML: a `<` in a value
            break
        place = rest.end()
        closes, empty = text[1:2] == b"/", data[place - 2 : place - 1] == b"/"
        if records or text.lstrip(b"</") == name:
            if first is None and not records and not closes:
                first = (begin + found.start(), closed, tuple(opened))
            records = max(0, records - 1) if closes else records + (not empty)
        elif closes and opened:
            opened.pop()
        elif closes:
            closed += 1
        elif not empty:
            if len(opened) >= ANCESTOR_LIMIT:
                break
            opened.append(declarations_of(data[found.start() : place]))
    at, at_closed, at_opened = first or (None, 0, ())
    return Region(begin, begin + len(data), start, finish, at, at_closed, at_opened, closed, tuple(opened))


def places_of(
    regions: Iterable[Region], read: Read, begin: int, size: int, record: str, least_bytes: int
) -> list[tuple[int, Ancestors]]:
    """Places of records at which to split a file, `least_bytes` apart or more, and the elements that are open there;
    the first is `begin`, which is outside of all records. `regions` are all but the first of the file, in order.
    Raises DocumentError where it cannot be told what is open: such a file has to be read from its beginning."""
    places: list[tuple[int, Ancestors]] = [(begin, ())]
    edge = OUTSIDE_OF_ALL
    opened: Ancestors = ()
    unclear: Region | None = None
    for region in _from(regions, begin, size, read, record):
        if region.start != edge:
            region = look_through(read(region.begin, region.end), region.begin, record, edge)
        if region.first is not None and region.first >= places[-1][0] + least_bytes:
            places.append((region.first, _after(opened, region.first_closed, region.first_opened)))
        opened = _after(opened, region.closed, region.opened)
        if region.finish is None or len(opened) > ANCESTOR_LIMIT:
            unclear = region
            break
        edge = region.finish
    if unclear is not None and unclear.end < size:
        raise DocumentError(
            "too-deep", f"a tag does not end, or too many are open, before byte {unclear.end}", offset=unclear.end
        )
    return places


def _from(regions: Iterable[Region], begin: int, size: int, read: Read, record: str) -> Iterator[Region]:
    """The regions from a place to the end of the file. What none of them has is looked through here: that before the
    first, and one that a task could not read."""
    at = begin
    for region in regions:
        if region.end <= at:
            continue
        if region.begin < at:
            yield look_through(read(at, region.end), at, record, OUTSIDE_OF_ALL)
        else:
            if region.begin > at:
                yield look_through(read(at, region.begin), at, record, OUTSIDE_OF_ALL)
            yield region
        at = region.end
    if at < size:
        yield look_through(read(at, size), at, record, OUTSIDE_OF_ALL)


def _after(opened: Ancestors, closed: int, more: Ancestors) -> Ancestors:
    return opened[: max(0, len(opened) - closed)] + more
