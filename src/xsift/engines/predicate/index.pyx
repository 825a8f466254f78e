"""PredicateIndex: the distinct predicates of predicate-based filtering, and how a document path is matched with them.

The paper's predicate index (section 4.1.2, Figure 1) finds a predicate by its kind, its tag or tags, its operator
and its value: hash tables down to the tags, then one array per operator, indexed by the value. A path is matched the
other way round: each element asks only for predicates that its tag, position and distances to the open elements can
satisfy.

Matching is incremental. The results of the predicates are stacks: a start tag adds what the new element has a part
in, its end tag takes it back, so that what two document paths share is matched once. One element adds to one
predicate either one pair of occurrence numbers or, for `>=`, pairs that differ in the first number only, which runs
from 1 to some k: one entry `Occurrences` is enough for them, however deep the recursion. An end-of-path predicate
gets the pair (o, o) from the element that is exactly `v` levels below occurrence o: the first of those that satisfy
it.
"""

from libcpp.vector cimport vector

from xsift.native.tables cimport pack
from xsift.xpath.pattern cimport DESCENDANT
from xsift.xpath.symbols cimport ANY


cdef class PathPublication:
    """The open path of a document and the results of the predicates over it: what changes while it is read."""


cdef class PredicateIndex:
    """The distinct predicates, by kind, tags, operator and value."""

    # Encoding (section 3.2).

    cdef int encode(self, const vector[PathStep]& steps, vector[Predicate]* encoding) except -1:
        cdef int32_t previous = -1
        cdef int32_t value = 0
        cdef int32_t tag
        cdef uint8_t operation = EQUAL
        cdef bint is_free = False  # the first tag may be anywhere, so that what follows says all about it
        cdef Predicate first
        cdef size_t i
        for i in range(steps.size()):
            value += 1
            if steps[i].axis == DESCENDANT:
                operation = AT_LEAST
            if steps[i].symbol == ANY:
                continue
            tag = self.tag(steps[i].symbol)
            if previous >= 0:
                encoding.push_back(Predicate(previous, tag, value, 0, RELATIVE, operation))
            elif value == 1 and operation == AT_LEAST:
                is_free = True
                first = Predicate(tag, tag, 1, 0, ABSOLUTE, AT_LEAST)
            else:
                encoding.push_back(Predicate(tag, tag, value, 0, ABSOLUTE, operation))
            previous = tag
            value = 0
            operation = EQUAL
        if previous < 0:
            encoding.push_back(Predicate(-1, -1, value, 0, LENGTH, AT_LEAST))
        elif value:
            encoding.push_back(Predicate(previous, previous, value, 0, END_OF_PATH, AT_LEAST))
        elif is_free and encoding.empty():
            encoding.push_back(first)
        return 0

    cdef int32_t tag(self, symbol_t symbol) except -1:
        """The number of a tag; tags keep their numbers, as symbols do."""
        cdef int32_t tag = self.tag_of_symbol.get(symbol, -1)
        if tag < 0:
            tag = <int32_t>self.tag_symbol.size()
            self.tag_of_symbol.put(symbol, tag)
            self.tag_symbol.push_back(symbol)
            self.absolute.resize(2 * (tag + 1))
            self.end_of_path.resize(tag + 1)
        return tag

    # Insertion and removal.

    cdef int32_t insert(self, Predicate predicate) except -1:
        """The pid of a predicate, new or not; one more use of it."""
        cdef vector[int32_t]* pids = self.place(predicate)
        cdef int32_t pid
        if pids.size() <= <size_t>predicate.value:
            pids.resize(predicate.value + 1, -1)
        pid = pids[0][predicate.value]
        if pid < 0:
            predicate.uses = 0
            pid = self.free_pids.take(self.predicates.size())
            if <size_t>pid == self.predicates.size():
                self.predicates.push_back(predicate)
            else:
                self.predicates[pid] = predicate
            pids[0][predicate.value] = pid
            self.predicate_count += 1
            if predicate.kind == END_OF_PATH:
                self.largest_end = max(self.largest_end, predicate.value)
        self.predicates[pid].uses += 1
        return pid

    cdef int release(self, int32_t pid) except -1:
        """One use less; a predicate without uses is removed."""
        cdef vector[int32_t]* pids
        self.predicates[pid].uses -= 1
        if self.predicates[pid].uses == 0:
            pids = self.place(self.predicates[pid])
            pids[0][self.predicates[pid].value] = -1
            while pids.size() and pids.back() < 0:
                pids.pop_back()
            self.free_pids.give_back(pid)
            self.predicate_count -= 1
        return 0

    cdef vector[int32_t]* place(self, Predicate predicate) except NULL:
        """The array that a predicate is in."""
        cdef int32_t slot
        if predicate.kind == LENGTH:
            return &self.length
        if predicate.kind == ABSOLUTE:
            return &self.absolute[2 * predicate.first + predicate.operation]
        if predicate.kind == END_OF_PATH:
            return &self.end_of_path[predicate.first]
        slot = self.relative_slot.get(pack(predicate.first, predicate.second), -1)
        if slot < 0:
            slot = <int32_t>self.relative.size() // 2
            self.relative_slot.put(pack(predicate.first, predicate.second), slot)
            self.relative.resize(2 * (slot + 1))
        return &self.relative[2 * slot + predicate.operation]

    # Matching (section 4.1.1).

    cdef int prepare(self, PathPublication publication) except -1 nogil:
        """Empties the publication, also of a document that broke off, and makes room for what was added."""
        while publication.first_recorded.size():
            self.retract(publication)
        publication.positions.resize(self.tag_symbol.size())
        publication.results.resize(self.predicates.size())
        return 0

    cdef int match_element(self, PathPublication publication, symbol_t symbol) except -1 nogil:
        self.match_tag(publication, self.tag_of_symbol.get(symbol, -1) if symbol != ANY else -1)
        return self.match_length(publication)

    cdef int match_condition(self, PathPublication publication, symbol_t condition) except -1 nogil:
        return self.match_tag(publication, self.tag_of_symbol.get(condition, -1))

    cdef int match_tag(self, PathPublication publication, int32_t tag) except -1 nogil:
        cdef int32_t position = <int32_t>publication.tags.size() + 1
        cdef int32_t occurrence, slot, value
        cdef const vector[int32_t]* pids
        cdef size_t i
        publication.first_recorded.push_back(<int32_t>publication.recorded.size())
        if tag >= 0:
            occurrence = <int32_t>publication.positions[tag].size() + 1
            pids = &self.absolute[2 * tag + EQUAL]
            if <size_t>position < pids.size() and pids[0][position] >= 0:
                self.record(publication, pids[0][position], Occurrences(occurrence, occurrence, occurrence))
            pids = &self.absolute[2 * tag + AT_LEAST]
            for value in range(1, min(position + 1, <int32_t>pids.size())):
                if pids[0][value] >= 0:
                    self.record(publication, pids[0][value], Occurrences(occurrence, occurrence, occurrence))
            for i in range(publication.present.size()):
                slot = self.relative_slot.get(pack(publication.present[i], tag), -1)
                if slot >= 0:
                    self.match_pair(publication, slot, publication.present[i], occurrence)
            if occurrence == 1:
                publication.present.push_back(tag)
            publication.positions[tag].push_back(position)
        publication.tags.push_back(tag)
        return 0

    cdef int match_pair(self, PathPublication publication, int32_t slot, int32_t tag, int32_t occurrence) except -1 nogil:
        """The relative predicates of the open occurrences of a tag and the new element."""
        cdef const vector[int32_t]* equal = &self.relative[2 * slot + EQUAL]
        cdef const vector[int32_t]* at_least = &self.relative[2 * slot + AT_LEAST]
        cdef const vector[int32_t]* positions = &publication.positions[tag]
        cdef int32_t position = <int32_t>publication.tags.size() + 1
        cdef int32_t above = <int32_t>positions.size()
        cdef int32_t distance, value
        while above > 0:  # from the nearest occurrence on, as far as there are values
            distance = position - positions[0][above - 1]
            if <size_t>distance >= equal.size():
                break
            if equal[0][distance] >= 0:
                self.record(publication, equal[0][distance], Occurrences(above, above, occurrence))
            above -= 1
        above = <int32_t>positions.size()
        for value in range(1, <int32_t>at_least.size()):
            while above > 0 and position - positions[0][above - 1] < value:
                above -= 1
            if above == 0:
                break
            if at_least[0][value] >= 0:
                self.record(publication, at_least[0][value], Occurrences(1, above, occurrence))
        return 0

    cdef int match_length(self, PathPublication publication) except -1 nogil:
        """The end-of-path and length predicates that the new length satisfies and the one before did not."""
        cdef int32_t length = <int32_t>publication.tags.size()
        cdef int32_t value, tag, pid, occurrence, position
        if <size_t>length < self.length.size() and self.length[length] >= 0:
            self.record(publication, self.length[length], Occurrences(0, 0, 0))
        for value in range(1, min(self.largest_end, length - 1) + 1):
            position = length - value
            tag = publication.tags[position - 1]
            if tag >= 0 and <size_t>value < self.end_of_path[tag].size():
                pid = self.end_of_path[tag][value]
                if pid >= 0:
                    occurrence = <int32_t>publication.positions[tag].size()
                    while publication.positions[tag][occurrence - 1] != position:
                        occurrence -= 1
                    self.record(publication, pid, Occurrences(occurrence, occurrence, occurrence))
        return 0

    cdef int record(self, PathPublication publication, int32_t pid, Occurrences entry) except -1 nogil:
        publication.results[pid].push_back(entry)
        publication.recorded.push_back(pid)
        return 0

    cdef void retract(self, PathPublication publication) noexcept nogil:
        cdef int32_t tag = publication.tags.back()
        while <int32_t>publication.recorded.size() > publication.first_recorded.back():
            publication.results[publication.recorded.back()].pop_back()
            publication.recorded.pop_back()
        publication.first_recorded.pop_back()
        publication.tags.pop_back()
        if tag >= 0:
            publication.positions[tag].pop_back()
            if publication.positions[tag].empty():
                publication.present.pop_back()

    cdef int64_t bytes(self) noexcept:
        cdef int64_t size = self.tag_of_symbol.bytes() + self.relative_slot.bytes()
        cdef size_t i
        for i in range(self.absolute.size()):
            size += 4 * self.absolute[i].capacity()
        for i in range(self.relative.size()):
            size += 4 * self.relative[i].capacity()
        for i in range(self.end_of_path.size()):
            size += 4 * self.end_of_path[i].capacity()
        size += sizeof(vector[int32_t]) * (
            self.absolute.capacity() + self.relative.capacity() + self.end_of_path.capacity())
        return (size + self.predicates.capacity() * sizeof(Predicate) + self.free_pids.bytes()
                + 4 * (self.tag_symbol.capacity() + self.length.capacity()))
