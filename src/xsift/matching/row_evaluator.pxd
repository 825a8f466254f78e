from libcpp.vector cimport vector

from xsift.document.nodes.node_tree cimport NodeTree
from xsift.evaluation.evaluator cimport Evaluator
from xsift.matching.rows cimport Rows
from xsift.native.types cimport int32_t, uint8_t


cdef class RowEvaluator:
    cdef Rows rows
    cdef Evaluator evaluator
    cdef readonly NodeTree tree
    cdef vector[int32_t] roots     # by number in `rows.notes`: the program's expression in the evaluator, or UNKNOWN
    cdef object source             # the bytes of the document at hand, and
    cdef bytes encoding            # what their encoding is, if they do not say it; or None
    cdef bint is_built             # whether `tree` is its tree
    cdef vector[int32_t] leaf_places  # by node of `tree`: its place among its like, ALONE, or UNKNOWN; empty until asked

    cdef int32_t root_of(self, int32_t row) except -1
    cdef int build(self, bint namespaces) except -1
    cdef bint _prepare(self, vector[int32_t]* rows, vector[int32_t]* roots, dict failures) except -1
    cdef int number_leaves(self, int32_t parent) except -1 nogil
