from libcpp.vector cimport vector

from xsift.xpath.namespaces cimport Namespaces
from xsift.xpath.syntax cimport SyntaxNode


cdef class Expression:
    cdef vector[SyntaxNode] nodes  # the root is the last
    cdef bytes source              # UTF-8; what the nodes' offsets refer to
    cdef Namespaces namespaces


# The UTF-8 bytes of a subscription's text, which was given as str or bytes.
cdef bytes encoded(text)
