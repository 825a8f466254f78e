"""Measures workloads, and puts the figures of each paper's set-up beside those of ours.

A workload is like a paper's when its documents are as large and as deep, when as many of its subscriptions are
distinct, and when as many of them match. `compare` measures that for a preset; `table` prints it. Matching is counted
with lxml, one subscription and document after the other, unless a faster matcher is given: a function that takes the
subscriptions and the documents, and says of each subscription how many documents it matches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from lxml import etree

from xsift.workload.documents import DocumentGenerator
from xsift.workload.dtd import read_dtd
from xsift.workload.presets import PaperFigure, Preset
from xsift.workload.subscriptions import Matcher, SubscriptionGenerator

__all__ = [
    "Comparison",
    "DocumentFigures",
    "SubscriptionFigures",
    "compare",
    "lxml_matcher",
    "match_rate",
    "measure_documents",
    "measure_subscriptions",
    "table",
]

_CONDITION = re.compile(r"\[(?:@|text\(\))[^\]]*\]")
_NAME = re.compile(r"[^/\[\].]+(?:\.[^/\[\].]+)*")


@dataclass(frozen=True)
class DocumentFigures:
    """Averages over documents. `depth` is that of the deepest element; `names` counts the names of all documents."""

    number: int
    tags: float
    depth: float
    bytes: float
    names: int


@dataclass(frozen=True)
class SubscriptionFigures:
    """Averages over subscriptions that the generator made."""

    number: int
    distinct: int
    steps: float
    """Steps of the main path."""
    longest: int
    """Steps of the longest main path."""
    nodes: float
    """Steps of all paths."""
    leaves: float


@dataclass(frozen=True)
class Comparison:
    """One figure of a paper beside ours."""

    preset: str
    figure: PaperFigure
    ours: float


def measure_documents(documents: Iterable[bytes]) -> DocumentFigures:
    """Tags, depth and bytes of documents, on average."""
    number = tags = depth = size = 0
    names: set[str] = set()
    for document in documents:
        number += 1
        size += len(document)
        deepest = 0
        todo = [(etree.fromstring(document), 1)]
        while todo:
            element, level = todo.pop()
            tags += 1
            names.add(element.tag)
            deepest = max(deepest, level)
            todo.extend((child, level + 1) for child in element)
        depth += deepest
    count = max(1, number)
    return DocumentFigures(number, tags / count, depth / count, size / count, len(names))


def measure_subscriptions(texts: Sequence[str]) -> SubscriptionFigures:
    """Sizes of subscriptions, on average. Conditions are not counted as steps."""
    steps = nodes = leaves = longest = 0
    for text in texts:
        structure = _CONDITION.sub("", text)
        main = len(_NAME.findall(_without_brackets(structure)))
        steps += main
        longest = max(longest, main)
        nodes += len(_NAME.findall(structure))
        leaves += 1 + structure.count("[")
    count = max(1, len(texts))
    return SubscriptionFigures(len(texts), len(set(texts)), steps / count, longest, nodes / count, leaves / count)


def _without_brackets(text: str) -> str:
    kept = []
    open_brackets = 0
    for character in text:
        open_brackets += (character == "[") - (character == "]")
        if not open_brackets and character != "]":
            kept.append(character)
    return "".join(kept)


def lxml_matcher(texts: Sequence[str], documents: Sequence[bytes]) -> list[int]:
    """How many of the documents each subscription matches, by asking libxml2 for every pair: unordered matching."""
    trees = [etree.fromstring(document) for document in documents]
    counts = []
    for text in texts:
        matches = etree.XPath(f"boolean({text})")
        counts.append(sum(1 for tree in trees if matches(tree)))
    return counts


def match_rate(texts: Sequence[str], documents: Sequence[bytes], matcher: Matcher = lxml_matcher) -> float:
    """The share of the subscriptions that a document matches, on average."""
    pairs = len(texts) * len(documents)
    return sum(matcher(texts, documents)) / pairs if pairs else 0.0


def compare(preset: Preset, matcher: Matcher = lxml_matcher, sample: int = 200) -> Iterator[Comparison]:
    """Measures each figure that the paper gives of its workload. Averages are over `sample` documents."""
    for figure in preset.figures:
        yield Comparison(preset.name, figure, _MEASURES[figure.measure](preset, figure, matcher, sample))


def table(comparisons: Iterable[Comparison]) -> str:
    """The comparisons as a Markdown table."""
    lines = ["| preset | figure | paper | ours | where in the paper |", "| --- | --- | ---: | ---: | --- |"]
    for comparison in comparisons:
        figure = comparison.figure
        lines.append(
            f"| `{comparison.preset}` | {figure.name} | {figure.text(figure.paper)} | {figure.text(comparison.ours)} "
            f"| {figure.where} |"
        )
    return "\n".join(lines)


_Measure = Callable[[Preset, PaperFigure, Matcher, int], float]


def _documents(preset: Preset, sample: int, size_bytes: float = 0) -> list[bytes]:
    parameters = replace(preset.documents, size_bytes=int(size_bytes)) if size_bytes else preset.documents
    return list(islice(DocumentGenerator(parameters), sample))


def _subscriptions(preset: Preset, number: int) -> list[str]:
    return list(SubscriptionGenerator(replace(preset.subscriptions, number=number)))


def _of_documents(name: str) -> _Measure:
    def measure(preset: Preset, figure: PaperFigure, matcher: Matcher, sample: int) -> float:
        return float(getattr(measure_documents(_documents(preset, sample, figure.argument)), name))

    return measure


def _of_subscriptions(name: str) -> _Measure:
    def measure(preset: Preset, figure: PaperFigure, matcher: Matcher, sample: int) -> float:
        return float(getattr(measure_subscriptions(_subscriptions(preset, figure.argument)), name))

    return measure


def _elements(preset: Preset, figure: PaperFigure, matcher: Matcher, sample: int) -> float:
    return len(read_dtd(preset.documents.dtd).elements)


def _attributes(preset: Preset, figure: PaperFigure, matcher: Matcher, sample: int) -> float:
    return sum(len(element.attributes) for element in read_dtd(preset.documents.dtd).elements.values())


def _distinct(preset: Preset, figure: PaperFigure, matcher: Matcher, sample: int) -> float:
    parameters = replace(preset.subscriptions, number=figure.argument, distinct=False)
    return len(set(SubscriptionGenerator(parameters)))


def _match_rate(preset: Preset, figure: PaperFigure, matcher: Matcher, sample: int) -> float:
    # Every n-th of the subscriptions, not the first ones: those that are found first are short and match often.
    texts = _subscriptions(preset, figure.argument)
    return match_rate(texts[:: max(1, len(texts) // 2000)], _documents(preset, min(sample, 50)), matcher)


def _sequence_nodes(preset: Preset, figure: PaperFigure, matcher: Matcher, sample: int) -> float:
    # An extended Prüfer sequence has a node for each node of the pattern and each leaf's dummy, but one for the root.
    measured = measure_subscriptions(_subscriptions(preset, figure.argument))
    return measured.nodes + measured.leaves - 1


_MEASURES: dict[str, _Measure] = {
    "tags": _of_documents("tags"),
    "depth": _of_documents("depth"),
    "bytes": _of_documents("bytes"),
    "steps": _of_subscriptions("steps"),
    "longest": _of_subscriptions("longest"),
    "leaves": _of_subscriptions("leaves"),
    "elements": _elements,
    "attributes": _attributes,
    "distinct": _distinct,
    "match rate": _match_rate,
    "sequence nodes": _sequence_nodes,
}
