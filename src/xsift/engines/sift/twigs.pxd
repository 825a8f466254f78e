from libcpp.vector cimport vector

from xsift.native.tables cimport Array, BytesTable, FlatMap, Lists
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint8_t, uint32_t
from xsift.xpath.pattern cimport Pattern

cdef struct Edge:
    int32_t sub           # the sub-pattern at its lower end; -1 if it is a condition
    symbol_t condition    # the condition, if it is one
    int32_t uses          # nodes (subs and tops) that have this edge; 0: the edge is not asked for
    uint8_t axis          # DESCENDANT edges hold for every ancestor, CHILD edges and conditions for one element
    uint32_t names        # one bit (name_bit) a name whose nodes are, or were, listed under this edge
    int32_t star_list     # the list of `*` nodes under this edge, or -1

cdef struct TwigNode:
    symbol_t symbol
    int32_t edges         # where its edges begin in `edge_pool`: ordered ones first, as they stand in the pattern
    int32_t edge_count
    int32_t ordered       # how many of the edges must hold in order; 0 or at least 2
    int32_t trigger       # the edge under which it is listed in `triggers`, or -1
    int32_t uses          # of a sub: edges that lead to it; of a top: 1; -1 if it is free
    int32_t child_edge    # of a sub: the edge that leads to it on each axis, or -1 while there is none
    int32_t descendant_edge
    int32_t key           # of a top: the pattern that it completes
    int32_t state         # of a top: the NFA state of the path that must lead to its element

cdef struct Trigger:
    int32_t node          # a sub, or ~ of a top
    int32_t other         # two more edges that must hold, or -1: spares most visits to the node itself
    int32_t third
    uint32_t more         # whether there are yet more edges; of a top, its key too: 2 * key + more

cdef struct OrderedUse:
    int32_t node          # as in Trigger
    int32_t position      # of the edge among the node's ordered edges

cdef inline uint32_t name_bit(symbol_t symbol) noexcept nogil:
    return <uint32_t>1 << (symbol & 31)


cdef class TwigIndex:
    cdef BytesTable sub_keys                    # the number of a key is the number of its sub
    cdef Array[TwigNode] subs
    cdef Array[TwigNode] tops
    cdef Array[int32_t] free_tops
    cdef Array[Edge] edges
    cdef Array[int32_t] free_edges
    cdef Array[int32_t] edge_pool
    cdef Array[int32_t] leaf_sub               # by symbol: the sub that has no edges, or -1
    cdef Array[int32_t] condition_edge         # by symbol: the edge of a condition, or -1
    cdef FlatMap[int32_t] trigger_list          # pack(symbol, edge) -> its number in `triggers`
    cdef Lists[Trigger] triggers
    cdef Lists[OrderedUse] ordered_uses         # by edge
    cdef readonly Py_ssize_t top_count
    cdef readonly Py_ssize_t ordered_count      # nodes with ordered edges

    cdef int32_t add(self, Pattern pattern, int32_t top_step, int32_t state, int32_t key) except -1
    cdef int remove(self, int32_t top) except -1
    cdef int64_t bytes(self) noexcept
    # Raises ValueError if a number of a restored index leads outside; there are so many keys and states of the automaton.
    cdef int check(self, int64_t keys, int64_t states) except -1
    cdef bint _is_node(self, int32_t number) noexcept
    cdef bint _is_fine(self, const TwigNode* node) noexcept

    cdef int32_t _sub_of(self, Pattern pattern, int32_t step, vector[int32_t]& subs) except -1
    cdef TwigNode _new_node(self, Pattern pattern, int32_t step, vector[int32_t]& subs) except *
    cdef TwigNode _filled(self, symbol_t symbol, int32_t ordered, vector[int32_t]& edges) except *
    cdef int32_t _edges_of(self, Pattern pattern, int32_t step, vector[int32_t]& subs, vector[int32_t]& edges) except -1
    cdef int32_t _edge_to(self, int32_t sub, uint8_t axis) except -1
    cdef int32_t _condition_edge(self, symbol_t condition) except -1
    cdef int32_t _new_edge(self, Edge made) except -1
    cdef int _release_edges(self, int32_t node) except -1
    cdef int _list(self, int32_t number) except -1
    cdef size_t _listed(self, symbol_t symbol, int32_t edge) noexcept
    cdef int _unlist(self, int32_t number) except -1
    cdef int _forget_ordered_use(self, int32_t edge, int32_t number) except -1

    cdef inline const TwigNode* node(self, int32_t number) noexcept nogil:
        if number >= 0:
            return self.subs.data() + number
        return self.tops.data() + ~number

    cdef inline TwigNode* edit_node(self, int32_t number) except NULL:
        return self.subs.edit(number) if number >= 0 else self.tops.edit(~number)
