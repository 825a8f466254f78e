"""PatternView: AFilter's index of filter expressions. `engine.pyx` says what AFilter is.

AxisView is a graph with a node for each label. A step of a path, with the label before it, is an assertion (path, step)
on the edge from the step's label to that one; the assertions of last steps are triggers. The paper joins an incoming
candidate (path, step) with the local assertions (path, step - 1) of an edge by hashing. A path's assertions stand in
an array here, and each says which edge it is on, so that the join is an array access.

In the suffix-compressed AxisView an edge has one trigger an axis: a suffix label, or a path that shares its last two
steps with no other. The paths go on from there in the SFLabel-tree, whose labels know the slots of their edges.

Everything is linear in the number of steps, and kept up as paths come and go.
"""

from libcpp.vector cimport vector

from xsift.engines.afilter.labels cimport (
    NONE, Link, PRLabelTree, SFLabelTree, SuffixNode, label_bit, single, slot_bit,
)
from xsift.engines.paths cimport PathStep
from xsift.native.tables cimport FlatMap, pack
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint8_t, uint64_t
from xsift.xpath.pattern cimport CHILD, DESCENDANT


cdef class AxisView:
    """The graph of labels: stacks to keep, pointers to set, assertions that trigger."""

    cdef int32_t add_assertion(self, symbol_t source, symbol_t target) except -1:
        """Counts one more assertion on the edge from `source` to `target`; returns the edge's slot at `source`."""
        cdef int32_t slot = self.slot_of(source, target)
        cdef size_t labels = max(source, target) + 1
        if self.nodes.size() < labels:
            self.nodes.resize(labels, AxisNode(0, NONE, NONE))
            self.edges.resize(labels)
            self.targets.resize(labels)
        if slot < 0:
            slot = self._new_edge(source, target)
        self.edges[source][slot].assertions += 1
        self.nodes[source].assertions += 1
        self.assertion_count += 1
        return slot

    def _new_edge(self, symbol_t source, symbol_t target):
        cdef int32_t slot = self.nodes[source].free_slot
        cdef int32_t number = self.free_numbers.take(self.child_triggers.size())
        cdef Edge edge
        if <size_t>number == self.child_triggers.size():
            self.child_triggers.push_back(vector[Trigger]())
            self.descendant_triggers.push_back(vector[Trigger]())
        edge.target = target
        edge.number = number
        edge.assertions = 0
        edge.triggers[0] = Link(slot=NONE, target=NONE, required=0)
        edge.triggers[1] = Link(slot=NONE, target=NONE, required=0)
        if slot < 0:
            slot = <int32_t>self.edges[source].size()
            self.edges[source].push_back(edge)
            self.targets[source].push_back(stack_of(target))
        else:
            self.nodes[source].free_slot = self.edges[source][slot].number
            self.edges[source][slot] = edge
            self.targets[source][slot] = stack_of(target)
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
            self.free_numbers.give_back(edge.number)
            self.slots.erase(pack(source, target))
            edge.target = FREE_EDGE
            self.targets[source][slot] = stack_of(FREE_EDGE)
            edge.number = node.free_slot
            node.free_slot = slot
        if node.assertions == 0:
            self.edges[source].clear()
            self.edges[source].shrink_to_fit()
            self.targets[source].clear()
            self.targets[source].shrink_to_fit()
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
            size += sizeof(vector[int32_t]) + self.targets[i].capacity() * 4
        for i in range(self.child_triggers.size()):
            size += 2 * sizeof(vector[Trigger]) + sizeof(Trigger) * (
                self.child_triggers[i].capacity() + self.descendant_triggers[i].capacity())
        return size


cdef uint64_t labels_of(const vector[PathStep]& steps) noexcept nogil:
    """One bit a label of the path, hashed."""
    cdef uint64_t labels = 0
    cdef size_t step
    for step in range(steps.size()):
        labels |= label_bit(steps[step].symbol)
    return labels


cdef class PatternView:
    """AxisView with the trees that a deployment needs."""

    def __cinit__(self, bint has_prefixes=False, bint has_suffixes=False, bint has_assertions=False):
        self.axes = AxisView()
        self.prefixes = PRLabelTree()
        self.suffixes = SFLabelTree()
        self.has_prefixes = has_prefixes
        self.has_suffixes = has_suffixes
        self.has_assertions = has_assertions

    cdef int insert(self, int32_t name, const vector[PathStep]& steps) except -1:
        cdef int32_t length = <int32_t>steps.size()
        cdef int32_t path = self.new_path(name)
        cdef int32_t first = self.new_block(length)
        cdef int32_t prefix = NONE
        cdef symbol_t before = ROOT
        cdef int32_t step
        self.paths[path] = PathEntry(first, length, NONE)
        for step in range(length):
            self.steps[first + step] = self.axes.add_assertion(steps[step].symbol, before) * 2 + steps[step].axis
            before = steps[step].symbol
            if self.has_prefixes:
                prefix = self.prefixes.extend(prefix, steps[step].symbol, steps[step].axis)
                self.steps[first + length + step] = prefix
        if self.has_prefixes:
            self.prefixes.nodes[prefix].uses += 1
        if self.has_suffixes:
            self.insert_suffixes(path, steps)
        else:
            self.insert_trigger(path, steps)
        self.live += 1
        self.loose += 1
        self.version += 1
        return 0

    cdef int delete(self, int32_t name, const vector[PathStep]& steps) except -1:
        cdef int32_t path = self.numbers[name]
        cdef PathEntry entry = self.paths[path]
        cdef int32_t step
        self.mark_twig(name, False)
        if self.has_suffixes:
            self.delete_suffixes(path)
        else:
            self.delete_trigger(path, steps)
        if self.has_prefixes:
            self.prefixes.release(self.prefix_of(path, entry.length - 1))
        for step in range(entry.length):
            self.axes.remove_assertion(steps[step].symbol, steps[step - 1].symbol if step else <symbol_t>ROOT)
        self.free_block(entry)
        self.free_paths.give_back(path)
        self.paths[path] = PathEntry(0, 0, NONE)
        self.numbers[name] = NONE
        self.live -= 1
        self.version += 1
        return 0

    cdef int32_t new_path(self, int32_t name) except -1:
        cdef int32_t path = self.free_paths.take(self.paths.size())
        if <size_t>path == self.paths.size():
            self.paths.push_back(PathEntry(0, 0, NONE))
            self.names.push_back(name)
            self.in_twig.push_back(0)
        if self.numbers.size() <= <size_t>name:
            self.numbers.resize(name + 1, NONE)
        self.names[path] = name
        self.numbers[name] = path
        return path

    cdef int32_t new_block(self, int32_t length) except -1:
        """Room for the record of a path: where one of that length was before, or at the end."""
        cdef int32_t first
        if self.free_blocks.size() > <size_t>length and self.free_blocks[length].size():
            first = self.free_blocks[length].back()
            self.free_blocks[length].pop_back()
            return first
        first = <int32_t>self.steps.size()
        self.steps.resize(first + length * (2 if self.has_prefixes else 1))
        return first

    cdef int free_block(self, PathEntry entry) except -1:
        if self.free_blocks.size() <= <size_t>entry.length:
            self.free_blocks.resize(entry.length + 1)
        self.free_blocks[entry.length].push_back(entry.first)
        return 0

    cdef int mark_twig(self, int32_t name, bint needed) except -1:
        """Notes whether a twig needs the path."""
        cdef int32_t path = self.numbers[name]
        cdef int32_t label
        if self.in_twig[path] == needed:
            return 0
        self.in_twig[path] = needed
        label = self.paths[path].place if self.has_suffixes else NONE
        while label >= 0:
            self.suffixes.nodes[label].twig_paths += 1 if needed else -1
            label = self.suffixes.nodes[label].parent
        return 0

    # AxisView with an assertion a path and step.

    cdef int insert_trigger(self, int32_t path, const vector[PathStep]& steps) except -1:
        cdef int32_t last = <int32_t>steps.size() - 1
        cdef Edge edge = self.axes.edges[steps[last].symbol][self.slot_of(path, last) >> 1]
        cdef vector[Trigger]* triggers = self.axes.triggers(edge.number, steps[last].axis)
        self.paths[path].place = <int32_t>triggers.size()
        triggers.push_back(Trigger(labels_of(steps), path, last + 1))
        return 0

    cdef int delete_trigger(self, int32_t path, const vector[PathStep]& steps) except -1:
        cdef int32_t last = <int32_t>steps.size() - 1
        cdef Edge edge = self.axes.edges[steps[last].symbol][self.slot_of(path, last) >> 1]
        cdef vector[Trigger]* triggers = self.axes.triggers(edge.number, steps[last].axis)
        cdef Trigger moved = triggers.back()
        triggers[0][self.paths[path].place] = moved
        self.paths[moved.path].place = self.paths[path].place
        triggers.pop_back()
        if triggers.empty():
            triggers.shrink_to_fit()
        return 0

    # Suffix-compressed AxisView.

    cdef int insert_suffixes(self, int32_t path, const vector[PathStep]& steps) except -1:
        cdef int32_t step = <int32_t>steps.size() - 1
        cdef int32_t label = self.axes.nodes[steps[step].symbol].suffix
        cdef int32_t height = 1
        cdef uint64_t required = labels_of(steps)
        cdef uint64_t alone
        cdef SuffixNode* node
        cdef Link* link
        if label < 0:
            label = self.suffixes.new_label(NONE, steps[step].symbol, NONE)
            self.axes.nodes[steps[step].symbol].suffix = label
        while step > 0:
            link = self.link_of(label, self.slot_of(path, step))
            if link == NULL:
                break
            step -= 1
            height += 1
            alone = link.required
            link.required &= required
            if link.target >= 0:
                label = link.target
            else:
                label = self.make_cluster(label, height, steps[step].symbol, link, alone)
        self.attach(label, path, step, required)
        while label >= 0:
            node = &self.suffixes.nodes[label]
            node.paths += 1
            if self.has_prefixes:
                node.prefixes |= label_bit(self.prefix_of(path, step))
            if self.has_assertions:
                self.assertions.put(pack(self.prefix_of(path, step), label), path)
            label = node.parent
            step += 1
        return 0

    cdef int delete_suffixes(self, int32_t path) except -1:
        cdef int32_t label = self.paths[path].place
        cdef int32_t step = self.paths[path].length - self.height_of(label)
        cdef int32_t above
        cdef SuffixNode* node
        self.detach(label, path, step)
        while label >= 0:
            if self.has_assertions:
                self.assertions.erase(pack(self.prefix_of(path, step), label))
            step += 1
            node = &self.suffixes.nodes[label]
            above = node.parent
            node.paths -= 1
            if node.items == 0:
                if above >= 0:
                    self.unlink(above, self.suffixes.origins[label].slot)
                else:
                    self.axes.nodes[self.suffixes.origins[label].symbol].suffix = NONE
                self.suffixes.free(label)
            label = above
        return 0

    cdef int attach(self, int32_t label, int32_t path, int32_t step, uint64_t required) except -1:
        """Puts a path under a suffix label, which is at its step `step`."""
        cdef SuffixNode* node = &self.suffixes.nodes[label]
        cdef int32_t slot = self.slot_of(path, step)
        cdef Link link = Link(slot=slot, target=single(path), required=required)
        self.paths[path].place = label
        node.items += 1
        node.child_items += slot & 1 == CHILD
        if step == 0:
            node.rooted[slot & 1] = path
            return 0
        if slot & 1 == CHILD:
            node.child_slots |= slot_bit(slot >> 1)
        else:
            node.descendant_slots |= slot_bit(slot >> 1)
        if node.parent >= 0:
            return self.suffixes.add_link(label, link)
        self.trigger_link(label, slot)[0] = link
        return 0

    cdef int detach(self, int32_t label, int32_t path, int32_t step) except -1:
        cdef int32_t slot = self.slot_of(path, step)
        cdef SuffixNode* node = &self.suffixes.nodes[label]
        if step > 0:
            return self.unlink(label, slot)
        node.rooted[slot & 1] = NONE
        node.items -= 1
        node.child_items -= slot & 1 == CHILD
        return 0

    cdef int unlink(self, int32_t label, int32_t slot) except -1:
        cdef SuffixNode* node = &self.suffixes.nodes[label]
        node.items -= 1
        node.child_items -= slot & 1 == CHILD
        if node.parent < 0:
            self.trigger_link(label, slot).target = NONE
            return 0
        return self.suffixes.remove_link(label, slot)

    cdef int32_t make_cluster(self, int32_t label, int32_t height, symbol_t symbol, Link* link, uint64_t required
                              ) except -1:
        """Makes a suffix label where a link led to a single path (`required`: its labels); another shares it."""
        cdef int32_t path = single(link.target)
        cdef int32_t step = self.paths[path].length - height
        cdef int32_t made = self.suffixes.new_label(label, symbol, link.slot)
        cdef SuffixNode* node = &self.suffixes.nodes[made]
        link.target = made
        node.paths = 1
        node.twig_paths = self.in_twig[path]
        if self.has_prefixes:
            node.prefixes = label_bit(self.prefix_of(path, step))
        if self.has_assertions:
            self.assertions.put(pack(self.prefix_of(path, step), made), path)
        self.attach(made, path, step, required)
        return made

    cdef Link* trigger_link(self, int32_t label, int32_t slot) noexcept nogil:
        return &self.axes.edges[self.suffixes.origins[label].symbol][slot >> 1].triggers[slot & 1]

    cdef Link* link_of(self, int32_t label, int32_t slot) noexcept nogil:
        """The link of a suffix label on a slot, or NULL. Valid until the next one is added."""
        cdef const SuffixNode* node = &self.suffixes.nodes[label]
        cdef int32_t place
        cdef Link* link
        if node.parent < 0:
            link = self.trigger_link(label, slot)
            if link.target == NONE:
                return NULL
            return link
        place = self.suffixes.find_link(label, slot)
        if place < 0:
            return NULL
        return &self.suffixes.links[node.first_link + place]

    cdef int32_t height_of(self, int32_t label) noexcept nogil:
        """The number of steps of a suffix label."""
        cdef int32_t height = 0
        while label >= 0:
            height += 1
            label = self.suffixes.nodes[label].parent
        return height

    def memory(self):
        """Bytes by structure; what a deployment does not build is not there."""
        cdef int64_t assertions = self.paths.capacity() * sizeof(PathEntry) + 4 * (
            self.steps.capacity() + self.names.capacity() + self.numbers.capacity()) + self.free_paths.bytes()
        cdef size_t i
        assertions += self.in_twig.capacity() + self.free_blocks.capacity() * sizeof(vector[int32_t])
        for i in range(self.free_blocks.size()):
            assertions += self.free_blocks[i].capacity() * 4
        sizes = {"AxisView": self.axes.memory() + assertions}
        if self.has_prefixes:
            sizes["PRLabel-tree"] = self.prefixes.memory()
        if self.has_suffixes:
            sizes["SFLabel-tree"] = self.suffixes.memory() + self.assertions.bytes()
        return sizes

    # What the tests look at.

    def sizes(self):
        """How many there are of what the index is made of."""
        return {"edges": self.axes.slots.size(), "assertions": self.axes.assertion_count,
                "prefix labels": self.prefixes.used, "suffix labels": self.suffixes.used}

    def axis_view(self, paths):
        """(label, label before) -> assertions (path, step, axis, does it trigger). `paths` are lists of labels."""
        cdef int32_t path, step, slot
        edges = {}
        for name, labels in enumerate(paths):
            path = self.numbers[name]
            for step, label in enumerate(labels):
                slot = self.slot_of(path, step)
                edge = (label, self.axes.edges[label][slot >> 1].target)
                last = step == len(labels) - 1
                edges.setdefault(edge, []).append((name, step, "//" if slot & 1 else "/", last))
        return edges

    def prefix_labels_of(self, int32_t name):
        """The prefix label of each of the path's steps."""
        cdef int32_t path = self.numbers[name]
        return [self.prefix_of(path, step) for step in range(self.paths[path].length)]

    def suffix_labels_of(self, int32_t name):
        """The suffix label of each of the path's steps; None for suffixes that no other path has."""
        cdef int32_t path = self.numbers[name]
        cdef int32_t label = self.paths[path].place
        labels = []
        while label >= 0:
            labels.append(label)
            label = self.suffixes.nodes[label].parent
        return [None] * (self.paths[path].length - len(labels)) + labels
