"""One pattern on the tree of one document: does it match, which elements does a step select, which tuples are there?

Engines say which patterns match; this says where, for those that did, so that `select` and `tuples` work on every engine. It also decides
ordered twigs for engines that cannot. It is the algorithm of reference.py on flat arrays: bottom-up, for each step the elements that can
stand for it, as ascending lists; then top-down along the path to the step that is asked about. Lists are merged, so that time is in
proportion to the elements that have the names of the pattern.

Ordered twigs. Below an element the children of a step must stand in strictly increasing post-order. The descendants of an element
are a range of post-order ranks, so "the first one for this child after that rank" is a binary search; taking the earliest for each child
in turn leaves most room. For a child that is fixed, what is before it, taken as early as possible, and what is after it, taken as late as
possible, leave a window of ranks, the same for all elements that the child may stand for.

Patterns and documents come from strangers, so work is charged to a budget: each element that is looked at is a step.
An evaluation that passes its budget raises SubscriptionError.
"""

from libcpp.algorithm cimport lower_bound, sort
from libcpp.vector cimport vector

from xsift.document.tree cimport DocumentTree
from xsift.native.tables cimport pack
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint64_t
from xsift.xpath.pattern cimport CHILD, Pattern, PatternNode

from xsift.errors import SubscriptionError

cdef enum:
    STEPS_PER_ELEMENT = 50  # what the budget grows by with each element of the document
    LAST_RANK = 0x7fffffff

cdef int64_t NO_LIMIT = <int64_t>1 << 62

cdef struct Window:
    int32_t after   # ranks in post-order between these two are allowed
    int32_t before


def over_budget(steps):
    """The error of a subscription whose evaluation takes too many steps."""
    return SubscriptionError(
        "too-many-steps", f"its evaluation on this document takes more than {steps:,} steps",
        hint="simplify the expression, or allow more with Limits(steps=…)")


cdef class PatternEvaluation:
    """A pattern on a tree. Elements are numbered from 1, in document order.

    `steps` is what it may cost, beside what the document's elements add; without it there is no limit.
    """

    cdef Pattern pattern
    cdef DocumentTree tree
    cdef vector[vector[int32_t]] satisfied    # by step: the elements that can stand for it, ascending
    cdef vector[vector[int32_t]] children     # by step: its child steps that are no conditions
    cdef vector[vector[symbol_t]] conditions  # by step: the conditions it asks for
    cdef vector[vector[uint64_t]] ranks       # by step, made when needed: pack(parent or 0, post-order rank) of `satisfied`, ascending
    cdef vector[vector[uint64_t]] families    # by step, made when needed: pack(parent, element) of `satisfied`, ascending
    cdef vector[int32_t] marks                # by element: a mark for the function at work, which leaves all at 0
    cdef int64_t budget
    cdef int64_t left

    def __init__(self, Pattern pattern not None, DocumentTree tree not None, steps=None):
        cdef int32_t step
        self.pattern = pattern
        self.tree = tree
        self.budget = NO_LIMIT if steps is None else min(steps, NO_LIMIT)
        self.left = self.budget + STEPS_PER_ELEMENT * <int64_t>tree.symbols.size()
        self.satisfied.resize(pattern.nodes.size())
        self.children.resize(pattern.nodes.size())
        self.conditions.resize(pattern.nodes.size())
        self.ranks.resize(pattern.nodes.size())
        self.families.resize(pattern.nodes.size())
        self.marks.resize(tree.symbols.size() + 1, 0)
        for step in range(1, <int32_t>pattern.nodes.size()):
            if pattern.nodes[step].is_condition:
                self.conditions[pattern.nodes[step].parent].push_back(pattern.nodes[step].symbol)
            else:
                self.children[pattern.nodes[step].parent].push_back(step)
        with nogil:
            for step in range(<int32_t>pattern.nodes.size() - 1, -1, -1):
                if not pattern.nodes[step].is_condition:
                    self._satisfy(step)

    @property
    def steps_left(self):
        """What is left of the budget."""
        return self.left

    def matches(self):
        """Whether the document matches."""
        return self._anchored_count() > 0

    def select(self, int32_t output):
        """The numbers of the elements that the step `output` can stand for, ascending."""
        cdef vector[int32_t] spine = self._spine(output)
        cdef vector[int32_t] reached, following
        cdef size_t i
        reached.assign(self.satisfied[0].begin(), self.satisfied[0].begin() + self._anchored_count())
        with nogil:
            for i in range(1, spine.size()):
                self._charge(reached.size() + self.satisfied[spine[i]].size())
                following.clear()
                if not self._is_ordered(spine[i - 1]):
                    self._keep_below(self.satisfied[spine[i]], reached, spine[i], &following)
                elif self._is_child(spine[i]):
                    self._ordered_children(spine[i - 1], spine[i], reached, &following)
                else:
                    self._ordered_descendants(spine[i - 1], spine[i], reached, &following)
                reached.swap(following)
        return list(reached)

    def tuples(self, int32_t output):
        """Every instantiation of the path from the first step to `output`: the number of an element for each step."""
        cdef vector[int32_t] spine = self._spine(output)
        cdef vector[vector[int32_t]] options  # by step of the path: the elements that may follow the ones chosen above,
        cdef vector[size_t] chosen            # and which of them is chosen
        cdef size_t size = spine.size()
        cdef size_t at = 0
        cdef size_t i
        options.resize(size)
        chosen.assign(size, 0)
        options[0].assign(self.satisfied[0].begin(), self.satisfied[0].begin() + self._anchored_count())
        while True:
            if chosen[at] == options[at].size():
                if at == 0:
                    return
                at -= 1
                chosen[at] += 1
            elif at + 1 < size:
                options[at + 1].clear()
                chosen[at + 1] = 0
                self._continue(spine[at], options[at][chosen[at]], spine[at + 1], options[at + 1])
                at += 1
            else:
                self._charge(size)
                yield tuple([options[i][chosen[i]] for i in range(size)])
                chosen[at] += 1

    def reached(self):
        """By step: how many elements are where it wants them, and how many of those have all that it asks for below; of a
        condition, how many elements it is asked of, and for how many it holds.

        Elements that do not have it still count as reached for the steps below, so that the first step with nothing
        satisfied, from the top, says what is missing.
        """
        cdef vector[vector[int32_t]] found
        cdef vector[int32_t] named
        cdef int32_t step, parent
        found.resize(self.pattern.nodes.size())
        counts = []
        for step in range(<int32_t>self.pattern.nodes.size()):
            parent = self.pattern.nodes[step].parent
            if self.pattern.nodes[step].is_condition:
                self._charge(found[parent].size())
                counts.append((found[parent].size(), self._holding(found[parent], self.pattern.nodes[step].symbol)))
                continue
            named.clear()
            self._named(step, &named)
            if parent >= 0:
                self._charge(named.size() + found[parent].size())
                self._keep_below(named, found[parent], step, &found[step])
            elif self.pattern.nodes[step].axis != CHILD:
                found[step] = named
            elif named.size() and named[0] == 1:
                found[step].push_back(1)
            counts.append((found[step].size(), self._common(found[step], self.satisfied[step])))
        return counts

    cdef int _charge(self, size_t work) except -1 nogil:
        self.left -= <int64_t>work
        if self.left < 0:
            with gil:
                raise over_budget(self.budget)
        return 0

    # Which elements can stand for a step, bottom-up.

    cdef int _satisfy(self, int32_t step) except -1 nogil:
        cdef vector[int32_t]* found = &self.satisfied[step]
        cdef size_t i
        self._named(step, found)
        if self.conditions[step].size():
            self.tree.sort_conditions()
            self._charge(found.size() * self.conditions[step].size())
            self._keep_holding(found, step)
        for i in range(self.children[step].size()):
            self._charge(found.size() + self.satisfied[self.children[step][i]].size())
            if self._is_child(self.children[step][i]):
                self._keep_parents(found, self.satisfied[self.children[step][i]])
            else:
                self._keep_ancestors(found, self.satisfied[self.children[step][i]])
        if self._is_ordered(step):
            self._keep_ordered(found, step)
        return 0

    cdef int _named(self, int32_t step, vector[int32_t]* found) except -1 nogil:
        """Appends the elements whose name a step takes."""
        cdef symbol_t symbol = self.pattern.nodes[step].symbol
        cdef const int32_t* begin
        cdef const int32_t* end
        cdef int32_t element
        if symbol == 0:
            self._charge(self.tree.symbols.size())
            for element in range(1, <int32_t>self.tree.symbols.size() + 1):
                found.push_back(element)
        else:
            self.tree.elements_of(symbol, &begin, &end)
            self._charge(1 + (end - begin))
            found.insert(found.end(), begin, end)
        return 0

    cdef void _keep_holding(self, vector[int32_t]* elements, int32_t step) noexcept nogil:
        """Keeps the elements for which all conditions of a step hold."""
        cdef size_t kept = 0
        cdef size_t i, j
        for i in range(elements.size()):
            j = 0
            while j < self.conditions[step].size() and self.tree.holds(elements[0][i], self.conditions[step][j]):
                j += 1
            if j == self.conditions[step].size():
                elements[0][kept] = elements[0][i]
                kept += 1
        elements.resize(kept)

    cdef void _keep_parents(self, vector[int32_t]* elements, const vector[int32_t]& below) noexcept nogil:
        """Keeps the elements that have a child among those below."""
        cdef size_t kept = 0
        cdef size_t i
        for i in range(below.size()):
            self.marks[self.tree.parents[below[i] - 1]] = 1
        for i in range(elements.size()):
            if self.marks[elements[0][i]]:
                elements[0][kept] = elements[0][i]
                kept += 1
        for i in range(below.size()):
            self.marks[self.tree.parents[below[i] - 1]] = 0
        elements.resize(kept)

    cdef void _keep_ancestors(self, vector[int32_t]* elements, const vector[int32_t]& below) noexcept nogil:
        """Keeps the elements that have a descendant among those below."""
        cdef size_t kept = 0
        cdef size_t next = 0
        cdef size_t i
        for i in range(elements.size()):
            while next < below.size() and below[next] <= elements[0][i]:
                next += 1
            if next < below.size() and below[next] <= self.tree.lasts[elements[0][i] - 1]:
                elements[0][kept] = elements[0][i]
                kept += 1
        elements.resize(kept)

    cdef int _keep_below(self, const vector[int32_t]& elements, const vector[int32_t]& above, int32_t step,
                         vector[int32_t]* kept) except -1 nogil:
        """Appends those elements that have one of those above, on the axis of the step that they are to stand for."""
        cdef int32_t last = 0  # of all those above so far: where the furthest ends
        cdef size_t next = 0
        cdef size_t i
        if self._is_child(step):
            for i in range(above.size()):
                self.marks[above[i]] = 1
            for i in range(elements.size()):
                if self.marks[self.tree.parents[elements[i] - 1]]:
                    kept.push_back(elements[i])
            for i in range(above.size()):
                self.marks[above[i]] = 0
            return 0
        for i in range(elements.size()):
            while next < above.size() and above[next] < elements[i]:
                last = max(last, self.tree.lasts[above[next] - 1])
                next += 1
            if elements[i] <= last:
                kept.push_back(elements[i])
        return 0

    cdef size_t _holding(self, const vector[int32_t]& elements, symbol_t condition) except? 0:
        """For how many elements a condition holds."""
        cdef size_t count = 0
        cdef size_t i
        self.tree.sort_conditions()
        for i in range(elements.size()):
            count += self.tree.holds(elements[i], condition)
        return count

    cdef size_t _common(self, const vector[int32_t]& some, const vector[int32_t]& others) noexcept:
        """How many elements are in both of two ascending lists."""
        cdef size_t count = 0
        cdef size_t i = 0
        cdef size_t j = 0
        while i < some.size() and j < others.size():
            if some[i] == others[j]:
                count += 1
            if some[i] <= others[j]:
                i += 1
            else:
                j += 1
        return count

    # Order.

    cdef bint _is_ordered(self, int32_t step) noexcept nogil:
        return self.pattern.ordered and self.children[step].size() > 1

    cdef int _keep_ordered(self, vector[int32_t]* elements, int32_t step) except -1 nogil:
        cdef size_t kept = 0
        cdef size_t i
        self._charge(elements.size() * self.children[step].size() * 2)
        self._rank_children(step)
        for i in range(elements.size()):
            if self._earliest(step, elements[0][i], <int32_t>self.children[step].size()) >= 0:
                elements[0][kept] = elements[0][i]
                kept += 1
        elements.resize(kept)
        return 0

    cdef int _rank_children(self, int32_t step) except -1 nogil:
        """Makes `ranks` of the children of a step."""
        cdef vector[uint64_t]* ranks
        cdef int32_t child, element
        cdef size_t i, j
        for i in range(self.children[step].size()):
            child = self.children[step][i]
            ranks = &self.ranks[child]
            if ranks.size() or self.satisfied[child].empty():
                continue
            self._charge(2 * self.satisfied[child].size())
            ranks.reserve(self.satisfied[child].size())
            for j in range(self.satisfied[child].size()):
                element = self.satisfied[child][j]
                ranks.push_back(pack(self.tree.parents[element - 1] if self._is_child(child) else 0,
                                     self.tree.posts[element - 1]))
            sort(ranks.begin(), ranks.end())
        return 0

    cdef inline bint _is_child(self, int32_t step) noexcept nogil:
        return self.pattern.nodes[step].axis == CHILD

    cdef int32_t _rank_after(self, int32_t child, int32_t element, int32_t rank) noexcept nogil:
        """The first rank after `rank` of an element for `child` below `element`; -1 if there is none."""
        cdef vector[uint64_t]* ranks = &self.ranks[child]
        cdef int32_t first = self.tree.posts[element - 1] - (self.tree.lasts[element - 1] - element)
        cdef int32_t family = element if self._is_child(child) else 0
        cdef uint64_t wanted = pack(family, max(rank + 1, first))
        cdef size_t place = lower_bound(ranks.begin(), ranks.end(), wanted) - ranks.begin()
        if place == ranks.size() or <int32_t>(ranks[0][place] >> 32) != family:
            return -1
        rank = <int32_t>ranks[0][place]
        return rank if rank < self.tree.posts[element - 1] else -1

    cdef int32_t _rank_before(self, int32_t child, int32_t element, int32_t rank) noexcept nogil:
        """The last rank before `rank` of an element for `child` below `element`; -1 if there is none."""
        cdef vector[uint64_t]* ranks = &self.ranks[child]
        cdef int32_t first = self.tree.posts[element - 1] - (self.tree.lasts[element - 1] - element)
        cdef int32_t family = element if self._is_child(child) else 0
        cdef uint64_t wanted = pack(family, min(rank, self.tree.posts[element - 1]))
        cdef size_t place = lower_bound(ranks.begin(), ranks.end(), wanted) - ranks.begin()
        if place == 0 or <int32_t>(ranks[0][place - 1] >> 32) != family:
            return -1
        rank = <int32_t>ranks[0][place - 1]
        return rank if rank >= first else -1

    cdef int32_t _earliest(self, int32_t step, int32_t element, int32_t number) noexcept nogil:
        """The rank of the last of the first `number` children of a step, each taken as early as possible; -1 if they do not
        fit below the element in order."""
        cdef int32_t rank = 0
        cdef int32_t i
        for i in range(number):
            rank = self._rank_after(self.children[step][i], element, rank)
            if rank < 0:
                return -1
        return rank

    cdef int _find_window(self, int32_t step, int32_t element, int32_t child, Window* window) except -1 nogil:
        """The ranks that leave room for the other children of a step, below an element that can stand for it."""
        cdef int32_t size = <int32_t>self.children[step].size()
        cdef int32_t i = 0
        self._charge(size)
        window.before = LAST_RANK
        while self.children[step][i] != child:
            i += 1
        window.after = self._earliest(step, element, i)
        while size > i + 1:
            size -= 1
            window.before = self._rank_before(self.children[step][size], element, window.before)
        return 0

    cdef int _ordered_children(self, int32_t step, int32_t child, const vector[int32_t]& above,
                               vector[int32_t]* kept) except -1 nogil:
        """Appends the elements for `child` whose parent stands for `step`, if all other children find their places."""
        cdef vector[Window] windows
        cdef int32_t element, rank
        cdef Window* window
        cdef size_t i
        windows.resize(above.size())
        for i in range(above.size()):
            self._find_window(step, above[i], child, &windows[i])
            self.marks[above[i]] = <int32_t>i + 1
        for i in range(self.satisfied[child].size()):
            element = self.satisfied[child][i]
            if self.marks[self.tree.parents[element - 1]]:
                window = &windows[self.marks[self.tree.parents[element - 1]] - 1]
                rank = self.tree.posts[element - 1]
                if window.after < rank < window.before:
                    kept.push_back(element)
        for i in range(above.size()):
            self.marks[above[i]] = 0
        return 0

    cdef int _ordered_descendants(self, int32_t step, int32_t child, const vector[int32_t]& above,
                                  vector[int32_t]* kept) except -1 nogil:
        """The same for descendants. An ancestor allows a range of ranks; those that some ancestor allows are kept."""
        cdef vector[uint64_t] ranges   # pack(first allowed rank, first not allowed)
        cdef vector[uint64_t] ranked   # pack(rank, element)
        cdef Window window
        cdef int32_t element, rank, first
        cdef int32_t end = 0
        cdef size_t next = 0
        cdef size_t i
        for i in range(above.size()):
            self._find_window(step, above[i], child, &window)
            rank = self.tree.posts[above[i] - 1]
            first = rank - (self.tree.lasts[above[i] - 1] - above[i])
            ranges.push_back(pack(max(first, window.after + 1), min(rank, window.before)))
        for i in range(self.satisfied[child].size()):
            element = self.satisfied[child][i]
            ranked.push_back(pack(self.tree.posts[element - 1], element))
        sort(ranges.begin(), ranges.end())
        sort(ranked.begin(), ranked.end())
        for i in range(ranked.size()):
            rank = <int32_t>(ranked[i] >> 32)
            while next < ranges.size() and <int32_t>(ranges[next] >> 32) <= rank:
                end = max(end, <int32_t>ranges[next])
                next += 1
            if rank < end:
                kept.push_back(<int32_t>ranked[i])
        sort(kept.begin(), kept.end())
        return 0

    # Tuples.

    cdef int _continue(self, int32_t step, int32_t element, int32_t child, vector[int32_t]& following) except -1:
        """Appends the elements for `child`, given that `element` stands for its parent `step`."""
        cdef vector[int32_t]* found = &self.satisfied[child]
        cdef vector[uint64_t]* family = &self.families[child]
        cdef Window window = Window(0, LAST_RANK)
        cdef size_t i, j
        cdef int32_t other
        if self._is_ordered(step):
            self._find_window(step, element, child, &window)
        if self._is_child(child):
            if family.empty():
                for i in range(found.size()):
                    family.push_back(pack(self.tree.parents[found[0][i] - 1], found[0][i]))
                sort(family.begin(), family.end())
            i = lower_bound(family.begin(), family.end(), pack(element, 0)) - family.begin()
            while i < family.size() and <int32_t>(family[0][i] >> 32) == element:
                self._take(<int32_t>family[0][i], window, following)
                i += 1
        else:
            i = lower_bound(found.begin(), found.end(), element + 1) - found.begin()
            while i < found.size() and found[0][i] <= self.tree.lasts[element - 1]:
                self._take(found[0][i], window, following)
                i += 1
        return 0

    cdef inline int _take(self, int32_t element, Window window, vector[int32_t]& following) except -1:
        self._charge(1)
        if window.after < self.tree.posts[element - 1] < window.before:
            following.push_back(element)
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
