"""The scanner beside expat: equal answers, whatever the document, and however it comes."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pytest

import xsift
from tests.document.fuzz_scanner import Comparison, answer, asked_of, long_version, run
from tests.document.support import ATTRIBUTE, CONTAINS, EQUAL, STRING, TEXT, Asked, Spec
from tests.document.test_hostile import NEWS, refused
from tests.document.test_reader import Dribble, all_events
from xsift.document import DocumentTree, Limits, Reader, document_statistics
from xsift.document.document import Readable
from xsift.errors import DocumentError
from xsift.xpath import Symbols

COMPARISONS = [Comparison(kind, Limits()) for kind in range(8)]
PLAIN = NEWS.replace(
    NEWS[NEWS.index(b"<!DOCTYPE") : NEWS.index(b"<nitf")], b"<!DOCTYPE nitf SYSTEM 'n.dtd'>\n"
).replace(b"&e;", b"&lt;\r\n")


def scanned(document: bytes | Readable, reader: Reader) -> bool:
    """Whether the scanner alone reads a document."""
    before = document_statistics()
    answer(reader, document)
    after = document_statistics()
    return after.scanned_documents == before.scanned_documents + 1 and after.expat_documents == before.expat_documents


def assert_equal(document: bytes, seed: int = 1) -> None:
    for comparison in COMPARISONS:
        assert list(comparison.differences(document, random.Random(seed))) == []


# Documents that the scanner takes.

TAKEN = [
    b"<?xml version='1.0' encoding='ASCII'?><a x='&#233;'>\x7f&lt;</a>",
    b"<a/>", b"<a></a>", b"<a ></a >", b"<a x='1'/>", b"<a\n x\t=\r\n'1'\ny=\"2\" />", b" \n<a/>\r",
    b"<a/>\n<!-- --><?p?>\n", b"<?xml version='1.0'?><a/>",
    b'<?xml version="1.0" encoding="utf-8" standalone="no" ?>\n<a/>', b"\xef\xbb\xbf<a/>",
    b"<?xml version='1.0' encoding='utf8'?><a>\xc3\xa9</a>", b"<?xml version='1.0' encoding='US-ASCII'?><a/>",
    b"<!DOCTYPE a><a/>", b"<!DOCTYPE a SYSTEM 'x'><a/>", b"<!DOCTYPE a PUBLIC '-//X' \"y\" ><a/>",
    b"<?xml-stylesheet?><a/>", b"<a>]</a>", b"<a>]]</a>", b"<a>]]]</a>", b"<a>] ]></a>",
    b"<a>&amp;&lt;&gt;&quot;&apos;&#65;&#x41;&#x10FFFF;</a>", b"<a><![CDATA[]]></a>", b"<a><![CDATA[]]]]></a>",
    b"<a><![CDATA[<&]>]]></a>", b"<a>t<![CDATA[\r\n]]>\rt</a>", b"<a xmlns='urn:n'><b xmlns=''/><a/></a>",
    b"<n:a xmlns:n='urn:n' n:x='1' x='1'/>", b"<a xml:lang='de'/>", b"<xml:a/>",
    b"<a xmlns:n='urn:n'><n:b xmlns:n='u'><n:b/></n:b><n:b/></a>", b"<a xmlns='&#117;rn:n'/>",
    "<é é='é'>é</é>".encode(), b"<a x='a&#10;b\nc\td\r\ne&amp;'/>", b"<a>" + b"x" * 100 + b"</a>",
    b"<a x='" + b"x" * 100 + b"'/>", b"<a><!---></a--></a>", b"<abcdefghijklmnopqrst x='1'></abcdefghijklmnopqrst>",
    b"<a " + b" ".join(b"x%d='1'" % i for i in range(40)) + b"/>",
    "<a>日本語テキスト、これは三十二バイトより長い文章です。</a>".encode(),
    b"<a>\xf0\x9f\x98\x80</a>", b"<a>\x7f</a>",
]  # fmt: skip


@pytest.mark.parametrize("document", [*TAKEN, PLAIN])
def test_documents_that_the_scanner_takes(document: bytes) -> None:
    assert_equal(document)
    reader = asked_of(7).reader(positions=True, keep_names=True)
    assert scanned(document, reader)
    assert scanned(io.BytesIO(document), reader)
    assert scanned(Dribble(document, [1]), reader)


# Documents that expat is left to read, and why.
LEFT = [
    ("encoding", b'<?xml version="1.0" encoding="ISO-8859-1"?><a>\xe9</a>'),
    ("encoding", "<a/>".encode("utf-16")),
    ("internal-subset", b"<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>"),
    ("internal-subset", b"<!DOCTYPE a SYSTEM 'x' []><a/>"),
    ("entity", b"<a>&nope;</a>"),
    ("entity", b"<a x='&nope;'/>"),
    ("limit", b"<a>" * 1001 + b"</a>" * 1001),
    ("syntax", b"<a></b>"),
    ("syntax", b""),
    ("syntax", "<!DOCTYPE é><é/>".encode()),
]


@pytest.mark.parametrize(("reason", "document"), LEFT)
def test_documents_that_expat_reads(reason: str, document: bytes) -> None:
    reader = Asked().reader()
    for source in (document, io.BytesIO(document)):
        before = document_statistics()
        answer(reader, source)
        after = document_statistics()
        assert after.expat_documents == before.expat_documents + 1
        assert after.scanned_documents == before.scanned_documents
        assert after.reasons[reason] == before.reasons.get(reason, 0) + 1
    assert_equal(document)


def test_statistics() -> None:
    before = xsift.document_statistics()
    subscriptions = xsift.Subscriptions()
    subscriptions.add("s", "/a/b")
    assert subscriptions.matcher().match(b"<a><b/></a>") == ["s"]
    assert Asked().reader(scanner=False).read(b"<a/>").events == [1, -1]
    after = xsift.document_statistics()
    assert isinstance(after, xsift.DocumentStatistics)
    assert after.scanned_documents - before.scanned_documents == 1
    assert after.scanned_bytes - before.scanned_bytes == 11
    assert after.expat_documents - before.expat_documents == 1
    assert after.expat_bytes - before.expat_bytes == 4
    assert after.reasons["switched-off"] - before.reasons.get("switched-off", 0) == 1


def test_errors_are_those_of_expat() -> None:
    reader, expat = asked_of(7).reader(), asked_of(7).reader(scanner=False)
    assert PLAIN != NEWS
    for length in range(len(PLAIN)):
        assert answer(reader, PLAIN[:length]) == answer(expat, PLAIN[:length])
    for at in range(len(PLAIN)):
        for piece in (b"<", b"&", b">", b"\x00", b"\xff", b"]]>", b"--", b"/", b" ", "é".encode()):
            document = PLAIN[:at] + piece + PLAIN[at:]
            assert answer(reader, document) == answer(expat, document), document


def test_an_attribute_twice() -> None:
    reader = Asked().reader()
    for name in ("x", "xmlns", "xmlns:n", "a-name-that-is-longer-than-sixteen-bytes"):
        for others in (0, 1, 20):
            filler = " ".join(f"y{i}='1'" for i in range(others))
            with pytest.raises(DocumentError, match="duplicate-attribute"):
                reader.read(f"<a {name}='1' {filler} {name}='2'/>")
            assert len(reader.read(f"<a {name}1='1' {filler} {name}='2'/>")) == 2
    for others in (0, 20):
        filler = " ".join(f"m:y{i}='1'" for i in range(others))
        start = f"<a xmlns:n='u' xmlns:m='u' xmlns:o='v' {filler}"
        with pytest.raises(DocumentError, match="duplicate-attribute"):
            reader.read(f"{start} n:x='1' m:x='1'/>")
        assert reader.read(f"{start} n:x='1' o:x='1' x='1'/>").events == [1, -1]


# Characters.


def test_every_character_of_names() -> None:
    asked = Asked(["a"])
    reader, expat = asked.reader(), asked.reader(scanner=False)
    for code in [*range(1, 0xD800), *range(0xE000, 0x10000), 0x10000, 0x20000, 0x10FFFF]:
        character = chr(code).encode()
        for document in (b"<" + character + b"/>", b"<a" + character + b"/>"):
            before = document_statistics().scanned_documents
            accepted = answer(expat, document)[0] != "refused"
            assert (answer(reader, document)[0] != "refused") == accepted
            assert (document_statistics().scanned_documents > before) == accepted, document


ODD = [
    b"\x80", b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\x80", b"\xe0\x9f\xbf", b"\xed\xa0\x80", b"\xef\xbf\xbe", b"\xc3",
    b"\xef\xbf\xbf", b"\xf0\x80\x80\x80", b"\xf0\x8f\xbf\xbf", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xff",
    b"\xe6\x97", b"\xf0\x9f\x98", b"\xbf\xbf\xbf\xbf", b"\xfe", b"\x01", b"<b/>", b"]", b"&lt;",
]  # fmt: skip


def random_utf8(choose: random.Random, length: int) -> bytes:
    """Bytes that are mostly valid UTF-8."""
    data = bytearray()
    while len(data) < length:
        code = choose.choice(
            (0x41, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFD, 0x10000, 0x10FFFF, 0x20, 0xE9, 0x65E5)
        )
        data += chr(code).encode()
        if choose.random() < 0.01:
            data += choose.choice(ODD)
    return bytes(data)


def test_utf8_in_blocks() -> None:
    choose = random.Random(3)
    asked = Asked().add("*", Spec(TEXT, CONTAINS, "é"), Spec(ATTRIBUTE, CONTAINS, "日", "x"))
    reader, expat = asked.reader(), asked.reader(scanner=False)
    accepted = 0
    for round_number in range(4000):
        text = random_utf8(choose, choose.randrange(150))
        place = round_number % 5
        if place == 0:
            document = b"<a>" + text + b"</a>" + b" " * choose.randrange(40)
        elif place == 1:
            document = b"<a x='" + text.replace(b"<b/>", b"") + b"'/>" + b" " * choose.randrange(40)
        elif place == 2:
            document = b"<a><!--" + text + b"--></a>" + b" " * choose.randrange(40)
        elif place == 3:
            document = b"<a><![CDATA[" + text + b"]]></a>" + b" " * choose.randrange(40)
        else:
            document = b"<a><?p " + text + b"?></a>" + b" " * choose.randrange(40)
        expected = answer(expat, document)
        assert answer(reader, document) == expected, document
        accepted += expected[0] != "refused"
    assert 1000 < accepted < 3800


# Streams.


@pytest.mark.parametrize("character", ["é", "語", "𑄇"])
def test_characters_that_end_with_a_block(character: str) -> None:
    """Text of long characters only: wherever a block, a piece or the text ends, it goes on at a character."""
    reader = asked_of(0).reader()
    for shift in range(4):
        for number in range(1, 70):
            document = b"<a>" + b"x" * shift + (character * number).encode() + b"</a>"
            assert scanned(document, reader), document
    long = b"<a>" + (f"<b>{character * 40}</b> " * 2000).encode() + b"</a>"
    for sizes in ([33], [7, 1000], [65_537, 1], [50, 70_000, 3]):
        assert answer(reader, Dribble(long, sizes)) == answer(reader, long)


def test_a_border_at_every_byte() -> None:
    document = "\ufeff".encode() + PLAIN.replace(
        b"<head>", b"<head>\r\n]]x<![CDATA[]]\r\n]]]]><a:b xmlns:a='u&#38;\r\n'/>"
    )
    asked = asked_of(7).add("*", Spec(STRING, CONTAINS, "]]x"))
    reader = asked.reader(positions=True, keep_names=True)
    expected = answer(asked.reader(positions=True, keep_names=True, scanner=False), document)
    assert expected[0] != "refused"
    for at in range(1, len(document)):
        # The first piece is at least 1 KB long unless the document is shorter.
        padded = document.replace(b"<head>", b"<head><!--" + b"x" * 2000 + b"-->", 1)
        border = at if at < document.index(b"<head>") + 6 else at + 2007
        before = document_statistics().scanned_documents
        found = answer(reader, Dribble(padded, [border, len(padded)]))
        assert found[0] == expected[0]
        assert found[2] == expected[2]
        assert document_statistics().scanned_documents == before + 1


BROKEN = [
    b"<?xml version='1.0' encoding='ascii'?><a>\xc3\xa9</a>",
    b"<a><b></a>", b"<a>&nope;</a>", b"<a>\x01</a>", b"<a>\r\n\r\xff</a>", "<a>é]]></a>".encode(), b"<a></a><b/>",
    b"<a></a>\r\n x", b"<a><b x='1' x='2'/></a>", b"<n:a xmlns:n='a&amp;&#9;&quot;b'><n:b/><m:b/></n:a>",
    b"<a><![CDATA[\n\x01]]></a>", b"<a>", b"<a><![CDATA[</a>", b"<a><!-- -- --></a>", b"<a xmlns='u'><b/></c></a>",
    b"<!DOCTYPE a SYSTEM 'a'><a>&e;</a>", b"<a></a", b"<a><n:b xmlns:n='u'></n:b><n:b/></a>",
    b"<a></a><!DOCTYPE a>", b"<a></a><?xml version='1.0'?>", b"<a></a>&#32;",
    b"<?xml version='1.0' encoding='us-ascii'?><a>\xc3\xa9</a>", b"<!DOCTYPE a><a></a><!DOCTYPE a>",
    b"<a>\n\xc3</a>", "<é xmlns='é'>é\r\n</e></é>".encode(), b"<a><?xml version='1.0'?></a>", b"<a b></a>",
    b"<a></a ></a>", b"<a>\r\r\n<</a>",
]  # fmt: skip


@pytest.mark.parametrize("document", BROKEN)
def test_errors_in_a_stream_whose_start_is_gone(document: bytes) -> None:
    """There expat goes on in the middle; what it says must be what it says of the whole."""
    for seed in range(4):
        choose = random.Random(seed)
        for kind in (0, 7):
            asked = asked_of(kind)
            options = {"positions": True, "keep_names": True}
            reader, expat = asked.reader(**options), asked.reader(**options, scanner=False)
            at = document.find(b">") + 1 + document.startswith(b"<?") * len("<a>")
            for long in (
                long_version(document, choose),
                document[:at] + b"<b>\r\n</b>\n" * 7000 + document[at:],
            ):
                expected = answer(expat, long)
                assert expected[0] == "refused"
                assert answer(reader, long) == expected
                assert answer(reader, Dribble(long, [choose.randrange(500, 70_000)])) == expected


def test_expat_may_take_over_a_document_that_is_right() -> None:
    """The scanner leaves long tokens to expat, which takes them: so it goes on in the middle, or starts again."""
    asked = asked_of(7).add("a", Spec(STRING, CONTAINS, "tt"))
    options = {"positions": True, "keep_names": True, "limits": Limits(token_bytes=100)}
    reader, expat = asked.reader(**options), asked.reader(**options, scanner=False)
    items = b"<n:b xmlns:n='urn:n' n:x='1'>t\r\n</n:b><c>t</c>t" * 4000
    long = b"<b y='" + b" " * 200 + b"'/>t<![CDATA[t]]>"
    for start in (b"<a x='1' xmlns:n='u'>", b"<!DOCTYPE a SYSTEM 'a'>\n<a xmlns='urn:n' xmlns:n='&lt;'>"):
        document = start + items + long + items + b"<b/></a>"
        expected = answer(expat, document)
        assert expected[0] != "refused"
        assert answer(reader, document) == expected
        assert answer(reader, io.BytesIO(document)) == expected
        assert answer(reader, Dribble(document, [5000, 65_536])) == expected
        for source in (document, io.BytesIO(document)):
            assert all_events(reader.open(source)) == expected[0]
            tree_names = reader.names
            assert tree_names is not None
            assert len(tree_names) == expected[0].count(-1)


def test_limits_in_a_stream_whose_start_is_gone() -> None:
    start = b"<a>\n" + b"<b x='1'>x</b>\n" * 10_000
    for tail, limits, code in (
        (b"<b>" * 20, {"depth": 10}, "too-deep"),
        (b"<b>" + b"y" * 3000, {"text_bytes": 2000}, "text-too-long"),
        (b"<" + b"b" * 2000 + b"/>", {}, "name-too-long"),
        (b"<b " + b" ".join(b"a%d=''" % i for i in range(30)) + b"/>", {"attributes": 20}, "too-many-attributes"),
        (b"<b><c/>" + b"<!--" + b" " * 200_000, {"token_bytes": 5000}, "token-too-long"),
        (b"<b/>" * 50_000, {"bytes": 200_000}, "too-large"),
    ):
        asked = Asked().add("b", Spec(TEXT, CONTAINS, "x"), Spec(ATTRIBUTE, EQUAL, "1", "x"))
        reader = asked.reader(limits=Limits(**limits))
        with pytest.raises(DocumentError) as caught:
            reader.read(io.BytesIO(start + tail))
        assert caught.value.code == code
        assert caught.value.line == 10_002
        assert caught.value.offset >= len(start)
    error = refused(io.BytesIO(b"<a>" * 900 + b"y" * 100_000 + b"</a>" * 900))
    assert error.code == "text-amplification"


def test_many_names_and_namespaces_take_little_memory() -> None:
    reader = Asked().reader()
    distinct = b"".join(b"<n%d xmlns='urn:%d'/>" % (i, i) for i in range(100_000))
    before = document_statistics()
    assert len(reader.read(b"<a>" + distinct + b"</a>")) == 200_002
    assert len(reader.read(io.BytesIO(b"<a>" + distinct + b"</a>"))) == 200_002
    assert document_statistics().reasons["limit"] == before.reasons.get("limit", 0) + 2
    assert scanned(b"<a/>", reader)


# Reading on without events.


@pytest.mark.parametrize("scanner", [True, False])
def test_the_rest_is_only_checked(scanner: bool, tmp_path: Path) -> None:
    asked = asked_of(7)
    right = b"<a x='1'>" + b"<b>t<c/></b>" * 20_000 + b"</a>"
    path = tmp_path / "a.xml"
    reader = asked.reader(scanner=scanner)
    for wrong, code in (
        (right[:-1], "unclosed-token"),
        (right[:-4], "truncated-document"),
        (right + b"<", "unclosed-token"),
        (right.replace(b"</a>", b"<c></a>"), "tag-mismatch"),
        (right[:-4] + b"<a>" * 1000, "too-deep"),
    ):
        path.write_bytes(wrong)
        for source in (wrong, io.BytesIO(wrong), path):
            for chunks in (0, 1):
                reader.open(source)
                for _ in range(chunks):
                    reader.chunk_of_events()
                with pytest.raises(DocumentError, match=code):
                    reader.finish()
                assert reader.chunk_of_events() == []
                if isinstance(source, io.BytesIO):
                    source.seek(0)
                reader.open(source)
                for _ in range(chunks):
                    reader.chunk_of_events()
                reader.finish(validate=False)
                assert reader.chunk_of_events() == []
                if isinstance(source, io.BytesIO):
                    source.seek(0)
    for source in (right, io.BytesIO(right), b"<a/>"):
        reader.open(source)
        reader.chunk_of_events()
        reader.finish()
        assert reader.chunk_of_events() == []
        reader.finish()
    assert DocumentTree(reader.read(b"<a x='1'>t</a>")).conditions_of(1)


# Fuzzing: a short run of tests/document/fuzz_scanner.py.


def test_random_documents() -> None:
    assert run(1, [PLAIN, NEWS, *TAKEN], number=3000) == []


def test_names_are_found_again() -> None:
    symbols = Symbols()
    expected = [symbols.element(f"name{i}") for i in range(3000)]
    reader = Reader(xsift.document.DocumentIndex(symbols))
    document = b"<a>" + b"".join(b"<name%d></name%d>" % (i, i) for i in range(3000)) + b"</a>"
    for _ in range(3):
        assert [event for event in reader.read(document).events if event > 0] == expected
