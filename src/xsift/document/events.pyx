"""Events: what the document room gives and engines take. `events.pxd` says how they are coded."""

cdef class EventSource:
    """Something that yields a document's events chunk by chunk."""

    cdef Py_ssize_t fill(self) except -1 nogil:
        return 0


cdef class RecordedEvents(EventSource):
    """The events of one whole document, in memory; it can be matched any number of times."""

    def __init__(self, codes=(), offsets=()):
        self.codes = codes
        self.offsets = offsets
        self.keeps_positions = len(offsets) > 0

    cpdef rewind(self):
        """Makes the next fill() start at the document's first event again."""
        self.consumed = False

    cdef Py_ssize_t fill(self) except -1 nogil:
        if self.consumed:
            return 0
        self.consumed = True
        return <Py_ssize_t>self.codes.size()

    @property
    def events(self):
        """The codes as a list, for plain Python code."""
        return list(self.codes)

    @property
    def positions(self):
        """The byte offsets beside the codes; empty unless they were asked for."""
        return list(self.offsets)

    def __len__(self):
        return self.codes.size()
