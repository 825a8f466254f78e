"""What is printed reads back as the same tree, and the verification form says what a subscription means."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xsift.xpath import parse, to_text

NAMESPACES = {"n": "urn:n"}

# --- random trees, written with random brackets, white space and abbreviations

_SPACE = st.sampled_from(["", "", " ", "\n\t"])
_NAMES = st.sampled_from(["a", "b", "n:a", "n:*", "*", "div", "and", "text", "é", "a-b", "_1.2"])
_AXES = st.sampled_from(
    [
        *["ancestor", "ancestor-or-self", "attribute", "child", "descendant", "descendant-or-self", "following"],
        *["following-sibling", "namespace", "parent", "preceding", "preceding-sibling", "self"],
    ]
)
_TYPES = st.sampled_from(
    ["node()", "text()", "comment( )", "processing-instruction ()", "processing-instruction('x\"')"]
)
_LITERALS = st.sampled_from(["''", '""', "'x'", '"x\'y"', "'x\"y'", "' '", "'é中'"])
_NUMBERS = st.sampled_from(["0", "1", "1.", ".5", "1.50", "0.1", "12345678901234567890", "00.10"])


def _spaced(*parts: str | st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    strategies: list[st.SearchStrategy[str]] = []
    for part in parts:
        strategies += [st.just(part) if isinstance(part, str) else part, _SPACE]
    return st.tuples(*strategies).map("".join)


def _predicates(expressions: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(_spaced("[", expressions, "]"), max_size=2).map("".join)


def _steps(expressions: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    test = _NAMES | _TYPES
    full = st.builds(
        "{}{}{}".format, st.just("") | st.just("@") | _spaced(_AXES, "::"), test, _predicates(expressions)
    )
    return full | st.sampled_from([".", "..", "descendant-or-self::node()", "self::node()", "parent::node()"])


def _node_sets(expressions: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Node-sets that need no parentheses as operands of |, and can be followed by an operator."""
    step = _steps(expressions)
    more = st.lists(st.tuples(st.sampled_from(["/", "//"]), step).map("".join), max_size=3).map("".join)
    relative = st.builds("{}{}".format, step, more)
    located = st.builds("{}{}".format, st.sampled_from(["", "/", "//"]), relative)
    inner = _spaced("(", located | _spaced(located, "|", located), ")")
    filtered = st.builds("{}{}{}".format, inner | st.just("id('x')"), _predicates(expressions), more)
    return located | filtered | st.just("(/)")


def _extend(expressions: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    group = _spaced("(", expressions, ")")
    nodes = _node_sets(expressions)
    operand = group | nodes | _LITERALS | _NUMBERS | _spaced("-", group) | _spaced("- -", nodes)
    operator = st.sampled_from(
        [" or ", " and ", "=", "!=", "<", "<=", ">", ">=", "+", " - ", " * ", " div ", " mod "]
    )
    chain = st.lists(st.tuples(operator, operand).map("".join), min_size=1, max_size=3).map("".join)
    call = (
        st.sampled_from(["true()", "false ( )", "position()", "last()", "string()", "name()"])
        | st.builds("{}({})".format, st.sampled_from(["not", "boolean", "string", "number", "floor"]), expressions)
        | st.builds("count({})".format, nodes)
        | st.builds(
            "{}({},{})".format, st.sampled_from(["contains", "concat", "substring"]), expressions, expressions
        )
    )
    union = _spaced(nodes, "|", nodes)
    return operand | call | union | st.builds("{}{}".format, operand, chain)


_EXPRESSIONS = st.recursive(_LITERALS | _NUMBERS | _NAMES, _extend, max_leaves=12)


@settings(max_examples=500, derandomize=True, deadline=None, database=None)
@given(_EXPRESSIONS)
def test_round_trip(text: str) -> None:
    expression = parse(text, NAMESPACES)
    printed = to_text(expression)
    assert parse(printed, NAMESPACES) == expression
    assert to_text(parse(printed, NAMESPACES)) == printed
    explicit = to_text(expression, verification=True)
    assert to_text(parse(explicit, NAMESPACES), verification=True) == explicit


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("/descendant-or-self::node()/child::a/attribute::b", "//a/@b"),
        ("a/descendant-or-self::node()/b", "a//b"),
        ("descendant-or-self::node()/b", "descendant-or-self::node()/b"),
        ("a/descendant-or-self::node()", "a/descendant-or-self::node()"),
        ("self::node()/parent::node()", "./.."),
        ("self::node()[a]", "self::node()[a]"),
        ("((a))[1]", "(a)[1]"),
        ("(((a or b)))and(c)", "(a or b) and c"),
        ("a or(b and c)", "a or b and c"),
        ("(/)*2", "(/) * 2"),
        ("- - a", "--a"),
        ("-(-a)", "-(-a)"),
        ('"x"', "'x'"),
        ('"x\'"', '"x\'"'),
        ("00.10", "00.10"),
        ("concat( 'a' ,'b')", "concat('a', 'b')"),
        ("a [ 1 ] [ 2 ]", "a[1][2]"),
        ("processing-instruction( 'x' )", "processing-instruction('x')"),
    ],
)
def test_printed(text: str, printed: str) -> None:
    assert to_text(parse(text)) == printed


@pytest.mark.parametrize(
    ("text", "verified"),
    [
        ("a/b", "//a/b"),
        ("/a", "/a"),
        ("@id", "//@id"),
        (".//a", "//.//a"),
        (".", "//."),
        ("a[b]", "//a[b]"),
        ("a[b = c]", "//a[b = c]"),
        ("(a | /b)[c]/d", "(//a | /b)[c]/d"),
        ("count(a) > 3", "count(//a) > 3"),
        ("a = b", "//a = //b"),
        ("a[count(b) > 1]", "//a[count(b) > 1]"),
        ("id(a)/b", "id(//a)/b"),
        ("-a", "-//a"),
        ("string-length() > 3", "string-length(/) > 3"),
        ("a[string-length() > 3]", "//a[string-length() > 3]"),
        ("name() = 'a'", "name(/) = 'a'"),
        ("position() = last()", "1 = 1"),
        ("a[position() = last()]", "//a[position() = last()]"),
        ("lang('en') or b", "false() or //b"),
        ("a[lang('en')]", "//a[lang('en')]"),
    ],
)
def test_verification_form(text: str, verified: str) -> None:
    assert to_text(parse(text), verification=True) == verified
