"""The usual reason why nothing matches: the name is there, in another namespace than the expression says."""

from __future__ import annotations

from collections import Counter

from xsift.document import DocumentTree
from xsift.xpath.symbols import SEPARATOR, Symbols

__all__ = ["NamespaceHints"]

SHOWN_NAMESPACES = 3


class NamespaceHints:
    """Knows the names of a document's elements, once somebody asks."""

    def __init__(self, tree: DocumentTree, symbols: Symbols) -> None:
        self._tree = tree
        self._symbols = symbols
        self._namespaces: dict[str, Counter[str]] | None = None

    def of(self, symbol: int) -> str:
        """What to say about a name that was not found; "" if no element has its local name."""
        uri, _, local = self._symbols.key(symbol)[1:].decode("utf-8", "replace").rpartition(SEPARATOR)
        others = dict(self._names().get(local, Counter()).most_common())
        if not others or uri in others:
            return ""
        told = []
        for other, count in list(others.items())[:SHOWN_NAMESPACES]:
            elements = "1 element here has" if count == 1 else f"{count:,} elements here have"
            told.append(
                f"{elements} the name {local!r} " + (f"in namespace {other!r}" if other else "in no namespace")
            )
        remedy = "" if uri else "; bind a prefix to it (-n PREFIX=URI) and use that in the expression"
        return ", ".join(told) + (remedy if next(iter(others)) else "; leave out the prefix")

    def _names(self) -> dict[str, Counter[str]]:
        """By local name, how many elements have it in which namespace."""
        if self._namespaces is None:
            self._namespaces = {}
            for name, count in Counter(map(self._tree.name, range(1, len(self._tree) + 1))).items():
                uri, _, local = name.rpartition("}")
                self._namespaces.setdefault(local, Counter())[uri[1:]] += count
        return self._namespaces
