"""`yfilter`: one automaton for all paths.

Paper: Yanlei Diao, Mehmet Altinel, Michael J. Franklin, Hao Zhang, Peter Fischer, "Path sharing and predicate
evaluation for high-performance XML filtering", ACM TODS 28(4), 2003.

The idea. Every path is a little automaton: a step is a state, a name or `*` a transition, and `//` a state that loops
to itself. Put together, equal prefixes share their states: one non-deterministic automaton (NFA) for all paths. A
run-time stack holds the set of active states of each open element; a start tag pushes the set that its
name leads to, an end tag pops. A path matches when its accepting state becomes active.

The paper's terms here: *NFA states* `NfaState` in nfa.pxd, *hash table of a state* `PathNfa.transitions` (one table for
all states, keyed by state and symbol), *//-child* `NfaState.descendant`, *run-time stack* `YFilterScratch.active` with
`first`, and `loops`.

Deviations.
- The looping states of `//` stay active down to the leaves. They stand on a stack of their own, once each, instead of
  being copied from set to set; and a state that leads nowhere is in no set.
- A state has a bit for each name that leads on from it (names share bits), which spares most look-ups that
  fail. The others ask for their memory ahead.
- Nested paths are decomposed, and joined after the document has been read, as the paper does; but a twig is evaluated
  only if all its paths matched, and what twigs share is evaluated once (join.pyx).
- Conditions are leaves of the paths, so that equal ones are shared like any other step; the paper's "selection
  postponed" evaluates them after the structure, one query after the other.

Takes every unordered pattern. Wins over engines that keep a machine for each query (XFilter) through prefix
sharing; loses where `//` and `*` make many states active.
"""

from libcpp.vector cimport vector

from xsift.document.events cimport END, condition_symbol
from xsift.engines.base cimport Scratch
from xsift.engines.nfa cimport NO_STATE, NfaState, PathNfa
from xsift.engines.paths cimport PathEngine, PathScratch, PathStep
from xsift.native.tables cimport pack
from xsift.native.types cimport int32_t, symbol_t, uint8_t, uint64_t
from xsift.xpath.symbols cimport ANY

cdef extern from *:
    void prefetch "__builtin_prefetch"(const void* address) nogil

cdef enum Counter:
    STATES_VISITED
    PATHS_MATCHED

cdef struct ActiveState:
    int32_t state
    int32_t star     # as in NfaState
    uint64_t names   # the bits of the names that lead on from it

cdef struct ActiveSet:
    int32_t active   # where an element's states begin in `active` ...
    int32_t loops    # ... and its looping states in `loops`

cdef inline uint64_t wide_name_bit(symbol_t symbol) noexcept nogil:
    return <uint64_t>1 << (symbol & 63)


cdef class YFilterScratch(PathScratch):
    cdef vector[ActiveState] active  # the active states of all open elements, one set after the other
    cdef vector[ActiveState] loops   # the looping states that are active, each with the outermost element where it became so
    cdef vector[ActiveSet] first     # by level; level 0 is the document
    cdef vector[uint8_t] is_looping  # by state: it is in `loops`
    cdef vector[int32_t] asked       # active states that may lead on by the name at hand
    cdef vector[int32_t] targets     # the states to which they do


cdef class YFilter(PathEngine):
    """One NFA for all paths, prefixes shared."""

    name = "yfilter"
    paper = "Diao, Altinel, Franklin, Zhang, Fischer: Path sharing and predicate evaluation (TODS 2003)"
    wins = "many paths with shared prefixes; the yardstick of the field"
    caveat = "time grows with the number of active states: `*` and `//` are dear"
    counter_names = ("states visited", "paths matched")

    cdef PathNfa nfa
    cdef vector[int32_t] path_state     # by path: its accepting state
    cdef vector[uint64_t] state_names   # by state: the bits of the names that lead, or led, on from it

    def __cinit__(self, *args, **options):
        self.nfa = PathNfa()
        self.state_names.resize(self.nfa.states.size(), 0)  # the first state is there without a path

    # The index.

    cdef int insert_path(self, int32_t path) except -1:
        cdef int32_t state = 0
        cdef PathStep step
        for step in self.path_steps[path]:
            state = self.nfa.advance(state, step.symbol, step.axis)
            self.state_names.resize(self.nfa.states.size(), 0)
            if step.symbol != ANY:
                self.state_names[self.nfa.states[state].parent] |= wide_name_bit(step.symbol)
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
        sizes["NFA"] = self.nfa.bytes() + 4 * self.path_state.capacity() + 8 * self.state_names.capacity()
        sizes["run-time stack"] = 0
        for scratch in self.scratches:
            sizes["run-time stack"] += (
                sizeof(ActiveState) * (scratch.active.capacity() + scratch.loops.capacity())
                + sizeof(ActiveSet) * scratch.first.capacity() + scratch.is_looping.capacity()
                + 4 * (scratch.asked.capacity() + scratch.targets.capacity()))
        return sizes

    # The run.

    cdef Scratch new_scratch(self):
        return YFilterScratch(self.branches)

    cdef int begin(self, Scratch scratch) except -1 nogil:
        return self.begin_run(<YFilterScratch>scratch)

    cdef int begin_run(self, YFilterScratch scratch) except -1 nogil:
        self.begin_join(scratch)
        while scratch.loops.size():
            scratch.is_looping[scratch.loops.back().state] = False
            scratch.loops.pop_back()
        scratch.is_looping.resize(self.nfa.states.size(), False)
        scratch.active.clear()
        scratch.first.clear()
        scratch.first.push_back(ActiveSet(0, 0))
        return self.enter(scratch, 0)

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
        cdef ActiveSet above = scratch.first.back()
        cdef size_t i
        cdef int32_t target
        self.element_starts(scratch, symbol)
        scratch.targets.clear()
        self.look_at(scratch, symbol, scratch.active.data() + above.active, scratch.active.size() - above.active)
        self.look_at(scratch, symbol, scratch.loops.data(), scratch.loops.size())
        for i in range(scratch.asked.size()):
            target = self.nfa.target(scratch.asked[i], symbol)
            if target >= 0:
                prefetch(&self.nfa.states[target])
                prefetch(&self.state_names[target])
                scratch.targets.push_back(target)
        scratch.asked.clear()
        scratch.first.push_back(ActiveSet(<int32_t>scratch.active.size(), <int32_t>scratch.loops.size()))
        for i in range(scratch.targets.size()):
            self.enter(scratch, scratch.targets[i])
        return 0

    cdef int look_at(self, YFilterScratch scratch, symbol_t symbol, const ActiveState* states,
                     size_t number) except -1 nogil:
        """Which active states may lead on by a name, and asks for the memory that tells whether they do."""
        cdef uint64_t wanted = wide_name_bit(symbol) if symbol != ANY else 0
        cdef size_t i
        scratch.counts[STATES_VISITED] += number
        for i in range(number):
            if states[i].names & wanted:
                self.nfa.transitions.prefetch(pack(states[i].state, symbol))
                scratch.asked.push_back(states[i].state)
            if states[i].star >= 0:
                prefetch(&self.nfa.states[states[i].star])
                prefetch(&self.state_names[states[i].star])
                scratch.targets.push_back(states[i].star)
        return 0

    cdef int enter(self, YFilterScratch scratch, int32_t number) except -1 nogil:
        """Reports the path that a state accepts, and puts it and the looping state after it where they are active.

        No state is entered twice at an element, since only one other leads to it.
        """
        cdef const NfaState* state = &self.nfa.states[number]
        if state.accepts >= 0:
            scratch.counts[PATHS_MATCHED] += 1
            self.path_matched(scratch, state.accepts)
        if self.state_names[number] or state.star >= 0:
            scratch.active.push_back(ActiveState(number, state.star, self.state_names[number]))
        if state.descendant >= 0 and not scratch.is_looping[state.descendant]:
            number = state.descendant
            scratch.is_looping[number] = True
            scratch.loops.push_back(ActiveState(number, self.nfa.states[number].star, self.state_names[number]))
        return 0

    cdef int end_tag(self, YFilterScratch scratch) except -1 nogil:
        cdef ActiveSet closed = scratch.first.back()
        if scratch.first.size() == 1:
            return 0  # nothing is open: not a document, but no reason to fail
        self.element_ends(scratch)
        scratch.active.resize(closed.active)
        while <int32_t>scratch.loops.size() > closed.loops:
            scratch.is_looping[scratch.loops.back().state] = False
            scratch.loops.pop_back()
        scratch.first.pop_back()
        return 0

    cdef int condition_holds(self, YFilterScratch scratch, symbol_t condition) except -1 nogil:
        cdef int32_t i, target
        for i in range(scratch.first.back().active, <int32_t>scratch.active.size()):
            if scratch.active[i].names & wide_name_bit(condition):
                target = self.nfa.target(scratch.active[i].state, condition)
                if target >= 0:
                    scratch.counts[PATHS_MATCHED] += 1
                    self.path_matched(scratch, self.nfa.states[target].accepts)
        return 0
