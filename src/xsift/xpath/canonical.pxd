from libcpp.string cimport string
from libcpp.vector cimport vector

from xsift.native.types cimport int32_t, uint8_t
from xsift.xpath.formula cimport Formulas, Twig
from xsift.xpath.namespaces cimport Namespaces
from xsift.xpath.symbols cimport Symbols


# A twig's part of a key.
cdef struct Encoding:
    int32_t begin    # bytes[begin : begin + length]; length 0 while it is not made
    int32_t length
    int32_t output   # the index, in this part, of the node that the expression selects, -1 if it is not here
    int32_t selected # its twig; -1 likewise
    uint8_t is_condition


cdef class Canonical:
    cdef Formulas formulas
    cdef Symbols symbols
    cdef Namespaces namespaces
    # Buffers that are used again for the next expression.
    cdef vector[Encoding] encodings  # by twig
    cdef vector[char] bytes
    cdef vector[uint8_t] wanted      # by twig: whether it is part of a pattern
    cdef vector[Encoding] children   # of the twig at hand
    cdef string name

    # To be called when the formulas of an expression are complete.
    cdef int begin(self) except -1 nogil
    # Appends the key of the pattern that the twig is, and says which node is selected: its index, its twig; or -1.
    cdef int encode(self, int32_t root, bint ordered, vector[char]* key, int32_t* output, int32_t* selected) \
        except -1 nogil

    cdef int encode_twig(self, int32_t twig, bint ordered) except -1 nogil
    cdef int32_t symbol_of(self, const Twig* twig) except -1 nogil
    cdef int add_namespace(self, int32_t test) except -1 nogil
    cdef int sort_children(self, bint ordered) noexcept nogil
    cdef bint precedes(self, const Encoding* left, const Encoding* right, bint ordered) noexcept nogil
    cdef bint equal(self, const Encoding* left, const Encoding* right) noexcept nogil
    cdef int append_entry(self, int32_t symbol, int axis, bint is_condition, int children) except -1 nogil
