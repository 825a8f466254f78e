"""PatternView: AFilter's index of filter expressions. `afilter.pyx` says what AFilter is.

AxisView is a graph with a node a label. A step of a path, with the label before it, is an assertion (path, step) on the
edge from the step's label to that one; the assertions of last steps are triggers. The paper joins an incoming candidate
(path, step) with the local assertions (path, step - 1) of an edge by hashing. A path's assertions stand in an array
here, and each says which edge it is on, so that the join is an array access.

PRLabel-tree and SFLabel-tree number the distinct prefixes and the distinct suffixes of the paths. A path has one
prefix label and one suffix label a step, and the pair of the two is the assertion: no two paths share both. In the
suffix-compressed AxisView an edge carries suffix labels instead of assertions. A suffix label is a node of the
SFLabel-tree, and knows the slot of its edge.

Everything is linear in the number of steps, and kept up as paths come and go.
"""

from libcpp.vector cimport vector

from xsift.engines.paths cimport PathStep
from xsift.native.tables cimport FlatMap, pack
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint8_t, uint64_t
from xsift.xpath.pattern cimport CHILD, DESCENDANT

cdef enum:
    MANY_CHILDREN = 12  # from here on a hash probe for each pointer is cheaper than a look at each child


cdef class AxisView:
    """The graph of labels: stacks to keep, pointers to set, assertions that trigger."""

    cdef int32_t add_assertion(self, symbol_t source, symbol_t target) except -1:
        """Counts one more assertion on the edge from `source` to `target`; returns the edge's slot at `source`."""
        cdef int32_t slot = self.slot_of(source, target)
        cdef size_t labels = max(source, target) + 1
        if self.nodes.size() < labels:
            self.nodes.resize(labels, AxisNode(0, NONE, NONE))
            self.edges.resize(labels)
        if slot < 0:
            slot = self._new_edge(source, target)
        self.edges[source][slot].assertions += 1
        self.nodes[source].assertions += 1
        self.assertion_count += 1
        return slot

    def _new_edge(self, symbol_t source, symbol_t target):
        cdef int32_t slot = self.nodes[source].free_slot
        cdef int32_t number
        cdef Edge edge
        if self.free_numbers.size():
            number = self.free_numbers.back()
            self.free_numbers.pop_back()
        else:
            number = <int32_t>self.child_triggers.size()
            self.child_triggers.push_back(vector[Trigger]())
            self.descendant_triggers.push_back(vector[Trigger]())
        edge.target = target
        edge.number = number
        edge.assertions = 0
        edge.suffix[BY_CHILD] = NONE
        edge.suffix[BY_DESCENDANT] = NONE
        if slot < 0:
            slot = <int32_t>self.edges[source].size()
            self.edges[source].push_back(edge)
        else:
            self.nodes[source].free_slot = self.edges[source][slot].number
            self.edges[source][slot] = edge
        self.slots.put(pack(source, target), slot)
        return slot

    cdef int remove_assertion(self, symbol_t source, symbol_t target) except -1:
        cdef int32_t slot = self.slot_of(source, target)
        cdef Edge* edge = &self.edges[source][slot]
        cdef AxisNode* node = &self.nodes[source]
        edge.assertions -= 1
        node.assertions -= 1
        self.assertion_count -= 1
        if edge.assertions == 0:
            self.free_numbers.push_back(edge.number)
            self.slots.erase(pack(source, target))
            edge.target = FREE_EDGE
            edge.number = node.free_slot
            node.free_slot = slot
        if node.assertions == 0:
            self.edges[source].clear()
            self.edges[source].shrink_to_fit()
            node.free_slot = NONE
        return 0

    cdef int32_t slot_of(self, symbol_t source, symbol_t target) noexcept nogil:
        return self.slots.get(pack(source, target), NONE)

    cdef vector[Trigger]* triggers(self, int32_t number, uint8_t axis) noexcept nogil:
        return &self.descendant_triggers[number] if axis == DESCENDANT else &self.child_triggers[number]

    def memory(self):
        cdef int64_t size = self.nodes.capacity() * sizeof(AxisNode) + self.slots.bytes()
        cdef size_t i
        for i in range(self.edges.size()):
            size += sizeof(vector[Edge]) + self.edges[i].capacity() * sizeof(Edge)
        for i in range(self.child_triggers.size()):
            size += 2 * sizeof(vector[Trigger]) + sizeof(Trigger) * (
                self.child_triggers[i].capacity() + self.descendant_triggers[i].capacity())
        return size


cdef class PRLabelTree:
    """The trie of prefixes: a number for every distinct beginning of a path."""

    def __cinit__(self):
        self.free_label = NONE

    cdef int32_t extend(self, int32_t prefix, symbol_t symbol, uint8_t axis) except -1:
        """The label of `prefix` and one more step, new or known."""
        cdef uint64_t key = pack(prefix, symbol * 2 + axis)
        cdef int32_t label = self.children.get(key, NONE)
        if label >= 0:
            return label
        label = self.free_label
        if label >= 0:
            self.free_label = self.nodes[label].parent
            self.nodes[label] = PrefixNode(prefix, symbol, 0, axis)
        else:
            label = <int32_t>self.nodes.size()
            self.nodes.push_back(PrefixNode(prefix, symbol, 0, axis))
        self.children.put(key, label)
        if prefix >= 0:
            self.nodes[prefix].uses += 1
        self.used += 1
        return label

    cdef int release(self, int32_t prefix) except -1:
        """Takes one use away; labels without use are free again."""
        cdef PrefixNode* node
        cdef int32_t parent
        while prefix >= 0:
            node = &self.nodes[prefix]
            node.uses -= 1
            if node.uses:
                break
            parent = node.parent
            self.children.erase(pack(parent, node.symbol * 2 + node.axis))
            node.parent = self.free_label
            self.free_label = prefix
            self.used -= 1
            prefix = parent
        return 0

    def memory(self):
        return self.nodes.capacity() * sizeof(PrefixNode) + self.children.bytes()


cdef class SFLabelTree:
    """The trie of suffixes: a number for every distinct end of a path, and the paths that have it."""

    def __cinit__(self):
        self.free_label = NONE

    cdef int32_t find_child(self, int32_t parent, int32_t slot, uint8_t axis) noexcept nogil:
        cdef int32_t child
        if self.nodes[parent].wide:
            return self.wide.get(pack(parent, slot * 2 + axis), NONE)
        child = self.nodes[parent].first_child
        while child >= 0 and (self.nodes[child].slot != slot or self.nodes[child].axis != axis):
            child = self.nodes[child].next_sibling
        return child

    cdef int32_t new_label(self, int32_t parent, symbol_t symbol, int32_t slot, uint8_t axis) except -1:
        cdef SuffixNode node = SuffixNode(
            first_child=NONE, next_sibling=NONE, previous_sibling=NONE, slot=slot, items=0, child_items=0, paths=0,
            twig_paths=0, parent=parent, symbol=symbol, prefixes=0, axis=axis, wide=0)
        cdef int32_t label = self.free_label
        cdef SuffixNode* above
        node.rooted[BY_CHILD] = NONE
        node.rooted[BY_DESCENDANT] = NONE
        if label >= 0:
            self.free_label = self.nodes[label].next_sibling
        else:
            label = <int32_t>self.nodes.size()
            self.nodes.push_back(node)
        if parent >= 0:
            above = &self.nodes[parent]
            node.next_sibling = above.first_child
            if node.next_sibling >= 0:
                self.nodes[node.next_sibling].previous_sibling = label
            above.first_child = label
            above.items += 1
            above.child_items += axis == CHILD
            if above.wide:
                self.wide.put(pack(parent, slot * 2 + axis), label)
        self.nodes[label] = node
        self.used += 1
        if parent >= 0 and self.nodes[parent].items > MANY_CHILDREN and not self.nodes[parent].wide:
            self.widen(parent)
        return label

    cdef int widen(self, int32_t label) except -1:
        cdef int32_t child = self.nodes[label].first_child
        self.nodes[label].wide = 1
        while child >= 0:
            self.wide.put(pack(label, self.nodes[child].slot * 2 + self.nodes[child].axis), child)
            child = self.nodes[child].next_sibling
        return 0

    cdef int free(self, int32_t label) except -1:
        """Gives back a label that clusters nothing any more."""
        cdef SuffixNode* node = &self.nodes[label]
        cdef SuffixNode* above
        if node.parent >= 0:
            above = &self.nodes[node.parent]
            above.items -= 1
            above.child_items -= node.axis == CHILD
            if above.wide:
                self.wide.erase(pack(node.parent, node.slot * 2 + node.axis))
            if node.previous_sibling >= 0:
                self.nodes[node.previous_sibling].next_sibling = node.next_sibling
            else:
                above.first_child = node.next_sibling
            if node.next_sibling >= 0:
                self.nodes[node.next_sibling].previous_sibling = node.previous_sibling
        node.next_sibling = self.free_label
        self.free_label = label
        self.used -= 1
        return 0

    def memory(self):
        return self.nodes.capacity() * sizeof(SuffixNode) + self.wide.bytes()


cdef class PatternView:
    """AxisView with the trees that a deployment needs."""

    def __cinit__(self, bint has_prefixes=False, bint has_suffixes=False):
        self.axes = AxisView()
        self.prefixes = PRLabelTree()
        self.suffixes = SFLabelTree()
        self.has_prefixes = has_prefixes
        self.has_suffixes = has_suffixes

    cdef int insert(self, int32_t path, const vector[PathStep]& steps) except -1:
        cdef int32_t step, slot
        cdef int32_t prefix = NONE
        cdef symbol_t before = ROOT
        cdef vector[Assertion] assertions
        if self.assertions.size() <= <size_t>path:
            self.assertions.resize(path + 1)
            self.place.resize(path + 1, NONE)
            self.in_twig.resize(path + 1, 0)
        for step in range(<int32_t>steps.size()):
            slot = self.axes.add_assertion(steps[step].symbol, before)
            if self.has_prefixes:
                prefix = self.prefixes.extend(prefix, steps[step].symbol, steps[step].axis)
            assertions.push_back(Assertion(slot * 2 + steps[step].axis, prefix))
            before = steps[step].symbol
        if prefix >= 0:
            self.prefixes.nodes[prefix].uses += 1
        if self.has_prefixes or not self.has_suffixes:
            self.assertions[path] = assertions
        if self.has_suffixes:
            self.insert_suffixes(path, steps)
        else:
            self.insert_trigger(path, steps)
        self.version += 1
        return 0

    cdef int delete(self, int32_t path, const vector[PathStep]& steps) except -1:
        cdef int32_t step
        self.mark_twig(path, False)
        if self.has_suffixes:
            self.delete_suffixes(path, steps)
        else:
            self.delete_trigger(path, steps)
        if self.has_prefixes:
            self.prefixes.release(self.assertions[path].back().prefix)
        self.assertions[path].clear()
        self.assertions[path].shrink_to_fit()
        for step in range(<int32_t>steps.size()):
            self.axes.remove_assertion(steps[step].symbol, steps[step - 1].symbol if step else <symbol_t>ROOT)
        self.version += 1
        return 0

    cdef int mark_twig(self, int32_t path, bint needed) except -1:
        """Notes whether a twig needs the path."""
        cdef int32_t label
        if self.in_twig[path] == needed:
            return 0
        self.in_twig[path] = needed
        label = self.place[path] if self.has_suffixes else NONE
        while label >= 0:
            self.suffixes.nodes[label].twig_paths += 1 if needed else -1
            label = self.suffixes.nodes[label].parent
        return 0

    cdef int32_t slot(self, const vector[PathStep]& steps, int32_t step) noexcept nogil:
        """The slot of the edge that the assertion of a step is on."""
        return self.axes.slot_of(steps[step].symbol, steps[step - 1].symbol if step else <symbol_t>ROOT)

    # AxisView with an assertion a path and step.

    cdef int insert_trigger(self, int32_t path, const vector[PathStep]& steps) except -1:
        cdef int32_t step
        cdef int32_t last = <int32_t>steps.size() - 1
        cdef Edge edge = self.axes.edges[steps[last].symbol][self.slot(steps, last)]
        cdef vector[Trigger]* triggers = self.axes.triggers(edge.number, steps[last].axis)
        cdef uint64_t labels = 0
        for step in range(last + 1):
            labels |= label_bit(steps[step].symbol)
        self.place[path] = <int32_t>triggers.size()
        triggers.push_back(Trigger(labels, path, last + 1))
        return 0

    cdef int delete_trigger(self, int32_t path, const vector[PathStep]& steps) except -1:
        cdef int32_t last = <int32_t>steps.size() - 1
        cdef Edge edge = self.axes.edges[steps[last].symbol][self.slot(steps, last)]
        cdef vector[Trigger]* triggers = self.axes.triggers(edge.number, steps[last].axis)
        cdef Trigger moved = triggers.back()
        triggers[0][self.place[path]] = moved
        self.place[moved.path] = self.place[path]
        triggers.pop_back()
        if triggers.empty():
            triggers.shrink_to_fit()
        return 0

    # Suffix-compressed AxisView.

    cdef int insert_suffixes(self, int32_t path, const vector[PathStep]& steps) except -1:
        cdef int32_t step = <int32_t>steps.size() - 1
        cdef int32_t label = self.axes.nodes[steps[step].symbol].suffix
        cdef int32_t slot, child
        cdef SuffixNode* node
        if label < 0:
            label = self.suffixes.new_label(NONE, steps[step].symbol, NONE, CHILD)
            self.axes.nodes[steps[step].symbol].suffix = label
        while step > 0:
            slot = self.slot(steps, step)
            child = self.suffixes.find_child(label, slot, steps[step].axis)
            if child < 0:
                child = self.suffixes.new_label(label, steps[step - 1].symbol, slot, steps[step].axis)
                if self.suffixes.nodes[label].parent < 0:
                    self.axes.edges[steps[step].symbol][slot].suffix[steps[step].axis] = child
            label = child
            step -= 1
        node = &self.suffixes.nodes[label]
        node.rooted[steps[0].axis] = path
        node.items += 1
        node.child_items += steps[0].axis == CHILD
        self.place[path] = label
        while label >= 0:
            node = &self.suffixes.nodes[label]
            node.paths += 1
            if self.has_prefixes:
                node.prefixes |= label_bit(self.assertions[path][step].prefix)
            label = node.parent
            step += 1
        return 0

    cdef int delete_suffixes(self, int32_t path, const vector[PathStep]& steps) except -1:
        cdef int32_t label = self.place[path]
        cdef int32_t parent
        cdef int32_t step = 0
        cdef SuffixNode* node = &self.suffixes.nodes[label]
        node.rooted[steps[0].axis] = NONE
        node.items -= 1
        node.child_items -= steps[0].axis == CHILD
        while label >= 0:
            node = &self.suffixes.nodes[label]
            node.paths -= 1
            parent = node.parent
            if node.items == 0:
                if parent < 0:
                    self.axes.nodes[node.symbol].suffix = NONE
                elif self.suffixes.nodes[parent].parent < 0:
                    self.axes.edges[steps[step + 1].symbol][node.slot].suffix[node.axis] = NONE
                self.suffixes.free(label)
            label = parent
            step += 1
        return 0

    def memory(self):
        """Bytes by structure. Tests count with it; what is not built is not there."""
        cdef int64_t assertions = self.place.capacity() * 4 + self.in_twig.capacity()
        cdef size_t i
        for i in range(self.assertions.size()):
            assertions += sizeof(vector[Assertion]) + self.assertions[i].capacity() * sizeof(Assertion)
        sizes = {"AxisView": self.axes.memory() + assertions}
        if self.has_prefixes:
            sizes["PRLabel-tree"] = self.prefixes.memory()
        if self.has_suffixes:
            sizes["SFLabel-tree"] = self.suffixes.memory()
        return sizes
