from libc.stdint cimport uint16_t
from libcpp.vector cimport vector

from xsift.engines.xtrie.probes cimport Probe, ProbeLists
from xsift.native.numbers cimport FreeNumbers
from xsift.native.tables cimport FlatMap
from xsift.native.types cimport int32_t, symbol_t
from xsift.xpath.pattern cimport Pattern

cdef enum:
    DOCUMENT = 0             # row 0: the document, parent of every root substring, matched at level 0 alone
    ROOT = 0                 # node 0: the trie's root
    LEAF = -1
    MAX_STEPS = 65535        # of a pattern, so that levels and ranks take two bytes

cdef enum RowFlag:
    UNBOUNDED = 1  # the relative level has no maximum, because of a `//`; else its maximum is its minimum
    STAR = 2       # the row is a `*`: it has no name to hang on, so it is in no substring's chain
    ORDERED = 4    # one of several children whose order counts
    WAITS = 8      # a `*` of which start tags must be told: a leaf, or one with such a `*` below it

cdef struct Row:  # 32 bytes: half a cache line
    # The paper's 5-tuple, but for Next: the rows of a substring are listed by their probes.
    int32_t parent_row        # the row of the parent substring, less than this one's; DOCUMENT for a root substring
    uint16_t level_min        # of the relative level to the parent substring: at least 1
    uint16_t flags            # UNBOUNDED or not gives the maximum of the relative level
    uint16_t rank             # which child of its parent it is, from 1
    uint16_t num_child
    # What incremental updates and unordered matching need besides.
    int32_t place             # of its probe in the list that it is in
    int32_t previous_sibling  # the sibling of rank - 1; the last one for rank 1; itself if there is no other
    int32_t substring         # the trie node of its substring; of a `*`: of its parent's, ROOT below the document
    int32_t levels            # where the run keeps the levels at which it is matched; LEAF if that is not needed
    int32_t pattern           # the key of its expression, -1 for a row that is free


cdef struct TrieNode:
    int32_t parent        # of a free node: the next free one
    symbol_t symbol       # the label of the edge that leads here
    int32_t children      # edges out of here
    # The substring pointer alpha: the rows of this substring, of which nothing is kept that is not looked at.
    int32_t leaves        # list of the rows that are leaf substrings, NO_LIST if there is none
    int32_t inner         # list of the others; NO_LIST if there is none, or if probing is lazy
    int32_t stars         # list of the WAITS rows right below this substring, NO_LIST if there is none
    int32_t rows          # of this substring; that makes its nodes worth keeping ...
    int32_t inner_rows    # ... and how many of them are not leaf substrings
    int32_t levels        # lazy: where the run keeps the levels at which it is met, if there are inner rows
    int32_t beta          # max-suffix pointer: the node of the longest proper suffix of this label that is a node's
    int32_t suffix_of     # some node whose beta this is, -1 if there is none. The root has a list per symbol instead.
    int32_t next_same     # the next node with the same beta (below the root: and the same symbol), -1 at the end
    int32_t previous_same


cdef class Trie:
    cdef vector[TrieNode] nodes
    cdef FlatMap[int32_t] edges         # pack(node, symbol) -> node
    cdef vector[int32_t] labelled       # by symbol: how many edges have it as label
    cdef vector[int32_t] root_suffix_of  # by symbol: some node with that last symbol whose beta is the root, or -1
    cdef int32_t free_node              # head of the list of free nodes, -1 if there is none
    cdef int32_t node_count

    cdef int32_t insert(self, const vector[symbol_t]& substring) except -1
    cdef int prune(self, int32_t node) except -1
    cdef size_t bytes(self)

    # SEARCH, steps 9 to 12: the node of the longest suffix of label(node) + symbol that is a node's label.
    cdef inline int32_t advance(self, int32_t node, symbol_t symbol) noexcept nogil:
        cdef const int32_t* found
        if <size_t>symbol >= self.labelled.size() or self.labelled[symbol] == 0:
            return ROOT
        while True:
            found = self.edges.find(<unsigned long long>node << 32 | <unsigned int>symbol)
            if found != NULL:
                return found[0]
            if node == ROOT:
                return ROOT
            node = self.nodes[node].beta

    cdef int32_t add_node(self, int32_t parent, symbol_t symbol) except -1
    cdef int redirect_to(self, int32_t node, int32_t beta) except -1
    cdef int set_beta(self, int32_t node, int32_t beta) except -1
    cdef int unlink_beta(self, int32_t node) except -1
    cdef int32_t* suffix_list(self, int32_t beta, symbol_t symbol) except NULL


cdef class SubstringTable:
    cdef vector[Row] rows               # row 0 is DOCUMENT; the rows of an expression are consecutive
    cdef ProbeLists probes
    cdef bint eager                     # whether rows that are no leaf substrings are listed, too
    # Whose levels the run keeps: each row's (eager), or each inner substring's (lazy), these numbered without gaps.
    cdef int32_t substring_levels       # how many numbers were given; 0 is the document's
    cdef FreeNumbers free_levels
    cdef vector[int32_t] first_row      # by key: the first of its rows; 0 for a key that is free
    cdef FreeNumbers free_keys
    cdef int32_t free_rows
    cdef int32_t arranged_rows          # how many there were when they were last rearranged
    cdef readonly Py_ssize_t pattern_count
    cdef readonly Py_ssize_t twig_count     # patterns in which some substring has two children
    cdef readonly Py_ssize_t ordered_count  # patterns with an ORDERED row

    cdef int32_t add_pattern(self, Pattern pattern, Trie trie) except -1
    cdef int remove_pattern(self, int32_t key, Trie trie) except -1
    cdef size_t bytes(self)

    cdef int32_t* list_of(self, int32_t row, Trie trie) except? NULL
    cdef Probe probe_of(self, int32_t row)
    cdef int32_t append_probe(self, int32_t row, Trie trie) except -2
    cdef int arrange(self, int32_t number) except -1
    cdef int enlist(self, int32_t row, Trie trie) except -1
    cdef int unlist(self, int32_t row, Trie trie) except -1
    cdef int count_row(self, int32_t row, Trie trie, int change) except -1
    cdef int32_t new_levels(self) except -1
    cdef int count_kinds(self, int32_t key, int change) except -1
    cdef int rearrange(self, Trie trie) except -1
    cdef int relist(self, Trie trie) except -1
    cdef int move_pattern(self, int32_t key, vector[Row]* arranged) except -1
    cdef int32_t end_of(self, int32_t row) except -1
