"""PRCache with sub-results: the tuples of a prefix at an object, or that it has none, in bounded memory.

An entry is for a prefix label and a stack object, so that paths which begin alike share it. It has the tuples of the
prefix that end at the object, without the object itself; or says that there are none. An entry for a suffix label
says that its whole cluster is known at the object: which of its paths hold there, and where in the ring the tuples of
their prefixes are, and that no other does. It is the paper's pruning condition, "all candidates are removed", for
one look.

Two parts share the limit: a table of fixed-size buckets, as in cache.pyx, and a ring of numbers in which the newest
tuples overwrite the oldest. Both start small and double up to the limit. No answer depends on what is found here.
"""

from libc.string cimport memcpy
from libcpp.vector cimport vector

from xsift.engines.afilter.branch cimport StackBranch, StackObject
from xsift.engines.afilter.cache cimport SUCCESS
from xsift.native.types cimport int32_t, int64_t, uint32_t

from xsift.engines.afilter.cache import NO_LIMIT

cdef enum:
    FIRST_BUCKETS = 128
    FIRST_RING = 1024
    FIRST_LISTED = 16
    LONGEST_SHARE = 8  # what takes more than this part of the ring is not kept: it would drive out all else


cdef class TupleCache:
    """Sub-results by label and object, with replacement. `limit_bytes` None means as many as there are."""

    def __cinit__(self, limit_bytes=None, bint failures_only=False):
        cdef size_t buckets = 1
        self.failures_only = failures_only
        self.document = 1
        most = NO_LIMIT if limit_bytes is None else min(limit_bytes, NO_LIMIT)
        table = most if failures_only else most // 2
        while buckets * 2 * TUPLE_WAYS * sizeof(TupleEntry) <= table:
            buckets *= 2
        self.largest = buckets if TUPLE_WAYS * sizeof(TupleEntry) <= table else 0
        self.longest = 0 if failures_only else most // 2 // 4 * 3 // 4
        self.most_listed = 0 if failures_only else most // 2 // 4 // 4

    cdef int clear(self) except -1 nogil:
        """Forgets everything: a new document begins."""
        self.document += 1
        self.filled = 0
        self.written = 0
        if self.document == 0:  # wrapped after 2^32 documents: old entries must not look like new ones
            self.entries.clear()
            self.document = 1
        return 0

    cdef int32_t* put(self, StackBranch branch, uint32_t label, int32_t number, uint32_t verdict, int32_t count,
                      int64_t size, int* evicted) except? NULL nogil:
        cdef const StackObject* object = &branch.objects[number]
        cdef TupleEntry* entry
        cdef int32_t place
        cdef int64_t position = 0
        evicted[0] = 0
        if self.largest == 0 or (self.failures_only and verdict == SUCCESS):
            return NULL
        if size:
            position = self.room_for(size)
            if position < 0:
                return NULL
        if self.entries.empty():
            self.mask = min(self.largest, <size_t>FIRST_BUCKETS) - 1
            self.entries.resize((self.mask + 1) * TUPLE_WAYS)
        place = self.room_in(branch, self.bucket(label, object.element))
        if place < 0 and self.mask + 1 < self.largest and self.filled * 8 > self.entries.size():
            self.make_room(branch)
            place = self.room_in(branch, self.bucket(label, object.element))
        entry = &self.entries[self.bucket(label, object.element)]
        if place < 0:
            place = TUPLE_WAYS - 1
            evicted[0] = 1
        while place > 0:
            entry[place] = entry[place - 1]
            place -= 1
        entry[0] = TupleEntry(label, object.element, self.document, (<uint32_t>object.depth << 2) | verdict,
                              position, <int32_t>size, count)
        return self.ring.data() + position % <int64_t>self.ring.size() if size else NULL

    cdef int64_t room_for(self, int64_t size) except -2 nogil:
        """Takes so many numbers of the ring, side by side. Returns their position, or -1 if they are too many."""
        cdef int64_t length = <int64_t>self.ring.size()
        cdef int64_t left, position
        cdef vector[int32_t] longer
        if size > self.longest // LONGEST_SHARE:
            return -1
        # A ring of twice the length keeps positions: what was side by side in the shorter one stays so in the longer.
        while (length == 0 or self.written + size > length) and length < self.longest:
            if length == 0:
                length = FIRST_RING
                while length > self.longest:
                    length //= 2
            elif 2 * length > self.longest:
                break
            else:
                length *= 2
        if length > <int64_t>self.ring.size():
            longer.resize(length)
            if self.ring.size():  # nothing was overwritten so far, or it would not grow
                memcpy(longer.data(), self.ring.data(), 4 * self.ring.size())
            self.ring.swap(longer)
        left = length - self.written % length
        if left < size:
            self.written += left
        position = self.written
        self.written += size
        return position if size <= length else -1

    cdef int32_t room_in(self, StackBranch branch, size_t first) noexcept nogil:
        """An entry of a bucket that is free, or of a closed element; else -1."""
        cdef const TupleEntry* entry = &self.entries[first]
        cdef int32_t i
        for i in range(TUPLE_WAYS):
            if entry[i].document != self.document:
                self.filled += 1
                return i
            if not branch.is_open(entry[i].element, entry[i].verdict >> 2):
                return i
        return -1

    cdef int make_room(self, StackBranch branch) except -1 nogil:
        """Drops the entries of closed elements; doubles the table if that does not leave much room."""
        cdef vector[TupleEntry] old
        cdef TupleEntry* entry
        cdef size_t i
        cdef size_t open_entries = 0
        cdef int way
        for i in range(self.entries.size()):
            entry = &self.entries[i]
            if entry.document == self.document and branch.is_open(entry.element, entry.verdict >> 2):
                open_entries += 1
            else:
                entry.document = 0
        self.filled = open_entries
        if open_entries * 16 < self.entries.size():
            return 0
        old.swap(self.entries)
        self.entries.resize(old.size() * 2)
        self.mask = self.mask * 2 + 1
        for i in range(old.size()):
            if old[i].document == self.document:
                entry = &self.entries[self.bucket(old[i].label, old[i].element)]
                way = 0
                while entry[way].document == self.document:
                    way += 1
                entry[way] = old[i]
        return 0

    # Which prefixes have tuples at an object.

    cdef int note_prefix(self, int32_t number, int32_t prefix) except -1 nogil:
        cdef vector[int32_t]* prefixes
        cdef int64_t capacity
        if <int32_t>self.prefixes_at.size() <= number:
            self.prefixes_at.resize(number + 1)
        prefixes = &self.prefixes_at[number]
        capacity = prefixes.capacity()
        if <int64_t>prefixes.size() == capacity:
            capacity = max(<int64_t>FIRST_LISTED, 2 * capacity)
            if self.listed + capacity > self.most_listed:
                return 0
            self.listed += capacity - <int64_t>prefixes.capacity()
            prefixes.reserve(capacity)
        prefixes.push_back(prefix)
        return 0

    cdef int forget_object(self, int32_t number) except -1 nogil:
        """A new object takes the number."""
        if <int32_t>self.prefixes_at.size() > number:
            if self.prefixes_at[number].capacity() > FIRST_LISTED:
                self.listed -= <int64_t>self.prefixes_at[number].capacity()
                vector[int32_t]().swap(self.prefixes_at[number])
            self.prefixes_at[number].clear()
        return 0

    def memory(self):
        cdef size_t i
        cdef int64_t size = self.entries.capacity() * sizeof(TupleEntry) + 4 * self.ring.capacity()
        for i in range(self.prefixes_at.size()):
            size += 4 * self.prefixes_at[i].capacity()
        return size
