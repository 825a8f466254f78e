"""PathNfa: one non-deterministic automaton for many paths, with shared prefixes, as YFilter introduced it.

A step is a state; a name, a condition or `*` is a transition; and `//` is a state that loops to itself. Adding a path
follows the states that are there and makes the rest; removing one frees what no other path uses.
"""

from libcpp.vector cimport vector

from xsift.native.saving cimport from_numpy, to_numpy
from xsift.xpath.pattern cimport DESCENDANT

import numpy as np


cdef class PathNfa:
    """The automaton of a set of paths. Its owner runs it."""

    def __cinit__(self):
        self.free_state = NO_STATE
        self.state_count = 1
        self.states.push_back(NfaState(-1, 0, NO_STATE, NO_STATE, -1, 1, 0, 0, 0))

    cdef int32_t advance(self, int32_t state, symbol_t symbol, uint8_t axis) except -1:
        cdef int32_t target
        if axis == DESCENDANT:
            target = self.states[state].descendant
            if target < 0:
                target = self._new_state(state, 0, True)
                self.states.edit(state).descendant = target
            state = target
        target = self.states[state].star if symbol == 0 else self.target(state, symbol)
        if target >= 0:
            return target
        target = self._new_state(state, symbol, False)
        if symbol == 0:
            self.states.edit(state).star = target
        else:
            self.transitions.put(pack(state, symbol), target)
            self.states.edit(state).names |= name_bit(symbol)
        return target

    cdef void release(self, int32_t state) noexcept:
        cdef const NfaState* freed
        cdef int32_t parent
        while state:
            freed = &self.states[state]
            if freed.children or freed.accepts >= 0 or freed.marks:
                return
            parent = freed.parent
            if freed.loops:
                self.states.edit(parent).descendant = NO_STATE
            elif freed.symbol == 0:
                self.states.edit(parent).star = NO_STATE
            else:
                self.transitions.erase(pack(parent, freed.symbol))
            self.states.edit(parent).children -= 1
            self.states.edit(state).parent = self.free_state
            self.free_state = state
            self.state_count -= 1
            state = parent

    def _new_state(self, int32_t parent, symbol_t symbol, bint loops):
        cdef int32_t state = self.free_state
        cdef NfaState made = NfaState(parent, symbol, NO_STATE, NO_STATE, -1, 0, 0, loops, 0)
        if state >= 0:
            self.free_state = self.states[state].parent
            self.states.edit(state)[0] = made
        else:
            state = <int32_t>self.states.size()
            self.states.push_back(made)
        self.states.edit(parent).children += 1
        self.state_count += 1
        return state

    cdef int64_t bytes(self) noexcept:
        return self.states.bytes() + self.transitions.bytes()

    cdef int check(self, int64_t keys) except -1:
        cdef vector[uint8_t] marks = vector[uint8_t](self.states.size(), 0)
        cdef int32_t state, target
        cdef bint fine = self.states.size() > 0
        if fine:
            marks[0] = 1  # nothing leads to the first state
            fine = self.transitions.mark_values(marks.data(), marks.size())
        for state in range(<int32_t>self.states.size()):
            for target in (self.states[state].star, self.states[state].descendant):
                if target < 0:
                    continue
                if target >= <int64_t>marks.size() or marks[target]:
                    fine = False
                    break
                marks[target] = 1
            fine = fine and self.states[state].accepts < keys
        if not fine:
            raise ValueError("its automaton leads outside")
        return 0

    def saved(self):
        """The automaton as arrays, for `restore`."""
        return {"nfa.states": to_numpy(self.states.saved()), "nfa.transitions": to_numpy(self.transitions.saved()),
                "nfa.counts": np.array([self.free_state, self.state_count], dtype=np.int64)}

    def restore(self, arrays):
        """Becomes the automaton that was saved; its arrays are used where they lie."""
        self.states.restore(from_numpy(arrays["nfa.states"]))
        self.transitions.restore(from_numpy(arrays["nfa.transitions"]))
        self.free_state, self.state_count = arrays["nfa.counts"].tolist()
