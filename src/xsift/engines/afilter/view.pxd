from libcpp.vector cimport vector

from xsift.engines.afilter.labels cimport Link, PRLabelTree, SFLabelTree
from xsift.engines.paths cimport PathStep
from xsift.native.numbers cimport FreeNumbers
from xsift.native.tables cimport FlatMap
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint8_t, uint64_t

cdef enum:
    FREE_EDGE = -2
    ROOT = -1  # the label q_root; every other label is its symbol (0 is `*`, a condition is a label too)

cdef struct Edge:
    symbol_t target     # the label before; ROOT; FREE_EDGE for a slot that no assertion uses
    int32_t number      # of this edge among all edges, for `triggers`; the next free slot, for a free one
    int32_t assertions  # how many there are on this edge; the slot is free when none are
    Link triggers[2]    # by axis: the one trigger of the suffix-compressed AxisView

cdef struct AxisNode:
    int32_t assertions  # on all edges from here: a label without any needs no stack
    int32_t suffix      # the suffix label of the paths' last step with this label, or NONE
    int32_t free_slot   # head of the list of free slots of its edges, or NONE

cdef struct Trigger:
    uint64_t labels     # one bit a label of the path, hashed: all their stacks must hold something
    int32_t path
    int32_t length      # in steps: no less than the depth

cdef struct PathEntry:
    int32_t first       # of the path's record in PatternView.steps
    int32_t length      # in steps; 0 for a path that is not there
    int32_t place       # where its trigger stands; with suffixes, the longest suffix label that it is clustered under


cdef inline int32_t stack_of(symbol_t label) noexcept nogil:
    """The number of a label's stack; 0, which is always empty, for FREE_EDGE."""
    return label - FREE_EDGE


cdef class AxisView:
    # By label. A slot of edges[label] is the number of a pointer in the stack objects of that label.
    cdef vector[AxisNode] nodes
    cdef vector[vector[Edge]] edges
    cdef vector[vector[int32_t]] targets         # of the same edges: stack_of(target), for Push to run over
    cdef FlatMap[int32_t] slots                  # pack(source, target) -> slot
    # By edge number, one each axis: the trigger assertions, unless AxisView is suffix-compressed.
    cdef vector[vector[Trigger]] child_triggers
    cdef vector[vector[Trigger]] descendant_triggers
    cdef FreeNumbers free_numbers
    cdef int64_t assertion_count

    cdef int32_t add_assertion(self, symbol_t source, symbol_t target) except -1
    cdef int remove_assertion(self, symbol_t source, symbol_t target) except -1
    cdef int32_t slot_of(self, symbol_t source, symbol_t target) noexcept nogil
    cdef vector[Trigger]* triggers(self, int32_t number, uint8_t axis) noexcept nogil


cdef class PatternView:
    # The index of one engine. Without prefixes (suffixes) there is no PRLabel-tree (SFLabel-tree).
    cdef AxisView axes
    cdef PRLabelTree prefixes
    cdef SFLabelTree suffixes
    cdef bint has_prefixes
    cdef bint has_suffixes
    cdef bint has_assertions
    # Paths have numbers of their own here, which change when they are arranged (arrangement.pyx).
    cdef vector[PathEntry] paths
    cdef vector[int32_t] names                # by path: the engine's number
    cdef vector[int32_t] numbers              # by the engine's number: the path, or NONE
    cdef FreeNumbers free_paths
    cdef int64_t live                         # how many there are
    cdef int64_t loose                        # of them, those that came since they were arranged
    # The assertions (path, step), a record for each path. First for each step which pointer leads from its object to
    # that of the step before (the slot of the edge at the step's label, times two, plus the axis). Then, with prefixes, for
    # each step the prefix label up to it.
    cdef vector[int32_t] steps
    cdef vector[vector[int32_t]] free_blocks  # of `steps`, by the path's length
    # pack(prefix label, suffix label) -> path: an assertion has no more than one path. Unless it is not built.
    cdef FlatMap[int32_t] assertions
    cdef vector[uint8_t] in_twig              # by path: whether a twig needs it, so that every match counts
    cdef int64_t version                      # changes with the index

    # These three take the engine's number of a path.
    cdef int insert(self, int32_t name, const vector[PathStep]& steps) except -1
    cdef int delete(self, int32_t name, const vector[PathStep]& steps) except -1
    cdef int mark_twig(self, int32_t name, bint needed) except -1
    cdef int32_t new_path(self, int32_t name) except -1
    cdef int32_t new_block(self, int32_t length) except -1
    cdef int free_block(self, PathEntry entry) except -1
    cdef int insert_trigger(self, int32_t path, const vector[PathStep]& steps) except -1
    cdef int delete_trigger(self, int32_t path, const vector[PathStep]& steps) except -1
    cdef int insert_suffixes(self, int32_t path, const vector[PathStep]& steps) except -1
    cdef int delete_suffixes(self, int32_t path) except -1
    cdef int attach(self, int32_t label, int32_t path, int32_t step, uint64_t required) except -1
    cdef int detach(self, int32_t label, int32_t path, int32_t step) except -1
    cdef int unlink(self, int32_t label, int32_t slot) except -1
    cdef int32_t make_cluster(self, int32_t label, int32_t height, symbol_t symbol, Link* link, uint64_t required
                              ) except -1
    cdef Link* trigger_link(self, int32_t label, int32_t slot) noexcept nogil
    cdef Link* link_of(self, int32_t label, int32_t slot) noexcept nogil
    cdef int32_t height_of(self, int32_t label) noexcept nogil

    cdef inline int32_t slot_of(self, int32_t path, int32_t step) noexcept nogil:
        return self.steps[self.paths[path].first + step]

    cdef inline int32_t prefix_of(self, int32_t path, int32_t step) noexcept nogil:
        return self.steps[self.paths[path].first + self.paths[path].length + step]
