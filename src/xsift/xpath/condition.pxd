# Declarations of condition.hpp, which explains each field.
from libcpp.string cimport string
from libc.stdint cimport uint8_t, uint64_t

cdef extern from "condition.hpp" namespace "xsift" nogil:
    cdef enum:
        SUBJECT_ATTRIBUTE
        SUBJECT_ANY_ATTRIBUTE
        SUBJECT_TEXT
        SUBJECT_STRING
        SUBJECT_NAMESPACE
        TRANSFORM_NONE
        TRANSFORM_NORMALIZE
        TRANSFORM_LENGTH
        TRANSFORM_NORMALIZE_LENGTH
        COMPARE_EXISTS
        COMPARE_EQUAL
        COMPARE_NOT_EQUAL
        COMPARE_LESS
        COMPARE_LESS_EQUAL
        COMPARE_GREATER
        COMPARE_GREATER_EQUAL
        COMPARE_CONTAINS
        COMPARE_STARTS_WITH

    const uint64_t TEXT_SUBJECT_BIT
    const uint64_t STRING_SUBJECT_BIT
    uint64_t subject_bit(uint8_t subject, const char* attribute, size_t length)

    cdef cppclass Condition:
        Condition() except +
        uint8_t subject
        uint8_t converted
        uint8_t transform
        uint8_t comparison
        uint8_t numeric
        uint8_t negated
        double number
        string attribute
        string text
        string recipe
        bint is_broad()
        string encode() except +
        @staticmethod
        Condition decode(const char* key, size_t size) except +


cdef extern from "recipe.hpp" namespace "xsift" nogil:
    cdef enum class Change "xsift::Change":
        TRANSLATE
        NORMALIZE
        SUBSTRING
        BEFORE
        AFTER
        AROUND

    void put_change(string* recipe, Change change) except +
    void put_text_operand "xsift::put_operand" (string* recipe, const string& text) except +
    void put_number_operand "xsift::put_operand" (string* recipe, double number) except +
