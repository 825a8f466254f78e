from xsift.engines.base cimport Engine
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

    cdef void note_order(self) noexcept
