from libcpp.vector cimport vector

from xsift.native.types cimport int32_t, symbol_t, uint8_t
from xsift.xpath.symbols cimport Symbols

cdef enum Axis:
    CHILD = 0
    DESCENDANT = 1

cdef struct PatternNode:
    symbol_t symbol       # an element name, ANY, or (is_condition) a condition
    int32_t parent        # -1 for node 0
    int32_t first_child   # -1 for a leaf
    int32_t next_sibling  # -1 for the last child
    uint8_t axis          # from the parent; node 0's is from the document: CHILD is /a, DESCENDANT is //a
    uint8_t is_condition  # always a leaf with axis CHILD


cdef class Pattern:
    # Nodes in pre-order: a node's index is less than those of its descendants.
    # Children of a node are in canonical order: sorted, conditions first, unless the pattern is ordered;
    # then the conditions (sorted) come first and the others stand as written.
    cdef vector[PatternNode] nodes
    cdef readonly bint ordered
    cdef readonly Symbols symbols

    @staticmethod
    cdef Pattern decode(const char* key, size_t length, Symbols symbols)
