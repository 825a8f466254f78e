"""Pattern: what an engine matches. A tree of steps, each with an axis, a name test and children.

A pattern is kept as its key, a byte string: equal patterns have equal keys (under one table of symbols), so
a set of a million subscriptions stores and matches each distinct pattern once. `Pattern` is the key unfolded
into an array of nodes. The key: one byte 0 or 1 (ordered), then in pre-order for each node a 4-byte symbol,
a byte with the axis (bit 0) and whether it is a condition (bit 1), and a 2-byte number of children.
"""

cimport cython
from libc.string cimport memcpy
from libcpp.string cimport string
from libcpp.vector cimport vector

from xsift.native.types cimport int32_t, uint8_t
from xsift.xpath.symbols cimport Symbols, ANY

cdef enum:
    ENTRY = 7  # bytes a node takes in a key

cdef struct Unclosed:
    int32_t node
    int32_t missing  # children still to come
    int32_t last     # the last child so far, -1 if none


# One is made, and soon given up, for each of a million expressions: without asking for memory, and without the garbage
# collector, which has nothing to find, as a table of symbols refers to nothing.
@cython.freelist(8)
@cython.no_gc
cdef class Pattern:
    """A tree of steps. Made by the compiler, or from text by `xsift.xpath.patterns("/a[b]//c", symbols)`."""

    @staticmethod
    cdef Pattern decode(const char* key, size_t length, Symbols symbols):
        cdef Pattern pattern = Pattern.__new__(Pattern)
        cdef vector[Unclosed] open
        cdef Unclosed* parent
        cdef size_t at = 1
        cdef int32_t symbol, index
        cdef unsigned short children
        cdef PatternNode node
        if length < 1 + ENTRY or (length - 1) % ENTRY:
            raise ValueError("not a pattern's key")
        pattern.symbols = symbols
        pattern.ordered = key[0] != 0
        pattern.nodes.reserve((length - 1) // ENTRY)
        open.reserve((length - 1) // ENTRY)
        while at < length:
            memcpy(&symbol, key + at, 4)
            memcpy(&children, key + at + 5, 2)
            index = <int32_t>pattern.nodes.size()
            if (not 0 <= symbol < symbols.table.size() or (index and open.empty())
                    or symbols.is_condition(symbol) != (key[at + 4] >> 1) & 1):
                raise ValueError("not a pattern's key")
            node = PatternNode(symbol, -1, -1, -1, key[at + 4] & 1, (key[at + 4] >> 1) & 1)
            if not open.empty():
                parent = &open.back()
                node.parent = parent.node
                if parent.last < 0:
                    pattern.nodes[node.parent].first_child = index
                else:
                    pattern.nodes[parent.last].next_sibling = index
                parent.last = index
                parent.missing -= 1
            pattern.nodes.push_back(node)
            open.push_back(Unclosed(index, children, -1))
            while not open.empty() and open.back().missing == 0:
                open.pop_back()
            at += ENTRY
        if not open.empty():
            raise ValueError("not a pattern's key")
        return pattern

    @property
    def key(self):
        """The canonical byte string: equal for equal patterns."""
        cdef string key = string(1, 1 if self.ordered else 0)
        cdef unsigned short children
        cdef int32_t child
        cdef char flags
        for node in self.nodes:
            children = 0
            child = node.first_child
            while child >= 0:
                children += 1
                child = self.nodes[child].next_sibling
            flags = node.axis | (node.is_condition << 1)
            key.append(<const char*>&node.symbol, 4)
            key.append(&flags, 1)
            key.append(<const char*>&children, 2)
        return <bytes>key

    def __eq__(self, other):
        return isinstance(other, Pattern) and self.symbols is (<Pattern>other).symbols and self.key == other.key

    def __hash__(self):
        return hash(self.key)

    def __len__(self):
        return self.nodes.size()

    def __reduce__(self):
        return (from_key, (self.key, self.symbols))

    @property
    def steps(self):
        """The nodes as (parent, axis, symbol, is_condition) in pre-order, for plain Python code."""
        return [(node.parent, node.axis, node.symbol, bool(node.is_condition)) for node in self.nodes]

    @property
    def linear(self):
        """Whether no node has more than one child: a path, not a twig."""
        for node in self.nodes:
            if node.next_sibling >= 0:
                return False
        return True

    @property
    def depth(self):
        """The number of steps of the longest root-to-leaf path, conditions not counted."""
        cdef vector[int32_t] depths
        cdef int32_t deepest = 0
        for node in self.nodes:
            depths.push_back((depths[node.parent] if node.parent >= 0 else 0) + (0 if node.is_condition else 1))
            deepest = max(deepest, depths.back())
        return deepest

    def unordered(self):
        """The pattern without its order: the one that the same expression gives without ordered=True."""
        cdef int32_t index, child
        cdef unsigned short count
        cdef char flags
        parts = [b""] * self.nodes.size()
        for index in range(<int32_t>self.nodes.size() - 1, -1, -1):
            conditions, others = set(), set()
            child = self.nodes[index].first_child
            while child >= 0:
                (conditions if self.nodes[child].is_condition else others).add(parts[child])
                child = self.nodes[child].next_sibling
            children = sorted(conditions) + sorted(others)
            count = len(children)
            flags = self.nodes[index].axis | (self.nodes[index].is_condition << 1)
            entry = (<const char*>&self.nodes[index].symbol)[:4] + (&flags)[:1] + (<const char*>&count)[:2]
            parts[index] = entry + b"".join(children)
        return from_key(b"\x00" + parts[0], self.symbols)

    def __str__(self):
        return self._text(0, True)

    def __repr__(self):
        return f"Pattern({str(self)!r}{', ordered=True' if self.ordered else ''})"

    def _text(self, int32_t index, bint first):
        """The XPath expression of the sub-tree: all children but the last in brackets."""
        cdef PatternNode node = self.nodes[index]
        cdef int32_t child
        parts = []
        while True:
            if node.axis == DESCENDANT:
                parts.append("//" if first or parts else ".//")
            elif first or parts:
                parts.append("/")
            parts.append(self.symbols.text(node.symbol))
            child = node.first_child
            while child >= 0 and (self.nodes[child].next_sibling >= 0 or self.nodes[child].is_condition):
                inner = self._text(child, False) if not self.nodes[child].is_condition \
                    else self.symbols.text(self.nodes[child].symbol)
                parts.append(f"[{inner}]")
                child = self.nodes[child].next_sibling
            if child < 0:
                return "".join(parts)
            node = self.nodes[child]


def from_key(bytes key, Symbols symbols):
    """The pattern whose key this is. Raises ValueError for bytes that are no pattern's key."""
    return Pattern.decode(key, len(key), symbols)
