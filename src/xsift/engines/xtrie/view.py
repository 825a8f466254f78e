"""What the engine `xtrie` shows of itself: the Trie and the Substring-Table, with the paper's names."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["SubstringRow", "TrieLabel"]


class SubstringRow(NamedTuple):
    """A row of the Substring-Table."""

    row: int
    pattern: int
    substring: tuple[str, ...]
    parent_row: int
    rel_level: tuple[int, int | None]  # (minimum, maximum); None is no maximum
    rank: int
    num_child: int
    next: int


class TrieLabel(NamedTuple):
    """A node of the Trie, named by its label; alpha is a row, beta the label of the node that it points to."""

    label: tuple[str, ...]
    alpha: int
    beta: tuple[str, ...]
