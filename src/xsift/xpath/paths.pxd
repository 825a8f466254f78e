from libcpp.string cimport string
from libcpp.vector cimport vector

from xsift.native.types cimport int32_t, uint8_t
from xsift.xpath.condition cimport Condition
from xsift.xpath.formula cimport Formulas
from xsift.xpath.namespaces cimport Namespaces
from xsift.xpath.syntax cimport SyntaxNode

cdef enum:
    # Kinds of node, as far as a path may tell them beforehand.
    KIND_DOCUMENT = 0
    KIND_ELEMENT = 1
    KIND_ATTRIBUTE = 2
    KIND_TEXT = 3
    KIND_OTHER = 4      # a comment or a processing instruction
    KINDS = 5

    # What is asked of the nodes of a node-set.
    DEMAND_EXISTENCE = 0
    DEMAND_CONDITION = 1
    DEMAND_MORE = 2


# A step of a path as the compiler sees it: `//` is merged into the step after it, `.` is left out.
cdef struct Move:
    int32_t node   # the step whose test and predicates these are; -1 if it has none
    uint8_t axis
    uint8_t test
    uint8_t kinds  # of the nodes from which it starts: a set, bit 1 << KIND_…


cdef struct Demand:
    uint8_t kind
    bint selecting              # DEMAND_EXISTENCE: they are what the subscription selects
    const Condition* condition  # DEMAND_CONDITION: holds for the string of one of them
    int32_t predicates          # DEMAND_MORE: the first of the predicates that one of them passes, -1 if none;
    int32_t steps               # the first of the steps that lead on from there, -1 if none;
    const Demand* further       # and what is asked of the nodes that they lead to


cdef class PathCompiler:
    cdef Namespaces namespaces
    cdef Formulas formulas
    cdef const SyntaxNode* nodes   # of the expression at hand
    cdef const char* source
    cdef size_t source_length
    cdef vector[Move] moves        # of the paths that are being walked: a stack
    cdef int32_t predicate_depth   # how many predicates are open; outside, a relative path starts anywhere
    cdef int32_t work              # done so far, of LIMIT_WORK
    cdef int32_t blamed            # the first node that could not be indexed exactly, -1 if none

    cdef int begin(self, const SyntaxNode* nodes, const char* source, size_t length) except -1 nogil

    # Formulas about a context node of that kind. Which part is to blame for an inexact one is noted in `blamed`.
    cdef int32_t exists(self, int32_t node, int kind) except -1 nogil
    cdef int32_t walk(self, int32_t node, int kind, const Demand* demand) except -1 nogil
    cdef int32_t predicates(self, int32_t first, int kind) except -1 nogil
    cdef int32_t ask(self, const Condition& condition, int kind, int32_t node) except -1 nogil
    cdef int32_t unknown(self, int32_t node) noexcept nogil
    cdef int32_t weakened(self, int32_t formula, int32_t node) except -1 nogil
    cdef bint is_exhausted(self) noexcept nogil

    # A predicate's formula. TruthCompiler overrides it, as a predicate need not be a path.
    cdef int32_t predicate(self, int32_t node, int kind) except -1 nogil

    cdef int32_t path(self, int32_t node, int kind, const Demand* demand) except -1 nogil
    cdef int32_t steps(
        self, int32_t first, int kind, bint anywhere, const Demand* demand, const Move* before) except -1 nogil
    cdef int plan(self, int32_t first, bint anywhere) except -1 nogil
    cdef int32_t meet(self, const Demand* demand, int kind, const Move* last) except -1 nogil
    cdef int32_t step(self, const Move* move, int kind, const int32_t* then) except -1 nogil
    cdef int32_t step_down(self, const Move* move, int axis, int kind, const int32_t* then) except -1 nogil
    cdef int32_t step_to_text(self, const Move* move, int axis, int kind, int32_t then) except -1 nogil
    cdef int32_t step_to_self(self, const Move* move, int kind, const int32_t* then) except -1 nogil
    cdef int32_t step_to_attribute(self, const Move* move, int32_t then) except -1 nogil
    cdef int32_t step_to_other(self, const Move* move, int32_t then) noexcept nogil
    cdef int attribute_key(self, int32_t step, string* key) except -1 nogil
