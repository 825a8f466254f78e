"""`sift`: xsift's own engine.

The idea. (1) Paths, conditions and the branches of twigs are all paths of one automaton (automaton.hpp), determinised as
documents ask for it (lazy_dfa.hpp). (2) An element where a pattern branches is a branch point. It starts one more thread of the
automaton, which runs over what is below it and tells which branches are there. All threads at an element are one
configuration (configurations.hpp), so that an element costs one look-up, whatever there is to be found. (3) What a
condition leads to runs beside it, and only where the condition holds; a reader is told which conditions can matter at an
element before it looks at a value (document/guide.hpp). (4) When a branch point ends, what was met below it decides its
patterns; small sets of that are remembered with their outcome (branch_sets.hpp), large ones looked through without a branch
(decider.hpp). (5) Results are bits, set in any order and read in ascending order. (6) When every pattern has matched, or the
root's name leads nowhere, the rest of the document is not looked at. (7) What is made for a document and never met again is
made in vain. Where documents lead to much that is new, they are taken another way, which makes no states: the automaton as
it is, with scopes left out, and a join of branches at the end (plain_run.hpp). The states that a path of names leads to are
kept as a list, for most paths were met before, however new the document (known_paths.hpp); what is behind conditions is
followed beside them. (8) Where documents come again and again, that is not followed either: it is one number, and what a
name or a set of conditions leads to from there is kept (situations.hpp).

    automaton.hpp        Automaton: all paths, prefixes shared; conditions and scopes are transitions too
    twig_index.hpp       TwigIndex: patterns as paths, nodes and edges; adding and removing them
    run.hpp              Run: one thread's way through documents
    way.hpp              Way: which of two ways a document is taken
    results.hpp          Results: the keys that matched, as bits

    remembering_run.hpp  RememberingRun: what documents lead to is made once, and remembered
    parts.hpp            Parts: sets of states, each kept once
    lazy_dfa.hpp         LazyDfa: sets of states as states; parts, loops, yields
    configurations.hpp   Configurations: all threads at an element as one number
    branch_points.hpp    BranchPoints: the open elements where patterns branch, and what they meet
    branch_sets.hpp      BranchSets: what was met below a branch point, and what follows from it
    trigger_table.hpp    TriggerTable: by which of its edges a node comes to be looked at
    trigger_blocks.hpp   TriggerBlocks: what is to be looked at when edges are met
    decider.hpp          Decider: what follows, found out
    release.hpp          what is forgotten gives its memory back

    plain_run.hpp        PlainRun: the automaton as it is, followed without making states of sets
    plain_states.hpp     PlainStates: the states of open elements, on stacks
    plain_conditions.hpp PlainConditions: what conditions lead to, state by state
    plain_situations.hpp PlainSituations: what is behind conditions, looked up where documents come again and again
    situations.hpp       Situations: all that is behind conditions at an element, as a number
    known_paths.hpp      KnownPaths: which states the paths of names lead to that were met before
    waiting_loops.hpp    WaitingLoops: looping states, under the names that they wait for
    flat_automaton.hpp   FlatAutomaton: the automaton laid out for that
    plain_notes.hpp      PlainNotes: what was met of the document
    twig_join.hpp        TwigJoin: which twigs hold, found out when the document has ended
    surroundings.hpp     Surroundings: of the elements where a loop began, those that are around an element

    index_check.hpp      IndexCheck: that a restored index leads nowhere outside

What came from where. The shared automaton with its `//` loops is YFilter's, and so is the join of the plain way. That
a node is looked at only when its least likely branch is there is AFilter's trigger; choosing among equals the one
with the shortest list is XFilter's list balance. Equal sub-patterns decided once are iFiST's shareable segments; a
predicate kept once for all its subscribers is predicate-based filtering's. That branches are resolved when their
element is closed, with no join afterwards, as long as documents are remembered, is BFilter's backward matching.
Matching ordered twigs by counting how many children are matched from left to right is XTrie's array B. Sets that are
remembered with their outcome are XPush's.

What was tried, and what it gained (100,000 NITF twigs with two nested paths; time of matching):

    bottom-up sub-patterns, triggered by name              where it began                                              1.0
    one automaton, a thread a branch point                 kept: only branches that can be wanted are met              0.8
    what subs complete as one yield, not edge by edge      kept                                                        0.4
    triggers chosen by their looks, not by list length     kept: half as many nodes are looked at
    sets of yields step by step (set, yield) -> set        not kept: a look-up a yield, and sets that are met once
    sets of yields looked for at the end                   kept: as fast, a third of the memory
    triggers looked at without a branch, part by part      kept                                                        0.2
    edges only where some node asks for them; prefetching  kept                                                        0.17
    triggers chosen by how often edges are met             kept: again half as many nodes are looked at
    triggers yield by yield, small parts copied            kept: a fifth less, in a tenth more memory
    bits numbered as edges are met, set a word at a time   not kept: hardly faster
    an extra set of yields for every branch point, however large      not kept: documents differ, it only fills the cache

What was tried for documents that are new, and for small sets, is in docs/engines.md.

Takes every pattern, ordered or not. What it costs: memory for what documents led to, bounded by `cache_bytes` for each
thread that matches; when it is full all of that is forgotten and made again.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libcpp cimport bool as cpp_bool
from libcpp.vector cimport vector

from xsift.document.guide cimport Guide
from xsift.engines.base cimport Engine, Scratch
from xsift.engines.guiding cimport GuidingScratch
from xsift.native.saving cimport from_numpy, lent_to_numpy, table_from_numpy
from xsift.native.tables cimport Array, BytesTable, FlatMap, Lists
from xsift.xpath.condition cimport Condition, STRING_SUBJECT_BIT, TEXT_SUBJECT_BIT, subject_bit
from xsift.xpath.pattern cimport DESCENDANT, Pattern, PatternNode

import numpy as np

from xsift.errors import EngineError

cdef extern from "twig_index.hpp" namespace "xsift::sift" nogil:
    cdef enum StepKind "xsift::sift::Step::Kind":
        ELEMENT "xsift::sift::Step::ELEMENT"
        EARLY "xsift::sift::Step::EARLY"
        LATE "xsift::sift::Step::LATE"

    cdef struct Step:
        int32_t symbol
        int32_t first_child
        int32_t next_sibling
        uint64_t subject
        uint8_t descendant
        uint8_t kind

    cdef cppclass NfaState:
        pass

    cdef cppclass Node:
        pass

    cdef cppclass Edge:
        pass

    cdef cppclass OrderedUse:
        pass

    cdef cppclass Automaton:
        Array[NfaState] states
        FlatMap[int32_t] transitions
        FlatMap[uint64_t] subjects
        int32_t free_state
        int64_t state_count
        size_t bytes()

    cdef cppclass TwigIndex:
        TwigIndex() except +
        Automaton automaton
        Array[Node] nodes
        Array[int32_t] free_nodes
        Array[Edge] edges
        Array[int32_t] free_edges
        Array[int32_t] edge_pool
        BytesTable sub_keys
        Array[int32_t] sub_of_key
        Lists[OrderedUse] ordered_uses
        Array[uint8_t] late
        Array[int32_t] pattern_state
        Array[int32_t] pattern_node
        Array[int32_t] free_keys
        int64_t pattern_count
        int64_t node_count
        int64_t ordered_count
        int32_t add(const Step* steps, cpp_bool ordered) except +
        cpp_bool has(int32_t key)
        void remove(int32_t key) except +
        size_t twig_bytes()
        size_t pattern_bytes()

cdef extern from "index_check.hpp" namespace "xsift::sift" nogil:
    cpp_bool is_fine(const TwigIndex& index, int64_t symbols) except +

cdef extern from "run.hpp" namespace "xsift::sift" nogil:
    cdef cppclass Run(Guide):
        Run(const TwigIndex* index, int64_t cache_bytes, int32_t wanted) except +
        void begin(int64_t version) except +
        cpp_bool feed(const int32_t* codes, size_t number) except +
        void collect(vector[int32_t]& keys) except +
        int64_t states_made()
        int64_t configurations_made()
        int64_t sets_made()
        int64_t looked()
        int64_t decisions()
        int64_t flushes()
        int64_t entered()
        int64_t plain_documents
        size_t cached_bytes()
        size_t mark_bytes()

cdef enum:
    DEFAULT_CACHE_BYTES = 128 * 1024 * 1024


cdef class SiftScratch(GuidingScratch):
    cdef Run* run  # reads the engine's index: whoever has the scratch keeps the engine

    def __dealloc__(self):
        del self.run

    cdef Guide* guide(self) noexcept:
        return self.run


cdef class Sift(Engine):
    """Paths, conditions and branches of all patterns in one automaton, determinised as documents ask for it."""

    name = "sift"
    paper = "xsift's own; takes an idea from each of the papers"
    takes = "every pattern, ordered or not"
    wins = "documents of a kind that it has seen before, and large sets; what engine=\"auto\" picks"
    caveat = "a cache, bounded by cache_bytes a thread; where documents have no paths in common it costs what yfilter does"
    options = {"cache_bytes": (DEFAULT_CACHE_BYTES,), "remember": ("auto", "always", "never")}
    counter_names = ("states made", "configurations made", "sets made", "flushes", "branch points decided", "nodes checked",
                     "documents not remembered", "states entered in them")

    cdef TwigIndex index
    cdef int64_t version                  # grows with every change
    cdef object kept                      # what owns the arrays of a restored index
    cdef int64_t cache_bytes
    cdef vector[Step] steps               # of the pattern being added
    cdef FlatMap[uint64_t] subjects       # by condition: the bit of what it is on
    cdef int32_t way                      # Way::AUTO, ALWAYS_REMEMBER, ALWAYS_PLAIN: as in `options`

    def __init__(self, **options):
        cache_bytes = options.pop("cache_bytes", DEFAULT_CACHE_BYTES)
        if not isinstance(cache_bytes, int) or cache_bytes < 0:
            raise EngineError("bad-option", f"engine 'sift': cache_bytes={cache_bytes!r}",
                              hint="a number of bytes, 0 or more")
        self.cache_bytes = cache_bytes
        self.way = self.options["remember"].index(self._option(options, "remember"))
        self._no_options(options)

    # The index.

    def add(self, Pattern pattern not None):
        cdef PatternNode node
        cdef uint8_t kind
        cdef uint64_t subject
        self.steps.clear()
        for node in pattern.nodes:
            kind, subject = ELEMENT, 0
            if node.is_condition:
                subject = self.subjects.get(node.symbol, 0)
                if subject == 0:
                    subject = self.subject_of(node.symbol, pattern)
                kind = LATE if subject == TEXT_SUBJECT_BIT or subject == STRING_SUBJECT_BIT else EARLY
            self.steps.push_back(
                Step(node.symbol, node.first_child, node.next_sibling, subject, node.axis == DESCENDANT, kind))
        self.version += 1
        return self.index.add(self.steps.data(), pattern.ordered)

    cdef uint64_t subject_of(self, int32_t symbol, Pattern pattern) except 0:
        """The bit of what a condition is on; kept, as many patterns have the same one."""
        cdef Condition condition = pattern.symbols.condition_of(symbol)
        cdef uint64_t subject = subject_bit(condition.subject, condition.attribute.data(), condition.attribute.size())
        self.subjects.put(symbol, subject)
        return subject

    def remove(self, int key):
        if not self.index.has(key):
            raise EngineError("unknown-key", f"engine 'sift' has no pattern with key {key}")
        self.version += 1
        self.index.remove(key)

    def __len__(self):
        return self.index.pattern_count

    def memory(self):
        cdef SiftScratch scratch
        sizes = {"automaton": self.index.automaton.bytes(), "twigs": self.index.twig_bytes(),
                 "patterns": self.index.pattern_bytes(), "run-time states": 0, "run-time marks": 0}
        for scratch in self.scratches:
            sizes["run-time states"] += scratch.run.cached_bytes()
            sizes["run-time marks"] += scratch.run.mark_bytes()
        return sizes

    def counters(self):
        totals = dict.fromkeys(self.counter_names, 0)
        cdef SiftScratch scratch
        for scratch in self.scratches:
            counts = (scratch.run.states_made(), scratch.run.configurations_made(), scratch.run.sets_made(),
                      scratch.run.flushes(), scratch.run.decisions(), scratch.run.looked(),
                      scratch.run.plain_documents, scratch.run.entered())
            for name, count in zip(self.counter_names, counts, strict=True):
                totals[name] += count
        return totals

    def saved(self):
        """The index as arrays, for `restore`; they can be mapped from a file and shared by processes."""
        return {name: array.copy() for name, array in self.lent().items()}

    def lent(self):
        cdef BytesTable* sub_keys = &self.index.sub_keys
        return {
            "sift.states": lent_to_numpy(self.index.automaton.states.saved(), self),
            "sift.transitions": lent_to_numpy(self.index.automaton.transitions.saved(), self),
            "sift.subjects": lent_to_numpy(self.index.automaton.subjects.saved(), self),
            "sift.nodes": lent_to_numpy(self.index.nodes.saved(), self),
            "sift.free_nodes": lent_to_numpy(self.index.free_nodes.saved(), self),
            "sift.edges": lent_to_numpy(self.index.edges.saved(), self),
            "sift.free_edges": lent_to_numpy(self.index.free_edges.saved(), self),
            "sift.edge_pool": lent_to_numpy(self.index.edge_pool.saved(), self),
            "sift.sub_keys.blob": lent_to_numpy(sub_keys.blob.saved(), self),
            "sift.sub_keys.ends": lent_to_numpy(sub_keys.ends.saved(), self),
            "sift.sub_of_key": lent_to_numpy(self.index.sub_of_key.saved(), self),
            "sift.ordered_uses.extents": lent_to_numpy(self.index.ordered_uses.extents.saved(), self),
            "sift.ordered_uses.pool": lent_to_numpy(self.index.ordered_uses.pool.saved(), self),
            "sift.late": lent_to_numpy(self.index.late.saved(), self),
            "sift.pattern_state": lent_to_numpy(self.index.pattern_state.saved(), self),
            "sift.pattern_node": lent_to_numpy(self.index.pattern_node.saved(), self),
            "sift.free_keys": lent_to_numpy(self.index.free_keys.saved(), self),
            "sift.counts": np.array([self.index.automaton.free_state, self.index.automaton.state_count,
                                     self.index.pattern_count, self.index.node_count,
                                     self.index.ordered_count], dtype=np.int64),
        }

    def restore(self, arrays):
        """Becomes the index that was saved; its arrays are used where they lie, and copied when it is changed."""
        self.index.automaton.states.restore(from_numpy(arrays["sift.states"]))
        self.index.automaton.transitions.restore(from_numpy(arrays["sift.transitions"]))
        self.index.automaton.subjects.restore(from_numpy(arrays["sift.subjects"]))
        self.index.nodes.restore(from_numpy(arrays["sift.nodes"]))
        self.index.free_nodes.restore(from_numpy(arrays["sift.free_nodes"]))
        self.index.edges.restore(from_numpy(arrays["sift.edges"]))
        self.index.free_edges.restore(from_numpy(arrays["sift.free_edges"]))
        self.index.edge_pool.restore(from_numpy(arrays["sift.edge_pool"]))
        table_from_numpy("sift.sub_keys", self.index.sub_keys, arrays)
        self.index.sub_of_key.restore(from_numpy(arrays["sift.sub_of_key"]))
        self.index.ordered_uses.restore(from_numpy(arrays["sift.ordered_uses.extents"]),
                                        from_numpy(arrays["sift.ordered_uses.pool"]))
        self.index.late.restore(from_numpy(arrays["sift.late"]))
        self.index.pattern_state.restore(from_numpy(arrays["sift.pattern_state"]))
        self.index.pattern_node.restore(from_numpy(arrays["sift.pattern_node"]))
        self.index.free_keys.restore(from_numpy(arrays["sift.free_keys"]))
        (self.index.automaton.free_state, self.index.automaton.state_count, self.index.pattern_count,
         self.index.node_count, self.index.ordered_count) = arrays["sift.counts"].tolist()
        if not is_fine(self.index, arrays["symbols"][0]):
            raise ValueError("its index leads outside")
        self.kept = arrays
        self.version += 1
        return self.index.pattern_node.size()

    # The run.

    cdef Scratch new_scratch(self):
        cdef SiftScratch scratch = SiftScratch()
        scratch.run = new Run(&self.index, self.cache_bytes, self.way)
        return scratch

    cdef int begin(self, Scratch scratch) except -1 nogil:
        (<SiftScratch>scratch).run.begin(self.version)
        return 0

    cdef int feed(self, Scratch scratch, const int32_t* codes, size_t number) except -1 nogil:
        return (<SiftScratch>scratch).run.feed(codes, number)

    cdef int finish(self, Scratch scratch, vector[int32_t]* keys) except -1 nogil:
        (<SiftScratch>scratch).run.collect(keys[0])
        return 0
