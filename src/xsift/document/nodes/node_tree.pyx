"""NodeTree: all nodes of a document in flat arrays: what XPath 1.0's axes and functions need.

DocumentTree has the elements that events tell of. Here are also attributes, text, comments, processing instructions
and, if they are asked for, namespace nodes, with names, string-values and IDs (node_tree.hpp). It is built only for
documents that have something to evaluate, in a second reading, which need not check what the first one did: the
usual document by quick_builder.hpp, any other by expat.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from libc.string cimport memcpy

from xsift.document.expat cimport XML_Char, XML_Encoding, XML_UnknownEncodingHandler
from xsift.document.index cimport DocumentIndex
from xsift.document.reader cimport Reader
from xsift.xpath.symbols cimport Symbols

from xsift.document.encodings import character_table, proper_name
from xsift.document.faults import document_error
from xsift.document.limits import Limits
from xsift.errors import DocumentError

cdef extern from "byte_order_mark.hpp" namespace "xsift" nogil:
    const char* marked_encoding(const char* data, size_t length)

_KINDS = ["document", "element", "attribute", "text", "comment", "processing-instruction", "namespace"]


cdef class NodeTree:
    """Builds the nodes of one document after the other. Belongs to one thread at a time.

    `quick=False` has expat read every document: to compare the two.
    """

    def __cinit__(self, *, limits=None, bint quick=True):
        self.uses_quick = quick
        self.nodes = new Nodes()
        self.quick = new QuickBuilder()
        self.expat = new ExpatBuilder()
        self.limits = Limits() if limits is None else limits
        self.expat.amplification = self.limits.amplification
        self.expat.amplification_bytes = self.limits.amplification_bytes
        self.expat.on_unknown_encoding = <XML_UnknownEncodingHandler>on_unknown_encoding

    def __dealloc__(self):
        del self.nodes
        del self.quick
        del self.expat

    def build(self, xml, *, encoding=None, bint namespaces=False):
        """Reads a document, given as bytes, and builds its nodes. Raises DocumentError if it cannot be read.

        `namespaces=True` makes namespace nodes too.
        """
        cdef bytes source = bytes(xml)
        cdef bytes name = None if encoding is None else (proper_name(encoding) or encoding).encode("ascii", "replace")
        reader = Reader(DocumentIndex(Symbols()), limits=self.limits)
        reader.open(source, encoding=encoding)
        reader.finish()
        self.build_from(source, len(source), <const char*>NULL if name is None else <const char*>name, namespaces)
        return self

    cdef int build_from(self, const char* data, size_t length, const char* encoding, bint namespaces) except -1 nogil:
        cdef BuildOutcome outcome
        if encoding == NULL:
            encoding = marked_encoding(data, length)
        if self.uses_quick and (encoding == NULL or _is_utf8(encoding)):
            if self.quick.build(data, length, self.nodes, namespaces):
                return 0
        outcome = self.expat.build(data, length, encoding, self.nodes, namespaces)
        if outcome == BuildOutcome.REFUSED and self.expat.proper_encoding[0]:
            outcome = self.expat.build(data, length, self.expat.proper_encoding, self.nodes, namespaces)
        if outcome == BuildOutcome.BUILT:
            return 0
        with gil:
            if outcome == BuildOutcome.NO_MEMORY:
                raise MemoryError()
            if outcome == BuildOutcome.TOO_LARGE:
                raise DocumentError(
                    "too-large-to-evaluate", "the document has too many nodes to evaluate expressions on it",
                    hint="split it into records")
            raise document_error(
                self.expat.error, self.expat.line, self.expat.column + 1, max(self.expat.offset, 0))

    def __len__(self):
        return self.nodes.size()

    cdef int32_t _checked(self, object node) except -1:
        if not 0 <= node < self.nodes.size():
            raise IndexError(f"no node {node}: there are {self.nodes.size()}")
        return node

    def kind(self, node):
        """ "document", "element", "attribute", "text", "comment", "processing-instruction" or "namespace"."""
        return _KINDS[<int>self.nodes.kinds[self._checked(node)]]

    def name(self, node):
        """The expanded name, `local` or `{uri}local`; a processing instruction's target; "" for other nodes."""
        cdef int32_t name = self.nodes.names[self._checked(node)]
        if name < 0:
            return ""
        uri, local = _text(self.nodes.uri(name)), _text(self.nodes.local_name(name))
        return f"{{{uri}}}{local}" if uri else local

    def prefix(self, node):
        """The prefix of a name, as the document has it."""
        return _text(self.nodes.strings[self.nodes.prefixes[self._checked(node)]])

    def parent(self, node):
        """The parent's number; -1 for the document."""
        return self.nodes.parents[self._checked(node)]

    def last(self, node):
        """The number of the last node below; its own if there is none."""
        return self.nodes.lasts[self._checked(node)]

    def first(self, node):
        """The number of the first child; -1 if there is none."""
        return self.nodes.firsts[self._checked(node)]

    def before(self, node):
        """The number of the sibling before it; -1 if there is none."""
        return self.nodes.befores[self._checked(node)]

    def value(self, node):
        """The string-value."""
        return _text(self.nodes.value(self._checked(node)))

    def ids(self):
        """The numbers of the attributes that are IDs."""
        return list(self.nodes.id_attributes)

    def memory(self):
        """Bytes held."""
        return self.nodes.bytes()


cdef str _text(string_view text):
    return text.data()[:text.size()].decode("utf-8", "replace")


cdef bint _is_utf8(const char* name) noexcept nogil:
    return (
        (name[0] | 0x20) == c"u" and (name[1] | 0x20) == c"t" and (name[2] | 0x20) == c"f" and name[3] == c"-"
        and name[4] == c"8" and name[5] == 0
    )


cdef int on_unknown_encoding(void* data, const XML_Char* name, XML_Encoding* info) noexcept with gil:
    """expat asks for an encoding that it does not know by this name. Returns 1 if there is a table for it."""
    cdef bytes table, proper
    try:
        asked = (<bytes>name).decode("ascii", "replace")
        found = character_table(asked)
        if found is None:
            proper = proper_name(asked).encode()
            memcpy(data, PyBytes_AS_STRING(proper), len(proper) + 1)
            return 0
        table = found
        memcpy(info.map, PyBytes_AS_STRING(table), sizeof(info.map))
    except Exception:
        return 0
    info.data = NULL
    info.convert = NULL
    info.release = NULL
    return 1
