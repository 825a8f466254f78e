from libcpp.vector cimport vector

from xsift.document.events cimport EventSource
from xsift.native.types cimport int32_t, int64_t
from xsift.xpath.pattern cimport Pattern


cdef class Scratch:
    # Everything that changes while a document is read; one for each thread that matches. An engine derives
    # its own. `counts` is the work done since the scratch was made, by the engine's counter number.
    cdef vector[int64_t] counts


cdef class Engine:
    cdef list scratches  # all that were handed out, for counters()

    # An engine in Cython overrides these four; they never change the index, so that several threads may run
    # them at once, each with its own scratch. (add and remove must not run at the same time as these.)
    cdef Scratch new_scratch(self)
    # Makes the scratch ready for a new document, also after patterns were added or removed, and after a
    # document that broke off in the middle.
    cdef int begin(self, Scratch scratch) except -1 nogil
    # Takes the next events. Returns 1 if every pattern is decided, so that the rest need not be fed, else 0.
    cdef int feed(self, Scratch scratch, const int32_t* codes, size_t number) except -1 nogil
    # Appends the keys of the patterns that matched: each once, in any order.
    cdef int finish(self, Scratch scratch, vector[int32_t]* keys) except -1 nogil

    cpdef Scratch scratch(self)
