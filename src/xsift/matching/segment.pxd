from xsift.engines.base cimport Engine, Scratch
from xsift.native.tables cimport Array
from xsift.native.types cimport int32_t, int64_t


cdef class Segment:
    cdef readonly Engine engine
    # Which rows a pattern belongs to: members[member_starts[key]] .. [member_starts[key + 1] - 1].
    cdef Array[int64_t] member_starts
    cdef Array[int32_t] members
    cdef bint keeps_order             # no pattern has more than one row, and greater keys have greater rows
    cdef bint keys_are_rows           # each pattern has one row, with the same number as its key
    cdef object kept                  # what owns the arrays of a restored segment
    cdef list idle                    # scratches that workers left

    cdef void note_order(self) noexcept
    # A scratch of the engine for a worker, which gives it back when it ends. A scratch knows what documents led to, and
    # making it takes a while: so a matcher that follows another one begins with what that one knew.
    cdef Scratch lend(self)
    cdef void take_back(self, Scratch scratch)
