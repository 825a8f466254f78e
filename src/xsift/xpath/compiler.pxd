from libcpp.string cimport string
from libcpp.vector cimport vector

from xsift.native.types cimport int32_t, uint8_t
from xsift.xpath.canonical cimport Canonical
from xsift.xpath.formula cimport Formulas
from xsift.xpath.namespaces cimport Namespaces
from xsift.xpath.parser cimport Parser
from xsift.xpath.symbols cimport Symbols
from xsift.xpath.syntax cimport SyntaxNode
from xsift.xpath.truths cimport TruthCompiler

cdef enum:
    # What kind of result compiling gave.
    OUTCOME_PATTERNS = 0  # it can match only if one of its patterns does
    OUTCOME_ALWAYS = 1    # if exact, it matches every document; else every document has to be verified
    OUTCOME_NEVER = 2     # it matches no document; always exact


# One pattern of a subscription.
cdef struct Result:
    int32_t key_begin  # its key is keys[key_begin : key_end]
    int32_t key_end
    int32_t output     # index of the element that is selected, or carries or contains what is; -1 if unknown
    int32_t step       # SELECTS_ATTRIBUTE: the step that selects it, else -1
    uint8_t selects    # SELECTS_… (formula.pxd)


cdef class Compiler:
    # The result of the last compile_bytes(), until the next one.
    cdef uint8_t outcome         # OUTCOME_…
    cdef bint exact              # else `program` decides, for documents in which one of the patterns matches
    cdef bint lists_nodes        # it selects nodes that patterns cannot tell: `program` lists them
    cdef vector[char] keys       # of all patterns, end to end
    cdef vector[Result] results  # one for each pattern, without duplicates; empty unless OUTCOME_PATTERNS
    cdef string program          # the expression as it is evaluated (program.hpp); "" if it is not needed
    cdef string residual         # the same as text, with all that a subscription implies: what people are shown
    cdef string reason           # the part of the expression that is not indexed; "" if it is exact

    cdef readonly Symbols symbols
    cdef Namespaces namespaces
    cdef Parser parser
    cdef TruthCompiler truths
    cdef Canonical canonical
    # Of the last expression: what it demands, its syntax tree, its text.
    cdef Formulas formulas
    cdef const SyntaxNode* nodes
    cdef const char* source

    # Compiles one subscription, UTF-8. Raises XPathError for a text that cannot be used; the result is undefined
    # then. May be called without the GIL, by one thread at a time, while nobody else uses the table of symbols.
    cdef int compile_bytes(self, const char* text, size_t length, bint ordered) except -1 nogil
    # The key of the attribute that a result selects, as in Condition.attribute, but "*" and "uri\x1f*" for any; "" if
    # it selects none. Valid as long as the text is.
    cdef int selected_attribute(self, const Result* result, string* key) except -1 nogil

    cdef int emit(self, int32_t formula, bint ordered) except -1 nogil
    cdef int emit_alternative(self, int32_t alternative, bint ordered) except -1 nogil
    cdef int32_t largest_twig(self, int32_t alternative) noexcept nogil
    cdef bint is_duplicate(self, const Result* result) except -1 nogil
    cdef int refuse_order(self) except -1
