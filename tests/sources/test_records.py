"""Cutting files into records: every way in which a split can fall, against a parser."""

from __future__ import annotations

import random

import pytest
from lxml import etree

import xsift
from xsift.document import Limits
from xsift.errors import DocumentError
from xsift.sources.record_files import read_records
from xsift.sources.records import Declarations, _Scope, read_header, scan_records, split_places

TRICKY = b"""<?xml version="1.0"?>
<!-- <article>no</article> -->
<!DOCTYPE dump [<!ENTITY who "me ]>"> <!-- ]> <article> --> <?pi ]> ?>]>
<dump xmlns="urn:d" xmlns:x='urn:x' note="a > b" xmlns:y="urn:y">
 <articles/><article-list/>
 <article id="1">one &who; <article>nested</article> <article/> end</article>
 <!-- <article id="no">
 - --><![CDATA[ <article id="no"> ]] ]]>
 <?pi <article id="no"> ?>
 <article id='2' title="a > b" xmlns:x="urn:own"><![CDATA[</article>]]><!-- </article> --><?p </article>?></article >
 <article
   id="3"/><article id="4"></article><x:article id="no"/>
</dump>
"""


def cut(data: bytes, size: int, base: int = 0, end: int | None = None) -> list[bytes]:
    end = len(data) if end is None else end
    return [data[place : min(place + size, end)] for place in range(base, end, size)]


def records(data: bytes, size: int = 1 << 20, record: str = "article") -> list[bytes]:
    header = read_header(cut(data, size), record)
    return [found.xml for found in scan_records(cut(data, size, header.end), record, header, header.end)]


def outermost(data: bytes, name: str = "{urn:d}article") -> list[bytes]:
    root = etree.fromstring(data)
    found = [
        element
        for element in root.iter(name)
        if not any(etree.QName(a).localname == etree.QName(element).localname for a in element.iterancestors())
    ]
    return [etree.tostring(element, method="c14n", exclusive=True, with_tail=False) for element in found]


def canonical(xml: bytes) -> bytes:
    return etree.tostring(etree.fromstring(xml), method="c14n", exclusive=True)


@pytest.mark.parametrize("size", [*range(1, 40), 64, 100, 1000])
def test_records_whatever_the_chunks(size: int) -> None:
    wanted = outermost(TRICKY)
    assert [canonical(xml) for xml in records(TRICKY, size)] == wanted
    assert len(wanted) == 4


@pytest.mark.parametrize("split_bytes", [1, 10, 50, 100, 10_000])
def test_splits_give_the_same_records(split_bytes: int) -> None:
    assert splits(TRICKY, split_bytes) == records(TRICKY)


def splits(data: bytes, split_bytes: int, record: str = "article") -> list[bytes]:
    """The records of a file that is read in splits."""
    header = read_header([data], record)
    places = split_places(cut(data, 7, header.end), record, header.end, split_bytes)
    ends = [*(begin for begin, _ in places[1:]), len(data)]
    found = []
    for (begin, open_there), end in zip(places, ends, strict=True):
        chunks = cut(data, 5, begin, end)
        found += [r.xml for r in scan_records(chunks, record, header, begin, ancestors=open_there)]
    assert split_bytes > 100 or len(places) > 2
    return found


NESTED = b"""<d xmlns="urn:d" xmlns:p="urn:p">
<volume xmlns:p="urn:v1" n="a>b"><p:part xmlns="urn:part"><r p:a="1"/></p:part><r p:a="2"/><r/><s/></volume>
<r p:a="3"/><volume xmlns=""><r p:a="4"/><!-- <volume xmlns="urn:no"> --><a><b><r/></b></a></volume><r>end</r>
</d>"""


@pytest.mark.parametrize("size", [1, 3, 17, 1000])
def test_namespaces_between_the_root_and_the_record(size: int) -> None:
    root = etree.fromstring(NESTED)
    wanted = [
        etree.tostring(element, method="c14n", exclusive=True, with_tail=False) for element in root.iter("{*}r")
    ]
    assert [canonical(xml) for xml in records(NESTED, size, "r")] == wanted
    assert [canonical(xml) for xml in splits(NESTED, size, "r")] == wanted


def test_random_files() -> None:
    rng = random.Random(4)
    pieces = [
        b"<r>",
        b"</r>",
        b"<r/>",
        b"<!--<r>-->",
        b"<![CDATA[</r>]]>",
        b"<?p <r>?>",
        b"text",
        b"<s a='>'>",
        b"<s xmlns='urn:s' xmlns:q='>'>",
        b"</s>",
        b"<rr/>",
    ]
    checked = 0
    for _ in range(3000):
        data = b"<d xmlns:q='urn:q'>" + b"".join(rng.choices(pieces, k=rng.randint(1, 12))) + b"</d>"
        try:
            wanted = outermost(data, "{*}r")
        except etree.XMLSyntaxError:
            continue
        checked += 1
        assert [canonical(xml) for xml in records(data, rng.randint(1, 20), "r")] == wanted, data
    assert checked > 50


def test_positions_and_namespaces() -> None:
    data = b'<d xmlns="u" xmlns:p="v">\n<r p:a="1"/><r xmlns="w"/></d>'
    header = read_header([data], "r")
    found = list(scan_records([data[header.end :]], "r", header, header.end))
    assert [data[r.position : r.position + 2] for r in found] == [b"<r", b"<r"]
    assert [r.xml for r in found] == [b'<r xmlns="u" xmlns:p="v" p:a="1"/>', b'<r xmlns:p="v" xmlns="w"/>']


@pytest.mark.parametrize("declared", ["ISO-8859-1", "shift_jis"])
def test_a_byte_order_mark_is_right_whatever_is_declared(declared: str) -> None:
    data = f'\ufeff<?xml version="1.0" encoding="{declared}"?><d><r>é</r></d>'.encode()
    (record,) = read_records(iter([data]), "r")
    assert etree.fromstring(record.xml).text == "é"


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "iso-8859-1", "cp1252"]
)
@pytest.mark.parametrize("given", [None, "utf-8", "utf-16", "iso-8859-1", "us-ascii", "cp1252"])
def test_a_file_has_the_encoding_that_it_has_as_a_whole(encoding: str, given: str | None) -> None:
    subscriptions = xsift.Subscriptions()
    subscriptions.add("it", "//r[. = 'é']")
    matcher = subscriptions.matcher()
    for start in ("", "\n"):
        data = f"{start}<d><r>é</r></d>".encode(encoding)
        document = xsift.Document(data, encoding=given)
        if next(matcher.match_many([document])).ids:
            (record,) = read_records(iter([data]), "r", encoding=given)
            assert matcher.match(record.xml) == ["it"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1", "shift_jis", "utf-32"])
def test_encodings(encoding: str) -> None:
    letter = "表" if encoding == "shift_jis" else "é"
    name = "utf-8" if encoding == "utf-8-sig" else encoding
    data = f'<?xml version="1.0" encoding="{name}"?><d><r>{letter}</r></d>'.encode(encoding)
    for size in (1, 7, 201, len(data)):  # a pipe gives what there is
        found = read_records(iter(cut(data, size)), "r")
        assert [etree.fromstring(record.xml).text for record in found] == [letter]


@pytest.mark.parametrize(
    ("encoding", "data"),
    [("us-ascii", b"\xe9"), ("windows-1252", b"\x81"), ("shift_jis", b"\x81 ")],
)
def test_bytes_that_mean_nothing_break_their_record(encoding: str, data: bytes) -> None:
    """They are no replacement character, of which nobody wrote any; the other records are whole."""
    text = b"<?xml version='1.0' encoding='%s'?><d><article>%s</article><article>e</article></d>"
    broken, whole = read_records(iter([text % (encoding.encode(), data)]), "article")
    with pytest.raises(DocumentError, match="not well-formed"):
        xsift.Subscriptions().matcher().match(broken.xml)
    assert whole.xml == b"<article>e</article>"


@pytest.mark.parametrize(
    ("encoding", "code"),
    [("iso-8859-77", "unknown-encoding"), ("idna", "unknown-encoding"), ("utf-16", "incorrect-encoding")],
)
def test_encodings_that_cannot_be_are_errors(encoding: str, code: str) -> None:
    text = f"<?xml version='1.0' encoding='{encoding}'?><d><article>e</article></d>"
    with pytest.raises(DocumentError) as caught:
        list(read_records(iter([text.encode()]), "article"))
    assert caught.value.code == code


def test_root_is_a_record() -> None:
    assert records(b"<r a='1'><r/></r>", record="r") == [b"<r a='1'><r/></r>"]


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize(
    "last", [b"<article>a<!-- ", b"<article><?p ", b"<article>a <b/><![CDATA[ ]]", b"<article><article "]
)
def test_a_file_that_ends_in_a_comment_gives_its_last_record_whole(last: bytes, size: int) -> None:
    data = b"<dump><!-- a --><article/>" + last
    assert records(data, size) == [b"<article/>", last]


def test_a_truncated_file_gives_its_last_record_as_it_is() -> None:
    assert records(b"<d><r>1</r><r>2", record="r") == [b"<r>1</r>", b"<r>2"]
    assert records(b"<d><r>1</r><r>2<!-- ", record="r") == [b"<r>1</r>", b"<r>2<!-- "]
    assert records(b"<d><r>1</r><!-- ", record="r") == [b"<r>1</r>"]


def test_limits() -> None:
    header = read_header([b"<d>"], "r")
    with pytest.raises(DocumentError, match="longer than 1,000 bytes"):
        list(scan_records(cut(b"<r>" + b"x" * 5000, 100), "r", header, 3, limit_bytes=1000))
    with pytest.raises(DocumentError, match="no-root"):
        read_header([b"   "], "r")
    with pytest.raises(DocumentError, match="more than 100,000 elements are open"):
        list(scan_records([b"<a>" * 100_001], "r", header, 3))
    with pytest.raises(DocumentError, match="does not end"):
        list(scan_records(cut(b"<r a='" + b"x" * 3_000_000, 100_000), "r", header, 3))
    assert (
        len(list(scan_records(cut(b"<!--" + b"x" * 50_000 + b"--><r/>", 100), "r", header, 3, limit_bytes=1000))) == 1
    )


def test_a_record_repeats_the_entities_that_it_refers_to() -> None:
    entities = b"".join(b'<!ENTITY e%d "%d">' % (n, n) for n in range(100)) + b'<!ENTITY both "&e1; and &e2;">'
    subset = (
        b"<!-- <!ENTITY e1 'no'> --><!ELEMENT r ANY>" + entities + b"<!ATTLIST r t NMTOKEN #IMPLIED u CDATA '&e3;'>"
    )
    data = b"<!DOCTYPE d [" + subset + b"]><d><r>&both;</r><r>no &#38; &lt;</r><r>&e7;<s t='&both;'/></r></d>"
    first, second, third = records(data, record="r")
    root = etree.fromstring(data)
    for xml, element in zip((first, second, third), root, strict=True):
        assert canonical(xml) == etree.tostring(element, method="c14n", exclusive=True)
    assert (first.count(b"<!ENTITY"), second.count(b"<!ENTITY"), third.count(b"<!ENTITY")) == (4, 1, 5)
    assert b"<!ELEMENT" not in first


@pytest.mark.parametrize(
    ("declared", "record"),
    [
        (b"<!DOCTYPE d [<!ENTITY e '%s'>]><d>" % (b"x" * 20_000), b"<r>&e;</r>"),
        (b"<!DOCTYPE d [<!ENTITY e ''><!ATTLIST r %s>]><d>" % b" a CDATA #IMPLIED".join([b""] * 1000), b"<r/>"),
        (b"<d %s>" % b" ".join(b"xmlns:n%d='urn:n'" % n for n in range(1000)), b"<r/>"),
        (b"<d>" + b"".join(b"<s xmlns:n%d='urn:n'>" % n for n in range(1000)), b"<r/>"),
    ],
)
def test_what_is_repeated_in_front_of_records_is_bounded(declared: bytes, record: bytes) -> None:
    data = declared + record * 5000
    header = read_header([data], "r")
    limits = Limits(amplification_bytes=1 << 20)
    written: list[int] = []
    found = scan_records(cut(data, 1 << 16, header.end), "r", header, header.end, limits=limits)
    with pytest.raises(DocumentError) as caught:
        written.extend(len(it.xml) for it in found)
    assert caught.value.code == "record-amplification"
    assert sum(written) <= (1 << 20) + 101 * len(record) * 5000
    # Fewer records are no harm.
    few = declared + record * 20
    assert len(list(scan_records([few[header.end :]], "r", header, header.end, limits=limits))) == 20


def test_the_scope_of_namespaces_is_kept_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    touched = 0
    enter = _Scope.enter

    def counting(self: _Scope, declared: Declarations) -> None:
        nonlocal touched
        touched += len(declared) + 1
        enter(self, declared)

    monkeypatch.setattr(_Scope, "enter", counting)
    depth = 5000
    data = b"<d>" + b"".join(b"<s xmlns:n%d='urn:%d'>" % (n % 7, n) for n in range(depth)) + b"<r/>"
    data += b"</s>" * (depth - 3) + b"<r/>"
    deep, shallow = records(data, record="r")
    assert touched <= 3 * depth
    assert deep.count(b"xmlns:") == 7
    assert b"xmlns:n3='urn:%d'" % (depth - depth % 7 + 3 if depth % 7 > 3 else depth - depth % 7 - 4) in deep
    assert shallow == b"<r xmlns:n0='urn:0' xmlns:n1='urn:1' xmlns:n2='urn:2'/>"


def test_a_long_header_is_looked_through_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    from xsift.sources import records as module

    looked_at = 0
    parse = module._parse_header

    def counting(head: bytes, record: bytes, given: str | None) -> module.Header | None:
        nonlocal looked_at
        looked_at += len(head)
        return parse(head, record, given)

    monkeypatch.setattr(module, "_parse_header", counting)
    data = b"<!--" + b"x" * 100_000 + b"--><d><r/></d>"
    assert read_header(cut(data, 100), "r").root == b"d"
    assert looked_at < 6 * len(data)
