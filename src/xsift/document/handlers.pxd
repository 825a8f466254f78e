from libcpp cimport bool as cpp_bool
from libcpp.string cimport string
from libcpp.vector cimport vector

from xsift.document.conditions.condition_index cimport AttributeValue, ConditionScratch, ConditionTables
from xsift.document.expat cimport XML_Parser
from xsift.document.guide cimport Guide
from xsift.native.tables cimport BytesTable
from xsift.native.types cimport int32_t, int64_t, uint8_t, uint64_t

# Declarations of read_state.hpp, which explains each field. Kernels that use them include the header, or emission.hpp.
cdef extern from * nogil:
    """
    namespace xsift { struct ReadState; struct TextFrame; struct Part; struct NameEntry; }
    """
    cdef cppclass Part "xsift::Part":
        const ConditionTables* tables
        int32_t scratch
        int32_t group
        uint8_t wants
        uint8_t plain

    cdef cppclass NameEntry "xsift::NameEntry":
        int32_t symbol
        int32_t first_part
        int32_t end_part
        uint8_t wants
        uint8_t plain

    cdef enum ReadFault "xsift::ReadFault":
        FAULT_NONE "xsift::FAULT_NONE"
        FAULT_DEPTH "xsift::FAULT_DEPTH"
        FAULT_BYTES "xsift::FAULT_BYTES"
        FAULT_ATTRIBUTES "xsift::FAULT_ATTRIBUTES"
        FAULT_TEXT "xsift::FAULT_TEXT"
        FAULT_NAME "xsift::FAULT_NAME"
        FAULT_TOKEN "xsift::FAULT_TOKEN"
        FAULT_ENTITIES "xsift::FAULT_ENTITIES"
        FAULT_ENTITY_ELEMENTS "xsift::FAULT_ENTITY_ELEMENTS"
        FAULT_SCAN "xsift::FAULT_SCAN"
        FAULT_PARAMETER_ENTITY "xsift::FAULT_PARAMETER_ENTITY"
        FAULT_EXTERNAL_ENTITY "xsift::FAULT_EXTERNAL_ENTITY"
        FAULT_UNDECLARED_ENTITY "xsift::FAULT_UNDECLARED_ENTITY"
        FAULT_VERSION "xsift::FAULT_VERSION"
        FAULT_TRUNCATED "xsift::FAULT_TRUNCATED"
        FAULT_EMPTY "xsift::FAULT_EMPTY"
        FAULT_SURROGATE "xsift::FAULT_SURROGATE"
        FAULT_ENTITY_DEPTH "xsift::FAULT_ENTITY_DEPTH"
        FAULT_DECLARED_ATTRIBUTES "xsift::FAULT_DECLARED_ATTRIBUTES"

    cdef cppclass TextFrame "xsift::TextFrame":
        size_t string_start
        cpp_bool had_nodes
        vector[uint64_t] passed

    cdef cppclass EntityNames "xsift::EntityNames":
        void declare(const char* name, const char* text, size_t length) except +
        cpp_bool covers(const char* raw, size_t length) except +

    cdef enum EntityVerdict "xsift::EntityDepths::Verdict":
        ENTITY_FINE "xsift::EntityDepths::FINE"
        ENTITY_TOO_DEEP "xsift::EntityDepths::TOO_DEEP"

    cdef cppclass EntityDepths "xsift::EntityDepths":
        EntityVerdict declare(const char* name, const char* text, size_t length, int64_t most) except +

    cdef cppclass DeclaredAttributes "xsift::DeclaredAttributes":
        int64_t most
        void declare(const char* element) except +

    cdef cppclass ReadState "xsift::ReadState":
        ReadState() except +
        XML_Parser parser
        cpp_bool by_scanner
        void (*relisten)(ReadState*) noexcept nogil
        int64_t index_shift
        int64_t line_shift
        int64_t first_line
        int64_t first_column_shift
        const BytesTable* names
        const NameEntry* entries
        const Part* parts
        cpp_bool several_tables
        vector[Guide*] guides
        size_t guided
        uint64_t subjects
        cpp_bool collects
        int64_t most_depth
        int64_t most_attributes
        int64_t most_text_bytes
        int64_t most_name_bytes
        int64_t most_entities
        int64_t most_entity_elements
        int64_t most_entity_depth
        int64_t most_conditions
        vector[int32_t]* codes
        vector[int64_t]* offsets
        cpp_bool positions
        cpp_bool keep_names
        BytesTable* kept_uris
        BytesTable* kept_names
        vector[int32_t]* kept_elements
        string kept_key
        int64_t depth
        int64_t elements
        int32_t fault
        int64_t fault_line
        int64_t fault_column
        int64_t fault_offset
        cpp_bool silent
        cpp_bool failed
        size_t most_codes
        cpp_bool suspended
        int64_t slice_size
        cpp_bool slice_is_last
        int64_t scan_left
        cpp_bool narrow
        vector[ConditionScratch] scratches
        vector[AttributeValue] values
        vector[int32_t] open
        vector[TextFrame] frames
        size_t frames_open
        size_t strings_open
        string text
        size_t node_start
        cpp_bool node_exists
        cpp_bool hears_text
        cpp_bool hears_breaks
        int64_t entities
        cpp_bool entity_markup
        int64_t last_start
        int64_t entity_elements
        cpp_bool external_subset
        EntityNames entity_names
        EntityDepths entity_depths
        DeclaredAttributes declared_attributes
        char proper_encoding[8]
        cpp_bool enter()
        void leave()
        void begin_document() except +
        TextFrame* push_frame() except +

# Sets the callbacks of a parser that was just reset.
cdef void set_handlers(ReadState* state) noexcept nogil
