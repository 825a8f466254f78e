"""ProbeLists: what look-ups in the Substring-Table read.

A look-up asks of a row: is its parent matched at the right level? The parent's substring and the relative level are all
that this takes. So each substring has a list of probes, one for each of its rows, side by side in memory and grouped
by what they ask: one answer does for all rows of a group, and the table itself is read only where it is yes.

Probes are added at the end of their list, each a group of its own, and grouped when a fifth of the list is not, so that an
addition costs little however long the list is. A probe whose row goes is left where it is, and dropped at that time.
"""

from libcpp.algorithm cimport sort
from libcpp.vector cimport vector


cdef bint asks_the_same(const Probe& one, const Probe& other) noexcept nogil:
    return one.parent == other.parent and one.level_min == other.level_min and one.flags == other.flags


cdef bint comes_before(const Probe& one, const Probe& other) noexcept nogil:
    if one.parent != other.parent:
        return one.parent < other.parent
    if one.flags != other.flags:
        return one.flags < other.flags
    if one.level_min != other.level_min:
        return one.level_min < other.level_min
    return one.row < other.row


cdef class ProbeLists:
    """Lists of probes, by number."""

    cdef int32_t new_list(self) except -1:
        cdef int32_t number = self.free_lists.take(self.lists.size())
        if <size_t>number == self.lists.size():
            self.lists.resize(number + 1)
        return number

    cdef int free_list(self, int32_t number) except -1:
        cdef vector[Probe] nothing
        self.lists[number].probes.swap(nothing)
        self.lists[number].arranged = self.lists[number].gone = 0
        self.free_lists.give_back(number)
        return 0

    cdef int arrange(self, int32_t number) except -1:
        """Drops what is gone and groups the rest. The places of all probes change."""
        cdef vector[Probe] kept
        cdef const vector[Probe]* probes = &self.lists[number].probes
        cdef size_t i
        cdef size_t first = 0
        kept.reserve(probes.size() + probes.size() // 4)  # as many as there will be when it is arranged again
        for i in range(probes.size()):
            if probes[0][i].pattern >= 0:
                kept.push_back(probes[0][i])
        sort(kept.begin(), kept.end(), comes_before)
        for i in range(kept.size()):
            kept[i].alike = 1
            if i and asks_the_same(kept[i], kept[first]):
                kept[first].alike += 1
            else:
                first = i
        self.lists[number].probes.swap(kept)
        self.lists[number].arranged = <int32_t>self.lists[number].probes.size()
        self.lists[number].gone = 0
        return 0

    cdef size_t bytes(self):
        cdef size_t i
        cdef size_t size = self.lists.capacity() * sizeof(ProbeList) + self.free_lists.bytes()
        for i in range(self.lists.size()):
            size += self.lists[i].probes.capacity() * sizeof(Probe)
        return size
