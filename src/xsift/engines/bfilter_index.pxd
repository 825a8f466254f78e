from libcpp.vector cimport vector

from xsift.native.tables cimport FlatMap
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint8_t, uint32_t, uint64_t
from xsift.xpath.pattern cimport Pattern

cdef enum:
    NONE = -1

cdef struct State:
    int32_t parent       # the state that leads here, NONE for state 0; the next free state for a free one
    symbol_t symbol      # on which it leads here; ANY for `*` and for the state of a `//`
    int32_t star         # where `*` leads, or NONE
    int32_t descendant   # the looping state of a following `//`, or NONE
    int32_t key          # the first of the simple queries that end here, or NONE
    int32_t marks        # the first Mark of this accepting state, or NONE
    int32_t point        # the branch point that this state is marked as, or NONE
    int32_t uses         # transitions out of here + marks + 1 if key + 1 if point: without use it is freed
    uint32_t names       # `name_bit` of every symbol that leads on from here; bits of removed ones may stay
    uint8_t loops        # whether it is the state of a `//`: it stays active below, and is never marked
    uint8_t is_condition # whether it is entered by a condition: it accepts, and nothing follows it

# The paper's Q{m,n,p}: where the end of branch p is reached, it is a match candidate of a branch point above.
cdef struct Mark:
    int32_t point
    int32_t branch
    int32_t loops     # how many `//` there are between the branch point and the branch's end
    int32_t distance  # steps from the branch point to the first of these `//`; without one, to the end
    int32_t next      # the next mark of the same end, or NONE

# A state that some sub-query is rooted at, and the unit of all sub-queries rooted there.
cdef struct BranchPoint:
    int32_t state         # NONE for a free one
    int32_t sub_queries   # how many are rooted here; without one it is freed
    int32_t without_rule  # how many of them may match where the document has no branch point
    int32_t free_branch   # the first free number in `branches`, or NONE

# A path down from a branch point, shared by the sub-queries rooted there.
cdef struct Branch:
    int32_t end        # tangling: its accepting state; transit: the sub-query it leads to; free: the next free one
    int32_t uses       # the number of sub-queries that have it; 0 for a free one
    int32_t with_rule  # list of the sub-queries that are checked when this one is a candidate, or NONE: those
    int32_t without_rule  # that need a branch point in the document, and those that do not
    uint8_t transit

cdef struct Posting:
    int32_t sub_query
    int32_t other      # a second branch that it needs, or NONE if it has but one

cdef struct SubQuery:
    int32_t point      # NONE for a free one
    int32_t key        # the first of the queries that it decides, or NONE
    int32_t marks      # the first Mark of the transit branches that end in it, or NONE
    int32_t users      # marks, + 1 if key: without a user it is removed
    int32_t access     # the branch with whose candidate it is checked
    int32_t place      # in that branch's list
    int32_t same_hash  # the next sub-query with the same hash, or NONE
    uint8_t with_rule  # whether the branch-point rule is sound for it


# The bit of a symbol in State.names; the highest is that of `*`.
cdef inline uint32_t name_bit(symbol_t symbol) noexcept nogil:
    return (<uint32_t>1) << (<uint32_t>symbol % 31)

cdef enum:
    STAR_BIT = 0x80000000


cdef class QueryIndexTree:
    cdef vector[State] states
    cdef FlatMap[int32_t] transitions        # pack(state, symbol) -> state, but for `*` and `//`
    cdef vector[Mark] marks
    cdef vector[BranchPoint] points
    cdef vector[vector[Branch]] branches     # by branch point
    cdef FlatMap[int32_t] branch_numbers     # pack(point, end of a branch) -> its number there
    cdef vector[SubQuery] sub_queries
    cdef vector[vector[int32_t]] sub_query_branches  # by sub-query: its branches' numbers, ascending
    cdef FlatMap[int32_t] sub_query_numbers  # hash of a sub-query -> the first that has it
    cdef vector[vector[Posting]] postings    # the lists that branches name
    cdef int32_t free_state, free_mark, free_point, free_sub_query  # heads of free lists, or NONE
    cdef vector[int32_t] free_postings       # lists of `postings` that no branch names
    cdef readonly Py_ssize_t state_count
    cdef readonly Py_ssize_t sub_query_count
    # Queries that end in the same place (equal ones) form a chain from State.key or SubQuery.key on.
    cdef vector[int32_t] key_end             # by key: where the query ends, as Branch.end * 2 + transit; NONE if free
    cdef vector[int32_t] next_key
    cdef vector[int32_t] previous_key
    # Of the pattern that was looked at last, by node: its state, and where the branch that it lies on ends.
    cdef vector[int32_t] state_of
    cdef vector[int32_t] end_of

    cdef int insert(self, Pattern pattern, int32_t key) except -1
    cdef int delete(self, int32_t key) except -1
    # Puts the states and sub-queries of a pattern into state_of and end_of. The node `cut`, if it is not a leaf, is
    # made a branch point whatever it has.
    cdef int resolve(self, Pattern pattern, int32_t cut) except -1

    cdef int32_t step(self, int32_t state, symbol_t symbol, uint8_t axis, bint is_condition) except -1
    cdef int32_t new_state(self, int32_t parent, symbol_t symbol) except -1
    cdef void release_state(self, int32_t state) noexcept
    cdef int32_t point_at(self, int32_t state) except -1
    cdef int32_t branch_to(self, int32_t point, int32_t end) except -1
    cdef int add_mark(self, int32_t point, int32_t branch) except -1
    cdef void remove_mark(self, int32_t point, int32_t branch) noexcept
    cdef int32_t sub_query_at(self, Pattern pattern, int32_t node) except -1
    cdef int32_t new_sub_query(self, int32_t point, const vector[int32_t]& numbers, bint with_rule) except -1
    cdef uint64_t hash_of(self, int32_t point, const vector[int32_t]& numbers) noexcept
    cdef int post(self, int32_t sub_query) except -1
    cdef void unpost(self, int32_t sub_query) noexcept
    cdef int32_t posted(self, int32_t point, int32_t branch) noexcept
    cdef int32_t* list_of(self, int32_t sub_query) noexcept
    cdef int remove_sub_query(self, int32_t sub_query) except -1
    cdef int32_t drop_branch(self, int32_t point, int32_t branch) except -2
    cdef void forget_hash(self, int32_t sub_query) noexcept
