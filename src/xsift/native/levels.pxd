# Sets of document levels as bits; level_bits.hpp says why.
from libc.stdint cimport int32_t, uint64_t

cdef extern from "level_bits.hpp" namespace "xsift" nogil:
    cdef cppclass LevelBits:
        LevelBits() except +
        size_t bytes()
        void grow(size_t size) except +
        bint has(int32_t thing, int32_t level)
        void set(int32_t thing, int32_t level) except +
        void clear(int32_t thing, int32_t level)
        void clear_up_to(int32_t thing, int32_t level)
        bint reaches(int32_t thing, int32_t level, int32_t least, bint unbounded)

    cdef cppclass LevelSet:
        LevelSet() except +
        size_t bytes()
        bint empty()
        int32_t highest()
        void only(int32_t level) except +
        int32_t next(int32_t start)
        void climb(const LevelBits& bits, int32_t thing, int32_t least, bint unbounded) except +
        void climb_any(int32_t least, bint unbounded) except +
        void keep(const LevelBits& bits, int32_t thing)
        void drop(const LevelBits& bits, int32_t thing)
        void set_in(LevelBits& bits, int32_t thing) except +
        void clear_in(LevelBits& bits, int32_t thing)
