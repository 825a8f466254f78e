"""Looks: the colour and the mark of each series, the same in every plot of a report.

A series is known by its label. No two of a report have the same colour and mark, and no two of a plot have the same
colour as long as there are colours enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["COLOURS", "FIRST", "SHAPES", "Look", "looks"]

COLOURS = 16  # that the style sheet has, as --c0, --c1, …
SHAPES = 8  # that plot.py draws


@dataclass(frozen=True)
class Look:
    """A colour of the style sheet and a mark, by number."""

    colour: int
    shape: int


FIRST = Look(0, 0)


def looks(plots: Sequence[Iterable[str]]) -> dict[str, Look]:
    """The look of each label, given the labels of each plot."""
    together = [list(plot) for plot in plots]
    found: dict[str, Look] = {}
    for label in dict.fromkeys(label for plot in together for label in plot):
        beside = {other for plot in together if label in plot for other in plot}
        taken = {found[other].colour for other in beside if other in found}
        colour = _least_used([look.colour for look in found.values()], taken)
        shapes = {look.shape for look in found.values() if look.colour == colour}
        wanted = len(found) % SHAPES
        shape = next((s % SHAPES for s in range(wanted, wanted + SHAPES) if s % SHAPES not in shapes), wanted)
        found[label] = Look(colour, shape)
    return found


def _least_used(used: list[int], taken: set[int]) -> int:
    """The colour that the fewest series have, of those that are not taken; of all, if all are."""
    free = [colour for colour in range(COLOURS) if colour not in taken] or list(range(COLOURS))
    return min(free, key=lambda colour: (used.count(colour), colour))
