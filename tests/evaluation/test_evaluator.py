"""Evaluator: programs, linked and run over a document's nodes."""

from __future__ import annotations

import contextlib
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from xsift.document.limits import Limits
from xsift.document.nodes.node_tree import NodeTree
from xsift.errors import SubscriptionError
from xsift.evaluation import Evaluator
from xsift.xpath.expression import parse
from xsift.xpath.printer import to_text
from xsift.xpath.program import program_of

NAMESPACES = {"n": "urn:n"}
MANY = ("<r>" + "".join(f"<a x='{i}'><b>{i}</b><c>t{i}</c></a>" for i in range(200)) + "</r>").encode()


class Evaluated:
    """One document, and expressions to evaluate on it."""

    def __init__(self, xml: bytes, limits: Limits | None = None) -> None:
        self.xml = xml
        self.evaluator = Evaluator(limits=limits)
        self.tree = NodeTree()

    def _root(self, expression: str) -> int:
        root = self.evaluator.link(program_of(parse(expression, NAMESPACES)))
        self.tree.build(self.xml, namespaces=self.evaluator.needs_namespaces(root))
        self.evaluator.read(self.tree)
        return root

    def holds(self, expression: str) -> bool:
        return self.evaluator.holds(self._root(expression))

    def values(self, expression: str) -> list[str]:
        return [self.tree.value(node) for node in self.evaluator.select(self._root(expression))]


def agrees(xml: bytes, expression: str) -> bool:
    tree = etree.ElementTree(etree.fromstring(xml))
    text = to_text(parse(expression, NAMESPACES), verification=True)
    expected = bool(etree.XPath(f"boolean({text})", namespaces=NAMESPACES)(tree))
    assert Evaluated(xml).holds(expression) == expected
    return expected


@pytest.mark.parametrize(
    "number",
    ["0", "-0", "1 div 0", "-1 div 0", "0 div 0", "1 div 3", "2 div 3 * 100", "123456789012", "1234567890.5",
     "999999999.5", "0.00001", "0.000009", "0.1 + 0.2", "100000.5", "-1.5", "2147483647", "2147483648", "-2147483648",
     "1 div 7", "1000000 div 3", "0.000123456789012345", "12345678.9012345678", "5 mod 3", "-5 mod 3", "5.5 mod -2",
     "5 mod 0", "round(-0.2)", "round(2.5)", "round(-2.5)", "floor(-0.5)", "ceiling(-0.5)", "round(1 div 0)",
     "-(-0)", "1 div -0", "string-length('aé€😀')", "sum(//zz)", "number('')", "number(' 12 ')", "number('1e3')"],
)  # fmt: skip
def test_numbers_are_written_as_libxml2_writes_them(number: str) -> None:
    expected = str(etree.XPath(f"string({number})")(etree.fromstring("<a/>")))
    assert Evaluated(b"<a/>").holds(f"string({number}) = '{expected}'")


@pytest.mark.parametrize(
    "start", ["-1", "0", "0.4", "0.5", "1", "1.5", "2.5", "3", "9", "0 div 0", "1 div 0", "-1 div 0"]
)
@pytest.mark.parametrize("length", ["", "0", "1", "1.5", "2.6", "9", "-1", "0 div 0", "1 div 0", "-1 div 0"])
def test_substring(start: str, length: str) -> None:
    call = f"substring('aé€😀e', {start}{', ' + length if length else ''})"
    expected = str(etree.XPath(call)(etree.fromstring("<a/>")))
    assert Evaluated(b"<a/>").holds(f"{call} = '{expected}'")


@pytest.mark.parametrize(
    "expression",
    ["//a[1]", "(//a)[1]", "//a[last()]", "(//a)[last()]",
     "//b[. = 7]/preceding-sibling::*", "//b[. = 7]/following::b[1]",
     "//b[. = 7]/preceding::b[2]", "//c[not(. = //b)]", "//a[@x > 197]/@x", "//a[b = c]", "count(//a) = 200",
     "//a[count(preceding::a) = 5]/b", "sum(//b) = 19900", "//b | //c[. = 't3']",
     "//a/b/..//c[. = 't4']/ancestor::*"],
)  # fmt: skip
def test_matches_and_selects_as_lxml(expression: str) -> None:
    agrees(MANY, expression)
    text = to_text(parse(expression), verification=True)
    found: Any = etree.ElementTree(etree.fromstring(MANY)).xpath(text)
    if isinstance(found, list):
        expected = [item if isinstance(item, str) else str(item.xpath("string()")) for item in found]
        assert Evaluated(MANY).values(expression) == expected


def test_ids_come_from_the_dtd_and_from_xml_id() -> None:
    xml = b'<!DOCTYPE a [<!ATTLIST b i ID #IMPLIED>]><a xml:id="r"><b i="one">1</b><b i="two">2</b><c i="no"/></a>'
    document = Evaluated(xml)
    assert document.values("id('two one no')") == ["1", "2"]
    assert document.values("id('r')/b") == ["1", "2"]
    assert document.values("id(//b/@i)") == ["1", "2"]
    assert document.values("id(' \t one\n')") == ["1"]


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_what_was_kept_is_forgotten_however_many_documents_there_were(tmp_path: Path) -> None:
    here, program = Path(__file__).parent, tmp_path / "epochs"
    rooms = here.parent.parent / "src" / "xsift"
    folders = [f"-I{rooms / room}" for room in ("native", "evaluation", "xpath", "document/nodes")]
    subprocess.run(["g++", "-std=c++17", *folders, here / "epochs.cpp", "-o", program, "-lexpat"], check=True)
    assert subprocess.run([program], check=False).returncode == 0


HOSTILE = [
    "//*[count(. | following::* | preceding::*) = count(//*[count(preceding::*) > -1]) + 1]",
    "//*[translate(/, ., 'x') = preceding::*[translate(/, ., 'y') = 'u']]",
    "//*[preceding::*[name() = concat('x', position(), last())]]",
    "//*[preceding::*[string(count(following::*) div 7) = '']]",
    "//*[not(preceding::*[not(following::*[not(preceding::*[. = 'q'])])])][. = 'r']",
    "//*[preceding::*[concat(/, /, name(), /, /) = concat(/, 'x')]]",
]


@pytest.mark.parametrize("expression", HOSTILE)
def test_a_hostile_expression_is_broken_off(expression: str) -> None:
    document = Evaluated(MANY)
    with pytest.raises(SubscriptionError) as caught:
        document.holds(expression)
    assert caught.value.code == "too-many-steps"
    assert document.holds("//a[b = 7]")  # and the next one is not


def test_the_budget_can_be_set() -> None:
    strict, generous = Evaluated(MANY, Limits(steps=1)), Evaluated(MANY, Limits(steps=100_000_000))
    expression = "//*[count(preceding::*) > 100000]"
    with pytest.raises(SubscriptionError, match="more than 1 steps"):
        strict.holds(expression)
    assert not generous.holds(expression)


def test_the_budget_grows_with_the_document() -> None:
    large = b"<r>" + b"<a><b>1</b></a>" * 300_000 + b"</r>"
    assert not Evaluated(large, Limits(steps=1000)).holds("//a[not(b)]")


def test_strings_do_not_take_memory_without_bound() -> None:
    doubled = "concat(/, /)"
    for _ in range(20):
        doubled = f"concat({doubled}, {doubled})" if len(doubled) < 3000 else f"concat({doubled}, /)"
    with pytest.raises(SubscriptionError):
        Evaluated(b"<a>" + b"x" * 100_000 + b"</a>", Limits(steps=10_000)).holds(f"//a[{doubled} = 'x']")


def test_equal_parts_of_expressions_are_one() -> None:
    evaluator = Evaluator()
    first = evaluator.link(program_of(parse("//a[b = 1]/c")))
    before = len(evaluator)
    assert evaluator.link(program_of(parse("//a[ b=1 ]/child::c"))) == first
    assert len(evaluator) == before
    evaluator.link(program_of(parse("//a[b = 1]/d")))
    assert len(evaluator) == before + 1


def test_a_program_that_is_cut_off_is_refused() -> None:
    program = program_of(parse("//a[b = 1 and starts-with(c, 'x')]/d"))
    for damaged in [*(program[:length] for length in range(len(program))), program + b"\x00"]:
        with pytest.raises(ValueError, match="stored expression"):
            Evaluator().link(damaged)


def test_random_bytes_are_no_program() -> None:
    rng = random.Random(1)
    program = program_of(parse("//n:a[count(b) = 1]/@c | id('x')[2]", NAMESPACES))
    refused = 0
    for _ in range(3000):
        damaged = bytearray(program)
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        evaluator = Evaluator()
        try:
            root = evaluator.link(bytes(damaged))
        except ValueError:
            refused += 1
            continue
        evaluator.read(NodeTree().build(b"<a><b c='1'/></a>", namespaces=True))
        with contextlib.suppress(SubscriptionError):
            evaluator.holds(root)
    assert refused > 1000


def test_long_expressions_do_not_exhaust_the_stack() -> None:
    document = Evaluated(b"<a><b/></a>")
    assert document.holds("/a" + "/b/.." * 900)
    assert document.holds("/a" + "/descendant-or-self::node()/.." * 900 + "/a")
    assert document.holds(" or ".join(["z"] * 3000 + ["a"]))
    assert document.holds("1" + " + 1" * 3000 + " = 3001")
    nested = "b"
    for _ in range(60):
        nested = f"..//*[{nested}]" if len(nested) % 2 else f"//*[{nested}]"
    assert document.holds(f"//a[{nested}]")


def test_misuse_is_an_error() -> None:
    evaluator = Evaluator()
    root = evaluator.link(program_of(parse("a")))
    with pytest.raises(ValueError, match="no document"):
        evaluator.holds(root)
    with pytest.raises(IndexError):
        evaluator.holds(99)
