"""Namespaces: the prefixes that a set of subscriptions may use, and the URI that each stands for."""

from xsift.errors import XPathError

from xsift.xpath.characters cimport scan_name

_XML = "http://www.w3.org/XML/1998/namespace"


cdef class Namespaces:
    """An immutable mapping of prefixes to URIs. `xml` is always bound, as in every XML document."""

    def __init__(self, mapping=None):
        self.mapping = dict(mapping or {})
        for prefix, uri in self.mapping.items():
            _check(prefix, uri)
        for prefix, uri in {**self.mapping, "xml": _XML}.items():
            self._add(prefix.encode(), uri.encode())

    def _add(self, bytes prefix, bytes uri):
        self.prefixes.add(prefix, len(prefix))
        self.uri_of.push_back(self.uris.add(uri, len(uri)))

    cdef int32_t find(self, const char* prefix, size_t length) noexcept nogil:
        cdef int32_t number = self.prefixes.find(prefix, length)
        return self.uri_of[number] if number >= 0 else -1


cdef Namespaces namespaces_of(mapping):
    """The mapping itself if it is one of ours already, else made into one."""
    return mapping if isinstance(mapping, Namespaces) else Namespaces(mapping)


def _check(prefix, uri):
    hint = "give a mapping such as {'n': 'urn:news'}; XPath 1.0 has no default namespace"
    if not isinstance(prefix, str) or not _is_name(prefix):
        raise XPathError("bad-namespace", f"{prefix!r} is no namespace prefix", hint=hint)
    if not isinstance(uri, str) or not uri or not _is_text(uri):
        raise XPathError("bad-namespace", f"the namespace of prefix {prefix!r} is {uri!r}", hint=hint)
    if prefix == "xml" and uri != _XML:
        raise XPathError(
            "bad-namespace", f"prefix 'xml' cannot be bound to {uri!r}", hint=f"it always stands for {_XML}")


def _is_text(str text):
    return all(" " <= c and not "\ud800" <= c <= "\udfff" and c not in "\ufffe\uffff" for c in text)


def _is_name(str text):
    if not _is_text(text):
        return False
    encoded = text.encode()
    cdef const char* data = encoded
    return len(encoded) > 0 and scan_name(data, data + len(encoded)) == <size_t>len(encoded)
