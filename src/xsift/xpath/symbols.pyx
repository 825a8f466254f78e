"""Symbols: element names and conditions, numbered, so that patterns and events are made of small integers.

Names and conditions share one sequence of numbers because to an engine a condition that holds is one more
child of its element. Symbol 0 is `*`.
"""

from libcpp.string cimport string

from xsift.xpath.condition cimport (
    SUBJECT_ATTRIBUTE, SUBJECT_ANY_ATTRIBUTE, SUBJECT_TEXT, SUBJECT_STRING, SUBJECT_NAMESPACE,
    TRANSFORM_LENGTH, TRANSFORM_NORMALIZE, TRANSFORM_NORMALIZE_LENGTH,
    COMPARE_EXISTS, COMPARE_CONTAINS, COMPARE_STARTS_WITH,
)

cdef extern from *:
    """
    #include "recipe.hpp"
    static inline std::string written_recipe(const std::string& recipe, const std::string& subject) {
        return xsift::Recipe(recipe).written_around(subject);
    }
    """
    string written_recipe(const string& recipe, const string& subject) except +

SEPARATOR = "\x1f"  # between the namespace URI and the local name; no XML document can contain it

_OPERATORS = {1: "=", 2: "!=", 3: "<", 4: "<=", 5: ">", 6: ">="}


cdef class Symbols:
    """Numbers element names and conditions, from 1; a symbol is never given up."""

    def __cinit__(self):
        self.table.add(b"*", 1)

    def __len__(self):
        return self.table.size()

    cdef symbol_t name(self, const char* key, size_t length) except? -1 nogil:
        """The symbol of an expanded name ("local" or "uri\\x1flocal", UTF-8)."""
        cdef string full = string(b"E", 1)
        full.append(key, length)
        return self.table.add(full.data(), full.size())

    cdef symbol_t condition(self, const Condition& condition) except? -1 nogil:
        cdef string full = string(b"C", 1)
        full.append(condition.encode())
        return self.table.add(full.data(), full.size())

    cdef bint is_condition(self, symbol_t symbol) noexcept nogil:
        return self.table.data_of(symbol)[0] == c"C"

    cdef Condition condition_of(self, symbol_t symbol):
        return Condition.decode(self.table.data_of(symbol) + 1, self.table.length_of(symbol) - 1)

    def element(self, str local, str uri=""):
        """The symbol of an element name, new or known."""
        key = (uri + SEPARATOR + local if uri else local).encode()
        return self.name(key, len(key))

    def key(self, symbol_t symbol):
        """The bytes under which a symbol is stored; `keys()` in order rebuild the table."""
        self._check(symbol)
        return self.table.data_of(symbol)[:self.table.length_of(symbol)]

    def add_key(self, bytes key):
        """Adds a key taken from another table; returns its symbol here."""
        if key != b"*" and (len(key) < 2 or key[:1] not in (b"E", b"C") or (key[:1] == b"C" and not _is_condition(key))):
            raise ValueError(f"not a symbol's key: {key!r}")
        if key[:1] == b"C" and 19 + int.from_bytes(key[15:19], "little") > len(key):
            raise ValueError("a condition's key that is too short for the name in it")
        return self.table.add(key, len(key))

    def text(self, symbol_t symbol):
        """The symbol as one would write it: `*`, `name`, `{uri}name`, or a condition's expression."""
        self._check(symbol)
        if symbol == 0:
            return "*"
        if self.is_condition(symbol):
            return _condition_text(self.condition_of(symbol))
        return _expanded(self.key(symbol)[1:])

    def _check(self, symbol_t symbol):
        if not 0 <= symbol < self.table.size():
            raise IndexError(f"no symbol {symbol}: there are {self.table.size()}")

    def memory(self):
        """Bytes held."""
        return self.table.bytes()


cdef str _expanded(bytes key):
    uri, separator, local = key.decode().partition(SEPARATOR)
    return f"{{{uri}}}{local}" if separator else uri


cdef str _quoted(bytes text):
    value = text.decode("utf-8", "surrogateescape")
    return f"'{value}'" if "'" not in value else f'"{value}"'


cdef str _condition_text(Condition c):
    if c.subject == SUBJECT_ATTRIBUTE:
        subject = "@" + _expanded(c.attribute)
    elif c.subject == SUBJECT_ANY_ATTRIBUTE:
        subject = f"@{{{(<bytes>c.attribute).decode()}}}*" if c.attribute.size() else "@*"
    elif c.subject == SUBJECT_TEXT:
        subject = "text()"
    elif c.subject == SUBJECT_NAMESPACE:
        subject = "namespace-uri()"
    else:
        subject = "."
    if c.recipe.size():
        subject = (<bytes>written_recipe(c.recipe, subject.encode())).decode("utf-8", "surrogateescape")
    if c.transform == TRANSFORM_NORMALIZE or c.transform == TRANSFORM_NORMALIZE_LENGTH:
        subject = f"normalize-space({subject})"
    if c.transform == TRANSFORM_LENGTH or c.transform == TRANSFORM_NORMALIZE_LENGTH:
        subject = f"string-length({subject})"
    elif c.converted and c.transform == 0 and not c.recipe.size() and c.subject != SUBJECT_STRING and c.comparison < COMPARE_CONTAINS:
        subject = f"number({subject})" if c.numeric else f"string({subject})"
    operand = f"{c.number:.17g}" if c.numeric else _quoted(c.text)
    if c.comparison == COMPARE_EXISTS:
        text = subject
    elif c.comparison == COMPARE_CONTAINS:
        text = f"contains({subject}, {operand})"
    elif c.comparison == COMPARE_STARTS_WITH:
        text = f"starts-with({subject}, {operand})"
    else:
        text = f"{subject} {_OPERATORS[c.comparison]} {operand}"
    return f"not({text})" if c.negated else text


cdef bint _is_condition(bytes key):
    """Whether the lengths in a condition's key stay within it."""
    cdef Py_ssize_t at = 19
    if len(key) < at:
        return False
    at += int.from_bytes(key[15:19], "little")
    if key[3] & 0x80:
        at += 4 + int.from_bytes(key[at:at + 4], "little")
    return at <= len(key)
