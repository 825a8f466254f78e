# The syntax tree of an expression: flat records in one array, no objects.
#
# Children stand before their parent in the array, and the order in which nodes are made depends on the structure
# alone, so two expressions are equal if their arrays are. Operators of one precedence level that stand in a row
# are ONE node with all the operands (`a or b or c`; `1 + 2 - 3`), steps of a path and predicates of a step are
# likewise siblings. So the tree is only as deep as brackets nest, and whoever walks it may recurse.
from xsift.native.types cimport int32_t, uint8_t

cdef enum:
    # kinds
    NODE_OR = 1          # the first six are binary operators, loosest first: the kind is the precedence level
    NODE_AND = 2
    NODE_EQUALITY = 3
    NODE_RELATIONAL = 4
    NODE_ADDITIVE = 5
    NODE_MULTIPLICATIVE = 6
    NODE_NEGATION = 7    # one or more unary minus signs; one child
    NODE_UNION = 8
    NODE_PATH = 9        # children: steps; the first child is no step where the path starts from an expression
    NODE_FILTER = 10     # children: an expression, then its predicates
    NODE_STEP = 11       # children: predicates
    NODE_LITERAL = 12
    NODE_NUMBER = 13
    NODE_CALL = 14       # children: arguments

    # operators, in SyntaxNode.joint
    OPERATOR_OR = 1
    OPERATOR_AND
    OPERATOR_EQUAL
    OPERATOR_NOT_EQUAL
    OPERATOR_LESS
    OPERATOR_LESS_EQUAL
    OPERATOR_GREATER
    OPERATOR_GREATER_EQUAL
    OPERATOR_PLUS
    OPERATOR_MINUS
    OPERATOR_MULTIPLY
    OPERATOR_DIVIDE
    OPERATOR_MODULO
    OPERATOR_UNION

    # axes, in the order of the names in lexer.pxd
    AXIS_ANCESTOR = 0
    AXIS_ANCESTOR_OR_SELF
    AXIS_ATTRIBUTE
    AXIS_CHILD
    AXIS_DESCENDANT
    AXIS_DESCENDANT_OR_SELF
    AXIS_FOLLOWING
    AXIS_FOLLOWING_SIBLING
    AXIS_NAMESPACE
    AXIS_PARENT
    AXIS_PRECEDING
    AXIS_PRECEDING_SIBLING
    AXIS_SELF

    # node tests
    TEST_NAME = 0        # a, n:a
    TEST_ANY             # *
    TEST_NAMESPACE       # n:*
    TEST_NODE            # node()
    TEST_TEXT            # text()
    TEST_COMMENT         # comment()
    TEST_INSTRUCTION     # processing-instruction()
    TEST_TARGET          # processing-instruction("target")


cdef struct SyntaxNode:
    uint8_t kind
    uint8_t type           # static type of the value, TYPE_…; a step's is TYPE_NODE_SET
    uint8_t joint          # the operator before this operand; 0 for a first operand and for what is none
    uint8_t detail         # of a path: 1 if it starts at the root; a step's axis; a call's function
    uint8_t test           # of a step
    int32_t first_child    # -1 if none
    int32_t next_sibling   # -1 if none
    int32_t offset         # the byte at which it starts in the source, for messages
    int32_t begin          # the name, target, literal (without quotes) or number: where it starts in the source,
    int32_t length         # and its number of bytes; 0 if there is none
    int32_t prefix         # number of bytes of a name's prefix, which ends one byte before `begin`; 0 if none
    int32_t uri            # the prefix's namespace, a number in Namespaces; -1 if there is no prefix
    int32_t height         # how deep libxml2 would nest the operations of this sub-tree
    int32_t signs          # of a negation: how many minus signs
    double number          # of a number
