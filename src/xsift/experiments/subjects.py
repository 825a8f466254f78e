"""Subjects: what is measured. An engine, or a peer: libxml2 through lxml, in the ways people use it without xsift.

All of them take a `Prepared` workload, are built once, and then say for each document which patterns it matches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from time import perf_counter
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
from lxml import etree

from xsift.engines import create
from xsift.errors import XsiftError
from xsift.experiments.plan import Entry
from xsift.experiments.workloads import Indices, Prepared

__all__ = ["Refused", "Subject", "subject"]

BLOCK = 500  # subscriptions in one expression or one template; larger blocks gain nothing and reach libxml2's limits


class Refused(Exception):
    """The subject does not take this workload. Its text says why."""


def subject(entry: Entry, prepared: Prepared) -> Subject:
    """What a series measures at a point, not built yet."""
    if entry.series.peer:
        return PEERS[entry.series.peer](prepared)
    return EngineSubject(entry, prepared)


class Subject(ABC):
    """Something that can be built from a workload's patterns and matches its documents, by their numbers."""

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared

    @abstractmethod
    def build(self) -> None:
        """Makes the index anew."""

    @abstractmethod
    def match(self, document: int) -> Any:
        """Matches a document: what is timed. The result is in the subject's own terms."""

    @abstractmethod
    def answer(self, result: Any) -> Indices:
        """The patterns in a result of `match`, ascending."""

    @abstractmethod
    def parse(self, document: int) -> None:
        """Reads a document's XML into the form that `match` takes: what is timed as parsing."""

    def deliver(self, result: Any) -> Indices:
        """The subscriptions in a result of `match`."""
        return self.prepared.delivered(self.answer(result))

    def memory(self) -> dict[str, int] | None:
        """Bytes by structure, if the subject can tell."""
        return None

    def counters(self) -> dict[str, int]:
        """Work done so far."""
        return {}

    def property(self, name: str) -> float | None:
        """A number that the subject has as a property."""
        return None

    def additions(self) -> tuple[float, float] | None:
        """Seconds that adding the workload's further patterns one by one took, and removing them."""
        return None


class EngineSubject(Subject):
    """An engine of xsift, used directly: patterns in, events in, keys out."""

    def __init__(self, entry: Entry, prepared: Prepared) -> None:
        super().__init__(prepared)
        self.entry = entry
        self.deduplicated = entry.series.deduplicate
        self.items: Sequence[int] = (
            range(len(prepared.patterns)) if self.deduplicated else prepared.pattern_of.tolist()
        )
        self.item_of: Indices = np.empty(0, dtype=np.int32)  # of each key

    def build(self) -> None:
        self.engine = create(self.entry.series.engine, **self.entry.options)
        add, patterns = self.engine.add, self.prepared.patterns
        try:
            keys = [add(patterns[item]) for item in self.items]
        except XsiftError as error:
            raise Refused(str(error)) from None
        self.item_of = np.full(max(keys, default=-1) + 1, -1, dtype=np.int32)
        self.item_of[keys] = np.arange(len(keys), dtype=np.int32)

    def match(self, document: int) -> Indices:
        return self.engine.match(self.prepared.documents[document])

    def answer(self, result: Indices) -> Indices:
        items = self.item_of[result]
        if self.deduplicated:
            return np.sort(items)
        return np.unique(self.prepared.pattern_of[items])

    def deliver(self, result: Indices) -> Indices:
        items = self.item_of[result]
        return self.prepared.delivered(items) if self.deduplicated else items

    def parse(self, document: int) -> None:
        self.prepared.read(self.prepared.texts.documents[document])

    def memory(self) -> dict[str, int]:
        return dict(self.engine.memory())

    def counters(self) -> dict[str, int]:
        return dict(self.engine.counters())

    def property(self, name: str) -> float | None:
        value = getattr(self.engine, name, None)
        return float(value) if isinstance(value, int | float) else None

    def additions(self) -> tuple[float, float] | None:
        if not self.prepared.further:
            return None
        add, remove = self.engine.add, self.engine.remove
        started = perf_counter()
        keys = [add(pattern) for pattern in self.prepared.further]
        added = perf_counter()
        for key in keys:
            remove(key)
        return added - started, perf_counter() - added


class Peer(Subject):
    """libxml2 through lxml. A document is a tree; parsing makes it."""

    def __init__(self, prepared: Prepared) -> None:
        super().__init__(prepared)
        if prepared.ordered:
            raise Refused("XPath knows no ordered matching")
        self.trees = [etree.fromstring(document) for document in prepared.texts.documents]

    def parse(self, document: int) -> None:
        etree.fromstring(self.prepared.texts.documents[document])

    def answer(self, result: Any) -> Indices:
        return np.flatnonzero(np.frombuffer(result, dtype=np.uint8) == ord("1")).astype(np.int32)


class LxmlLoop(Peer):
    """The naive way: a compiled XPath object a subscription, asked one after the other.

    Measured against `boolean(…)` around each expression, which spares lxml from wrapping the selected nodes: that is
    slower unless most subscriptions match.
    """

    def build(self) -> None:
        self.expressions = [etree.XPath(text, smart_strings=False) for text in self.prepared.examples]

    def match(self, document: int) -> list[int]:
        tree = self.trees[document]
        return [number for number, expression in enumerate(self.expressions) if expression(tree)]

    def answer(self, result: list[int]) -> Indices:
        return np.array(result, dtype=np.int32)


class LxmlBlock(Peer):
    """One compiled expression a block of subscriptions, which gives a 0 or 1 for each: the loop is libxml2's."""

    def build(self) -> None:
        examples = self.prepared.examples
        blocks = [examples[at : at + BLOCK] for at in range(0, len(examples), BLOCK)]
        self.expressions = [
            etree.XPath("concat('',''," + ",".join(f"number(boolean({text}))" for text in block) + ")")
            for block in blocks
        ]

    def match(self, document: int) -> bytes:
        tree = self.trees[document]
        return "".join(str(expression(tree)) for expression in self.expressions).encode()


class LxmlXslt(Peer):
    """One XSLT stylesheet: a test a subscription, compiled and run by libxslt without coming back to Python."""

    def build(self) -> None:
        examples = self.prepared.examples
        calls, templates = [], []
        for at in range(0, len(examples), BLOCK):
            tests = "".join(
                f"<xsl:if test={quoteattr(text)}>{number} </xsl:if>"
                for number, text in enumerate(examples[at : at + BLOCK], at)
            )
            templates.append(f'<xsl:template name="block{at}">{tests}</xsl:template>')
            calls.append(f'<xsl:call-template name="block{at}"/>')
        sheet = (
            '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">'
            '<xsl:output method="text"/>'
            f'<xsl:template match="/">{"".join(calls)}</xsl:template>{"".join(templates)}</xsl:stylesheet>'
        )
        self.transform = etree.XSLT(etree.fromstring(sheet.encode(), etree.XMLParser(huge_tree=True)))

    def match(self, document: int) -> bytes:
        return bytes(self.transform(self.trees[document]))

    def answer(self, result: bytes) -> Indices:
        return np.array(result.split(), dtype=np.int32)


PEERS: dict[str, type[Peer]] = {"lxml-loop": LxmlLoop, "lxml-block": LxmlBlock, "lxml-xslt": LxmlXslt}
