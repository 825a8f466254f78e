from libcpp.vector cimport vector

from xsift.native.tables cimport BytesTable, FlatMap, Lists
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint8_t
from xsift.xpath.pattern cimport Pattern

cdef enum Way:
    ROOT     # to the first step, which can only be the root
    PARENTS  # only `/` on the way up: a fixed number of parents
    LEVEL    # only `/` above where it ends: the ancestor at that level
    SEARCH   # `//` both on the way and above: any of several ancestors, which the steps must be held against

cdef struct Ascent:
    int32_t source    # where it starts: at the elements where a path ends, or (~) at those of a branch further down
    int32_t step      # at which step it ends, the first of a path is 1 ...
    int32_t distance  # ... and how many further down it starts
    int32_t way
    int32_t steps     # of a search: where in search_steps they begin, from the first to where it starts

cdef struct SearchStep:
    symbol_t symbol
    uint8_t axis

cdef struct Watch:
    int32_t key       # a twig, to be looked at if the path matches in whose list this is ...
    int32_t other     # ... and these two, -1: there is none
    int32_t third
    int32_t more      # whether it has yet more paths: then twig_paths says which
    int32_t place     # its outermost branch, as in branch_place


cdef class BranchIndex:
    # Numbers of ascents and branches are never given to another: what no twig has any more waits for one that has.
    cdef FlatMap[int32_t] ascent_numbers     # pack(source, step) -> ascent
    cdef vector[Ascent] ascents
    cdef vector[SearchStep] search_steps
    cdef BytesTable branch_keys              # a branch is its ascents
    cdef vector[int32_t] branch_place        # by branch: where in branch_ascents stand their number, and they
    cdef vector[int32_t] branch_ascents
    # By key of a pattern; of one that is no twig, nothing.
    cdef Lists[int32_t] twig_paths           # its distinct paths, the one that is watched first
    cdef vector[int32_t] watch_number        # which entry of that path's list it is
    # By path: the twigs that are looked at when it matches.
    cdef Lists[Watch] watches

    # Adds a twig; leaf_paths has, by step of the pattern, the path that ends there if it is a leaf.
    cdef int add(self, int32_t key, Pattern pattern, vector[int32_t]& leaf_paths) except -1
    cdef int remove(self, int32_t key) except -1
    cdef int64_t bytes(self) noexcept

    cdef int32_t _ascent(self, Pattern pattern, int32_t start, int32_t source, int32_t end) except -1
    cdef int32_t _search_steps(self, Pattern pattern, int32_t start) except -1
    cdef int32_t _branch(self, vector[int32_t]& ascents) except -1
    cdef int _list_paths(self, int32_t key, Pattern pattern, vector[int32_t]& leaf_paths) except -1
    cdef int64_t _rarity(self, Pattern pattern, int32_t leaf, int32_t path) except -1
    cdef int _watch(self, int32_t key, int32_t branch) except -1
