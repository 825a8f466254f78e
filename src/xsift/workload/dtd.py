"""Reads a DTD: what a document may contain, as both generators need it.

The naive way is a regular expression for `<!ELEMENT …>`. It fails on the first real DTD: parameter entities that
hold half a content model, conditional sections, carriage returns as line ends. libxml2 reads all of that, and lxml
hands out its declarations, so reading is lxml's. What is written here is the rest: content models as plain trees, the
root, the checks that a generator relies on (every name is declared, the root can be finished in finitely many
levels), and that nothing is fetched: a DTD may pull in files of its own folder, nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

from lxml import etree

from xsift.errors import WorkloadError

__all__ = ["NEVER", "Attribute", "Dtd", "Element", "Particle", "read_dtd", "shipped_dtds"]

Occurrence = Literal["once", "optional", "any", "many"]
ParticleKind = Literal["text", "element", "sequence", "choice"]
ElementKind = Literal["empty", "mixed", "children"]
AttributeKind = Literal["number", "enumeration", "id", "reference", "entity", "namespace"]

NEVER = 1 << 20
"""Levels (or bytes) needed to finish what cannot be finished."""

_OCCURRENCES: dict[str, Occurrence] = {"once": "once", "opt": "optional", "mult": "any", "plus": "many"}
_ATTRIBUTE_KINDS: dict[str, AttributeKind] = {
    "cdata": "number",
    "nmtoken": "number",
    "nmtokens": "number",
    "enumeration": "enumeration",
    "notation": "enumeration",
    "id": "id",
    "idref": "reference",
    "idrefs": "reference",
    "entity": "entity",
    "entities": "entity",
}


@dataclass(frozen=True, slots=True)
class Particle:
    """A node of a content model. `name` is set for elements, `parts` for sequences and choices."""

    kind: ParticleKind
    occurrence: Occurrence = "once"
    name: str = ""
    parts: tuple[Particle, ...] = ()

    def names(self) -> Iterator[str]:
        """The element names in the order written, repetitions included."""
        if self.kind == "element":
            yield self.name
        for part in self.parts:
            yield from part.names()


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute. `kind` says what its values look like; `values` lists those of an enumeration."""

    name: str
    kind: AttributeKind
    required: bool = False
    values: tuple[str, ...] = ()
    default: str | None = None
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class Element:
    """A declared element. `content` of a mixed one is a choice whose first part is text, any number of times."""

    name: str
    kind: ElementKind
    content: Particle | None
    attributes: tuple[Attribute, ...] = ()
    children: tuple[str, ...] = field(default=())
    """The names that may be its children, each once, in the order written."""


@dataclass(frozen=True)
class Dtd:
    """The declarations of a DTD, and its root."""

    name: str
    root: str
    elements: dict[str, Element]

    @cached_property
    def least_levels(self) -> dict[str, int]:
        """For each element the levels of the shallowest way to finish it, itself included; NEVER if there is none."""
        levels = dict.fromkeys(self.elements, NEVER)
        changed = True
        while changed:
            changed = False
            for name, element in self.elements.items():
                needed = min(NEVER, 1 + (least_levels_of(element.content, levels) if element.content else 0))
                if needed < levels[name]:
                    levels[name] = needed
                    changed = True
        return levels

    @cached_property
    def reachable(self) -> tuple[str, ...]:
        """The elements that can occur in a document, in the order declared."""
        seen = {self.root}
        todo = [self.root]
        while todo:
            for child in self.elements[todo.pop()].children:
                if child not in seen and self.least_levels[child] < NEVER:
                    seen.add(child)
                    todo.append(child)
        return tuple(name for name in self.elements if name in seen)


def least_levels_of(particle: Particle, levels: dict[str, int]) -> int:
    """The levels that a particle needs below its element when every choice is the shallowest."""
    if particle.occurrence in ("optional", "any") or particle.kind == "text":
        return 0
    if particle.kind == "element":
        return levels[particle.name]
    needed = [least_levels_of(part, levels) for part in particle.parts]
    return max(needed) if particle.kind == "sequence" else min(needed)


def shipped_dtds() -> tuple[str, ...]:
    """The names of the DTDs that come with xsift."""
    folder = resources.files("xsift.workload") / "dtds"
    return tuple(sorted(file.name.removesuffix(".dtd") for file in folder.iterdir() if file.name.endswith(".dtd")))


def read_dtd(source: str | Path, root: str | None = None) -> Dtd:
    """Reads a DTD that comes with xsift, by name, or any other, by path.

    The root is the one named, or the first declared element that is no other element's child.
    """
    name, text, folder = _load(source)
    declared = _parse(name, text, folder)
    elements = _elements(declared)
    if not elements:
        raise WorkloadError("dtd-is-empty", f"The DTD {name!r} declares no element", hint="is it the right file?")
    _check_declared(name, elements)
    dtd = Dtd(name, _root(name, elements, root), elements)
    if dtd.least_levels[dtd.root] >= NEVER:
        endless = [element for element, levels in dtd.least_levels.items() if levels >= NEVER]
        raise WorkloadError(
            "no-finite-document",
            f"The DTD {name!r} allows no finite document with the root {dtd.root!r}",
            hint=f"these elements always require another one of themselves: {_some(endless)}",
        )
    return dtd


def _load(source: str | Path) -> tuple[str, bytes, Path | None]:
    """The DTD's name, its bytes, and the folder whose files it may include."""
    if isinstance(source, str) and source in shipped_dtds():
        return source, (resources.files("xsift.workload") / "dtds" / f"{source}.dtd").read_bytes(), None
    path = Path(source)
    try:
        return path.stem, path.read_bytes(), path.resolve().parent
    except OSError as error:
        raise WorkloadError(
            "dtd-not-found",
            f"The DTD {str(source)!r} cannot be read ({error.strerror or error})",
            hint=f"give the path of a file, or one of: {', '.join(shipped_dtds())}",
        ) from error


class _OwnFolder(etree.Resolver):
    """Hands libxml2 the DTD's own text and the files of its folder, and refuses everything else."""

    def __init__(self, text: bytes, folder: Path | None) -> None:
        super().__init__()
        self.text = text
        self.folder = folder
        self.first = True

    def resolve(self, system_url: str, public_id: str, context: Any) -> Any:  # type: ignore[override]
        if self.first:
            self.first = False
            return self.resolve_string(self.text, context, base_url="xsift.dtd")
        wanted = unquote(system_url)
        if self.folder is not None and "://" not in wanted:
            path = (self.folder / wanted).resolve()
            if path.is_relative_to(self.folder) and path.is_file():
                return self.resolve_string(path.read_bytes(), context, base_url=wanted)
        raise WorkloadError(
            "external-entity",
            f"The DTD refers to {system_url!r}, which is not a file in its own folder",
            hint="nothing is fetched: put that file beside the DTD, or its text in place of the reference",
        )


def _parse(name: str, text: bytes, folder: Path | None) -> Any:
    """libxml2's declarations. The DTD is read as the external subset of an otherwise empty document: unlike
    lxml.etree.DTD(file), that way asks a resolver for every file."""
    parser = etree.XMLParser(load_dtd=True, no_network=True, resolve_entities=False, attribute_defaults=False)
    parser.resolvers.add(_OwnFolder(text, folder))
    try:
        document = etree.fromstring(b'<!DOCTYPE x SYSTEM "xsift.dtd"><x/>', parser)
        failures = [entry for entry in parser.error_log if entry.level_name != "WARNING"]
        line, message = (failures[0].line, failures[0].message) if failures else (0, "")
    except etree.XMLSyntaxError as error:
        line, message = error.lineno or 0, error.msg or "not a DTD"
    if message:
        raise WorkloadError(
            "dtd-not-readable",
            f"The DTD {name!r} cannot be read, line {line}: {message}",
            hint="it must be a file of declarations (<!ELEMENT …>), not a document",
        )
    return document.getroottree().docinfo.externalDTD


def _elements(declared: Any) -> dict[str, Element]:
    declarations = list(declared.iterelements()) if declared is not None else []
    names = _Names(map(_name, declarations))
    elements = {}
    for name, declaration in zip(names.names, declarations, strict=True):
        kind, content = _content(declaration, names)
        # libxml2 gives attributes in an order of its own, which differs between its versions.
        attributes = sorted(map(_attribute, declaration.iterattributes()), key=lambda attribute: attribute.name)
        children = tuple(dict.fromkeys(content.names())) if content else ()
        elements[name] = Element(name, kind, content, tuple(attributes), children)
    return elements


def _name(declaration: Any) -> str:
    return f"{declaration.prefix}:{declaration.name}" if declaration.prefix else str(declaration.name)


class _Names:
    """The declared names. lxml gives the names in a content model without their prefix: `full` puts it back."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)
        self.by_local: dict[str, list[str]] = {}
        for name in self.names:
            self.by_local.setdefault(name.rpartition(":")[2], []).append(name)

    def full(self, local: str) -> str:
        found = self.by_local.get(local, [local])
        if len(found) > 1:
            raise WorkloadError(
                "ambiguous-prefix",
                f"The DTD declares {_some(found)}, which differ only in their prefix",
                hint="rename all but one of them",
            )
        return found[0]


def _content(declaration: Any, names: _Names) -> tuple[ElementKind, Particle | None]:
    text = Particle("text")
    if declaration.type == "any":
        every = tuple(Particle("element", name=name) for name in names.names)
        return "mixed", Particle("choice", "any", parts=(text, *every))
    if declaration.type != "empty" and declaration.content is not None:
        particle = _particle(declaration.content, names)
        if declaration.type != "mixed":
            return "children", particle
        return "mixed", Particle("choice", "any", parts=particle.parts or (text,))
    return "empty", None


def _particle(content: Any, names: _Names) -> Particle:
    """libxml2 keeps `a, b, c` as (a, (b, c)): flat parts again, without recursion along the list."""
    occurrence = _OCCURRENCES[content.occur]
    if content.type == "pcdata":
        return Particle("text")
    if content.type == "element":
        return Particle("element", occurrence, names.full(content.name))
    parts = []
    rest = content
    while rest.type == content.type and (rest is content or rest.occur == "once"):
        parts.append(_particle(rest.left, names))
        rest = rest.right
    parts.append(_particle(rest, names))
    return Particle("sequence" if content.type == "seq" else "choice", occurrence, parts=tuple(parts))


def _attribute(declaration: Any) -> Attribute:
    name = _name(declaration)
    kind = _ATTRIBUTE_KINDS[declaration.type]
    default = declaration.default_value
    if name == "xmlns" or name.startswith("xmlns:"):
        kind = "namespace"
    return Attribute(
        name,
        kind,
        required=declaration.default == "required",
        values=tuple(declaration.itervalues()) if kind == "enumeration" else (),
        # libxml2 keeps the ampersand of a default escaped, and only that.
        default=default.replace("&#38;", "&") if default is not None else None,
        fixed=declaration.default == "fixed",
    )


def _check_declared(name: str, elements: dict[str, Element]) -> None:
    missing = sorted({child for element in elements.values() for child in element.children} - elements.keys())
    if missing:
        raise WorkloadError(
            "element-not-declared",
            f"The DTD {name!r} refers to elements that it does not declare: {_some(missing)}",
            hint="add an <!ELEMENT …> declaration for each",
        )


def _root(name: str, elements: dict[str, Element], root: str | None) -> str:
    if root is None:
        inner = {child for element in elements.values() for child in element.children if child != element.name}
        return next((candidate for candidate in elements if candidate not in inner), next(iter(elements)))
    if root not in elements:
        raise WorkloadError(
            "root-not-declared",
            f"The DTD {name!r} does not declare the root {root!r}",
            hint=f"it declares: {_some(elements)}",
        )
    return root


def _some(names: Iterable[str]) -> str:
    """A list of names for an error, cut where it gets long."""
    listed = list(names)
    return ", ".join(listed[:10]) + (f" and {len(listed) - 10} more" if len(listed) > 10 else "")
