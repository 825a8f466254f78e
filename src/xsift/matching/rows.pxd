from cpython.object cimport PyObject
from libcpp.string cimport string
from libcpp.vector cimport vector

from xsift.native.tables cimport Array, BytesTable
from xsift.native.types cimport int32_t, int64_t, uint8_t
from xsift.xpath.compiler cimport Compiler

cdef enum RowFlag:
    EXACT = 1     # the patterns decide alone; else the program decides what passes them
    ALWAYS = 2    # no pattern: every document passes
    ORDERED = 4   # asked for with ordered=True
    LISTED = 8    # it selects nodes that its patterns cannot tell: the program lists them

cdef enum:
    MOST_ID_BYTES = 4096


cdef class Rows:
    # Row r is the r-th subscription that was added. Its id is number row_id[r] in `ids`.
    cdef BytesTable ids
    cdef Array[int32_t] id_row          # by id number: the row that has it now, or -1
    cdef Array[int32_t] row_id
    cdef Array[int32_t] row_mapping     # the number of the namespaces that the expression was read with
    cdef Array[char] texts              # the expressions, UTF-8, one after the other
    cdef Array[int64_t] text_ends       # by row: where its text ends
    cdef Array[uint8_t] flags           # by row: RowFlag bits
    cdef Array[uint8_t] removed         # by row
    # A row's alternatives: it passes if one of its patterns matches. None, and not ALWAYS: it can never match.
    cdef Array[int64_t] alternative_ends
    cdef Array[int32_t] alternative_pattern    # number of the pattern's key in `patterns`
    cdef Array[int32_t] alternative_output     # the step whose element is selected, -1 if none
    cdef Array[uint8_t] alternative_selects    # SELECTS_… of xpath/formula.pxd
    cdef Array[int32_t] alternative_attribute  # the attribute that is selected, a number in `notes`; -1 if none
    cdef BytesTable patterns
    # What no pattern says: programs, also as text, the reasons for them, names of attributes; equal ones once.
    cdef BytesTable notes
    cdef Array[int32_t] row_program     # what is evaluated (xpath/program.hpp): a number in `notes`, or -1
    cdef Array[int32_t] row_residual    # the same as text, for people: likewise
    cdef Array[int32_t] row_reason      # likewise
    # By row: its id as a Python string, once somebody asked for it, or NULL; and about how many bytes they take.
    cdef vector[PyObject*] id_strings
    cdef Py_ssize_t id_string_bytes
    cdef public Py_ssize_t most_id_string_bytes  # further ids are made each time they are asked for
    cdef readonly Py_ssize_t count       # rows that are not removed
    cdef object kept                     # what owns the arrays of restored rows

    cdef int append(self, const char* id, size_t id_length, const char* text, size_t length, Compiler compiler,
                    bint ordered, int32_t mapping, bint refuse_residuals) except -1
    cdef int check_id(self, const char* id, size_t length) except -1
    cdef object new_id_string(self, int32_t row)
    cdef int32_t noted(self, const string& text) except? -2
    cdef bytes note(self, int32_t number)
