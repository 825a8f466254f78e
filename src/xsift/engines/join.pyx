"""TwigJoin: which twigs match, given where their paths did. One for each thread that matches.

While a document is read, the join does no more than to note *hits*: which paths matched, and at which elements. At the
end it looks at the twigs all of whose paths did; each is listed under one of its paths (branches.pyx), and passed over as
soon as another one has not matched. What is left, the candidates, is evaluated from the leaves up: which elements can stand
for a branching step, as seen from each of the paths and branches below it, and which of them are the same. What was found
for an ascent or a branch holds for all twigs that have it, and is kept until the document ends; of a twig's outermost branch it
is enough to know that there is some element. Twigs have no constraint across branches other than the shared element, so this
is exact.

Its work is mostly to fetch memory: so a candidate's is asked for ahead, and a set tells its last element without being
looked at, which is enough if it is the last of the others, too.

Memory. A hit takes 8 bytes, an element 12. After `note_limit` of them, those that closed elements alone can need are given
up: the twigs are evaluated, and of each ascent only those open elements are kept that it had reached. So memory is bounded,
however long the document.
"""

from libcpp.algorithm cimport sort, unique
from libcpp.vector cimport vector

from xsift.engines.branches cimport LEVEL, ROOT, SEARCH, Watch
from xsift.xpath.pattern cimport DESCENDANT
from xsift.xpath.symbols cimport ANY

cdef extern from "<functional>" namespace "std" nogil:
    cdef cppclass greater[T]:
        greater()

cdef extern from *:
    void prefetch "__builtin_prefetch"(const void* address) nogil

cdef enum:
    THE_ROOT = 1
    LARGEST_POOL = 1 << 22  # elements in sets that are kept from one twig to the next
    AHEAD = 8               # candidates whose memory is asked for in advance


cdef class TwigJoin:
    """Hits of paths, and what follows from them."""

    def __cinit__(self, BranchIndex index not None):
        self.index = index

    cdef int begin(self, size_t paths, int64_t note_limit) except -1 nogil:
        cdef size_t i
        self.forget_hits()
        for i in range(self.hit_paths.size()):
            self.is_hit[self.hit_paths[i] >> 6] = 0
        self.hit_paths.clear()
        self.last_hit.resize(paths, -1)
        self.is_hit.resize((paths >> 6) + 1, 0)
        self.elements.assign(1, OpenedElement(0, 0, ANY))
        self.innermost = 0
        self.note_limit = note_limit
        self.most_notes = note_limit
        self.carried.clear()
        self.reached.resize(self.index.ascents.size())
        self.satisfied.resize(self.index.branch_place.size())
        return 0

    cdef int forget_sets(self) except -1 nogil:
        self.pool.clear()
        self.version += 1
        if self.version == 0:  # wrapped: old versions must not look like new ones
            self.reached.assign(self.reached.size(), Elements(0, 0, 0, 0))
            self.satisfied.assign(self.satisfied.size(), Elements(0, 0, 0, 0))
            self.version = 1
        return 0

    cdef int64_t bytes(self) noexcept:
        cdef int64_t total = 4 * (self.last_hit.capacity() + self.hit_paths.capacity() + self.pool.capacity())
        cdef size_t i
        for i in range(self.carried.size()):
            total += sizeof(vector[int32_t]) + 4 * self.carried[i].capacity()
        return (total + 8 * (self.matched.capacity() + self.is_hit.capacity())
                + self.elements.capacity() * sizeof(OpenedElement) + self.hits.capacity() * sizeof(Hit)
                + self.candidates.capacity() * sizeof(Candidate)
                + (self.reached.capacity() + self.satisfied.capacity()) * sizeof(Elements))

    # Candidates.

    cdef int evaluate(self) except -1 nogil:
        self.list_candidates()
        return self.evaluate_candidates()

    cdef int list_candidates(self) except -1 nogil:
        """Finds the twigs all of whose paths have matched."""
        cdef const Watch* watch
        cdef const Watch* end
        cdef int32_t path
        cdef size_t i
        self.candidates.clear()
        for i in range(self.hit_paths.size()):
            path = self.hit_paths[i]
            if <size_t>path >= self.index.watches.size():
                continue
            watch = self.index.watches.data(path)
            end = watch + self.index.watches.count(path)
            while watch != end:
                if (watch.other < 0 or self.has_hit(watch.other)) and (
                        watch.third < 0 or self.has_hit(watch.third)) and (
                        not watch.more or self.all_hit(watch.key)):
                    self.candidates.push_back(Candidate(watch.key, watch.place))
                watch += 1
        return 0

    cdef bint all_hit(self, int32_t key) noexcept nogil:
        cdef int32_t i
        for i in range(self.index.twig_paths.count(key)):
            if not self.has_hit(self.index.twig_paths.data(key)[i]):
                return False
        return True

    cdef int evaluate_candidates(self) except -1 nogil:
        cdef const int32_t* branches = self.index.branch_ascents.data()
        cdef const int32_t* branch
        cdef size_t number = self.candidates.size()
        cdef Candidate at
        cdef size_t i
        self.evaluated += number
        for i in range(number):
            at = self.candidates[i]
            if i + 2 * AHEAD < number:
                prefetch(branches + self.candidates[i + 2 * AHEAD].place)
                branch = branches + self.candidates[i + AHEAD].place
                prefetch(&self.reached[branch[1]])
                prefetch(&self.reached[branch[branch[0]]])
            if self.has_witness(branches + at.place):
                self.mark(at.key)
            if self.pool.size() > LARGEST_POOL:
                self.forget_sets()
        return 0

    # Branches. A branch is given by its place in branch_ascents: the number of its ascents, then they.

    cdef bint has_witness(self, const int32_t* branch) except -1 nogil:
        """Whether some element satisfies a branch."""
        cdef bint have_same_last = True
        cdef int32_t i
        for i in range(1, branch[0] + 1):
            self.reach(branch[i])
            if self.reached[branch[i]].number == 0:
                return False
            have_same_last &= self.reached[branch[i]].last == self.reached[branch[1]].last
        if have_same_last:
            return True
        if branch[0] == 2:
            return self.is_common(&self.reached[branch[1]], &self.reached[branch[2]])
        self.intersect(branch)
        return self.common.number > 0

    cdef bint is_common(self, const Elements* one, const Elements* other) noexcept nogil:
        """Whether two sets have an element in common."""
        cdef const int32_t* i = self.pool.data() + one.place
        cdef const int32_t* j = self.pool.data() + other.place
        cdef const int32_t* end_i = i + one.number
        cdef const int32_t* end_j = j + other.number
        while i != end_i and j != end_j:
            if i[0] == j[0]:
                return True
            if i[0] > j[0]:
                i += 1
            else:
                j += 1
        return False

    cdef int satisfy(self, int32_t branch) except -1 nogil:
        """Finds the elements that satisfy a branch, given by its number."""
        if self.satisfied[branch].version != self.version:
            self.intersect(&self.index.branch_ascents[self.index.branch_place[branch]])
            self.satisfied[branch] = self.common
        return 0

    cdef int intersect(self, const int32_t* branch) except -1 nogil:
        """Finds the elements that all ascents of a branch reach."""
        cdef Elements common
        cdef int32_t i
        self.reach(branch[1])
        common = self.reached[branch[1]]
        for i in range(2, branch[0] + 1):
            if common.number == 0:
                break
            self.reach(branch[i])  # which may need intersect() itself
            self.common = common
            self.intersect_with(&self.reached[branch[i]])
            common = self.common
        self.common = common
        return 0

    cdef int intersect_with(self, const Elements* other) except -1 nogil:
        """Replaces `common` by those of its elements that are in another set, too."""
        cdef int32_t place = <int32_t>self.pool.size()
        cdef int32_t i = self.common.place
        cdef int32_t j = other.place
        cdef int32_t end_i = i + self.common.number
        cdef int32_t end_j = j + other.number
        while i < end_i and j < end_j:
            if self.pool[i] > self.pool[j]:
                i += 1
            elif self.pool[i] < self.pool[j]:
                j += 1
            else:
                self.pool.push_back(self.pool[i])
                i += 1
                j += 1
        self.common = self.set_at(place)
        return 0

    # Ascents.

    cdef int ascend(self, int32_t ascent) except -1 nogil:
        """Finds the elements that an ascent reaches."""
        cdef const Ascent* at = &self.index.ascents[ascent]
        cdef int32_t place
        if at.source < 0:
            self.satisfy(~at.source)  # which writes to the pool
        place = <int32_t>self.pool.size()
        if at.way == ROOT:
            if self.has_start(at):
                self.pool.push_back(THE_ROOT)
        else:
            self.start(at)
            if at.way == SEARCH:
                self.search(at, place)
            elif at.distance:
                self.climb(at, place)
        if self.carried.size():
            self.pool.insert(self.pool.end(), self.carried[ascent].begin(), self.carried[ascent].end())
        self.put_in_order(place)
        self.reached[ascent] = self.set_at(place)
        return 0

    cdef bint has_start(self, const Ascent* ascent) noexcept nogil:
        if ascent.source < 0:
            return self.satisfied[~ascent.source].number > 0
        return self.has_hit(ascent.source)

    cdef int start(self, const Ascent* ascent) except -1 nogil:
        """Puts the elements where an ascent starts into the pool."""
        cdef Elements below
        cdef int32_t hit, i
        if ascent.source < 0:
            below = self.satisfied[~ascent.source]
            for i in range(below.place, below.place + below.number):
                self.pool.push_back(self.pool[i])
        else:
            hit = self.last_hit[ascent.source]
            while hit >= 0:
                self.pool.push_back(self.hits[hit].element)
                hit = self.hits[hit].previous
        return 0

    cdef int put_in_order(self, int32_t place) except -1 nogil:
        """Makes what is in the pool from a place on a set: descending, and each element once."""
        cdef int32_t* begin = self.pool.data() + place
        cdef int32_t* end = self.pool.data() + self.pool.size()
        cdef int32_t* at = begin + 1
        while at < end and at[-1] > at[0]:
            at += 1
        if at < end:
            sort(begin, end, greater[int32_t]())
            self.pool.resize(place + (unique(begin, end) - begin))
        return 0

    cdef int climb(self, const Ascent* ascent, int32_t place) except -1 nogil:
        """Replaces the elements in the pool, from a place on, by the ancestors of theirs to which the ascent leads."""
        cdef const OpenedElement* elements = self.elements.data()
        cdef int32_t* to = self.pool.data() + place
        cdef int32_t* at = to
        cdef int32_t* end = self.pool.data() + self.pool.size()
        cdef int32_t parent = -1
        cdef int32_t element, i
        while at < end:
            element = elements[at[0]].parent
            at += 1
            if element == parent:
                continue  # siblings have the same ancestors
            parent = element
            if ascent.way == LEVEL:
                while elements[element].level > ascent.step:
                    element = elements[element].parent
            else:
                for i in range(1, ascent.distance):
                    element = elements[element].parent
            to[0] = element
            to += 1
        self.pool.resize(to - self.pool.data())
        return 0

    cdef int search(self, const Ascent* ascent, int32_t place) except -1 nogil:
        """As climb(), where several ancestors may be meant."""
        cdef int32_t end = <int32_t>self.pool.size()
        cdef int32_t parent = -1
        cdef int32_t i
        for i in range(place, end):
            if self.elements[self.pool[i]].parent != parent:
                parent = self.elements[self.pool[i]].parent
                self.search_above(ascent, self.pool[i])
        self.pool.erase(self.pool.begin() + place, self.pool.begin() + end)
        return 0

    cdef int search_above(self, const Ascent* ascent, int32_t element) except -1 nogil:
        """Adds the ancestors of an element that can stand for the step where the ascent ends.

        They are those to which the steps below lead up from the element, and the steps above lead down from the root.
        """
        cdef const SearchStep* steps = &self.index.search_steps[ascent.steps]
        cdef int32_t level = self.elements[element].level
        cdef int32_t step
        cdef size_t i
        cdef size_t j = 0
        self.chain.resize(level + 1)
        self.levels.assign(1, level)
        while level >= 0:
            self.chain[level] = element
            element = self.elements[element].parent
            level -= 1
        for step in range(ascent.step + ascent.distance - 1, ascent.step - 1, -1):
            self.go_up(steps + step)
        if self.levels.empty():
            return 0
        self.levels_below.swap(self.levels)
        self.levels.assign(1, 0)
        for step in range(ascent.step):
            self.go_down(steps + step, self.levels_below.back())
        for i in range(self.levels.size()):
            while self.levels_below[j] < self.levels[i]:
                j += 1
            if self.levels_below[j] == self.levels[i]:
                self.pool.push_back(self.chain[self.levels[i]])
        return 0

    cdef int go_up(self, const SearchStep* step) except -1 nogil:
        """Turns `levels`, where a step can be, into those where the step before it can be."""
        cdef symbol_t wanted = step[-1].symbol
        cdef int32_t level
        cdef size_t i
        self.new_levels.clear()
        if self.levels.empty():
            return 0
        if step.axis == DESCENDANT:
            for level in range(1, self.levels.back()):
                if wanted == ANY or self.elements[self.chain[level]].symbol == wanted:
                    self.new_levels.push_back(level)
        else:
            for i in range(self.levels.size()):
                level = self.levels[i] - 1
                if level > 0 and (wanted == ANY or self.elements[self.chain[level]].symbol == wanted):
                    self.new_levels.push_back(level)
        self.levels.swap(self.new_levels)
        return 0

    cdef int go_down(self, const SearchStep* step, int32_t deepest) except -1 nogil:
        """Turns `levels`, where the step before it can be, into those where a step can be."""
        cdef int32_t level
        cdef size_t i
        self.new_levels.clear()
        if self.levels.empty():
            return 0
        if step.axis == DESCENDANT:
            for level in range(self.levels.front() + 1, deepest + 1):
                if step.symbol == ANY or self.elements[self.chain[level]].symbol == step.symbol:
                    self.new_levels.push_back(level)
        else:
            for i in range(self.levels.size()):
                level = self.levels[i] + 1
                if level <= deepest and (step.symbol == ANY or self.elements[self.chain[level]].symbol == step.symbol):
                    self.new_levels.push_back(level)
        self.levels.swap(self.new_levels)
        return 0

    # Too many notes.

    cdef int give_up_notes(self) except -1 nogil:
        """Evaluates the twigs, keeps what open elements may still need, and forgets the rest.

        From then on the open elements are numbered by their levels.
        """
        cdef vector[OpenedElement] open_elements
        cdef vector[int32_t] open_at  # by level
        cdef vector[int32_t] kept
        cdef Elements reached
        cdef int32_t element, ascent, level, i
        self.evaluate()
        self.forget_sets()
        open_at.resize(self.elements[self.innermost].level + 1)
        element = self.innermost
        while element:
            open_at[self.elements[element].level] = element
            element = self.elements[element].parent
        for level in range(<int32_t>open_at.size()):
            open_elements.push_back(OpenedElement(max(0, level - 1), level, self.elements[open_at[level]].symbol))
        self.carried.resize(self.index.ascents.size())
        for ascent in range(<int32_t>self.index.ascents.size()):
            self.reach(ascent)
            reached = self.reached[ascent]
            kept.clear()
            for i in range(reached.place, reached.place + reached.number):
                level = self.elements[self.pool[i]].level
                if <size_t>level < open_at.size() and open_at[level] == self.pool[i]:
                    kept.push_back(level)
            self.carried[ascent] = kept
        self.elements.swap(open_elements)
        self.innermost = <int32_t>self.elements.size() - 1
        self.most_notes = self.note_limit + self.elements.size()
        return self.forget_hits()

    cdef int forget_hits(self) except -1 nogil:
        cdef size_t i
        self.hits.clear()
        for i in range(self.hit_paths.size()):
            self.last_hit[self.hit_paths[i]] = -1
        return self.forget_sets()
