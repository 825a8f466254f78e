"""Engine: the contract that every engine keeps. DESIGN.md, "What an engine is", says it in words.

An engine in Cython derives from `Engine` and `Scratch` and overrides the four kernel methods. An engine in
plain Python (`reference`) overrides `match` itself and sets `native = False`.
"""

from libc.string cimport memcpy
from libcpp.algorithm cimport is_sorted, sort
from libcpp.vector cimport vector

import numpy as np

from xsift.document.events cimport RecordedEvents
from xsift.errors import EngineError


cdef class Scratch:
    """The run-time state of one matching thread."""


cdef class Engine:
    """An index of patterns, and how to match documents against it."""

    # What `xsift engines` shows. Each engine states its own.
    name = ""
    paper = ""     # author, title, year
    takes = ""     # which patterns
    wins = ""      # when to use it
    caveat = ""    # what to know before using it
    options: dict = {}        # option -> the values it takes, the default first
    counter_names: tuple = ()  # names of Scratch.counts
    native = True

    def __cinit__(self, *args, **options):
        self.scratches = []

    def __init__(self, **options):
        self._no_options(options)

    def _no_options(self, options):
        """For an engine's __init__: refuses what is left after it took its own options."""
        for option in options:
            known = ", ".join(self.options) or "none"
            raise EngineError("unknown-option", f"engine {self.name!r} has no option {option!r}",
                              hint=f"its options are: {known}")

    def _option(self, options, name):
        """For an engine's __init__: takes a documented option out of `options`, checked, or its default."""
        allowed = self.options[name]
        value = options.pop(name, allowed[0])
        if value not in allowed:
            raise EngineError("bad-option", f"engine {self.name!r}: {name}={value!r}",
                              hint="one of: " + ", ".join(repr(choice) for choice in allowed))
        return value

    def refuses(self, Pattern pattern not None):
        """Why this pattern is not for this engine; "" if it is."""
        return ""

    def add(self, Pattern pattern not None):
        """Adds a pattern and returns its key, a small number. Equal patterns are added once: the caller sees to it."""
        raise NotImplementedError(type(self).__name__)

    def remove(self, int key):
        """Removes the pattern with this key. The key may be given to another pattern later."""
        raise NotImplementedError(type(self).__name__)

    def __len__(self):
        raise NotImplementedError(type(self).__name__)

    def memory(self):
        """Bytes held, by structure. Names of run-time structures start with "run-time"."""
        return {}

    def saved(self):
        """The index as arrays by name, to be written to a file and given to `restore`; None if it is built anew instead."""
        return None

    def lent(self):
        """The same without copies, where there is much to copy. The engine must not be changed as long as they are used."""
        return self.saved()

    def restore(self, arrays):
        """Becomes the index that was saved, with the arrays used where they lie. Returns a number that all keys are less than.

        `arrays["symbols"]` is not of the index: it has the number that all symbols are less than. Raises ValueError if a
        number in the arrays would lead outside of them.
        """
        raise NotImplementedError(type(self).__name__)

    def counters(self):
        """Work done since the engine was made, over all threads."""
        totals = dict.fromkeys(self.counter_names, 0)
        cdef Scratch scratch
        for scratch in self.scratches:
            for i, name in enumerate(self.counter_names):
                totals[name] += scratch.counts[i]
        return totals

    def match(self, EventSource document not None):
        """The keys of the patterns that a document matches, ascending, as an array of 32-bit integers."""
        if not self.scratches:
            self.scratch()
        cdef Scratch scratch = self.scratches[0]
        cdef vector[int32_t] keys
        cdef Py_ssize_t number
        if isinstance(document, RecordedEvents):
            (<RecordedEvents>document).rewind()
        with nogil:
            self.begin(scratch)
            while True:
                number = document.fill()
                if number == 0 or self.feed(scratch, document.codes.data(), number):
                    break
            self.finish(scratch, &keys)
            if not is_sorted(keys.begin(), keys.end()):
                sort(keys.begin(), keys.end())
        result = np.empty(keys.size(), dtype=np.int32)
        cdef int32_t[::1] view = result
        if keys.size():
            memcpy(&view[0], keys.data(), keys.size() * sizeof(int32_t))
        return result

    cpdef Scratch scratch(self):
        """A new scratch, for one more thread."""
        cdef Scratch made = self.new_scratch()
        made.counts.assign(len(self.counter_names), 0)
        self.scratches.append(made)
        return made

    cdef Scratch new_scratch(self):
        return Scratch()

    cdef int begin(self, Scratch scratch) except -1 nogil:
        return 0

    cdef int feed(self, Scratch scratch, const int32_t* codes, size_t number) except -1 nogil:
        return 0

    cdef int finish(self, Scratch scratch, vector[int32_t]* keys) except -1 nogil:
        return 0
