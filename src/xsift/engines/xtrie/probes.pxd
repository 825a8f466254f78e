from libc.stdint cimport uint16_t
from libcpp.vector cimport vector

from xsift.native.numbers cimport FreeNumbers
from xsift.native.types cimport int32_t

cdef enum:
    NO_LIST = -1

cdef struct Probe:  # 20 bytes
    int32_t parent      # Row.levels of the parent row: is it matched where it must be? Of a `*`: the row itself
    uint16_t level_min  # the relative level, as in Row
    uint16_t flags      # UNBOUNDED as in Row; STAR here: the parent row is a `*`
    int32_t alike       # of the first of a group: how many from here on ask the same; else 1
    int32_t row
    int32_t pattern     # of the row; -1 if the row is gone

cdef struct ProbeList:
    vector[Probe] probes  # from `arranged` on as they were added, each a group of its own
    int32_t arranged
    int32_t gone          # how many have lost their row


cdef class ProbeLists:
    cdef vector[ProbeList] lists
    cdef FreeNumbers free_lists

    cdef int32_t new_list(self) except -1
    cdef int free_list(self, int32_t number) except -1
    cdef int arrange(self, int32_t number) except -1
    cdef inline bint is_grown(self, int32_t number) noexcept:
        """Whether it is time to arrange a list: a fifth of it is not."""
        cdef ProbeList* found = &self.lists[number]
        return <int32_t>found.probes.size() > found.arranged + found.arranged // 4
    cdef size_t bytes(self)
