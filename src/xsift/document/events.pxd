from libcpp.vector cimport vector

from xsift.native.types cimport int32_t, int64_t, symbol_t

# An event is one 32-bit code:
#     code >= 0    a start tag; the code is the name's symbol, ANY (0) for a name that no pattern asks for
#     code == END  an end tag
#     code < END   a condition holds for the innermost open element: one more, empty child of it.
#                  Conditions on attributes follow the start tag at once; those on text precede the end tag.
# Elements are numbered from 1 in document order, and the root element has level 1; whoever needs these counts
# them. An element's events are balanced over a whole document, never within one chunk of it.

cdef enum:
    END = -1

cdef inline symbol_t condition_symbol(int32_t code) noexcept nogil:
    return -code - 1


cdef class EventSource:
    # The chunk at hand: valid after fill(), until the next fill().
    cdef vector[int32_t] codes
    # If positions are kept: for each code the byte offset of its tag's "<" (start tags) or of the byte after
    # its ">" (end tags); 0 for conditions. Else empty.
    cdef vector[int64_t] offsets
    cdef readonly bint keeps_positions
    # Whether some conditions that hold were not told, to stay within Limits.conditions: only such as Condition::is_broad().
    cdef readonly bint narrowed

    # Loads the next chunk and returns its number of codes, 0 at the end of the document; -1 with a Python
    # exception (DocumentError) set, when the document is broken. Called without the GIL.
    cdef Py_ssize_t fill(self) except -1 nogil


cdef class RecordedEvents(EventSource):
    # A whole document in memory: one chunk, which can be read again after rewind().
    cdef bint consumed
    cpdef rewind(self)
