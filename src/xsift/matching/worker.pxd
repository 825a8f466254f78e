from libcpp.vector cimport vector

from xsift.document.events cimport EventSource
from xsift.document.reader cimport Reader
from xsift.native.types cimport int32_t, int64_t, uint8_t, uint64_t

cpdef enum RowKind:
    # What to do with a row one of whose patterns matched.
    DELIVER = 0   # the row matches
    EVALUATE = 1  # what the patterns do not say is still to be evaluated
    REMOVED = 2   # nothing: the row was removed before the plan was made


cdef class Plan:
    cdef readonly tuple segments
    cdef vector[uint8_t] kinds        # by row
    cdef vector[int32_t] always       # rows that every document passes
    cdef readonly Py_ssize_t live_rows   # rows that are not removed
    cdef readonly bint evaluates      # whether some row may have to be evaluated
    cdef readonly bint native         # whether every engine is
    cdef bint validate                # whether what is left of a document that is decided is checked
    cdef bint direct                  # one segment, which keeps order, and no rows that always pass
    cdef bint plain                   # moreover its keys are rows, all of them to be delivered
    cdef object find_broad            # gives, by row: 1 if it has a condition that many elements may hold
    cdef object broad                 # what it gave, once somebody asked


cdef struct Buffer:
    const char* data
    size_t length


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
    cdef vector[int64_t] row_ends          # by document of the batch: where they end
    cdef vector[int64_t] candidate_ends
    cdef vector[Buffer] buffers            # documents of the batch that are in memory, one after the other
    cdef vector[uint64_t] bits        # by row: passed
    cdef vector[uint64_t] words       # by word of `bits`: not zero
    cdef bint guided                  # the engines guide the reader
    cdef bint marking                 # bits may be set: they were not collected yet

    cdef int follow_engines(self) except -1
    cdef int open(self, document) except -1
    # Matches a document; appends rows that match, and rows to evaluate, both ascending. Among the latter ~r stands for a row r
    # that cannot be decided, because not all conditions that hold were told (Limits.conditions).
    cdef int run(self, EventSource source, vector[int32_t]* rows, vector[int32_t]* candidates) except -1 nogil
    # Matches the documents in `buffers` that have no result yet in the batch, which has those before `first` too.
    cdef int run_buffers(self, size_t first) except -1 nogil
    cdef int end_document(self) except -1 nogil
    cdef int drop_document(self) except -1
    cdef int begin_batch(self) except -1
    cdef vector[int32_t]* emptied(self, vector[int32_t]* results) except NULL
    cdef int feed_all(self, EventSource source) except -1 nogil
    cdef bint is_decided(self) noexcept nogil
    cdef int match_in_python(self, EventSource source) except -1
    cdef int finish(self, size_t segment) except -1 nogil
    cdef int deliver_keys(self, vector[int32_t]* rows) except -1 nogil
    cdef int deliver(self, vector[int32_t]* rows, vector[int32_t]* candidates) except -1 nogil
    cdef int mark(self, size_t segment) except -1 nogil
    cdef void mark_row(self, int32_t row) noexcept nogil
    cdef int collect(self, vector[int32_t]* rows, vector[int32_t]* candidates) except -1 nogil
    cdef int decide(self, EventSource source, vector[int32_t]* rows, vector[int32_t]* candidates) except -1 nogil
    cdef int note_undecided(self, vector[int32_t]* rows, size_t rows_before, vector[int32_t]* candidates,
                            size_t candidates_before) except -1
