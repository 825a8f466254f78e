"""RowEvaluator: runs the programs of rows on a document, for one thread.

A program is linked when its row first passes its patterns, so that subscriptions which never do cost nothing; equal
programs, and equal parts of different ones, are linked once. The document's nodes are built when a row is first evaluated on it.
What goes wrong with one row is an error of that row.
"""

from cpython.buffer cimport PyBUF_SIMPLE, Py_buffer, PyBuffer_Release, PyObject_GetBuffer
from libcpp.algorithm cimport lower_bound
from libcpp.unordered_map cimport unordered_map

import numpy as np

from xsift.document.encodings import proper_name
from xsift.errors import DocumentError, SubscriptionError
from xsift.evaluation.evaluator import over_budget

from xsift.document.nodes.node_tree cimport Nodes, NodeKind, string_view
from xsift.evaluation.evaluator cimport HOLDS, OVER_BUDGET
from xsift.native.types cimport uint32_t, uint64_t

cdef enum:
    UNKNOWN = -1
    ALONE = 0   # the only text, comment or processing instruction of its kind in an element
    FAILED = 3  # beside the outcomes of an evaluation


cdef class RowEvaluator:
    """Evaluates rows. Belongs to one thread at a time."""

    def __init__(self, Rows rows not None, *, limits):
        self.rows = rows
        self.evaluator = Evaluator(limits=limits)
        self.tree = NodeTree(limits=limits)

    def begin(self, source, encoding):
        """Makes a document the one to evaluate on: a buffer of bytes, and their encoding if they do not say it."""
        self.source = source
        self.encoding = None if encoding is None else (proper_name(encoding) or encoding).encode("ascii", "replace")
        self.is_built = False

    def end(self):
        """Lets go of the document."""
        self.source = None
        vector[int32_t]().swap(self.leaf_places)
        self.is_built = False

    cdef int32_t root_of(self, int32_t row) except -1:
        """The row's expression. Programs are read while no other thread can add rows: with the GIL."""
        cdef int32_t note = self.rows.row_program[row]
        if note < 0:
            raise SubscriptionError("not-evaluable", "it has no program", id=self.rows.id(row))
        if note >= <int32_t>self.roots.size():
            self.roots.resize(self.rows.notes.size(), UNKNOWN)
        if self.roots[note] == UNKNOWN:
            try:
                self.roots[note] = self.evaluator.link_bytes(
                    self.rows.notes.data_of(note), self.rows.notes.length_of(note))
            except ValueError as error:
                raise SubscriptionError("damaged-program", str(error), id=self.rows.id(row),
                                        hint="save the matcher again") from error
        return self.roots[note]

    cdef int build(self, bint namespaces) except -1:
        """Builds the document's nodes, if they are not there; namespace nodes, if they are needed."""
        cdef Py_buffer view
        cdef const char* encoding = NULL
        if self.is_built and (self.tree.nodes.has_namespaces or not namespaces):
            return 0
        self.is_built = False
        self.leaf_places.clear()
        if self.encoding is not None:
            encoding = self.encoding
        PyObject_GetBuffer(self.source, &view, PyBUF_SIMPLE)
        try:
            with nogil:
                self.tree.build_from(<const char*>view.buf, view.len, encoding, namespaces)
                self.evaluator.begin(self.tree)
        except DocumentError as error:
            raise SubscriptionError(error.code, error.message, hint=error.hint) from error
        finally:
            PyBuffer_Release(&view)
        self.is_built = True
        return 0

    def decide(self, const int32_t[::1] rows):
        """Those of the rows that match the document, errors of those that cannot be decided, and those that have no
        program to decide them.
        """
        cdef vector[int32_t] evaluated, roots, kept
        cdef vector[uint8_t] outcomes
        cdef Py_ssize_t i
        cdef size_t j
        failures = {}
        others = []
        for i in range(rows.shape[0]):
            if self.rows.row_program[rows[i]] < 0:
                others.append(rows[i])
                continue
            evaluated.push_back(rows[i])
            try:
                roots.push_back(self.root_of(rows[i]))
            except SubscriptionError as error:
                roots.push_back(UNKNOWN)
                failures[rows[i]] = error
        outcomes.assign(roots.size(), FAILED)
        if evaluated.size() and self._prepare(&evaluated, &roots, failures):
            with nogil:
                for j in range(roots.size()):
                    if roots[j] >= 0:
                        outcomes[j] = self.evaluator.run(roots[j])
        for j in range(roots.size()):
            if outcomes[j] == HOLDS:
                kept.push_back(evaluated[j])
            elif outcomes[j] == OVER_BUDGET:
                failures[evaluated[j]] = self._over_budget(evaluated[j])
        return list(kept), failures, others

    cdef bint _prepare(self, vector[int32_t]* rows, vector[int32_t]* roots, dict failures) except -1:
        """Builds what the expressions need; those that need what cannot be built fail. Whether any is left."""
        cdef bint wants_namespaces = False
        cdef size_t i
        for i in range(roots.size()):
            wants_namespaces |= roots[0][i] >= 0 and self.evaluator.wants_namespaces(roots[0][i])
        try:
            self.build(wants_namespaces)
            return True
        except SubscriptionError as error:
            for i in range(roots.size()):
                if roots[0][i] >= 0 and self.evaluator.wants_namespaces(roots[0][i]) == wants_namespaces:
                    failures[rows[0][i]] = error
                    roots[0][i] = UNKNOWN
        return wants_namespaces and self._prepare(rows, roots, failures)

    def holds(self, int32_t row):
        """Whether one row matches. Raises SubscriptionError if that cannot be decided."""
        kept, failures, _ = self.decide(np.array([row], dtype=np.int32))
        for error in failures.values():
            raise error
        return bool(kept)

    def select(self, int32_t row):
        """The nodes that a row's expression selects, in document order: for each its element's number (from 1; 0 for
        what stands outside the root element), and what leads from there to the node, as in libxml2's paths.

        The document itself, of which lxml has no object, is left out.
        """
        cdef vector[int32_t] nodes
        cdef int32_t root = self.root_of(row)
        cdef int32_t node
        cdef bint done
        self.build(self.evaluator.wants_namespaces(root))
        with nogil:
            done = self.evaluator.evaluation.select(root, &nodes)
        if not done:
            raise self._over_budget(row)
        return [self._place(node) for node in nodes if node]

    def _over_budget(self, row):
        error = over_budget(self.evaluator.evaluation.steps)
        error.id = self.rows.id(row)
        return error

    def _place(self, int32_t node):
        cdef Nodes* nodes = self.tree.nodes
        cdef NodeKind kind = nodes.kinds[node]
        cdef int32_t owner = node if kind == NodeKind.ELEMENT else nodes.parents[node]
        cdef int number = 1 + <int>(
            lower_bound(nodes.elements.begin(), nodes.elements.end(), owner) - nodes.elements.begin())
        if kind == NodeKind.ELEMENT:
            return number, ""
        if kind == NodeKind.ATTRIBUTE:
            prefix = self.tree.prefix(node)
            local = _text(nodes.local_name(nodes.names[node]))
            return number, f"/@{prefix}:{local}" if prefix else f"/@{local}"
        if kind == NodeKind.NAMESPACE:
            return number, f"/namespace::{_text(nodes.local_name(nodes.names[node])) or '*'}"
        return (number if owner else 0), self._leaf(node)

    def _leaf(self, int32_t node):
        """A text, comment or processing instruction among its like."""
        cdef Nodes* nodes = self.tree.nodes
        if self.leaf_places.empty():
            self.leaf_places.assign(nodes.size(), UNKNOWN)
        if self.leaf_places[node] == UNKNOWN:
            self.number_leaves(nodes.parents[node])
        if nodes.kinds[node] == NodeKind.INSTRUCTION:
            test = f"processing-instruction('{_text(nodes.local_name(nodes.names[node]))}')"
        else:
            test = "text()" if nodes.kinds[node] == NodeKind.TEXT else "comment()"
        return f"/{test}[{self.leaf_places[node]}]" if self.leaf_places[node] else f"/{test}"

    cdef int number_leaves(self, int32_t parent) except -1 nogil:
        """Numbers the texts, comments and processing instructions of an element, all at once: there may be very many."""
        cdef Nodes* nodes = self.tree.nodes
        cdef unordered_map[uint64_t, int32_t] found
        cdef int32_t child = nodes.firsts[parent]
        while 0 <= child <= nodes.lasts[parent]:
            if nodes.kinds[child] != NodeKind.ELEMENT:
                found[_likeness(nodes, child)] += 1
                self.leaf_places[child] = found[_likeness(nodes, child)]
            child = nodes.lasts[child] + 1
        child = nodes.firsts[parent]
        while 0 <= child <= nodes.lasts[parent]:
            if nodes.kinds[child] != NodeKind.ELEMENT and found[_likeness(nodes, child)] == 1:
                self.leaf_places[child] = ALONE
            child = nodes.lasts[child] + 1
        return 0


cdef inline uint64_t _likeness(Nodes* nodes, int32_t node) noexcept nogil:
    """What nodes that are alike have in common: their kind, and the target of processing instructions."""
    return <uint64_t>nodes.kinds[node] << 32 | <uint32_t>nodes.names[node]


cdef str _text(string_view text):
    return text.data()[:text.size()].decode("utf-8", "replace")
