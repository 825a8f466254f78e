# The lexer: reads one token of UTF-8 text where a cursor stands. Everything is inline and without the GIL.
#
# There is no list of tokens. XPath's lexical rules depend on what came before (`*`, `and`, `div` … are operators
# only after an operand), and a recursive-descent parser always knows whether it stands after one: where it asks for
# an operator, they are operators, and where it asks for a step, they are names.
from libc.string cimport memcmp, strlen

from xsift.native.types cimport int32_t, uint8_t
from xsift.xpath.characters cimport scan_name
from xsift.xpath.number cimport is_digit, is_xml_space
from xsift.xpath.syntax cimport (
    NODE_ADDITIVE, NODE_AND, NODE_EQUALITY, NODE_MULTIPLICATIVE, NODE_OR, NODE_RELATIONAL, NODE_UNION,
    OPERATOR_AND, OPERATOR_DIVIDE, OPERATOR_EQUAL, OPERATOR_GREATER, OPERATOR_GREATER_EQUAL, OPERATOR_LESS,
    OPERATOR_LESS_EQUAL, OPERATOR_MINUS, OPERATOR_MODULO, OPERATOR_MULTIPLY, OPERATOR_NOT_EQUAL, OPERATOR_OR,
    OPERATOR_PLUS, OPERATOR_UNION, TEST_COMMENT, TEST_INSTRUCTION, TEST_NODE, TEST_TEXT,
)


cdef struct Cursor:
    const char* text  # valid UTF-8 without characters that XML forbids; not terminated
    int32_t length
    int32_t at        # 0 <= at <= length


cdef struct Operator:
    uint8_t code      # OPERATOR_…; 0 if there is no operator here
    uint8_t level     # NODE_OR … NODE_MULTIPLICATIVE or NODE_UNION
    uint8_t length    # in bytes


# The byte `ahead` of the cursor; 0, which no expression contains, beyond the end.
cdef inline char peek(const Cursor* cursor, int32_t ahead) noexcept nogil:
    return cursor.text[cursor.at + ahead] if cursor.at + ahead < cursor.length else 0


cdef inline char skip_space(Cursor* cursor) noexcept nogil:
    while cursor.at < cursor.length and is_xml_space(cursor.text[cursor.at]):
        cursor.at += 1
    return peek(cursor, 0)


cdef inline int32_t name_length(const Cursor* cursor) noexcept nogil:
    return <int32_t>scan_name(cursor.text + cursor.at, cursor.text + cursor.length)


cdef inline bint same(const char* text, int32_t length, const char* word) noexcept nogil:
    return strlen(word) == <size_t>length and memcmp(text, word, length) == 0


cdef inline bint same_bytes(const char* a, int32_t a_length, const char* b, int32_t b_length) noexcept nogil:
    return a_length == b_length and memcmp(a, b, a_length) == 0


# The operator at the cursor, which stands after an operand.
cdef inline Operator scan_operator(const Cursor* cursor) noexcept nogil:
    cdef char c = peek(cursor, 0)
    cdef bint equals = peek(cursor, 1) == c"="
    cdef const char* word = cursor.text + cursor.at
    cdef int32_t length
    if c == c"=":
        return Operator(OPERATOR_EQUAL, NODE_EQUALITY, 1)
    if c == c"!" and equals:
        return Operator(OPERATOR_NOT_EQUAL, NODE_EQUALITY, 2)
    if c == c"<":
        return Operator(OPERATOR_LESS_EQUAL if equals else OPERATOR_LESS, NODE_RELATIONAL, 2 if equals else 1)
    if c == c">":
        return Operator(OPERATOR_GREATER_EQUAL if equals else OPERATOR_GREATER, NODE_RELATIONAL, 2 if equals else 1)
    if c == c"|":
        return Operator(OPERATOR_UNION, NODE_UNION, 1)
    if c == c"+":
        return Operator(OPERATOR_PLUS, NODE_ADDITIVE, 1)
    if c == c"-":
        return Operator(OPERATOR_MINUS, NODE_ADDITIVE, 1)
    if c == c"*":
        return Operator(OPERATOR_MULTIPLY, NODE_MULTIPLICATIVE, 1)
    if c == c"a" or c == c"o" or c == c"d" or c == c"m":
        length = name_length(cursor)
        if same(word, length, b"and"):
            return Operator(OPERATOR_AND, NODE_AND, 3)
        if same(word, length, b"or"):
            return Operator(OPERATOR_OR, NODE_OR, 2)
        if same(word, length, b"div"):
            return Operator(OPERATOR_DIVIDE, NODE_MULTIPLICATIVE, 3)
        if same(word, length, b"mod"):
            return Operator(OPERATOR_MODULO, NODE_MULTIPLICATIVE, 3)
    return Operator(0, 0, 0)


# The axis of that name, AXIS_…, or -1.
cdef inline int find_axis(const char* name, int32_t length) noexcept nogil:
    cdef const char** names = [
        b"ancestor", b"ancestor-or-self", b"attribute", b"child", b"descendant", b"descendant-or-self", b"following",
        b"following-sibling", b"namespace", b"parent", b"preceding", b"preceding-sibling", b"self",
    ]
    cdef int axis
    for axis in range(13):
        if same(name, length, names[axis]):
            return axis
    return -1


# The node test that `name(` begins, TEST_…, or -1.
cdef inline int find_node_type(const char* name, int32_t length) noexcept nogil:
    if same(name, length, b"text"):
        return TEST_TEXT
    if same(name, length, b"node"):
        return TEST_NODE
    if same(name, length, b"comment"):
        return TEST_COMMENT
    if same(name, length, b"processing-instruction"):
        return TEST_INSTRUCTION
    return -1


# Number of bytes of the number at the cursor (Digits ('.' Digits?)? | '.' Digits), 0 if there is none.
cdef inline int32_t number_length(const Cursor* cursor) noexcept nogil:
    cdef int32_t at = 0
    cdef int32_t digits
    while is_digit(peek(cursor, at)):
        at += 1
    digits = at
    if peek(cursor, at) == c"." and (digits or is_digit(peek(cursor, at + 1))):
        at += 1
        while is_digit(peek(cursor, at)):
            at += 1
    return at
