from libcpp.vector cimport vector

from xsift.engines.predicate.index cimport Occurrences, Predicate, PredicateIndex
from xsift.native.tables cimport FlatMap
from xsift.native.types cimport int32_t, int64_t, uint8_t

cdef struct XpeNode:
    int32_t pid         # its predicate
    int32_t parent      # the node of the predicate before; -1 for a first one; the next free node for a free one
    int32_t depth       # 1 for a first predicate
    int32_t access      # the pid of the first predicate of the sequence: the access predicate
    int32_t first_path  # the first of the expressions whose last predicate this is, -1: none
    int32_t uses        # children and expressions
    int32_t place       # in `ending`, if it has expressions


# The working sets of Figure 2; one for each thread.
cdef class Determination:
    cdef vector[const vector[Occurrences]*] results  # R, in the order of the predicates
    cdef vector[uint8_t] tried                       # pairs that were selected and so removed, R after R
    cdef vector[int32_t] first_tried                 # where those of each R begin
    cdef vector[int32_t] cursor                      # by predicate: the next pair to look at
    cdef vector[int32_t] wanted                      # by predicate: the first occurrence number of R'

    # Whether some sequence of pairs is connected. With `newest_last` the last pair must be the newest of its R.
    cdef bint run(self, bint newest_last) except -1 nogil


cdef class XpeIndex:
    cdef vector[XpeNode] nodes
    cdef int32_t free_node
    cdef FlatMap[int32_t] children               # pack(node or -1, pid) -> node
    cdef vector[int32_t] next_path               # by path: the next one of its node, or -1
    cdef vector[int32_t] path_node               # by path
    cdef vector[vector[int32_t]] ending          # by pid: the nodes with expressions that end in it
    cdef readonly int32_t deepest                # no node is deeper
    cdef readonly Py_ssize_t expression_count    # nodes with expressions

    cdef int insert(self, int32_t path, PredicateIndex index, const vector[Predicate]& encoding) except -1
    cdef int remove(self, int32_t path, PredicateIndex index) except -1
    cdef int32_t child(self, int32_t parent, int32_t pid) except -1
    cdef int list_node(self, int32_t node) except -1
    cdef int unlist_node(self, int32_t node) except -1
    cdef int64_t bytes(self) noexcept
