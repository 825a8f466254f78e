"""Faults: what can be wrong with a subscription's text, in words.

Kernels note a fault as a number and an offset. Only when the error is raised is that turned into a code, a
sentence, a hint and a column (in characters, from 1).
"""

from xsift.errors import XPathError
from xsift.xpath.remedies import remedy

from xsift.xpath.characters cimport count_characters
from xsift.xpath.functions cimport FUNCTIONS, find_function
from xsift.xpath.limits cimport LIMIT_DEPTH, LIMIT_HEIGHT, LIMIT_LENGTH, LIMIT_NAME, LIMIT_NODES, LIMIT_PATTERN_NODES

cdef enum:
    QUOTED = 40  # at most this many bytes of the source are quoted in a message

# Fault -> (code, message with {} for the quoted text, hint).
cdef dict _WORDS = {
    FAULT_EMPTY: ("expression-empty", "the expression is empty", "write a path such as /a/b or //a[b]"),
    FAULT_TOO_LONG: ("expression-too-long", f"the expression is longer than {LIMIT_LENGTH} bytes of UTF-8",
                     "split it into several subscriptions"),
    FAULT_TOO_DEEP: ("too-deeply-nested", f"brackets and parentheses are nested more than {LIMIT_DEPTH} deep",
                     "simplify the expression"),
    FAULT_TOO_LARGE: ("expression-too-large", f"the expression has more than {LIMIT_NODES} parts, "
                                              f"or {LIMIT_HEIGHT} operators or steps in a row",
                      "split it into several subscriptions"),
    FAULT_NAME_TOO_LONG: ("name-too-long", f"a name is longer than {LIMIT_NAME} bytes of UTF-8",
                          "no document has such names"),
    FAULT_ENCODING: ("invalid-encoding", "the expression is not valid UTF-8", "give it as str, or as UTF-8 bytes"),
    FAULT_CHARACTER: ("invalid-character", "a character that cannot occur in XML", "remove it"),
    FAULT_OPERAND_MISSING: ("operand-missing", "an operand is missing",
                            "add a path, a literal, a number or a function call"),
    FAULT_UNEXPECTED: ("unexpected-text", "unexpected {}",
                       "an operator is missing before it, or a quote or bracket is out of place"),
    FAULT_NOTHING_TO_CLOSE: ("nothing-to-close", "{} closes nothing", "remove it, or add the opening bracket"),
    FAULT_PREDICATE_NOT_CLOSED: ("predicate-not-closed", "predicate is not closed", "add ]"),
    FAULT_PREDICATE_EMPTY: ("predicate-empty", "predicate is empty", "write a condition between [ and ]"),
    FAULT_PREDICATE_AFTER_DOTS: ("predicate-after-dots", "XPath 1.0 allows no predicate after . and ..",
                                 "write self::node()[…] or parent::node()[…]"),
    FAULT_PARENTHESIS_NOT_CLOSED: ("parenthesis-not-closed", "parenthesis is not closed", "add )"),
    FAULT_PARENTHESIS_EMPTY: ("parenthesis-empty", "nothing stands between the parentheses",
                              "write an expression there"),
    FAULT_LITERAL_NOT_CLOSED: ("literal-not-closed", "literal is not closed",
                               "add the closing quote; a literal cannot contain the quote that encloses it"),
    FAULT_STEP_MISSING: ("step-missing", "a step is missing after the slash",
                         "add a name, *, @name, text() or . there"),
    FAULT_TEST_MISSING: ("name-missing", "a name is missing", "add a name, * or a test such as text() there"),
    FAULT_UNKNOWN_AXIS: ("unknown-axis", "{} is no axis",
                         "the axes are child, descendant, attribute, self, parent, …"),
    FAULT_UNKNOWN_NODE_TYPE: ("unknown-node-type", "{} is no node type",
                              "the node types are node(), text(), comment() and processing-instruction()"),
    FAULT_NODE_TYPE_ARGUMENT: ("node-type-argument", "{} takes no such argument",
                               "only processing-instruction() takes one: a literal"),
    FAULT_FUNCTION_AS_STEP: ("function-as-step", "the function {} cannot be a step of a path",
                             "put it around the path, or into a predicate"),
    FAULT_UNKNOWN_FUNCTION: ("unknown-function", "{} is no function of XPath 1.0",
                             "only its core function library can be used"),
    FAULT_WRONG_ARITY: ("wrong-number-of-arguments", "{} is called with a wrong number of arguments", ""),
    FAULT_UNBOUND_PREFIX: ("unbound-prefix", "namespace prefix {} is not bound",
                           "give its URI: namespaces={…: …} in Python, -n PREFIX=URI on the command line"),
    FAULT_VARIABLE: ("variable-not-bound", "variables cannot be used: {}", "write the value itself"),
    FAULT_NOT_NODE_SET: ("not-a-node-set", "a node-set is needed here", "only a path or id() gives one"),
    FAULT_PATTERN_TOO_LARGE: ("pattern-too-large", f"the pattern would have more than {LIMIT_PATTERN_NODES} nodes",
                              "split it into several subscriptions"),
}

# Faults at which something may stand that another language knows.
cdef tuple _MEANT = (FAULT_UNEXPECTED, FAULT_OPERAND_MISSING, FAULT_UNKNOWN_FUNCTION, FAULT_UNKNOWN_NODE_TYPE)


cdef int raise_fault(const char* text, size_t length, Fault fault) except -1:
    code, message, hint = _WORDS[fault.kind]
    cdef int32_t shown = min(fault.length, <int32_t>QUOTED)
    quoted = ""
    if shown > 0:
        quoted = text[fault.offset:fault.offset + shown].decode("utf-8", "ignore")
        quoted = f'"{quoted}…"' if shown < fault.length else f'"{quoted}"'
    if fault.kind == FAULT_WRONG_ARITY:
        hint = _arity(find_function(text + fault.offset, fault.length))
    column = count_characters(text, fault.offset) + 1 if fault.offset >= 0 else 0
    if column and fault.kind in _MEANT:
        hint = remedy(text[:length].decode("utf-8", "replace"), column) or hint
    raise XPathError(code, message.format(quoted), column=column, hint=hint)


cdef str _arity(int function):
    least, most = FUNCTIONS[function].least, FUNCTIONS[function].most
    number = f"{least} or more" if most == 255 else f"{least}" if least == most else f"{least} or {most}"
    return f"it takes {number}"
