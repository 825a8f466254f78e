"""Templates: sentences with measured numbers in them, so that a reason never says other numbers than the report.

`from {counter.candidates("B", 1)} to {counter.candidates("B", 5)} candidates` has an expression of the claims'
language in each pair of braces. They are checked when the definition is read, and filled in from a run's numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from xsift.experiments.claims import Check
from xsift.experiments.quantities import quantity
from xsift.experiments.rows import Axis, NotMeasured, Number, Numbers, Row, Setting

__all__ = ["Template"]

_EXPRESSION = re.compile(r"\{([^{}]+)\}")
UNKNOWN = "–"


class Template:
    """A text with expressions in it, for one figure."""

    def __init__(self, text: str, setting: Setting, place: str = "") -> None:
        self.text = text.strip()
        pieces = _EXPRESSION.split(self.text)  # text, expression, text, expression, … text
        self._texts = pieces[0::2]
        self._checks = [Check(expression, setting, place) for expression in pieces[1::2]]

    def __bool__(self) -> bool:
        return bool(self.text)

    @property
    def measures(self) -> set[str]:
        """What its numbers are of."""
        return {measure for check in self._checks for measure in check.measures}

    def filled(self, numbers: Numbers, values: Axis | None = None, wording: Callable[[str], str] = str) -> str:
        """The text with its numbers. One that was not measured is a dash.

        Of a scaled run, `values` is the axis as it was measured, and `wording` says the sizes of the text as they
        were measured. So a place on the axis is the same place here, and not where its number was measured: both
        `at 10,000` and `y("A", 10_000)` become what was made of 10,000.
        """
        found = [_shown(check, numbers, values) for check in self._checks]
        texts = [wording(text) for text in self._texts]
        return "".join(part for pair in zip(texts, [*found, ""], strict=True) for part in pair)


def _shown(check: Check, numbers: Numbers, values: Axis | None) -> str:
    try:
        found = check.value(numbers, values, in_place=True)
    except NotMeasured:
        return UNKNOWN
    if isinstance(found, Number):
        return quantity(found.value, found.unit)
    if isinstance(found, Row) and found.points:
        in_order = [found.points[at] for at in sorted(found.points)]
        ends = [quantity(number, found.unit) for number in (min(in_order), max(in_order))]
        return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
    raise check.error("it gives neither a number nor a row", hint="a template is filled with numbers")
