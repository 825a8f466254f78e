"""ElementNames: the name of each element of a document, needed to show a document's nodes to people.

Events tell only those names apart that patterns ask for. With `keep_names=True` a reader also records here what
each start tag really said.
"""

from libc.string cimport memcpy

from xsift.document.events cimport RecordedEvents
from xsift.native.types cimport int32_t


cdef class ElementNames:
    """The names of a document's elements, by element number (from 1)."""

    def __len__(self):
        return self.of_element.size()

    def name(self, int number):
        """An element's expanded name: `name` or `{uri}name`."""
        if not 0 < number <= <int>self.of_element.size():
            raise IndexError(f"no element {number}: there are {self.of_element.size()}")
        uri, separator, local = self.expanded(self.of_element[number - 1]).decode().partition("\x1f")
        return f"{{{uri}}}{local}" if separator else uri

    cdef bytes expanded(self, int32_t name):
        """The expanded name with this number: b"local" or b"uri\\x1flocal"."""
        cdef int32_t uri
        cdef bytes key = self.names.data_of(name)[:self.names.length_of(name)]
        memcpy(&uri, self.names.data_of(name), 4)
        local = key[4:].partition(b"\x1f")[0]
        if uri < 0:
            return local
        return self.uris.data_of(uri)[:self.uris.length_of(uri)] + b"\x1f" + local

    cdef str label(self, int32_t name):
        """How libxml2 writes a name in a path: `local`, `prefix:local`, or `*` in a default namespace."""
        cdef int32_t uri
        cdef bytes key = self.names.data_of(name)[:self.names.length_of(name)]
        memcpy(&uri, self.names.data_of(name), 4)
        local, separator, prefix = key[4:].decode().partition("\x1f")
        if separator:
            return f"{prefix}:{local}"
        return local if uri < 0 else "*"


cdef class NamedEvents(RecordedEvents):
    """A document in memory that also knows the names of its elements."""
