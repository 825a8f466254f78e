from libcpp.vector cimport vector

from xsift.native.types cimport int32_t
from xsift.xpath.faults cimport Fault
from xsift.xpath.lexer cimport Cursor
from xsift.xpath.namespaces cimport Namespaces
from xsift.xpath.syntax cimport SyntaxNode


cdef struct Row:
    # Siblings that wait for their parent. -1 while there are none.
    int32_t first
    int32_t last


cdef class Parser:
    # After parse(): the tree, whose root is the last node. Its offsets refer to the text that was given.
    cdef vector[SyntaxNode] nodes
    cdef Fault fault
    cdef Namespaces namespaces
    cdef Cursor cursor
    cdef int32_t depth  # of open brackets
    cdef char open      # the innermost open bracket, 0 if none

    # The root's index; -1 if the text is at fault, which `fault` then tells. Can be used again at once.
    cdef int32_t parse(self, const char* text, size_t length) except -2 nogil

    # The grammar. Each returns the index of the node that it made, or -1 after fail().
    cdef int32_t expression(self, int level) noexcept nogil
    cdef int32_t unary(self) noexcept nogil
    cdef int32_t union_of_paths(self) noexcept nogil
    cdef int32_t path(self) noexcept nogil
    cdef int32_t location_path(self) noexcept nogil
    cdef int32_t filter_path(self) noexcept nogil
    cdef int32_t primary(self) noexcept nogil
    cdef int32_t group(self) noexcept nogil
    cdef int32_t call(self) noexcept nogil
    cdef int32_t literal(self) noexcept nogil
    cdef int32_t number(self) noexcept nogil
    cdef int32_t variable(self) noexcept nogil
    cdef int32_t step(self) noexcept nogil

    # Parts of it. Each returns 0, or -1 after fail().
    cdef int steps(self, Row* row) noexcept nogil
    cdef int descent(self, Row* row) noexcept nogil
    cdef int arguments(self, Row* row, int* count) noexcept nogil
    cdef int predicates(self, Row* row) noexcept nogil
    cdef int node_test(self, SyntaxNode* step) noexcept nogil
    cdef int axis(self, SyntaxNode* step) noexcept nogil
    cdef int local_name(self, SyntaxNode* step) noexcept nogil
    cdef int node_type(self, SyntaxNode* step) noexcept nogil
    cdef int literal_span(self, int32_t* begin, int32_t* length) noexcept nogil
    cdef int enter(self, char opening) noexcept nogil
    cdef int close(self, char closing, char outer) noexcept nogil

    cdef bint at_call(self) noexcept nogil
    cdef bint at_step(self) noexcept nogil
    cdef int32_t make(self, SyntaxNode node) noexcept nogil
    cdef int append(self, Row* row, int32_t node) noexcept nogil
    cdef int need_node_set(self, int32_t node) noexcept nogil
    cdef int fail(self, int kind, int32_t offset, int32_t length) noexcept nogil
    cdef int unexpected(self) noexcept nogil
    cdef int no_operand(self) noexcept nogil
