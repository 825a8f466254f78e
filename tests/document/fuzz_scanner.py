"""Shows that the scanner and expat agree: random documents, read by both, have equal events, offsets, names, errors.

    python -m tests.document.fuzz_scanner --seconds 3600 [--seed N] [FILE or FOLDER …]

Documents are made of pieces that matter to a parser, or are the given files (XML of any kind), and are then damaged
the way documents are: pieces lost, doubled, moved, exchanged, bytes changed. Each one is read from memory, from a
stream in random pieces, and with several kinds of questions asked. A difference is printed as a Python literal, to
become a case in test_scanner.py.
"""

from __future__ import annotations

import argparse
import io
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.document.support import (
    ANY_ATTRIBUTE,
    ATTRIBUTE,
    CONTAINS,
    EQUAL,
    NAMESPACE,
    NOT_EQUAL,
    STRING,
    TEXT,
    Asked,
    Spec,
)
from xsift.document import DocumentTree, Limits, Reader, document_statistics
from xsift.document.document import Readable
from xsift.errors import DocumentError

# What a reader says of a document: events, offsets and names, or what it says is wrong, and where.
Answer = tuple[object, ...]


class Pieces(io.RawIOBase):
    """A file that gives pieces of random sizes."""

    def __init__(self, data: bytes, choose: random.Random) -> None:
        self.data, self.at, self.choose = data, 0, choose
        self.most = choose.choice((1, 2, 3, 7, 20, 100, 1000, 70_000))

    def read(self, size: int = -1) -> bytes:
        step = self.choose.randint(1, self.most)
        self.at += step
        return self.data[self.at - step : self.at]


def asked_of(kind: int) -> Asked:
    """Questions to ask: nothing; names; attributes; text; everything."""
    asked = Asked(
        ["a", "b", "c", "é", "p", "{urn:n}a", "{urn:n}b", "{u}p", "{http://www.w3.org/XML/1998/namespace}a"]
    )
    if kind == 0:
        return Asked([])
    if kind & 1:
        asked.add(
            "*",
            Spec(ATTRIBUTE, EQUAL, "1", "x"),
            Spec(ATTRIBUTE, CONTAINS, " ", "y"),
            Spec(NAMESPACE, EQUAL, "urn:n"),
        )
        asked.add("*", Spec(ANY_ATTRIBUTE, CONTAINS, "<"), Spec(ANY_ATTRIBUTE, EQUAL, "é\n"))
        asked.add("*", Spec(ATTRIBUTE, EQUAL, "1", "urn:n\x1fx"), Spec(ANY_ATTRIBUTE, NOT_EQUAL, "", "urn:n"))
        asked.add("*", Spec(ATTRIBUTE, EQUAL, "de", "http://www.w3.org/XML/1998/namespace\x1flang"))
    if kind & 2:
        asked.add("*", Spec(TEXT, CONTAINS, "\n"), Spec(TEXT, EQUAL, ""), Spec(TEXT, EQUAL, "t"))
        asked.add("b", Spec(TEXT, CONTAINS, "é"))
    if kind & 4:
        asked.add("a", Spec(STRING, CONTAINS, "t<"), Spec(STRING, EQUAL, "t&"))
        asked.add("{urn:n}b", Spec(STRING, NOT_EQUAL, "t"))
    return asked


LIMITS = [
    Limits(),
    Limits(),
    Limits(),
    Limits(depth=3, attributes=3, name_bytes=8, text_bytes=12, token_bytes=100, bytes=2000),
    Limits(amplification=2, amplification_bytes=20),
]


class Comparison:
    """Readers with and without the scanner, for one kind of questions."""

    def __init__(self, kind: int, limits: Limits) -> None:
        index = asked_of(kind).document_index()
        options: dict[str, Any] = {"limits": limits, "positions": bool(kind & 1), "keep_names": bool(kind & 2)}
        self.scanner, self.expat = Reader(index, **options), Reader(index, **options, scanner=False)
        self.limited = limits != Limits()

    def differences(self, document: bytes, choose: random.Random) -> Iterator[str]:
        """What the scanner says that expat does not."""
        expected = answer(self.expat, document)
        found = answer(self.scanner, document)
        if found != expected:
            yield f"in memory: {found} instead of {expected}"
        found = chunks(self.scanner, document)
        if found[:2] != expected[:2]:
            yield f"in chunks: {found} instead of {expected}"
        if not self.limited:  # which slices a stream comes in decides when limits are looked at
            found = answer(self.scanner, Pieces(document, choose))
            if found != expected:
                yield f"as a stream: {found} instead of {expected}"


def answer(reader: Reader, source: bytes | Readable) -> Answer:
    try:
        document = reader.read(source)
    except DocumentError as error:
        return ("refused", error.code, error.line, error.column, error.offset)
    names: list[str] = []
    if reader.keeps_names:
        tree = DocumentTree(document)
        names = [f"{tree.name(number)} {tree.path(number)}" for number in range(1, len(tree) + 1)]
    return (document.events, document.positions, names)


def chunks(reader: Reader, document: bytes) -> Answer:
    events: list[int] = []
    try:
        reader.open(document)
        while chunk := reader.chunk_of_events():
            events += chunk
    except DocumentError as error:
        return ("refused", error.code)
    # The offsets are compared elsewhere.
    return (events, answer(reader, document)[1])


# Making documents.

NAMES = ["a", "b", "c", "é", "p:a", "n:b", "xml:a", "a-1.b", "日本", "n:é", "_", "abcdefghijklmnopq", "ab", "n:n"]
TEXTS = [
    "t", " ", "\n", "\r\n", "\r", "\t", "&amp;", "&lt;", "&gt;", "&quot;", "&apos;", "&#65;", "&#x41;", "&#13;",
    "&#10;", "&#xE9;", "&#x1F600;", "&#0;", "&#xFFFE;", "&#xD800;", "&#x110000;", "&#;", "&#x;", "&e;", "&", "]",
    "]]", "]]>", "é", "日本", "😀", "\x7f", "\x01", "\ufffe", "\ufffd", "\u0085", "x" * 17, "y" * 40, "'", '"', ">",
    "--", "a b c", "-", "?",
]  # fmt: skip
ATTRIBUTES = [
    "x", "y", "n:x", "m:x", "xml:lang", "xmlns", "xmlns:n", "xmlns:m", "xmlns:p", "xmlns:xml", "xmlns:xmlns",
    "xmlnsx", "é", "x1", "x2", "longattributename", "longattributenamf", "a:b:c", ":x", "x:", "-x", "X",
]  # fmt: skip
VALUES = [
    "1", "", "de", "urn:n", "u", "a&#10;b", "a&amp;b", "\n", "\r\n", "\t ", "é", "日", "<", "&lt;", "&nope;",
    "v" * 20, "\x02", "http://www.w3.org/XML/1998/namespace", "http://www.w3.org/2000/xmlns/", "é&#10;", "]]>", ">",
    "w" * 70,
]  # fmt: skip
HEADS = [
    "<?xml version='1.0' encoding='ASCII'?>",
    "", "", "", "\ufeff", "<?xml version='1.0'?>", '<?xml version="1.0" encoding="UTF-8"?>\n',
    "<?xml version='1.1'?>", '<?xml version="1.0" encoding="us-ascii"?>',
    '<?xml version="1.0" encoding="utf8" standalone="yes" ?>', '<?xml version="1.0" encoding="ISO-8859-1"?>',
    "<?xml version='1.0' standalone='maybe'?>", "<?xml encoding='utf-8'?>",
    '\ufeff<?xml version="1.0" encoding="US-ASCII"?>', " <?xml version='1.0'?>",
    "<?xml  version = '1.0'  standalone='no'?>", "<?xml version='1.0' encoding='nonsense'?>",
    "<?xml version='1.'?>", "<?xml version='1.0' encoding='UTF-16'?>", "<?xml version='1.0'encoding='UTF-8'?>",
    "<?xml version='1.0' standalone='yes' encoding='UTF-8'?>",
]  # fmt: skip
DOCTYPES = [
    "", "", "", "<!DOCTYPE a>", "<!DOCTYPE a SYSTEM 'a.dtd'>", '<!DOCTYPE a PUBLIC "-//A//B" "http://a/b.dtd" >\n',
    "<!DOCTYPE a [<!ENTITY e 'x<b/>'>]>", "<!DOCTYPE a SYSTEM 'a.dtd' []>", "<!DOCTYPE a PUBLIC 'p'>", "<!DOCTYPE>",
    "<!DOCTYPE a PUBLIC '{' 's'>", "<!DOCTYPE a:b>", "<!DOCTYPE a SYSTEM 'é'>", "<!DOCTYPE a SYSTEM'x'>",
    "<!DOCTYPE a a>", "<!DOCTYPE a [<!ATTLIST a x CDATA '1' xmlns CDATA 'urn:n'>]>", "<!doctype a>", "<!DOCTYPE é>",
    "<!DOCTYPE a><!DOCTYPE a>",
]  # fmt: skip
MISC = [
    "<!---->", "<!-- t -->", "<!-- - é -->", "<!-- -- -->", "<!--->", "<?p?>", "<?p t ?>", "<?xml t?>", "<?XML?>",
    "<?p:q?>", "<?é é?>", "<?p ??>", "<? p?>", "<?p>?>", "<!-->-->", "<?xml-stylesheet href='x'?>", "<!--\x01-->",
    "<!--" + "z" * 50 + "-->", "<?p" + " z" * 20 + "?>", "<?p\r\n?>",
]  # fmt: skip
CDATA = [
    "<![CDATA[]]>",
    "<![CDATA[t<&]]>",
    "<![CDATA[]]]]>",
    "<![CDATA[\r\n\r]]>",
    "<![CDATA[é]]x]>]]>",
    "<![CDATA[\x01]]>",
]
SPACES = [" ", " ", " ", "  ", "\n", "\t", "\r\n", ""]


def element(choose: random.Random, level: int) -> str:
    name = choose.choice(NAMES[:4] if choose.random() < 0.8 else NAMES)
    tag = name
    for _ in range(choose.choice((0, 0, 0, 1, 1, 2, 3, 5, 20))):
        quote = choose.choice("\"'")
        # A usual attribute mostly, or nothing would ever be accepted.
        usual = choose.random() < 0.85
        key = choose.choice(ATTRIBUTES[:13] if usual else ATTRIBUTES)
        if usual and choose.random() < 0.6:
            key += str(choose.randrange(30))
        value = choose.choice(VALUES[:12] if usual else VALUES)
        equals = "=" if choose.random() < 0.95 else choose.choice((" = ", "", "\n=", "= "))
        tag += f"{choose.choice(SPACES[:7]) if choose.random() < 0.99 else ''}{key}{equals}{quote}{value}{quote}"
    tag += choose.choice(SPACES) if choose.random() < 0.1 else ""
    if choose.random() < 0.25:
        return f"<{tag}/>"
    inner = "".join(content(choose, level) for _ in range(choose.choice((0, 1, 2, 3, 6)) if level < 6 else 0))
    end = name if choose.random() < 0.995 else choose.choice(NAMES)
    return f"<{tag}>{inner}</{end}{choose.choice(SPACES) if choose.random() < 0.05 else ''}>"


def content(choose: random.Random, level: int) -> str:
    kind = choose.random()
    if kind < 0.5:
        return element(choose, level + 1)
    if kind < 0.9:
        return choose.choice(TEXTS[:17] if choose.random() < 0.95 else TEXTS)
    if kind < 0.95:
        return choose.choice(MISC[:3] if choose.random() < 0.7 else MISC)
    return choose.choice(CDATA[:4] if choose.random() < 0.9 else CDATA)


def made_up(choose: random.Random) -> bytes:
    """A document, mostly well-formed."""
    head = choose.choice(HEADS[:6] if choose.random() < 0.9 else HEADS)
    doctype = choose.choice(DOCTYPES[:6] if choose.random() < 0.9 else DOCTYPES)
    root = element(choose, 0)
    if choose.random() < 0.7:
        root = root.replace("<", '<a xmlns:n="urn:n" xmlns:m="urn:m" xmlns:p="u"><', 1) + "</a>"
    around = [choose.choice(MISC[:2]) if choose.random() < 0.2 else "" for _ in range(3)]
    space = [choose.choice(("", "", "\n", " ", "\r\n")) for _ in range(4)]
    text = (
        head
        + space[0] * (not head)
        + around[0]
        + doctype
        + space[1]
        + around[1]
        + root
        + space[2]
        + around[2]
        + space[3]
    )
    return text.encode("utf-8", "surrogatepass")


TOKENS = [piece.encode() for piece in (*TEXTS, *MISC, *CDATA)]
TOKENS += [
    b"<",
    b">",
    b"/",
    b"=",
    b"<a>",
    b"</a>",
    b"<a/>",
    b"xmlns",
    b":",
    b"x='1' ",
    b"<!",
    b"<![",
    b"<!DOCTYPE a>",
]
TOKENS += [b"<?xml version='1.0'?>", b"\x00", b"\xff", b"\xc3", b"\xe2\x82", b"\xed\xa0\x80", b"\xc0\x80"]
TOKENS += [b"\xf4\x90\x80\x80", b"\xef\xbb\xbf"]


def damaged(document: bytes, choose: random.Random) -> bytes:
    """A document with a few changes, most of them at the borders of tokens."""
    data = bytearray(document)
    for _ in range(choose.choice((1, 1, 1, 2, 3, 5))):
        borders = [at for at, byte in enumerate(data) if byte in b"<>&;=\"'/:[]!?- \n"]
        at = (
            choose.choice(borders) + choose.randint(-1, 1)
            if borders and choose.random() < 0.7
            else choose.randrange(len(data) + 1)
        )
        at = max(0, min(at, len(data)))
        kind = choose.randrange(7)
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << choose.randrange(8)
        elif kind == 1 and data:
            data[at % len(data)] = choose.randrange(256)
        elif kind == 2:
            del data[at : at + choose.choice((1, 1, 2, 5, 30))]
        elif kind == 3:
            data[at:at] = choose.choice(TOKENS)
        elif kind == 4:
            data[at:at] = data[at : at + choose.randrange(1, 30)]
        elif kind == 5:
            other = choose.randrange(len(data) + 1)
            data[at:at] = data[other : other + choose.randrange(1, 60)]
        else:
            del data[at:]
    return bytes(data)


def long_version(document: bytes, choose: random.Random) -> bytes:
    """The document, with so much before its end that its start is gone when a stream's end is read."""
    at = document.rfind(b"</")
    if at < 0:
        return document
    filler = choose.choice((b"<b>\n</b>", b"t\r\n", "é ".encode(), b"<b x='1'/>", b"<!-- \n-->", b"<![CDATA[\r]]>"))
    return document[:at] + filler * (choose.randrange(66_000, 140_000) // len(filler)) + document[at:]


def documents(choose: random.Random, files: list[bytes]) -> Iterator[bytes]:
    while True:
        document = choose.choice(files) if files and choose.random() < 0.3 else made_up(choose)
        if len(document) > 30_000:
            at = choose.randrange(len(document))
            document = document[:at] + document[at + len(document) - 30_000 :]
        if choose.random() < 0.02:
            document = long_version(document, choose)
        yield document if choose.random() < 0.3 else damaged(document, choose)


def run(seed: int, files: list[bytes], *, seconds: float = 0.0, number: int = 0, quiet: bool = True) -> list[str]:
    """Compares until the time is up, or so many documents were; returns the differences."""
    choose = random.Random(seed)
    comparisons = [Comparison(kind, limits) for kind in range(8) for limits in LIMITS]
    started, found = time.monotonic(), []
    for count, document in enumerate(documents(choose, files), 1):
        comparison = choose.choice(comparisons)
        for difference in comparison.differences(document, choose):
            shown = document if len(document) < 3000 else document[:200] + b" ... " + document[-300:]
            found.append(f"{shown!r}: {difference}"[:6000])
        if found or (number and count >= number) or (seconds and time.monotonic() - started > seconds):
            break
        if not quiet and count % 20_000 == 0:
            print(f"{count:,} documents in {time.monotonic() - started:,.0f} s: {document_statistics()}", flush=True)
    return found


def read_files(paths: list[Path]) -> list[bytes]:
    files = [
        file for path in paths for file in (sorted(path.rglob("*")) if path.is_dir() else [path]) if file.is_file()
    ]
    return [file.read_bytes() for file in files if file.suffix in (".xml", ".page", ".svg", ".xhtml", ".docbook", "")]


def write_seeds(folder: Path, files: list[bytes]) -> None:
    """Documents for fuzz_scanner.cpp: a byte that says where pieces end, then the document."""
    choose = random.Random(1)
    for number in range(1000):
        document = choose.choice(files)[:4000] if files and choose.random() < 0.2 else made_up(choose)
        (folder / f"seed{number:04}").write_bytes(bytes([choose.randrange(64)]) + document)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--seeds", type=Path, metavar="FOLDER", help="write documents for libFuzzer there, and stop")
    parser.add_argument("files", nargs="*", type=Path)
    arguments = parser.parse_args()
    if arguments.seeds:
        write_seeds(arguments.seeds, read_files(arguments.files))
        return 0
    print(f"seed {arguments.seed}", flush=True)
    found = run(arguments.seed, read_files(arguments.files), seconds=arguments.seconds, quiet=False)
    print(*found, document_statistics(), sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
