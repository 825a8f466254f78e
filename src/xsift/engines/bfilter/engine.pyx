"""`bfilter`: branch points of queries against branch points of the document, matched backwards.

Paper: Liang Dai, Chung-Horng Lung, Shikharesh Majumdar, "BFilter: efficient XML message filtering and matching in
publish/subscribe systems", Journal of Software 11(4), 2016.

The idea. A query with nested paths is not taken apart into simple queries whose matches are joined afterwards. It
stays whole, as a tree of *sub-queries*, each a branch point with the branches that hang on it. Start tags run an
automaton of all branches; a branch whose end is reached is only noted, as a candidate of its branch point. Whether
the branch point matches is asked once, at the end tag of its element, from the innermost branch points outwards; and
not even asked if the query's branch point needs several children and the document's element is no branch point, that
is, has had one.

The paper's terms here (index.pyx, run.pyx):

    branch point, transit branch, tangling branch   BranchPoint; Branch, whose `end` tells them apart
    sub-query Q{m,n}, accepting state of Q{m,n,p}   SubQuery; State.branches
    query index tree (Figure 8)                     QueryIndexTree: State, transitions
    runtime stack (Figure 9a)                       BFilterScratch.active, .loops
    runTimeBranch, documentBranches, queryBranches  OpenElement.number, .is_branch_point, .query_branches
    HandlingStartTag, MatchingBranches              Filtering.start_tag, .matching_branches
    match candidate                                 a branch in BFilterScratch.candidates
    query m                                         the pattern with key m

Where it deviates, and why.

1. "A branch point of a query matches only a branch point of the document" is wrong in general: `//a[b/c]/b/d`,
   `//a[.//c]/b` and `//a[*]/b` match `<r><a><b><c/><d/></b></a></r>`, whose `a` has one child. The rule is applied
   where it is sound: where two branches start with a child axis and different names (`needs_document_branch` says why
   that is exact). A sub-query to which it does not apply is checked at every element.
2. Candidates are saved "in the sub-query" and cleaned up when it is decided. With recursive elements or `//` a
   sub-query has several open instances, and `//a[b]//c` on `<a><b/><a><d/></a><c/></a>` would lose the outer `b` when
   the inner `a` fails. Candidates belong to an instance: the sub-query's branch point at one open element. A branch
   with `//` is a candidate of every instance that it starts from.
3. A sub-query is a set of branches of a state, so what several queries share is stored, noted and checked once; the
   paper's list of sub-queries, which has one nested path per level, is a tree. What is pushed on queryBranches is the
   state with the unit of all its sub-queries, and only those are looked at that have a candidate (see
   `QueryIndexTree.post`).
4. A first step with a single branch has nothing to wait for: a simple query is decided at the start tag where its
   path ends, and a query whose first step does not branch as soon as its second sub-query is. The paper does both at
   the end tag of the root.
5. A condition is one more tangling branch, of its element alone, and a step with a condition and a branch is thus a
   branch point; the rule does not count it as a child. As in the paper the conditions of an element are not looked
   at before a branch point is matched there: they are kept until the element ends, and then looked at for those
   branch points only that have another candidate and that the rule does not rule out (and where a condition alone
   decides something: `urgent` in index.pxd). With conditions="eager" they are looked at as they come. Whether a value satisfies
   a condition is decided by the document room while it reads, for all engines alike.

Takes every unordered pattern: a candidate does not tell in which order it came. Wins with up to a few thousand queries, with
nested paths or without: nothing is left to do when the document ends. With 100,000 `yfilter` takes a fourth to a half of its
time: that evaluates only twigs all of whose paths were met in the document, while here every branch that is met is noted,
element by element. Many active states (`*`, `//`) make both dear.
"""

from libcpp.string cimport string
from libcpp.vector cimport vector

from xsift.document.events cimport END, RecordedEvents, EventSource
from xsift.engines.bfilter.index cimport NONE
from xsift.engines.bfilter.run cimport (
    BFilterScratch, Entry, Filtering, Instance, Loop, OpenElement, Origin, Part,
)
from xsift.native.numbers cimport FreeNumbers
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint8_t
from xsift.xpath.pattern cimport CHILD, Pattern
from xsift.xpath.symbols cimport Symbols

from xsift.engines.bfilter.run import COUNTER_NAMES
from xsift.engines.bfilter.trace import sub_queries, trace
from xsift.errors import EngineError


cdef class BFilter(Filtering):
    """Backward matching of branch points."""

    name = "bfilter"
    paper = "Dai, Lung, Majumdar: BFilter: efficient XML message filtering and matching (Journal of Software 2016)"
    takes = "every unordered pattern"
    wins = "twigs: branches are joined where they meet, when their element ends, and only if all are there"
    caveat = "an automaton finds the branches: `*` and `//` make many states active"
    counter_names = COUNTER_NAMES
    options = {"conditions": ("lazy", "eager")}

    def __init__(self, **options):
        self.lazy = self._option(options, "conditions") == "lazy"
        self._no_options(options)

    cdef Symbols symbols                 # of the patterns; None before the first
    cdef vector[string] patterns         # by key: the pattern's own key, for select and for inspection
    cdef FreeNumbers free_keys

    def refuses(self, Pattern pattern not None):
        if pattern.ordered:
            return "ordered twigs: candidates of a branch point are a set, and do not tell in which order they came"
        return ""

    def add(self, Pattern pattern not None):
        reason = self.refuses(pattern)
        if reason:
            raise EngineError("refused-pattern", f"engine {self.name!r} refuses {pattern}: {reason}")
        cdef int32_t key = self.free_keys.take(self.patterns.size())
        self.version += 1
        self.symbols = pattern.symbols
        if <size_t>key == self.patterns.size():
            self.patterns.push_back(pattern.key)
        else:
            self.patterns[key] = pattern.key
        self.index.insert(pattern, key)
        self.query_count += 1
        return key

    def remove(self, int key):
        self._check(key)
        self.version += 1
        self.index.delete(key)
        self.patterns[key] = string()
        self.free_keys.give_back(key)
        self.query_count -= 1

    def __len__(self):
        return self.query_count

    def _check(self, int key):
        if not 0 <= key < <int>self.patterns.size() or self.patterns[key].empty():
            raise EngineError("unknown-key", f"engine {self.name!r} has no pattern with key {key}")

    def pattern(self, int key):
        """The pattern with a key."""
        self._check(key)
        return Pattern.decode(self.patterns[key].data(), self.patterns[key].size(), self.symbols)

    def memory(self):
        cdef BFilterScratch scratch
        cdef int64_t patterns = self.patterns.capacity() * sizeof(string) + self.free_keys.bytes()
        cdef size_t i
        for i in range(self.patterns.size()):
            patterns += self.patterns[i].capacity()
        sizes = self.index.memory()
        sizes["queries"] += patterns
        for name in ("run-time stack", "run-time branch stacks", "run-time candidates"):
            sizes[name] = 0
        for scratch in self.scratches:
            sizes["run-time stack"] += (
                scratch.active.capacity() * sizeof(Entry) + scratch.loops.capacity() * sizeof(Loop)
                + scratch.origins.capacity() * sizeof(Origin)
                + 4 * (scratch.loop_place.capacity() + scratch.setting_out.capacity() + scratch.conditions.capacity()
                       + scratch.entered_from.capacity()))
            sizes["run-time branch stacks"] += scratch.open.capacity() * sizeof(OpenElement)
            sizes["run-time candidates"] += (
                scratch.instances.capacity() * sizeof(Instance) + scratch.bits.capacity() * 8
                + 4 * (scratch.matched_at.capacity() + scratch.matched.capacity())
                + scratch.parts.capacity() * sizeof(Part))
            for i in range(scratch.candidates.size()):
                sizes["run-time candidates"] += sizeof(vector[int32_t]) + 4 * scratch.candidates[i].capacity()
        return sizes

    # Which part of the document matched.

    def select(self, EventSource document not None, int key, int output):
        """The numbers of the elements that step `output` of a pattern stands for, ascending.

        Sub-queries are matched with elements backwards, as ever; here it is kept with which. The steps from the first
        to `output` then pick theirs forwards: an element that the parent step's leads to and, at a branch point, one
        that the sub-query matched. `output` is made a branch point, so that what follows it is known to match below.
        """
        cdef Pattern pattern = self.pattern(key)
        if not 0 <= output < <int>pattern.nodes.size():
            raise EngineError("unknown-step", f"pattern {pattern} has no step {output}: it has {len(pattern)}")
        if pattern.nodes[output].is_condition:
            return []
        cdef BFilter alone = BFilter()
        alone.index.resolve(pattern, output)
        cdef BFilterScratch scratch = alone.scratch()
        scratch.keeps_parts = True
        cdef vector[int32_t] codes = alone.read(document, scratch)
        cdef vector[int32_t] spine
        cdef int32_t node = output
        while node >= 0:
            spine.insert(spine.begin(), node)
            node = pattern.nodes[node].parent
        return alone.forwards(pattern, spine, codes, scratch)

    cdef vector[int32_t] read(self, EventSource document, BFilterScratch scratch):
        """Runs a document, and returns all its events."""
        cdef vector[int32_t] codes
        cdef Py_ssize_t number
        if isinstance(document, RecordedEvents):
            (<RecordedEvents>document).rewind()
        with nogil:
            self.begin_run(scratch)
            while True:
                number = document.fill()
                if number == 0:
                    break
                self.run(scratch, document.codes.data(), number)
                codes.insert(codes.end(), document.codes.begin(), document.codes.begin() + number)
        return codes

    cdef list forwards(self, Pattern pattern, const vector[int32_t]& spine, const vector[int32_t]& codes,
                       BFilterScratch scratch):
        cdef vector[symbol_t] names
        cdef vector[int32_t] parents
        cdef vector[uint8_t] reached, above, following
        cdef int32_t innermost = 0
        cdef int32_t code, node, number, end, parent, point
        cdef Part part
        cdef size_t i
        names.push_back(NONE)
        parents.push_back(NONE)
        for i in range(codes.size()):
            code = codes[i]
            if code >= 0:
                parents.push_back(innermost)
                innermost = <int32_t>names.size()
                names.push_back(code)
            elif code == END:
                innermost = parents[innermost]
        reached.assign(names.size(), 0)
        reached[0] = 1  # the document, which the first step starts from
        for i in range(spine.size()):
            node = spine[i]
            end = self.index.end_of[node]
            point = self.index.sub_queries[end >> 1].point if end & 1 else NONE
            branching = point >= 0 and self.index.points[point].state == self.index.state_of[node]
            following.assign(names.size(), not branching)
            if branching:
                for part in scratch.parts:
                    if part.sub_query == end >> 1:
                        following[part.number] = 1
            following[0] = 0
            above.assign(names.size(), 0)
            for number in range(1, <int32_t>names.size()):
                parent = parents[number]
                above[number] = reached[parent] or above[parent]
                if pattern.nodes[node].symbol not in (0, names[number]) \
                        or not (reached[parent] if pattern.nodes[node].axis == CHILD else above[number]):
                    following[number] = 0
            reached.swap(following)
        return [number for number in range(1, <int32_t>names.size()) if reached[number]]

    # Inspection, in the paper's terms.

    def sub_queries(self, int key):
        """The sub-queries of a query: see trace.SubQuery."""
        return sub_queries(self.pattern(key), key)

    def trace(self, RecordedEvents document not None):
        """The stacks after each tag of a document, as Figure 9 shows them: see trace.StackSnapshot."""
        return trace(self, document)

    @property
    def held_keys(self):
        """The keys of all patterns, ascending."""
        return [key for key in range(<int>self.patterns.size()) if not self.patterns[key].empty()]

    def watch(self, RecordedEvents document not None):
        """Runs a document, and yields after each event, as numbers: the elements on runTimeBranch, the states on the
        runtime stack by element, the elements on documentBranches, the candidates (element, state of the branch
        point, end of the branch, whether that is a sub-query), the sub-queries matched at it, the keys so far.
        """
        cdef BFilterScratch scratch = BFilterScratch()  # not one of the engine's: it is not to be counted
        cdef int32_t code
        scratch.counts.assign(len(self.counter_names), 0)
        scratch.keeps_parts = True
        self.begin_run(scratch)
        for code in document.events:
            scratch.parts.clear()
            self.run(scratch, &code, 1)
            yield (self._elements(scratch), self._states(scratch), self._document_branches(scratch),
                   self._candidates(scratch), [part.sub_query for part in scratch.parts], sorted(scratch.matched))

    def _elements(self, BFilterScratch scratch):
        return [element.number for element in scratch.open][1:]

    def _states(self, BFilterScratch scratch):
        cdef int32_t level, last
        cdef size_t i
        found = []
        for level in range(1, <int32_t>scratch.open.size()):
            last = scratch.open[level + 1].first if level + 1 < <int32_t>scratch.open.size() else scratch.top
            states = [scratch.active[entry].state for entry in range(scratch.open[level].first, last)]
            # The state of a `//` is active below the element where it set out.
            for i in range(scratch.origins.size()):
                if scratch.origins[i].previous < 0 and scratch.origins[i].level < level:
                    states.append(scratch.loops[scratch.origins[i].loop].state)
            found.append(states)
        return found

    def _document_branches(self, BFilterScratch scratch):
        return [element.number for element in scratch.open if element.number and element.is_branch_point]

    def _candidates(self, BFilterScratch scratch):
        cdef int32_t instance, point, end
        cdef size_t i, j
        found = []
        for i in range(scratch.open.size()):
            instance = scratch.open[i].query_branches
            while instance >= 0:
                point = scratch.instances[instance].point
                for j in range(scratch.candidates[instance].size()):
                    end = self.index.branches[scratch.candidates[instance][j]].end
                    found.append((scratch.open[i].number, self.index.points[point].state, end >> 1, bool(end & 1)))
                instance = scratch.instances[instance].next
        return found
