"""ConditionIndex: which conditions are asked for, of which element names.

Subscriptions ask for conditions one by one (`//item[@id = 4]`), often for the same one many times, and come and
go between documents. The index counts the requests; the first request for a pair of a name and a condition puts a
test into the tables (condition_tables.hpp, which also says how an element's conditions are found), the last one
that goes takes it out.

A condition that is asked of every element (name 0, `*`) need not be tried again for the names that ask for it too:
while `*` asks, the test stands in the tables of `*` only. So nothing is evaluated or reported twice.
"""

from xsift.native.tables cimport pack
from xsift.native.types cimport int32_t, symbol_t, uint32_t
from xsift.xpath.condition cimport (
    COMPARE_CONTAINS, COMPARE_STARTS_WITH, Condition, SUBJECT_ANY_ATTRIBUTE, SUBJECT_NAMESPACE, TRANSFORM_LENGTH,
    TRANSFORM_NORMALIZE_LENGTH,
)
from xsift.xpath.symbols cimport ANY, Symbols

cdef extern from "condition_tables.hpp":
    pass


cdef class ConditionIndex:
    """The conditions that are asked for, of one table of symbols. Not to be changed while a document is read."""

    def __cinit__(self, Symbols symbols not None):
        self.symbols = symbols
        self.tables = new ConditionTables()
        self.first_free = -1

    def __dealloc__(self):
        del self.tables

    def add(self, symbol_t name, symbol_t condition):
        """Adds a request for a condition on the elements with a name, by symbols; name 0 means every element."""
        self._check(name, condition)
        self.add_condition(name, condition, self.symbols.condition_of(condition))

    def remove(self, symbol_t name, symbol_t condition):
        """Takes back one request for a condition. Raises KeyError if there is none."""
        self.remove_condition(name, condition)

    def prepare(self):
        """Builds what changes have left unbuilt, so that evaluation only reads. DocumentIndex calls it."""
        self.tables.prepare()

    def __len__(self):
        return self.pairs

    def memory(self):
        """Bytes held, by structure."""
        cdef size_t requests = (self.request_of.bytes() + self.first_request.bytes()
                                + self.requests.capacity() * sizeof(Request))
        return {"tests": self.tables.test_bytes(), "index": self.tables.index_bytes(), "requests": requests}

    def _check(self, symbol_t name, symbol_t condition):
        if not 0 <= name < len(self.symbols) or (name != ANY and self.symbols.is_condition(name)):
            raise ValueError(f"symbol {name} is no element name")
        if not 0 < condition < len(self.symbols) or not self.symbols.is_condition(condition):
            raise ValueError(f"symbol {condition} is no condition")

    cdef int add_condition(self, symbol_t name, symbol_t symbol, const Condition& condition) except -1:
        cdef int32_t place = self._find(name, symbol)
        if place >= 0:
            self.requests[place].count += 1
            return 0
        _check_condition(condition)
        if name == ANY:
            place = self.first_request.get(<uint32_t>symbol, -1)
            while place >= 0:
                self.tables.uninstall(self.requests[place].name, condition)
                place = self.requests[place].next
        if name == ANY or self._find(ANY, symbol) < 0:
            self.tables.install(name, symbol, condition)
        self._link(name, symbol)
        self.pairs += 1
        self.version += 1
        return 0

    cdef int remove_condition(self, symbol_t name, symbol_t symbol) except -1:
        cdef int32_t place = self._find(name, symbol)
        cdef Condition condition
        if place < 0:
            raise KeyError(f"condition {symbol} is not asked of name {name}")
        if self.requests[place].count > 1:
            self.requests[place].count -= 1
            return 0
        condition = self.symbols.condition_of(symbol)
        self._unlink(place, symbol)
        if name == ANY or self._find(ANY, symbol) < 0:
            self.tables.uninstall(name, condition)
        if name == ANY:
            place = self.first_request.get(<uint32_t>symbol, -1)
            while place >= 0:
                self.tables.install(self.requests[place].name, symbol, condition)
                place = self.requests[place].next
        self.pairs -= 1
        self.version += 1
        return 0

    cdef int32_t _find(self, symbol_t name, symbol_t symbol) noexcept nogil:
        """The place of the request for a condition by a name, or -1."""
        return self.request_of.get(pack(symbol, name), -1)

    cdef int _link(self, symbol_t name, symbol_t symbol) except -1:
        cdef int32_t after = self.first_request.get(<uint32_t>symbol, -1)
        cdef int32_t place = self.first_free
        cdef Request request = Request(name, 1, after, -1)
        if place >= 0:
            self.first_free = self.requests[place].next
            self.requests[place] = request
        else:
            place = <int32_t>self.requests.size()
            self.requests.push_back(request)
        if after >= 0:
            self.requests[after].previous = place
        self.first_request.put(<uint32_t>symbol, place)
        self.request_of.put(pack(symbol, name), place)
        return 0

    cdef int _unlink(self, int32_t place, symbol_t symbol) except -1:
        cdef int32_t before = self.requests[place].previous
        cdef int32_t after = self.requests[place].next
        self.request_of.erase(pack(symbol, self.requests[place].name))
        if after >= 0:
            self.requests[after].previous = before
        if before >= 0:
            self.requests[before].next = after
        elif after >= 0:
            self.first_request.put(<uint32_t>symbol, after)
        else:
            self.first_request.erase(<uint32_t>symbol)
        self.requests[place] = Request(0, 0, self.first_free, -1)
        self.first_free = place
        return 0


cdef int _check_condition(const Condition& condition) except -1:
    """Refuses what XPath cannot say, such as contains() of a number."""
    cdef bint of_text = condition.comparison == COMPARE_CONTAINS or condition.comparison == COMPARE_STARTS_WITH
    cdef bint of_length = condition.transform == TRANSFORM_LENGTH or condition.transform == TRANSFORM_NORMALIZE_LENGTH
    if (condition.subject > SUBJECT_NAMESPACE or condition.transform > TRANSFORM_NORMALIZE_LENGTH
            or condition.comparison > COMPARE_STARTS_WITH):
        raise ValueError("not a condition: unknown subject, transform or comparison")
    if condition.converted > 1 or condition.numeric > 1 or condition.negated > 1:
        raise ValueError("not a condition: a flag is neither 0 nor 1")
    if condition.attribute.size() and condition.subject > SUBJECT_ANY_ATTRIBUTE:
        raise ValueError("not a condition: an attribute's name where no attribute is asked for")
    if of_text and (condition.numeric or of_length):
        raise ValueError("contains() and starts-with() compare text, not numbers")
    return 0
