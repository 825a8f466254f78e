"""Why a document was refused: expat's error numbers and the reader's own, with a stable code for each.

Numbers below 1000 are expat's (`enum XML_Error`), the others are `ReadFault` of read_state.hpp, in its order.
"""

from __future__ import annotations

from xsift.errors import DocumentError

__all__ = ["FAULTS", "LONE_SURROGATE", "document_error"]

LONE_SURROGATE = 1015

_RAISE = "raise Limits({0}=…), --limit {0}=… on the command line, if the document can be trusted"

# number -> (code, message, hint)
FAULTS: dict[int, tuple[str, str, str]] = {
    1: ("out-of-memory", "the parser ran out of memory", ""),
    2: ("syntax", "a syntax error", ""),
    3: ("no-root-element", "there is no element in the document", ""),
    4: ("invalid-token", "not well-formed: this cannot stand here", ""),
    5: ("unclosed-token", "the document ends inside a tag, comment, declaration or reference", ""),
    6: ("partial-character", "the document ends inside a character", ""),
    7: ("tag-mismatch", "an end tag does not match its start tag", ""),
    8: ("duplicate-attribute", "an element has an attribute twice", ""),
    9: ("junk-after-document", "something follows the root element", ""),
    10: ("misplaced-parameter-entity", "a parameter entity reference cannot stand here", ""),
    11: ("undeclared-entity", "a reference to an entity that is not declared", ""),
    12: ("recursive-entity", "an entity refers to itself", ""),
    13: ("unbalanced-entity", "an element begins and ends in different entities", ""),
    14: ("bad-character-reference", "a reference to a character that XML does not allow", ""),
    15: ("unparsed-entity", "a reference to an unparsed entity", ""),
    16: ("external-entity", "a reference to an external entity in an attribute value", ""),
    17: ("misplaced-declaration", "an XML declaration must be at the very start of the document", ""),
    18: (
        "unsupported-encoding",
        "the document's encoding is not supported",
        "decode the document and pass it as str",
    ),
    19: ("incorrect-encoding", "the document is not in the encoding that it declares", ""),
    20: ("unclosed-cdata", "the document ends inside a CDATA section", ""),
    21: ("external-entity", "a reference to an external entity", ""),
    22: ("not-standalone", "the document is not standalone", ""),
    23: ("parser-state", "the parser is in an unexpected state", ""),
    24: ("undeclared-entity", "an entity is declared in a parameter entity only", ""),
    27: ("unbound-prefix", "a namespace prefix is not declared", ""),
    28: ("undeclared-prefix", "a namespace prefix cannot be undeclared", ""),
    29: ("incomplete-parameter-entity", "markup is not complete within a parameter entity", ""),
    30: ("bad-xml-declaration", "the XML declaration is not well-formed", ""),
    31: ("bad-text-declaration", "a text declaration is not well-formed", ""),
    32: ("bad-public-id", "a public identifier has a character that it must not have", ""),
    38: ("reserved-prefix", "the prefix xml cannot be declared like this", ""),
    39: ("reserved-prefix", "the prefix xmlns cannot be declared", ""),
    40: ("reserved-namespace", "a prefix is bound to a reserved namespace", ""),
    43: ("entity-amplification", "entities expand the document too much", _RAISE.format("amplification")),
    1000: ("too-deep", "elements are nested too deeply", _RAISE.format("depth")),
    1001: ("too-large", "the document is too large", _RAISE.format("bytes")),
    1002: ("too-many-attributes", "an element has too many attributes", _RAISE.format("attributes")),
    1003: ("text-too-long", "text that conditions ask for is too long", _RAISE.format("text_bytes")),
    1004: ("name-too-long", "a name or namespace is too long", _RAISE.format("name_bytes")),
    1005: ("token-too-long", "a tag, comment or declaration is too long", _RAISE.format("token_bytes")),
    1006: ("too-many-entities", "too many entities are declared", _RAISE.format("entities")),
    1007: ("entity-amplification", "too many elements come from entities", _RAISE.format("entity_elements")),
    1008: (
        "text-amplification",
        "conditions look at the same text too often, as the document nests",
        _RAISE.format("amplification"),
    ),
    1009: ("parameter-entity", "a parameter entity reference, which is never expanded", "expand the document's DTD"),
    1010: ("external-entity", "a reference to an external entity, which is never read", ""),
    1011: (
        "undeclared-entity",
        "a reference to an entity that is not declared in the document; an external DTD is never read",
        "declare the entity in the document, or replace the reference",
    ),
    1012: ("unsupported-version", "the XML version is not 1.x", ""),
    1013: ("truncated-document", "the document ends before its root element does", ""),
    1014: ("empty-document", "the document is empty", ""),
    1015: ("lone-surrogate", "the text has half of a surrogate pair, which is no character", ""),
    1016: ("entity-depth", "entities refer to each other too deeply", _RAISE.format("entity_depth")),
    1017: (
        "attribute-amplification",
        "the document declares so many attributes for an element that each start tag costs too much",
        _RAISE.format("amplification"),
    ),
}

_UNKNOWN = ("parser-error", "the parser refused the document", "")


def document_error(number: int, line: int, column: int, offset: int) -> DocumentError:
    """The error for a fault number, with its place."""
    code, message, hint = FAULTS.get(number, _UNKNOWN)
    return DocumentError(code, message, line=line, column=column, offset=offset, hint=hint)
