"""ConditionIndex: which conditions are asked for, of which element names.

Subscriptions ask for conditions one by one (`//item[@id = 4]`), often for the same one many times, and come and
go between documents. The index counts the requests; the first request for a pair of a name and a condition puts a
test into the tables (condition_tables.hpp, which also says how an element's conditions are found), the last one
that goes takes it out.

A condition that is asked of every element (name 0, `*`) need not be tried again for the names that ask for it too:
while `*` asks, the test stands in the tables of `*` only. So nothing is evaluated or reported twice.
"""

from libcpp.pair cimport pair
from libcpp.vector cimport vector

from xsift.native.types cimport int32_t, symbol_t, uint32_t
from xsift.xpath.condition cimport (
    COMPARE_CONTAINS, COMPARE_STARTS_WITH, Condition, SUBJECT_NAMESPACE, TRANSFORM_LENGTH, TRANSFORM_NORMALIZE_LENGTH,
)
from xsift.xpath.symbols cimport ANY, Symbols

cdef extern from "condition_tables.hpp":
    pass


cdef class ConditionIndex:
    """The conditions that are asked for, of one table of symbols. Not to be changed while a document is read."""

    def __cinit__(self, Symbols symbols not None):
        self.symbols = symbols
        self.tables = new ConditionTables()
        self.asked = new vector[AskedCondition]()

    def __dealloc__(self):
        del self.tables
        del self.asked

    def add(self, symbol_t name, symbol_t condition):
        """Asks for a condition of the elements with a name, by symbols; name 0 asks it of every element."""
        self._check(name, condition)
        self.add_condition(name, condition, self.symbols.condition_of(condition))

    def remove(self, symbol_t name, symbol_t condition):
        """Takes back one request for a condition. Raises KeyError if there is none."""
        self.remove_condition(name, condition)

    def prepare(self):
        """Builds what changes left to build, so that evaluation only reads. DocumentIndex calls it."""
        self.tables.prepare()

    def __len__(self):
        return self.pairs

    def memory(self):
        """Bytes held, by structure."""
        cdef size_t requests = self.place_of.bytes() + self.asked.capacity() * sizeof(AskedCondition)
        return {"tests": self.tables.test_bytes(), "index": self.tables.index_bytes(), "requests": requests}

    def _check(self, symbol_t name, symbol_t condition):
        if not 0 <= name < len(self.symbols) or (name != ANY and self.symbols.is_condition(name)):
            raise ValueError(f"symbol {name} is no element name")
        if not 0 < condition < len(self.symbols) or not self.symbols.is_condition(condition):
            raise ValueError(f"symbol {condition} is no condition")

    cdef int add_condition(self, symbol_t name, symbol_t symbol, const Condition& condition) except -1:
        _check_condition(condition)
        cdef AskedCondition* asked = self._asked_for(symbol, condition)
        cdef bint by_all = _request(asked, ANY) >= 0
        cdef int32_t at = _request(asked, name)
        if at >= 0:
            asked.names[at].second += 1
            return 0
        if name == ANY:
            for request in asked.names:
                self.tables.uninstall(request.first, asked.condition)
        asked.names.push_back(pair[int32_t, int32_t](name, 1))
        if not by_all:
            self.tables.install(name, symbol, asked.condition)
        self.pairs += 1
        self.version += 1
        return 0

    cdef int remove_condition(self, symbol_t name, symbol_t symbol) except -1:
        cdef int32_t place = self.place_of.get(<uint32_t>symbol, -1)
        cdef AskedCondition* asked = &self.asked[0][place] if place >= 0 else NULL
        cdef int32_t at = _request(asked, name) if asked != NULL else -1
        if at < 0:
            raise KeyError(f"condition {symbol} is not asked of name {name}")
        asked.names[at].second -= 1
        if asked.names[at].second > 0:
            return 0
        asked.names[at] = asked.names.back()
        asked.names.pop_back()
        if name == ANY or _request(asked, ANY) < 0:
            self.tables.uninstall(name, asked.condition)
        if name == ANY:
            for request in asked.names:
                self.tables.install(request.first, symbol, asked.condition)
        if asked.names.empty():
            self.place_of.erase(<uint32_t>symbol)
            self.asked[0][place] = AskedCondition()
            self.free.push_back(place)
        self.pairs -= 1
        self.version += 1
        return 0

    cdef AskedCondition* _asked_for(self, symbol_t symbol, const Condition& condition) except NULL:
        """The entry of a condition, new or known. Valid until the next change."""
        cdef int32_t place = self.place_of.get(<uint32_t>symbol, -1)
        if place < 0:
            if self.free.empty():
                place = <int32_t>self.asked.size()
                self.asked.push_back(AskedCondition())
            else:
                place = self.free.back()
                self.free.pop_back()
            self.asked[0][place].condition = condition
            self.place_of.put(<uint32_t>symbol, place)
        return &self.asked[0][place]


cdef int32_t _request(AskedCondition* asked, symbol_t name) noexcept nogil:
    """Where a name stands among those that ask for a condition, or -1."""
    cdef int32_t i
    for i in range(<int32_t>asked.names.size()):
        if asked.names[i].first == name:
            return i
    return -1


cdef int _check_condition(const Condition& condition) except -1:
    """Refuses what XPath cannot say, such as contains() of a number."""
    cdef bint of_text = condition.comparison == COMPARE_CONTAINS or condition.comparison == COMPARE_STARTS_WITH
    cdef bint of_length = condition.transform == TRANSFORM_LENGTH or condition.transform == TRANSFORM_NORMALIZE_LENGTH
    if (condition.subject > SUBJECT_NAMESPACE or condition.transform > TRANSFORM_NORMALIZE_LENGTH
            or condition.comparison > COMPARE_STARTS_WITH):
        raise ValueError("not a condition: unknown subject, transform or comparison")
    if of_text and (condition.numeric or of_length):
        raise ValueError("contains() and starts-with() compare text, not numbers")
    return 0
