"""NodeTree: all nodes of a document, the same from both who build it, and the same that lxml has."""

from __future__ import annotations

import random
from typing import Any, cast

import pytest
from lxml import etree

from tests.language import random_xml
from xsift.document.nodes.node_tree import NodeTree
from xsift.errors import DocumentError

DOCUMENTS = [
    "<a/>",
    "<a>x</a>",
    '<?xml version="1.0" encoding="UTF-8"?>\n<a b="1" c="2"><b/>t<c d="e"/></a>',
    "<!--before--><?p q r?><a><!--in--><?t?>x<!---->y</a><?end  of it ?><!--after-->",
    "<a>x<![CDATA[<y>]]>z<![CDATA[]]></a>",
    "<a><![CDATA[]]></a>",
    "<a>a\r\nb\rc&#13;&#10;&lt;&amp;&gt;&quot;&apos;&#xe9;&#8364;&#x1F600;</a>",
    "<a b='x\ty\nz' c='&#9;&#10;&#13;' d='a\r\nb'/>",
    '<n:a xmlns:n="urn:n" xmlns="urn:d" n:x="1" x="2"><b n:y="3"/><c xmlns=""><d/></c>'
    '<m:e xmlns:m="urn:m" m:z=""/></n:a>',
    '<a xml:lang="en" xml:id="k"><b xml:space="preserve"> </b></a>',
    '<!DOCTYPE a SYSTEM "none.dtd"><a>x</a>',
    '<!DOCTYPE a [<!--no node--><?nor this?><!ATTLIST b i ID #IMPLIED n NMTOKENS #IMPLIED d CDATA "def">'
    '<!ENTITY e "text"><!ENTITY m "<b i=\'two\'/>tail">]><a>x&e;y<b i=" one " n=" p  q "/>&m;</a>',
    "<a\n  b = '1'\n  ><c\n/></a\n>",
    '<a xmlns:p="u" xmlns:q="w"><p:b xmlns:p="v" p:x="1"><p:c xmlns:p="u" q:y=""/><p:d/></p:b><p:e q:x="2"/></a>',
    "<é à='ü'>ß</é>",
    "<a>" + "<b>" * 200 + "x" + "</b>" * 200 + "</a>",
]


def described(tree: NodeTree) -> list[tuple[object, ...]]:
    return [
        (tree.kind(node), tree.name(node), tree.prefix(node), tree.value(node), tree.parent(node), tree.last(node),
         tree.first(node), tree.before(node))
        for node in range(len(tree))
    ]  # fmt: skip


def lxml_nodes(xml: bytes) -> list[tuple[str, str, str]]:
    """Kind, name and string-value of the nodes that lxml has, in document order.

    Not from `//`: libxml2 takes entities that a DTD declares for text and elements below the document.
    """
    tree = etree.ElementTree(etree.fromstring(xml, etree.XMLParser(huge_tree=True)))
    found: list[tuple[str, str, str]] = [("document", "", str(tree.xpath("string(/*)")))]
    items = cast(list[Any], tree.xpath("/node() | /*//node() | /*/@* | /*//@*"))
    for item in items:
        if isinstance(item, str):
            kind, name = ("attribute", item.attrname) if item.is_attribute else ("text", "")  # type: ignore[attr-defined]
            found.append((kind, name, str(item)))
        elif item.tag is etree.Comment:
            found.append(("comment", "", item.text))
        elif item.tag is etree.PI:
            found.append(("processing-instruction", item.target, item.text or ""))
        else:
            found.append(("element", item.tag, str(item.xpath("string()"))))
    return found


@pytest.mark.parametrize("xml", DOCUMENTS)
@pytest.mark.parametrize("namespaces", [False, True])
def test_both_builders_agree(xml: str, namespaces: bool) -> None:
    quick = NodeTree().build(xml.encode(), namespaces=namespaces)
    slow = NodeTree(quick=False).build(xml.encode(), namespaces=namespaces)
    assert described(quick) == described(slow)
    assert quick.ids() == slow.ids()


@pytest.mark.parametrize("xml", DOCUMENTS)
def test_nodes_are_those_of_lxml(xml: str) -> None:
    tree = NodeTree().build(xml.encode())
    assert [(tree.kind(n), tree.name(n), tree.value(n)) for n in range(len(tree))] == lxml_nodes(xml.encode())


def test_random_documents() -> None:
    rng = random.Random(5)
    quick, slow = NodeTree(), NodeTree(quick=False)
    for _ in range(300):
        xml = random_xml(rng, 40).encode()
        assert described(quick.build(xml)) == described(slow.build(xml))
        assert [(quick.kind(n), quick.name(n), quick.value(n)) for n in range(len(quick))] == lxml_nodes(xml)


def test_links_between_nodes() -> None:
    tree = NodeTree().build(b"<a x='1'><b/>t<c><d/></c></a>")
    a, x, b, t, c, d = range(1, 7)
    assert [tree.kind(node) for node in range(7)] == [
        "document", "element", "attribute", "element", "text", "element", "element",
    ]  # fmt: skip
    assert (tree.first(a), tree.last(a), tree.first(b), tree.first(c)) == (b, d, -1, d)
    assert [tree.before(node) for node in (a, x, b, t, c, d)] == [-1, -1, -1, b, t, -1]
    assert [tree.parent(node) for node in (0, a, x, b, t, c, d)] == [-1, 0, a, a, a, a, c]


def test_namespace_nodes_are_in_the_order_of_libxml2() -> None:
    xml = b'<a xmlns="u" xmlns:p="v" xmlns:q="w"><b xmlns="" xmlns:p="z"><c/></b></a>'
    tree = NodeTree().build(xml, namespaces=True)
    found: dict[int, list[tuple[str, str]]] = {}
    for node in range(len(tree)):
        if tree.kind(node) == "namespace":
            found.setdefault(tree.parent(node), []).append((tree.name(node), tree.value(node)))
    root = etree.fromstring(xml)
    declared = [cast(list[tuple[str | None, str]], element.xpath("namespace::*")) for element in root.iter()]
    expected = [[(prefix or "", uri) for prefix, uri in namespaces] for namespaces in declared]
    assert list(found.values()) == expected


def test_ids() -> None:
    xml = b'<!DOCTYPE a [<!ATTLIST b i ID #IMPLIED>]><a xml:id="r"><b i="one"/><c i="no"/></a>'
    tree = NodeTree().build(xml)
    assert [tree.value(node) for node in tree.ids()] == ["r", "one"]


@pytest.mark.parametrize("encoding", ["utf-16", "iso-8859-1", "koi8-r", "utf8"])
def test_other_encodings(encoding: str) -> None:
    text = "я" if encoding == "koi8-r" else "é"
    xml = f'<?xml version="1.0" encoding="{encoding}"?><a b="{text}">{text}</a>'.encode(encoding)
    tree = NodeTree().build(xml)
    assert [tree.value(node) for node in range(len(tree))] == [text] * 4
    overridden = NodeTree().build(f"<a b='{text}'>{text}</a>".encode(encoding), encoding=encoding)
    assert described(overridden) == described(tree)


@pytest.mark.parametrize("xml", [b"", b"<a>", b"<a><b></a>", b"<a>&no;</a>", b"<n:a/>", b"x"])
def test_a_broken_document_is_an_error(xml: bytes) -> None:
    with pytest.raises(DocumentError):
        NodeTree().build(xml)


def test_a_tree_can_be_built_after_an_error() -> None:
    tree = NodeTree()
    with pytest.raises(DocumentError):
        tree.build(b"<a>")
    assert len(tree.build(b"<a/>")) == 2


def test_too_many_namespace_nodes_are_an_error() -> None:
    declarations = "".join(f' xmlns:p{i}="u{i}"' for i in range(2000))
    xml = f"<a{declarations}>{'<b/>' * 2000}</a>".encode()
    with pytest.raises(DocumentError) as caught:
        NodeTree().build(xml, namespaces=True)
    assert caught.value.code == "too-large-to-evaluate"
    assert len(NodeTree().build(xml)) == 2002


@pytest.mark.parametrize("quick", [True, False])
def test_namespace_nodes_of_documents_before_do_not_count(quick: bool) -> None:
    tree = NodeTree(quick=quick)
    xml = f"<a xmlns:p='u'>{'<b/>' * 40_000}</a>".encode()
    for _ in range(30):
        assert len(tree.build(xml, namespaces=True)) == 3 * 40_001 + 1
