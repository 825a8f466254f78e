"""Canonical keys: equal patterns get equal bytes, however they were written. pattern.pyx describes the format.

Children are sorted by their bytes, conditions first, and those that are there twice are dropped. An ordered pattern's
element children keep their order and their number, as each wants an element of its own; but if no node has two
of them, there is nothing to be ordered, and the pattern is the unordered one.

Only here are names and conditions numbered in Symbols: parts of an expression that were dropped never get that far,
so documents are not searched for them.
"""

cimport cython
from libc.string cimport memcmp, memcpy

from xsift.xpath.condition cimport COMPARE_EQUAL, SUBJECT_NAMESPACE, Condition
from xsift.xpath.formula cimport NO_TEST, SELECTS_NOTHING, Twig
from xsift.xpath.pattern cimport CHILD
from xsift.xpath.symbols cimport ANY
from xsift.xpath.syntax cimport TEST_NAME, TEST_NAMESPACE, SyntaxNode

cdef enum:
    ENTRY = 7  # bytes a node takes


@cython.final
cdef class Canonical:
    """Makes the keys of one expression's patterns."""

    def __init__(self, Formulas formulas not None, Symbols symbols not None, Namespaces namespaces not None):
        self.formulas = formulas
        self.symbols = symbols
        self.namespaces = namespaces

    cdef int begin(self) except -1 nogil:
        self.bytes.clear()
        self.encodings.assign(self.formulas.twigs.size(), Encoding(0, 0, -1, -1, 0))
        return 0

    cdef int encode(self, int32_t root, bint ordered, vector[char]* key, int32_t* output, int32_t* selected) \
            except -1 nogil:
        cdef const Twig* twig
        cdef const Encoding* encoding
        cdef int32_t i, k, elements
        cdef bint branches = False
        cdef size_t begin
        self.wanted.assign(root + 1, 0)
        self.wanted[root] = 1
        for i in range(root, -1, -1):  # children stand before parents
            if not self.wanted[i]:
                continue
            twig = &self.formulas.twigs[i]
            elements = 0
            for k in range(twig.links):
                self.wanted[self.formulas.links[twig.first_link + k]] = 1
                elements += not self.formulas.twigs[self.formulas.links[twig.first_link + k]].is_condition
            branches = branches or elements > 1
        for i in range(root + 1):
            # Patterns of one expression share twigs. A twig without branches is the same ordered or not, and a
            # pattern that contains one with branches has branches itself: so its encoding serves for all of them.
            if self.wanted[i] and self.encodings[i].length == 0:
                self.encode_twig(i, ordered)
        encoding = &self.encodings[root]
        begin = key.size()
        key.resize(begin + 1 + encoding.length)
        key.data()[begin] = ordered and branches
        memcpy(key.data() + begin + 1, self.bytes.data() + encoding.begin, encoding.length)
        output[0] = encoding.output
        selected[0] = encoding.selected
        return 0

    cdef int encode_twig(self, int32_t twig, bint ordered) except -1 nogil:
        cdef const Twig* it = &self.formulas.twigs[twig]
        cdef int32_t symbol = self.symbol_of(it)
        cdef int32_t begin, position, i
        cdef size_t end
        cdef Encoding* child
        cdef Encoding whole = Encoding(0, 0, -1, -1, it.is_condition)
        if it.selects != SELECTS_NOTHING:
            whole.output = 0
            whole.selected = twig
        self.children.clear()
        if not it.is_condition and it.test != NO_TEST and self.formulas.nodes[it.test].test == TEST_NAMESPACE:
            self.add_namespace(it.test)
        for i in range(it.links):
            self.children.push_back(self.encodings[self.formulas.links[it.first_link + i]])
        self.sort_children(ordered)
        begin = <int32_t>self.bytes.size()
        self.append_entry(symbol, it.axis, it.is_condition, <int>self.children.size())
        position = 1
        for i in range(<int32_t>self.children.size()):
            child = &self.children[i]
            if child.output >= 0:
                whole.output = position + child.output
                whole.selected = child.selected
            position += child.length // ENTRY
            end = self.bytes.size()
            self.bytes.resize(end + child.length)
            memcpy(self.bytes.data() + end, self.bytes.data() + child.begin, child.length)
        whole.begin = begin
        whole.length = <int32_t>self.bytes.size() - begin
        self.encodings[twig] = whole
        return 0

    cdef int32_t symbol_of(self, const Twig* it) except -1 nogil:
        cdef const SyntaxNode* step
        if it.is_condition:
            return self.symbols.condition(self.formulas.conditions[it.test])
        if it.test == NO_TEST or self.formulas.nodes[it.test].test != TEST_NAME:
            return ANY
        step = &self.formulas.nodes[it.test]
        if step.uri < 0:
            return self.symbols.name(self.formulas.source + step.begin, step.length)
        self.name.assign(self.namespaces.uris.data_of(step.uri), self.namespaces.uris.length_of(step.uri))
        self.name.append(1, c"\x1f")
        self.name.append(self.formulas.source + step.begin, step.length)
        return self.symbols.name(self.name.data(), self.name.size())

    cdef int add_namespace(self, int32_t test) except -1 nogil:
        """n:* is * with a condition."""
        cdef Condition condition
        cdef int32_t uri = self.formulas.nodes[test].uri
        cdef int32_t begin = <int32_t>self.bytes.size()
        condition.subject = SUBJECT_NAMESPACE
        condition.comparison = COMPARE_EQUAL
        condition.text.assign(self.namespaces.uris.data_of(uri), self.namespaces.uris.length_of(uri))
        self.append_entry(self.symbols.condition(condition), CHILD, True, 0)
        self.children.push_back(Encoding(begin, ENTRY, -1, -1, True))
        return 0

    # --- children

    cdef int sort_children(self, bint ordered) noexcept nogil:
        """Sorts by insertion, as there are mostly none or two, and drops what is there twice."""
        cdef size_t i, at, kept
        cdef Encoding moving
        for i in range(1, self.children.size()):
            moving = self.children[i]
            at = i
            while at > 0 and self.precedes(&moving, &self.children[at - 1], ordered):
                self.children[at] = self.children[at - 1]
                at -= 1
            self.children[at] = moving
        kept = 0
        for i in range(self.children.size()):
            if kept and self.equal(&self.children[kept - 1], &self.children[i]) and not (
                    ordered and not self.children[i].is_condition):
                if self.children[i].output >= 0:
                    self.children[kept - 1] = self.children[i]
                continue
            self.children[kept] = self.children[i]
            kept += 1
        self.children.resize(kept)
        return 0

    cdef bint precedes(self, const Encoding* left, const Encoding* right, bint ordered) noexcept nogil:
        cdef int difference
        if left.is_condition != right.is_condition:
            return left.is_condition
        if ordered and not left.is_condition:
            return False
        difference = memcmp(&self.bytes[left.begin], &self.bytes[right.begin], min(left.length, right.length))
        return difference < 0 or (difference == 0 and left.length < right.length)

    cdef bint equal(self, const Encoding* left, const Encoding* right) noexcept nogil:
        return left.length == right.length and memcmp(
            &self.bytes[left.begin], &self.bytes[right.begin], left.length) == 0

    cdef int append_entry(self, int32_t symbol, int axis, bint is_condition, int children) except -1 nogil:
        cdef unsigned short count = children
        cdef size_t end = self.bytes.size()
        self.bytes.resize(end + ENTRY)
        memcpy(self.bytes.data() + end, &symbol, 4)
        self.bytes[end + 4] = <char>(axis | (is_condition << 1))
        memcpy(self.bytes.data() + end + 5, &count, 2)
        return 0
