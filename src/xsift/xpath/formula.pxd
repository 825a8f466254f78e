from libcpp.vector cimport vector

from xsift.native.types cimport int32_t, uint8_t
from xsift.xpath.condition cimport Condition
from xsift.xpath.syntax cimport SyntaxNode

cdef enum:
    # Formulas that always exist, under these numbers.
    FORMULA_FALSE = 0
    FORMULA_TRUE = 1
    FORMULA_UNKNOWN = 2  # nothing is known: as a necessary condition, true

    # What a node of a pattern is to the subscription's result.
    SELECTS_NOTHING = 0
    SELECTS_ELEMENT = 1    # it is what the expression selects
    SELECTS_ATTRIBUTE = 2  # it carries the attribute that is
    SELECTS_TEXT = 3       # it is the parent of the text node that is
    SELECTS_NODES = 4      # the expression selects nodes of several kinds, which a pattern cannot tell

    NO_TEST = -1           # instead of a step's index: any element will do


# A part of a pattern: an element or a condition, with all that hangs below it. Never changed once made.
cdef struct Twig:
    int32_t test         # the step whose name test it has, or NO_TEST; of a condition: its number
    int32_t first_link   # its children are links[first_link : first_link + links], in the order written
    int32_t links
    int32_t size         # nodes, itself included
    int32_t output       # if it selects an attribute: the step that does
    uint8_t selects      # SELECTS_…
    uint8_t axis         # CHILD or DESCENDANT
    uint8_t is_condition


# One way in which a formula can be true of a node, the context: all of this holds.
cdef struct Alternative:
    int32_t first_link   # twigs below the context: links[first_link : first_link + links]
    int32_t links
    int32_t size         # nodes in them
    int32_t test         # a step whose name test the context itself passes, or NO_TEST
    int32_t output       # as in a Twig, for the context itself
    uint8_t selects


# A disjunction of alternatives. None: it is false. One without links and test: it is true.
cdef struct Formula:
    int32_t first        # alternatives[first : first + count]
    int32_t count        # at most LIMIT_PATTERNS
    bint exact           # else it is only implied by the expression that it stands for; FALSE is always exact


cdef class Formulas:
    # All of one expression; begin() empties them. Formulas are named by their numbers in `formulas`.
    cdef vector[Formula] formulas
    cdef vector[Alternative] alternatives
    cdef vector[Twig] twigs          # children before parents
    cdef vector[int32_t] links       # numbers of twigs
    cdef vector[Condition] conditions
    cdef const SyntaxNode* nodes     # of the expression at hand
    cdef const char* source
    cdef size_t source_length

    cdef int begin(self, const SyntaxNode* nodes, const char* source, size_t length) except -1 nogil
    cdef int32_t conjunction(self, int32_t left, int32_t right) except -1 nogil
    cdef int32_t disjunction(self, int32_t left, int32_t right) except -1 nogil
    cdef int32_t negation(self, int32_t formula) except -1 nogil
    cdef int32_t inexact(self, int32_t formula) except -1 nogil
    # True of a node that has, along the axis, an element that passes the test and of which the formula is true.
    cdef int32_t below(self, int axis, int32_t test, int32_t formula) except -1 nogil
    # True of an element that passes the test and of which the formula is true.
    cdef int32_t constrained(self, int32_t formula, int32_t test) except -1 nogil
    # True of an element of which the condition holds.
    cdef int32_t condition(self, const Condition& condition) except -1 nogil
    # True of an element that has a value of that subject of which the formula, made for one such value, is true.
    cdef int32_t owning(self, int32_t formula, const Condition& subject, bint single) except -1 nogil
    # True, and says that the context is what the expression selects.
    cdef int32_t selection(self, int selects, int32_t output) except -1 nogil

    cdef bint is_exact(self, int32_t formula) noexcept nogil
    cdef bint is_true(self, int32_t formula) noexcept nogil
    cdef bint absorbs(self, int32_t formula) noexcept nogil
    cdef bint is_stronger(self, int32_t left, int32_t right) noexcept nogil
    cdef int32_t least_size(self, int32_t formula) noexcept nogil
    cdef int32_t merged_test(self, int32_t left, int32_t right) noexcept nogil
    cdef int32_t plain_test(self, int32_t test) noexcept nogil
    cdef int32_t close(self, int32_t first, bint exact) except -1 nogil
    cdef int32_t negated_alternative(self, int32_t alternative) except -1 nogil
    cdef int check_size(self, int32_t size) except -1 nogil
