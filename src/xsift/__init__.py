"""xsift: which of a million standing XPath subscriptions does this XML document satisfy?

subscriptions = xsift.Subscriptions()
subscriptions.add("alice", "/nitf/body//hl1[contains(., 'Spark')]")
matcher = subscriptions.matcher()
matcher.match(b"<nitf>…</nitf>")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xsift.document import Document, DocumentStatistics, Limits, document_statistics
from xsift.engines import EngineDescription, list_engines
from xsift.errors import (
    DocumentError,
    EngineError,
    FailureWarning,
    ServiceError,
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

if TYPE_CHECKING:
    from xsift.service.client import AsyncClient, Client

__all__ = [
    "ArrayMatches",
    "AsyncClient",
    "Client",
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
    "ServiceError",
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


def __getattr__(name: str) -> Any:
    # The clients need httpx, which the library does not: they are imported when somebody asks for them.
    if name in ("AsyncClient", "Client"):
        from xsift.service import client

        return getattr(client, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
