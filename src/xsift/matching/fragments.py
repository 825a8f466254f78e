"""Fragments: the element that a subscription selects, as text that any XML parser takes by itself.

The bytes of an element are in the document, but what they mean is said above it: which namespace a prefix stands
for, in which language the text is, against what links are resolved. So a fragment repeats in its start tag the
namespace declarations and the attributes xml:lang, xml:base and xml:space that are in scope. All namespaces are
repeated, not only those that tags use: a prefix may also stand in a value (`xsi:type="xs:string"`).

The start tags of an element's ancestors are all that has to be looked at, and the tree knows where they are.
Documents that declare entities or attributes of their own are left to lxml, which expands them.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urljoin, urlsplit
from xml.sax.saxutils import escape

from xsift.document import Document, DocumentTree, Limits
from xsift.errors import SubscriptionError
from xsift.matching.results import Node
from xsift.matching.selection import Room

__all__ = ["Fragments"]

START_TAG = re.compile(r"<([^\s/>]++)((?:\s++[^\s=]++\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'))*+)\s*+/?>")
ATTRIBUTE = re.compile(r"([^\s=]++)\s*+=\s*+(\"[^\"]*+\"|'[^']*+')")
INHERITED = ("xml:lang", "xml:base", "xml:space")
EXPANDED = tuple(name.replace("xml:", "{http://www.w3.org/XML/1998/namespace}") for name in INHERITED)
BASE = EXPANDED[INHERITED.index("xml:base")]
CHARACTER = re.compile(r"&(#x[0-9A-Fa-f]+|#[0-9]+|lt|gt|amp|quot|apos);")
PREDEFINED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
WINDOW_BYTES = 512  # of a start tag, at first
MOST_PUT_BACK = 3  # rows that fail in the middle and leave others their room: each costs as much as that room

Scope = Mapping[str, str]
"""Attributes that hold for an element because of its ancestors: by name, the value with its quotes."""
NOTHING: Scope = {}


class Fragments:
    """Cuts fragments out of one document. `tree` is that of the document, with positions."""

    def __init__(self, document: Document, tree: DocumentTree, limits: Limits) -> None:
        self._data = memoryview(document.source)
        self._document = document
        self._tree = tree
        self._codec = document.codec()
        self._room = Room(limits)  # nested elements repeat each other
        self._scopes: dict[int, Scope] = {0: NOTHING}
        self._texts: dict[int, str] = {}
        self._scope_sizes: dict[int, int] = {}
        self._expanded: list[Any] | None = None  # none, if libxml2 does not expand this document
        self._put_back = MOST_PUT_BACK
        self._declares = self._declares_markup()

    def with_texts(self, nodes: Sequence[Node]) -> list[Node]:
        """The nodes of a row, with their elements as text. Raises SubscriptionError if all fragments of the document
        together would be too large."""
        left, known = self._room.left, len(self._texts)
        try:
            for element in dict.fromkeys(node.element for node in nodes):
                if element not in self._texts:  # whether there is room is seen before anything is made
                    self._room.take(self._size(element))
            return [node._replace(fragment=self._text(node.element)) for node in nodes]
        except SubscriptionError:
            made = len(self._texts) > known
            if self._put_back or not made:
                self._put_back -= made
                self._room.left = left
                while len(self._texts) > known:
                    self._texts.popitem()
            raise

    def _size(self, element: int) -> int:
        """What is known of the size of a fragment before it is made."""
        start, end = self._tree.span(element)
        if self._declares:
            return end - start
        scope = self._scope(self._tree.parent(element))
        if id(scope) not in self._scope_sizes:
            self._scope_sizes[id(scope)] = sum(len(name) + len(value) + 2 for name, value in scope.items())
        return end - start + self._scope_sizes[id(scope)]

    def _text(self, element: int) -> str:
        """An element, for whose size there was room; it may need more."""
        if element not in self._texts:
            text = self._expanded_text(element) if self._declares else self._cut(element)
            self._room.take(max(len(text) - self._size(element), 0))
            self._texts[element] = text
        return self._texts[element]

    def _decoded(self, start: int, end: int) -> str:
        return codecs.decode(self._data[start:end], self._codec, "ignore")

    # Cut out

    def _cut(self, element: int) -> str:
        start, end = self._tree.span(element)
        text = self._decoded(start, end)
        scope = self._scope(self._tree.parent(element))
        if not scope:
            return text
        tag = START_TAG.match(text)
        if tag is None:  # nothing but entities could make it so
            return self._expanded_text(element)
        own = dict(ATTRIBUTE.findall(tag[2]))
        added = "".join(f" {name}={value}" for name, value in scope.items() if name not in own)
        attributes = tag[2]
        if "xml:base" in own and "xml:base" in scope:
            base = f"xml:base={_joined(scope['xml:base'], own['xml:base'])}"
            attributes = ATTRIBUTE.sub(lambda it: base if it[1] == "xml:base" else it[0], attributes)
        return f"<{tag[1]}{added}{attributes}{text[tag.end(2) :]}"

    def _scope(self, element: int) -> Scope:
        """What holds inside of an element."""
        above: list[int] = []
        while element not in self._scopes:
            above.append(element)
            element = self._tree.parent(element)
        scope = self._scopes[element]
        for inner in reversed(above):
            declared = self._declared(inner)
            if declared:
                scope = _with(scope, declared)
            self._scopes[inner] = scope
        return scope

    def _declared(self, element: int) -> dict[str, str]:
        """What an element's start tag declares for all that is in it."""
        attributes = self._start_tag(element)
        if "xml" not in attributes:
            return {}
        found = ATTRIBUTE.findall(attributes)
        return {
            name: value for name, value in found if name == "xmlns" or name.startswith("xmlns:") or name in INHERITED
        }

    def _start_tag(self, element: int) -> str:
        start, end = self._tree.span(element)
        window = WINDOW_BYTES
        while True:
            stop = min(start + window, end)
            tag = START_TAG.match(self._decoded(start, stop))
            if tag is not None:
                return tag[2]
            if stop == end:
                return ""
            window *= 4

    # Expanded

    def _declares_markup(self) -> bool:
        """Whether the document's own DTD declares what could be missing in a fragment."""
        prolog = self._decoded(0, self._tree.span(1)[0])
        return "<!ENTITY" in prolog or "<!ATTLIST" in prolog

    def _expanded_text(self, element: int) -> str:
        if self._expanded is None:
            self._expanded = _lxml_elements(self._document)
        if len(self._expanded) != len(self._tree):
            raise SubscriptionError(
                "fragment-failed",
                "libxml2 does not expand the entities of this document, which make it too large for it",
                hint="select without fragments",
            )
        node = self._expanded[element - 1]
        own = dict(node.attrib)
        added = {name: value for name, value in _inherited(node).items() if own.get(name) != value}
        for name, value in added.items():
            node.set(name, value)
        from lxml import etree

        try:
            return etree.tostring(node, encoding="unicode", with_tail=False)
        finally:
            for name in added:
                if name in own:
                    node.set(name, own[name])
                else:
                    del node.attrib[name]


def _with(scope: Scope, declared: dict[str, str]) -> Scope:
    inner = {**scope, **declared}
    if inner.get("xmlns") in ('""', "''"):
        del inner["xmlns"]
    if "xml:base" in declared and "xml:base" in scope:
        inner["xml:base"] = _joined(scope["xml:base"], declared["xml:base"])
    return inner


def _joined(base: str, reference: str) -> str:
    """A reference resolved against a base; both, and the result, as they stand in tags."""
    return '"' + escape(_resolved(_value(base), _value(reference)), {'"': "&quot;"}) + '"'


def _value(quoted: str) -> str:
    """What an attribute's value says: the # of `&#233;` begins no fragment of a URL."""
    return CHARACTER.sub(lambda it: PREDEFINED.get(it[1]) or _character(it[1]), quoted[1:-1])


def _character(reference: str) -> str:
    return chr(int(reference[2:], 16) if reference.startswith("#x") else int(reference[1:]))


def _resolved(base: str, reference: str) -> str:
    """The URLs themselves. Where the document is, against which a relative base is resolved, is not known: urljoin()
    forgets the `..` that lead above it, so that it is given folders to go up to, whose name none can have.
    """
    try:
        if any(url.scheme or url.netloc for url in (urlsplit(base), urlsplit(reference))):
            return urljoin(base, reference)
    except ValueError:  # it is no URL
        return reference
    ups = (base + reference).count("..")
    path = urljoin(urljoin("http://-/" + "</" * ups, base), reference).removeprefix("http://-")
    if base.startswith("/") or reference.startswith("/"):
        return path
    below = path.replace("</", "")[1:]
    return "../" * (ups - path.count("</")) + below or "./"


def _lxml_elements(document: Document) -> list[Any]:
    """The elements as lxml sees them, by number, with entities expanded: the document was read before, within
    limits. None of them, if a limit of libxml2's own is passed: what it has then breaks off somewhere."""
    from lxml import etree  # few documents need it

    text = codecs.decode(memoryview(document.source), document.codec(), "replace").removeprefix("\ufeff")
    text = re.sub(r"^<\?xml[^>]*\?>", "", text)
    # Of entities it expands those of the document alone: that is its default, and with resolve_entities=True it would
    # open files, too, if ever there was a reference that the reader let pass.
    parser = etree.XMLParser(no_network=True, load_dtd=False, huge_tree=True, recover=True)
    root = etree.fromstring(text.encode(), parser)
    is_cut_off = any(entry.level == etree.ErrorLevels.FATAL for entry in parser.error_log)
    return [] if root is None or is_cut_off else list(root.iter("*"))


def _inherited(node: Any) -> dict[str, str]:
    """The attributes xml:lang, xml:base and xml:space as they hold for an element of lxml. Not by get(), which also
    gives defaults of the DTD."""
    found: dict[str, str] = {}
    for element in (*reversed(list(node.iterancestors())), node):
        for name, value in element.attrib.items():
            if name == BASE and name in found:
                found[name] = _resolved(found[name], value)
            elif name in EXPANDED:
                found[name] = value
    return found
