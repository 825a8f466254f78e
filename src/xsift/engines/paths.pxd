from libcpp.vector cimport vector

from xsift.engines.base cimport Engine, Scratch
from xsift.native.tables cimport BytesTable, FlatMap
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint8_t, uint32_t, uint64_t
from xsift.xpath.pattern cimport Pattern

cdef struct PathStep:
    symbol_t symbol
    uint8_t axis
    uint8_t is_condition  # only the last step of a path can be one

cdef struct TwigStep:
    symbol_t symbol
    int32_t parent        # -1 for the first step
    int32_t branch        # first word of this step's bits, if it has several children; else -1
    int32_t child_number  # among the children of its parent
    int32_t children
    uint8_t axis
    uint8_t is_condition

cdef struct PathUser:
    int32_t key           # a twig that has the path ...
    int32_t leaf          # ... ending in this step of it
    int32_t branch_step   # the number of steps from the path's start to the nearest branching step above the leaf


cdef class PathScratch(Scratch):
    # The open elements, outermost first: open[i] has level i + 1. Kept only while there are twigs.
    cdef vector[symbol_t] open
    # For an open element and a branching step: the children of the step that are satisfied below it, as bits.
    cdef FlatMap[uint64_t] satisfied
    # The keys in `satisfied`, by level, so that closing an element costs what was set for it.
    cdef vector[vector[uint64_t]] touched
    cdef vector[uint32_t] matched_at  # by key: the epoch in which it matched
    cdef uint32_t epoch
    cdef vector[int32_t] matched      # the keys of this epoch
    cdef vector[int32_t] levels       # candidates for a branching step, in path_matched
    cdef vector[int32_t] above


cdef class PathEngine(Engine):
    # Distinct root-to-leaf paths. path_steps[path] is empty for a number that is free.
    cdef BytesTable path_keys
    cdef vector[vector[PathStep]] path_steps
    cdef vector[int32_t] path_pattern        # the key of the pattern that is just this path, or -1
    cdef vector[vector[PathUser]] path_users
    cdef FlatMap[int32_t] user_index         # pack(key, leaf) -> its place in path_users
    # Patterns. Of a twig, its steps; of a linear pattern, nothing but its path.
    cdef vector[vector[TwigStep]] twigs
    cdef vector[int32_t] pattern_path        # the path of a linear pattern; -1: a twig; -2: the key is free
    cdef vector[int32_t] free_keys
    cdef int64_t next_word                   # numbers the words of bits of branching steps
    cdef Py_ssize_t pattern_count
    cdef Py_ssize_t twig_count

    # An engine of linear paths implements these two; `path` is new, or is used by no pattern any more.
    cdef int insert_path(self, int32_t path) except -1
    cdef int delete_path(self, int32_t path) except -1

    # It calls these while it reads a document.
    cdef int begin(self, Scratch scratch) except -1 nogil
    cdef int finish(self, Scratch scratch, vector[int32_t]* keys) except -1 nogil
    cdef inline int element_starts(self, PathScratch scratch, symbol_t symbol) except -1 nogil:
        if self.twig_count:
            self.push_element(scratch, symbol)
        return 0
    cdef inline int element_ends(self, PathScratch scratch) noexcept nogil:
        if self.twig_count:
            self.pop_element(scratch)
        return 0
    # The path matches, and its last step is the innermost open element, or a condition that holds for it.
    cdef int path_matched(self, PathScratch scratch, int32_t path) except -1 nogil

    cdef int begin_join(self, PathScratch scratch) except -1 nogil
    cdef int push_element(self, PathScratch scratch, symbol_t symbol) except -1 nogil
    cdef void pop_element(self, PathScratch scratch) noexcept nogil
    cdef int leaf_matched(self, PathScratch scratch, PathUser user, bint reuse_levels) except -1 nogil
    cdef int child_satisfied(self, PathScratch scratch, int32_t key, int32_t child, int32_t level) except -1 nogil
    cdef int climb(self, PathScratch scratch, const TwigStep* steps, int32_t step) except -1 nogil
    cdef int match_key(self, PathScratch scratch, int32_t key) except -1 nogil
