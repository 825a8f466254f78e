"""The document room: from XML to events. See DESIGN.md.

index = DocumentIndex(symbols, [condition_index])   what is asked for, frozen
reader = Reader(index)                              one for each thread
document = reader.read(b"<a/>")                     the events, for an engine
"""

from xsift.document.conditions.condition_index import ConditionIndex
from xsift.document.document import Document, DocumentSource
from xsift.document.events import EventSource, RecordedEvents
from xsift.document.index import DocumentIndex
from xsift.document.limits import Limits
from xsift.document.names import ElementNames, NamedEvents
from xsift.document.reader import Reader
from xsift.document.statistics import DocumentStatistics, document_statistics
from xsift.document.tree import DocumentTree

__all__ = [
    "ConditionIndex",
    "Document",
    "DocumentIndex",
    "DocumentSource",
    "DocumentStatistics",
    "DocumentTree",
    "ElementNames",
    "EventSource",
    "Limits",
    "NamedEvents",
    "Reader",
    "RecordedEvents",
    "document_statistics",
]
