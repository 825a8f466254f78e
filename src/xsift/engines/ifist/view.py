"""What the engines `ifist` and `fist` show of themselves: the figures of the paper, as plain tuples.

Profiles go by their keys (Qid); positions and pointers count from 1, as the paper's do.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Moment", "SegmentRow", "SequenceNode"]


class SequenceNode(NamedTuple):
    """A node of a profile sequence: Table I, and δ of section 6."""

    label: str
    pos: int
    sym: frozenset[str]  # of "/", "//", "$", "#"; the root's axis is from the document: "/" if it is anchored
    delta: tuple[str, int] | None = None  # (op, extra), where wildcards were deleted before this node


class SegmentRow(NamedTuple):
    """A row of the segment table."""

    pointer: int
    labels: str  # the labels in order, separated by blanks
    candidates: list[tuple[int, int]]  # (Qid, position in the terse sequence)


class Moment(NamedTuple):
    """The structures right after an end tag. The stacks are as the end tag finds them."""

    element: str
    stack: list[str]  # the run-time stack, outermost first
    path_stack: list[int]  # for each element on it: how many levels deep the document has been below it
    labels: list[str]  # what the end tag adds to LPS(T), extended: the element if it is a leaf; its parent
    sequence_index: dict[str, list[int]]  # first label -> pointers
    segment_table: list[SegmentRow]
    branch_ids: dict[tuple[int, int], list[int]]  # (Qid, position) -> the open elements of the branch node, by number
    matched: list[int]
