"""Writes documents: the compiled half of the document generator (`documents.py` is the other).

The naive way is a recursive Python function over the content models that appends to a list. It makes about 1,700
documents of 8 KB a second, before it keeps to a size or numbers its identifiers; drawing random numbers is what takes
the time. This is the same recursion over flat tables, eight times as fast.

A document is written from left to right into one buffer, by these rules:

- Levels are counted down. What needs more levels to finish than are left is never begun (`levels_once`,
  `levels_least`), so the document always ends in time, by the shallowest way if need be.
- Bytes have a limit. Once it is reached, everything optional is left out and the smallest alternative is taken.
- If a size is asked for, the repetitions nearest to the root are `elastic`: they go on until their share of the
  limit is written. Shares are in proportion to what the parts of a sequence would take if left alone.
- References (IDREF) may point forward, so they are put in at the end, when it is known which identifiers exist.

Random numbers are splitmix64, seeded from the seed and the document's number: document 17 is the same bytes on every
machine, whether or not the first 16 were made.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libcpp.algorithm cimport upper_bound
from libcpp.string cimport string, to_string
from libcpp.vector cimport vector

from xsift.errors import WorkloadError

cdef enum ParticleKind:
    ELEMENT
    SEQUENCE
    CHOICE
    MIXED

cdef enum Occurrence:
    ONCE
    OPTIONAL
    ANY
    MANY

cdef enum AttributeKind:
    NUMBER
    ENUMERATION
    CONSTANT
    IDENTIFIER
    REFERENCE

cdef enum:
    SLACK = 1 << 24  # bytes beyond its limit after which a document is given up: its DTD requires too much

cdef struct Particle:
    int32_t kind
    int32_t occurrence
    int32_t element       # the element's number, for ELEMENT
    int32_t first         # where its parts begin in `parts`
    int32_t count         # how many parts it has
    int32_t levels_once   # levels that one occurrence needs
    int32_t levels_least  # levels that it needs if every choice is the shallowest: 0 if it may be left out
    int32_t grows         # whether it can take in more bytes by repeating something
    int64_t bytes_least   # bytes of the smallest way to write it

cdef struct Element:
    int32_t content          # a particle, -1 for EMPTY
    int32_t first_attribute  # where its attributes begin
    int32_t attributes       # how many it has

cdef struct Attribute:
    int32_t kind
    int32_t required
    int32_t first   # where its values begin, for ENUMERATION and CONSTANT
    int32_t table   # the distribution of its values

cdef struct Table:
    int32_t size    # values in the domain
    int32_t first   # where its cumulative probabilities begin, -1 if all are equal

cdef struct Patch:
    int64_t offset     # where in the buffer the attribute goes
    int32_t attribute
    int32_t is_slot    # a place where an optional identifier was left out


cdef inline uint64_t mix(uint64_t z) noexcept nogil:
    z = (z ^ (z >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * <uint64_t>0x94D049BB133111EB
    return z ^ (z >> 31)


cdef class DocumentWriter:
    """Tables in, documents out. Made by `documents.DocumentGenerator`, which describes the tables."""

    cdef vector[Particle] particles
    cdef vector[int32_t] parts
    cdef vector[Element] elements
    cdef vector[string] names
    cdef vector[Attribute] attributes
    cdef vector[string] attribute_names
    cdef vector[string] values
    cdef vector[string] words
    cdef vector[Table] tables
    cdef vector[double] cumulative
    cdef vector[double] weights  # expected bytes of a particle, by particle and levels left

    cdef int32_t root
    cdef int32_t levels
    cdef int32_t repeats
    cdef int32_t text_words
    cdef double optional_odds
    cdef double attribute_odds
    cdef int64_t limit
    cdef bint elastic
    cdef uint64_t seed

    # What changes while a document is written.
    cdef uint64_t state
    cdef string buffer
    cdef int64_t identifiers
    cdef int64_t reference_bytes  # about what the references will take
    cdef bint slot_kept
    cdef vector[Patch] patches

    def __init__(self, *, particles, parts, elements, attributes, values, words, tables, cumulative, weights,
                 int root, int levels, int repeats, int text_words, double optional_odds, double attribute_odds,
                 int64_t limit, bint elastic, uint64_t seed):
        cdef int32_t kind, occurrence, element, first, count, once, least, grows, content, required, table, size
        cdef int64_t smallest
        for kind, occurrence, element, first, count, once, least, grows, smallest in particles:
            self.particles.push_back(Particle(kind, occurrence, element, first, count, once, least, grows, smallest))
        self.parts = parts
        for name, content, first, count in elements:
            self.names.push_back(<string>name)
            self.elements.push_back(Element(content, first, count))
        for name, kind, required, first, table in attributes:
            self.attribute_names.push_back(<string>name)
            self.attributes.push_back(Attribute(kind, required, first, table))
        self.values = values
        self.words = words
        for size, first in tables:
            self.tables.push_back(Table(size, first))
        self.cumulative = cumulative
        self.weights = weights
        self.root = root
        self.levels = levels
        self.repeats = repeats
        self.text_words = text_words
        self.optional_odds = optional_odds
        self.attribute_odds = attribute_odds
        self.limit = limit
        self.elastic = elastic
        self.seed = seed

    def document(self, uint64_t number):
        """The document with this number, as UTF-8 bytes."""
        self.state = mix(mix(self.seed) + number * <uint64_t>0xD1342543DE82EF95)
        self.buffer.clear()
        self.patches.clear()
        self.identifiers = 0
        self.reference_bytes = 0
        self.slot_kept = False
        # With the GIL held: the buffer is one for all threads.
        self.write_element(self.root, self.levels - 1, self.limit, self.elastic)
        return <bytes>self.buffer if self.patches.empty() else self.patched()

    # Random numbers.

    cdef inline uint64_t draw(self) noexcept nogil:
        self.state += <uint64_t>0x9E3779B97F4A7C15
        return mix(self.state)

    cdef inline int32_t below(self, int32_t bound) noexcept nogil:
        return <int32_t>(((self.draw() >> 32) * <uint64_t>bound) >> 32)

    cdef inline double unit(self) noexcept nogil:
        return <double>(self.draw() >> 11) * (1.0 / 9007199254740992.0)

    cdef inline bint chance(self, double odds) noexcept nogil:
        return self.unit() < odds

    cdef int32_t pick(self, int32_t index) noexcept nogil:
        """A value of the domain that this table describes, counted from 0."""
        cdef Table* table = &self.tables[index]
        cdef double* begin
        if table.first < 0:
            return self.below(table.size)
        begin = self.cumulative.data() + table.first
        return <int32_t>(upper_bound(begin, begin + table.size - 1, self.unit()) - begin)

    # Elements.

    cdef int write_element(self, int32_t number, int32_t room, int64_t limit, bint elastic) except -1 nogil:
        """An element with its content. `room` is the number of levels left below it."""
        cdef Element* element = &self.elements[number]
        cdef size_t begun
        if <int64_t>self.buffer.size() > self.limit + SLACK:
            with gil:
                raise WorkloadError(
                    "document-too-large",
                    "What the DTD requires, within the levels allowed, takes over 16 MiB more than a document may",
                    hint="allow more levels, or remove required parts from the DTD")
        self.buffer.push_back(c'<')
        self.buffer.append(self.names[number])
        self.write_attributes(element)
        self.buffer.push_back(c'>')
        begun = self.buffer.size()
        if element.content >= 0:
            self.write_particle(element.content, room, limit, elastic)
        if self.buffer.size() == begun:
            self.buffer[begun - 1] = c'/'
            self.buffer.push_back(c'>')
            return 0
        self.buffer.append(b"</")
        self.buffer.append(self.names[number])
        self.buffer.push_back(c'>')
        return 0

    cdef int write_attributes(self, Element* element) except -1 nogil:
        cdef int32_t index
        cdef Attribute* attribute
        cdef bint wanted
        for index in range(element.first_attribute, element.first_attribute + element.attributes):
            attribute = &self.attributes[index]
            wanted = attribute.required or self.chance(self.attribute_odds)
            if attribute.kind == REFERENCE:
                if wanted:
                    self.patches.push_back(Patch(<int64_t>self.buffer.size(), index, 0))
                    self.reference_bytes += self.attribute_names[index].size() + 7
            elif attribute.kind == IDENTIFIER and not wanted:
                if not self.slot_kept:
                    self.slot_kept = True
                    self.patches.push_back(Patch(<int64_t>self.buffer.size(), index, 1))
            elif wanted:
                self.open_attribute(self.buffer, index)
                if attribute.kind == NUMBER:
                    self.buffer.append(to_string(self.pick(attribute.table) + 1))
                elif attribute.kind == IDENTIFIER:
                    self.identifiers += 1
                    self.buffer.push_back(c'i')
                    self.buffer.append(to_string(self.identifiers))
                else:
                    self.buffer.append(self.values[attribute.first + self.pick(attribute.table)])
                self.buffer.push_back(c'"')
        return 0

    cdef int open_attribute(self, string& out, int32_t index) except -1 nogil:
        out.push_back(c' ')
        out.append(self.attribute_names[index])
        out.append(b'="')
        return 0

    cdef int write_text(self) except -1 nogil:
        """One value of the text domain; or, if words are asked for, as often some words."""
        cdef int32_t left
        if self.text_words == 0 or self.chance(0.5):
            self.buffer.append(to_string(self.pick(0) + 1))
            return 0
        left = 1 + self.below(self.text_words)
        while left:
            self.buffer.append(self.words[self.pick(1)])
            left -= 1
            if left:
                self.buffer.push_back(c' ')
        return 0

    # Content.

    cdef inline int64_t written(self) noexcept nogil:
        return <int64_t>self.buffer.size() + self.reference_bytes

    cdef inline bint full(self, int64_t limit) noexcept nogil:
        return self.written() >= limit

    cdef inline bint room_for(self, int32_t index, int32_t room, int64_t limit) noexcept nogil:
        """Whether more bytes are left than the particle would take by itself: then it is needed to fill them."""
        return limit - self.written() > self.weight(index, room)

    cdef int write_particle(self, int32_t index, int32_t room, int64_t limit, bint elastic) except -1 nogil:
        """A particle as often as its occurrence allows, chance has it and the limit lets it."""
        cdef Particle* particle = &self.particles[index]
        cdef int32_t least = 1 if particle.occurrence == ONCE or particle.occurrence == MANY else 0
        cdef int32_t wanted = least
        cdef int32_t done = 0
        cdef bint repeating = particle.occurrence == ANY or particle.occurrence == MANY
        cdef size_t before
        if particle.kind == MIXED:
            return self.write_mixed(particle, room, limit, elastic)
        if particle.levels_once > room:
            return 0  # it may be left out, or it would not have been begun
        if particle.occurrence == OPTIONAL:
            wanted = self.chance(self.optional_odds) or (elastic and self.room_for(index, room, limit))
        elif repeating and (least or self.chance(self.optional_odds)):
            wanted = 1 + self.below(self.repeats)
        while done < wanted and (done < least or not self.full(limit)):
            self.write_once(particle, room, limit, elastic and not repeating)
            done += 1
        while elastic and repeating and not self.full(limit):
            before = self.buffer.size()
            self.write_once(particle, room, limit, False)
            if self.buffer.size() == before:
                break
        return 0

    cdef int write_once(self, Particle* particle, int32_t room, int64_t limit, bint elastic) except -1 nogil:
        if particle.kind == ELEMENT:
            return self.write_element(particle.element, room - 1, limit, elastic)
        if particle.kind == SEQUENCE:
            return self.write_sequence(particle, room, limit, elastic)
        return self.write_particle(self.choose(particle, room, limit, elastic), room, limit, elastic)

    cdef int write_sequence(self, Particle* particle, int32_t room, int64_t limit, bint elastic) except -1 nogil:
        cdef int32_t at, part
        cdef double weight, left = 0
        cdef int64_t share, written
        if not elastic:
            for at in range(particle.first, particle.first + particle.count):
                self.write_particle(self.parts[at], room, limit, False)
            return 0
        for at in range(particle.first, particle.first + particle.count):
            left += self.weight(self.parts[at], room)
        for at in range(particle.first, particle.first + particle.count):
            part = self.parts[at]
            weight = self.weight(part, room)
            written = self.written()
            share = limit
            if weight < left and limit > written:
                share = written + <int64_t>(<double>(limit - written) * weight / left)
            left -= weight
            self.write_particle(part, room, share if self.particles[part].grows else limit, self.particles[part].grows)
        return 0

    cdef inline double weight(self, int32_t part, int32_t room) noexcept nogil:
        return self.weights[part * (self.levels + 1) + room]

    cdef int32_t choose(self, Particle* particle, int32_t room, int64_t limit, bint elastic) noexcept nogil:
        """An alternative that can be finished: any, or one that grows if elastic, or the smallest beyond the limit."""
        cdef int32_t at, part, possible = 0, chosen = -1, growing = 0
        cdef bint smallest = self.full(limit)
        for at in range(particle.first, particle.first + particle.count):
            if self.particles[self.parts[at]].levels_least <= room:
                possible += 1
                growing += self.particles[self.parts[at]].grows
        elastic = elastic and growing > 0
        if not smallest:
            possible = self.below(growing if elastic else possible)
        for at in range(particle.first, particle.first + particle.count):
            part = self.parts[at]
            if self.particles[part].levels_least > room:
                continue
            if smallest:
                if chosen < 0 or self.particles[part].bytes_least < self.particles[chosen].bytes_least:
                    chosen = part
            elif not elastic or self.particles[part].grows:
                if possible == 0:
                    return part
                possible -= 1
        return chosen

    cdef int write_mixed(self, Particle* particle, int32_t room, int64_t limit, bint elastic) except -1 nogil:
        """Text, then some children, each with text after it or not."""
        cdef int32_t wanted = 0, part
        self.write_text()
        if particle.count and particle.levels_once <= room and self.chance(self.optional_odds):
            wanted = 1 + self.below(self.repeats)
        while particle.count and particle.levels_once <= room and not self.full(limit) and (wanted > 0 or elastic):
            part = self.choose(particle, room, limit, False)
            self.write_element(self.particles[part].element, room - 1, limit, False)
            wanted -= 1
            if self.chance(self.optional_odds):
                self.write_text()
        return 0

    # References.

    cdef bytes patched(self):
        """The document with its references. If there is no identifier to refer to, optional references are left
        out, and for required ones an identifier is put where one may be."""
        cdef string out
        cdef size_t at = 0
        cdef Patch patch
        cdef bint needed = False
        cdef bint missing = self.identifiers == 0
        for patch in self.patches:
            needed = needed or (not patch.is_slot and self.attributes[patch.attribute].required)
        if missing and needed:
            if not self.slot_kept:
                raise WorkloadError(
                    "reference-without-identifier",
                    "The DTD requires a reference (IDREF) in a document that has no identifier (ID) to refer to",
                    hint="make the reference #IMPLIED, or give an element that always occurs an ID attribute")
            self.identifiers = 1
        for patch in self.patches:
            if patch.is_slot and not (missing and needed):
                continue
            if not patch.is_slot and self.identifiers == 0:
                continue
            out.append(self.buffer, at, patch.offset - at)
            at = patch.offset
            self.open_attribute(out, patch.attribute)
            out.push_back(c'i')
            out.append(to_string(1 if patch.is_slot else 1 + self.below(<int32_t>self.identifiers)))
            out.push_back(c'"')
        out.append(self.buffer, at, self.buffer.size() - at)
        return <bytes>out
