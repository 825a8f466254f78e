from libcpp.vector cimport vector

from xsift.engines.ifist.index cimport IFiSTIndex
from xsift.engines.ifist.scratch cimport BranchPair, IFiSTScratch
from xsift.engines.ifist.sequences cimport SegmentStep, Unit
from xsift.native.types cimport int32_t, int64_t


cdef class IFiSTRefinement(IFiSTIndex):
    cdef bint afterwards  # refinement is a phase of its own

    cdef int keep_pair(self, IFiSTScratch scratch, int32_t segment, int32_t branch, int32_t child) except -1 nogil
    cdef bint is_reached(self, IFiSTScratch scratch, int32_t key) noexcept nogil
    cdef bint refine(self, IFiSTScratch scratch, int32_t key) except -1 nogil
    cdef int satisfied_elements(self, IFiSTScratch scratch, int32_t key, int32_t number,
                                const vector[vector[BranchPair]]& ways, vector[int64_t]* found) except -1 nogil
    cdef int climb_kept(self, IFiSTScratch scratch, const SegmentStep* step, vector[int64_t]* numbers) except -1 nogil
    cdef bint may_stand(self, IFiSTScratch scratch, const SegmentStep* step, int64_t number) noexcept nogil
    cdef int way_up(self, IFiSTScratch scratch, const Unit* unit, int64_t number,
                    vector[BranchPair]* way) except -1 nogil
