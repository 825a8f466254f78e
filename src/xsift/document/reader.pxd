from cpython.buffer cimport Py_buffer

from libcpp.vector cimport vector

from xsift.document.events cimport EventSource
from xsift.document.guide cimport Guide
from xsift.document.handlers cimport ReadState
from xsift.document.index cimport DocumentIndex
from xsift.document.names cimport ElementNames
from xsift.document.scanner.scanner cimport Scanner
from xsift.native.types cimport int64_t


cdef class Reader(EventSource):
    cdef readonly DocumentIndex index
    cdef readonly object limits       # Limits
    cdef readonly bint keeps_names
    cdef readonly ElementNames names  # of the document that was opened last, if keeps_names
    cdef ReadState* state
    cdef object guides_owner
    cdef size_t guided                # codes of the chunk at hand that guides took
    cdef unsigned long salt           # of hash tables: not to be guessed, but costly to draw for each document
    cdef Scanner* scanner             # NULL if it is not to be used

    # The input: memory from `data` on, or a file-like object. `ended`: there is none, or all of it was parsed.
    cdef bint ended
    cdef bint decided                 # whether it was decided who reads it:
    cdef bint scanning                # the scanner, else expat
    cdef int64_t offset               # of `data` in the document, while scanning
    cdef bint hungry                  # the scanner needs more of the file; it is read when more events are asked for
    cdef bint exhausted               # the file has no more; known while scanning
    cdef int64_t handed_out           # codes that fill() gave for the document
    cdef int64_t skip                 # codes that expat gives again, and fill() does not
    cdef bint started                 # whether the parser was made ready for it
    cdef const char* data
    cdef size_t length
    cdef size_t position              # how much of `data` was parsed
    cdef Py_buffer view               # what holds `data`, if has_view
    cdef bint has_view
    cdef object source                # the file-like object, or None
    cdef bint from_file               # whether there is one; `data` is then the chunk read last
    cdef bint owns_source             # whether to close it
    cdef bytes chunk                  # what was read from it last
    cdef bytes encoding               # that overrides the document's own, or None
    cdef const char* encoding_name    # the same, or NULL

    cdef int64_t fed                  # bytes given to the parser
    cdef int64_t progress             # the byte index of the last event when it last moved,
    cdef int64_t unparsed             # and the bytes given since
    cdef bint worn                    # the parser has grown, and is to be replaced
    cdef int64_t most_bytes
    cdef int64_t most_token_bytes
    cdef float amplification
    cdef int64_t amplification_bytes

    # Makes a document in memory the next to be read; fill() then gives its events. Takes no Python object and, unless
    # names are kept, no GIL. The caller keeps the memory until the document was read, or another one opened.
    cdef int open_buffer(self, const char* data, size_t length) except -1 nogil

    # Has guides, which `owner` owns, say which conditions can matter. They take events while documents are read: of what fill()
    # gives, the first taken() codes are not to be fed to them any more. Not for a reader that keeps positions.
    cdef int follow(self, vector[Guide*]& guides, object owner) except -1
    cdef inline size_t taken(self) noexcept nogil:
        return self.guided

    # Finishes a document whose further events nobody wants: checks that it is well-formed and within the limits, or, unless
    # it is to be validated, leaves it unread. Afterwards fill() gives nothing more.
    cdef int skip_rest(self, bint validate) except -1 nogil

    cdef int _decide(self) except -1 nogil
    cdef int _scan_slice(self) except -1 nogil
    cdef int _allow(self, int64_t end) noexcept nogil
    cdef int _fall_back(self, int reason) except -1 nogil
    cdef int _hand_over(self) except -1 nogil
    cdef int _refuse_here(self) except -1 nogil
    cdef int _drop_given(self) except -1 nogil
    cdef int _finish(self) except -1 nogil
    cdef int _read_more(self) except -1
    cdef int _prepare_parser(self, const char* encoding) except -1 nogil
    cdef int _parse_slice(self) except -1 nogil
    cdef int _begin(self, const char* encoding) except -1 nogil
    cdef int _handle_signals(self) except -1
    cdef int _next_slice(self) except -1 nogil
    cdef int _parse(self) noexcept nogil
    cdef int _note_progress(self, int64_t size) except -1 nogil
    cdef int _refuse(self) except -1 nogil
    cdef int _enter(self) except -1 nogil
    cdef int _read_source(self) except -1
    cdef int _attach(self, object source, object encoding) except -1
    cdef int _release(self) except -1

    # The same for text in UTF-8, whatever encoding the document declares: as open() does with a str.
    cdef int open_text_buffer(self, const char* data, size_t length) except -1 nogil
