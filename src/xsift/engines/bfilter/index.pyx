"""QueryIndexTree: all queries of `bfilter` in one automaton, with branch points. engine.pyx explains the paper.

A query is a pattern. Its *branch points* are its first step and the steps with several children; a *branch* is the
path from one branch point down to the next (*transit*) or to a leaf (*tangling*). A *sub-query* is a branch point
with its branches. The index is built of these three, and each is kept once however many queries have it:

    states       the non-deterministic automaton of all root-to-leaf paths, equal prefixes shared, as in YFilter;
    branches     of a state that is a branch point, numbered there. What a branch ends in (an accepting state, or the
                 sub-query that a transit branch leads to) is marked with the branch points that wait for it;
    sub-queries  sets of branches of one branch point. Two queries that agree from the document's root down to a
                 branch point and below it share the sub-query.

A sub-query can only match where all its branches are candidates, so it is enough to look at it when one of them is:
it is posted at one of its branches, a transit branch or else the one with the fewest postings so far, which as a rule
is the rarest. Postings of sub-queries that need a branch point in the document are apart from the others, so that
elsewhere they cost nothing.
"""

from libcpp.algorithm cimport sort
from libcpp.vector cimport vector

from xsift.native.tables cimport hash_bytes, pack
from xsift.xpath.pattern cimport CHILD, DESCENDANT, Pattern, PatternNode

cdef enum:
    TANGLING_COST = 8  # how much more often than a transit branch a tangling branch is taken to be a candidate


cdef class QueryIndexTree:
    """The automaton, its branch points, and the sub-queries."""

    def __cinit__(self):
        self.free_state = self.free_point = self.free_branch = self.free_sub_query = NONE
        self.states.push_back(State(0, NONE, NONE, NONE, NONE))
        self.links.push_back(StateLink(NONE, 0, NONE, 1, 0, 0))
        self.urgent.push_back(False)
        self.state_count = 1

    # Queries.

    cdef int insert(self, Pattern pattern, int32_t key) except -1:
        cdef int32_t end, following
        self.resolve(pattern, NONE)
        end = self.end_of[0]
        if <size_t>key >= self.key_end.size():
            self.key_end.resize(key + 1, NONE)
            self.next_key.resize(key + 1, NONE)
            self.previous_key.resize(key + 1, NONE)
        following = self.sub_queries[end >> 1].key if end & 1 else self.states[end >> 1].key
        self.key_end[key] = end
        self.next_key[key] = following
        self.previous_key[key] = NONE
        if following >= 0:
            self.previous_key[following] = key
            self.equal_keys += 1
        return self.set_key(end, key)

    cdef int delete(self, int32_t key) except -1:
        cdef int32_t end = self.key_end[key]
        cdef int32_t following = self.next_key[key]
        cdef int32_t previous = self.previous_key[key]
        self.key_end[key] = NONE
        if following >= 0:
            self.previous_key[following] = previous
        if following >= 0 or previous >= 0:
            self.equal_keys -= 1
        if previous >= 0:
            self.next_key[previous] = following
            return 0
        return self.set_key(end, following)

    cdef int set_key(self, int32_t end, int32_t key) except -1:
        """Makes `key` the first query that ends in a place, or NONE; then the place may be free."""
        cdef SubQuery* sub_query
        if end & 1:
            sub_query = &self.sub_queries[end >> 1]
            sub_query.users += (key >= 0) - (sub_query.key >= 0)
            sub_query.key = key
            self.refresh_posting(end >> 1)
            if sub_query.users == 0:
                self.remove_sub_query(end >> 1)
        else:
            self.links[end >> 1].uses += (key >= 0) - (self.states[end >> 1].key >= 0)
            self.states[end >> 1].key = key
            if self.links[end >> 1].is_condition:
                self.urgent[self.links[end >> 1].parent] = True
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
                self.links[target].loops = True
                self.states[state].descendant = target
            state = target
        target = self.states[state].star if symbol == 0 else self.transitions.get(pack(state, symbol), NONE)
        if target >= 0:
            return target
        target = self.new_state(state, symbol)
        self.links[target].is_condition = is_condition
        if symbol == 0:
            self.states[state].star = target
            self.states[state].names |= <uint32_t>STAR_BIT
        else:
            self.transitions.put(pack(state, symbol), target)
            self.states[state].names |= name_bit(symbol)
        return target

    cdef int32_t new_state(self, int32_t parent, symbol_t symbol) except -1:
        cdef int32_t state = self.free_state
        if state >= 0:
            self.free_state = self.links[state].parent
        else:
            state = <int32_t>self.states.size()
            self.states.resize(self.states.size() + 1)
            self.links.resize(self.links.size() + 1)
            self.urgent.resize(self.links.size())
        self.urgent[state] = False
        self.states[state] = State(0, NONE, NONE, NONE, NONE)
        self.links[state] = StateLink(parent, symbol, NONE, 0, 0, 0)
        self.links[parent].uses += 1
        self.state_count += 1
        return state

    cdef void release_state(self, int32_t state) noexcept:
        """Frees a state, and those above it, as far as nothing uses them."""
        cdef StateLink* freed
        cdef int32_t parent
        while self.links[state].uses == 0:  # the first state always has a use
            freed = &self.links[state]
            parent = freed.parent
            if freed.loops:
                self.states[parent].descendant = NONE
            elif freed.symbol == 0:
                self.states[parent].star = NONE
                self.states[parent].names &= ~<uint32_t>STAR_BIT
            else:
                self.transitions.erase(pack(parent, freed.symbol))
            self.links[parent].uses -= 1
            freed.parent = self.free_state
            self.free_state = state
            self.state_count -= 1
            state = parent

    # Branch points and branches.

    cdef int32_t point_at(self, int32_t state) except -1:
        cdef int32_t point = self.links[state].point
        if point >= 0:
            return point
        point = self.free_point
        if point >= 0:
            self.free_point = self.points[point].free_number
        else:
            point = <int32_t>self.points.size()
            self.points.resize(self.points.size() + 1)
            self.numbered.push_back(vector[int32_t]())
        self.points[point] = BranchPoint(state, 0, 0, NONE)
        self.links[state].point = point
        self.links[state].uses += 1
        return point

    cdef void release_point(self, int32_t point) noexcept:
        cdef int32_t state = self.points[point].state
        self.numbered[point].clear()
        self.numbered[point].shrink_to_fit()
        self.points[point] = BranchPoint(NONE, 0, 0, self.free_point)
        self.free_point = point
        self.links[state].point = NONE
        self.links[state].uses -= 1
        self.release_state(state)

    cdef int32_t branch_to(self, int32_t point, int32_t end) except -1:
        """The branch from a branch point to an end, made if it is new."""
        cdef int32_t branch = self.branch_ends.get(pack(point, end), NONE)
        cdef int32_t number = self.points[point].free_number
        if branch >= 0:
            return branch
        branch = self.free_branch
        if branch >= 0:
            self.free_branch = self.branches[branch].next
        else:
            branch = <int32_t>self.branches.size()
            self.branches.resize(self.branches.size() + 1)
            self.posted.push_back(vector[Posting]())
        if number >= 0:
            self.points[point].free_number = self.numbered[point][number]
            self.numbered[point][number] = branch
        else:
            number = <int32_t>self.numbered[point].size()
            self.numbered[point].push_back(branch)
        self.branches[branch] = Branch(point, number, 0, 0, NONE, 0, end, 0)
        self.measure(&self.branches[branch])
        if self.ends_in_condition(branch) and not self.is_own_condition(branch):
            self.urgent[self.links[end >> 1].parent] = True
        self.link(branch)
        self.branch_ends.put(pack(point, end), branch)
        return branch

    cdef int measure(self, Branch* branch) except -1:
        """Finds how far it is from a branch's end to its branch point."""
        cdef int32_t root = self.points[branch.point].state
        cdef int32_t state = branch.end >> 1
        if branch.end & 1:
            state = self.points[self.sub_queries[branch.end >> 1].point].state
        elif self.links[state].is_condition:
            state = self.links[state].parent  # it is met at the element that it is a condition of
        while state != root:
            state = self.links[state].parent
            branch.distance += 1
            if self.links[state].loops:
                state = self.links[state].parent
                branch.loops += 1
                branch.distance = 0
        return 0

    cdef bint ends_in_condition(self, int32_t branch) noexcept:
        cdef int32_t end = self.branches[branch].end
        return not end & 1 and self.links[end >> 1].is_condition

    cdef bint is_own_condition(self, int32_t branch) noexcept:
        """Whether a branch is a condition of the branch point's own element."""
        return (self.ends_in_condition(branch) and self.branches[branch].distance == 0
                and self.branches[branch].loops == 0)

    cdef int32_t* chain_at(self, int32_t end) noexcept:
        return &self.sub_queries[end >> 1].branches if end & 1 else &self.states[end >> 1].branches

    cdef int link(self, int32_t branch) except -1:
        """Marks the end of a branch with it."""
        cdef int32_t end = self.branches[branch].end
        cdef int32_t* chain = self.chain_at(end)
        self.branches[branch].next = chain[0]
        chain[0] = branch
        if end & 1:
            self.sub_queries[end >> 1].users += 1
            self.refresh_posting(end >> 1)
        else:
            self.links[end >> 1].uses += 1
        return 0

    cdef void unlink(self, int32_t branch) noexcept:
        cdef int32_t end = self.branches[branch].end
        cdef int32_t* chain = self.chain_at(end)
        while chain[0] != branch:
            chain = &self.branches[chain[0]].next
        chain[0] = self.branches[branch].next
        if end & 1:
            self.sub_queries[end >> 1].users -= 1
            self.refresh_posting(end >> 1)
        else:
            self.links[end >> 1].uses -= 1

    cdef int32_t drop_branch(self, int32_t branch) except -2:
        """Takes one use from a branch. Returns the sub-query at its end if that has no user any more, else NONE."""
        cdef Branch* at = &self.branches[branch]
        cdef int32_t end = at.end
        at.uses -= 1
        if at.uses:
            return NONE
        self.unlink(branch)
        self.branch_ends.erase(pack(at.point, end))
        self.posted[branch].shrink_to_fit()
        self.numbered[at.point][at.number] = self.points[at.point].free_number
        self.points[at.point].free_number = at.number
        at.next = self.free_branch
        self.free_branch = branch
        if end & 1:
            return end >> 1 if self.sub_queries[end >> 1].users == 0 else NONE
        self.release_state(end >> 1)
        return NONE

    # Sub-queries.

    cdef int32_t sub_query_at(self, Pattern pattern, int32_t node) except -1:
        """The sub-query rooted at a node of a pattern whose states and lower ends are resolved."""
        cdef int32_t point = self.point_at(self.state_of[node])
        cdef vector[int32_t] numbers
        cdef int32_t child = pattern.nodes[node].first_child
        cdef int32_t found, i
        while child >= 0:
            numbers.push_back(self.branches[self.branch_to(point, self.end_of[child])].number)
            child = pattern.nodes[child].next_sibling
        sort(numbers.begin(), numbers.end())
        for i in range(<int32_t>numbers.size() - 1, 0, -1):
            if numbers[i] == numbers[i - 1]:
                numbers.erase(numbers.begin() + i)
        found = self.hashes.get(self.hash_of(point, numbers), NONE)
        while found >= 0 and (self.sub_queries[found].point != point or self.parts[found] != numbers):
            found = self.sub_queries[found].same_hash
        return found if found >= 0 else self.new_sub_query(point, numbers, needs_document_branch(pattern, node))

    cdef int32_t new_sub_query(self, int32_t point, const vector[int32_t]& numbers, bint with_rule) except -1:
        cdef uint64_t hashed = self.hash_of(point, numbers)
        cdef int32_t sub_query = self.free_sub_query
        cdef bint only_conditions = True
        cdef size_t i
        if sub_query >= 0:
            self.free_sub_query = self.sub_queries[sub_query].same_hash
        else:
            sub_query = <int32_t>self.sub_queries.size()
            self.sub_queries.resize(self.sub_queries.size() + 1)
            self.parts.push_back(vector[int32_t]())
        self.sub_queries[sub_query] = SubQuery(point, NONE, NONE, 0, NONE, NONE, self.hashes.get(hashed, NONE),
                                               with_rule)
        self.parts[sub_query] = numbers
        self.hashes.put(hashed, sub_query)
        for i in range(numbers.size()):
            self.branches[self.numbered[point][numbers[i]]].uses += 1
            only_conditions = only_conditions and self.is_own_condition(self.numbered[point][numbers[i]])
        if only_conditions:
            self.urgent[self.points[point].state] = True
        self.points[point].sub_queries += 1
        self.points[point].without_rule += not with_rule
        self.sub_query_count += 1
        self.post(sub_query)
        return sub_query

    cdef int remove_sub_query(self, int32_t sub_query) except -1:
        """Removes a sub-query without users, and those below that it was the last user of."""
        cdef vector[int32_t] unused
        cdef int32_t point, below
        cdef size_t i
        unused.push_back(sub_query)
        while unused.size():
            sub_query = unused.back()
            unused.pop_back()
            point = self.sub_queries[sub_query].point
            self.unpost(sub_query)
            self.forget_hash(sub_query)
            for i in range(self.parts[sub_query].size()):
                below = self.drop_branch(self.numbered[point][self.parts[sub_query][i]])
                if below >= 0:
                    unused.push_back(below)
            self.parts[sub_query].clear()
            self.parts[sub_query].shrink_to_fit()
            self.points[point].without_rule -= not self.sub_queries[sub_query].with_rule
            self.points[point].sub_queries -= 1
            if self.points[point].sub_queries == 0:
                self.release_point(point)
            self.sub_queries[sub_query] = SubQuery(NONE, NONE, NONE, 0, NONE, NONE, self.free_sub_query, 0)
            self.free_sub_query = sub_query
            self.sub_query_count -= 1
        return 0

    cdef uint64_t hash_of(self, int32_t point, const vector[int32_t]& numbers) noexcept:
        cdef uint64_t hashed = hash_bytes(<const char*>numbers.data(), numbers.size() * sizeof(int32_t))
        return (hashed ^ hash_bytes(<const char*>&point, sizeof(int32_t))) >> 1  # never the table's empty key

    cdef void forget_hash(self, int32_t sub_query) noexcept:
        cdef int32_t following = self.sub_queries[sub_query].same_hash
        cdef uint64_t hashed = self.hash_of(self.sub_queries[sub_query].point, self.parts[sub_query])
        cdef int32_t at = self.hashes.get(hashed, NONE)
        if at == sub_query and following < 0:
            self.hashes.erase(hashed)
        elif at == sub_query:
            self.hashes.put(hashed, following)
        else:
            while self.sub_queries[at].same_hash != sub_query:
                at = self.sub_queries[at].same_hash
            self.sub_queries[at].same_hash = following

    # Postings: in a branch's list those without the rule stand first.

    cdef int post(self, int32_t sub_query) except -1:
        """Posts a new sub-query at the branch where that is cheapest; the next cheapest is to be tested first."""
        cdef SubQuery* at = &self.sub_queries[sub_query]
        cdef int32_t access = NONE
        cdef int32_t other = NONE
        cdef int32_t branch, place
        cdef size_t i
        for i in range(self.parts[sub_query].size()):
            branch = self.numbered[at.point][self.parts[sub_query][i]]
            if access < 0 or self.posting_cost(branch) < self.posting_cost(access):
                other = access
                access = branch
            elif other < 0 or self.posting_cost(branch) < self.posting_cost(other):
                other = branch
        at.access = access
        place = <int32_t>self.posted[access].size()
        self.posted[access].resize(place + 1)
        if not at.with_rule:
            if place != self.branches[access].without_rule:
                self.put_posting(access, place, self.posted[access][self.branches[access].without_rule])
            place = self.branches[access].without_rule
            self.branches[access].without_rule += 1
        self.put_posting(access, place, Posting(sub_query, self.branches[other].number if other >= 0 else NONE,
                                                NONE, self.parts[sub_query].size() > 2, False))
        return 0

    cdef size_t posting_cost(self, int32_t branch) noexcept:
        """A transit branch is a candidate only if a sub-query matched: the paper, too, asks for the child first."""
        return (self.posted[branch].size() + 1) * (1 if self.branches[branch].end & 1 else TANGLING_COST)

    cdef void unpost(self, int32_t sub_query) noexcept:
        cdef SubQuery* at = &self.sub_queries[sub_query]
        cdef vector[Posting]* posted = &self.posted[at.access]
        cdef int32_t hole = at.place
        if not at.with_rule:
            self.branches[at.access].without_rule -= 1
            if hole != self.branches[at.access].without_rule:
                self.put_posting(at.access, hole, posted[0][self.branches[at.access].without_rule])
            hole = self.branches[at.access].without_rule
        if hole != <int32_t>posted.size() - 1:
            self.put_posting(at.access, hole, posted.back())
        posted.pop_back()

    cdef void put_posting(self, int32_t branch, int32_t place, Posting posting) noexcept:
        self.posted[branch][place] = posting
        self.sub_queries[posting.sub_query].place = place

    cdef void refresh_posting(self, int32_t sub_query) noexcept:
        cdef SubQuery* at = &self.sub_queries[sub_query]
        cdef Posting* posting = &self.posted[at.access][at.place]
        posting.key = at.key
        posting.leads_on = at.branches >= 0

    def memory(self):
        """Bytes held, by structure."""
        cdef int64_t branches = 0
        cdef int64_t sub_queries = 0
        cdef size_t i
        for i in range(self.numbered.size()):
            branches += self.numbered[i].capacity() * sizeof(int32_t)
        for i in range(self.posted.size()):
            sub_queries += self.posted[i].capacity() * sizeof(Posting)
        for i in range(self.parts.size()):
            sub_queries += self.parts[i].capacity() * sizeof(int32_t)
        branches += self.points.capacity() * sizeof(BranchPoint) + self.branches.capacity() * sizeof(Branch)
        branches += self.numbered.capacity() * sizeof(vector[int32_t]) + self.branch_ends.bytes()
        sub_queries += self.sub_queries.capacity() * sizeof(SubQuery) + self.hashes.bytes()
        sub_queries += self.parts.capacity() * sizeof(vector[int32_t])
        sub_queries += self.posted.capacity() * sizeof(vector[Posting])
        return {"query index tree states": self.states.capacity() * sizeof(State)
                + self.links.capacity() * sizeof(StateLink) + self.urgent.capacity(),
                "query index tree transitions": self.transitions.bytes(),
                "branch points": branches, "sub-queries": sub_queries,
                "queries": 4 * (self.key_end.capacity() + self.next_key.capacity() + self.previous_key.capacity())}

    # For inspection.

    def path(self, int32_t state):
        """The path to a state, as (axis, symbol) steps; that to the state of a `//` ends with (DESCENDANT, None)."""
        steps = []
        cdef int32_t above
        if self.links[state].loops:
            steps.append((DESCENDANT, None))
            state = self.links[state].parent
        while state:
            above = self.links[state].parent
            steps.append((DESCENDANT if self.links[above].loops else CHILD, self.links[state].symbol))
            state = self.links[above].parent if self.links[above].loops else above
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

    def needs_document_branch(self, int32_t sub_query):
        """Whether the branch-point rule holds for a sub-query."""
        return bool(self.sub_queries[sub_query].with_rule)


cdef bint needs_document_branch(Pattern pattern, int32_t node):
    """Whether whatever matches the node has at least two children: the branch-point rule is sound.

    It is if two branches start with a child axis and different names. If no two do, then the first steps of all
    branches can be merged into one child: those with a child axis have the same name or `*`, a descendant lies below
    it, and a condition needs none.
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
