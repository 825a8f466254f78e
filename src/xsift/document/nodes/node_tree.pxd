# Declarations of node_tree.hpp, which explains the arrays, and of the class that builds them.
from libcpp cimport bool as cpp_bool
from libcpp.string cimport string
from libcpp.vector cimport vector

from xsift.document.expat cimport XML_UnknownEncodingHandler
from xsift.native.types cimport int32_t, int64_t, uint8_t, uint32_t

cdef extern from "<string_view>" namespace "std" nogil:
    cdef cppclass string_view:
        string_view()
        string_view(const char* data, size_t size)
        const char* data()
        size_t size()

cdef extern from "node_tree.hpp" namespace "xsift" nogil:
    cdef enum class NodeKind "xsift::NodeKind":
        DOCUMENT
        ELEMENT
        ATTRIBUTE
        TEXT
        COMMENT
        INSTRUCTION
        NAMESPACE

    cdef cppclass StringTable:
        string_view operator[](int32_t number)

    cdef cppclass Nodes "xsift::NodeTree":
        vector[NodeKind] kinds
        vector[int32_t] names
        vector[int32_t] prefixes
        vector[int32_t] parents
        vector[int32_t] lasts
        vector[int32_t] firsts
        vector[int32_t] befores
        vector[int32_t] elements
        vector[int32_t] id_attributes
        StringTable strings
        cpp_bool has_namespaces
        int32_t size()
        string_view value(int32_t node)
        string_view local_name(int32_t name)
        string_view uri(int32_t name)
        size_t bytes()

cdef extern from "quick_builder.hpp" namespace "xsift" nogil:
    cdef cppclass QuickBuilder:
        cpp_bool build(const char* data, size_t length, Nodes* tree, cpp_bool namespaces) except +

cdef extern from "expat_builder.hpp" namespace "xsift" nogil:
    cdef enum class BuildOutcome "xsift::BuildOutcome":
        BUILT
        REFUSED
        TOO_LARGE
        NO_MEMORY

    cdef cppclass ExpatBuilder:
        int error
        int64_t line
        int64_t column
        int64_t offset
        XML_UnknownEncodingHandler on_unknown_encoding
        char proper_encoding[8]
        float amplification
        unsigned long long amplification_bytes
        BuildOutcome build(const char* data, size_t length, const char* encoding, Nodes* tree, cpp_bool namespaces)


cdef class NodeTree:
    cdef Nodes* nodes
    cdef QuickBuilder* quick
    cdef ExpatBuilder* expat
    cdef readonly object limits
    cdef bint uses_quick

    # Builds the tree of a document, which a Reader has read and found well-formed, in place of the one
    # before. `encoding` overrides what the document says, if it is not NULL.
    cdef int build_from(self, const char* data, size_t length, const char* encoding, bint namespaces) except -1 nogil
    cdef int32_t _checked(self, object node) except -1
