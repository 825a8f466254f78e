"""Which element was open where a document broke off: found by reading it again, only to write a better error.

"An end tag does not match" sends people searching; "</a> closes <b>, which was opened in line 7" does not. While a
document is read nobody keeps the names of open elements, so the beginning of a broken one is read once more.
"""

from __future__ import annotations

import re
from typing import Any
from xml.parsers import expat

from xsift.errors import DocumentError

__all__ = ["name_open_element"]

MOST_BYTES, MOST_ELEMENTS = 16 << 20, 200_000  # of the part that is read again: an error must not cost much
NAME = re.compile(rb"[^\s<>/]{1,200}")
WIDE = (b"\xff\xfe", b"\xfe\xff", b"<\0", b"\0<")


def name_open_element(error: DocumentError, data: Any, encoding: str | None) -> None:
    """Says in an error about tags that do not match, or are missing at the end, which they are. `data` is the
    document's beginning, up to the error at least."""
    if error.code not in ("tag-mismatch", "truncated-document") or error.offset > MOST_BYTES:
        return
    start = bytes(memoryview(data)[: error.offset])
    if start.startswith(WIDE):
        return  # bytes are not characters there
    if error.code == "tag-mismatch":
        start = start.removesuffix(b"</")
    opened = _innermost(start, encoding)
    if opened is None:
        return
    name, line, column = opened
    where = f"<{name}> (opened in line {line}, column {column})"
    if error.code == "truncated-document":
        _say(error, f"the document ends inside of {where}")
        return
    found = NAME.match(bytes(memoryview(data)[error.offset : error.offset + 200]))
    closing = found[0].decode("utf-8", "replace") if found else "…"
    _say(error, f"the end tag </{closing}> does not match {where}")


def _say(error: DocumentError, message: str) -> None:
    error.message = message
    error.args = (error.code, message)


def _innermost(start: bytes, encoding: str | None) -> tuple[str, int, int] | None:
    """The name, line and column of the innermost element that is open after these bytes."""
    try:
        parser = expat.ParserCreate(encoding)
    except ValueError:
        return None
    parser.specified_attributes = True  # else each element is given all that a DTD declares for it
    opened: list[tuple[str, int, int]] = []
    count = 0

    def begin(name: str, _: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if count > MOST_ELEMENTS:
            raise ValueError("too many elements")
        opened.append((name, parser.CurrentLineNumber, parser.CurrentColumnNumber + 1))

    parser.StartElementHandler = begin
    parser.EndElementHandler = lambda _: opened.pop()
    try:
        parser.Parse(start, False)
    except (expat.ExpatError, LookupError, ValueError):
        return None
    return opened[-1] if opened else None
