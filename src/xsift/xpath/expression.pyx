"""Expression: a parsed expression, as plain Python code sees it."""

from libc.string cimport memcmp

from xsift.xpath.faults cimport raise_fault
from xsift.xpath.functions cimport TYPE_BOOLEAN, TYPE_NODE_SET, TYPE_NUMBER, TYPE_STRING
from xsift.xpath.limits cimport LIMIT_LENGTH
from xsift.xpath.namespaces cimport namespaces_of
from xsift.xpath.parser cimport Parser
from xsift.xpath.syntax cimport NODE_NUMBER

_TYPES = {TYPE_NODE_SET: "node-set", TYPE_BOOLEAN: "boolean", TYPE_NUMBER: "number", TYPE_STRING: "string"}


cdef bytes encoded(text):
    if isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise TypeError(f"an expression is str or bytes, not {type(text).__name__}")
    # A lone surrogate becomes bytes that are no UTF-8, which the parser reports with their column. What is too long
    # for certain need not be converted in full.
    return (<str>text)[:LIMIT_LENGTH + 1].encode("utf-8", "surrogatepass")


cdef class Expression:
    """A parsed expression: its text, its type, and equality of structure. Made by `parse`."""

    def __init__(self):
        raise TypeError("use xsift.xpath.parse() to make an Expression")

    @property
    def text(self):
        """The expression as it was given."""
        return self.source.decode()

    @property
    def type(self):
        """The static type of its value: "node-set", "boolean", "number" or "string"."""
        return _TYPES[self.nodes.back().type]

    def __eq__(self, other):
        return isinstance(other, Expression) and _same_tree(self, <Expression>other)

    def __hash__(self):
        return hash((self.nodes.size(), self.nodes[0].kind, self.nodes.back().kind))

    def __len__(self):
        """The number of nodes of the syntax tree."""
        return self.nodes.size()

    def __repr__(self):
        return f"parse({self.text!r})"

    def __reduce__(self):
        return (parse, (self.source, self.namespaces.mapping))


cdef bint _same_tree(Expression left, Expression right) noexcept:
    cdef size_t i
    if left.nodes.size() != right.nodes.size():
        return False
    for i in range(left.nodes.size()):
        if not _same_node(left, &left.nodes[i], right, &right.nodes[i]):
            return False
    return True


cdef bint _same_node(Expression left, SyntaxNode* a, Expression right, SyntaxNode* b) noexcept:
    if (a.kind != b.kind or a.joint != b.joint or a.detail != b.detail or a.test != b.test or a.signs != b.signs
            or a.first_child != b.first_child or a.next_sibling != b.next_sibling or a.prefix != b.prefix):
        return False
    if a.kind == NODE_NUMBER:
        return a.number == b.number
    return _same_text(left, a, right, b)


cdef bint _same_text(Expression left, SyntaxNode* a, Expression right, SyntaxNode* b) noexcept:
    """Whether names (with their prefixes) or literals are equal."""
    cdef const char* one = left.source
    cdef const char* other = right.source
    cdef size_t before = a.prefix + 1 if a.prefix else 0
    return a.length == b.length and memcmp(one + a.begin - before, other + b.begin - before, a.length + before) == 0


def parse(text, namespaces=None):
    """Parses an XPath 1.0 expression, given as str or as UTF-8 bytes. Raises XPathError if it is none.

    `namespaces` maps prefixes to URIs, as lxml takes it.
    """
    cdef Parser parser = Parser(namespaces_of(namespaces))
    cdef Expression expression = Expression.__new__(Expression)
    expression.source = encoded(text)
    expression.namespaces = parser.namespaces
    if parser.parse(expression.source, len(expression.source)) < 0:
        raise_fault(expression.source, len(expression.source), parser.fault)
    expression.nodes = parser.nodes
    return expression
