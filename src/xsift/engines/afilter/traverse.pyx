"""TriggerCheck and Traverse of AFilter, an assertion at a time.

A new stack object triggers the paths whose last label it has. TriggerCheck (Figure 7) drops those that cannot match:
an empty stack, more steps than the branch is deep. Traverse (Figure 9) follows the pointers of the rest towards
q_root.

The question here is whether a path matches, not in how many ways (tuple_traversal.pyx answers that), so a traversal
stops at the first success. It can stop at a failure too: when a step with a descendant axis fails at an object, it
fails at every object below in the stack, since those have fewer ancestors; then other objects for the steps that led
here need not be tried. That makes a traversal take time in proportion to the path's length and the depth, where
Figure 9 without cache is exponential.
"""

from libcpp.vector cimport vector

from xsift.engines.afilter.branch cimport StackBranch, StackObject
from xsift.engines.afilter.cache cimport FAILED, HOPELESS, SUCCESS, UNKNOWN, PRCache
from xsift.engines.afilter.labels cimport NONE, label_bit
from xsift.engines.afilter.view cimport Edge, PatternView, Trigger
from xsift.engines.paths cimport PathScratch
from xsift.native.types cimport int32_t, uint8_t, uint32_t
from xsift.xpath.pattern cimport CHILD, DESCENDANT


cdef class AFilterScratch(PathScratch):
    """StackBranch, PRCache and the state of the traversal at hand."""

    def __cinit__(self, branches, cache_bytes=None, bint failures_only=False, bint caches=False, bint early=False):
        self.branch = StackBranch()
        self.cache = PRCache(cache_bytes, failures_only)
        self.caches = caches and self.cache.largest > 0
        self.early = early and self.caches


cdef int trigger_check(PatternView view, AFilterScratch scratch, int32_t number) except -1 nogil:
    """Checks the trigger assertions of a new object; appends the paths that match to `found`."""
    cdef StackObject object = scratch.branch.objects[number]
    cdef const Edge* edges = view.axes.edges[object.label].data()
    cdef size_t i
    cdef int32_t slot
    for i in range(2):
        slot = object.parents[i]
        if slot >= 0:
            check_edge(view, scratch, number, &view.axes.child_triggers[edges[slot].number])
    for i in range(object.first_reached, scratch.branch.reached_end(number)):
        slot = scratch.branch.reached[i]
        check_edge(view, scratch, number, &view.axes.descendant_triggers[edges[slot].number])
    return 0


cdef int check_edge(PatternView view, AFilterScratch scratch, int32_t number, const vector[Trigger]* triggers
                    ) except -1 nogil:
    cdef StackObject object = scratch.branch.objects[number]
    cdef const Trigger* trigger = triggers.data()
    cdef uint32_t verdict
    cdef int32_t prefix, last
    cdef size_t i
    scratch.counts[TRIGGERS] += triggers.size()
    for i in range(triggers.size()):
        if trigger[i].labels & scratch.missing or trigger[i].length > object.depth:
            scratch.counts[TRIGGERS_PRUNED] += 1
        elif not scratch.is_done(view, trigger[i].path):
            last = trigger[i].length - 1
            verdict = traverse(view, scratch, trigger[i].path, last, number, 1, last - 1 if scratch.caches else 0)
            if verdict != SUCCESS:
                continue
            scratch.path_at[trigger[i].path] = scratch.trigger
            scratch.found.push_back(trigger[i].path)
            if scratch.caches:
                prefix = view.prefix_of(trigger[i].path, last)
                if view.prefixes.nodes[prefix].uses > 1:  # longer paths will ask for it below this object
                    remember(scratch, prefix, number, verdict)
    return 0


cdef uint32_t traverse(PatternView view, AFilterScratch scratch, int32_t path, int32_t first, int32_t number,
                       int32_t lowest, int32_t highest) except? 255 nogil:
    """Whether the steps up to `first` hold with that one at the object `number`. A loop, with `at` as its stack."""
    cdef const int32_t* slots = view.steps.data() + view.paths[path].first
    cdef const int32_t* prefixes = slots + view.paths[path].length  # read if lowest <= highest
    cdef const StackObject* objects = scratch.branch.objects.data()
    cdef const int32_t* pointers = scratch.branch.pointers.data()
    cdef int32_t step = first
    cdef int32_t object, target
    cdef uint32_t verdict
    cdef int32_t* at
    if scratch.at.size() <= <size_t>first:
        scratch.at.resize(first + 1)
    at = scratch.at.data()
    at[first] = number
    while True:
        # Downwards: from step to step, from object to object.
        object = at[step]
        target = pointers[objects[object].first_pointer + (slots[step] >> 1)]
        scratch.counts[TRAVERSALS] += 1
        if target < 0:
            verdict = HOPELESS  # objects further down the stack have no such pointer either
        elif not slots[step] & DESCENDANT and objects[target].depth != objects[object].depth - 1:
            verdict = FAILED
        elif step == 0:
            verdict = SUCCESS
        else:
            verdict = UNKNOWN
            if lowest <= step <= highest and objects[object].cached & label_bit(prefixes[step]):
                verdict = look_up(scratch, prefixes[step], object)
            if verdict == UNKNOWN:
                step -= 1
                at[step] = target
                continue
        # Upwards with the verdict, as far as it decides. What took one look at a pointer is not worth remembering.
        while step < first:
            if verdict != SUCCESS and slots[step + 1] & DESCENDANT:
                target = objects[at[step]].below
                if verdict != HOPELESS and target >= 0:
                    at[step] = target
                    break
                verdict = HOPELESS
            step += 1
            if lowest <= step <= highest:
                remember(scratch, prefixes[step], at[step], verdict)
        else:
            return verdict


cdef int remember(AFilterScratch scratch, int32_t prefix, int32_t number, uint32_t verdict) except -1 nogil:
    """Enters a prefix label's verdict for an object into PRCache."""
    cdef StackObject* object = &scratch.branch.objects[number]
    object.cached |= label_bit(prefix)
    scratch.counts[CACHE_ENTRIES] += 1
    scratch.counts[CACHE_EVICTIONS] += scratch.cache.put(
        scratch.branch, prefix, object.element, object.depth, verdict)
    return 0
