"""Rows of TSV and CSV files with their line numbers, and what is wrong with lines that are no rows.

Arrow reads such files faster, but stops at the first row that it does not like and cannot say which one it was. Here
a bad row is one bad row. A quoted cell of a CSV file may go over several lines; if its closing quote is missing, only
the line with the opening one is lost.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from xsift.sources.compression import ByteStream, chunks_of

__all__ = ["DelimitedRow", "read_rows"]

LINE_LIMIT_BYTES = 1 << 20  # of a line, and of a quoted cell over several lines
REPLACED = "\ufffd".encode()


@dataclass(slots=True)
class DelimitedRow:
    """A row: its line, counted from 1, its cells; or what is wrong with it. `comment` says that it begins with #."""

    line: int
    cells: list[str]
    fault: str = ""
    comment: bool = False
    text: str = ""
    """The line as it stands, of the first row and of those with a fault."""


def read_rows(file: ByteStream, delimiter: str) -> Iterator[DelimitedRow]:
    """All rows but empty ones. With a comma or a semicolon as delimiter, cells may be quoted."""
    lines = _Lines(file)
    while (found := lines.next()) is not None:
        number, line = found
        if line is None:
            yield DelimitedRow(number, [], f"it is longer than {LINE_LIMIT_BYTES:,} bytes, or not in UTF-8")
        elif not line.strip():
            continue
        elif line.startswith("#"):
            yield DelimitedRow(number, [], comment=True)
        elif delimiter == "\t":
            yield DelimitedRow(number, line.split("\t"), text=line)
        else:
            yield _quoted_row(number, line, delimiter, lines)


def _quoted_row(number: int, line: str, delimiter: str, lines: _Lines) -> DelimitedRow:
    """A row that begins with this line, and takes as many more as its quotes enclose."""
    more = 0

    def asked_for() -> Iterator[str]:
        nonlocal more
        yield f"{line}\n"
        size = len(line)
        while size <= LINE_LIMIT_BYTES and (following := lines.ahead(more)) is not None:
            more += 1
            size += len(following)
            yield f"{following}\n"

    try:
        cells = next(csv.reader(asked_for(), delimiter=delimiter, strict=True))
    except csv.Error as error:  # the first line alone is at fault: a quote may be out of place in it
        return DelimitedRow(number, [], _spoken(str(error), more), text=line)
    lines.take(more)
    return DelimitedRow(number, cells, text=line)


def _spoken(fault: str, more: int) -> str:
    if more or "unexpected end of data" in fault:
        return "its quotes are not closed, or out of place"
    return "a quote is out of place: a cell with quotes in it stands in quotes, and has each of them twice"


class _Lines:
    """The lines of a file, decoded, without their ends; some of those ahead can be looked at. A line that cannot be
    read is None."""

    def __init__(self, file: ByteStream) -> None:
        self._lines = _numbered(file)
        self._ahead: list[tuple[int, str | None]] = []
        self._taken = 0  # of those

    def next(self) -> tuple[int, str | None] | None:
        if self._taken == len(self._ahead):
            return next(self._lines, None)
        found = self._ahead[self._taken]
        self.take(1)
        return found

    def ahead(self, place: int) -> str | None:
        """The line that many places ahead; None if there is none, or it cannot be read."""
        while len(self._ahead) - self._taken <= place:
            found = next(self._lines, None)
            if found is None:
                return None
            self._ahead.append(found)
        return self._ahead[self._taken + place][1]

    def take(self, number: int) -> None:
        """Skips that many lines: they belong to the row before."""
        self._taken += number
        if 2 * self._taken >= len(self._ahead):
            del self._ahead[: self._taken]
            self._taken = 0


def _numbered(file: ByteStream) -> Iterator[tuple[int, str | None]]:
    number = 0
    for line in _byte_lines(file):
        number += 1
        if line is None:
            yield number, None
            continue
        try:
            yield number, line.decode()
        except UnicodeDecodeError:
            yield number, None


def _byte_lines(file: ByteStream) -> Iterator[bytes | None]:
    """The lines as UTF-8; None for one that is too long."""
    held = b""
    skipping = False
    for chunk in _as_utf8(chunks_of(file)):
        *whole, rest = (held + chunk).replace(b"\r\n", b"\n").split(b"\n")
        for line in whole:
            yield None if skipping or len(line) > LINE_LIMIT_BYTES else line
            skipping = False
        held = rest
        if len(held) > LINE_LIMIT_BYTES:
            skipping = True
            held = b""
    if skipping:
        yield None
    elif held:
        yield held.removesuffix(b"\r")


def _as_utf8(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The chunks without a byte order mark; as UTF-8, if the mark says UTF-16, as spreadsheets write it."""
    first = next(chunks, b"")
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        decoder = codecs.getincrementaldecoder("utf-16")("replace")
        for chunk in chain([first], chunks, [b""]):
            text = decoder.decode(chunk, final=not chunk).encode("utf-8", "replace")
            yield text.replace(REPLACED, b"\xff")  # no UTF-8: the row that has it is an error
        return
    yield first.removeprefix(codecs.BOM_UTF8)
    yield from chunks
