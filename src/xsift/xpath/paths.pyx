"""Paths: what a location path demands of the node that it starts from, as a formula.

The obvious way is from left to right: a pattern grows by a node for each step. But predicates multiply patterns
(`a[b or c]/d`), and so do steps (`a/descendant-or-self::b` is a `b` that is the `a`, or one below). So a path is
compiled from right to left. What its last step demands of the node before it is a formula; that, with the
predicates of the step before, is a formula about the node before that; and so on. Formulas are shared and never
changed, so nothing is copied.

What a step can find depends on the kind of node that it starts from: `/self::a` finds nothing because the document
is no element, `@id/b` because an attribute has no children. So there is a formula for each kind of node, and first,
from left to right, one finds out which kinds can occur at all: in nearly all paths just elements.

Everything that patterns cannot say becomes "unknown": other axes, comments, positions. The rest of the path is then
still a necessary condition.
"""

from xsift.xpath.condition cimport SUBJECT_ANY_ATTRIBUTE, SUBJECT_ATTRIBUTE, SUBJECT_TEXT
from xsift.xpath.formula cimport (
    FORMULA_FALSE, FORMULA_TRUE, FORMULA_UNKNOWN, NO_TEST, SELECTS_ATTRIBUTE, SELECTS_ELEMENT, SELECTS_NODES,
    SELECTS_TEXT,
)
from xsift.xpath.limits cimport LIMIT_WORK
from xsift.xpath.pattern cimport CHILD, DESCENDANT
from xsift.xpath.syntax cimport (
    AXIS_ANCESTOR_OR_SELF, AXIS_ATTRIBUTE, AXIS_CHILD, AXIS_DESCENDANT, AXIS_DESCENDANT_OR_SELF, AXIS_NAMESPACE,
    AXIS_SELF, NODE_FILTER, NODE_PATH, NODE_STEP, NODE_UNION, TEST_ANY, TEST_NAME, TEST_NAMESPACE, TEST_NODE,
    TEST_TEXT,
)

cdef enum:
    DOCUMENT = 1 << KIND_DOCUMENT
    ELEMENT = 1 << KIND_ELEMENT
    ATTRIBUTE = 1 << KIND_ATTRIBUTE
    TEXT = 1 << KIND_TEXT
    OTHER = 1 << KIND_OTHER


cdef class PathCompiler:
    """Compiles paths."""

    def __cinit__(self, Namespaces namespaces not None):
        self.namespaces = namespaces
        self.formulas = Formulas()

    cdef int begin(self, const SyntaxNode* nodes, const char* source, size_t length) except -1 nogil:
        self.nodes = nodes
        self.source = source
        self.source_length = length
        self.moves.clear()
        self.predicate_depth = 0
        self.work = 0
        self.blamed = -1
        return self.formulas.begin(nodes, source, length)

    cdef int32_t unknown(self, int32_t node) noexcept nogil:
        if self.blamed < 0:
            self.blamed = node
        return FORMULA_UNKNOWN

    cdef int32_t weakened(self, int32_t formula, int32_t node) except -1 nogil:
        """The formula as a mere necessary condition, because of that node."""
        if formula != FORMULA_FALSE and self.blamed < 0:
            self.blamed = node
        return self.formulas.inexact(formula)

    cdef bint is_exhausted(self) noexcept nogil:
        """Whether so much work was done that the rest has to be left to verification."""
        self.work += 1
        return self.work + self.formulas.links.size() + self.formulas.alternatives.size() > LIMIT_WORK

    # --- node-sets

    cdef int32_t exists(self, int32_t node, int kind) except -1 nogil:
        cdef Demand demand = Demand(DEMAND_EXISTENCE, False, NULL, -1, -1, NULL)
        return self.walk(node, kind, &demand)

    cdef int32_t walk(self, int32_t node, int kind, const Demand* demand) except -1 nogil:
        """True of a context for which the node-set has a node that meets the demand."""
        cdef int32_t child = self.nodes[node].first_child
        cdef int32_t result = FORMULA_FALSE
        cdef Demand filtered
        if self.is_exhausted():
            return self.unknown(node)
        if self.nodes[node].kind == NODE_PATH:
            return self.path(node, kind, demand)
        if self.nodes[node].kind == NODE_FILTER:
            filtered = Demand(DEMAND_MORE, False, NULL, self.nodes[child].next_sibling, -1, demand)
            return self.walk(child, kind, &filtered)
        if self.nodes[node].kind == NODE_UNION:
            while child >= 0:
                result = self.formulas.disjunction(result, self.walk(child, kind, demand))
                child = self.nodes[child].next_sibling
            if result == FORMULA_UNKNOWN and demand.kind != DEMAND_EXISTENCE:
                # Perhaps too many alternatives. That there is a node at all may still be said.
                return self.weakened(self.exists(node, kind), node)
            return result
        return self.unknown(node)  # id()

    cdef int32_t path(self, int32_t node, int kind, const Demand* demand) except -1 nogil:
        cdef int32_t first = self.nodes[node].first_child
        cdef int32_t result
        cdef Demand steps
        if first >= 0 and self.nodes[first].kind != NODE_STEP:
            steps = Demand(DEMAND_MORE, False, NULL, -1, self.nodes[first].next_sibling, demand)
            return self.walk(first, kind, &steps)
        if not self.nodes[node].detail:
            return self.steps(first, kind, self.predicate_depth == 0, demand, NULL)
        result = self.steps(first, KIND_DOCUMENT, False, demand, NULL)
        # A pattern has one root. From within a predicate the path from the root would be a second pattern.
        if kind == KIND_DOCUMENT or result == FORMULA_FALSE or (
                self.formulas.absorbs(result) and self.formulas.is_exact(result)):
            return result
        return self.unknown(node)

    cdef int32_t meet(self, const Demand* demand, int kind, const Move* last) except -1 nogil:
        """True of a node of that kind that meets the demand. `last` is the move that led to it, NULL if none did."""
        cdef int32_t result
        if demand.kind == DEMAND_CONDITION:
            return self.ask(demand.condition[0], kind, last.node if last != NULL else -1)
        if demand.kind == DEMAND_EXISTENCE:
            return self.formulas.selection(_selected(kind, last), last.node if last != NULL else -1) \
                if demand.selecting else FORMULA_TRUE
        result = self.predicates(demand.predicates, kind)
        if result == FORMULA_FALSE:
            return FORMULA_FALSE
        return self.formulas.conjunction(result, self.steps(demand.steps, kind, False, demand.further, last))

    cdef int32_t ask(self, const Condition& condition, int kind, int32_t node) except -1 nogil:
        """True of a node of that kind for whose string the condition, which has no subject yet, holds."""
        if kind == KIND_OTHER:
            return self.unknown(node)
        if kind == KIND_DOCUMENT:  # whose string is that of the root element
            return self.formulas.below(CHILD, NO_TEST, self.formulas.condition(condition))
        return self.formulas.condition(condition)

    cdef int32_t predicates(self, int32_t first, int kind) except -1 nogil:
        cdef int32_t result = FORMULA_TRUE
        self.predicate_depth += 1
        while first >= 0 and result != FORMULA_FALSE:
            result = self.formulas.conjunction(result, self.predicate(first, kind))
            first = self.nodes[first].next_sibling
        self.predicate_depth -= 1
        return result

    cdef int32_t predicate(self, int32_t node, int kind) except -1 nogil:
        return self.unknown(node)

    # --- steps

    cdef int32_t steps(
        self, int32_t first, int kind, bint anywhere, const Demand* demand, const Move* before
    ) except -1 nogil:
        """True of a node of that kind from which the steps lead to one that meets the demand.

        `anywhere` puts descendant-or-self::node() before the first step. `before` is the move that led here.
        """
        cdef size_t base = self.moves.size()
        cdef size_t i
        cdef int at, kinds
        cdef int32_t[KINDS] then    # formula about the nodes to which a move leads, by kind
        cdef int32_t[KINDS] earlier  # and about those from which it starts
        cdef Move move
        self.plan(first, anywhere)
        kinds = 1 << kind
        i = base
        while i < self.moves.size():
            self.moves[i].kinds = kinds
            kinds = _reached(kinds, &self.moves[i])
            i += 1
            if kinds == 0:
                self.moves.resize(i)
        if self.moves.size() > base:
            move = self.moves.back()
            before = &move
        for at in range(KINDS):
            then[at] = self.meet(demand, at, before) if kinds >> at & 1 else FORMULA_FALSE
        while i > base:
            i -= 1
            move = self.moves[i]
            if move.node >= 0 and self.nodes[move.node].first_child >= 0:
                for at in range(KINDS):
                    if then[at] != FORMULA_FALSE:
                        then[at] = self.formulas.conjunction(
                            self.predicates(self.nodes[move.node].first_child, at), then[at])
            for at in range(KINDS):
                earlier[at] = self.step(&move, at, then) if move.kinds >> at & 1 else FORMULA_FALSE
            for at in range(KINDS):
                then[at] = earlier[at]
        self.moves.resize(base)
        return then[kind]

    cdef int plan(self, int32_t first, bint anywhere) except -1 nogil:
        """Pushes the moves that the steps come to. a//b is a/descendant::b, a//self::b is a/descendant-or-self::b."""
        cdef bint descent = anywhere  # whether descendant-or-self::node() waits for the next step
        cdef const SyntaxNode* step
        cdef int axis
        while first >= 0:
            step = &self.nodes[first]
            axis = step.detail
            if step.test == TEST_NODE and step.first_child < 0 and (
                    axis == AXIS_SELF or axis == AXIS_DESCENDANT_OR_SELF):
                descent = descent or axis == AXIS_DESCENDANT_OR_SELF
                first = step.next_sibling
                continue
            if descent and (axis == AXIS_CHILD or axis == AXIS_DESCENDANT):
                axis = AXIS_DESCENDANT
            elif descent and (axis == AXIS_SELF or axis == AXIS_DESCENDANT_OR_SELF):
                axis = AXIS_DESCENDANT_OR_SELF
            elif descent:
                self.moves.push_back(Move(-1, AXIS_DESCENDANT_OR_SELF, TEST_NODE, 0))
            self.moves.push_back(Move(first, axis, step.test, 0))
            descent = False
            first = step.next_sibling
        if descent:
            self.moves.push_back(Move(-1, AXIS_DESCENDANT_OR_SELF, TEST_NODE, 0))
        return 0

    cdef int32_t step(self, const Move* move, int kind, const int32_t* then) except -1 nogil:
        """True of a node of that kind from which the move leads to one that `then`, by kind, is true of."""
        cdef int axis = move.axis
        if self.is_exhausted():
            return self.unknown(move.node)
        if axis == AXIS_CHILD:
            return self.step_down(move, CHILD, kind, then)
        if axis == AXIS_DESCENDANT:
            return self.step_down(move, DESCENDANT, kind, then)
        if axis == AXIS_DESCENDANT_OR_SELF:
            return self.formulas.disjunction(
                self.step_to_self(move, kind, then), self.step_down(move, DESCENDANT, kind, then))
        if axis == AXIS_SELF or (axis == AXIS_ANCESTOR_OR_SELF and kind == KIND_DOCUMENT):
            return self.step_to_self(move, kind, then)
        if axis == AXIS_ATTRIBUTE:
            return self.step_to_attribute(move, then[KIND_ATTRIBUTE]) if kind == KIND_ELEMENT else FORMULA_FALSE
        if kind == KIND_DOCUMENT or (axis == AXIS_NAMESPACE and kind != KIND_ELEMENT):
            return FORMULA_FALSE
        return self.unknown(move.node)

    cdef int32_t step_down(self, const Move* move, int axis, int kind, const int32_t* then) except -1 nogil:
        cdef int32_t result
        if kind != KIND_DOCUMENT and kind != KIND_ELEMENT:
            return FORMULA_FALSE
        if _tests_names(move.test):
            return self.formulas.below(axis, move.node, then[KIND_ELEMENT])
        if move.test == TEST_TEXT:
            return self.step_to_text(move, axis, kind, then[KIND_TEXT])
        if move.test != TEST_NODE:
            return self.step_to_other(move, then[KIND_OTHER])
        result = self.formulas.disjunction(
            self.formulas.below(axis, NO_TEST, then[KIND_ELEMENT]),
            self.step_to_text(move, axis, kind, then[KIND_TEXT]))
        return self.formulas.disjunction(result, self.step_to_other(move, then[KIND_OTHER]))

    cdef int32_t step_to_text(self, const Move* move, int axis, int kind, int32_t then) except -1 nogil:
        cdef Condition subject
        cdef int32_t own, lower
        subject.subject = SUBJECT_TEXT
        own = self.formulas.owning(then, subject, False)
        lower = self.formulas.below(DESCENDANT, NO_TEST, own) if axis == DESCENDANT else FORMULA_FALSE
        if not self.formulas.is_exact(own) and self.formulas.is_exact(then):
            self.unknown(move.node)
        # The document has no text of its own.
        return lower if kind == KIND_DOCUMENT else self.formulas.disjunction(own, lower)

    cdef int32_t step_to_other(self, const Move* move, int32_t then) noexcept nogil:
        return FORMULA_FALSE if then == FORMULA_FALSE else self.unknown(move.node)

    cdef int32_t step_to_self(self, const Move* move, int kind, const int32_t* then) except -1 nogil:
        if move.test == TEST_NODE:
            return then[kind]
        if kind == KIND_ELEMENT and _tests_names(move.test):
            return self.formulas.constrained(then[kind], move.node)
        if kind == KIND_TEXT and move.test == TEST_TEXT:
            return then[kind]
        if kind == KIND_OTHER and not _tests_names(move.test) and move.test != TEST_TEXT:
            return self.step_to_other(move, then[kind])
        return FORMULA_FALSE

    cdef int32_t step_to_attribute(self, const Move* move, int32_t then) except -1 nogil:
        cdef Condition subject
        cdef int32_t result
        if not _tests_names(move.test) and move.test != TEST_NODE:
            return FORMULA_FALSE
        subject.subject = SUBJECT_ATTRIBUTE if move.test == TEST_NAME else SUBJECT_ANY_ATTRIBUTE
        self.attribute_key(move.node, &subject.attribute)
        result = self.formulas.owning(then, subject, move.test == TEST_NAME)
        if not self.formulas.is_exact(result) and self.formulas.is_exact(then):
            self.unknown(move.node)
        return result

    cdef int attribute_key(self, int32_t step, string* key) except -1 nogil:
        """The `attribute` of a condition on what the attribute step finds."""
        cdef const SyntaxNode* it = &self.nodes[step]
        key.clear()
        if it.uri >= 0:
            key.append(self.namespaces.uris.data_of(it.uri), self.namespaces.uris.length_of(it.uri))
        if it.test == TEST_NAME:
            if it.uri >= 0:
                key.append(1, c"\x1f")
            key.append(self.source + it.begin, it.length)
        return 0


cdef bint _tests_names(int test) noexcept nogil:
    return test == TEST_NAME or test == TEST_ANY or test == TEST_NAMESPACE


cdef int _selected(int kind, const Move* last) noexcept nogil:
    """What a pattern can tell about the selected nodes, SELECTS_…, if a path ends at a node of that kind."""
    if last != NULL and last.test == TEST_NODE and (
            last.axis == AXIS_CHILD or last.axis == AXIS_DESCENDANT or last.axis == AXIS_DESCENDANT_OR_SELF):
        return SELECTS_NODES
    if kind == KIND_ELEMENT:
        return SELECTS_ELEMENT
    if kind == KIND_TEXT:
        return SELECTS_TEXT
    if kind == KIND_ATTRIBUTE and last != NULL and last.axis == AXIS_ATTRIBUTE:
        return SELECTS_ATTRIBUTE
    return SELECTS_NODES


cdef int _reached(int kinds, const Move* move) noexcept nogil:
    """The kinds of the nodes to which a move leads, as far as the compiler follows it."""
    cdef int axis = move.axis
    cdef int test = move.test
    cdef int result = 0
    cdef int tested = OTHER
    if _tests_names(test):
        tested = ELEMENT
    elif test == TEST_TEXT:
        tested = TEXT
    elif test == TEST_NODE:
        tested = DOCUMENT | ELEMENT | ATTRIBUTE | TEXT | OTHER
    if axis == AXIS_SELF or axis == AXIS_DESCENDANT_OR_SELF:
        result |= kinds & tested
    if axis == AXIS_ANCESTOR_OR_SELF:
        result |= kinds & tested & DOCUMENT
    if axis == AXIS_CHILD or axis == AXIS_DESCENDANT or axis == AXIS_DESCENDANT_OR_SELF:
        if kinds & (DOCUMENT | ELEMENT):
            result |= tested & (ELEMENT | TEXT | OTHER)
    if axis == AXIS_ATTRIBUTE and kinds & ELEMENT and (_tests_names(test) or test == TEST_NODE):
        result |= ATTRIBUTE
    return result
