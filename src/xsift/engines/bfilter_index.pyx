"""QueryIndexTree: all queries of `bfilter` in one automaton, its branch points marked. bfilter.pyx explains the paper.

A query is a pattern. Its *branch points* are its first step and the steps with several children; a *branch* is the path
from one branch point down to the next (*transit*) or to a leaf (*tangling*). A *sub-query* is a branch point with its
branches. The index is built of these three, and each is kept once however many queries have it:

    states       the non-deterministic automaton of all root-to-leaf paths, equal prefixes shared, as in YFilter;
    branches     of a state that is a branch point, numbered there. What a branch ends in (an accepting state, or the
                 sub-query that a transit branch leads to) is marked with the branch points that wait for it;
    sub-queries  sets of branches of one branch point. Two queries that agree from the document's root down to a branch point
                 and below it share the sub-query.

A sub-query can only match where all its branches have candidates, so it is enough to look at it when one of them has: it is posted
at one of its branches, the one with the fewest postings so far, which as a rule is the rarest. Postings of sub-queries that need a
branch point in the document are apart from the others, so that elsewhere they cost nothing.
"""

from libcpp.algorithm cimport sort
from libcpp.vector cimport vector

from xsift.native.tables cimport hash_bytes, pack
from xsift.xpath.pattern cimport CHILD, DESCENDANT, Pattern, PatternNode


cdef class QueryIndexTree:
    """The automaton, its branch points, and the sub-queries."""

    def __cinit__(self):
        self.free_state = self.free_mark = self.free_point = self.free_sub_query = NONE
        self.states.push_back(State(NONE, 0, NONE, NONE, NONE, NONE, NONE, 1, 0, 0, 0))
        self.state_count = 1

    # Queries.

    cdef int insert(self, Pattern pattern, int32_t key) except -1:
        cdef int32_t end, first
        self.resolve(pattern, NONE)
        end = self.end_of[0]
        if <size_t>key >= self.key_end.size():
            self.key_end.resize(key + 1, NONE)
            self.next_key.resize(key + 1, NONE)
            self.previous_key.resize(key + 1, NONE)
        if end & 1:
            first = self.sub_queries[end >> 1].key
            self.sub_queries[end >> 1].key = key
            self.sub_queries[end >> 1].users += first < 0
        else:
            first = self.states[end >> 1].key
            self.states[end >> 1].key = key
            self.states[end >> 1].uses += first < 0
        self.key_end[key] = end
        self.next_key[key] = first
        self.previous_key[key] = NONE
        if first >= 0:
            self.previous_key[first] = key
        return 0

    cdef int delete(self, int32_t key) except -1:
        cdef int32_t end = self.key_end[key]
        cdef int32_t following = self.next_key[key]
        cdef int32_t previous = self.previous_key[key]
        self.key_end[key] = NONE
        if following >= 0:
            self.previous_key[following] = previous
        if previous >= 0:
            self.next_key[previous] = following
        elif end & 1:
            self.sub_queries[end >> 1].key = following
            if following < 0:
                self.sub_queries[end >> 1].users -= 1
                if self.sub_queries[end >> 1].users == 0:
                    self.remove_sub_query(end >> 1)
        else:
            self.states[end >> 1].key = following
            if following < 0:
                self.states[end >> 1].uses -= 1
                self.release_state(end >> 1)
        return 0

    cdef int resolve(self, Pattern pattern, int32_t cut) except -1:
        cdef int32_t i, child
        cdef int32_t size = <int32_t>pattern.nodes.size()
        cdef PatternNode node
        self.state_of.resize(size)
        self.end_of.resize(size)
        for i in range(size):
            node = pattern.nodes[i]
            self.state_of[i] = self.step(self.state_of[node.parent] if node.parent >= 0 else 0,
                                         node.symbol, node.axis, node.is_condition)
        for i in range(size - 1, -1, -1):
            child = pattern.nodes[i].first_child
            if child < 0:
                self.end_of[i] = self.state_of[i] * 2
            elif pattern.nodes[child].next_sibling < 0 and i != cut:
                self.end_of[i] = self.end_of[child]
            else:
                self.end_of[i] = self.sub_query_at(pattern, i) * 2 + 1
        return 0

    # States.

    cdef int32_t step(self, int32_t state, symbol_t symbol, uint8_t axis, bint is_condition) except -1:
        """The state after a step from `state`, made if it is new."""
        cdef int32_t target
        if axis == DESCENDANT:
            target = self.states[state].descendant
            if target < 0:
                target = self.new_state(state, 0)
                self.states[target].loops = True
                self.states[state].descendant = target
            state = target
        target = self.states[state].star if symbol == 0 else self.transitions.get(pack(state, symbol), NONE)
        if target >= 0:
            return target
        target = self.new_state(state, symbol)
        self.states[target].is_condition = is_condition
        if symbol == 0:
            self.states[state].star = target
            self.states[state].names |= <uint32_t>STAR_BIT
        else:
            self.transitions.put(pack(state, symbol), target)
            self.states[state].names |= name_bit(symbol)
        return target

    cdef int32_t new_state(self, int32_t parent, symbol_t symbol) except -1:
        cdef int32_t state = self.free_state
        cdef State made = State(parent, symbol, NONE, NONE, NONE, NONE, NONE, 0, 0, 0, 0)
        if state >= 0:
            self.free_state = self.states[state].parent
            self.states[state] = made
        else:
            state = <int32_t>self.states.size()
            self.states.push_back(made)
        self.states[parent].uses += 1
        self.state_count += 1
        return state

    cdef void release_state(self, int32_t state) noexcept:
        """Frees a state, and those above it, as far as nothing uses them."""
        cdef State* freed
        cdef int32_t parent
        while state and self.states[state].uses == 0:
            freed = &self.states[state]
            parent = freed.parent
            if freed.loops:
                self.states[parent].descendant = NONE
            elif freed.symbol == 0:
                self.states[parent].star = NONE
                self.states[parent].names &= ~<uint32_t>STAR_BIT
            else:
                self.transitions.erase(pack(parent, freed.symbol))
            self.states[parent].uses -= 1
            freed.parent = self.free_state
            self.free_state = state
            self.state_count -= 1
            state = parent

    # Branch points and branches.

    cdef int32_t point_at(self, int32_t state) except -1:
        cdef int32_t point = self.states[state].point
        if point >= 0:
            return point
        point = self.free_point
        if point >= 0:
            self.free_point = self.points[point].free_branch
            self.points[point] = BranchPoint(state, 0, 0, NONE)
        else:
            point = <int32_t>self.points.size()
            self.points.push_back(BranchPoint(state, 0, 0, NONE))
            self.branches.push_back(vector[Branch]())
        self.states[state].point = point
        self.states[state].uses += 1
        return point

    cdef int32_t branch_to(self, int32_t point, int32_t end) except -1:
        """The number of the branch from a branch point to an end, made and marked if it is new."""
        cdef int32_t branch = self.branch_numbers.get(pack(point, end), NONE)
        cdef Branch made = Branch(end >> 1, 0, NONE, NONE, end & 1)
        if branch >= 0:
            return branch
        branch = self.points[point].free_branch
        if branch >= 0:
            self.points[point].free_branch = self.branches[point][branch].end
            self.branches[point][branch] = made
        else:
            branch = <int32_t>self.branches[point].size()
            self.branches[point].push_back(made)
        self.branch_numbers.put(pack(point, end), branch)
        self.add_mark(point, branch)
        return branch

    cdef int add_mark(self, int32_t point, int32_t branch) except -1:
        cdef Mark mark = Mark(point, branch, 0, 0, NONE)
        cdef Branch at = self.branches[point][branch]
        cdef int32_t root = self.points[point].state
        cdef int32_t state = self.points[self.sub_queries[at.end].point].state if at.transit else at.end
        cdef int32_t number = self.free_mark
        if self.states[state].is_condition:
            state = self.states[state].parent  # it is met at the element that it is a condition of
        while state != root:
            state = self.states[state].parent
            mark.distance += 1
            if self.states[state].loops:
                state = self.states[state].parent
                mark.loops += 1
                mark.distance = 0
        if at.transit:
            mark.next = self.sub_queries[at.end].marks
            self.sub_queries[at.end].users += 1
        else:
            mark.next = self.states[at.end].marks
            self.states[at.end].uses += 1
        if number >= 0:
            self.free_mark = self.marks[number].next
            self.marks[number] = mark
        else:
            number = <int32_t>self.marks.size()
            self.marks.push_back(mark)
        if at.transit:
            self.sub_queries[at.end].marks = number
        else:
            self.states[at.end].marks = number
        return 0

    cdef void remove_mark(self, int32_t point, int32_t branch) noexcept:
        cdef Branch at = self.branches[point][branch]
        cdef int32_t* link = &self.sub_queries[at.end].marks if at.transit else &self.states[at.end].marks
        cdef int32_t number
        while self.marks[link[0]].point != point or self.marks[link[0]].branch != branch:
            link = &self.marks[link[0]].next
        number = link[0]
        link[0] = self.marks[number].next
        self.marks[number].next = self.free_mark
        self.free_mark = number

    # Sub-queries.

    cdef int32_t sub_query_at(self, Pattern pattern, int32_t node) except -1:
        """The sub-query rooted at a node of a pattern whose states and lower ends are resolved."""
        cdef int32_t point = self.point_at(self.state_of[node])
        cdef vector[int32_t] numbers
        cdef int32_t child = pattern.nodes[node].first_child
        cdef int32_t found, i
        while child >= 0:
            numbers.push_back(self.branch_to(point, self.end_of[child]))
            child = pattern.nodes[child].next_sibling
        sort(numbers.begin(), numbers.end())
        for i in range(<int32_t>numbers.size() - 1, 0, -1):
            if numbers[i] == numbers[i - 1]:
                numbers.erase(numbers.begin() + i)
        found = self.sub_query_numbers.get(self.hash_of(point, numbers), NONE)
        while found >= 0 and (self.sub_queries[found].point != point or self.sub_query_branches[found] != numbers):
            found = self.sub_queries[found].same_hash
        return found if found >= 0 else self.new_sub_query(point, numbers, needs_document_branch(pattern, node))

    cdef int32_t new_sub_query(self, int32_t point, const vector[int32_t]& numbers, bint with_rule) except -1:
        cdef uint64_t hashed = self.hash_of(point, numbers)
        cdef int32_t number = self.free_sub_query
        cdef int32_t same_hash = self.sub_query_numbers.get(hashed, NONE)
        cdef SubQuery made = SubQuery(point, NONE, NONE, 0, NONE, NONE, same_hash, with_rule)
        cdef size_t i
        if number >= 0:
            self.free_sub_query = self.sub_queries[number].same_hash
            self.sub_queries[number] = made
        else:
            number = <int32_t>self.sub_queries.size()
            self.sub_queries.push_back(made)
            self.sub_query_branches.push_back(vector[int32_t]())
        self.sub_query_branches[number] = numbers
        self.sub_query_numbers.put(hashed, number)
        for i in range(numbers.size()):
            self.branches[point][numbers[i]].uses += 1
        self.points[point].sub_queries += 1
        self.points[point].without_rule += not with_rule
        self.sub_query_count += 1
        self.post(number)
        return number

    cdef uint64_t hash_of(self, int32_t point, const vector[int32_t]& numbers) noexcept:
        cdef uint64_t hashed = hash_bytes(<const char*>numbers.data(), numbers.size() * sizeof(int32_t))
        return (hashed ^ hash_bytes(<const char*>&point, sizeof(int32_t))) >> 1  # never the table's empty key

    cdef int32_t posted(self, int32_t point, int32_t branch) noexcept:
        """How many sub-queries are posted at a branch."""
        cdef const Branch* at = &self.branches[point][branch]
        cdef int32_t number = 0
        if at.with_rule >= 0:
            number += <int32_t>self.postings[at.with_rule].size()
        if at.without_rule >= 0:
            number += <int32_t>self.postings[at.without_rule].size()
        return number

    cdef int32_t* list_of(self, int32_t sub_query) noexcept:
        cdef const SubQuery* at = &self.sub_queries[sub_query]
        cdef Branch* branch = &self.branches[at.point][at.access]
        return &branch.with_rule if at.with_rule else &branch.without_rule

    cdef int post(self, int32_t sub_query) except -1:
        """Posts a new sub-query at its least used branch, with the next one to test first."""
        cdef int32_t point = self.sub_queries[sub_query].point
        cdef int32_t fewest = NONE
        cdef int32_t other = NONE
        cdef int32_t branch
        cdef int32_t* lists
        for branch in self.sub_query_branches[sub_query]:
            if fewest < 0 or self.posted(point, branch) < self.posted(point, fewest):
                other = fewest
                fewest = branch
            elif other < 0 or self.posted(point, branch) < self.posted(point, other):
                other = branch
        self.sub_queries[sub_query].access = fewest
        lists = self.list_of(sub_query)
        if lists[0] < 0 and self.free_postings.size():
            lists[0] = self.free_postings.back()
            self.free_postings.pop_back()
        elif lists[0] < 0:
            lists[0] = <int32_t>self.postings.size()
            self.postings.push_back(vector[Posting]())
        self.sub_queries[sub_query].place = <int32_t>self.postings[lists[0]].size()
        self.postings[lists[0]].push_back(Posting(sub_query, other))
        return 0

    cdef void unpost(self, int32_t sub_query) noexcept:
        cdef vector[Posting]* at = &self.postings[self.list_of(sub_query)[0]]
        cdef Posting last = at.back()
        at[0][self.sub_queries[sub_query].place] = last
        self.sub_queries[last.sub_query].place = self.sub_queries[sub_query].place
        at.pop_back()

    cdef int remove_sub_query(self, int32_t sub_query) except -1:
        """Removes a sub-query without users, and those below that it was the last user of."""
        cdef vector[int32_t] unused
        cdef int32_t point, branch, below, root
        unused.push_back(sub_query)
        while unused.size():
            sub_query = unused.back()
            unused.pop_back()
            point = self.sub_queries[sub_query].point
            self.unpost(sub_query)
            self.forget_hash(sub_query)
            for branch in self.sub_query_branches[sub_query]:
                below = self.drop_branch(point, branch)
                if below >= 0:
                    unused.push_back(below)
            self.sub_query_branches[sub_query].clear()
            self.sub_query_branches[sub_query].shrink_to_fit()
            self.points[point].without_rule -= not self.sub_queries[sub_query].with_rule
            self.points[point].sub_queries -= 1
            if self.points[point].sub_queries == 0:
                root = self.points[point].state
                self.branches[point].clear()
                self.branches[point].shrink_to_fit()
                self.points[point] = BranchPoint(NONE, 0, 0, self.free_point)
                self.free_point = point
                self.states[root].point = NONE
                self.states[root].uses -= 1
                self.release_state(root)
            self.sub_queries[sub_query] = SubQuery(NONE, NONE, NONE, 0, NONE, NONE, self.free_sub_query, 0)
            self.free_sub_query = sub_query
            self.sub_query_count -= 1
        return 0

    cdef int32_t drop_branch(self, int32_t point, int32_t branch) except -2:
        """Takes one use from a branch. Returns the sub-query below that has no user any more, or NONE."""
        cdef Branch* at = &self.branches[point][branch]
        cdef int32_t end = at.end
        at.uses -= 1
        if at.uses:
            return NONE
        self.remove_mark(point, branch)
        self.branch_numbers.erase(pack(point, end * 2 + at.transit))
        if at.with_rule >= 0:
            self.free_postings.push_back(at.with_rule)
        if at.without_rule >= 0:
            self.free_postings.push_back(at.without_rule)
        at.end = self.points[point].free_branch
        self.points[point].free_branch = branch
        if at.transit:
            self.sub_queries[end].users -= 1
            return end if self.sub_queries[end].users == 0 else NONE
        self.states[end].uses -= 1
        self.release_state(end)
        return NONE

    cdef void forget_hash(self, int32_t sub_query) noexcept:
        cdef int32_t following = self.sub_queries[sub_query].same_hash
        cdef uint64_t hashed = self.hash_of(self.sub_queries[sub_query].point, self.sub_query_branches[sub_query])
        cdef int32_t at = self.sub_query_numbers.get(hashed, NONE)
        if at == sub_query and following < 0:
            self.sub_query_numbers.erase(hashed)
        elif at == sub_query:
            self.sub_query_numbers.put(hashed, following)
        else:
            while self.sub_queries[at].same_hash != sub_query:
                at = self.sub_queries[at].same_hash
            self.sub_queries[at].same_hash = following

    def memory(self):
        """Bytes held, by structure."""
        cdef int64_t branches = 0
        cdef int64_t sub_queries = 0
        cdef size_t i
        for i in range(self.branches.size()):
            branches += self.branches[i].capacity() * sizeof(Branch)
        for i in range(self.postings.size()):
            branches += self.postings[i].capacity() * sizeof(Posting)
        for i in range(self.sub_query_branches.size()):
            sub_queries += self.sub_query_branches[i].capacity() * sizeof(int32_t)
        branches += self.points.capacity() * sizeof(BranchPoint) + self.marks.capacity() * sizeof(Mark)
        branches += self.branches.capacity() * sizeof(vector[Branch]) + self.branch_numbers.bytes()
        branches += self.postings.capacity() * sizeof(vector[Posting])
        sub_queries += self.sub_queries.capacity() * sizeof(SubQuery) + self.sub_query_numbers.bytes()
        sub_queries += self.sub_query_branches.capacity() * sizeof(vector[int32_t])
        return {"query index tree states": self.states.capacity() * sizeof(State),
                "query index tree transitions": self.transitions.bytes(),
                "branch points": branches, "sub-queries": sub_queries,
                "queries": 4 * (self.key_end.capacity() + self.next_key.capacity() + self.previous_key.capacity())}

    # For inspection.

    def path(self, int32_t state):
        """The path that leads to a state, as (axis, symbol) steps; the state of a `//` ends with (DESCENDANT, None)."""
        steps = []
        cdef int32_t above
        if self.states[state].loops:
            steps.append((DESCENDANT, None))
            state = self.states[state].parent
        while state:
            above = self.states[state].parent
            steps.append((DESCENDANT if self.states[above].loops else CHILD, self.states[state].symbol))
            state = self.states[above].parent if self.states[above].loops else above
        return steps[::-1]

    def nodes(self, Pattern pattern not None):
        """For each node of a pattern that is in the index: its state, and its sub-query or None."""
        self.resolve(pattern, NONE)
        found = []
        cdef int32_t i, child
        for i in range(<int32_t>pattern.nodes.size()):
            child = pattern.nodes[i].first_child
            branching = child >= 0 and pattern.nodes[child].next_sibling >= 0
            found.append((self.state_of[i], self.end_of[i] >> 1 if branching else None))
        return found

    def rule(self, int32_t sub_query):
        """Whether a sub-query needs a branch point in the document."""
        return bool(self.sub_queries[sub_query].with_rule)


cdef bint needs_document_branch(Pattern pattern, int32_t node):
    """Whether whatever matches the node has at least two children: the branch-point rule is sound.

    It is if two branches start with a child axis and different names. If no two do, then the first steps of all branches can
    be merged into one child: those with a child axis have the same name or `*`, a descendant lies below, a condition needs none.
    """
    cdef symbol_t name = 0
    cdef int32_t child = pattern.nodes[node].first_child
    cdef PatternNode at
    while child >= 0:
        at = pattern.nodes[child]
        if at.axis == CHILD and not at.is_condition and at.symbol:
            if name and at.symbol != name:
                return True
            name = at.symbol
        child = at.next_sibling
    return False
