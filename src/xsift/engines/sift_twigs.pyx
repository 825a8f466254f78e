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

from xsift.native.tables cimport pack
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
            self.tops[top] = made
        else:
            top = <int32_t>self.tops.size()
            self.tops.push_back(made)
        self._list(~top)
        self.top_count += 1
        return top

    cdef int remove(self, int32_t top) except -1:
        self._unlist(~top)
        self._release_edges(~top)
        self.tops[top].uses = FREE
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
            self.subs[sub] = self._filled(symbol, ordered, edges)
            self._list(sub)
            if edges.empty():
                if self.leaf_sub.size() <= <size_t>symbol:
                    self.leaf_sub.resize(symbol + 1, -1)
                self.leaf_sub[symbol] = sub
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
            self.edges[edge].uses += 1
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
        edge = self._new_edge(Edge(sub, 0, 0, axis))
        self.subs[sub].uses += 1
        if axis == CHILD:
            self.subs[sub].child_edge = edge
        else:
            self.subs[sub].descendant_edge = edge
        return edge

    cdef int32_t _condition_edge(self, symbol_t condition) except -1:
        if self.condition_edge.size() <= <size_t>condition:
            self.condition_edge.resize(condition + 1, -1)
        if self.condition_edge[condition] < 0:
            self.condition_edge[condition] = self._new_edge(Edge(-1, condition, 0, CHILD))
        return self.condition_edge[condition]

    cdef int32_t _new_edge(self, Edge made) except -1:
        cdef int32_t edge
        if self.free_edges.size():
            edge = self.free_edges.back()
            self.free_edges.pop_back()
            self.edges[edge] = made
        else:
            edge = <int32_t>self.edges.size()
            self.edges.push_back(made)
            self.ordered_uses.push_back(vector[OrderedUse]())
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
                self.edges[edge].uses -= 1
                if self.edges[edge].uses:
                    continue
                self.free_edges.push_back(edge)
                sub = self.edges[edge].sub
                if sub < 0:
                    self.condition_edge[self.edges[edge].condition] = -1
                    continue
                if self.edges[edge].axis == CHILD:
                    self.subs[sub].child_edge = -1
                else:
                    self.subs[sub].descendant_edge = -1
                self.subs[sub].uses -= 1
                if self.subs[sub].uses == 0:
                    self.subs[sub].uses = FREE
                    self._unlist(sub)
                    if self.subs[sub].edge_count == 0:
                        self.leaf_sub[self.subs[sub].symbol] = -1
                    pending.push_back(sub)
        return 0

    # Where an edge finds the nodes that it makes worth looking at.

    cdef int _list(self, int32_t number) except -1:
        cdef TwigNode* node = self.node(number)
        cdef int32_t i, edge, best
        if node.ordered:
            for i in range(node.ordered):
                self.ordered_uses[self.edge_pool[node.edges + i]].push_back(OrderedUse(number, i))
            self.ordered_count += 1
            return 0
        if node.edge_count == 0:
            return 0
        best = self.edge_pool[node.edges]
        for i in range(1, node.edge_count):
            edge = self.edge_pool[node.edges + i]
            if self._listed(node.symbol, edge) < self._listed(node.symbol, best):
                best = edge
        node.trigger = best
        cdef int32_t list_number = self.trigger_list.get(pack(node.symbol, best), -1)
        if list_number < 0:
            list_number = <int32_t>self.triggers.size()
            self.triggers.push_back(vector[Trigger]())
            self.trigger_list.put(pack(node.symbol, best), list_number)
        cdef int32_t other = -1
        for i in range(node.edge_count):
            if self.edge_pool[node.edges + i] != best:
                other = self.edge_pool[node.edges + i]
        self.triggers[list_number].push_back(Trigger(number, other))
        return 0

    cdef size_t _listed(self, symbol_t symbol, int32_t edge) noexcept:
        cdef int32_t list_number = self.trigger_list.get(pack(symbol, edge), -1)
        return self.triggers[list_number].size() if list_number >= 0 else 0

    cdef int _unlist(self, int32_t number) except -1:
        cdef TwigNode* node = self.node(number)
        cdef int32_t i
        cdef vector[Trigger]* listed
        if node.ordered:
            for i in range(node.ordered):
                self._forget_ordered_use(self.edge_pool[node.edges + i], number)
            self.ordered_count -= 1
        elif node.trigger >= 0:
            listed = &self.triggers[self.trigger_list.get(pack(node.symbol, node.trigger), -1)]
            for i in range(<int32_t>listed.size()):
                if listed[0][i].node == number:
                    listed[0][i] = listed.back()
                    listed.pop_back()
                    break
        return 0

    cdef void _forget_ordered_use(self, int32_t edge, int32_t number) noexcept:
        cdef vector[OrderedUse]* uses = &self.ordered_uses[edge]
        cdef size_t i = 0
        while i < uses.size():
            if uses[0][i].node == number:
                uses[0][i] = uses.back()
                uses.pop_back()
            else:
                i += 1

    cdef int64_t bytes(self) noexcept:
        cdef int64_t total = (
            self.sub_keys.bytes() + (self.subs.capacity() + self.tops.capacity()) * sizeof(TwigNode)
            + self.edges.capacity() * (sizeof(Edge) + sizeof(vector[OrderedUse])) + self.trigger_list.bytes()
            + (self.edge_pool.capacity() + self.leaf_sub.capacity() + self.condition_edge.capacity()) * 4
            + self.triggers.capacity() * sizeof(vector[Trigger]))
        cdef size_t i
        for i in range(self.triggers.size()):
            total += self.triggers[i].capacity() * sizeof(Trigger)
        for i in range(self.ordered_uses.size()):
            total += self.ordered_uses[i].capacity() * sizeof(OrderedUse)
        return total
