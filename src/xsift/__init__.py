"""xsift: which of a million standing XPath subscriptions does this XML document satisfy?

subscriptions = xsift.Subscriptions()
subscriptions.add("alice", "/nitf/body//hl1[contains(., 'Spark')]")
matcher = subscriptions.matcher()
matcher.match(b"<nitf>…</nitf>")
"""

from __future__ import annotations

from xsift.document import DocumentStatistics, Limits, document_statistics
from xsift.engines import EngineDescription, list_engines
from xsift.errors import (
    DocumentError,
    EngineError,
    StorageError,
    SubscriptionError,
    WorkloadError,
    XPathError,
    XsiftError,
)
from xsift.matching.matcher import Matcher
from xsift.matching.results import Explanation, Match, Node, SubscriptionReport
from xsift.matching.subscriptions import Subscriptions

__all__ = [
    "DocumentError",
    "DocumentStatistics",
    "EngineDescription",
    "EngineError",
    "Explanation",
    "Limits",
    "Match",
    "Matcher",
    "Node",
    "StorageError",
    "SubscriptionError",
    "SubscriptionReport",
    "Subscriptions",
    "WorkloadError",
    "XPathError",
    "XsiftError",
    "__version__",
    "document_statistics",
    "list_engines",
]

__version__ = "0.1.0"
