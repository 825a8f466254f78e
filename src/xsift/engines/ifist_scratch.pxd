from libcpp.vector cimport vector

from xsift.engines.base cimport Scratch
from xsift.engines.ifist_index cimport Candidate
from xsift.engines.ifist_sequences cimport SegmentStep
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint8_t, uint32_t

cdef struct OpenElement:
    symbol_t symbol
    int32_t same_above  # the level of the next open element above with the same symbol, 0 if none
    int32_t deepest     # the deepest level reached below it so far: what the path stack is for
    int64_t number      # in document order, from 1
    int64_t changed     # the clock when a BranchID of it was last added or advanced

cdef struct BranchID:
    # One element in a BranchID set. What the clocks mean depends on the row's kind.
    int32_t next        # the next element of the set, which is open above this one; -1 if none
    int32_t level
    int32_t count       # PROGRESS: how many ordered children are found
    int64_t since       # RECORD: the clock when an ordered child first ended below it, 0 if none did yet;
                        # PROGRESS: the clock when `count` last grew
    int64_t checked     # RECORD: the clock when the segment's candidates were last verified here

cdef struct SegmentState:
    vector[Candidate] candidates  # what the document has added to the candidate list, or kept of it
    int64_t changed     # the clock when a candidate was last added
    int32_t fresh       # how many candidates do not have ADVANCED
    uint8_t seen        # whether the segment has matched in this document
    uint8_t active      # whether the document has added it to the sequence index
    uint8_t touched     # whether it is in touched_segments

cdef struct Completion:
    int32_t profile
    int32_t unit
    int32_t level


cdef class IFiSTScratch(Scratch):
    cdef uint32_t generation               # of the index, when the document began
    cdef int64_t clock                     # end tags so far: post-order numbers
    cdef int64_t numbers                   # start tags so far
    # The run-time stack, outermost first: stack[i] has level i + 1. It may be longer than `depth`.
    cdef vector[OpenElement] stack
    cdef int32_t depth
    cdef vector[int32_t] latest            # by symbol: the level of the innermost open element, 0 if none
    # BranchID sets: by row, the first entry, that of the innermost element, or -1.
    cdef vector[int32_t] heads
    cdef vector[BranchID] pool
    cdef int32_t free_entry
    cdef vector[vector[int32_t]] touched   # by level - 1: rows with an entry for the open element there ...
    cdef vector[vector[int32_t]] pending   # ... likewise, rows of ordered children that wait for its end
    # What the document has added to the sequence index, by bucket, and to the segment table.
    cdef vector[vector[int32_t]] active
    cdef vector[int32_t] touched_buckets
    cdef vector[SegmentState] states
    cdef vector[int32_t] touched_segments
    cdef vector[uint32_t] matched_at       # by key: the epoch in which it matched
    cdef vector[int32_t] matched           # the keys of this epoch
    cdef uint32_t epoch
    # Sets of levels, descending.
    cdef vector[int32_t] levels
    cdef vector[int32_t] above
    cdef vector[int32_t] branch_levels
    cdef vector[int32_t] child_levels
    cdef vector[Completion] completions    # branch nodes found satisfied, their ways up still to be gone

    cdef int reset(self, size_t rows, size_t segments, size_t buckets, size_t profiles, symbol_t symbols) except -1 nogil
    cdef int push(self, symbol_t symbol) except -1 nogil
    cdef void pop(self) noexcept nogil
    cdef int32_t entry(self, int32_t row, int32_t level) noexcept nogil
    cdef int32_t insert(self, int32_t row, int32_t level) except -1 nogil
    cdef int insert_pending(self, int32_t row, int32_t level) except -1 nogil
    cdef int climb(self, const SegmentStep* step) except -1 nogil
    cdef int add_candidate(self, int32_t segment, int32_t profile, uint32_t position) except -1 nogil
    cdef int touch_segment(self, int32_t segment) except -1 nogil
