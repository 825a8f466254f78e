"""Candidate lists of XFilter: what a start tag goes through, laid out for that.

A candidate is checked against the element's level; if list balance made it a pivot, then against the names above. So a list
holds, side by side, just what these checks read, and the prefixes of its pivots in the same order. It is grouped by level
and by the name that must be right above: one comparison does for a group. (XTrie's look-ups are laid out with the
same care: otherwise comparing the two engines would only compare layouts.)

Candidates are added at the end, each a group of its own, and grouped when a fifth of the list is not; one that goes
is left where it is and dropped at that time.
"""

from libcpp.algorithm cimport sort
from libcpp.vector cimport vector


cdef bint checks_the_same(const Candidate& one, const Candidate& other) noexcept nogil:
    return one.due == other.due and one.above == other.above


cdef bint comes_before(const Candidate& one, const Candidate& other) noexcept nogil:
    if one.due != other.due:
        return one.due < other.due
    if one.above != other.above:
        return one.above < other.above
    return one.node < other.node


cdef int add_candidate(CandidateList* found, Candidate made, const PathStep* steps) except -1:
    """Appends a candidate with its prefix, unless it has none: the path's steps up to and with the pivot."""
    cdef int32_t i
    if made.prefix != NO_PREFIX:
        made.prefix = <int32_t>found.prefixes.size()
        for i in range(made.step + 1):
            found.prefixes.push_back(steps[i])
    found.candidates.push_back(made)
    return 0


cdef bint is_grown(const CandidateList& found) noexcept:
    return <int32_t>found.candidates.size() > found.arranged + found.arranged // 4


cdef int arrange(CandidateList* found) except -1:
    """Drops what is gone and groups the rest. The places of all candidates change."""
    cdef CandidateList made
    cdef vector[Candidate] kept
    cdef size_t i
    cdef size_t first = 0
    for i in range(found.candidates.size()):
        if found.candidates[i].node >= 0:
            kept.push_back(found.candidates[i])
    sort(kept.begin(), kept.end(), comes_before)
    made.candidates.reserve(kept.size() + kept.size() // 4)  # as many as there will be when it is arranged again
    made.prefixes.reserve(found.prefixes.size())
    for i in range(kept.size()):
        add_candidate(&made, kept[i], found.prefixes.data() + max(kept[i].prefix, 0))
        made.candidates[i].alike = 1
        if i and checks_the_same(kept[i], kept[first]):
            made.candidates[first].alike += 1
        else:
            first = i
    found.candidates.swap(made.candidates)
    found.prefixes.swap(made.prefixes)
    found.arranged = <int32_t>found.candidates.size()
    found.gone = 0
    return 0


cdef size_t candidate_bytes(const CandidateList& found) noexcept:
    return (found.candidates.capacity() * sizeof(Candidate) + found.prefixes.capacity() * sizeof(PathStep)
            + sizeof(CandidateList))
