"""What the claims' language is about: numbers, rows of them over an axis, and comparisons of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Axis", "Flags", "NotMeasured", "Number", "Numbers", "Row", "Setting", "Value", "as_numbers"]


class NotMeasured(Exception):
    """A check needs a number that there is not. Its text says which."""


@dataclass(frozen=True)
class Number:
    """A number and its unit."""

    value: float
    unit: str = ""


@dataclass(frozen=True)
class Row:
    """A number for each point of the axis, by the point's position; points that were not measured are absent."""

    points: Mapping[int, float]
    unit: str = ""


@dataclass(frozen=True)
class Flags:
    """What comparing rows gives: true or false a point."""

    points: Mapping[int, bool]


Value = Number | Row | Flags | bool
Axis = Sequence[float | str]  # the values of an axis
Numbers = Callable[[str, str], Mapping[int, float]]  # measure, label -> a number for each point


@dataclass(frozen=True)
class Setting:
    """What a check may name: the figure's measure, its axis' values, its series' labels."""

    measure: str
    values: Axis
    labels: Sequence[str]


def as_numbers(values: Axis) -> list[float]:
    """An axis' values as numbers: their positions if they are strings."""
    return [number if isinstance(value, str) else value for number, value in enumerate(values)]
