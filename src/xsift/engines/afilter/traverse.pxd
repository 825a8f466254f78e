from libcpp.vector cimport vector

from xsift.engines.afilter.branch cimport StackBranch
from xsift.engines.afilter.cache cimport UNKNOWN, PRCache
from xsift.engines.afilter.view cimport PatternView
from xsift.engines.paths cimport PathScratch
from xsift.native.types cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef enum Counter:
    TRIGGERS
    TRIGGERS_PRUNED
    TRAVERSALS
    CACHE_LOOKUPS
    CACHE_HITS
    CACHE_ENTRIES
    CACHE_EVICTIONS
    UNFOLDINGS
    REMOVALS
    TRAVERSALS_PRUNED
    PATHS_MATCHED
    TUPLES

cdef struct SuffixState:
    uint32_t visited   # the trigger that came here last
    uint32_t document  # the document that `done` is about
    int32_t done       # items of the suffix label of which every path has matched, for good
    int32_t removed    # paths of the cluster that are served already and need no further traversal

cdef struct AgendaItem:
    # A link that a frame has still to follow.
    int32_t target
    int32_t object
    uint8_t descendant    # its axis

cdef struct Frame:
    # A suffix label at an object, in the middle of its traversal.
    int32_t label
    int32_t object
    int32_t height        # number of steps in the suffix
    int32_t agenda_from   # its part of the agenda begins here, and ends where the agenda does
    int32_t lower         # the next object down the stack of the descendant link at hand, or NONE
    int32_t lower_label   # its suffix label
    int32_t removed_from  # how many removals there were before this frame's
    uint8_t outcome       # so far
    uint8_t whole         # whether no path of the cluster was removed before
    uint8_t fresh         # whether this trigger comes to the label for the first time


cdef class AFilterScratch(PathScratch):
    cdef StackBranch branch
    cdef PRCache cache
    cdef vector[int32_t] found        # paths that match at the object at hand, each once
    cdef vector[uint32_t] path_at     # by path: the trigger that found it last
    cdef uint32_t trigger             # counts the objects whose triggers were checked
    cdef uint32_t first_trigger       # of this document
    cdef vector[int32_t] at           # by step: the object tried for it
    cdef uint64_t missing             # one bit a label that is not on the branch, nor the object's own, hashed
    cdef bint caches                  # whether PRCache is used
    cdef object tuples                # the TupleTraversal, if tuples are asked for
    cdef bint by_tuples               # whether it is used for this document
    # Suffix-compressed deployments:
    cdef bint early                   # unfolding; else it is late
    cdef vector[SuffixState] states   # by suffix label
    cdef vector[Frame] frames
    cdef vector[AgendaItem] agenda
    cdef vector[uint8_t] is_removed   # by path
    cdef vector[int32_t] removed      # paths that are removed from their clusters, by frame
    cdef vector[int32_t] cluster      # paths of one cluster
    cdef vector[int32_t] pending      # suffix labels still to be looked into

    cdef inline bint is_done(self, PatternView view, int32_t path) noexcept nogil:
        # A twig's path counts at each element; another's only once in a document.
        if view.in_twig[path]:
            return self.path_at[path] == self.trigger
        return self.path_at[path] >= self.first_trigger


cdef int trigger_check(PatternView view, AFilterScratch scratch, int32_t number) except -1 nogil
# What becomes of the steps from `lowest` to `highest` is looked up in PRCache, and remembered there.
cdef uint32_t traverse(PatternView view, AFilterScratch scratch, int32_t path, int32_t first, int32_t number,
                       int32_t lowest, int32_t highest) except? 255 nogil
cdef int remember(AFilterScratch scratch, int32_t prefix, int32_t number, uint32_t verdict) except -1 nogil

cdef inline uint32_t look_up(AFilterScratch scratch, uint32_t label, int32_t number) noexcept nogil:
    """What PRCache says of a prefix label, or a cluster's, and an object."""
    cdef uint32_t verdict = scratch.cache.find(label, scratch.branch.objects[number].element)
    scratch.counts[CACHE_LOOKUPS] += 1
    scratch.counts[CACHE_HITS] += verdict != UNKNOWN
    return verdict
