"""The kernel of matching: from a document's bytes to the rows (subscriptions) that it matches.

A `Plan` is all that a matcher needs and never changes: its segments (segment.pyx), and what is to be done with each row. A
`Worker` is what one thread needs on top: a reader, and a scratch for each engine. Rows are collected as bits, so they come
out once each and ascending, however many patterns brought them in.
"""

from libc.string cimport memcpy
from libcpp.algorithm cimport is_sorted, sort
from libcpp.vector cimport vector

from xsift.document.events cimport EventSource, RecordedEvents
from xsift.document.guide cimport Guide
from xsift.document.reader cimport Reader
from xsift.engines.base cimport Scratch
from xsift.engines.guiding cimport GuidingScratch
from xsift.matching.segment cimport Segment

import numpy as np

from xsift.document.document import Document, unreadable
from xsift.errors import DocumentError

cdef extern from *:
    """
    static inline int lowest_bit(unsigned long long word) { return __builtin_ctzll(word); }
    """
    int lowest_bit(uint64_t word) noexcept nogil


cdef object _array(vector[int32_t]& values):
    result = np.empty(values.size(), dtype=np.int32)
    cdef int32_t[::1] view = result
    if values.size():
        with nogil:  # of a large batch it takes long, also because the memory is new
            memcpy(&view[0], values.data(), values.size() * sizeof(int32_t))
    return result


cdef class Plan:
    """What a matcher's workers share."""

    def __init__(self, segments, const uint8_t[::1] kinds, const int32_t[::1] always, bint validate=True, find_broad=None):
        cdef Py_ssize_t i
        self.find_broad = find_broad
        self.segments = tuple(segments)
        self.validate = validate
        self.native = all(segment.engine.native for segment in self.segments)
        self.kinds.assign(kinds.shape[0], DELIVER)
        for i in range(kinds.shape[0]):
            self.kinds[i] = kinds[i]
            self.live_rows += kinds[i] != REMOVED
            self.evaluates = self.evaluates or kinds[i] == EVALUATE
        for row in always:
            self.always.push_back(row)
        self.direct = (len(self.segments) == 1 and self.always.empty() and self.native
                       and (<Segment>self.segments[0]).keeps_order)
        self.plain = self.direct and (<Segment>self.segments[0]).keys_are_rows and not np.any(np.asarray(kinds))

    @property
    def row_count(self):
        """The number of rows, removed ones included."""
        return self.kinds.size()

    def kind(self, int row):
        """The RowKind of a row."""
        if not 0 <= row < <int>self.kinds.size():
            raise IndexError(f"there is no row {row}")
        return RowKind(self.kinds[row])

    def broad_rows(self):
        """By row: 1 if it has a condition that many elements may hold at a time. Found when it is first asked for."""
        if self.broad is None:
            if self.find_broad is None:
                self.broad = np.zeros(self.kinds.size(), dtype=np.uint8)
            else:
                self.broad = np.ascontiguousarray(self.find_broad()[:self.kinds.size()])
        return self.broad

    def removed_rows(self):
        """By row: 1 if it is removed."""
        removed = np.empty(self.kinds.size(), dtype=np.uint8)
        cdef uint8_t[::1] view = removed
        cdef size_t i
        for i in range(self.kinds.size()):
            view[i] = self.kinds[i] == REMOVED
        return removed


cdef enum:
    MOST_KEPT = 1 << 22  # results that a worker keeps room for


cdef class Worker:
    """What one thread needs to match documents, one after the other."""

    def __init__(self, Plan plan not None, Reader reader not None):
        cdef Segment segment
        cdef Scratch scratch
        self.plan = plan
        self.reader = reader
        self.scratches = []
        for segment in plan.segments:
            scratch = segment.lend()
            self.scratches.append(scratch)
            self.segment_at.push_back(<void*>segment)
            self.scratch_at.push_back(<void*>scratch)
        self.follow_engines()
        self.decided.resize(self.segment_at.size())
        self.bits.resize((plan.kinds.size() + 63) // 64, 0)
        self.words.resize((self.bits.size() + 63) // 64, 0)

    def __del__(self):
        cdef Segment segment
        if self.scratches is not None:
            for segment, scratch in zip(self.plan.segments, self.scratches):
                segment.take_back(scratch)

    cdef int follow_engines(self) except -1:
        """Lets the engines guide the reader, if all of them can: what a guide took may be read again, from the start."""
        cdef vector[Guide*] guides
        for scratch in self.scratches:
            if not isinstance(scratch, GuidingScratch):
                guides.clear()
                break
            guides.push_back((<GuidingScratch>scratch).guide())
        self.guided = not guides.empty()
        return self.reader.follow(guides, self.scratches)

    def match(self, document):
        """Matches one Document. Returns the rows that match and those that are to be evaluated, as ascending arrays; in the
        latter ~r stands for a row r that cannot be decided, because not all conditions that hold were told.
        """
        cdef vector[int32_t] rows, candidates
        self.open(document)
        try:
            with nogil:
                self.run(self.reader, &rows, &candidates)
        except OSError as error:
            raise unreadable(document, error) from error
        finally:
            self.reader.close()
        return _array(rows), _array(candidates)

    def match_events(self, RecordedEvents events not None):
        """The same for a document whose events are in memory already."""
        cdef vector[int32_t] rows, candidates
        events.rewind()
        with nogil:
            self.run(events, &rows, &candidates)
        return _array(rows), _array(candidates)

    cdef int open(self, document) except -1:
        try:
            self.reader.open(document.source, encoding=document.encoding)
        except OSError as error:
            raise unreadable(document, error) from error
        return 0

    def match_batch(self, documents):
        """Matches documents one after the other: bytes, Documents, or DocumentErrors of those that were not opened.

        Returns rows and, for each document, where its rows end; the same for rows to evaluate; and {number of a document:
        error} for those that cannot be read.
        """
        cdef size_t number = 0, count = len(documents), end
        errors = {}
        self.begin_batch()
        while number < count:
            # Documents in memory are matched in one go, so that threads do not have to wait for each other.
            self.buffers.clear()
            end = number
            while end < count and type(documents[end]) is bytes:
                self.buffers.push_back(Buffer(<const char*>(<bytes>documents[end]), len(<bytes>documents[end])))
                end += 1
            try:
                if end > number:
                    with nogil:
                        self.run_buffers(number)
                else:
                    self._match_opened(documents[number])
            except (DocumentError, OSError) as error:
                number = self.row_ends.size()
                errors[number] = error if isinstance(error, DocumentError) else unreadable(documents[number], error)
                self.drop_document()
            number = self.row_ends.size()
        return self._batch_results(errors)

    def _match_opened(self, document):
        """Matches one more document of a batch."""
        if isinstance(document, DocumentError):
            raise document
        self.open(document)
        try:
            with nogil:
                self.run(self.reader, &self.batch_rows, &self.batch_candidates)
                self.end_document()
        finally:
            self.reader.close()

    def _batch_results(self, errors):
        return (_array(self.batch_rows), _ends(self.row_ends), _array(self.batch_candidates), _ends(self.candidate_ends),
                errors)

    cdef int begin_batch(self) except -1:
        self.emptied(&self.batch_rows)
        self.emptied(&self.batch_candidates)
        self.row_ends.clear()
        self.candidate_ends.clear()
        return 0

    cdef int run_buffers(self, size_t first) except -1 nogil:
        cdef size_t i
        for i in range(self.row_ends.size() - first, self.buffers.size()):
            self.reader.open_buffer(self.buffers[i].data, self.buffers[i].length)
            self.run(self.reader, &self.batch_rows, &self.batch_candidates)
            self.end_document()
        return 0

    cdef int end_document(self) except -1 nogil:
        self.row_ends.push_back(self.batch_rows.size())
        self.candidate_ends.push_back(self.batch_candidates.size())
        return 0

    cdef int drop_document(self) except -1:
        """The document at hand is broken: it has no results."""
        self.batch_rows.resize(self.row_ends.back() if self.row_ends.size() else 0)
        self.batch_candidates.resize(self.candidate_ends.back() if self.candidate_ends.size() else 0)
        return self.end_document()

    def match_buffers(self, Py_ssize_t number, size_t offsets, bint wide, bint text, size_t data, size_t validity,
                      Py_ssize_t shift):
        """match_batch for the `number` values of an Arrow string or binary array, from `shift` on.

        `offsets`, `data` and `validity` are the addresses of the array's buffers (0 for no validity), `wide` says
        whether the offsets have 64 bits, `text` whether the values are text, whatever encoding they declare. A null is
        a document that is missing: an empty result, no error.
        """
        cdef const uint8_t* valid = <const uint8_t*>validity
        cdef const char* bytes_at = <const char*>data
        cdef int64_t begin, end
        cdef Py_ssize_t at
        errors = {}
        self.begin_batch()
        while <Py_ssize_t>self.row_ends.size() < number:
            try:
                with nogil:
                    for at in range(shift + <Py_ssize_t>self.row_ends.size(), shift + number):
                        if valid == NULL or (valid[at >> 3] >> (at & 7)) & 1:
                            if wide:
                                begin, end = (<const int64_t*>offsets)[at], (<const int64_t*>offsets)[at + 1]
                            else:
                                begin, end = (<const int32_t*>offsets)[at], (<const int32_t*>offsets)[at + 1]
                            if text:
                                self.reader.open_text_buffer(bytes_at + begin, end - begin)
                            else:
                                self.reader.open_buffer(bytes_at + begin, end - begin)
                            self.run(self.reader, &self.batch_rows, &self.batch_candidates)
                        self.end_document()
            except DocumentError as error:
                errors[self.row_ends.size()] = error
                self.drop_document()
        return self._batch_results(errors)

    cdef vector[int32_t]* emptied(self, vector[int32_t]* results) except NULL:
        """Room for results, kept from batch to batch so that it is not allocated again; but not if it is huge."""
        if results.capacity() > MOST_KEPT:
            vector[int32_t]().swap(results[0])
        results.clear()
        return results

    cdef int run(self, EventSource source, vector[int32_t]* rows, vector[int32_t]* candidates) except -1 nogil:
        cdef size_t rows_before = rows.size()
        cdef size_t candidates_before = candidates.size()
        self.decide(source, rows, candidates)
        if source.narrowed:
            with gil:
                self.note_undecided(rows, rows_before, candidates, candidates_before)
        return 0

    cdef int note_undecided(self, vector[int32_t]* rows, size_t rows_before, vector[int32_t]* candidates,
                            size_t candidates_before) except -1:
        """Adds, as ~row, the rows that did not match but might have if all conditions had been tried."""
        cdef const uint8_t[::1] broad = self.plan.broad_rows()
        cdef vector[int32_t] kept
        cdef size_t i, place = rows_before
        cdef int32_t row
        for i in range(candidates_before, candidates.size()):
            if not broad[candidates[0][i]]:
                kept.push_back(candidates[0][i])
        for row in range(<int32_t>broad.shape[0]):
            if not broad[row] or self.plan.kinds[row] == REMOVED:
                continue
            while place < rows.size() and rows[0][place] < row:
                place += 1
            if place == rows.size() or rows[0][place] != row:
                kept.push_back(~row)
        candidates.resize(candidates_before)
        candidates.insert(candidates.end(), kept.begin(), kept.end())
        return 0

    cdef int decide(self, EventSource source, vector[int32_t]* rows, vector[int32_t]* candidates) except -1 nogil:
        cdef size_t i
        if self.marking:  # the document before broke off: what it marked must not show in this one
            self.bits.assign(self.bits.size(), 0)
            self.words.assign(self.words.size(), 0)
        self.marking = not self.plan.direct
        if not self.plan.native:
            with gil:
                self.match_in_python(source)
        else:
            self.feed_all(source)
            if self.plan.plain:
                return self.deliver_keys(rows)
            if self.plan.direct:
                self.finish(0)
                if is_sorted(self.keys.begin(), self.keys.end()):
                    return self.deliver(rows, candidates)
                self.marking = True
                self.mark(0)
            else:
                for i in range(self.segment_at.size()):
                    self.finish(i)
                    self.mark(i)
        for i in range(self.plan.always.size()):
            self.mark_row(self.plan.always[i])
        return self.collect(rows, candidates)

    cdef int finish(self, size_t number) except -1 nogil:
        self.keys.clear()
        return (<Segment>self.segment_at[number]).engine.finish(<Scratch>self.scratch_at[number], &self.keys)

    cdef int deliver_keys(self, vector[int32_t]* rows) except -1 nogil:
        """The keys are the rows."""
        cdef size_t before = rows.size()
        (<Segment>self.segment_at[0]).engine.finish(<Scratch>self.scratch_at[0], rows)
        if not is_sorted(rows.begin() + before, rows.end()):
            sort(rows.begin() + before, rows.end())
        return 0

    cdef int deliver(self, vector[int32_t]* rows, vector[int32_t]* candidates) except -1 nogil:
        """The rows of the patterns in `keys`, ascending, without marks: what most sets need."""
        cdef const int64_t* starts = (<Segment>self.segment_at[0]).member_starts.data()
        cdef const int32_t* members = (<Segment>self.segment_at[0]).members.data()
        cdef const uint8_t* kinds = self.plan.kinds.data()
        cdef size_t delivered = rows.size()
        cdef int32_t* row
        cdef size_t i
        cdef int32_t key
        rows.resize(delivered + self.keys.size())
        row = rows.data() + delivered
        for i in range(self.keys.size()):
            key = self.keys[i]
            if starts[key] == starts[key + 1]:
                continue
            row[0] = members[starts[key]]
            if kinds[row[0]] == DELIVER:
                row += 1
            elif kinds[row[0]] == EVALUATE:
                candidates.push_back(row[0])
        rows.resize(row - rows.data())
        return 0

    cdef int feed_all(self, EventSource source) except -1 nogil:
        cdef Py_ssize_t number
        cdef size_t i, taken
        for i in range(self.segment_at.size()):
            (<Segment>self.segment_at[i]).engine.begin(<Scratch>self.scratch_at[i])
            self.decided[i] = 0
        while True:
            number = source.fill()
            if number == 0:
                return 0
            taken = self.reader.taken() if self.guided and source is self.reader else 0
            for i in range(self.segment_at.size()):
                # A guide is always asked: it may have begun again.
                if not self.decided[i] or self.guided:
                    self.decided[i] = (<Segment>self.segment_at[i]).engine.feed(
                        <Scratch>self.scratch_at[i], source.codes.data() + taken, number - taken)
            if self.is_decided():
                if source is self.reader:
                    self.reader.skip_rest(self.plan.validate)
                return 0

    cdef bint is_decided(self) noexcept nogil:
        """Whether no segment needs more events."""
        cdef uint8_t decided
        for decided in self.decided:
            if not decided:
                return False
        return True

    cdef int match_in_python(self, EventSource source) except -1:
        """For plans with an engine in plain Python, which wants the whole document at once."""
        cdef RecordedEvents document = RecordedEvents()
        cdef Segment segment
        cdef size_t i
        while source.fill():
            document.codes.insert(document.codes.end(), source.codes.begin(), source.codes.end())
        for i in range(self.segment_at.size()):
            segment = <Segment>self.segment_at[i]
            self.keys = segment.engine.match(document).tolist()
            self.mark(i)
        return 0

    cdef int mark(self, size_t number) except -1 nogil:
        """Marks the rows of the patterns in `keys`."""
        cdef const int64_t* starts = (<Segment>self.segment_at[number]).member_starts.data()
        cdef const int32_t* members = (<Segment>self.segment_at[number]).members.data()
        cdef int64_t j
        cdef size_t i
        for i in range(self.keys.size()):
            for j in range(starts[self.keys[i]], starts[self.keys[i] + 1]):
                self.mark_row(members[j])
        return 0

    cdef inline void mark_row(self, int32_t row) noexcept nogil:
        self.bits[row >> 6] |= <uint64_t>1 << (row & 63)
        self.words[row >> 12] |= <uint64_t>1 << ((row >> 6) & 63)

    cdef int collect(self, vector[int32_t]* rows, vector[int32_t]* candidates) except -1 nogil:
        """Reads the marks, and takes them away."""
        cdef size_t i, word
        cdef uint64_t bits
        cdef int32_t row
        for i in range(self.words.size()):
            while self.words[i]:
                word = i * 64 + lowest_bit(self.words[i])
                self.words[i] &= self.words[i] - 1
                bits = self.bits[word]
                self.bits[word] = 0
                while bits:
                    row = <int32_t>(word * 64 + lowest_bit(bits))
                    bits &= bits - 1
                    if self.plan.kinds[row] == DELIVER:
                        rows.push_back(row)
                    elif self.plan.kinds[row] == EVALUATE:
                        candidates.push_back(row)
        self.marking = False
        return 0


cdef object _ends(vector[int64_t]& values):
    result = np.empty(values.size(), dtype=np.int64)
    cdef int64_t[::1] view = result
    if values.size():
        memcpy(&view[0], values.data(), values.size() * sizeof(int64_t))
    return result
