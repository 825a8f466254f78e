"""xsift: which of a million standing XPath subscriptions does this XML document satisfy?

subscriptions = xsift.Subscriptions()
subscriptions.add("alice", "/nitf/body//hl1[contains(., 'Spark')]")
matcher = subscriptions.matcher()
matcher.match(b"<nitf>…</nitf>")
"""

from __future__ import annotations

from xsift.document import Document, DocumentStatistics, Limits, document_statistics
from xsift.engines import EngineDescription, list_engines
from xsift.errors import (
    DocumentError,
    EngineError,
    FailureWarning,
    StorageError,
    SubscriptionError,
    TableError,
    WorkloadError,
    XPathError,
    XsiftError,
)
from xsift.matching.matcher import Matcher
from xsift.matching.options import MatcherOptions
from xsift.matching.results import ArrayMatches, Explanation, Match, Node, SubscriptionReport
from xsift.matching.subscriptions import Subscriptions

__all__ = [
    "ArrayMatches",
    "Document",
    "DocumentError",
    "DocumentStatistics",
    "EngineDescription",
    "EngineError",
    "Explanation",
    "FailureWarning",
    "Limits",
    "Match",
    "Matcher",
    "MatcherOptions",
    "Node",
    "StorageError",
    "SubscriptionError",
    "SubscriptionReport",
    "Subscriptions",
    "TableError",
    "WorkloadError",
    "XPathError",
    "XsiftError",
    "__version__",
    "document_statistics",
    "list_engines",
]

__version__ = "0.1.0"
