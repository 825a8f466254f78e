"""Small drawings in SVG: tables, trees and graphs, legible on light and on dark paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

LETTER = 7.3  # the width of a letter of the monospaced font, about
LINE = 18
STYLE = """
.paper{fill:#fff}text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#1c2333}
.title{font:bold 13px system-ui,sans-serif}.quiet{fill:#5c6680;font-size:11px}
.box{fill:#eef1fb;stroke:#7482c4}.accent{fill:#cfd8ff;stroke:#3f51b5;stroke-width:2}
.line{fill:none;stroke:#7482c4}.rule{stroke:#cdd3e6}.head{fill:#7482c4}
@media(prefers-color-scheme:dark){.paper{fill:#12151c}text{fill:#e6e9f2}.quiet{fill:#9aa5c3}
.box{fill:#1e2536;stroke:#7482c4}.accent{fill:#2c3870;stroke:#98a6ff}.rule{stroke:#333c54}}
"""


@dataclass
class Node:
    """A node of a tree that is drawn from left to right."""

    text: str
    note: str = ""  # in small letters below it
    accent: bool = False
    loops: bool = False  # an arrow from the node to itself
    children: list[tuple[str, Node]] = field(default_factory=list)  # what stands at the arrow, and where it leads


class Picture:
    """What is drawn so far; grows as needed."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.width = self.height = 0.0

    def text(self, x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> None:
        self._parts.append(f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{escape(text)}</text>')
        width = len(text) * LETTER * (1.1 if kind == "title" else 1)
        self._grow(x + (width if anchor == "start" else width / 2), y + 4)

    def box(self, x: float, y: float, width: float, height: float, accent: bool = False) -> None:
        kind = "accent" if accent else "box"
        self._parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4" class="{kind}"/>')
        self._grow(x + width, y + height)

    def arrow(self, points: str) -> None:
        self._parts.append(f'<path d="{points}" class="line" marker-end="url(#head)"/>')

    def rule(self, x: float, y: float, width: float) -> None:
        self._parts.append(f'<line x1="{x:g}" y1="{y:g}" x2="{x + width:g}" y2="{y:g}" class="rule"/>')

    def _grow(self, x: float, y: float) -> None:
        self.width, self.height = max(self.width, x), max(self.height, y)

    def table(
        self, x: float, y: float, title: str, head: Sequence[str], rows: Sequence[Sequence[str]]
    ) -> tuple[float, float]:
        """A table; returns where it ends, to the right and below."""
        widths = [max(len(row[column]) for row in (head, *rows)) * LETTER + 16 for column in range(len(head))]
        self.text(x, y + 12, title, "title")
        y += 24
        for number, row in enumerate((head, *rows)):
            at = x
            for cell, width in zip(row, widths, strict=True):
                self.text(at + 4, y + 13, cell, "" if number else "quiet")
                at += width
            y += LINE
            self.rule(x, y, sum(widths))
        self._grow(x + sum(widths), y)
        return x + sum(widths), y

    def tree(self, x: float, y: float, title: str, roots: Sequence[Node]) -> tuple[float, float]:
        """Trees, one below the other; returns where they end, to the right and below."""
        self.text(x, y + 12, title, "title")
        y += 28
        most = x
        for root in roots:
            right, y = self._branch(root, x, y)
            most = max(most, right)
        return most, y

    def _branch(self, node: Node, x: float, y: float) -> tuple[float, float]:
        width = max(len(node.text), 2) * LETTER + 14
        wide = max(width, len(node.note) * LETTER)
        room = wide + 24 + max([len(edge) for edge, _ in node.children], default=0) * LETTER
        below, right, ends = y, x + wide, []
        for _, child in node.children:
            ends.append(below)
            end, below = self._branch(child, x + room, below)
            right = max(right, end)
        self.box(x, y, width, 22, node.accent)
        self.text(x + width / 2, y + 15, node.text, "", "middle")
        if node.note:
            self.text(x, y + 35, node.note, "quiet")
        if node.loops:
            self.arrow(f"M{x + 6:g} {y:g}c-6 -16 22 -16 14 -2")
        for (edge, _), at in zip(node.children, ends, strict=True):
            start = x + width
            if at == y:
                self.arrow(f"M{start:g} {y + 11:g}H{x + room - 2:g}")
            else:
                self.arrow(f"M{start:g} {y + 11:g}h8V{at + 11:g}H{x + room - 2:g}")
            if edge:
                self.text(x + room - 10 - len(edge) * LETTER, at + 7, edge)
        return right, max(below, y + (46 if node.note else 32))

    def graph(
        self, x: float, y: float, places: dict[str, tuple[float, float]], edges: Sequence[tuple[str, str, float, str]]
    ) -> None:
        """Nodes where they are said to be; edges from one to another, bent by so much, with what stands at them."""
        for source, target, bend, label in edges:
            (from_x, from_y), (to_x, to_y) = places[source], places[target]
            middle_x, middle_y = x + (from_x + to_x) / 2, y + (from_y + to_y) / 2 + bend
            turn = 0 if bend else (from_y - to_y) * 0.2
            start = from_x - 24 if not bend else from_x
            end = to_x + 26 if not bend else to_x
            lift = 13 if bend > 0 else -13 if bend < 0 else 0
            self.arrow(
                f"M{x + start:g} {y + from_y + lift:g}Q{middle_x:g} {middle_y + turn:g} "
                f"{x + end:g} {y + to_y + lift:g}"
            )
            self.text(
                middle_x,
                middle_y - bend / 2 + (22 if bend > 0 else -14 if bend < 0 else -6),
                label,
                "quiet",
                "middle",
            )
        for name, (at_x, at_y) in places.items():
            self.box(x + at_x - 24, y + at_y - 12, 48, 24)
            self.text(x + at_x, y + at_y + 4, name, "", "middle")

    def svg(self, about: str) -> str:
        """The picture as a file; `about` is for those who cannot see it."""
        width, height = self.width + 16, self.height + 14
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" role="img"><title>{escape(about)}</title><style>{STYLE}</style>'
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            'orient="auto"><path d="M0 0L8 4L0 8z" class="head"/></marker></defs>'
            f'<rect class="paper" width="100%" height="100%" rx="6"/>\n' + "\n".join(self._parts) + "\n</svg>\n"
        )
