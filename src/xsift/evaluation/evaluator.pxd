# Declarations of evaluator.hpp, which explains them, and the class that owns one.
from libcpp cimport bool as cpp_bool
from libcpp.vector cimport vector

from xsift.document.nodes.node_tree cimport Nodes, NodeTree
from xsift.native.types cimport int32_t, int64_t, uint8_t

cdef extern from "evaluator.hpp" namespace "xsift" nogil:
    cdef cppclass Expression "xsift::Expression":
        cpp_bool namespaces

    cdef cppclass Library:
        const Expression& operator[](int32_t number)
        vector[Expression] expressions
        size_t bytes()

    cdef cppclass Evaluation "xsift::Evaluator":
        Library library
        int64_t steps
        int64_t steps_per_node
        void begin(Nodes* tree) except +
        int32_t link(const char* data, size_t length) except +
        int holds(int32_t root) except +
        cpp_bool select(int32_t root, vector[int32_t]* nodes) except +
        int64_t steps_left()

cdef enum:
    # What holds() says.
    HOLDS_NOT = 0
    HOLDS = 1
    OVER_BUDGET = 2


cdef class Evaluator:
    cdef Evaluation* evaluation
    cdef NodeTree tree  # the document at hand, or None

    # The number of the expression that a program stands for. Programs that came later may use it as well.
    cdef int32_t link_bytes(self, const char* data, size_t length) except -1 nogil
    # Makes a document the one to evaluate on; it must not be built anew meanwhile.
    cdef int begin(self, NodeTree tree) except -1 nogil
    cdef int run(self, int32_t root) except -1 nogil  # HOLDS_NOT, HOLDS or OVER_BUDGET
    # Whether an expression needs namespace nodes.
    cdef bint wants_namespaces(self, int32_t root) noexcept nogil
