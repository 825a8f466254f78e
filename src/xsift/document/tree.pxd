from libcpp.string cimport string
from libcpp.vector cimport vector

from xsift.document.events cimport EventSource
from xsift.document.names cimport ElementNames
from xsift.native.tables cimport FlatMap
from xsift.native.types cimport int32_t, int64_t, symbol_t


cdef class DocumentTree:
    # Element number n is at index n - 1 of each of these.
    cdef vector[symbol_t] symbols
    cdef vector[int32_t] parents    # the parent's number, 0 for the root element
    cdef vector[int32_t] levels     # 1 for the root element
    cdef vector[int32_t] posts      # rank in post-order, from 1
    cdef vector[int32_t] lasts      # the number of its last descendant, its own if it has none
    cdef vector[int64_t] starts     # where it begins in the document's bytes, and
    cdef vector[int64_t] stops      # where it ends; both empty unless positions were kept
    # The conditions that hold for element n: conditions[condition_starts[n - 1]] .. [condition_starts[n] - 1].
    cdef vector[int64_t] condition_starts
    cdef vector[symbol_t] conditions
    cdef readonly ElementNames names  # or None
    cdef bint conditions_are_sorted  # those of each element ascend
    cdef readonly bint narrowed     # some conditions that hold are missing: see EventSource
    cdef vector[int32_t] places     # among siblings of the same name, 0 if it is the only one; empty until asked for
    cdef string path_buffer
    cdef vector[string] labels      # what a path calls a name, by name; empty until asked for
    # Element numbers by symbol, ascending, one symbol after the other; empty until asked for. pack(0, symbol) -> where it begins.
    cdef vector[int32_t] by_symbol
    cdef FlatMap[int64_t] symbol_starts

    # The elements with a symbol: from `begin` to before `end`.
    cdef int elements_of(self, symbol_t symbol, const int32_t** begin, const int32_t** end) except -1 nogil
    # Whether a condition holds for an element.
    cdef bint holds(self, int32_t element, symbol_t condition) noexcept nogil
    cdef int sort_conditions(self) except -1 nogil

    cdef int _build(self, EventSource source) except -1 nogil
    cdef int _index_symbols(self) except -1 nogil
    cdef int _sort_conditions(self, const vector[int32_t]& holders, const vector[symbol_t]& held) except -1 nogil
    cdef int32_t _index(self, object number) except -1
    cdef int _find_places(self) except -1
