from libcpp.string cimport string

from xsift.native.types cimport int32_t, uint8_t, uint32_t
from xsift.xpath.namespaces cimport Namespaces
from xsift.xpath.syntax cimport SyntaxNode

cdef extern from "program.hpp" namespace "xsift" nogil:
    cdef enum:
        PROGRAM_VERSION
        PROGRAM_NAMESPACES
        PROGRAM_END

    cdef enum class Op "xsift::Op":
        NUMBER
        STRING
        CONTEXT
        ROOT
        STEP
        FILTER
        UNION
        OR
        AND
        COMPARE
        ADD
        SUBTRACT
        MULTIPLY
        DIVIDE
        MODULO
        NEGATE
        CALL
        POSITION
        LAST

    void put_varint(string* bytes, uint32_t number) except +
    void put_text(string* bytes, const char* data, size_t length) except +


# Appends the program of an expression to `program`. `source` is the text that the nodes refer to.
cdef int write_program(
    string* program, const SyntaxNode* nodes, const char* source, int32_t root, Namespaces namespaces
) except -1 nogil
