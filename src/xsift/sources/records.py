"""Cutting a huge XML file into records, without parsing it: a dump of articles into articles.

The naive way looks for `<article` and `</article>` from wherever a split begins. It goes wrong when the split begins
inside a comment, in CDATA, or in an article that contains articles. Whether it does cannot be told from the place
alone, so the places at which a file is split are found by one fast pass from its beginning that looks at nothing but
comments, CDATA, processing instructions and tags (inside of a record: at the record's own tags only); each split then
begins exactly at a record. The outermost records count; those inside them stay inside.

A record leaves its ancestors behind, and with them what was declared there: namespaces are repeated in the record's
start tag, and the entities that it refers to in a DOCTYPE before it. Its bytes are UTF-8, whatever the file's are.

Time is in proportion to what is read and written. What is repeated in front of records is bounded: a small file with
a large declaration and many small records could otherwise become many times as large.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from xsift.document import Limits
from xsift.document.encodings import codec_of
from xsift.errors import DocumentError

__all__ = [
    "Ancestors",
    "Header",
    "Record",
    "beginning",
    "decoded",
    "read_header",
    "scan_records",
    "split_places",
    "wide_encoding",
]

HEADER_LIMIT_BYTES = 16 * 2**20  # of all that may come before a root's first child
DECLARATION_LIMIT_BYTES = 2**14
TAG_LIMIT_BYTES = 2**20  # of a start tag
ANCESTOR_LIMIT = 100_000  # elements that are open around a record
DEFAULT_RECORD_LIMIT_BYTES = 256 * 2**20

REST_OF_TAG = re.compile(rb"(?:[^\"'>]++|\"[^\"]*+\"|'[^']*+')*+>")
ATTRIBUTE = re.compile(rb"\s([^\s=/>\"']+)\s*=\s*(\"[^\"]*\"|'[^']*')")
SUBSET_TOKEN = re.compile(rb"<!--.*?-->|<\?.*?\?>|\"[^\"]*\"|'[^']*'|\]|[^\]\"'<]+|<(?!!--|\?)", re.S)
MARKUP = rb"<(?:!--|!\[CDATA\[|\?|%s)"
OUTSIDE = re.compile(MARKUP % rb"/?[^\s/>!?<]+(?=[\s/>])")  # of records: every tag counts
ENTITY = re.compile(rb"<!ENTITY\s+([^\s%\"'>]+)\s+(\"[^\"]*\"|'[^']*')\s*>")
ELEMENT = re.compile(rb"<!ELEMENT[^>\"']*>")  # says what may be where: nothing that a record needs
REFERENCE = re.compile(rb"&([^\s#;&<]+);")
SINGLE_BYTE = re.compile(r"(us-)?ascii|utf-?8|iso-?8859-?\d+|latin-?\d|windows-125\d|cp125\d", re.I)
UTF8 = ("utf-8", "utf8")
MARKS = b"\xef\xbb\xbf\xfe\xff"  # the bytes of byte order marks
UTF32_MARKS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)

Declarations = tuple[tuple[bytes, bytes], ...]
"""Attributes that declare namespaces: names and quoted values."""
Ancestors = tuple[Declarations, ...]
"""What is declared on each element that is open, from the root's child on."""


@dataclass(frozen=True)
class Record:
    """A record: where it begins in the file (in what `decoded` made of it), and its XML."""

    position: int
    xml: bytes


@dataclass(frozen=True)
class Header:
    """What comes before the first child of the root, as far as records need it."""

    encoding: str
    doctype: bytes
    """The internal subset without the entities that are in `entities`; empty if records can do without it."""
    entities: Mapping[bytes, bytes]
    """Entities with their declarations: a record repeats those that it refers to."""
    namespaces: Declarations
    """What is declared on the root."""
    root: bytes
    end: int
    """The place after the root's start tag; its beginning, if the root is itself a record."""

    def declarations(self, name: bytes, raw: bytes) -> bytes:
        """The DOCTYPE that a record needs, with the entities that it refers to, itself or through others."""
        needed: dict[bytes, bytes] = {}
        waiting = REFERENCE.findall(self.doctype + raw) if self.entities else []
        while waiting:
            entity = waiting.pop()
            declaration = self.entities.get(entity)
            if declaration is not None and entity not in needed:
                needed[entity] = declaration
                waiting += REFERENCE.findall(declaration)
        subset = b"".join(needed.values()) + self.doctype
        return b"<!DOCTYPE %s [%s]>" % (name, subset) if subset else b""


def wide_encoding(first: bytes, record: str, given: str | None = None) -> str | None:
    """The codec of a file that has to be decoded before it is cut; None if its bytes can be cut. `first` is its
    beginning; `given` is its encoding, whatever it declares. As for a document that is not cut, see `codec_of`."""
    codec = "utf-32" if given is None and first.startswith(UTF32_MARKS) else codec_of(first, given)
    return None if _is_cut_bytewise(codec, record) else _known(codec)


def decoded(chunks: Iterable[bytes], codec: str) -> Iterator[bytes]:
    """The chunks as UTF-8."""
    remaining = iter(chunks)
    decoder = codecs.getincrementaldecoder(codec)(UNDECODED)
    try:
        text = decoder.decode(next(remaining, b"")).removeprefix("\ufeff")
    except UnicodeError:  # it should begin with a byte order mark
        reason = f"the file does not begin as one in {codec}"
        raise DocumentError("incorrect-encoding", reason, line=1, column=1) from None
    # What it says of its encoding is no longer true.
    yield _utf8(re.sub(r"(<\?xml[^>]*?)encoding\s*=\s*[\"'][^\"']*[\"']", r"\1", text, count=1))
    for chunk in remaining:
        yield _utf8(decoder.decode(chunk))


def beginning(chunks: Iterator[bytes]) -> bytes:
    """The first chunk; from a pipe as many as it takes to have the whole of the XML declaration, if there is one."""
    first = b""
    for chunk in chunks:
        first = first + chunk if first else chunk
        plain = first[:DECLARATION_LIMIT_BYTES].replace(b"\0", b"").lstrip(MARKS)
        may_declare = plain.startswith(b"<?xml") or b"<?xml".startswith(plain)
        if not may_declare or b">" in plain or len(first) >= DECLARATION_LIMIT_BYTES:
            break
    return first


def _as_no_character(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "\udcff", error.end


UNDECODED = "xsift-undecoded"
"""How to decode so that bytes without a meaning stay without one in UTF-8: whoever reads that record finds it broken
there. A replacement character would be an answer about a text that nobody wrote."""
codecs.register_error(UNDECODED, _as_no_character)


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _is_cut_bytewise(encoding: str, record: str) -> bool:
    """Whether markup and the name of the record are the same bytes in an encoding as in UTF-8."""
    return bool(SINGLE_BYTE.fullmatch(encoding)) and (record.isascii() or encoding.lower() in UTF8)


def _known(encoding: str) -> str:
    try:
        b"<".decode(encoding, UNDECODED)  # some codecs are not of text, and some know only their own error handlers
        return codecs.lookup(encoding).name
    except (LookupError, UnicodeError):
        raise DocumentError("unknown-encoding", f"the encoding {encoding!r} is not known", line=1, column=1) from None


def read_header(chunks: Iterable[bytes], record: str, encoding: str | None = None) -> Header:
    """The header of a file, from its first chunks. `encoding` is the file's, whatever it declares."""
    found = _read_header(chunks, record, encoding)
    if found.encoding.lower() not in UTF8:
        _known(found.encoding)
    return found


def _read_header(chunks: Iterable[bytes], record: str, encoding: str | None) -> Header:
    head = bytearray()
    tried = 0  # bytes that were looked through in vain: they are looked through again once there are twice as many
    for chunk in chunks:
        head += chunk
        if len(head) < 2 * tried:
            continue
        found = _parse_header(bytes(head), record.encode(), encoding)
        if found is not None:
            return found
        tried = len(head)
        if tried > HEADER_LIMIT_BYTES:
            raise DocumentError("header-too-long", f"no root element in the first {HEADER_LIMIT_BYTES:,} bytes")
    found = _parse_header(bytes(head), record.encode(), encoding)
    if found is None:
        raise DocumentError("no-root", "the file ends before its root element begins")
    return found


def _parse_header(head: bytes, record: bytes, given: str | None) -> Header | None:
    """The header, or None if there is not enough of it yet."""
    encoding, doctype = codec_of(head, given), b""
    place = head.find(b"<")
    while place >= 0:
        if head.startswith(b"<!--", place):
            end = _after(head, b"-->", place + 4)
        elif head.startswith(b"<?", place):
            end = _after(head, b"?>", place + 2)
        elif head.startswith(b"<!DOCTYPE", place):
            end, doctype = _skip_doctype(head, place)
        elif len(head) - place < 9 and head[place + 1 : place + 2] in (b"", b"!"):
            return None  # it could still become any of the above
        else:
            return _root(head, place, encoding, doctype, record)
        if end < 0:
            return None
        place = head.find(b"<", end)
    return None


def _after(head: bytes, ending: bytes, place: int) -> int:
    found = head.find(ending, place)
    return found + len(ending) if found >= 0 else -1


def _skip_doctype(head: bytes, place: int) -> tuple[int, bytes]:
    outer = re.compile(rb"(?:[^\"'>\[]++|\"[^\"]*+\"|'[^']*+')*+([>\[])").match(head, place + 9)
    if outer is None:
        return -1, b""
    if outer[1] == b">":
        return outer.end(), b""
    at = outer.end()
    while (token := SUBSET_TOKEN.match(head, at)) is not None:
        if token[0] == b"]":
            subset = head[outer.end() : at]
            return _after(head, b">", token.end()), subset if b"<!ENTITY" in subset else b""
        at = token.end()
    return -1, b""


def _root(head: bytes, place: int, encoding: str, doctype: bytes, record: bytes) -> Header | None:
    rest = REST_OF_TAG.match(head, place + 1)
    if rest is None:
        return None
    tag = head[place : rest.end()]
    name = re.split(rb"[\s/>]", tag[1:], maxsplit=1)[0]
    subset, entities = _take_entities(doctype)
    if name == record:
        return Header(encoding, subset, entities, (), name, place)
    return Header(encoding, subset, entities, declarations_of(tag), name, rest.end())


def _take_entities(subset: bytes) -> tuple[bytes, dict[bytes, bytes]]:
    """What records need of an internal subset, without its entities; and these. If there are parameter entities, all
    of it stays together: which declarations there are cannot be told then."""
    if not subset or b"%" in subset:
        return subset, {}
    tokens = (token[0] for token in SUBSET_TOKEN.finditer(subset))
    subset = b"".join(token for token in tokens if not token.startswith((b"<!--", b"<?")))
    entities: dict[bytes, bytes] = {}
    for found in ENTITY.finditer(subset):
        entities.setdefault(found[1], found[0])  # the first declaration counts
    return ELEMENT.sub(b"", ENTITY.sub(b"", subset)).strip(), entities


def declarations_of(tag: bytes) -> Declarations:
    if b"xmlns" not in tag:
        return ()
    found = ATTRIBUTE.findall(tag)
    return tuple((key, value) for key, value in found if key == b"xmlns" or key.startswith(b"xmlns:"))


class _Scanner:
    """Finds the outermost records in chunks that begin outside of any, below open elements."""

    def __init__(
        self, chunks: Iterable[bytes], record: str, base: int, limit_bytes: int, ancestors: Ancestors = ()
    ) -> None:
        self.buffer = bytearray()
        self.base = base  # the place in the file of buffer[0]
        self.ancestors: list[Declarations] = []
        self.scope = _Scope()
        for declared in ancestors:
            self._open(declared)
        self._chunks = iter(chunks)
        self._limit_bytes = limit_bytes
        self._record = record.encode()
        self._inside = re.compile(MARKUP % (rb"/?" + re.escape(self._record) + rb"(?=[\s/>])"))
        self._longest = max(len(self._record) + 3, 9)

    def records(self) -> Iterator[tuple[int, int, int]]:
        """The beginning, the end of the start tag, and the end of each record in the buffer; valid until the next one
        is asked for."""
        place, start, tag_end, depth = 0, -1, 0, 0
        while True:
            found = (self._inside if start >= 0 else OUTSIDE).search(self.buffer, place)
            if found is None:
                place = max(place, self._unfinished(place) if start < 0 else len(self.buffer) - self._longest)
                shift = self._more(start if start >= 0 else place)
                if shift is None:
                    break
                place, start, tag_end = place - shift, start - shift if start >= 0 else -1, tag_end - shift
                continue
            begin, text = found.start(), found[0]
            keep = start if start >= 0 else begin
            if text in (b"<!--", b"<![CDATA[", b"<?"):
                ending = {b"<!--": b"-->", b"<![CDATA[": b"]]>", b"<?": b"?>"}[bytes(text)]
                place, shift = self._skip(ending, found.end(), start)
                start, tag_end = start - shift if start >= 0 else -1, tag_end - shift
                if place < 0:
                    break
                continue
            end = self._tag_end(found.end())
            if end < 0:
                shift = self._more(keep)
                if shift is None:
                    break
                place, start, tag_end = begin - shift, start - shift if start >= 0 else -1, tag_end - shift
                if len(self.buffer) - place > self._limit_bytes:
                    break
                continue
            place = end
            if start < 0 and text.lstrip(b"</") != self._record:
                self._pass(text, begin, end)
                continue
            if text[1:2] == b"/":
                depth = max(0, depth - 1)
            elif self.buffer[end - 2] != ord("/"):
                depth += 1
            if start < 0 and text[1:2] != b"/":
                start, tag_end = begin, end
            if start >= 0 and depth == 0:
                yield start, tag_end, end
                start = -1
        if start >= 0:  # the file ends inside a record: it is delivered as it is, and matching will call it broken
            yield start, tag_end, len(self.buffer)

    def _unfinished(self, place: int) -> int:
        """Where a tag may have begun whose name is not yet whole."""
        last = self.buffer.rfind(b"<", place)
        return last if last >= 0 and len(self.buffer) - last <= TAG_LIMIT_BYTES else len(self.buffer) - self._longest

    def _pass(self, text: bytes, begin: int, end: int) -> None:
        """Notes a tag that is not inside of a record: which elements are open, and what they declare."""
        if text[1:2] == b"/":
            if self.ancestors:
                self.scope.leave(len(self.ancestors.pop()))
        elif self.buffer[end - 2] != ord("/"):
            if len(self.ancestors) >= ANCESTOR_LIMIT:
                place = self.base + begin
                raise DocumentError(
                    "too-deep", f"more than {ANCESTOR_LIMIT:,} elements are open at byte {place}", offset=place
                )
            self._open(declarations_of(bytes(self.buffer[begin:end])))

    def _open(self, declared: Declarations) -> None:
        self.ancestors.append(declared)
        self.scope.enter(declared)

    def _tag_end(self, place: int) -> int:
        rest = REST_OF_TAG.match(self.buffer, place)
        if rest is not None:
            return rest.end()
        if len(self.buffer) - place > TAG_LIMIT_BYTES:
            raise DocumentError(
                "tag-too-long", f"the tag before byte {self.base + place} does not end", offset=self.base + place
            )
        return -1

    def _skip(self, ending: bytes, place: int, start: int) -> tuple[int, int]:
        """The place after an ending, -1 if there is none; and by how much the buffer was shifted meanwhile."""
        shifted = 0
        while (found := self.buffer.find(ending, place)) < 0:
            place = max(place, len(self.buffer) - len(ending) + 1)
            shift = self._more(start if start >= 0 else place)
            if shift is None:
                return -1, shifted
            place, shifted = place - shift, shifted + shift
            start = start - shift if start >= 0 else -1
        return found + len(ending), shifted

    def _more(self, keep: int) -> int | None:
        """Reads one more chunk and drops what is before `keep`; by how much places shifted, or None at the end."""
        chunk = next(self._chunks, None)
        if chunk is None:
            return None
        del self.buffer[:keep]
        self.base += keep
        self.buffer += chunk
        if len(self.buffer) - len(chunk) > self._limit_bytes:
            raise DocumentError(
                "record-too-long",
                f"the record at byte {self.base} is longer than {self._limit_bytes:,} bytes",
                offset=self.base,
                hint="raise the option maxRecordBytes if that is right",
            )
        return keep


class _Scope:
    """The namespaces that are in scope, while elements open and close."""

    def __init__(self) -> None:
        self.declared: dict[bytes, bytes] = {}
        self._hidden: list[tuple[bytes, bytes | None]] = []  # what to put back, innermost last

    def enter(self, declared: Declarations) -> None:
        """An element opens."""
        for name, value in declared:
            self._hidden.append((name, self.declared.get(name)))
            self.declared[name] = value

    def leave(self, number: int) -> None:
        """An element with that many declarations closes."""
        for _ in range(number):
            name, value = self._hidden.pop()
            if value is None:
                del self.declared[name]
            else:
                self.declared[name] = value


@dataclass
class _Finisher:
    """Makes records stand alone, and counts what that adds to them."""

    header: Header
    name: bytes
    limits: Limits
    _read: int = field(default=0, init=False)
    _added: int = field(default=0, init=False)

    def finished(self, tag_end: int, raw: bytes, scope: Mapping[bytes, bytes], position: int) -> bytes:
        """A record that can stand alone. `tag_end` is the length of its start tag; `scope` is what is declared by
        elements between the root and the record."""
        self._read += len(raw)
        missing = self._namespaces(raw[:tag_end], scope)
        cut = 1 + len(self.name)
        doctype = self.header.declarations(self.name, raw)
        self._add(len(missing) + len(doctype), position)
        if missing:
            raw = raw[:cut] + missing + raw[cut:]
        if self.header.encoding.lower() not in UTF8:
            return _utf8((doctype + raw).decode(self.header.encoding, UNDECODED))
        return doctype + raw

    def _namespaces(self, tag: bytes, scope: Mapping[bytes, bytes]) -> bytes:
        if not self.header.namespaces and not scope:
            return b""
        declared = dict(self.header.namespaces)
        declared.update(scope)
        own = {attribute for attribute, _ in ATTRIBUTE.findall(tag)} if b"xmlns" in tag else set()
        return b"".join(b" %s=%s" % pair for pair in declared.items() if pair[0] not in own)

    def _add(self, size: int, position: int) -> None:
        self._added += size
        allowed = self.limits.amplification_bytes + self.limits.amplification * self._read
        if self._added > allowed:
            raise DocumentError(
                "record-amplification",
                f"declarations that are repeated in front of records, up to the one at byte {position}, "
                f"are more than {self.limits.amplification:g} times as large as the records",
                offset=position,
                hint="raise Limits(amplification=…) if the file can be trusted",
            )


def scan_records(
    chunks: Iterable[bytes],
    record: str,
    header: Header,
    base: int,
    limit_bytes: int = DEFAULT_RECORD_LIMIT_BYTES,
    ancestors: Ancestors = (),
    limits: Limits | None = None,
) -> Iterator[Record]:
    """The records in chunks that begin at byte `base` of the file, outside of any record. `limits` bound what is
    repeated in front of them (amplification, amplification_bytes)."""
    scanner = _Scanner(chunks, record, base, limit_bytes, ancestors)
    finisher = _Finisher(header, record.encode(), limits or Limits())
    for start, tag_end, end in scanner.records():
        raw = bytes(scanner.buffer[start:end])
        position = scanner.base + start
        yield Record(position, finisher.finished(tag_end - start, raw, scanner.scope.declared, position))


def split_places(
    chunks: Iterable[bytes], record: str, base: int, split_bytes: int, limit_bytes: int = DEFAULT_RECORD_LIMIT_BYTES
) -> list[tuple[int, Ancestors]]:
    """Places of records at which to split, about `split_bytes` apart, and the elements that are open there; the first
    is `base`."""
    scanner = _Scanner(chunks, record, base, limit_bytes)
    places: list[tuple[int, Ancestors]] = [(base, ())]
    for start, _, _ in scanner.records():
        if scanner.base + start >= places[-1][0] + split_bytes:
            places.append((scanner.base + start, tuple(scanner.ancestors)))
    return places
