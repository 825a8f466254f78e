"""Evaluation: one pattern on the tree of one document: does it match, which elements does a step select, which tuples.

Engines say which patterns match; this says where, for those that did, so that `select` and `tuples` work on every engine. It also decides
ordered twigs for engines that cannot. It is the algorithm of reference.py on flat arrays: bottom-up, for each step the elements that can
stand for it; then top-down along the path to the step that is asked about. Time is in proportion to steps × elements.
"""

from libcpp.algorithm cimport lower_bound, sort
from libcpp.vector cimport vector

from xsift.document.tree cimport DocumentTree
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint8_t
from xsift.xpath.pattern cimport CHILD, Pattern, PatternNode


cdef class Evaluation:
    """A pattern on a tree. Elements are numbered from 1, in document order."""

    cdef Pattern pattern
    cdef DocumentTree tree
    cdef vector[vector[int32_t]] satisfied    # by step: the elements that can stand for it, ascending
    cdef vector[vector[int32_t]] children     # by step: its child steps that are no conditions
    cdef vector[vector[symbol_t]] conditions  # by step: the conditions it asks for
    cdef vector[int32_t] counts               # scratch: satisfied elements up to each number

    def __init__(self, Pattern pattern not None, DocumentTree tree not None):
        cdef int32_t step
        self.pattern = pattern
        self.tree = tree
        self.satisfied.resize(pattern.nodes.size())
        self.children.resize(pattern.nodes.size())
        self.conditions.resize(pattern.nodes.size())
        for step in range(1, <int32_t>pattern.nodes.size()):
            if pattern.nodes[step].is_condition:
                self.conditions[pattern.nodes[step].parent].push_back(pattern.nodes[step].symbol)
            else:
                self.children[pattern.nodes[step].parent].push_back(step)
        with nogil:
            for step in range(<int32_t>pattern.nodes.size() - 1, -1, -1):
                if not pattern.nodes[step].is_condition:
                    self._satisfy(step)

    def matches(self):
        """Whether the document matches."""
        return self._anchored_count() > 0

    def select(self, int32_t output):
        """The numbers of the elements that the step `output` can stand for, ascending."""
        cdef vector[int32_t] spine = self._spine(output)
        cdef vector[int32_t] reached, following
        cdef vector[uint8_t] is_reached
        cdef size_t i, j, k
        reached.assign(self.satisfied[0].begin(), self.satisfied[0].begin() + self._anchored_count())
        with nogil:
            for i in range(1, spine.size()):
                is_reached.assign(self.tree.symbols.size() + 1, 0)
                for j in range(reached.size()):
                    following.clear()
                    self._continue(spine[i - 1], reached[j], spine[i], following)
                    for k in range(following.size()):
                        is_reached[following[k]] = 1
                reached.clear()
                for j in range(1, is_reached.size()):
                    if is_reached[j]:
                        reached.push_back(<int32_t>j)
        return list(reached)

    def tuples(self, int32_t output):
        """Every instantiation of the path from the first step to `output`, an element number a step; one at a time."""
        cdef vector[int32_t] spine = self._spine(output)
        cdef vector[int32_t] following
        cdef Py_ssize_t i
        pending = [(self.satisfied[0][i],) for i in range(<Py_ssize_t>self._anchored_count() - 1, -1, -1)]
        while pending:
            prefix = pending.pop()
            if len(prefix) == <Py_ssize_t>spine.size():
                yield prefix
                continue
            following.clear()
            self._continue(spine[len(prefix) - 1], prefix[-1], spine[len(prefix)], following)
            for i in range(<Py_ssize_t>following.size() - 1, -1, -1):
                pending.append((*prefix, following[i]))

    def satisfying(self, int32_t step):
        """The elements that can stand for a step, whatever is above them; to explain where a match stopped."""
        return list(self.satisfied[step])

    cdef int _satisfy(self, int32_t step) except -1 nogil:
        cdef symbol_t symbol = self.pattern.nodes[step].symbol
        cdef vector[int32_t]* found = &self.satisfied[step]
        cdef int32_t element
        cdef size_t i
        for element in range(1, <int32_t>self.tree.symbols.size() + 1):
            if (symbol == 0 or self.tree.symbols[element - 1] == symbol) and self._holds(step, element):
                found.push_back(element)
        for i in range(self.children[step].size()):
            self._keep_above(found, self.children[step][i])
        if self.pattern.ordered and self.children[step].size() > 1:
            self._keep_ordered(found, step)
        return 0

    cdef bint _holds(self, int32_t step, int32_t element) noexcept nogil:
        """Whether all conditions of a step hold for an element. Elements hold few, so a plain search does."""
        cdef int64_t first = self.tree.condition_starts[element - 1]
        cdef int64_t end = self.tree.condition_starts[element]
        cdef int64_t j
        cdef size_t i
        for i in range(self.conditions[step].size()):
            j = first
            while j < end and self.tree.conditions[j] != self.conditions[step][i]:
                j += 1
            if j == end:
                return False
        return True

    cdef int _keep_above(self, vector[int32_t]* elements, int32_t child) except -1 nogil:
        """Keeps the elements that have one satisfying `child` below them, on the child's axis."""
        cdef vector[int32_t]* below = &self.satisfied[child]
        cdef bint is_child = self.pattern.nodes[child].axis == CHILD
        cdef size_t i
        cdef size_t kept = 0
        cdef int32_t element
        self.counts.assign(self.tree.symbols.size() + 1, 0)
        for i in range(below.size()):
            self.counts[self.tree.parents[below[0][i] - 1] if is_child else below[0][i]] += 1
        if not is_child:
            for i in range(1, self.counts.size()):
                self.counts[i] += self.counts[i - 1]
        for i in range(elements.size()):
            element = elements[0][i]
            if (self.counts[element] if is_child
                    else self.counts[self.tree.lasts[element - 1]] - self.counts[element]):
                elements[0][kept] = element
                kept += 1
        elements.resize(kept)
        return 0

    cdef int _keep_ordered(self, vector[int32_t]* elements, int32_t step) except -1 nogil:
        cdef size_t i
        cdef size_t kept = 0
        for i in range(elements.size()):
            if self._fits_in_order(step, elements[0][i], -1, -1):
                elements[0][kept] = elements[0][i]
                kept += 1
        elements.resize(kept)
        return 0

    cdef bint _fits_in_order(self, int32_t step, int32_t element, int32_t fixed, int32_t at) noexcept nogil:
        """Whether the children of `step` map to elements below `element` in strictly increasing post-order; with
        `fixed`, that child to the element `at`. Taking the earliest for each child in turn leaves most room."""
        cdef int32_t last = 0
        cdef int32_t best, child, rank
        cdef size_t i, j, end
        for i in range(self.children[step].size()):
            child = self.children[step][i]
            best = 0
            if child == fixed:
                best = self.tree.posts[at - 1] if self.tree.posts[at - 1] > last else 0
            else:
                j = self._first_after(child, element)
                end = self._first_after(child, self.tree.lasts[element - 1])
                while j < end:
                    rank = self.tree.posts[self.satisfied[child][j] - 1]
                    if (rank > last and (best == 0 or rank < best)
                            and self._is_below(child, self.satisfied[child][j], element)):
                        best = rank
                    j += 1
            if best == 0:
                return False
            last = best
        return True

    cdef inline bint _is_below(self, int32_t child, int32_t descendant, int32_t element) noexcept nogil:
        return self.pattern.nodes[child].axis != CHILD or self.tree.parents[descendant - 1] == element

    cdef size_t _first_after(self, int32_t step, int32_t element) noexcept nogil:
        """Where in `satisfied[step]` the elements after `element` begin."""
        cdef vector[int32_t]* found = &self.satisfied[step]
        return lower_bound(found.begin(), found.end(), element + 1) - found.begin()

    cdef int _continue(self, int32_t step, int32_t element, int32_t child, vector[int32_t]& following) except -1 nogil:
        """Appends the elements for `child`, given that `element` stands for its parent `step`."""
        cdef size_t j = self._first_after(child, element)
        cdef size_t end = self._first_after(child, self.tree.lasts[element - 1])
        cdef int32_t other
        cdef bint ordered = self.pattern.ordered and self.children[step].size() > 1
        while j < end:
            other = self.satisfied[child][j]
            if self._is_below(child, other, element):
                if not ordered or self._fits_in_order(step, element, child, other):
                    following.push_back(other)
            j += 1
        return 0

    cdef size_t _anchored_count(self) noexcept nogil:
        """How many of the first step's elements count: all, or only the root element."""
        if self.satisfied[0].empty() or self.pattern.nodes[0].axis != CHILD:
            return self.satisfied[0].size()
        return 1 if self.satisfied[0][0] == 1 else 0

    cdef vector[int32_t] _spine(self, int32_t output) except *:
        cdef vector[int32_t] spine
        if not 0 <= output < <int32_t>self.pattern.nodes.size() or self.pattern.nodes[output].is_condition:
            raise IndexError(f"the pattern {self.pattern} has no step {output}")
        while output >= 0:
            spine.insert(spine.begin(), output)
            output = self.pattern.nodes[output].parent
        return spine
