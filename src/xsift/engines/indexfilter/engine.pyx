"""`indexfilter`: the prefix tree of the paths against an index of the document's elements.

Paper: Nicolas Bruno, Luis Gravano, Nick Koudas, Divesh Srivastava, "Navigation- vs. index-based XML multi-query
processing", ICDE 2003. Predicate-based filtering was measured against it, in the form that stops at a query's first
match.

The idea. An automaton looks at every tag of a document. If the document's elements are indexed by name, each with
(start, end, level), then whether one is below another is two comparisons of numbers, and a query can be answered
from the streams of its names alone, leaping over elements that cannot be part of an answer. The queries are put
together in one tree, so that queries with the same prefix share its part of the work.

The paper's terms here. *Prefix tree* `QueryNode`; *index stream* of a query node `IndexFilterScratch.streams`,
elements as numbers in document order (an element's *start*), with `ends` (the last element inside it) and `levels`;
*stack* of a query node `ancestors`: the elements of the node above that contain the element at hand.

Two ways to evaluate, by the option `evaluation`.
- "together": the streams of all query nodes are gone through together, in document order, as the paper has it. Each
  query node has a place in its stream and a stack of the elements found for it that are still open; the node whose next
  element comes first has its turn. A node has turns only while the stack above it is not empty, and leaps in its stream
  when that one gets its first element. A node without children ends with its first element.
- "depth-first", the default, is ours: the tree is walked depth first, and each node's stream is joined with the
  elements found for the node above it, which are kept for the way down. Each stream is read once per query node, from
  left to right, with the same leaps. It needs no order among query nodes, and so no priority queue.

Deviations.
- The paper has no wildcards. As in the comparison by Hou and Jacobsen, the stream of `*` has every element.
- A condition is the stream of the elements for which it holds.
- Twigs. Paths are matched first, each to its first element. A twig all of whose paths match goes to the shared join
  (join.pyx), which asks for the other elements of those paths alone: they are found by joining their streams once more.

The index has to be complete before it is used, so the document is collected while it is read and evaluated at its
end: memory grows with the document, and nothing is known before its last tag.

Takes every unordered pattern. Wins with few queries over large documents whose names they seldom ask for; loses
with many queries over small documents, since every query node whose parent has an element is visited.
"""

from libcpp.algorithm cimport is_sorted, lower_bound, sort
from libcpp.vector cimport vector

from xsift.document.events cimport END, condition_symbol
from xsift.engines.base cimport Scratch
from xsift.engines.join cimport Candidate, OpenedElement
from xsift.engines.paths cimport PathEngine, PathScratch, PathStep
from xsift.native.tables cimport FlatMap, pack
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint8_t, uint32_t
from xsift.xpath.pattern cimport DESCENDANT
from xsift.xpath.symbols cimport ANY

cdef struct QueryNode:
    int32_t stream        # the number of its stream
    int32_t parent        # -1 for the root, which stands for the document; the next free node for a free one
    int32_t first_child   # -1: none
    int32_t next          # siblings, -1: none
    int32_t previous
    int32_t path          # the path that ends here, or -1
    symbol_t symbol
    int32_t depth         # 0 for the root
    uint8_t axis
    uint8_t is_condition

cdef extern from * nogil:
    """
    #include <queue>
    #include <vector>
    namespace {
    // A query node whose turn comes with an element. For the same element, a node before those below it: a condition is
    // about the element that was just found for the node above.
    struct Turn {
        int32_t element, depth, node;
        bool operator<(const Turn& other) const {  // the least is on top of the queue
            return element != other.element ? element > other.element : depth > other.depth;
        }
    };
    using Turns = std::priority_queue<Turn>;
    }
    """
    cdef struct Turn:
        int32_t element
        int32_t depth
        int32_t node

    cdef cppclass Turns:
        bint empty()
        const Turn& top()
        void pop()
        void push(const Turn& turn) except +

cdef enum Counter:
    NODES_VISITED
    ELEMENTS_READ
    LEAPS
    PATHS_MATCHED
    PATHS_LISTED


cdef class IndexFilterScratch(PathScratch):
    # The index of the document, with the join's elements: numbered from 1 in document order, 0 is the document.
    cdef vector[int32_t] ends
    cdef vector[vector[int32_t]] streams      # by stream number; stream 0 has all elements
    # The walk through the prefix tree.
    cdef vector[vector[int32_t]] found        # by depth: the elements of the query node there, ascending
    cdef vector[int32_t] cursor               # by depth: the next child to visit
    cdef vector[int32_t] ancestors            # elements of the node above that contain the element at hand
    # All streams together.
    cdef Turns turns                          # of the query nodes that wait for one
    cdef vector[uint8_t] waits                # by query node: whether it does
    cdef vector[int32_t] places               # by query node: the next element in its stream
    cdef vector[vector[int32_t]] stacks       # by query node: the elements found for it that are open
    cdef vector[uint32_t] visited_at          # by query node: the epoch in which the three were made ready for it
    cdef vector[uint32_t] reported_at         # by path: the epoch in which its first match was reported
    # A path whose elements are listed.
    cdef vector[int32_t] nodes                # its query nodes, the last one first
    cdef vector[int32_t] listed
    cdef vector[int32_t] listed_above


cdef class IndexFilter(PathEngine):
    """The prefix tree of the paths, joined with streams of elements."""

    name = "indexfilter"
    paper = "Bruno, Gravano, Koudas, Srivastava: Navigation- vs. index-based XML multi-query processing (ICDE 2003)"
    wins = "few patterns over large documents"
    caveat = "keeps an index of the whole document, and answers only at its end"
    options = {"evaluation": ("depth-first", "together")}
    counter_names = ("query nodes visited", "elements read", "leaps", "paths matched", "paths listed")

    cdef vector[QueryNode] nodes          # node 0 is the root
    cdef int32_t free_node
    cdef FlatMap[int32_t] children        # pack(node, symbol and axis) -> node
    cdef vector[int32_t] path_node        # by path
    cdef FlatMap[int32_t] stream_numbers  # symbol -> stream
    cdef int32_t stream_count
    cdef bint goes_together

    def __init__(self, **options):
        self.goes_together = self._option(options, "evaluation") == "together"
        self._no_options(options)

    def __cinit__(self, *args, **options):
        self.free_node = -1
        self.stream_count = 1
        self.nodes.push_back(QueryNode(0, -1, -1, -1, -1, -1, ANY, 0, 0, 0))

    # The prefix tree.

    cdef int insert_path(self, int32_t path) except -1:
        cdef int32_t node = 0
        cdef PathStep step
        for step in self.path_steps[path]:
            node = self.child(node, step)
        if self.path_node.size() <= <size_t>path:
            self.path_node.resize(path + 1, -1)
        self.path_node[path] = node
        self.nodes[node].path = path
        return 0

    cdef int delete_path(self, int32_t path) except -1:
        cdef int32_t node = self.path_node[path]
        cdef int32_t parent
        cdef QueryNode freed
        self.nodes[node].path = -1
        while node and self.nodes[node].first_child < 0 and self.nodes[node].path < 0:
            freed = self.nodes[node]
            parent = freed.parent
            self.children.erase(child_key(parent, freed.symbol, freed.axis))
            if freed.previous >= 0:
                self.nodes[freed.previous].next = freed.next
            else:
                self.nodes[parent].first_child = freed.next
            if freed.next >= 0:
                self.nodes[freed.next].previous = freed.previous
            self.nodes[node].parent = self.free_node
            self.free_node = node
            node = parent
        return 0

    cdef int32_t child(self, int32_t parent, PathStep step) except -1:
        """The node of a step below another node, made if it is new."""
        cdef int32_t node = self.children.get(child_key(parent, step.symbol, step.axis), -1)
        cdef int32_t sibling = self.nodes[parent].first_child
        cdef QueryNode made
        if node >= 0:
            return node
        made = QueryNode(self.stream_of(step.symbol), parent, -1, sibling, -1, -1, step.symbol,
                         self.nodes[parent].depth + 1, step.axis, step.is_condition)
        node = self.free_node
        if node >= 0:
            self.free_node = self.nodes[node].parent
            self.nodes[node] = made
        else:
            node = <int32_t>self.nodes.size()
            self.nodes.push_back(made)
        self.nodes[parent].first_child = node
        if sibling >= 0:
            self.nodes[sibling].previous = node
        self.children.put(child_key(parent, step.symbol, step.axis), node)
        return node

    cdef int32_t stream_of(self, symbol_t symbol) except -1:
        """The stream of a symbol; streams keep their numbers, as symbols do."""
        cdef int32_t stream = self.stream_numbers.get(symbol, -1)
        if symbol == ANY:
            return 0
        if stream < 0:
            stream = self.stream_count
            self.stream_numbers.put(symbol, stream)
            self.stream_count += 1
        return stream

    def prefix_tree(self, symbols):
        """For people: the paths down to each query node, as text -> the path that ends there, or -1."""
        cdef int32_t node
        listed = {}
        unvisited = [(0, "")]
        while unvisited:
            parent, prefix = unvisited.pop()
            node = self.nodes[<int32_t>parent].first_child
            while node >= 0:
                text = prefix + ("//" if self.nodes[node].axis == DESCENDANT else "/") + symbols.text(
                    self.nodes[node].symbol)
                listed[text] = self.nodes[node].path
                unvisited.append((node, text))
                node = self.nodes[node].next
        return listed

    def index_streams(self, document, symbols):
        """For people: the index of a document: name -> (start, end, level) of its elements, those of `*` included."""
        cdef IndexFilterScratch scratch
        cdef int32_t stream, element
        self.match(document)
        scratch = self.scratches[0]
        listed = {}
        for symbol in range(len(symbols)):
            stream = self.stream_numbers.get(symbol, 0)
            if (stream or symbol == ANY) and scratch.streams[stream].size():
                listed[symbols.text(symbol)] = [(element, scratch.ends[element], scratch.join.elements[element].level)
                                                for element in scratch.streams[stream]]
        return listed

    def memory(self):
        cdef IndexFilterScratch scratch
        cdef int64_t index = 0
        cdef int64_t walk = 0
        cdef size_t i
        for scratch in self.scratches:
            index += 4 * scratch.ends.capacity()
            for i in range(scratch.streams.size()):
                index += 4 * scratch.streams[i].capacity() + sizeof(vector[int32_t])
            for i in range(scratch.found.size()):
                walk += 4 * scratch.found[i].capacity() + sizeof(vector[int32_t])
            for i in range(scratch.stacks.size()):
                walk += 4 * scratch.stacks[i].capacity() + sizeof(vector[int32_t])
            walk += 4 * (scratch.nodes.capacity() + scratch.listed.capacity() + scratch.listed_above.capacity()
                         + scratch.reported_at.capacity() + scratch.places.capacity() + scratch.visited_at.capacity())
        sizes = PathEngine.memory(self)
        sizes["prefix tree"] = (self.nodes.capacity() * sizeof(QueryNode) + self.children.bytes()
                                + self.stream_numbers.bytes() + 4 * self.path_node.capacity())
        sizes["run-time index streams"] = index
        sizes["run-time walk"] = walk
        return sizes

    # The index of the document.

    cdef Scratch new_scratch(self):
        return IndexFilterScratch(self.branches)

    cdef int begin(self, Scratch scratch) except -1 nogil:
        return self.begin_run(<IndexFilterScratch>scratch)

    cdef int begin_run(self, IndexFilterScratch scratch) except -1 nogil:
        cdef size_t i
        self.begin_join(scratch)
        for i in range(scratch.streams.size()):
            scratch.streams[i].clear()
        scratch.streams.resize(self.stream_count)
        scratch.ends.assign(1, 0)
        scratch.join.elements.assign(1, OpenedElement(0, 0, ANY))
        scratch.join.innermost = 0
        scratch.reported_at.resize(self.path_steps.size(), 0)
        if scratch.epoch == 1:  # the first document, or the epochs have wrapped
            scratch.reported_at.assign(self.path_steps.size(), 0)
        return 0

    cdef int feed(self, Scratch scratch, const int32_t* codes, size_t number) except -1 nogil:
        return self.collect(<IndexFilterScratch>scratch, codes, number)

    cdef int collect(self, IndexFilterScratch scratch, const int32_t* codes, size_t number) except -1 nogil:
        cdef int32_t stream
        cdef size_t i
        for i in range(number):
            if codes[i] >= 0:
                self.start_tag(scratch, codes[i])
            elif scratch.join.innermost == 0:
                continue  # nothing is open: not a document, but no reason to fail
            elif codes[i] == END:
                scratch.ends[scratch.join.innermost] = <int32_t>scratch.ends.size() - 1
                scratch.join.element_ends()
            else:
                stream = self.stream_numbers.get(condition_symbol(codes[i]), -1)
                if stream >= 0:
                    scratch.streams[stream].push_back(scratch.join.innermost)
        return 0

    cdef int start_tag(self, IndexFilterScratch scratch, symbol_t symbol) except -1 nogil:
        cdef int32_t element = <int32_t>scratch.ends.size()
        cdef int32_t stream = self.stream_numbers.get(symbol, 0) if symbol != ANY else 0
        scratch.ends.push_back(element)
        scratch.join.push_element(symbol)
        scratch.streams[0].push_back(element)
        if stream:
            scratch.streams[stream].push_back(element)
        return 0

    cdef int finish(self, Scratch scratch, vector[int32_t]* keys) except -1 nogil:
        self.evaluate(<IndexFilterScratch>scratch)
        if self.twig_count:
            self.join_twigs(<IndexFilterScratch>scratch)
        return self.collect_keys(<IndexFilterScratch>scratch, keys)

    # Evaluation: paths.

    cdef int evaluate(self, IndexFilterScratch scratch) except -1 nogil:
        cdef size_t i
        while scratch.join.innermost:  # the document broke off: what is open goes to where it did
            scratch.ends[scratch.join.innermost] = <int32_t>scratch.ends.size() - 1
            scratch.join.element_ends()
        for i in range(scratch.streams.size()):  # conditions on text come at end tags, out of document order
            if not is_sorted(scratch.streams[i].begin(), scratch.streams[i].end()):
                sort(scratch.streams[i].begin(), scratch.streams[i].end())
        scratch.ends[0] = <int32_t>scratch.ends.size() - 1
        return self.merge_streams(scratch) if self.goes_together else self.walk(scratch)

    # All streams together.

    cdef int merge_streams(self, IndexFilterScratch scratch) except -1 nogil:
        """Gives query nodes their turns, in document order."""
        cdef int32_t node
        scratch.waits.resize(self.nodes.size(), 0)
        scratch.places.resize(self.nodes.size(), 0)
        scratch.stacks.resize(self.nodes.size())
        scratch.visited_at.resize(self.nodes.size(), 0)
        if scratch.epoch == 1:  # the first document, or the epochs have wrapped
            scratch.visited_at.assign(self.nodes.size(), 0)
        while not scratch.turns.empty():  # the last evaluation ran out of memory
            scratch.turns.pop()
        self.make_ready(scratch, 0)
        self.found_for(scratch, 0, 0)
        while not scratch.turns.empty():
            node = scratch.turns.top().node
            scratch.turns.pop()
            scratch.waits[node] = 0
            self.take_turn(scratch, node)
        return 0

    cdef int take_turn(self, IndexFilterScratch scratch, int32_t node) except -1 nogil:
        """The next element of a node's stream: is it below one that is on the stack of the node above?"""
        cdef const QueryNode* it = &self.nodes[node]
        cdef vector[int32_t]* above = &scratch.stacks[it.parent]
        cdef int32_t element = scratch.streams[it.stream][scratch.places[node]]
        cdef size_t top
        cdef bint fits
        scratch.counts[ELEMENTS_READ] += 1
        while above.size() and scratch.ends[above.back()] < element:
            above.pop_back()
        top = above.size()
        if top and not it.is_condition and above[0][top - 1] == element:
            top -= 1  # it was just found for the node above: an element is not below itself
        if it.is_condition:
            fits = top > 0 and above[0][top - 1] == element
        else:
            fits = top > 0 and (it.axis == DESCENDANT
                                or scratch.join.elements[element].parent == above[0][top - 1])
        scratch.places[node] += 1
        if fits:
            if it.path >= 0 and scratch.stacks[node].empty() and not self.is_reported(scratch, it.path):
                self.first_match(scratch, it.path)
            if it.first_child < 0:
                return 0  # the first match is enough
            self.found_for(scratch, node, element)
        if above.size():
            self.wait_for_turn(scratch, node, above[0][0])
        return 0

    cdef bint is_reported(self, IndexFilterScratch scratch, int32_t path) noexcept nogil:
        return scratch.reported_at[path] == scratch.epoch

    cdef int found_for(self, IndexFilterScratch scratch, int32_t node, int32_t element) except -1 nogil:
        """Puts an element on a node's stack, and has the nodes below it wait for their turns."""
        cdef vector[int32_t]* stack = &scratch.stacks[node]
        cdef int32_t child = self.nodes[node].first_child
        while stack.size() and scratch.ends[stack.back()] < element:
            stack.pop_back()
        stack.push_back(element)
        while child >= 0:
            scratch.counts[NODES_VISITED] += 1
            if scratch.visited_at[child] != scratch.epoch:
                self.make_ready(scratch, child)
            if not scratch.waits[child]:
                self.leap(scratch, child, element if self.nodes[child].is_condition else element + 1)
                self.wait_for_turn(scratch, child, stack[0][0])
            child = self.nodes[child].next
        return 0

    cdef int leap(self, IndexFilterScratch scratch, int32_t node, int32_t least) except -1 nogil:
        """Passes over the elements of a node's stream that are before `least`."""
        cdef const int32_t* stream = scratch.streams[self.nodes[node].stream].data()
        cdef size_t size = scratch.streams[self.nodes[node].stream].size()
        cdef size_t place = scratch.places[node]
        if place < size and stream[place] < least:
            scratch.places[node] = <int32_t>(lower_bound(stream + place, stream + size, least) - stream)
            scratch.counts[LEAPS] += 1
        return 0

    cdef int wait_for_turn(self, IndexFilterScratch scratch, int32_t node, int32_t outermost) except -1 nogil:
        """Unless the rest of a node's stream is behind the outermost element on the stack above it."""
        cdef const vector[int32_t]* stream = &scratch.streams[self.nodes[node].stream]
        cdef Turn turn
        if <size_t>scratch.places[node] >= stream.size():
            return 0
        turn.element = stream[0][scratch.places[node]]
        if turn.element > scratch.ends[outermost]:
            return 0
        if self.nodes[node].first_child < 0 and self.is_reported(scratch, self.nodes[node].path):
            return 0
        turn.depth = self.nodes[node].depth
        turn.node = node
        scratch.turns.push(turn)
        scratch.waits[node] = 1
        return 0

    cdef void make_ready(self, IndexFilterScratch scratch, int32_t node) noexcept nogil:
        """For a document that comes to this query node for the first time."""
        scratch.visited_at[node] = scratch.epoch
        scratch.waits[node] = 0
        scratch.places[node] = 0
        scratch.stacks[node].clear()

    # Depth first.

    cdef int walk(self, IndexFilterScratch scratch) except -1 nogil:
        """Walks the prefix tree depth first, below query nodes that have an element."""
        cdef int32_t depth = 0
        cdef int32_t node
        self.make_room(scratch, 0, self.nodes[0].first_child)
        scratch.found[0].assign(1, 0)
        while depth >= 0:
            node = scratch.cursor[depth]
            if node < 0:
                depth -= 1
                continue
            scratch.cursor[depth] = self.nodes[node].next
            scratch.counts[NODES_VISITED] += 1
            if scratch.streams[self.nodes[node].stream].empty():
                continue
            self.make_room(scratch, depth + 1, self.nodes[node].first_child)
            self.join(scratch, &self.nodes[node], &scratch.found[depth], &scratch.found[depth + 1],
                      self.nodes[node].first_child < 0)
            if scratch.found[depth + 1].empty():
                continue
            if self.nodes[node].path >= 0:
                self.first_match(scratch, self.nodes[node].path)
            if self.nodes[node].first_child >= 0:
                depth += 1
        return 0

    cdef int make_room(self, IndexFilterScratch scratch, int32_t depth, int32_t child) except -1 nogil:
        """Makes room for a depth of the walk, which will begin with the given child."""
        if scratch.found.size() <= <size_t>depth:
            scratch.found.resize(depth + 1)
            scratch.cursor.resize(depth + 1)
        scratch.cursor[depth] = child
        return 0

    cdef int join(self, IndexFilterScratch scratch, const QueryNode* node, const vector[int32_t]* above,
                  vector[int32_t]* found, bint only_first) except -1 nogil:
        """The elements of the node's stream that are below (or, a condition's, among) those of the node above it."""
        cdef const int32_t* stream = scratch.streams[node.stream].data()
        cdef size_t size = scratch.streams[node.stream].size()
        cdef int32_t nearest = 0 if node.is_condition else 1  # from an element to the first that can be found for it
        cdef size_t i = 0
        cdef size_t j = 0
        cdef int32_t element
        found.clear()
        scratch.ancestors.clear()
        while j < size:
            element = stream[j]
            scratch.counts[ELEMENTS_READ] += 1
            while i < above.size() and above[0][i] + nearest <= element:
                self.open_element(scratch, above[0][i])
                i += 1
            self.close_before(scratch, element)
            if scratch.ancestors.empty():
                if i == above.size():
                    break
                j = lower_bound(stream + j, stream + size, above[0][i] + nearest) - stream
                scratch.counts[LEAPS] += 1
                continue
            if self.fits(scratch, node, element):
                found.push_back(element)
                if only_first:
                    break
            j += 1
        return 0

    cdef inline int open_element(self, IndexFilterScratch scratch, int32_t element) except -1 nogil:
        self.close_before(scratch, element)
        scratch.ancestors.push_back(element)
        return 0

    cdef inline void close_before(self, IndexFilterScratch scratch, int32_t element) noexcept nogil:
        while scratch.ancestors.size() and scratch.ends[scratch.ancestors.back()] < element:
            scratch.ancestors.pop_back()

    cdef inline bint fits(self, IndexFilterScratch scratch, const QueryNode* node, int32_t element) noexcept nogil:
        """Whether the innermost element on the stack, an ancestor of this one, is where the axis wants it."""
        if node.is_condition:
            return scratch.ancestors.back() == element
        return node.axis == DESCENDANT or scratch.join.elements[element].parent == scratch.ancestors.back()

    cdef int first_match(self, IndexFilterScratch scratch, int32_t path) except -1 nogil:
        scratch.counts[PATHS_MATCHED] += 1
        scratch.reported_at[path] = scratch.epoch
        self.path_found(scratch, path)
        if self.in_twig(path):
            scratch.join.note_path(path)
        return 0

    # Evaluation: twigs.

    cdef int join_twigs(self, IndexFilterScratch scratch) except -1 nogil:
        """Gives the join the hits of the paths that candidates have; if they are many, part by part."""
        cdef vector[Candidate] candidates
        cdef const int32_t* paths
        cdef int32_t j
        cdef size_t i
        scratch.join.list_candidates()
        candidates.swap(scratch.join.candidates)
        for i in range(candidates.size()):
            paths = self.branches.twig_paths.data(candidates[i].key)
            for j in range(self.branches.twig_paths.count(candidates[i].key)):
                if scratch.join.last_hit[paths[j]] < 0:
                    self.list_elements(scratch, paths[j])
            scratch.join.candidates.push_back(candidates[i])
            if <int64_t>scratch.join.hits.size() >= self.note_limit or i == candidates.size() - 1:
                scratch.join.evaluate_candidates()
                scratch.join.candidates.clear()
                scratch.join.forget_hits()
        return 0

    cdef int list_elements(self, IndexFilterScratch scratch, int32_t path) except -1 nogil:
        """Tells the join all elements where a path ends."""
        cdef int32_t node = self.path_node[path]
        cdef size_t i
        scratch.counts[PATHS_LISTED] += 1
        scratch.nodes.clear()
        while node:
            scratch.nodes.push_back(node)
            node = self.nodes[node].parent
        scratch.listed.assign(1, 0)
        while scratch.nodes.size():
            scratch.listed_above.swap(scratch.listed)
            self.join(scratch, &self.nodes[scratch.nodes.back()], &scratch.listed_above, &scratch.listed, False)
            scratch.nodes.pop_back()
        for i in range(scratch.listed.size()):
            scratch.join.note_hit(path, scratch.listed[i])
        return 0


cdef inline unsigned long long child_key(int32_t parent, symbol_t symbol, uint8_t axis) noexcept nogil:
    return pack(parent, symbol << 1 | axis)
