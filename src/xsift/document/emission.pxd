from libcpp cimport bool as cpp_bool

from xsift.document.handlers cimport NameEntry, ReadState
from xsift.native.types cimport int32_t, int64_t

# Declarations of emission.hpp.
cdef extern from "emission.hpp" namespace "xsift" nogil:
    void stop(ReadState* state, int32_t fault)
    void be_silent(ReadState* state)
    cpp_bool stopped(const ReadState* state)
    int64_t current_offset(const ReadState* state)
    void keep_name(ReadState* state, const char* uri, size_t uri_length, const char* rest,
                   size_t rest_length) except +
    void forget_kept_names(ReadState* state) except +
    void ask_guides(ReadState* state) except +
    void match_start(ReadState* state, const NameEntry* entry, const char* uri, size_t uri_length) except +
    void emit_start(ReadState* state, const NameEntry* entry, int64_t offset) except +
    void emit_end(ReadState* state, int64_t offset) except +
    void open_text(ReadState* state, const NameEntry* entry) except +
    void take_text(ReadState* state, const char* text, size_t length) except +
    void end_text_node(ReadState* state) except +
