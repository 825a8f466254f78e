"""`afilter`: paths are triggered by their last step and followed backwards, over one stack a label.

Paper: K. Selçuk Candan, Wang-Pin Hsiung, Songting Chen, Junichi Tatemura, Divyakant Agrawal, "AFilter: adaptable XML
filtering with prefix-caching and suffix-clustering", VLDB 2006.

The idea. An automaton keeps every partial match up to date at every tag, though most never complete. AFilter does
nothing but push and pop: one stack a label, each object with pointers to the stacks of the labels that may come
before it. Only when the last label of a path is pushed are the pointers followed back towards the root. Paths that
end alike are followed together; what was found out about a prefix at an object is cached, for all paths that begin
alike. Correctness needs no cache, so it takes as much memory as there is to give.

Two questions. `results="tuples"`: every path-tuple, as in the paper. `results="filters"`: which paths match. Then a
traversal stops at the first success, at failures that no other object can mend, and at paths and clusters that have
matched already. Keys are the same in both; `tuples()` and `Matcher.tuples` give the tuples themselves, in either.

The paper's terms here: *AxisView*, *PRLabel-tree*, *SFLabel-tree* (together *PatternView*) view.pyx, labels.pyx;
*StackBranch*, Push, Pop branch.pyx. For tuples, *TriggerCheck*, *Traverse* of groups (Figure 9) and of suffix labels,
*early* and *late unfolding* tuple_traversal.pyx, read by path_tuples.pyx; *PRCache* with sub-results tuple_cache.pyx.
For filters, TriggerCheck and Traverse traverse.pyx, for suffix labels suffix.pyx, PRCache with verdicts cache.pyx. A
*filter expression* is a path. The five deployments of Table 1 are the option `deployment`: `nc` no cache, `pre`
prefix cache, `ns` no suffix clusters, `suf` suffix clusters. `cache="failures"` is section 5.1's cheaper cache. No
option changes an answer.

The bits of section 7. *unfold*: an object carries a hashed set of the prefix labels that were cached for it, a suffix
label one of the prefixes that it clusters; the bit is whether they meet (`StackObject.cached & SuffixNode.prefixes`).
Printed, the bit of each suffix label of a prefix is set when the prefix is cached, which is one for each path that
has it. *remove*: a mark for each path and a count for each suffix label, undone when the traversal leaves the
object where they were set. *prunecache*: a removed path's prefixes are not looked up. The pruning condition for a whole cluster, "all
its removal bits are set", becomes one entry in PRCache for the suffix label and the object.

Deviations.
- Tuples are not collected in sets and returned: the frames of the traversal are the end of a tuple, so that it can be
  told when q_root is reached, in bounded memory. A document of which there are too many (`tuple_steps` traversals and
  tuples) is finished by filters.
- The hash join of Figure 9 is by the slot of an edge, which is a perfect hash.
- A suffix that one path alone has gets no label (labels.pyx). Late unfolding looks for candidates to serve from the
  side of the cluster or of the object, and only where one of them is small: section 7.2.2 says why that look must be
  cheap. By filters it looks into small clusters only.
- TriggerCheck's pruning is one AND of two hashed sets of labels. A suffix label has such a set too, of the labels
  that all its paths have.
- Conditions are leaves: a label of its own, whose object is popped as soon as its triggers are checked.
- Labels, links and paths are renumbered in suffix order as they grow (arrangement.pyx).

Takes every unordered pattern; twigs through the join of path matches (join.pyx), for which a path is reported at
each element where it ends, not only once; tuples are for linear patterns only. It needs little memory at run time
beside its cache, and finds every instantiation of every path in one run. `yfilter` as it is here takes half of its
time or less: experiments/definitions/afilter.toml says why.
"""

from libcpp.vector cimport vector

from xsift.document.events cimport END, EventSource, condition_symbol
from xsift.engines.afilter.arrangement cimport arrange_if_needed
from xsift.engines.afilter.branch cimport StackBranch
from xsift.engines.afilter.labels cimport label_bit
from xsift.engines.afilter.suffix cimport settle, trigger_check_suffixes
from xsift.engines.afilter.traverse cimport (
    PATHS_MATCHED, AFilterScratch, AgendaItem, Frame, SuffixState, trigger_check,
)
from xsift.engines.afilter.tuple_traversal cimport TupleTraversal
from xsift.engines.afilter.view cimport PatternView
from xsift.engines.base cimport Scratch
from xsift.engines.paths cimport PathEngine
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint32_t
from xsift.xpath.pattern cimport Pattern

from xsift.engines.afilter.cache import NO_LIMIT
from xsift.engines.afilter.path_tuples import PathTuples
from xsift.errors import EngineError

DEFAULT_CACHE_BYTES = 1 << 26
DEFAULT_TUPLE_STEPS = 1 << 28


cdef class AFilter(PathEngine):
    """Paths triggered by their last step, traversed backwards over a stack for each label."""

    name = "afilter"
    paper = "Candan, Hsiung, Chen, Tatemura, Agrawal: AFilter: adaptable XML filtering with prefix-caching and " \
            "suffix-clustering (VLDB 2006)"
    wins = "large sets of paths with many `*` and `//`; when memory is short; path-tuples"
    caveat = "paths of twigs are matched again at every element where they end"
    options = {
        "results": ("filters", "tuples"),
        "deployment": ("pre-suf-late", "pre-suf-early", "pre-ns", "nc-suf", "nc-ns"),
        "cache": ("all", "failures"),
        "cache_bytes": (DEFAULT_CACHE_BYTES, 0, None),  # any number; for each thread; None is unlimited
        "tuple_steps": (DEFAULT_TUPLE_STEPS, 0, None),  # any number; for each document; None is unlimited
    }
    counter_names = ("triggers", "triggers pruned", "traversals", "cache look-ups", "cache hits", "cache entries",
                     "cache evictions", "unfoldings", "removals", "traversals pruned", "paths matched", "tuples")

    cdef PatternView view
    cdef readonly str results
    cdef readonly str deployment
    cdef readonly str cache
    cdef readonly object cache_bytes
    cdef readonly object tuple_steps
    cdef int64_t most_work              # tuple_steps as a number

    def __init__(self, **options):
        self.results = self._option(options, "results")
        self.deployment = self._option(options, "deployment")
        self.cache = self._option(options, "cache")
        self.cache_bytes = self._number(options, "cache_bytes", "a number of bytes")
        self.tuple_steps = self._number(options, "tuple_steps", "a number of traversals and tuples")
        self.most_work = NO_LIMIT if self.tuple_steps is None else min(self.tuple_steps, NO_LIMIT)
        self._no_options(options)
        self.view = PatternView(self.deployment.startswith("pre"), "suf" in self.deployment,
                                self.results == "tuples" and self.deployment == "pre-suf-late")

    def _number(self, options, name, what):
        value = options.pop(name, self.options[name][0])
        if value is not None and (type(value) is not int or value < 0):
            raise EngineError("bad-option", f"engine {self.name!r}: {name}={value!r}",
                              hint=f"{what} from 0 on, or None for no limit")
        return value

    # The index.

    def add(self, Pattern pattern not None):
        cdef int32_t key = PathEngine.add(self, pattern)
        for path in self._twig_paths(key):
            self.view.mark_twig(path, True)
        return key

    def remove(self, int key):
        cdef int32_t path
        paths = self._twig_paths(key) if 0 <= key < <int>self.pattern_path.size() else ()
        PathEngine.remove(self, key)
        for path in paths:
            if not self.path_steps[path].empty() and not self.in_twig(path):
                self.view.mark_twig(path, False)

    cdef int insert_path(self, int32_t path) except -1:
        self.view.insert(path, self.path_steps[path])
        return arrange_if_needed(self.view)

    cdef int delete_path(self, int32_t path) except -1:
        return self.view.delete(path, self.path_steps[path])

    def memory(self):
        cdef AFilterScratch scratch
        cdef TupleTraversal traversal
        sizes = PathEngine.memory(self)
        sizes.update(self.view.memory())
        sizes["run-time StackBranch"] = 0
        sizes["run-time marks"] = 0
        if self.view.has_prefixes:
            sizes["run-time PRCache"] = 0
        for scratch in self.scratches:
            sizes["run-time StackBranch"] += scratch.branch.memory()
            sizes["run-time marks"] += (
                scratch.states.capacity() * sizeof(SuffixState) + scratch.frames.capacity() * sizeof(Frame)
                + scratch.agenda.capacity() * sizeof(AgendaItem) + scratch.is_removed.capacity() + 4 * (
                    scratch.path_at.capacity() + scratch.at.capacity() + scratch.found.capacity()
                    + scratch.removed.capacity() + scratch.cluster.capacity() + scratch.pending.capacity()))
            if self.view.has_prefixes:
                sizes["run-time PRCache"] += scratch.cache.memory()
            traversal = scratch.tuples
            if traversal is not None:
                sizes["run-time marks"] += traversal.memory()
                if self.view.has_prefixes:
                    sizes["run-time PRCache"] += traversal.cache.memory()
        return sizes

    # The run.

    cdef Scratch new_scratch(self):
        cdef AFilterScratch scratch = AFilterScratch(
            self.branches, self._share(), self.cache == "failures", self.view.has_prefixes,
            self.deployment == "pre-suf-early")
        if self.results == "tuples":
            scratch.tuples = self._traversal(scratch, scratch.branch)
        return scratch

    def _share(self):
        """The limit of one cache. With tuples there are two: a document with too many is finished with verdicts."""
        return self.cache_bytes // 2 if self.results == "tuples" and self.cache_bytes is not None else self.cache_bytes

    def _traversal(self, AFilterScratch scratch, StackBranch branch):
        return TupleTraversal(self.view, branch, scratch, self._share(), self.cache == "failures",
                              self.deployment == "pre-suf-early")

    cdef int begin(self, Scratch scratch) except -1 nogil:
        return self.begin_run(<AFilterScratch>scratch)

    cdef int begin_run(self, AFilterScratch scratch) except -1 nogil:
        self.begin_join(scratch)
        scratch.branch.clear(self.view.axes.nodes.size())
        scratch.cache.clear()
        scratch.found.clear()
        if scratch.trigger >= <uint32_t>1 << 31 or scratch.removed.size():
            # The numbers of triggers must not wrap within a document; a traversal that broke off for want of memory
            # leaves removals behind.
            scratch.trigger = 0
            scratch.removed.clear()
            scratch.path_at.clear()
            scratch.is_removed.clear()
            scratch.states.clear()
            if scratch.tuples is not None:
                (<TupleTraversal>scratch.tuples).dirty = True
        scratch.trigger += 1
        scratch.first_trigger = scratch.trigger
        scratch.branch.clock = scratch.trigger
        scratch.path_at.resize(self.view.paths.size(), 0)
        scratch.is_removed.resize(self.view.paths.size(), 0)
        scratch.states.resize(self.view.suffixes.nodes.size(), SuffixState(0, 0, 0, 0))
        scratch.by_tuples = scratch.tuples is not None
        if scratch.by_tuples:
            (<TupleTraversal>scratch.tuples).begin()
        return 0

    cdef int feed(self, Scratch scratch, const int32_t* codes, size_t number) except -1 nogil:
        return self.run(<AFilterScratch>scratch, codes, number)

    cdef int run(self, AFilterScratch scratch, const int32_t* codes, size_t number) except -1 nogil:
        cdef size_t i
        cdef int32_t object
        for i in range(number):
            if codes[i] >= 0:
                self.element_starts(scratch, codes[i])
                scratch.branch.push(self.view.axes, codes[i])
                for object in range(scratch.branch.marks.back(), <int32_t>scratch.branch.objects.size()):
                    self.check(scratch, object)
            elif codes[i] == END:
                self.element_ends(scratch)
                scratch.branch.pop()
            else:
                self.condition_holds(scratch, condition_symbol(codes[i]))
        return 0

    cdef int condition_holds(self, AFilterScratch scratch, symbol_t condition) except -1 nogil:
        if <size_t>condition < self.view.axes.nodes.size() and self.view.axes.nodes[condition].assertions:
            self.check(scratch, scratch.branch.push_condition(self.view.axes, condition))
            scratch.branch.pop_condition()
        return 0

    cdef int check(self, AFilterScratch scratch, int32_t object) except -1 nogil:
        """TriggerCheck for a new object; what it finds goes to the join."""
        cdef size_t i
        cdef int32_t path
        scratch.trigger += 1
        scratch.branch.clock = scratch.trigger
        if scratch.by_tuples and self.check_tuples(scratch, <TupleTraversal>scratch.tuples, object):
            return 0
        scratch.missing = ~(scratch.branch.labels | label_bit(scratch.branch.objects[object].label))
        if self.view.has_suffixes:
            trigger_check_suffixes(self.view, scratch, object)
        else:
            trigger_check(self.view, scratch, object)
        scratch.counts[PATHS_MATCHED] += scratch.found.size()
        for i in range(scratch.found.size()):
            path = scratch.found[i]
            self.path_matched(scratch, self.view.names[path])
            if self.view.has_suffixes and not self.view.in_twig[path]:
                settle(self.view, scratch, path)
        scratch.found.clear()
        return 0

    cdef bint check_tuples(self, AFilterScratch scratch, TupleTraversal traversal, int32_t object) except -1 nogil:
        """TriggerCheck that finds every tuple. Returns False if that was given up: it takes too many steps."""
        cdef size_t i
        traversal.begin_trigger(object)
        while traversal.go_on():
            if traversal.work > self.most_work:
                scratch.by_tuples = False
                return False
        scratch.counts[PATHS_MATCHED] += traversal.found.size()
        for i in range(traversal.found.size()):
            scratch.path_at[traversal.found[i]] = scratch.trigger
            self.path_matched(scratch, self.view.names[traversal.found[i]])
        return True

    # Path-tuples.

    def tuples(self, EventSource document not None, keys=None, steps=None):
        """Every instantiation of linear patterns: an iterator of pairs of a pattern's key and a tuple, one element
        number a step, no conditions. All linear patterns, unless `keys` are given.

        They come as they are found, by last element in document order, and memory is bounded. Their number can be
        exponential in the steps of a pattern: the iterator's `enough(key)` ends those of one pattern, and `steps`
        ends the iteration after so many traversals and tuples (then its `exhausted` is True). Nothing may be added to
        or removed from the engine meanwhile.
        """
        cdef AFilterScratch scratch
        cdef int32_t key
        if keys is None:
            keys = [key for key in range(<int32_t>self.pattern_path.size()) if self.pattern_path[key] >= 0]
        for key in keys:
            if not 0 <= key < <int32_t>self.pattern_path.size() or self.pattern_path[key] == -2:
                raise EngineError("unknown-key", f"engine {self.name!r} has no pattern with key {key}")
            if self.pattern_path[key] < 0:
                raise EngineError("not-linear",
                                  f"engine {self.name!r} gives tuples of linear patterns; {key} is a twig",
                                  hint="ask the reference engine's evaluation")
        if steps is not None and steps < 0:
            raise EngineError("bad-limit", f"steps={steps!r}", hint="a number from 0 on, or None for no limit")
        scratch = AFilterScratch(self.branches)
        scratch.counts.assign(len(self.counter_names), 0)
        return PathTuples(self._traversal(scratch, scratch.branch), document,
                          {key: self.view.numbers[self.pattern_path[key]] for key in keys}, steps)

    # What the structures look like, in the paper's terms. Labels are symbols, 0 is `*`, -1 is q_root; paths are
    # numbered as they were first added.

    def axis_view(self):
        """AxisView: (label, label before) -> assertions (path, step, axis, whether it triggers)."""
        labels = [[step.symbol for step in steps] for steps in self.path_steps]
        return self.view.axis_view(labels)

    def prefix_labels(self, int32_t path):
        """The path's labels in the PRLabel-tree, one a step."""
        return self.view.prefix_labels_of(path)

    def suffix_labels(self, int32_t path):
        """The path's labels in the SFLabel-tree, one a step; None for a suffix that no other path has."""
        return self.view.suffix_labels_of(path)

    def sizes(self):
        """How many edges, assertions, prefix labels and suffix labels there are."""
        return self.view.sizes()

    def stack_branch(self, codes):
        """StackBranch after these events: label -> objects (element, depth, target -> element), lowest first."""
        return self._after(codes).branch.as_dict(self.view.axes)

    def work(self, codes):
        """The counters after these events."""
        return dict(zip(self.counter_names, self._after(codes).counts, strict=True))

    cdef AFilterScratch _after(self, codes):
        cdef AFilterScratch scratch = self.new_scratch()
        cdef vector[int32_t] events = codes
        scratch.counts.assign(len(self.counter_names), 0)
        self.begin_run(scratch)
        self.run(scratch, events.data(), events.size())
        return scratch
