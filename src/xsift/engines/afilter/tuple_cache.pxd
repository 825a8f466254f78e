from libcpp.vector cimport vector

from xsift.engines.afilter.branch cimport StackBranch
from xsift.native.types cimport int32_t, int64_t, uint32_t, uint64_t

cdef enum:
    TUPLE_WAYS = 4  # entries in a bucket

cdef struct TupleEntry:
    uint32_t label     # a prefix label; or a suffix label with the CLUSTER bit
    uint32_t element   # of the object
    uint32_t document  # number of the document; an entry of another one is free
    uint32_t verdict   # a Verdict in the lowest two bits, the element's depth above
    int64_t position   # of what belongs to it, counted over all that was ever written in this document
    int32_t size       # of that, in numbers
    int32_t count      # of tuples, or paths


cdef class TupleCache:
    cdef vector[TupleEntry] entries
    cdef vector[int32_t] ring    # the numbers of tuples; the oldest are overwritten
    cdef int64_t written         # numbers so far in this document, those skipped at the end of the ring included
    cdef size_t mask             # number of buckets, less one
    cdef size_t largest          # number of buckets that the limit allows; 0 switches the cache off
    cdef int64_t longest         # the ring that the limit allows, in numbers
    cdef uint32_t document       # counts documents, from 1
    cdef size_t filled           # entries taken in this document
    cdef bint failures_only
    # By object of StackBranch: the prefix labels that have tuples there.
    cdef vector[vector[int32_t]] prefixes_at
    cdef int64_t listed          # prefix labels that these lists have room for
    cdef int64_t most_listed     # that the limit allows

    cdef int clear(self) except -1 nogil
    # Enters a verdict that is not there yet. Returns where its `size` numbers are to be written, or NULL for nowhere.
    cdef int32_t* put(self, StackBranch branch, uint32_t label, int32_t number, uint32_t verdict, int32_t count,
                      int64_t size, int* evicted) except? NULL nogil
    cdef int32_t room_in(self, StackBranch branch, size_t first) noexcept nogil
    cdef int make_room(self, StackBranch branch) except -1 nogil
    cdef int64_t room_for(self, int64_t size) except -2 nogil
    cdef int note_prefix(self, int32_t number, int32_t prefix) except -1 nogil
    cdef int forget_object(self, int32_t number) except -1 nogil

    cdef inline size_t bucket(self, uint32_t label, int32_t element) noexcept nogil:
        cdef uint64_t hash = label * <uint64_t>0x9e3779b97f4a7c15
        hash ^= <uint32_t>element * <uint64_t>0xc2b2ae3d27d4eb4f
        return ((hash ^ (hash >> 29)) & self.mask) * TUPLE_WAYS

    cdef inline const TupleEntry* find(self, uint32_t label, int32_t element) noexcept nogil:
        """The entry, until the next put; NULL if there is none, or its tuples were overwritten."""
        cdef TupleEntry* entry
        cdef TupleEntry found
        cdef int i
        if self.entries.empty():
            return NULL
        entry = &self.entries[self.bucket(label, element)]
        for i in range(TUPLE_WAYS):
            if entry[i].label == label and entry[i].element == <uint32_t>element \
                    and entry[i].document == self.document:
                if entry[i].size and self.written - entry[i].position > <int64_t>self.ring.size():
                    entry[i].document = 0
                    return NULL
                if i:
                    found = entry[i]
                    entry[i] = entry[0]
                    entry[0] = found
                return entry
        return NULL

    cdef inline const int32_t* numbers(self, const TupleEntry* entry) noexcept nogil:
        return self.ring.data() + entry.position % <int64_t>self.ring.size() if entry.size else NULL
