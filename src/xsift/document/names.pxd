from libcpp.vector cimport vector

from xsift.document.events cimport RecordedEvents
from xsift.native.tables cimport BytesTable
from xsift.native.types cimport int32_t


cdef class ElementNames:
    cdef BytesTable uris
    # Distinct names. Key: the 4-byte number of the namespace in `uris` (-1: none), then "local", or
    # "local\x1fprefix" for a name with a prefix. (The namespace apart, so that a long one is stored once.)
    cdef BytesTable names
    cdef vector[int32_t] of_element  # element number - 1 -> name

    cdef bytes expanded(self, int32_t name)
    cdef str label(self, int32_t name)


cdef class NamedEvents(RecordedEvents):
    cdef readonly ElementNames names
