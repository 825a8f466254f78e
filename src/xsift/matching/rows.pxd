from xsift.native.tables cimport Array, BytesTable
from xsift.native.types cimport int32_t, int64_t, uint8_t
from xsift.xpath.compiler cimport Compiler

cdef enum RowFlag:
    EXACT = 1     # the patterns decide alone; else lxml verifies what passes them
    ALWAYS = 2    # no pattern: every document passes
    ORDERED = 4   # asked for with ordered=True
    LISTED = 8    # it selects nodes that only lxml can list


cdef class Rows:
    # Row r is the r-th subscription that was added. Its id is number row_id[r] in `ids`.
    cdef BytesTable ids
    cdef Array[int32_t] id_row          # by id number: the row that has it now, or -1
    cdef Array[int32_t] row_id
    cdef Array[char] texts              # the expressions, UTF-8, one after the other
    cdef Array[int64_t] text_ends       # by row: where its text ends
    cdef Array[uint8_t] flags           # by row: RowFlag bits
    cdef Array[uint8_t] removed         # by row
    # A row's alternatives: it passes if one of its patterns matches. None, and not ALWAYS: it can never match.
    cdef Array[int64_t] alternative_ends
    cdef Array[int32_t] alternative_pattern   # number of the pattern's key in `patterns`
    cdef Array[int32_t] alternative_output    # the step whose element is selected, -1 if none
    cdef Array[uint8_t] alternative_selects   # SELECTS_… of xpath/formula.pxd
    cdef BytesTable patterns
    cdef readonly Py_ssize_t count       # rows that are not removed
    cdef object kept                     # what owns the arrays of restored rows

    cdef int32_t id_number(self, const char* data, size_t length) except -1
    cdef int append(self, int32_t id_number, const char* text, size_t length, Compiler compiler,
                    bint ordered) except -1
