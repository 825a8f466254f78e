"""Letting other threads have the interpreter, in the middle of long work that needs it.

To let go of it and take it back at once does not do: whoever waits has not woken up by then, and begins to wait anew, so
that breaths that are drawn often keep the others out for ever. One has to sleep, as short as can be (about 60
microseconds), and so not too often.
"""

from posix.unistd cimport usleep


cdef inline void breathe() noexcept:
    with nogil:
        usleep(1)
