"""Letting other threads have the interpreter, in the middle of long work that needs it.

Who waits for it asks for it after the switch interval (sys.setswitchinterval), and then gets it as soon as it is let go
of. To let go of it more often does harm: each time those who wait wake up too late, and begin to wait anew, so that they
never ask. So it is kept for longer than the interval, and then let go of for a moment (about 60 microseconds), so that
also those have it who did not ask yet.
"""

from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec
from posix.unistd cimport usleep


cdef enum:
    LONGER = 2  # times the switch interval


cdef inline double seconds() noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return now.tv_sec + now.tv_nsec * 1e-9


cdef inline double breathe(double kept_since, double interval) noexcept:
    """Lets others have the interpreter if it was kept for longer than `interval`. Returns since when it is kept."""
    if seconds() - kept_since < interval:
        return kept_since
    with nogil:
        usleep(1)
    return seconds()
