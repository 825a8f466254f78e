from libc.stdint cimport uint16_t

from xsift.native.tables cimport Array, FlatMap, pack
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint8_t

cdef enum:
    NO_STATE = -1

cdef struct NfaState:
    int32_t parent      # the state that leads here, -1 for the first; the next free state for a free one
    symbol_t symbol     # on which it leads here
    int32_t star        # where `*` leads, or NO_STATE
    int32_t descendant  # the looping state of a following `//`, or NO_STATE
    int32_t accepts     # what ends here (the owner's number for it), or -1
    int32_t marks       # how many other things its owner keeps here; a state with marks is not freed
    int32_t children    # transitions out of here, `*` and `//` included
    uint8_t loops       # whether it stays active below (the state of a `//`)
    uint16_t names      # one bit (name_bit) for each symbol that led on from here at some time: spares most look-ups

cdef inline uint16_t name_bit(symbol_t symbol) noexcept nogil:
    return <uint16_t>(1 << (symbol & 15))


cdef class PathNfa:
    cdef Array[NfaState] states        # state 0 is where a document begins
    cdef FlatMap[int32_t] transitions  # pack(state, symbol) -> state, but for `*` and `//`
    cdef int32_t free_state            # head of the list of free states, or NO_STATE
    cdef readonly Py_ssize_t state_count

    # The state after a step from `state`, made if it is new.
    cdef int32_t advance(self, int32_t state, symbol_t symbol, uint8_t axis) except -1
    # Frees the state, and those above it, as far as nothing needs them any more.
    cdef void release(self, int32_t state) noexcept
    cdef int64_t bytes(self) noexcept
    # Raises ValueError unless a restored automaton is a tree, and accepts numbers from 0 to before `keys`.
    cdef int check(self, int64_t keys) except -1

    cdef inline int32_t target(self, int32_t state, symbol_t symbol) noexcept nogil:
        return self.transitions.get(pack(state, symbol), NO_STATE)
