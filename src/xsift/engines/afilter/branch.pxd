from libcpp.vector cimport vector

from xsift.engines.afilter.view cimport AxisView
from xsift.native.types cimport int32_t, symbol_t, uint32_t, uint64_t

cdef struct StackObject:
    symbol_t label
    int32_t element        # its number, from 1; 0 for q_root
    int32_t depth          # of a condition: one more than its element's
    int32_t below          # the object under it in its stack, or NONE
    int32_t first_pointer  # in StackBranch.pointers; slot i of the label's edges is i further
    int32_t first_reached  # in StackBranch.reached
    int32_t parents[2]     # the slots whose pointers lead to the parent: on its label's stack, and on that of `*`
    uint32_t made_at       # StackBranch.clock when it was pushed
    uint64_t parent_slots  # one bit a slot (modulo 64) of these
    uint64_t reached_slots # one bit a slot (modulo 64) in `reached`
    uint64_t cached        # one bit a prefix label that PRCache got for this object, hashed


cdef class StackBranch:
    # All stacks of the branch. Objects come and go last in, first out over all stacks, so they lie in one array, and
    # a pointer is an index into it. objects[0] is q_root's.
    cdef vector[StackObject] objects
    cdef vector[int32_t] pointers  # for each object, one for each edge of its label: an object, or NONE
    cdef vector[int32_t] reached   # for each object, the slots of its pointers that are not NONE
    cdef vector[int32_t] tops      # by stack_of(label): the topmost object, or NONE
    cdef vector[int32_t] marks     # for each open element, how many objects there were before it
    cdef vector[int32_t] numbers   # of the open elements, outermost first
    cdef uint64_t labels           # one bit a label on the branch, hashed: stacks that hold something
    cdef vector[uint64_t] labels_above  # what `labels` was before each open element
    cdef int32_t elements          # so far in the document
    cdef uint32_t clock            # the trigger that is being checked, or was last

    cdef int clear(self, size_t labels) except -1 nogil
    # Opens an element and pushes its objects. They are objects[marks.back():]: none, one or two (the second for `*`).
    cdef int push(self, AxisView view, symbol_t symbol) except -1 nogil
    cdef int pop(self) noexcept nogil
    # Pushes the object of a condition that holds for the innermost open element. It is popped at once.
    cdef int32_t push_condition(self, AxisView view, symbol_t symbol) except -1 nogil
    cdef int pop_condition(self) noexcept nogil
    cdef int32_t new_object(self, AxisView view, symbol_t label, int32_t depth) except -1 nogil
    cdef void drop(self) noexcept nogil

    # Where the slots in `reached` of an object end.
    cdef inline size_t reached_end(self, int32_t number) noexcept nogil:
        if <size_t>number + 1 < self.objects.size():
            return self.objects[number + 1].first_reached
        return self.reached.size()
    cdef inline int32_t depth(self) noexcept nogil:
        return <int32_t>self.numbers.size()
    cdef inline bint is_open(self, int32_t element, int32_t depth) noexcept nogil:
        return 1 <= depth <= <int32_t>self.numbers.size() and self.numbers[depth - 1] == element
