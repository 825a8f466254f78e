"""IFiSTRun: a document through iFiST's index, event by event. engine.pyx says what this is and why it is exact."""

from libcpp.algorithm cimport sort, unique
from libcpp.vector cimport vector

from xsift.document.events cimport END, condition_symbol
from xsift.engines.base cimport Scratch
from xsift.engines.ifist.index cimport (
    ADVANCED, ANCESTOR, BELOW_ENDS, PARENT, PENDING_SEGMENT, PLACE, WHATEVER, BucketKind, Candidate, LabelUse, Look, RowOwner, TableRow, add_look, bucket_key,
)
from xsift.engines.ifist.refinement cimport IFiSTRefinement
from xsift.engines.ifist.scratch cimport Completion, IFiSTScratch, SegmentState
from xsift.engines.ifist.sequences cimport (
    CHILD_END, SYM_CHILD, SYM_ROOT, UNORDERED, Place, Segment, SegmentStep, Unit,
)
from xsift.native.types cimport int32_t, symbol_t
from xsift.xpath.symbols cimport ANY

from xsift.errors import EngineError

cdef extern from *:
    void prefetch "__builtin_prefetch" (const void*) nogil

cdef enum:
    AHEAD = 6  # candidates; their places and units are all over memory, and this many loads may be under way at once

cdef enum Counter:
    STACK_TESTS
    SEGMENTS_MATCHED
    CANDIDATES_ADDED
    BRANCH_IDS
    VERIFICATIONS
    BRANCHES_VERIFIED
    NODES_COPIED
    PROFILES_REFINED


cdef class IFiSTRun(IFiSTRefinement):
    """Progressive subsequence matching, and refinement by branch node verification along with it."""

    counter_names = ("stack tests", "segments matched", "candidates added", "BranchIDs", "verifications",
                     "branch nodes verified", "nodes copied", "profiles refined")

    cdef Scratch new_scratch(self):
        cdef IFiSTScratch scratch = IFiSTScratch()
        scratch.keeps_elements = self.afterwards
        return scratch

    cdef int begin(self, Scratch scratch) except -1 nogil:
        return self.begin_run(<IFiSTScratch>scratch)

    cdef int begin_run(self, IFiSTScratch scratch) except -1 nogil:
        scratch.reset(self.table.size(), self.buckets.size(), self.profiles.size(), self.symbol_limit)
        scratch.generation = self.generation
        return 0

    cdef int feed(self, Scratch scratch, const int32_t* codes, size_t number) except -1 nogil:
        return self.run(<IFiSTScratch>scratch, codes, number)

    cdef int finish(self, Scratch scratch, vector[int32_t]* keys) except -1 nogil:
        return self.report(<IFiSTScratch>scratch, keys)

    cdef int report(self, IFiSTScratch scratch, vector[int32_t]* keys) except -1 nogil:
        cdef int32_t key
        self.check_generation(scratch)
        sort(scratch.reached.begin(), scratch.reached.end())
        scratch.reached.erase(unique(scratch.reached.begin(), scratch.reached.end()), scratch.reached.end())
        for key in scratch.reached:
            if self.is_reached(scratch, key):
                scratch.counts[PROFILES_REFINED] += 1
                if self.refine(scratch, key):
                    self.match_key(scratch, key)
        scratch.reached.clear()
        keys.insert(keys.end(), scratch.matched.begin(), scratch.matched.end())
        return 0

    cdef int check_generation(self, IFiSTScratch scratch) except -1 nogil:
        if scratch.generation != self.generation:
            with gil:
                raise EngineError("changed-index", f"engine {self.name!r}: patterns were added or removed in the "
                                  "middle of a document", hint="finish the document, or begin it again")
        return 0

    cdef int run(self, IFiSTScratch scratch, const int32_t* codes, size_t number) except -1 nogil:
        cdef size_t i
        self.check_generation(scratch)
        for i in range(number):
            if codes[i] >= 0:
                scratch.push(codes[i])
            elif codes[i] == END:
                self.end_tag(scratch)
            else:
                self.find_subsequence(scratch, condition_symbol(codes[i]), scratch.depth + 1)
        return self.profile_count > 0 and scratch.matched.size() == <size_t>self.profile_count

    # Phase 1: progressive subsequence matching.

    cdef int end_tag(self, IFiSTScratch scratch) except -1 nogil:
        """EndTagHandler: the last occurrence of this element's label in LPS(T), then one more of its parent's."""
        cdef int32_t level = scratch.depth
        cdef symbol_t symbol
        cdef size_t i = 0
        if level == 0:
            return 0
        scratch.clock += 1
        symbol = scratch.stack[level - 1].symbol
        self.find_subsequence(scratch, symbol, level)
        if symbol != ANY:
            self.find_subsequence(scratch, ANY, level)
        if self.below_ends and level > 1:
            self.find_below(scratch, level)
        if self.afterwards:
            scratch.elements[scratch.stack[level - 1].number - 1].ended = scratch.clock
        for i in range(scratch.copies[level - 1].size()):
            self.simple_stack_test(scratch, scratch.copies[level - 1][i].segment, scratch.copies[level - 1][i].step,
                                   level, 0)
        i = 0
        while i < scratch.pending[level - 1].size():
            self.child_ended(scratch, scratch.pending[level - 1][i], level)
            i += 1
        scratch.pop()
        return 0

    cdef int find_subsequence(self, IFiSTScratch scratch, symbol_t label, int32_t level) except -1 nogil:
        """Tries the active segments whose first label is `label`, an element (or condition) at `level` that ends."""
        cdef const LabelUse* use
        cdef symbol_t parent
        if <size_t>label >= self.labels.size():
            return 0
        use = &self.labels[label]
        if use.users[<int>WHATEVER]:
            self.try_bucket(scratch, self.bucket_of.get(bucket_key(label, ANY, WHATEVER), -1), level, 0)
        if level < 2:
            return 0
        if use.users[<int>PARENT]:
            parent = scratch.stack[level - 2].symbol
            self.try_bucket(scratch, self.bucket_of.get(bucket_key(label, parent, PARENT), -1), level, 0)
        if use.users[<int>ANCESTOR]:
            self.find_below_ancestors(scratch, use, label, level)
        return 0

    cdef int find_below_ancestors(self, IFiSTScratch scratch, const LabelUse* use, symbol_t label,
                                  int32_t level) except -1 nogil:
        """Tries segments with a second node on the `//` axis: by open elements, or by nodes, if these are fewer."""
        cdef int32_t above, bucket
        cdef symbol_t symbol
        cdef size_t i
        if use.ancestors.size() < <size_t>level:
            for i in range(use.ancestors.size()):
                bucket = use.ancestors[i]
                symbol = <symbol_t>((self.buckets[bucket].key >> 2) & 0x7FFFFFFF)
                if scratch.latest[symbol]:
                    self.try_bucket(scratch, bucket, level, 0)
            return 0
        for above in range(level - 1, 0, -1):
            symbol = scratch.stack[above - 1].symbol
            if symbol == ANY or <size_t>symbol >= scratch.latest.size():
                continue
            if scratch.latest[symbol] == above or (scratch.latest[symbol] == level
                                                   and scratch.stack[level - 1].same_above == above):
                self.try_bucket(scratch, self.bucket_of.get(bucket_key(label, symbol, ANCESTOR), -1), level, 0)
        return 0

    cdef int find_below(self, IFiSTScratch scratch, int32_t ended) except -1 nogil:
        """Tries the segments that begin with a branch node and wait for any child, or anything below it, to end."""
        cdef symbol_t symbol = scratch.stack[ended - 2].symbol
        cdef int32_t level, bucket
        cdef size_t i
        if <size_t>symbol < self.labels.size() and self.labels[symbol].users[<int>BELOW_ENDS]:
            bucket = self.bucket_of.get(bucket_key(symbol, CHILD_END, BELOW_ENDS), -1)
            self.try_bucket(scratch, bucket, ended - 1, ended)
        if symbol != ANY and self.labels[ANY].users[<int>BELOW_ENDS]:
            bucket = self.bucket_of.get(bucket_key(ANY, CHILD_END, BELOW_ENDS), -1)
            self.try_bucket(scratch, bucket, ended - 1, ended)
        for i in range(self.descendant_ends.size()):
            bucket = self.descendant_ends[i]
            symbol = <symbol_t>(self.buckets[bucket].key >> 33)
            if symbol == ANY:
                for level in range(ended - 1, 0, -1):
                    self.try_bucket(scratch, bucket, level, ended)
                continue
            level = scratch.latest[symbol]
            if level == ended:
                level = scratch.stack[ended - 1].same_above
            while level > 0:
                self.try_bucket(scratch, bucket, level, ended)
                level = scratch.stack[level - 1].same_above
        return 0

    cdef int try_bucket(self, IFiSTScratch scratch, int32_t bucket, int32_t level, int32_t ended) except -1 nogil:
        cdef size_t active
        if bucket < 0:
            return 0
        active = scratch.active[bucket].size()  # what is added meanwhile waits for a later element
        self.try_looks(scratch, &self.buckets[bucket].looks, self.buckets[bucket].looks.size(), bucket, level, ended)
        return self.try_looks(scratch, &scratch.active[bucket], active, bucket, level, ended)

    cdef int try_looks(self, IFiSTScratch scratch, const vector[Look]* looks, size_t end, int32_t bucket,
                       int32_t level, int32_t ended) except -1 nogil:
        cdef int kind = self.buckets[bucket].key & 3
        cdef int32_t above = level
        cdef size_t i = 0
        if kind == PARENT:
            above = level - 1
        elif kind == ANCESTOR:
            above = scratch.latest[<symbol_t>((self.buckets[bucket].key >> 2) & 0x7FFFFFFF)]
            if above >= level or scratch.stack[above - 1].same_above:
                above = 0
        while i < end:
            scratch.counts[STACK_TESTS] += 1
            if self.simple or scratch.may_fit(looks.data() + i + 1, looks.data()[i].how, above):
                self.try_segment(scratch, looks.data()[i].what, level, ended)
            i += looks.data()[i].how + 1
        return 0

    cdef int try_segment(self, IFiSTScratch scratch, int32_t segment, int32_t level, int32_t ended) except -1 nogil:
        """Algorithm 6, for one segment: the stack test, the candidates' next segments, the BranchIDs."""
        cdef const TableRow* row = &self.table[segment]
        cdef int32_t i
        if row.segment.branch < 0 and scratch.has_seen(segment):
            return 0  # linear profiles, all matched
        if ended and not scratch.states[segment].fresh and self.is_verified(scratch, segment, level):
            return 0
        if self.simple:
            return self.simple_stack_test(scratch, segment, 0, level, ended)
        if not self.recursive_stack_test(scratch, row.segment, level, ended):
            return 0
        return self.segment_matched(scratch, segment, ended)

    cdef int segment_matched(self, IFiSTScratch scratch, int32_t segment, int32_t ended) except -1 nogil:
        """The segment fits the stack: its branch node at `branch_levels`, that one's child at `child_levels`."""
        cdef const TableRow* row = &self.table[segment]
        cdef int32_t i
        scratch.counts[SEGMENTS_MATCHED] += 1
        self.advance(scratch, segment)
        if self.afterwards:
            return self.keep_branch_ids(scratch, segment, ended)
        if row.loose_users:
            for i in scratch.branch_levels:
                if scratch.entry(row.record_row, i) < 0:
                    scratch.counts[BRANCH_IDS] += 1
                    scratch.insert(row.record_row, i)
                    self.verify_candidates(scratch, segment, i)
                elif row.segment.steps[row.segment.branch].at_least:
                    break  # whatever was found below this element was found below those above it, too
        if row.ordered_users and (self.simple or row.segment.child <= 0):
            for i in scratch.branch_levels:
                self.ordered_child_ended(scratch, segment, i)
        elif row.ordered_users:
            for i in scratch.child_levels:
                scratch.insert_pending(row.pending_row, i)
        return self.climb_completed(scratch)

    cdef int keep_branch_ids(self, IFiSTScratch scratch, int32_t segment, int32_t ended) except -1 nogil:
        """Two phases: keeps for the second what the segment has found of its branch node, each find once."""
        cdef const TableRow* row = &self.table[segment]
        cdef int32_t branch, child
        if row.loose_users:
            for branch in scratch.branch_levels:
                if scratch.entry(row.record_row, branch) < 0:
                    scratch.counts[BRANCH_IDS] += 1
                    scratch.insert(row.record_row, branch)
                    self.keep_pair(scratch, segment, branch, 0)
        if row.ordered_users and row.segment.child <= 0:
            child = scratch.child_levels[0] if row.segment.child == 0 else ended
            for branch in scratch.branch_levels:
                scratch.counts[BRANCH_IDS] += 1
                self.keep_pair(scratch, segment, branch, child)
        elif row.ordered_users:
            for child in scratch.child_levels:
                if scratch.entry(row.pending_row, child) < 0:
                    scratch.insert(row.pending_row, child)
                    scratch.levels.assign(1, child)
                    scratch.climb(&row.segment.steps[row.segment.branch])
                    for branch in scratch.levels:
                        scratch.counts[BRANCH_IDS] += 1
                        self.keep_pair(scratch, segment, branch, child)
        return 0

    cdef int simple_stack_test(self, IFiSTScratch scratch, int32_t segment, int32_t step, int32_t level,
                               int32_t ended) except -1 nogil:
        """doSimpleStackTest (Algorithm 3): a node of a segment against its next one, which is then looked for itself.

        The node is at the element at `level`, which ends. The paper copies the next node into the sequence index under
        its name, for whatever element of that name comes; here it is copied for those that this one lies below, because
        else `//b/c/e` matches <r><c><e/></c><b><c/></b></r>.
        """
        cdef const Segment* found = &self.table[segment].segment
        cdef const SegmentStep* steps = found.steps.data()
        cdef int32_t last = <int32_t>found.steps.size() - 1
        cdef int32_t target = found.branch if found.branch >= 0 else last
        cdef int32_t above
        if found.branch < 0 and scratch.has_seen(segment):
            return 0
        if step == 0 and not self.has_leaf_wildcards(scratch, steps, level, ended):
            return 0
        scratch.levels.assign(1, level)
        scratch.child_levels = scratch.levels
        if step < target:
            scratch.climb(&steps[step + 1])
            if step + 1 < target:
                for above in scratch.levels:
                    scratch.counts[NODES_COPIED] += 1
                    scratch.copy_node(segment, step + 1, above)
                return 0
        if scratch.levels.empty():
            return 0
        if found.branch < 0 and steps[last].sym & SYM_ROOT and steps[last].sym & SYM_CHILD:
            if scratch.levels.back() != 1:
                return 0
        scratch.branch_levels = scratch.levels
        return self.segment_matched(scratch, segment, ended)

    cdef bint has_leaf_wildcards(self, IFiSTScratch scratch, const SegmentStep* first, int32_t level,
                                 int32_t ended) noexcept nogil:
        """Whether the first node of a segment can be at `level`, with the wildcards deleted below it."""
        if level < first.lowest:
            return False
        if ended:
            return scratch.stack[ended - 1].deepest - ended >= first.distance - 1
        return first.distance == 0 or scratch.stack[level - 1].deepest - level >= first.distance

    cdef bint recursive_stack_test(self, IFiSTScratch scratch, const Segment& segment, int32_t level,
                                   int32_t ended) except -1 nogil:
        """doRecursiveStackTest: whether the segment fits the run-time stack from `level` upwards, and where.

        Leaves the levels of the segment's first branch node in `branch_levels`, and of its child in `child_levels`.
        """
        cdef const SegmentStep* steps = segment.steps.data()
        cdef int32_t last = <int32_t>segment.steps.size() - 1
        cdef int32_t i
        if not self.has_leaf_wildcards(scratch, steps, level, ended):
            return False
        scratch.levels.clear()
        scratch.levels.push_back(level)
        for i in range(last + 1):
            if i:
                scratch.climb(&steps[i])
                if scratch.levels.empty():
                    return False
            if i == segment.child:
                scratch.child_levels = scratch.levels
            if i == segment.branch:
                scratch.branch_levels = scratch.levels
        if segment.branch < 0:
            scratch.branch_levels.clear()
        if steps[last].sym & SYM_ROOT and steps[last].sym & SYM_CHILD:
            return scratch.levels.back() == 1
        return True

    cdef int advance(self, IFiSTScratch scratch, int32_t segment) except -1 nogil:
        """Moves the candidates of a segment that has matched on to their next segments, each once."""
        cdef SegmentState* state = &scratch.states[segment]
        cdef const vector[Candidate]* first
        cdef Candidate candidate
        cdef size_t i, number
        cdef size_t kept = 0
        cdef bint consume = state.fresh > 0
        number = state.candidates.size()
        if not scratch.has_seen(segment):
            scratch.touch_segment(segment)
            scratch.see(segment)
            first = &self.table[segment].candidates
            for i in range(first.size()):
                if i + AHEAD < first.size():
                    prefetch(&self.places[first[0][i + AHEAD].place])
                candidate = first[0][i]
                if self.advance_candidate(scratch, candidate.profile, candidate.place):
                    scratch.add_candidate(segment, candidate.profile, candidate.place | ADVANCED)
        if not consume:
            return 0
        for i in range(number):
            if i + AHEAD < number:
                prefetch(&self.places[state.candidates[i + AHEAD].place & PLACE])
            candidate = state.candidates[i]
            if not candidate.place & ADVANCED:
                state.fresh -= 1
                if not self.advance_candidate(scratch, candidate.profile, candidate.place):
                    continue
                candidate.place |= ADVANCED
            state.candidates[kept] = candidate
            kept += 1
        state.candidates.erase(state.candidates.begin() + kept, state.candidates.begin() + number)
        return 0

    cdef bint advance_candidate(self, IFiSTScratch scratch, int32_t key, int32_t at) except -1 nogil:
        """Adds what follows a candidate's place; returns whether the candidate itself is still needed."""
        cdef const Place* places = self.places.data()
        cdef const Place* place = &places[at]
        cdef int32_t i
        if scratch.matched_at[key] == scratch.epoch:
            return False
        if place.unit < 0:
            self.match_key(scratch, key)
            return False
        if place.guard != UNORDERED:
            for i in range(at + 1, at + place.end):
                if places[i].guard == place.position:
                    self.activate(scratch, key, i)
            if self.afterwards and place.end == 1:
                scratch.reached.push_back(key)
            return place.order != 0 and not self.afterwards
        for i in range(at + place.begin, at + place.end):
            if not scratch.has_seen(places[i].segment):
                scratch.add_candidate(places[i].segment, key, i)
                scratch.states[places[i].segment].fresh += 1
                scratch.counts[CANDIDATES_ADDED] += 1
                return False
        if self.afterwards:
            if self.is_reached(scratch, key):
                scratch.reached.push_back(key)
            return False
        for i in range(at + place.begin, at + place.end):
            if i != at:
                scratch.add_candidate(places[i].segment, key, i | ADVANCED)
                scratch.counts[CANDIDATES_ADDED] += 1
        return True

    cdef int activate(self, IFiSTScratch scratch, int32_t key, int32_t at) except -1 nogil:
        """Adds a place of an ordered profile to the candidate list, its segment to the sequence index."""
        cdef int32_t segment = self.places[at].segment
        cdef int32_t bucket
        scratch.counts[CANDIDATES_ADDED] += 1
        scratch.add_candidate(segment, key, at)
        scratch.states[segment].fresh += 1
        if not scratch.states[segment].active and self.heads[segment].first_users == 0:
            scratch.states[segment].active = True
            bucket = self.heads[segment].bucket
            if scratch.active[bucket].empty():
                scratch.touched_buckets.push_back(bucket)
            add_look(self.table[segment].segment, segment, <BucketKind>(self.buckets[bucket].key & 3),
                     &scratch.active[bucket])
        return 0

    # Phase 2: refinement by branch node verification.

    cdef int verify_candidates(self, IFiSTScratch scratch, int32_t segment, int32_t level) except -1 nogil:
        """The segment is satisfied below the element at `level`: verifies the candidates that have no order there."""
        cdef SegmentState* state = &scratch.states[segment]
        cdef Candidate candidate
        cdef const Place* place
        cdef size_t i
        for i in range(state.candidates.size()):
            self.prefetch_candidate(state, i)
            candidate = state.candidates[i]
            if not candidate.place & ADVANCED or scratch.matched_at[candidate.profile] == scratch.epoch:
                continue
            place = &self.places[candidate.place & PLACE]
            if place.order < 0:
                self.verify(scratch, place.unit, level)
        return 0

    cdef void prefetch_candidate(self, const SegmentState* state, size_t i) noexcept nogil:
        """Asks for what a candidate some way ahead will need: its place, and a little later its unit."""
        if i + 2 * AHEAD < state.candidates.size():
            prefetch(&self.places[state.candidates[i + 2 * AHEAD].place & PLACE])
        if i + AHEAD < state.candidates.size():
            prefetch(&self.units[self.places[state.candidates[i + AHEAD].place & PLACE].unit])

    cdef int ordered_child_ended(self, IFiSTScratch scratch, int32_t segment, int32_t level) except -1 nogil:
        """An ordered child that the segment satisfies has just ended, below the open element at `level`."""
        cdef SegmentState* state = &scratch.states[segment]
        cdef int32_t row = self.table[segment].record_row
        cdef int32_t entry = scratch.entry(row, level)
        cdef Candidate candidate
        cdef const Place* place
        cdef size_t i
        if entry < 0:
            scratch.counts[BRANCH_IDS] += 1
            entry = scratch.insert(row, level)
        if scratch.pool[entry].since == 0:
            scratch.pool[entry].since = scratch.clock
            scratch.stack[level - 1].changed = scratch.clock
        if self.is_verified(scratch, segment, level):
            return 0
        scratch.pool[entry].checked = scratch.clock
        for i in range(state.candidates.size()):
            self.prefetch_candidate(state, i)
            candidate = state.candidates[i]
            if not candidate.place & ADVANCED or scratch.matched_at[candidate.profile] == scratch.epoch:
                continue
            place = &self.places[candidate.place & PLACE]
            if place.order > 0:
                self.progress(scratch, place.unit, place.order, level)
        return 0

    cdef bint is_verified(self, IFiSTScratch scratch, int32_t segment, int32_t level) noexcept nogil:
        """Whether nothing is new since the segment's candidates were last verified at the open element at `level`."""
        cdef int32_t entry = scratch.entry(self.table[segment].record_row, level)
        return (entry >= 0 and scratch.stack[level - 1].changed < scratch.pool[entry].checked
                and scratch.states[segment].changed < scratch.pool[entry].checked)

    cdef int child_ended(self, IFiSTScratch scratch, int32_t row, int32_t level) except -1 nogil:
        """The element at `level`, by `row` an ordered child, ends: the branch nodes above it learn of it."""
        cdef RowOwner owner = self.owners[row]
        cdef const Unit* unit
        cdef int32_t above, entry
        scratch.levels.clear()
        scratch.levels.push_back(level)
        if owner.kind == PENDING_SEGMENT:
            scratch.climb(&self.table[owner.owner].segment.steps[self.table[owner.owner].segment.branch])
            scratch.branch_levels = scratch.levels
            for above in scratch.branch_levels:
                self.ordered_child_ended(scratch, owner.owner, above)
            return self.climb_completed(scratch)
        if scratch.matched_at[owner.owner] == scratch.epoch:
            return 0
        unit = &self.units[owner.unit]
        scratch.climb(&self.table[unit.segment].segment.steps[unit.until])
        for above in scratch.levels:
            entry = scratch.entry(unit.record_row, above)
            if entry < 0:
                scratch.counts[BRANCH_IDS] += 1
                entry = scratch.insert(unit.record_row, above)
                scratch.pool[entry].since = scratch.clock
            if unit.order > 0:
                self.progress(scratch, unit.parent, unit.order, above)
        return self.climb_completed(scratch)

    cdef int progress(self, IFiSTScratch scratch, int32_t number, int32_t order, int32_t level) except -1 nogil:
        """Child `order` of an ordered branch node has ended: it counts if the one before it ended earlier."""
        cdef const Unit* unit = &self.units[number]
        cdef int32_t entry = -1
        scratch.counts[VERIFICATIONS] += 1
        if unit.progress_row >= 0:
            entry = scratch.entry(unit.progress_row, level)
        if order == 1:
            if entry >= 0:
                return 0
            entry = scratch.entry(unit.first_row, level)
            if entry < 0 or scratch.pool[entry].since == 0 or scratch.pool[entry].since == scratch.clock:
                return 0
            if unit.progress_row < 0:
                scratch.completions.push_back(Completion(number, level))
                return 0
            entry = scratch.insert(unit.progress_row, level)
        elif entry < 0 or scratch.pool[entry].count != order or scratch.pool[entry].since == scratch.clock:
            return 0
        scratch.pool[entry].count = order + 1
        scratch.pool[entry].since = scratch.clock
        scratch.stack[level - 1].changed = scratch.clock
        if order + 1 == unit.ordered:
            self.verify(scratch, number, level)
        return 0

    cdef int verify(self, IFiSTScratch scratch, int32_t number, int32_t level) except -1 nogil:
        """If all children of a branch node are satisfied at the open element at `level`, its way up is next."""
        cdef const Unit* unit = &self.units[number]
        cdef int32_t i, entry
        scratch.counts[VERIFICATIONS] += 1
        if unit.ordered:
            entry = scratch.entry(unit.progress_row, level)
            if entry < 0 or scratch.pool[entry].count != unit.ordered:
                return 0
        for i in range(unit.loose, unit.loose_end):
            if scratch.entry(self.child_rows[i], level) < 0:
                return 0
        scratch.completions.push_back(Completion(number, level))
        return 0

    cdef int climb_completed(self, IFiSTScratch scratch) except -1 nogil:
        """Goes up from branch nodes that are satisfied: to the next branch node, or to the root and a match."""
        cdef Completion completion
        while scratch.completions.size():
            completion = scratch.completions.back()
            scratch.completions.pop_back()
            if scratch.matched_at[self.units[completion.unit].profile] != scratch.epoch:
                scratch.counts[BRANCHES_VERIFIED] += 1
                self.climb_unit(scratch, completion.unit, completion.level)
        return 0

    cdef int climb_unit(self, IFiSTScratch scratch, int32_t number, int32_t level) except -1 nogil:
        cdef const Unit* unit = &self.units[number]
        cdef const SegmentStep* steps = self.table[unit.segment].segment.steps.data()
        cdef int32_t i
        scratch.levels.clear()
        scratch.levels.push_back(level)
        for i in range(unit.at, unit.until + 1):
            if i > unit.at:
                scratch.climb(&steps[i])
            if i == unit.child and unit.order >= 0:
                for level in scratch.levels:
                    scratch.insert_pending(unit.pending_row, level)
                return 0
        if scratch.levels.empty():
            return 0
        if unit.parent < 0:
            if not steps[unit.until].sym & SYM_CHILD or scratch.levels.back() == 1:
                self.match_key(scratch, unit.profile)
            return 0
        for level in scratch.levels:
            if scratch.entry(unit.record_row, level) < 0:
                scratch.counts[BRANCH_IDS] += 1
                scratch.insert(unit.record_row, level)
                self.verify(scratch, unit.parent, level)
        return 0

    cdef int match_key(self, IFiSTScratch scratch, int32_t key) except -1 nogil:
        scratch.matched_at[key] = scratch.epoch
        scratch.matched.push_back(key)
        return 0

    def memory(self):
        cdef IFiSTScratch scratch
        sizes = IFiSTRefinement.memory(self)
        sizes |= dict.fromkeys(("run-time stack", "run-time BranchID sets", "run-time candidate lists",
                                "run-time sequence index"), 0)
        for scratch in self.scratches:
            for structure, size in scratch.memory().items():
                sizes[structure] += size
        return sizes
