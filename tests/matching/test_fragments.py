"""Fragments stand alone: any parser takes them, and what they mean is what they meant in the document."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest
from lxml import etree

import xsift
from xsift.matching.fragments import _lxml_elements

UBL = b"""<?xml version="1.0" encoding="UTF-8"?>
<Invoice xmlns="urn:invoice" xmlns:cac="urn:aggregate" xmlns:cbc="urn:basic" xml:lang="de" xml:base="http://e.org/i/">
  <cbc:ID>1</cbc:ID>
  <cac:Line xmlns:x='urn:x' xml:base="line/1/">
    <cbc:ID x:of="2" >2 &lt; 3<!-- c --></cbc:ID><Plain xmlns="">t</Plain></cac:Line>
  <cac:Line xml:lang="en"><cbc:ID xml:lang="fr" xml:base="here">3</cbc:ID></cac:Line>
</Invoice>"""


def fragments(xml: bytes | str | xsift.Document, xpath: str, **options: Any) -> list[str]:
    namespaces = {"i": "urn:invoice", "cac": "urn:aggregate", "cbc": "urn:basic", "n": "urn:n"}
    subscriptions = xsift.Subscriptions(namespaces=namespaces)
    subscriptions.add("it", xpath)
    selected = subscriptions.matcher(**options).select(xml, fragments=True)
    return [str(node.fragment) for node in selected.get("it", [])]


def meaning(element: Any) -> Any:
    """What an element inherits, and all below it by expanded names."""
    inherited = [
        element.xpath(f"string(ancestor-or-self::*[@xml:{name}][1]/@xml:{name})") for name in ("lang", "space")
    ]
    namespaces = {prefix: uri for prefix, uri in element.nsmap.items() if uri}
    return inherited, namespaces, element.base, canonical(element)


def test_fragments_of_an_invoice() -> None:
    scope = 'xmlns="urn:invoice" xmlns:cac="urn:aggregate" xmlns:cbc="urn:basic" xml:lang="de"'
    assert fragments(UBL, "//cbc:ID[1]")[0] == f'<cbc:ID {scope} xml:base="http://e.org/i/">1</cbc:ID>'
    first, second, third = (etree.fromstring(text) for text in fragments(UBL, "//cbc:ID"))
    assert first.tag == "{urn:basic}ID"
    assert second.attrib["{urn:x}of"] == "2"
    assert second.base == "http://e.org/i/line/1/"
    assert second.text == "2 < 3"
    xml = "{http://www.w3.org/XML/1998/namespace}"
    assert (third.attrib[f"{xml}lang"], third.base) == ("fr", "http://e.org/i/here")
    (plain,) = fragments(UBL, "//Plain")
    assert etree.fromstring(plain).tag == "Plain"
    assert etree.fromstring(fragments(UBL, "/i:Invoice")[0]).tag == "{urn:invoice}Invoice"


def test_nodes_that_are_no_elements_have_the_fragment_of_their_element() -> None:
    for xpath in ("//cbc:ID/text()", "//cac:Line/@xml:lang", "//cbc:ID/comment()"):
        assert all(etree.fromstring(text) is not None for text in fragments(UBL, xpath))


def test_without_fragments_a_node_has_none_and_its_bytes_are_there() -> None:
    subscriptions = xsift.Subscriptions()
    subscriptions.add("a", "//b")
    xml = b"<a><b/></a>"
    (node,) = subscriptions.matcher().select(xml)["a"]
    assert (node.fragment, node.element, node.number, xml[node.start : node.end]) == (None, 2, 2, b"<b/>")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "iso-8859-1", "cp1252"])
def test_encodings(encoding: str) -> None:
    text = f'<?xml version="1.0" encoding="{encoding}"?><ä xmlns:n="urn:n"><n:b é="ü">ö</n:b></ä>'
    expected = ['<n:b xmlns:n="urn:n" é="ü">ö</n:b>']
    data = text.encode(encoding)
    if encoding == "utf-16-le":
        data = text.replace("utf-16-le", "utf-16").encode(encoding)
    assert fragments(data, "//n:b") == expected
    assert fragments(text, "//n:b") == expected


@pytest.mark.parametrize(
    "data",
    [
        f"<?xml version='1.0'{' ' * 3000}encoding='ISO-8859-1'?><a><b>ö</b></a>".encode("latin-1"),
        b"\xef\xbb\xbf" + "<?xml version='1.0' encoding='ISO-8859-1'?><a><b>ö</b></a>".encode(),
        "<?xml version='1.0' encoding='UTF-8'?><a><b>ö</b></a>".encode("utf-16"),
        "\n<a><b>ö</b></a>".encode("utf-16-le"),
        "\n<a><b>ö</b></a>".encode("utf-16-be"),
    ],
)
def test_encodings_that_are_told_in_odd_ways(data: bytes) -> None:
    assert fragments(data, "//b[. = 'ö']") == ["<b>ö</b>"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("given", ["utf-8", "UTF8", "utf-16", "UTF-16LE", "ISO-8859-1", "us-ascii"])
def test_a_fragment_is_in_the_encoding_that_was_read(encoding: str, given: str) -> None:
    """expat believes the beginning of a document more than these."""
    document = xsift.Document('<a xml:lang="fr"><b>é</b></a>'.encode(encoding), encoding=given)
    assert fragments(document, "//b[. = 'é']") == ['<b xml:lang="fr">é</b>']


def test_entities_are_expanded() -> None:
    xml = b"""<!DOCTYPE a [<!ENTITY c "Ltd &amp; Co"><!ENTITY e "<n:b xmlns:n='urn:n'>e</n:b>">
      <!ATTLIST d xmlns:n CDATA #FIXED "urn:n">]><a xml:lang="de"><b>&c;</b>&e;<d><n:b/></d></a>"""
    assert fragments(xml, "//b") == ['<b xml:lang="de">Ltd &amp; Co</b>']
    inner, second = (etree.fromstring(text) for text in fragments(xml, "//n:b"))
    assert (inner.tag, inner.text, second.tag) == ("{urn:n}b", "e", "{urn:n}b")
    assert fragments(xml, "//b") == fragments(xml, "//b")


def test_entities_that_libxml2_does_not_expand_are_a_failure() -> None:
    """It would break off in the middle of an element."""
    xml = f'<!DOCTYPE a [<!ENTITY e "{"x" * 20_000}">]><a>{"<b>&e;</b>" * 100}</a>'
    subscriptions = xsift.Subscriptions()
    subscriptions.add("all", "//b")
    subscriptions.add("last", "//b[last()]")
    failures: dict[str, xsift.XsiftError] = {}
    assert subscriptions.matcher().select(xml, fragments=True, failures=failures) == {}
    assert {id: error.code for id, error in failures.items()} == dict.fromkeys(("all", "last"), "fragment-failed")
    assert len(subscriptions.matcher().select(xml)["all"]) == 100


def test_a_row_that_fails_in_the_middle_leaves_others_their_room() -> None:
    xml = f'<!DOCTYPE a [<!ENTITY e "{"x" * 1000}">]><a>{"<b>&e;</b>" * 300}<c>1</c></a>'
    subscriptions = xsift.Subscriptions()
    subscriptions.add("all", "//b")
    subscriptions.add("one", "//c")
    matcher = subscriptions.matcher(limits=xsift.Limits(result_bytes=200_000))
    failures: dict[str, xsift.XsiftError] = {}
    selected = matcher.select(xml, fragments=True, failures=failures)
    assert [node.fragment for node in selected["one"]] == ["<c>1</c>"]
    assert {id: error.code for id, error in failures.items()} == {"all": "result-too-large"}


def test_tags_as_people_write_them() -> None:
    xml = b"""<a xmlns:n = 'urn:n'
      xml:base='http://e.org/"q"'	z="a>b"><b
      x = ">" /><c/><![CDATA[<d>]]></a>"""
    first, second = fragments(xml, "//b")[0], fragments(xml, "//c")[0]
    assert etree.fromstring(first).get("x") == ">"
    assert etree.fromstring(second).nsmap == {"n": "urn:n"}


def random_document(random: random.Random, depth: int = 0) -> str:
    prefixes = ["", "n:", "m:", "o:"]
    name = random.choice(prefixes) + random.choice("abc")
    declared = ["n", "m", "o"] if depth == 0 else random.sample(["n", "m", "o"], random.choice([0, 0, 1, 2]))
    attributes = [f' xmlns:{prefix}="urn:{random.randint(1, 3)}"' for prefix in declared]
    if random.random() < 0.3:
        attributes.append(random.choice([' xmlns="urn:d"', " xmlns=''", ' xmlns="urn:e"']))
    for attribute, values in (
        ("xml:lang", ["de", "en"]),
        ("xml:base", ["x/", "/y", "http://h.org/z/"]),
        ("xml:space", ["preserve"]),
    ):
        if random.random() < 0.2:
            attributes.append(f' {attribute}="{random.choice(values)}"')
    if random.random() < 0.3:
        attributes.append(' n:x="1"')
    random.shuffle(attributes)
    inner = "".join(random_document(random, depth + 1) for _ in range(random.randint(0, 3 if depth < 4 else 0)))
    return f"<{name}{''.join(attributes)}>t{inner}</{name}>"


def test_random_documents_with_many_prefixes() -> None:
    """Every element, cut out and parsed by lxml, is the same as in the document."""
    generator = random.Random(7)
    for _ in range(200):
        xml = random_document(generator)
        tree = etree.fromstring(xml)
        for element, fragment in zip(tree.iter("*"), fragments(xml, "//*"), strict=True):
            assert meaning(etree.fromstring(fragment)) == meaning(element), (xml, fragment)


BASES = ["../z", "x/", "x", "/y", "http://h.org/a/b", "../../q/", "a/b/c", "..", ".", "../..", "./a", "//host/p"]


DECLARING = '<!DOCTYPE a [<!ENTITY e "x"><!ATTLIST b xml:lang CDATA "fr" xml:base CDATA "no/">]>'


@pytest.mark.parametrize("outer", BASES)
@pytest.mark.parametrize("prolog", ["", DECLARING])
def test_bases_that_are_relative_to_a_document_of_which_nothing_is_known(prolog: str, outer: str) -> None:
    """Wherever the document was, a link leads to the same place from the fragment."""
    place = "http://example.org/1/2/3/4/5/document.xml"
    for inner in BASES:
        expected = urljoin(urljoin(urljoin(place, outer), inner), "link")
        xml = f'{prolog}<a xml:base="{outer}"><b xml:base="{inner}"><c/></b></a>'
        base, added = (etree.fromstring(fragments(xml, xpath)[0]) for xpath in ("//b", "//c"))
        assert urljoin(urljoin(place, base.base), "link") == expected, inner
        assert urljoin(urljoin(place, added.base), "link") == expected, inner


@pytest.mark.parametrize(
    ("outer", "inner", "expected"),
    [
        ("http://h/caf&#233;/", "na&#xEF;ve", "http://h/café/naïve"),
        ("http://h/?a=1&amp;b=2", "?c=&quot;&lt;", 'http://h/?c="<'),
        ("http://[h/", "x", "x"),
    ],
)
def test_bases_with_references_to_characters(outer: str, inner: str, expected: str) -> None:
    xml = f"""<a xml:base="{outer}"><b xml:base='{inner}'/></a>"""
    for prolog in ("", DECLARING):
        assert fragments(prolog + xml, "//b/@xml:base")[0] == fragments(prolog + xml, "//b")[0]
        element = etree.fromstring(fragments(prolog + xml, "//b")[0])
        assert element.get("{http://www.w3.org/XML/1998/namespace}base") == expected


def test_attributes_that_look_like_a_base_stay_as_they_are() -> None:
    xml = """<a xml:base="http://h/"><b xmlns:axml="u" axml:base="p" title='xml:base="q"' xml:base="r"/></a>"""
    expected = """<b xmlns:axml="u" axml:base="p" title='xml:base="q"' xml:base="http://h/r"/>"""
    assert fragments(xml, "//b") == [expected]


def test_a_default_of_the_dtd_that_is_no_attribute_hides_nothing() -> None:
    xml = DECLARING + '<a xml:lang="de" xml:base="x/"><b/></a>'
    assert fragments(xml, "//b[lang('de')]") == ['<b xml:lang="de" xml:base="x/"/>']


def canonical(element: Any) -> Any:
    """The element and all below it, by expanded names, without what is inherited."""
    ignored = "{http://www.w3.org/XML/1998/namespace}"
    attributes = {name: value for name, value in element.attrib.items() if not name.startswith(ignored)}
    return element.tag, attributes, element.text, [canonical(child) for child in element]


def test_fragments_are_bounded() -> None:
    depth = 900
    xml = b"<a>" * depth + b"x" * 5000 + b"</a>" * depth
    subscriptions = xsift.Subscriptions()
    subscriptions.add("all", "//a")
    subscriptions.add("first", "/a")
    matcher = subscriptions.matcher(limits=xsift.Limits(result_bytes=3_000_000))
    failures: dict[str, xsift.XsiftError] = {}
    selected = matcher.select(xml, fragments=True, failures=failures)
    assert {id: error.code for id, error in failures.items()} == {"all": "result-too-large"}
    assert "all" not in selected
    assert len(matcher.select(xml)["all"]) == depth


def test_a_document_with_a_scope_at_every_level() -> None:
    xml = "".join(f"<a xmlns:p{number}='urn:{number}'>" for number in range(300)) + "<b/>" + "</a>" * 300
    (text,) = fragments(xml, "//b")
    assert len(etree.fromstring(text).nsmap) == 300


def test_no_file_is_opened_even_if_a_reference_to_one_came_so_far(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("<b>secret</b>")
    declared = f'<!DOCTYPE a [<!ENTITY here "<b/>"><!ENTITY there SYSTEM "{(tmp_path / "secret").as_uri()}">]>'
    assert len(_lxml_elements(xsift.Document(f"{declared}<a>&here;</a>"))) == 2
    assert _lxml_elements(xsift.Document(f"{declared}<a>&here;&there;</a>")) == []  # it breaks off there


def test_what_explain_says_of_another_namespace() -> None:
    subscriptions = xsift.Subscriptions(namespaces={"n": "urn:n"})
    subscriptions.add("plain", "//ID")
    subscriptions.add("other", "//n:ID")
    subscriptions.add("there", "//n:Nothing")
    matcher = subscriptions.matcher()
    explanation = matcher.explain(UBL, "plain")
    assert explanation.hints == [
        "3 elements here have the name 'ID' in namespace 'urn:basic'; "
        "bind a prefix to it (-n PREFIX=URI) and use that in the expression"
    ]
    assert explanation.hints[0] in str(explanation)
    assert matcher.explain(UBL, "other").hints == ["3 elements here have the name 'ID' in namespace 'urn:basic'"]
    assert matcher.explain(UBL, "there").hints == []
    assert matcher.explain(b"<ID/>", "other").hints == [
        "1 element here has the name 'ID' in no namespace; leave out the prefix"
    ]
