"""`xfilter`: a finite state machine for each path, indexed by element name.

Paper: Mehmet Altinel, Michael J. Franklin, "Efficient filtering of XML documents for selective dissemination of
information", VLDB 2000.

The idea. Each name of a path is a state of a little machine that waits for that name. An index by name (the query
index) has two lists per name: the candidate list, of states that the next element of that name may satisfy, and the
wait list, of states whose turn has not come. At a start tag the candidates of its name are checked against the
element's level; the next state of each that passes is promoted: a copy goes to the candidate list of its name, with
the level at which it is due. The end tag of the element takes the copies back. A path matches when its last state
passes.

List balance. If all paths start with the same name, all are candidates there at every document's root. So the state
that starts in a candidate list is not the first but the one whose candidate list is shortest when the path is added
(the pivot); what is before it (the prefix) is checked, when the pivot's turn comes, against the open elements.

The paper's terms here. *Path node* `PathNode` with its *query id* `path`, *position* `step`, *relative position*
`distance` and `unbounded`, *next path node* `next`; its *level* is `distance` for a path's first node and
`Promoted.due` for a copy; *query index*, *candidate list* `candidates` (those that are always there; candidates.pyx has their layout) and
`XFilterScratch.promoted` (copies), *wait list* `waits`.

Deviations.
- `*` is not a path node but a distance, as in the paper. One that ends a path has no name after it, and is a path
  node in the lists of `*`, which every start tag looks at.
- The paper gives a copy after `//` no level. Here it is due from a certain level on: `//a//*/b` does not match
  `<a><b/></a>`.
- An element promotes a path node once, however many copies of the node before it pass. Else `//a//a//a//a` has on a
  path of n nested a's a number of copies that grows with n to the power of 3; so there is at most one copy for each
  path node and open element.
- A path that has matched is not followed any further, unless it is part of a twig.
- Nested paths are joined after the document has been read (see join.pyx). Conditions are the last path nodes of their
  paths.

Takes every unordered pattern. It was the first of its kind and is here to be compared with; wins where names are
many and patterns few, since names that no pattern asks for cost nothing.
"""

from libcpp.vector cimport vector

from xsift.document.events cimport END, condition_symbol
from xsift.engines.base cimport Scratch
from xsift.engines.paths cimport PathEngine, PathScratch, PathStep
from xsift.engines.xfilter.candidates cimport (
    NO_PREFIX, Candidate, CandidateList, add_candidate, arrange, candidate_bytes, is_due, is_grown,
)
from xsift.native.tables cimport FlatMap
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint8_t, uint32_t, uint64_t
from xsift.xpath.pattern cimport DESCENDANT
from xsift.xpath.symbols cimport ANY

cdef struct PathNode:
    int32_t path        # the path that it is part of; -1 for a free node
    int32_t step        # the step of the path that it stands for
    int32_t distance    # in levels from the path node before it; of a candidate from the document
    int32_t next        # the path node after it, -1 for the last; the next free node for a free one
    int32_t entry       # the entry of the query index that it is in: that of its name
    int32_t place       # where in the candidate list or the wait list of that entry
    uint8_t unbounded   # `distance` is the least, else the only one

cdef struct Promoted:
    int32_t node
    int32_t due         # as in Candidate

cdef enum Counter:
    CANDIDATES_CHECKED
    CHECKS_SPARED
    PREFIXES_CHECKED
    PROMOTIONS
    PATHS_MATCHED
    PROMOTIONS_TAKEN_BACK


cdef class XFilterScratch(PathScratch):
    cdef int32_t level
    cdef vector[vector[Promoted]] promoted   # by entry: the copies in its candidate list, innermost element's last
    cdef vector[int32_t] promotions          # the entries that open elements promoted a copy to, innermost last ...
    cdef vector[int32_t] first_promotion     # ... and, by level, where that element's begin
    cdef vector[symbol_t] names              # by level: the open element's; level 0 is the document
    cdef vector[uint32_t] passed_at          # by path node: the event at which it passed last
    cdef vector[uint64_t] is_decided         # one bit per path: it has matched, and no twig needs to know where else
    cdef vector[int32_t] decided
    cdef uint32_t event                      # number of the start tag or condition at hand, over all documents


cdef class XFilter(PathEngine):
    """A machine for each path, indexed by name."""

    name = "xfilter"
    paper = "Altinel, Franklin: Efficient filtering of XML documents for selective dissemination (VLDB 2000)"
    wins = "few patterns over many names; the first of its kind, to compare with"
    caveat = "nothing is shared between patterns: time and memory grow with all their steps"
    options = {"list_balance": (True, False)}
    counter_names = ("candidates checked", "checks spared", "prefixes checked", "promotions", "paths matched",
                     "promotions taken back")

    cdef bint list_balance
    cdef vector[PathNode] path_nodes
    cdef int32_t free_node                # head of the list of free path nodes, -1 if there is none
    cdef vector[int32_t] first_node       # by path: its candidate, the pivot or the first path node
    # The query index.
    cdef FlatMap[int32_t] entries         # symbol -> entry
    cdef vector[symbol_t] entry_symbol
    cdef vector[CandidateList] candidates
    cdef vector[vector[int32_t]] waits

    def __cinit__(self, *args, **options):
        self.free_node = -1
        self.entry_of(ANY)

    def __init__(self, **options):
        self.list_balance = self._option(options, "list_balance")
        self._no_options(options)

    # The index.

    cdef int insert_path(self, int32_t path) except -1:
        cdef const PathStep* steps = self.path_steps[path].data()
        cdef int32_t length = <int32_t>self.path_steps[path].size()
        cdef int32_t pivot = self.pivot_of(path)
        cdef int32_t previous = -1
        cdef int32_t node, step
        cdef bint has_prefix = False
        cdef PathNode made = PathNode(path, 0, 0, -1, 0, 0, False)
        for step in range(length):
            made.distance += 1
            made.unbounded |= steps[step].axis == DESCENDANT
            if step < pivot:
                has_prefix |= steps[step].symbol != ANY
            elif steps[step].symbol != ANY or step == length - 1:
                made.step = step
                made.entry = self.entry_of(steps[step].symbol)
                node = self.new_node(made)
                if previous < 0:
                    self.list_candidate(path, node, has_prefix)
                else:
                    self.path_nodes[previous].next = node
                    self.list_node(&self.waits[made.entry], node)
                previous = node
                made.distance = 0
                made.unbounded = False
        return 0

    cdef int delete_path(self, int32_t path) except -1:
        cdef int32_t node = self.first_node[path]
        cdef int32_t following = self.path_nodes[node].next
        self.unlist_candidate(node)
        self.free_path_node(node)
        while following >= 0:
            node = following
            following = self.path_nodes[node].next
            self.unlist_node(&self.waits[self.path_nodes[node].entry], node)
            self.free_path_node(node)
        return 0

    cdef int list_candidate(self, int32_t path, int32_t node, bint has_prefix) except -1:
        """Puts the first path node of a path into the candidate list of its name."""
        cdef const PathStep* steps = self.path_steps[path].data()
        cdef const PathNode* at = &self.path_nodes[node]
        cdef CandidateList* found = &self.candidates[at.entry]
        cdef Candidate made = Candidate(at.distance * 2 + at.unbounded, ANY, 1, node, path, NO_PREFIX, at.step)
        if has_prefix:
            made.prefix = 0
            if steps[at.step].axis != DESCENDANT:
                made.above = steps[at.step - 1].symbol
        self.set_first_node(path, node)
        self.path_nodes[node].place = <int32_t>found.candidates.size()
        add_candidate(found, made, steps)
        return self.arrange_candidates(found) if is_grown(found[0]) else 0

    cdef int unlist_candidate(self, int32_t node) except -1:
        cdef CandidateList* found = &self.candidates[self.path_nodes[node].entry]
        found.candidates[self.path_nodes[node].place].node = -1
        found.gone += 1
        return self.arrange_candidates(found) if found.gone * 4 > <int32_t>found.candidates.size() else 0

    cdef int arrange_candidates(self, CandidateList* found) except -1:
        cdef int32_t place
        arrange(found)
        for place in range(<int32_t>found.candidates.size()):
            self.path_nodes[found.candidates[place].node].place = place
        return 0

    cdef int32_t pivot_of(self, int32_t path) except -1:
        """The step whose name has the shortest candidate list; without list balance 0: the first."""
        cdef int32_t pivot = 0
        cdef size_t shortest = <size_t>-1
        cdef size_t length
        cdef const CandidateList* found
        cdef int32_t step
        if self.list_balance:
            for step in range(<int32_t>self.path_steps[path].size()):
                if self.path_steps[path][step].symbol != ANY:
                    found = &self.candidates[self.entry_of(self.path_steps[path][step].symbol)]
                    length = found.candidates.size() - found.gone
                    if length < shortest:
                        shortest = length
                        pivot = step
        return pivot

    cdef int32_t entry_of(self, symbol_t symbol) except -1:
        cdef int32_t entry = self.entries.get(symbol, -1)
        if entry < 0:
            entry = <int32_t>self.entry_symbol.size()
            self.entries.put(symbol, entry)
            self.entry_symbol.push_back(symbol)
            self.candidates.resize(self.candidates.size() + 1)
            self.waits.push_back(vector[int32_t]())
        return entry

    cdef int32_t new_node(self, PathNode made) except -1:
        cdef int32_t node = self.free_node
        if node >= 0:
            self.free_node = self.path_nodes[node].next
            self.path_nodes[node] = made
        else:
            node = <int32_t>self.path_nodes.size()
            self.path_nodes.push_back(made)
        return node

    cdef int free_path_node(self, int32_t node) except -1:
        self.path_nodes[node].path = -1
        self.path_nodes[node].next = self.free_node
        self.free_node = node
        return 0

    cdef int set_first_node(self, int32_t path, int32_t node) except -1:
        if self.first_node.size() <= <size_t>path:
            self.first_node.resize(path + 1, -1)
        self.first_node[path] = node
        return 0

    cdef int list_node(self, vector[int32_t]* nodes, int32_t node) except -1:
        self.path_nodes[node].place = <int32_t>nodes.size()
        nodes.push_back(node)
        return 0

    cdef int unlist_node(self, vector[int32_t]* nodes, int32_t node) except -1:
        cdef int32_t last = nodes.back()
        nodes[0][self.path_nodes[node].place] = last
        self.path_nodes[last].place = self.path_nodes[node].place
        nodes.pop_back()
        return 0

    def query_index(self):
        """For people: symbol -> its candidate list and its wait list, each a list of (path, step)."""
        cdef size_t entry
        listed = {}
        for entry in range(self.entry_symbol.size()):
            candidates = [one.node for one in self.candidates[entry].candidates if one.node >= 0]
            lists = [sorted((self.path_nodes[node].path, self.path_nodes[node].step) for node in nodes)
                     for nodes in (candidates, list(self.waits[entry]))]
            if any(lists):
                listed[self.entry_symbol[entry]] = tuple(lists)
        return listed

    def memory(self):
        cdef XFilterScratch scratch
        cdef size_t i
        cdef int64_t candidates = 0
        cdef int64_t waits = 0
        cdef int64_t promoted = 0
        for i in range(self.entry_symbol.size()):
            candidates += candidate_bytes(self.candidates[i])
            waits += self.waits[i].capacity() * sizeof(int32_t) + sizeof(vector[int32_t])
        for scratch in self.scratches:
            for i in range(scratch.promoted.size()):
                promoted += scratch.promoted[i].capacity() * sizeof(Promoted) + sizeof(vector[Promoted])
            promoted += 4 * (scratch.promotions.capacity() + scratch.first_promotion.capacity()
                             + scratch.names.capacity() + scratch.passed_at.capacity()
                             + scratch.decided.capacity() + 2 * scratch.is_decided.capacity())
        sizes = PathEngine.memory(self)
        sizes["path nodes"] = self.path_nodes.capacity() * sizeof(PathNode) + self.first_node.capacity() * 4
        sizes["query index"] = self.entries.bytes() + self.entry_symbol.capacity() * sizeof(symbol_t)
        sizes["candidate lists"] = candidates
        sizes["wait lists"] = waits
        sizes["run-time candidate lists"] = promoted
        return sizes

    # The run.

    cdef Scratch new_scratch(self):
        return XFilterScratch(self.branches)

    cdef int begin(self, Scratch scratch) except -1 nogil:
        return self.begin_run(<XFilterScratch>scratch)

    cdef int begin_run(self, XFilterScratch scratch) except -1 nogil:
        self.begin_join(scratch)
        while scratch.promotions.size():
            scratch.promoted[scratch.promotions.back()].pop_back()
            scratch.promotions.pop_back()
        scratch.promoted.resize(self.entry_symbol.size())
        if scratch.event >= <uint32_t>0x80000000:  # before it wraps: an old event must not look like a new one
            scratch.passed_at.clear()
            scratch.event = 0
        scratch.passed_at.resize(self.path_nodes.size(), 0)
        while scratch.decided.size():
            scratch.is_decided[scratch.decided.back() >> 6] = 0
            scratch.decided.pop_back()
        scratch.is_decided.resize((self.path_steps.size() + 63) >> 6, 0)
        scratch.level = 0
        scratch.names.assign(1, 0)
        scratch.first_promotion.assign(1, 0)
        return 0

    cdef int feed(self, Scratch scratch, const int32_t* codes, size_t number) except -1 nogil:
        return self.run(<XFilterScratch>scratch, codes, number)

    cdef int run(self, XFilterScratch scratch, const int32_t* codes, size_t number) except -1 nogil:
        cdef size_t i
        for i in range(number):
            if codes[i] >= 0:
                self.start_tag(scratch, codes[i])
            elif codes[i] == END:
                self.end_tag(scratch)
            else:
                self.condition_holds(scratch, condition_symbol(codes[i]))
        return 0

    cdef int start_tag(self, XFilterScratch scratch, symbol_t symbol) except -1 nogil:
        cdef int32_t entry
        self.element_starts(scratch, symbol)
        scratch.level += 1
        scratch.event += 1
        scratch.names.push_back(symbol)
        scratch.first_promotion.push_back(<int32_t>scratch.promotions.size())
        if symbol != ANY:
            entry = self.entries.get(symbol, -1)
            if entry >= 0:
                self.check_candidates(scratch, entry, scratch.level)
        return self.check_candidates(scratch, 0, scratch.level)

    cdef int condition_holds(self, XFilterScratch scratch, symbol_t condition) except -1 nogil:
        cdef int32_t entry = self.entries.get(condition, -1)
        scratch.event += 1
        if entry >= 0:
            self.check_candidates(scratch, entry, scratch.level + 1)
        return 0

    cdef int end_tag(self, XFilterScratch scratch) except -1 nogil:
        if scratch.level == 0:
            return 0
        self.element_ends(scratch)
        scratch.counts[PROMOTIONS_TAKEN_BACK] += scratch.promotions.size() - scratch.first_promotion.back()
        while <int32_t>scratch.promotions.size() > scratch.first_promotion.back():
            scratch.promoted[scratch.promotions.back()].pop_back()
            scratch.promotions.pop_back()
        scratch.first_promotion.pop_back()
        scratch.names.pop_back()
        scratch.level -= 1
        return 0

    cdef int check_candidates(self, XFilterScratch scratch, int32_t entry, int32_t level) except -1 nogil:
        """Checks a candidate list; copies that are promoted meanwhile are not due at this level."""
        cdef size_t copies = scratch.promoted[entry].size()
        cdef const Promoted* copy
        cdef size_t i
        self.check_first_nodes(scratch, self.candidates[entry], level)
        scratch.counts[CANDIDATES_CHECKED] += copies
        for i in range(copies):
            copy = &scratch.promoted[entry][i]
            if is_due(copy.due, level) and scratch.passed_at[copy.node] != scratch.event:
                scratch.passed_at[copy.node] = scratch.event
                if not self.has_decided(scratch, self.path_nodes[copy.node].path):
                    self.passes(scratch, copy.node, level)
        return 0

    cdef int check_first_nodes(self, XFilterScratch scratch, const CandidateList& found,
                               int32_t level) except -1 nogil:
        """The candidates that are always there, a group at a time."""
        cdef const Candidate* candidate = found.candidates.data()
        cdef const Candidate* end = candidate + found.candidates.size()
        cdef const Candidate* end_of_group
        cdef symbol_t above = scratch.names[level - 1]
        cdef int64_t spared = 0
        while candidate < end:
            end_of_group = candidate + candidate.alike
            if not is_due(candidate.due, level) or (candidate.above != ANY and candidate.above != above):
                spared += candidate.alike - 1
                candidate = end_of_group
            while candidate < end_of_group:
                if candidate.node >= 0 and not self.has_decided(scratch, candidate.path):
                    if candidate.prefix == NO_PREFIX or self.prefix_holds(
                            scratch, found.prefixes.data() + candidate.prefix, candidate.step, level):
                        self.passes(scratch, candidate.node, level)
                candidate += 1
        scratch.counts[CANDIDATES_CHECKED] += found.candidates.size() - spared
        scratch.counts[CHECKS_SPARED] += spared
        return 0

    cdef int passes(self, XFilterScratch scratch, int32_t node, int32_t level) except -1 nogil:
        """A path node is satisfied by the element or condition at hand: promotes the next one."""
        cdef const PathNode* at = &self.path_nodes[node]
        cdef const PathNode* following
        if at.next < 0:
            scratch.counts[PATHS_MATCHED] += 1
            if not self.in_twig(at.path):
                scratch.is_decided[at.path >> 6] |= <uint64_t>1 << (at.path & 63)
                scratch.decided.push_back(at.path)
            return self.path_matched(scratch, at.path)
        following = &self.path_nodes[at.next]
        scratch.counts[PROMOTIONS] += 1
        scratch.promoted[following.entry].push_back(
            Promoted(at.next, (level + following.distance) * 2 + following.unbounded))
        scratch.promotions.push_back(following.entry)
        return 0

    cdef inline bint has_decided(self, XFilterScratch scratch, int32_t path) noexcept nogil:
        return scratch.is_decided[path >> 6] >> (path & 63) & 1

    cdef bint prefix_holds(self, XFilterScratch scratch, const PathStep* steps, int32_t step,
                           int32_t level) noexcept nogil:
        """Whether the steps before `step`, the pivot's, are on the open path above it.

        Upwards, each step takes the first element that will do; where one does not, the last `//` passed is tried one
        element further up. That is enough: what is left above a `//` only gets less the further up it goes.
        """
        cdef int32_t retry_step = -1
        cdef int32_t retry_level = 0
        scratch.counts[PREFIXES_CHECKED] += 1
        while True:
            if step == 0:
                if steps[0].axis == DESCENDANT or level == 1:
                    return True
            else:
                if steps[step].axis == DESCENDANT:
                    retry_step = step
                    retry_level = level
                step -= 1
                level -= 1
                if level >= 1 and (steps[step].symbol == ANY or steps[step].symbol == scratch.names[level]):
                    continue
            # No: the step below the last `//` stays where it is, the one above it goes up by one.
            if retry_step < 0 or retry_level <= 1:
                return False
            retry_level -= 1
            step = retry_step
            level = retry_level
