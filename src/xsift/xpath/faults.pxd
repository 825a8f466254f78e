from xsift.native.types cimport int32_t

# What can be wrong with a subscription's text. faults.pyx has the words for each.
cdef enum:
    FAULT_NONE = 0
    FAULT_EMPTY
    FAULT_TOO_LONG
    FAULT_TOO_DEEP
    FAULT_TOO_LARGE
    FAULT_NAME_TOO_LONG
    FAULT_ENCODING
    FAULT_CHARACTER
    FAULT_OPERAND_MISSING
    FAULT_UNEXPECTED
    FAULT_NOTHING_TO_CLOSE
    FAULT_PREDICATE_NOT_CLOSED
    FAULT_PREDICATE_EMPTY
    FAULT_PREDICATE_AFTER_DOTS
    FAULT_PARENTHESIS_NOT_CLOSED
    FAULT_PARENTHESIS_EMPTY
    FAULT_LITERAL_NOT_CLOSED
    FAULT_STEP_MISSING
    FAULT_TEST_MISSING
    FAULT_UNKNOWN_AXIS
    FAULT_UNKNOWN_NODE_TYPE
    FAULT_NODE_TYPE_ARGUMENT
    FAULT_FUNCTION_AS_STEP
    FAULT_UNKNOWN_FUNCTION
    FAULT_WRONG_ARITY
    FAULT_UNBOUND_PREFIX
    FAULT_VARIABLE
    FAULT_NOT_NODE_SET
    FAULT_PATTERN_TOO_LARGE


cdef struct Fault:
    int32_t kind    # FAULT_…; FAULT_NONE while all is well
    int32_t offset  # byte of the source to point at; -1 for the expression as a whole
    int32_t length  # number of bytes from there that the message quotes; 0 if it quotes none


# Raises the XPathError for a fault in `text`.
cdef int raise_fault(const char* text, size_t length, Fault fault) except -1
