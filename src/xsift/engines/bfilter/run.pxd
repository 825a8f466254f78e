from libcpp.vector cimport vector

from xsift.engines.base cimport Engine, Scratch
from xsift.engines.bfilter.index cimport Posting, QueryIndexTree
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint8_t, uint32_t, uint64_t

# An active state of an open element. If the state is marked as a branch point, this is the branch point's instance at
# that element.
cdef struct Entry:
    int32_t state
    int32_t came_from  # the entry of the parent state, one level up; ~origin if the parent state is that of a `//`
    int32_t instance   # its candidates, or NONE while it has none
    uint32_t names     # State.names

# An active state of a `//`. It is active for everything below, so there is one of it, not one for each level.
cdef struct Loop:
    int32_t state
    int32_t origin     # the latest
    uint32_t names     # State.names

# An entry from which a `//` set out. Those of one Loop form a chain, from the innermost element outwards.
cdef struct Origin:
    int32_t entry
    int32_t level
    int32_t loop       # its place in `loops`
    int32_t previous   # or NONE: then its Loop begins with it

# An open element. The paper's three stacks grow and shrink together, since it pushes dummies; here they are one.
cdef struct OpenElement:
    int32_t number          # runTimeBranch: the element; 0 is the document
    int32_t first           # where its entries begin on the Runtime Stack
    int32_t first_origin
    int32_t query_branches  # queryBranches: the first instance here that has candidates; the dummy is NONE
    uint32_t names          # those of its entries together
    # Its last child. One of the same name leads to the same states, whose entries are still where they were, beyond
    # the top of the Runtime Stack; what they tell has been noted.
    symbol_t child_symbol   # or NONE
    int32_t child_top       # where its entries end
    uint32_t child_names
    uint8_t child_sets_out  # whether a `//` follows one of its states
    uint8_t is_branch_point # documentBranches: whether it is there
    int32_t first_condition # where the conditions that hold for it begin in `conditions`, if they are kept

# A branch point of queries, matched with an open element, and the branches that are candidates there.
cdef struct Instance:
    int32_t point
    int32_t entry
    int32_t next            # of the same element; of the free list
    int32_t block           # where its bits begin: one for each branch of the branch point, set for a candidate
    int32_t block_class     # the bits are 1 << block_class words

# A sub-query matched with an element: the part of the document that matched.
cdef struct Part:
    int32_t sub_query
    int32_t number


cdef class BFilterScratch(Scratch):
    cdef vector[Entry] active             # the Runtime Stack, element after element; used up to `top`
    cdef int32_t top
    cdef vector[Loop] loops
    cdef vector[int32_t] loop_place       # by state of a `//`: its place in `loops`, if that is what is there
    cdef vector[Origin] origins
    cdef vector[int32_t] setting_out      # entries of the element that starts whose states a `//` follows
    cdef vector[OpenElement] open         # the document, then the open elements: open[i] has level i
    cdef vector[symbol_t] conditions      # that hold for open elements, of each those that a state asks for
    cdef bint after_end_tag               # the detector's: whether the last tag was an end tag
    # The open elements below the last of `open`: no state leads on from the first of these, so they are only counted.
    # None if parts are kept, so that all elements can be seen on the stacks.
    cdef int32_t out_of_reach
    cdef int32_t elements                 # start tags so far
    # By state in which branches end: the element from which it was entered last, as first_tag + its number. Each
    # document has a first_tag of its own, so that nothing has to be cleared.
    cdef vector[uint32_t] entered_from
    cdef uint32_t first_tag
    cdef vector[Instance] instances
    cdef vector[vector[int32_t]] candidates  # by instance: the branches, in the order in which they came
    cdef int32_t free_instance
    cdef vector[uint64_t] bits
    cdef vector[vector[int32_t]] free_blocks  # by class; all their bits are 0
    cdef vector[uint32_t] matched_at      # by key: the epoch in which it matched
    cdef uint32_t epoch
    cdef vector[int32_t] matched          # the keys of this epoch
    cdef int64_t version                  # the index' when the document began
    cdef bint keeps_parts
    cdef vector[Part] parts               # in the order of end tags, if they are kept


cdef class Filtering(Engine):
    cdef readonly QueryIndexTree index
    cdef int64_t version                  # changes with every addition and removal
    cdef Py_ssize_t query_count
    cdef bint lazy                        # conditions are looked at where a branch point has a candidate

    cdef int begin_run(self, BFilterScratch scratch) except -1 nogil
    cdef int run(self, BFilterScratch scratch, const int32_t* codes, size_t number) except -1 nogil
    cdef int index_changed(self) except -1 nogil
    cdef int start_tag(self, BFilterScratch scratch, symbol_t symbol) except -1 nogil
    cdef int64_t advance(self, BFilterScratch scratch, symbol_t symbol, int32_t first, uint32_t names) except -1 nogil
    cdef Entry* with_room(self, BFilterScratch scratch, size_t more) except NULL nogil
    cdef int64_t enter(self, BFilterScratch scratch, int32_t first, int32_t level) except -1 nogil
    cdef bint is_first_from_there(self, BFilterScratch scratch, const Entry* entry, int32_t level) noexcept nogil
    cdef int set_out(self, BFilterScratch scratch, int32_t level) except -1 nogil
    cdef int condition_holds(self, BFilterScratch scratch, symbol_t condition) except -1 nogil
    cdef int kept_conditions(self, BFilterScratch scratch) except -1 nogil
    cdef bint asks_for_conditions(self, BFilterScratch scratch, int32_t entry) noexcept nogil
    cdef int save_condition(self, BFilterScratch scratch, int32_t entry, symbol_t condition) except -1 nogil
    cdef int end_tag(self, BFilterScratch scratch) except -1 nogil
    cdef int pop_element(self, BFilterScratch scratch) except -1 nogil
    cdef int32_t save_candidates(self, BFilterScratch scratch, int32_t branch, int32_t entry,
                                 int32_t level) except -2 nogil
    cdef int save_candidate(self, BFilterScratch scratch, int32_t entry, int32_t level,
                            int32_t branch) except -1 nogil
    cdef int32_t new_instance(self, BFilterScratch scratch, int32_t point, int32_t entry,
                              int32_t level) except -1 nogil
    cdef int release_instance(self, BFilterScratch scratch, int32_t instance) except -1 nogil
    cdef int forget_candidates(self, BFilterScratch scratch) except -1 nogil
    cdef int matching_branches(self, BFilterScratch scratch) except -1 nogil
    cdef int check(self, BFilterScratch scratch, int32_t instance, const Posting* posted,
                   size_t number) except -1 nogil
    cdef bint all_candidates(self, BFilterScratch scratch, int32_t block, int32_t sub_query) noexcept nogil
    cdef int match_key(self, BFilterScratch scratch, int32_t key) except -1 nogil
