"""Formulas: what an expression demands of a node, as a disjunction of twigs that engines can index.

The naive idea is to turn an expression into disjunctive normal form and each conjunction into a pattern. Three
things make it more than that. Most of XPath cannot be said with patterns, so a formula may be just a NECESSARY
condition of its expression: then it is not exact. The number of alternatives multiplies, so it is limited, and a
part that would exceed the limit is replaced by "unknown", which is true and not exact. And `not` turns a necessary
condition into one that says nothing, so only exact formulas are negated; `and`, `or` and `not` inside a `not` were
pushed down before.

Every formula is about one node, its context: an element mostly, or the document, or an attribute or a text node (then
its conditions are about that node's own string, until `owning` makes them conditions on the element).
"""

cimport cython

from xsift.xpath.condition cimport COMPARE_EQUAL, COMPARE_EXISTS, COMPARE_NOT_EQUAL, SUBJECT_STRING
from xsift.xpath.faults cimport FAULT_PATTERN_TOO_LARGE, Fault, raise_fault
from xsift.xpath.limits cimport LIMIT_PATTERN_NODES, LIMIT_PATTERNS
from xsift.xpath.pattern cimport CHILD
from xsift.xpath.lexer cimport same_bytes
from xsift.xpath.syntax cimport TEST_ANY, TEST_NAME, TEST_NODE

cdef enum:
    CONTRADICTION = -2  # what merged_test gives if no element can pass both


@cython.final
cdef class Formulas:
    """The formulas of one expression, and how to combine them."""

    cdef int begin(self, const SyntaxNode* nodes, const char* source, size_t length) except -1 nogil:
        self.nodes = nodes
        self.source = source
        self.source_length = length
        self.formulas.clear()
        self.alternatives.clear()
        self.twigs.clear()
        self.links.clear()
        self.conditions.clear()
        self.close(0, True)                                                                   # FORMULA_FALSE
        self.alternatives.push_back(Alternative(0, 0, 0, NO_TEST, -1, SELECTS_NOTHING))
        self.close(0, True)                                                                   # FORMULA_TRUE
        self.formulas.push_back(Formula(0, 1, False))                                         # FORMULA_UNKNOWN
        return 0

    cdef int32_t close(self, int32_t first, bint exact) except -1 nogil:
        """The formula of all alternatives from `first` on."""
        cdef int32_t count = <int32_t>self.alternatives.size() - first
        if count == 0 and not self.formulas.empty():
            return FORMULA_FALSE
        self.formulas.push_back(Formula(first, count, exact))
        return <int32_t>self.formulas.size() - 1

    # --- what a formula is

    cdef bint is_exact(self, int32_t formula) noexcept nogil:
        return self.formulas[formula].exact

    cdef bint is_true(self, int32_t formula) noexcept nogil:
        """Whether it demands nothing and selects nothing."""
        return self.absorbs(formula) and self.alternatives[self.formulas[formula].first].selects == SELECTS_NOTHING

    cdef bint absorbs(self, int32_t formula) noexcept nogil:
        """Whether it demands nothing, so that `or` with anything else is still true."""
        cdef const Formula* it = &self.formulas[formula]
        cdef const Alternative* only
        if it.count != 1:
            return False
        only = &self.alternatives[it.first]
        return (only.links == 0 and only.test == NO_TEST
                and (only.selects == SELECTS_NOTHING or only.selects == SELECTS_NODES))

    cdef bint is_stronger(self, int32_t left, int32_t right) noexcept nogil:
        """Which of two to keep if only one can be: the one that demands more, or else has fewer alternatives."""
        cdef int32_t left_size = self.least_size(left)
        cdef int32_t right_size = self.least_size(right)
        if left_size != right_size:
            return left_size > right_size
        return self.formulas[left].count <= self.formulas[right].count

    cdef int32_t least_size(self, int32_t formula) noexcept nogil:
        cdef Formula it = self.formulas[formula]
        cdef int32_t least = self.alternatives[it.first].size
        cdef int32_t i
        for i in range(1, it.count):
            least = min(least, self.alternatives[it.first + i].size)
        return least

    # --- connectives

    cdef int32_t inexact(self, int32_t formula) except -1 nogil:
        cdef Formula copy = self.formulas[formula]
        if not copy.exact or copy.count == 0:
            return formula
        copy.exact = False
        self.formulas.push_back(copy)
        return <int32_t>self.formulas.size() - 1

    cdef int32_t conjunction(self, int32_t left, int32_t right) except -1 nogil:
        cdef Formula a = self.formulas[left]
        cdef Formula b = self.formulas[right]
        cdef int32_t first = <int32_t>self.alternatives.size()
        cdef int32_t i, j, k
        cdef Alternative one, other, both
        if a.count == 0 or b.count == 0:
            return FORMULA_FALSE
        if self.is_true(left):
            return right if a.exact else self.inexact(right)
        if self.is_true(right):
            return left if b.exact else self.inexact(left)
        if a.count * b.count > LIMIT_PATTERNS:
            return self.inexact(left if self.is_stronger(left, right) else right)
        for i in range(a.count):
            for j in range(b.count):
                one = self.alternatives[a.first + i]
                other = self.alternatives[b.first + j]
                both = one if one.selects else other
                both.test = self.merged_test(one.test, other.test)
                if both.test == CONTRADICTION:
                    continue
                both.first_link = <int32_t>self.links.size()
                both.links = one.links + other.links
                both.size = one.size + other.size
                self.check_size(both.size)
                for k in range(one.links):
                    self.links.push_back(self.links[one.first_link + k])
                for k in range(other.links):
                    self.links.push_back(self.links[other.first_link + k])
                self.alternatives.push_back(both)
        return self.close(first, a.exact and b.exact)

    cdef int32_t disjunction(self, int32_t left, int32_t right) except -1 nogil:
        cdef Formula a = self.formulas[left]
        cdef Formula b = self.formulas[right]
        cdef int32_t first = <int32_t>self.alternatives.size()
        cdef Alternative copy
        cdef int32_t i
        if a.count == 0:
            return right
        if b.count == 0:
            return left
        if self.absorbs(left) and (a.exact or not self.absorbs(right)):
            return left
        if self.absorbs(right):
            return right
        if a.count + b.count > LIMIT_PATTERNS:
            return FORMULA_UNKNOWN
        for i in range(a.count):
            copy = self.alternatives[a.first + i]
            self.alternatives.push_back(copy)
        for i in range(b.count):
            copy = self.alternatives[b.first + i]
            self.alternatives.push_back(copy)
        return self.close(first, a.exact and b.exact)

    cdef int32_t negation(self, int32_t formula) except -1 nogil:
        """True where the formula's expression is not. What cannot be said is left out, and the result inexact."""
        cdef Formula it = self.formulas[formula]
        cdef int32_t result = FORMULA_TRUE
        cdef int32_t i
        if not it.exact:
            return FORMULA_UNKNOWN
        for i in range(it.count):
            result = self.conjunction(result, self.negated_alternative(it.first + i))
        return result

    cdef int32_t negated_alternative(self, int32_t alternative) except -1 nogil:
        cdef Alternative it = self.alternatives[alternative]
        cdef int32_t result = FORMULA_FALSE
        cdef int32_t i
        cdef Condition condition
        if it.test != NO_TEST:
            return FORMULA_UNKNOWN
        for i in range(it.links):
            if not self.twigs[self.links[it.first_link + i]].is_condition:
                return FORMULA_UNKNOWN
            condition = self.conditions[self.twigs[self.links[it.first_link + i]].test]
            if _has_one_value(condition) and COMPARE_EQUAL <= condition.comparison <= COMPARE_NOT_EQUAL:
                condition.comparison = COMPARE_EQUAL + COMPARE_NOT_EQUAL - condition.comparison
            else:
                condition.negated = not condition.negated
            result = self.disjunction(result, self.condition(condition))
        return result

    # --- patterns

    cdef int32_t condition(self, const Condition& condition) except -1 nogil:
        cdef int32_t first = <int32_t>self.alternatives.size()
        self.conditions.push_back(condition)
        self.twigs.push_back(Twig(<int32_t>self.conditions.size() - 1, 0, 0, 1, -1, SELECTS_NOTHING, CHILD, True))
        self.links.push_back(<int32_t>self.twigs.size() - 1)
        self.alternatives.push_back(
            Alternative(<int32_t>self.links.size() - 1, 1, 1, NO_TEST, -1, SELECTS_NOTHING))
        return self.close(first, True)

    cdef int32_t below(self, int axis, int32_t test, int32_t formula) except -1 nogil:
        cdef Formula it = self.formulas[formula]
        cdef int32_t first = <int32_t>self.alternatives.size()
        cdef Alternative inner
        cdef int32_t i, merged
        for i in range(it.count):
            inner = self.alternatives[it.first + i]
            merged = self.merged_test(test, inner.test)
            if merged == CONTRADICTION:
                continue
            self.check_size(inner.size + 1)
            self.twigs.push_back(Twig(merged, inner.first_link, inner.links, inner.size + 1, inner.output,
                                      inner.selects, axis, False))
            self.links.push_back(<int32_t>self.twigs.size() - 1)
            self.alternatives.push_back(
                Alternative(<int32_t>self.links.size() - 1, 1, inner.size + 1, NO_TEST, -1, SELECTS_NOTHING))
        return self.close(first, it.exact)

    cdef int32_t constrained(self, int32_t formula, int32_t test) except -1 nogil:
        cdef Formula it = self.formulas[formula]
        cdef int32_t first = <int32_t>self.alternatives.size()
        cdef Alternative inner
        cdef int32_t i
        for i in range(it.count):
            inner = self.alternatives[it.first + i]
            inner.test = self.merged_test(test, inner.test)
            if inner.test != CONTRADICTION:
                self.alternatives.push_back(inner)
        return self.close(first, it.exact)

    cdef int32_t owning(self, int32_t formula, const Condition& subject, bint single) except -1 nogil:
        """`single` says that an element has at most one such value; then conditions on it can be told one by one.

        Otherwise [text()[contains(., "x")][contains(., "y")]] asks for ONE text node with both, which two conditions
        on the element do not say, and [text()[not(contains(., "x"))]] for some text node without, which the negation
        of a condition does not say.
        """
        cdef Formula it = self.formulas[formula]
        cdef bint exact = it.exact
        cdef bint implied  # whether some condition implies that there is a value at all
        cdef int32_t result = FORMULA_FALSE
        cdef int32_t i, k, all_of
        cdef Alternative inner
        cdef Condition condition
        for i in range(it.count):
            inner = self.alternatives[it.first + i]
            implied = False
            all_of = self.selection(inner.selects, inner.output)
            for k in range(inner.links):
                condition = self.conditions[self.twigs[self.links[inner.first_link + k]].test]
                if not single and (condition.negated or inner.links > 1):
                    exact = False
                if not single and condition.negated:
                    continue
                condition.subject = subject.subject
                condition.attribute = subject.attribute
                implied = implied or not condition.negated
                all_of = self.conjunction(all_of, self.condition(condition))
            if not implied:
                condition = subject
                condition.comparison = COMPARE_EXISTS
                all_of = self.conjunction(all_of, self.condition(condition))
            result = self.disjunction(result, all_of)
        return result if exact else self.inexact(result)

    cdef int32_t selection(self, int selects, int32_t output) except -1 nogil:
        cdef int32_t first = <int32_t>self.alternatives.size()
        if selects == SELECTS_NOTHING:
            return FORMULA_TRUE
        self.alternatives.push_back(Alternative(0, 0, 0, NO_TEST, output, selects))
        return self.close(first, True)

    cdef int32_t merged_test(self, int32_t left, int32_t right) noexcept nogil:
        """The step whose test an element passes if and only if it passes both; NO_TEST, or CONTRADICTION."""
        cdef const SyntaxNode* a
        cdef const SyntaxNode* b
        left = self.plain_test(left)
        right = self.plain_test(right)
        if left == NO_TEST or left == right:
            return right
        if right == NO_TEST:
            return left
        a = &self.nodes[left]
        b = &self.nodes[right]
        if a.uri != b.uri:
            return CONTRADICTION
        if b.test != TEST_NAME:  # n:*
            return left
        if a.test != TEST_NAME or same_bytes(self.source + a.begin, a.length, self.source + b.begin, b.length):
            return right
        return CONTRADICTION

    cdef int32_t plain_test(self, int32_t test) noexcept nogil:
        if test == NO_TEST or self.nodes[test].test == TEST_ANY or self.nodes[test].test == TEST_NODE:
            return NO_TEST
        return test

    cdef int check_size(self, int32_t size) except -1 nogil:
        if size <= LIMIT_PATTERN_NODES:
            return 0
        with gil:
            raise_fault(self.source, self.source_length, Fault(FAULT_PATTERN_TOO_LARGE, -1, 0))
        return 0


cdef bint _has_one_value(const Condition& condition) noexcept nogil:
    """Whether the subject has always exactly one value, so that not (=) is (!=)."""
    return condition.converted or condition.subject == SUBJECT_STRING
