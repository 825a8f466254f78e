from libcpp.vector cimport vector

from xsift.engines.nfa cimport PathNfa
from xsift.native.tables cimport FlatMap, pack
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint32_t, uint64_t

cdef enum:
    EMPTY_PART = 0
    NO_LOOPS = -1

cdef struct Part:
    # A set of NFA states. Where in `pool` its lists begin, one after the other:
    int64_t live             # states that a name or `*` leads on from
    int64_t loops            # the looping states of the `//` that follow its states
    int64_t marked           # states with marks, ascending
    int64_t accepts          # what its states accept
    int64_t end
    uint64_t hash            # of the set, whatever the order
    int32_t same_hash        # another part with the same hash, or -1
    uint32_t reported_at     # the document (epoch) in which `accepts` was reported last

cdef struct Loops:
    # Looping states that became active at the same element, less those that were active above it.
    int64_t begin            # in `pool`
    int64_t end
    uint64_t hash            # of the states, and of `above`
    int32_t same_hash
    int32_t above            # the loops that were active before; NO_LOOPS

cdef struct DfaState:
    uint64_t hash            # of its parts and loops
    int32_t parts            # where in `part_lists` its parts begin; no NFA state is in two of them
    int32_t accepting_end    # where those end that accept something: they come first
    int32_t parts_end
    int32_t loops            # what is active below the element: these Loops and all above; NO_LOOPS
    int32_t same_hash
    uint32_t reported_at     # the document in which its parts were reported last


cdef class LazyDfa:
    cdef PathNfa nfa
    cdef vector[DfaState] states
    cdef vector[Part] parts
    cdef vector[Loops] loops
    cdef vector[int32_t] pool
    cdef vector[int32_t] part_lists
    cdef FlatMap[int32_t] transitions   # pack(state, symbol) -> state
    cdef FlatMap[int32_t] loop_moves    # pack(loops, symbol) -> the part that these loops, without those above, lead to
    cdef FlatMap[int32_t] states_by_hash
    cdef FlatMap[int32_t] parts_by_hash
    cdef FlatMap[int32_t] loops_by_hash
    cdef vector[uint32_t] seen_at       # by NFA state: the last set that it was found in, where sets are compared
    cdef vector[uint32_t] accepted_at   # by what states accept: the same
    cdef uint32_t set_number
    # The set being made.
    cdef uint64_t set_hash
    cdef vector[int32_t] live
    cdef vector[int32_t] new_loops
    cdef vector[int32_t] marked
    cdef vector[int32_t] accepts
    cdef vector[int32_t] part_list      # the parts of the state being made
    cdef vector[int32_t] sorted_list    # the same, those that accept something first
    cdef vector[int32_t] asked          # members of a set that a name may lead on from
    cdef vector[int32_t] reached        # where it leads

    # Forgets all states: the only one left, number 0, is that of a document of which nothing is read yet.
    cdef int32_t restart(self, size_t keys) except -1 nogil
    cdef int32_t make(self, int32_t state, symbol_t symbol) except -1 nogil
    # Whether a marked NFA state is in the set.
    cdef bint contains(self, int32_t state, int32_t nfa_state) noexcept nogil
    cdef int64_t bytes(self) noexcept nogil
    cdef int64_t stamp_bytes(self) noexcept nogil

    cdef int32_t loop_move(self, int32_t loops, symbol_t symbol) except -1 nogil
    cdef int begin_set(self) except -1 nogil
    cdef int follow(self, const int32_t* members, int64_t number, symbol_t symbol) except -1 nogil
    cdef int put(self, int32_t nfa_state) except -1 nogil
    cdef int32_t intern_part(self) except -1 nogil
    cdef void stamp_set(self) noexcept nogil
    cdef bint is_current_set(self, int32_t part) noexcept nogil
    cdef int32_t loops_below(self, int32_t above) except -2 nogil
    cdef int32_t intern_loops(self, int32_t above) except -1 nogil
    cdef int32_t intern_state(self, int32_t loops) except -1 nogil

    cdef inline int32_t known(self, int32_t state, symbol_t symbol) noexcept nogil:
        """The state after a start tag, if it was made before; else -1."""
        return self.transitions.get(pack(state, symbol), -1)

    cdef inline int32_t next(self, int32_t state, symbol_t symbol) except -1 nogil:
        cdef int32_t target = self.known(state, symbol)
        return target if target >= 0 else self.make(state, symbol)
