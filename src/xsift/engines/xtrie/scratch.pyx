"""What XTrie keeps while it reads a document. The comments in scratch.pxd say what each part is."""

from libcpp.vector cimport vector

from xsift.engines.base cimport Scratch


cdef class XTrieScratch(Scratch):
    """The run-time state of one matching thread."""

    def memory(self):
        """Bytes held, by structure."""
        cdef size_t i
        cdef size_t lists = 0
        for i in range(self.updated.size()):
            lists += 2 * sizeof(vector[int32_t]) + sizeof(int32_t) * (
                self.updated[i].capacity() + self.deferred[i].capacity())
        return {
            "run-time B": self.B.bytes() + self.is_deferred.bytes() + lists,
            "run-time levels": self.matched.bytes() + sizeof(int32_t) * (
                self.set_here.capacity() + self.first_set.capacity() + self.nodes.capacity()),
            "run-time waits": self.is_waiting.bytes() + self.waits.capacity() * sizeof(Wait) + sizeof(int32_t) * (
                self.first_wait.capacity() + self.waits_once.capacity() + self.waits_every.capacity()),
            "run-time matched patterns": (sizeof(uint64_t) * self.is_matched.capacity()
                                          + sizeof(int32_t) * self.matched_keys.capacity()),
        }
