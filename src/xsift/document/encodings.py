"""Encodings: text as UTF-8, which encoding a document has, and single-byte encodings that expat does not know itself,
as tables of characters.

expat reads UTF-8, UTF-16, ISO-8859-1 and US-ASCII. For other encodings it asks, and can be given a table of 256
characters. Python's codecs supply it, for the encodings listed here only: a document must not make Python import
or run whatever codec it names. Encodings with more than one byte for a character are not supported.
"""

from __future__ import annotations

import codecs
import re
from array import array
from encodings import normalize_encoding
from encodings.aliases import aliases
from functools import cache
from typing import TYPE_CHECKING

from xsift.document.faults import LONE_SURROGATE, document_error

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["SINGLE_BYTE", "character_table", "codec_of", "proper_name", "utf8"]

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_DECLARED = re.compile(rb"<\?xml\s[^>]*?encoding\s*=\s*[\"']([A-Za-z0-9._-]+)[\"']")

# Documents often misspell what expat does know.
_PROPER = {"utf8": "UTF-8", "utf16": "UTF-16"}
_EXPATS = {*_PROPER, "utf-8", "utf-16", "utf-16be", "utf-16le", "iso-8859-1", "us-ascii"}

SINGLE_BYTE = frozenset(
    [f"iso8859_{part}" for part in (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16)]
    + [f"cp{page}" for page in range(1250, 1259)]
    + ["cp437", "cp720", "cp737", "cp775", "cp850", "cp852", "cp855", "cp856", "cp857", "cp858", "cp860", "cp861"]
    + ["cp862", "cp863", "cp865", "cp866", "cp869", "cp874", "cp1006", "cp1125"]
    + ["hp_roman8", "koi8_r", "koi8_t", "koi8_u", "kz1048", "latin_1", "ascii", "ptcp154", "tis_620"]
    + ["mac_cyrillic", "mac_greek", "mac_iceland", "mac_latin2", "mac_roman", "mac_turkish"]
)

# Where an encoding has other characters than ASCII below 128, XML's own markup could mean something else.
_ASCII = "".join(map(chr, range(128)))


def character_table(name: str) -> bytes | None:
    """256 native integers as bytes, the character of each byte or -1; None if the encoding is not supported."""
    normalized = normalize_encoding(name).lower()
    codec = aliases.get(normalized, normalized)
    return _table(codec) if codec in SINGLE_BYTE else None


def proper_name(name: str) -> str:
    """The name under which expat knows an encoding that it does not know by this name ("utf8"); "" if none."""
    return _PROPER.get(name.lower(), "")


def utf8(text: str) -> bytes:
    """A document that is text, as UTF-8. Raises DocumentError if it has half of a surrogate pair."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        before = text[: error.start]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        raise document_error(LONE_SURROGATE, line, column, len(before.encode())) from None


def codec_of(data: Buffer, encoding: str | None) -> str:
    """The name of the codec that decodes a document, or any slice of it: the one that it was given with, else what
    its beginning says, as expat has it. A byte order mark is right whatever is declared; and where an encoding that
    expat itself knows was given, what begins with a mark, or as UTF-16, is what it looks like."""
    if encoding is not None and encoding.lower() not in _EXPATS:
        return encoding
    head = _head(memoryview(data))
    for mark, codec in _MARKS:
        if head.startswith(mark):
            return codec
    if b"\0" in head[:2]:
        return "utf-16-le" if head[0] else "utf-16-be"
    if encoding is not None:
        return encoding
    declared = _DECLARED.match(head)
    return declared[1].decode() if declared else "utf-8"


def _head(data: memoryview) -> bytes:
    """The beginning of a document, with all of its XML declaration."""
    size = 256
    while True:
        head = bytes(data[:size])
        if b"?>" in head or size >= len(data) or not head.startswith(b"<?xml"):
            return head
        size *= 4


@cache
def _table(codec: str) -> bytes | None:
    characters = [bytes([byte]).decode(codec, "replace") for byte in range(256)]
    if "".join(characters[:128]) != _ASCII:
        return None
    return array("i", [-1 if character == "\ufffd" else ord(character) for character in characters]).tobytes()
