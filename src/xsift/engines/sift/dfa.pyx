"""LazyDfa: the path automaton, determinised as documents ask for it.

A set of active NFA states, once computed, is a state of its own: the next element with the same path of names costs one
look-up. Documents of one kind visit few such sets, though there could be exponentially many; so they are made on
demand, and kept in a cache that its owner bounds: when it is full everything is forgotten and made again.

The naive subset construction lists the whole set in each state. Nine tenths of these lists are looping states: a `//`
that is active once is active for everything below, so that each state repeats what the one above it has. And what
`//p` accepts is listed again in every state that a `p` leads to. Hence two things are shared here:

    Loops   the looping states that one element made active, with a link to those that were active before it. A state
            names the last of such a chain, and all elements below share it.
    Part    a set of NFA states that some state contains. Where the loops of one link lead to on a name is one part, made
            once for all states below; what is left of a state, its own part, follows from the parts of the state above.

So a state is a short list of parts and the loops that are active below it. The NFA is a tree, and an NFA state is
reached from one other only; therefore the parts of a state have no NFA state in common, and the states of a chain of
loops are all different. A part is reported once a document, whichever states it is met in.

Parts, loops and states are each kept once: recursive documents lead back to what is there. Two sets are equal when
their members are, in whatever order they were found: the hash is a sum over the members, and equality is checked member
by member.
"""

from libc.stdint cimport uint16_t
from libcpp.algorithm cimport sort
from libcpp.vector cimport vector

from xsift.engines.nfa cimport NfaState, name_bit
from xsift.native.tables cimport mix64
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint32_t, uint64_t

cdef extern from *:
    void prefetch "__builtin_prefetch"(const void* address) nogil

cdef enum:
    AHEAD = 8  # members whose NFA states are asked for in advance: they lie anywhere in memory


cdef class LazyDfa:
    """The deterministic states met so far. One for each thread: it changes while documents are read."""

    def __cinit__(self, PathNfa nfa not None):
        self.nfa = nfa

    cdef int32_t restart(self, size_t keys) except -1 nogil:
        self.states.clear()
        self.parts.clear()
        self.loops.clear()
        self.pool.clear()
        self.part_lists.clear()
        self.transitions.clear()
        self.loop_moves.clear()
        self.states_by_hash.clear()
        self.parts_by_hash.clear()
        self.loops_by_hash.clear()
        self.seen_at.resize(self.nfa.states.size(), 0)
        self.accepted_at.resize(keys, 0)
        self.parts.push_back(Part(0, 0, 0, 0, 0, 0, -1, 0))  # EMPTY_PART
        self.begin_set()
        self.put(0)
        self.part_list.assign(1, self.intern_part())
        return self.intern_state(self.loops_below(NO_LOOPS))

    cdef int32_t make(self, int32_t state, symbol_t symbol) except -1 nogil:
        """The state that follows on a start tag; computed from the NFA, then remembered."""
        cdef int32_t i, part, target
        cdef int32_t loops = self.states[state].loops
        self.begin_set()
        for i in range(self.states[state].parts, self.states[state].parts_end):
            part = self.part_lists[i]
            self.follow(self.pool.data() + self.parts[part].live, self.parts[part].loops - self.parts[part].live, symbol)
        self.part_list.assign(1, self.intern_part())
        while loops != NO_LOOPS:
            self.part_list.push_back(self.loop_move(loops, symbol))
            loops = self.loops[loops].above
        target = self.intern_state(self.loops_below(self.states[state].loops))
        self.transitions.put(pack(state, symbol), target)
        return target

    cdef int32_t loop_move(self, int32_t loops, symbol_t symbol) except -1 nogil:
        cdef int32_t part = self.loop_moves.get(pack(loops, symbol), -1)
        if part < 0:
            self.begin_set()
            self.follow(self.pool.data() + self.loops[loops].begin, self.loops[loops].end - self.loops[loops].begin,
                        symbol)
            part = self.intern_part()
            self.loop_moves.put(pack(loops, symbol), part)
        return part

    # Sets of NFA states.

    cdef int begin_set(self) except -1 nogil:
        self.live.clear()
        self.new_loops.clear()
        self.marked.clear()
        self.accepts.clear()
        self.set_hash = 0
        self.set_number += 1
        if self.set_number == 0:  # wrapped: old numbers must not look like new ones
            self.seen_at.assign(self.seen_at.size(), 0)
            self.accepted_at.assign(self.accepted_at.size(), 0)
            self.set_number = 1
        return 0

    cdef int follow(self, const int32_t* members, int64_t number, symbol_t symbol) except -1 nogil:
        """Puts the NFA states that a name leads to from some others into the set.

        States and transitions lie anywhere in memory: each is asked for some time before it is looked at.
        """
        cdef const NfaState* states = self.nfa.states.data()
        cdef uint16_t wanted = name_bit(symbol) if symbol else 0
        cdef const NfaState* at
        cdef int64_t i
        cdef int32_t member, target
        self.asked.clear()
        self.reached.clear()
        for i in range(number):
            if i + AHEAD < number:
                prefetch(&states[members[i + AHEAD]])
            at = &states[members[i]]
            if at.names & wanted:
                self.nfa.transitions.prefetch(pack(members[i], symbol))
                self.asked.push_back(members[i])
            if at.star >= 0:
                prefetch(&states[at.star])
                self.reached.push_back(at.star)
        for member in self.asked:
            target = self.nfa.target(member, symbol)
            if target >= 0:
                prefetch(&states[target])
                self.reached.push_back(target)
        for target in self.reached:
            self.put(target)
        return 0

    cdef int put(self, int32_t nfa_state) except -1 nogil:
        cdef const NfaState* at = &self.nfa.states[nfa_state]
        self.set_hash += mix64(<uint64_t>nfa_state + 1)
        if at.accepts >= 0:
            self.accepts.push_back(at.accepts)
        if at.marks and nfa_state:
            self.marked.push_back(nfa_state)
        if at.descendant >= 0:
            self.new_loops.push_back(at.descendant)
        if at.children > (at.descendant >= 0):
            self.live.push_back(nfa_state)
        return 0

    cdef int32_t intern_part(self) except -1 nogil:
        """The part whose set was just made: one that is known, or a new one."""
        cdef int32_t part, first
        cdef Part made
        if self.live.empty() and self.new_loops.empty() and self.marked.empty() and self.accepts.empty():
            return EMPTY_PART
        made.hash = self.set_hash >> 1  # FlatMap has one key that it cannot take
        first = self.parts_by_hash.get(made.hash, -1)
        part = first
        if part >= 0:
            self.stamp_set()
        while part >= 0:
            if self.is_current_set(part):
                return part
            part = self.parts[part].same_hash
        part = <int32_t>self.parts.size()
        sort(self.marked.begin(), self.marked.end())
        made.same_hash = first
        made.reported_at = 0
        made.live = <int64_t>self.pool.size()
        self.pool.insert(self.pool.end(), self.live.begin(), self.live.end())
        made.loops = <int64_t>self.pool.size()
        self.pool.insert(self.pool.end(), self.new_loops.begin(), self.new_loops.end())
        made.marked = <int64_t>self.pool.size()
        self.pool.insert(self.pool.end(), self.marked.begin(), self.marked.end())
        made.accepts = <int64_t>self.pool.size()
        self.pool.insert(self.pool.end(), self.accepts.begin(), self.accepts.end())
        made.end = <int64_t>self.pool.size()
        self.parts.push_back(made)
        self.parts_by_hash.put(made.hash, part)
        return part

    cdef void stamp_set(self) noexcept nogil:
        """Marks the members of the set that was just made, to compare others with it."""
        cdef int32_t member
        for member in self.live:
            self.seen_at[member] = self.set_number
        for member in self.new_loops:
            self.seen_at[member] = self.set_number
        for member in self.marked:
            self.seen_at[member] = self.set_number
        for member in self.accepts:
            self.accepted_at[member] = self.set_number

    cdef bint is_current_set(self, int32_t part) noexcept nogil:
        """Whether a part has the members of the set that was just made. Only a leaf is told by what it accepts."""
        cdef const Part* other = &self.parts[part]
        cdef int64_t i
        if (other.loops - other.live != <int64_t>self.live.size()
                or other.marked - other.loops != <int64_t>self.new_loops.size()
                or other.accepts - other.marked != <int64_t>self.marked.size()
                or other.end - other.accepts != <int64_t>self.accepts.size()):
            return False
        for i in range(other.live, other.accepts):
            if self.seen_at[self.pool[i]] != self.set_number:
                return False
        for i in range(other.accepts, other.end):
            if self.accepted_at[self.pool[i]] != self.set_number:
                return False
        return True

    # Loops.

    cdef int32_t loops_below(self, int32_t above) except -2 nogil:
        """What is active below a state with the parts in `part_list`, where `above` is active already."""
        cdef int32_t loops = above
        cdef int32_t part
        cdef size_t i
        cdef int64_t j
        cdef bint some = False
        for part in self.part_list:
            some |= self.parts[part].marked > self.parts[part].loops
        if not some:
            return above
        self.begin_set()
        while loops != NO_LOOPS:
            for j in range(self.loops[loops].begin, self.loops[loops].end):
                self.seen_at[self.pool[j]] = self.set_number
            loops = self.loops[loops].above
        for i in range(self.part_list.size()):
            part = self.part_list[i]
            for j in range(self.parts[part].loops, self.parts[part].marked):
                if self.seen_at[self.pool[j]] != self.set_number:
                    self.new_loops.push_back(self.pool[j])
        return self.intern_loops(above) if self.new_loops.size() else above

    cdef int32_t intern_loops(self, int32_t above) except -1 nogil:
        """The loops of `new_loops` below those `above`: known ones, or new ones."""
        cdef Loops made
        cdef int32_t loops, first
        cdef size_t i
        sort(self.new_loops.begin(), self.new_loops.end())
        made.hash = mix64(<uint64_t><uint32_t>above)
        for i in range(self.new_loops.size()):
            made.hash += mix64(<uint64_t>self.new_loops[i] + 1)
        made.hash >>= 1
        first = self.loops_by_hash.get(made.hash, -1)
        loops = first
        while loops >= 0:
            if self.loops[loops].above == above and is_list(
                    self.pool, self.loops[loops].begin, self.loops[loops].end, self.new_loops):
                return loops
            loops = self.loops[loops].same_hash
        loops = <int32_t>self.loops.size()
        made.begin = <int64_t>self.pool.size()
        self.pool.insert(self.pool.end(), self.new_loops.begin(), self.new_loops.end())
        made.end = <int64_t>self.pool.size()
        made.same_hash = first
        made.above = above
        self.loops.push_back(made)
        self.loops_by_hash.put(made.hash, loops)
        return loops

    # States.

    cdef int32_t intern_state(self, int32_t loops) except -1 nogil:
        """The state with the parts in `part_list` and these loops: one that is known, or a new one."""
        cdef DfaState made
        cdef int32_t state, first, part
        cdef int32_t accepting
        self.sorted_list.clear()
        for part in self.part_list:
            if self.parts[part].end > self.parts[part].accepts:
                self.sorted_list.push_back(part)
        accepting = <int32_t>self.sorted_list.size()
        for part in self.part_list:
            if self.parts[part].end == self.parts[part].accepts and part != EMPTY_PART:
                self.sorted_list.push_back(part)
        self.part_list.swap(self.sorted_list)
        made.hash = mix64(<uint64_t><uint32_t>loops)
        for part in self.part_list:
            made.hash = mix64(made.hash + <uint64_t>part)
        made.hash >>= 1
        first = self.states_by_hash.get(made.hash, -1)
        state = first
        while state >= 0:
            if self.states[state].loops == loops and is_list(
                    self.part_lists, self.states[state].parts, self.states[state].parts_end, self.part_list):
                return state
            state = self.states[state].same_hash
        state = <int32_t>self.states.size()
        made.parts = <int32_t>self.part_lists.size()
        self.part_lists.insert(self.part_lists.end(), self.part_list.begin(), self.part_list.end())
        made.accepting_end = made.parts + accepting
        made.parts_end = <int32_t>self.part_lists.size()
        made.loops = loops
        made.same_hash = first
        made.reported_at = 0
        self.states.push_back(made)
        self.states_by_hash.put(made.hash, state)
        return state

    cdef bint contains(self, int32_t state, int32_t nfa_state) noexcept nogil:
        cdef int32_t i
        cdef const Part* part
        cdef int64_t low, high, middle
        for i in range(self.states[state].parts, self.states[state].parts_end):
            part = &self.parts[self.part_lists[i]]
            low, high = part.marked, part.accepts
            while low < high:
                middle = (low + high) // 2
                if self.pool[middle] < nfa_state:
                    low = middle + 1
                else:
                    high = middle
            if low < part.accepts and self.pool[low] == nfa_state:
                return True
        return False

    cdef int64_t bytes(self) noexcept nogil:
        return (self.states.capacity() * sizeof(DfaState) + self.parts.capacity() * sizeof(Part)
                + self.loops.capacity() * sizeof(Loops)
                + (self.pool.capacity() + self.part_lists.capacity()) * sizeof(int32_t) + self.transitions.bytes()
                + self.loop_moves.bytes() + self.states_by_hash.bytes() + self.parts_by_hash.bytes()
                + self.loops_by_hash.bytes())

    cdef int64_t stamp_bytes(self) noexcept nogil:
        return (self.seen_at.capacity() + self.accepted_at.capacity()) * sizeof(uint32_t)


cdef bint is_list(const vector[int32_t]& pool, int64_t begin, int64_t end, const vector[int32_t]& members) noexcept nogil:
    """Whether a stretch of a pool is this list."""
    cdef int64_t i
    if end - begin != <int64_t>members.size():
        return False
    for i in range(end - begin):
        if pool[begin + i] != members[i]:
            return False
    return True
