"""A broken document leaves nothing behind: whatever came before, each answer is the one of a fresh matcher.

Random sequences of sound and broken documents go through one matcher, by every door, on every engine.
"""

from __future__ import annotations

import io
import os
import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import xsift
from tests.language import NAMESPACES, ExpressionMaker, random_xml
from xsift.engines import ENGINES

ROUNDS = int(os.environ.get("XSIFT_SEQUENCE_ROUNDS", "3"))
FAR = b" " * (1 << 16)  # what follows is in another slice of the reader than the root

BREAKS: list[Callable[[bytes, random.Random], bytes]] = [
    lambda xml, random: xml + b"<",
    lambda xml, random: xml + b"<a/>",
    lambda xml, random: xml + FAR + b"<",
    lambda xml, random: xml + FAR + b"&amp;",
    lambda xml, random: xml + b"text",
    lambda xml, random: xml[: random.randrange(len(xml))],
    lambda xml, random: xml[: len(xml) // 2] + b"\xff" + xml[len(xml) // 2 :],
    lambda xml, random: xml[:-1] + b"x>",
    lambda xml, random: b"",
]


class Trickle(io.RawIOBase):
    """A stream that gives a few bytes at a time."""

    def __init__(self, xml: bytes) -> None:
        self._rest = io.BytesIO(xml)

    def read(self, size: int = -1) -> bytes:
        return self._rest.read(7)


def _outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except xsift.DocumentError as error:
        return error.code


def _match_many(matcher: xsift.Matcher, xml: bytes) -> Any:
    match = next(iter(matcher.match_many([xml])))
    return match.error.code if match.error else match.ids


def _match_array(matcher: xsift.Matcher, xml: bytes) -> Any:
    ids, errors = matcher.match_array(pa.array([xml], pa.binary()))
    return errors[0].code if errors else ids[0].as_py()


DOORS: dict[str, Callable[[xsift.Matcher, bytes], Any]] = {
    "bytes": lambda matcher, xml: _outcome(lambda: matcher.match(xml)),
    "stream": lambda matcher, xml: _outcome(lambda: matcher.match(io.BytesIO(xml))),
    "trickle": lambda matcher, xml: _outcome(lambda: matcher.match(Trickle(xml))),
    "match_many": _match_many,
    "match_array": _match_array,
    "select": lambda matcher, xml: _outcome(lambda: list(matcher.select(xml))),
}


def _random_set(chance: random.Random) -> xsift.Subscriptions:
    subscriptions = xsift.Subscriptions(namespaces=NAMESPACES)
    maker = ExpressionMaker(chance, beyond=chance.choice([0, 0.1]))
    for number in range(chance.choice([1, 5, 30])):
        subscriptions.add(f"s{number}", maker.expression())
    return subscriptions


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_answers_do_not_depend_on_what_came_before(engine: str) -> None:
    chance = random.Random(f"sequences {engine}")
    for _ in range(ROUNDS):
        subscriptions = _random_set(chance)
        matcher = subscriptions.matcher(engine=engine)
        documents = [random_xml(chance).encode() for _ in range(8)]
        for _ in range(60):
            xml = chance.choice(documents)
            if chance.random() < 0.5:
                xml = chance.choice(BREAKS)(xml, chance)
            door = chance.choice(list(DOORS))
            fresh = subscriptions.matcher(engine=engine)
            assert DOORS[door](matcher, xml) == DOORS[door](fresh, xml), (engine, door, xml)


def test_a_document_that_breaks_after_its_root_does_not_leak_into_the_next() -> None:
    subscriptions = xsift.Subscriptions()
    subscriptions.add_many([("root", "/a"), ("secret", "//d"), ("never", "//z")])
    matcher = subscriptions.matcher()
    for broken in (b"<a><d/></a><", b"<a><d/></a>" + FAR + b"<"):
        with pytest.raises(xsift.DocumentError):
            matcher.match(io.BytesIO(broken))
        assert matcher.match(b"<a/>") == ["root"]
