"""Reader: from XML to events.

The naive way is a tree: lxml parses the document, then conditions are tried on its nodes. A reader builds nothing, and
writes one integer for each tag: the symbol of the name, the conditions that hold, the end. A document is read slice by
slice, so that one of any size takes constant memory.

There are two ways to read, behind the same events. The scanner (scanner.hpp) takes the usual kind of document. Whatever it does
not take, an error included, is read by expat, which calls back for each tag (handlers.pyx): a document in memory
from its start, a stream whose start is gone from where the scanner stopped (handover.hpp). Callers see no difference;
document_statistics() tells which way was taken.

What is accepted is what lxml's default parser accepts. Nothing outside the document is ever read: a reference to an
external entity, or to one that the document does not declare itself, is an error, even where XML lets a parser skip it
(when there is an external DTD), because a value that a condition looks at would silently lack a part. References to
parameter entities are an error too. Attributes that only a DTD gives to an element (defaults) are not attributes of
it, but namespaces are. Known differences, with the reasons in tests/document/test_hostile.py:

    refused here only     encodings with several bytes for a character other than UTF-8 and UTF-16; `version="1."`
    refused by lxml only  namespaces that are no URIs, two elements with the same ID, colons in the names of
                          processing instructions; nesting deeper than 256
    text                  a carriage return that an entity's declaration gives as `&#13;` is kept here
"""

import os
import threading

from cpython.buffer cimport PyBUF_READ, PyBUF_SIMPLE, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals, PyErr_Fetch, PyErr_Restore
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.ref cimport PyObject
from libc.string cimport memcpy
from libcpp.string cimport string
from libcpp.vector cimport vector

from xsift.document.conditions.condition_index cimport WANTS_ATTRIBUTES
from xsift.document.emission cimport be_silent, forget_kept_names, stop
from xsift.document.events cimport RecordedEvents, EventSource
from xsift.document.expat cimport *
from xsift.document.guide cimport Guide
from xsift.document.handlers cimport (
    FAULT_BYTES, FAULT_EMPTY, FAULT_NONE, FAULT_TOKEN, FAULT_TRUNCATED, ReadState, set_handlers,
)
from xsift.document.index cimport DocumentIndex
from xsift.document.names cimport ElementNames, NamedEvents
from xsift.document.scanner.scanner cimport (
    REASON_COUNT, REASON_ENCODING, REASON_LIMIT, REASON_OFF, SCAN_ENDED, SCAN_HUNGRY, SCAN_NO_MEMORY, SCAN_PAUSED,
    Scanner, reading_counts, write_opening,
)
from xsift.native.types cimport int32_t, int64_t, uint64_t

from xsift.document.document import open_path, read_piece
from xsift.document.encodings import character_table, proper_name, utf8
from xsift.document.faults import document_error
from xsift.document.open_elements import MOST_BYTES, name_open_element
from xsift.document.limits import Limits
from xsift.errors import DocumentError

cdef extern from "byte_order_mark.hpp" namespace "xsift" nogil:
    const char* marked_encoding(const char* data, size_t length)
cdef extern from "handover.hpp":
    pass
cdef extern from "reading_counts.hpp":
    pass
cdef extern from "signal_clock.hpp" namespace "xsift" nogil:
    void note_main_thread(unsigned long ident)
    bint signals_are_due()

note_main_thread(threading.main_thread().ident)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: note_main_thread(threading.main_thread().ident))

cdef enum:
    SEPARATOR = 0x1f
    SLICE = 1 << 16          # bytes parsed at a time
    DECLARATION = 1 << 10    # bytes that surely hold an XML declaration
    LARGEST = 1 << 30        # that expat takes at a time
    CHUNK = 1 << 18          # codes in a chunk of events, or few more
    REREAD = 1 << 12         # an incomplete token of a stream is scanned again with each piece up to this size, then when it doubled
    WORN = 1 << 15           # a parser that read more than this in one document is replaced: its tables only grow


cdef class Reader(EventSource):
    """Reads documents, one after the other. A reader belongs to one thread at a time.

    `positions=True` records the byte offsets of tags, `keep_names=True` the names of elements (see ElementNames).
    `scanner=False` has expat read every document: to compare the two.
    """

    def __cinit__(self, DocumentIndex index not None, *, limits=None, bint positions=False, bint keep_names=False,
                  bint scanner=True):
        self.state = new ReadState()
        self.ended = True
        self.limits = Limits() if limits is None else limits
        if not isinstance(self.limits, Limits):
            raise TypeError(f"limits must be Limits, not {type(limits).__name__}")
        self.index = index
        self.keeps_positions = positions
        self.keeps_names = keep_names
        self.salt = int.from_bytes(os.urandom(sizeof(self.salt)), "little") or 1
        if scanner:
            self.scanner = new Scanner(self.salt)
        self._take_limits()
        self._take_index()

    def __dealloc__(self):
        if self.state != NULL and self.state.parser != NULL:
            XML_ParserFree(self.state.parser)
        del self.state
        del self.scanner
        if self.has_view:
            PyBuffer_Release(&self.view)

    def _take_limits(self):
        cdef ReadState* state = self.state
        state.most_depth = self.limits.depth
        state.most_attributes = self.limits.attributes
        state.most_text_bytes = self.limits.text_bytes
        state.most_name_bytes = self.limits.name_bytes
        state.most_entities = self.limits.entities
        state.most_entity_elements = self.limits.entity_elements
        state.most_entity_depth = self.limits.entity_depth
        state.most_conditions = self.limits.conditions
        self.most_bytes = self.limits.bytes
        self.most_token_bytes = self.limits.token_bytes
        self.amplification = self.limits.amplification
        self.amplification_bytes = self.limits.amplification_bytes

    def _take_index(self):
        cdef ReadState* state = self.state
        cdef size_t i
        state.codes = &self.codes
        state.offsets = &self.offsets
        state.positions = self.keeps_positions
        state.keep_names = self.keeps_names
        state.names = &self.index.names
        state.entries = self.index.entries.data()
        state.parts = self.index.parts.data()
        state.several_tables = len(self.index.conditions) > 1
        state.scratches.resize(len(self.index.conditions))
        for i in range(self.index.parts.size()):
            self.index.parts[0][i].tables.make_ready(state.scratches[self.index.parts[0][i].scratch])
        for i in range(self.index.entries.size()):
            if self.index.entries[0][i].wants & ~WANTS_ATTRIBUTES:
                state.collects = True

    cdef int follow(self, vector[Guide*]& guides, object owner) except -1:
        if not guides.empty() and (self.keeps_positions or self.keeps_names):
            raise ValueError("a reader that keeps positions or names has no guides")
        self.state.guides = guides
        self.state.subjects = <uint64_t>-1
        self.guides_owner = owner
        self.guided = 0
        return 0

    # Opening.

    def open(self, source, *, encoding=None):
        """Makes a document the next to be read, and returns this reader: its events follow, chunk by chunk.

        The source is the document itself, as bytes (or another buffer) or as str, or a path (os.PathLike), or a file
        opened for reading in binary or text mode. `encoding` overrides what the document declares; a str is not
        subject to its declaration in any case.
        """
        self._enter()
        try:
            self._release()
            self._attach(source, encoding)
        finally:
            self.state.leave()
        return self

    def close(self):
        """Lets go of a source that was not read to its end."""
        self._enter()
        try:
            self._release()
        finally:
            self.state.leave()

    cdef int open_buffer(self, const char* data, size_t length) except -1 nogil:
        if self.from_file or self.has_view:
            with gil:
                self.close()
        if self.keeps_names or not self.index.is_current():
            with gil:
                self._check_index()
                self._new_names()
        self.data = data
        self.length = length
        self.position = 0
        self.encoding_name = NULL
        self.decided = self.started = self.ended = self.narrowed = False
        return 0

    cdef int open_text_buffer(self, const char* data, size_t length) except -1 nogil:
        self.open_buffer(data, length)
        self.encoding_name = b"UTF-8"
        return 0

    cdef int _attach(self, object source, object encoding) except -1:
        self._check_index()
        if encoding is not None and not isinstance(encoding, str):
            raise TypeError(f"encoding must be str, not {type(encoding).__name__}")
        self.encoding = None if encoding is None else (proper_name(encoding) or encoding).encode("ascii", "replace")
        if isinstance(source, str):
            source = utf8(source)
            self.encoding = b"UTF-8"
        if PyObject_CheckBuffer(source):
            try:
                PyObject_GetBuffer(source, &self.view, PyBUF_SIMPLE)
            except (BufferError, ValueError) as error:  # it is closed, or its bytes do not lie together
                raise DocumentError("not-a-document", f"the bytes of this {type(source).__name__} cannot be read: {error}",
                                    hint="give bytes(…) of it") from error
            self.has_view = True
            self.data = <const char*>self.view.buf
            self.length = self.view.len
        elif isinstance(source, os.PathLike):
            self.source = open_path(source)
            self.owns_source = True
        elif hasattr(source, "read"):
            self.source = source
        else:
            raise TypeError("a document is bytes, str, a path or a file opened for reading, "
                            f"not {type(source).__name__}")
        self.from_file = self.source is not None
        if self.encoding is not None:
            self.encoding_name = self.encoding
        self._new_names()
        self.decided = self.started = self.ended = self.narrowed = False
        return 0

    def _check_index(self):
        if not self.index.is_current():
            raise RuntimeError("conditions were added or removed since the DocumentIndex was made: make a new one")

    def _new_names(self):
        cdef ElementNames names
        if self.keeps_names:
            names = self.names = ElementNames()
            self.state.kept_uris = &names.uris
            self.state.kept_names = &names.names
            self.state.kept_elements = &names.of_element

    cdef int _release(self) except -1:
        """Lets go of the input."""
        source, owned = self.source, self.owns_source
        self.ended = True
        self.source = self.chunk = self.encoding = None
        self.encoding_name = self.data = NULL
        self.owns_source = self.from_file = False
        self.length = self.position = 0
        if self.has_view:
            self.has_view = False
            PyBuffer_Release(&self.view)
        if owned:
            source.close()
        return 0

    cdef int _enter(self) except -1 nogil:
        if not self.state.enter():
            with gil:
                raise RuntimeError("the reader is in use: each thread needs a reader of its own")
        return 0

    # Reading.

    def read(self, source, *, encoding=None):
        """The events of a whole document, in memory. Takes what open() takes."""
        cdef RecordedEvents document = NamedEvents() if self.keeps_names else RecordedEvents()
        self.open(source, encoding=encoding)
        self._enter()
        try:
            self.codes.clear()
            self.offsets.clear()
            self.state.guided = 0
            self.state.most_codes = <size_t>-1
            with nogil:
                while not self.ended:
                    self._parse_slice()
        finally:
            self.state.leave()
        document.codes.swap(self.codes)
        document.offsets.swap(self.offsets)
        document.keeps_positions = self.keeps_positions
        document.narrowed = self.state.narrow
        if self.keeps_names:
            (<NamedEvents>document).names = self.names
        return document

    def chunk_of_events(self):
        """The next events of the document that was opened, as a list; an empty one at its end."""
        with nogil:
            self.fill()
        return list(self.codes)

    def finish(self, *, bint validate=True):
        """Finishes the document that was opened, whose further events are not wanted.

        The rest is only checked: that it is well-formed, and within the limits. With `validate=False` it is not even read.
        """
        with nogil:
            self.skip_rest(validate)

    cdef Py_ssize_t fill(self) except -1 nogil:
        self._enter()
        try:
            self.codes.clear()
            self.offsets.clear()
            self.state.most_codes = CHUNK
            self.state.guided = 0
            while not self.ended and self.codes.empty():
                self._parse_slice()
                if self.skip:
                    self._drop_given()
            self.guided = self.state.guided
            self.handed_out += self.codes.size()
            self.narrowed = self.state.narrow
        finally:
            self.state.leave()
        return <Py_ssize_t>self.codes.size()

    cdef int skip_rest(self, bint validate) except -1 nogil:
        self._enter()
        try:
            self.state.most_codes = CHUNK
            if not self.ended and not self.decided:
                self._decide()
            if not self.ended and (self.scanning or self.started):
                be_silent(self.state)
            self.state.silent = True
            while validate and not self.ended:
                self._parse_slice()
                self.codes.clear()
                self.offsets.clear()
                self.state.guided = 0
            if not self.ended:
                self._finish()
            self.codes.clear()
            self.offsets.clear()
        finally:
            self.state.leave()
        return 0

    cdef int _decide(self) except -1 nogil:
        """Decides who reads the document."""
        cdef ReadState* state = self.state
        cdef int reason = -1
        self.decided = True
        self.offset = self.handed_out = self.skip = 0
        self.exhausted = self.hungry = state.silent = False
        if self.from_file:
            with gil:
                self._read_source()  # which may find that it is text
        if self.encoding_name == NULL:
            self.encoding_name = marked_encoding(self.data, self.length)
        if self.scanner == NULL:
            reason = REASON_OFF
        elif self.encoding_name != NULL and not is_utf8(self.encoding_name):
            reason = REASON_ENCODING
        elif <int64_t>self.length > self.most_bytes or self.amplification < 2:
            reason = REASON_LIMIT  # expat counts even &lt; as an entity that makes a document grow, by less than that
        self.scanning = state.by_scanner = reason < 0
        if not self.scanning:
            reading_counts.given_to_expat(reason)
            return 0
        state.begin_document()
        state.scan_left = self.amplification_bytes
        self.fed = 0
        self.scanner.begin(state, self.encoding_name != NULL, self.most_token_bytes)
        return 0

    cdef int _scan_slice(self) except -1 nogil:
        """Scans on, over about one slice of the input."""
        cdef bint is_last
        cdef int outcome
        if self.hungry:
            self.hungry = False
            with gil:
                self._read_more()
            if self.offset + <int64_t>self.length > self.most_bytes:
                return self._fall_back(REASON_LIMIT)
        is_last = not self.from_file or self.exhausted
        if self.from_file:
            self._allow(self.offset + self.length)
        else:
            # No more than expat would allow here, which has been given whole slices.
            self._allow(min(<int64_t>self.length, (<int64_t>self.position // SLICE + 1) * SLICE))
        outcome = self.scanner.run(self.data, self.data + self.position, self.data + self.length, is_last, self.offset,
                                   SLICE)
        self.position = self.scanner.at - self.data
        if outcome == SCAN_PAUSED:
            return 0
        if outcome == SCAN_ENDED:
            reading_counts.scanned(self.offset + self.length)
            return self._finish()
        if outcome == SCAN_HUNGRY:
            self.hungry = True
            return 0
        if outcome == SCAN_NO_MEMORY:
            with gil:
                self._release()
                raise MemoryError()
        return self._fall_back(self.scanner.reason)

    cdef int _allow(self, int64_t end) noexcept nogil:
        """Lets conditions look at more bytes, as the document has been given up to `end`."""
        cdef double allowed = <double>self.state.scan_left + <double>(end - self.fed) * self.amplification
        if end > self.fed:
            self.state.scan_left = <int64_t>min(allowed, 4e18)
            self.fed = end
        return 0

    cdef int _fall_back(self, int reason) except -1 nogil:
        """Has expat read the document, as the scanner does not."""
        cdef size_t i
        reading_counts.given_to_expat(reason)
        self.scanning = self.state.by_scanner = False
        if self.offset:
            return self._refuse_here() if self.state.fault else self._hand_over()
        self.codes.clear()
        self.offsets.clear()
        forget_kept_names(self.state)
        self.skip = self.handed_out
        self.position = 0
        # Guides had the events: all of them will come again. (Unless nobody wants any: then they have answered.)
        if not self.state.guides.empty() and not self.state.silent:
            self.skip = self.handed_out = 0
            self.state.guided = 0
            for i in range(self.state.guides.size()):
                self.state.guides[i].begin_again()
        return 0

    cdef int _hand_over(self) except -1 nogil:
        """Has expat go on where the scanner stopped."""
        cdef ReadState* state = self.state
        cdef string opening
        cdef size_t done = 0
        cdef double taken = <double>(self.fed - self.offset - <int64_t>self.position) * self.amplification
        self.scanner.passed.advance(self.data, self.data + self.position)
        write_opening(self.scanner[0], opening)
        self._prepare_parser(b"US-ASCII" if self.scanner.ascii_only else b"UTF-8")
        while done < opening.size():
            XML_Parse(state.parser, opening.data() + done, <int>min(opening.size() - done, <size_t>LARGEST), 0)
            done += LARGEST
        set_handlers(state)
        state.external_subset = self.scanner.has_external_subset()
        state.index_shift = self.offset + <int64_t>self.position - <int64_t>opening.size()
        state.first_line = 2  # the opening is the first
        state.line_shift = self.scanner.passed.line - 2
        state.first_column_shift = self.scanner.passed.column
        state.scan_left = <int64_t>max(<double>state.scan_left - taken, 0.0)
        self.fed = self.offset + <int64_t>self.position
        return 0

    cdef int _refuse_here(self) except -1 nogil:
        """Refuses a stream at the tag where the scanner found that a limit is passed."""
        cdef ReadState* state = self.state
        self.scanner.passed.advance(self.data, self.data + self.position)
        state.fault_line = self.scanner.passed.line
        state.fault_column = self.scanner.passed.column
        state.fault_offset = self.offset + <int64_t>self.position
        return self._refuse()

    cdef int _drop_given(self) except -1 nogil:
        """Drops the codes that the scanner already gave for the document."""
        cdef int64_t number = min(self.skip, <int64_t>self.codes.size())
        self.skip -= number
        self.codes.erase(self.codes.begin(), self.codes.begin() + number)
        if self.keeps_positions:
            self.offsets.erase(self.offsets.begin(), self.offsets.begin() + number)
        return 0

    cdef int _finish(self) except -1 nogil:
        """The document was read."""
        self.ended = True
        if self.from_file or self.has_view:
            with gil:
                self._release()
        return 0

    cdef int _parse_slice(self) except -1 nogil:
        """Parses the next slice of the input, or the rest of the one at hand; appends its events to `codes`."""
        cdef ReadState* state = self.state
        cdef int status
        if signals_are_due():
            with gil:
                self._handle_signals()
        if not self.decided:
            self._decide()
        if self.scanning:
            return self._scan_slice()
        if self.started and state.suspended:
            state.suspended = False
            status = XML_ResumeParser(state.parser)
        else:
            self._next_slice()
            status = self._parse()
            if status != XML_STATUS_OK and state.proper_encoding[0] and self.fed == state.slice_size:
                self._begin(state.proper_encoding)
                status = self._parse()
        if status == XML_STATUS_SUSPENDED:
            return 0
        if status != XML_STATUS_OK:
            return self._refuse()
        self.position += state.slice_size
        if not state.slice_is_last:
            return self._note_progress(state.slice_size)
        reading_counts.read_by_expat(self.fed)
        return self._finish()

    cdef int _handle_signals(self) except -1:
        """Runs the handlers of signals that came meanwhile; one that raises (Ctrl-C does) ends the document."""
        try:
            PyErr_CheckSignals()
        except BaseException:
            self._release()
            raise
        return 0

    cdef int _next_slice(self) except -1 nogil:
        """Decides what to parse next, and makes the parser ready if it is the first slice."""
        cdef int64_t size
        if self.from_file and self.position == self.length:
            with gil:
                self._read_source()
        # While a token is not complete expat keeps it and looks at it again: slices that double keep that linear.
        size = min(<int64_t>(self.length - self.position), max(<int64_t>SLICE, min(self.unparsed, <int64_t>LARGEST)))
        if not self.started:
            self._begin(self.encoding_name)
        if self.fed + size > self.most_bytes:
            stop(self.state, FAULT_BYTES)
            return self._refuse()
        self.state.slice_size = size
        self.state.slice_is_last = self.position + size == self.length and (not self.from_file or size == 0)
        return 0

    cdef int _parse(self) noexcept nogil:
        """Gives the slice at hand to expat."""
        cdef ReadState* state = self.state
        cdef double allowed = <double>state.scan_left + <double>state.slice_size * self.amplification
        state.scan_left = <int64_t>min(allowed, 4e18)
        self.fed += state.slice_size
        if self.fed > WORN:
            self.worn = True
        return XML_Parse(state.parser, self.data + self.position, <int>state.slice_size, state.slice_is_last)

    cdef int _begin(self, const char* encoding) except -1 nogil:
        """Makes the parser ready for a new document."""
        cdef ReadState* state = self.state
        cdef char name[8]
        if encoding == state.proper_encoding:  # which begin_document() clears
            memcpy(name, encoding, sizeof(name))
            encoding = name
        state.begin_document()
        state.scan_left = self.amplification_bytes
        self._prepare_parser(encoding)
        set_handlers(state)
        self.fed = 0
        return 0

    cdef int _prepare_parser(self, const char* encoding) except -1 nogil:
        """Makes a parser ready for a new document. It has no handlers yet."""
        cdef ReadState* state = self.state
        if state.parser != NULL and self.worn:
            XML_ParserFree(state.parser)
            state.parser = NULL
        if state.parser == NULL:
            state.parser = XML_ParserCreateNS(encoding, SEPARATOR)
            if state.parser == NULL:
                with gil:
                    raise MemoryError()
        else:
            XML_ParserReset(state.parser, encoding)
        XML_SetHashSalt(state.parser, self.salt)
        XML_SetBillionLaughsAttackProtectionMaximumAmplification(state.parser, self.amplification)
        XML_SetBillionLaughsAttackProtectionActivationThreshold(state.parser, self.amplification_bytes)
        XML_SetReturnNSTriplet(state.parser, self.keeps_names)
        XML_SetUnknownEncodingHandler(state.parser, on_unknown_encoding, state)
        self.unparsed = self.progress = 0
        self.started = True
        self.worn = False
        return 0

    cdef int _note_progress(self, int64_t size) except -1 nogil:
        """Refuses a document with a token that does not end."""
        cdef int64_t progress = XML_GetCurrentByteIndex(self.state.parser)
        if progress == self.progress:
            self.unparsed += size
            if self.unparsed > self.most_token_bytes:
                stop(self.state, FAULT_TOKEN)
                return self._refuse()
        else:
            self.progress = progress
            self.unparsed = 0
        return 0

    cdef int _read_source(self) except -1:
        """Reads the next chunk from the file; of the first one at least what holds an XML declaration."""
        cdef bytes chunk = b""
        try:
            while True:
                piece = self._read_piece()
                chunk = chunk + piece if chunk else piece
                if self.started or not piece or len(chunk) >= DECLARATION:
                    break
        except BaseException:
            self._release()
            raise
        self.chunk = chunk
        self.data = PyBytes_AS_STRING(chunk)
        self.length = PyBytes_GET_SIZE(chunk)
        self.position = 0
        return 0

    cdef int _read_more(self) except -1:
        """Reads on, for the scanner: what it left of the last chunk, then more."""
        cdef Py_ssize_t kept = self.length - self.position
        cdef Py_ssize_t wanted = 2 * kept if kept > REREAD else kept + 1
        cdef list pieces = [self.chunk[self.position:]]
        try:
            while kept < wanted and not self.exhausted:
                piece = self._read_piece()
                self.exhausted = not piece
                kept += len(piece)
                pieces.append(piece)
        except BaseException:
            self._release()
            raise
        if self.position:
            self.scanner.passed.advance(self.data, self.data + self.position)
            self.offset += self.position
        self.chunk = b"".join(pieces)
        self.data = PyBytes_AS_STRING(self.chunk)
        self.length = PyBytes_GET_SIZE(self.chunk)
        self.position = 0
        return 0

    def _read_piece(self):
        piece = read_piece(self.source, SLICE)
        if isinstance(piece, str):
            self.encoding = b"UTF-8"
            self.encoding_name = self.encoding
            return utf8(piece)
        return bytes(piece)

    cdef int _refuse(self) except -1 nogil:
        """Ends the document with an error: the Python exception that is set, or what the parser or a limit says."""
        cdef PyObject* kind
        cdef PyObject* value
        cdef PyObject* traceback
        self.codes.clear()
        self.offsets.clear()
        reading_counts.read_by_expat(self.fed)
        with gil:
            if self.state.failed:
                PyErr_Fetch(&kind, &value, &traceback)
                self._release()
                PyErr_Restore(kind, value, traceback)
                return -1
            error = self._error()
            try:
                self._release()
            finally:
                raise error

    def _error(self):
        cdef ReadState* state = self.state
        cdef int32_t number
        if state.fault == FAULT_NONE:
            number = XML_GetErrorCode(state.parser)
            if number == XML_ERROR_NO_ELEMENTS and self.fed == 0:
                number = FAULT_EMPTY
            elif number == XML_ERROR_NO_ELEMENTS and state.elements:
                number = FAULT_TRUNCATED
            stop(state, number)  # for the place
        error = document_error(state.fault, state.fault_line, state.fault_column + 1, max(state.fault_offset, 0))
        self._name_open_element(error)
        return error

    def _name_open_element(self, error):
        """Says which element was open, if the document, or its file, can be read again."""
        encoding = None if self.encoding_name == NULL else (<bytes>self.encoding_name).decode("ascii", "replace")
        if not self.from_file:
            beginning = PyMemoryView_FromMemory(<char*>self.data, self.length, PyBUF_READ) if self.length else b""
            name_open_element(error, beginning, encoding)
        elif self.owns_source and self.source.seekable():
            self.source.seek(0)
            name_open_element(error, self.source.read(min(error.offset + 200, MOST_BYTES)), encoding)
        elif hasattr(self.source, "first_bytes"):
            name_open_element(error, self.source.first_bytes(min(error.offset + 200, MOST_BYTES)), encoding)


cdef inline bint is_utf8(const char* name) noexcept nogil:
    return (
        (name[0] | 0x20) == c"u" and (name[1] | 0x20) == c"t" and (name[2] | 0x20) == c"f" and name[3] == c"-"
        and name[4] == c"8" and name[5] == 0
    )


def reading_totals():
    """Documents and bytes that were scanned, bytes that expat read, and its documents by reason. See statistics.py."""
    return (
        reading_counts.scanned_documents, reading_counts.scanned_bytes, reading_counts.expat_bytes,
        [reading_counts.expat_documents[reason] for reason in range(REASON_COUNT)],
    )


cdef int on_unknown_encoding(void* data, const XML_Char* name, XML_Encoding* info) noexcept with gil:
    """expat asks for an encoding that it does not know by this name. Returns 1 if there is a table for it."""
    cdef ReadState* state = <ReadState*>data
    cdef bytes table, proper
    try:
        asked = (<bytes>name).decode("ascii", "replace")
        found = character_table(asked)
        if found is None:
            proper = proper_name(asked).encode()
            memcpy(state.proper_encoding, PyBytes_AS_STRING(proper), len(proper) + 1)
            return 0
        table = found
        memcpy(info.map, PyBytes_AS_STRING(table), sizeof(info.map))
    except Exception:
        return 0
    info.data = NULL
    info.convert = NULL
    info.release = NULL
    return 1
