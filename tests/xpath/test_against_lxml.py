"""Random expressions and documents: what is compiled agrees with lxml, and what is accepted is what lxml accepts.

XSIFT_XPATH_SECONDS=600 runs these for that many seconds each, from a new seed; by default they are short and always
the same.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Iterator

import lxml.etree as etree
import pytest

from tests.xpath.oracle import (
    NAMESPACES,
    Expressions,
    Tree,
    evaluate,
    owners,
    random_document,
    says,
    selected,
)
from xsift.errors import XPathError
from xsift.xpath import Compiler, Meaning, Symbols, parse, to_text

SECONDS = float(os.environ.get("XSIFT_XPATH_SECONDS", "0"))


def rounds(number: int) -> Iterator[random.Random]:
    """Random generators: a fixed number of fixed ones, or new ones for as long as was asked for."""
    if not SECONDS:
        yield from (random.Random(seed) for seed in range(number))
        return
    end = time.monotonic() + SECONDS
    seed = random.SystemRandom().getrandbits(40)
    while time.monotonic() < end:
        yield random.Random(seed)
        seed += 1


def disagreement(compiled: Meaning, explicit: str, document: Tree, is_node_set: bool) -> str:
    """What is wrong with a compiled expression on a document; "" if nothing is."""
    wanted = says(explicit, document.tree)
    found = evaluate(compiled, document)
    if found != wanted and (compiled.exact or wanted):
        return f"lxml says {wanted}, the patterns {found}"
    kinds = {selection.kind for selection in compiled.selections}
    if compiled.exact and is_node_set and "nothing" in kinds:
        return "the selected node is lost"
    listable = compiled.exact and is_node_set and kinds and kinds <= {"element", "attribute", "text"}
    if listable and selected(compiled, document) != owners(explicit, document.tree):
        return "other elements are selected"
    return ""


def test_compiled_expressions_agree_with_lxml() -> None:
    for rng in rounds(120):
        documents = [Tree(random_document(rng)) for _ in range(12)]
        compiler = Compiler(Symbols(), namespaces=NAMESPACES)
        for _ in range(40):
            text = Expressions(rng).expression()
            expression = parse(text, NAMESPACES)
            explicit = to_text(expression, verification=True)
            compiled = compiler.compile(text)
            assert compiled.residual in ("", explicit)
            for document in documents:
                wrong = disagreement(compiled, explicit, document, expression.type == "node-set")
                assert not wrong, (
                    f"{wrong}: {text}\npatterns {[str(p) for p in compiled.patterns]}, exact {compiled.exact}\n"
                    + etree.tostring(document.tree, encoding="unicode")
                )


# --- the grammar

_TOKENS = [
    *"/[]()@:*|+-=<>ab1.,!#é·あ'\"$&{}^ \t\n",
    *["//", "::", "!=", "<=", ">=", "and", "or", "div", "mod", "n:a", "n:*", "text()", "node()", "..", "()"],
    *["'x'", '"y"', "1.5", ".5", "5.", "$x", "child", "self", "descendant-or-self", "ancestor", "count"],
    *["last", "not", "contains", "1e3", "a-b", "-a", "a.", "true", "id", "x:y", "child::", "attribute::"],
    *["processing-instruction()", "string-length", "position", "comment()"],
]


def mutated(rng: random.Random, text: str) -> str:
    for _ in range(rng.choice([1, 1, 2, 3])):
        at = rng.randint(0, len(text))
        end = min(len(text), at + rng.randint(0, 4))
        replacement = rng.choice([rng.choice(_TOKENS), "", text[at:end] * 2])
        text = text[:at] + replacement + text[end:]
    return text


# What libxml2 takes and XPath 1.0 does not: exponents in numbers; a name right after an operator that is a name;
# three slashes, or white space between two, at the start of a path; white space after a prefix; a call that is not
# closed at the end of the text.
_LENIENT = re.compile(
    r"[0-9.][eE] | (?<![^\W\d])(and|or|div|mod)[\w.:·-] | /\s*/\s*/ | /\s+/ | \s:[^:] | [(,]\s*$", re.VERBOSE
)
# What libxml2 finds out only when it evaluates the expression.
_STATIC = {
    "unknown-function",
    "wrong-number-of-arguments",
    "variable-not-bound",
    "not-a-node-set",
    "unbound-prefix",
}


def test_accepts_what_lxml_accepts() -> None:
    tree = etree.ElementTree(etree.fromstring("<a><b i='1'>x</b></a>"))
    accepted = 0
    for rng in rounds(60):
        for _ in range(150):
            text = mutated(rng, Expressions(rng).expression())
            code = ""
            try:
                explicit = to_text(parse(text, NAMESPACES), verification=True)
            except XPathError as error:
                code = error.code
            if code in _STATIC:
                continue
            try:
                etree.XPath(text, namespaces=NAMESPACES)
            except etree.XPathSyntaxError:
                assert code, f"lxml refuses {text!r}"
                continue
            if code:
                assert _LENIENT.search(text), f"lxml accepts {text!r}, not {code}"
                continue
            accepted += 1
            etree.XPath(f"boolean({explicit})", namespaces=NAMESPACES)(tree)  # no type error, or anything else
    assert accepted > 1000


@pytest.mark.parametrize(
    "text", ["1e5", "4 div2", "a and-b", "/ /b", "///b", "xml :b", "count(", "true(", "concat('a',"]
)
def test_known_leniencies_of_libxml2(text: str) -> None:
    etree.XPath(text)
    assert _LENIENT.search(text)
    with pytest.raises(XPathError):
        parse(text)


def _name_characters() -> Iterator[str]:
    """All characters around the ends of the ranges that XML 1.0 allows in names, and some more."""
    yield from map(chr, range(0x20, 0x700))
    yield from map(chr, range(0x700, 0xD800, 7))
    yield from map(chr, range(0xE000, 0xFFFE, 61))
    yield from map(
        chr, [0x2FFF, 0x3006, 0x3007, 0x3008, 0x4E00, 0x9FA5, 0x9FA6, 0xAC00, 0xD7A3, 0xD7A4, 0x10000, 0x1F600]
    )


@pytest.mark.parametrize("template", ["{}", "a{}", "@a{}b", "self::{}a"])
def test_names_are_libxml2s(template: str) -> None:
    for character in _name_characters():
        text = template.format(character)
        try:
            etree.XPath(text)
            wanted = True
        except etree.XPathSyntaxError:
            wanted = False
        try:
            parse(text)
            found = True
        except XPathError as error:
            found = error.code in ("unknown-function", "unbound-prefix")
        assert found == wanted, repr(text)
