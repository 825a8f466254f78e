"""The printer: a syntax tree back as text, such that parsing the text gives an equal tree.

It abbreviates where XPath does (`@a`, `.`, `..`, `//`) and adds parentheses only where they are needed. Numbers are
printed as they were written, which is the one way to be sure that libxml2 reads the same value.

The verification form is the text for lxml, which evaluates it for documents that passed an inexact subscription's
patterns. It makes explicit what a subscription means, so that it does not depend on lxml's context node (which
is the root element where ours is the document): outside predicates, a relative path is printed with the `//` that it
implies, a function of the context node gets the document as its argument, and position() and last() are 1.
"""

from xsift.xpath.functions cimport FUNCTION_LANG, FUNCTION_LAST, FUNCTION_POSITION, FUNCTIONS
from xsift.xpath.expression cimport Expression
from xsift.xpath.syntax cimport (
    AXIS_DESCENDANT_OR_SELF, AXIS_PARENT, AXIS_SELF, NODE_CALL, NODE_FILTER, NODE_LITERAL, NODE_MULTIPLICATIVE,
    NODE_NEGATION, NODE_NUMBER, NODE_PATH, NODE_STEP, NODE_UNION, TEST_COMMENT, TEST_INSTRUCTION, TEST_NODE,
    TEST_TARGET, TEST_TEXT,
)

cdef const char** OPERATORS = [
    b"", b" or ", b" and ", b" = ", b" != ", b" < ", b" <= ", b" > ", b" >= ", b" + ", b" - ", b" * ", b" div ",
    b" mod ", b" | ",
]

cdef const char** AXES = [
    b"ancestor::", b"ancestor-or-self::", b"@", b"", b"descendant::", b"descendant-or-self::", b"following::",
    b"following-sibling::", b"namespace::", b"parent::", b"preceding::", b"preceding-sibling::", b"self::",
]


cdef struct Printer:
    string* text
    const SyntaxNode* nodes
    const char* source
    bint verification
    int32_t predicates  # how many predicates are open


cdef int print_tree(
    string* text, const SyntaxNode* nodes, const char* source, int32_t root, bint verification
) except -1 nogil:
    cdef Printer printer = Printer(text, nodes, source, verification, 0)
    return _node(&printer, root)


cdef int _node(Printer* p, int32_t node) except -1 nogil:
    cdef int kind = p.nodes[node].kind
    if kind <= NODE_MULTIPLICATIVE or kind == NODE_UNION:
        return _operands(p, node)
    if kind == NODE_NEGATION:
        p.text.append(p.nodes[node].signs, c"-")
        return _enclosed(p, p.nodes[node].first_child, _is_loose(p, p.nodes[node].first_child, NODE_NEGATION))
    if kind == NODE_PATH:
        return _path(p, node)
    if kind == NODE_STEP:  # as a part of an expression that a message quotes
        return _step(p, node)
    if kind == NODE_FILTER:
        _enclosed(p, p.nodes[node].first_child, not _is_primary(p, p.nodes[node].first_child))
        return _predicates(p, p.nodes[p.nodes[node].first_child].next_sibling)
    if kind == NODE_CALL:
        return _call(p, node)
    if kind == NODE_LITERAL:
        return _literal(p, node)
    p.text.append(p.source + p.nodes[node].begin, p.nodes[node].length)
    return 0


cdef int _operands(Printer* p, int32_t node) except -1 nogil:
    cdef int32_t child = p.nodes[node].first_child
    while child >= 0:
        p.text.append(OPERATORS[p.nodes[child].joint])
        _enclosed(p, child, _is_loose(p, child, p.nodes[node].kind))
        child = p.nodes[child].next_sibling
    return 0


cdef bint _is_loose(Printer* p, int32_t node, int level) noexcept nogil:
    """Whether an operand of that level of operator needs parentheses. `/` alone does: in `/ * 2`, `/*` is a path."""
    cdef const SyntaxNode* operand = &p.nodes[node]
    return operand.kind <= level or (operand.kind == NODE_PATH and operand.first_child < 0)


cdef bint _is_primary(Printer* p, int32_t node) noexcept nogil:
    """Whether a predicate can follow at once."""
    cdef int kind = p.nodes[node].kind
    return kind == NODE_CALL or kind == NODE_LITERAL or kind == NODE_NUMBER


cdef int _enclosed(Printer* p, int32_t node, bint parentheses) except -1 nogil:
    if parentheses:
        p.text.append(b"(")
    _node(p, node)
    if parentheses:
        p.text.append(b")")
    return 0


# --- paths

cdef int _path(Printer* p, int32_t node) except -1 nogil:
    cdef int32_t child = p.nodes[node].first_child
    cdef bint absolute = p.nodes[node].detail
    cdef bint slash = absolute  # whether a slash stands before the next step
    if child >= 0 and p.nodes[child].kind != NODE_STEP:
        _enclosed(p, child, not _is_primary(p, child) and p.nodes[child].kind != NODE_FILTER)
        child = p.nodes[child].next_sibling
        slash = True
    elif not absolute and p.verification and p.predicates == 0:
        p.text.append(b"//")
    if child < 0:
        p.text.append(b"/")
    while child >= 0:
        if slash:
            p.text.append(b"/")
        if slash and _is_abbreviation(p, child, AXIS_DESCENDANT_OR_SELF) and p.nodes[child].next_sibling >= 0:
            p.text.append(b"/")
            child = p.nodes[child].next_sibling
        _step(p, child)
        child = p.nodes[child].next_sibling
        slash = True
    return 0


cdef bint _is_abbreviation(Printer* p, int32_t step, int axis) noexcept nogil:
    """Whether the step is axis::node() without predicates, which `.`, `..` and `//` abbreviate."""
    return p.nodes[step].detail == axis and p.nodes[step].test == TEST_NODE and p.nodes[step].first_child < 0


cdef int _step(Printer* p, int32_t node) except -1 nogil:
    cdef const SyntaxNode* step = &p.nodes[node]
    if _is_abbreviation(p, node, AXIS_SELF):
        p.text.append(b".")
        return 0
    if _is_abbreviation(p, node, AXIS_PARENT):
        p.text.append(b"..")
        return 0
    p.text.append(AXES[step.detail])
    if step.test == TEST_NODE:
        p.text.append(b"node()")
    elif step.test == TEST_TEXT:
        p.text.append(b"text()")
    elif step.test == TEST_COMMENT:
        p.text.append(b"comment()")
    elif step.test == TEST_INSTRUCTION:
        p.text.append(b"processing-instruction()")
    elif step.test == TEST_TARGET:
        p.text.append(b"processing-instruction(")
        _literal(p, node)
        p.text.append(b")")
    elif step.prefix:
        p.text.append(p.source + step.begin - 1 - step.prefix, step.prefix + 1 + step.length)
    else:
        p.text.append(p.source + step.begin, step.length)
    return _predicates(p, step.first_child)


cdef int _predicates(Printer* p, int32_t predicate) except -1 nogil:
    while predicate >= 0:
        p.text.append(b"[")
        p.predicates += 1
        _node(p, predicate)
        p.predicates -= 1
        p.text.append(b"]")
        predicate = p.nodes[predicate].next_sibling
    return 0


# --- primary expressions

cdef int _call(Printer* p, int32_t node) except -1 nogil:
    cdef int function = p.nodes[node].detail
    cdef int32_t argument = p.nodes[node].first_child
    cdef bint explicit = p.verification and p.predicates == 0
    if explicit and (function == FUNCTION_POSITION or function == FUNCTION_LAST):
        p.text.append(b"1")
        return 0
    if explicit and function == FUNCTION_LANG:  # a document has no xml:lang, and nothing around it that has one
        p.text.append(b"false()")
        return 0
    p.text.append(FUNCTIONS[function].name)
    p.text.append(b"(")
    if explicit and argument < 0 and FUNCTIONS[function].takes_context:
        p.text.append(b"/")
    while argument >= 0:
        _node(p, argument)
        argument = p.nodes[argument].next_sibling
        if argument >= 0:
            p.text.append(b", ")
    p.text.append(b")")
    return 0


cdef int _literal(Printer* p, int32_t node) except -1 nogil:
    """A literal in the quotes that it does not contain; it cannot contain both kinds."""
    cdef const char* content = p.source + p.nodes[node].begin
    cdef int32_t length = p.nodes[node].length
    cdef char quote = c"'"
    cdef int32_t i
    for i in range(length):
        if content[i] == c"'":
            quote = c'"'
    p.text.append(1, quote)
    p.text.append(content, length)
    p.text.append(1, quote)
    return 0


def to_text(Expression expression not None, *, bint verification=False):
    """The expression as text. With `verification`, as lxml is to evaluate it to answer what a subscription asks."""
    cdef string text
    print_tree(&text, expression.nodes.data(), expression.source, <int32_t>expression.nodes.size() - 1, verification)
    return (<bytes>text).decode()
