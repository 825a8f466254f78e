"""The kernel of matching: from a document's bytes to the rows (subscriptions) that it matches.

A `Segment` is an engine and the rows that its patterns belong to. A `Plan` is all that a matcher needs and never changes: its
segments, and what is to be done with each row. A `Worker` is what one thread needs on top: a reader, and a scratch for each
engine. Rows are collected as bits, so they come out once each and ascending, however many patterns brought them in.
"""

from libc.string cimport memcpy
from libcpp.algorithm cimport is_sorted, sort
from libcpp.vector cimport vector
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

from xsift.document.conditions.condition_index cimport ConditionIndex
from xsift.document.events cimport Document
from xsift.document.reader cimport Reader
from xsift.engines.base cimport Engine, Scratch
from xsift.native.saving cimport from_numpy, to_numpy
from xsift.native.types cimport symbol_t
from xsift.matching.rows cimport Rows
from xsift.xpath.pattern cimport Pattern
from xsift.xpath.symbols cimport Symbols

import numpy as np

from xsift.errors import DocumentError

cdef extern from *:
    """
    static inline int lowest_bit(unsigned long long word) { return __builtin_ctzll(word); }
    """
    int lowest_bit(uint64_t word) noexcept nogil

cdef enum:
    NEW = -1
    REFUSED = -2


cdef inline double seconds() noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return now.tv_sec + now.tv_nsec * 1e-9


cdef object _array(vector[int32_t]& values):
    result = np.empty(values.size(), dtype=np.int32)
    cdef int32_t[::1] view = result
    if values.size():
        memcpy(&view[0], values.data(), values.size() * sizeof(int32_t))
    return result


cdef class Segment:
    """An engine, and for each of its keys the rows that have the pattern."""

    def __len__(self):
        return self.members.size()

    def saved(self):
        """The segment as arrays, for `restored`; None if its engine cannot be saved."""
        arrays = self.engine.saved()
        if arrays is None:
            return None
        return {**arrays, "segment.member_starts": to_numpy(self.member_starts.saved()),
                "segment.members": to_numpy(self.members.saved())}

    @staticmethod
    def restored(Engine engine not None, arrays):
        """The segment that was saved, with a new engine of the same kind; the arrays are used where they lie."""
        cdef Segment segment = Segment.__new__(Segment)
        engine.restore(arrays)
        segment.engine = engine
        segment.member_starts.restore(from_numpy(arrays["segment.member_starts"]))
        segment.members.restore(from_numpy(arrays["segment.members"]))
        segment.kept = arrays
        segment.note_order()
        return segment

    cdef void note_order(self) noexcept:
        cdef size_t i
        self.keeps_order = True
        for i in range(1, self.member_starts.size()):
            if self.member_starts[i] > self.member_starts[i - 1] + 1:
                self.keeps_order = False
        for i in range(1, self.members.size()):
            if self.members[i] <= self.members[i - 1]:
                self.keeps_order = False
        # Ascending from 0 without a gap, and as many keys as rows.
        self.keys_are_rows = (self.keeps_order and self.member_starts.size() == self.members.size() + 1
                              and (self.members.empty() or self.members.back() == <int32_t>self.members.size() - 1))


cdef class SegmentBuilder:
    """Puts the patterns of rows into an engine, each distinct one once, and collects the conditions that they ask for."""

    cdef Engine engine
    cdef Rows rows
    cdef readonly ConditionIndex conditions
    cdef vector[int32_t] key_of        # by pattern of `rows`: its key in the engine; NEW, or REFUSED
    cdef dict extra_keys               # likewise of patterns that are not among those of `rows`
    cdef vector[int32_t] asked_pairs   # names and the conditions asked of them, alternating
    cdef vector[int32_t] pair_keys     # pairs of a key and a row
    cdef vector[int32_t] pair_rows

    def __init__(self, Engine engine not None, Rows rows not None, Symbols symbols not None):
        self.engine = engine
        self.rows = rows
        self.conditions = ConditionIndex(symbols)
        self.key_of.assign(rows.patterns.size(), NEW)
        self.extra_keys = {}

    def add_rows(self, int32_t first, int32_t end):
        """Adds rows that are not removed. Returns those that have a pattern which the engine refuses; they are not added."""
        cdef int32_t row, pattern
        cdef int64_t i
        cdef size_t before
        refused = []
        for row in range(first, end):
            if self.rows.removed[row]:
                continue
            before = self.pair_keys.size()
            for i in range(self.rows.alternative_ends[row - 1] if row else 0, self.rows.alternative_ends[row]):
                pattern = self.rows.alternative_pattern[i]
                if self.key_of[pattern] == NEW:
                    self.key_of[pattern] = self._key(Pattern.decode(
                        self.rows.patterns.data_of(pattern), self.rows.patterns.length_of(pattern), self.conditions.symbols))
                if self.key_of[pattern] == REFUSED:
                    self.pair_keys.resize(before)
                    self.pair_rows.resize(before)
                    refused.append(row)
                    break
                self.pair_keys.push_back(self.key_of[pattern])
                self.pair_rows.push_back(row)
        return refused

    def add_pattern(self, int32_t row, bytes key):
        """Adds a pattern for a row, in place of one that the engine refuses. Returns the reason if it refuses this one too."""
        cdef Pattern pattern = Pattern.decode(key, len(key), self.conditions.symbols)
        cdef int32_t number = self.rows.patterns.find(key, len(key))
        cdef int32_t engine_key = self.key_of[number] if number >= 0 else self.extra_keys.get(key, NEW)
        if engine_key == NEW:
            engine_key = self._key(pattern)
            if number >= 0:
                self.key_of[number] = engine_key
            else:
                self.extra_keys[key] = engine_key
        if engine_key == REFUSED:
            return self.engine.refuses(pattern)
        self.pair_keys.push_back(engine_key)
        self.pair_rows.push_back(row)
        return ""

    def _key(self, Pattern pattern):
        cdef symbol_t name, condition
        if self.engine.refuses(pattern):
            return REFUSED
        for node in pattern.nodes:
            if node.is_condition:
                name = pattern.nodes[node.parent].symbol
                condition = node.symbol
                self.conditions.add_condition(name, condition, pattern.symbols.condition_of(condition))
                self.asked_pairs.push_back(name)
                self.asked_pairs.push_back(condition)
        return self.engine.add(pattern)

    def asked(self):
        """The conditions that were asked for, as rows of a name and a condition."""
        return _array(self.asked_pairs).reshape(-1, 2)

    def finish(self):
        """The segment. The builder is not to be used afterwards."""
        cdef Segment segment = Segment.__new__(Segment)
        cdef vector[int64_t] next
        cdef size_t i
        cdef int32_t most = -1
        for i in range(self.pair_keys.size()):
            most = max(most, self.pair_keys[i])
        segment.engine = self.engine
        next.assign(most + 2, 0)
        for i in range(self.pair_keys.size()):
            next[self.pair_keys[i] + 1] += 1
        for i in range(<size_t>(most + 1)):
            next[i + 1] += next[i]
        segment.member_starts.append(next.data(), next.size())
        segment.members.resize(self.pair_keys.size(), 0)
        for i in range(self.pair_keys.size()):
            segment.members.edit(next[self.pair_keys[i]])[0] = self.pair_rows[i]
            next[self.pair_keys[i]] += 1
        segment.note_order()
        return segment


cdef class Plan:
    """What a matcher's workers share."""

    def __init__(self, segments, const uint8_t[::1] kinds, const int32_t[::1] always, bint validate=True):
        self.segments = tuple(segments)
        self.validate = validate
        self.native = all(segment.engine.native for segment in self.segments)
        self.kinds.assign(kinds.shape[0], DELIVER)
        if kinds.shape[0]:
            memcpy(self.kinds.data(), &kinds[0], kinds.shape[0])
        for row in always:
            self.always.push_back(row)
        self.direct = (len(self.segments) == 1 and self.always.empty() and self.native
                       and (<Segment>self.segments[0]).keeps_order)
        self.plain = (self.direct and (<Segment>self.segments[0]).keys_are_rows
                      and not np.any(np.asarray(kinds) != DELIVER))

    @property
    def kinds_count(self):
        """The number of rows, removed ones included."""
        return self.kinds.size()

    @property
    def row_count(self):
        """The number of rows that are not removed."""
        return self.kinds.size() - sum(kind == SKIP for kind in self.kinds)

    @property
    def verifies(self):
        """Whether some row may have to be verified."""
        return any(kind == VERIFY for kind in self.kinds)

    def kind(self, int row):
        """0: deliver, 1: verify, 2: removed."""
        if not 0 <= row < <int>self.kinds.size():
            raise IndexError(f"there is no row {row}")
        return self.kinds[row]

    def removed_rows(self, Py_ssize_t number):
        """By row: 1 if it is removed, or came after this plan."""
        removed = np.ones(number, dtype=np.uint8)
        cdef uint8_t[::1] view = removed
        cdef Py_ssize_t i
        for i in range(min(number, <Py_ssize_t>self.kinds.size())):
            view[i] = self.kinds[i] == SKIP
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
            scratch = segment.engine.scratch()
            self.scratches.append(scratch)
            self.segment_at.push_back(<void*>segment)
            self.scratch_at.push_back(<void*>scratch)
        self.decided.resize(self.segment_at.size())
        self.bits.resize((plan.kinds.size() + 63) // 64, 0)
        self.words.resize((self.bits.size() + 63) // 64, 0)

    def match(self, source, *, encoding=None):
        """Matches one document. Returns the rows that match and those that are to be verified, as ascending arrays."""
        cdef vector[int32_t] rows, candidates
        self.reader.open(source, encoding=encoding)
        try:
            with nogil:
                self.run(&rows, &candidates)
        finally:
            self.reader.close()
        return _array(rows), _array(candidates)

    def match_batch(self, sources):
        """Matches documents one after the other.

        Returns rows and, for each document, where its rows end; the same for rows to verify; and {number of a document:
        error} for those that cannot be read.
        """
        cdef vector[int32_t]* rows = self.emptied(&self.batch_rows)
        cdef vector[int32_t]* candidates = self.emptied(&self.batch_candidates)
        cdef vector[int64_t] row_ends, candidate_ends
        cdef size_t rows_before, candidates_before
        cdef const unsigned char[::1] view
        cdef Py_ssize_t number = 0
        cdef bint opened
        errors = {}
        for source in sources:
            rows_before, candidates_before = rows.size(), candidates.size()
            opened = False
            try:
                if type(source) is bytes:
                    self.reader.open_buffer(<const char*>(<bytes>source), len(<bytes>source))
                else:
                    self.reader.open(source)
                    opened = True
                with nogil:
                    self.run(rows, candidates)
            except DocumentError as error:
                rows.resize(rows_before)
                candidates.resize(candidates_before)
                errors[number] = error
            finally:
                if opened:
                    self.reader.close()
            row_ends.push_back(rows.size())
            candidate_ends.push_back(candidates.size())
            number += 1
        return _array(rows[0]), _ends(row_ends), _array(candidates[0]), _ends(candidate_ends), errors

    def match_buffers(self, Py_ssize_t number, size_t offsets, bint wide, size_t data, size_t validity, Py_ssize_t shift):
        """match_batch for the `number` values of an Arrow string or binary array, from `shift` on.

        `offsets`, `data` and `validity` are the addresses of the array's buffers (0 for no validity), `wide` says
        whether the offsets have 64 bits. A null is a document that is missing: an empty result, no error.
        """
        cdef vector[int32_t]* rows = self.emptied(&self.batch_rows)
        cdef vector[int32_t]* candidates = self.emptied(&self.batch_candidates)
        cdef vector[int64_t] row_ends, candidate_ends
        cdef size_t rows_before, candidates_before
        cdef const uint8_t* valid = <const uint8_t*>validity
        cdef const char* bytes_at = <const char*>data
        cdef int64_t begin, end
        cdef Py_ssize_t i, at
        errors = {}
        for i in range(number):
            at = shift + i
            if valid == NULL or (valid[at >> 3] >> (at & 7)) & 1:
                if wide:
                    begin, end = (<const int64_t*>offsets)[at], (<const int64_t*>offsets)[at + 1]
                else:
                    begin, end = (<const int32_t*>offsets)[at], (<const int32_t*>offsets)[at + 1]
                rows_before, candidates_before = rows.size(), candidates.size()
                try:
                    with nogil:
                        self.reader.open_buffer(bytes_at + begin, end - begin)
                        self.run(rows, candidates)
                except DocumentError as error:
                    rows.resize(rows_before)
                    candidates.resize(candidates_before)
                    errors[i] = error
            row_ends.push_back(rows.size())
            candidate_ends.push_back(candidates.size())
        return _array(rows[0]), _ends(row_ends), _array(candidates[0]), _ends(candidate_ends), errors

    cdef vector[int32_t]* emptied(self, vector[int32_t]* results) except NULL:
        """Room for results, used from batch to batch, so that it is not asked for anew; but not kept if it is huge."""
        if results.capacity() > MOST_KEPT:
            vector[int32_t]().swap(results[0])
        results.clear()
        return results

    cdef int run(self, vector[int32_t]* rows, vector[int32_t]* candidates) except -1 nogil:
        cdef size_t i
        if self.marking:  # the document before broke off: what it marked must not show in this one
            self.bits.assign(self.bits.size(), 0)
            self.words.assign(self.words.size(), 0)
        self.marking = not self.plan.direct
        if not self.plan.native:
            with gil:
                self.match_in_python()
        else:
            self.feed_all()
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
            elif kinds[row[0]] == VERIFY:
                candidates.push_back(row[0])
        rows.resize(row - rows.data())
        return 0

    cdef int feed_all(self) except -1 nogil:
        cdef Py_ssize_t number
        cdef double before = seconds()
        cdef double after
        cdef size_t i
        for i in range(self.segment_at.size()):
            (<Segment>self.segment_at[i]).engine.begin(<Scratch>self.scratch_at[i])
            self.decided[i] = 0
        while True:
            number = self.reader.fill()
            after = seconds()
            self.parse_seconds += after - before
            before = after
            if number == 0:
                return 0
            for i in range(self.segment_at.size()):
                if not self.decided[i]:
                    self.decided[i] = (<Segment>self.segment_at[i]).engine.feed(
                        <Scratch>self.scratch_at[i], self.reader.codes.data(), number)
            after = seconds()
            self.match_seconds += after - before
            before = after
            if self.is_decided():
                self.reader.skip_rest(self.plan.validate)
                self.parse_seconds += seconds() - before
                return 0

    cdef bint is_decided(self) noexcept nogil:
        """Whether no segment needs more events."""
        cdef uint8_t decided
        for decided in self.decided:
            if not decided:
                return False
        return True

    cdef int match_in_python(self) except -1:
        """For plans with an engine in plain Python, which wants the whole document at once."""
        cdef Segment segment
        cdef size_t i
        self.codes.clear()
        while self.reader.fill():
            self.codes.insert(self.codes.end(), self.reader.codes.begin(), self.reader.codes.end())
        document = Document(list(self.codes))
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
                    elif self.plan.kinds[row] == VERIFY:
                        candidates.push_back(row)
        self.marking = False
        return 0


cdef object _ends(vector[int64_t]& values):
    result = np.empty(values.size(), dtype=np.int64)
    cdef int64_t[::1] view = result
    if values.size():
        memcpy(&view[0], values.data(), values.size() * sizeof(int64_t))
    return result
