from libcpp.vector cimport vector

from xsift.engines.paths cimport PathStep
from xsift.native.types cimport int32_t, symbol_t

cdef enum:
    NO_PREFIX = -1

cdef struct Candidate:  # 28 bytes
    int32_t due     # twice the level that it must be at; an odd one stands for that level and all below it
    symbol_t above  # the name that must be right above the pivot; ANY if the prefix does not say
    int32_t alike   # of the first of a group: how many from here on are due at the same level below the same name; else 1
    int32_t node    # -1 for a candidate that is gone
    int32_t path
    int32_t prefix  # where the steps up to the pivot begin in `prefixes`; NO_PREFIX if there are no names before it
    int32_t step    # the pivot's, so that as many are before it

cdef struct CandidateList:
    vector[Candidate] candidates  # from `arranged` on as they were added, each a group of its own
    vector[PathStep] prefixes     # the steps up to and with the pivot, in the order of the candidates
    int32_t arranged
    int32_t gone


cdef inline bint is_due(int32_t due, int32_t level) noexcept nogil:
    return level * 2 == due or (due & 1 and level * 2 + 1 >= due)

cdef int add_candidate(CandidateList* found, Candidate made, const PathStep* steps) except -1
cdef bint is_grown(const CandidateList& found) noexcept
cdef int arrange(CandidateList* found) except -1
cdef size_t candidate_bytes(const CandidateList& found) noexcept
