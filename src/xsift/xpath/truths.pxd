from libcpp.string cimport string

from xsift.native.types cimport int32_t
from xsift.xpath.condition cimport Condition
from xsift.xpath.constants cimport Value
from xsift.xpath.paths cimport PathCompiler


cdef class TruthCompiler(PathCompiler):
    cdef bint denies  # the comparison being compiled is negated

    # Formulas about a context node of that kind: true where boolean() of the expression is, or is not if negated.
    cdef int32_t truth(self, int32_t node, int kind, bint negated) except -1 nogil
    cdef int32_t connective(self, int32_t node, int kind, bint negated) except -1 nogil
    cdef int32_t denial(self, int32_t node, int kind) except -1 nogil
    cdef int32_t plain_truth(self, int32_t node, int kind) except -1 nogil
    cdef int32_t value_truth(self, const Value& value, int32_t node, int kind) except -1 nogil
    cdef int32_t search(self, int32_t node, int kind) except -1 nogil
    cdef int32_t comparison(self, int32_t node, int kind) except -1 nogil
    cdef int32_t compare_unknowns(
        self, const Value& left, const Value& right, int32_t node, int kind) except -1 nogil
    cdef int32_t compare_nodes(
        self, const Value& left, int comparison, const Value& right, int kind) except -1 nogil
    cdef int32_t compare_single(
        self, const Value& left, int comparison, const Value& right, int kind) except -1 nogil
    cdef int32_t compare_count(
        self, const Value& left, int comparison, const Value& right, int32_t node, int kind) except -1 nogil
    cdef int32_t compare_truth(
        self, int32_t truth, int comparison, const Value& right) except -1 nogil
    cdef int32_t chosen(self, bint if_false, bint if_true, int32_t formula) except -1 nogil

    # True of a context for which the condition holds for string() of a node-set (node -1: of the context itself).
    cdef int32_t single(self, int32_t node, const Condition& condition, int kind) except -1 nogil
    cdef int32_t single_denial(self, int32_t node, const Condition& condition, int kind) except -1 nogil
    cdef int shape(self, int32_t node, int kind, int32_t* step) noexcept nogil

    # What is known of an expression's value beforehand.
    cdef int value(self, int32_t node, Value* result) except -1 nogil
    cdef int call_value(self, int32_t node, Value* result) except -1 nogil
    cdef int text_value(self, int32_t call, Value* result) except -1 nogil
    cdef int changed_value(self, int32_t call, Value* result) except -1 nogil
    cdef bint begin_change(self, const Value& inner, Value* result) except -1 nogil
    cdef int joined_value(self, int32_t call, Value* result) except -1 nogil
    cdef int arithmetic_value(self, int32_t node, Value* result) except -1 nogil
