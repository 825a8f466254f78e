from libcpp.vector cimport vector

from xsift.engines.paths cimport PathStep
from xsift.native.numbers cimport FreeNumbers
from xsift.native.tables cimport FlatMap
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint8_t

cdef enum PredicateKind:
    ABSOLUTE     # (p_t, op, v): the position of a tag
    RELATIVE     # (d(p_t1, p_t2), op, v): how far one tag is below another
    END_OF_PATH  # (p_t-|, >=, v): how many elements follow a tag
    LENGTH       # (length, >=, v): how many elements there are

cdef enum PredicateOperator:
    EQUAL
    AT_LEAST

cdef struct Predicate:
    int32_t first      # tag number; -1 of a length predicate
    int32_t second     # tag number; `first` but for a relative predicate
    int32_t value      # at least 1
    int32_t uses       # by nodes of the XPE index; 0: the pid is free
    uint8_t kind
    uint8_t operation

# Occurrence pairs (o1, second) for all o1 from `low` to `high`: what one element adds to the result of a predicate.
cdef struct Occurrences:
    int32_t low
    int32_t high
    int32_t second


cdef class PathPublication:
    # Tag number by level - 1, of the elements whose predicates are matched; -1: no predicate has this tag.
    cdef vector[int32_t] tags
    # By tag: positions (levels) of its open occurrences, outermost first; occurrence o is at [o - 1].
    cdef vector[vector[int32_t]] positions
    # The tags that have an occurrence, by their first one.
    cdef vector[int32_t] present
    # By pid: the result R, innermost element's last. An element adds at most one entry to it.
    cdef vector[vector[Occurrences]] results
    # The pids that the open elements added an entry to, outermost first; where each element's begin.
    cdef vector[int32_t] recorded
    cdef vector[int32_t] first_recorded


cdef class PredicateIndex:
    cdef FlatMap[int32_t] tag_of_symbol
    cdef vector[symbol_t] tag_symbol
    cdef vector[Predicate] predicates      # by pid
    cdef FreeNumbers free_pids
    # The stages of Figure 1: by kind, by tag or tags, by operator, by value; -1 where there is no predicate.
    cdef vector[vector[int32_t]] absolute     # by 2 * tag + operator
    cdef FlatMap[int32_t] relative_slot       # pack(first tag, second tag) -> slot
    cdef vector[vector[int32_t]] relative     # by 2 * slot + operator
    cdef vector[vector[int32_t]] end_of_path  # by tag
    cdef vector[int32_t] length
    cdef int32_t largest_end               # no end-of-path predicate has a larger value
    cdef readonly Py_ssize_t predicate_count

    # The ordered predicates that encode a path, tags numbered, nothing inserted.
    cdef int encode(self, const vector[PathStep]& steps, vector[Predicate]* encoding) except -1
    cdef int32_t insert(self, Predicate predicate) except -1
    cdef int release(self, int32_t pid) except -1
    cdef int32_t tag(self, symbol_t symbol) except -1
    cdef vector[int32_t]* place(self, Predicate predicate) except NULL

    cdef int prepare(self, PathPublication publication) except -1 nogil
    # Adds an element, or a condition, at the end of the path and matches the predicates that it has a part in.
    cdef int match_element(self, PathPublication publication, symbol_t symbol) except -1 nogil
    cdef int match_condition(self, PathPublication publication, symbol_t condition) except -1 nogil
    cdef int match_tag(self, PathPublication publication, int32_t tag) except -1 nogil
    cdef int match_pair(self, PathPublication publication, int32_t slot, int32_t tag, int32_t occurrence) except -1 nogil
    cdef int match_length(self, PathPublication publication) except -1 nogil
    cdef int record(self, PathPublication publication, int32_t pid, Occurrences entry) except -1 nogil
    # Takes the innermost element, or the condition, back.
    cdef void retract(self, PathPublication publication) noexcept nogil
    cdef int64_t bytes(self) noexcept
