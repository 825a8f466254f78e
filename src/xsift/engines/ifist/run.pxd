from libcpp.vector cimport vector

from xsift.engines.ifist.index cimport LabelUse, Look
from xsift.engines.ifist.refinement cimport IFiSTRefinement
from xsift.engines.ifist.scratch cimport IFiSTScratch, SegmentState
from xsift.engines.ifist.sequences cimport Segment, SegmentStep
from xsift.native.types cimport int32_t, symbol_t


cdef class IFiSTRun(IFiSTRefinement):
    cdef bint simple  # the stack test is that of one node at a time

    # A level is that of an open element, from 1. `ended` is the level of the element whose end tag is read, for a
    # segment that waits for something below its first node to end; 0 for all others.
    cdef int begin_run(self, IFiSTScratch scratch) except -1 nogil
    cdef int report(self, IFiSTScratch scratch, vector[int32_t]* keys) except -1 nogil
    cdef int check_generation(self, IFiSTScratch scratch) except -1 nogil
    cdef int run(self, IFiSTScratch scratch, const int32_t* codes, size_t number) except -1 nogil
    # Phase 1: progressive subsequence matching.
    cdef int end_tag(self, IFiSTScratch scratch) except -1 nogil
    cdef int find_subsequence(self, IFiSTScratch scratch, symbol_t label, int32_t level) except -1 nogil
    cdef int find_below_ancestors(self, IFiSTScratch scratch, const LabelUse* use, symbol_t label,
                                  int32_t level) except -1 nogil
    cdef int find_below(self, IFiSTScratch scratch, int32_t ended) except -1 nogil
    cdef int try_bucket(self, IFiSTScratch scratch, int32_t bucket, int32_t level, int32_t ended) except -1 nogil
    cdef int try_looks(self, IFiSTScratch scratch, const vector[Look]* looks, size_t end, int32_t bucket,
                       int32_t level, int32_t ended) except -1 nogil
    cdef int try_segment(self, IFiSTScratch scratch, int32_t segment, int32_t level, int32_t ended) except -1 nogil
    cdef int segment_matched(self, IFiSTScratch scratch, int32_t segment, int32_t ended) except -1 nogil
    cdef int keep_branch_ids(self, IFiSTScratch scratch, int32_t segment, int32_t ended) except -1 nogil
    cdef int simple_stack_test(self, IFiSTScratch scratch, int32_t segment, int32_t step, int32_t level,
                               int32_t ended) except -1 nogil
    cdef bint has_leaf_wildcards(self, IFiSTScratch scratch, const SegmentStep* first, int32_t level,
                                 int32_t ended) noexcept nogil
    cdef bint recursive_stack_test(self, IFiSTScratch scratch, const Segment& segment, int32_t level,
                                   int32_t ended) except -1 nogil
    cdef int advance(self, IFiSTScratch scratch, int32_t segment) except -1 nogil
    cdef bint advance_candidate(self, IFiSTScratch scratch, int32_t key, int32_t at) except -1 nogil
    cdef int activate(self, IFiSTScratch scratch, int32_t key, int32_t at) except -1 nogil
    # Phase 2: refinement by branch node verification.
    cdef int verify_candidates(self, IFiSTScratch scratch, int32_t segment, int32_t level) except -1 nogil
    cdef void prefetch_candidate(self, const SegmentState* state, size_t i) noexcept nogil
    cdef int ordered_child_ended(self, IFiSTScratch scratch, int32_t segment, int32_t level) except -1 nogil
    cdef bint is_verified(self, IFiSTScratch scratch, int32_t segment, int32_t level) noexcept nogil
    cdef int child_ended(self, IFiSTScratch scratch, int32_t row, int32_t level) except -1 nogil
    cdef int progress(self, IFiSTScratch scratch, int32_t number, int32_t order, int32_t level) except -1 nogil
    cdef int verify(self, IFiSTScratch scratch, int32_t number, int32_t level) except -1 nogil
    cdef int climb_completed(self, IFiSTScratch scratch) except -1 nogil
    cdef int climb_unit(self, IFiSTScratch scratch, int32_t number, int32_t level) except -1 nogil
    cdef int match_key(self, IFiSTScratch scratch, int32_t key) except -1 nogil
