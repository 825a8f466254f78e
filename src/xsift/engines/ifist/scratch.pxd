from libcpp.vector cimport vector

from xsift.engines.base cimport Scratch
from xsift.engines.ifist.index cimport LOOK_AT_LEAST, LOOK_DISTANCE, LOOK_ROOT, Candidate, Look
from xsift.engines.ifist.sequences cimport SegmentStep
from xsift.native.tables cimport FlatMap, pack
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint8_t, uint32_t, uint64_t
from xsift.xpath.symbols cimport ANY

cdef struct OpenElement:
    symbol_t symbol
    int32_t same_above  # the level of the next open element above with the same symbol, 0 if none
    int32_t deepest     # the deepest level reached below it so far: what the path stack is for
    int64_t number      # in document order, from 1
    int64_t changed     # the clock when a BranchID of it was last added or advanced

cdef struct BranchID:
    # One element in a BranchID set. What the clocks mean depends on the row's kind.
    int32_t count       # PROGRESS: how many ordered children are found. (Of a free entry: the next free one.)
    int64_t since       # RECORD: the clock when an ordered child first ended below it, 0 if none did yet;
                        # PROGRESS: the clock when `count` last grew
    int64_t checked     # RECORD: the clock when the segment's candidates were last verified here

cdef struct Touched:
    int32_t row
    int32_t entry

cdef struct SegmentState:
    vector[Candidate] candidates  # what the document has added to the candidate list, or kept of it
    int64_t changed     # the clock when a candidate was last added
    int32_t fresh       # how many candidates do not have ADVANCED
    uint8_t active      # whether the document has added it to the sequence index
    uint8_t touched     # whether it is in touched_segments

cdef struct SequenceCopy:
    # Simple stack test: a node of a segment in the sequence index, for one open element.
    int32_t segment
    int32_t step
    int32_t number      # of this node among those that were ever copied

# Refinement as a phase of its own: what it needs of the document when that has ended.

cdef struct ReadElement:
    int64_t parent      # its number; 0 for the root element
    int64_t ended       # the clock at its end tag, 0 if it has not ended
    symbol_t symbol

cdef struct BranchPair:
    # An element of a branch node, and the element below it that stands for its child; 0 where no order counts.
    int64_t branch
    int64_t child

cdef struct Completion:
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
    # BranchID sets: row and level of an open element -> its entry in the pool.
    cdef FlatMap[int32_t] branch_ids
    cdef vector[BranchID] pool
    cdef int32_t free_entry                # head of the list of free entries, -1 if none
    cdef vector[vector[Touched]] touched   # by level - 1: the sets that hold the open element there ...
    cdef vector[vector[int32_t]] pending   # ... likewise, rows of ordered children that wait for its end
    # What the document has added to the sequence index, by bucket, and to the segment table.
    cdef vector[vector[Look]] active
    cdef vector[int32_t] touched_buckets
    cdef vector[SegmentState] states
    cdef vector[int32_t] touched_segments
    cdef vector[uint64_t] seen             # one bit for each segment: it has matched in this document
    cdef vector[uint32_t] matched_at       # by key: the epoch in which it matched
    cdef vector[int32_t] matched           # the keys of this epoch
    cdef uint32_t epoch
    # Sets of levels, descending.
    cdef vector[int32_t] levels
    cdef vector[int32_t] above
    cdef vector[int32_t] branch_levels
    cdef vector[int32_t] child_levels
    cdef vector[Completion] completions    # branch nodes found satisfied, their ways up still to be gone
    # Simple stack test: by level - 1, the nodes that were copied for the open element there; and which these are.
    cdef vector[vector[SequenceCopy]] copies
    cdef FlatMap[int32_t] copy_numbers     # pack(segment, step) -> a number of it, from 0
    cdef FlatMap[int32_t] copied           # pack(that number, level) -> 0
    # Refinement as a phase of its own.
    cdef bint keeps_elements
    cdef vector[ReadElement] elements      # by number - 1
    cdef vector[vector[BranchPair]] pairs  # by segment: its BranchID set
    cdef vector[int32_t] reached           # profiles whose sequence was found to its end

    cdef int reset(self, size_t segments, size_t buckets, size_t profiles, symbol_t symbols) except -1 nogil
    cdef int push(self, symbol_t symbol) except -1 nogil
    cdef void pop(self) noexcept nogil
    cdef inline int32_t entry(self, int32_t row, int32_t level) noexcept nogil:
        """The BranchID of the open element at `level` in a set, -1 if it is not there."""
        return self.branch_ids.get(pack(row, level), -1)

    cdef inline bint has_seen(self, int32_t segment) noexcept nogil:
        return self.seen[segment >> 6] >> (segment & 63) & 1

    cdef inline void see(self, int32_t segment) noexcept nogil:
        self.seen[segment >> 6] |= <uint64_t>1 << (segment & 63)

    cdef int32_t insert(self, int32_t row, int32_t level) except -1 nogil
    cdef int insert_pending(self, int32_t row, int32_t level) except -1 nogil
    cdef inline bint may_fit(self, const Look* look, int32_t number, int32_t level) noexcept nogil:
        """A first look at the stack, which settles the matter unless names are open more than once.

        `level` is that of the step below, 0 if there are several.
        """
        cdef int32_t i, above
        for i in range(number):
            if level and not look[i].how & LOOK_AT_LEAST:
                level -= look[i].how & LOOK_DISTANCE
                if level < 1 or (look[i].what != ANY and self.stack[level - 1].symbol != look[i].what):
                    return False
            elif look[i].what == ANY:
                level = 0
            else:
                above = self.latest[look[i].what]
                if above == 0:
                    return False
                if self.stack[above - 1].same_above:
                    level = 0
                elif level and above > level - (look[i].how & LOOK_DISTANCE):
                    return False
                else:
                    level = above
            if level > 1 and look[i].how & LOOK_ROOT:
                return False
        return True
    cdef int climb(self, const SegmentStep* step) except -1 nogil
    cdef int copy_node(self, int32_t segment, int32_t step, int32_t level) except -1 nogil
    cdef int add_candidate(self, int32_t segment, int32_t profile, uint32_t place) except -1 nogil
    cdef int touch_segment(self, int32_t segment) except -1 nogil
