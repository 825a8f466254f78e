"""PRCache: what AFilter remembers of its traversals, in as much memory as it is given.

An entry says of a prefix label and a stack object whether the prefix holds with its last step there: paths that share
the prefix share the entry. Stacks only change above an object while it lives, so an entry stays true as long as its
element is open. A suffix label can be entered in the same way, for all candidates that it clusters.

The table is of fixed-size buckets. It starts small and doubles, up to the limit; from then on a full bucket gives up
an entry: first one of a closed element, else the one used least recently. No answer depends on what is found here.
"""

from libcpp.vector cimport vector

from xsift.engines.afilter.branch cimport StackBranch
from xsift.native.types cimport int32_t, uint32_t

cdef enum:
    FIRST_BUCKETS = 256

NO_LIMIT = 2 ** 40  # bytes: more than there are


cdef class PRCache:
    """Verdicts by label and object, with replacement. `limit_bytes` None means as many as there are."""

    def __cinit__(self, limit_bytes=None, bint failures_only=False):
        cdef size_t buckets = 1
        self.failures_only = failures_only
        self.document = 1
        most = NO_LIMIT if limit_bytes is None else min(limit_bytes, NO_LIMIT)
        while buckets * 2 * WAYS * sizeof(CacheEntry) <= most:
            buckets *= 2
        self.largest = buckets if WAYS * sizeof(CacheEntry) <= most else 0

    cdef int clear(self) except -1 nogil:
        """Forgets everything: a new document begins."""
        self.document += 1
        self.filled = 0
        if self.document == 0:  # wrapped after 2^32 documents: old entries must not look like new ones
            self.entries.clear()
            self.document = 1
        return 0

    cdef int put(self, StackBranch branch, uint32_t label, int32_t element, int32_t depth, uint32_t verdict
                 ) except -1 nogil:
        """Enters a verdict that is not there yet. Returns 1 if another one had to go that was still of use."""
        cdef CacheEntry* entry
        cdef int32_t place
        cdef int evicted = 0
        if self.largest == 0 or (self.failures_only and verdict == SUCCESS):
            return 0
        if self.entries.empty():
            self.mask = min(self.largest, <size_t>FIRST_BUCKETS) - 1
            self.entries.resize((self.mask + 1) * WAYS)
        place = self.room_in(branch, self.bucket(label, element))
        if place < 0 and self.mask + 1 < self.largest and self.filled * 8 > self.entries.size():
            self.make_room(branch)
            place = self.room_in(branch, self.bucket(label, element))
        entry = &self.entries[self.bucket(label, element)]
        if place < 0:
            place = WAYS - 1
            evicted = 1
        while place > 0:
            entry[place] = entry[place - 1]
            place -= 1
        entry[0] = CacheEntry(label, element, self.document, (<uint32_t>depth << 2) | verdict)
        return evicted

    cdef int32_t room_in(self, StackBranch branch, size_t first) noexcept nogil:
        """An entry of a bucket that is free, or of a closed element; else -1."""
        cdef const CacheEntry* entry = &self.entries[first]
        cdef int32_t i
        for i in range(WAYS):
            if entry[i].document != self.document:
                self.filled += 1
                return i
            if not branch.is_open(entry[i].element, entry[i].verdict >> 2):
                return i
        return -1

    cdef int make_room(self, StackBranch branch) except -1 nogil:
        """Drops the entries of closed elements; doubles the table if that does not leave much room."""
        cdef vector[CacheEntry] old
        cdef CacheEntry* entry
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

    def memory(self):
        return self.entries.capacity() * sizeof(CacheEntry)
