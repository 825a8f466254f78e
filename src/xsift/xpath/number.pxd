# Declarations of number.hpp, which explains them.
cdef extern from "number.hpp" namespace "xsift" nogil:
    double xpath_number(const char* data, size_t length)
    bint is_xml_space(char c)
    bint is_digit(char c)
