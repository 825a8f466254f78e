from libcpp.vector cimport vector

from xsift.engines.afilter.branch cimport StackBranch
from xsift.native.types cimport int32_t, uint32_t, uint64_t

cdef enum Verdict:
    UNKNOWN = 0
    SUCCESS = 1  # it holds for this object
    FAILED = 2   # it does not
    HOPELESS = 3 # it does not, nor for any object below this one in the stack

cdef enum:
    WAYS = 4                     # entries in a bucket: one line of the processor's cache
    CLUSTER = 1 << 31            # marks a suffix label among prefix labels

cdef struct CacheEntry:
    uint32_t label     # a prefix label; or a suffix label with the CLUSTER bit
    uint32_t element   # of the object
    uint32_t document  # number of the document; an entry of another one is free
    uint32_t verdict   # a Verdict in the lowest two bits, the element's depth above


cdef class PRCache:
    # A power of two of buckets, WAYS entries each, most recently used first.
    cdef vector[CacheEntry] entries
    cdef size_t mask             # number of buckets, less one
    cdef size_t largest          # number of buckets that the limit allows; 0 switches the cache off
    cdef uint32_t document       # counts documents, from 1
    cdef size_t filled           # entries taken in this document, those that were replaced not counted again
    cdef bint failures_only

    cdef int clear(self) except -1 nogil
    cdef int put(self, StackBranch branch, uint32_t label, int32_t element, int32_t depth, uint32_t verdict
                 ) except -1 nogil
    cdef int32_t room_in(self, StackBranch branch, size_t first) noexcept nogil
    cdef int make_room(self, StackBranch branch) except -1 nogil

    cdef inline size_t bucket(self, uint32_t label, int32_t element) noexcept nogil:
        cdef uint64_t hash = label * <uint64_t>0x9e3779b97f4a7c15
        hash ^= <uint32_t>element * <uint64_t>0xc2b2ae3d27d4eb4f
        return ((hash ^ (hash >> 29)) & self.mask) * WAYS

    cdef inline uint32_t find(self, uint32_t label, int32_t element) noexcept nogil:
        cdef CacheEntry* entry
        cdef CacheEntry found
        cdef int i
        if self.entries.empty():
            return UNKNOWN
        entry = &self.entries[self.bucket(label, element)]
        for i in range(WAYS):
            if entry[i].label == label and entry[i].element == <uint32_t>element \
                    and entry[i].document == self.document:
                if i:
                    found = entry[i]
                    entry[i] = entry[0]
                    entry[0] = found
                return entry[0].verdict & 3
        return UNKNOWN
