from libcpp.vector cimport vector

from xsift.native.tables cimport FlatMap
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint8_t, uint32_t, uint64_t

cdef enum:
    NONE = -1
    NO_ROOM = 255  # of a suffix label without links

cdef struct PrefixNode:
    int32_t parent      # the prefix label of one step less, NONE for the first; next free label for a free one
    symbol_t symbol
    int32_t uses        # longer prefixes by one step, plus one if a path ends here
    uint8_t axis

cdef struct Link:
    # A suffix label, or a single path, that goes on from another suffix label by one step more.
    int32_t slot        # of the edge from the step's label to the one before, times two, plus the axis
    int32_t target      # a suffix label; or single(path); or NONE
    uint64_t required   # one bit a label that all paths below have, hashed; a subset after removals

cdef struct SuffixNode:
    # A suffix label: a step, and the steps that follow it up to the end of the paths that it clusters.
    uint64_t prefixes   # one bit a prefix label of the cluster, hashed; a superset after removals
    uint64_t child_slots       # one bit a slot (modulo 64) of a link on a child axis; likewise
    uint64_t descendant_slots  # the same for links on a descendant axis
    int32_t first_link  # in SFLabelTree.links; a last step's are the triggers of AxisView's edges instead
    int32_t links
    int32_t rooted[2]   # by first axis: the path that begins with this very step, or NONE
    int32_t items       # links and rooted paths
    int32_t child_items # of them, those on a child axis
    int32_t paths       # clustered here: rooted ones and those of the links
    int32_t twig_paths  # of them, those that a twig needs
    int32_t parent      # NONE for a last step; the next free label, for a free one
    uint8_t room        # the links have room for two to the power of this; NO_ROOM for none
    uint8_t wide        # whether the links are in SFLabelTree.places

cdef struct SuffixOrigin:
    # What traversals do not ask for: a SuffixNode fills just one line of the processor's cache.
    symbol_t symbol     # of its step
    int32_t slot        # of the link from its parent


cdef inline int32_t single(int32_t path) noexcept nogil:
    """A path as the target of a link; and of such a target, the path."""
    return -2 - path


cdef inline uint64_t label_bit(int32_t label) noexcept nogil:
    return <uint64_t>1 << ((<uint32_t>label * <uint32_t>2654435769) >> 26)


cdef inline uint64_t slot_bit(int32_t slot) noexcept nogil:
    return <uint64_t>1 << (slot & 63)


cdef class PRLabelTree:
    cdef vector[PrefixNode] nodes
    cdef FlatMap[int32_t] children  # pack(prefix label, symbol * 2 + axis) -> prefix label
    cdef int32_t free_label         # head of the list of free labels
    cdef int64_t used

    cdef int32_t extend(self, int32_t prefix, symbol_t symbol, uint8_t axis) except -1
    cdef int release(self, int32_t prefix) except -1


cdef class SFLabelTree:
    cdef vector[SuffixNode] nodes
    cdef vector[SuffixOrigin] origins
    # The links of a suffix label stand together, in blocks of two to some power.
    cdef vector[Link] links
    cdef vector[vector[int32_t]] free_blocks  # by that power
    cdef FlatMap[int32_t] places    # pack(suffix label, slot) -> place among its links, for labels with many
    cdef int32_t free_label
    cdef int64_t used

    cdef int32_t new_label(self, int32_t parent, symbol_t symbol, int32_t slot) except -1
    cdef int free(self, int32_t label) except -1
    cdef int32_t find_link(self, int32_t label, int32_t slot) noexcept nogil
    cdef int add_link(self, int32_t label, Link link) except -1
    cdef int remove_link(self, int32_t label, int32_t slot) except -1
    cdef int more_room(self, int32_t label) except -1
    # `pending` is working space.
    cdef int list_paths(self, int32_t label, uint64_t missing, vector[int32_t]& pending, vector[int32_t]& paths
                        ) except -1 nogil
