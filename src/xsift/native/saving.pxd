# Saving arrays as they lie in memory, and using them where they lie in a mapped file.
#
# A kernel saves each of its arrays under a name, and is restored by making the arrays views of the saved bytes; whoever
# restores keeps these alive. A file has a checksum, but whoever writes a file can compute one: each kernel checks that no number
# that it restores leads outside of its arrays.
from libc.string cimport memcpy

from xsift.native.tables cimport Bytes, BytesTable

cdef extern from *:
    """
    // A Python object that keeps bytes which were made to be saved.
    static inline PyObject* keeper_of(const xsift::Bytes& saved) {
        return PyCapsule_New(new std::shared_ptr<void>(saved.owner), nullptr, [](PyObject* capsule) {
            delete static_cast<std::shared_ptr<void>*>(PyCapsule_GetPointer(capsule, nullptr));
        });
    }
    """
    object keeper_of(const Bytes& saved)

cdef inline object to_numpy(Bytes saved):
    """A NumPy array with a copy of saved bytes."""
    import numpy
    result = numpy.empty(saved.size, dtype=numpy.uint8)
    cdef unsigned char[::1] view = result
    if saved.size:
        memcpy(&view[0], saved.data, saved.size)
    return result

cdef inline object lent_to_numpy(Bytes saved, object owner):
    """A NumPy array of the saved bytes where they lie. `owner`, which it keeps, must not change them as long as it is used."""
    import numpy
    from types import SimpleNamespace
    if saved.size == 0:
        return numpy.empty(0, dtype=numpy.uint8)
    about = {"data": (<size_t>saved.data, True), "shape": (saved.size,), "typestr": "|u1", "version": 3}
    return numpy.asarray(SimpleNamespace(__array_interface__=about, kept=(owner, keeper_of(saved))))

cdef inline Bytes from_numpy(const unsigned char[::1] array) except *:
    """The bytes of a NumPy array, where they lie."""
    cdef Bytes saved
    saved.data = &array[0] if array.shape[0] else NULL
    saved.size = array.shape[0]
    return saved

cdef inline dict table_to_numpy(str name, const BytesTable& table):
    """The arrays of a BytesTable, under names that begin with `name`."""
    return {f"{name}.blob": to_numpy(table.blob.saved()), f"{name}.ends": to_numpy(table.ends.saved())}

cdef inline int table_from_numpy(str name, BytesTable& table, arrays) except -1:
    """Makes a BytesTable one that was saved under `name`. Raises ValueError if a string would lie outside."""
    check_ends(arrays[f"{name}.ends"], len(arrays[f"{name}.blob"]), f"{name}.ends")
    table.restore(from_numpy(arrays[f"{name}.blob"]), from_numpy(arrays[f"{name}.ends"]))
    return 0

cdef inline int check_ends(array, total, str name) except -1:
    """Raises ValueError unless these 64-bit numbers ascend from 0 or more to `total`."""
    import numpy
    ends = array.view(numpy.int64)
    if len(ends) and (ends[0] < 0 or ends[-1] != total or numpy.any(ends[1:] < ends[:-1])):
        raise ValueError(f"{name} does not ascend to the end")
    if not len(ends) and total:
        raise ValueError(f"{name} is empty")
    return 0
