"""`sift`: xsift's own engine.

The idea. (1) All root-to-step paths share one automaton, determinised lazily (dfa.pyx): an element costs one
look-up, and what its state accepts is reported once a document. (2) A twig is decided bottom-up below its first
branching step, over sub-patterns that all twigs share (twigs.pyx): when an element is closed, the edges that hold
for it trigger the few nodes worth a look. (3) Results are bits, set in any order and read in ascending order. (4) When
every pattern has matched, or the root's name leads nowhere, the rest of the document is not looked at.

What came from where. The shared automaton with its `//` loops is YFilter's. That work starts at the rarest
part of a pattern and is spent only when a leaf was met is AFilter's trigger; choosing the part by
the length of the list that it stands in is XFilter's list balance. Equal sub-patterns decided once, bottom-up, are iFiST's
shareable segments; a predicate kept once for all its subscribers is predicate-based filtering's. That
branches are resolved when their element is closed, with no join afterwards, is BFilter's backward matching. Matching
ordered twigs by counting how many children are matched from left to right is XTrie's array B.

Takes every pattern, ordered or not. What it costs: memory for the deterministic states, bounded by `cache_bytes` for each
thread that matches; when it is full they are forgotten and made again.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libcpp.vector cimport vector

from xsift.document.events cimport END, condition_symbol
from xsift.engines.base cimport Engine, Scratch
from xsift.engines.nfa cimport PathNfa
from xsift.engines.sift.dfa cimport NO_LOOPS, DfaState, LazyDfa, Part
from xsift.engines.sift.twigs cimport Edge, OrderedUse, Trigger, TwigIndex, TwigNode, name_bit
from xsift.native.saving cimport from_numpy, to_numpy
from xsift.native.tables cimport Array, FlatMap, pack
from xsift.native.types cimport symbol_t
from xsift.xpath.pattern cimport DESCENDANT, Pattern

import numpy as np

from xsift.errors import EngineError

cdef extern from "bits.hpp" namespace "xsift" nogil:
    size_t SLACK
    int32_t* take_bits(uint64_t* words, size_t count, int32_t base, int32_t* to)

cdef extern from *:
    void prefetch "__builtin_prefetch"(const void* address) nogil

cdef enum Counter:
    STATES_MADE
    FLUSHES
    NODES_CHECKED

cdef enum:
    LINEAR = -1            # in `pattern_top`: the pattern is a path, accepted by its NFA state
    FREE = -2
    BLOCK = 64              # words of `bits` that are looked through together
    AHEAD = 8               # edges that are asked for in advance
    FEW_PATTERNS = 4096     # one document may match all of so many
    FIRST_COMPACTION = 256  # a record is rid of repetitions when it gets longer than this
    DEFAULT_CACHE_BYTES = 128 * 1024 * 1024


cdef class SiftScratch(Scratch):
    cdef LazyDfa dfa
    cdef int64_t version               # of the index that `dfa` was made for
    cdef int64_t flush_at              # the bytes that `dfa` may take before its states are forgotten
    cdef vector[int32_t] stack         # the states of the open elements, the document's first
    cdef vector[symbol_t] symbols      # of the open elements; the root is at level 0
    cdef vector[uint64_t] bits         # by key: matched in this document
    cdef vector[uint8_t] blocks        # by BLOCK words of `bits`: some are not zero
    cdef vector[int32_t] found         # room for all keys
    cdef bint counts_down              # whether `undecided` is kept: only if it may reach 0
    cdef int64_t undecided             # patterns that have not matched yet
    cdef bint unfinished               # a document was begun and its matches were not collected: it broke off
    cdef uint32_t epoch                # numbers the documents
    # For twigs only, by level.
    cdef vector[vector[int32_t]] records   # the edges that hold so far for each open element, with repetitions
    cdef vector[size_t] compact_at     # the length at which a record is rid of repetitions next
    cdef vector[uint32_t] edge_at      # by edge: the record in which it was seen last
    cdef uint32_t record_number
    cdef vector[uint64_t] answered     # by NFA state: the record for which is_active was asked last, and the answer
    cdef vector[int32_t] asked         # edges of a record that may trigger something,
    cdef vector[int32_t] lists         # the lists of what they trigger,
    cdef vector[int32_t] candidates    # and nodes that are still to be checked
    cdef vector[int32_t] satisfied     # the subs that the closing element satisfies
    # For ordered twigs only.
    cdef FlatMap[uint64_t] progress    # pack(level, node) -> edges matched from the left, and by which element last
    cdef vector[vector[uint64_t]] progressed   # the keys in `progress`, by level
    cdef vector[vector[int32_t]] completed     # the nodes whose ordered edges are all matched, by level
    cdef uint32_t closed               # elements closed so far: the post-order number of the closing one


cdef class Sift(Engine):
    """A lazily determinised path automaton, and bottom-up twigs over shared sub-patterns."""

    name = "sift"
    paper = "xsift's own; takes an idea from each of the papers"
    takes = "every pattern, ordered or not"
    wins = "the fastest from a thousand subscriptions on; what engine=\"auto\" picks"
    caveat = "keeps a cache of automaton states, bounded by cache_bytes a thread"
    options = {"cache_bytes": (DEFAULT_CACHE_BYTES,)}
    counter_names = ("states made", "flushes", "nodes checked")

    cdef PathNfa nfa
    cdef TwigIndex twigs
    cdef Array[int32_t] pattern_state    # by key: the NFA state where its path ends, or that its top hangs on
    cdef Array[int32_t] pattern_top      # by key: its top; LINEAR; FREE
    cdef Array[int32_t] free_keys
    cdef Py_ssize_t pattern_count
    cdef int64_t version                  # grows with every change
    cdef object kept                      # what owns the arrays of a restored index
    cdef int64_t cache_bytes

    def __cinit__(self, *args, **options):
        self.nfa = PathNfa()
        self.twigs = TwigIndex()

    def __init__(self, **options):
        cache_bytes = options.pop("cache_bytes", DEFAULT_CACHE_BYTES)
        if not isinstance(cache_bytes, int) or cache_bytes < 0:
            raise EngineError("bad-option", f"engine 'sift': cache_bytes={cache_bytes!r}",
                              hint="a number of bytes, 0 or more")
        self.cache_bytes = cache_bytes
        self._no_options(options)

    # The index.

    def add(self, Pattern pattern not None):
        cdef int32_t key, step
        cdef int32_t state = 0
        cdef int32_t top = LINEAR
        for step in range(<int32_t>pattern.nodes.size()):
            state = self.nfa.advance(state, pattern.nodes[step].symbol, pattern.nodes[step].axis)
            if self._branches(pattern, step):
                top = step
                break
        key = self._new_key()
        if top == LINEAR:
            self.nfa.states.edit(state).accepts = key
        else:
            self.nfa.states.edit(state).marks += 1
            top = self.twigs.add(pattern, top, state, key)
        self.pattern_state.edit(key)[0] = state
        self.pattern_top.edit(key)[0] = top
        self.pattern_count += 1
        self.version += 1
        return key

    def remove(self, int key):
        if not 0 <= key < <int>self.pattern_top.size() or self.pattern_top[key] == FREE:
            raise EngineError("unknown-key", f"engine 'sift' has no pattern with key {key}")
        cdef int32_t state = self.pattern_state[key]
        if self.pattern_top[key] == LINEAR:
            self.nfa.states.edit(state).accepts = -1
        else:
            self.twigs.remove(self.pattern_top[key])
            self.nfa.states.edit(state).marks -= 1
        self.nfa.release(state)
        self.pattern_top.edit(key)[0] = FREE
        self.free_keys.push_back(key)
        self.pattern_count -= 1
        self.version += 1

    def __len__(self):
        return self.pattern_count

    cdef bint _branches(self, Pattern pattern, int32_t step) noexcept:
        cdef int32_t child = pattern.nodes[step].first_child
        return child >= 0 and (pattern.nodes[child].is_condition or pattern.nodes[child].next_sibling >= 0)

    def _new_key(self):
        cdef int32_t key
        if self.free_keys.size():
            key = self.free_keys.back()
            self.free_keys.pop_back()
            return key
        self.pattern_state.push_back(0)
        self.pattern_top.push_back(FREE)
        return <int32_t>self.pattern_top.size() - 1

    def memory(self):
        cdef SiftScratch scratch
        sizes = {"automaton": self.nfa.bytes(), "sub-patterns": self.twigs.bytes(),
                 "patterns": self.pattern_state.bytes() + self.pattern_top.bytes(),
                 "run-time states": 0, "run-time marks": 0}
        for scratch in self.scratches:
            sizes["run-time states"] += scratch.dfa.bytes()
            sizes["run-time marks"] += (scratch.dfa.stamp_bytes() + scratch.bits.capacity() * sizeof(uint64_t)
                                        + scratch.found.capacity() * sizeof(int32_t)
                                        + scratch.edge_at.capacity() * sizeof(uint32_t)
                                        + scratch.answered.capacity() * sizeof(uint64_t))
        return sizes

    def saved(self):
        """The index as arrays, for `restore`; they can be mapped from a file and shared by processes."""
        return {**self.nfa.saved(), **self.twigs.saved(), "sift.pattern_state": to_numpy(self.pattern_state.saved()),
                "sift.pattern_top": to_numpy(self.pattern_top.saved()), "sift.free_keys": to_numpy(self.free_keys.saved()),
                "sift.counts": np.array([self.pattern_count], dtype=np.int64)}

    def restore(self, arrays):
        """Becomes the index that was saved; its arrays are used where they lie, and copied when it is changed."""
        self.nfa.restore(arrays)
        self.twigs.restore(arrays)
        self.pattern_state.restore(from_numpy(arrays["sift.pattern_state"]))
        self.pattern_top.restore(from_numpy(arrays["sift.pattern_top"]))
        self.free_keys.restore(from_numpy(arrays["sift.free_keys"]))
        self.pattern_count = int(arrays["sift.counts"][0])
        if self.pattern_top.size() != self.pattern_state.size():
            raise ValueError("sift.pattern_top has a wrong length")
        self.nfa.check(self.pattern_top.size())
        self.twigs.check(self.pattern_top.size(), self.nfa.states.size())
        self.kept = arrays
        self.version += 1
        return self.pattern_top.size()

    # The run.

    cdef Scratch new_scratch(self):
        cdef SiftScratch scratch = SiftScratch()
        scratch.dfa = LazyDfa(self.nfa)
        scratch.version = -1
        return scratch

    cdef int begin(self, Scratch scratch) except -1 nogil:
        return self.begin_document(<SiftScratch>scratch)

    cdef int feed(self, Scratch scratch, const int32_t* codes, size_t number) except -1 nogil:
        return self.run(<SiftScratch>scratch, codes, number)

    cdef int finish(self, Scratch scratch, vector[int32_t]* keys) except -1 nogil:
        return self.collect(<SiftScratch>scratch, keys)

    cdef int begin_document(self, SiftScratch scratch) except -1 nogil:
        cdef size_t blocks = (self.pattern_top.size() + 64 * BLOCK - 1) // (64 * BLOCK)
        if scratch.version != self.version:
            self.restart(scratch)
            scratch.version = self.version
            scratch.edge_at.resize(self.twigs.edges.size(), 0)
            scratch.answered.assign(self.nfa.states.size() if self.twigs.top_count else 0, 0)
            scratch.bits.resize(blocks * BLOCK, 0)
            scratch.blocks.resize(blocks, 0)
            scratch.found.resize(self.pattern_top.size() + SLACK)
        if scratch.unfinished or scratch.symbols.size():  # it broke off, or was decided before its end
            self.forget_document(scratch)
        scratch.unfinished = True
        scratch.stack.assign(1, 0)
        scratch.undecided = self.pattern_count
        scratch.counts_down = self.pattern_count <= FEW_PATTERNS
        scratch.closed = 0
        scratch.epoch += 1
        if scratch.epoch == 0:
            self.restart(scratch)
            scratch.epoch = 1
        return 0

    cdef int restart(self, SiftScratch scratch) except -1 nogil:
        scratch.dfa.restart(self.pattern_top.size())
        # A cache that is full as soon as it holds what is needed would be emptied at every tag.
        scratch.flush_at = max(self.cache_bytes, 2 * scratch.dfa.bytes())
        return 0

    cdef int forget_document(self, SiftScratch scratch) except -1 nogil:
        """For one that broke off, in the root or after it."""
        cdef vector[int32_t] keys
        self.collect(scratch, &keys)
        while scratch.symbols.size():
            if scratch.symbols.size() <= scratch.records.size():
                self.forget_record(scratch)
            scratch.symbols.pop_back()
        return 0

    cdef int collect(self, SiftScratch scratch, vector[int32_t]* keys) except -1 nogil:
        """Appends what was matched, ascending, and forgets it."""
        cdef uint64_t* bits = scratch.bits.data()
        cdef int32_t* end = scratch.found.data()
        cdef size_t block
        for block in range(scratch.blocks.size()):
            if scratch.blocks[block]:
                scratch.blocks[block] = 0
                end = take_bits(bits + block * BLOCK, BLOCK, <int32_t>(block * BLOCK * 64), end)
        keys.insert(keys.end(), scratch.found.data(), end)
        scratch.unfinished = False
        return 0

    cdef inline void matched(self, SiftScratch scratch, int32_t key) noexcept nogil:
        cdef uint64_t bit = <uint64_t>1 << (key & 63)
        scratch.undecided -= (scratch.bits[key >> 6] & bit) == 0
        scratch.bits[key >> 6] |= bit
        scratch.blocks[key >> 12] = 1

    cdef inline bint is_matched(self, SiftScratch scratch, int32_t key) noexcept nogil:
        return (scratch.bits[key >> 6] >> (key & 63)) & 1

    cdef int run(self, SiftScratch scratch, const int32_t* codes, size_t number) except -1 nogil:
        cdef bint twigs = self.twigs.top_count > 0
        cdef symbol_t condition
        cdef size_t i
        for i in range(number):
            if codes[i] >= 0:
                self.start_tag(scratch, codes[i])
                if scratch.undecided == 0 or (scratch.stack.size() == 2 and self.leads_nowhere(scratch)):
                    return 1
                if twigs:
                    self.open_record(scratch)
            elif codes[i] == END:
                if twigs:
                    self.close_record(scratch)
                    if scratch.undecided == 0:
                        return 1
                scratch.stack.pop_back()
                scratch.symbols.pop_back()
            elif twigs:
                condition = condition_symbol(codes[i])
                if <size_t>condition < self.twigs.condition_edge.size() and self.twigs.condition_edge[condition] >= 0:
                    scratch.records[scratch.symbols.size() - 1].push_back(self.twigs.condition_edge[condition])
        return 0

    cdef bint leads_nowhere(self, SiftScratch scratch) noexcept nogil:
        """Whether nothing can match in or below the innermost element any more."""
        cdef const DfaState* state = &scratch.dfa.states[scratch.stack.back()]
        cdef const Part* part
        cdef int32_t i
        if state.loops != NO_LOOPS:
            return False
        for i in range(state.parts, state.parts_end):
            part = &scratch.dfa.parts[scratch.dfa.part_lists[i]]
            if part.loops > part.live or part.accepts > part.marked:
                return False
        return True

    cdef inline int start_tag(self, SiftScratch scratch, symbol_t symbol) except -1 nogil:
        cdef int32_t state = scratch.dfa.known(scratch.stack.back(), symbol)
        scratch.symbols.push_back(symbol)
        if state < 0:
            state = self.new_state(scratch, symbol)
        scratch.stack.push_back(state)
        if scratch.dfa.states[state].reported_at != scratch.epoch:
            self.report(scratch, &scratch.dfa.states[state])
        return 0

    cdef int32_t new_state(self, SiftScratch scratch, symbol_t symbol) except -1 nogil:
        """The state after a start tag on which no document came here before."""
        cdef size_t level
        if scratch.dfa.bytes() > scratch.flush_at:
            # Forget all, but what the open elements need.
            self.restart(scratch)
            for level in range(scratch.stack.size() - 1):
                scratch.stack[level + 1] = scratch.dfa.next(scratch.stack[level], scratch.symbols[level])
            scratch.flush_at = max(self.cache_bytes, 2 * scratch.dfa.bytes())
            scratch.counts[FLUSHES] += 1
        scratch.counts[STATES_MADE] += 1
        return scratch.dfa.next(scratch.stack.back(), symbol)

    cdef void report(self, SiftScratch scratch, DfaState* state) noexcept nogil:
        """What a state accepts has matched, but for the parts of it that were met before in this document."""
        cdef const int32_t* pool = scratch.dfa.pool.data()
        cdef uint64_t* bits = scratch.bits.data()
        cdef uint8_t* blocks = scratch.blocks.data()
        cdef Part* part
        cdef int32_t i, key
        cdef int64_t j
        cdef const int32_t* part_lists = scratch.dfa.part_lists.data()
        cdef Part* parts = scratch.dfa.parts.data()
        state.reported_at = scratch.epoch
        # Parts and their lists lie anywhere in memory: ask for all of them first.
        for i in range(state.parts, state.accepting_end):
            prefetch(&parts[part_lists[i]])
        for i in range(state.parts, state.accepting_end):
            if parts[part_lists[i]].reported_at != scratch.epoch:
                prefetch(&pool[parts[part_lists[i]].accepts])
        for i in range(state.parts, state.accepting_end):
            part = &parts[part_lists[i]]
            if part.reported_at == scratch.epoch:
                continue
            part.reported_at = scratch.epoch
            if scratch.counts_down:
                for j in range(part.accepts, part.end):
                    self.matched(scratch, pool[j])
                continue
            for j in range(part.accepts, part.end):
                key = pool[j]
                bits[key >> 6] |= <uint64_t>1 << (key & 63)
                blocks[key >> 12] = 1

    # Twigs: what holds below an element is collected while it is open, and decided when it is closed.

    cdef int open_record(self, SiftScratch scratch) except -1 nogil:
        cdef size_t level = scratch.symbols.size() - 1
        if scratch.records.size() <= level:
            scratch.records.resize(level + 1)
            scratch.compact_at.resize(level + 1)
            scratch.progressed.resize(level + 1)
            scratch.completed.resize(level + 1)
        scratch.compact_at[level] = FIRST_COMPACTION
        return 0

    cdef void forget_record(self, SiftScratch scratch) noexcept nogil:
        cdef size_t level = scratch.symbols.size() - 1
        cdef size_t i
        scratch.records[level].clear()
        scratch.completed[level].clear()
        for i in range(scratch.progressed[level].size()):
            scratch.progress.erase(scratch.progressed[level][i])
        scratch.progressed[level].clear()

    cdef int close_record(self, SiftScratch scratch) except -1 nogil:
        cdef size_t level = scratch.symbols.size() - 1
        cdef symbol_t symbol = scratch.symbols.back()
        cdef vector[int32_t]* record = &scratch.records[level]
        cdef size_t i
        scratch.closed += 1
        self.compact(scratch, record)
        scratch.satisfied.clear()
        self.fire(scratch, symbol, record[0])
        for i in range(scratch.completed[level].size()):
            self.check(scratch, scratch.completed[level][i])
        if <size_t>symbol < self.twigs.leaf_sub.size() and symbol and self.twigs.leaf_sub[symbol] >= 0:
            scratch.satisfied.push_back(self.twigs.leaf_sub[symbol])
        if self.twigs.leaf_sub.size() and self.twigs.leaf_sub[0] >= 0:
            scratch.satisfied.push_back(self.twigs.leaf_sub[0])
        if level:
            self.hand_up(scratch, level)
        self.forget_record(scratch)
        return 0

    cdef int compact(self, SiftScratch scratch, vector[int32_t]* record) except -1 nogil:
        """Rids a record of repetitions, and leaves its edges, and no others, marked in `edge_at`."""
        cdef size_t i
        cdef size_t kept = 0
        scratch.record_number += 1
        if scratch.record_number == 0:
            scratch.edge_at.assign(scratch.edge_at.size(), 0)
            scratch.answered.assign(scratch.answered.size(), 0)
            scratch.record_number = 1
        for i in range(record.size()):
            if scratch.edge_at[record[0][i]] != scratch.record_number:
                scratch.edge_at[record[0][i]] = scratch.record_number
                record[0][kept] = record[0][i]
                kept += 1
        record.resize(kept)
        return 0

    cdef int fire(self, SiftScratch scratch, symbol_t symbol, const vector[int32_t]& record) except -1 nogil:
        """Looks at the nodes that the edges of a record trigger for an element of this name.

        Edges, lists and nodes lie anywhere in memory. So this goes step by step over all of them, and each step asks
        for what the next one needs.
        """
        cdef const Edge* edges = self.twigs.edges.data()
        cdef uint32_t name = name_bit(symbol) if symbol else 0
        cdef int32_t edge, number
        cdef size_t i
        scratch.asked.clear()
        scratch.lists.clear()
        scratch.candidates.clear()
        for i in range(record.size()):
            if i + AHEAD < record.size():
                prefetch(&edges[record[i + AHEAD]])
            edge = record[i]
            if edges[edge].names & name:
                self.twigs.trigger_list.prefetch(pack(symbol, edge))
                scratch.asked.push_back(edge)
            if edges[edge].star_list >= 0:
                self.twigs.triggers.prefetch_extent(edges[edge].star_list)
                scratch.lists.push_back(edges[edge].star_list)
        for edge in scratch.asked:
            number = self.twigs.trigger_list.get(pack(symbol, edge), -1)
            if number >= 0:
                self.twigs.triggers.prefetch_extent(number)
                scratch.lists.push_back(number)
        for number in scratch.lists:
            self.twigs.triggers.prefetch_data(number)
        for number in scratch.lists:
            self.fire_list(scratch, number)
        for number in scratch.candidates:
            self.check(scratch, number)
        return 0

    cdef int fire_list(self, SiftScratch scratch, int32_t list_number) except -1 nogil:
        cdef const uint32_t* edge_at = scratch.edge_at.data()
        cdef uint32_t now = scratch.record_number
        cdef const Trigger* trigger = self.twigs.triggers.data(list_number)
        cdef const Trigger* end = trigger + self.twigs.triggers.count(list_number)
        while trigger != end:
            if ((trigger.node >= 0 or not self.is_matched(scratch, trigger.more >> 1))
                    and (trigger.other < 0 or edge_at[trigger.other] == now)
                    and (trigger.third < 0 or edge_at[trigger.third] == now)):
                if trigger.node >= 0 and not trigger.more:
                    scratch.satisfied.push_back(trigger.node)
                else:
                    prefetch(self.twigs.node(trigger.node))
                    scratch.candidates.push_back(trigger.node)
            trigger += 1
        return 0

    cdef int check(self, SiftScratch scratch, int32_t number) except -1 nogil:
        """A sub or a top some of whose edges hold for the closing element: do all?"""
        cdef const TwigNode* node = self.twigs.node(number)
        cdef int32_t i
        scratch.counts[NODES_CHECKED] += 1
        if number < 0 and self.is_matched(scratch, node.key):
            return 0
        for i in range(node.ordered, node.edge_count):
            if scratch.edge_at[self.twigs.edge_pool[node.edges + i]] != scratch.record_number:
                return 0
        if number >= 0:
            scratch.satisfied.push_back(number)
        elif self.is_active(scratch, node.state):
            self.matched(scratch, node.key)
        return 0

    cdef bint is_active(self, SiftScratch scratch, int32_t nfa_state) noexcept nogil:
        """Whether the path that ends in an NFA state leads to the closing element. Many tops have the same path."""
        cdef uint64_t asked = <uint64_t>scratch.record_number * 2
        if scratch.answered[nfa_state] >> 1 != scratch.record_number:
            scratch.answered[nfa_state] = asked + scratch.dfa.contains(scratch.stack.back(), nfa_state)
        return scratch.answered[nfa_state] & 1

    cdef int hand_up(self, SiftScratch scratch, size_t level) except -1 nogil:
        """Tells the parent what the closing element satisfies, and what holds below it."""
        cdef vector[int32_t]* record = &scratch.records[level]
        cdef vector[int32_t]* above = &scratch.records[level - 1]
        cdef const TwigNode* sub
        cdef size_t i
        for i in range(record.size()):
            if self.twigs.edges[record[0][i]].axis == DESCENDANT:
                above.push_back(record[0][i])
        for i in range(scratch.satisfied.size()):
            sub = &self.twigs.subs[scratch.satisfied[i]]
            if sub.child_edge >= 0:
                above.push_back(sub.child_edge)
            if sub.descendant_edge >= 0:
                above.push_back(sub.descendant_edge)
        if self.twigs.ordered_count:
            for i in range(scratch.satisfied.size()):
                self.advance_ordered(scratch, level, scratch.satisfied[i])
        if above.size() > scratch.compact_at[level - 1]:
            self.compact(scratch, above)
            scratch.compact_at[level - 1] = max(<size_t>FIRST_COMPACTION, 2 * above.size())
        return 0

    # Ordered twigs: elements close in post-order, so it is enough to count edges matched from the left.

    cdef int advance_ordered(self, SiftScratch scratch, size_t level, int32_t sub) except -1 nogil:
        cdef int32_t child_edge = self.twigs.subs[sub].child_edge
        cdef int32_t descendant_edge = self.twigs.subs[sub].descendant_edge
        cdef size_t above
        if child_edge >= 0 and self.twigs.ordered_uses.count(child_edge):
            self.advance_at(scratch, level - 1, child_edge)
        if descendant_edge >= 0 and self.twigs.ordered_uses.count(descendant_edge):
            for above in range(level):
                self.advance_at(scratch, above, descendant_edge)
        return 0

    cdef int advance_at(self, SiftScratch scratch, size_t level, int32_t edge) except -1 nogil:
        cdef symbol_t symbol = scratch.symbols[level]
        cdef OrderedUse use
        cdef const TwigNode* node
        cdef uint64_t at, state
        cdef int32_t i
        for i in range(self.twigs.ordered_uses.count(edge)):
            use = self.twigs.ordered_uses.data(edge)[i]
            node = self.twigs.node(use.node)
            if node.symbol and node.symbol != symbol:
                continue
            at = pack(<int32_t>level, use.node)
            state = scratch.progress.get(at, 0)  # high half: edges matched; low half: the element that was last
            if <int32_t>(state >> 32) != use.position or (state and <uint32_t>state == scratch.closed):
                continue
            if state == 0:
                scratch.progressed[level].push_back(at)
            scratch.progress.put(at, pack(use.position + 1, <int32_t>scratch.closed))
            if use.position + 1 == node.ordered:
                scratch.completed[level].push_back(use.node)
        return 0
