from libcpp.vector cimport vector

from xsift.engines.base cimport Engine, Scratch
from xsift.engines.branches cimport BranchIndex
from xsift.engines.join cimport TwigJoin
from xsift.native.numbers cimport FreeNumbers
from xsift.native.tables cimport BytesTable
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint8_t, uint32_t, uint64_t
from xsift.xpath.pattern cimport Pattern

cdef struct PathStep:
    symbol_t symbol
    uint8_t axis
    uint8_t is_condition  # only the last step of a path can be one

cdef struct PathUse:
    int32_t pattern       # the key of the pattern that is just this path, or -1
    int32_t twigs         # how many twigs have the path


cdef class PathScratch(Scratch):
    # An engine's own scratch derives from this one, and is made with the engine's `branches`.
    cdef uint32_t epoch           # numbers the documents; 1 is the first, and the first after all numbers are used up
    cdef TwigJoin join
    cdef vector[int32_t] room     # for the keys that matched


cdef class PathEngine(Engine):
    # Distinct root-to-leaf paths. path_steps[path] is empty for a number that is free.
    cdef BytesTable path_keys
    cdef vector[vector[PathStep]] path_steps
    cdef vector[PathUse] path_uses
    # Patterns.
    cdef vector[int32_t] pattern_path         # by key: the path of a linear pattern; -1: a twig; -2: the key is free
    cdef BranchIndex branches                 # of the twigs
    cdef FreeNumbers free_keys
    cdef Py_ssize_t pattern_count
    cdef Py_ssize_t twig_count
    cdef public int64_t note_limit            # elements and hits that the join notes before it gives up what it can

    # An engine of linear paths implements these two; `path` is new, or is used by no pattern any more.
    cdef int insert_path(self, int32_t path) except -1
    cdef int delete_path(self, int32_t path) except -1

    # While it reads a document, it calls these:
    # before and after; begin() and finish() do, and an engine that overrides them goes on to do so;
    cdef int begin_join(self, PathScratch scratch) except -1 nogil
    cdef int finish_join(self, PathScratch scratch, vector[int32_t]* keys) except -1 nogil
    # at each start tag, before the paths that end there are reported, and at each end tag;
    cdef inline int element_starts(self, PathScratch scratch, symbol_t symbol) except -1 nogil:
        if self.twig_count:
            scratch.join.element_starts(symbol)
        return 0
    cdef inline int element_ends(self, PathScratch scratch) noexcept nogil:
        if self.twig_count:
            scratch.join.element_ends()
        return 0
    # and when a path matches, and its last step is the innermost open element or a condition that holds for it. A path
    # that is in a twig is reported at every element where it ends, any other once; more often does no harm.
    cdef inline int path_matched(self, PathScratch scratch, int32_t path) except -1 nogil:
        self.path_found(scratch, path)
        if self.path_uses[path].twigs:
            scratch.join.note_hit(path, scratch.join.innermost)
        return 0
    cdef inline bint in_twig(self, int32_t path) noexcept nogil:
        return self.path_uses[path].twigs != 0
    # Parts of the above, for an engine that finds out at the end only where paths matched (see also join.pxd).
    cdef int collect_keys(self, PathScratch scratch, vector[int32_t]* keys) except -1 nogil
    cdef inline void path_found(self, PathScratch scratch, int32_t path) noexcept nogil:
        if self.path_uses[path].pattern >= 0:
            scratch.join.mark(self.path_uses[path].pattern)
