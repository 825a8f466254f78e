from libcpp.vector cimport vector

from xsift.native.tables cimport BytesTable
from xsift.native.types cimport int32_t


cdef class Namespaces:
    cdef BytesTable prefixes
    cdef vector[int32_t] uri_of  # prefix number -> URI number
    cdef BytesTable uris         # distinct URIs: equal numbers are equal namespaces
    cdef readonly dict mapping   # as given, for lxml

    # The number of the prefix's URI, or -1 if the prefix is not bound.
    cdef int32_t find(self, const char* prefix, size_t length) noexcept nogil

cdef Namespaces namespaces_of(mapping)
