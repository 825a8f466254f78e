"""xsift: which of a million standing XPath subscriptions does this XML document satisfy?

    subscriptions = xsift.Subscriptions()
    subscriptions.add("alice", "/nitf/body//hl1[contains(., 'Spark')]")
    matcher = subscriptions.matcher()
    matcher.match(b"<nitf>…</nitf>")
"""

from __future__ import annotations

from dataclasses import dataclass

from xsift.document import Limits
from xsift.engines import ENGINES, engine_class
from xsift.errors import (
    DocumentError,
    EngineError,
    StorageError,
    SubscriptionError,
    WorkloadError,
    XPathError,
    XsiftError,
)
from xsift.matcher import Matcher
from xsift.results import Explanation, Match, Node, SubscriptionReport
from xsift.subscriptions import Subscriptions

__all__ = [
    "DocumentError",
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
    "engines",
]

__version__ = "0.1.0"


@dataclass(frozen=True)
class EngineDescription:
    """What an engine is, and when to use it."""

    name: str
    paper: str
    takes: str
    wins: str
    caveat: str
    options: dict[str, tuple[object, ...]]


def engines() -> list[EngineDescription]:
    """The engines there are. `Subscriptions.matcher(engine=name, **options)` uses one."""
    kinds = [engine_class(name) for name in ENGINES]
    return [
        EngineDescription(kind.name, kind.paper, kind.takes, kind.wins, kind.caveat, dict(kind.options))
        for kind in kinds
    ]
