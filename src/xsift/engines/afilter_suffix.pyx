"""TriggerCheck and Traverse of AFilter in the suffix-compressed AxisView, with early and late unfolding.

A suffix label stands for all paths that end alike. A traversal takes the label from object to object, and at each it goes on
with the labels of one step more: the children in the SFLabel-tree. So paths that end alike are followed together as far as
they are alike. What holds for a traversal that only asks whether there is a match (afilter_traverse.pyx) holds for a cluster
too: within one trigger, a label's children on a descendant axis are followed from the first object that the label comes to, which is
the deepest, and from the others below it in the stack only those on a child axis.

PRCache knows prefixes, though, and a cluster mixes paths of many prefixes. *Early* unfolding breaks a cluster up as soon as PRCache
has a verdict for one of its prefixes at the object at hand, and traverses its paths one by one from there. *Late* unfolding
keeps the cluster together: candidates that PRCache knows are served and removed from it, labels of which all paths are
removed are not traversed, and what a removed path would ask for further up is not looked up. When all of a cluster is served at an object,
that is one entry for the suffix label itself (the cluster's prune bit), not one for each candidate.
"""

from libcpp.vector cimport vector

from xsift.engines.afilter_branch cimport StackBranch, StackObject
from xsift.engines.afilter_cache cimport CLUSTER, FAILED, HOPELESS, SUCCESS, UNKNOWN
from xsift.engines.afilter_traverse cimport (
    CACHE_HITS, CACHE_LOOKUPS, REMOVALS, TRAVERSALS, TRAVERSALS_PRUNED, TRIGGERS, TRIGGERS_PRUNED, UNFOLDINGS,
    AFilterScratch, Frame, SuffixState, remember, traverse,
)
from xsift.engines.afilter_view cimport BY_CHILD, BY_DESCENDANT, NONE, PatternView, SuffixNode
from xsift.native.tables cimport pack
from xsift.native.types cimport int32_t, symbol_t, uint8_t, uint32_t
from xsift.xpath.pattern cimport CHILD, DESCENDANT

cdef enum:
    LOOK_INTO = 8  # late unfolding looks for served candidates in clusters of up to this many paths

cdef enum Outcome:
    # What came of a suffix label at an object, as bits.
    NOTHING = 0
    HELD = 1     # some path of the cluster holds there
    SKIPPED = 2  # some path was not tried there, since it has been found before


cdef int trigger_check_suffixes(PatternView view, AFilterScratch scratch, int32_t number) except -1 nogil:
    """Checks the one trigger of a new object's label; appends the paths that match to `found`."""
    cdef int32_t label = view.axes.nodes[scratch.branch.objects[number].label].suffix
    cdef Frame* frame
    cdef int32_t child, object
    if label < 0:
        return 0
    scratch.counts[TRIGGERS] += 1
    scratch.frames.clear()
    enter(view, scratch, label, number, 1)
    while scratch.frames.size():
        frame = &scratch.frames.back()
        if frame.lower >= 0:
            child = frame.lower_child
            object = frame.lower
            frame.lower = scratch.branch.objects[object].below
        else:
            child = next_child(view, scratch, frame, &object)
            if child < 0:
                leave(view, scratch)
                continue
        enter(view, scratch, child, object, frame.height + 1)
    return 0


cdef int32_t next_child(PatternView view, AFilterScratch scratch, Frame* frame, int32_t* object) noexcept nogil:
    """The next child of the frame's label that its object has a pointer for, and where that leads; else NONE."""
    cdef const StackObject* objects = scratch.branch.objects.data()
    cdef const SuffixNode* nodes = view.suffixes.nodes.data()
    cdef const int32_t* pointers = scratch.branch.pointers.data() + objects[frame.object].first_pointer
    cdef int32_t child
    while True:
        if nodes[frame.label].wide or frame.height == 1:
            child = next_wide_child(view, scratch, frame)
            if child < 0:
                return NONE
        else:
            child = frame.next
            if child < 0:
                return NONE
            frame.next = nodes[child].next_sibling
        object[0] = pointers[nodes[child].slot]
        if object[0] < 0:
            continue
        if nodes[child].axis == CHILD:
            if objects[object[0]].depth == objects[frame.object].depth - 1:
                return child
        elif frame.fresh:
            if nodes[child].child_items:
                frame.lower = objects[object[0]].below
                frame.lower_child = child
            return child


cdef int32_t next_wide_child(PatternView view, AFilterScratch scratch, Frame* frame) noexcept nogil:
    """The next child of a label with many, by way of the object's pointers: they are few."""
    cdef int32_t end = <int32_t>scratch.branch.reached_end(frame.object)
    cdef symbol_t label = scratch.branch.objects[frame.object].label
    cdef int32_t slot, child
    cdef uint8_t axis
    while frame.next >> 1 < end:
        slot = scratch.branch.reached[frame.next >> 1]
        axis = frame.next & 1
        frame.next += 1
        if frame.height == 1:
            child = view.axes.edges[label][slot].suffix[axis]
        else:
            child = view.suffixes.wide.get(pack(frame.label, slot * 2 + axis), NONE)
        if child >= 0:
            return child
    return NONE


cdef int enter(PatternView view, AFilterScratch scratch, int32_t label, int32_t number, int32_t height
               ) except -1 nogil:
    """Comes to an object with a suffix label. What is not decided at once becomes a frame."""
    cdef const SuffixNode* node = &view.suffixes.nodes[label]
    cdef SuffixState* state = &scratch.states[label]
    cdef const StackObject* object = &scratch.branch.objects[number]
    cdef Frame frame
    scratch.counts[TRAVERSALS] += 1
    if state.document != scratch.first_trigger:
        state.document = scratch.first_trigger
        state.done = 0
    if state.done == node.items:
        return report(scratch, SKIPPED)
    if state.removed and state.removed == node.paths:
        scratch.counts[TRAVERSALS_PRUNED] += 1
        return 0
    frame.label = label
    frame.object = number
    frame.height = height
    frame.outcome = NOTHING
    frame.whole = state.removed == 0
    frame.removed_from = <int32_t>scratch.removed.size()
    if height > 1:  # the object of the trigger itself is new: nothing is known of it
        if scratch.late:
            if is_served(view, scratch, &frame):
                return report(scratch, frame.outcome)
        elif scratch.early and object.cached & node.prefixes:
            return unfold(view, scratch, &frame)
    frame.fresh = state.visited != scratch.trigger
    state.visited = scratch.trigger
    if node.rooted[BY_CHILD] >= 0 and object.depth == 1:
        frame.outcome |= find(view, scratch, node.rooted[BY_CHILD])
    if node.rooted[BY_DESCENDANT] >= 0 and frame.fresh:
        frame.outcome |= find(view, scratch, node.rooted[BY_DESCENDANT])
    frame.lower = NONE
    frame.next = object.first_reached * 2 if node.wide or height == 1 else node.first_child
    scratch.frames.push_back(frame)
    return 0


cdef int leave(PatternView view, AFilterScratch scratch) except -1 nogil:
    """Everything from the innermost frame has been followed."""
    cdef Frame frame = scratch.frames.back()
    cdef const SuffixNode* node = &view.suffixes.nodes[frame.label]
    cdef uint32_t verdict = SUCCESS if frame.outcome else FAILED
    scratch.frames.pop_back()
    put_back(view, scratch, frame.label, frame.removed_from)
    report(scratch, frame.outcome)
    if not scratch.caches or frame.height == 1 or (verdict == FAILED and not (frame.fresh and frame.whole)):
        return 0
    if node.paths > 1:
        if scratch.late:
            remember_cluster(scratch, frame.label, frame.object, verdict)
    elif frame.outcome != SKIPPED:
        remember(scratch, prefix_of(view, only_path(view, frame.label), frame.height), frame.object, verdict)
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
    cdef int32_t label = view.place[path]
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

cdef inline int32_t prefix_of(PatternView view, int32_t path, int32_t height) noexcept nogil:
    """The prefix label of the path's assertion in a suffix label with `height` steps."""
    return view.assertions[path][view.assertions[path].size() - height].prefix


cdef int32_t only_path(PatternView view, int32_t label) noexcept nogil:
    """The path of a suffix label that clusters one."""
    cdef const SuffixNode* nodes = view.suffixes.nodes.data()
    while nodes[label].first_child >= 0:
        label = nodes[label].first_child
    return nodes[label].rooted[BY_CHILD] if nodes[label].rooted[BY_CHILD] >= 0 else nodes[label].rooted[BY_DESCENDANT]


cdef int list_cluster(PatternView view, AFilterScratch scratch, int32_t label) except -1 nogil:
    """Puts the paths that a suffix label clusters into `cluster`."""
    cdef const SuffixNode* nodes = view.suffixes.nodes.data()
    cdef int axis
    scratch.cluster.clear()
    scratch.pending.clear()
    scratch.pending.push_back(label)
    while scratch.pending.size():
        label = scratch.pending.back()
        scratch.pending.pop_back()
        for axis in range(2):
            if nodes[label].rooted[axis] >= 0:
                scratch.cluster.push_back(nodes[label].rooted[axis])
        label = nodes[label].first_child
        while label >= 0:
            scratch.pending.push_back(label)
            label = nodes[label].next_sibling
    return 0


cdef int remember_cluster(AFilterScratch scratch, int32_t label, int32_t number, uint32_t verdict) except -1 nogil:
    """SUCCESS: all of the cluster that holds at the object has been found in this document. FAILED: nothing of it holds."""
    cdef const StackObject* object = &scratch.branch.objects[number]
    return scratch.cache.put(scratch.branch, CLUSTER | label, object.element, object.depth, verdict)


# Early unfolding.

cdef int unfold(PatternView view, AFilterScratch scratch, const Frame* frame) except -1 nogil:
    """Traverses the paths of a cluster one by one."""
    cdef int32_t path, prefix
    cdef uint32_t verdict
    cdef size_t i
    scratch.counts[UNFOLDINGS] += 1
    list_cluster(view, scratch, frame.label)
    for i in range(scratch.cluster.size()):
        path = scratch.cluster[i]
        if scratch.is_done(view, path):
            report(scratch, SKIPPED)
            continue
        prefix = prefix_of(view, path, frame.height)
        verdict = look_up(scratch, prefix, frame.object)
        if verdict == UNKNOWN:
            verdict = traverse(view, scratch, path, view.assertions[path].size() - frame.height, frame.object)
            remember(scratch, prefix, frame.object, verdict)
        if verdict == SUCCESS:
            report(scratch, find(view, scratch, path))
    return 0


cdef inline uint32_t look_up(AFilterScratch scratch, int32_t prefix, int32_t number) noexcept nogil:
    cdef uint32_t verdict = scratch.cache.find(prefix, scratch.branch.objects[number].element)
    scratch.counts[CACHE_LOOKUPS] += 1
    scratch.counts[CACHE_HITS] += verdict != UNKNOWN
    return verdict


# Late unfolding.

cdef bint is_served(PatternView view, AFilterScratch scratch, Frame* frame) except -1 nogil:
    """Whether PRCache answers for the whole cluster. Otherwise the candidates that it answers for are removed."""
    cdef const SuffixNode* node = &view.suffixes.nodes[frame.label]
    cdef const StackObject* object = &scratch.branch.objects[frame.object]
    cdef uint32_t verdict
    cdef int32_t open_candidates
    if node.paths > 1:
        verdict = scratch.cache.find(CLUSTER | frame.label, object.element)
        scratch.counts[CACHE_LOOKUPS] += 1
        scratch.counts[CACHE_HITS] += verdict != UNKNOWN
        if verdict == FAILED or (verdict == SUCCESS and node.twig_paths == 0):
            scratch.counts[TRAVERSALS_PRUNED] += 1
            if verdict == SUCCESS:
                frame.outcome = SKIPPED
            return True
    if node.paths > LOOK_INTO or not object.cached & node.prefixes:
        return False
    open_candidates = serve(view, scratch, frame)
    if open_candidates == 0:
        scratch.counts[TRAVERSALS_PRUNED] += 1
        scratch.removed.resize(frame.removed_from)
        return True
    remove(view, scratch, frame)
    return False


cdef int32_t serve(PatternView view, AFilterScratch scratch, Frame* frame) except -1 nogil:
    """Looks up the candidates of a cluster; appends those that PRCache knows to `removed`. Returns how many are left."""
    cdef int32_t left = 0
    cdef int32_t path
    cdef uint32_t verdict
    cdef size_t i
    list_cluster(view, scratch, frame.label)
    for i in range(scratch.cluster.size()):
        path = scratch.cluster[i]
        if scratch.is_removed[path]:
            continue  # its prefixes need not be looked up: a longer one was served
        if scratch.is_done(view, path):
            frame.outcome |= SKIPPED
        else:
            verdict = look_up(scratch, prefix_of(view, path, frame.height), frame.object)
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
        label = view.place[scratch.removed[i]]
        while label != frame.label:
            scratch.states[label].removed += 1
            label = view.suffixes.nodes[label].parent
    return 0


cdef int put_back(PatternView view, AFilterScratch scratch, int32_t top, int32_t first) noexcept nogil:
    """Undoes the removals from `first` on, which were made at the suffix label `top`."""
    cdef int32_t label
    while <int32_t>scratch.removed.size() > first:
        label = view.place[scratch.removed.back()]
        scratch.is_removed[scratch.removed.back()] = 0
        scratch.removed.pop_back()
        while label != top:
            scratch.states[label].removed -= 1
            label = view.suffixes.nodes[label].parent
    return 0
