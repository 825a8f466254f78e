"""Truths: what an expression that is used as a truth demands of its context node, as a formula.

XPath 1.0 decides by type. A node-set is true if it has a node, and compared with a value if SOME node compares so;
but a function that wants a string takes the FIRST node's, or "" if there is none. The first kind is what patterns
are made for. The second is exact only where there can be just one node (`.`, `@a`) or the condition itself says
"the first" (`text()`): then `Condition.converted` is set. Elsewhere a node of which the condition holds is
necessary, but not sufficient, as it need not be the first one.

Values are looked at before formulas are made: constants are folded, and from a call such as
string-length(normalize-space(@a)) the node-set and the transform are taken (constants.hpp, Value).
"""

from libc.math cimport floor, fmod, isnan

from xsift.xpath.condition cimport (
    COMPARE_CONTAINS, COMPARE_EQUAL, COMPARE_GREATER, COMPARE_LESS, COMPARE_NOT_EQUAL, COMPARE_STARTS_WITH,
    SUBJECT_ATTRIBUTE, SUBJECT_STRING, SUBJECT_TEXT, TRANSFORM_LENGTH, TRANSFORM_NONE, TRANSFORM_NORMALIZE,
    TRANSFORM_NORMALIZE_LENGTH, Change, put_change, put_number_operand, put_text_operand,
)
from xsift.xpath.characters cimport count_characters
from xsift.xpath.constants cimport (
    VALUE_COUNT, VALUE_NODES, VALUE_NUMBER, VALUE_OTHER, VALUE_TEXT, VALUE_TRUTH, compare_constants,
    compare_numbers, depends_on_count, holds, mirrored, normalize_space, opposite,
)
from xsift.xpath.formula cimport FORMULA_FALSE, FORMULA_TRUE, FORMULA_UNKNOWN
from xsift.xpath.functions cimport (
    FUNCTION_BOOLEAN, FUNCTION_CONCAT, FUNCTION_CONTAINS, FUNCTION_COUNT, FUNCTION_FALSE, FUNCTION_LANG,
    FUNCTION_NORMALIZE_SPACE, FUNCTION_NOT, FUNCTION_NUMBER, FUNCTION_STARTS_WITH, FUNCTION_STRING,
    FUNCTION_STRING_LENGTH, FUNCTION_SUBSTRING, FUNCTION_SUBSTRING_AFTER, FUNCTION_SUBSTRING_BEFORE,
    FUNCTION_TRANSLATE, FUNCTION_TRUE, TYPE_BOOLEAN, TYPE_NODE_SET, TYPE_NUMBER, TYPE_STRING,
)
from xsift.xpath.paths cimport DEMAND_CONDITION, Demand, KIND_DOCUMENT, KIND_ELEMENT
from xsift.xpath.syntax cimport (
    AXIS_ATTRIBUTE, AXIS_CHILD, AXIS_DESCENDANT_OR_SELF, AXIS_SELF, NODE_ADDITIVE, NODE_AND, NODE_CALL,
    NODE_EQUALITY, NODE_LITERAL, NODE_MULTIPLICATIVE, NODE_NEGATION, NODE_NUMBER, NODE_OR, NODE_PATH,
    NODE_RELATIONAL, NODE_STEP, OPERATOR_DIVIDE, OPERATOR_EQUAL, OPERATOR_MINUS, OPERATOR_MULTIPLY, OPERATOR_PLUS,
    SyntaxNode, TEST_NAME, TEST_NODE, TEST_TEXT,
)

cdef enum:
    # The node-sets whose string() a condition can speak of.
    SHAPE_OTHER
    SHAPE_SELF        # its first node is the context node
    SHAPE_ATTRIBUTE   # one attribute of the context
    SHAPE_TEXT        # its text nodes


cdef class TruthCompiler(PathCompiler):
    """Compiles whatever can stand in a predicate."""

    cdef int begin(self, const SyntaxNode* nodes, const char* source, size_t length) except -1 nogil:
        self.denies = False
        return PathCompiler.begin(self, nodes, source, length)

    cdef int32_t predicate(self, int32_t node, int kind) except -1 nogil:
        cdef Value value
        if self.nodes[node].type != TYPE_NUMBER:
            return self.truth(node, kind, False)
        self.value(node, &value)
        if value.constant() and not (value.number >= 1 and value.number == floor(value.number)):
            return FORMULA_FALSE  # there is no such position
        return self.unknown(node)

    cdef int32_t truth(self, int32_t node, int kind, bint negated) except -1 nogil:
        cdef int32_t result
        cdef bint blameless = self.blamed < 0
        if self.is_exhausted():
            return self.unknown(node)
        if self.nodes[node].kind == NODE_OR or self.nodes[node].kind == NODE_AND:
            return self.connective(node, kind, negated)
        if self.nodes[node].kind == NODE_CALL and self.nodes[node].detail == FUNCTION_NOT:
            result = self.truth(self.nodes[node].first_child, kind, not negated)
            if blameless and self.blamed == self.nodes[node].first_child:
                self.blamed = node  # it is not the operand that cannot be indexed, but its negation
            return result
        if self.nodes[node].kind == NODE_CALL and self.nodes[node].detail == FUNCTION_BOOLEAN:
            return self.truth(self.nodes[node].first_child, kind, negated)
        result = self.plain_truth(node, kind)
        if negated:
            result = self.formulas.negation(result) if self.formulas.is_exact(result) else self.denial(node, kind)
        if not self.formulas.is_exact(result) and self.blamed < 0:
            self.blamed = node
        return result

    cdef int32_t connective(self, int32_t node, int kind, bint negated) except -1 nogil:
        """`and` and `or`; under a `not`, each is the other one of its negated operands."""
        cdef bint conjunctive = (self.nodes[node].kind == NODE_AND) != negated
        cdef int32_t result = FORMULA_TRUE if conjunctive else FORMULA_FALSE
        cdef int32_t operand = self.nodes[node].first_child
        cdef int32_t part
        while operand >= 0:
            part = self.truth(operand, kind, negated)
            if conjunctive:
                result = self.formulas.conjunction(result, part)
            else:
                result = self.formulas.disjunction(result, part)
            if result == FORMULA_FALSE and conjunctive:
                return FORMULA_FALSE
            operand = self.nodes[operand].next_sibling
        return result

    cdef int32_t denial(self, int32_t node, int kind) except -1 nogil:
        """What the negation of an expression that is not exact still demands: not(string-length(a/b) < 9) wants a b
        that is not so short, as no b at all has a length of 0."""
        cdef int32_t result = FORMULA_UNKNOWN
        if self.nodes[node].kind == NODE_EQUALITY or self.nodes[node].kind == NODE_RELATIONAL:
            self.denies = True
            result = self.comparison(node, kind)
            self.denies = False
        elif self.nodes[node].kind == NODE_CALL and (
                self.nodes[node].detail == FUNCTION_CONTAINS or self.nodes[node].detail == FUNCTION_STARTS_WITH):
            self.denies = True
            result = self.search(node, kind)
            self.denies = False
        return self.weakened(result, node)

    cdef int32_t plain_truth(self, int32_t node, int kind) except -1 nogil:
        cdef int function
        cdef Value value
        if self.nodes[node].type == TYPE_NODE_SET:
            return self.exists(node, kind)
        if self.nodes[node].kind == NODE_EQUALITY or self.nodes[node].kind == NODE_RELATIONAL:
            return self.comparison(node, kind)
        if self.nodes[node].type != TYPE_BOOLEAN:
            self.value(node, &value)
            return self.value_truth(value, node, kind)
        function = self.nodes[node].detail
        if function == FUNCTION_TRUE:
            return FORMULA_TRUE
        if function == FUNCTION_FALSE or (function == FUNCTION_LANG and kind == KIND_DOCUMENT):
            return FORMULA_FALSE  # a document has no xml:lang
        if function == FUNCTION_CONTAINS or function == FUNCTION_STARTS_WITH:
            return self.search(node, kind)
        return self.unknown(node)

    cdef int32_t value_truth(self, const Value& value, int32_t node, int kind) except -1 nogil:
        """boolean() of a string or a number."""
        cdef Condition condition
        cdef int32_t result
        if value.constant():
            return FORMULA_TRUE if value.to_boolean() else FORMULA_FALSE
        if value.kind == VALUE_COUNT:
            return self.exists(value.node, kind)
        condition.subject = SUBJECT_STRING
        condition.transform = value.transform
        condition.recipe = value.recipe
        if value.kind == VALUE_TEXT:
            condition.comparison = COMPARE_NOT_EQUAL
            return self.single(value.node, condition, kind)
        if value.kind != VALUE_NUMBER:
            return self.unknown(node)
        condition.numeric = 1  # not 0 and not NaN
        condition.comparison = COMPARE_GREATER
        result = self.single(value.node, condition, kind)
        if value.transform != TRANSFORM_NONE:
            return result  # a length is never negative
        condition.comparison = COMPARE_LESS
        return self.formulas.disjunction(result, self.single(value.node, condition, kind))

    cdef int32_t search(self, int32_t node, int kind) except -1 nogil:
        """contains() and starts-with()."""
        cdef int32_t first = self.nodes[node].first_child
        cdef Value where, what
        cdef Condition condition
        cdef string constant
        self.value(first, &where)
        self.value(self.nodes[first].next_sibling, &what)
        if not what.constant() or not what.to_text(&condition.text):
            return self.unknown(node)
        if condition.text.empty():
            return FORMULA_TRUE
        condition.subject = SUBJECT_STRING
        condition.comparison = \
            COMPARE_CONTAINS if self.nodes[node].detail == FUNCTION_CONTAINS else COMPARE_STARTS_WITH
        if where.constant():
            if not where.to_text(&constant):
                return self.unknown(node)
            return FORMULA_TRUE if holds(condition, constant) else FORMULA_FALSE
        if where.kind != VALUE_NODES and where.kind != VALUE_TEXT:
            return self.unknown(node)
        condition.transform = where.transform
        condition.recipe = where.recipe
        return self.single(where.node, condition, kind)

    # --- comparisons

    cdef int32_t comparison(self, int32_t node, int kind) except -1 nogil:
        cdef int32_t first = self.nodes[node].first_child
        cdef int32_t second = self.nodes[first].next_sibling
        cdef int comparison = self.nodes[second].joint - OPERATOR_EQUAL + COMPARE_EQUAL
        cdef Value left, right
        if self.nodes[second].next_sibling >= 0:  # a = b = c
            return self.unknown(node)
        self.value(first, &left)
        self.value(second, &right)
        if left.constant() and right.constant():
            return FORMULA_TRUE if compare_constants(left, comparison, right) else FORMULA_FALSE
        if left.constant():
            left, right = right, left
            comparison = mirrored(comparison)
        if self.denies and (not right.constant() or right.type == TYPE_BOOLEAN or (
                left.kind != VALUE_TEXT and left.kind != VALUE_NUMBER and left.kind != VALUE_COUNT)):
            return FORMULA_UNKNOWN
        if not right.constant():
            return self.compare_unknowns(left, right, node, kind)
        if left.kind == VALUE_NODES:
            return self.compare_nodes(left, comparison, right, kind)
        if left.kind == VALUE_TEXT or left.kind == VALUE_NUMBER:
            return self.compare_single(left, comparison, right, kind)
        if left.kind == VALUE_COUNT:
            if self.denies:
                comparison = opposite(comparison)
                self.denies = False  # which does not reach into the path that is counted
            return self.compare_count(left, comparison, right, node, kind)
        if left.kind == VALUE_TRUTH:
            return self.compare_truth(self.truth(left.node, kind, False), comparison, right)
        return self.unknown(node)

    cdef int32_t compare_unknowns(
        self, const Value& left, const Value& right, int32_t node, int kind
    ) except -1 nogil:
        """A node-set that is compared with anything but a boolean must at least not be empty."""
        cdef int32_t result = FORMULA_TRUE
        if left.type == TYPE_BOOLEAN or right.type == TYPE_BOOLEAN:
            return self.unknown(node)
        if left.kind == VALUE_NODES:
            result = self.exists(left.node, kind)
        if right.kind == VALUE_NODES:
            result = self.formulas.conjunction(result, self.exists(right.node, kind))
        return self.weakened(result, node)

    cdef int32_t compare_nodes(
        self, const Value& left, int comparison, const Value& right, int kind
    ) except -1 nogil:
        """Whether some node of a node-set compares so with a constant."""
        cdef Condition condition
        cdef Demand demand
        if right.type == TYPE_BOOLEAN:
            return self.compare_truth(self.exists(left.node, kind), comparison, right)
        condition.subject = SUBJECT_STRING
        condition.comparison = comparison
        if right.type == TYPE_STRING and comparison <= COMPARE_NOT_EQUAL:
            condition.text = right.text
        else:
            condition.numeric = 1
            condition.number = right.to_number()
            if isnan(condition.number):
                return self.exists(left.node, kind) if comparison == COMPARE_NOT_EQUAL else FORMULA_FALSE
        demand = Demand(DEMAND_CONDITION, False, &condition, -1, -1, NULL)
        return self.walk(left.node, kind, &demand)

    cdef int32_t compare_single(
        self, const Value& left, int comparison, const Value& right, int kind
    ) except -1 nogil:
        """Whether the one string, number or length that a node-set is converted to compares so with a constant."""
        cdef Condition condition
        cdef bint equality = comparison <= COMPARE_NOT_EQUAL
        if right.type == TYPE_BOOLEAN and equality:
            return self.compare_truth(self.value_truth(left, -1, kind), comparison, right)
        condition.subject = SUBJECT_STRING
        condition.comparison = comparison
        condition.transform = left.transform
        condition.recipe = left.recipe
        if left.kind == VALUE_TEXT and right.type == TYPE_STRING and equality:
            condition.text = right.text
            return self.single(left.node, condition, kind)
        if condition.transform == TRANSFORM_NORMALIZE:
            condition.transform = TRANSFORM_NONE  # number() ignores the white space around a number anyway
        condition.numeric = 1
        condition.number = right.to_number()
        if isnan(condition.number):
            return FORMULA_TRUE if comparison == COMPARE_NOT_EQUAL else FORMULA_FALSE
        return self.single(left.node, condition, kind)

    cdef int32_t compare_count(
        self, const Value& left, int comparison, const Value& right, int32_t node, int kind
    ) except -1 nogil:
        """count() says as much as existence if all numbers above 0 compare alike, and implies it if 0 does not."""
        cdef double number = right.to_number()
        if right.type == TYPE_BOOLEAN and comparison <= COMPARE_NOT_EQUAL:
            return self.compare_truth(self.exists(left.node, kind), comparison, right)
        if not depends_on_count(comparison, number):
            return self.chosen(compare_numbers(0, comparison, number), compare_numbers(1, comparison, number),
                               self.exists(left.node, kind))
        if compare_numbers(0, comparison, number):
            return self.unknown(node)
        return self.weakened(self.exists(left.node, kind), node)

    cdef int32_t compare_truth(self, int32_t truth, int comparison, const Value& right) except -1 nogil:
        """Whether a boolean compares so with a constant."""
        return self.chosen(compare_constants(Value.of_boolean(False), comparison, right),
                           compare_constants(Value.of_boolean(True), comparison, right), truth)

    cdef int32_t chosen(self, bint if_false, bint if_true, int32_t formula) except -1 nogil:
        """A formula's negation, or itself, or a constant: whatever is true in these cases."""
        if if_false == if_true:
            return FORMULA_TRUE if if_true else FORMULA_FALSE
        return formula if if_true else self.formulas.negation(formula)

    # --- conditions on a converted node-set

    cdef int32_t single(self, int32_t node, const Condition& condition, int kind) except -1 nogil:
        cdef string empty
        cdef bint holds_for_none = holds(condition, empty)
        cdef int32_t step = -1
        cdef int shape = self.shape(node, kind, &step)
        cdef Condition owned = condition
        cdef Demand demand
        if self.denies:
            return self.single_denial(node, condition, kind)
        if shape == SHAPE_SELF:
            return self.ask(condition, kind, node)
        if shape == SHAPE_TEXT:
            owned.subject = SUBJECT_TEXT
            owned.converted = 1
            return self.formulas.condition(owned)
        if shape == SHAPE_ATTRIBUTE:
            owned.subject = SUBJECT_ATTRIBUTE
            owned.converted = holds_for_none  # else it is the same without, and [@a = "x"] is one condition with it
            self.attribute_key(step, &owned.attribute)
            return self.formulas.condition(owned)
        if holds_for_none:
            return FORMULA_TRUE if self.exists(node, kind) == FORMULA_FALSE else self.unknown(node)
        demand = Demand(DEMAND_CONDITION, False, &condition, -1, -1, NULL)
        return self.weakened(self.walk(node, kind, &demand), node)

    cdef int32_t single_denial(self, int32_t node, const Condition& condition, int kind) except -1 nogil:
        """A necessary condition for a context for which the condition does not hold."""
        cdef string empty
        cdef Condition denied = condition
        cdef Demand demand
        if denied.transform == TRANSFORM_LENGTH or denied.transform == TRANSFORM_NORMALIZE_LENGTH or (
                not denied.numeric and denied.comparison <= COMPARE_NOT_EQUAL):
            denied.comparison = opposite(denied.comparison)  # which an index finds; a length is never NaN
        else:
            denied.negated = not denied.negated
        if node < 0 or holds(denied, empty):
            return FORMULA_UNKNOWN
        self.denies = False
        demand = Demand(DEMAND_CONDITION, False, &denied, -1, -1, NULL)
        return self.walk(node, kind, &demand)

    cdef int shape(self, int32_t node, int kind, int32_t* step) noexcept nogil:
        cdef const SyntaxNode* it
        cdef int32_t at
        cdef bint relative
        cdef bint descends
        if node < 0:
            return SHAPE_SELF
        at = self.nodes[node].first_child
        relative = not self.nodes[node].detail
        descends = relative and self.predicate_depth == 0
        if self.nodes[node].kind != NODE_PATH or (at >= 0 and self.nodes[at].kind != NODE_STEP):
            return SHAPE_OTHER
        if not relative and kind != KIND_DOCUMENT:
            return SHAPE_OTHER
        while at >= 0:
            it = &self.nodes[at]
            if it.test == TEST_NODE and it.first_child < 0 and it.detail == AXIS_SELF:
                pass
            elif it.test == TEST_NODE and it.first_child < 0 and it.detail == AXIS_DESCENDANT_OR_SELF:
                descends = descends or step[0] < 0  # below an attribute or text there is nothing but itself
            elif step[0] >= 0:
                return SHAPE_OTHER
            else:
                step[0] = at
            at = it.next_sibling
        if step[0] < 0:
            return SHAPE_SELF
        it = &self.nodes[step[0]]
        if descends or it.first_child >= 0 or kind != KIND_ELEMENT:
            return SHAPE_OTHER
        if it.detail == AXIS_ATTRIBUTE and it.test == TEST_NAME:
            return SHAPE_ATTRIBUTE
        return SHAPE_TEXT if it.detail == AXIS_CHILD and it.test == TEST_TEXT else SHAPE_OTHER

    # --- values

    cdef int value(self, int32_t node, Value* result) except -1 nogil:
        cdef const SyntaxNode* it = &self.nodes[node]
        if it.kind == NODE_LITERAL:
            result[0] = Value.of_text(string(self.source + it.begin, it.length))
        elif it.kind == NODE_NUMBER:
            result[0] = Value.of_number(it.number)
        elif it.type == TYPE_NODE_SET:
            result[0] = Value.of(VALUE_NODES, TYPE_NODE_SET, node, TRANSFORM_NONE)
        elif it.kind == NODE_CALL:
            self.call_value(node, result)
        elif it.kind == NODE_NEGATION or it.kind == NODE_ADDITIVE or it.kind == NODE_MULTIPLICATIVE:
            self.arithmetic_value(node, result)
        else:
            result[0] = Value.of(VALUE_TRUTH, TYPE_BOOLEAN, node, TRANSFORM_NONE)
        return 0

    cdef int call_value(self, int32_t node, Value* result) except -1 nogil:
        cdef const SyntaxNode* it = &self.nodes[node]
        if it.detail == FUNCTION_TRUE or it.detail == FUNCTION_FALSE:
            result[0] = Value.of_boolean(it.detail == FUNCTION_TRUE)
        elif it.type == TYPE_BOOLEAN:
            result[0] = Value.of(VALUE_TRUTH, TYPE_BOOLEAN, node, TRANSFORM_NONE)
        elif it.detail == FUNCTION_COUNT:
            result[0] = Value.of(VALUE_COUNT, TYPE_NUMBER, it.first_child, TRANSFORM_NONE)
        elif it.detail == FUNCTION_CONCAT:
            self.joined_value(node, result)
        elif (it.detail == FUNCTION_TRANSLATE or it.detail == FUNCTION_SUBSTRING
                or it.detail == FUNCTION_SUBSTRING_BEFORE or it.detail == FUNCTION_SUBSTRING_AFTER):
            self.changed_value(node, result)
        elif (it.detail == FUNCTION_STRING or it.detail == FUNCTION_NUMBER or it.detail == FUNCTION_NORMALIZE_SPACE
                or it.detail == FUNCTION_STRING_LENGTH):
            self.text_value(node, result)
        else:
            result[0] = Value.of(VALUE_OTHER, it.type, -1, TRANSFORM_NONE)
        return 0

    cdef int text_value(self, int32_t call, Value* result) except -1 nogil:
        """string(), number(), normalize-space() and string-length(), also of each other."""
        cdef int function = self.nodes[call].detail
        cdef int32_t argument = self.nodes[call].first_child
        cdef Value inner = Value.of(VALUE_TEXT, TYPE_STRING, -1, TRANSFORM_NONE)
        cdef string text
        if argument >= 0:
            self.value(argument, &inner)
        if inner.constant() and function == FUNCTION_NUMBER:
            result[0] = Value.of_number(inner.to_number())
        elif inner.constant() and inner.to_text(&text):
            if function == FUNCTION_STRING:
                result[0] = Value.of_text(text)
            elif function == FUNCTION_NORMALIZE_SPACE:
                result[0] = Value.of_text(normalize_space(text))
            else:
                result[0] = Value.of_number(<double>count_characters(text.data(), text.size()))
        elif inner.kind == VALUE_NODES or inner.kind == VALUE_TEXT:
            if function == FUNCTION_STRING:
                result[0] = Value.of(VALUE_TEXT, TYPE_STRING, inner.node, inner.transform)
            elif function == FUNCTION_NORMALIZE_SPACE:
                result[0] = Value.of(VALUE_TEXT, TYPE_STRING, inner.node, TRANSFORM_NORMALIZE)
            elif function == FUNCTION_STRING_LENGTH:
                result[0] = Value.of(
                    VALUE_NUMBER, TYPE_NUMBER, inner.node,
                    TRANSFORM_NORMALIZE_LENGTH if inner.transform == TRANSFORM_NORMALIZE else TRANSFORM_LENGTH)
            else:  # number() ignores the white space that normalize-space() removes
                result[0] = Value.of(VALUE_NUMBER, TYPE_NUMBER, inner.node, TRANSFORM_NONE)
            result.recipe = inner.recipe
        elif function == FUNCTION_NUMBER and inner.type == TYPE_NUMBER:
            result[0] = inner
        else:
            result[0] = Value.of(VALUE_OTHER, self.nodes[call].type, -1, TRANSFORM_NONE)
        return 0

    cdef int changed_value(self, int32_t call, Value* result) except -1 nogil:
        """translate(), substring(), substring-before() and substring-after() with constant arguments."""
        cdef int function = self.nodes[call].detail
        cdef int32_t argument = self.nodes[call].first_child
        cdef Value inner, one, other
        cdef string first, second
        cdef bint has_other
        self.value(argument, &inner)
        argument = self.nodes[argument].next_sibling
        self.value(argument, &one)
        argument = self.nodes[argument].next_sibling
        has_other = argument >= 0
        if has_other:
            self.value(argument, &other)
        result[0] = Value.of(VALUE_OTHER, TYPE_STRING, -1, TRANSFORM_NONE)
        if not one.constant() or (has_other and not other.constant()) or not self.begin_change(inner, result):
            return 0
        if function == FUNCTION_SUBSTRING:
            put_change(&result.recipe, Change.SUBSTRING)
            put_number_operand(&result.recipe, one.to_number())
            put_number_operand(&result.recipe, other.to_number() if has_other else 0.0)
            result.recipe.push_back(1 if has_other else 0)
            return 0
        if not one.to_text(&first) or (has_other and not other.to_text(&second)):
            result[0] = Value.of(VALUE_OTHER, TYPE_STRING, -1, TRANSFORM_NONE)
            return 0
        put_change(&result.recipe, Change.TRANSLATE if function == FUNCTION_TRANSLATE
                   else Change.BEFORE if function == FUNCTION_SUBSTRING_BEFORE else Change.AFTER)
        put_text_operand(&result.recipe, first)
        if function == FUNCTION_TRANSLATE:
            put_text_operand(&result.recipe, second)
        return 0

    cdef bint begin_change(self, const Value& inner, Value* result) except -1 nogil:
        """Makes the result the string of a node-set, changed as far as `inner` is; more changes may follow. False if
        `inner` is no such string."""
        if inner.kind != VALUE_NODES and inner.kind != VALUE_TEXT:
            return False
        result[0] = Value.of(VALUE_TEXT, TYPE_STRING, inner.node, TRANSFORM_NONE)
        result.recipe = inner.recipe
        if inner.transform == TRANSFORM_NORMALIZE:
            put_change(&result.recipe, Change.NORMALIZE)
        return True

    cdef int joined_value(self, int32_t call, Value* result) except -1 nogil:
        """concat() of constants, with at most one string of a node-set among them."""
        cdef int32_t argument = self.nodes[call].first_child
        cdef string before, after, part
        cdef Value value, inner
        cdef bint has_inner = False
        while argument >= 0:
            self.value(argument, &value)
            if value.constant() and value.to_text(&part):
                if has_inner:
                    after.append(part)
                else:
                    before.append(part)
            elif has_inner or (value.kind != VALUE_NODES and value.kind != VALUE_TEXT):
                result[0] = Value.of(VALUE_OTHER, TYPE_STRING, -1, TRANSFORM_NONE)
                return 0
            else:
                inner = value
                has_inner = True
            argument = self.nodes[argument].next_sibling
        if not has_inner:
            result[0] = Value.of_text(before)
            return 0
        self.begin_change(inner, result)
        put_change(&result.recipe, Change.AROUND)
        put_text_operand(&result.recipe, before)
        put_text_operand(&result.recipe, after)
        return 0

    cdef int arithmetic_value(self, int32_t node, Value* result) except -1 nogil:
        """Arithmetic with constants."""
        cdef int32_t operand = self.nodes[node].first_child
        cdef double total = 0
        cdef double number
        cdef int joint
        cdef Value value
        result[0] = Value.of(VALUE_OTHER, TYPE_NUMBER, -1, TRANSFORM_NONE)
        while operand >= 0:
            self.value(operand, &value)
            if not value.constant():
                return 0
            number = value.to_number()
            joint = self.nodes[operand].joint if operand != self.nodes[node].first_child else 0
            if joint == OPERATOR_PLUS:
                total += number
            elif joint == OPERATOR_MINUS:
                total -= number
            elif joint == OPERATOR_MULTIPLY:
                total *= number
            elif joint == OPERATOR_DIVIDE:
                total /= number
            elif joint:
                total = fmod(total, number)
            else:
                total = number
            operand = self.nodes[operand].next_sibling
        if self.nodes[node].signs % 2:
            total = -total
        result[0] = Value.of_number(total)
        return 0
