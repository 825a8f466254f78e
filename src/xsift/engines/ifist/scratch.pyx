"""IFiSTScratch: what changes while iFiST reads a document. engine.pyx says how it is used.

The run-time stack, the BranchID sets, and what the document has added to the sequence index and to the candidate
lists. Nothing here grows with the document: a BranchID lives as long as its element is open, a candidate is added
once. (But where refinement is a phase of its own, after the document, all elements and BranchIDs are kept for it.)

All BranchID sets are one hash table, keyed by the set and the level of the element. (A linked list per set, innermost
element first, was tried: it needs no hashing, but in a document of a thousand nested elements of one name every
look-up walks through hundreds.)
"""

from xsift.xpath.symbols cimport ANY


cdef class IFiSTScratch(Scratch):
    """The run-time state of one matching thread."""

    def __cinit__(self):
        self.free_entry = -1

    cdef int reset(self, size_t segments, size_t buckets, size_t profiles, symbol_t symbols) except -1 nogil:
        """Makes ready for a document, whatever became of the one before. The sizes are the index's."""
        cdef int32_t i
        while self.depth:
            self.pop()
        for i in self.touched_segments:
            self.states[i].candidates.clear()
            self.states[i].changed = 0
            self.states[i].fresh = 0
            self.states[i].active = self.states[i].touched = False
            self.seen[i >> 6] = 0
            if self.keeps_elements:
                self.pairs[i].clear()
        self.touched_segments.clear()
        for i in self.touched_buckets:
            self.active[i].clear()
        self.touched_buckets.clear()
        self.completions.clear()
        self.elements.clear()
        self.reached.clear()
        self.copy_numbers.clear()
        if self.keeps_elements:
            self.pairs.resize(segments)
        self.states.resize(segments)
        self.seen.resize((segments + 63) >> 6, 0)
        self.active.resize(buckets)
        self.latest.resize(symbols, 0)
        self.clock = self.numbers = 0
        self.matched.clear()
        self.matched_at.resize(profiles, 0)
        self.epoch += 1
        if self.epoch == 0:  # wrapped after 2^32 documents: old epochs must not look like new ones
            self.matched_at.assign(profiles, 0)
            self.epoch = 1
        return 0

    cdef int push(self, symbol_t symbol) except -1 nogil:
        cdef OpenElement* element
        if <size_t>self.depth == self.stack.size():
            self.stack.resize(self.depth + 1)
            self.touched.resize(self.depth + 1)
            self.pending.resize(self.depth + 1)
            self.copies.resize(self.depth + 1)
        element = &self.stack[self.depth]
        self.depth += 1
        self.numbers += 1
        if self.keeps_elements:
            self.elements.push_back(ReadElement(
                self.stack[self.depth - 2].number if self.depth > 1 else 0, 0, symbol))
        element.symbol = symbol
        element.deepest = self.depth
        element.number = self.numbers
        element.changed = 0
        element.same_above = 0
        if <size_t>symbol < self.latest.size():
            element.same_above = self.latest[symbol]
            self.latest[symbol] = self.depth
        return 0

    cdef void pop(self) noexcept nogil:
        """Forgets the innermost element, and takes it out of its BranchID sets."""
        cdef OpenElement* element = &self.stack[self.depth - 1]
        cdef vector[Touched]* sets = &self.touched[self.depth - 1]
        cdef Touched touched
        cdef size_t i
        for i in range(sets.size()):
            touched = sets[0][i]
            self.branch_ids.erase(pack(touched.row, self.depth))
            self.pool[touched.entry].count = self.free_entry
            self.free_entry = touched.entry
        sets.clear()
        self.pending[self.depth - 1].clear()
        for i in range(self.copies[self.depth - 1].size()):
            self.copied.erase(pack(self.copies[self.depth - 1][i].number, self.depth))
        self.copies[self.depth - 1].clear()
        if <size_t>element.symbol < self.latest.size():
            self.latest[element.symbol] = element.same_above
        self.depth -= 1
        if self.depth and self.stack[self.depth - 1].deepest < element.deepest:
            self.stack[self.depth - 1].deepest = element.deepest

    cdef int32_t insert(self, int32_t row, int32_t level) except -1 nogil:
        """Adds the open element at `level`, which must not be there, to a set."""
        cdef int32_t made = self.free_entry
        if made >= 0:
            self.free_entry = self.pool[made].count
        else:
            made = <int32_t>self.pool.size()
            self.pool.resize(made + 1)
        self.pool[made] = BranchID(0, 0, 0)
        self.branch_ids.put(pack(row, level), made)
        self.touched[level - 1].push_back(Touched(row, made))
        self.stack[level - 1].changed = self.clock
        return made

    cdef int insert_pending(self, int32_t row, int32_t level) except -1 nogil:
        """Notes that the open element at `level` can stand for the row's ordered child. It counts when it ends."""
        if self.entry(row, level) < 0:
            self.insert(row, level)
            self.pending[level - 1].push_back(row)
        return 0

    cdef int climb(self, const SegmentStep* step) except -1 nogil:
        """TestPC, TestAD on sets: `levels`, where the step below can be, becomes the levels where `step` can be."""
        cdef int32_t level, limit
        cdef size_t i
        self.above.clear()
        if not step.at_least:
            for i in range(self.levels.size()):
                level = self.levels[i] - step.distance
                if level >= step.lowest and (step.symbol == ANY or self.stack[level - 1].symbol == step.symbol):
                    self.above.push_back(level)
        elif self.levels.size():
            limit = self.levels[0] - step.distance
            if step.symbol == ANY:
                for level in range(limit, step.lowest - 1, -1):
                    self.above.push_back(level)
            else:
                level = self.latest[step.symbol]
                while level > limit and level > 0:
                    level = self.stack[level - 1].same_above
                while level > 0:
                    self.above.push_back(level)
                    level = self.stack[level - 1].same_above
        self.levels.swap(self.above)
        return 0

    cdef int copy_node(self, int32_t segment, int32_t step, int32_t level) except -1 nogil:
        """Copies a node of a segment into the sequence index for the open element at `level`, once."""
        cdef int32_t number = self.copy_numbers.get(pack(segment, step), -1)
        if number < 0:
            number = <int32_t>self.copy_numbers.size()
            self.copy_numbers.put(pack(segment, step), number)
        if self.copied.get(pack(number, level), -1) < 0:
            self.copied.put(pack(number, level), 0)
            self.copies[level - 1].push_back(SequenceCopy(segment, step, number))
        return 0

    cdef int touch_segment(self, int32_t segment) except -1 nogil:
        if not self.states[segment].touched:
            self.states[segment].touched = True
            self.touched_segments.push_back(segment)
        return 0

    cdef int add_candidate(self, int32_t segment, int32_t profile, uint32_t place) except -1 nogil:
        self.touch_segment(segment)
        self.states[segment].candidates.push_back(Candidate(profile, place))
        self.states[segment].changed = self.clock
        return 0

    def memory(self):
        """Bytes held, by structure."""
        cdef int64_t branches = self.pool.capacity() * sizeof(BranchID) + self.branch_ids.bytes()
        cdef int64_t lists = self.states.capacity() * sizeof(SegmentState) + 4 * (
            self.touched_segments.capacity() + self.matched_at.capacity() + self.matched.capacity()
            + 2 * self.seen.capacity())
        cdef int64_t index = self.active.capacity() * sizeof(vector[Look]) + 4 * self.touched_buckets.capacity()
        cdef size_t i
        for i in range(self.touched.size()):
            branches += sizeof(Touched) * self.touched[i].capacity() + 4 * self.pending[i].capacity()
        for i in range(self.states.size()):
            lists += self.states[i].candidates.capacity() * sizeof(Candidate)
        for i in range(self.active.size()):
            index += self.active[i].capacity() * sizeof(Look)
        for i in range(self.copies.size()):
            index += self.copies[i].capacity() * sizeof(SequenceCopy) + sizeof(vector[SequenceCopy])
        index += self.copied.bytes() + self.copy_numbers.bytes()
        branches += self.elements.capacity() * sizeof(ReadElement) + 4 * self.reached.capacity()
        for i in range(self.pairs.size()):
            branches += self.pairs[i].capacity() * sizeof(BranchPair) + sizeof(vector[BranchPair])
        return {"run-time stack": self.stack.capacity() * sizeof(OpenElement) + 4 * self.latest.capacity()
                + 2 * self.touched.capacity() * sizeof(vector[Touched]),
                "run-time BranchID sets": branches, "run-time candidate lists": lists,
                "run-time sequence index": index}
