"""What the engine `predicate` shows of itself: predicates as the paper writes them."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Predicate"]


class Predicate(NamedTuple):
    """A predicate: its kind, its tags (two of a relative one, none of a length predicate), operator and value."""

    kind: str  # "absolute", "relative", "end-of-path" or "length"
    tags: tuple[str, ...]
    operator: str  # "=" or ">="
    value: int

    def __str__(self) -> str:
        return f"({self.attribute}, {self.operator}, {self.value})"

    @property
    def attribute(self) -> str:
        """The paper's name for what is compared with the value."""
        if self.kind == "length":
            return "length"
        if self.kind == "relative":
            return f"d(p_{self.tags[0]}, p_{self.tags[1]})"
        return f"p_{self.tags[0]}" + ("-|" if self.kind == "end-of-path" else "")
