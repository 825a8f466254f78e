"""`predicate`: expressions as ordered sets of predicates on the positions of tags.

Paper: Shuang Hou, H.-Arno Jacobsen, "Predicate-based filtering of XPath expressions", ICDE 2006.

The idea. A path says how far apart its tags are: `/a/*/b//c` is (p_a, =, 1), (d(p_a, p_b), =, 2), (d(p_b, p_c), >=,
1), in this order. Millions of expressions have a few thousand distinct predicates, which are evaluated over a
document path once, whatever part of whatever expression they are. A document path is a publication: (length, n)
and, for each tag, its position. Where a name occurs several times in a path, occurrence numbers tell which of its
tags satisfied a predicate, and an expression matches if pairs of occurrence numbers can be chosen, one for each of
its predicates, that are connected.

The paper's terms here. *Predicate*, its four kinds and its *pid* `Predicate` and `PredicateKind` in
index.pxd; *predicate index* (Figure 1) `PredicateIndex`; *publication*, *occurrence number*, *matching
results R* `PathPublication`, `Occurrences`; *occurrence determination* (Figure 2) `Determination`; *XPE index* (Figure
3), *prefix covering*, *access predicate* `XpeIndex`; *basic*, *basic-pc*, *basic-pc-ap* the values "basic", "pc" and
"pc-ap" of the option `organisation` (literal.pyx).

When expressions are evaluated. The paper takes each path from the root to a leaf by itself, and asks every expression, less
what covering and access predicates spare. The three organisations do just that. The default, `triggered`, is ours:
- at a leaf, candidates are the expressions whose last predicate has a new result since the leaf before: others end
  in elements that the leaf before had too. The longest go first, and what matches settles its prefixes.
At 125,000 NITF expressions that is 12,815 evaluations for each document where `basic` makes 8.8 million.

In all of them predicates are matched on the stack of open elements, so what two paths share is matched once. With
repeated_paths="skip", the default, a path with the same names as an earlier one of the document is not evaluated again: it
has the same predicates; "process" takes every path, as the paper does. With twigs, the join must hear of every
match while its last element is the innermost open one. So while there are twigs, expressions are evaluated at every
start tag, with the last pair that of the new element, whatever the organisation: a prefix then always comes before what it
covers, and covering has no part.

Other deviations.
- A condition is a tag, the last of its path, one position below its element: `a[@x]` is (d(p_a, p_@x), =, 1). It is
  added to the publication for the moment at which it holds, and does not count for the length.
- `a/*` and `a//*` have the same predicates, and so have `/*` and `//*`: the paper only asks whether a document
  matches. The join asks where. So the former are reported where the predicate is first satisfied, the latter at
  every element further down, too.
- Occurrence determination removes pairs that failed for good (see `Determination`): as printed it is exponential in
  the length of an expression on recursive documents.
- The encoding of `a/*` leaves (p_a, >=, 1) out, as that of `a/b` does in the paper: another predicate implies it.
- Attribute filters and nested paths are in a technical report; conditions and the shared join (join.pyx) stand for them.

Takes every unordered pattern. Wins where many of the expressions match, and where `*` and `//` are many: they only
change values and operators of predicates. Loses against an automaton where few match, since every candidate is
evaluated.
"""

from libcpp.vector cimport vector
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

from xsift.document.events cimport END, condition_symbol
from xsift.engines.base cimport Scratch
from xsift.engines.paths cimport PathEngine, PathScratch, PathStep
from xsift.engines.predicate.expressions cimport Determination, XpeIndex
from xsift.engines.predicate.literal cimport (
    ACCESS_PREDICATES, BASIC, TRIGGERED, Cluster, Expression, LiteralOrganisation,
)
from xsift.engines.predicate.index cimport EQUAL, Occurrences, PathPublication, Predicate, PredicateIndex
from xsift.native.tables cimport FlatMap, pack
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint8_t, uint32_t
from xsift.xpath.pattern cimport DESCENDANT, Pattern
from xsift.xpath.symbols cimport ANY, Symbols

from xsift.engines.predicate.view import Predicate as PredicateView

cdef enum Counter:
    PREDICATES_MATCHED
    EXPRESSIONS_EVALUATED
    EXPRESSIONS_COVERED
    CLUSTERS_RULED_OUT
    PATHS_MATCHED
    DOCUMENT_PATHS
    REPEATED_PATHS
    PREDICATE_NANOSECONDS
    EXPRESSION_NANOSECONDS

cdef enum:
    MOST_LABELS = 1 << 16  # label paths that are remembered from document to document

KINDS = ("absolute", "relative", "end-of-path", "length")


cdef class PredicateScratch(PathScratch):
    cdef PathPublication publication       # of the outermost open elements; match_pending adds the rest
    cdef Determination determination
    cdef vector[symbol_t] names            # of the open elements, outermost first
    cdef vector[int32_t] labels            # by open element: the number of its label path (the names down to it)
    cdef vector[uint8_t] is_new            # by open element: its label path had not been seen in this document
    cdef bint at_leaf                      # no element has been opened in the innermost open one
    cdef FlatMap[int32_t] label_numbers    # pack(label path above or -1, name) -> label path
    cdef vector[uint32_t] label_seen_at    # by label path: the epoch in which it was seen
    cdef vector[int32_t] fresh             # pids with new results since expressions were evaluated, each once
    cdef vector[uint32_t] fresh_at         # by pid: the evaluation for which it is fresh
    cdef uint32_t evaluation               # number of the next evaluation at a leaf
    cdef vector[uint32_t] decided_at       # by node of the XPE index: the epoch in which it needs no more evaluation
    cdef vector[vector[int32_t]] by_depth  # candidates, to be evaluated from the longest
    cdef LiteralOrganisation literal       # of the paper's variants
    cdef int64_t version                   # of the index that `literal` was made for

    def __cinit__(self, *args):
        self.publication = PathPublication()
        self.determination = Determination()
        self.literal = LiteralOrganisation()
        self.version = -1


cdef class PredicateEngine(PathEngine):
    """Ordered predicates on the positions of tags."""

    name = "predicate"
    paper = "Hou, Jacobsen: Predicate-based filtering of XPath expressions (ICDE 2006)"
    wins = "millions of similar paths of which many match; many `*` and `//`"
    caveat = "every expression whose last predicate is satisfied is evaluated; with twigs at every element"
    options = {"organisation": ("triggered", "basic", "pc", "pc-ap"), "repeated_paths": ("skip", "process"),
               "breakdown": (False, True)}
    counter_names = ("predicates matched", "expressions evaluated", "expressions covered", "clusters ruled out",
                     "paths matched", "document paths", "repeated paths", "predicate matching nanoseconds",
                     "expression matching nanoseconds")

    cdef PredicateIndex index
    cdef XpeIndex expressions
    cdef int organisation
    cdef bint skips_repeated
    cdef bint breakdown
    cdef int64_t version                 # grows with every change
    # Paths whose last steps are `*`s with a `//`: they also match further down than where the predicate is new.
    cdef vector[uint8_t] is_loose        # by path
    cdef vector[int32_t] loose_paths     # by pid: how many of the expressions that end in it are loose
    cdef vector[int32_t] loose_pids      # the pids that have any

    def __cinit__(self, *args, **options):
        self.index = PredicateIndex()
        self.expressions = XpeIndex()

    def __init__(self, **options):
        self.organisation = self.options["organisation"].index(self._option(options, "organisation"))
        self.skips_repeated = self._option(options, "repeated_paths") == "skip"
        self.breakdown = self._option(options, "breakdown")
        self._no_options(options)

    # The index.

    cdef int insert_path(self, int32_t path) except -1:
        cdef vector[Predicate] encoding
        self.version += 1
        self.index.encode(self.path_steps[path], &encoding)
        self.expressions.insert(path, self.index, encoding)
        if self.is_loose.size() <= <size_t>path:
            self.is_loose.resize(path + 1, False)
        self.is_loose[path] = self.ends_loosely(path)
        if self.is_loose[path]:
            self.count_loose(self.expressions.nodes[self.expressions.path_node[path]].pid, 1)
        return 0

    cdef int delete_path(self, int32_t path) except -1:
        self.version += 1
        if self.is_loose[path]:
            self.count_loose(self.expressions.nodes[self.expressions.path_node[path]].pid, -1)
        return self.expressions.remove(path, self.index)

    cdef bint ends_loosely(self, int32_t path) noexcept:
        cdef int32_t step = <int32_t>self.path_steps[path].size() - 1
        while step >= 0 and self.path_steps[path][step].symbol == ANY:
            if self.path_steps[path][step].axis == DESCENDANT:
                return True
            step -= 1
        return False

    cdef int count_loose(self, int32_t pid, int32_t change) except -1:
        cdef size_t i = 0
        if self.loose_paths.size() <= <size_t>pid:
            self.loose_paths.resize(pid + 1, 0)
        self.loose_paths[pid] += change
        if change > 0 and self.loose_paths[pid] == 1:
            self.loose_pids.push_back(pid)
        elif self.loose_paths[pid] == 0:
            while self.loose_pids[i] != pid:
                i += 1
            self.loose_pids[i] = self.loose_pids.back()
            self.loose_pids.pop_back()
        return 0

    @property
    def distinct_predicates(self):
        """How many predicates there are in the predicate index."""
        return self.index.predicate_count

    @property
    def distinct_expressions(self):
        """How many sequences of predicates are some expression's: no more than the distinct paths."""
        return self.expressions.expression_count

    def memory(self):
        cdef PredicateScratch scratch
        cdef int64_t publication = 0
        cdef int64_t other = 0
        cdef size_t i
        for scratch in self.scratches:
            for i in range(scratch.publication.results.size()):
                publication += (scratch.publication.results[i].capacity() * sizeof(Occurrences)
                                + sizeof(vector[Occurrences]))
            for i in range(scratch.publication.positions.size()):
                publication += 4 * scratch.publication.positions[i].capacity() + sizeof(vector[int32_t])
            publication += 4 * scratch.publication.recorded.capacity()
            for i in range(scratch.by_depth.size()):
                other += 4 * scratch.by_depth[i].capacity()
            other += scratch.literal.bytes() + scratch.label_numbers.bytes() + 4 * (
                scratch.label_seen_at.capacity() + scratch.decided_at.capacity() + scratch.fresh_at.capacity())
        sizes = PathEngine.memory(self)
        sizes["predicate index"] = self.index.bytes()
        sizes["XPE index"] = self.expressions.bytes() + self.is_loose.capacity() + 4 * self.loose_paths.capacity()
        sizes["run-time publication"] = publication
        sizes["run-time expressions"] = other
        return sizes

    # For people: what the paper's figures and tables show.

    def encode(self, Pattern pattern not None):
        """The ordered predicates of a linear pattern (section 3.2)."""
        cdef vector[PathStep] steps
        cdef vector[Predicate] encoding
        cdef size_t i
        if not pattern.linear:
            raise ValueError(f"{pattern} is not a single path")
        for i in range(pattern.nodes.size()):
            steps.push_back(PathStep(pattern.nodes[i].symbol, pattern.nodes[i].axis, pattern.nodes[i].is_condition))
        self.index.encode(steps, &encoding)
        return [self._view(encoding[i], pattern.symbols) for i in range(encoding.size())]

    def predicates(self, Symbols symbols not None):
        """The distinct predicates, by pid."""
        return {pid: self._view(self.index.predicates[pid], symbols)
                for pid in range(<int32_t>self.index.predicates.size()) if self.index.predicates[pid].uses}

    def publication(self, names, Symbols symbols not None):
        """A document path as tuples: ("length", n), then (tag, occurrence number, position) for tags in the index."""
        cdef PathPublication publication = self._publish(names, symbols)
        cdef size_t tag, i
        tuples = []
        for tag in range(publication.positions.size()):
            for i in range(publication.positions[tag].size()):
                tuples.append((symbols.text(self.index.tag_symbol[tag]), i + 1, publication.positions[tag][i]))
        return [("length", publication.tags.size()), *sorted(tuples, key=lambda entry: entry[2])]

    def predicate_matches(self, names, Symbols symbols not None):
        """The predicates that a document path satisfies, each with its pairs of occurrence numbers (Table 1)."""
        cdef PathPublication publication = self._publish(names, symbols)
        cdef Occurrences entry
        cdef size_t pid
        matches = {}
        for pid in range(publication.results.size()):
            pairs = sorted((first, entry.second) for entry in publication.results[pid]
                           for first in range(entry.low, entry.high + 1))
            if pairs:
                matches[self._view(self.index.predicates[pid], symbols)] = pairs
        return matches

    def xpe_index(self, Symbols symbols not None):
        """The XPE index (Figure 3): the sequence of predicates of each node -> how many expressions end there."""
        cdef int32_t node, path
        listed = {}
        free = set()
        node = self.expressions.free_node
        while node >= 0:
            free.add(node)
            node = self.expressions.nodes[node].parent
        for number in set(range(<int32_t>self.expressions.nodes.size())) - free:
            node = number
            path = self.expressions.nodes[node].first_path
            ending = 0
            while path >= 0:
                ending += 1
                path = self.expressions.next_path[path]
            sequence = []
            while node >= 0:
                sequence.append(self._view(self.index.predicates[self.expressions.nodes[node].pid], symbols))
                node = self.expressions.nodes[node].parent
            listed[tuple(reversed(sequence))] = ending
        return listed

    def _publish(self, names, Symbols symbols):
        cdef PathPublication publication = PathPublication()
        self.index.prepare(publication)
        for name in names:
            self.index.match_element(publication, symbols.element(name))
        return publication

    def _view(self, Predicate predicate, Symbols symbols):
        numbers = [predicate.first, predicate.second] if KINDS[predicate.kind] == "relative" else [predicate.first]
        tags = tuple(symbols.text(self.index.tag_symbol[tag]) for tag in numbers if tag >= 0)
        operator = "=" if predicate.operation == EQUAL else ">="
        return PredicateView(KINDS[predicate.kind], tags, operator, predicate.value)

    # The run.

    cdef Scratch new_scratch(self):
        return PredicateScratch(self.branches)

    cdef int begin(self, Scratch scratch) except -1 nogil:
        return self.begin_run(<PredicateScratch>scratch)

    cdef int begin_run(self, PredicateScratch scratch) except -1 nogil:
        self.begin_join(scratch)
        self.index.prepare(scratch.publication)
        scratch.names.clear()
        scratch.labels.assign(1, -1)
        scratch.is_new.clear()
        scratch.fresh.clear()
        scratch.fresh_at.assign(self.index.predicates.size(), 0)
        scratch.evaluation = 1
        scratch.decided_at.resize(self.expressions.nodes.size(), 0)
        scratch.by_depth.resize(self.expressions.deepest + 1)
        if self.organisation != TRIGGERED and scratch.version != self.version:
            scratch.literal.build(self.expressions, self.organisation)
            scratch.version = self.version
        if scratch.epoch == 1:  # the first document, or the epochs have wrapped
            scratch.decided_at.assign(self.expressions.nodes.size(), 0)
            scratch.literal.matched_at.assign(scratch.literal.expressions.size(), 0)
            scratch.label_seen_at.assign(scratch.label_seen_at.size(), 0)
        if scratch.label_seen_at.size() > MOST_LABELS:
            scratch.label_numbers.clear()
            scratch.label_seen_at.clear()
        return 0

    cdef int feed(self, Scratch scratch, const int32_t* codes, size_t number) except -1 nogil:
        return self.run(<PredicateScratch>scratch, codes, number)

    cdef int run(self, PredicateScratch scratch, const int32_t* codes, size_t number) except -1 nogil:
        cdef size_t i
        for i in range(number):
            if codes[i] >= 0:
                self.start_tag(scratch, codes[i])
            elif codes[i] == END:
                self.end_tag(scratch)
            else:
                self.condition_holds(scratch, condition_symbol(codes[i]))
        return 0

    cdef int start_tag(self, PredicateScratch scratch, symbol_t symbol) except -1 nogil:
        cdef int32_t label = scratch.label_numbers.get(pack(scratch.labels.back(), symbol), -1)
        cdef bint is_new
        self.element_starts(scratch, symbol)
        if label < 0:
            label = <int32_t>scratch.label_seen_at.size()
            scratch.label_numbers.put(pack(scratch.labels.back(), symbol), label)
            scratch.label_seen_at.push_back(0)
        scratch.names.push_back(symbol)
        scratch.labels.push_back(label)
        is_new = not self.skips_repeated or scratch.label_seen_at[label] != scratch.epoch
        scratch.is_new.push_back(is_new)
        scratch.label_seen_at[label] = scratch.epoch
        scratch.at_leaf = True
        if self.twig_count:
            self.match_pending(scratch)
            self.evaluate_innermost(scratch)
            self.evaluate_loose(scratch)
        return 0

    cdef int end_tag(self, PredicateScratch scratch) except -1 nogil:
        if scratch.names.empty():
            return 0
        if scratch.at_leaf:
            scratch.counts[DOCUMENT_PATHS] += 1
            if not scratch.is_new.back():
                scratch.counts[REPEATED_PATHS] += 1
            elif not self.twig_count:
                self.match_pending(scratch)
                if self.organisation == TRIGGERED:
                    self.evaluate_fresh(scratch)
                else:
                    self.evaluate_listed(scratch)
        scratch.at_leaf = False
        self.element_ends(scratch)
        if scratch.publication.tags.size() == scratch.names.size():
            self.index.retract(scratch.publication)
        scratch.names.pop_back()
        scratch.labels.pop_back()
        scratch.is_new.pop_back()
        return 0

    cdef int condition_holds(self, PredicateScratch scratch, symbol_t condition) except -1 nogil:
        if scratch.names.empty() or self.index.tag_of_symbol.get(condition, -1) < 0:
            return 0
        self.match_pending(scratch)
        self.index.match_condition(scratch.publication, condition)
        self.evaluate_innermost(scratch)
        self.index.retract(scratch.publication)
        return 0

    cdef int match_pending(self, PredicateScratch scratch) except -1 nogil:
        """Predicate matching, of the open elements that have not been matched yet."""
        cdef int64_t started = self.clock()
        cdef size_t level, i, recorded
        cdef int32_t pid
        while scratch.publication.tags.size() < scratch.names.size():
            level = scratch.publication.tags.size()
            recorded = scratch.publication.recorded.size()
            self.index.match_element(scratch.publication, scratch.names[level])
            scratch.counts[PREDICATES_MATCHED] += scratch.publication.recorded.size() - recorded
            if scratch.is_new[level]:
                for i in range(recorded, scratch.publication.recorded.size()):
                    pid = scratch.publication.recorded[i]
                    if scratch.fresh_at[pid] != scratch.evaluation:
                        scratch.fresh_at[pid] = scratch.evaluation
                        scratch.fresh.push_back(pid)
        scratch.counts[PREDICATE_NANOSECONDS] += self.clock() - started
        return 0

    cdef int evaluate_fresh(self, PredicateScratch scratch) except -1 nogil:
        """Expression matching at a leaf: all expressions that can have a new match."""
        cdef int64_t started = self.clock()
        cdef int32_t depth, node
        cdef size_t i
        for i in range(scratch.fresh.size()):
            self.collect(scratch, scratch.fresh[i])
        scratch.fresh.clear()
        scratch.evaluation += 1
        for depth in range(self.expressions.deepest, 0, -1):
            for i in range(scratch.by_depth[depth].size()):
                node = scratch.by_depth[depth][i]
                if scratch.decided_at[node] != scratch.epoch and self.determine(scratch, node, False):
                    self.expression_matched(scratch, node, False)
                    self.settle_prefixes(scratch, node)
            scratch.by_depth[depth].clear()
        scratch.counts[EXPRESSION_NANOSECONDS] += self.clock() - started
        return 0

    cdef int collect(self, PredicateScratch scratch, int32_t pid) except -1 nogil:
        """Puts the candidates that end in a predicate where evaluate_fresh finds them."""
        cdef const vector[int32_t]* nodes
        cdef int32_t node
        cdef size_t i
        if <size_t>pid >= self.expressions.ending.size():
            return 0
        nodes = &self.expressions.ending[pid]
        for i in range(nodes.size()):
            node = nodes[0][i]
            if scratch.decided_at[node] != scratch.epoch:
                scratch.by_depth[self.expressions.nodes[node].depth].push_back(node)
        return 0

    cdef int evaluate_listed(self, PredicateScratch scratch) except -1 nogil:
        """Expression matching at a leaf as the paper has it: every expression that did not match so far, less what is spared."""
        cdef int64_t started = self.clock()
        cdef const Cluster* cluster
        cdef size_t i
        if self.organisation == ACCESS_PREDICATES:
            for i in range(scratch.literal.clusters.size()):
                cluster = &scratch.literal.clusters[i]
                if scratch.publication.results[cluster.access].empty():
                    scratch.counts[CLUSTERS_RULED_OUT] += 1
                else:
                    self.evaluate_range(scratch, cluster.first, cluster.end)
        else:
            self.evaluate_range(scratch, 0, <int32_t>scratch.literal.expressions.size())
        scratch.counts[EXPRESSION_NANOSECONDS] += self.clock() - started
        return 0

    cdef int evaluate_range(self, PredicateScratch scratch, int32_t first, int32_t end) except -1 nogil:
        cdef const Expression* expressions = scratch.literal.expressions.data()
        cdef uint32_t* matched_at = scratch.literal.matched_at.data()
        cdef int32_t i, prefix
        for i in range(first, end):
            if matched_at[i] == scratch.epoch or not self.has_true_match(scratch, &expressions[i]):
                continue
            matched_at[i] = scratch.epoch
            self.expression_matched(scratch, expressions[i].node, False)
            if self.organisation == BASIC:
                continue
            prefix = expressions[i].prefix
            while prefix >= 0 and matched_at[prefix] != scratch.epoch:
                matched_at[prefix] = scratch.epoch
                scratch.counts[EXPRESSIONS_COVERED] += 1
                self.expression_matched(scratch, expressions[prefix].node, False)
                prefix = expressions[prefix].prefix
        return 0

    cdef bint has_true_match(self, PredicateScratch scratch, const Expression* expression) except -1 nogil:
        """Whether the predicates of an expression have a true match (Figure 2)."""
        cdef const int32_t* pids = scratch.literal.pids.data() + expression.first
        cdef const vector[Occurrences]* result
        cdef int32_t i
        scratch.counts[EXPRESSIONS_EVALUATED] += 1
        scratch.determination.results.resize(expression.length)
        for i in range(expression.length):
            result = &scratch.publication.results[pids[i]]
            if result.empty():
                return False
            scratch.determination.results[i] = result
        return expression.length == 1 or scratch.determination.run(False)

    cdef int settle_prefixes(self, PredicateScratch scratch, int32_t node) except -1 nogil:
        """Prefix covering: what matches an expression matches its prefixes."""
        node = self.expressions.nodes[node].parent
        while node >= 0:
            if self.expressions.nodes[node].first_path >= 0 and scratch.decided_at[node] != scratch.epoch:
                scratch.counts[EXPRESSIONS_COVERED] += 1
                self.expression_matched(scratch, node, False)
            node = self.expressions.nodes[node].parent
        return 0

    cdef int evaluate_innermost(self, PredicateScratch scratch) except -1 nogil:
        """Expression matching at a start tag or a condition: the expressions that end there."""
        cdef int64_t started = self.clock()
        cdef size_t i
        for i in range(scratch.publication.first_recorded.back(), scratch.publication.recorded.size()):
            self.evaluate_ending(scratch, scratch.publication.recorded[i], True)
        scratch.counts[EXPRESSION_NANOSECONDS] += self.clock() - started
        return 0

    cdef int evaluate_loose(self, PredicateScratch scratch) except -1 nogil:
        """Expressions that go on matching below the element that satisfied their last predicate first."""
        cdef int64_t started = self.clock()
        cdef size_t i
        for i in range(self.loose_pids.size()):
            if scratch.publication.results[self.loose_pids[i]].size():
                self.evaluate_ending(scratch, self.loose_pids[i], False)
        scratch.counts[EXPRESSION_NANOSECONDS] += self.clock() - started
        return 0

    cdef int evaluate_ending(self, PredicateScratch scratch, int32_t pid, bint newest_last) except -1 nogil:
        """Evaluates the expressions that end in a predicate: in its newest pair, or else (the loose ones) in any."""
        cdef const vector[int32_t]* nodes
        cdef size_t i
        if <size_t>pid >= self.expressions.ending.size():
            return 0
        nodes = &self.expressions.ending[pid]
        for i in range(nodes.size()):
            if scratch.decided_at[nodes[0][i]] != scratch.epoch:
                if self.determine(scratch, nodes[0][i], newest_last):
                    self.expression_matched(scratch, nodes[0][i], not newest_last)
        return 0

    cdef bint determine(self, PredicateScratch scratch, int32_t node, bint newest_last) except -1 nogil:
        """Whether the predicates of a node have a true match (Figure 2)."""
        cdef int32_t place = self.expressions.nodes[node].depth
        cdef const vector[Occurrences]* result
        scratch.counts[EXPRESSIONS_EVALUATED] += 1
        if place == 1:
            return scratch.publication.results[self.expressions.nodes[node].pid].size() > 0
        scratch.determination.results.resize(place)
        while node >= 0:
            result = &scratch.publication.results[self.expressions.nodes[node].pid]
            if result.empty():
                return False
            place -= 1
            scratch.determination.results[place] = result
            node = self.expressions.nodes[node].parent
        return scratch.determination.run(newest_last)

    cdef int expression_matched(self, PredicateScratch scratch, int32_t node, bint only_loose) except -1 nogil:
        """Reports the paths of a node; it is decided unless a twig has to know where else they match."""
        cdef int32_t path = self.expressions.nodes[node].first_path
        cdef bint is_decided = not only_loose
        while path >= 0:
            if not only_loose or self.is_loose[path]:
                scratch.counts[PATHS_MATCHED] += 1
                self.path_matched(scratch, path)
            if self.in_twig(path):
                is_decided = False
            path = self.expressions.next_path[path]
        if is_decided:
            scratch.decided_at[node] = scratch.epoch
        return 0

    cdef inline int64_t clock(self) noexcept nogil:
        """Nanoseconds, for the cost breakdown of Table 2; always 0 unless that was asked for."""
        cdef timespec now
        if not self.breakdown:
            return 0
        clock_gettime(CLOCK_MONOTONIC, &now)
        return <int64_t>now.tv_sec * 1000000000 + now.tv_nsec
