"""IFiSTRefinement: refinement by branch node verification as a phase of its own (section 4.3.3, Algorithm 4).

The paper looks at BranchID sets when a profile's sequence has been found to its end: for each branch node, the sets of all
its occurrences must have an element in common. engine.pyx says why that alone is wrong; `IFiSTRun` therefore verifies
branch nodes while their elements are open, and needs no second phase. Here is the paper's way, made exact, for those who want
to measure it (refinement="afterwards"):

- the BranchID set of a segment keeps, for the whole document, each element of the branch node together with the element that
  stands for the child below it, and the elements of the document are kept with their parents and the clock of their end tags;
- when the document has ended, the branch nodes of each profile that was reached are taken from the innermost to the
  outermost: the elements where all its children are (in order, where that counts) go up the steps between to elements of
  the next branch node.

So what a document needs grows with the document, as in the paper.
"""

from libcpp.algorithm cimport sort, unique
from libcpp.vector cimport vector

from xsift.engines.ifist.sequences cimport SYM_CHILD
from xsift.xpath.symbols cimport ANY


cdef bint pair_before(const BranchPair& one, const BranchPair& other) noexcept nogil:
    return one.branch < other.branch or (one.branch == other.branch and one.child < other.child)


cdef int sort_numbers(vector[int64_t]* numbers) except -1 nogil:
    sort(numbers.begin(), numbers.end())
    numbers.erase(unique(numbers.begin(), numbers.end()), numbers.end())
    return 0


cdef class IFiSTRefinement(IFiSTIndex):
    """The second phase of filtering, after the document."""

    cdef int keep_pair(self, IFiSTScratch scratch, int32_t segment, int32_t branch, int32_t child) except -1 nogil:
        """Keeps a BranchID: the levels of open elements; child 0 where no order counts."""
        scratch.touch_segment(segment)
        scratch.pairs[segment].push_back(BranchPair(
            scratch.stack[branch - 1].number, scratch.stack[child - 1].number if child else 0))
        return 0

    cdef bint is_reached(self, IFiSTScratch scratch, int32_t key) noexcept nogil:
        """Whether the document has all segments of a profile."""
        cdef int32_t first = self.profiles[key].first_place
        cdef int32_t i
        for i in range(first, first + self.profiles[key].place_count):
            if not scratch.has_seen(self.places[i].segment):
                return False
        return True

    cdef bint refine(self, IFiSTScratch scratch, int32_t key) except -1 nogil:
        """Algorithm 4, made exact: whether the profile has a match."""
        cdef int32_t first = self.profiles[key].first_unit
        cdef int32_t number
        cdef const Unit* unit
        cdef size_t i
        cdef vector[vector[BranchPair]] ways  # by unit of the profile: its BranchID set at its parent's branch node
        cdef vector[int64_t] found
        ways.resize(self.profiles[key].unit_count)
        for number in range(first + self.profiles[key].unit_count - 1, first - 1, -1):
            unit = &self.units[number]
            found.clear()
            self.satisfied_elements(scratch, key, number, ways, &found)
            for i in range(found.size()):
                self.way_up(scratch, unit, found[i], &ways[number - first])
            if ways[number - first].empty():
                return False
        return True

    cdef int satisfied_elements(self, IFiSTScratch scratch, int32_t key, int32_t number,
                                const vector[vector[BranchPair]]& ways, vector[int64_t]* found) except -1 nogil:
        """The elements of a branch node below which all its children are satisfied, in order where that counts."""
        cdef const Unit* unit = &self.units[number]
        cdef int32_t first_unit = self.profiles[key].first_unit
        cdef int32_t first_place = self.profiles[key].first_place
        cdef vector[vector[int64_t]] loose
        cdef vector[vector[BranchPair]] ordered
        cdef const vector[BranchPair]* pairs
        cdef int32_t order, i
        cdef size_t j
        cdef bint fits
        ordered.resize(unit.ordered)
        for i in range(self.profiles[key].place_count + self.profiles[key].unit_count):
            if i < self.profiles[key].place_count:
                if self.places[first_place + i].unit != number:
                    continue
                order = self.places[first_place + i].order
                pairs = &scratch.pairs[self.places[first_place + i].segment]
            else:
                if self.units[first_unit + i - self.profiles[key].place_count].parent != number:
                    continue
                order = self.units[first_unit + i - self.profiles[key].place_count].order
                pairs = &ways[i - self.profiles[key].place_count]
            if order >= 0:
                ordered[order] = pairs[0]
                sort(ordered[order].begin(), ordered[order].end(), pair_before)
                continue
            loose.resize(loose.size() + 1)
            for j in range(pairs.size()):
                loose.back().push_back(pairs[0][j].branch)
            sort_numbers(&loose.back())
        if loose.size():
            found.assign(loose[0].begin(), loose[0].end())
        else:
            for j in range(ordered[0].size()):
                found.push_back(ordered[0][j].branch)
            sort_numbers(found)
        cdef size_t kept = 0
        for j in range(found.size()):
            fits = True
            for i in range(1, <int32_t>loose.size()):
                fits = fits and has_number(loose[i], found[0][j])
            if fits and (unit.ordered == 0 or in_order(scratch, ordered, found[0][j])):
                found[0][kept] = found[0][j]
                kept += 1
        found.resize(kept)
        return 0

    cdef int way_up(self, IFiSTScratch scratch, const Unit* unit, int64_t number,
                    vector[BranchPair]* way) except -1 nogil:
        """From an element of a branch node to those of the next branch node above, or to the profile's root."""
        cdef const SegmentStep* steps = self.table[unit.segment].segment.steps.data()
        cdef vector[int64_t] numbers
        cdef vector[int64_t] children
        cdef int32_t i
        cdef size_t j, k
        numbers.push_back(number)
        for i in range(unit.at + 1, unit.until + 1):
            if i - 1 == unit.child and unit.order >= 0:
                break
            self.climb_kept(scratch, &steps[i], &numbers)
        if unit.parent < 0:
            for j in range(numbers.size()):
                if not steps[unit.until].sym & SYM_CHILD or scratch.elements[numbers[j] - 1].parent == 0:
                    way.push_back(BranchPair(numbers[j], 0))
            return 0
        if unit.order < 0:
            for j in range(numbers.size()):
                way.push_back(BranchPair(numbers[j], 0))
            return 0
        children.swap(numbers)
        for j in range(children.size()):
            numbers.assign(1, children[j])
            self.climb_kept(scratch, &steps[unit.until], &numbers)
            for k in range(numbers.size()):
                way.push_back(BranchPair(numbers[k], children[j]))
        return 0

    cdef int climb_kept(self, IFiSTScratch scratch, const SegmentStep* step, vector[int64_t]* numbers) except -1 nogil:
        """TestPC, TestAD on elements that were kept: those of a step become those where the next step can be."""
        cdef vector[int64_t] above
        cdef int64_t number
        cdef int32_t distance
        cdef size_t i
        for i in range(numbers.size()):
            number = numbers[0][i]
            distance = 0
            while number and (distance < step.distance or step.at_least):
                number = scratch.elements[number - 1].parent
                distance += 1
                if number and distance >= step.distance and self.may_stand(scratch, step, number):
                    above.push_back(number)
        sort_numbers(&above)
        numbers.swap(above)
        return 0

    cdef bint may_stand(self, IFiSTScratch scratch, const SegmentStep* step, int64_t number) noexcept nogil:
        cdef int32_t level = 0
        if step.symbol != ANY:
            return scratch.elements[number - 1].symbol == step.symbol
        while number and level < step.lowest:
            number = scratch.elements[number - 1].parent
            level += 1
        return level >= step.lowest


cdef bint has_number(const vector[int64_t]& numbers, int64_t number) noexcept nogil:
    cdef size_t low = 0
    cdef size_t high = numbers.size()
    cdef size_t middle
    while low < high:
        middle = (low + high) // 2
        if numbers[middle] < number:
            low = middle + 1
        else:
            high = middle
    return low < numbers.size() and numbers[low] == number


cdef size_t first_of(const vector[BranchPair]& pairs, int64_t branch) noexcept nogil:
    """Where the pairs of an element begin, in sorted pairs."""
    cdef size_t low = 0
    cdef size_t high = pairs.size()
    cdef size_t middle
    while low < high:
        middle = (low + high) // 2
        if pairs[middle].branch < branch:
            low = middle + 1
        else:
            high = middle
    return low


cdef bint in_order(IFiSTScratch scratch, const vector[vector[BranchPair]]& ordered, int64_t branch) noexcept nogil:
    """Whether each ordered child has an element below `branch` that ends later than the one before it does.

    The earliest each time: whatever a later one would allow, that allows too.
    """
    cdef int64_t clock = 0
    cdef int64_t earliest, ended
    cdef size_t order, i
    for order in range(ordered.size()):
        earliest = 0
        i = first_of(ordered[order], branch)
        while i < ordered[order].size() and ordered[order][i].branch == branch:
            if ordered[order][i].child:
                ended = scratch.elements[ordered[order][i].child - 1].ended
                if ended > clock and (earliest == 0 or ended < earliest):
                    earliest = ended
            i += 1
        if earliest == 0:
            return False
        clock = earliest
    return True
