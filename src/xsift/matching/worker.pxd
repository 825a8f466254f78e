from libcpp.vector cimport vector

from xsift.document.reader cimport Reader
from xsift.engines.base cimport Engine
from xsift.native.tables cimport Array
from xsift.native.types cimport int32_t, int64_t, uint8_t, uint64_t

cdef enum RowKind:
    DELIVER = 0  # a pattern of the row matched: so does the row
    VERIFY = 1   # a pattern of the row matched: the rest is to be verified
    SKIP = 2     # the row was removed since its segment was built


cdef class Segment:
    cdef readonly Engine engine
    # Which rows a pattern belongs to: members[member_starts[key]] .. [member_starts[key + 1] - 1].
    cdef Array[int64_t] member_starts
    cdef Array[int32_t] members
    cdef bint keeps_order             # no pattern has more than one row, and greater keys have greater rows
    cdef bint keys_are_rows           # each pattern has one row, with the same number as its key
    cdef object kept                  # what owns the arrays of a restored segment

    cdef void note_order(self) noexcept


cdef class Plan:
    cdef readonly tuple segments
    cdef vector[uint8_t] kinds        # by row: RowKind
    cdef vector[int32_t] always       # rows that every document passes
    cdef readonly bint native         # whether every engine is
    cdef bint validate                # whether what is left of a document that is decided is checked
    cdef bint direct                  # one segment, which keeps order, and no rows that always pass
    cdef bint plain                   # moreover its keys are rows, all of them to be delivered


cdef class Worker:
    cdef readonly Plan plan
    cdef readonly Reader reader
    cdef list scratches               # one for each segment
    cdef vector[void*] segment_at     # borrowed from `plan` and `scratches`, to be used without the GIL
    cdef vector[void*] scratch_at
    cdef vector[uint8_t] decided      # by segment: needs no more events
    cdef vector[int32_t] keys
    cdef vector[int32_t] batch_rows        # the results of a batch
    cdef vector[int32_t] batch_candidates
    cdef vector[int32_t] codes        # a whole document, for engines in Python
    cdef vector[uint64_t] bits        # by row: passed
    cdef vector[uint64_t] words       # by word of `bits`: not zero
    cdef bint marking                 # bits may be set: they were not collected yet
    cdef readonly double parse_seconds
    cdef readonly double match_seconds

    # Matches what the reader was opened on; appends rows that match, and rows to verify, both ascending.
    cdef int run(self, vector[int32_t]* rows, vector[int32_t]* candidates) except -1 nogil
    cdef vector[int32_t]* emptied(self, vector[int32_t]* results) except NULL
    cdef int feed_all(self) except -1 nogil
    cdef bint is_decided(self) noexcept nogil
    cdef int match_in_python(self) except -1
    cdef int finish(self, size_t segment) except -1 nogil
    cdef int deliver_keys(self, vector[int32_t]* rows) except -1 nogil
    cdef int deliver(self, vector[int32_t]* rows, vector[int32_t]* candidates) except -1 nogil
    cdef int mark(self, size_t segment) except -1 nogil
    cdef void mark_row(self, int32_t row) noexcept nogil
    cdef int collect(self, vector[int32_t]* rows, vector[int32_t]* candidates) except -1 nogil
