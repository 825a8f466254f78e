"""Random expressions of the whole grammar against lxml, for as long as one likes:

    nice python -m tests.evaluation.differential --seconds 3600 --seed 7

Differences that are faults of libxml2 (2.14), each with its smallest case. They are left out of what is generated:

    <a/><!--x-->       //comment()/preceding::a            the root element is missing if nothing is before it
    <!DOCTYPE a [<!ENTITY e "x">]><a/>      string(/)      is "x": declared entities count as text below the document
    <a/>               (//a | //namespace::*)[1]           namespace nodes have no place in document order
    <a xml:id="i"><b xml:id="j"/></a>       id("j i")[1]   is b: the nodes of id() are in the order of the words
    <a xml:id="i"/>    id(" i")         is empty: white space before the first word counts as part of it
    <a xmlns:n="u"/>   //namespace::m:n                    a prefix is ignored in a test of namespace nodes (followed)
    <a><b x="1"/></a>  //@x/following::node()              what follows an attribute follows its element (followed)
    <b xmlns=""/>      count(//b/namespace::*)             xmlns="" is counted as a namespace node (followed)

lxml itself has no object for the document, so `/` selects nothing there; here it is node 0, which is left out.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator

from lxml import etree

from tests.evaluation.grammar import NAMESPACES, GrammarMaker, LxmlDocument, evaluator, meaning, random_document
from xsift.document.nodes.node_tree import NodeTree
from xsift.errors import SubscriptionError, XPathError
from xsift.evaluation import Evaluator
from xsift.xpath.expression import parse
from xsift.xpath.program import program_of

STATIC = {"not-a-node-set", "wrong-number-of-arguments"}  # errors that lxml finds only if it comes to that part
MOST_EXPRESSIONS = 200_000  # that one evaluator keeps


class Comparison:
    """One document, read by both."""

    def __init__(self, xml: str, tree: NodeTree, full: NodeTree) -> None:
        self.xml = xml
        self.theirs = LxmlDocument(xml)
        self.tree = tree.build(xml.encode())
        self.full = full.build(xml.encode(), namespaces=True)
        self.plain_numbers: dict[int, int] = {}
        for node in range(len(full)):
            if full.kind(node) != "namespace":
                self.plain_numbers[node] = len(self.plain_numbers)

    def difference(self, expression: str, ours: Evaluator) -> str | None:
        """What differs, in words; "" if nothing does, None if there is nothing to compare."""
        try:
            parsed = parse(expression, NAMESPACES)
        except XPathError as error:
            return "" if error.code in STATIC or not self._accepts(expression) else f"refused: {error}"
        if "namespace::" in expression and "|" in expression:
            return None
        text = meaning(expression)
        root = ours.link(program_of(parsed))
        tree = self.full if ours.needs_namespaces(root) else self.tree
        ours.read(tree)
        expected = bool(evaluator(f"boolean({text})")(self.theirs.tree))
        if ours.holds(root) != expected:
            return f"boolean is {expected} by lxml"
        nodes = self.theirs.value(text)
        if not isinstance(nodes, list):
            return self._other_value(text, ours) if ours.select(root) == [] else "selects nodes, but is no node-set"
        found = [self._named(node, tree) for node in ours.select(root) if node]
        if tree is self.full:  # whose order libxml2 does not know
            found, nodes = sorted(found, key=str), sorted(nodes, key=str)
        return "" if found == nodes else f"selects {found}, but {nodes} by lxml"

    def _other_value(self, text: str, ours: Evaluator) -> str | None:
        """What differs in the value of an expression that is no node-set, as it is written."""
        value = str(self.theirs.value(f"string({text})"))
        if "'" in value and '"' in value:
            return None
        literal = f"'{value}'" if "'" not in value else f'"{value}"'
        same = ours.holds(ours.link(program_of(parse(f"string({text}) = {literal}", NAMESPACES))))
        return "" if same else f"is {literal} by lxml"

    def _accepts(self, expression: str) -> bool:
        try:
            evaluator(expression)(self.theirs.tree)
        except etree.XPathError:
            return False
        return True

    def _named(self, node: int, tree: NodeTree) -> object:
        if tree is self.tree:
            return node
        if node in self.plain_numbers:
            return self.plain_numbers[node]
        return (tree.name(node) or None, tree.value(node))


def differences(rng: random.Random, documents: int, each: int) -> Iterator[str]:
    """Yields a report for each difference, and "" for each comparison without one."""
    tree, full, ours = NodeTree(), NodeTree(), Evaluator()
    for _ in range(documents):
        if len(ours) > MOST_EXPRESSIONS:
            ours = Evaluator()
        document = Comparison(random_document(rng), tree, full)
        maker = GrammarMaker(rng, wrong=0.02)
        for _ in range(each):
            expression = maker.expression(rng.choice([1, 2, 3, 4]))
            try:
                found = document.difference(expression, ours)
            except SubscriptionError:  # more steps than the budget allows: nothing to compare
                continue
            if found:
                yield f"{expression}\n  {found}\n  {document.xml}"
            elif found is not None:
                yield ""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    end = time.monotonic() + arguments.seconds
    compared = different = 0
    while time.monotonic() < end:
        for report in differences(rng, documents=20, each=60):
            compared += 1
            if report:
                different += 1
                print(report, flush=True)
    print(f"{compared} comparisons, {different} differences")


if __name__ == "__main__":
    main()
