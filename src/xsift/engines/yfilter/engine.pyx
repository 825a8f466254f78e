"""`yfilter`: one automaton for all paths.

Paper: Yanlei Diao, Mehmet Altinel, Michael J. Franklin, Hao Zhang, Peter Fischer, "Path sharing and predicate
evaluation for high-performance XML filtering", ACM TODS 28(4), 2003.

The idea. Every path is a little automaton: a state a step, a transition a name or `*`, and for `//` a state that loops
to itself. Put together, equal prefixes share their states: one non-deterministic automaton (NFA) for all paths. A
run-time stack holds the set of active states of each open element; a start tag pushes the set that its
name leads to, an end tag pops. A path matches when its accepting state becomes active.

The paper's terms here: *NFA states* `NfaState` in nfa.pxd, *hash table of a state* `PathNfa.transitions` (one table for
all states, keyed by state and symbol), *//-child* `NfaState.descendant`, *run-time stack* `YFilterScratch.active` with
`first`.

Deviations. Nested paths are decomposed and joined after the document has been read, as the paper does; but a twig is
evaluated only if all its paths matched, and what twigs share is evaluated once (see paths.pyx). Conditions are leaves of the paths, so that equal ones are shared like any other step; the
paper's "selection postponed" evaluates them after the structure, a query at a time.

Takes every unordered pattern. Wins over engines that keep a machine a query (XFilter) through prefix
sharing; loses where `//` and `*` make many states active.
"""

from libcpp.vector cimport vector

from xsift.document.events cimport END, condition_symbol
from xsift.engines.base cimport Scratch
from xsift.engines.nfa cimport NO_STATE, NfaState, PathNfa
from xsift.engines.paths cimport PathEngine, PathScratch, PathStep
from xsift.native.types cimport int32_t, symbol_t, uint32_t

cdef enum Counter:
    STATES_VISITED
    PATHS_MATCHED


cdef class YFilterScratch(PathScratch):
    cdef vector[int32_t] active      # the active states of all open elements, one set after the other
    cdef vector[int32_t] first       # where the set of each open element begins; its first entry is the document's
    cdef vector[uint32_t] active_at  # by state: the set in which it is already
    cdef uint32_t set_number


cdef class YFilter(PathEngine):
    """One NFA for all paths, prefixes shared."""

    name = "yfilter"
    paper = "Diao, Altinel, Franklin, Zhang, Fischer: Path sharing and predicate evaluation (TODS 2003)"
    wins = "many paths with shared prefixes; the yardstick of the field"
    caveat = "time grows with the number of active states: `*` and `//` are dear"
    counter_names = ("states visited", "paths matched")

    cdef PathNfa nfa
    cdef vector[int32_t] path_state  # by path: its accepting state

    def __cinit__(self, *args, **options):
        self.nfa = PathNfa()

    # The index.

    cdef int insert_path(self, int32_t path) except -1:
        cdef int32_t state = 0
        cdef PathStep step
        for step in self.path_steps[path]:
            state = self.nfa.advance(state, step.symbol, step.axis)
        self.nfa.states.edit(state).accepts = path
        if self.path_state.size() <= <size_t>path:
            self.path_state.resize(path + 1, NO_STATE)
        self.path_state[path] = state
        return 0

    cdef int delete_path(self, int32_t path) except -1:
        self.nfa.states.edit(self.path_state[path]).accepts = -1
        self.nfa.release(self.path_state[path])
        return 0

    def memory(self):
        cdef YFilterScratch scratch
        sizes = PathEngine.memory(self)
        sizes["NFA"] = self.nfa.bytes() + self.path_state.capacity() * 4
        sizes["run-time stack"] = 0
        for scratch in self.scratches:
            sizes["run-time stack"] += 4 * (scratch.active.capacity() + scratch.first.capacity()
                                            + scratch.active_at.capacity())
        return sizes

    # The run.

    cdef Scratch new_scratch(self):
        return YFilterScratch(self.branches)

    cdef int begin(self, Scratch scratch) except -1 nogil:
        return self.begin_run(<YFilterScratch>scratch)

    cdef int begin_run(self, YFilterScratch scratch) except -1 nogil:
        self.begin_join(scratch)
        scratch.active_at.resize(self.nfa.states.size(), 0)
        scratch.active.clear()
        scratch.first.clear()
        self.new_set(scratch)
        self.activate(scratch, 0)
        return 0

    cdef int feed(self, Scratch scratch, const int32_t* codes, size_t number) except -1 nogil:
        return self.run(<YFilterScratch>scratch, codes, number)

    cdef int run(self, YFilterScratch scratch, const int32_t* codes, size_t number) except -1 nogil:
        cdef size_t i
        for i in range(number):
            if codes[i] >= 0:
                self.start_tag(scratch, codes[i])
            elif codes[i] == END:
                self.end_tag(scratch)
            else:
                self.condition_holds(scratch, condition_symbol(codes[i]))
        return 0

    cdef int start_tag(self, YFilterScratch scratch, symbol_t symbol) except -1 nogil:
        cdef int32_t i, target
        cdef int32_t begin = scratch.first.back()
        cdef int32_t end = <int32_t>scratch.active.size()
        cdef const NfaState* state
        self.element_starts(scratch, symbol)
        self.new_set(scratch)
        scratch.counts[STATES_VISITED] += end - begin
        for i in range(begin, end):
            state = &self.nfa.states[scratch.active[i]]
            if symbol and state.children:
                target = self.nfa.target(scratch.active[i], symbol)
                if target >= 0:
                    self.activate(scratch, target)
            if state.star >= 0:
                self.activate(scratch, state.star)
            if state.loops:
                self.activate(scratch, scratch.active[i])
        return 0

    cdef int new_set(self, YFilterScratch scratch) except -1 nogil:
        scratch.first.push_back(<int32_t>scratch.active.size())
        scratch.set_number += 1
        if scratch.set_number == 0:  # wrapped after 2^32 elements: old numbers must not look like new ones
            scratch.active_at.assign(scratch.active_at.size(), 0)
            scratch.set_number = 1
        return 0

    cdef int activate(self, YFilterScratch scratch, int32_t number) except -1 nogil:
        """Puts a state, and the looping state after it, into the innermost set; reports the path that it accepts."""
        cdef const NfaState* state = &self.nfa.states[number]
        if scratch.active_at[number] == scratch.set_number:
            return 0
        scratch.active_at[number] = scratch.set_number
        scratch.active.push_back(number)
        if state.accepts >= 0:
            scratch.counts[PATHS_MATCHED] += 1
            self.path_matched(scratch, state.accepts)
        if state.descendant >= 0:
            self.activate(scratch, state.descendant)
        return 0

    cdef int end_tag(self, YFilterScratch scratch) except -1 nogil:
        self.element_ends(scratch)
        scratch.active.resize(scratch.first.back())
        scratch.first.pop_back()
        return 0

    cdef int condition_holds(self, YFilterScratch scratch, symbol_t condition) except -1 nogil:
        cdef int32_t i, target
        for i in range(scratch.first.back(), <int32_t>scratch.active.size()):
            target = self.nfa.target(scratch.active[i], condition)
            if target >= 0:
                scratch.counts[PATHS_MATCHED] += 1
                self.path_matched(scratch, self.nfa.states[target].accepts)
        return 0
