# Numbers that are used again; free_numbers.hpp says which.
from libc.stdint cimport int32_t

cdef extern from "free_numbers.hpp" namespace "xsift" nogil:
    cdef cppclass FreeNumbers:
        FreeNumbers() except +
        int32_t take(size_t next)
        void give_back(int32_t number) except +
        void clear()
        size_t bytes()
