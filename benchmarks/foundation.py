"""Parsing alone, engines on top of it, and the lxml loop: microseconds a document, beside each other in one run."""

from __future__ import annotations

from lxml import etree

import xsift
from benchmarks.measuring import interleaved, machine, median, table
from xsift.document import DocumentIndex, Reader
from xsift.workload import DocumentGenerator, DocumentParameters, SubscriptionGenerator, SubscriptionParameters
from xsift.xpath import Symbols

SIZES = (1_000, 10_000, 100_000)
DOCUMENTS = 200
LXML_PAIRS = 2_000_000  # the loop is run on as many documents as keep it to this many pairs


def run(scale: float) -> None:
    print(f"  {machine()}; NITF documents of 4 KB; distinct paths, depth 6, * and // at 0.2\n")
    documents = list(DocumentGenerator(DocumentParameters(dtd="nitf", number=DOCUMENTS, size_bytes=4000)))
    rows = []
    for size in (int(size * scale) for size in SIZES):
        rows.append(_measure(documents, size))
    headings = [
        "subscriptions",
        "matches",
        "parsing",
        "yfilter",
        "sift",
        "lxml loop",
        "lxml / yfilter",
        "lxml / sift",
    ]
    table(headings, rows)
    print("\n  µs a document; yfilter and sift include parsing")


def _measure(documents: list[bytes], size: int) -> list[str]:
    texts = list(SubscriptionGenerator(SubscriptionParameters(dtd="nitf", number=size, distinct=True)))
    subscriptions = xsift.Subscriptions()
    subscriptions.add_many([(str(number), text) for number, text in enumerate(texts)])
    matchers = {name: subscriptions.matcher(name) for name in ("yfilter", "sift")}
    sample = documents[: max(2, min(len(documents), LXML_PAIRS // size))]
    expressions = [etree.XPath(f"boolean({text})") for text in texts]
    found = {name: _matches(matcher, sample) for name, matcher in matchers.items()}
    found["lxml"] = _lxml_loop(expressions, sample)
    assert found["lxml"] == found["yfilter"] == found["sift"], "the answers differ"
    reader = Reader(DocumentIndex(Symbols()))
    seconds = interleaved(
        {
            "parsing": lambda: [reader.read(document) for document in documents],
            "yfilter": lambda: list(matchers["yfilter"].match_many(documents)),
            "sift": lambda: list(matchers["sift"].match_many(documents)),
        }
    )
    seconds |= interleaved({"lxml": lambda: _lxml_loop(expressions, sample[:2])}, repeats=2)
    each = {
        name: median(values) / (2 if name == "lxml" else len(documents)) * 1e6 for name, values in seconds.items()
    }
    matches = sum(len(ids) for ids in found["sift"]) / len(sample)
    return [
        f"{size:,}",
        f"{matches:,.0f}",
        *(f"{each[name]:,.1f}" for name in ("parsing", "yfilter", "sift", "lxml")),
        f"{each['lxml'] / each['yfilter']:,.0f}",
        f"{each['lxml'] / each['sift']:,.0f}",
    ]


def _matches(matcher: xsift.Matcher, documents: list[bytes]) -> list[list[str]]:
    return [match.ids for match in matcher.match_many(documents)]


def _lxml_loop(expressions: list[etree.XPath], documents: list[bytes]) -> list[list[str]]:
    found = []
    for document in documents:
        tree = etree.fromstring(document).getroottree()
        found.append([str(number) for number, expression in enumerate(expressions) if expression(tree)])
    return found
