"""Filtering: how `bfilter` reads a document. bfilter.pyx explains the paper, bfilter_index.pyx the index.

Start tags run the automaton forwards. An entry of the Runtime Stack remembers the entry it came from, so a branch whose end is reached
finds its branch point by climbing, not by comparing names, and a branch point's instance at an element *is* its entry there: what
it holds can never be mixed up with another open instance of the same branch point, and is gone when its element is closed.

End tags match branch points backwards: of the instances at the element, those that have candidates are looked at, and a sub-query all of whose
branches are candidates is matched; which makes the branch that leads to it a candidate of the branch point above, or decides a query.

The state of a `//` is active for everything below, so it is kept once, with the chain of entries it set out from. A chain that is reached from
further in contains those reached from further out: of several `//` on one branch only the outermost has to be followed to all its origins.
"""

cimport cython
from libcpp.vector cimport vector

from xsift.document.events cimport END, condition_symbol
from xsift.engines.base cimport Scratch
from xsift.engines.bfilter_index cimport (
    NONE, STAR_BIT, Branch, Mark, Posting, QueryIndexTree, State, SubQuery, name_bit,
)
from xsift.native.tables cimport pack

from xsift.errors import EngineError

cdef enum Counter:
    STATES_VISITED
    STATES_ENTERED
    CANDIDATES_SAVED
    BRANCH_POINTS_MATCHED
    BRANCH_POINTS_UNMATCHED
    SUB_QUERIES_CHECKED
    SUB_QUERIES_MATCHED

COUNTER_NAMES = (
    "states visited", "states entered", "candidates saved", "branch points matched", "branch points unmatched",
    "sub-queries checked", "sub-queries matched",
)


cdef class BFilterScratch(Scratch):
    """The three stacks, the Runtime Stack, and the candidates."""

    def __cinit__(self):
        self.free_instance = NONE


cdef class Filtering(Engine):
    """Runs the index over a document."""

    def __cinit__(self, *args, **options):
        self.index = QueryIndexTree()

    cdef Scratch new_scratch(self):
        return BFilterScratch()

    cdef int begin(self, Scratch scratch) except -1 nogil:
        return self.begin_run(<BFilterScratch>scratch)

    @cython.final
    cdef int begin_run(self, BFilterScratch scratch) except -1 nogil:
        while scratch.open.size():  # left over from a document that broke off
            self.pop_element(scratch)
        scratch.version = self.version
        scratch.matched.clear()
        scratch.parts.clear()
        scratch.matched_at.resize(self.index.key_end.size(), 0)
        scratch.epoch += 1
        if scratch.epoch == 0:  # wrapped after 2^32 documents: old epochs must not look like new ones
            scratch.matched_at.assign(self.index.key_end.size(), 0)
            scratch.epoch = 1
        scratch.loop_place.resize(self.index.states.size(), 0)
        scratch.active.resize(max(scratch.active.size(), <size_t>64))
        scratch.elements = 0
        scratch.after_end_tag = False
        scratch.top = 0
        scratch.setting_out.clear()
        scratch.open.push_back(OpenElement(0, 0, 0, NONE, False))
        self.enter(scratch, 0, NONE)
        return self.set_out(scratch)

    cdef int feed(self, Scratch scratch, const int32_t* codes, size_t number) except -1 nogil:
        return self.run(<BFilterScratch>scratch, codes, number)

    @cython.final
    cdef int run(self, BFilterScratch scratch, const int32_t* codes, size_t number) except -1 nogil:
        cdef size_t i
        if scratch.version != self.version:
            self.index_changed()
        for i in range(number):
            if codes[i] >= 0:
                self.start_tag(scratch, codes[i])
            elif codes[i] == END:
                self.end_tag(scratch)
            else:
                self.condition_holds(scratch, condition_symbol(codes[i]))
        return <Py_ssize_t>scratch.matched.size() == self.query_count and not scratch.keeps_parts

    cdef int index_changed(self) except -1 nogil:
        with gil:
            raise EngineError("index-changed", f"engine {self.name!r}: patterns were added or removed within a document",
                              hint="add and remove between documents")

    cdef int finish(self, Scratch scratch, vector[int32_t]* keys) except -1 nogil:
        keys.insert(keys.end(), (<BFilterScratch>scratch).matched.begin(), (<BFilterScratch>scratch).matched.end())
        return 0

    # Forwards: the query index tree.

    @cython.final
    cdef int start_tag(self, BFilterScratch scratch, symbol_t symbol) except -1 nogil:
        """The paper's HandlingStartTag, and its detector: a tag that starts after an end tag makes a branch point of its parent."""
        cdef OpenElement* parent = &scratch.open.back()
        cdef int32_t first = parent.first
        cdef int32_t end = scratch.top
        cdef int32_t loops = <int32_t>scratch.loops.size()
        cdef uint32_t wanted = <uint32_t>STAR_BIT
        cdef const Entry* entry
        cdef const Loop* loop
        cdef uint32_t names
        cdef int32_t i, state, target
        if scratch.after_end_tag:
            parent.is_branch_point = True
            scratch.after_end_tag = False
        scratch.elements += 1
        # The root is a branch point, as in the paper.
        scratch.open.push_back(OpenElement(scratch.elements, end, <int32_t>scratch.origins.size(), NONE,
                                           scratch.open.size() == 1))
        if scratch.active.size() < <size_t>end + 2 * (end - first + loops) + 2:
            scratch.active.resize(2 * (<size_t>end + 2 * (end - first + loops) + 2))
        if symbol:
            wanted |= name_bit(symbol)
        scratch.counts[STATES_VISITED] += end - first + loops
        for i in range(first, end):
            entry = &scratch.active[i]
            names = entry.names & wanted
            if names == 0:
                continue
            state = entry.state
            if names & ~<uint32_t>STAR_BIT:
                target = self.index.transitions.get(pack(state, symbol), NONE)
                if target >= 0:
                    self.enter(scratch, target, i)
            if names & <uint32_t>STAR_BIT:
                self.enter(scratch, self.index.states[state].star, i)
        for i in range(loops):
            loop = &scratch.loops[i]
            names = loop.names & wanted
            if names == 0:
                continue
            state = loop.state
            if names & ~<uint32_t>STAR_BIT:
                target = self.index.transitions.get(pack(state, symbol), NONE)
                if target >= 0:
                    self.enter(scratch, target, ~loop.origin)
            if names & <uint32_t>STAR_BIT:
                self.enter(scratch, self.index.states[state].star, ~loop.origin)
        scratch.counts[STATES_ENTERED] += scratch.top - end
        return self.set_out(scratch) if scratch.setting_out.size() else 0

    @cython.final
    cdef int enter(self, BFilterScratch scratch, int32_t state, int32_t came_from) except -1 nogil:
        """Makes a state active for the innermost element; start_tag has made room on the Runtime Stack."""
        cdef const State* at = &self.index.states[state]
        cdef int32_t entry = scratch.top
        cdef int32_t mark
        scratch.active[entry] = Entry(state, came_from, NONE, at.names)
        scratch.top = entry + 1
        if at.key >= 0:
            self.match_key(scratch, at.key)
        mark = at.marks
        while mark >= 0:
            self.save_candidates(scratch, mark, entry, <int32_t>scratch.open.size() - 1)
            mark = self.index.marks[mark].next
        if at.descendant >= 0:
            scratch.setting_out.push_back(entry)
        return 0

    @cython.final
    cdef int set_out(self, BFilterScratch scratch) except -1 nogil:
        """Activates the states of `//` that follow the new entries. Only now: they hold below this element, not at it."""
        cdef int32_t entry, state, place
        cdef int32_t level = <int32_t>scratch.open.size() - 1
        cdef int32_t previous
        cdef size_t i
        for i in range(scratch.setting_out.size()):
            entry = scratch.setting_out[i]
            state = self.index.states[scratch.active[entry].state].descendant
            place = scratch.loop_place[state]
            if <size_t>place < scratch.loops.size() and scratch.loops[place].state == state:
                previous = scratch.loops[place].origin
            else:
                previous = NONE
                place = <int32_t>scratch.loops.size()
                scratch.loop_place[state] = place
                scratch.loops.push_back(Loop(state, NONE, self.index.states[state].names))
            scratch.loops[place].origin = <int32_t>scratch.origins.size()
            scratch.origins.push_back(Origin(entry, level, place, previous))
        scratch.setting_out.clear()
        return 0

    @cython.final
    cdef int condition_holds(self, BFilterScratch scratch, symbol_t condition) except -1 nogil:
        cdef uint32_t wanted = name_bit(condition)
        cdef int32_t i, target, mark
        for i in range(scratch.open.back().first, scratch.top):
            if scratch.active[i].names & wanted == 0:
                continue
            target = self.index.transitions.get(pack(scratch.active[i].state, condition), NONE)
            if target < 0:
                continue
            if self.index.states[target].key >= 0:
                self.match_key(scratch, self.index.states[target].key)
            mark = self.index.states[target].marks
            while mark >= 0:
                self.save_candidates(scratch, mark, i, <int32_t>scratch.open.size() - 1)
                mark = self.index.marks[mark].next
        return 0

    # Candidates.

    @cython.final
    cdef int save_candidates(self, BFilterScratch scratch, int32_t mark, int32_t entry, int32_t level) except -1 nogil:
        """The end of a branch is reached at `entry`: the branch is a candidate of every instance that it starts from."""
        cdef Mark at = self.index.marks[mark]
        cdef int32_t origin, root, i
        if at.loops == 0:
            for i in range(at.distance):
                entry = scratch.active[entry].came_from
            self.save_candidate(scratch, entry, level - at.distance, at.point, at.branch)
            return 0
        while True:
            while scratch.active[entry].came_from >= 0:
                entry = scratch.active[entry].came_from
            origin = ~scratch.active[entry].came_from
            at.loops -= 1
            if at.loops == 0:
                break
            entry = scratch.origins[origin].entry
        while origin >= 0:
            root = scratch.origins[origin].entry
            for i in range(at.distance):
                root = scratch.active[root].came_from
            # If it was a candidate there before, then also of all instances further out; unless there are elements between the
            # instance and the origin that can themselves be origins: they may not be those of last time.
            if not self.save_candidate(scratch, root, scratch.origins[origin].level - at.distance, at.point, at.branch) \
                    and at.distance < 2:
                return 0
            origin = scratch.origins[origin].previous
        return 0

    @cython.final
    cdef int save_candidate(self, BFilterScratch scratch, int32_t entry, int32_t level, int32_t point,
                            int32_t branch) except -1 nogil:
        """Makes a branch a candidate of one instance. Returns whether it was not one before."""
        cdef int32_t instance = scratch.active[entry].instance
        cdef uint64_t bit = <uint64_t>1 << (branch & 63)
        cdef uint64_t* word
        if instance < 0:
            instance = self.new_instance(scratch, point, entry, level)
        word = &scratch.bits[scratch.instances[instance].block + (branch >> 6)]
        if word[0] & bit:
            return 0
        word[0] |= bit
        scratch.candidates[instance].push_back(branch)
        scratch.counts[CANDIDATES_SAVED] += 1
        return 1

    @cython.final
    cdef int32_t new_instance(self, BFilterScratch scratch, int32_t point, int32_t entry, int32_t level) except -1 nogil:
        cdef int32_t instance = scratch.free_instance
        cdef size_t words = (self.index.branches[point].size() + 63) >> 6
        cdef int32_t block_class = 0
        cdef int32_t block
        while <size_t>1 << block_class < words:
            block_class += 1
        if scratch.free_blocks.size() <= <size_t>block_class:
            scratch.free_blocks.resize(block_class + 1)
        if scratch.free_blocks[block_class].size():
            block = scratch.free_blocks[block_class].back()
            scratch.free_blocks[block_class].pop_back()
        else:
            block = <int32_t>scratch.bits.size()
            scratch.bits.resize(scratch.bits.size() + (<size_t>1 << block_class), 0)
        if instance >= 0:
            scratch.free_instance = scratch.instances[instance].next
        else:
            instance = <int32_t>scratch.instances.size()
            scratch.instances.push_back(Instance(0, 0, 0, 0, 0))
            scratch.candidates.push_back(vector[int32_t]())
        scratch.instances[instance] = Instance(point, entry, scratch.open[level].query_branches, block, block_class)
        scratch.open[level].query_branches = instance
        scratch.active[entry].instance = instance
        return instance

    @cython.final
    cdef int release_instance(self, BFilterScratch scratch, int32_t instance) except -1 nogil:
        cdef Instance* at = &scratch.instances[instance]
        cdef size_t i
        for i in range(scratch.candidates[instance].size()):
            scratch.bits[at.block + (scratch.candidates[instance][i] >> 6)] = 0
        scratch.candidates[instance].clear()
        scratch.free_blocks[at.block_class].push_back(at.block)
        at.next = scratch.free_instance
        scratch.free_instance = instance
        return 0

    # Backwards: branch points.

    @cython.final
    cdef int end_tag(self, BFilterScratch scratch) except -1 nogil:
        if scratch.open.size() < 2:
            return 0  # an end tag without its start tag: no reader gives one, but it must not harm
        scratch.after_end_tag = True
        if scratch.open.back().query_branches >= 0:
            self.matching_branches(scratch)
        return self.pop_element(scratch)

    @cython.final
    cdef int pop_element(self, BFilterScratch scratch) except -1 nogil:
        cdef OpenElement* element = &scratch.open.back()
        cdef int32_t instance = element.query_branches
        cdef int32_t following
        cdef Origin origin
        while instance >= 0:
            following = scratch.instances[instance].next
            self.release_instance(scratch, instance)
            instance = following
        while <int32_t>scratch.origins.size() > element.first_origin:
            origin = scratch.origins.back()
            if origin.previous < 0:
                scratch.loops.pop_back()
            else:
                scratch.loops[origin.loop].origin = origin.previous
            scratch.origins.pop_back()
        scratch.top = element.first
        scratch.open.pop_back()
        return 0

    @cython.final
    cdef int matching_branches(self, BFilterScratch scratch) except -1 nogil:
        """The paper's MatchingBranches, for the element that ends."""
        cdef bint is_branch_point = scratch.open.back().is_branch_point
        cdef int32_t instance = scratch.open.back().query_branches
        cdef int32_t point, branch
        cdef const Branch* branches
        cdef size_t i
        while instance >= 0:
            point = scratch.instances[instance].point
            if is_branch_point or self.index.points[point].without_rule:
                scratch.counts[BRANCH_POINTS_MATCHED] += 1
                branches = self.index.branches[point].data()
                for i in range(scratch.candidates[instance].size()):
                    branch = scratch.candidates[instance][i]
                    if branches[branch].without_rule >= 0:
                        self.check_postings(scratch, instance, branches[branch].without_rule)
                    if is_branch_point and branches[branch].with_rule >= 0:
                        self.check_postings(scratch, instance, branches[branch].with_rule)
            else:
                scratch.counts[BRANCH_POINTS_UNMATCHED] += 1
            instance = scratch.instances[instance].next
        return 0

    @cython.final
    cdef int check_postings(self, BFilterScratch scratch, int32_t instance, int32_t postings) except -1 nogil:
        """Matches the sub-queries of a list, one branch of which is a candidate, if their other branches are too."""
        cdef const vector[Posting]* posted = &self.index.postings[postings]
        cdef int32_t block = scratch.instances[instance].block
        cdef int32_t entry = scratch.instances[instance].entry
        cdef int32_t level = <int32_t>scratch.open.size() - 1
        cdef const SubQuery* sub_query
        cdef const vector[int32_t]* branches
        cdef int32_t other, mark
        cdef size_t i, j
        scratch.counts[SUB_QUERIES_CHECKED] += posted.size()
        for i in range(posted.size()):
            other = posted[0][i].other
            if other >= 0 and not scratch.bits[block + (other >> 6)] >> (other & 63) & 1:
                continue
            branches = &self.index.sub_query_branches[posted[0][i].sub_query]
            j = 0
            while j < branches.size() and scratch.bits[block + (branches[0][j] >> 6)] >> (branches[0][j] & 63) & 1:
                j += 1
            if j < branches.size():
                continue
            sub_query = &self.index.sub_queries[posted[0][i].sub_query]
            scratch.counts[SUB_QUERIES_MATCHED] += 1
            if scratch.keeps_parts:
                scratch.parts.push_back(Part(posted[0][i].sub_query, scratch.open.back().number))
            if sub_query.key >= 0:
                self.match_key(scratch, sub_query.key)
            mark = sub_query.marks
            while mark >= 0:
                self.save_candidates(scratch, mark, entry, level)
                mark = self.index.marks[mark].next
        return 0

    @cython.final
    cdef int match_key(self, BFilterScratch scratch, int32_t key) except -1 nogil:
        """Reports a query and those that are equal to it."""
        if scratch.matched_at[key] == scratch.epoch:
            return 0
        while key >= 0:
            scratch.matched_at[key] = scratch.epoch
            scratch.matched.push_back(key)
            key = self.index.next_key[key]
        return 0
