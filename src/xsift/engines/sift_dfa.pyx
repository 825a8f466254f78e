"""LazyDfa: the path automaton, determinised as documents ask for it.

A set of active NFA states, once computed, is a state of its own: the next element with the same path of names costs one
look-up. Documents of one kind visit few such sets (thousands, for 150,000 paths), though there could be exponentially
many; so they are made on demand, in a cache that is bounded: when it is full it is forgotten, but for the states of the
elements that are open.

Only what matters later is kept in a set: a state that nothing follows is reported and dropped. Two sets are one state when
their members are equal, in whatever order they were found: the hash is a sum over the members, and equality is checked
member by member.
"""

from libcpp.algorithm cimport sort
from libcpp.vector cimport vector

from xsift.engines.nfa cimport NfaState
from xsift.native.tables cimport mix64


cdef class LazyDfa:
    """The deterministic states met so far. One for each thread: it changes while documents are read."""

    def __cinit__(self, PathNfa nfa not None):
        self.nfa = nfa

    cdef int32_t restart(self) except -1 nogil:
        self.states.clear()
        self.pool.clear()
        self.transitions.clear()
        self.by_hash.clear()
        self.begin_set()
        self.put(0)
        return self.intern()

    cdef int32_t make(self, int32_t state, symbol_t symbol) except -1 nogil:
        """The state that follows on a start tag; computed from the NFA, then remembered."""
        cdef int64_t i
        cdef int64_t begin = self.states[state].live
        cdef int64_t end = self.states[state].marked
        cdef int32_t member, target
        cdef const NfaState* at
        self.begin_set()
        for i in range(begin, end):
            member = self.pool[i]
            at = &self.nfa.states[member]
            if symbol:
                target = self.nfa.target(member, symbol)
                if target >= 0:
                    self.put(target)
            if at.star >= 0:
                self.put(at.star)
            if at.loops:
                self.put(member)
        target = self.intern()
        self.transitions.put(pack(state, symbol), target)
        return target

    cdef int begin_set(self) except -1 nogil:
        self.live.clear()
        self.marked.clear()
        self.accepts.clear()
        if self.seen_at.size() < self.nfa.states.size():
            self.seen_at.resize(self.nfa.states.size(), 0)
        self.set_number += 1
        if self.set_number == 0:  # wrapped: old numbers must not look like new ones
            self.seen_at.assign(self.seen_at.size(), 0)
            self.set_number = 1
        return 0

    cdef int put(self, int32_t nfa_state) except -1 nogil:
        cdef const NfaState* at = &self.nfa.states[nfa_state]
        if self.seen_at[nfa_state] == self.set_number:
            return 0
        self.seen_at[nfa_state] = self.set_number
        if at.accepts >= 0:
            self.accepts.push_back(at.accepts)
        if at.marks and nfa_state:
            self.marked.push_back(nfa_state)
        if at.children:
            self.live.push_back(nfa_state)
            if at.descendant >= 0:
                self.put(at.descendant)
        return 0

    cdef int32_t intern(self) except -1 nogil:
        """The state whose set was just made: one that is known, or a new one."""
        cdef uint64_t hash = 0
        cdef int32_t state, first
        cdef size_t i
        cdef DfaState made
        for i in range(self.live.size()):
            hash += mix64(<uint64_t>self.live[i] * 2 + 1)
        # What a set accepts and marks belongs to its identity too: leaves are not among the live states.
        for i in range(self.accepts.size()):
            hash += mix64((<uint64_t>self.accepts[i] << 32) + 2)
        for i in range(self.marked.size()):
            hash += mix64((<uint64_t>self.marked[i] << 32) + 3)
        hash >>= 1  # FlatMap has one key that it cannot take
        sort(self.accepts.begin(), self.accepts.end())
        sort(self.marked.begin(), self.marked.end())
        first = self.by_hash.get(hash, -1)
        state = first
        while state >= 0:
            if self._is_current_set(state):
                return state
            state = self.states[state].same_hash
        state = <int32_t>self.states.size()
        made.hash = hash
        made.same_hash = first
        made.reported_at = 0
        made.live = <int64_t>self.pool.size()
        self.pool.insert(self.pool.end(), self.live.begin(), self.live.end())
        made.marked = <int64_t>self.pool.size()
        self.pool.insert(self.pool.end(), self.marked.begin(), self.marked.end())
        made.accepts = <int64_t>self.pool.size()
        self.pool.insert(self.pool.end(), self.accepts.begin(), self.accepts.end())
        made.end = <int64_t>self.pool.size()
        self.states.push_back(made)
        self.by_hash.put(hash, state)
        self.states_made += 1
        return state

    cdef bint _is_current_set(self, int32_t state) noexcept nogil:
        cdef DfaState* other = &self.states[state]
        cdef int64_t i
        if (other.marked - other.live != <int64_t>self.live.size()
                or other.accepts - other.marked != <int64_t>self.marked.size()
                or other.end - other.accepts != <int64_t>self.accepts.size()):
            return False
        for i in range(other.live, other.marked):
            if self.seen_at[self.pool[i]] != self.set_number:
                return False
        for i in range(<int64_t>self.marked.size()):
            if self.pool[other.marked + i] != self.marked[i]:
                return False
        for i in range(<int64_t>self.accepts.size()):
            if self.pool[other.accepts + i] != self.accepts[i]:
                return False
        return True

    cdef int flush(self, vector[int32_t]* stack) except -1 nogil:
        cdef vector[DfaState] old_states
        cdef vector[int32_t] old_pool
        cdef DfaState kept
        cdef size_t i
        cdef int64_t j
        old_states.swap(self.states)
        old_pool.swap(self.pool)
        self.transitions.clear()
        self.by_hash.clear()
        self.flushes += 1
        for i in range(stack.size()):
            kept = old_states[stack[0][i]]
            self.begin_set()
            for j in range(kept.live, kept.marked):
                self.seen_at[old_pool[j]] = self.set_number
            self.live.assign(old_pool.begin() + kept.live, old_pool.begin() + kept.marked)
            self.marked.assign(old_pool.begin() + kept.marked, old_pool.begin() + kept.accepts)
            self.accepts.assign(old_pool.begin() + kept.accepts, old_pool.begin() + kept.end)
            stack[0][i] = self.intern()
        return 0

    cdef bint contains(self, int32_t state, int32_t nfa_state) noexcept nogil:
        """Whether a marked NFA state is in the set."""
        cdef int64_t low = self.states[state].marked
        cdef int64_t high = self.states[state].accepts
        cdef int64_t middle
        while low < high:
            middle = (low + high) // 2
            if self.pool[middle] < nfa_state:
                low = middle + 1
            else:
                high = middle
        return low < self.states[state].accepts and self.pool[low] == nfa_state

    cdef int64_t bytes(self) noexcept nogil:
        return (self.states.capacity() * sizeof(DfaState) + self.pool.capacity() * sizeof(int32_t)
                + self.transitions.bytes() + self.by_hash.bytes())
