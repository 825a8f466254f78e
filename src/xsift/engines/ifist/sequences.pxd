from libcpp.string cimport string
from libcpp.vector cimport vector

from xsift.native.types cimport int32_t, symbol_t, uint8_t
from xsift.xpath.pattern cimport Pattern

# The paper's Sym (Table I), as bits. An internal occurrence of a branch node has SYM_BRANCH alone; the last
# occurrence of a node has its axis too. The root's axis is from the document: `/` if it must be the root element.
cdef enum:
    SYM_CHILD = 1
    SYM_DESCENDANT = 2
    SYM_BRANCH = 4
    SYM_ROOT = 8

# On whose end tag a segment is looked for.
cdef enum Trigger:
    OWN_END          # of the element that the segment's first node maps to (or a condition that holds)
    CHILD_END        # of a child of it: the first node is a branch node, what was below it are leaf wildcards
    DESCENDANT_END   # of anything below it, likewise

cdef struct SequenceNode:
    # One node of a profile sequence.
    int32_t node       # of the pattern
    int32_t below      # the pattern's node whose sub-tree was finished just before; -1 for a leaf
    symbol_t label
    uint8_t sym
    uint8_t at_least   # δ's op: 1 is ≥, 0 is =
    int32_t extra      # δ's extra; 0 where no wildcard was deleted before this node

cdef struct SegmentStep:
    # A node of a segment, with its place above the node before it.
    symbol_t symbol    # ANY only for a branch wildcard, a root wildcard, or a hidden step
    int32_t distance   # levels above the element of the step before: exactly so many, or
    uint8_t at_least   # at least so many. (Of step 0, both: δ of the leaf wildcards below it.)
    uint8_t sym
    uint8_t hidden     # a deleted wildcard that the refinement needs: sequences.pyx says when
    int32_t lowest     # the least level at which a wildcard can be: its depth in the pattern; 1 for a name

cdef struct Segment:
    vector[SegmentStep] steps
    int32_t branch     # the first step that is a branch node; -1: the segment is a whole linear profile
    int32_t child      # the step of that node's child; -1 if the child is a deleted wildcard
    uint8_t trigger

cdef enum:
    UNORDERED = -2     # Place.guard in an unordered profile

cdef struct Place:
    # A segment's place in its profile: an entry of the terse sequence. What follows a candidate, a document looks up
    # again and again; so the places of a profile stand side by side in one array of all profiles: an ordered
    # profile's by position, an unordered one's unit by unit, those first that the fewest profiles use.
    int32_t segment    # row of the segment table
    int32_t unit       # of the segment's first branch node; -1 in a linear profile
    int32_t order      # number among the ordered children of that branch node, -1 if the order does not matter
    int32_t guard      # the position whose match makes this one active; -1: it is active from the start; UNORDERED
    int32_t position
    int32_t begin      # unordered: how far from here the unit's first place is: 0, -1, ...
    int32_t end        # how far from here the unit's places end; ordered: the profile's

cdef struct Unit:
    # A branch node of a profile. The units of all profiles are in one array, too.
    int32_t profile
    int32_t parent     # the unit of the next branch node above; -1 for the topmost
    int32_t order      # as in Place, among the children of the parent unit's branch node
    int32_t ordered    # how many of its children must come in order: 0, or at least 2
    int32_t closing    # the position that holds the last occurrence of the branch node ...
    int32_t segment    # ... its segment ...
    int32_t at         # ... and the step of it,
    int32_t until      # with the parent's branch node, or the profile's root, at this one
    int32_t child      # the step of that node's child on the way; -1 if it is a deleted wildcard
    int32_t loose      # the BranchID rows of its unordered children are child_rows[loose:loose_end]
    int32_t loose_end
    int32_t first_row  # BranchID row of the first ordered child; -1 if none
    int32_t progress_row  # row that counts the ordered children found so far; -1 if not needed
    int32_t record_row    # row of the parent's elements below which this unit is satisfied; -1 for the topmost
    int32_t pending_row   # row of this unit's way up that is still open; -1 unless its parent orders it

cdef struct ProfileParts:
    # A profile as it is cut: units and positions are numbered within it, parents first.
    vector[Place] places   # by position
    vector[Unit] units
    uint8_t ordered

# The profile sequence of a pattern, wildcards included.
cdef int pruefer_sequence(Pattern pattern, vector[SequenceNode]* sequence) except -1
# Deletes leaf and regular wildcards, leaving δ.
cdef int delete_wildcards(Pattern pattern, vector[SequenceNode]* sequence) except -1
# Cuts a profile sequence into shareable segments; fills the parts but for segment and row numbers.
cdef int cut_segments(Pattern pattern, vector[SequenceNode]& sequence, vector[Segment]* segments,
                      ProfileParts* profile) except -1
# What makes two segments one.
cdef string segment_key(const Segment& segment)
# The nodes of a segment as the paper writes them, as SequenceNode tuples; `position` is that of the first.
cdef list sequence_nodes(const Segment& segment, int position, symbols)
