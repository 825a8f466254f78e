"""Filtering: how `bfilter` reads a document. engine.pyx explains the paper, index.pyx the index.

Start tags run the automaton forwards. An entry of the Runtime Stack remembers the entry it came from, so a branch
whose end is reached finds its branch point by climbing, not by comparing names, and a branch point's instance at an
element *is* its entry there: what it holds can never be mixed up with another open instance of the same branch point,
and is gone when its element is closed.

End tags match branch points backwards: of the instances at the element, those that have candidates are looked at, and
a sub-query all of whose branches are candidates is matched; which makes the branch that leads to it a candidate of
the branch point above, or decides a query.

The state of a `//` is active for everything below, so it is kept once, with the chain of entries it set out from. A
chain that is reached from further in contains those reached from further out: of several `//` on one branch only the
outermost has to be followed to all its origins.
"""

cimport cython
from libcpp.vector cimport vector

from xsift.document.events cimport END, condition_symbol
from xsift.engines.base cimport Scratch
from xsift.engines.bfilter.index cimport (
    NONE, STAR_BIT, Branch, Posting, QueryIndexTree, State, name_bit,
)
from xsift.native.tables cimport pack

from xsift.errors import EngineError

cdef extern from *:
    """
    #define prefetch __builtin_prefetch
    """
    void prefetch(const void* address) noexcept nogil

cdef enum:  # the counters
    STATES_VISITED
    STATES_ENTERED
    CANDIDATES_SAVED
    BRANCH_POINTS_MATCHED
    BRANCH_POINTS_UNMATCHED
    SUB_QUERIES_CHECKED
    SUB_QUERIES_MATCHED
    CONDITIONS_LOOKED_AT
    CONDITIONS_SPARED

COUNTER_NAMES = (
    "states visited", "states entered", "candidates saved", "branch points matched", "branch points unmatched",
    "sub-queries checked", "sub-queries matched", "conditions looked at", "conditions spared",
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
        cdef uint32_t names
        if scratch.open.size() > 1:  # the last document broke off
            self.forget_candidates(scratch)
        scratch.open.clear()
        scratch.loops.clear()
        scratch.origins.clear()
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
        scratch.first_tag += scratch.elements + 1
        if scratch.first_tag > <uint32_t>1 << 31:  # start again before it wraps
            scratch.entered_from.clear()
            scratch.first_tag = 1
        scratch.entered_from.resize(self.index.states.size(), 0)
        scratch.elements = 0
        scratch.after_end_tag = False
        scratch.out_of_reach = 0
        scratch.setting_out.clear()
        scratch.active[0] = Entry(0, NONE, NONE, 0)
        scratch.top = 1
        names = self.enter(scratch, 0, 0)
        scratch.conditions.clear()
        scratch.open.push_back(OpenElement(0, 0, 0, NONE, names, NONE, 0, 0, False, False, 0))
        return 0

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
            raise EngineError("index-changed", f"engine {self.name!r}: patterns were added or removed in a document",
                              hint="add and remove between documents")

    cdef int finish(self, Scratch scratch, vector[int32_t]* keys) except -1 nogil:
        keys.insert(keys.end(), (<BFilterScratch>scratch).matched.begin(), (<BFilterScratch>scratch).matched.end())
        return 0

    # Forwards: the query index tree.

    @cython.final
    cdef int start_tag(self, BFilterScratch scratch, symbol_t symbol) except -1 nogil:
        """The paper's HandlingStartTag, and its detector: a start tag after an end tag is a second child."""
        cdef OpenElement* parent
        cdef int32_t first_origin
        cdef int32_t end = scratch.top
        scratch.elements += 1
        if scratch.out_of_reach:
            scratch.out_of_reach += 1
            return 0
        parent = &scratch.open.back()
        if scratch.after_end_tag:
            parent.is_branch_point = True
            scratch.after_end_tag = False
        first_origin = <int32_t>scratch.origins.size()
        if parent.child_symbol == symbol:
            scratch.top = parent.child_top
            if parent.child_sets_out:
                self.enter(scratch, end, <int32_t>scratch.open.size())
        else:
            parent.child_names = self.advance(scratch, symbol, parent.first, parent.names)
            parent.child_symbol = symbol
            parent.child_top = scratch.top
            parent.child_sets_out = <int32_t>scratch.origins.size() != first_origin
        if parent.child_names == 0 and scratch.loops.empty() and not scratch.keeps_parts:
            scratch.top = end
            scratch.out_of_reach = 1
            return 0
        # The root is a branch point whatever it has, as in the paper.
        scratch.open.push_back(OpenElement(scratch.elements, end, first_origin, NONE, parent.child_names, NONE, 0, 0,
                                           False, scratch.elements == 1, <int32_t>scratch.conditions.size()))
        return 0

    @cython.final
    cdef int64_t advance(self, BFilterScratch scratch, symbol_t symbol, int32_t first,
                         uint32_t names) except -1 nogil:
        """Makes the states active that a name leads to. Returns the names that lead on from them.

        First they are only pushed, so that the look-ups, and the loading of the states, overlap in the processor.
        """
        cdef uint32_t wanted = <uint32_t>STAR_BIT | (name_bit(symbol) if symbol else 0)
        cdef const State* states = self.index.states.data()
        cdef const Loop* loops = scratch.loops.data()
        cdef int32_t number = <int32_t>scratch.loops.size()
        cdef int32_t end = scratch.top
        cdef int32_t top = end
        cdef Entry* active
        cdef int32_t i, target
        if names & wanted == 0 and number == 0:
            return 0
        active = self.with_room(scratch, 2 * (end - first + number))
        for i in range(first, end):
            if active[i].names & wanted == 0:
                continue
            if active[i].names & wanted & ~<uint32_t>STAR_BIT:
                target = self.index.transitions.get(pack(active[i].state, symbol), NONE)
                if target >= 0:
                    prefetch(&states[target])
                    active[top].state = target
                    active[top].came_from = i
                    top += 1
            if active[i].names & <uint32_t>STAR_BIT:
                active[top].state = states[active[i].state].star
                active[top].came_from = i
                top += 1
        for i in range(number):
            if loops[i].names & wanted == 0:
                continue
            if loops[i].names & wanted & ~<uint32_t>STAR_BIT:
                target = self.index.transitions.get(pack(loops[i].state, symbol), NONE)
                if target >= 0:
                    prefetch(&states[target])
                    active[top].state = target
                    active[top].came_from = ~loops[i].origin
                    top += 1
            if loops[i].names & <uint32_t>STAR_BIT:
                active[top].state = states[loops[i].state].star
                active[top].came_from = ~loops[i].origin
                top += 1
        scratch.top = top
        scratch.counts[STATES_VISITED] += end - first + number
        scratch.counts[STATES_ENTERED] += top - end
        return self.enter(scratch, end, <int32_t>scratch.open.size()) if top > end else 0

    @cython.final
    cdef inline Entry* with_room(self, BFilterScratch scratch, size_t more) except NULL nogil:
        """The Runtime Stack, with room for some more entries."""
        if scratch.active.size() < scratch.top + more:
            scratch.active.resize(2 * (scratch.top + more))
        return scratch.active.data()

    @cython.final
    cdef int64_t enter(self, BFilterScratch scratch, int32_t first, int32_t level) except -1 nogil:
        """The states from entry `first` on have become active for an element at `level`. Returns their names."""
        cdef const State* states = self.index.states.data()
        cdef const uint32_t* matched_at = scratch.matched_at.data()
        cdef Entry* active = scratch.active.data()
        cdef int32_t top = scratch.top
        cdef uint32_t names = 0
        cdef int32_t entry, branch
        cdef const State* at
        for entry in range(first, top):
            at = &states[active[entry].state]
            active[entry].instance = NONE
            active[entry].names = at.names
            names |= at.names
            if at.key >= 0 and matched_at[at.key] != scratch.epoch:
                self.match_key(scratch, at.key)
            if at.descendant >= 0:
                scratch.setting_out.push_back(entry)
            branch = at.branches
            if branch >= 0 and self.is_first_from_there(scratch, &active[entry], level):
                while branch >= 0:
                    branch = self.save_candidates(scratch, branch, entry, level)
        if not scratch.setting_out.empty():
            self.set_out(scratch, level)
        return names

    @cython.final
    cdef bint is_first_from_there(self, BFilterScratch scratch, const Entry* entry, int32_t level) noexcept nogil:
        """Whether a state was last entered from elsewhere.

        Where it is entered from tells of which instances the branches that end in it are candidates. If it was
        entered from there before, by a sibling of the element, they are already.
        """
        cdef int32_t above = entry.came_from
        cdef uint32_t tag = scratch.first_tag
        tag += scratch.open[level - 1 if above >= 0 else scratch.origins[~above].level].number
        if scratch.entered_from[entry.state] == tag:
            return False
        scratch.entered_from[entry.state] = tag
        return True

    @cython.final
    cdef int set_out(self, BFilterScratch scratch, int32_t level) except -1 nogil:
        """Activates the states of `//` that follow the new entries: for what is below the element, not for itself."""
        cdef int32_t entry, state, place
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

    # Conditions.

    @cython.final
    cdef int condition_holds(self, BFilterScratch scratch, symbol_t condition) except -1 nogil:
        """Keeps a condition until its element ends; or, if conditions are not lazy, looks who asks for it."""
        cdef int32_t entry
        if scratch.out_of_reach or scratch.open.back().names & name_bit(condition) == 0:
            return 0
        if self.lazy:
            scratch.conditions.push_back(condition)
            return 0
        for entry in range(scratch.open.back().first, scratch.top):
            self.save_condition(scratch, entry, condition)
        return 0

    @cython.final
    cdef int kept_conditions(self, BFilterScratch scratch) except -1 nogil:
        """The element ends: looks at its conditions for those states that can still be decided by one."""
        cdef int32_t first = scratch.open.back().first_condition
        cdef int32_t number = <int32_t>scratch.conditions.size() - first
        cdef int32_t entry, i
        for entry in range(scratch.open.back().first, scratch.top):
            if not self.asks_for_conditions(scratch, entry):
                scratch.counts[CONDITIONS_SPARED] += number
                continue
            for i in range(first, first + number):
                self.save_condition(scratch, entry, scratch.conditions[i])
        return 0

    @cython.final
    cdef bint asks_for_conditions(self, BFilterScratch scratch, int32_t entry) noexcept nogil:
        """Whether the state is urgent, or a branch point with a candidate that the rule does not rule out."""
        cdef int32_t instance = scratch.active[entry].instance
        if self.index.urgent[scratch.active[entry].state]:
            return True
        if instance < 0:
            return False
        return (scratch.open.back().is_branch_point
                or self.index.points[scratch.instances[instance].point].without_rule > 0)

    @cython.final
    cdef int save_condition(self, BFilterScratch scratch, int32_t entry, symbol_t condition) except -1 nogil:
        """A condition holds for the innermost element: what does that mean for one of its states?"""
        cdef int32_t target, branch
        scratch.counts[CONDITIONS_LOOKED_AT] += 1
        if scratch.active[entry].names & name_bit(condition) == 0:
            return 0
        target = self.index.transitions.get(pack(scratch.active[entry].state, condition), NONE)
        if target < 0:
            return 0
        if self.index.states[target].key >= 0:
            self.match_key(scratch, self.index.states[target].key)
        branch = self.index.states[target].branches
        while branch >= 0:
            branch = self.save_candidates(scratch, branch, entry, <int32_t>scratch.open.size() - 1)
        return 0

    # Candidates.

    @cython.final
    cdef int32_t save_candidates(self, BFilterScratch scratch, int32_t branch, int32_t entry,
                                 int32_t level) except -2 nogil:
        """The end of a branch is reached at `entry`: it is a candidate of every instance that it starts from.

        Returns the next branch with the same end.
        """
        cdef const Branch* at = &self.index.branches[branch]
        cdef const Entry* active = scratch.active.data()
        cdef int32_t loops = at.loops
        cdef int32_t origin, root, i
        if loops == 0:
            for i in range(at.distance):
                entry = active[entry].came_from
            self.save_candidate(scratch, entry, level - at.distance, branch)
            return at.next
        while True:
            while active[entry].came_from >= 0:
                entry = active[entry].came_from
            origin = ~active[entry].came_from
            loops -= 1
            if loops == 0:
                break
            entry = scratch.origins[origin].entry
        while origin >= 0:
            root = scratch.origins[origin].entry
            for i in range(at.distance):
                root = active[root].came_from
            # If it was a candidate of this instance before, then also of those further out; unless there are elements
            # between the instance and the origin: they can be origins themselves, and need not be those of last time.
            if not self.save_candidate(scratch, root, scratch.origins[origin].level - at.distance, branch) \
                    and at.distance < 2:
                break
            origin = scratch.origins[origin].previous
        return at.next

    @cython.final
    cdef int save_candidate(self, BFilterScratch scratch, int32_t entry, int32_t level,
                            int32_t branch) except -1 nogil:
        """Makes a branch a candidate of one instance. Returns whether it was not one before."""
        cdef int32_t instance = scratch.active[entry].instance
        cdef int32_t number = self.index.branches[branch].number
        cdef uint64_t bit = <uint64_t>1 << (number & 63)
        cdef uint64_t* word
        if instance < 0:
            instance = self.new_instance(scratch, self.index.branches[branch].point, entry, level)
        word = &scratch.bits[scratch.instances[instance].block + (number >> 6)]
        if word[0] & bit:
            return 0
        word[0] |= bit
        scratch.candidates[instance].push_back(branch)
        scratch.counts[CANDIDATES_SAVED] += 1
        return 1

    @cython.final
    cdef int32_t new_instance(self, BFilterScratch scratch, int32_t point, int32_t entry,
                              int32_t level) except -1 nogil:
        cdef int32_t instance = scratch.free_instance
        cdef size_t words = (self.index.numbered[point].size() + 63) >> 6
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
        scratch.active[at.entry].instance = NONE  # a sibling of the element may use the entry again
        for i in range(scratch.candidates[instance].size()):
            scratch.bits[at.block + (self.index.branches[scratch.candidates[instance][i]].number >> 6)] = 0
        scratch.candidates[instance].clear()
        scratch.free_blocks[at.block_class].push_back(at.block)
        at.next = scratch.free_instance
        scratch.free_instance = instance
        return 0

    @cython.final
    cdef int forget_candidates(self, BFilterScratch scratch) except -1 nogil:
        """Gives up all instances, open ones too, without a look at the index: it may have changed since."""
        scratch.instances.clear()
        scratch.candidates.clear()
        scratch.free_instance = NONE
        scratch.bits.clear()
        scratch.free_blocks.clear()
        return 0

    # Backwards: branch points.

    @cython.final
    cdef int end_tag(self, BFilterScratch scratch) except -1 nogil:
        if scratch.out_of_reach > 1:
            scratch.out_of_reach -= 1
            return 0
        scratch.after_end_tag = True
        if scratch.out_of_reach:
            scratch.out_of_reach = 0
            return 0
        if scratch.open.size() < 2:
            return 0  # an end tag without a start tag: no reader gives one, but it must do no harm
        if <int32_t>scratch.conditions.size() > scratch.open.back().first_condition:
            self.kept_conditions(scratch)
        if scratch.open.back().query_branches >= 0:
            self.matching_branches(scratch)
        return self.pop_element(scratch)

    @cython.final
    cdef int pop_element(self, BFilterScratch scratch) except -1 nogil:
        cdef OpenElement* element = &scratch.open.back()
        cdef int32_t instance = element.query_branches
        cdef int32_t following
        cdef Origin origin
        scratch.top = element.first
        scratch.conditions.resize(element.first_condition)
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
        scratch.open.pop_back()
        return 0

    @cython.final
    cdef int matching_branches(self, BFilterScratch scratch) except -1 nogil:
        """The paper's MatchingBranches, for the element that ends."""
        cdef bint is_branch_point = scratch.open.back().is_branch_point
        cdef int32_t instance = scratch.open.back().query_branches
        cdef int32_t branch
        cdef size_t i, number
        while instance >= 0:
            if is_branch_point or self.index.points[scratch.instances[instance].point].without_rule:
                scratch.counts[BRANCH_POINTS_MATCHED] += 1
                for i in range(scratch.candidates[instance].size()):
                    branch = scratch.candidates[instance][i]
                    number = self.index.posted[branch].size()
                    if not is_branch_point:
                        number = self.index.branches[branch].without_rule
                    if number:
                        self.check(scratch, instance, self.index.posted[branch].data(), number)
            else:
                scratch.counts[BRANCH_POINTS_UNMATCHED] += 1
            instance = scratch.instances[instance].next
        return 0

    @cython.final
    cdef int check(self, BFilterScratch scratch, int32_t instance, const Posting* posted,
                   size_t number) except -1 nogil:
        """Matches those of some sub-queries, one branch of which is a candidate, whose other branches are too."""
        cdef int32_t block = scratch.instances[instance].block
        cdef int32_t entry = scratch.instances[instance].entry
        cdef int32_t other, branch
        cdef size_t i
        scratch.counts[SUB_QUERIES_CHECKED] += number
        for i in range(number):
            other = posted[i].other
            if other >= 0 and not scratch.bits[block + (other >> 6)] >> (other & 63) & 1:
                continue
            if posted[i].more and not self.all_candidates(scratch, block, posted[i].sub_query):
                continue
            scratch.counts[SUB_QUERIES_MATCHED] += 1
            if scratch.keeps_parts:
                scratch.parts.push_back(Part(posted[i].sub_query, scratch.open.back().number))
            if posted[i].key >= 0:
                self.match_key(scratch, posted[i].key)
            if posted[i].leads_on:
                branch = self.index.sub_queries[posted[i].sub_query].branches
                while branch >= 0:
                    branch = self.save_candidates(scratch, branch, entry, <int32_t>scratch.open.size() - 1)
        return 0

    @cython.final
    cdef bint all_candidates(self, BFilterScratch scratch, int32_t block, int32_t sub_query) noexcept nogil:
        cdef const vector[int32_t]* numbers = &self.index.parts[sub_query]
        cdef size_t i
        for i in range(numbers.size()):
            if not scratch.bits[block + (numbers[0][i] >> 6)] >> (numbers[0][i] & 63) & 1:
                return False
        return True

    @cython.final
    cdef int match_key(self, BFilterScratch scratch, int32_t key) except -1 nogil:
        """Reports a query and those that are equal to it."""
        if scratch.matched_at[key] == scratch.epoch:
            return 0
        while key >= 0:
            scratch.matched_at[key] = scratch.epoch
            scratch.matched.push_back(key)
            key = self.index.next_key[key] if self.index.equal_keys else NONE
        return 0
