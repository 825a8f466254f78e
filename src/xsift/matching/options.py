"""Options: how a matcher is to work. Every edge (library, command line, Spark, service) takes the same ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from xsift.document import Limits

if TYPE_CHECKING:
    from xsift.matching.matcher import Matcher
    from xsift.matching.subscriptions import Subscriptions

__all__ = ["MatcherOptions", "Residuals"]

Residuals = Literal["verify", "refuse"]


@dataclass(frozen=True, kw_only=True)
class MatcherOptions:
    """How documents are matched.

    engine          which engine, see `xsift engines`; "auto" picks
    engine_options  options of that engine, by name
    limits          what a document may cost
    residuals       "refuse": take only subscriptions that can be indexed whole
    validate        False: do not read the rest of a document once every subscription is decided
    """

    engine: str = "auto"
    engine_options: Mapping[str, Any] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    residuals: Residuals = "verify"
    validate: bool = True

    def subscriptions(self, namespaces: Mapping[str, str] | None = None) -> Subscriptions:
        """A new, empty set of subscriptions that takes what these options allow."""
        from xsift.matching.subscriptions import Subscriptions

        return Subscriptions(namespaces=namespaces, residuals=self.residuals)

    def matcher(self, subscriptions: Subscriptions) -> Matcher:
        """A matcher of a set, with this engine and these limits."""
        return subscriptions.matcher(
            self.engine, limits=self.limits, validate=self.validate, **dict(self.engine_options)
        )
