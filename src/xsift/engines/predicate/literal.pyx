"""LiteralOrganisation: the expressions as the paper's three variants list and evaluate them (section 4.2.2).

`basic` evaluates every expression on every document path, in the order in which they came, until it matches. `pc` takes the longest first: one
that matches settles the expressions that are prefixes of it. `pc-ap` moreover puts expressions with the same first predicate
next to each other: where that one, the access predicate, is not satisfied, the whole cluster is passed over.

Each expression has its predicates next to each other in memory, and so has each cluster its expressions. The lists are made from
the XPE index when a document begins and the index has changed; each thread has its own.
"""

from libcpp.algorithm cimport sort
from libcpp.vector cimport vector

from xsift.engines.predicate.expressions cimport XpeIndex, XpeNode

cdef extern from *:
    """
    namespace {
    // The order in which expressions are evaluated.
    struct Rank {
        int32_t cluster, length, node;
        bool operator<(const Rank& other) const {
            if (cluster != other.cluster) return cluster < other.cluster;
            if (length != other.length) return length > other.length;
            return node < other.node;
        }
    };
    }
    """
    cdef struct Rank:
        int32_t cluster
        int32_t length
        int32_t node


cdef class LiteralOrganisation:
    """The expressions of an index, in the order of evaluation."""

    cdef int build(self, XpeIndex index, int organisation) except -1 nogil:
        cdef vector[Rank] ranks
        cdef vector[int32_t] place_of   # by node: its place among the expressions, -1: it has none
        cdef Rank rank
        cdef int32_t node
        cdef size_t i
        for node in range(<int32_t>index.nodes.size()):
            if index.nodes[node].first_path >= 0:
                rank.cluster = index.nodes[node].access if organisation == ACCESS_PREDICATES else 0
                rank.length = index.nodes[node].depth if organisation != BASIC else 0
                rank.node = node
                ranks.push_back(rank)
        sort(ranks.begin(), ranks.end())
        self.expressions.clear()
        self.pids.clear()
        self.clusters.clear()
        place_of.assign(index.nodes.size(), -1)
        for i in range(ranks.size()):
            place_of[ranks[i].node] = <int32_t>i
            self.append(index, ranks[i].node)
            if organisation == ACCESS_PREDICATES:
                if self.clusters.empty() or self.clusters.back().access != ranks[i].cluster:
                    self.clusters.push_back(Cluster(ranks[i].cluster, <int32_t>i, <int32_t>i))
                self.clusters.back().end = <int32_t>i + 1
        for i in range(self.expressions.size()):
            node = index.nodes[self.expressions[i].node].parent
            while node >= 0 and place_of[node] < 0:
                node = index.nodes[node].parent
            self.expressions[i].prefix = place_of[node] if node >= 0 else -1
        self.matched_at.assign(self.expressions.size(), 0)
        return 0

    cdef int append(self, XpeIndex index, int32_t node) except -1 nogil:
        cdef int32_t length = index.nodes[node].depth
        cdef int32_t first = <int32_t>self.pids.size()
        cdef int32_t at = node
        self.expressions.push_back(Expression(node, first, length, -1))
        self.pids.resize(first + length)
        while at >= 0:
            length -= 1
            self.pids[first + length] = index.nodes[at].pid
            at = index.nodes[at].parent
        return 0

    cdef int64_t bytes(self) noexcept:
        return (self.expressions.capacity() * sizeof(Expression) + 4 * self.pids.capacity()
                + self.clusters.capacity() * sizeof(Cluster) + 4 * self.matched_at.capacity())
