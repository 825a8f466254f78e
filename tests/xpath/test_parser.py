"""The parser takes XPath 1.0, all of it and nothing else, and says precisely what is wrong with other text."""

from __future__ import annotations

import pickle

import pytest

from xsift.errors import XPathError
from xsift.xpath import compile, parse, to_text
from xsift.xpath.limits import MAX_DEPTH, MAX_HEIGHT, MAX_LENGTH, MAX_NAME, MAX_PATTERN_NODES
from xsift.xpath.symbols import Symbols

NAMESPACES = {"n": "urn:n"}


def error(text: str | bytes) -> XPathError:
    with pytest.raises(XPathError) as caught:
        parse(text, NAMESPACES)
    return caught.value


# --- what is accepted

ACCEPTED = """
/ | //a | /a/b//c | a | . | .. | ./a | ../a | @a | @* | @n:* | n:a | n:* | xml:lang | * | */* | //* | a/@b | a/..
child::a | child :: a | ancestor-or-self::node() | self::a | namespace::* | attribute::a | preceding-sibling::a[1]
text() | text ( ) | node() | comment() | processing-instruction() | processing-instruction('x') | a/text()
a[1] | a [ 1 ] [ 2 ] | a[b][c] | a[b[c[d]]] | a[@b='c'] | a["x"] | (a) | ((a)) | (a)[1] | (a)/b | (a)//b[1]/c
id('x') | id('x')/a | id('x')[1]//b | a|b|c | (a|b)[1] | 1 | 1. | .5 | 1.5 | -1 | --1 | - - 1 | 'x' | "x" | 'x"y'
"x'y" | '' | a or b | a and b or c | a=b | a!=b | a<b | a<=b | a>b | a>=b | a=b=c | a<b<c | a+b | a -b | a - b | a*b
a div b | a mod b | 1-1 | a-1 | a -1 | * * * | ** * | div div div | and and and | or or or | mod mod mod | a or or
text | node | comment | div | true | a[b and c or d] | not(a) | count(a)>1 | concat('a','b','c') | position()=last()
contains(a,'x') | @a=1and@b=2 | 'a'and'b' | a[1]and b | a[1]or(b) | a.b | a-b | _a | a.. | é | été/naïf | a·b
あ/い | 中 | /|a | -a|b | 2*-1 | true() | substring('abc',2) | substring('abc',2,3) | string() | string(a)
lang('en') | translate(a,'b','c') | sum(a) | round(1.5)
"""


@pytest.mark.parametrize("text", [text for line in ACCEPTED.strip().splitlines() for text in line.split(" | ")])
def test_accepted(text: str) -> None:
    expression = parse(text, NAMESPACES)
    assert parse(to_text(expression), NAMESPACES) == expression


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("a", "child::a"),
        ("@a", "attribute::a"),
        (".", "self::node()"),
        ("..", "parent::node()"),
        ("//a", "/descendant-or-self::node()/child::a"),
        ("a//b", "a/descendant-or-self::node()/b"),
        (".//a", "self::node()/descendant-or-self::node()/child::a"),
        ("a or b and c", "a or (b and c)"),
        ("a = b < c", "a = (b < c)"),
        ("a < b + c", "a < (b + c)"),
        ("a + b * c", "a + (b * c)"),
        ("a * -b", "a * (-b)"),
        ("-a | b", "-(a | b)"),
        ("a[1]", "a[ 1.0 ]"),
        ("(a)", "a"),
        ("'x'", '"x"'),
    ],
)
def test_equal_trees(short: str, long: str) -> None:
    assert parse(short) == parse(long)
    assert hash(parse(short)) == hash(parse(long))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("(a or b) or c", "a or b or c"),
        ("1 - (2 - 3)", "1 - 2 - 3"),
        ("(1 - 2) - 3", "1 - 2 - 3"),
        ("-(-1)", "--1"),
        ("(a)[1]", "a[1]"),
        ("((a)[1])[2]", "(a)[1][2]"),
        ("a", "/a"),
        ("a", "b"),
        ("a/b", "a//b"),
        ("n:a", "a"),
        ("processing-instruction('')", "processing-instruction()"),
        ("a = b", "a != b"),
        ("1", "2"),
    ],
)
def test_different_trees(one: str, other: str) -> None:
    assert parse(one, NAMESPACES) != parse(other, NAMESPACES)


@pytest.mark.parametrize(
    ("text", "type"),
    [
        *[("a", "node-set"), ("a|b", "node-set"), ("id('x')", "node-set"), ("(a)[1]", "node-set")],
        *[("1", "number"), ("(1)", "number"), ("count(a)", "number"), ("-a", "number"), ("a + b", "number")],
        *[
            ("'x'", "string"),
            ("name()", "string"),
            ("a = b", "boolean"),
            ("a or b", "boolean"),
            ("not(a)", "boolean"),
        ],
    ],
)
def test_static_types(text: str, type: str) -> None:
    assert parse(text).type == type


def test_expression_is_plain() -> None:
    expression = parse(b"//a[ b ]")
    assert expression.text == "//a[ b ]"
    assert repr(expression) == "parse('//a[ b ]')"
    assert len(expression) == 5
    assert pickle.loads(pickle.dumps(expression)) == expression
    assert expression != "//a[ b ]"  # type: ignore[comparison-overlap]
    with pytest.raises(TypeError, match="parse"):
        type(expression)()
    with pytest.raises(TypeError, match="str or bytes"):
        parse(3)  # type: ignore[arg-type]


# --- what is refused: text, code, column, message

REFUSED = [
    ("//a[", "predicate-not-closed", 5, "predicate is not closed"),
    ("//a[b", "predicate-not-closed", 6, "predicate is not closed"),
    ("//a[b and ", "predicate-not-closed", 11, "predicate is not closed"),
    ("a[b)", "predicate-not-closed", 4, "predicate is not closed"),
    ("a[]", "predicate-empty", 3, "predicate is empty"),
    ("a[ ]", "predicate-empty", 4, "predicate is empty"),
    (".[a]", "predicate-after-dots", 2, "XPath 1.0 allows no predicate after . and .."),
    ("a/..[1]", "predicate-after-dots", 5, "XPath 1.0 allows no predicate after . and .."),
    ("(a", "parenthesis-not-closed", 3, "parenthesis is not closed"),
    ("a[(b]", "parenthesis-not-closed", 5, "parenthesis is not closed"),
    ("count(a", "parenthesis-not-closed", 8, "parenthesis is not closed"),
    ("count(", "parenthesis-not-closed", 7, "parenthesis is not closed"),
    ("concat(a,", "parenthesis-not-closed", 10, "parenthesis is not closed"),
    ("text(", "parenthesis-not-closed", 6, "parenthesis is not closed"),
    ("()", "parenthesis-empty", 2, "nothing stands between the parentheses"),
    ("a]", "nothing-to-close", 2, '"]" closes nothing'),
    ("a[b])", "nothing-to-close", 5, '")" closes nothing'),
    ("'x", "literal-not-closed", 1, "literal is not closed"),
    ('a["x]', "literal-not-closed", 3, "literal is not closed"),
    ("", "expression-empty", 1, "the expression is empty"),
    (" \t\n", "expression-empty", 1, "the expression is empty"),
    ("a and", "operand-missing", 6, "an operand is missing"),
    ("= a", "operand-missing", 1, "an operand is missing"),
    ("a = = b", "operand-missing", 5, "an operand is missing"),
    ("a|", "operand-missing", 3, "an operand is missing"),
    ("a|-b", "operand-missing", 3, "an operand is missing"),
    ("-", "operand-missing", 2, "an operand is missing"),
    (")", "operand-missing", 1, "an operand is missing"),
    ("count(,a)", "operand-missing", 7, "an operand is missing"),
    ("a[b and ]", "operand-missing", 9, "an operand is missing"),
    ("a/", "step-missing", 3, "a step is missing after the slash"),
    ("//", "step-missing", 3, "a step is missing after the slash"),
    ("a///b", "step-missing", 4, "a step is missing after the slash"),
    ("a/(b)", "step-missing", 3, "a step is missing after the slash"),
    ("a[b/]", "step-missing", 5, "a step is missing after the slash"),
    ("@", "name-missing", 2, "a name is missing"),
    ("a/@", "name-missing", 4, "a name is missing"),
    ("child::", "name-missing", 8, "a name is missing"),
    ("n:", "name-missing", 3, "a name is missing"),
    ("n: a", "name-missing", 3, "a name is missing"),
    ("$", "name-missing", 2, "a name is missing"),
    ("a b", "unexpected-text", 3, 'unexpected "b"'),
    ("a 12.5", "unexpected-text", 3, 'unexpected "12.5"'),
    ("1e5", "unexpected-text", 2, 'unexpected "e5"'),
    ("4 div2", "unexpected-text", 3, 'unexpected "div2"'),
    ("a ! b", "unexpected-text", 3, 'unexpected "!"'),
    ("a # b", "unexpected-text", 3, 'unexpected "#"'),
    ("é/è # b", "unexpected-text", 5, 'unexpected "#"'),
    ("a € b", "unexpected-text", 3, 'unexpected "€"'),
    ("a[b c]", "unexpected-text", 5, 'unexpected "c"'),
    ("/ 5", "unexpected-text", 3, 'unexpected "5"'),
    ("[a]", "unexpected-text", 1, 'unexpected "["'),
    ("{urn:n}a", "unexpected-text", 1, 'unexpected "{"'),
    ("'a''b'", "unexpected-text", 4, 'unexpected "\'"'),
    ("a " + "x" * 60, "unexpected-text", 3, f'unexpected "{"x" * 40}…"'),
    ("foo::a", "unknown-axis", 1, '"foo" is no axis'),
    ("a/foo :: b", "unknown-axis", 3, '"foo" is no axis'),
    ("a/foo()", "unknown-node-type", 3, '"foo" is no node type'),
    ("child::foo()", "unknown-node-type", 8, '"foo" is no node type'),
    ("a/n:f()", "unknown-node-type", 3, '"n:f" is no node type'),
    ("text('x')", "node-type-argument", 1, '"text" takes no such argument'),
    ("processing-instruction(x)", "node-type-argument", 1, '"processing-instruction" takes no such argument'),
    ("a/count(b)", "function-as-step", 3, 'the function "count" cannot be a step of a path'),
    ("foo()", "unknown-function", 1, '"foo" is no function of XPath 1.0'),
    ("a[n:f(b)]", "unknown-function", 3, '"n:f" is no function of XPath 1.0'),
    ("a[matches(., 'x')]", "unknown-function", 3, '"matches" is no function of XPath 1.0'),
    ("count()", "wrong-number-of-arguments", 1, '"count" is called with a wrong number of arguments'),
    ("a[contains('x')]", "wrong-number-of-arguments", 3, '"contains" is called with a wrong number of arguments'),
    ("true(1)", "wrong-number-of-arguments", 1, '"true" is called with a wrong number of arguments'),
    ("concat('a')", "wrong-number-of-arguments", 1, '"concat" is called with a wrong number of arguments'),
    ("x:a", "unbound-prefix", 1, 'namespace prefix "x" is not bound'),
    ("a/@x:*", "unbound-prefix", 4, 'namespace prefix "x" is not bound'),
    ("a[$x]", "variable-not-bound", 3, 'variables cannot be used: "$x"'),
    ("count('a')", "not-a-node-set", 7, "a node-set is needed here"),
    ("sum(1)", "not-a-node-set", 5, "a node-set is needed here"),
    ("name('a')", "not-a-node-set", 6, "a node-set is needed here"),
    ("'a'|b", "not-a-node-set", 1, "a node-set is needed here"),
    ("a|1", "not-a-node-set", 3, "a node-set is needed here"),
    ("1/a", "not-a-node-set", 1, "a node-set is needed here"),
    ("'x'[1]", "not-a-node-set", 1, "a node-set is needed here"),
    ("not(a)/b", "not-a-node-set", 1, "a node-set is needed here"),
    ("(a and b)[1]", "not-a-node-set", 2, "a node-set is needed here"),
    ("a\0b", "invalid-character", 2, "a character that cannot occur in XML"),
    ("'\x01'", "invalid-character", 2, "a character that cannot occur in XML"),
    ("é'\uffff'", "invalid-character", 3, "a character that cannot occur in XML"),
    ("é\ud800", "invalid-encoding", 2, "the expression is not valid UTF-8"),
    (b"a\xff", "invalid-encoding", 2, "the expression is not valid UTF-8"),
    (b"'\xc3'", "invalid-encoding", 2, "the expression is not valid UTF-8"),
    (b"\xc0\x80", "invalid-encoding", 1, "the expression is not valid UTF-8"),
    (b"\xf4\x90\x80\x80", "invalid-encoding", 1, "the expression is not valid UTF-8"),
    (b"ab\xe2\x82", "invalid-encoding", 3, "the expression is not valid UTF-8"),
]


@pytest.mark.parametrize(("text", "code", "column", "message"), REFUSED)
def test_refused(text: str | bytes, code: str, column: int, message: str) -> None:
    found = error(text)
    assert (found.code, found.column, found.message) == (code, column, message)
    assert found.hint


def test_hint_says_how_many_arguments() -> None:
    assert error("count()").hint == "it takes 1"
    assert error("string(1, 2)").hint == "it takes 0 or 1"
    assert error("concat(1)").hint == "it takes 2 or more"


@pytest.mark.parametrize("text", ["1 2", "a(", "a[", "'", "\0", b"\xff", "a" * 100000, "$x", "x:y"])
def test_compile_refuses_what_parse_refuses(text: str | bytes) -> None:
    refused = error(text)
    with pytest.raises(XPathError) as caught:
        compile(text, Symbols(), namespaces=NAMESPACES)
    assert str(caught.value) == str(refused)


# --- namespaces


@pytest.mark.parametrize(
    "namespaces",
    [
        *[{"": "urn:n"}, {None: "urn:n"}, {"n": ""}, {"n": None}, {"1": "urn:n"}, {"a b": "urn:n"}, {"a:b": "urn:n"}],
        *[{"xml": "urn:n"}, {"n": "urn:\x1f"}, {"n": "urn:\ud800"}, {"\ud800": "urn:n"}],
    ],
)
def test_bad_namespaces(namespaces: dict[str, str]) -> None:
    with pytest.raises(XPathError) as caught:
        parse("a", namespaces)
    assert caught.value.code == "bad-namespace"


def test_good_namespaces() -> None:
    parse("é:a/xml:b", {"é": "urn:é", "xml": "http://www.w3.org/XML/1998/namespace", "unused": "x y"})


# --- limits: what is too much is refused, at once


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a/" * 5_000_000, "expression-too-long"),
        ("a" * (MAX_LENGTH + 1), "expression-too-long"),
        ("é" * (MAX_LENGTH // 2 + 1), "expression-too-long"),
        ("-" * 100_000, "expression-too-long"),
        ("a[" * 10_000, "too-deeply-nested"),
        ("(" * 10_000, "too-deeply-nested"),
        ("not(" * 10_000, "too-deeply-nested"),
        ("a[" * (MAX_DEPTH + 1) + "b" + "]" * (MAX_DEPTH + 1), "too-deeply-nested"),
        ("/".join("a" * 32_000), "expression-too-large"),
        ("//".join("a" * 20_000), "expression-too-large"),
        ("|".join("a" * 32_000), "expression-too-large"),
        ("+".join("1" * (MAX_HEIGHT + 1)), "expression-too-large"),
        ("a" + "[b]" * 20_000, "expression-too-large"),
        ("concat(" + ",".join("1" * 20_000) + ")", "expression-too-large"),
        ("a" * (MAX_NAME + 1), "name-too-long"),
        ("@n:" + "a" * (MAX_NAME + 1), "name-too-long"),
    ],
)
def test_beyond_the_limits(text: str, code: str) -> None:
    assert error(text).code == code


@pytest.mark.parametrize(
    "text",
    [
        "a[" * MAX_DEPTH + "b" + "]" * MAX_DEPTH,
        "(" * MAX_DEPTH + "b" + ")" * MAX_DEPTH,
        "not(" * MAX_DEPTH + "b" + ")" * MAX_DEPTH,
        "normalize-space(" * MAX_DEPTH + ")" * MAX_DEPTH,
        "node()[" * MAX_DEPTH + "b" + "]" * MAX_DEPTH,
        "descendant-or-self::node()[" * MAX_DEPTH + "." + "]" * MAX_DEPTH,
        "(" * MAX_DEPTH + "a" + "|c)[1]/e" * MAX_DEPTH,
        "/".join("a" * (MAX_PATTERN_NODES - 1)),
        "a" + "[b]" * (MAX_PATTERN_NODES - 1),
        "a" + "[b or c]" * 3000,
        "a[not(" + " or ".join(f"(@i{i} and @j{i})" for i in range(1500)) + ")]",
        "/".join(["descendant-or-self::a"] * 2000),
        "/".join(["descendant-or-self::node()[a]"] * 1500),
        "(a|b)" + "/c[x|y]" * 900,
        " or ".join("b" * (MAX_HEIGHT - 2)),
        " = ".join("b" * (MAX_HEIGHT - 2)),
        "|".join("b" * (MAX_HEIGHT - 3)),
        "-" * (MAX_LENGTH - 1) + "1",
        "'" + "x" * (MAX_LENGTH - 2) + "'",
        "1" * MAX_LENGTH,
        "a" * MAX_NAME,
    ],
)
def test_within_the_limits_all_that_follows_is_safe(text: str) -> None:
    expression = parse(text)
    assert parse(to_text(expression)) == expression
    compile(text, Symbols())


def test_pattern_has_a_limit_of_its_own() -> None:
    for text in ("/".join("a" * (MAX_PATTERN_NODES + 1)), "a" + "[b]" * (MAX_PATTERN_NODES + 1)):
        with pytest.raises(XPathError) as caught:
            compile(text, Symbols())
        assert caught.value.code == "pattern-too-large"
