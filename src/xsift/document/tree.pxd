from libcpp.vector cimport vector

from xsift.document.events cimport EventSource
from xsift.document.names cimport ElementNames
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
    cdef vector[int32_t] places     # among siblings of the same name, 0 if it is the only one; empty until asked for
    cdef list labels                # what a path calls a name, by name; None until asked for

    cdef int _build(self, EventSource source) except -1 nogil
    cdef int _sort_conditions(self, const vector[int32_t]& holders, const vector[symbol_t]& held) except -1 nogil
    cdef int32_t _index(self, object number) except -1
    cdef int _find_places(self) except -1
