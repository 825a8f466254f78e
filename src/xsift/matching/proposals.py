"""Proposals: expressions that select an element or attribute somebody points at, from general to particular.

People who do not know XPath by heart point at what they want. Each proposal is compiled and counted on the document
as a subscription would be, so what is said of it is true. Also here: which namespaces a document has, for those who
wonder why a name is not found.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xsift.document import Document, Limits
from xsift.document.nodes.node_tree import NodeTree
from xsift.errors import SubscriptionError, XsiftError
from xsift.matching.subscriptions import Subscriptions

__all__ = ["DocumentNamespace", "Outline", "Proposal"]

MOST_ATTRIBUTES = 3  # of an element that proposals are made for
LONGEST_VALUE = 80
LONGEST_WORD = 30
LONGEST_PATH = 32  # steps that are still readable
WORD = re.compile(r"[^\W\d_]{4,}")
NUMBER = re.compile(r"-?\d+(\.\d+)?")
SPACES = re.compile(r"[ \t\r\n]+")
XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"


@dataclass(frozen=True)
class DocumentNamespace:
    """A namespace that names of a document are in; "" for none."""

    uri: str
    prefix: str
    """The prefix that the document mostly uses for it."""
    elements: int


@dataclass(frozen=True)
class Proposal:
    """An expression, in words, and how many nodes of the document it selects."""

    xpath: str
    says: str
    selects: int | None
    """None if that would cost more than it may."""


class Outline:
    """The nodes of one document, for people who look at it."""

    def __init__(self, document: Document, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._document = document.loaded(self._limits.bytes)
        source = bytes(memoryview(self._document.source))
        self._tree = NodeTree(limits=self._limits).build(source, encoding=self._document.encoding)
        kinds = map(self._tree.kind, range(len(self._tree)))
        self._elements = [node for node, kind in enumerate(kinds) if kind == "element"]

    def namespaces(self) -> list[DocumentNamespace]:
        """Those of the elements, the most used first."""
        prefixes: dict[str, Counter[str]] = {}
        for node in self._elements:
            uri, _ = _split(self._tree.name(node))
            prefixes.setdefault(uri, Counter())[self._tree.prefix(node)] += 1
        found = [DocumentNamespace(uri, used.most_common(1)[0][0], used.total()) for uri, used in prefixes.items()]
        return sorted(found, key=lambda namespace: -namespace.elements)

    def namespaces_of(self, local: str) -> list[str]:
        """The namespaces in which elements of the document have a local name, the most used first."""
        names = (_split(self._tree.name(node)) for node in self._elements)
        return [uri for uri, _ in Counter(uri for uri, name in names if name == local).most_common()]

    def propose(
        self, element: int, attribute: str | None = None, namespaces: Mapping[str, str] | None = None
    ) -> tuple[list[Proposal], dict[str, str]]:
        """Proposals for the element with that number, or for an attribute of it (its name as it is written), and the
        prefixes that they use beside `namespaces`. Raises SubscriptionError if there is no such node.
        """
        if not 1 <= element <= len(self._elements):
            raise SubscriptionError("unknown-node", f"the document has {len(self._elements):,} elements")
        prefixes = _Prefixes(namespaces or {})
        node = self._elements[element - 1]
        made = (
            self._for_element(node, prefixes) if attribute is None else self._for_attribute(node, attribute, prefixes)
        )
        texts: dict[str, str] = {}
        for text, says in made:
            texts.setdefault(text, says)
        return self._counted(texts, prefixes.bound), prefixes.bound

    # Which

    def _for_element(self, node: int, prefixes: _Prefixes) -> Iterator[tuple[str, str]]:
        name = self._name(node, prefixes)
        path = self._path(node, prefixes)
        yield f"//{name}", f"every {name}"
        if len(path) > 1:
            yield f"//{path[-2]}/{name}", f"every {name} in a {path[-2]}"
        if len(path) > 2:
            yield "/" + "/".join(path), f"every {name} at this place"
        for attribute, value in self._attributes(node, prefixes):
            yield f"//{name}[@{attribute}]", f"every {name} that has {attribute}"
            if literal := _literal(value):
                yield f"//{name}[@{attribute} = {literal}]", f"those whose {attribute} is {value}"
        yield from self._by_content(node, name, prefixes)
        if path:
            yield self._exactly(node, prefixes), f"this {name} alone, by its position"

    def _by_content(self, node: int, name: str, prefixes: _Prefixes) -> Iterator[tuple[str, str]]:
        """By the text of an element, or of the first short one inside of it."""
        children = [child for child in self._children(node) if self._tree.kind(child) == "element"]
        if not children:
            yield from _by_text(f"//{name}", "", self._tree.value(node), f"{name} whose text")
            return
        for child in children:
            value = self._tree.value(child)
            inner = [node for node in self._children(child) if self._tree.kind(node) == "element"]
            if not inner and 0 < len(_normalized(value)) <= LONGEST_VALUE:
                child_name = self._name(child, prefixes)
                yield f"//{name}[{child_name}]", f"every {name} with a {child_name}"
                yield from _by_text(f"//{name}", child_name, value, f"{name} whose {child_name}")
                return

    def _for_attribute(self, node: int, written: str, prefixes: _Prefixes) -> Iterator[tuple[str, str]]:
        found = next((item for item in self._attribute_nodes(node) if self._written(item) == written), None)
        if found is None:
            raise SubscriptionError("unknown-node", f"this element has no attribute {written[:100]!r}")
        attribute, value = self._attribute_name(found, prefixes), self._tree.value(found)
        name, path = self._name(node, prefixes), self._path(node, prefixes)
        yield f"//@{attribute}", f"every {attribute}, of whatever element"
        yield f"//{name}/@{attribute}", f"every {attribute} of a {name}"
        if len(path) > 1:
            yield f"/{'/'.join(path)}/@{attribute}", f"every {attribute} at this place"
        literal = _literal(value)
        if NUMBER.fullmatch(value.strip()):
            yield f"//{name}[@{attribute} >= {value.strip()}]", f"every {name} with at least this {attribute}"
        if literal:
            yield f"//*[@{attribute} = {literal}]", f"whatever has this {attribute}"
            yield f"//{name}[@{attribute} = {literal}]", f"every {name} with this {attribute}"
        if path:
            yield f"{self._exactly(node, prefixes)}/@{attribute}", "this one alone, by its position"

    def _counted(self, texts: Mapping[str, str], namespaces: Mapping[str, str]) -> list[Proposal]:
        """With how many nodes each selects; the most general first."""
        subscriptions = Subscriptions(namespaces=namespaces)
        refused = {id for id, _ in subscriptions.add_many(((text, text) for text in texts), errors="collect")}
        failures: dict[str, XsiftError] = {}
        matcher = subscriptions.matcher(limits=self._limits)
        nodes = matcher.select(self._document, failures=failures)
        proposals = [
            Proposal(text, says, None if text in failures else len(nodes.get(text, ())))
            for text, says in texts.items()
            if text not in refused
        ]
        last = len(self._tree) + 1
        return sorted(proposals, key=lambda proposal: -(last if proposal.selects is None else proposal.selects))

    # Names and places

    def _children(self, node: int) -> Iterator[int]:
        child = self._tree.first(node)
        last = self._tree.last(node)
        while 0 <= child <= last:
            yield child
            child = self._tree.last(child) + 1

    def _attribute_nodes(self, node: int) -> Iterator[int]:
        place = node + 1
        while place < len(self._tree) and self._tree.kind(place) == "attribute":
            yield place
            place += 1

    def _attributes(self, node: int, prefixes: _Prefixes) -> list[tuple[str, str]]:
        found = [
            (self._attribute_name(item, prefixes), self._tree.value(item)) for item in self._attribute_nodes(node)
        ]
        return found[:MOST_ATTRIBUTES]

    def _written(self, node: int) -> str:
        prefix, (_, local) = self._tree.prefix(node), _split(self._tree.name(node))
        return f"{prefix}:{local}" if prefix else local

    def _attribute_name(self, node: int, prefixes: _Prefixes) -> str:
        uri, local = _split(self._tree.name(node))
        return f"{prefixes.of(uri, self._tree.prefix(node))}:{local}" if uri else local

    def _name(self, node: int, prefixes: _Prefixes) -> str:
        uri, local = _split(self._tree.name(node))
        return f"{prefixes.of(uri, self._tree.prefix(node))}:{local}" if uri else local

    def _ancestry(self, node: int) -> list[int]:
        """The elements from the root down to this one."""
        found = []
        while node > 0:
            found.append(node)
            node = self._tree.parent(node)
        return found[::-1]

    def _path(self, node: int, prefixes: _Prefixes) -> list[str]:
        """The names from the root down to this element; none if they are too many to be read."""
        ancestry = self._ancestry(node)
        return [] if len(ancestry) > LONGEST_PATH else [self._name(item, prefixes) for item in ancestry]

    def _exactly(self, node: int, prefixes: _Prefixes) -> str:
        steps = []
        for item in self._ancestry(node):
            place, twins = self._place(item)
            steps.append(self._name(item, prefixes) + (f"[{place}]" if twins > 1 else ""))
        return "/" + "/".join(steps)

    def _place(self, node: int) -> tuple[int, int]:
        """Which of the elements of its name beside it an element is, and how many there are."""
        name, place, twins = self._tree.name(node), 0, 0
        for sibling in self._children(self._tree.parent(node)):
            if self._tree.kind(sibling) == "element" and self._tree.name(sibling) == name:
                twins += 1
                if sibling <= node:
                    place = twins
        return place, twins


def _by_text(start: str, child: str, text: str, says: str) -> Iterator[tuple[str, str]]:
    """Conditions on the text of an element, or of some child of it: a word of it, its number, all of it."""
    value, compared = _normalized(text), child or "."
    if not value:
        return

    def where(test: str) -> str:  # a function of `child` would look at the first one alone
        return f"{start}[{child}[{test}]]" if child else f"{start}[{test}]"

    if NUMBER.fullmatch(value) and len(value) < 16:
        yield f"{start}[{compared} >= {value}]", f"every {says} is at least {value}"
    else:
        words = [word for word in WORD.findall(value[:1000]) if len(word) <= LONGEST_WORD]
        if words and (longest := max(words, key=len)) != value:
            yield where(f"contains(., '{longest}')"), f"every {says} has the word {longest}"
    if literal := _literal(value):
        same = f"{start}[{compared} = {literal}]" if value == text else where(f"normalize-space() = {literal}")
        yield same, f"every {says} is just that"


def _normalized(text: str) -> str:
    """What normalize-space() makes of a text."""
    return SPACES.sub(" ", text).strip(" ")


def _literal(value: str) -> str | None:
    """A value as a literal of XPath 1.0, which has no way to write both kinds of quotes."""
    if not 0 < len(value) <= LONGEST_VALUE or not value.isprintable():
        return None
    if "'" not in value:
        return f"'{value}'"
    return f'"{value}"' if '"' not in value else None


def _split(name: str) -> tuple[str, str]:
    uri, _, local = name.rpartition("}")
    return uri[1:], local


class _Prefixes:
    """Prefixes for the namespaces of a document: those that are bound already, then the document's own, then made
    up."""

    def __init__(self, bound: Mapping[str, str]) -> None:
        self.bound = dict(bound)
        self._by_uri = {uri: prefix for prefix, uri in bound.items() if prefix}

    def of(self, uri: str, written: str) -> str:
        if uri == XML_NAMESPACE:
            return "xml"
        if uri not in self._by_uri:
            prefix = self._new(written or _made_up(uri))
            self._by_uri[uri] = prefix
            self.bound[prefix] = uri
        return self._by_uri[uri]

    def _new(self, wanted: str) -> str:
        prefix, number = wanted, 2
        while prefix in self.bound:
            prefix, number = f"{wanted}{number}", number + 1
        return prefix


def _made_up(uri: str) -> str:
    """The last word of a URI: `atom` for http://www.w3.org/2005/Atom."""
    words = [word.lower() for word in re.findall(r"[A-Za-z]{2,}", uri)]
    named = [word for word in words if not word.startswith("xml")]
    return named[-1][:10] if named else "ns"
