"""TriggerCheck and Traverse of AFilter in the suffix-compressed AxisView, with early and late unfolding.

A suffix label stands for all paths that end alike. A traversal takes the label from object to object, and at each it
goes on with the labels of one step more: the children in the SFLabel-tree. So paths that end alike are followed
together as far as they are alike. What holds for a traversal that only asks whether there is a match
(traverse.pyx) holds for a cluster too: within one trigger, a label's children on a descendant axis are
followed from the first object that the label comes to, which is the deepest, and from the others below it in the
stack only those on a child axis.

PRCache knows prefixes, though, and a cluster mixes paths of many prefixes. *Early* unfolding breaks a cluster up as
soon as PRCache has a verdict for one of its prefixes at the object at hand, and traverses its paths one by one from
there. *Late* unfolding keeps the cluster together: candidates that PRCache knows are served and removed from it,
labels of which all paths are removed are not traversed, and what a removed path would ask for further up is not
looked up. When all of a cluster is served at an object, that is one entry for the suffix label itself (the cluster's
prune bit), not one for each candidate.
"""

from libcpp.vector cimport vector

from xsift.engines.afilter.branch cimport StackBranch, StackObject
from xsift.engines.afilter.cache cimport CLUSTER, FAILED, HOPELESS, SUCCESS, UNKNOWN
from xsift.engines.afilter.labels cimport NONE, Link, SuffixNode, label_bit, single, slot_bit
from xsift.engines.afilter.traverse cimport (
    CACHE_ENTRIES, CACHE_EVICTIONS, CACHE_HITS, CACHE_LOOKUPS, REMOVALS, TRAVERSALS, TRAVERSALS_PRUNED, TRIGGERS,
    TRIGGERS_PRUNED, UNFOLDINGS, AFilterScratch, AgendaItem, Frame, SuffixState, look_up, traverse,
)
from xsift.engines.afilter.view cimport PatternView
from xsift.native.tables cimport pack
from xsift.native.types cimport int32_t, symbol_t, uint8_t, uint32_t
from xsift.xpath.pattern cimport CHILD, DESCENDANT

cdef extern from *:
    void prefetch "__builtin_prefetch"(const void* address) nogil

cdef enum:
    LOOK_INTO = 4  # late unfolding looks for served candidates in clusters of up to this many paths

cdef enum Outcome:
    # What came of a suffix label at an object, as bits.
    NOTHING = 0
    HELD = 1     # some path of the cluster holds there
    SKIPPED = 2  # some path was not tried there, since it has been found before


cdef int trigger_check_suffixes(PatternView view, AFilterScratch scratch, int32_t number) except -1 nogil:
    """Checks the triggers of a new object; appends the paths that match to `found`."""
    cdef int32_t label = view.axes.nodes[scratch.branch.objects[number].label].suffix
    cdef Frame* frame
    cdef AgendaItem item
    cdef int32_t object
    if label < 0:
        return 0
    scratch.frames.clear()
    scratch.agenda.clear()
    enter(view, scratch, label, number, 1)
    while scratch.frames.size():
        frame = &scratch.frames.back()
        if frame.lower >= 0:
            object = frame.lower
            frame.lower = scratch.branch.objects[object].below
            enter(view, scratch, frame.lower_label, object, frame.height + 1)
        elif <int32_t>scratch.agenda.size() == frame.agenda_from:
            leave(view, scratch)
        else:
            item = scratch.agenda.back()
            scratch.agenda.pop_back()
            if item.target < 0:
                try_single(view, scratch, single(item.target), item.object, frame.height + 1, item.descendant)
                continue
            if item.descendant and view.suffixes.nodes[item.target].child_items:
                frame.lower = scratch.branch.objects[item.object].below
                frame.lower_label = item.target
            enter(view, scratch, item.target, item.object, frame.height + 1)
    return 0


cdef int find_links(PatternView view, AFilterScratch scratch, const Frame* frame, bint by_pointer) except -1 nogil:
    """Puts the links of a suffix label that can lead somewhere from the frame's object on the agenda."""
    cdef const StackObject* source = &scratch.branch.objects[frame.object]
    cdef const SuffixNode* node = &view.suffixes.nodes[frame.label]
    cdef const int32_t* pointers = scratch.branch.pointers.data() + source.first_pointer
    cdef const Link* links = view.suffixes.links.data()
    cdef const Link* link
    cdef int32_t next, object
    cdef int32_t end
    if by_pointer:
        next = source.first_reached * 2
        end = <int32_t>scratch.branch.reached_end(frame.object) * 2
    else:
        next = node.first_link
        end = node.first_link + node.links
    while next < end:
        link = link_by_pointer(view, scratch, frame, next) if by_pointer else &links[next]
        next += 1
        if link == NULL or link.required & scratch.missing:
            continue
        object = pointers[link.slot >> 1]
        if link.slot & 1:
            if not frame.fresh:
                continue
        elif link.slot >> 1 != source.parents[0] and link.slot >> 1 != source.parents[1]:
            continue
        if object >= 0:
            # Traversals wait for memory most of the time: ask for what will be needed soon.
            if link.target >= 0:
                prefetch(&view.suffixes.nodes[link.target])
                prefetch(&scratch.states[link.target])
            else:
                prefetch(&view.paths[single(link.target)])
                prefetch(&scratch.path_at[single(link.target)])
            scratch.agenda.push_back(AgendaItem(link.target, object, link.slot & 1))
    return 0


cdef inline const Link* link_by_pointer(PatternView view, AFilterScratch scratch, const Frame* frame, int32_t next
                                        ) noexcept nogil:
    """The link on a pointer's edge and an axis, or NULL: an object has few pointers, a label may have many links."""
    cdef int32_t slot = scratch.branch.reached[next >> 1]
    cdef const SuffixNode* node = &view.suffixes.nodes[frame.label]
    cdef const Link* link
    cdef int32_t place
    if not (node.descendant_slots if next & 1 else node.child_slots) & slot_bit(slot):
        return NULL
    if frame.height == 1:
        link = &view.axes.edges[scratch.branch.objects[frame.object].label][slot].triggers[next & 1]
        if link.target == NONE:
            return NULL
        scratch.counts[TRIGGERS] += 1
        scratch.counts[TRIGGERS_PRUNED] += (link.required & scratch.missing) != 0
        return link
    place = view.suffixes.places.get(pack(frame.label, slot * 2 + (next & 1)), NONE)
    if place < 0:
        return NULL
    return &view.suffixes.links[node.first_link + place]


cdef int enter(PatternView view, AFilterScratch scratch, int32_t label, int32_t number, int32_t height
               ) except -1 nogil:
    """Comes to an object with a suffix label. What is not decided at once becomes a frame."""
    cdef const SuffixNode* node = &view.suffixes.nodes[label]
    cdef SuffixState* state = &scratch.states[label]
    cdef const StackObject* object = &scratch.branch.objects[number]
    cdef Frame frame
    cdef bint leads_on, visited
    scratch.counts[TRAVERSALS] += 1
    if state.document != scratch.first_trigger:
        state.document = scratch.first_trigger
        state.done = 0
    if state.done == node.items:
        return report(scratch, SKIPPED)
    if state.removed and state.removed == node.paths:
        scratch.counts[TRAVERSALS_PRUNED] += 1
        return 0
    frame.fresh = state.visited != scratch.trigger
    frame.outcome = NOTHING
    leads_on = (node.child_slots & object.parent_slots) != 0
    if frame.fresh:
        leads_on |= (node.descendant_slots & object.reached_slots) != 0
    if leads_on:
        frame.label = label
        frame.object = number
        frame.height = height
        frame.whole = state.removed == 0
        frame.removed_from = <int32_t>scratch.removed.size()
        # The object of the trigger itself is new: nothing is known of it.
        visited = state.visited > object.made_at
        state.visited = scratch.trigger
        if height > 1 and scratch.caches and is_served(view, scratch, &frame, visited):
            return report(scratch, frame.outcome)
    state.visited = scratch.trigger
    if node.rooted[0] >= 0 and object.depth == 1:
        frame.outcome |= find(view, scratch, node.rooted[0])
    if node.rooted[1] >= 0 and frame.fresh:
        frame.outcome |= find(view, scratch, node.rooted[1])
    if not leads_on:
        return report(scratch, frame.outcome)
    frame.lower = NONE
    frame.agenda_from = <int32_t>scratch.agenda.size()
    find_links(view, scratch, &frame, node.wide or height == 1)
    if <int32_t>scratch.agenda.size() > frame.agenda_from:
        scratch.frames.push_back(frame)
        return 0
    put_back(view, scratch, label, frame.removed_from)
    return report(scratch, frame.outcome)


cdef int try_single(PatternView view, AFilterScratch scratch, int32_t path, int32_t number, int32_t height, bint lower
                    ) except -1 nogil:
    """Comes to an object with a suffix that one path alone has; goes on to those below if its axis allows."""
    cdef int32_t step = view.paths[path].length - height
    cdef uint32_t verdict
    if scratch.is_done(view, path):
        return report(scratch, SKIPPED)
    if scratch.is_removed[path]:
        scratch.counts[TRAVERSALS_PRUNED] += 1
        return 0
    while True:
        verdict = verdict_of(view, scratch, path, step, number)
        if verdict == SUCCESS:
            return report(scratch, find(view, scratch, path))
        number = scratch.branch.objects[number].below
        if not lower or verdict == HOPELESS or number < 0:
            return 0


cdef uint32_t verdict_of(PatternView view, AFilterScratch scratch, int32_t path, int32_t step, int32_t number
                         ) except? 255 nogil:
    """Whether a path's steps up to `step` hold with that one at the object.

    PRCache helps at that step; if clusters are unfolded early, at all before it too.
    """
    cdef int32_t lowest = 1 if scratch.early else max(1, step)
    return traverse(view, scratch, path, step, number, lowest, step if scratch.caches else 0)


cdef int leave(PatternView view, AFilterScratch scratch) except -1 nogil:
    """Everything from the innermost frame has been followed."""
    cdef Frame frame = scratch.frames.back()
    cdef const SuffixNode* node = &view.suffixes.nodes[frame.label]
    cdef uint32_t verdict = SUCCESS if frame.outcome else FAILED
    scratch.frames.pop_back()
    put_back(view, scratch, frame.label, frame.removed_from)
    report(scratch, frame.outcome)
    if scratch.caches and frame.height > 1 and (verdict == SUCCESS or (frame.fresh and frame.whole)):
        remember_cluster(scratch, frame.label, frame.object, verdict)
    return 0


cdef inline int report(AFilterScratch scratch, uint8_t outcome) noexcept nogil:
    """Tells the frame that asked."""
    cdef Frame* frame
    if scratch.frames.size():
        frame = &scratch.frames.back()
        frame.outcome |= outcome
    return 0


cdef inline uint8_t find(PatternView view, AFilterScratch scratch, int32_t path) except 255 nogil:
    """q_root is reached, or PRCache says that it would be: the path matches."""
    if not scratch.is_done(view, path):
        scratch.path_at[path] = scratch.trigger
        scratch.found.push_back(path)
    return HELD


cdef int settle(PatternView view, AFilterScratch scratch, int32_t path) noexcept nogil:
    cdef int32_t label = view.paths[path].place
    cdef SuffixState* state
    while label >= 0:
        state = &scratch.states[label]
        if state.document != scratch.first_trigger:
            state.document = scratch.first_trigger
            state.done = 0
        state.done += 1
        if state.done < view.suffixes.nodes[label].items:
            return 0
        label = view.suffixes.nodes[label].parent
    return 0


# Clusters and prefixes.

cdef int remember_cluster(AFilterScratch scratch, int32_t label, int32_t number, uint32_t verdict) except -1 nogil:
    """SUCCESS: all of the cluster that holds at the object has been found in this document. FAILED: nothing holds."""
    cdef const StackObject* object = &scratch.branch.objects[number]
    scratch.counts[CACHE_ENTRIES] += 1
    scratch.counts[CACHE_EVICTIONS] += scratch.cache.put(
        scratch.branch, CLUSTER | label, object.element, object.depth, verdict)
    return 0


cdef bint is_served(PatternView view, AFilterScratch scratch, Frame* frame, bint visited) except -1 nogil:
    """Whether the cluster needs no traversal: it was made before, or PRCache serves, or the cluster is unfolded.

    Unless the suffix label was `visited` since the object was pushed, it cannot have been followed from there before.
    """
    cdef const SuffixNode* node = &view.suffixes.nodes[frame.label]
    cdef const StackObject* object = &scratch.branch.objects[frame.object]
    cdef uint32_t verdict = look_up(scratch, CLUSTER | frame.label, frame.object) if visited else UNKNOWN
    if verdict == FAILED or (verdict == SUCCESS and node.twig_paths == 0):
        scratch.counts[TRAVERSALS_PRUNED] += 1
        if verdict == SUCCESS:
            frame.outcome = SKIPPED
        return True
    if not object.cached & node.prefixes:
        return False
    if scratch.early:
        unfold(view, scratch, frame)
        return True
    if node.paths > LOOK_INTO:
        return False
    if serve(view, scratch, frame) == 0:
        scratch.counts[TRAVERSALS_PRUNED] += 1
        scratch.removed.resize(frame.removed_from)
        return True
    remove(view, scratch, frame)
    return False


# Early unfolding.

cdef int unfold(PatternView view, AFilterScratch scratch, Frame* frame) except -1 nogil:
    """Traverses the paths of a cluster one by one."""
    cdef int32_t path
    cdef size_t i
    scratch.counts[UNFOLDINGS] += 1
    view.suffixes.list_paths(frame.label, scratch.missing, scratch.pending, scratch.cluster)
    for i in range(scratch.cluster.size()):
        path = scratch.cluster[i]
        if scratch.is_done(view, path):
            frame.outcome |= SKIPPED
        elif verdict_of(view, scratch, path, view.paths[path].length - frame.height, frame.object) == SUCCESS:
            frame.outcome |= find(view, scratch, path)
    return remember_cluster(scratch, frame.label, frame.object, SUCCESS if frame.outcome else FAILED)


# Late unfolding.

cdef int32_t serve(PatternView view, AFilterScratch scratch, Frame* frame) except -1 nogil:
    """Looks up a cluster's candidates; appends those that PRCache knows to `removed`. Returns how many are left."""
    cdef int32_t left = 0
    cdef int32_t path
    cdef uint32_t verdict
    cdef size_t i
    view.suffixes.list_paths(frame.label, scratch.missing, scratch.pending, scratch.cluster)
    for i in range(scratch.cluster.size()):
        path = scratch.cluster[i]
        if scratch.is_removed[path]:
            continue  # its prefixes need not be looked up: a longer one was served
        if scratch.is_done(view, path):
            frame.outcome |= SKIPPED
        else:
            verdict = look_up(scratch, view.prefix_of(path, view.paths[path].length - frame.height), frame.object)
            if verdict == UNKNOWN:
                left += 1
                continue
            if verdict == SUCCESS:
                frame.outcome |= find(view, scratch, path)
        scratch.removed.push_back(path)
    return left


cdef int remove(PatternView view, AFilterScratch scratch, const Frame* frame) noexcept nogil:
    """Takes the frame's removals out of the clusters of all longer suffixes."""
    cdef int32_t label
    cdef size_t i
    for i in range(frame.removed_from, scratch.removed.size()):
        scratch.counts[REMOVALS] += 1
        scratch.is_removed[scratch.removed[i]] = 1
        label = view.paths[scratch.removed[i]].place
        while label != frame.label:
            scratch.states[label].removed += 1
            label = view.suffixes.nodes[label].parent
    return 0


cdef int put_back(PatternView view, AFilterScratch scratch, int32_t top, int32_t first) noexcept nogil:
    """Undoes the removals from `first` on, which were made at the suffix label `top`."""
    cdef int32_t label
    while <int32_t>scratch.removed.size() > first:
        label = view.paths[scratch.removed.back()].place
        scratch.is_removed[scratch.removed.back()] = 0
        scratch.removed.pop_back()
        while label != top:
            scratch.states[label].removed -= 1
            label = view.suffixes.nodes[label].parent
    return 0
