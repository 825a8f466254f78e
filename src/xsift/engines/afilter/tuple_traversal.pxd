from libcpp.vector cimport vector

from xsift.engines.afilter.branch cimport StackBranch
from xsift.engines.afilter.traverse cimport AFilterScratch, AgendaItem
from xsift.engines.afilter.tuple_cache cimport TupleCache, TupleEntry
from xsift.engines.afilter.view cimport PatternView
from xsift.native.types cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef enum:
    RECORD = 2               # numbers of a record before its elements
    MOST_RECORDED = 1 << 18  # numbers in records; then they are given up

cdef struct Candidate:
    # A candidate assertion of a group: a path, whose step is known from the height of the group's frame.
    int32_t path
    int32_t slot      # of the path's step, as in PatternView
    int32_t asker     # the candidate of the frame before from which it goes on; NONE after a suffix label
    int32_t next      # of those with the same slot
    uint8_t outcome   # a Verdict
    uint8_t followed  # whether its pointer is
    uint8_t stopped   # whether objects further down the stack need not be tried

cdef struct ServedPath:
    # A path of a cluster that holds at an object, and where its tuples are in the ring of TupleCache.
    int64_t position
    int32_t path
    int32_t count  # of tuples; NONE if they were not kept

cdef struct TupleFrame:
    # A group of candidates, or a suffix label, at an object. There is a frame for each step from the trigger on: its
    # place, from 1, is its height, and the objects of the frames are the end of the tuples.
    int32_t object
    int32_t label         # the suffix label; NONE for a group
    int32_t first         # its part of the candidates, or of the agenda, begins here, and ends where that ends
    int32_t order_from    # its part of the order
    int32_t bucket_from   # the part of the order that shares the pointer at hand, up to `next`
    int32_t next
    int32_t lower         # the next object down the stack of the pointer at hand, or NONE
    int32_t target        # of the link at hand
    int32_t removed_from  # how many removals there were before this frame's
    int32_t records_from  # the frame's tuples are the records from here on; NONE if they were given up
    uint8_t descendant    # the axis of the link at hand
    uint8_t held          # whether there was a tuple
    uint8_t mendable      # whether some child axis failed, so that an object further down may do better
    uint8_t whole         # whether no path of the cluster was removed before

cdef struct PathState:
    int32_t last_record   # the place of the path's last record,
    uint32_t stamp        # if this is TupleTraversal.stamp
    uint32_t found_at     # the trigger that found it last
    uint32_t collected    # the frame for which its tuples were remembered last
    uint8_t done          # no more of its tuples are wanted
    uint8_t removed       # from its clusters

cdef struct TupleState:
    uint32_t visited      # the trigger that came to the suffix label last
    int32_t done          # items of the suffix label of which every path is done
    int32_t removed       # paths of the cluster that are served already and need no further traversal


cdef class TupleTraversal:
    cdef PatternView view
    cdef StackBranch branch
    cdef TupleCache cache
    cdef AFilterScratch scratch       # owns the counts
    cdef vector[int64_t]* counts
    cdef bint caches
    cdef bint early                   # unfolding; else it is late
    cdef bint dirty                   # whether the marks of the last document are to be wiped
    cdef int64_t work                 # traversals and tuples in this document
    # Tuples as they are found, for this trigger: path, place of the path's record before or NONE, the elements.
    cdef vector[int32_t] records
    cdef uint32_t stamp               # changes when they are given up
    cdef vector[PathState] paths      # by path
    cdef vector[int32_t] found        # paths that have tuples for this trigger, each once
    # The traversal at hand.
    cdef uint64_t missing             # one bit a label that is not on the branch, nor the object's own, hashed
    cdef vector[TupleFrame] frames
    cdef vector[int32_t] elements     # of the frames' objects
    cdef vector[Candidate] candidates
    cdef vector[int32_t] order        # candidates that are followed, by slot
    cdef vector[int32_t] heads        # by slot: the first candidate, while they are joined
    cdef vector[int32_t] touched      # slots that have one
    cdef vector[AgendaItem] agenda
    cdef vector[TupleState] states    # by suffix label
    cdef vector[int32_t] removed      # paths that are removed from their clusters, by frame
    cdef vector[int32_t] cluster      # paths of one cluster
    cdef vector[int32_t] pending      # suffix labels still to be looked into
    cdef vector[ServedPath] held      # of the cluster, those that hold
    cdef uint32_t collection          # counts the frames whose tuples were remembered

    cdef int begin(self) except -1 nogil
    cdef int begin_trigger(self, int32_t number) except -1 nogil
    # Goes on by one step. Returns whether there may be more.
    cdef bint go_on(self) except -1 nogil
    cdef int give_up_trigger(self) except -1 nogil
    cdef int set_done(self, int32_t path) except -1 nogil

    cdef inline bint is_wanted(self, int32_t path) noexcept nogil:
        return not self.paths[path].removed and not self.paths[path].done

    cdef int check_triggers(self, int32_t number) except -1 nogil
    cdef int check_edge(self, int32_t number, int32_t edge, uint8_t axis) except -1 nogil
    cdef int emit(self, int32_t path, const int32_t* first, int32_t steps) except -1 nogil
    cdef int forget_records(self) except -1 nogil
    cdef uint32_t serve(self, int32_t path, int32_t step, int32_t number) except? 255 nogil
    cdef const TupleEntry* remember(self, int32_t path, int32_t step, const TupleFrame* frame, uint32_t verdict
                                    ) except? NULL nogil
    cdef int push_frame(self, const TupleFrame* frame) except -1 nogil
    cdef int pop_frame(self) noexcept nogil
    # Groups.
    cdef int enter_group(self, int32_t first, int32_t number) except -1 nogil
    cdef int follow_group(self) except -1 nogil
    cdef int leave_group(self) except -1 nogil
    cdef int join_by_slot(self, int32_t first) except -1 nogil
    cdef int add_candidate(self, int32_t path, int32_t asker) except -1 nogil
    cdef inline void tell_asker(self, const Candidate* candidate) noexcept nogil
    # Suffix labels.
    cdef int come_to(self, int32_t target, int32_t number) except -1 nogil
    cdef int enter_cluster(self, int32_t label, int32_t number) except -1 nogil
    cdef int follow_cluster(self) except -1 nogil
    cdef int leave_cluster(self) except -1 nogil
    cdef int find_links(self, TupleFrame* frame) except -1 nogil
    cdef inline void report(self, uint32_t verdict) noexcept nogil
    cdef int collect(self, const TupleFrame* frame, uint32_t verdict) except -1 nogil
    cdef bint is_served(self, bint visited) except -1 nogil
    cdef int unfold(self) except -1 nogil
    cdef bint serve_all(self, const ServedPath* paths, int32_t number) except -1 nogil
    cdef int look_into(self) except -1 nogil
    cdef int serve_one(self, int32_t path) except -1 nogil
    cdef int remove(self, int32_t path) except -1 nogil
    cdef int put_back(self, int32_t top, int32_t first) noexcept nogil
