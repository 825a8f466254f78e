"""Peers: what people use without xsift, in the ways they use it, to measure engines against.

libxml2 through lxml is asked here, in the three ways that there are; YFilter 1.0, the authors' own, in yfilter.py;
Spark's xpath_boolean in spark_xpath.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
from lxml import etree

from xsift.experiments import spark_xpath, yfilter
from xsift.experiments.plan import Entry
from xsift.experiments.subjects import EngineSubject, Refused, Subject
from xsift.experiments.workloads import Indices, Prepared

__all__ = ["PEERS", "subject"]

BLOCK = 500  # subscriptions in one expression or one template; larger blocks gain nothing and reach libxml2's limits


def subject(entry: Entry, prepared: Prepared) -> Subject:
    """What a series measures at a point, not built yet."""
    if entry.series.peer:
        peer = PEERS[entry.series.peer](prepared)
        peer.ask_first(entry.series.documents or len(prepared.documents))
        return peer
    return EngineSubject(entry, prepared)


class Lxml(Subject):
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


class LxmlLoop(Lxml):
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


class LxmlBlock(Lxml):
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


class LxmlXslt(Lxml):
    """One XSLT stylesheet: a test for each subscription, compiled and run by libxslt, never coming back to Python."""

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


PEERS: dict[str, Callable[[Prepared], Subject]] = {
    "lxml-loop": LxmlLoop,
    "lxml-block": LxmlBlock,
    "lxml-xslt": LxmlXslt,
    "spark-xpath": spark_xpath.SparkXPath,
    "yfilter-1.0": yfilter.AuthorsYFilter,
}
