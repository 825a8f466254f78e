"""Documents and subscriptions that the tests of this room share: news, some of it broken or hostile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import xsift
from xsift.workload import DocumentGenerator, DocumentParameters, SubscriptionGenerator, SubscriptionParameters

BROKEN = [
    b"<nitf><body>",
    b"",
    b"not xml",
    b"<a>&undefined;</a>",
    b"\xff\xfe\x00",
    b'<!DOCTYPE a [<!ENTITY b "bbbbbbbbbb"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">'
    b'<!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;">'
    b'<!ENTITY e "&d;&d;&d;&d;&d;&d;&d;&d;&d;&d;"><!ENTITY f "&e;&e;&e;&e;&e;&e;&e;&e;&e;&e;">'
    b'<!ENTITY g "&f;&f;&f;&f;&f;&f;&f;&f;&f;&f;">]><a>&g;&g;&g;&g;&g;&g;&g;&g;</a>',
    b"<a>" * 100_000,
]


def news(number: int) -> list[bytes]:
    """News documents, with every kind of broken one mixed in."""
    made = list(DocumentGenerator(DocumentParameters(dtd="nitf", number=number, size_bytes=1500)))
    for place, broken in enumerate(BROKEN):
        made.insert((place * 7 + 1) % len(made), broken)
    return made


def interests(number: int) -> list[tuple[str, str, bool]]:
    """Subscriptions: paths and twigs, ordered and not, and some that only lxml can decide."""
    texts = list(SubscriptionGenerator(SubscriptionParameters(dtd="nitf", number=number - 3, nested_paths=1)))
    rows = [(f"s{place}", text, place % 5 == 0) for place, text in enumerate(texts)]
    return [*rows, ("counting", "//body[count(.//p) > 2]", False), ("any", "//*", False), ("never", "/none", False)]


def expected(rows: list[tuple[str, str, bool]], documents: list[bytes]) -> list[tuple[list[str] | None, str | None]]:
    """What the library says: ids, or the code of the error."""
    subscriptions = xsift.Subscriptions()
    subscriptions.add_many(rows)
    found = subscriptions.matcher().match_many(documents)
    return [(None, match.error.code) if match.error else (match.ids, None) for match in found]


def finish(start: Callable[[], Any], tries: int = 5) -> Any:
    """Starts a query and waits for its end; again if the machine was too busy to start Python within Spark's ten
    seconds."""
    from pyspark.errors import PySparkException

    for attempt in range(1, tries + 1):
        try:
            query = start()
            assert query.awaitTermination(300)
            return query
        except PySparkException as error:
            if "connect back" not in str(error) or attempt == tries:
                raise
    raise AssertionError("not reached")
