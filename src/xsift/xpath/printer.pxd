from libcpp.string cimport string

from xsift.native.types cimport int32_t
from xsift.xpath.syntax cimport SyntaxNode

# Appends the text of the tree below `root`; `source` is what the nodes' offsets refer to. For `verification` see
# printer.pyx.
cdef int print_tree(
    string* text, const SyntaxNode* nodes, const char* source, int32_t root, bint verification) except -1 nogil
