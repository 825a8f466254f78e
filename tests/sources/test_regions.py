"""Files that are split by many tasks at once: the same records as in one pass, wherever regions begin."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from lxml import etree

from tests.sources.test_records import NESTED, TRICKY, canonical, cut, outermost, records
from xsift.errors import DocumentError
from xsift.sources import regions as module
from xsift.sources.records import Ancestors, read_header, scan_records
from xsift.sources.regions import Edge, Region, cut_region, look_through, places_of


def looked_through(data: bytes, region_bytes: int, record: str) -> list[Region]:
    """All regions but the first, each on its own."""

    def read(begin: int, end: int) -> bytes:
        return data[begin:end]

    cuts = [cut_region(read, len(data), number, region_bytes) for number in range(1, -(-len(data) // region_bytes))]
    return [look_through(part, begin, record) for begin, part in cuts if part]


def places(data: bytes, region_bytes: int, record: str, least_bytes: int = 1) -> list[tuple[int, Ancestors]]:
    header = read_header([data], record)
    found = looked_through(data, region_bytes, record)
    return places_of(found, lambda begin, end: data[begin:end], header.end, len(data), record, least_bytes)


def split_records(data: bytes, region_bytes: int, record: str, least_bytes: int = 1) -> list[bytes]:
    header = read_header([data], record)
    starts = places(data, region_bytes, record, least_bytes)
    ends = [*(begin for begin, _ in starts[1:]), len(data)]
    found = []
    for (begin, open_there), end in zip(starts, ends, strict=True):
        parts = cut(data, 1000, begin, end)
        found += [r.xml for r in scan_records(parts, record, header, begin, ancestors=open_there)]
    return found


@pytest.mark.parametrize("region_bytes", [*range(1, 60), 100, 300, 10_000])
def test_every_place_at_which_a_region_can_begin(region_bytes: int) -> None:
    assert [canonical(xml) for xml in split_records(TRICKY, region_bytes, "article")] == outermost(TRICKY)
    assert split_records(NESTED, region_bytes, "r") == records(NESTED, record="r")
    if region_bytes < 60:
        assert len(places(TRICKY, region_bytes, "article")) > 2
        assert len(places(NESTED, region_bytes, "r")) > 2


@pytest.mark.parametrize("missing", ["first", "last", "every second", "all"])
def test_regions_that_no_task_could_read(missing: str) -> None:
    data = TRICKY
    header = read_header([data], "article")
    found = looked_through(data, 25, "article")
    left = {"first": found[1:], "last": found[:-1], "every second": found[::2], "all": []}[missing]

    def in_order(regions: list[Region]) -> list[tuple[int, Ancestors]]:
        return places_of(regions, lambda begin, end: data[begin:end], header.end, len(data), "article", 1)

    wanted = in_order(found)
    assert len(wanted) > 3
    assert all(place in wanted for place in in_order(left))


def content(rng: random.Random, depth: int) -> str:
    """Something that may stand in an element."""
    kinds = ["text", "text", "comment", "cdata", "pi", "entity"] + (["element", "record"] * 3 if depth else [])
    fake = rng.choice(["<r>", "</r>", "<r/>", "<s x='", "</s>", "<!--", "<![CDATA[", "<?", "x > y", "- -", "]]", "?"])
    kind = rng.choice(kinds)
    if kind == "comment":
        return f"<!-- {fake.replace('--', '- ')} ]]> ?> -->"
    if kind == "cdata":
        return f"<![CDATA[{fake} --> ?> ]]>"
    if kind == "pi":
        return f"<?p {fake.replace('?', '')} --> ]]> ?>"
    if kind == "text":
        return rng.choice(["word ", "a > b ", " --> ", " ?> ", "\n", "]]", ""])
    if kind == "entity":
        return rng.choice(["&lt;r>", "&amp;", "&#60;!--"])
    name = "r" if kind == "record" else rng.choice(["s", "rr", "r-", "t"])
    attributes = rng.choice(["", " a='>'", ' a="-->"', " b='?>' c=\"'\"", f" xmlns:p='urn:p{rng.randint(0, 3)}'"])
    if rng.random() < 0.2:
        return f"<{name}{attributes}/>"
    inside = "".join(content(rng, depth - 1) for _ in range(rng.randint(0, 4)))
    return f"<{name}{attributes}>{inside}</{name}{rng.choice(['', ' '])}>"


def test_random_files() -> None:
    rng = random.Random(7)
    again: Counter[bool] = Counter()
    for _ in range(600):
        body = "".join(content(rng, rng.randint(1, 6)) for _ in range(rng.randint(0, 12)))
        data = f"<?xml version='1.0'?><!-- <r> --><d xmlns='urn:d'>{body}</d>".encode()
        etree.fromstring(data)
        wanted = records(data, record="r")
        assert [canonical(xml) for xml in wanted] == outermost(data, "{*}r")
        for region_bytes in (rng.randint(1, 30), rng.randint(30, 300)):
            assert split_records(data, region_bytes, "r", rng.randint(1, 100)) == wanted, (data, region_bytes)
            again.update(right_guesses(data, region_bytes))
    assert min(again[True], again[False]) > 100, "right and wrong guesses were tried"


def right_guesses(data: bytes, region_bytes: int) -> list[bool]:
    """Whether the beginning of each region is what was guessed."""
    edge, found = look_through(data[: data.find(b"<d")], 0, "r", Edge(b"", 0)).finish, []
    at = data.find(b"<d")
    for region in looked_through(data, region_bytes, "r"):
        if region.begin <= at or edge is None:
            continue
        edge = look_through(data[at : region.begin], at, "r", edge).finish
        found.append(region.start == edge)
        at = region.begin
    return found


def test_what_is_guessed() -> None:
    for data, edge in (
        (b"<a/> <r>", Edge(b"", 0)),
        (b"<a/> </r>", Edge(b"", 1)),
        (b"<a/> <rr/>", Edge(b"", 1)),
        (b"<a/> </r> ]]> <r>", Edge(b"]]>", 0)),
        (b"<a/> <![CDATA[ ]]> <r>", Edge(b"", 0)),
        (b"<a/> --> </r>", Edge(b"-->", 1)),
        (b"<a/> ?> <r/>", Edge(b"?>", 0)),
    ):
        assert module.guessed(data, b"r") == edge, data


@pytest.mark.parametrize(
    "data",
    [
        b"<d><r>1</r><r>2",
        b"<d><r>1</r><!-- <r>2</r>",
        b"<d></x></x></x><r>1</r></d></d><r>2</r>",
        b"<d><r>1</r></r></r><r>2</r>",
        b"<d>" + b"</s><r/><s>" * 30,
    ],
)
@pytest.mark.parametrize("region_bytes", [1, 5, 9, 30])
def test_what_is_no_xml_is_cut_all_the_same(data: bytes, region_bytes: int) -> None:
    assert b"".join(split_records(data, region_bytes, "r")) == b"".join(records(data, record="r"))


def test_a_region_that_begins_in_a_value_is_no_xml() -> None:
    data = b"<d><r>1</r><r a='<r>'>3</r><r/></d>"
    with pytest.raises(DocumentError, match="a tag does not end"):
        places(data, 17, "r")
    assert split_records(data, 100, "r") == records(data, record="r")


def test_too_much_that_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANCESTOR_LIMIT", 10)
    with pytest.raises(DocumentError, match="too many are open"):
        places(b"<d>" + b"<s>" * 8 + b"<r/>" + b"<s>" * 8 + b"<r/>", 25, "r")
    # A wrong guess may open more than there is: these are inside of a record.
    data = b"<d><r>" + b"<s>" * 20 + b"</s>" * 20 + b"<r/></r><r/></d>"
    assert split_records(data, 30, "r") == records(data, record="r")
