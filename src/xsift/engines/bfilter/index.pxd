from libcpp.vector cimport vector

from xsift.native.tables cimport FlatMap
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint8_t, uint32_t, uint64_t
from xsift.xpath.pattern cimport Pattern

cdef enum:
    NONE = -1

# What a start tag needs of a state; the rest is apart, since a large index is slow by the memory that it touches.
cdef struct State:
    uint32_t names       # `name_bit` of every symbol that leads on from here; bits of removed ones may stay
    int32_t star         # where `*` leads, or NONE
    int32_t descendant   # the looping state of a following `//`, or NONE
    int32_t key          # the first of the simple queries that end here, or NONE
    int32_t branches     # the first of the tangling branches that end here, or NONE

cdef struct StateLink:
    int32_t parent       # the state that leads here, NONE for state 0; the next free state for a free one
    symbol_t symbol      # on which it leads here; ANY for `*` and for the state of a `//`
    int32_t point        # the branch point that this state is marked as, or NONE
    int32_t uses         # transitions out of here + branches + 1 if key + 1 if point: without use it is freed
    uint8_t loops        # whether it is the state of a `//`: it stays active below, and is never marked
    uint8_t is_condition # whether it is entered by a condition: nothing follows it

# A state that some sub-query is rooted at, with the unit of all sub-queries rooted there.
cdef struct BranchPoint:
    int32_t state         # NONE for a free one
    int32_t sub_queries   # how many are rooted here; without one it is freed
    int32_t without_rule  # how many of them may match where the document has no branch point
    int32_t free_number   # the first free number of a branch, or NONE; of a free branch point: the next

# A path down from a branch point, shared by the sub-queries rooted there; also the mark Q{m,n,p} where it ends.
cdef struct Branch:
    int32_t point
    int32_t number        # among those of the branch point
    int32_t loops         # how many `//` there are between the branch point and the end
    int32_t distance      # steps from the branch point to the first of these `//`; without one, to the end
    int32_t next          # the next branch with the same end, or NONE; of a free branch: the next
    int32_t without_rule  # how many in its list `posted`, its first ones, need no branch point in the document
    int32_t end           # where it ends: accepting state * 2 (tangling), or sub-query * 2 + 1 (transit)
    int32_t uses          # the number of sub-queries that have it

# A sub-query in the list of one of its branches: what has to be known to check it.
cdef struct Posting:
    int32_t sub_query
    int32_t other         # the number of a second branch that it needs, or NONE if it has but one
    int32_t key           # SubQuery.key
    uint8_t more          # whether it has more than two branches
    uint8_t leads_on      # whether a transit branch ends in it

cdef struct SubQuery:
    int32_t point         # NONE for a free one
    int32_t key           # the first of the queries that it decides, or NONE
    int32_t branches      # the first of the transit branches that end in it, or NONE
    int32_t users         # these branches, + 1 if key: without a user it is removed
    int32_t access        # the branch with whose candidate it is checked
    int32_t place         # in that branch's list
    int32_t same_hash     # the next sub-query with the same hash, or NONE; of a free one: the next
    uint8_t with_rule     # whether the branch-point rule is sound for it


# The bit of a symbol in State.names; the highest is that of `*`.
cdef inline uint32_t name_bit(symbol_t symbol) noexcept nogil:
    return (<uint32_t>1) << (<uint32_t>symbol % 31)

cdef enum:
    STAR_BIT = 0x80000000


cdef class QueryIndexTree:
    cdef vector[State] states                # state 0 is where a document begins
    cdef vector[StateLink] links             # by state
    # By state: whether a condition of its element says something even where no branch below the element is a candidate:
    # it ends a simple query or a branch from further up, or a sub-query has nothing but conditions. May stay set.
    cdef vector[uint8_t] urgent
    cdef FlatMap[int32_t] transitions        # pack(state, symbol) -> state, but for `*` and `//`
    cdef vector[BranchPoint] points
    cdef vector[vector[int32_t]] numbered    # by branch point: its branches by number; of a free number: the next
    cdef vector[Branch] branches
    cdef FlatMap[int32_t] branch_ends        # pack(branch point, end) -> branch
    cdef vector[vector[Posting]] posted      # by branch: the sub-queries that are checked when it is a candidate
    cdef vector[SubQuery] sub_queries
    cdef vector[vector[int32_t]] parts       # by sub-query: the numbers of its branches, ascending
    cdef FlatMap[int32_t] hashes             # hash of a sub-query -> the first that has it
    cdef int32_t free_state, free_point, free_branch, free_sub_query  # heads of free lists, or NONE
    cdef readonly Py_ssize_t state_count
    cdef readonly Py_ssize_t sub_query_count
    # Equal queries form a chain from State.key or SubQuery.key on.
    cdef vector[int32_t] key_end             # by key: where the query ends, as Branch.end
    cdef vector[int32_t] next_key
    cdef vector[int32_t] previous_key
    cdef Py_ssize_t equal_keys               # how many have a next one
    # Of the pattern that was looked at last, by node: its state, and where the branch that it lies on ends.
    cdef vector[int32_t] state_of
    cdef vector[int32_t] end_of

    cdef int insert(self, Pattern pattern, int32_t key) except -1
    cdef int delete(self, int32_t key) except -1
    # Puts the states and sub-queries of a pattern into state_of and end_of. The node `cut`, if it is not a leaf, is
    # made a branch point even if it has one child only.
    cdef int resolve(self, Pattern pattern, int32_t cut) except -1

    cdef int set_key(self, int32_t end, int32_t key) except -1
    cdef int32_t step(self, int32_t state, symbol_t symbol, uint8_t axis, bint is_condition) except -1
    cdef int32_t new_state(self, int32_t parent, symbol_t symbol) except -1
    cdef void release_state(self, int32_t state) noexcept
    cdef int32_t point_at(self, int32_t state) except -1
    cdef void release_point(self, int32_t point) noexcept
    cdef int32_t branch_to(self, int32_t point, int32_t end) except -1
    cdef int measure(self, Branch* branch) except -1
    cdef bint ends_in_condition(self, int32_t branch) noexcept
    cdef bint is_own_condition(self, int32_t branch) noexcept
    cdef int32_t* chain_at(self, int32_t end) noexcept
    cdef int link(self, int32_t branch) except -1
    cdef void unlink(self, int32_t branch) noexcept
    cdef int32_t drop_branch(self, int32_t branch) except -2
    cdef int32_t sub_query_at(self, Pattern pattern, int32_t node) except -1
    cdef int32_t new_sub_query(self, int32_t point, const vector[int32_t]& numbers, bint with_rule) except -1
    cdef int remove_sub_query(self, int32_t sub_query) except -1
    cdef uint64_t hash_of(self, int32_t point, const vector[int32_t]& numbers) noexcept
    cdef void forget_hash(self, int32_t sub_query) noexcept
    cdef int post(self, int32_t sub_query) except -1
    cdef size_t posting_cost(self, int32_t branch) noexcept
    cdef void unpost(self, int32_t sub_query) noexcept
    cdef void put_posting(self, int32_t branch, int32_t place, Posting posting) noexcept
    cdef void refresh_posting(self, int32_t sub_query) noexcept
