"""The matching room: subscriptions in rows, engines in segments, and the matcher that people use. See DESIGN.md.

What the rooms above (command line, Spark, service) use of it, and of the rooms below it, is exported here.
"""

from xsift.document import Document, DocumentSource, Limits
from xsift.matching.matcher import Matcher
from xsift.matching.options import MatcherOptions, Residuals
from xsift.matching.results import ArrayMatches, Explanation, Match, Node, SubscriptionReport
from xsift.matching.subscriptions import Errors, Subscriptions

__all__ = [
    "ArrayMatches",
    "Document",
    "DocumentSource",
    "Errors",
    "Explanation",
    "Limits",
    "Match",
    "Matcher",
    "MatcherOptions",
    "Node",
    "Residuals",
    "SubscriptionReport",
    "Subscriptions",
]
