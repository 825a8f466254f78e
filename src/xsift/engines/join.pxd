from libcpp.vector cimport vector

from xsift.engines.branches cimport Ascent, BranchIndex, SearchStep
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint32_t, uint64_t

cdef struct OpenedElement:
    int32_t parent        # element 0 stands for the document, and is its own parent
    int32_t level         # the root's is 1
    symbol_t symbol

cdef struct Hit:
    int32_t element       # where a path ended; if its last step is a condition, the element for which that held
    int32_t previous      # the hit of the same path before this one, or -1

cdef struct Elements:
    uint32_t version      # of the join; else it is out of date
    int32_t number
    int32_t last          # the last of them in document order
    int32_t place         # where in the pool they are; in descending order, so that `last` comes first

cdef struct Candidate:
    int32_t key           # a twig all of whose paths have matched
    int32_t place         # its outermost branch, as in BranchIndex.branch_place


cdef class TwigJoin:
    cdef BranchIndex index
    # What is noted while a document is read.
    cdef vector[uint64_t] matched             # one bit for each key: the patterns that have matched
    cdef vector[OpenedElement] elements       # in document order
    cdef int32_t innermost                    # the innermost open element
    cdef vector[Hit] hits
    cdef vector[int32_t] last_hit             # by path, or -1
    cdef vector[uint64_t] is_hit              # one bit for each path: it has matched in this document
    cdef vector[int32_t] hit_paths            # the paths that have
    # What is found out at the end.
    cdef int64_t evaluated                    # candidates so far, over all documents
    cdef vector[Candidate] candidates
    cdef uint32_t version                     # of what is below; older ones are not looked at
    cdef vector[int32_t] pool                 # the elements of all sets
    cdef vector[Elements] reached             # by ascent
    cdef vector[Elements] satisfied           # by branch
    cdef Elements common                      # what intersect() found
    # For a search: an element with its ancestors, by level, and the levels at which a step can be, ascending.
    cdef vector[int32_t] chain
    cdef vector[int32_t] levels
    cdef vector[int32_t] new_levels
    cdef vector[int32_t] levels_below
    # After notes were given up because there were too many of them.
    cdef int64_t note_limit
    cdef size_t most_notes                    # elements and hits that may be noted before that happens again
    cdef vector[vector[int32_t]] carried      # by ascent: open elements that it had reached; empty if it never happened

    # For a new document, with so many numbers for paths. `note_limit` elements and hits are noted before those that are
    # not needed any more are given up.
    cdef int begin(self, size_t paths, int64_t note_limit) except -1 nogil
    # At each start tag, before what ends there is noted, and at each end tag.
    cdef inline int element_starts(self, symbol_t symbol) except -1 nogil:
        if self.elements.size() + self.hits.size() >= self.most_notes:
            self.give_up_notes()
        return self.push_element(symbol)
    cdef inline void element_ends(self) noexcept nogil:
        self.innermost = self.elements[self.innermost].parent
    # A path ends at an element, or in a condition that holds for it.
    cdef inline int note_hit(self, int32_t path, int32_t element) except -1 nogil:
        cdef int32_t previous = self.last_hit[path]
        if previous < 0:
            self.note_path(path)
        elif self.hits[previous].element == element:
            return 0
        self.last_hit[path] = <int32_t>self.hits.size()
        self.hits.push_back(Hit(element, previous))
        return 0
    # Marks the twigs that match.
    cdef int evaluate(self) except -1 nogil
    cdef inline void mark(self, int32_t key) noexcept nogil:
        self.matched[key >> 6] |= <uint64_t>1 << (key & 63)
    cdef int64_t bytes(self) noexcept

    # For an engine that finds out at the end only where paths matched: it pushes elements, and notes which paths matched;
    # then it lists the candidates, notes the hits of their paths, and has them evaluated, all at once or by and by.
    cdef inline int push_element(self, symbol_t symbol) except -1 nogil:
        cdef int32_t parent = self.innermost
        self.innermost = <int32_t>self.elements.size()
        self.elements.push_back(OpenedElement(parent, self.elements[parent].level + 1, symbol))
        return 0
    cdef inline int note_path(self, int32_t path) except -1 nogil:
        if not self.has_hit(path):
            self.is_hit[path >> 6] |= <uint64_t>1 << (path & 63)
            self.hit_paths.push_back(path)
        return 0
    cdef int list_candidates(self) except -1 nogil
    cdef int evaluate_candidates(self) except -1 nogil
    cdef int forget_hits(self) except -1 nogil

    # Its own parts.
    cdef inline bint has_hit(self, int32_t path) noexcept nogil:
        return self.is_hit[path >> 6] >> (path & 63) & 1
    cdef bint all_hit(self, int32_t key) noexcept nogil
    cdef int forget_sets(self) except -1 nogil
    cdef int give_up_notes(self) except -1 nogil
    cdef bint has_witness(self, const int32_t* branch) except -1 nogil
    cdef bint is_common(self, const Elements* one, const Elements* other) noexcept nogil
    cdef int satisfy(self, int32_t branch) except -1 nogil
    cdef int intersect(self, const int32_t* branch) except -1 nogil
    cdef int intersect_with(self, const Elements* other) except -1 nogil
    cdef inline int reach(self, int32_t ascent) except -1 nogil:
        if self.reached[ascent].version != self.version:
            self.ascend(ascent)
        return 0
    cdef int ascend(self, int32_t ascent) except -1 nogil
    cdef inline Elements set_at(self, int32_t place) noexcept nogil:
        cdef int32_t number = <int32_t>self.pool.size() - place
        return Elements(self.version, number, self.pool[place] if number else 0, place)
    cdef bint has_start(self, const Ascent* ascent) noexcept nogil
    cdef int start(self, const Ascent* ascent) except -1 nogil
    cdef int put_in_order(self, int32_t place) except -1 nogil
    cdef int climb(self, const Ascent* ascent, int32_t place) except -1 nogil
    cdef int search(self, const Ascent* ascent, int32_t place) except -1 nogil
    cdef int search_above(self, const Ascent* ascent, int32_t element) except -1 nogil
    cdef int go_up(self, const SearchStep* step) except -1 nogil
    cdef int go_down(self, const SearchStep* step, int32_t deepest) except -1 nogil
