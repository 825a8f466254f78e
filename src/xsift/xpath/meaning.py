"""Meaning: what a subscription's text comes to."""

from __future__ import annotations

from dataclasses import dataclass, field

from xsift.xpath.pattern import Pattern, from_key
from xsift.xpath.symbols import Symbols

__all__ = ["Meaning", "Selection"]


@dataclass(frozen=True, slots=True)
class Selection:
    """What a match of a pattern selects."""

    kind: str
    """"element"; "attribute" or "text", which `output` carries or contains; "nodes" of several kinds, which only
    an evaluation can list; or "nothing", if the expression is no node-set."""

    output: int
    """The index of that element in the pattern, or -1 if there is none."""

    attribute: str = ""
    """The attribute's key, "local" or "uri\\x1flocal", with `*` for any local name; "" if none is selected."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """The subscription can match a document only if one of its patterns does. If it is exact, it then does match."""

    keys: list[bytes]
    """The patterns' keys, each once for each thing that it selects. Empty if always or never."""

    selections: list[Selection]
    """For each key, what is selected."""

    exact: bool
    """If not, the program has to be evaluated for the documents in which a pattern matches."""

    always: bool
    """Exact: it matches every document. Else nothing could be indexed, and it is evaluated on every document."""

    never: bool
    """No document can match."""

    listed: bool
    """It selects nodes that no pattern tells: the program lists them."""

    residual: str
    """The program as text, with all that a subscription implies; "" if there is none."""

    program: bytes
    """The expression as it is evaluated, to decide or to list nodes (program.hpp); b"" if not needed."""

    reason: str
    """The first part of the expression that patterns cannot say; "" if exact."""

    symbols: Symbols = field(repr=False, compare=False)
    """The table that gives the keys their meaning."""

    @property
    def patterns(self) -> list[Pattern]:
        """The distinct patterns, in the order of their keys."""
        return [from_key(key, self.symbols) for key in dict.fromkeys(self.keys)]
