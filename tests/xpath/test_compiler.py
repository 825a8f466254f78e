"""The compiler's rules by example: an expression, the patterns that it comes to, and whether they are exact."""

from __future__ import annotations

import pytest

from xsift.errors import XPathError
from xsift.xpath import Compiler, Meaning, Selection, Symbols, compile, patterns
from xsift.xpath.limits import MAX_PATTERNS

NAMESPACES = {"n": "urn:n", "m": "urn:m", "same": "urn:n"}


def compiled(text: str, *, ordered: bool = False) -> Meaning:
    """Children of a pattern's node are sorted by their symbols: here, alphabetically."""
    symbols = Symbols()
    for letter in "abcdefghijklmnopqrstuvwxyz":
        symbols.element(letter)
    return compile(text, symbols, namespaces=NAMESPACES, ordered=ordered)


def outcome(text: str, *, ordered: bool = False) -> str:
    """The patterns, or always or never; with a ? if they are not exact."""
    result = compiled(text, ordered=ordered)
    words = "always" if result.always else "never" if result.never else ", ".join(map(str, result.patterns))
    return words if result.exact else f"{words} ?"


# Expression, two or more spaces, patterns. A ? means that they are a necessary condition only.
RULES = r"""
# paths
/a/b                                    /a/b
//a/b                                   //a/b
a/b                                     //a/b
a//b                                    //a//b
a/descendant::b                         //a//b
.//b                                    //b
./a                                     //a
a/./b                                   //a/b
a/.                                     //a
a/self::node()                          //a
*/self::b                               //b
a/self::*                               //a
a/self::a                               //a
a/self::b                               never
a/descendant-or-self::b                 //a//b
*/descendant-or-self::b                 //b, //*//b
a/descendant-or-self::a                 //a, //a//a
a//self::b                              //a//b
a//self::a                              //a, //a//a
a//descendant::b                        //a//b
a//descendant-or-self::node()//b        //a//b
descendant-or-self::node()/a            //a
/descendant-or-self::node()/a           //a
/descendant::a/child::b                 //a/b
/descendant-or-self::a                  //a
child::a                                //a
//self::a[b]                            //a/b
a/self::node()[b]                       //a/b
a/self::node()[b]/c                     //a[b]/c
*                                       //*
/*/*                                    /*/*

# the document
/                                       always
/.                                      always
//.                                     always
.                                       always
/self::node()                           always
a//.                                    //a
/self::a                                never
/self::*                                never
/..                                     never
/@id                                    never
/text()                                 never
/ancestor::a                            never
/ancestor-or-self::node()               always
/ancestor-or-self::node()/a             /a
/following::a                           never
/self::node()[a]                        /a
//self::node()[b]                       /b, //*/b
/self::node()[a]/b                      /a ?
/comment()                              always ?

# attributes and text
@id                                     //*[@id]
//@id                                   //*[@id]
a/@id                                   //a[@id]
a/attribute::id                         //a[@id]
a//@id                                  //a[@id], //a//*[@id]
a/@*                                    //a[@*]
a/@node()                               //a[@*]
a/@n:i                                  //a[@{urn:n}i]
a/@n:*                                  //a[@{urn:n}*]
a/@text()                               never
a/@xml:lang                             //a[@{http://www.w3.org/XML/1998/namespace}lang]
text()                                  //*[text()]
a/text()                                //a[text()]
a//text()                               //a[text()], //a//*[text()]
a/descendant::text()                    //a[text()], //a//*[text()]
a/descendant-or-self::text()            //a[text()], //a//*[text()]
a/self::text()                          never
a/@id/b                                 never
a/@id/@b                                never
a/@id/text()                            never
a/@id//b                                never
a/@id/.                                 //a[@id]
a/@id//.                                //a[@id]
a/@id/self::id                          never
a/@id/self::node()[. = 4]               //a[@id = 4]
a/text()/b                              never
a/text()/self::text()                   //a[text()]
a/text()/self::*                        never
a/text()/@b                             never

# namespaces
n:a                                     //{urn:n}a
n:*                                     //*[namespace-uri() = 'urn:n']
n:*/a                                   //*[namespace-uri() = 'urn:n']/a
n:*/self::n:a                           //{urn:n}a
n:*/self::same:a                        //{urn:n}a
n:a/self::n:*                           //{urn:n}a
n:*/self::m:*                           never
n:*/self::a                             never
n:a/self::a                             never

# what patterns cannot say
a/..                                    //a ?
a/@id/..                                //a[@id] ?
a/parent::b/c                           //a ?
a[b]/ancestor::c                        //a/b ?
a/following-sibling::b                  //a ?
a/preceding::b                          //a ?
a/namespace::*                          //a ?
a/comment()                             //a ?
a/processing-instruction('x')           //a ?
a/node()                                //a ?
a/node()/b                              //a/*/b
a/node()//b                             //a/*//b
a/node()/@i                             //a/*[@i]
a/node()[b]                             //a/*/b
a[node()]                               //a ?
a[comment()]/b                          //a/b ?
a/comment()/b                           never
id('x')                                 always ?
id('x')/a                               always ?

# positions
a[1]                                    //a ?
a[position() < 3]/b                     //a/b ?
a[last()]                               //a ?
a[b][2]                                 //a/b ?
a[count(b)]                             //a ?
a[string-length()]                      //a ?
a[0]                                    never
a[-1]                                   never
a[1.5]                                  never
a[1 div 0]                              //a ?
a[0 div 0]                              never
(a)[1]                                  //a ?
(a/b)[last()]/c                         //a/b/c ?

# existence
a[b]                                    //a/b
a[b][c]                                 //a[b]/c
a[c][b]                                 //a[b]/c
a[b]/c                                  //a[b]/c
a[b]/b                                  //a/b
a[b][b]                                 //a/b
a[b/c]/b/c                              //a/b/c
a[b/c//d][@i]                           //a[@i]/b/c//d
a[.//b]                                 //a//b
a[.]                                    //a
a[self::a]                              //a
a[self::b]                              never
*[self::a or self::b]                   //a, //b
*[self::n:*]                            //*[namespace-uri() = 'urn:n']
*[self::n:*][self::n:a]                 //{urn:n}a
a[b[c[@i]]]                             //a/b/c[@i]
a[@i][text()]                           //a[@i][text()]
a[/x/y]                                 //a ?
a[/]                                    //a
a[/@x]                                  never
a[..]                                   //a ?

# comparisons
a[@i = 'x']                             //a[@i = 'x']
a['x' = @i]                             //a[@i = 'x']
a[@i = "x'y"]                           //a[@i = "x'y"]
a[@i = 4]                               //a[@i = 4]
a[@i = '4']                             //a[@i = '4']
a[@i != 'x']                            //a[@i != 'x']
a[@i < 4]                               //a[@i < 4]
a[4 < @i]                               //a[@i > 4]
a[4 <= @i]                              //a[@i >= 4]
a[4 >= @i]                              //a[@i <= 4]
a[@i > '4']                             //a[@i > 4]
a[@i < 'x']                             never
a[@i < '']                              never
a[@i = 0 div 0]                         never
a[@i != 0 div 0]                        //a[@i]
a[@i = -0]                              //a[@i = 0]
a[@i = 0]                               //a[@i = 0]
a[@i = 3 + 1]                           //a[@i = 4]
a[@i = -(2 * 3 - 1) mod 3 div 2]        //a[@i = -1]
a[@i = true()]                          //a[@i]
a[@i = false()]                         //a[not(@i)]
a[@i != true()]                         //a[not(@i)]
a[@i < true()]                          //a[not(@i)]
a[@i <= true()]                         //a
a[@i > true()]                          never
a[b = true()]                           //a/b
a[b = false()]                          //a ?
a[. = 'x']                              //a[. = 'x']
a[text() = 'x']                         //a[text() = 'x']
a[@* = 'x']                             //a[@* = 'x']
a[b = 'x']                              //a/b[. = 'x']
a[b/@i > 4]                             //a/b[@i > 4]
a/b/@i > 4                              //a/b[@i > 4]
a[.//text() = 'x']                      //a[text() = 'x'], //a//*[text() = 'x']
a[b/text() = 'x']/c                     //a[b[text() = 'x']]/c
a[@i = @j]                              //a[@i][@j] ?
a[b = c]                                //a[b]/c ?
a[@i = string(b)]                       //a[@i] ?
a[@i = @j + 1]                          //a[@i] ?
a[@i = (b or c)]                        //a ?
a[(b or c) = true()]                    //a/b, //a/c
a[(b or c) = 1]                         //a/b, //a/c
a[(@i and @j) = 'false']                //a[@i][@j]
a[(@i and @j) = 0]                      //a[not(@i)], //a[not(@j)]
a[@i = 1 = 1]                           //a ?
a[1 = 1]                                //a
a['1' = 1.0]                            //a
a['x' = 'y']                            never
a[true() = 'x']                         //a
a[1 < 'x']                              never
/ = 'x'                                 /*[. = 'x']
//* = 'x'                               //*[. = 'x']

# strings of node-sets: the first node's
a[string() = 'x']                       //a[. = 'x']
a[string(.) = 'x']                      //a[. = 'x']
a[string(@i) = 'x']                     //a[@i = 'x']
a[string(@i) = '']                      //a[string(@i) = '']
a[string(@i) != 'x']                    //a[string(@i) != 'x']
a[string(text()) = 'x']                 //a[string(text()) = 'x']
a[string(b) = 'x']                      //a/b[. = 'x'] ?
a[string(b) = '']                       //a ?
a[string(@i/b) = '']                    //a
a[string(@i/b) = 'x']                   never
a[string(.//@i) = 'x']                  //a[@i = 'x'], //a//*[@i = 'x'] ?
a[string(@*) = 'x']                     //a[@* = 'x'] ?
a[number(@i) = 4]                       //a[@i = 4]
a[number() > 4]                         //a[. > 4]
a[number(@i) != 4]                      //a[number(@i) != 4]
a[number(b) = 4]                        //a/b[. = 4] ?
a[number(normalize-space(@i)) = 4]      //a[@i = 4]
a[number(@i) = 'x']                     never
a[number(@i) != 'x']                    //a
a[contains(., 'x')]                     //a[contains(., 'x')]
a[contains(@i, 'x')]                    //a[contains(@i, 'x')]
a[contains(text(), 'x')]                //a[contains(text(), 'x')]
a[contains(b, 'x')]                     //a/b[contains(., 'x')] ?
a[contains(@i, '')]                     //a
a[contains(b, '')]                      //a
a[contains(@i, 4)]                      //a[contains(@i, '4')]
a[contains(@i, 0.5)]                    //a ?
a[contains(@i, true())]                 //a[contains(@i, 'true')]
a[contains(@i, @j)]                     //a ?
a[contains('abc', 'b')]                 //a
a[contains('abc', 'x')]                 never
a[contains('abc', .)]                   //a ?
a[contains(concat('x', 'y', 1), 'y1')]  //a
a[starts-with(@i, 'x')]                 //a[starts-with(@i, 'x')]
a[starts-with(normalize-space(), 'x')]  //a[starts-with(normalize-space(.), 'x')]
a[string-length(@i) < 5]                //a[string-length(@i) < 5]
a[string-length(@i) > 5]                //a[string-length(@i) > 5]
a[string-length() = '5']                //a[string-length(.) = 5]
a[string-length(b) > 5]                 //a/b[string-length(.) > 5] ?
a[string-length(b) < 5]                 //a ?
a[string-length('é') = 1]               //a
a[string-length(normalize-space(string(.))) >= 2]  //a[string-length(normalize-space(.)) >= 2]
a[normalize-space() = 'x y']            //a[normalize-space(.) = 'x y']
a[normalize-space(normalize-space(@i)) = 'x']  //a[normalize-space(@i) = 'x']
a[normalize-space('  x  y ') = 'x y']   //a
a[string(.) and @i]                     //a[. != ''][@i]
a[string-length() and @i]               //a[string-length(.) > 0][@i]
a[number() or @i]                       //a[. > 0], //a[. < 0], //a[@i]
a[string(@i) = true()]                  //a[@i != '']
a[string(@i) = false()]                 //a[not(@i != '')]
a['x']                                  //a
a['']                                   never
a[concat(@i, 'x') = 'yx']               //a[concat('', @i, 'x') = 'yx']
a[substring(@i, 1, 1) = 'x']            //a[substring(@i, 1, 1) = 'x']
a[translate(., 'AB', 'ab') = 'ab']      //a[translate(., 'AB', 'ab') = 'ab']
a[translate(@d, '-', '') > 20250101]    //a[translate(@d, '-', '') > 20250101]
a[substring-before(@i, 'x') != '']      //a[substring-before(@i, 'x') != '']
a[string-length(substring-after(., 'x')) > 2]  //a[string-length(substring-after(., 'x')) > 2]
a[contains(translate(b, 'A', 'a'), 'ab')]  //a/b[contains(translate(., 'A', 'a'), 'ab')] ?
a[translate(@i, @j, '') = 'x']          //a ?
a[concat(@i, @j) = 'x']                 //a ?
a[not(string-length(b) < 9)]            //a/b[string-length(.) >= 9] ?
a[not(contains(b, 'x'))]                //a ?
a[not(count(b) < 5)]                    //a/b ?
a[name() = 'x']                         //a ?
a[local-name() = 'x']                   //a ?
a[lang('en')]                           //a ?
lang('en')                              never
contains(., 'x')                        /*[contains(., 'x')]
contains(//., 'x')                      /*[contains(., 'x')]
string-length() > 3                     /*[string-length(.) > 3]
contains(a, 'x')                        //a[contains(., 'x')] ?

# conditions on one attribute or text node
@i[. = 4]                               //*[@i = 4]
@i[. = 4][. < 9]                        //*[@i = 4][@i < 9]
@i[not(. = 'x')]                        //*[@i != 'x']
@i[not(contains(., 'x'))]               //*[not(contains(@i, 'x'))][@i]
@i[contains(., 'x') or . = 'y']         //*[contains(@i, 'x')], //*[@i = 'y']
@i[b]                                   never
@i[..]                                  //*[@i] ?
@i[normalize-space() = 'x']             //*[normalize-space(@i) = 'x']
@*[. = 'x']                             //*[@* = 'x']
@*[. = 'x'][. = 'y']                    //*[@* = 'x'][@* = 'y'] ?
text()[contains(., 'x')]                //*[contains(text(), 'x')]
text()[. = 'x' or . = 'y']              //*[text() = 'x'], //*[text() = 'y']
text()[contains(., 'x')][contains(., 'y')]  //*[contains(text(), 'x')][contains(text(), 'y')] ?
text()[not(. = 'x')]                    //*[text() != 'x']
text()[not(contains(., 'x'))]           //*[text()] ?
a/text()[1]                             //a[text()] ?

# and, or, not
a[@i and @j]                            //a[@i][@j]
a[b and c]                              //a[b]/c
a[@i or @j]                             //a[@i], //a[@j]
a[b or c]/d                             //a[b]/d, //a[c]/d
a[(b or c) and (d or e)]                //a[b]/d, //a[b]/e, //a[c]/d, //a[c]/e
a[b and c or d]                         //a[b]/c, //a/d
a[b or true()]                          //a
a[b and false()]                        never
a[b or 1 = 2]                           //a/b
a[b or position() = 1]                  //a ?
a[not(@i)]                              //a[not(@i)]
a[not(not(@i))]                         //a[@i]
a[not(@i = 'x')]                        //a[not(@i = 'x')]
a[not(. = 'x')]                         //a[. != 'x']
a[not(. < 4)]                           //a[not(. < 4)]
a[not(@i and @j)]                       //a[not(@i)], //a[not(@j)]
a[not(@i or @j)]                        //a[not(@i)][not(@j)]
a[not(contains(text(), 'x'))]           //a[not(contains(text(), 'x'))]
a[not(string(@i) = '')]                 //a[string(@i) != '']
a[not(b)]                               //a ?
a[not(b or @i)]                         //a[not(@i)] ?
a[not(b and @i)]                        //a ?
a[not(b/self::c)]                       //a
a[not(@i[1])]                           //a ?
a[not(contains(b, 'x'))]                //a ?
a[not(@i[. = 4])]                       //a[not(@i = 4)]
a[not(self::b)]                         //a ?
a[not(true())]                          never
a[boolean(@i)]                          //a[@i]
a[not(boolean(@i = 4))]                 //a[not(@i = 4)]
//a and //b                             //a ?
//a and //b/c                           //b/c ?
//a and not(//b)                        //a ?
//a or /b                               //a, /b
not(//a)                                always ?
true()                                  always
false()                                 never
'x'                                     always
1 - 1                                   never

# counting
count(a) > 0                            //a
count(a) >= 1                           //a
0 < count(a)                            //a
count(a) != 0                           //a
count(a) > 3                            //a ?
count(a) = 2                            //a ?
count(a) >= 0                           always
count(a) < 0                            never
count(a) = 1.5                          never
count(a) != 1.5                         always
count(a) < 5                            always ?
count(a) = true()                       //a
count(a)                                //a
a[count(@i) = 0]                        //a[not(@i)]
a[count(@i) < 1]                        //a[not(@i)]
a[count(b) = 0]                         //a ?
a[count(b) > 1]                         //a/b ?
a[count(b) = count(c)]                  //a ?
a[sum(b) > 3]                           //a ?

# unions and filters
a | b                                   //a, //b
a | /b                                  //a, /b
a | a                                   //a
a | a/self::b                           //a
(a | b)/c                               //a/c, //b/c
(a | b)[@i]/c                           //a[@i]/c, //b[@i]/c
(a | @i)/.                              //a, //*[@i]
(a)//b                                  //a//b
(a//self::node())/b                     //a/b, //a//*/b
a[b | c]                                //a/b, //a/c
a[(b | @c) = 'x']                       //a/b[. = 'x'], //a[@c = 'x']
a[contains(b | c, 'x')]                 //a/b[contains(., 'x')], //a/c[contains(., 'x')] ?
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [line.rsplit("  ", 1) for line in RULES.splitlines() if line and not line.startswith("#")],
)
def test_rules(text: str, expected: str) -> None:
    assert outcome(text) == expected


# --- what is left to verify


@pytest.mark.parametrize(
    ("text", "reason", "residual"),
    [
        ("a[b]", "", ""),
        ("a[3]/b", "3", "//a[3]/b"),
        ("a[not(b)]", "not(b)", "//a[not(b)]"),
        ("a[@i = @j and c]", "@i = @j", "//a[@i = @j and c]"),
        ("a/parent::b[c]", "parent::b[c]", "//a/parent::b[c]"),
        ("a/..", "..", "//a/.."),
        ("//a and //b", "//a and //b", "//a and //b"),
        ("count(a) > 3", "count(a) > 3", "count(//a) > 3"),
        ("string-length() > 2 and a[2]", "2", "string-length(/) > 2 and //a[2]"),
    ],
)
def test_residuals(text: str, reason: str, residual: str) -> None:
    result = compiled(text)
    assert (result.reason, result.residual) == (reason, residual)


# --- what is selected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/a/b[c]/d", ["element 3"]),
        ("a[z]/b", ["element 1"]),
        ("z[a]/b", ["element 2"]),
        ("a[b]/b", ["element 1"]),
        ("a[b/c]/b", ["element 1"]),
        ("a[b/c]/b/c", ["element 2"]),
        ("a[@i = 4]/b", ["element 2"]),
        ("a[b][c]", ["element 0"]),
        ("a/@i", ["attribute 0 i"]),
        ("a/b[c]/@n:i", ["attribute 1 urn:n\x1fi"]),
        ("a//@*", ["attribute 0 *", "attribute 1 *"]),
        ("a/@n:*", ["attribute 0 urn:n\x1f*"]),
        ("a/@i[. = 4]", ["attribute 0 i"]),
        ("a/b/text()", ["text 1"]),
        ("a | b/c/@i | d/text()", ["element 0", "attribute 1 i", "text 0"]),
        ("@i | a/@i | @i", ["attribute 0 i", "attribute 0 i"]),
        ("*/@i | */@j", ["attribute 0 i", "attribute 0 j"]),
        ("a/descendant-or-self::*", ["element 0", "element 1"]),
        ("(a | b)/c[d]", ["element 1", "element 1"]),
        ("a/@i/..", ["nothing -1"]),
        ("a[2]", ["element 0"]),
        ("count(a) > 0", ["nothing -1"]),
        ("a = 4", ["nothing -1"]),
    ],
)
def test_selections(text: str, expected: list[str]) -> None:
    found = [f"{s.kind} {s.output} {s.attribute}".rstrip(" ") for s in compiled(text).selections]
    assert found == expected


@pytest.mark.parametrize(
    "text", ["a//.", "a/@i/self::node()[1 = 1]", "a/node()", "/", "//self::node()[b]", "/self::node()[a]"]
)
def test_mixed_nodes_are_left_to_lxml(text: str) -> None:
    """Patterns say whether there is a match, but only lxml can list the nodes."""
    result = compiled(text)
    assert result.residual
    assert {selection.kind for selection in result.selections} <= {"nodes" if result.exact else "nothing"}


def test_one_pattern_may_select_two_things() -> None:
    result = compiled("a/b | a[b]")
    assert len(result.keys) == 2
    assert result.keys[0] == result.keys[1]
    assert [selection.output for selection in result.selections] == [1, 0]
    assert len(result.patterns) == 1


# --- canonical keys


@pytest.mark.parametrize(
    "texts",
    [
        ["a[b][c]", "a[c][b]", "a[c and b]", "a[b and c and b]", "child::a[self::node()/c][./b]", "*[self::a][b][c]"],
        ["a[@i = 4][b]", "a[b][4 = @i]", "a[b and @i = 4.0]", "a[@i = 3 + 1 and b]"],
        ["a//b", "a/descendant::b", "a[.//b]", "//a[descendant::b]", "a[count(.//b) > 0]", "a[not(not(.//b))]"],
        ["@i = 'x'", "*[@i = 'x']", "//@i[. = 'x']", "*[string(@i) = 'x']", "*/@i = 'x'"],
        ["n:a[n:*]", "same:a[same:*]"],
        ["a[b = 4]", "a/b = 4", "a[b[number(.) = 4]]", "a[b/self::b[4 = .]]"],
    ],
)
def test_equal_patterns_have_equal_keys(texts: list[str]) -> None:
    compiler = Compiler(Symbols(), namespaces=NAMESPACES)
    keys = {tuple(compiler.compile(text).keys) for text in texts}
    assert len(keys) == 1


def test_dropped_parts_leave_no_symbols() -> None:
    symbols = Symbols()
    assert compile("a/self::b[@x = 4]", symbols).never
    assert compile("a[zz/@x = 4 and position() = 1 or last()]", symbols).patterns == patterns("a", symbols)
    assert [symbols.text(i) for i in range(len(symbols))] == ["*", "a"]


def test_a_compiler_can_be_used_again_after_an_error() -> None:
    compiler = Compiler(Symbols())
    before = compiler.compile("a[b or c]/@i")
    for text in ("a[", "count(1)", "/".join("a" * 1500)):
        with pytest.raises(XPathError):
            compiler.compile(text)
    assert compiler.compile("a[b or c]/@i") == before


def test_bytes_and_str_are_the_same() -> None:
    symbols = Symbols()
    assert compile("é[@ü = 'ß']".encode(), symbols) == compile("é[@ü = 'ß']", symbols)


# --- ordered


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a/b/c", "unordered //a/b/c"),
        ("a[@i][. = 4]/b", "unordered //a[@i][. = 4]/b"),
        ("a[b]", "unordered //a/b"),
        ("a[b]/c", "ordered //a[b]/c"),
        ("a[c]/b", "ordered //a[c]/b"),
        ("a[b][b]", "ordered //a[b]/b"),
        ("a[c][@i]/b[e][d]", "ordered //a[@i][c]/b[e]/d"),
        ("a[c and b]/d", "ordered //a[c][b]/d"),
        ("a[b or c]/d", "ordered //a[b]/d, ordered //a[c]/d"),
        ("a[c or @i]/b", "ordered //a[c]/b, unordered //a[@i]/b"),
        ("a[z]/descendant-or-self::a/b", "ordered //a[z]/b, ordered //a[z]//a/b"),
        ("a[not(@i)]/b[c][d]", "ordered //a[not(@i)]/b[c]/d"),
        ("a | b[d]/c", "unordered //a, ordered //b[d]/c"),
        ("/", "always"),
        ("a/self::b", "never"),
    ],
)
def test_ordered(text: str, expected: str) -> None:
    result = compiled(text, ordered=True)
    words = "always" if result.always else "never" if result.never else ""
    described = ", ".join(f"{'ordered' if p.ordered else 'unordered'} {p}" for p in result.patterns)
    assert (words or described) == expected


@pytest.mark.parametrize(
    ("text", "column", "part"),
    [
        ("a[not(b)]/c", 3, "not(b)"),
        ("a[1]", 3, "1"),
        ("é[b]/..", 6, ".."),
        ("//a and //b", 1, "//a and //b"),
        ("a[contains(b, 'x')]", 12, "b"),
    ],
)
def test_not_orderable(text: str, column: int, part: str) -> None:
    with pytest.raises(XPathError) as caught:
        compiled(text, ordered=True)
    assert (caught.value.code, caught.value.column) == ("not-orderable", column)
    assert caught.value.message == f"this part cannot be matched in order: {part}"


def test_ordered_output() -> None:
    assert compiled("a[c]/b", ordered=True).selections == [Selection("element", 2)]
    assert compiled("a[c][@i]/b[e]/d", ordered=True).selections == [Selection("element", 5)]


# --- many alternatives


def test_alternatives_up_to_the_limit_are_indexed() -> None:
    values = " or ".join(f"@i = {i}" for i in range(MAX_PATTERNS))
    result = compiled(f"a[{values}]")
    assert result.exact
    assert len(result.keys) == MAX_PATTERNS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a[" + " or ".join(f"@i = {i}" for i in range(MAX_PATTERNS + 1)) + "]/b", "//a/b ?"),
        ("a" + "[@i or @j]" * 7, "//a[@i], //a[@i][@j], //a[@j] ?"),
        ("|".join(f"a{i}" for i in range(MAX_PATTERNS + 1)), "always ?"),
        ("(a|b)" + "/c[x|y]" * 40, None),
    ],
)
def test_too_many_alternatives_are_left_to_verification(text: str, expected: str | None) -> None:
    result = compiled(text)
    assert not result.exact
    assert len(result.keys) <= MAX_PATTERNS
    assert expected is None or outcome(text) == expected
