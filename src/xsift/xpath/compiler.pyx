"""The compiler: a subscription's text to what engines index.

The result is a disjunction of patterns. If it is exact, the subscription matches a document if and only if one of
them does. If not, one of them matching is only necessary, and the expression has to be evaluated (`program`) for
the documents that pass. The work is done in layers, each a file:

    parser     text -> syntax tree
    paths      what a location path demands of its context node    \\
    truths     what any other expression does, used as a truth      } -> formulas
    formula    such demands: alternatives, each a set of twigs     /
    canonical  twigs -> canonical keys of patterns

The context node is the document, and a relative path outside predicates means // and itself (DESIGN.md, "What a
subscription means").
"""

cimport cython
from libc.string cimport memcmp

from xsift.errors import XPathError

from xsift.xpath.characters cimport count_characters
from xsift.xpath.faults cimport raise_fault
from xsift.xpath.formula cimport (
    SELECTS_ATTRIBUTE, SELECTS_ELEMENT, SELECTS_NODES, SELECTS_NOTHING, SELECTS_TEXT, Alternative, Formula,
)
from xsift.xpath.functions cimport TYPE_NODE_SET
from xsift.xpath.namespaces cimport namespaces_of
from xsift.xpath.expression cimport encoded
from xsift.xpath.paths cimport DEMAND_EXISTENCE, KIND_DOCUMENT, Demand
from xsift.xpath.printer cimport print_tree
from xsift.xpath.program cimport write_program
from xsift.xpath.syntax cimport TEST_NAME

from xsift.xpath.meaning import Meaning, Selection

_SELECTS = {
    SELECTS_NOTHING: "nothing",
    SELECTS_ELEMENT: "element",
    SELECTS_ATTRIBUTE: "attribute",
    SELECTS_TEXT: "text",
    SELECTS_NODES: "nodes",
}


@cython.final
cdef class Compiler:
    """Compiles one subscription after the other, under one table of symbols and one mapping of namespaces.

    Its buffers are used again, and for a text without errors no Python object is made: for a million subscriptions
    use one compiler, from Cython, with `compile_bytes`.
    """

    def __init__(self, Symbols symbols not None, *, namespaces=None):
        self.symbols = symbols
        self.namespaces = namespaces_of(namespaces)
        self.parser = Parser(self.namespaces)
        self.truths = TruthCompiler(self.namespaces)
        self.formulas = self.truths.formulas
        self.canonical = Canonical(self.formulas, self.symbols, self.namespaces)

    cdef int compile_bytes(self, const char* text, size_t length, bint ordered) except -1 nogil:
        cdef Demand selecting = Demand(DEMAND_EXISTENCE, True, NULL, -1, -1, NULL)
        cdef int32_t root = self.parser.parse(text, length)
        cdef int32_t formula
        if root < 0:
            with gil:
                raise_fault(text, length, self.parser.fault)
        self.nodes, self.source = self.parser.nodes.data(), text
        self.truths.begin(self.nodes, text, length)
        if self.nodes[root].type == TYPE_NODE_SET:
            formula = self.truths.walk(root, KIND_DOCUMENT, &selecting)
        else:
            formula = self.truths.truth(root, KIND_DOCUMENT, False)
        return self.emit(formula, ordered)

    cdef int emit(self, int32_t formula, bint ordered) except -1 nogil:
        cdef Formula it = self.formulas.formulas[formula]
        cdef int32_t root = <int32_t>self.parser.nodes.size() - 1
        cdef bint is_node_set = self.nodes[root].type == TYPE_NODE_SET
        cdef int32_t i
        self.keys.clear()
        self.results.clear()
        self.residual.clear()
        self.program.clear()
        self.reason.clear()
        self.outcome = OUTCOME_NEVER if it.count == 0 else OUTCOME_PATTERNS
        self.exact = it.exact
        self.lists_nodes = False
        for i in range(it.count):
            if self.formulas.alternatives[it.first + i].links == 0:
                self.outcome = OUTCOME_ALWAYS
                self.lists_nodes = is_node_set
            elif self.formulas.alternatives[it.first + i].links > 1:
                self.exact = False  # several patterns at once: only one of them is indexed
        if ordered and not self.exact:
            with gil:
                self.refuse_order()
        if self.outcome == OUTCOME_PATTERNS:
            self.canonical.begin()
            for i in range(it.count):
                self.emit_alternative(it.first + i, ordered)
        if not self.exact:
            print_tree(&self.reason, self.nodes, self.source, self.truths.blamed if self.truths.blamed >= 0 else root, False)
        if not self.exact or self.lists_nodes:
            print_tree(&self.residual, self.nodes, self.source, root, True)
            write_program(&self.program, self.nodes, self.source, root, self.namespaces)
        return 0

    cdef int emit_alternative(self, int32_t alternative, bint ordered) except -1 nogil:
        cdef Result result = Result(<int32_t>self.keys.size(), 0, -1, -1, SELECTS_NOTHING)
        cdef int32_t selected = -1
        self.canonical.encode(self.largest_twig(alternative), ordered, &self.keys, &result.output, &selected)
        result.key_end = <int32_t>self.keys.size()
        if selected >= 0:
            result.selects = self.formulas.twigs[selected].selects
        elif self.formulas.alternatives[alternative].selects != SELECTS_NOTHING:
            result.selects = SELECTS_NODES  # the document node itself, of which the pattern is a condition
        if result.selects == SELECTS_ATTRIBUTE:
            result.step = self.formulas.twigs[selected].output
            if self.nodes[result.step].test != TEST_NAME:
                self.lists_nodes = True  # any attribute: which ones there are, the pattern does not tell
        if result.selects == SELECTS_TEXT and not ordered:
            self.lists_nodes = True  # the pattern tells the elements, but not which of their text nodes
        if result.selects == SELECTS_NODES:
            result.output = -1
            self.lists_nodes = True
        if self.is_duplicate(&result):
            self.keys.resize(result.key_begin)
        else:
            self.results.push_back(result)
        return 0

    cdef int32_t largest_twig(self, int32_t alternative) noexcept nogil:
        """Of several patterns that must all match, the largest is the most selective one; the first of equals."""
        cdef const Alternative* it = &self.formulas.alternatives[alternative]
        cdef int32_t best = self.formulas.links[it.first_link]
        cdef int32_t i, other
        for i in range(1, it.links):
            other = self.formulas.links[it.first_link + i]
            if self.formulas.twigs[other].size > self.formulas.twigs[best].size:
                best = other
        return best

    cdef bint is_duplicate(self, const Result* result) except -1 nogil:
        cdef int32_t length = result.key_end - result.key_begin
        cdef const Result* other
        cdef string one, another
        cdef size_t i
        for i in range(self.results.size()):
            other = &self.results[i]
            if (other.key_end - other.key_begin == length and other.output == result.output
                    and other.selects == result.selects
                    and memcmp(&self.keys[other.key_begin], &self.keys[result.key_begin], length) == 0):
                self.selected_attribute(other, &one)
                self.selected_attribute(result, &another)
                if one == another:
                    return True
        return False

    cdef int selected_attribute(self, const Result* result, string* key) except -1 nogil:
        key.clear()
        if result.step < 0:
            return 0
        self.truths.attribute_key(result.step, key)
        if self.nodes[result.step].test != TEST_NAME:
            key.append(b"\x1f*" if key.size() else b"*")
        return 0

    cdef int refuse_order(self) except -1:
        cdef string part
        cdef int32_t root = <int32_t>self.parser.nodes.size() - 1
        cdef int32_t node = self.truths.blamed if self.truths.blamed >= 0 else root
        print_tree(&part, self.nodes, self.source, node, False)
        quoted = (<bytes>part).decode()
        raise XPathError(
            "not-orderable", f"this part cannot be matched in order: {quoted[:80]}",
            column=count_characters(self.source, self.nodes[node].offset) + 1,
            hint="an ordered subscription is one path with nested paths and conditions; or leave out ordered=True",
        )

    def compile(self, text, *, bint ordered=False):
        """Compiles one subscription, given as str or as UTF-8 bytes. Raises XPathError if it cannot be used."""
        cdef bytes source = encoded(text)
        cdef vector[Result] results
        cdef vector[string] attributes
        cdef string key_bytes, residual, program, reason
        cdef bint exact, listed
        cdef uint8_t outcome
        cdef size_t i
        self.compile_bytes(source, len(source), ordered)
        # Other threads may compile while Python objects are made below: take all of the result out first.
        results = self.results
        attributes.resize(results.size())
        for i in range(results.size()):
            self.selected_attribute(&results[i], &attributes[i])
        key_bytes = string(self.keys.data(), self.keys.size())
        residual, program, reason = self.residual, self.program, self.reason
        exact, outcome = self.exact, self.outcome
        listed = self.lists_nodes
        keys, selections = [], []
        for i in range(results.size()):
            keys.append(key_bytes.data()[results[i].key_begin:results[i].key_end])
            attribute = attributes[i].data()[:attributes[i].size()]
            selections.append(Selection(_SELECTS[results[i].selects], results[i].output, attribute.decode()))
        return Meaning(
            keys=keys,
            selections=selections,
            exact=exact,
            always=outcome == OUTCOME_ALWAYS,
            never=outcome == OUTCOME_NEVER,
            listed=listed,
            residual=residual.data()[:residual.size()].decode(),
            program=program.data()[:program.size()],
            reason=reason.data()[:reason.size()].decode(),
            symbols=self.symbols,
        )


def compile(text, Symbols symbols not None, *, namespaces=None, bint ordered=False):
    """Compiles one subscription: `compile("//a[b]", Symbols()).patterns`. For many, keep a `Compiler`."""
    return Compiler(symbols, namespaces=namespaces).compile(text, ordered=ordered)


def patterns(text, Symbols symbols not None, *, namespaces=None, bint ordered=False):
    """The patterns of a subscription, one of which matches every document that the subscription matches."""
    return compile(text, symbols, namespaces=namespaces, ordered=ordered).patterns
