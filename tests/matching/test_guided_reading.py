"""sift says which conditions can matter while a document is read: the answers are those of engines that see all.

What is hard is not the usual document: it is one that the scanner gives up on in the middle, that comes in pieces,
that is broken, or that several segments look at.
"""

from __future__ import annotations

import io
import random

import pytest

import xsift

EXPRESSIONS = [
    "/a/b[@x=1]/c",
    "//b[@x='1'][@y]//c[@x=2]",
    "//c[text()='one']",
    "/a//c[contains(., 'ne')]",
    "//b[c[text()='two']]/c[@x=2]",
    "//b[not(@x)]/c",
    "/a[b[@y>1]][.//c[text()='one']]//c[@x!=2]",
    "//*[@*='2']",
    "//b[string-length(@y) = 1]/c[text()]",
    "/a/b[normalize-space(.)='one']",
    "//c[. = 'x & y']",
    "/a[@x='&']//b",
]


class Pieces(io.RawIOBase):
    """A file that gives few bytes at a time."""

    def __init__(self, data: bytes, size: int) -> None:
        self.data, self.size, self.place = data, size, 0

    def read(self, size: int = -1) -> bytes:
        piece = self.data[self.place : self.place + self.size]
        self.place += len(piece)
        return piece


def random_document(rng: random.Random) -> str:
    def element(depth: int) -> str:
        name = rng.choice("abcd")
        attributes = "".join(
            f" {attribute}={rng.choice(['1', '2', '&amp;', '1&#10;2', 'long value of an attribute'])!r}"
            for attribute in ("x", "y", "unasked")
            if rng.random() < 0.5
        ).replace("'", '"')
        inner = "".join(
            element(depth + 1)
            if rng.random() < 0.6
            else rng.choice(["one", "two", " ", "x &amp; y", "<!-- -->", "<?p?>"])
            for _ in range(rng.randrange(4) if depth < 6 else 0)
        )
        return f"<{name}{attributes}>{inner}</{name}>"

    return f"<a x='&amp;'>{element(1)}{element(1)}</a>"


def variants(rng: random.Random, text: str) -> list[bytes]:
    """The document for the scanner; for expat from its start; and for both, one after the other."""
    entity = text.replace("one", "&e;").replace("</a>", "&e;</a>", 1)
    return [
        text.encode(),
        text.encode("utf-16"),
        b"<!DOCTYPE a [<!ENTITY e 'one'>]>" + entity.encode(),
        text.replace("x &amp; y", "x &amp;<![CDATA[ ]]>y").encode(),
    ]


def matchers(rng: random.Random) -> list[xsift.Matcher]:
    """The same set with sift in one segment, in several, with a tiny cache; and with an engine that guides nobody."""
    subscriptions = xsift.Subscriptions()
    made = []
    for number, text in enumerate(EXPRESSIONS):
        subscriptions.add(f"s{number}", text)
        if number % 4 == 1:
            subscriptions.matcher("sift")  # so that what follows is another segment
    made.append(subscriptions.matcher("sift"))
    again = xsift.Subscriptions()
    again.add_many([(f"s{number}", text) for number, text in enumerate(EXPRESSIONS)])
    return [
        again.matcher("reference"),
        made[0],
        again.matcher("sift"),
        again.matcher("sift", cache_bytes=0),
        again.matcher("sift", remember="never"),
    ]


@pytest.mark.parametrize("seed", range(15))
def test_guided_readers_give_the_same_answers(seed: int) -> None:
    rng = random.Random(seed)
    reference, *guided = matchers(rng)
    for _ in range(10):
        text = random_document(rng)
        for document in variants(rng, text):
            expected = reference.match(document)
            for matcher in guided:
                assert matcher.match(document) == expected, document
                assert matcher.match(Pieces(document, rng.choice([1, 7, 100]))) == expected, document
            broken = document[: rng.randrange(len(document))]
            for matcher in guided:  # a document that breaks off leaves nothing behind
                with pytest.raises(xsift.DocumentError):
                    matcher.match(broken)
                assert matcher.match(document) == expected


def test_the_scanner_gives_up_behind_values_that_mattered() -> None:
    """All that the guide took is read again, by expat, after it had said what to look at."""
    subscriptions = xsift.Subscriptions()
    subscriptions.add("twice", "/a[b[@x=1]][b[@x=2]]/c[@y=3]")
    subscriptions.add("text", "/a/c[text()='one two']")
    subscriptions.add("count", "/a[b/@x=1]/b[@x=2]")
    body = b"<b x='1'/>" * 40_000 + b"<b x='2'/>"  # more than one chunk of events
    document = b"<a>" + body + b"<c y='3'>one&#32;two</c>" + b"<c>&quot;</c></a>"
    assert subscriptions.matcher("sift").match(document) == ["twice", "text", "count"]
    external = b"<!DOCTYPE a SYSTEM 'none.dtd'><a>" + body + b"<c y='3'>one two</c></a>"
    assert subscriptions.matcher("sift").match(external) == ["twice", "text", "count"]
    for size in (1000, 100_000):
        assert subscriptions.matcher("sift").match(Pieces(document, size)) == ["twice", "text", "count"]


def test_the_scanner_gives_up_behind_what_was_decided() -> None:
    """What a guide found stays found when the rest, which nobody needs, is read again by expat."""
    early, late = ("early", "/a/b[@x=1]"), ("late", "/a/c[@y=3]")
    beginning = b"<a>" + b"<b x='1'/>" * 40_000
    odd = b"<d xmlns:xml='http://www.w3.org/XML/1998/namespace'/>"  # right, and left to expat
    ends = [b"<c y='3'/>" + odd + b"</a>", odd + b"<c y='3'/></a>", odd + b"</a>"]
    for rows in ([early], [early, late], [late, early]):
        subscriptions = xsift.Subscriptions()
        for row in rows:
            subscriptions.add(*row)
            subscriptions.matcher("sift")  # a segment each
        matcher = subscriptions.matcher("sift")
        for end in ends:
            expected = [id for id, _ in rows if id == "early" or b"<c" in end]
            assert matcher.match(beginning + end) == expected
            assert matcher.match(Pieces(beginning + end, 10_000)) == expected


@pytest.mark.parametrize("cache_bytes", [0, 20_000, 1 << 27])
def test_many_thresholds_hold_at_once(cache_bytes: int) -> None:
    """An element that passes many conditions is looked at another way than one that passes few."""
    rng = random.Random(7)

    def step(name: str) -> str:
        return f"{name}[@x{rng.choice('<>')}{rng.randrange(40)}]" if rng.random() < 0.7 else name

    def path() -> str:
        texts = [step(rng.choice("abc*")) for _ in range(rng.randrange(1, 4))]
        if rng.random() < 0.4:
            texts[-1] += f"[{rng.choice(['', './/'])}{step(rng.choice('abc'))}/{step(rng.choice('abc'))}]"
        return "".join(rng.choice(["/", "//"]) + text for text in texts)

    def element(depth: int) -> str:
        inner = "".join(element(depth + 1) for _ in range(rng.randrange(4) if depth < 6 else 0))
        name = rng.choice("abc")
        return f"<{name} x='{rng.randrange(40)}'>{inner}</{name}>"

    subscriptions = xsift.Subscriptions()
    for number in range(400):
        subscriptions.add(f"s{number}", path())
    reference, matcher = subscriptions.matcher("reference"), subscriptions.matcher("sift", cache_bytes=cache_bytes)
    for _ in range(12):
        document = element(0).encode()
        assert matcher.match(document) == reference.match(document), document


def test_whatever_an_attribute_is_called_it_is_looked_at_where_it_is_asked_for() -> None:
    """A guide has a bit for several names: enough of them to need every bit."""
    for name in (f"{'long.' * (i % 5)}n{i}" for i in range(400)):
        subscriptions = xsift.Subscriptions()
        subscriptions.add("asked", f"/r/a[@{name} = 1]")
        assert subscriptions.matcher("sift").match(f'<r><a n="1" {name}="1"/></r>'.encode()) == ["asked"], name
