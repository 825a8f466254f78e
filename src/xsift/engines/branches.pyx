"""BranchIndex: how the paths of each twig hang together, for the join of their matches (join.pyx).

A twig's branching steps are *branches*. Into a branch lead *ascents*: each climbs from the elements where a path ends, or
from those that satisfy a branch further down, to the elements above them that can stand for the branching step. The elements
that all its ascents reach satisfy the branch, and all that is below it; a twig matches if its outermost branch has one.

    /a[b]//c[d][@e]/f     branch 1 at c: ascents from /a//c/d, /a//c/@e, /a//c/f
                          branch 2 at a: ascents from /a/b, and from branch 1

Ascents and branches are the same for all twigs that have them: an ascent is its source and the step where it ends, a
branch is its ascents. So the join works each of them out at most once for a document.

Each twig is *watched* at one of its paths, the rarest: it is looked at when that path matches, and then only if its other
paths have matched, too. A counter for each twig, moved by each of its paths, was five to fifteen times the work.
"""

from libcpp.algorithm cimport sort, unique
from libcpp.pair cimport pair
from libcpp.vector cimport vector

from xsift.native.tables cimport pack
from xsift.xpath.pattern cimport DESCENDANT, Pattern
from xsift.xpath.symbols cimport ANY

cdef enum:
    MOST_NAMES = 1 << 20  # more than any path has steps


cdef class BranchIndex:
    """The branches of all twigs, and where to find the twigs of which a path is part."""

    cdef int add(self, int32_t key, Pattern pattern, vector[int32_t]& leaf_paths) except -1:
        cdef vector[int32_t] sources  # by step: the path or branch from which it is reached ...
        cdef vector[int32_t] starts   # ... and the step where that path ends, or that is that branch
        cdef vector[int32_t] ascents
        cdef int32_t step, child
        sources = leaf_paths
        starts.resize(pattern.nodes.size())
        for step in range(<int32_t>pattern.nodes.size() - 1, -1, -1):  # children come after their parents
            child = pattern.nodes[step].first_child
            starts[step] = step
            if child >= 0 and pattern.nodes[child].next_sibling < 0:
                sources[step] = sources[child]
                starts[step] = starts[child]
            elif child >= 0:
                ascents.clear()
                while child >= 0:
                    ascents.push_back(self._ascent(pattern, starts[child], sources[child], step))
                    child = pattern.nodes[child].next_sibling
                sources[step] = ~self._branch(ascents)
        while self.watch_number.size() <= <size_t>key:
            self.watch_number.push_back(-1)
            self.twig_paths.add_list()
        self._list_paths(key, pattern, leaf_paths)
        return self._watch(key, ~sources[0])

    cdef int remove(self, int32_t key) except -1:
        cdef int32_t path = self.twig_paths.data(key)[0]
        cdef int32_t number = self.watch_number[key]
        self.watches.erase(path, number)
        if number < self.watches.count(path):  # the last one took its place
            self.watch_number[self.watches.data(path)[number].key] = number
        while self.twig_paths.count(key):
            self.twig_paths.erase(key, self.twig_paths.count(key) - 1)
        return 0

    cdef int32_t _ascent(self, Pattern pattern, int32_t start, int32_t source, int32_t end) except -1:
        """The ascent from a source, which stands at the step `start` of the pattern, to the step `end`."""
        cdef Ascent made = Ascent(source, 0, 0, PARENTS, -1)
        cdef bint descends_below = False
        cdef bint descends_above = False
        cdef int32_t number
        cdef int32_t step = start
        while step != end:
            descends_below |= pattern.nodes[step].axis == DESCENDANT
            made.distance += not pattern.nodes[step].is_condition  # that holds for the element itself
            step = pattern.nodes[step].parent
        while step >= 0:
            descends_above |= pattern.nodes[step].axis == DESCENDANT
            made.step += 1
            step = pattern.nodes[step].parent
        number = self.ascent_numbers.get(pack(source, made.step), -1)
        if number >= 0:
            return number
        if made.step == 1 and not descends_above:
            made.way = ROOT
        elif descends_below and descends_above:
            made.way = SEARCH
            made.steps = self._search_steps(pattern, start)
        elif descends_below:
            made.way = LEVEL
        number = <int32_t>self.ascents.size()
        self.ascents.push_back(made)
        self.ascent_numbers.put(pack(source, made.step), number)
        return number

    cdef int32_t _search_steps(self, Pattern pattern, int32_t start) except -1:
        """Writes down the steps from the first to `start`."""
        cdef vector[int32_t] upwards
        cdef int32_t first = <int32_t>self.search_steps.size()
        while start >= 0:
            upwards.push_back(start)
            start = pattern.nodes[start].parent
        while upwards.size():
            self.search_steps.push_back(SearchStep(pattern.nodes[upwards.back()].symbol, pattern.nodes[upwards.back()].axis))
            upwards.pop_back()
        return first

    cdef int32_t _branch(self, vector[int32_t]& ascents) except -1:
        """The branch into which these ascents lead; those that start at paths come first, since they cost less."""
        cdef vector[int32_t] in_order
        cdef int32_t number, ascent
        sort(ascents.begin(), ascents.end())
        for ascent in ascents:
            if self.ascents[ascent].source >= 0:
                in_order.push_back(ascent)
        for ascent in ascents:
            if self.ascents[ascent].source < 0:
                in_order.push_back(ascent)
        number = self.branch_keys.add(<const char*>in_order.data(), in_order.size() * sizeof(int32_t))
        if number == <int32_t>self.branch_place.size():
            self.branch_place.push_back(<int32_t>self.branch_ascents.size())
            self.branch_ascents.push_back(<int32_t>in_order.size())
            self.branch_ascents.insert(self.branch_ascents.end(), in_order.begin(), in_order.end())
        return number

    cdef int _list_paths(self, int32_t key, Pattern pattern, vector[int32_t]& leaf_paths) except -1:
        """Lists the twig's paths, each once, the rarest first."""
        cdef vector[pair[int64_t, int32_t]] ranked
        cdef int32_t step
        cdef size_t i
        for step in range(<int32_t>leaf_paths.size()):
            if leaf_paths[step] >= 0:
                ranked.push_back(pair[int64_t, int32_t](-self._rarity(pattern, step, leaf_paths[step]), leaf_paths[step]))
        sort(ranked.begin(), ranked.end())
        ranked.erase(unique(ranked.begin(), ranked.end()), ranked.end())
        self.twig_paths.reserve(key, <int32_t>ranked.size())
        for i in range(ranked.size()):
            self.twig_paths.push(key, ranked[i].second)
        return 0

    cdef int64_t _rarity(self, Pattern pattern, int32_t leaf, int32_t path) except -1:
        """Larger for a path that is expected to match less often.

        A condition is the best sign of it; then the number of names, far better than how many steps there are, or twigs
        with the path. Of equals the one that has fewer twigs to look at.
        """
        cdef int64_t rarity = MOST_NAMES if pattern.nodes[leaf].is_condition else 0
        while leaf >= 0:
            rarity += pattern.nodes[leaf].symbol != ANY
            leaf = pattern.nodes[leaf].parent
        while self.watches.size() <= <size_t>path:
            self.watches.add_list()
        return (rarity + 1 << 32) - self.watches.count(path)

    cdef int _watch(self, int32_t key, int32_t branch) except -1:
        cdef const int32_t* paths = self.twig_paths.data(key)
        cdef int32_t number = self.twig_paths.count(key)
        self.watch_number[key] = self.watches.count(paths[0])
        self.watches.push(paths[0], Watch(key, paths[1] if number > 1 else -1, paths[2] if number > 2 else -1,
                                          number > 3, self.branch_place[branch]))
        return 0

    cdef int64_t bytes(self) noexcept:
        return (self.ascent_numbers.bytes() + self.ascents.capacity() * sizeof(Ascent)
                + self.search_steps.capacity() * sizeof(SearchStep) + self.branch_keys.bytes()
                + self.twig_paths.bytes() + self.watches.bytes() + 4 * (
                    self.branch_place.capacity() + self.branch_ascents.capacity() + self.watch_number.capacity()))
