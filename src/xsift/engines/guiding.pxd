# Engines that can tell a reader what to look at, while it reads (document/guide.hpp).
from xsift.document.guide cimport Guide
from xsift.engines.base cimport Scratch


cdef class GuidingScratch(Scratch):
    # Who says, from the events so far, which conditions can still matter at an element. What it took as a guide is not fed
    # to its engine. It lives as long as the scratch.
    cdef Guide* guide(self) noexcept
