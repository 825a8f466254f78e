from libcpp.vector cimport vector

from xsift.engines.base cimport Scratch
from xsift.native.levels cimport LevelBits, LevelSet
from xsift.native.types cimport int32_t, uint8_t, uint64_t

cdef struct Wait:
    int32_t row
    int32_t level  # the level of the start tags that it waits for
    int32_t below  # the wait for that level before it, -1 if there is none
    uint8_t every  # for every start tag there; else for the first one


cdef class XTrieScratch(Scratch):
    cdef int32_t level              # of the innermost open element; 0 is the document
    cdef vector[int32_t] nodes      # Node[l]: by level, the trie node of the longest suffix of the open path
    cdef LevelBits matched          # the levels at which a row (eager) or substring (lazy) is matched
    cdef LevelBits B                # by child row: the levels of its parent below which it is satisfied
    cdef LevelBits is_deferred      # by ORDERED row: the levels whose end tags it is set aside for
    cdef vector[int32_t] set_here   # what has a bit in `matched`, innermost level last ...
    cdef vector[int32_t] first_set  # ... and, by level, where that level's begin
    cdef vector[vector[int32_t]] updated   # by level: the rows that have its bit in B
    cdef vector[vector[int32_t]] deferred  # by level: the rows set aside for its end tag
    cdef vector[Wait] waits         # innermost level last
    cdef vector[int32_t] first_wait  # by level: where the waits begin that an element there made
    cdef vector[int32_t] waits_once  # by level: the last of the waits for its first start tag, -1 if there is none
    cdef vector[int32_t] waits_every  # by level: the last of the waits for each of its start tags
    cdef LevelBits is_waiting       # by row: the levels of whose start tags each is waited for
    cdef LevelSet levels            # where a row is satisfied, while propagate_update climbs
    cdef LevelSet probed
    cdef vector[uint64_t] is_matched  # one bit for each pattern: it matches this document
    cdef vector[int32_t] matched_keys
