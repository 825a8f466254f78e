"""GuidingScratch: the scratch of an engine that can tell a reader which conditions to look at."""


cdef class GuidingScratch(Scratch):
    """A scratch whose engine guides the reader."""

    cdef Guide* guide(self) noexcept:
        return NULL
