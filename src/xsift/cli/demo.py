"""`xsift demo`: the main job on generated data, with what it found and where the time went."""

from __future__ import annotations

import argparse
import time
from collections import Counter

import xsift
from xsift.cli import EXIT_OK
from xsift.cli.common import progress
from xsift.workload import DocumentGenerator, DocumentParameters, SubscriptionGenerator, SubscriptionParameters


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds this subcommand's options."""
    parser.add_argument("--documents", type=int, default=2000, help="news documents to make; default: 2,000")
    parser.add_argument("--subscriptions", type=int, default=100_000, help="subscriptions to make; default: 100,000")
    parser.add_argument("--engine", default="auto", help="see `xsift engines`; default: auto")


def run(arguments: argparse.Namespace) -> int:
    """Generates, matches, and shows; returns the exit code."""
    clock = _Clock()
    documents = list(DocumentGenerator(DocumentParameters(dtd="nitf", number=arguments.documents, size_bytes=4000)))
    clock.note(
        f"{len(documents):,} news documents, {sum(map(len, documents)) / len(documents):,.0f} bytes each, made"
    )
    texts = SubscriptionGenerator(SubscriptionParameters(dtd="nitf", number=arguments.subscriptions))
    rows = [
        (f"subscriber-{number}", text) for number, text in enumerate(progress(texts, "subscriptions", len(texts)), 1)
    ]
    clock.note(f"{len(rows):,} subscriptions made, such as {rows[1][1]}")
    subscriptions = xsift.Subscriptions()
    subscriptions.add_many(rows)
    matcher = subscriptions.matcher(arguments.engine)
    seconds = clock.note(f"parsed and indexed on engine {matcher.engine}: {matcher.reason}")
    print(f"           {len(rows) / seconds:,.0f} subscriptions a second")
    matched = Counter[int]()
    for match in progress(matcher.match_many(documents), "documents", len(documents)):
        matched.update(match.rows.tolist())
    seconds = clock.note(f"matched: {matched.total():,} matches, {matched.total() / len(documents):,.0f} a document")
    pairs = len(documents) * len(rows) / seconds
    print(f"           {len(documents) / seconds:,.0f} documents a second: {pairs:,.0f} pairs with a subscription")
    _show_popular(matched, rows)
    _show_fragment(matcher, documents, matched)
    return EXIT_OK


class _Clock:
    def __init__(self) -> None:
        self._last = time.perf_counter()

    def note(self, text: str) -> float:
        """Prints what was done since the last note, and how long it took."""
        seconds = time.perf_counter() - self._last
        print(f"{seconds:8.2f} s {text}", flush=True)
        self._last = time.perf_counter()
        return seconds


def _show_popular(matched: Counter[int], rows: list[tuple[str, str]]) -> None:
    print("\nThe most often satisfied, and some of the rarest:")
    ranking = matched.most_common()
    for row, count in ranking[:3] + ranking[-3:]:
        print(f"  {count:6,} documents  {rows[row][0]:18}  {rows[row][1]}")


def _show_fragment(matcher: xsift.Matcher, documents: list[bytes], matched: Counter[int]) -> None:
    """What `select` gives: the bytes to deliver to one subscriber."""
    print("\nFragments of the first document, for some of its subscribers:")
    selected = matcher.select(documents[0])
    for id, nodes in [item for item in selected.items() if item[1]][5:8]:
        fragment = documents[0][nodes[0].start : nodes[0].end].decode()
        print(f"  {id} gets {nodes[0].path}: {fragment[:70]}{'…' if len(fragment) > 70 else ''}")
