# Saving arrays as they lie in memory, and using them where they lie in a mapped file.
#
# A kernel saves each of its arrays under a name, and is restored by making the arrays views of the saved bytes; whoever
# restores keeps these alive. The size is checked, nothing else: what is restored is what storage.py read, and that has
# a checksum.
from libc.string cimport memcpy

from xsift.native.tables cimport Bytes, BytesTable

cdef inline object to_numpy(Bytes saved):
    """A NumPy array with a copy of saved bytes."""
    import numpy
    result = numpy.empty(saved.size, dtype=numpy.uint8)
    cdef unsigned char[::1] view = result
    if saved.size:
        memcpy(&view[0], saved.data, saved.size)
    return result

cdef inline Bytes from_numpy(const unsigned char[::1] array) except *:
    """The bytes of a NumPy array, where they lie."""
    cdef Bytes saved
    saved.data = &array[0] if array.shape[0] else NULL
    saved.size = array.shape[0]
    return saved

cdef inline dict table_to_numpy(str name, const BytesTable& table):
    """The arrays of a BytesTable, under names that begin with `name`."""
    return {f"{name}.blob": to_numpy(table.blob.saved()), f"{name}.ends": to_numpy(table.ends.saved()),
            f"{name}.slots": to_numpy(table.slots.saved()), f"{name}.hashes": to_numpy(table.hashes.saved())}

cdef inline int table_from_numpy(str name, BytesTable& table, arrays) except -1:
    """Makes a BytesTable one that was saved under `name`."""
    table.blob.restore(from_numpy(arrays[f"{name}.blob"]))
    table.ends.restore(from_numpy(arrays[f"{name}.ends"]))
    table.slots.restore(from_numpy(arrays[f"{name}.slots"]))
    table.hashes.restore(from_numpy(arrays[f"{name}.hashes"]))
    return 0
