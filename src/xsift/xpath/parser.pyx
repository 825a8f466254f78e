"""The parser: the whole grammar of XPath 1.0, from UTF-8 bytes to a flat tree (syntax.pxd), without the GIL.

A parser that makes an object for each token and each node takes tens of microseconds for a short path, which is a
minute for a million subscriptions. This one reads bytes where they lie (lexer.pxd) and writes records into one array
that is used again for the next expression.

It is a recursive-descent parser with precedence climbing; it recurses only where brackets nest, and that is limited.
It also checks what XPath 1.0 lets one check beforehand, so that nothing is left to fail on a document: functions and
their number of arguments, types (which are static, as there are no variables), prefixes.
"""

cimport cython
from libcpp cimport bool as cpp_bool

from xsift.xpath.characters cimport begins_name, valid_prefix
from xsift.xpath.faults cimport (
    FAULT_CHARACTER, FAULT_EMPTY, FAULT_ENCODING, FAULT_FUNCTION_AS_STEP, FAULT_LITERAL_NOT_CLOSED,
    FAULT_NAME_TOO_LONG, FAULT_NODE_TYPE_ARGUMENT, FAULT_NONE, FAULT_NOTHING_TO_CLOSE, FAULT_NOT_NODE_SET,
    FAULT_OPERAND_MISSING, FAULT_PARENTHESIS_EMPTY, FAULT_PARENTHESIS_NOT_CLOSED, FAULT_PREDICATE_AFTER_DOTS,
    FAULT_PREDICATE_EMPTY, FAULT_PREDICATE_NOT_CLOSED, FAULT_STEP_MISSING, FAULT_TEST_MISSING, FAULT_TOO_DEEP,
    FAULT_TOO_LARGE, FAULT_TOO_LONG, FAULT_UNBOUND_PREFIX, FAULT_UNEXPECTED, FAULT_UNKNOWN_AXIS,
    FAULT_UNKNOWN_FUNCTION, FAULT_UNKNOWN_NODE_TYPE, FAULT_VARIABLE, FAULT_WRONG_ARITY,
)
from xsift.xpath.functions cimport FUNCTIONS, TYPE_BOOLEAN, TYPE_NODE_SET, TYPE_NUMBER, TYPE_STRING, find_function
from xsift.xpath.lexer cimport (
    Operator, find_axis, find_node_type, name_length, number_length, peek, scan_operator, skip_space,
)
from xsift.xpath.limits cimport LIMIT_DEPTH, LIMIT_HEIGHT, LIMIT_LENGTH, LIMIT_NAME, LIMIT_NODES
from xsift.xpath.number cimport is_digit, xpath_number
from xsift.xpath.syntax cimport (
    AXIS_ATTRIBUTE, AXIS_CHILD, AXIS_DESCENDANT_OR_SELF, AXIS_PARENT, AXIS_SELF, NODE_ADDITIVE, NODE_CALL,
    NODE_FILTER, NODE_LITERAL, NODE_NEGATION, NODE_NUMBER, NODE_OR, NODE_PATH, NODE_STEP, NODE_UNION,
    OPERATOR_UNION, TEST_ANY, TEST_INSTRUCTION, TEST_NAME, TEST_NAMESPACE, TEST_NODE, TEST_TARGET,
)


cdef inline SyntaxNode blank(int kind, int type, int32_t offset, int32_t first_child) noexcept nogil:
    return SyntaxNode(
        kind=kind, type=type, joint=0, detail=0, test=0, first_child=first_child, next_sibling=-1, offset=offset,
        begin=offset, length=0, prefix=0, uri=-1, height=0, signs=0, number=0.0,
    )


@cython.final
cdef class Parser:
    """Parses one expression after the other."""

    def __init__(self, Namespaces namespaces not None):
        self.namespaces = namespaces

    cdef int32_t parse(self, const char* text, size_t length) except -2 nogil:
        cdef cpp_bool is_encoding = False
        cdef size_t valid
        cdef int32_t root
        self.nodes.clear()
        self.depth = 0
        self.open = 0
        self.fault = Fault(FAULT_NONE, -1, 0)
        if length > LIMIT_LENGTH:
            return self.fail(FAULT_TOO_LONG, -1, 0)
        valid = valid_prefix(text, length, &is_encoding)
        if valid < length:
            return self.fail(FAULT_ENCODING if is_encoding else FAULT_CHARACTER, <int32_t>valid, 0)
        # One byte makes two nodes at most (`a`: a path and its step). So nothing below allocates, or can throw.
        self.nodes.reserve(min(2 * length + 8, <size_t>LIMIT_NODES))
        self.cursor = Cursor(text, <int32_t>length, 0)
        if skip_space(&self.cursor) == 0:
            return self.fail(FAULT_EMPTY, 0, 0)
        root = self.expression(NODE_OR)
        if root >= 0 and skip_space(&self.cursor) != 0:
            return self.unexpected()
        return root

    # --- operators

    cdef int32_t expression(self, int level) noexcept nogil:
        """Operands and the operators between them that bind at least as tightly as `level`."""
        cdef int32_t left = self.unary()
        cdef int32_t operand
        cdef Operator operator
        cdef Row row
        cdef int kind
        while left >= 0:
            skip_space(&self.cursor)
            operator = scan_operator(&self.cursor)
            if operator.code == 0 or operator.level < level:
                return left
            kind = operator.level
            row = Row(left, left)
            while operator.code != 0 and operator.level == kind:
                self.cursor.at += operator.length
                operand = self.expression(kind + 1)
                if self.append(&row, operand) < 0:
                    return -1
                self.nodes[operand].joint = operator.code
                skip_space(&self.cursor)
                operator = scan_operator(&self.cursor)
            left = self.make(blank(kind, TYPE_NUMBER if kind >= NODE_ADDITIVE else TYPE_BOOLEAN,
                                   self.nodes[left].offset, left))
        return -1

    cdef int32_t unary(self) noexcept nogil:
        cdef SyntaxNode node
        cdef int32_t operand
        skip_space(&self.cursor)
        node = blank(NODE_NEGATION, TYPE_NUMBER, self.cursor.at, -1)
        while peek(&self.cursor, 0) == c"-":
            self.cursor.at += 1
            node.signs += 1
            skip_space(&self.cursor)
        operand = self.union_of_paths()
        if operand < 0 or node.signs == 0:
            return operand
        node.first_child = operand
        return self.make(node)

    cdef int32_t union_of_paths(self) noexcept nogil:
        cdef int32_t left = self.path()
        cdef int32_t operand
        cdef Row row = Row(left, left)
        if left < 0 or skip_space(&self.cursor) != c"|":
            return left
        if self.need_node_set(left) < 0:
            return -1
        while skip_space(&self.cursor) == c"|":
            self.cursor.at += 1
            operand = self.path()
            if self.append(&row, operand) < 0 or self.need_node_set(operand) < 0:
                return -1
            self.nodes[operand].joint = OPERATOR_UNION
        return self.make(blank(NODE_UNION, TYPE_NODE_SET, self.nodes[left].offset, left))

    # --- paths

    cdef int32_t path(self) noexcept nogil:
        cdef char c = skip_space(&self.cursor)
        if c == c"(" or c == c'"' or c == c"'" or c == c"$" or number_length(&self.cursor) or self.at_call():
            return self.filter_path()
        if c == c"/" or self.at_step():
            return self.location_path()
        return self.no_operand()

    cdef bint at_call(self) noexcept nogil:
        """Whether a function call begins here, rather than a step: `name(`, but not `text(`."""
        cdef Cursor ahead = self.cursor
        cdef int32_t length = name_length(&ahead)
        if length == 0:
            return False
        ahead.at += length
        if peek(&ahead, 0) == c":" and peek(&ahead, 1) != c":":
            ahead.at += 1
            length = name_length(&ahead)
            ahead.at += length
            return length > 0 and skip_space(&ahead) == c"("
        return skip_space(&ahead) == c"(" and find_node_type(self.cursor.text + self.cursor.at, length) < 0

    cdef bint at_step(self) noexcept nogil:
        cdef char c = peek(&self.cursor, 0)
        return c == c"@" or c == c"." or c == c"*" or begins_name(
            self.cursor.text + self.cursor.at, self.cursor.text + self.cursor.length)

    cdef int32_t location_path(self) noexcept nogil:
        cdef SyntaxNode node = blank(NODE_PATH, TYPE_NODE_SET, self.cursor.at, -1)
        cdef Row row = Row(-1, -1)
        if peek(&self.cursor, 0) == c"/":
            node.detail = 1
            if peek(&self.cursor, 1) != c"/":
                self.cursor.at += 1
                skip_space(&self.cursor)
                if not self.at_step():
                    return self.make(node)
        if peek(&self.cursor, 0) != c"/" and self.append(&row, self.step()) < 0:
            return -1
        if self.steps(&row) < 0:
            return -1
        node.first_child = row.first
        return self.make(node)

    cdef int32_t filter_path(self) noexcept nogil:
        """An expression that is no location path, then perhaps predicates, then perhaps steps."""
        cdef int32_t offset = self.cursor.at
        cdef int32_t start = self.primary()
        cdef Row row = Row(start, start)
        if start < 0:
            return -1
        if skip_space(&self.cursor) == c"[":
            if self.need_node_set(start) < 0 or self.predicates(&row) < 0:
                return -1
            start = self.make(blank(NODE_FILTER, TYPE_NODE_SET, offset, start))
            if start < 0:
                return -1
            row = Row(start, start)
        if skip_space(&self.cursor) != c"/":
            return start
        if self.need_node_set(start) < 0 or self.steps(&row) < 0:
            return -1
        return self.make(blank(NODE_PATH, TYPE_NODE_SET, offset, start))

    cdef int steps(self, Row* row) noexcept nogil:
        """The steps that follow, each after a slash or two."""
        while skip_space(&self.cursor) == c"/":
            if peek(&self.cursor, 1) == c"/":
                if self.descent(row) < 0:
                    return -1
            else:
                self.cursor.at += 1
            skip_space(&self.cursor)
            if not self.at_step():
                return self.fail(FAULT_STEP_MISSING, self.cursor.at, 0)
            if self.append(row, self.step()) < 0:
                return -1
        return 0

    cdef int descent(self, Row* row) noexcept nogil:
        """The step that `//` stands for."""
        cdef SyntaxNode node = blank(NODE_STEP, TYPE_NODE_SET, self.cursor.at, -1)
        node.detail = AXIS_DESCENDANT_OR_SELF
        node.test = TEST_NODE
        self.cursor.at += 2
        return self.append(row, self.make(node))

    # --- steps

    cdef int32_t step(self) noexcept nogil:
        cdef SyntaxNode node = blank(NODE_STEP, TYPE_NODE_SET, self.cursor.at, -1)
        cdef Row row = Row(-1, -1)
        node.detail = AXIS_CHILD
        if peek(&self.cursor, 0) == c".":
            node.detail = AXIS_PARENT if peek(&self.cursor, 1) == c"." else AXIS_SELF
            node.test = TEST_NODE
            self.cursor.at += 2 if node.detail == AXIS_PARENT else 1
            if skip_space(&self.cursor) == c"[":
                return self.fail(FAULT_PREDICATE_AFTER_DOTS, self.cursor.at, 0)
            return self.make(node)
        if peek(&self.cursor, 0) == c"@":
            node.detail = AXIS_ATTRIBUTE
            self.cursor.at += 1
            skip_space(&self.cursor)
        elif self.axis(&node) < 0:
            return -1
        if self.node_test(&node) < 0:
            return -1
        if node.length > LIMIT_NAME or node.prefix > LIMIT_NAME:
            return self.fail(FAULT_NAME_TOO_LONG, node.offset, 0)
        if self.predicates(&row) < 0:
            return -1
        node.first_child = row.first
        return self.make(node)

    cdef int axis(self, SyntaxNode* step) noexcept nogil:
        """Reads `name ::`, if that is what stands here, or else leaves the name's length in step.length."""
        cdef Cursor ahead = self.cursor
        cdef int32_t length = name_length(&ahead)
        cdef int found
        step.length = length
        ahead.at += length
        if length == 0 or skip_space(&ahead) != c":" or peek(&ahead, 1) != c":":
            return 0
        found = find_axis(self.cursor.text + self.cursor.at, length)
        if found < 0:
            return self.fail(FAULT_UNKNOWN_AXIS, self.cursor.at, length)
        step.detail = found
        step.length = 0
        self.cursor.at = ahead.at + 2
        skip_space(&self.cursor)
        return 0

    cdef int node_test(self, SyntaxNode* step) noexcept nogil:
        """Reads a node test. If step.length is not 0, that many bytes here are known to be a name."""
        cdef int32_t length = step.length or name_length(&self.cursor)
        cdef Cursor ahead
        step.begin = self.cursor.at
        step.length = length
        if peek(&self.cursor, 0) == c"*":
            step.test = TEST_ANY
            step.length = 1
            self.cursor.at += 1
            return 0
        if length == 0:
            return self.fail(FAULT_TEST_MISSING, self.cursor.at, 0)
        step.test = TEST_NAME
        self.cursor.at += length
        if peek(&self.cursor, 0) == c":" and peek(&self.cursor, 1) != c":":
            self.cursor.at += 1
            if self.local_name(step) < 0:
                return -1
        ahead = self.cursor
        if skip_space(&ahead) != c"(":
            return 0
        if step.prefix:
            return self.fail(FAULT_UNKNOWN_NODE_TYPE, step.begin - 1 - step.prefix, step.prefix + 1 + step.length)
        return self.node_type(step)

    cdef int local_name(self, SyntaxNode* step) noexcept nogil:
        """What follows a prefix and its colon; the prefix is in step.begin and step.length."""
        cdef bint any_name = peek(&self.cursor, 0) == c"*"
        cdef int32_t length = 1 if any_name else name_length(&self.cursor)
        if length == 0:
            return self.fail(FAULT_TEST_MISSING, self.cursor.at, 0)
        step.uri = self.namespaces.find(self.cursor.text + step.begin, step.length)
        if step.uri < 0:
            return self.fail(FAULT_UNBOUND_PREFIX, step.begin, step.length)
        step.test = TEST_NAMESPACE if any_name else TEST_NAME
        step.prefix = step.length
        step.begin = self.cursor.at
        step.length = length
        self.cursor.at += length
        return 0

    cdef int node_type(self, SyntaxNode* step) noexcept nogil:
        """`text()` and the like; the name is in step.begin and step.length, the cursor behind it."""
        cdef const char* name = self.cursor.text + step.begin
        cdef int32_t offset = step.begin
        cdef int32_t length = step.length
        cdef int test = find_node_type(name, length)
        cdef char c
        if test < 0:
            return self.fail(FAULT_FUNCTION_AS_STEP if find_function(name, length) >= 0 else FAULT_UNKNOWN_NODE_TYPE,
                             offset, length)
        step.test = test
        step.length = 0
        skip_space(&self.cursor)
        self.cursor.at += 1
        c = skip_space(&self.cursor)
        if test == TEST_INSTRUCTION and (c == c"'" or c == c'"'):
            if self.literal_span(&step.begin, &step.length) < 0:
                return -1
            step.test = TEST_TARGET
            c = skip_space(&self.cursor)
        if c == 0:
            return self.fail(FAULT_PARENTHESIS_NOT_CLOSED, self.cursor.at, 0)
        if c != c")":
            return self.fail(FAULT_NODE_TYPE_ARGUMENT, offset, length)
        self.cursor.at += 1
        return 0

    cdef int predicates(self, Row* row) noexcept nogil:
        """The predicates that follow."""
        cdef char outer = self.open
        while skip_space(&self.cursor) == c"[":
            if self.enter(c"[") < 0:
                return -1
            if skip_space(&self.cursor) == c"]":
                return self.fail(FAULT_PREDICATE_EMPTY, self.cursor.at, 0)
            if self.append(row, self.expression(NODE_OR)) < 0 or self.close(c"]", outer) < 0:
                return -1
        return 0

    # --- primary expressions

    cdef int32_t primary(self) noexcept nogil:
        cdef char c = peek(&self.cursor, 0)
        if c == c"(":
            return self.group()
        if c == c'"' or c == c"'":
            return self.literal()
        if c == c"$":
            return self.variable()
        if c == c"." or is_digit(c):
            return self.number()
        return self.call()

    cdef int32_t group(self) noexcept nogil:
        cdef char outer = self.open
        cdef int32_t node
        if self.enter(c"(") < 0:
            return -1
        if skip_space(&self.cursor) == c")":
            return self.fail(FAULT_PARENTHESIS_EMPTY, self.cursor.at, 0)
        node = self.expression(NODE_OR)
        if node < 0 or self.close(c")", outer) < 0:
            return -1
        return node

    cdef int32_t call(self) noexcept nogil:
        cdef SyntaxNode node = blank(NODE_CALL, TYPE_STRING, self.cursor.at, -1)
        cdef Row row = Row(-1, -1)
        cdef int count = 0
        cdef int function
        node.length = name_length(&self.cursor)
        self.cursor.at += node.length
        if peek(&self.cursor, 0) == c":":
            self.cursor.at += 1
            node.length += 1 + name_length(&self.cursor)
            return self.fail(FAULT_UNKNOWN_FUNCTION, node.begin, node.length)
        function = find_function(self.cursor.text + node.begin, node.length)
        if function < 0:
            return self.fail(FAULT_UNKNOWN_FUNCTION, node.begin, node.length)
        skip_space(&self.cursor)
        if self.arguments(&row, &count) < 0:
            return -1
        if count < FUNCTIONS[function].least or count > FUNCTIONS[function].most:
            if FUNCTIONS[function].most != 255 or count < FUNCTIONS[function].least:
                return self.fail(FAULT_WRONG_ARITY, node.begin, node.length)
        if FUNCTIONS[function].takes_node_set and row.first >= 0 and self.need_node_set(row.first) < 0:
            return -1
        node.detail = function
        node.type = FUNCTIONS[function].result
        node.first_child = row.first
        return self.make(node)

    cdef int arguments(self, Row* row, int* count) noexcept nogil:
        """The arguments of a call, with their parentheses."""
        cdef char outer = self.open
        if self.enter(c"(") < 0:
            return -1
        if skip_space(&self.cursor) == c")":
            return self.close(c")", outer)
        while True:
            if self.append(row, self.expression(NODE_OR)) < 0:
                return -1
            count[0] += 1
            if skip_space(&self.cursor) != c",":
                return self.close(c")", outer)
            self.cursor.at += 1

    cdef int32_t literal(self) noexcept nogil:
        cdef SyntaxNode node = blank(NODE_LITERAL, TYPE_STRING, self.cursor.at, -1)
        if self.literal_span(&node.begin, &node.length) < 0:
            return -1
        return self.make(node)

    cdef int literal_span(self, int32_t* begin, int32_t* length) noexcept nogil:
        cdef int32_t start = self.cursor.at
        cdef char quote = peek(&self.cursor, 0)
        cdef int32_t at = start + 1
        while at < self.cursor.length and self.cursor.text[at] != quote:
            at += 1
        if at == self.cursor.length:
            return self.fail(FAULT_LITERAL_NOT_CLOSED, start, 0)
        begin[0] = start + 1
        length[0] = at - start - 1
        self.cursor.at = at + 1
        return 0

    cdef int32_t number(self) noexcept nogil:
        cdef SyntaxNode node = blank(NODE_NUMBER, TYPE_NUMBER, self.cursor.at, -1)
        node.length = number_length(&self.cursor)
        node.number = xpath_number(self.cursor.text + node.begin, node.length)
        self.cursor.at += node.length
        return self.make(node)

    cdef int32_t variable(self) noexcept nogil:
        cdef int32_t offset = self.cursor.at
        cdef int32_t length
        self.cursor.at += 1
        length = name_length(&self.cursor)
        if length == 0:
            return self.fail(FAULT_TEST_MISSING, self.cursor.at, 0)
        return self.fail(FAULT_VARIABLE, offset, 1 + length)

    # --- brackets, nodes, faults

    cdef int enter(self, char opening) noexcept nogil:
        if self.depth == LIMIT_DEPTH:
            return self.fail(FAULT_TOO_DEEP, self.cursor.at, 0)
        self.depth += 1
        self.open = opening
        self.cursor.at += 1
        return 0

    cdef int close(self, char closing, char outer) noexcept nogil:
        if skip_space(&self.cursor) != closing:
            return self.unexpected()
        self.cursor.at += 1
        self.depth -= 1
        self.open = outer
        return 0

    cdef int32_t make(self, SyntaxNode node) noexcept nogil:
        """Adds a node whose children are complete."""
        cdef int32_t child = node.first_child
        if self.nodes.size() == LIMIT_NODES:
            return self.fail(FAULT_TOO_LARGE, -1, 0)
        node.height = 1
        while child >= 0:
            # libxml2 nests a row of operands, steps or predicates to the left, one level each.
            node.height = 1 + max(node.height, self.nodes[child].height)
            child = self.nodes[child].next_sibling
        if node.height > LIMIT_HEIGHT:
            return self.fail(FAULT_TOO_LARGE, -1, 0)
        self.nodes.push_back(node)
        return <int32_t>self.nodes.size() - 1

    cdef int append(self, Row* row, int32_t node) noexcept nogil:
        if node < 0:
            return -1
        if row.first < 0:
            row.first = node
        else:
            self.nodes[row.last].next_sibling = node
        row.last = node
        return 0

    cdef int need_node_set(self, int32_t node) noexcept nogil:
        if self.nodes[node].type != TYPE_NODE_SET:
            return self.fail(FAULT_NOT_NODE_SET, self.nodes[node].offset, 0)
        return 0

    cdef int fail(self, int kind, int32_t offset, int32_t length) noexcept nogil:
        self.fault = Fault(kind, offset, length)
        return -1

    cdef int unexpected(self) noexcept nogil:
        """Something stands here that cannot follow an operand."""
        cdef char c = peek(&self.cursor, 0)
        cdef int32_t length
        if self.open and (c == 0 or c == c"]" or c == c")"):
            return self.fail(FAULT_PREDICATE_NOT_CLOSED if self.open == c"[" else FAULT_PARENTHESIS_NOT_CLOSED,
                             self.cursor.at, 0)
        if c == c"]" or c == c")":
            return self.fail(FAULT_NOTHING_TO_CLOSE, self.cursor.at, 1)
        length = max(name_length(&self.cursor), number_length(&self.cursor))
        if length == 0:
            length = 1
            while (peek(&self.cursor, length) & 0xc0) == 0x80:
                length += 1
        return self.fail(FAULT_UNEXPECTED, self.cursor.at, length)

    cdef int no_operand(self) noexcept nogil:
        """An operand should stand here, and does not."""
        cdef char c = peek(&self.cursor, 0)
        if c == 0 and self.open:
            return self.unexpected()
        if c == 0 or c == c"]" or c == c")" or c == c"," or scan_operator(&self.cursor).code:
            return self.fail(FAULT_OPERAND_MISSING, self.cursor.at, 0)
        return self.unexpected()
