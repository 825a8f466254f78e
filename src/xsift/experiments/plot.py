"""Plots as SVG, drawn here so that a report needs nothing but a browser.

A plot is a list of lines over one axis (or of bars over names). Lines are labelled to the right of the plot, at the
height of their ends, which spares the reader the way from line to legend; the labels are pushed apart where lines end
close together. A narrow plot, for phones, has a legend below instead. Colours come from the page's style sheet by
number, so that light and dark pages have their own; the shapes of marks tell lines apart without colours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from xsift.experiments.looks import FIRST, Look
from xsift.experiments.markup import element, text
from xsift.experiments.quantities import quantity, short

__all__ = ["Axis", "Line", "Mark", "described", "legend", "plot"]

WIDTH, HEIGHT = 620.0, 350.0  # about as wide as it is shown, so that its text is as large as the page's
NARROW_WIDTH, NARROW_HEIGHT = 350.0, 270.0
TOP, BOTTOM, LEFT = 16.0, 52.0, 74.0
CHARACTER = 7.2  # width of a character of a tick, about
BOLD_CHARACTER = 8.2  # of a label
NARROW_RIGHT = 18.0  # room for half of the last tick
LABEL_HEIGHT = 16.0
LABEL_GAP = 34.0  # from the plot to the text of a label: a leader, a mark
MOST_LABEL = 290.0  # width of labels, at most
TICK_GAP = 8.0  # between the labels of two ticks
MOST_BANDS = 8  # lines with a band of quartiles; more of them would cover each other


@dataclass(frozen=True)
class Mark:
    """A point of a line: where, its value, its spread, and what to say of it."""

    x: float
    y: float
    lower: float
    upper: float
    least: float
    most: float
    text: str


@dataclass(frozen=True)
class Line:
    """A labelled series, and what it looks like."""

    label: str
    marks: Sequence[Mark]
    look: Look = FIRST


@dataclass(frozen=True)
class Axis:
    """What an axis shows. `names` makes it one of categories: the x of marks are then 0, 1, 2 …"""

    label: str
    unit: str = ""
    log: bool = False
    values: Sequence[float] = ()  # where ticks are wanted, if there is room
    names: Sequence[str] = ()
    texts: Sequence[str] = ()  # for the ticks at `values`, instead of the numbers


def plot(lines: Sequence[Line], x: Axis, y: Axis, description: str, *, narrow: bool = False) -> str:
    """The plot as an <svg> element. A narrow one has no labels: `legend` goes below it."""
    if not any(line.marks for line in lines):
        return element("p", "Nothing was measured.", kind="empty")
    frame = _Frame(lines, x, y, narrow)
    body = frame.grid() + (frame.bars() if x.names else frame.lines()) + ("" if narrow else frame.end_labels())
    view = f"0 0 {frame.width:g} {frame.height:g}"
    kind = f"plot {'narrow' if narrow else 'wide'}"  # only one of the two is ever shown, so both are described
    return element("svg", body, kind=kind, viewBox=view, role="img", aria_label=description)


def legend(lines: Sequence[Line]) -> str:
    """The lines' marks and labels as a list."""
    entries = []
    for line in lines:
        if line.marks:
            mark = element("svg", _shape(line.look.shape, 8, 8), viewBox="0 0 16 16", width=14, height=14)
            entries.append(element("li", mark, text(line.label), kind=f"series c{line.look.colour}"))
    return element("ul", *entries, kind="legend", aria_hidden="true")


class _Scale:
    """From values to places on the page."""

    def __init__(self, low: float, high: float, start: float, end: float, log: bool) -> None:
        self.log = log
        self.low, self.high = (math.log10(low), math.log10(high)) if log else (low, high)
        if self.low == self.high:
            self.low, self.high = self.low - 0.5, self.high + 0.5
        self.start, self.end = start, end

    def __call__(self, value: float) -> float:
        place = (math.log10(value) if value > 0 else self.low) if self.log else value
        return self.start + (place - self.low) / (self.high - self.low) * (self.end - self.start)


class _Frame:
    """The plot's area, its scales, and the pieces drawn in it."""

    def __init__(self, lines: Sequence[Line], x: Axis, y: Axis, narrow: bool) -> None:
        self.series = lines
        self.x, self.y = x, y
        self.width = NARROW_WIDTH if narrow else WIDTH
        labels = TOP + BOTTOM + LABEL_HEIGHT * sum(bool(line.marks) for line in lines)
        self.height = NARROW_HEIGHT if narrow else max(HEIGHT, labels)
        self.left = LEFT - 14 if narrow else LEFT
        longest = max(len(line.label) for line in lines if line.marks)
        room = NARROW_RIGHT if narrow else min(MOST_LABEL, LABEL_GAP + longest * BOLD_CHARACTER)
        self.right = self.width - room
        self.floor = self.height - BOTTOM
        self.x_scale = self._x_scale()
        self.ticks, self.y_scale = self._y_scale()

    def _marks(self) -> list[Mark]:
        return [mark for line in self.series for mark in line.marks]

    def _x_scale(self) -> _Scale:
        if self.x.names:
            return _Scale(-0.5, len(self.x.names) - 0.5, self.left, self.right, False)
        values = [*self.x.values, *(mark.x for mark in self._marks())]
        padding = 0.0 if self.x.log else 0.02 * (max(values) - min(values))
        return _Scale(
            min(values) - padding,
            max(values) + padding,
            self.left + 8 * self.x.log,
            self.right - 8 * self.x.log,
            self.x.log,
        )

    def _y_scale(self) -> tuple[list[float], _Scale]:
        values = [value for mark in self._marks() for value in (mark.y, mark.lower, mark.upper)]
        positive = [value for value in values if value > 0]
        if self.y.log and positive:
            ticks = (_binary_ticks if self.y.unit == "B" else _log_ticks)(min(positive), max(positive))
            return ticks, _Scale(
                min(ticks[0], min(positive) / 1.05), max(ticks[-1], max(positive) * 1.05), self.floor, TOP, True
            )
        ticks = _linear_ticks(min(0.0, min(values)), max(0.0, max(values)), self.y.unit)
        return ticks, _Scale(min(ticks[0], min(values)), max(ticks[-1], max(values)), self.floor, TOP, False)

    def grid(self) -> str:
        parts = []
        for tick in self.ticks:
            place = self.y_scale(tick)
            parts.append(self._across(place, "axis" if tick == 0 else "grid"))
            parts.append(_text(short(tick, self.y.unit), self.left - 8, place + 4, "tick", "end"))
        parts.append(self._across(self.floor, "axis"))
        for place, name in self._x_ticks():
            if not self.x.names:
                parts.append(element("line", kind="axis", x1=place, x2=place, y1=self.floor, y2=self.floor + 5))
            parts.append(_text(name, place, self.floor + 19, "tick", "middle"))
        parts.append(_text(self.x.label, (self.left + self.right) / 2, self.height - 10, "name", "middle"))
        return "".join(parts)

    def _across(self, place: float, kind: str) -> str:
        return element("line", kind=kind, x1=self.left, x2=self.right, y1=place, y2=place)

    def _x_ticks(self) -> list[tuple[float, str]]:
        """Places and labels of the ticks that there is room for: the last, then the first, then the rest."""
        if self.x.names:
            wanted = [(self.x_scale(at), name) for at, name in enumerate(self.x.names)]
        else:
            texts = self.x.texts or [short(value, self.x.unit) for value in self.x.values]
            wanted = [(self.x_scale(value), name) for value, name in zip(self.x.values, texts, strict=True)]
        taken: list[tuple[float, float]] = []
        shown = []
        for place, name in [*wanted[-1:], *wanted[:1], *wanted[1:-1]]:
            half = len(name) * CHARACTER / 2 + TICK_GAP / 2
            if all(place + half <= left or place - half >= right for left, right in taken):
                taken.append((place - half, place + half))
                shown.append((place, name))
        return shown

    def lines(self) -> str:
        return "".join(self._line(line) for line in self.series)

    def _line(self, line: Line) -> str:
        if not line.marks:
            return ""
        places = [(self.x_scale(mark.x), self.y_scale(mark.y), mark) for mark in line.marks]
        return _series(
            line,
            self._band(places) if len(self.series) <= MOST_BANDS else "",
            element("polyline", kind="line", points=_points([(x, y) for x, y, _ in places])),
            *(self._mark(line, x, y, mark) for x, y, mark in places),
        )

    def _band(self, places: Sequence[tuple[float, float, Mark]]) -> str:
        """Between the quartiles."""
        upper = [(x, self.y_scale(mark.upper)) for x, _, mark in places]
        lower = [(x, self.y_scale(mark.lower)) for x, _, mark in places]
        return element("polygon", kind="band", points=_points([*upper, *reversed(lower)]))

    def _mark(self, line: Line, x: float, y: float, mark: Mark) -> str:
        ends = sorted((self.y_scale(mark.least), self.y_scale(mark.most)))
        return element(
            "g",
            element("title", text(mark.text)),
            element("line", kind="whisker", x1=x, x2=x, y1=max(TOP, ends[0]), y2=min(self.floor, ends[1])),
            _shape(line.look.shape, x, y),
            element("circle", kind="target", cx=x, cy=y, r=11),
            kind="mark",
        )

    def bars(self) -> str:
        room = (self.x_scale(1) - self.x_scale(0)) * 0.8
        width = room / len(self.series)
        parts = []
        for number, line in enumerate(self.series):
            for mark in line.marks:
                left = self.x_scale(mark.x) - room / 2 + number * width
                top, bottom = sorted((self.y_scale(mark.y), min(self.floor, self.y_scale(0.0))))
                upper, lower = self.y_scale(mark.upper), self.y_scale(mark.lower)
                middle, height = left + width / 2, max(1.0, bottom - top)
                parts.append(
                    _series(
                        line,
                        element("title", text(mark.text)),
                        element("rect", kind="bar", x=left + 1, y=top, width=max(1.0, width - 2), height=height),
                        element("line", kind="whisker", x1=middle, x2=middle, y1=upper, y2=lower),
                    )
                )
        return "".join(parts)

    def end_labels(self) -> str:
        """The series' labels to the right of the plot, each at the height of its line's end, or near it."""
        drawn = [line for line in self.series if line.marks]
        last = max(line.marks[-1].x for line in drawn)
        ends = sorted((self.y_scale(line.marks[-1].y), at) for at, line in enumerate(drawn))
        places = _apart([y for y, _ in ends], TOP + 4, self.floor)
        parts = []
        for (y, at), place in zip(ends, places, strict=True):
            tied = drawn[at].marks[-1].x == last and not self.x.names
            parts.append(self._end_label(drawn[at], y if tied else None, place))
        return "".join(parts)

    def _end_label(self, line: Line, end: float | None, y: float) -> str:
        """A label with the line's mark; a leader ties it to a line that goes to the end of the axis."""
        start = self.x_scale(line.marks[-1].x) + 8
        leader = (
            ""
            if end is None
            else element(
                "polyline", kind="tie", points=_points([(start, end), (self.right + 4, end), (self.right + 14, y)])
            )
        )
        if self.x.names:
            mark = element("rect", kind="bar", x=self.right + 17, y=y - 5, width=9, height=9)
        else:
            mark = _shape(line.look.shape, self.right + 21, y)
        most = int((MOST_LABEL - LABEL_GAP) / BOLD_CHARACTER)
        said = line.label if len(line.label) <= most else line.label[: most - 1] + "…"
        label = _text(said, self.right + LABEL_GAP - 4, y + 4, "label", "start")
        return _series(line, element("title", text(line.label)), leader, mark, label)


def _series(line: Line, *content: str) -> str:
    kind = f"series c{line.look.colour}"
    return element("g", *content, kind=kind, data_series=f"{line.look.colour}-{line.look.shape}")


def _text(content: str, x: float, y: float, kind: str, anchor: str) -> str:
    return element("text", text(content), kind=kind, x=x, y=y, text_anchor=anchor)


def _points(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


_OUTLINES: dict[int, list[tuple[float, float]]] = {
    1: [(-4, -4), (4, -4), (4, 4), (-4, 4)],
    2: [(0, -5.2), (5, 4), (-5, 4)],
    3: [(0, -5.6), (5.6, 0), (0, 5.6), (-5.6, 0)],
    4: [(0, 5.2), (5, -4), (-5, -4)],
}


def _shape(number: int, x: float, y: float) -> str:
    """A mark: circle, square, triangle, diamond, triangle upside down; circle, square and diamond hollow."""
    hollow = {5: 0, 6: 1, 7: 3}
    kind = "dot hollow" if number in hollow else "dot"
    outline = _OUTLINES.get(hollow.get(number, number))
    if outline:
        return element("polygon", kind=kind, points=_points([(x + dx, y + dy) for dx, dy in outline]))
    return element("circle", kind=kind, cx=x, cy=y, r=4.2)


def _apart(wanted: list[float], low: float, high: float) -> list[float]:
    """The places nearest to those wanted (ascending) that are a label's height apart, within bounds if they fit.

    With the heights taken off, places must only ascend: neighbours that do not are pooled at their mean.
    """
    gap = min(LABEL_HEIGHT, (high - low) / max(1, len(wanted) - 1))
    pools: list[list[float]] = []
    for number, place in enumerate(wanted):
        pools.append([place - number * gap])
        while len(pools) > 1 and mean(pools[-2]) > mean(pools[-1]):
            last = pools.pop()
            pools[-1] += last
    limit = high - (len(wanted) - 1) * gap
    bare = [min(max(mean(pool), low), max(low, limit)) for pool in pools for _ in pool]
    return [place + number * gap for number, place in enumerate(bare)]


def _linear_ticks(low: float, high: float, unit: str) -> list[float]:
    if high <= low:
        high = low + 1
    base = (
        1024.0 ** math.floor(math.log(max(abs(low), abs(high)), 1024))
        if unit == "B" and max(abs(low), abs(high)) >= 1
        else 1.0
    )
    raw = (high - low) / 5 / base
    power = 10 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999) * base
    first, last = math.floor(low / step), math.ceil(high / step - 0.15)
    return [number * step for number in range(first, last + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = (1, 2, 5) if len(decades) <= 4 else (1,)
    ticks = [factor * 10.0**decade for decade in decades for factor in factors]
    kept = [tick for tick in ticks if low / 2.01 <= tick <= high * 2.01]
    return kept if len(kept) > 1 else ticks


def _binary_ticks(low: float, high: float) -> list[float]:
    """Ticks for bytes: powers of 2, a few of them."""
    first, last = math.floor(math.log2(low)), math.ceil(math.log2(high))
    step = max(1, math.ceil((last - first) / 6))
    first -= first % step
    return [2.0**power for power in range(first, last + step, step) if 2.0 ** (power - step) < high]


def described(label: str, x: str, value: float, unit: str, spread: tuple[float, float], rounds: int) -> str:
    """What hovering over a mark says."""
    text = f"{label} at {x}: {quantity(value, unit)}"
    if rounds > 1:
        text += f" (quartiles {quantity(spread[0], unit)} to {quantity(spread[1], unit)}, {rounds} rounds)"
    return text
