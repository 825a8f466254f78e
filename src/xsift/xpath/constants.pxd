# Declarations of constants.hpp, which explains them.
from libcpp.string cimport string
from libc.stdint cimport int32_t, uint8_t

from xsift.xpath.condition cimport Condition

cdef extern from "constants.hpp" namespace "xsift" nogil:
    cdef enum:
        VALUE_CONSTANT
        VALUE_NODES
        VALUE_TEXT
        VALUE_NUMBER
        VALUE_COUNT
        VALUE_TRUTH
        VALUE_OTHER

    cdef cppclass Value:
        Value() except +
        uint8_t kind
        uint8_t type
        uint8_t transform
        int32_t node
        double number
        string text
        string recipe
        bint constant()
        @staticmethod
        Value of_number(double number)
        @staticmethod
        Value of_boolean(bint truth)
        @staticmethod
        Value of_text(string text)
        @staticmethod
        Value of(int kind, int type, int32_t node, int transform)
        double to_number()
        bint to_boolean()
        bint to_text(string* result) except +

    bint compare_numbers(double left, int comparison, double right)
    bint compare_constants(const Value& left, int comparison, const Value& right)
    int mirrored(int comparison)
    int opposite(int comparison)
    string normalize_space(const string& text) except +
    bint holds(const Condition& condition, const string& value) except +
    bint depends_on_count(int comparison, double number)
