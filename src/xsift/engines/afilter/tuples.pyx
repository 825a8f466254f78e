"""Path-tuples: every instantiation of a path in a document, an element number a step, one at a time.

Their number can be exponential in the length of the path (`//a//a//a` on nested `a`s), so nothing is collected. When
the object of the path's last step is pushed, the objects that can stand for each earlier step are marked, first step
first, in time proportional to steps × depth. Then Traverse (Figure 9) follows the pointers backwards and visits
marked objects only, so that no way is a dead end: after each tuple the next one is at most steps × depth away, and
memory stays at that too.
"""

from libcpp.algorithm cimport reverse, upper_bound
from libcpp.vector cimport vector

from xsift.document.events cimport END, RecordedEvents, EventSource, condition_symbol
from xsift.engines.afilter.branch cimport StackBranch, StackObject
from xsift.engines.afilter.labels cimport NONE
from xsift.engines.afilter.view cimport PatternView, stack_of
from xsift.native.types cimport int32_t, int64_t, symbol_t

from xsift.errors import EngineError


cdef class PathTuples:
    """Iterates over the tuples of one path: by last element in document order, then from inner to outer ancestors."""

    cdef PatternView view
    cdef StackBranch branch
    cdef EventSource source
    cdef vector[int32_t] codes          # the chunk at hand: others may read the source meanwhile
    cdef size_t next_code
    cdef vector[symbol_t] labels        # by step
    cdef vector[int32_t] slots          # by step: as in PatternView
    cdef bint ends_in_condition         # then the last step has no place in the tuples
    cdef int64_t version                # of the index
    cdef int64_t left                   # how many tuples may still come; negative: any number
    cdef int32_t trigger                # the object of the last step, while its tuples are enumerated; else NONE
    cdef vector[vector[int32_t]] marks  # by step: the objects that can stand for it, outermost first
    cdef vector[int32_t] chosen         # by step: which of the marks

    def __init__(self, PatternView view not None, int32_t path, list labels, bint ends_in_condition,
                 EventSource source not None, limit):
        self.view = view
        self.version = view.version
        self.branch = StackBranch()
        self.branch.clear(view.axes.nodes.size())
        self.source = source
        self.labels = labels
        self.slots = [view.slot_of(path, step) for step in range(len(labels))]
        self.ends_in_condition = ends_in_condition
        self.left = -1 if limit is None else limit
        self.trigger = NONE
        self.marks.resize(len(labels))
        self.chosen.resize(len(labels))
        if isinstance(source, RecordedEvents):
            (<RecordedEvents>source).rewind()

    def __iter__(self):
        return self

    def __next__(self):
        if self.view.version != self.version:
            raise EngineError("index-changed", "patterns were added or removed while tuples were being read",
                              hint="read the tuples to their end first, or ask for them again")
        if self.left == 0 or not (self.next_choice() or self.next_trigger()):
            raise StopIteration
        if self.left > 0:
            self.left -= 1
        return tuple(self.branch.objects[self.marks[step][self.chosen[step]]].element
                     for step in range(self.labels.size() - self.ends_in_condition))

    cdef bint next_trigger(self) except -1:
        """Reads on to the next object that is the last step of a tuple, and makes the first choice for it."""
        cdef int32_t code
        cdef symbol_t last = self.labels.back()
        while True:
            self.drop_condition()
            if self.next_code == self.codes.size():
                self.next_code = 0
                if self.source.fill() == 0:
                    self.codes.clear()
                    return False
                self.codes = self.source.codes
            code = self.codes[self.next_code]
            self.next_code += 1
            if code == END:
                self.branch.pop()
            elif code >= 0:
                self.branch.push(self.view.axes, code)
                if not self.ends_in_condition and (last == 0 or code == last):
                    self.trigger = self.branch.tops[stack_of(last)]
            elif self.ends_in_condition and condition_symbol(code) == last:
                self.trigger = self.branch.push_condition(self.view.axes, last)
            if self.trigger >= 0 and self.mark():
                return True

    cdef int drop_condition(self) except -1:
        """The object of the last trigger is done with; a condition's goes."""
        if self.trigger >= 0 and self.ends_in_condition:
            self.branch.pop_condition()
        self.trigger = NONE
        return 0

    cdef bint mark(self) except -1:
        """Marks the objects that can stand for each step; whether there is a tuple."""
        cdef int32_t last = <int32_t>self.labels.size() - 1
        cdef int32_t step, object
        for step in range(last + 1):
            self.marks[step].clear()
            object = self.trigger if step == last else self.branch.tops[stack_of(self.labels[step])]
            while object >= 0:
                if self.can_stand(step, object):
                    self.marks[step].push_back(object)
                object = NONE if step == last else self.branch.objects[object].below
            if self.marks[step].empty():
                return False
            reverse(self.marks[step].begin(), self.marks[step].end())
        self.chosen[last] = 0
        self.choose_before(last)
        return True

    cdef bint can_stand(self, int32_t step, int32_t object) noexcept:
        """Whether an object has one that can stand for the step before, on this step's axis."""
        cdef int32_t target = self.pointer(step, object)
        cdef int32_t place
        if target < 0:
            return False
        if not self.slots[step] & 1 and self.branch.objects[target].depth != self.branch.objects[object].depth - 1:
            return False
        if step == 0:
            return True
        place = self.last_mark(step - 1, target)
        return place >= 0 and (self.slots[step] & 1 or self.marks[step - 1][place] == target)

    cdef int32_t pointer(self, int32_t step, int32_t object) noexcept:
        return self.branch.pointers[self.branch.objects[object].first_pointer + (self.slots[step] >> 1)]

    cdef int32_t last_mark(self, int32_t step, int32_t object) noexcept:
        """The place of the innermost mark of a step that is the object or under it in the stack, or NONE."""
        return <int32_t>(upper_bound(self.marks[step].begin(), self.marks[step].end(), object)
                         - self.marks[step].begin()) - 1

    cdef int choose_before(self, int32_t step) except -1:
        """Makes the first choice for all steps before `step`."""
        while step > 0:
            self.chosen[step - 1] = self.last_mark(step - 1, self.pointer(step, self.marks[step][self.chosen[step]]))
            step -= 1
        return 0

    cdef bint next_choice(self) except -1:
        """The next tuple with the same last element."""
        cdef int32_t step = 0
        if self.trigger < 0:
            return False
        while step + 1 < <int32_t>self.labels.size():
            if self.slots[step + 1] & 1 and self.chosen[step] > 0:
                self.chosen[step] -= 1
                self.choose_before(step)
                return True
            step += 1
        return False
