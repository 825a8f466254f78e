"""The index of XTrie: how an expression becomes substrings, the Substring-Table, and the Trie.

A *substring* of an expression is a run of names joined by `/`. The simple decomposition has one for each step where
such a run ends: a leaf, a step before `//` or `*`, a branching step; each reaches up as far as `/` goes, through
steps that belong to other substrings too. `*` is in no substring: k - 1 of them before a name only say how far the
name is from the substring above. A `*` that ends or branches has no name below it to count towards, so that it
becomes a row of its own; so does one that is a child of a step whose children are ordered, because it is the `*`,
not the name below it, that has a place in the order. A condition is a name that no `*` matches, always the last of
its substring.

Max-suffix pointers under updates. A new node's own pointer is found as Aho and Corasick do, from its parent's. The
nodes that must now point to it end in its label: they are children, along the same symbol, of nodes that end in its
parent's label, and those are found by following the parent's pointers backwards (`suffix_of`). A node that goes
hands the nodes that point to it on to where it pointed itself.
"""

from libcpp.vector cimport vector

from xsift.engines.xtrie.probes cimport NO_LIST, Probe, ProbeList, ProbeLists
from xsift.native.tables cimport pack
from xsift.xpath.pattern cimport DESCENDANT, Pattern, PatternNode
from xsift.xpath.symbols cimport ANY, Symbols

from xsift.engines.xtrie.view import SubstringRow, TrieLabel


cdef enum:
    ENOUGH = 1000  # rows, before it is worth while to rearrange them


cdef class Trie:
    """All distinct substrings. Each node has a substring pointer (alpha) and a max-suffix pointer (beta)."""

    def __cinit__(self):
        self.free_node = -1
        self.node_count = 1
        self.nodes.push_back(TrieNode(-1, 0, 0, NO_LIST, NO_LIST, NO_LIST, 0, 0, LEAF, ROOT, -1, -1, -1))

    cdef int32_t insert(self, const vector[symbol_t]& substring) except -1:
        """The node of a substring, made if it is new."""
        cdef int32_t node = ROOT
        cdef int32_t child
        cdef size_t i
        for i in range(substring.size()):
            child = self.edges.get(pack(node, substring[i]), -1)
            node = child if child >= 0 else self.add_node(node, substring[i])
        return node

    cdef int prune(self, int32_t node) except -1:
        """Removes a node that is of no use any more, and those above it that this makes useless."""
        cdef int32_t parent, other
        while node != ROOT and self.nodes[node].children == 0 and self.nodes[node].rows == 0:
            while self.nodes[node].suffix_of >= 0:
                other = self.nodes[node].suffix_of
                self.unlink_beta(other)
                self.set_beta(other, self.nodes[node].beta)
            self.unlink_beta(node)
            parent = self.nodes[node].parent
            self.edges.erase(pack(parent, self.nodes[node].symbol))
            self.labelled[self.nodes[node].symbol] -= 1
            self.nodes[parent].children -= 1
            self.nodes[node].parent = self.free_node
            self.free_node = node
            self.node_count -= 1
            node = parent
        return 0

    cdef int32_t add_node(self, int32_t parent, symbol_t symbol) except -1:
        cdef int32_t node = self.free_node
        cdef TrieNode made = TrieNode(parent, symbol, 0, NO_LIST, NO_LIST, NO_LIST, 0, 0, LEAF, ROOT, -1, -1, -1)
        cdef int32_t beta = ROOT
        if parent != ROOT:
            beta = self.advance(self.nodes[parent].beta, symbol)
        if node >= 0:
            self.free_node = self.nodes[node].parent
            self.nodes[node] = made
        else:
            node = <int32_t>self.nodes.size()
            self.nodes.push_back(made)
        if self.labelled.size() <= <size_t>symbol:
            self.labelled.resize(symbol + 1, 0)
            self.root_suffix_of.resize(symbol + 1, -1)
        self.redirect_to(node, beta)
        self.set_beta(node, beta)
        self.edges.put(pack(parent, symbol), node)
        self.labelled[symbol] += 1
        self.nodes[parent].children += 1
        self.node_count += 1
        return node

    cdef int redirect_to(self, int32_t node, int32_t beta) except -1:
        """Turns to a new node the max-suffix pointers that it is now the best for; so far they are all to `beta`."""
        cdef symbol_t symbol = self.nodes[node].symbol
        cdef int32_t parent = self.nodes[node].parent
        cdef int32_t longer, candidate
        cdef vector[int32_t] pending
        cdef vector[int32_t] found
        if parent == ROOT:
            longer = self.root_suffix_of[symbol]
            while longer >= 0:
                found.push_back(longer)
                longer = self.nodes[longer].next_same
        else:
            pending.push_back(self.nodes[parent].suffix_of)
        while pending.size():
            longer = pending.back()
            if longer < 0:
                pending.pop_back()
                continue
            pending[pending.size() - 1] = self.nodes[longer].next_same
            candidate = self.edges.get(pack(longer, symbol), -1)
            # A candidate that points to something else points to a longer suffix, and so do all that end in it.
            if candidate < 0:
                pending.push_back(self.nodes[longer].suffix_of)
            elif self.nodes[candidate].beta == beta:
                found.push_back(candidate)
        # Only now: a candidate may be in one of the lists that were just followed.
        for candidate in found:
            self.unlink_beta(candidate)
            self.set_beta(candidate, node)
        return 0

    cdef int set_beta(self, int32_t node, int32_t beta) except -1:
        cdef int32_t* first = self.suffix_list(beta, self.nodes[node].symbol)
        self.nodes[node].beta = beta
        self.nodes[node].previous_same = -1
        self.nodes[node].next_same = first[0]
        if first[0] >= 0:
            self.nodes[first[0]].previous_same = node
        first[0] = node
        return 0

    cdef int unlink_beta(self, int32_t node) except -1:
        cdef int32_t following = self.nodes[node].next_same
        cdef int32_t preceding = self.nodes[node].previous_same
        if following >= 0:
            self.nodes[following].previous_same = preceding
        if preceding >= 0:
            self.nodes[preceding].next_same = following
        else:
            self.suffix_list(self.nodes[node].beta, self.nodes[node].symbol)[0] = following
        return 0

    cdef int32_t* suffix_list(self, int32_t beta, symbol_t symbol) except NULL:
        return &self.root_suffix_of[symbol] if beta == ROOT else &self.nodes[beta].suffix_of

    cdef size_t bytes(self):
        return (self.nodes.capacity() * sizeof(TrieNode) + self.edges.bytes()
                + (self.labelled.capacity() + self.root_suffix_of.capacity()) * sizeof(int32_t))

    def label(self, int32_t node, Symbols symbols):
        """The names along the path from the root to a node."""
        names = []
        while node != ROOT:
            names.append(symbols.text(self.nodes[node].symbol))
            node = self.nodes[node].parent
        return tuple(reversed(names))

    def describe(self, Symbols symbols, dict first_rows):
        """All nodes as `TrieLabel`, by label; `first_rows` gives the alpha of the nodes of substrings."""
        cdef int32_t node
        free = set()
        node = self.free_node
        while node >= 0:
            free.add(node)
            node = self.nodes[node].parent
        return sorted(TrieLabel(self.label(node, symbols), first_rows.get(node, 0),
                                self.label(self.nodes[node].beta, symbols))
                      for node in range(<int32_t>self.nodes.size()) if node not in free)


cdef class SubstringTable:
    """One row for each substring of each expression."""

    def __cinit__(self):
        self.probes = ProbeLists()
        self.substring_levels = 1
        self.rows.push_back(Row(0, 0, 0, 0, 0, 0, 0, ROOT, 0, -1))

    cdef int32_t add_pattern(self, Pattern pattern, Trie trie) except -1:
        """Appends the rows of the pattern's simple decomposition; returns the pattern's key."""
        cdef int32_t first = <int32_t>self.rows.size()
        cdef int32_t key = self.free_keys.take(self.first_row.size())
        cdef int32_t row
        if <size_t>key == self.first_row.size():
            self.first_row.push_back(0)
        self.first_row[key] = first
        decompose(pattern, key, &self.rows, trie)
        for row in range(first, <int32_t>self.rows.size()):
            self.count_row(row, trie, 1)
            self.enlist(row, trie)
        self.pattern_count += 1
        self.count_kinds(key, 1)
        if self.rows.size() > ENOUGH and <int32_t>self.rows.size() > self.arranged_rows + self.arranged_rows // 4:
            self.rearrange(trie)
        return key

    cdef int remove_pattern(self, int32_t key, Trie trie) except -1:
        cdef int32_t first = self.first_row[key]
        cdef int32_t end = self.end_of(first)
        cdef int32_t row
        self.count_kinds(key, -1)
        # Descending: a `*` leaves the list below its parent's substring before that substring goes.
        for row in range(end - 1, first - 1, -1):
            self.unlist(row, trie)
            self.count_row(row, trie, -1)
            self.rows[row].pattern = -1
        self.free_rows += end - first
        self.first_row[key] = 0
        self.free_keys.give_back(key)
        self.pattern_count -= 1
        if self.free_rows > ENOUGH and self.free_rows * 2 > <int32_t>self.rows.size():
            self.rearrange(trie)
        return 0

    cdef int32_t* list_of(self, int32_t row, Trie trie) except? NULL:
        """The number of the list that a row's probe is in; NULL if nobody will look it up.

        Of `*`s only those that wait are looked up, right below a substring or the document.
        """
        cdef Row* at = &self.rows[row]
        cdef TrieNode* node = &trie.nodes[at.substring]
        if at.flags & STAR:
            if at.flags & WAITS and not self.rows[at.parent_row].flags & STAR:
                return &node.stars
            return NULL
        if at.num_child == 0:
            return &node.leaves
        return &node.inner if self.eager else NULL

    cdef Probe probe_of(self, int32_t row):
        cdef Row* at = &self.rows[row]
        cdef Row* parent = &self.rows[at.parent_row]
        cdef int32_t asked = at.parent_row if parent.flags & STAR else parent.levels
        return Probe(asked, at.level_min, at.flags & UNBOUNDED | parent.flags & STAR, 1, row, at.pattern)

    cdef int32_t append_probe(self, int32_t row, Trie trie) except -2:
        """Appends a row's probe to its list; gives the list's number."""
        cdef int32_t* number = self.list_of(row, trie)
        cdef vector[Probe]* probes
        if number == NULL:
            return NO_LIST
        if number[0] == NO_LIST:
            number[0] = self.probes.new_list()
        probes = &self.probes.lists[number[0]].probes
        self.rows[row].place = <int32_t>probes.size()
        probes.push_back(self.probe_of(row))
        return number[0]

    cdef int arrange(self, int32_t number) except -1:
        cdef const vector[Probe]* probes
        cdef int32_t place
        self.probes.arrange(number)
        probes = &self.probes.lists[number].probes
        for place in range(<int32_t>probes.size()):
            self.rows[probes[0][place].row].place = place
        return 0

    cdef int enlist(self, int32_t row, Trie trie) except -1:
        """Adds a row to the list in which it is looked up, if it is."""
        cdef int32_t number = self.append_probe(row, trie)
        if number != NO_LIST and self.probes.is_grown(number):
            self.arrange(number)
        return 0

    cdef int unlist(self, int32_t row, Trie trie) except -1:
        """Takes a row out of its list."""
        cdef int32_t* number = self.list_of(row, trie)
        cdef ProbeList* found
        if number == NULL:
            return 0
        found = &self.probes.lists[number[0]]
        found.probes[self.rows[row].place].pattern = -1
        found.gone += 1
        if found.gone == <int32_t>found.probes.size():
            self.probes.free_list(number[0])
            number[0] = NO_LIST
        elif found.gone * 4 > <int32_t>found.probes.size():
            self.arrange(number[0])
        return 0

    cdef int count_row(self, int32_t row, Trie trie, int change) except -1:
        """Tells the trie of a row that comes or goes, and finds a place for the levels at which it is matched."""
        cdef Row* at = &self.rows[row]
        cdef TrieNode* node = &trie.nodes[at.substring]
        if at.flags & STAR:
            return 0
        node.rows += change
        if at.num_child:
            node.inner_rows += change
            if node.inner_rows == 0:
                self.free_levels.give_back(node.levels)
                node.levels = LEAF
            elif node.levels == LEAF:
                node.levels = self.new_levels()
            at.levels = row if self.eager else node.levels
        return trie.prune(at.substring)

    cdef int32_t new_levels(self) except -1:
        cdef int32_t number = self.free_levels.take(self.substring_levels)
        if number == self.substring_levels:
            self.substring_levels += 1
        return number

    cdef int count_kinds(self, int32_t key, int change) except -1:
        cdef int32_t row
        cdef bint twig = False
        cdef bint ordered = False
        for row in range(self.first_row[key], self.end_of(self.first_row[key])):
            twig |= self.rows[row].num_child > 1
            ordered |= self.rows[row].flags & ORDERED != 0
        self.twig_count += change if twig else 0
        self.ordered_count += change if ordered else 0
        return 0

    cdef int rearrange(self, Trie trie) except -1:
        """Puts the rows in the order of the probes of leaf substrings, without gaps.

        The order of the expressions in the table is arbitrary, says the paper. But where the rows of a group that is
        found to be reachable are all over the table, each is a cache miss.
        """
        cdef vector[Row] arranged
        cdef int32_t first, end
        cdef size_t i, j
        cdef vector[Probe]* probes
        arranged.reserve(self.rows.size() - self.free_rows)
        arranged.push_back(self.rows[DOCUMENT])
        for i in range(trie.nodes.size()):
            if trie.nodes[i].leaves != NO_LIST:
                self.probes.arrange(trie.nodes[i].leaves)
                probes = &self.probes.lists[trie.nodes[i].leaves].probes
                for j in range(probes.size()):
                    self.move_pattern(probes[0][j].pattern, &arranged)
        for i in range(self.first_row.size()):
            self.move_pattern(<int32_t>i, &arranged)
        self.rows.swap(arranged)
        end = 1
        while end < <int32_t>self.rows.size():
            first = end
            end = self.end_of(first)
            self.first_row[self.rows[first].pattern] = first
        self.free_rows = 0
        self.arranged_rows = <int32_t>self.rows.size()
        return self.relist(trie)

    cdef int relist(self, Trie trie) except -1:
        """Makes all probes anew: rows have other numbers now."""
        cdef int32_t number, row
        cdef size_t i
        self.probes = ProbeLists()
        for i in range(trie.nodes.size()):
            trie.nodes[i].leaves = trie.nodes[i].inner = trie.nodes[i].stars = NO_LIST
        for row in range(1, <int32_t>self.rows.size()):
            self.append_probe(row, trie)
        for number in range(<int32_t>self.probes.lists.size()):
            self.arrange(number)
        return 0

    cdef int move_pattern(self, int32_t key, vector[Row]* arranged) except -1:
        """Copies a pattern's rows to the end of the new table, once: then its first row is negative."""
        cdef int32_t first = self.first_row[key]
        cdef int32_t shift = <int32_t>arranged.size() - first
        cdef int32_t row
        cdef Row copy
        if first <= 0:
            return 0
        for row in range(first, self.end_of(first)):
            copy = self.rows[row]
            copy.parent_row += shift if copy.parent_row != DOCUMENT else 0
            copy.previous_sibling += shift
            copy.levels += shift if self.eager and copy.levels != LEAF else 0
            arranged.push_back(copy)
        self.first_row[key] = -1
        return 0

    cdef int32_t end_of(self, int32_t row) except -1:
        """The row after the last one of the pattern that a row is part of."""
        cdef int32_t key = self.rows[row].pattern
        while row < <int32_t>self.rows.size() and self.rows[row].pattern == key:
            row += 1
        return row

    cdef size_t bytes(self):
        return (self.rows.capacity() * sizeof(Row) + self.probes.bytes()
                + self.first_row.capacity() * sizeof(int32_t) + self.free_keys.bytes() + self.free_levels.bytes())

    def chains(self):
        """By trie node: the rows of its substring in the paper's order: leaf substrings first, so that alpha and Next
        are the first and the following one."""
        cdef int32_t row
        chains = {}
        live = [row for row in range(1, <int32_t>self.rows.size())
                if self.rows[row].pattern >= 0 and not self.rows[row].flags & STAR]
        for row in sorted(live, key=lambda row: self.rows[<int32_t>row].num_child > 0):
            chains.setdefault(self.rows[row].substring, []).append(row)
        return chains

    def describe(self, Trie trie, Symbols symbols):
        """All rows as `SubstringRow`."""
        following = {}
        for chain in self.chains().values():
            following.update(zip(chain, chain[1:]))
        described = []
        for index in range(1, <int32_t>self.rows.size()):
            row = self.rows[index]
            if row.pattern >= 0:
                substring = ("*",) if row.flags & STAR else trie.label(row.substring, symbols)
                level_max = None if row.flags & UNBOUNDED else row.level_min
                described.append(SubstringRow(index, row.pattern, substring, row.parent_row, (row.level_min, level_max),
                                              row.rank, row.num_child, following.get(index, 0)))
        return described


# The decomposition.

cdef int decompose(Pattern pattern, int32_t key, vector[Row]* rows, Trie trie) except -1:
    """Appends the rows of a pattern's simple decomposition, each after its parent's."""
    cdef vector[int32_t] row_of = vector[int32_t](pattern.nodes.size(), -1)  # by step: the row that ends there, or -1
    cdef int32_t step
    cdef int32_t first = <int32_t>rows.size()
    for step in range(<int32_t>pattern.nodes.size()):
        if ends_row(pattern, step):
            row_of[step] = <int32_t>rows.size()
            rows.push_back(row_of_step(pattern, step, row_of, trie))
            rows.back().pattern = key
    link_siblings(rows, first)
    return 0


cdef bint ends_row(Pattern pattern, int32_t step) except -1:
    cdef PatternNode node = pattern.nodes[step]
    cdef int32_t child = node.first_child
    if child < 0 or pattern.nodes[child].next_sibling >= 0:
        return True
    if is_star(node):
        return has_ordered_children(pattern, node.parent)
    return pattern.nodes[child].axis == DESCENDANT or is_star(pattern.nodes[child])


cdef bint is_star(PatternNode node):
    return node.symbol == ANY and not node.is_condition


cdef bint has_ordered_children(Pattern pattern, int32_t step):
    """Whether the order of the children of a step counts: conditions aside, there are several."""
    cdef int32_t number = 0
    cdef int32_t child
    if step < 0 or not pattern.ordered:
        return False
    child = pattern.nodes[step].first_child
    while child >= 0:
        number += not pattern.nodes[child].is_condition
        child = pattern.nodes[child].next_sibling
    return number > 1


cdef Row row_of_step(Pattern pattern, int32_t step, const vector[int32_t]& row_of, Trie trie):
    """The row whose last step this is. Rank and siblings are filled in later."""
    cdef Row row = Row(DOCUMENT, 0, 0, 0, 0, 0, 0, ROOT, LEAF, -1)
    cdef vector[symbol_t] upwards
    cdef vector[symbol_t] substring
    cdef int32_t above = step
    cdef int32_t child = pattern.nodes[step].first_child
    while child >= 0:
        row.num_child += 1
        child = pattern.nodes[child].next_sibling
    while above >= 0 and (above == step or row_of[above] < 0):
        row.level_min += 1
        if pattern.nodes[above].axis == DESCENDANT:
            row.flags |= UNBOUNDED
        child = above
        above = pattern.nodes[above].parent
    row.parent_row = row_of[above] if above >= 0 else DOCUMENT
    if has_ordered_children(pattern, above) and not pattern.nodes[child].is_condition:
        row.flags |= ORDERED
    if is_star(pattern.nodes[step]):
        row.flags |= STAR
        above = pattern.nodes[step].parent
        # The `*`s that were passed over on the way up are in no substring; below the parent's there is nothing else.
        while above >= 0 and row_of[above] < 0:
            above = pattern.nodes[above].parent
        if above < 0 or is_star(pattern.nodes[above]):
            return row
        step = above
    while True:
        upwards.push_back(pattern.nodes[step].symbol)
        above = pattern.nodes[step].parent
        if above < 0 or pattern.nodes[step].axis == DESCENDANT or is_star(pattern.nodes[above]):
            break
        step = above
    while upwards.size():
        substring.push_back(upwards.back())
        upwards.pop_back()
    row.substring = trie.insert(substring)
    return row


cdef int link_siblings(vector[Row]* rows, int32_t first) except -1:
    """Ranks the children of each row, joins them in a ring, and finds the `*`s that wait for start tags."""
    cdef vector[int32_t] last_child = vector[int32_t](rows.size() - first, 0)
    cdef vector[int32_t] seen = vector[int32_t](rows.size() - first, 0)
    cdef int32_t index
    cdef Row* row
    for index in range(first, <int32_t>rows.size()):
        row = &rows[0][index]
        row.rank = 1
        row.previous_sibling = index
        if row.parent_row != DOCUMENT:
            seen[row.parent_row - first] += 1
            row.rank = seen[row.parent_row - first]
            row.previous_sibling = last_child[row.parent_row - first]
            last_child[row.parent_row - first] = index
    for index in range(<int32_t>rows.size() - 1, first - 1, -1):
        row = &rows[0][index]
        if row.num_child:
            rows[0][index + 1].previous_sibling = last_child[index - first]
        if row.flags & STAR and row.num_child == 0:
            row.flags |= WAITS
        if row.flags & WAITS and row.parent_row != DOCUMENT and rows[0][row.parent_row].flags & STAR:
            rows[0][row.parent_row].flags |= WAITS
    return 0
