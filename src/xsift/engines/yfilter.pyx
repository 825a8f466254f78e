"""`yfilter`: one automaton for all paths.

Paper: Yanlei Diao, Mehmet Altinel, Michael J. Franklin, Hao Zhang, Peter Fischer, "Path sharing and predicate
evaluation for high-performance XML filtering", ACM TODS 28(4), 2003.

The idea. Every path is a little automaton: a state a step, a transition a name or `*`, and for `//` a state that loops
to itself. Put together, equal prefixes share their states: one non-deterministic automaton (NFA) for all paths. A
run-time stack holds the set of active states of each open element; a start tag pushes the set that its
name leads to, an end tag pops. A path matches when its accepting state becomes active.

The paper's terms here: *NFA states* `State`, *hash table of a state* `transitions` (one table for all states, keyed by
state and symbol), *//-child* `State.descendant`, *run-time stack* `YFilterScratch.active` with `first`.

Deviations. Nested paths are decomposed and joined as the paper does, but while the document is read rather than after
it (see paths.pyx). Conditions are leaves of the paths, so that equal ones are shared like any other step; the
paper's "selection postponed" evaluates them after the structure, a query at a time.

Takes every unordered pattern. Wins over engines that keep a machine a query (XFilter) through prefix
sharing; loses where `//` and `*` make many states active.
"""

from libcpp.vector cimport vector

from xsift.document.events cimport END, condition_symbol
from xsift.engines.base cimport Scratch
from xsift.engines.paths cimport PathEngine, PathScratch, PathStep
from xsift.native.tables cimport FlatMap, pack
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint8_t, uint32_t
from xsift.xpath.pattern cimport DESCENDANT

cdef struct State:
    int32_t parent      # the state that leads here, -1 for the first; next free state for a free one
    symbol_t symbol     # on which it leads here
    int32_t star        # where `*` leads, or -1
    int32_t descendant  # the looping state of a following `//`, or -1
    int32_t accepts     # the path that ends here, or -1
    int32_t uses        # transitions out of here, plus one if it accepts: a state without use is freed
    uint8_t loops       # whether it stays active below (the state of a `//`)

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

    cdef vector[State] states
    cdef FlatMap[int32_t] transitions  # pack(state, symbol) -> state
    cdef int32_t free_state            # head of the list of free states, -1 if none
    cdef vector[int32_t] path_state    # by path: its accepting state

    def __cinit__(self, *args, **options):
        self.free_state = -1
        self.states.push_back(State(-1, 0, -1, -1, -1, 1, 0))

    # The index.

    cdef int insert_path(self, int32_t path) except -1:
        cdef int32_t state = 0
        cdef PathStep step
        for step in self.path_steps[path]:
            if step.axis == DESCENDANT:
                state = self.descend(state)
            state = self.advance(state, step.symbol)
        self.states[state].accepts = path
        self.states[state].uses += 1
        if self.path_state.size() <= <size_t>path:
            self.path_state.resize(path + 1, -1)
        self.path_state[path] = state
        return 0

    cdef int delete_path(self, int32_t path) except -1:
        cdef int32_t state = self.path_state[path]
        cdef int32_t parent
        self.states[state].accepts = -1
        self.states[state].uses -= 1
        while state and self.states[state].uses == 0:
            parent = self.states[state].parent
            if self.states[state].loops:
                self.states[parent].descendant = -1
            elif self.states[state].symbol == 0:
                self.states[parent].star = -1
            else:
                self.transitions.erase(pack(parent, self.states[state].symbol))
            self.states[parent].uses -= 1
            self.states[state].parent = self.free_state
            self.free_state = state
            state = parent
        return 0

    cdef int32_t new_state(self, int32_t parent, symbol_t symbol, bint loops) except -1:
        cdef int32_t state = self.free_state
        cdef State made = State(parent, symbol, -1, -1, -1, 0, loops)
        if state >= 0:
            self.free_state = self.states[state].parent
            self.states[state] = made
        else:
            state = <int32_t>self.states.size()
            self.states.push_back(made)
        self.states[parent].uses += 1
        return state

    cdef int32_t descend(self, int32_t state) except -1:
        cdef int32_t target = self.states[state].descendant
        if target < 0:
            target = self.new_state(state, 0, True)
            self.states[state].descendant = target
        return target

    cdef int32_t advance(self, int32_t state, symbol_t symbol) except -1:
        cdef int32_t target
        if symbol == 0:
            target = self.states[state].star
        else:
            target = self.transitions.get(pack(state, symbol), -1)
        if target >= 0:
            return target
        target = self.new_state(state, symbol, False)
        if symbol == 0:
            self.states[state].star = target
        else:
            self.transitions.put(pack(state, symbol), target)
        return target

    def memory(self):
        cdef YFilterScratch scratch
        sizes = PathEngine.memory(self)
        sizes["NFA states"] = self.states.capacity() * sizeof(State) + self.path_state.capacity() * 4
        sizes["NFA transitions"] = self.transitions.bytes()
        sizes["run-time stack"] = 0
        for scratch in self.scratches:
            sizes["run-time stack"] += 4 * (scratch.active.capacity() + scratch.first.capacity()
                                            + scratch.active_at.capacity())
        return sizes

    # The run.

    cdef Scratch new_scratch(self):
        return YFilterScratch()

    cdef int begin(self, Scratch scratch) except -1 nogil:
        return self.begin_run(<YFilterScratch>scratch)

    cdef int begin_run(self, YFilterScratch scratch) except -1 nogil:
        self.begin_join(scratch)
        scratch.active_at.assign(self.states.size(), 0)
        scratch.set_number = 1
        scratch.active.clear()
        scratch.first.clear()
        scratch.first.push_back(0)
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
        cdef int32_t state
        self.element_starts(scratch, symbol)
        scratch.first.push_back(end)
        scratch.set_number += 1
        scratch.counts[STATES_VISITED] += end - begin
        for i in range(begin, end):
            state = scratch.active[i]
            if symbol:
                target = self.transitions.get(pack(state, symbol), -1)
                if target >= 0:
                    self.activate(scratch, target)
            if self.states[state].star >= 0:
                self.activate(scratch, self.states[state].star)
            if self.states[state].loops:
                self.activate(scratch, state)
        return 0

    cdef int activate(self, YFilterScratch scratch, int32_t state) except -1 nogil:
        """Puts a state, and the looping state after it, into the innermost set; reports the path that it accepts."""
        cdef int32_t descendant
        if scratch.active_at[state] == scratch.set_number:
            return 0
        scratch.active_at[state] = scratch.set_number
        scratch.active.push_back(state)
        if self.states[state].accepts >= 0:
            scratch.counts[PATHS_MATCHED] += 1
            self.path_matched(scratch, self.states[state].accepts)
        descendant = self.states[state].descendant
        if descendant >= 0:
            self.activate(scratch, descendant)
        return 0

    cdef int end_tag(self, YFilterScratch scratch) except -1 nogil:
        self.element_ends(scratch)
        scratch.active.resize(scratch.first.back())
        scratch.first.pop_back()
        return 0

    cdef int condition_holds(self, YFilterScratch scratch, symbol_t condition) except -1 nogil:
        cdef int32_t i, target
        for i in range(scratch.first.back(), <int32_t>scratch.active.size()):
            target = self.transitions.get(pack(scratch.active[i], condition), -1)
            if target >= 0:
                scratch.counts[PATHS_MATCHED] += 1
                self.path_matched(scratch, self.states[target].accepts)
        return 0
