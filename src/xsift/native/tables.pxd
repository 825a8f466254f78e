# The hash tables of the kernels; the headers beside this file say why they are not the standard ones.
from libc.stdint cimport int32_t, int64_t, uint64_t

cdef extern from "flat_map.hpp" namespace "xsift" nogil:
    uint64_t mix64(uint64_t x)
    uint64_t pack(int32_t high, int32_t low)

    cdef cppclass FlatMap[Value]:
        FlatMap() except +
        size_t size()
        size_t bytes()
        void clear()
        const Value* find(uint64_t key)
        Value get(uint64_t key, Value otherwise)
        void put(uint64_t key, Value value) except +
        bint erase(uint64_t key)

cdef extern from "bytes_table.hpp" namespace "xsift" nogil:
    uint64_t hash_bytes(const char* data, size_t length)

    cdef cppclass BytesTable:
        BytesTable() except +
        int64_t size()
        size_t length_of(int64_t i)
        const char* data_of(int64_t i)
        int64_t offset_of(int64_t i)
        int64_t blob_size()
        size_t bytes()
        int32_t find(const char* data, size_t length)
        int32_t add(const char* data, size_t length) except +
