"""The traversal that finds path-tuples: every instantiation of every path, one at a time.

Traverse as in Figure 9, with a group of candidate assertions on each pointer. The group at an object is joined with
the local assertions of the object's edges: by hashing, where the slot of an edge is the hash. What shares a pointer
goes on together, to the object that it leads to, then with the descendant axes alone to those under it in the stack.
In the suffix-compressed AxisView a suffix label takes the place of a group, as long as it is kept together.

Figure 9 returns sets of sub-results, whose number can be exponential in the steps (`//a//a//a` on nested `a`s). Here
the frames of the traversal are the end of a tuple, so that it is complete when q_root is reached, and nothing need be
collected. A traversal can be left after each tuple and gone on with later. What is kept of the tuples of the trigger
at hand is bounded: it is for PRCache, and where it is too much, PRCache does without.

When an object is left, what was found there goes to PRCache (tuple_cache.pyx): for each candidate, by its prefix
label, its tuples or that there are none; for a suffix label, by their prefix labels, the tuples of the paths that
hold, and by the suffix label itself that these are all.

*Early* unfolding makes a group of a suffix label as soon as PRCache has one of its prefixes at the object. *Late*
unfolding keeps the label: those of its paths that PRCache has are served and removed from it; a label all of whose
paths are removed is not followed, and prefixes of what is removed are not looked up. To find what PRCache has, it
looks into the cluster, or at the prefixes that have tuples at the object, whichever are fewer: a prefix label and a
suffix label together are a path. Where both are many it does not look: that costs more than it saves.

Failures are of two kinds, as in traverse.pyx: after a descendant axis failed for want of ancestors, objects further
down the stack need not be tried. So even without cache, the next tuple is never far.
"""

from libc.string cimport memcpy
from libcpp.vector cimport vector

from xsift.engines.afilter.branch cimport StackBranch, StackObject
from xsift.engines.afilter.cache cimport CLUSTER, FAILED, HOPELESS, SUCCESS, UNKNOWN
from xsift.engines.afilter.labels cimport NONE, Link, SuffixNode, label_bit, single, slot_bit
from xsift.engines.afilter.traverse cimport (
    CACHE_ENTRIES, CACHE_EVICTIONS, CACHE_HITS, CACHE_LOOKUPS, REMOVALS, TRAVERSALS, TRAVERSALS_PRUNED, TRIGGERS,
    TRIGGERS_PRUNED, TUPLES, UNFOLDINGS, AFilterScratch, AgendaItem, traverse,
)
from xsift.engines.afilter.tuple_cache cimport TupleCache, TupleEntry
from xsift.engines.afilter.view cimport PatternView, Trigger
from xsift.native.tables cimport pack
from xsift.native.types cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef enum:
    GAVE_UP = -1
    LOOK_INTO = 16          # late unfolding looks at up to so many paths, or prefixes
    SERVED = sizeof(ServedPath) // sizeof(int32_t)


cdef class TupleTraversal:
    """The traversal of all paths from one trigger after the other."""

    def __cinit__(self, PatternView view not None, StackBranch branch not None, AFilterScratch scratch not None,
                  cache_bytes, bint failures_only, bint early):
        self.view = view
        self.branch = branch
        self.scratch = scratch
        self.counts = &scratch.counts
        self.cache = TupleCache(cache_bytes, failures_only)
        self.caches = view.has_prefixes and self.cache.largest > 0
        self.early = early

    cdef int begin(self) except -1 nogil:
        """A new document begins, perhaps after the last one broke off in the middle."""
        if self.removed.size() or self.stamp >> 31 or self.collection >> 31:
            self.dirty = True
        self.give_up_trigger()
        self.cache.clear()
        self.work = 0
        if self.dirty:
            self.dirty = False
            self.stamp = 0
            self.collection = 0
            self.paths.clear()
            self.states.clear()
        self.paths.resize(self.view.paths.size(), PathState(0, 0, 0, 0, 0, 0))
        self.states.resize(self.view.suffixes.nodes.size(), TupleState(0, 0, 0))
        return 0

    # A trigger.

    cdef int begin_trigger(self, int32_t number) except -1 nogil:
        """TriggerCheck (Figure 7) of a new object; go_on() then finds the tuples."""
        cdef int32_t label = self.branch.objects[number].label
        self.missing = ~(self.branch.labels | label_bit(label))
        self.records.clear()
        self.found.clear()
        self.stamp += 1
        if self.caches:
            self.cache.forget_object(number)
        if not self.view.has_suffixes:
            self.check_triggers(number)
            return self.enter_group(0, number) if self.candidates.size() else 0
        if self.view.axes.nodes[label].suffix >= 0:
            self.enter_cluster(self.view.axes.nodes[label].suffix, number)
        return 0

    cdef bint go_on(self) except -1 nogil:
        if self.frames.empty():
            return False
        if self.records.size() > MOST_RECORDED:
            self.forget_records()
        if self.frames.back().label < 0:
            self.follow_group()
        else:
            self.follow_cluster()
        return True

    cdef int give_up_trigger(self) except -1 nogil:
        """Leaves the traversal at hand as if it had never begun."""
        self.frames.clear()
        self.elements.clear()
        self.candidates.clear()
        self.order.clear()
        self.agenda.clear()
        self.removed.clear()
        self.touched.clear()
        self.heads.clear()
        self.records.clear()
        return 0

    cdef int check_triggers(self, int32_t number) except -1 nogil:
        """Makes candidates of the trigger assertions of an object."""
        cdef const StackObject* object = &self.branch.objects[number]
        cdef size_t i
        cdef int32_t slot
        for i in range(2):
            if object.parents[i] >= 0:
                self.check_edge(number, self.view.axes.edges[object.label][object.parents[i]].number, 0)
        for i in range(object.first_reached, self.branch.reached_end(number)):
            slot = self.branch.reached[i]
            self.check_edge(number, self.view.axes.edges[object.label][slot].number, 1)
        return 0

    cdef int check_edge(self, int32_t number, int32_t edge, uint8_t axis) except -1 nogil:
        cdef const vector[Trigger]* triggers = self.view.axes.triggers(edge, axis)
        cdef const Trigger* trigger = triggers.data()
        cdef int32_t depth = self.branch.objects[number].depth
        cdef size_t i
        self.counts[0][TRIGGERS] += triggers.size()
        for i in range(triggers.size()):
            if trigger[i].labels & self.missing or trigger[i].length > depth:
                self.counts[0][TRIGGERS_PRUNED] += 1
            else:
                self.add_candidate(trigger[i].path, NONE)
        return 0

    # Tuples.

    cdef int emit(self, int32_t path, const int32_t* first, int32_t steps) except -1 nogil:
        """A tuple: elements of the first so many steps, then those of the frames."""
        cdef PathState* state = &self.paths[path]
        cdef size_t at = self.records.size()
        cdef size_t height = self.frames.size()
        cdef const int32_t* element = self.elements.data() + height
        cdef size_t i
        cdef int32_t* to
        if state.done:
            return 0
        self.records.resize(at + RECORD + steps + height)
        to = self.records.data() + at
        to[0] = path
        to[1] = state.last_record if state.stamp == self.stamp else <int32_t>NONE
        state.last_record = <int32_t>at
        state.stamp = self.stamp
        to += RECORD
        for i in range(<size_t>steps):
            to[i] = first[i]
        to += steps
        for i in range(height):
            element -= 1
            to[i] = element[0]
        self.work += 1
        self.counts[0][TUPLES] += 1
        if state.found_at != self.branch.clock:
            state.found_at = self.branch.clock
            self.found.push_back(path)
        return 0

    cdef int push_frame(self, const TupleFrame* frame) except -1 nogil:
        self.frames.push_back(frame[0])
        self.elements.push_back(self.branch.objects[frame.object].element)
        return 0

    cdef int pop_frame(self) noexcept nogil:
        self.frames.pop_back()
        self.elements.pop_back()
        return 0

    cdef int forget_records(self) except -1 nogil:
        """Gives up the tuples so far: whoever wanted them has them, and they are too many for PRCache."""
        cdef size_t i
        self.records.clear()
        self.stamp += 1
        for i in range(self.frames.size()):
            self.frames[i].records_from = GAVE_UP
        return 0

    cdef uint32_t serve(self, int32_t path, int32_t step, int32_t number) except? 255 nogil:
        """What PRCache has of a path's prefix up to a step at the last frame's object: tuples, or a failure."""
        cdef const StackObject* object = &self.branch.objects[number]
        cdef int32_t prefix = self.view.prefix_of(path, step)
        cdef const TupleEntry* entry
        cdef const int32_t* numbers
        cdef int32_t i
        if not object.cached & label_bit(prefix):
            return UNKNOWN
        entry = self.cache.find(prefix, object.element)
        self.counts[0][CACHE_LOOKUPS] += 1
        if entry == NULL:
            return UNKNOWN
        self.counts[0][CACHE_HITS] += 1
        if entry.verdict & 3 == SUCCESS:
            numbers = self.cache.numbers(entry)
            for i in range(entry.count):
                self.emit(path, numbers + i * step, step)
        return entry.verdict & 3

    cdef const TupleEntry* remember(self, int32_t path, int32_t step, const TupleFrame* frame, uint32_t verdict
                                    ) except? NULL nogil:
        """Enters what a frame found out about a path: its tuples up to the step, or that there are none.

        Returns the entry, unless it was not kept.
        """
        cdef StackObject* object = &self.branch.objects[frame.object]
        cdef int32_t prefix = self.view.prefix_of(path, step)
        cdef const TupleEntry* known
        cdef int32_t count = 0
        cdef int evicted
        cdef int32_t at
        cdef int32_t* to
        if self.paths[path].done or (verdict == SUCCESS and frame.records_from == GAVE_UP):
            return NULL
        if object.cached & label_bit(prefix):
            known = self.cache.find(prefix, object.element)
            if known != NULL:
                return known
        if verdict == SUCCESS:
            at = self.paths[path].last_record
            while at >= frame.records_from:
                count += 1
                at = self.records[at + 1]
        to = self.cache.put(self.branch, prefix, frame.object, verdict, count, <int64_t>count * step, &evicted)
        self.counts[0][CACHE_ENTRIES] += 1
        self.counts[0][CACHE_EVICTIONS] += evicted
        if verdict == SUCCESS:
            if to == NULL:
                return NULL
            at = self.paths[path].last_record
            while count > 0:
                count -= 1
                memcpy(to + count * step, &self.records[at + RECORD], step * sizeof(int32_t))
                at = self.records[at + 1]
            self.cache.note_prefix(frame.object, prefix)
        object.cached |= label_bit(prefix)
        return self.cache.find(prefix, object.element)

    # Groups of candidates.

    cdef int add_candidate(self, int32_t path, int32_t asker) except -1 nogil:
        self.candidates.push_back(Candidate(path, 0, asker, NONE, HOPELESS, 0, 0))
        return 0

    cdef int enter_group(self, int32_t first, int32_t number) except -1 nogil:
        """Comes to an object with the candidates from `first` on."""
        cdef const StackObject* objects = self.branch.objects.data()
        cdef const StackObject* object = &objects[number]
        cdef const int32_t* pointers = self.branch.pointers.data() + object.first_pointer
        cdef int32_t height = <int32_t>self.frames.size() + 1
        cdef Candidate* candidate
        cdef TupleFrame frame
        cdef int32_t step, target, i
        cdef uint32_t verdict
        frame.object = number
        frame.label = NONE
        frame.first = first
        frame.order_from = <int32_t>self.order.size()
        frame.next = frame.order_from
        frame.lower = NONE
        frame.records_from = <int32_t>self.records.size()
        self.push_frame(&frame)
        self.work += 1
        self.counts[0][TRAVERSALS] += 1
        for i in range(first, <int32_t>self.candidates.size()):
            candidate = &self.candidates[i]
            if self.paths[candidate.path].done:
                continue
            step = self.view.paths[candidate.path].length - height
            candidate.slot = self.view.slot_of(candidate.path, step)
            if step == 0:
                if candidate.slot & 1 or object.depth == 1:
                    candidate.outcome = SUCCESS
                    self.emit(candidate.path, NULL, 0)
                else:
                    candidate.outcome = FAILED
                continue
            if self.caches and height > 1:
                verdict = self.serve(candidate.path, step, number)
                if verdict != UNKNOWN:
                    candidate.outcome = verdict
                    continue
            target = pointers[candidate.slot >> 1]
            if target < 0:
                continue
            if not candidate.slot & 1 and objects[target].depth != object.depth - 1:
                candidate.outcome = FAILED
                continue
            candidate.followed = 1
            self.order.push_back(i)
        if <int32_t>self.order.size() > frame.order_from + 1:
            self.join_by_slot(frame.order_from)
        return 0

    cdef int join_by_slot(self, int32_t first) except -1 nogil:
        """Puts candidates that go on along the same pointer side by side in the order."""
        cdef int32_t i, slot
        cdef size_t place, at
        for place in range(<size_t>first, self.order.size()):
            i = self.order[place]
            slot = self.candidates[i].slot >> 1
            if self.heads.size() <= <size_t>slot:
                self.heads.resize(slot + 1, NONE)
            if self.heads[slot] == NONE:
                self.touched.push_back(slot)
            self.candidates[i].next = self.heads[slot]
            self.heads[slot] = i
        place = first
        for at in range(self.touched.size()):
            i = self.heads[self.touched[at]]
            self.heads[self.touched[at]] = NONE
            while i >= 0:
                self.order[place] = i
                place += 1
                i = self.candidates[i].next
        self.touched.clear()
        return 0

    cdef int follow_group(self) except -1 nogil:
        """Goes on along the next pointer, or to the next object in its stack."""
        cdef TupleFrame* frame = &self.frames.back()
        cdef const StackObject* objects = self.branch.objects.data()
        cdef int32_t first = <int32_t>self.candidates.size()
        cdef int32_t i, place, object
        cdef int32_t slot
        cdef bint descendant = False
        if frame.lower >= 0:
            object = frame.lower
            frame.lower = objects[object].below
            for place in range(frame.bucket_from, frame.next):
                i = self.order[place]
                if self.candidates[i].slot & 1 and not self.candidates[i].stopped:
                    self.add_candidate(self.candidates[i].path, i)
            if <int32_t>self.candidates.size() == first:
                frame.lower = NONE
                return 0
            return self.enter_group(first, object)
        if frame.next == <int32_t>self.order.size():
            return self.leave_group()
        frame.bucket_from = frame.next
        slot = self.candidates[self.order[frame.next]].slot >> 1
        while frame.next < <int32_t>self.order.size():
            i = self.order[frame.next]
            if self.candidates[i].slot >> 1 != slot:
                break
            descendant |= self.candidates[i].slot & 1
            self.add_candidate(self.candidates[i].path, i)
            frame.next += 1
        object = self.branch.pointers[objects[frame.object].first_pointer + slot]
        if descendant:
            frame.lower = objects[object].below
        return self.enter_group(first, object)

    cdef int leave_group(self) except -1 nogil:
        """All pointers have been followed: the outcome goes to PRCache and to whoever asked."""
        cdef TupleFrame frame = self.frames.back()
        cdef int32_t height = <int32_t>self.frames.size()
        cdef bint asked_by_label = self.candidates[frame.first].asker == NONE
        cdef uint32_t outcome = HOPELESS
        cdef const Candidate* candidate
        cdef int32_t i
        self.pop_frame()
        for i in range(frame.first, <int32_t>self.candidates.size()):
            candidate = &self.candidates[i]
            if candidate.followed and self.caches and height > 1:
                self.remember(candidate.path, self.view.paths[candidate.path].length - height, &frame,
                              candidate.outcome)
            if asked_by_label:
                outcome = min(outcome, <uint32_t>candidate.outcome)  # SUCCESS before FAILED before HOPELESS
            else:
                self.tell_asker(candidate)
        self.candidates.resize(frame.first)
        self.order.resize(frame.order_from)
        if asked_by_label:
            self.report(outcome)
        return 0

    cdef inline void tell_asker(self, const Candidate* candidate) noexcept nogil:
        cdef Candidate* asker = &self.candidates[candidate.asker]
        if candidate.outcome == SUCCESS:
            asker.outcome = SUCCESS
        elif not asker.slot & 1:
            asker.outcome = candidate.outcome
        elif candidate.outcome == HOPELESS:
            asker.stopped = 1

    # Suffix labels.

    cdef int come_to(self, int32_t target, int32_t number) except -1 nogil:
        """Comes to an object with a suffix label, or with a path whose suffix no other has."""
        cdef int32_t first, path, step
        cdef uint32_t verdict
        if target >= 0:
            return self.enter_cluster(target, number)
        first = <int32_t>self.candidates.size()
        path = single(target)
        step = self.view.paths[path].length - <int32_t>self.frames.size() - 1
        if step > 0:  # most fail, and that is found out at less cost without frames
            verdict = traverse(self.view, self.scratch, path, step, number, 1, 0)
            if verdict != SUCCESS:
                self.report(verdict)
                return 0
        self.add_candidate(path, NONE)
        return self.enter_group(first, number)

    cdef int enter_cluster(self, int32_t label, int32_t number) except -1 nogil:
        cdef const SuffixNode* node = &self.view.suffixes.nodes[label]
        cdef TupleState* state = &self.states[label]
        cdef const StackObject* object = &self.branch.objects[number]
        cdef TupleFrame* frame
        cdef TupleFrame made
        cdef bint visited
        self.work += 1
        self.counts[0][TRAVERSALS] += 1
        if state.done == node.items or (state.removed and state.removed == node.paths):
            self.counts[0][TRAVERSALS_PRUNED] += 1
            self.report(HOPELESS)
            return 0
        made.object = number
        made.label = label
        made.first = <int32_t>self.agenda.size()
        made.lower = NONE
        made.removed_from = <int32_t>self.removed.size()
        made.records_from = <int32_t>self.records.size()
        made.descendant = 0
        made.held = 0
        made.mendable = 0
        made.whole = state.removed == 0
        self.push_frame(&made)
        # Unless the label was visited since the object was pushed, it was never followed from there.
        visited = state.visited > object.made_at
        state.visited = self.branch.clock
        if self.caches and self.frames.size() > 1 and self.is_served(visited):
            return 0
        frame = &self.frames.back()
        if node.rooted[0] >= 0 and self.is_wanted(node.rooted[0]):
            if object.depth == 1:
                frame.held = 1
                self.emit(node.rooted[0], NULL, 0)
            else:
                frame.mendable = 1
        if node.rooted[1] >= 0 and self.is_wanted(node.rooted[1]):
            frame.held = 1
            self.emit(node.rooted[1], NULL, 0)
        if (node.child_slots & object.parent_slots) or (node.descendant_slots & object.reached_slots):
            self.find_links(frame)
        elif node.child_slots & object.reached_slots:
            frame.mendable = 1
        return 0

    cdef int find_links(self, TupleFrame* frame) except -1 nogil:
        """Puts the links of a suffix label that lead somewhere from the frame's object on the agenda."""
        cdef const StackObject* source = &self.branch.objects[frame.object]
        cdef const SuffixNode* node = &self.view.suffixes.nodes[frame.label]
        cdef const int32_t* pointers = self.branch.pointers.data() + source.first_pointer
        cdef bint triggers = self.frames.size() == 1
        cdef bint by_pointer = triggers or node.wide
        cdef const Link* link
        cdef int32_t next, end, slot, place, object
        if by_pointer:  # an object has few pointers, a label may have many links
            next = source.first_reached * 2
            end = <int32_t>self.branch.reached_end(frame.object) * 2
        else:
            next = node.first_link
            end = node.first_link + node.links
        while next < end:
            if by_pointer:
                slot = self.branch.reached[next >> 1]
                link = NULL
                if (node.descendant_slots if next & 1 else node.child_slots) & slot_bit(slot):
                    if triggers:
                        link = &self.view.axes.edges[source.label][slot].triggers[next & 1]
                        if link.target == NONE:
                            link = NULL
                        else:
                            self.counts[0][TRIGGERS] += 1
                            self.counts[0][TRIGGERS_PRUNED] += (link.required & self.missing) != 0
                    else:
                        place = self.view.suffixes.places.get(pack(frame.label, slot * 2 + (next & 1)), NONE)
                        if place >= 0:
                            link = &self.view.suffixes.links[node.first_link + place]
            else:
                link = &self.view.suffixes.links[next]
            next += 1
            if link == NULL or link.required & self.missing:
                continue
            object = pointers[link.slot >> 1]
            if object < 0:
                continue
            if not link.slot & 1 and link.slot >> 1 != source.parents[0] and link.slot >> 1 != source.parents[1]:
                frame.mendable = 1
                continue
            if link.target < 0 and not self.is_wanted(single(link.target)):
                self.counts[0][TRAVERSALS_PRUNED] += 1
                continue
            self.agenda.push_back(AgendaItem(link.target, object, link.slot & 1))
        return 0

    cdef int follow_cluster(self) except -1 nogil:
        """Goes on along the next link, or to the next object in its stack."""
        cdef TupleFrame* frame = &self.frames.back()
        cdef int32_t object = frame.lower
        cdef AgendaItem item
        if object < 0:
            if <int32_t>self.agenda.size() == frame.first:
                return self.leave_cluster()
            item = self.agenda.back()
            self.agenda.pop_back()
            object = item.object
            frame.target = item.target
            frame.descendant = item.descendant
        if frame.descendant:
            frame.lower = self.branch.objects[object].below
        return self.come_to(frame.target, object)

    cdef inline void report(self, uint32_t verdict) noexcept nogil:
        """Tells the suffix label that asked."""
        cdef TupleFrame* frame
        if self.frames.size():
            frame = &self.frames.back()
            if verdict == SUCCESS:
                frame.held = 1
            elif frame.descendant:
                if verdict == HOPELESS:
                    frame.lower = NONE
            elif verdict == FAILED:
                frame.mendable = 1

    cdef int leave_cluster(self) except -1 nogil:
        """All links have been followed."""
        cdef TupleFrame frame = self.frames.back()
        cdef uint32_t verdict = SUCCESS if frame.held else (FAILED if frame.mendable else HOPELESS)
        self.put_back(frame.label, frame.removed_from)
        if self.caches and self.frames.size() > 1:
            self.collect(&frame, verdict)
        self.pop_frame()
        self.report(verdict)
        return 0

    cdef int collect(self, const TupleFrame* frame, uint32_t verdict) except -1 nogil:
        """Enters into PRCache what a frame found out about its cluster."""
        cdef int32_t height = <int32_t>self.frames.size()
        cdef int64_t size = 0
        cdef const TupleEntry* entry
        cdef int32_t path, step
        cdef int evicted
        cdef int32_t* to
        cdef size_t at
        self.held.clear()
        if verdict == SUCCESS:
            if frame.records_from == GAVE_UP or self.cache.failures_only:
                return 0
            self.collection += 1
            at = frame.records_from
            while at < self.records.size():
                path = self.records[at]
                at += RECORD + self.view.paths[path].length
                if self.paths[path].collected == self.collection:
                    continue
                self.paths[path].collected = self.collection
                step = self.view.paths[path].length - height
                if step == 0:
                    self.held.push_back(ServedPath(0, path, 0))
                else:
                    entry = self.remember(path, step, frame, SUCCESS)
                    if entry == NULL:
                        self.held.push_back(ServedPath(0, path, NONE))
                    else:
                        self.held.push_back(ServedPath(entry.position, path, entry.count))
            if self.early:
                return 0  # its paths are looked up one by one
            size = self.held.size() * SERVED
        if frame.whole:
            to = self.cache.put(self.branch, CLUSTER | frame.label, frame.object, verdict,
                                <int32_t>self.held.size(), size, &evicted)
            self.counts[0][CACHE_ENTRIES] += 1
            self.counts[0][CACHE_EVICTIONS] += evicted
            if to != NULL:
                memcpy(to, self.held.data(), self.held.size() * sizeof(ServedPath))
        return 0

    cdef bint is_served(self, bint visited) except -1 nogil:
        """Whether the last frame's cluster needs no traversal: PRCache has all of it, or it is unfolded."""
        cdef TupleFrame* frame = &self.frames.back()
        cdef const SuffixNode* node = &self.view.suffixes.nodes[frame.label]
        cdef const StackObject* object = &self.branch.objects[frame.object]
        cdef const TupleEntry* entry = NULL
        cdef uint32_t verdict
        cdef bint served = False
        if visited:
            entry = self.cache.find(CLUSTER | frame.label, object.element)
            self.counts[0][CACHE_LOOKUPS] += 1
            self.counts[0][CACHE_HITS] += entry != NULL
        if entry != NULL:
            verdict = entry.verdict & 3
            served = verdict != SUCCESS or self.serve_all(<const ServedPath*>self.cache.numbers(entry), entry.count)
        elif object.cached & node.prefixes:
            if self.early:
                self.unfold()
                return True
            verdict = self.look_into()
            served = verdict != UNKNOWN
        if served:
            self.counts[0][TRAVERSALS_PRUNED] += 1
            self.put_back(frame.label, frame.removed_from)
            self.pop_frame()
            self.report(verdict)
        return served

    # Early unfolding.

    cdef int unfold(self) except -1 nogil:
        """Goes on with the paths of the last frame's cluster as a group."""
        cdef TupleFrame frame = self.frames.back()
        cdef int32_t first = <int32_t>self.candidates.size()
        cdef size_t i
        self.pop_frame()
        self.counts[0][UNFOLDINGS] += 1
        self.view.suffixes.list_paths(frame.label, self.missing, self.pending, self.cluster)
        for i in range(self.cluster.size()):
            self.add_candidate(self.cluster[i], NONE)
        if <int32_t>self.candidates.size() == first:
            self.report(HOPELESS)
            return 0
        return self.enter_group(first, frame.object)

    # Late unfolding.

    cdef bint serve_all(self, const ServedPath* paths, int32_t number) except -1 nogil:
        """Serves the paths of the last frame's cluster that hold. Returns whether PRCache still has the tuples of
        all; if not, those that it has are removed."""
        cdef int32_t height = <int32_t>self.frames.size()
        cdef int64_t oldest = self.cache.written - <int64_t>self.cache.ring.size()
        cdef const int32_t* ring = self.cache.ring.data()
        cdef const int32_t* tuples
        cdef bint all_there = True
        cdef int32_t i, k, step
        cdef ServedPath served
        for i in range(number):
            memcpy(&served, &paths[i], sizeof(served))  # the ring aligns to 4 bytes only
            all_there &= served.count == 0 or (served.count > 0 and served.position >= oldest)
        for i in range(number):
            memcpy(&served, &paths[i], sizeof(served))
            if not self.is_wanted(served.path) or served.count < 0 or (served.count and served.position < oldest):
                continue
            self.frames.back().held = 1
            if served.count == 0:
                self.emit(served.path, NULL, 0)
            else:
                step = self.view.paths[served.path].length - height
                tuples = ring + served.position % <int64_t>self.cache.ring.size()
                for k in range(served.count):
                    self.emit(served.path, tuples + k * step, step)
            if not all_there:
                self.remove(served.path)
        return all_there

    cdef int look_into(self) except -1 nogil:
        """Serves and removes paths of the last frame's cluster that PRCache has. A verdict if these are all."""
        cdef TupleFrame* frame = &self.frames.back()
        cdef const SuffixNode* node = &self.view.suffixes.nodes[frame.label]
        cdef const vector[int32_t]* prefixes = NULL
        cdef int32_t path
        cdef size_t i
        if <int32_t>self.cache.prefixes_at.size() > frame.object:
            prefixes = &self.cache.prefixes_at[frame.object]
        if self.view.has_assertions and prefixes != NULL and prefixes.size() < <size_t>node.paths:
            if prefixes.size() > LOOK_INTO:
                return UNKNOWN
            for i in range(prefixes.size()):
                if not node.prefixes & label_bit(prefixes[0][i]):
                    continue
                path = self.view.assertions.get(pack(prefixes[0][i], frame.label), NONE)
                if path >= 0 and self.is_wanted(path):
                    self.serve_one(path)
        else:
            if node.paths > LOOK_INTO:
                return UNKNOWN
            self.view.suffixes.list_paths(frame.label, self.missing, self.pending, self.cluster)
            for i in range(self.cluster.size()):
                path = self.cluster[i]
                if self.is_wanted(path) \
                        and self.view.paths[path].length > <int32_t>self.frames.size():
                    self.serve_one(path)
        if frame.whole and <int32_t>self.removed.size() - frame.removed_from == node.paths:
            return SUCCESS if frame.held else (FAILED if frame.mendable else HOPELESS)
        return UNKNOWN

    cdef int serve_one(self, int32_t path) except -1 nogil:
        """Serves a path of the last frame's cluster and removes it. Returns 0 if PRCache does not have it."""
        cdef TupleFrame* frame = &self.frames.back()
        cdef int32_t step = self.view.paths[path].length - <int32_t>self.frames.size()
        cdef uint32_t verdict = SUCCESS
        if step > 0:
            verdict = self.serve(path, step, frame.object)
            if verdict == UNKNOWN:
                return 0
        else:
            self.emit(path, NULL, 0)
        if verdict == SUCCESS:
            frame.held = 1
        elif verdict == FAILED:
            frame.mendable = 1
        self.remove(path)
        return 1

    cdef int remove(self, int32_t path) except -1 nogil:
        """Removes a path from the clusters of all longer suffixes than the last frame's."""
        cdef int32_t top = self.frames.back().label
        cdef int32_t label = self.view.paths[path].place
        self.removed.push_back(path)
        self.counts[0][REMOVALS] += 1
        self.paths[path].removed = 1
        while label != top:
            self.states[label].removed += 1
            label = self.view.suffixes.nodes[label].parent
        return 0

    cdef int put_back(self, int32_t top, int32_t first) noexcept nogil:
        """Undoes the removals from `first` on, which were made at the suffix label `top`."""
        cdef int32_t label
        while <int32_t>self.removed.size() > first:
            label = self.view.paths[self.removed.back()].place
            self.paths[self.removed.back()].removed = 0
            self.removed.pop_back()
            while label != top:
                self.states[label].removed -= 1
                label = self.view.suffixes.nodes[label].parent
        return 0

    # Paths of which no more is wanted.

    cdef int set_done(self, int32_t path) except -1 nogil:
        """No more tuples of this path, in this document. Suffix labels all of whose paths are done are not followed."""
        cdef int32_t label
        if self.paths[path].done:
            return 0
        self.paths[path].done = 1
        self.dirty = True
        label = self.view.paths[path].place if self.view.has_suffixes else NONE
        while label >= 0:
            self.states[label].done += 1
            if self.states[label].done < self.view.suffixes.nodes[label].items:
                break
            label = self.view.suffixes.nodes[label].parent
        return 0

    def memory(self):
        """Bytes held, PRCache not counted."""
        return (self.frames.capacity() * sizeof(TupleFrame) + self.candidates.capacity() * sizeof(Candidate)
                + self.agenda.capacity() * sizeof(AgendaItem) + self.states.capacity() * sizeof(TupleState)
                + self.paths.capacity() * sizeof(PathState) + self.held.capacity() * sizeof(ServedPath) + 4 * (
                    self.records.capacity() + self.elements.capacity() + self.found.capacity()
                    + self.order.capacity() + self.heads.capacity() + self.touched.capacity()
                    + self.removed.capacity() + self.cluster.capacity() + self.pending.capacity()))
