"""StackBranch: AFilter's run-time picture of the path from the root to the innermost open element.

A stack for each label of AxisView, one for `*`, one for q_root. An object has the element's number, its depth, and for
each edge of its label a pointer to what was then the top of the target's stack: everything under that is an ancestor too,
so one pointer stands for all ancestors with that label. Its size depends on the depth and on AxisView's out-degrees,
not on the number of paths.
"""

from libc.string cimport memset
from libcpp.vector cimport vector

from xsift.engines.afilter.labels cimport NONE, label_bit, slot_bit
from xsift.engines.afilter.view cimport FREE_EDGE, ROOT, AxisView, stack_of
from xsift.native.types cimport int32_t, symbol_t


cdef class StackBranch:
    """The stacks, with Push (Figure 3) and Pop (Figure 5)."""

    cdef int clear(self, size_t labels) except -1 nogil:
        """Leaves q_root alone, with a stack for each of the labels. It costs what the last document left open."""
        cdef StackObject root
        while self.objects.size() > 1:
            self.drop()
        self.marks.clear()
        self.numbers.clear()
        self.labels_above.clear()
        self.labels = label_bit(ROOT)
        self.elements = 0
        if self.tops.size() < stack_of(0) + labels:
            self.tops.resize(stack_of(0) + labels, NONE)
        if self.objects.empty():
            memset(&root, 0, sizeof(root))
            root.label = ROOT
            root.below = NONE
            self.objects.push_back(root)
            self.tops[stack_of(ROOT)] = 0
        return 0

    cdef int push(self, AxisView view, symbol_t symbol) except -1 nogil:
        cdef size_t first = self.objects.size()
        cdef size_t i
        self.elements += 1
        self.marks.push_back(<int32_t>first)
        self.numbers.push_back(self.elements)
        self.labels_above.push_back(self.labels)
        # Both objects get their pointers before either is on its stack: an element is not its own ancestor.
        if symbol > 0 and <size_t>symbol < view.nodes.size() and view.nodes[symbol].assertions:
            self.new_object(view, symbol, self.depth())
        if view.nodes.size() and view.nodes[0].assertions:
            self.new_object(view, 0, self.depth())
        for i in range(first, self.objects.size()):
            self.tops[stack_of(self.objects[i].label)] = <int32_t>i
            self.labels |= label_bit(self.objects[i].label)
        return 0

    cdef int pop(self) noexcept nogil:
        if self.marks.empty():
            return 0  # an end tag too many: sources send balanced events, but a broken one must not crash us
        while <int32_t>self.objects.size() > self.marks.back():
            self.drop()
        self.labels = self.labels_above.back()
        self.labels_above.pop_back()
        self.marks.pop_back()
        self.numbers.pop_back()
        return 0

    cdef int32_t push_condition(self, AxisView view, symbol_t symbol) except -1 nogil:
        return self.new_object(view, symbol, self.depth() + 1)

    cdef int pop_condition(self) noexcept nogil:
        # It was never on its stack, since nothing can point to it; drop() leaves the stack as empty as it was.
        self.drop()
        return 0

    cdef int32_t new_object(self, AxisView view, symbol_t label, int32_t depth) except -1 nogil:
        cdef const int32_t* targets = view.targets[label].data()
        cdef int32_t number = <int32_t>view.targets[label].size()
        cdef StackObject made
        cdef int32_t slot, pointer
        cdef int32_t known_parents = 0
        cdef int32_t* pointers
        memset(&made, 0, sizeof(made))
        made.label = label
        made.element = self.elements
        made.depth = depth
        made.made_at = self.clock
        made.below = self.tops[stack_of(label)]
        made.first_pointer = <int32_t>self.pointers.size()
        made.first_reached = <int32_t>self.reached.size()
        made.parents[0] = NONE
        made.parents[1] = NONE
        self.pointers.resize(made.first_pointer + number)
        pointers = self.pointers.data() + made.first_pointer
        for slot in range(number):
            pointer = self.tops[targets[slot]]
            pointers[slot] = pointer
            if pointer >= 0:
                self.reached.push_back(slot)
                made.reached_slots |= slot_bit(slot)
                if self.objects[pointer].depth == depth - 1:
                    made.parents[known_parents] = slot
                    made.parent_slots |= slot_bit(slot)
                    known_parents += 1
        self.objects.push_back(made)
        return <int32_t>self.objects.size() - 1

    cdef void drop(self) noexcept nogil:
        cdef StackObject* object = &self.objects.back()
        self.tops[stack_of(object.label)] = object.below
        self.pointers.resize(object.first_pointer)
        self.reached.resize(object.first_reached)
        self.objects.pop_back()

    def memory(self):
        return (self.objects.capacity() * sizeof(StackObject) + 8 * self.labels_above.capacity() + 4 * (
            self.pointers.capacity() + self.reached.capacity() + self.tops.capacity() + self.marks.capacity()
            + self.numbers.capacity()))

    def as_dict(self, AxisView view):
        """The stacks: label -> objects (element, depth, label pointed to -> element or None), lowest first."""
        cdef StackObject object
        cdef int32_t slot, pointer
        stacks = {}
        for object in self.objects:
            pointers = {}
            if object.label != ROOT:
                for slot in range(<int32_t>view.edges[object.label].size()):
                    pointer = self.pointers[object.first_pointer + slot]
                    target = view.edges[object.label][slot].target
                    if target != FREE_EDGE:
                        pointers[target] = self.objects[pointer].element if pointer >= 0 else None
            stacks.setdefault(object.label, []).append((object.element, object.depth, pointers))
        return stacks
