from libcpp.string cimport string

from xsift.native.tables cimport BytesTable
from xsift.native.types cimport symbol_t
from xsift.xpath.condition cimport Condition

cdef enum:
    ANY = 0  # the symbol of `*`; as an event, a name that no pattern asks for


cdef class Symbols:
    # Key of an element name: "E" + "local" or "E" + "uri\x1flocal". Key of a condition: "C" + its encoding.
    # A symbol is its key's number in this table; number 0 is "*". The table only grows.
    cdef BytesTable table

    cdef symbol_t name(self, const char* key, size_t length) except? -1 nogil
    cdef symbol_t condition(self, const Condition& condition) except? -1 nogil
    cdef bint is_condition(self, symbol_t symbol) noexcept nogil
    cdef Condition condition_of(self, symbol_t symbol)
