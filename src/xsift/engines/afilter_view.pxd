from libcpp.vector cimport vector

from xsift.engines.paths cimport PathStep
from xsift.native.tables cimport FlatMap
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint8_t, uint32_t, uint64_t

cdef enum:
    BY_CHILD = 0       # CHILD and DESCENDANT as places in an array
    BY_DESCENDANT = 1
    FREE_EDGE = -2
    ROOT = -1  # the label q_root; every other label is its symbol (0 is `*`, a condition is a label too)
    NONE = -1

cdef struct Edge:
    symbol_t target     # the label before; ROOT; FREE_EDGE for a slot that no assertion uses
    int32_t number      # of this edge among all edges, for `triggers`; the next free slot, for a free one
    int32_t assertions  # how many there are on this edge; the slot is free when none are
    int32_t suffix[2]   # by axis: the suffix label that triggers here (suffix-compressed AxisView), or NONE

cdef struct AxisNode:
    int32_t assertions  # on all edges from here: a label without any needs no stack
    int32_t suffix      # the suffix label of the paths' last step with this label, or NONE
    int32_t free_slot   # head of the list of free slots of its edges, or NONE

cdef struct Trigger:
    uint64_t labels     # one bit a label of the path, hashed: all their stacks must hold something
    int32_t path
    int32_t length      # in steps: no less than the depth

cdef struct Assertion:
    # Assertion (query, step): which pointer leads from the object of this step to that of the step before.
    int32_t slot        # of the edge among those of the step's label, times two, plus the axis
    int32_t prefix      # the prefix label of the steps up to this one; NONE without a PRLabel-tree

cdef struct PrefixNode:
    int32_t parent      # the prefix label of one step less, NONE for the first; next free label for a free one
    symbol_t symbol
    int32_t uses        # longer prefixes by one step, plus one if a path ends here
    uint8_t axis

cdef struct SuffixNode:
    # A suffix label: a step, and the steps that follow it up to the end of the paths that it clusters.
    int32_t first_child   # suffix labels of one step more
    int32_t next_sibling  # also the next free label, for a free one
    int32_t previous_sibling
    int32_t slot          # of the edge from the following step's label to this one's, among the former's
    int32_t rooted[2]     # by first axis: the path that begins with this very step, or NONE
    int32_t items         # children and rooted paths
    int32_t child_items   # of them, those on a child axis
    int32_t paths         # clustered here: rooted ones and those of the children
    int32_t twig_paths    # of them, those that a twig needs
    int32_t parent        # NONE for a last step
    symbol_t symbol
    uint64_t prefixes     # one bit a prefix label of the cluster, hashed; a superset after removals
    uint8_t axis          # between this step and the one that follows it
    uint8_t wide          # whether the children are in SFLabelTree.wide


cdef inline uint64_t label_bit(int32_t label) noexcept nogil:
    return <uint64_t>1 << ((<uint32_t>label * <uint32_t>2654435769) >> 26)


cdef class AxisView:
    # By label. A slot of edges[label] is the number of a pointer in the stack objects of that label.
    cdef vector[AxisNode] nodes
    cdef vector[vector[Edge]] edges
    cdef FlatMap[int32_t] slots                  # pack(source, target) -> slot
    # By edge number, one each axis: the trigger assertions, unless AxisView is suffix-compressed.
    cdef vector[vector[Trigger]] child_triggers
    cdef vector[vector[Trigger]] descendant_triggers
    cdef vector[int32_t] free_numbers
    cdef int64_t assertion_count

    cdef int32_t add_assertion(self, symbol_t source, symbol_t target) except -1
    cdef int remove_assertion(self, symbol_t source, symbol_t target) except -1
    cdef int32_t slot_of(self, symbol_t source, symbol_t target) noexcept nogil
    cdef vector[Trigger]* triggers(self, int32_t number, uint8_t axis) noexcept nogil


cdef class PRLabelTree:
    cdef vector[PrefixNode] nodes
    cdef FlatMap[int32_t] children  # pack(prefix label, symbol * 2 + axis) -> prefix label
    cdef int32_t free_label         # head of the list of free labels
    cdef int64_t used

    cdef int32_t extend(self, int32_t prefix, symbol_t symbol, uint8_t axis) except -1
    cdef int release(self, int32_t prefix) except -1


cdef class SFLabelTree:
    cdef vector[SuffixNode] nodes
    cdef FlatMap[int32_t] wide      # pack(suffix label, slot * 2 + axis) -> child, for labels with many children
    cdef int32_t free_label
    cdef int64_t used

    cdef int32_t find_child(self, int32_t parent, int32_t slot, uint8_t axis) noexcept nogil
    cdef int32_t new_label(self, int32_t parent, symbol_t symbol, int32_t slot, uint8_t axis) except -1
    cdef int widen(self, int32_t label) except -1
    cdef int free(self, int32_t label) except -1


cdef class PatternView:
    # The index of one engine. Without prefixes (suffixes) there is no PRLabel-tree (SFLabel-tree).
    cdef AxisView axes
    cdef PRLabelTree prefixes
    cdef SFLabelTree suffixes
    cdef bint has_prefixes
    cdef bint has_suffixes
    cdef vector[vector[Assertion]] assertions  # by path; kept unless suffixes alone are enough
    cdef vector[int32_t] place                 # by path: where its trigger stands, or its last suffix label
    cdef vector[uint8_t] in_twig               # by path: whether a twig needs it, so that every match counts
    cdef int64_t version                       # changes with the index

    cdef int insert(self, int32_t path, const vector[PathStep]& steps) except -1
    cdef int delete(self, int32_t path, const vector[PathStep]& steps) except -1
    cdef int mark_twig(self, int32_t path, bint needed) except -1
    cdef int32_t slot(self, const vector[PathStep]& steps, int32_t step) noexcept nogil
    cdef int insert_trigger(self, int32_t path, const vector[PathStep]& steps) except -1
    cdef int delete_trigger(self, int32_t path, const vector[PathStep]& steps) except -1
    cdef int insert_suffixes(self, int32_t path, const vector[PathStep]& steps) except -1
    cdef int delete_suffixes(self, int32_t path, const vector[PathStep]& steps) except -1
