# The hash tables of the kernels; the headers beside this file say why they are not the standard ones.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef extern from "array.hpp" namespace "xsift" nogil:
    cdef cppclass Bytes:
        const void* data
        size_t size

    cdef cppclass Array[T]:
        Array() except +
        size_t size()
        bint empty()
        const T* data()
        T& operator[](size_t i)  # really const: edit() is how to change an element
        T& back()
        size_t bytes()
        T* edit(size_t i) except +
        void push_back(const T& value) except +
        void pop_back() except +
        void append(const T* values, size_t number) except +
        void resize(size_t size, const T& value) except +
        void assign(size_t size, const T& value) except +
        void reserve(size_t size) except +
        void clear()
        void release()
        void swap(Array[T]& other)
        Bytes saved()
        void restore(Bytes saved) except +

    cdef cppclass Lists[T]:
        cppclass Extent:
            pass
        Lists() except +
        Array[Extent] extents
        Array[T] pool
        size_t size()
        int32_t count(size_t list)
        const T* data(size_t list)
        void prefetch_extent(size_t list)
        void prefetch_data(size_t list)
        size_t bytes()
        int32_t add_list() except +
        void reserve(size_t list, int32_t capacity) except +
        void restore(Bytes extents, Bytes pool) except +
        void push(size_t list, const T& value) except +
        void erase(size_t list, int32_t place) except +

cdef extern from "flat_map.hpp" namespace "xsift" nogil:
    uint64_t mix64(uint64_t x)
    uint64_t pack(int32_t high, int32_t low)

    cdef cppclass FlatMap[Value]:
        FlatMap() except +
        Bytes saved()
        void restore(Bytes saved) except +
        size_t size()
        size_t bytes()
        void clear()
        const Value* find(uint64_t key)
        void prefetch(uint64_t key)
        Value get(uint64_t key, Value otherwise)
        void put(uint64_t key, Value value) except +
        bint erase(uint64_t key)
        bint within(int64_t low, int64_t end)
        bint mark_values(uint8_t* marks, size_t size)

cdef extern from "bytes_table.hpp" namespace "xsift" nogil:
    uint64_t hash_bytes(const char* data, size_t length)

    cdef cppclass BytesTable:
        BytesTable() except +
        Array[char] blob
        Array[int64_t] ends
        int64_t size()
        size_t length_of(int64_t i)
        const char* data_of(int64_t i)
        int64_t offset_of(int64_t i)
        int64_t blob_size()
        size_t bytes()
        int32_t find(const char* data, size_t length)
        int32_t add(const char* data, size_t length) except +
        void restore(Bytes blob, Bytes ends) except +
