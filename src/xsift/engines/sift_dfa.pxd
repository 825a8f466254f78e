from libcpp.vector cimport vector

from xsift.engines.nfa cimport PathNfa
from xsift.native.tables cimport FlatMap, pack
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint32_t, uint64_t

cdef struct DfaState:
    uint64_t hash            # of the set of its live states, whatever their order
    int64_t live             # where in `pool` its live NFA states begin: those that something can follow
    int64_t marked           # likewise those with marks, ascending
    int64_t accepts          # likewise what its NFA states accept
    int64_t end              # where its part of `pool` ends
    int32_t same_hash        # another state with the same hash, or -1
    uint32_t reported_at     # the document (epoch) in which `accepts` was reported last


cdef class LazyDfa:
    cdef PathNfa nfa
    cdef vector[DfaState] states
    cdef vector[int32_t] pool
    cdef FlatMap[int32_t] transitions   # pack(state, symbol) -> state
    cdef FlatMap[int32_t] by_hash       # hash -> a state with it
    cdef vector[uint32_t] seen_at       # by NFA state: the last set that it was put into
    cdef uint32_t set_number
    cdef vector[int32_t] live           # the set being made
    cdef vector[int32_t] marked
    cdef vector[int32_t] accepts
    cdef readonly int64_t flushes
    cdef readonly int64_t states_made

    # The state of a document of which nothing is read yet; forgets all states (patterns have changed).
    cdef int32_t restart(self) except -1 nogil
    cdef int32_t make(self, int32_t state, symbol_t symbol) except -1 nogil
    # Forgets all states but those on the stack, which get new numbers.
    cdef int flush(self, vector[int32_t]* stack) except -1 nogil
    cdef bint contains(self, int32_t state, int32_t nfa_state) noexcept nogil
    cdef int64_t bytes(self) noexcept nogil

    cdef int begin_set(self) except -1 nogil
    cdef int put(self, int32_t nfa_state) except -1 nogil
    cdef int32_t intern(self) except -1 nogil
    cdef bint _is_current_set(self, int32_t state) noexcept nogil

    cdef inline int32_t next(self, int32_t state, symbol_t symbol) except -1 nogil:
        cdef int32_t target = self.transitions.get(pack(state, symbol), -1)
        return target if target >= 0 else self.make(state, symbol)
