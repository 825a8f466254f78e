"""A segment: an engine, and the rows (subscriptions) that its patterns belong to; and how one is built."""

from libc.string cimport memcpy
from libcpp.vector cimport vector

from xsift.document.conditions.condition_index cimport ConditionIndex
from xsift.engines.base cimport Engine, Scratch
from xsift.matching.breath cimport LONGER, breathe, seconds
from xsift.matching.rows cimport Rows
from xsift.native.saving cimport from_numpy, lent_to_numpy
from xsift.native.tables cimport FlatMap, pack
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint8_t
from xsift.xpath.pattern cimport Pattern
from xsift.xpath.symbols cimport Symbols

from sys import getswitchinterval

import numpy as np

cdef enum:
    NEW = -1
    REFUSED = -2
    BREATH = 64  # rows after which we look whether other threads are to have the interpreter


cdef class Segment:
    """An engine, and for each of its keys the rows that have the pattern."""

    def __cinit__(self):
        self.idle = []

    def __len__(self):
        return self.members.size()

    def saved(self):
        """The segment as arrays, where they lie, for `restored`; None if its engine cannot be saved."""
        arrays = self.engine.lent()  # which never changes
        if arrays is None:
            return None
        return {**arrays, "segment.member_starts": lent_to_numpy(self.member_starts.saved(), self),
                "segment.members": lent_to_numpy(self.members.saved(), self)}

    def keys_of(self, const int32_t[::1] rows):
        """The keys of some rows' patterns, as pairs of a key and a row. The rows ascend."""
        cdef vector[uint8_t] wanted
        cdef size_t key
        cdef int64_t i
        cdef Py_ssize_t number
        wanted.assign(rows[rows.shape[0] - 1] + 1 if rows.shape[0] else 0, 0)
        for number in range(rows.shape[0]):
            wanted[rows[number]] = 1
        return [(key, self.members[i])
                for key in range(self.member_starts.size() - 1)
                for i in range(self.member_starts[key], self.member_starts[key + 1])
                if <size_t>self.members[i] < wanted.size() and wanted[self.members[i]]]

    @staticmethod
    def restored(Engine engine not None, arrays, Py_ssize_t rows):
        """The segment that was saved, with a new engine of the same kind; the arrays are used where they lie.

        Raises ValueError if they do not fit each other, or a set with that number of rows.
        """
        cdef Segment segment = Segment.__new__(Segment)
        _check(arrays, rows)
        keys = engine.restore(arrays)
        if keys is not None and keys > len(arrays["segment.member_starts"]) // 8 - 1:
            raise ValueError("segment.member_starts has fewer keys than its engine")
        segment.engine = engine
        segment.member_starts.restore(from_numpy(arrays["segment.member_starts"]))
        segment.members.restore(from_numpy(arrays["segment.members"]))
        segment.kept = arrays
        segment.note_order()
        return segment

    cdef Scratch lend(self):
        return self.idle.pop() if self.idle else self.engine.scratch()

    cdef void take_back(self, Scratch scratch):
        self.idle.append(scratch)

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
    cdef object refuses, add_to_engine  # its methods; they are called a million times
    cdef Rows rows
    cdef readonly ConditionIndex conditions
    cdef vector[int32_t] key_of        # by pattern of `rows`: its key in the engine; NEW, or REFUSED
    cdef dict extra_keys               # likewise of patterns that are not among those of `rows`
    cdef FlatMap[int32_t] asked_of     # pairs of a name and a condition that were asked for
    cdef vector[int32_t] asked_pairs   # the same: names and the conditions asked of them, alternating
    cdef vector[int32_t] pair_keys     # pairs of a key and a row
    cdef vector[int32_t] pair_rows

    def __init__(self, Engine engine not None, Rows rows not None, Symbols symbols not None):
        self.engine = engine
        self.refuses = None if type(engine).refuses is Engine.refuses else engine.refuses
        self.add_to_engine = engine.add
        self.rows = rows
        self.conditions = ConditionIndex(symbols)
        self.key_of.assign(rows.patterns.size(), NEW)
        self.extra_keys = {}

    def add_rows(self, int32_t first, int32_t end):
        """Adds rows that are not removed. Returns those that have a pattern which the engine refuses; they are not added."""
        cdef int32_t row, pattern
        cdef int64_t i
        cdef size_t before
        cdef double interval = getswitchinterval() * LONGER, kept_since = seconds()
        refused = []
        for row in range(first, end):
            if row % BREATH == 0:  # a large set takes seconds, and other threads must not wait for it
                kept_since = breathe(kept_since, interval)
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
        if number >= <int32_t>self.key_of.size():
            number = -1  # it was added after the builder was made
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

    cdef int32_t _key(self, Pattern pattern) except? -3:
        cdef symbol_t name
        if self.refuses is not None and self.refuses(pattern):
            return REFUSED
        for node in pattern.nodes:
            if node.is_condition:
                name = pattern.nodes[node.parent].symbol
                if self.asked_of.find(pack(name, node.symbol)) == NULL:  # mostly it is not the first to ask
                    self.asked_of.put(pack(name, node.symbol), 1)
                    self.conditions.add_condition(name, node.symbol, pattern.symbols.condition_of(node.symbol))
                    self.asked_pairs.push_back(name)
                    self.asked_pairs.push_back(node.symbol)
        return self.add_to_engine(pattern)

    def asked(self):
        """The conditions that were asked for, each once, as rows of a name and a condition."""
        asked = np.empty((self.asked_pairs.size() // 2, 2), dtype=np.int32)
        cdef int32_t[:, ::1] view = asked
        if self.asked_pairs.size():
            memcpy(&view[0, 0], self.asked_pairs.data(), self.asked_pairs.size() * sizeof(int32_t))
        return asked

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


def _check(arrays, rows):
    starts = arrays["segment.member_starts"].view(np.int64)
    members = arrays["segment.members"].view(np.int32)
    if len(starts) == 0 or starts[0] != 0 or starts[-1] != len(members) or np.any(starts[1:] < starts[:-1]):
        raise ValueError("segment.member_starts does not ascend to the end")
    if len(members) and not 0 <= members.min() <= members.max() < rows:
        raise ValueError("segment.members has a row that is not there")
