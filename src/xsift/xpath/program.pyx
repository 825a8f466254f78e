"""Programs: a syntax tree to the bytes that are stored, and evaluated later (program.hpp).

What a subscription means is made explicit here, as the printer does it in the text for lxml: outside predicates a
relative path starts anywhere (`a` is `//a`), a function of the context node is given the document, position() and
last() are 1, and lang() is false. Beyond that only what makes equal expressions equal programs: `.` is left out of
paths, and `//a` is one step where no predicate counts positions.
"""

from libcpp.vector cimport vector

from xsift.native.tables cimport BytesTable
from xsift.xpath.expression cimport Expression
from xsift.xpath.functions cimport (
    FUNCTION_FALSE, FUNCTION_LANG, FUNCTION_LAST, FUNCTION_POSITION, FUNCTIONS, TYPE_NUMBER,
)
from xsift.xpath.syntax cimport (
    AXIS_CHILD, AXIS_DESCENDANT, AXIS_DESCENDANT_OR_SELF, AXIS_NAMESPACE, AXIS_SELF, NODE_AND, NODE_CALL, NODE_EQUALITY,
    NODE_FILTER, NODE_LITERAL, NODE_NEGATION, NODE_NUMBER, NODE_OR, NODE_PATH,
    NODE_RELATIONAL, NODE_STEP, NODE_UNION, OPERATOR_DIVIDE, OPERATOR_MINUS, OPERATOR_MODULO, OPERATOR_MULTIPLY,
    OPERATOR_PLUS, TEST_NAME, TEST_NAMESPACE, TEST_NODE, TEST_TARGET,
)


cdef struct Writer:
    string* program
    const SyntaxNode* nodes
    const char* source
    const BytesTable* uris    # of the namespaces that prefixes stand for
    vector[int32_t]* waiting  # operations that are arguments of one that is not written yet: a stack
    int32_t count             # operations written
    int32_t predicates        # how many predicates are open
    bint uses_namespaces


cdef int write_program(
    string* program, const SyntaxNode* nodes, const char* source, int32_t root, Namespaces namespaces
) except -1 nogil:
    cdef vector[int32_t] waiting
    cdef Writer writer = Writer(program, nodes, source, &namespaces.uris, &waiting, 0, 0, False)
    cdef size_t flags = program.size() + 1
    program.push_back(PROGRAM_VERSION)
    program.push_back(0)
    _write(&writer, root)
    program.push_back(<char>PROGRAM_END)
    if writer.uses_namespaces:
        program[0][flags] = PROGRAM_NAMESPACES
    return 0


cdef int32_t _put(Writer* w, Op op, int detail, int test, size_t first) except -1 nogil:
    """Writes an operation whose arguments are those that wait from `first` on; its number."""
    cdef size_t i
    w.program.push_back(<char>op)
    w.program.push_back(<char>detail)
    w.program.push_back(<char>test)
    put_varint(w.program, <uint32_t>(w.waiting.size() - first))
    for i in range(first, w.waiting.size()):
        put_varint(w.program, <uint32_t>(w.count - w.waiting[0][i]))
    w.waiting.resize(first)
    w.count += 1
    return w.count - 1


cdef int32_t _put_plain(Writer* w, Op op, int detail) except -1 nogil:
    return _put(w, op, detail, 0, w.waiting.size())


cdef int32_t _put_number(Writer* w, double number) except -1 nogil:
    cdef int32_t result = _put_plain(w, Op.NUMBER, 0)
    w.program.append(<const char*>&number, 8)
    return result


cdef int32_t _write(Writer* w, int32_t node) except -1 nogil:
    """Writes an expression; the number of its operation."""
    cdef int kind = w.nodes[node].kind
    cdef int32_t result
    if kind == NODE_PATH:
        return _write_path(w, node)
    if kind == NODE_CALL:
        return _write_call(w, node)
    if kind == NODE_NUMBER:
        return _put_number(w, w.nodes[node].number)
    if kind == NODE_LITERAL:
        result = _put_plain(w, Op.STRING, 0)
        put_text(w.program, w.source + w.nodes[node].begin, w.nodes[node].length)
        return result
    if kind == NODE_OR or kind == NODE_AND or kind == NODE_UNION:
        return _write_row(w, node, Op.OR if kind == NODE_OR else Op.AND if kind == NODE_AND else Op.UNION)
    if kind == NODE_FILTER:
        return _write_filter(w, node)
    if kind == NODE_NEGATION:
        return _write_negation(w, node)
    return _write_chain(w, node)


cdef int32_t _write_row(Writer* w, int32_t node, Op op) except -1 nogil:
    """An operator that takes any number of operands."""
    cdef size_t first = w.waiting.size()
    cdef int32_t operand = w.nodes[node].first_child
    while operand >= 0:
        w.waiting.push_back(_write(w, operand))
        operand = w.nodes[operand].next_sibling
    return _put(w, op, 0, 0, first)


cdef int32_t _write_chain(Writer* w, int32_t node) except -1 nogil:
    """Operators that take two operands, from left to right."""
    cdef int32_t operand = w.nodes[node].first_child
    cdef int32_t result = _write(w, operand)
    cdef size_t first = w.waiting.size()
    cdef int joint
    operand = w.nodes[operand].next_sibling
    while operand >= 0:
        w.waiting.push_back(result)
        w.waiting.push_back(_write(w, operand))
        joint = w.nodes[operand].joint
        if w.nodes[node].kind == NODE_EQUALITY or w.nodes[node].kind == NODE_RELATIONAL:
            result = _put(w, Op.COMPARE, joint, 0, first)
        else:
            result = _put(w, _arithmetic(joint), 0, 0, first)
        operand = w.nodes[operand].next_sibling
    return result


cdef Op _arithmetic(int joint) noexcept nogil:
    if joint == OPERATOR_PLUS:
        return Op.ADD
    if joint == OPERATOR_MINUS:
        return Op.SUBTRACT
    if joint == OPERATOR_MULTIPLY:
        return Op.MULTIPLY
    return Op.DIVIDE if joint == OPERATOR_DIVIDE else Op.MODULO


cdef int32_t _write_negation(Writer* w, int32_t node) except -1 nogil:
    cdef size_t first = w.waiting.size()
    cdef int32_t operand = w.nodes[node].first_child
    cdef int32_t signs = w.nodes[node].signs
    if w.nodes[operand].kind == NODE_NUMBER:
        return _put_number(w, -w.nodes[operand].number if signs % 2 else w.nodes[operand].number)
    w.waiting.push_back(_write(w, operand))
    if signs % 2 == 0:  # two signs still make a number of what is none
        w.waiting.push_back(_put(w, Op.NEGATE, 0, 0, first))
    return _put(w, Op.NEGATE, 0, 0, first)


cdef int32_t _write_call(Writer* w, int32_t node) except -1 nogil:
    cdef size_t first = w.waiting.size()
    cdef int function = w.nodes[node].detail
    cdef int32_t argument = w.nodes[node].first_child
    cdef bint is_top = w.predicates == 0
    if is_top and (function == FUNCTION_POSITION or function == FUNCTION_LAST):
        return _put_number(w, 1)
    if function == FUNCTION_POSITION or function == FUNCTION_LAST:
        return _put_plain(w, Op.POSITION if function == FUNCTION_POSITION else Op.LAST, 0)
    if function == FUNCTION_LANG and is_top:
        return _put_plain(w, Op.CALL, FUNCTION_FALSE)
    if argument < 0 and FUNCTIONS[function].takes_context:
        w.waiting.push_back(_put_plain(w, Op.ROOT if is_top else Op.CONTEXT, 0))
    while argument >= 0:
        w.waiting.push_back(_write(w, argument))
        argument = w.nodes[argument].next_sibling
    return _put(w, Op.CALL, function, 0, first)


# --- node-sets

cdef int32_t _write_filter(Writer* w, int32_t node) except -1 nogil:
    cdef size_t first = w.waiting.size()
    cdef int32_t inner = w.nodes[node].first_child
    w.waiting.push_back(_write(w, inner))
    _write_predicates(w, w.nodes[inner].next_sibling)
    return _put(w, Op.FILTER, 0, 0, first)


cdef int _write_predicates(Writer* w, int32_t predicate) except -1 nogil:
    """Writes predicates, which then wait for what they belong to."""
    w.predicates += 1
    while predicate >= 0:
        w.waiting.push_back(_write(w, predicate))
        predicate = w.nodes[predicate].next_sibling
    w.predicates -= 1
    return 0


cdef int32_t _write_path(Writer* w, int32_t node) except -1 nogil:
    cdef int32_t step = w.nodes[node].first_child
    cdef bint descent = False  # whether descendant-or-self::node() waits for the next step
    cdef int32_t result
    cdef int axis
    if step >= 0 and w.nodes[step].kind != NODE_STEP:
        result = _write(w, step)
        step = w.nodes[step].next_sibling
    elif w.nodes[node].detail or w.predicates == 0:
        result = _put_plain(w, Op.ROOT, 0)
        descent = not w.nodes[node].detail
    else:
        result = _put_plain(w, Op.CONTEXT, 0)
    while step >= 0:
        axis = w.nodes[step].detail
        if w.nodes[step].test == TEST_NODE and w.nodes[step].first_child < 0 and (
                axis == AXIS_SELF or axis == AXIS_DESCENDANT_OR_SELF):
            descent = descent or axis == AXIS_DESCENDANT_OR_SELF
        else:
            if descent and not _counts(w, w.nodes[step].first_child):
                if axis == AXIS_CHILD or axis == AXIS_DESCENDANT:
                    axis = AXIS_DESCENDANT
                    descent = False
                elif axis == AXIS_SELF or axis == AXIS_DESCENDANT_OR_SELF:
                    axis = AXIS_DESCENDANT_OR_SELF
                    descent = False
            if descent:
                result = _write_descent(w, result)
            result = _write_step(w, result, axis, step)
            descent = False
        step = w.nodes[step].next_sibling
    return _write_descent(w, result) if descent else result


cdef int32_t _write_descent(Writer* w, int32_t source) except -1 nogil:
    cdef size_t first = w.waiting.size()
    w.waiting.push_back(source)
    return _put(w, Op.STEP, AXIS_DESCENDANT_OR_SELF, TEST_NODE, first)


cdef int32_t _write_step(Writer* w, int32_t source, int axis, int32_t node) except -1 nogil:
    cdef size_t first = w.waiting.size()
    cdef const SyntaxNode* step = &w.nodes[node]
    cdef int32_t uri = step.uri
    cdef int32_t result
    if axis == AXIS_NAMESPACE:
        w.uses_namespaces = True
        uri = -1  # libxml2 looks at the local name only
    w.waiting.push_back(source)
    _write_predicates(w, step.first_child)
    result = _put(w, Op.STEP, axis, step.test, first)
    if step.test == TEST_NAME or step.test == TEST_NAMESPACE or step.test == TEST_TARGET:
        if uri >= 0:
            put_text(w.program, w.uris.data_of(uri), w.uris.length_of(uri))
        else:
            put_text(w.program, b"", 0)
        put_text(w.program, w.source + step.begin, 0 if step.test == TEST_NAMESPACE else step.length)
    return result


cdef bint _counts(Writer* w, int32_t predicate) noexcept nogil:
    """Whether some of these predicates depends on positions."""
    while predicate >= 0:
        if w.nodes[predicate].type == TYPE_NUMBER or _asks_position(w, predicate):
            return True
        predicate = w.nodes[predicate].next_sibling
    return False


cdef bint _asks_position(Writer* w, int32_t node) noexcept nogil:
    """Whether position() or last() of the predicate at hand occurs in an expression. Predicates in it have their own."""
    cdef const SyntaxNode* it = &w.nodes[node]
    cdef int32_t child = it.first_child
    if it.kind == NODE_CALL and (it.detail == FUNCTION_POSITION or it.detail == FUNCTION_LAST):
        return True
    if it.kind == NODE_STEP:
        return False
    while child >= 0:
        if _asks_position(w, child):
            return True
        if it.kind == NODE_FILTER:
            return False
        child = w.nodes[child].next_sibling
    return False


def program_of(Expression expression not None):
    """The program of an expression, as bytes."""
    cdef string program
    write_program(&program, expression.nodes.data(), expression.source, <int32_t>expression.nodes.size() - 1,
                  expression.namespaces)
    return <bytes>program
