"""Evaluator: programs (xpath/program.hpp), linked once, run over one document after the other (evaluator.hpp).

What no index decides is decided here, without parsing anything again. An evaluation that costs more than its
budget is broken off: that is an error of this subscription on this document, and of nothing else.
"""

from xsift.document.limits import Limits
from xsift.errors import SubscriptionError


cdef class Evaluator:
    """Evaluates expressions. Belongs to one thread at a time."""

    def __cinit__(self, *, limits=None):
        limits = Limits() if limits is None else limits
        self.evaluation = new Evaluation()
        self.evaluation.steps = limits.steps

    def __dealloc__(self):
        del self.evaluation

    cdef int32_t link_bytes(self, const char* data, size_t length) except -1 nogil:
        return self.evaluation.link(data, length)

    cdef int begin(self, NodeTree tree) except -1 nogil:
        self.evaluation.begin(tree.nodes)
        return 0

    cdef int run(self, int32_t root) except -1 nogil:
        return self.evaluation.holds(root)

    cdef bint wants_namespaces(self, int32_t root) noexcept nogil:
        return self.evaluation.library[root].namespaces

    def link(self, bytes program not None):
        """Makes a program ready, and returns its number. Raises ValueError if it is none."""
        return self.link_bytes(program, len(program))

    def needs_namespaces(self, root):
        """Whether an expression asks for namespace nodes, which NodeTree.build makes if it is told to."""
        return self.wants_namespaces(self._checked(root))

    def read(self, NodeTree tree not None):
        """Makes a document the one to evaluate on. It must not be built anew meanwhile."""
        self.tree = tree
        self.begin(tree)

    def holds(self, root):
        """boolean() of an expression. Raises SubscriptionError if that takes more steps than the limit."""
        cdef int outcome
        cdef int32_t number = self._checked(root)
        self._check_tree()
        with nogil:
            outcome = self.run(number)
        if outcome == OVER_BUDGET:
            raise over_budget(self.evaluation.steps)
        return outcome == HOLDS

    def select(self, root):
        """The nodes of an expression in document order, as numbers in the tree; none if it is no node-set."""
        cdef vector[int32_t] nodes
        cdef bint done
        cdef int32_t number = self._checked(root)
        self._check_tree()
        with nogil:
            done = self.evaluation.select(number, &nodes)
        if not done:
            raise over_budget(self.evaluation.steps)
        return list(nodes)

    def steps_left(self):
        """What the last evaluation left of its budget."""
        return self.evaluation.steps_left()

    def memory(self):
        """Bytes held by the expressions."""
        return self.evaluation.library.bytes()

    def __len__(self):
        """The number of distinct expressions, parts of others included."""
        return self.evaluation.library.expressions.size()

    def _checked(self, root):
        if not 0 <= root < len(self):
            raise IndexError(f"no expression {root}: there are {len(self)}")
        return root

    def _check_tree(self):
        if self.tree is None:
            raise ValueError("there is no document to evaluate on: call read() first")


def over_budget(steps):
    """The error of a subscription whose evaluation was broken off."""
    return SubscriptionError(
        "too-many-steps", f"its evaluation on this document takes more than {steps} steps",
        hint="simplify the expression, or allow more with Limits(steps=...)")
