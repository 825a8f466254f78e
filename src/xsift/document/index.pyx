"""DocumentIndex: what readers look for in documents, frozen, so that readers in many threads can share it.

An engine cares about the names and conditions of its patterns only. The index numbers the names, and has for each
name the groups of conditions to try on its elements, from every ConditionIndex: those of the name and those of `*`.
Making one costs time in proportion to the number of names, not of conditions.
"""

from libcpp.vector cimport vector

from xsift.document.conditions.condition_index cimport ConditionIndex
from xsift.document.handlers cimport NameEntry, Part
from xsift.native.types cimport int32_t, symbol_t
from xsift.xpath.symbols cimport ANY, Symbols

cdef extern from "read_state.hpp":
    pass


cdef class DocumentIndex:
    """The element names and conditions that are asked for.

    `names` are the symbols of the element names to tell apart, all of `symbols` by default; elements with other
    names are reported as 0. After a change of one of the ConditionIndexes a new DocumentIndex must be made.
    """

    def __cinit__(self, Symbols symbols not None, conditions=(), names=None):
        cdef ConditionIndex index
        cdef symbol_t symbol
        self.entries = new vector[NameEntry]()
        self.parts = new vector[Part]()
        self.conditions = tuple(conditions)
        for index in self.conditions:
            if index is None or index.symbols is not symbols:
                raise ValueError("the ConditionIndex belongs to another table of symbols")
            index.prepare()
            self.versions.push_back(index.version)
            self.versions_now.push_back(&index.version)
        self.symbols = symbols
        self._add_entry(ANY)
        if names is None:
            for symbol in range(1, <symbol_t>symbols.table.size()):
                if not symbols.is_condition(symbol):
                    self._add_name(symbol)
        else:
            for symbol in names:
                if not 0 <= symbol < symbols.table.size() or symbols.is_condition(symbol):
                    raise ValueError(f"symbol {symbol} is no element name")
                if symbol != ANY:
                    self._add_name(symbol)

    def __dealloc__(self):
        del self.entries
        del self.parts

    def __len__(self):
        """The number of names that are told apart."""
        return self.names.size()

    cdef bint is_current(self) noexcept nogil:
        cdef size_t i
        for i in range(self.versions.size()):
            if self.versions_now[i][0] != self.versions[i]:
                return False
        return True

    def _add_name(self, symbol_t symbol):
        cdef const char* key = self.symbols.table.data_of(symbol) + 1  # without the "E"
        cdef size_t length = self.symbols.table.length_of(symbol) - 1
        if self.names.find(key, length) < 0:
            self.names.add(key, length)
            self._add_entry(symbol)

    def _add_entry(self, symbol_t symbol):
        cdef NameEntry entry
        entry.symbol = symbol
        entry.wants = 0
        entry.plain = True
        entry.first_part = <int32_t>self.parts.size()
        for number, index in enumerate(self.conditions):
            self._add_part(&entry, index, number, ANY)
            if symbol != ANY:
                self._add_part(&entry, index, number, symbol)
        entry.end_part = <int32_t>self.parts.size()
        self.entries.push_back(entry)

    cdef int _add_part(self, NameEntry* entry, ConditionIndex index, int32_t number, symbol_t name) except -1:
        cdef Part part
        part.tables = index.tables
        part.scratch = number
        part.group = index.tables.group_of(name)
        if part.group < 0:
            return 0
        part.wants = index.tables.wants(part.group)
        if part.wants:
            entry.wants |= part.wants
            part.plain = index.tables.asks_attributes_only(part.group)
            entry.plain &= part.plain
            self.parts.push_back(part)
        return 0
