"""What callers give by mistake: an error that says what was expected, at every door."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import xsift

MISTAKES: dict[str, tuple[Callable[[Any, Any], object], type[Exception], str]] = {
    "no documents": (lambda _, m: m.match_many(None), xsift.DocumentError, "one after the other, not NoneType"),
    "one str": (lambda _, m: m.match_many("<a/>"), xsift.DocumentError, "not one str: match takes one"),
    "one of bytes": (lambda _, m: m.match_many(b"<a/>"), xsift.DocumentError, "not one bytes"),
    "one path": (lambda _, m: m.match_many(Path("a.xml")), xsift.DocumentError, "not one PosixPath"),
    "a list for an array": (lambda _, m: m.match_array(["<a/>"]), xsift.DocumentError, "not list: pyarrow.array"),
    "an array of numbers": (lambda _, m: m.match_array(pa.array([1])), xsift.DocumentError, "not one of int64"),
    "explain nothing": (lambda _, m: m.explain(b"<a/>", None), xsift.SubscriptionError, "id must be str"),
    "report nothing": (lambda _, m: m.report(None), xsift.SubscriptionError, "id must be str"),
    "remove nothing": (lambda s, _: s.remove(None), xsift.SubscriptionError, "id must be str, not NoneType"),
    "the text of nothing": (lambda s, _: s.xpath(None), xsift.SubscriptionError, "id must be str"),
    "an id of bytes": (lambda s, _: s.add(b"b", "//a"), xsift.SubscriptionError, "id must be str, not bytes"),
    "no expression": (lambda s, _: s.add("b", None), xsift.SubscriptionError, "xpath must be str"),
    "ordered as text": (lambda s, _: s.add("b", "//a", ordered="no"), xsift.SubscriptionError, "not 'no'"),
    "a row with ordered as text": (lambda s, _: s.add_many([("b", "//a", "no")]), xsift.SubscriptionError, "row 1"),
    "an option that is not there": (lambda s, _: s.matcher("sift", x={}), xsift.EngineError, "no option 'x'"),
    "a value of no use": (lambda s, _: s.matcher("sift", cache_bytes=[]), xsift.EngineError, "cache_bytes"),
    "limits as a number": (lambda s, _: s.matcher(limits=5), TypeError, "limits must be xsift.Limits, not int"),
    "no threads": (lambda _, m: m.match_many([], threads=0), ValueError, "from 1 on, not 0"),
    "threads as text": (lambda _, m: m.match_many([], threads="2"), ValueError, "not '2'"),
    "fewer tuples than none": (lambda _, m: m.tuples(b"<a/>", limit=-1), ValueError, "from 0 on, or None, not -1"),
    "a limit as text": (lambda _, m: m.tuples(b"<a/>", limit="2"), ValueError, "not '2'"),
    "a folder that is not there": (lambda _, m: m.save("/no/such/a.xsift"), FileNotFoundError, "/no/such'"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told(mistake: str) -> None:
    call, error, message = MISTAKES[mistake]
    subscriptions = xsift.Subscriptions()
    subscriptions.add("a", "//a")
    matcher = subscriptions.matcher()
    with pytest.raises(error) as raised:
        call(subscriptions, matcher)
    assert message in str(raised.value)
    assert matcher.match(b"<a/>") == ["a"]
