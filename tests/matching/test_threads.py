"""Many threads, one matcher: every public method gives the answer that it gives alone, while the set changes.

Threads are made to switch as often as possible, so that a race shows in seconds; XSIFT_THREAD_SECONDS asks for more.
"""

from __future__ import annotations

import io
import os
import pickle
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import xsift
from tests.language import NAMESPACES, ExpressionMaker, random_xml

SECONDS = float(os.environ.get("XSIFT_THREAD_SECONDS", "4"))
THREADS = 4


@pytest.fixture(autouse=True)
def _switch_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


Call = Callable[[xsift.Matcher, bytes, str], Any]


def _saved(matcher: xsift.Matcher) -> xsift.Matcher:
    with tempfile.TemporaryDirectory() as folder:
        matcher.save(f"{folder}/it.xsift")
        return xsift.Matcher.load(f"{folder}/it.xsift")


CALLS: dict[str, Call] = {
    "match": lambda matcher, xml, id: matcher.match(xml),
    "match_many": lambda matcher, xml, id: [match.ids for match in matcher.match_many([xml, xml], threads=2)],
    "match_array": lambda matcher, xml, id: matcher.match_array(pa.array([xml], pa.binary()))[0].to_pylist(),
    "select": lambda matcher, xml, id: matcher.select(xml),
    "tuples": lambda matcher, xml, id: matcher.tuples(xml, limit=20),
    "explain": lambda matcher, xml, id: str(matcher.explain(xml, id)),
    "stream": lambda matcher, xml, id: matcher.match(io.BytesIO(xml)),
    "rows": lambda matcher, xml, id: matcher.match_array_rows(pa.array([xml], pa.binary()))[0].tolist(),
    "report": lambda matcher, xml, id: str(matcher.report(id)),
    "ids": lambda matcher, xml, id: (matcher.ids.to_pylist(), matcher.row_ids.to_pylist(), len(matcher)),
    "pickle": lambda matcher, xml, id: pickle.loads(pickle.dumps(matcher)).match(xml),
    "save": lambda matcher, xml, id: _saved(matcher).match(xml),
    "memory": lambda matcher, xml, id: (sorted(matcher.memory()), sorted(matcher.counters())),
}


def _outcome(call: Call, matcher: xsift.Matcher, xml: bytes, id: str) -> Any:
    try:
        return call(matcher, xml, id)
    except xsift.XsiftError as error:
        return error.code


def _round(seed: int) -> list[str]:
    """One set, one matcher, some documents; returns what differed."""
    chance = random.Random(seed)
    maker = ExpressionMaker(chance, beyond=0.4)
    subscriptions = xsift.Subscriptions(namespaces=NAMESPACES)
    for number in range(20):
        subscriptions.add(f"s{number}", maker.expression())
    matcher = subscriptions.matcher()
    questions = [(name, random_xml(chance).encode(), f"s{chance.randrange(20)}") for name in CALLS for _ in range(3)]
    expected = [_outcome(CALLS[name], matcher, xml, id) for name, xml, id in questions]
    more = [maker.expression() for _ in range(30)]
    differences: list[str] = []
    matcher = subscriptions.matcher()  # a cold one

    def ask(order: random.Random) -> None:
        for _ in range(40):
            number = order.randrange(len(questions))
            name, xml, id = questions[number]
            try:
                actual = _outcome(CALLS[name], matcher, xml, id)
            except Exception as error:
                actual = error
            if actual != expected[number]:
                differences.append(f"{name} {id} {xml!r}: {actual!r}, not {expected[number]!r}")

    def change() -> None:
        for number, expression in enumerate(more):
            subscriptions.add(f"more{number}", expression)
            subscriptions.explain(f"more{number}")
            subscriptions.matcher().match(b"<a/>")
            subscriptions.table()
            subscriptions.remove(f"more{number}" if number % 2 else f"s{number // 2}")

    threads = [threading.Thread(target=ask, args=(random.Random(f"{seed} {n}"),)) for n in range(THREADS)]
    threads.append(threading.Thread(target=change))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return differences


def test_threads_do_not_see_each_other() -> None:
    deadline = time.monotonic() + SECONDS
    seed = 0
    while time.monotonic() < deadline:
        seed += 1
        differences = _round(seed)
        assert not differences, f"seed {seed}: {len(differences)} differ, first {differences[0]}"
