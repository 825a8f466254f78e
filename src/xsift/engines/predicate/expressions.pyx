"""XpeIndex and Determination: the second stage of predicate-based filtering, from matched predicates to expressions.

An expression (XPE) is a sequence of predicates. The XPE index (section 4.2.2, Figure 3) is the tree of these
sequences: a prefix of an expression is its node's ancestor, which is what prefix covering needs. A node whose
sequence is some expression is a candidate when its last predicate has a new result: candidates are listed by that
predicate. The paper's own ways to list expressions are in literal.pyx.

Occurrence determination (section 4.2.1, Figure 2) looks for one pair of occurrence numbers in the result of each
predicate such that each pair begins where the one before ends.
"""

from libcpp.vector cimport vector

from xsift.native.tables cimport pack


cdef class Determination:
    """Figure 2, the backtracking search.

    As printed, the pairs that can follow a pair are collected anew each time it is reached, and n nested elements of
    one name can be reached in n^k ways in a path of k steps. What follows a pair depends only on its second number,
    so a pair that has failed once fails always: here it is removed from R itself, not only from R', and the search is
    quadratic.
    """

    cdef bint run(self, bint newest_last) except -1 nogil:
        cdef int32_t last = <int32_t>self.results.size() - 1
        cdef int32_t current = 0
        cdef int32_t i = 0
        cdef int32_t size = 0
        cdef const Occurrences* pairs
        cdef bint found
        self.first_tried.resize(last + 1)
        self.cursor.resize(last + 1)
        self.wanted.resize(last + 1)
        for i in range(last + 1):
            if self.results[i].empty():
                return False
            self.first_tried[i] = size
            size += <int32_t>self.results[i].size()
        self.tried.assign(size, 0)
        self.cursor[0] = <int32_t>self.results[0].size() - 1 if last == 0 and newest_last else 0
        while True:
            pairs = self.results[current].data()
            size = <int32_t>self.results[current].size()
            found = False
            while self.cursor[current] < size and not found:
                i = self.cursor[current]
                self.cursor[current] += 1
                if not self.tried[self.first_tried[current] + i]:
                    found = current == 0 or pairs[i].low <= self.wanted[current] <= pairs[i].high
            if not found:
                if current == 0:
                    return False
                current -= 1
                continue
            if current == last:
                return True
            self.tried[self.first_tried[current] + i] = True
            current += 1
            self.wanted[current] = pairs[i].second
            self.cursor[current] = <int32_t>self.results[current].size() - 1 if current == last and newest_last else 0


def occurrence_determination(results):
    """Whether `results`, for each predicate a list of pairs of occurrence numbers, hold a true match."""
    cdef Determination determination = Determination()
    cdef vector[vector[Occurrences]] pairs
    cdef size_t i
    pairs.resize(len(results))
    for i, result in enumerate(results):
        for first, second in result:
            pairs[i].push_back(Occurrences(first, first, second))
    for i in range(pairs.size()):
        determination.results.push_back(&pairs[i])
    return pairs.empty() or bool(determination.run(False))


cdef class XpeIndex:
    """The tree of predicate sequences, and the lists of candidates."""

    def __cinit__(self):
        self.free_node = -1

    cdef int insert(self, int32_t path, PredicateIndex index, const vector[Predicate]& encoding) except -1:
        cdef int32_t node = -1
        cdef int32_t pid, before
        cdef size_t i
        for i in range(encoding.size()):
            pid = index.insert(encoding[i])
            before = node
            node = self.children.get(pack(before, pid), -1)
            if node < 0:
                node = self.child(before, pid)
            else:
                index.release(pid)  # a node has one use of its predicate, however many expressions share it
        if self.path_node.size() <= <size_t>path:
            self.path_node.resize(path + 1, -1)
            self.next_path.resize(path + 1, -1)
        if self.nodes[node].first_path < 0:
            self.list_node(node)
        self.path_node[path] = node
        self.next_path[path] = self.nodes[node].first_path
        self.nodes[node].first_path = path
        self.nodes[node].uses += 1
        return 0

    cdef int remove(self, int32_t path, PredicateIndex index) except -1:
        cdef int32_t node = self.path_node[path]
        cdef int32_t* link = &self.nodes[node].first_path
        cdef int32_t parent
        while link[0] != path:
            link = &self.next_path[link[0]]
        link[0] = self.next_path[path]
        if self.nodes[node].first_path < 0:
            self.unlist_node(node)
        self.nodes[node].uses -= 1
        while node >= 0 and self.nodes[node].uses == 0:
            parent = self.nodes[node].parent
            self.children.erase(pack(parent, self.nodes[node].pid))
            index.release(self.nodes[node].pid)
            self.nodes[node].parent = self.free_node
            self.nodes[node].first_path = -1
            self.free_node = node
            node = parent
            if node >= 0:
                self.nodes[node].uses -= 1
        return 0

    cdef int32_t child(self, int32_t parent, int32_t pid) except -1:
        """A new node."""
        cdef XpeNode made = XpeNode(pid, parent, 1, pid, -1, 0, -1)
        cdef int32_t node = self.free_node
        if parent >= 0:
            made.depth = self.nodes[parent].depth + 1
            made.access = self.nodes[parent].access
            self.nodes[parent].uses += 1
        self.deepest = max(self.deepest, made.depth)
        if node >= 0:
            self.free_node = self.nodes[node].parent
            self.nodes[node] = made
        else:
            node = <int32_t>self.nodes.size()
            self.nodes.push_back(made)
        self.children.put(pack(parent, pid), node)
        return node

    cdef int list_node(self, int32_t node) except -1:
        cdef int32_t pid = self.nodes[node].pid
        if self.ending.size() <= <size_t>pid:
            self.ending.resize(pid + 1)
        self.nodes[node].place = <int32_t>self.ending[pid].size()
        self.ending[pid].push_back(node)
        self.expression_count += 1
        return 0

    cdef int unlist_node(self, int32_t node) except -1:
        cdef vector[int32_t]* listed = &self.ending[self.nodes[node].pid]
        cdef int32_t last = listed.back()
        listed[0][self.nodes[node].place] = last
        self.nodes[last].place = self.nodes[node].place
        listed.pop_back()
        self.expression_count -= 1
        return 0

    cdef int64_t bytes(self) noexcept:
        cdef int64_t size = self.nodes.capacity() * sizeof(XpeNode) + self.children.bytes()
        cdef size_t i
        for i in range(self.ending.size()):
            size += 4 * self.ending[i].capacity() + sizeof(vector[int32_t])
        return size + 4 * (self.next_path.capacity() + self.path_node.capacity())
