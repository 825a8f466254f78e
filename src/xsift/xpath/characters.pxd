# Declarations of characters.hpp, which explains them.
from libcpp cimport bool as cpp_bool

cdef extern from "characters.hpp" namespace "xsift" nogil:
    size_t count_characters(const char* data, size_t length)
    size_t valid_prefix(const char* data, size_t length, cpp_bool* encoding)
    bint begins_name(const char* at, const char* end)
    size_t scan_name(const char* at, const char* end)
