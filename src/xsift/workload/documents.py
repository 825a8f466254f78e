"""Makes documents: valid against a DTD, random within parameters, the same bytes for the same seed.

It stands in for IBM's XML Generator, which most of the papers used: a number of levels that no document exceeds, a
maximum number of repetitions, odds for what is optional. On top of it: a size in bytes, and domains of values that
the subscription generator shares.

This half turns content models into the flat tables that `writer.pyx` works on:

- A particle of a content model is a row: its kind, its occurrence, its parts, the levels it needs, the bytes of the
  smallest way to write it, whether it can grow. Equal content models are stored once: Treebank's 200 phrases share
  twelve.
- Its weight for each number of levels left: the bytes it would take on average, if left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from xsift.errors import WorkloadError
from xsift.workload.dtd import NEVER, Attribute, Dtd, Element, Particle, least_levels_of, read_dtd
from xsift.workload.parameters import check_range, check_whole
from xsift.workload.values import cumulative, words
from xsift.workload.writer import DocumentWriter

__all__ = ["DocumentGenerator", "DocumentParameters"]

# The codes that writer.pyx knows.
_ELEMENT, _SEQUENCE, _CHOICE, _MIXED = range(4)
_OCCURRENCES = {"once": 0, "optional": 1, "any": 2, "many": 3}
_NUMBER, _ENUMERATION, _CONSTANT, _IDENTIFIER, _REFERENCE = range(5)

_ENDLESS = 1 << 50
"""Bytes of the smallest way to write what cannot be finished."""

_MOST_FRAMES = 20_000
"""How deep the writer may call itself: about 4 MB of stack."""


@dataclass(frozen=True, kw_only=True)
class DocumentParameters:
    """How documents are made. `docs/workloads.md` says which parameter comes from which paper."""

    dtd: str = "nitf"
    root: str | None = None
    number: int = 1000
    seed: int = 1
    levels: int = 10
    """No document is deeper. The root is on level 1."""
    maximum_repeats: int = 4
    """What may occur any number of times occurs 1 to this many times, or not at all."""
    optional_odds: float = 0.5
    """The probability that what may be left out is there."""
    attribute_odds: float = 0.5
    """The probability that an attribute which is not required is there."""
    size_bytes: int = 0
    """About how large each document is; 0 leaves it to chance."""
    maximum_bytes: int = 1_000_000
    """A document that has grown to this size is finished by the smallest way there is."""
    attribute_values: int = 100
    """The size of the domain of an attribute that is not an enumeration."""
    text_values: int = 100
    """The size of the domain of texts."""
    value_skew: float = 0.0
    """Zipf's skew of values in their domain; 0 makes them equally likely."""
    text_words: int = 0
    """Half of the texts are 1 to this many words instead of a value; 0 for values only."""

    def __post_init__(self) -> None:
        check_whole("number", self.number, 0, 10**12)
        check_whole("levels", self.levels, 1, 1000)
        check_whole("maximum_repeats", self.maximum_repeats, 1, 10**6)
        check_range("optional_odds", self.optional_odds, 0, 1)
        check_range("attribute_odds", self.attribute_odds, 0, 1)
        check_whole("size_bytes", self.size_bytes, 0, 10**8)
        check_whole("maximum_bytes", self.maximum_bytes, 1, 10**8)
        check_whole("attribute_values", self.attribute_values, 1, 10**7)
        check_whole("text_values", self.text_values, 1, 10**7)
        check_range("value_skew", self.value_skew, 0, 10)
        check_whole("text_words", self.text_words, 0, 10**4)


class DocumentGenerator:
    """Documents by number: `generator.document(17)`, or all of them by iteration."""

    def __init__(self, parameters: DocumentParameters, dtd: Dtd | None = None) -> None:
        self.parameters = parameters
        self.dtd = dtd or read_dtd(parameters.dtd, parameters.root)
        needed = self.dtd.least_levels[self.dtd.root]
        if needed > parameters.levels:
            raise WorkloadError(
                "too-few-levels",
                f"A document of {self.dtd.name!r} needs {needed} levels, but only {parameters.levels} are allowed",
                hint=f"allow {needed} or more",
            )
        self._writer = _Tables(self.dtd, parameters).writer()

    def document(self, number: int) -> bytes:
        """One document. It depends on the parameters and its number only, not on what was made before."""
        return self._writer.document(number)

    def __len__(self) -> int:
        return self.parameters.number

    def __reduce__(self) -> tuple[object, ...]:
        # Tables are made again where it arrives: other processes make their share of the documents by number.
        return DocumentGenerator, (self.parameters, self.dtd)

    def __iter__(self) -> Iterator[bytes]:
        return map(self._writer.document, range(self.parameters.number))


@dataclass(slots=True)
class _Row:
    """A particle as the writer takes it. `children` are rows."""

    kind: int
    occurrence: int
    element: int
    children: list[int]
    levels_once: int
    levels_least: int
    bytes_least: int = _ENDLESS
    grows: bool = False


class _Tables:
    """A DTD as the tables that the writer takes."""

    def __init__(self, dtd: Dtd, parameters: DocumentParameters) -> None:
        self.dtd = dtd
        self.parameters = parameters
        self.elements = list(dtd.elements.values())
        self.numbers = {element.name: number for number, element in enumerate(self.elements)}
        self.rows: list[_Row] = []
        self.deepest = 1
        self.content = self._contents()
        self.distributions: list[tuple[int, int]] = []
        self.cumulative: list[float] = []
        self.distribution_of_size: dict[int, int] = {}
        self.attributes: list[tuple[bytes, int, int, int, int]] = []
        self.values: list[bytes] = []

    def writer(self) -> DocumentWriter:
        parameters = self.parameters
        if parameters.levels * (2 * self.deepest + 1) > _MOST_FRAMES:
            raise WorkloadError(
                "too-many-levels",
                f"The content models of {self.dtd.name!r} are nested {self.deepest} deep: too many levels for that",
                hint=f"allow {_MOST_FRAMES // (2 * self.deepest + 1)} levels or fewer",
            )
        # The writer takes distribution 0 for texts and 1 for words.
        self._distribution(parameters.text_values)
        vocabulary = [word.encode() for word in words()]
        self.distributions.append(self._new_distribution(len(vocabulary)))
        attribute_ranges = [self._add_attributes(element) for element in self.elements]
        self._find_smallest()
        self._find_growing()
        starts = [0]
        for row in self.rows:
            starts.append(starts[-1] + len(row.children))
        return DocumentWriter(
            particles=[
                (
                    row.kind,
                    row.occurrence,
                    row.element,
                    start,
                    len(row.children),
                    row.levels_once,
                    row.levels_least,
                    row.grows,
                    row.bytes_least,
                )
                for row, start in zip(self.rows, starts, strict=False)
            ],
            parts=[child for row in self.rows for child in row.children],
            elements=[
                (element.name.encode(), content, *attributes)
                for element, content, attributes in zip(self.elements, self.content, attribute_ranges, strict=True)
            ],
            attributes=self.attributes,
            values=self.values,
            words=vocabulary,
            tables=self.distributions,
            cumulative=self.cumulative,
            weights=self._weights(),
            root=self.numbers[self.dtd.root],
            levels=parameters.levels,
            repeats=parameters.maximum_repeats,
            text_words=parameters.text_words,
            optional_odds=parameters.optional_odds,
            attribute_odds=parameters.attribute_odds,
            limit=parameters.size_bytes or parameters.maximum_bytes,
            elastic=parameters.size_bytes > 0,
            seed=parameters.seed % 2**64,
        )

    # Particles.

    def _contents(self) -> list[int]:
        """The row of each element's content, -1 for none."""
        known: dict[Particle | None, int] = {None: -1}
        for element in self.elements:
            if element.content not in known and element.content is not None:
                known[element.content] = self._add(element.content, 1)
        return [known[element.content] for element in self.elements]

    def _add(self, particle: Particle, depth: int) -> int:
        """Appends a particle, then its parts: a row's children come after it."""
        self.deepest = max(self.deepest, depth)
        number = len(self.rows)
        mixed = particle.kind == "choice" and particle.parts[0].kind == "text"
        kind = _MIXED if mixed else {"element": _ELEMENT, "sequence": _SEQUENCE, "choice": _CHOICE}[particle.kind]
        parts = particle.parts[1:] if mixed else particle.parts
        once = Particle(particle.kind, "once", particle.name, parts)
        nothing = mixed and not parts
        self.rows.append(
            _Row(
                kind,
                _OCCURRENCES[particle.occurrence],
                self.numbers.get(particle.name, -1),
                [],
                NEVER if nothing else least_levels_of(once, self.dtd.least_levels),
                least_levels_of(particle, self.dtd.least_levels),
            )
        )
        self.rows[number].children = [self._add(part, depth + 1) for part in parts]
        return number

    def _find_smallest(self) -> None:
        """The bytes of the smallest way to write each row: a fixed point, since elements contain each other."""
        tags = [len(element.name) + 3 for element in self.elements]
        elements = [_ENDLESS] * len(self.elements)
        changed = True
        while changed:
            for row in reversed(self.rows):
                row.bytes_least = self._smallest(row, elements)
            found = [
                min(_ENDLESS, tag + (self.rows[content].bytes_least + tag if content >= 0 else 0))
                for tag, content in zip(tags, self.content, strict=True)
            ]
            changed = found != elements
            elements = found

    def _smallest(self, row: _Row, elements: list[int]) -> int:
        if row.kind == _MIXED:
            return 1
        if row.occurrence in (_OCCURRENCES["optional"], _OCCURRENCES["any"]):
            return 0
        if row.kind == _ELEMENT:
            return elements[row.element]
        parts = [self.rows[child].bytes_least for child in row.children]
        return min(_ENDLESS, sum(parts)) if row.kind == _SEQUENCE else min(parts)

    def _find_growing(self) -> None:
        """Which rows can take in any number of bytes: those that repeat something, or contain one that does."""
        changed = True
        while changed:
            changed = False
            for row in reversed(self.rows):
                content = self.content[row.element] if row.kind == _ELEMENT else -1
                grows = row.levels_once < NEVER and (
                    row.occurrence in (_OCCURRENCES["any"], _OCCURRENCES["many"])
                    or any(self.rows[child].grows for child in row.children)
                    or (content >= 0 and self.rows[content].grows)
                )
                if grows and not row.grows:
                    row.grows = changed = True

    def _weights(self) -> list[float]:
        """The bytes that each row takes on average, for each number of levels left from 0 on."""
        tags = [2 * len(element.name) + 5 + self._attribute_bytes(element) for element in self.elements]
        elements = [0.0] * len(self.elements)
        by_levels = []
        for room in range(self.parameters.levels + 1):
            found = [0.0] * len(self.rows)
            for number in range(len(self.rows) - 1, -1, -1):
                found[number] = min(1e12, self._weight(self.rows[number], room, found, elements))
            by_levels.append(found)
            elements = [
                tag + (found[content] if content >= 0 else 0.0)
                for tag, content in zip(tags, self.content, strict=True)
            ]
        return [found[number] for number in range(len(self.rows)) for found in by_levels]

    def _weight(self, row: _Row, room: int, found: list[float], elements: list[float]) -> float:
        repeats = (self.parameters.maximum_repeats + 1) / 2
        odds = self.parameters.optional_odds
        times = (1.0, odds, odds * repeats, repeats)[row.occurrence]
        text = 2.0 + 4.0 * self.parameters.text_words
        if row.levels_once > room:
            return text if row.kind == _MIXED else 0.0
        if row.kind == _ELEMENT:
            return times * elements[row.element]
        if row.kind == _SEQUENCE:
            return times * sum(found[child] for child in row.children)
        possible = [found[child] for child in row.children if self.rows[child].levels_least <= room]
        average = sum(possible) / len(possible)
        return text + times * (average + odds * text) if row.kind == _MIXED else times * average

    # Attributes.

    def _add_attributes(self, element: Element) -> tuple[int, int]:
        """Appends an element's attributes, and returns where they begin and how many they are."""
        first = len(self.attributes)
        for attribute in element.attributes:
            if attribute.kind == "entity":
                # Its value would have to name an unparsed entity of the document, and documents have no DOCTYPE.
                if attribute.required and element.name in self.dtd.reachable:
                    raise WorkloadError(
                        "entity-attribute-required",
                        f"The element {element.name!r} requires the attribute {attribute.name!r}, an ENTITY",
                        hint="documents are made without entities: make it #IMPLIED",
                    )
            elif attribute.kind != "namespace" or attribute.default is not None:
                self.attributes.append(self._attribute(attribute))
        return first, len(self.attributes) - first

    def _attribute(self, attribute: Attribute) -> tuple[bytes, int, int, int, int]:
        kind, size, values = _NUMBER, self.parameters.attribute_values, attribute.values
        if attribute.kind == "enumeration":
            kind, size = _ENUMERATION, len(values)
        if attribute.fixed or attribute.kind == "namespace":
            kind, size, values = _CONSTANT, 1, (attribute.default or "",)
        if attribute.kind in ("id", "reference"):
            kind, size = (_IDENTIFIER if attribute.kind == "id" else _REFERENCE), 1
        first = len(self.values)
        self.values.extend(escape(value).encode() for value in values)
        required = attribute.required or attribute.kind == "namespace"
        return attribute.name.encode(), kind, int(required), first, self._distribution(size)

    def _attribute_bytes(self, element: Element) -> float:
        odds = self.parameters.attribute_odds
        return sum((len(known.name) + 6) * (1.0 if known.required else odds) for known in element.attributes)

    def _distribution(self, size: int) -> int:
        """The number of the distribution over a domain of this size."""
        if size not in self.distribution_of_size:
            self.distribution_of_size[size] = len(self.distributions)
            self.distributions.append(self._new_distribution(size))
        return self.distribution_of_size[size]

    def _new_distribution(self, size: int) -> tuple[int, int]:
        if self.parameters.value_skew == 0 or size == 1:
            return size, -1
        first = len(self.cumulative)
        self.cumulative.extend(cumulative(size, self.parameters.value_skew).tolist())
        return size, first
