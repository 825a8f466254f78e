from libcpp.vector cimport vector

from xsift.document.conditions.condition_index cimport ConditionIndex
from xsift.document.handlers cimport NameEntry, Part
from xsift.native.tables cimport BytesTable
from xsift.native.types cimport int32_t, int64_t, symbol_t
from xsift.xpath.symbols cimport Symbols


cdef class DocumentIndex:
    cdef readonly Symbols symbols
    cdef readonly tuple conditions  # of ConditionIndex
    # Never changed after __init__, so that readers in many threads may share them.
    cdef BytesTable names           # the element names that are asked for: "local" or "uri\x1flocal"
    cdef vector[NameEntry]* entries  # entry i + 1 is for name i, entry 0 for all other names
    cdef vector[Part]* parts
    cdef vector[int64_t] versions   # of `conditions` when this was made
    cdef vector[const int64_t*] versions_now  # where they keep the version that they have now

    # Whether the conditions are as they were when this was made.
    cdef bint is_current(self) noexcept nogil
    cdef int _add_part(self, NameEntry* entry, ConditionIndex index, int32_t number, symbol_t name) except -1
