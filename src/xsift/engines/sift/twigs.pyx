"""TwigIndex: the sub-patterns of all twigs, each distinct one kept once.

A twig is a *top*: the first step from the root at which it branches (or that has a condition), the path that leads there,
and *edges* to what must be below. An edge is an axis and a *sub*-pattern: a name with edges of its own; a condition is an
edge too. Equal subs are one sub, so that `[body/p]` of ten thousand subscriptions is decided once an element.

While a document is read, an element collects the edges that hold for it. A node (sub or top) is looked at only when
its trigger holds: of its edges, the one that has the fewest other nodes listed under it.
"""

from libcpp.algorithm cimport sort
from libcpp.string cimport string
from libcpp.vector cimport vector

import numpy as np

from xsift.native.saving cimport from_numpy, table_from_numpy, table_to_numpy, to_numpy
from xsift.native.tables cimport pack
from xsift.native.types cimport uint32_t
from xsift.xpath.pattern cimport CHILD, DESCENDANT, Pattern, PatternNode

cdef enum:
    FREE = -1


cdef class TwigIndex:
    """Subs, tops and edges, and where to find those that an edge makes worth looking at."""

    cdef int32_t add(self, Pattern pattern, int32_t top_step, int32_t state, int32_t key) except -1:
        """Adds a twig whose first branching step is `top_step`; returns the number of its top."""
        cdef int32_t top, step
        cdef vector[int32_t] subs
        cdef TwigNode made
        subs.resize(pattern.nodes.size(), -1)
        for step in range(<int32_t>pattern.nodes.size() - 1, top_step, -1):
            if not pattern.nodes[step].is_condition:
                subs[step] = self._sub_of(pattern, step, subs)
        made = self._new_node(pattern, top_step, subs)
        made.uses = 1
        made.key = key
        made.state = state
        if self.free_tops.size():
            top = self.free_tops.back()
            self.free_tops.pop_back()
            self.tops.edit(top)[0] = made
        else:
            top = <int32_t>self.tops.size()
            self.tops.push_back(made)
        self._list(~top)
        self.top_count += 1
        return top

    cdef int remove(self, int32_t top) except -1:
        self._unlist(~top)
        self._release_edges(~top)
        self.tops.edit(top).uses = FREE
        self.free_tops.push_back(top)
        self.top_count -= 1
        return 0

    # Making subs and edges.

    cdef int32_t _sub_of(self, Pattern pattern, int32_t step, vector[int32_t]& subs) except -1:
        """The sub of a step whose children have theirs already."""
        cdef string key
        cdef vector[int32_t] edges
        cdef int32_t ordered, sub
        cdef symbol_t symbol = pattern.nodes[step].symbol
        ordered = self._edges_of(pattern, step, subs, edges)
        key.append(<const char*>&symbol, sizeof(symbol_t))
        key.append(<const char*>&ordered, sizeof(int32_t))
        key.append(<const char*>edges.data(), edges.size() * sizeof(int32_t))
        sub = self.sub_keys.add(key.data(), key.size())
        if sub == <int32_t>self.subs.size():
            self.subs.push_back(TwigNode(symbol, 0, 0, 0, -1, FREE, -1, -1, -1, -1))
        if self.subs[sub].uses == FREE:
            self.subs.edit(sub)[0] = self._filled(symbol, ordered, edges)
            self._list(sub)
            if edges.empty():
                if self.leaf_sub.size() <= <size_t>symbol:
                    self.leaf_sub.resize(symbol + 1, -1)
                self.leaf_sub.edit(symbol)[0] = sub
        return sub

    cdef TwigNode _new_node(self, Pattern pattern, int32_t step, vector[int32_t]& subs) except *:
        cdef vector[int32_t] edges
        cdef int32_t ordered = self._edges_of(pattern, step, subs, edges)
        return self._filled(pattern.nodes[step].symbol, ordered, edges)

    cdef TwigNode _filled(self, symbol_t symbol, int32_t ordered, vector[int32_t]& edges) except *:
        cdef int32_t at = <int32_t>self.edge_pool.size()
        cdef int32_t edge
        for edge in edges:
            self.edge_pool.push_back(edge)
            self.edges.edit(edge).uses += 1
        return TwigNode(symbol, at, <int32_t>edges.size(), ordered, -1, 0, -1, -1, -1, -1)

    cdef int32_t _edges_of(self, Pattern pattern, int32_t step, vector[int32_t]& subs,
                           vector[int32_t]& edges) except -1:
        """The edges of a step, ordered ones first, the rest ascending; returns how many are ordered."""
        cdef vector[int32_t] elements
        cdef int32_t child = pattern.nodes[step].first_child
        cdef int32_t ordered = 0
        while child >= 0:
            if pattern.nodes[child].is_condition:
                edges.push_back(self._condition_edge(pattern.nodes[child].symbol))
            else:
                elements.push_back(self._edge_to(subs[child], pattern.nodes[child].axis))
            child = pattern.nodes[child].next_sibling
        if pattern.ordered and elements.size() > 1:
            ordered = <int32_t>elements.size()
            sort(edges.begin(), edges.end())
            edges.insert(edges.begin(), elements.begin(), elements.end())
        else:
            edges.insert(edges.end(), elements.begin(), elements.end())
            sort(edges.begin(), edges.end())
        return ordered

    cdef int32_t _edge_to(self, int32_t sub, uint8_t axis) except -1:
        cdef int32_t edge = self.subs[sub].child_edge if axis == CHILD else self.subs[sub].descendant_edge
        if edge >= 0:
            return edge
        edge = self._new_edge(Edge(sub, 0, 0, axis, 0, -1))
        self.subs.edit(sub).uses += 1
        if axis == CHILD:
            self.subs.edit(sub).child_edge = edge
        else:
            self.subs.edit(sub).descendant_edge = edge
        return edge

    cdef int32_t _condition_edge(self, symbol_t condition) except -1:
        cdef int32_t edge
        if self.condition_edge.size() <= <size_t>condition:
            self.condition_edge.resize(condition + 1, -1)
        if self.condition_edge[condition] < 0:
            edge = self._new_edge(Edge(-1, condition, 0, CHILD, 0, -1))
            self.condition_edge.edit(condition)[0] = edge
        return self.condition_edge[condition]

    cdef int32_t _new_edge(self, Edge made) except -1:
        cdef int32_t edge
        if self.free_edges.size():
            edge = self.free_edges.back()
            self.free_edges.pop_back()
            self.edges.edit(edge)[0] = made
        else:
            edge = <int32_t>self.edges.size()
            self.edges.push_back(made)
            self.ordered_uses.add_list()
        return edge

    cdef int _release_edges(self, int32_t node) except -1:
        """Gives up a node's edges; what nobody else uses goes with them, down to the leaves."""
        cdef vector[int32_t] pending
        cdef int32_t at, edge, sub, i
        pending.push_back(node)
        while pending.size():
            at = pending.back()
            pending.pop_back()
            for i in range(self.node(at).edge_count):
                edge = self.edge_pool[self.node(at).edges + i]
                self.edges.edit(edge).uses -= 1
                if self.edges[edge].uses:
                    continue
                self.free_edges.push_back(edge)
                sub = self.edges[edge].sub
                if sub < 0:
                    self.condition_edge.edit(self.edges[edge].condition)[0] = -1
                    continue
                if self.edges[edge].axis == CHILD:
                    self.subs.edit(sub).child_edge = -1
                else:
                    self.subs.edit(sub).descendant_edge = -1
                self.subs.edit(sub).uses -= 1
                if self.subs[sub].uses == 0:
                    self.subs.edit(sub).uses = FREE
                    self._unlist(sub)
                    if self.subs[sub].edge_count == 0:
                        self.leaf_sub.edit(self.subs[sub].symbol)[0] = -1
                    pending.push_back(sub)
        return 0

    # Where an edge finds the nodes that it makes worth looking at.

    cdef int _list(self, int32_t number) except -1:
        cdef const TwigNode* node = self.node(number)
        cdef int32_t i, edge, best, list_number
        cdef Trigger trigger = Trigger(number, -1, -1, 2 * <uint32_t>max(0, node.key) + (node.edge_count > 3))
        if node.ordered:
            for i in range(node.ordered):
                self.ordered_uses.push(self.edge_pool[node.edges + i], OrderedUse(number, i))
            self.ordered_count += 1
            return 0
        if node.edge_count == 0:
            return 0
        best = self.edge_pool[node.edges]
        for i in range(1, node.edge_count):
            edge = self.edge_pool[node.edges + i]
            if self._listed(node.symbol, edge) < self._listed(node.symbol, best):
                best = edge
        for i in range(node.edge_count):
            edge = self.edge_pool[node.edges + i]
            if edge != best:
                trigger.third = trigger.other
                trigger.other = edge
        list_number = self.trigger_list.get(pack(node.symbol, best), -1)
        if list_number < 0:
            list_number = self.triggers.add_list()
            self.trigger_list.put(pack(node.symbol, best), list_number)
        # The edge may be a new one under the number, and the list, of an old one.
        if node.symbol:
            self.edges.edit(best).names |= name_bit(node.symbol)
        else:
            self.edges.edit(best).star_list = list_number
        self.triggers.push(list_number, trigger)
        self.edit_node(number).trigger = best
        return 0

    cdef size_t _listed(self, symbol_t symbol, int32_t edge) noexcept:
        cdef int32_t list_number = self.trigger_list.get(pack(symbol, edge), -1)
        return self.triggers.count(list_number) if list_number >= 0 else 0

    cdef int _unlist(self, int32_t number) except -1:
        cdef const TwigNode* node = self.node(number)
        cdef int32_t i, list_number
        if node.ordered:
            for i in range(node.ordered):
                self._forget_ordered_use(self.edge_pool[node.edges + i], number)
            self.ordered_count -= 1
        elif node.trigger >= 0:
            list_number = self.trigger_list.get(pack(node.symbol, node.trigger), -1)
            for i in range(self.triggers.count(list_number)):
                if self.triggers.data(list_number)[i].node == number:
                    self.triggers.erase(list_number, i)
                    break
        return 0

    cdef int _forget_ordered_use(self, int32_t edge, int32_t number) except -1:
        cdef int32_t i = 0
        while i < self.ordered_uses.count(edge):
            if self.ordered_uses.data(edge)[i].node == number:
                self.ordered_uses.erase(edge, i)
            else:
                i += 1
        return 0

    cdef int64_t bytes(self) noexcept:
        return (self.sub_keys.bytes() + self.subs.bytes() + self.tops.bytes() + self.edges.bytes()
                + self.edge_pool.bytes() + self.leaf_sub.bytes() + self.condition_edge.bytes()
                + self.trigger_list.bytes() + self.triggers.bytes() + self.ordered_uses.bytes())

    def saved(self):
        """The index as arrays, for `restore`."""
        return {
            **table_to_numpy("twigs.sub_keys", self.sub_keys),
            "twigs.subs": to_numpy(self.subs.saved()),
            "twigs.tops": to_numpy(self.tops.saved()),
            "twigs.free_tops": to_numpy(self.free_tops.saved()),
            "twigs.edges": to_numpy(self.edges.saved()),
            "twigs.free_edges": to_numpy(self.free_edges.saved()),
            "twigs.edge_pool": to_numpy(self.edge_pool.saved()),
            "twigs.leaf_sub": to_numpy(self.leaf_sub.saved()),
            "twigs.condition_edge": to_numpy(self.condition_edge.saved()),
            "twigs.trigger_list": to_numpy(self.trigger_list.saved()),
            "twigs.triggers.extents": to_numpy(self.triggers.extents.saved()),
            "twigs.triggers.pool": to_numpy(self.triggers.pool.saved()),
            "twigs.ordered_uses.extents": to_numpy(self.ordered_uses.extents.saved()),
            "twigs.ordered_uses.pool": to_numpy(self.ordered_uses.pool.saved()),
            "twigs.counts": np.array([self.top_count, self.ordered_count], dtype=np.int64),
        }

    def restore(self, arrays):
        """Becomes the index that was saved; its arrays are used where they lie."""
        table_from_numpy("twigs.sub_keys", self.sub_keys, arrays)
        self.subs.restore(from_numpy(arrays["twigs.subs"]))
        self.tops.restore(from_numpy(arrays["twigs.tops"]))
        self.free_tops.restore(from_numpy(arrays["twigs.free_tops"]))
        self.edges.restore(from_numpy(arrays["twigs.edges"]))
        self.free_edges.restore(from_numpy(arrays["twigs.free_edges"]))
        self.edge_pool.restore(from_numpy(arrays["twigs.edge_pool"]))
        self.leaf_sub.restore(from_numpy(arrays["twigs.leaf_sub"]))
        self.condition_edge.restore(from_numpy(arrays["twigs.condition_edge"]))
        self.trigger_list.restore(from_numpy(arrays["twigs.trigger_list"]))
        self.triggers.restore(from_numpy(arrays["twigs.triggers.extents"]), from_numpy(arrays["twigs.triggers.pool"]))
        self.ordered_uses.restore(from_numpy(arrays["twigs.ordered_uses.extents"]),
                                  from_numpy(arrays["twigs.ordered_uses.pool"]))
        self.top_count, self.ordered_count = arrays["twigs.counts"].tolist()

    cdef int check(self, int64_t keys, int64_t states) except -1:
        cdef int64_t edges = self.edges.size()
        cdef int64_t subs = self.subs.size()
        cdef int64_t lists = self.triggers.size()
        cdef const Trigger* trigger
        cdef int64_t i
        cdef int32_t j
        cdef bint fine = <int64_t>self.ordered_uses.size() >= edges and self.trigger_list.within(0, lists)
        for i in range(<int64_t>self.edge_pool.size()):
            fine = fine and 0 <= self.edge_pool[i] < edges
        for i in range(edges):
            fine = fine and self.edges[i].star_list < lists
        for i in range(<int64_t>self.leaf_sub.size()):
            fine = fine and self.leaf_sub[i] < subs
        for i in range(<int64_t>self.condition_edge.size()):
            fine = fine and self.condition_edge[i] < edges
        for i in range(subs):
            fine = fine and self._is_fine(&self.subs[i])
        for i in range(<int64_t>self.tops.size()):
            fine = (fine and self._is_fine(&self.tops[i]) and 0 <= self.tops[i].key < keys
                    and 0 <= self.tops[i].state < states)
        for i in range(lists):
            for j in range(self.triggers.count(i)):
                trigger = &self.triggers.data(i)[j]
                fine = (fine and self._is_node(trigger.node) and trigger.other < edges and trigger.third < edges
                        and (trigger.node >= 0 or <int64_t>(trigger.more >> 1) < keys))
        for i in range(<int64_t>self.ordered_uses.size()):
            for j in range(self.ordered_uses.count(i)):
                fine = fine and self._is_node(self.ordered_uses.data(i)[j].node)
        if not fine:
            raise ValueError("its twigs lead outside")
        return 0

    cdef bint _is_node(self, int32_t number) noexcept:
        return number < <int64_t>self.subs.size() if number >= 0 else ~number < <int64_t>self.tops.size()

    cdef bint _is_fine(self, const TwigNode* node) noexcept:
        """Whether the edges of a node are there."""
        return (0 <= node.edges and 0 <= node.ordered <= node.edge_count
                and <int64_t>node.edges + node.edge_count <= <int64_t>self.edge_pool.size()
                and node.child_edge < <int64_t>self.edges.size() and node.descendant_edge < <int64_t>self.edges.size())
