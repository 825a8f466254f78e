"""What a reader takes, and what it gives: sources, encodings, chunks, positions, reuse, threads."""

from __future__ import annotations

import array
import io
import mmap
import pickle
import random
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

import xsift.document
from tests.document.support import ATTRIBUTE, CONTAINS, EQUAL, LESS, NAMESPACE, NOT_EQUAL, STRING, TEXT, Asked, Spec
from tests.document.test_conditions import documents
from xsift.document import DocumentIndex, DocumentTree, Reader
from xsift.document.document import Readable
from xsift.document.faults import FAULTS
from xsift.errors import DocumentError

EVENTS = b'<a x="1">one<b/><c>two</c>three</a>'


def all_events(reader: Reader) -> list[int]:
    events: list[int] = []
    while chunk := reader.chunk_of_events():
        events += chunk
    return events


class Dribble(io.RawIOBase):
    """A file that gives a few bytes at a time, whatever it is asked for."""

    def __init__(self, data: bytes | str, sizes: list[int]) -> None:
        self.data, self.sizes, self.at, self.turn = data, sizes, 0, 0

    def read(self, size: int = -1) -> Any:
        step = self.sizes[self.turn % len(self.sizes)]
        self.turn += 1
        self.at += step
        return self.data[self.at - step : self.at]


@pytest.fixture
def asked() -> Asked:
    return Asked().add("a", Spec(ATTRIBUTE, EQUAL, 1.0, "x"), Spec(STRING, CONTAINS, "etwot")).add("*", Spec(TEXT))


def test_events_of_a_document(asked: Asked) -> None:
    a, b, c = (asked.name(name) for name in "abc")
    one, string, text = (-1 - asked.condition(spec) for _, spec in asked.requests)
    assert asked.reader().read(EVENTS).events == [a, one, b, -1, c, text, -1, text, string, -1]


def test_the_exported_names_exist() -> None:
    assert all(hasattr(xsift.document, name) for name in xsift.document.__all__)


def test_every_kind_of_source(asked: Asked, tmp_path: Path) -> None:
    reader = asked.reader()
    expected = reader.read(EVENTS).events
    path = tmp_path / "document.xml"
    path.write_bytes(EVENTS)
    with path.open("rb") as binary, path.open() as text, mmap.mmap(binary.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        sources: list[Any] = [
            EVENTS, bytearray(EVENTS), memoryview(EVENTS), memoryview(b"  " + EVENTS)[2:], array.array("b", EVENTS),
            EVENTS.decode(), mapped, path, binary, text, io.BytesIO(EVENTS), io.StringIO(EVENTS.decode()),
            Dribble(EVENTS, [1]), Dribble(EVENTS.decode(), [1]), Dribble(EVENTS, [2000]),
        ]  # fmt: skip
        for source in sources:
            if source in (binary, text):
                source.seek(0)
            assert reader.read(source).events == expected
            if source in (binary, text):
                assert not source.closed
                source.seek(0)
            if isinstance(source, io.BytesIO | io.StringIO):
                source.seek(0)
            if not isinstance(source, Dribble):
                assert all_events(reader.open(source)) == expected


def test_what_is_no_source(asked: Asked, tmp_path: Path) -> None:
    reader = asked.reader()
    wrong_sources: tuple[Any, ...] = (None, 5, ["<a/>"], memoryview(b"<a/>  ")[::2])
    for source in wrong_sources:
        with pytest.raises((TypeError, DocumentError)):
            reader.read(source)
    with pytest.raises(FileNotFoundError):
        reader.read(tmp_path / "missing.xml")
    with pytest.raises(TypeError, match="encoding"):
        reader.read(b"<a/>", encoding=5)  # type: ignore[arg-type]
    for wrong in (None, 5):
        file = io.BytesIO()
        file.read = lambda _, wrong=wrong: wrong  # type: ignore[method-assign, misc, assignment]
        with pytest.raises(DocumentError, match=r"read\(\) of the file gave"):
            reader.read(file)
    assert reader.read(b"<b/>").events == [asked.name("b"), -1]


def test_wrong_arguments(asked: Asked) -> None:
    with pytest.raises(TypeError, match="limits"):
        asked.reader(limits=5)
    with pytest.raises(TypeError):
        Reader(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Reader.__new__(Reader)
    with pytest.raises(TypeError):
        DocumentIndex.__new__(DocumentIndex)
    reader = asked.reader()
    assert reader.chunk_of_events() == []
    reader.close()


def test_an_error_of_the_file_comes_through(asked: Asked) -> None:
    class Broken(Dribble):
        def read(self, size: int = -1) -> Any:
            if self.turn == 3:
                raise ConnectionResetError("gone")
            return super().read(size)

    reader = asked.reader()
    with pytest.raises(ConnectionResetError, match="gone"):
        reader.read(Broken(b"<a>" + b"x" * 9000, [2000]))
    assert reader.chunk_of_events() == []
    assert reader.read(b"<b/>").events == [asked.name("b"), -1]


def test_a_reader_cannot_be_entered_twice(asked: Asked) -> None:
    reader = asked.reader()

    class Meddling(Dribble):
        def read(self, size: int = -1) -> Any:
            reader.open(b"<b/>")
            return b""

    with pytest.raises(OSError, match="in use"):  # as whatever fails in a read()
        reader.read(Meddling(b"", [1]))
    assert reader.read(b"<b/>").events == [asked.name("b"), -1]


def test_a_path_is_closed_even_if_the_document_is_broken(asked: Asked, tmp_path: Path) -> None:
    path = tmp_path / "broken.xml"
    path.write_bytes(b"<a></b>")
    reader = asked.reader()
    with pytest.raises(DocumentError):
        reader.read(path)
    reader.open(path)
    reader.close()
    assert reader.chunk_of_events() == []


def test_memory_that_was_opened_is_let_go(asked: Asked) -> None:
    reader = asked.reader()
    data = bytearray(b"<b>" + b"<c/>" * 50_000 + b"</b>")
    reader.open(data)
    reader.chunk_of_events()
    with pytest.raises(BufferError):
        data.append(0)
    reader.open(b"<a/>")
    data.append(0)
    with pytest.raises(DocumentError, match="invalid-token"):
        reader.read(data)
    data.append(0)


# Encodings.


def test_str_is_not_subject_to_its_declaration(asked: Asked) -> None:
    asked.add("a", Spec(TEXT, EQUAL, "é"))
    expected = asked.holding("<a>é</a>")
    assert len(expected[0]) == 2
    for declared in ("ISO-8859-1", "UTF-16", "utf8", "nonsense"):
        assert asked.holding(f'<?xml version="1.0" encoding="{declared}"?><a>é</a>') == expected
    assert asked.holding("\ufeff<a>é</a>") == expected


@pytest.mark.parametrize(
    ("declared", "codec", "text"),
    [
        ("UTF-8", "utf-8", "é😀"), ("utf8", "utf-8", "é😀"), ("UTF8", "utf-8", "日"), ("utf-8", "utf-8-sig", "é"),
        ("UTF-16", "utf-16", "é😀"), ("utf16", "utf-16", "é😀"), ("ISO-8859-1", "latin-1", "é"),
        ("US-ASCII", "ascii", "e"), ("windows-1252", "cp1252", "€é"), ("Windows-1251", "cp1251", "Ж"),
        ("ISO-8859-2", "iso8859-2", "ł"), ("ISO-8859-15", "iso8859-15", "€"), ("koi8-r", "koi8-r", "Ж"),
        ("latin1", "latin-1", "é"), ("cp437", "cp437", "é"), ("macintosh", "mac-roman", "é"),
    ],
)  # fmt: skip
def test_encodings(asked: Asked, declared: str, codec: str, text: str) -> None:
    asked.add("a", Spec(TEXT, EQUAL, text), Spec(ATTRIBUTE, EQUAL, text, "x"))
    document = f'<?xml version="1.0" encoding="{declared}"?><a x="{text}">{text}</a>'.encode(codec)
    assert len(asked.holding(document)[0]) == 3
    events = asked.reader().read(document).events
    assert asked.reader().read(Dribble(document, [1])).events == events
    without = f'<a x="{text}">{text}</a>'.encode(codec)
    assert asked.reader().read(without, encoding=declared).events == events


@pytest.mark.parametrize("name", ["shift_jis", "utf-7", "utf-32", "idna", "hex", "cp037", "unicode_escape", "x" * 99])
def test_encodings_that_are_not_supported(asked: Asked, name: str) -> None:
    reader = asked.reader()
    with pytest.raises(DocumentError) as caught:
        reader.read(f'<?xml version="1.0" encoding="{name}"?><a/>'.encode())
    assert caught.value.code == "unsupported-encoding"
    assert "as str" in caught.value.hint
    with pytest.raises(DocumentError, match="unsupported-encoding"):
        reader.read(b"<a/>", encoding=name)
    with pytest.raises(DocumentError, match="unsupported-encoding"):
        reader.read(b"<a/>", encoding="é")


def test_bytes_that_an_encoding_does_not_have(asked: Asked) -> None:
    undefined = b'<?xml version="1.0" encoding="windows-1252"?><a>\x81</a>'
    for document in (b"<a>\xe9</a>", undefined, b"<a>\xed\xa0\x80</a>"):
        with pytest.raises(DocumentError) as caught:
            asked.reader().read(document)
        assert caught.value.code == "invalid-token"
    with pytest.raises(DocumentError, match="lone-surrogate") as caught:
        asked.reader().read("<a>\né\ud800</a>")
    assert (caught.value.line, caught.value.column, caught.value.offset) == (2, 2, 6)


# Chunks.


@settings(max_examples=150, deadline=None, derandomize=True)
@given(documents(), st.lists(st.integers(1, 40), min_size=1, max_size=5))
def test_chunk_borders_do_not_matter(document: bytes, sizes: list[int]) -> None:
    asked = Asked().add("*", Spec(TEXT, CONTAINS, "1"), Spec(STRING, EQUAL, "ab"), Spec(ATTRIBUTE, EQUAL, "", "x"))
    reader = asked.reader(positions=True)
    whole = reader.read(document)
    pieces = reader.read(Dribble(document, sizes))
    assert (whole.events, whole.positions) == (pieces.events, pieces.positions)
    text = reader.read(Dribble(document.decode(), sizes))
    assert whole.events == text.events


def chunks_of(reader: Reader, source: bytes | Readable) -> list[list[int]]:
    """The events of a document as they come."""
    reader.open(source)
    return list(iter(reader.chunk_of_events, []))


def test_a_large_document_comes_in_chunks(asked: Asked) -> None:
    document = b"<a>" + b"<b>text</b><c/>" * 50_000 + b"</a>"
    reader = asked.reader(positions=True)
    whole = reader.read(document)
    for source in (document, io.BytesIO(document)):
        chunks = chunks_of(reader, source)
        assert [code for chunk in chunks for code in chunk] == whole.events
        assert max(map(len, chunks)) < 70_000
    assert len(whole) == 2 + 50_000 * 5  # text() holds for each <b>


def test_a_chunk_without_events_is_not_the_end(asked: Asked) -> None:
    document = b"<a>" + b"<!--" + b"x" * 300_000 + b"-->" + b"<b/></a>"
    assert all_events(asked.reader().open(document)) == asked.reader().read(document).events
    assert all_events(asked.reader().open(Dribble(document, [999]))) == asked.reader().read(document).events


def test_many_conditions_on_many_elements_come_in_chunks_too() -> None:
    asked = Asked().add("*", *(Spec(ATTRIBUTE, LESS, float(i), "x") for i in range(100, 5100)))
    asked.add("*", *(Spec(TEXT, NOT_EQUAL, str(i)) for i in range(3000)))
    document = (
        b"<!DOCTYPE a [<!ENTITY e \"<b x='1'/><b x='2'>t</b>\">]><a>" + b'<b x="1"/>t<c>&e;</c>' * 120 + b"</a>"
    )
    reader = asked.reader(positions=True)
    whole = reader.read(document)
    for source in (document, io.BytesIO(document)):
        chunks = chunks_of(reader, source)
        assert [code for chunk in chunks for code in chunk] == whole.events
        assert max(map(len, chunks)) < 300_000 < len(whole.events)
    broken = document + b"<"
    reader.open(broken)
    with pytest.raises(DocumentError, match="unclosed-token"):
        all_events(reader)
    reader.open(document)
    reader.chunk_of_events()
    assert reader.read(b"<b/>").events[0] == asked.name("b")  # left while expat waits to go on


# Positions.


def cut_out(document: bytes, codec: str = "utf-8") -> None:
    """The bytes of each element parse to an element with its name."""
    reader = Asked().reader(positions=True, keep_names=True)
    tree = DocumentTree(reader.read(document))
    elements = list(etree.fromstring(document).iter("*"))
    assert len(tree) == len(elements)
    for number, element in enumerate(elements, 1):
        start, end = tree.span(number)
        piece = document[start:end].decode(codec)
        assert piece.startswith("<")
        assert piece.endswith(">")
        assert etree.QName(element).localname in piece
        assert etree.fromstring(piece).tag == element.tag


def test_positions_cut_out_the_element() -> None:
    text = '<a><b/><b />é<c x="é>">日<b>x</b ></c\n><!-- <b/> --><b><![CDATA[</b>]]></b></a>'
    cut_out(text.encode())
    cut_out(f"\ufeff<?xml version='1.0'?>\n<!-- é -->{text}".encode())
    document = f'<?xml version="1.0" encoding="utf-16"?>{text}'.encode("utf-16-le")
    cut_out(b"\xff\xfe" + document, "utf-16-le")
    cut_out(b"<a>" + b"<b>text</b><c/>" * 5000 + b"</a>")


def test_an_element_from_an_entity_has_the_place_of_the_reference() -> None:
    document = b'<!DOCTYPE a [<!ENTITY e "<b>x</b><c/>"><!ENTITY f "&e;">]><a>1&f;2<b/></a>'
    tree = DocumentTree(Asked().reader(positions=True).read(document))
    assert [document[slice(*tree.span(n))] for n in range(2, 5)] == [b"&f;", b"&f;", b"<b/>"]
    assert document[slice(*tree.span(1))] == b"<a>1&f;2<b/></a>"


def test_positions_are_beside_the_events(asked: Asked) -> None:
    document = asked.reader(positions=True).read(EVENTS)
    assert len(document.positions) == len(document.events)
    assert [p for e, p in zip(document.events, document.positions, strict=True) if e < -1] == [0] * 4
    assert asked.reader().read(EVENTS).positions == []


# Errors.


@pytest.mark.parametrize(
    ("document", "code", "line", "column", "offset"),
    [
        (b"", "empty-document", 1, 1, 0),
        (b"  \n ", "no-root-element", 2, 2, 4),
        (b"<!-- only -->", "no-root-element", 1, 14, 13),
        (b"<a>\n<b>", "truncated-document", 2, 4, 7),
        (b"<a>\n<b", "unclosed-token", 2, 1, 4),
        (b"<a><![CDATA[x", "unclosed-cdata", 1, 14, 13),
        (b"<a>\xc3", "partial-character", 1, 4, 3),
        (b"<a></b>", "tag-mismatch", 1, 6, 5),
        (b"<a/><b/>", "junk-after-document", 1, 5, 4),
        (b"<a/>\x00", "invalid-token", 1, 5, 4),
        (b"<a>\x00</a>", "invalid-token", 1, 4, 3),
        ("<a>é\n <é</a>".encode(), "invalid-token", 2, 4, 10),
        (b"<a x='1' x='2'/>", "duplicate-attribute", 1, 10, 9),
        (b"<a>&nope;</a>", "undeclared-entity", 1, 4, 3),
        (b"<a>&#0;</a>", "bad-character-reference", 1, 4, 3),
        (b" <?xml version='1.0'?><a/>", "misplaced-declaration", 1, 2, 1),
        (b"<?xml version='1.0'><a/>", "unclosed-token", 1, 1, 0),
        (b"<?xml verson='1.0'?><a/>", "bad-xml-declaration", 1, 7, 6),
        (b"<?xml version='2.0'?><a/>", "unsupported-version", 1, 1, 0),
        (b"<?xml version='1.0' encoding='utf-16'?><a/>", "incorrect-encoding", 1, 31, 30),
        (b"<p:a/>", "unbound-prefix", 1, 1, 0),
        (b"<a xmlns:p=''/>", "undeclared-prefix", 1, 1, 0),
        (b"<a xmlns:xml='u'/>", "reserved-prefix", 1, 1, 0),
        (b"<a xmlns:xmlns='u'/>", "reserved-prefix", 1, 1, 0),
        (b"<a xmlns:p='http://www.w3.org/2000/xmlns/'/>", "reserved-namespace", 1, 1, 0),
        (b"<!DOCTYPE a [<!ENTITY e '&f;'><!ENTITY f '&e;'>]><a>&e;</a>", "recursive-entity", 1, 53, 52),
        (b"<!DOCTYPE a [<!ENTITY e '<a>'>]><a>&e;</a></a>", "unbalanced-entity", 1, 36, 35),
        (b"<!DOCTYPE a [<!ENTITY e '</a>'>]><a>&e;", "unbalanced-entity", 1, 37, 36),
        (b"<!DOCTYPE a PUBLIC '{' 'x'><a/>", "bad-public-id", 1, 21, 20),
        (b"<!DOCTYPE a [<!ENTITY e SYSTEM 'f' NDATA n>]><a>&e;</a>", "unparsed-entity", 1, 49, 48),
    ],
)  # fmt: skip
def test_documents_that_are_not_well_formed(document: bytes, code: str, line: int, column: int, offset: int) -> None:
    reader = Asked().reader()
    with pytest.raises(DocumentError) as caught:
        reader.read(document)
    error = caught.value
    assert (error.code, error.line, error.column, error.offset) == (code, line, column, offset)
    assert pickle.loads(pickle.dumps(error)).offset == offset
    with pytest.raises(DocumentError) as caught:
        reader.read(Dribble(document, [1]))
    assert caught.value.code == code
    assert reader.read(b"<a/>").events == reader.read(b"<a/>").events == [1, -1]
    assert reader.chunk_of_events() == []


def test_fault_codes_are_words() -> None:
    for code, message, _ in FAULTS.values():
        assert code.replace("-", "").isalpha()
        assert code.islower()
        assert message


def test_an_error_in_a_later_chunk(asked: Asked) -> None:
    reader = asked.reader()
    reader.open(b"<a>" + b"<b/>" * 50_000 + b"</c>")
    assert reader.chunk_of_events()
    with pytest.raises(DocumentError, match="tag-mismatch"):
        all_events(reader)
    assert reader.chunk_of_events() == []
    assert reader.read(b"<b/>").events == [asked.name("b"), -1]


def test_a_document_left_in_the_middle(asked: Asked) -> None:
    reader = asked.reader()
    expected = asked.reader().read(EVENTS).events
    reader.open(b"<a x='1'>kept?<b>" + b"<c>more</c>" * 50_000)
    reader.chunk_of_events()
    assert reader.read(EVENTS).events == expected


# Attributes and namespaces.


def test_declared_defaults_are_no_attributes_but_namespaces_are() -> None:
    document = (
        '<!DOCTYPE a [<!ATTLIST a x CDATA "1" y NMTOKENS #IMPLIED xmlns:q CDATA "urn:q" xmlns CDATA "urn:d">'
        '<!ATTLIST a id ID #IMPLIED>]><a y="  1   2 " id=" 3 " q:z="4" xmlns:p="urn:p"/>'
    )
    asked = Asked(names=["{urn:d}a"])
    for name in ("x", "y", "id", "urn:q\x1fz", "xmlns", "p", "http://www.w3.org/2000/xmlns/\x1fp"):
        asked.add("*", *(Spec(ATTRIBUTE, EQUAL, value, name) for value in ("1", "1 2", "3", "4", "urn:p")))
        asked.add("*", Spec(ATTRIBUTE, attribute=name))
    asked.add("*", Spec(NAMESPACE, EQUAL, "urn:d"))
    held = asked.holding(document)
    assert held == asked.expected(document)
    assert len(held[0]) == 7
    assert asked.reader().read(document).events[0] == asked.name("{urn:d}a")


def test_names_are_expanded() -> None:
    asked = Asked(names=["a", "{urn:n}a", "{http://www.w3.org/XML/1998/namespace}a"])
    document = '<a><n:a xmlns:n="urn:n"/><a xmlns="urn:n"><a xmlns=""/></a><m:a xmlns:m="urn:m"/><xml:a/></a>'
    starts = [event for event in asked.reader().read(document).events if event >= 0]
    plain, other, reserved = list(asked.names.values())[1:]
    assert starts == [plain, other, other, plain, 0, reserved]
    starts = [event for event in asked.reader(keep_names=True).read(document).events if event >= 0]
    assert starts == [plain, other, other, plain, 0, reserved]


def test_kept_names_do_not_change_conditions() -> None:
    asked = Asked(names=["a", "{urn:n}a"])
    asked.add("*", Spec(ATTRIBUTE, EQUAL, "1", "urn:n\x1fx"), Spec(ATTRIBUTE, EQUAL, "1", "x"))
    asked.add("*", Spec(NAMESPACE, EQUAL, "urn:n"))
    document = '<a xmlns:n="urn:n" x="1"><n:a n:x="1" x="2"/><a xmlns="urn:n" n:x="1"/></a>'
    assert asked.holding(document) == asked.expected(document)
    assert asked.holding(document, asked.reader(keep_names=True)) == asked.expected(document)


# Threads.


def test_readers_in_threads_share_an_index() -> None:
    asked = Asked()
    for i in range(500):
        asked.add("b", Spec(ATTRIBUTE, EQUAL, float(i), "x"), Spec(TEXT, CONTAINS, f"needle{i:03}"))
    index = asked.document_index()
    shuffled = random.Random(5)
    documents = [
        b"<a>" + b"".join(b'<b x="%d">a needle%03d</b>' % (i, shuffled.randrange(500)) for i in range(500)) + b"</a>"
        for _ in range(8)
    ]
    documents[3] = b"<a>" + documents[3]  # a broken one among them
    expected = [Reader(index).read(document).events for i, document in enumerate(documents) if i != 3]
    results: dict[int, list[list[int]]] = {}

    def work(number: int) -> None:
        reader = Reader(index)
        mine = []
        for _ in range(5):
            for document in documents:
                try:
                    mine.append(reader.read(document).events)
                except DocumentError:
                    continue
        results[number] = mine

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(results[number] == expected * 5 for number in range(4))
