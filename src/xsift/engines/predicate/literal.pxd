from libcpp.vector cimport vector

from xsift.engines.predicate.expressions cimport XpeIndex
from xsift.native.types cimport int32_t, int64_t, uint32_t

cdef enum Organisation:
    TRIGGERED
    BASIC
    PREFIX_COVERING
    ACCESS_PREDICATES


# One expression of an organisation.
cdef struct Expression:
    int32_t node     # of the XPE index
    int32_t first    # its predicates are pids[first : first + length]
    int32_t length
    int32_t prefix   # the longest expression that is a proper prefix of it, -1: none


cdef struct Cluster:
    int32_t access   # the first predicate of its expressions
    int32_t first    # expressions[first : end]
    int32_t end


cdef class LiteralOrganisation:
    cdef vector[Expression] expressions
    cdef vector[int32_t] pids
    cdef vector[Cluster] clusters       # ACCESS_PREDICATES: in the order of `expressions`
    cdef vector[uint32_t] matched_at    # by expression: the epoch (document) in which it matched

    # Lists the expressions of an index in the order in which the paper has them evaluated.
    cdef int build(self, XpeIndex index, int organisation) except -1 nogil
    cdef int append(self, XpeIndex index, int32_t node) except -1 nogil
    cdef int64_t bytes(self) noexcept
