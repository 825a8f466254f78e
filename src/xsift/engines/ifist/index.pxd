from libcpp.vector cimport vector

from xsift.engines.base cimport Engine
from xsift.engines.ifist.sequences cimport SYM_CHILD, SYM_ROOT, Place, ProfileParts, Segment, Unit
from xsift.native.tables cimport FlatMap
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint8_t, uint32_t, uint64_t

cdef enum:
    PLACE = 0x7FFFFFFF     # the bits of Candidate.place that are the place
    ADVANCED = 0x80000000  # the bit that says that the candidate's next positions are active already

cdef struct Candidate:
    # An entry of a candidate list: (sequence id, position), the latter as its place in `places`.
    int32_t profile
    uint32_t place

cdef struct Profile:
    # Its parts of the arrays of all profiles: places, units, and the BranchID rows of units' unordered children.
    int32_t first_place
    int32_t place_count
    int32_t first_unit
    int32_t unit_count
    int32_t first_child_row
    int32_t child_row_count
    uint8_t ordered
    uint8_t used  # 0: the key is free

cdef struct TableRow:
    # A row of the segment table. Its number is the "pointer" of the paper's figures, from 0 here.
    Segment segment
    vector[Candidate] candidates  # the candidate list as it is when a document begins
    uint64_t hash
    int32_t next          # the next row with the same hash, or of the free rows; -1 if none
    int32_t users         # places of profiles that are this segment; 0: the row is free
    int32_t ordered_users # those that are an ordered child of their branch node
    int32_t loose_users   # those that are an unordered one
    int32_t record_row    # BranchID row of the elements of the branch node; -1 for a linear profile
    int32_t pending_row   # BranchID row of the branch node's ordered child, while that is open; -1 if not needed

cdef struct SegmentHead:
    # What making a segment active reads of its row: apart from the rest, because it is so often.
    int32_t bucket        # of the sequence index
    int32_t first_users   # places of profiles that need it in the sequence index when a document begins

# The sequence index is keyed by a segment's first label, and looks one node ahead: a bucket holds the segments
# with the same first label whose second node is the same, on the same axis.
cdef enum BucketKind:
    WHATEVER       # the second node is a wildcard, more than one level up, or missing
    PARENT         # exactly one level above the first node
    ANCESTOR       # at least one level above
    BELOW_ENDS     # the first node is looked for when an element below it ends: CHILD_END, DESCENDANT_END

# A bucket's list is scanned at every end tag: so it holds, end to end, what a first look at the stack needs, and
# the segment table is read for those only that may fit. An entry is a head and its steps from step `first_look` on.
cdef struct Look:
    int32_t what  # head: the row of the segment table; step: the symbol
    int32_t how   # head: how many steps follow; step: distance above the step before, and these bits:

cdef enum:
    LOOK_AT_LEAST = 1 << 30
    LOOK_ROOT = 1 << 29       # must be the document's root element
    LOOK_DISTANCE = (1 << 29) - 1

cdef struct Bucket:
    vector[Look] looks        # the segments of the table that are active when a document begins
    uint64_t key
    int32_t users             # segments of the table that belong here

cdef inline int32_t first_look(BucketKind kind) noexcept nogil:
    return 2 if kind == PARENT or kind == ANCESTOR else 1  # the key has seen to the ones before

cdef inline int add_look(const Segment& segment, int32_t number, BucketKind kind,
                         vector[Look]* looks) except -1 nogil:
    cdef int32_t last = <int32_t>segment.steps.size() - 1
    cdef int32_t how, i
    looks.push_back(Look(number, max(0, last + 1 - first_look(kind))))
    for i in range(first_look(kind), last + 1):
        how = segment.steps[i].distance
        if segment.steps[i].at_least:
            how |= LOOK_AT_LEAST
        if i == last and segment.steps[i].sym & SYM_ROOT and segment.steps[i].sym & SYM_CHILD:
            how |= LOOK_ROOT
        looks.push_back(Look(segment.steps[i].symbol, how))
    return 0

cdef struct LabelUse:
    int32_t users[4]           # buckets with this first label, by kind
    vector[int32_t] ancestors  # those of kind ANCESTOR

# What a BranchID row is about: its entries are open elements ...
cdef enum RowKind:
    RECORD            # of a branch node, below which a child is satisfied
    PROGRESS          # of a branch node, with the number of ordered children found
    PENDING_SEGMENT   # of an ordered child, the end of a segment
    PENDING_UNIT      # of an ordered child, the end of a unit's way up

cdef struct RowOwner:
    uint8_t kind
    int32_t owner     # the segment, or the profile ...
    int32_t unit      # ... and its unit; -1 if the owner is a segment

cdef inline uint64_t bucket_key(symbol_t first, symbol_t second, BucketKind kind) noexcept nogil:
    return (<uint64_t>first << 33) | (<uint64_t>second << 2) | <uint64_t>kind


cdef class IFiSTIndex(Engine):
    cdef vector[TableRow] table
    cdef FlatMap[int32_t] segment_of       # hash of a segment's key -> its row
    cdef int32_t free_row                  # head of the list of free rows of the table
    cdef vector[SegmentHead] heads         # by row of the table
    cdef vector[Profile] profiles
    cdef vector[int32_t] free_profiles
    cdef vector[Place] places
    cdef vector[Unit] units
    cdef vector[int32_t] child_rows
    cdef int32_t places_gone               # of profiles that were removed
    cdef vector[Bucket] buckets
    cdef FlatMap[int32_t] bucket_of        # bucket_key -> bucket
    cdef vector[int32_t] free_buckets
    cdef int32_t below_ends                # how many buckets there are of kind BELOW_ENDS ...
    cdef vector[int32_t] descendant_ends   # ... and those of them that wait for DESCENDANT_END
    cdef vector[LabelUse] labels           # by symbol; larger symbols are first label of no segment
    cdef vector[RowOwner] owners           # by BranchID row
    cdef vector[int32_t] free_owners
    cdef symbol_t symbol_limit             # all symbols in segments are below
    cdef int64_t sequence_nodes            # of all profiles, after deletion of wildcards
    cdef int64_t segments_before_sharing
    cdef Py_ssize_t profile_count
    cdef uint32_t generation               # changes with every addition and removal
    cdef bint sharing
    cdef object symbols                    # of the patterns, to print labels; None before the first

    cdef int32_t intern(self, const Segment& segment) except -1
    cdef int release(self, int32_t segment) except -1
    cdef int32_t join_bucket(self, const Segment& segment) except -1
    cdef int leave_bucket(self, int32_t bucket) except -1
    cdef int count_place(self, const Place& place, int32_t sign) except -1
    cdef int need_from_start(self, int32_t segment, int32_t sign) except -1
    cdef int drop_candidate(self, int32_t key, int32_t place) except -1
    cdef int order_places(self, ProfileParts* parts) except -1
    cdef int append_parts(self, int32_t key, ProfileParts* parts) except -1
    cdef int close_gaps(self) except -1
    cdef int32_t new_row(self, RowKind kind, int32_t owner, int32_t unit) except -1
    cdef int free_branch_row(self, int32_t row) except -1
    cdef int fill_units(self, int32_t key) except -1
