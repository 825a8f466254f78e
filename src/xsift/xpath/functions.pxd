# Declarations of functions.hpp, which explains them.
from libcpp cimport bool as cpp_bool
from libc.stdint cimport uint8_t

cdef extern from "functions.hpp" namespace "xsift" nogil:
    cdef enum:
        TYPE_NODE_SET
        TYPE_BOOLEAN
        TYPE_NUMBER
        TYPE_STRING
        FUNCTION_BOOLEAN
        FUNCTION_CEILING
        FUNCTION_CONCAT
        FUNCTION_CONTAINS
        FUNCTION_COUNT
        FUNCTION_FALSE
        FUNCTION_FLOOR
        FUNCTION_ID
        FUNCTION_LANG
        FUNCTION_LAST
        FUNCTION_LOCAL_NAME
        FUNCTION_NAME
        FUNCTION_NAMESPACE_URI
        FUNCTION_NORMALIZE_SPACE
        FUNCTION_NOT
        FUNCTION_NUMBER
        FUNCTION_POSITION
        FUNCTION_ROUND
        FUNCTION_STARTS_WITH
        FUNCTION_STRING
        FUNCTION_STRING_LENGTH
        FUNCTION_SUBSTRING
        FUNCTION_SUBSTRING_AFTER
        FUNCTION_SUBSTRING_BEFORE
        FUNCTION_SUM
        FUNCTION_TRANSLATE
        FUNCTION_TRUE

    cdef struct Signature:
        const char* name
        uint8_t least
        uint8_t most
        uint8_t result
        cpp_bool takes_node_set
        cpp_bool takes_context

    const Signature FUNCTIONS[]
    int find_function(const char* name, size_t length)
