from libcpp.vector cimport vector

from xsift.native.tables cimport FlatMap
from xsift.native.types cimport int32_t, int64_t, symbol_t, uint8_t, uint64_t
from xsift.xpath.condition cimport Condition
from xsift.xpath.symbols cimport Symbols

# The tables are C++ (condition_tables.hpp). Other rooms hold a ConditionIndex without needing that header: to
# them these classes are names only. A kernel that calls their methods includes the header itself.
cdef extern from * nogil:
    """
    namespace xsift { class ConditionTables; struct ConditionScratch; struct AttributeValue; }
    """
    cdef enum:
        WANTS_ATTRIBUTES "xsift::WANTS_ATTRIBUTES"
        WANTS_TEXT "xsift::WANTS_TEXT"
        WANTS_STRING "xsift::WANTS_STRING"

    cdef cppclass AttributeValue "xsift::AttributeValue":
        const char* name
        size_t name_length
        const char* value
        size_t value_length

    cdef cppclass ConditionScratch "xsift::ConditionScratch":
        ConditionScratch() except +
        vector[int32_t] held

    cdef cppclass ConditionTables "xsift::ConditionTables":
        ConditionTables() except +
        int32_t group_of(symbol_t name)
        uint8_t wants(int32_t group)
        void install(symbol_t name, symbol_t symbol, const Condition& condition) except +
        void uninstall(symbol_t name, const Condition& condition) except +
        void prepare() except +
        void make_ready(ConditionScratch& scratch) except +
        bint asks_attributes_only(int32_t group)
        void match_text_node(int32_t group, const char* data, size_t length, bint first,
                             ConditionScratch& scratch) except +
        void finish_text(int32_t group, const vector[uint64_t]& passed, int32_t part, bint had_nodes,
                         ConditionScratch& scratch, vector[int32_t]& codes) except +
        void match_string(int32_t group, const char* data, size_t length, ConditionScratch& scratch,
                          vector[int32_t]& codes) except +
        size_t test_bytes()
        size_t index_bytes()


# How many patterns ask for a condition on elements of one name. All requests for a condition are a linked list.
cdef struct Request:
    symbol_t name  # 0 is `*`
    int32_t count  # at least 1; 0 in a place that is free
    int32_t next   # place of the next request for the condition, or of the next free place; -1 at the end
    int32_t previous


cdef class ConditionIndex:
    cdef readonly Symbols symbols
    cdef ConditionTables* tables
    cdef vector[Request] requests
    cdef FlatMap[int32_t] request_of     # pack(condition, name) -> place in `requests`
    cdef FlatMap[int32_t] first_request  # of a condition, by its symbol
    cdef int32_t first_free              # place in `requests`, or -1
    # Changes with every change of the tables: what was frozen under an older version is out of date.
    cdef readonly int64_t version
    cdef int64_t pairs  # distinct pairs of a name and a condition

    # Adds a request for a condition on the elements with a name (0: on all elements). `condition` is what `symbol`
    # stands for in `symbols`.
    cdef int add_condition(self, symbol_t name, symbol_t symbol, const Condition& condition) except -1
    # Takes such a request back.
    cdef int remove_condition(self, symbol_t name, symbol_t symbol) except -1

    cdef int32_t _find(self, symbol_t name, symbol_t symbol) noexcept nogil
    cdef int _link(self, symbol_t name, symbol_t symbol) except -1
    cdef int _unlink(self, int32_t place, symbol_t symbol) except -1
