"""A set that is changed bit by bit: merged into one index, by a thread of its own; what documents led to is kept."""

from __future__ import annotations

import random
import sys
import threading

import pytest

import xsift
from tests.language import NAMESPACES, ExpressionMaker, random_xml


def _grown(chance: random.Random, engine: str = "auto") -> xsift.Subscriptions:
    """A set that was matched with while it grew, and shrank: it has several segments."""
    maker = ExpressionMaker(chance, beyond=0.3)
    subscriptions = xsift.Subscriptions(namespaces=NAMESPACES)
    for number in range(150):
        subscriptions.add(f"s{number}", maker.expression())
        subscriptions.add(f"o{number}", f"//a[{chance.choice('abc')}][{chance.choice('abc')}]", ordered=True)
        if chance.random() < 0.2:
            subscriptions.remove(chance.choice(list(subscriptions)))
        if number % 7 == 0:
            subscriptions.matcher(engine)
    return subscriptions


@pytest.mark.parametrize("engine", ["auto", "yfilter", "xtrie"])
def test_merged_segments_match_as_before(engine: str) -> None:
    chance = random.Random(26)
    for _ in range(10):
        try:
            subscriptions = _grown(chance, engine)
            before = subscriptions.matcher(engine)
        except xsift.EngineError:
            continue
        assert subscriptions.compact()
        after = subscriptions.matcher(engine)
        assert len(after._plan.segments) == 1 < len(before._plan.segments)
        assert not subscriptions.compact()
        for xml in (random_xml(chance).encode() for _ in range(30)):
            assert after.match(xml, failures={}) == before.match(xml, failures={})


def test_the_set_is_changed_while_it_is_merged() -> None:
    chance = random.Random(4)
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(5):
            subscriptions = _grown(chance)
            maker = ExpressionMaker(chance)
            stop = threading.Event()
            merges = 0

            def merge(subscriptions: xsift.Subscriptions = subscriptions, stop: threading.Event = stop) -> None:
                nonlocal merges
                while not stop.is_set():
                    merges += subscriptions.compact()

            merging = threading.Thread(target=merge)
            merging.start()
            for number in range(200):
                subscriptions.add(f"more{number}", maker.expression())
                if number % 3 == 0:
                    subscriptions.remove(f"more{number}")
                matcher = subscriptions.matcher()
            stop.set()
            merging.join()
            assert merges
            fresh = xsift.Subscriptions(namespaces=NAMESPACES)
            fresh.add_many(subscriptions.table())
            alone = fresh.matcher()
            for xml in (random_xml(chance).encode() for _ in range(30)):
                expected = alone.match(xml, failures={})
                assert matcher.match(xml, failures={}) == expected
                assert subscriptions.matcher().match(xml, failures={}) == expected
    finally:
        sys.setswitchinterval(switch)


def test_a_merge_that_fails_leaves_the_set_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    subscriptions = _grown(random.Random(1))
    number = len(subscriptions.matcher()._plan.segments)
    with monkeypatch.context() as patch:
        patch.setattr("xsift.matching.segments.Segments.merged", lambda self, end: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            subscriptions.compact()
    assert len(subscriptions.matcher()._plan.segments) == number
    assert subscriptions.compact()


def test_a_matcher_takes_over_what_the_one_before_it_knew() -> None:
    subscriptions = xsift.Subscriptions()
    subscriptions.add_many([(f"s{number}", f"//a/b{number}[c]") for number in range(2000)])
    xml = "<a>" + "".join(f"<b{number}><c/></b{number}>" for number in range(500)) + "</a>"
    matcher = subscriptions.matcher()
    assert len(matcher.match(xml)) == 500
    known = matcher.counters()["states made"]
    for number in range(20):
        subscriptions.add(f"more{number}", "//other")
        matcher = subscriptions.matcher()
        assert len(matcher.match(xml)) == 500
    large = matcher._plan.segments[0].engine
    assert large.counters()["states made"] == known  # nothing was found out again
    assert large.memory()["run-time marks"] < 1 << 20  # and no scratch was left behind


def test_large_segments_are_left_to_compact() -> None:
    chance = random.Random(5)
    subscriptions = xsift.Subscriptions(merge_at_most=100)
    for number in range(600):
        subscriptions.add(f"s{number}", f"//a[{chance.choice('abc')}]/{chance.choice('abc')}")
        matcher = subscriptions.matcher()
    sizes = [part.end - part.first for part in matcher._built]
    assert max(sizes) <= 100
    assert 6 <= len(sizes) < 30  # bits are merged all the same, up to that
    assert subscriptions.compact()
    assert len(subscriptions.matcher()._plan.segments) == 1
    for xml in (random_xml(chance).encode() for _ in range(20)):
        assert subscriptions.matcher().match(xml) == matcher.match(xml)
