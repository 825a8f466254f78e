"""How sets, matchers and results show themselves: a line or a few in a terminal, a small table in a notebook.

Ids, expressions, labels and names in documents are strangers': in a terminal what cannot be printed is escaped, in
HTML everything is. Long ones are cut, and of many the first are shown, so that nothing costs more than a screen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["html_page", "html_table", "plural", "printable", "shortened"]

SHOWN = 10  # rows
LONGEST = 200  # characters of a cell
RIGHT, WRONG = "#2e7d4f", "#c0392b"  # legible on light and on dark paper


def printable(text: str) -> str:
    """A text without what a terminal would obey: control characters, and those that change the direction."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def shortened(text: str, longest: int = LONGEST) -> str:
    """A text of this length at most."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def plural(number: int, noun: str) -> str:
    """1 document, 2 documents, 12,345 documents; matches, not matchs."""
    if number == 1:
        return f"1 {noun}"
    ending = "es" if noun.endswith(("ch", "s", "x")) else "s"
    return f"{number:,} {noun}{ending}"


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of texts, all of which are escaped."""
    header = "".join(f'<th style="text-align:left">{escape(cell)}</th>' for cell in head)
    body = "".join(
        "<tr>" + "".join(f'<td style="text-align:left">{_cell(cell)}</td>' for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"


def html_page(title: str, *parts: str, right: bool | None = None) -> str:
    """A title, which is escaped, and parts that are HTML already. `right` marks it as good or bad news."""
    mark = "" if right is None else f'<span style="color:{RIGHT if right else WRONG}">{"✓" if right else "✗"}</span> '
    return f"<div><p>{mark}<b>{_cell(title)}</b></p>{''.join(parts)}</div>"


def _cell(text: str) -> str:
    return escape(printable(shortened(text)))
