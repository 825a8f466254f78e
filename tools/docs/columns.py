"""Docstrings that have columns, names and what they mean, as lists in the site. A terminal shows them well."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

ROW = re.compile(r"^(\w[\w-]*(?:, \w[\w-]*)*)( +)(\S.*)$")


class Columns(Extension):
    """Rewrites paragraphs whose lines are in two columns."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Looks at the docstring of everything that is documented."""
        if obj.docstring is not None:
            obj.docstring.value = "\n\n".join(_listed(part) for part in obj.docstring.value.split("\n\n"))


def _listed(paragraph: str) -> str:
    """A paragraph in two columns as a list; any other as it is."""
    lines = paragraph.split("\n")
    first = ROW.match(lines[0])
    if first is None or len(lines) < 2:
        return paragraph
    column = first.start(3)
    rows: list[tuple[str, str]] = []
    for line in lines:
        row = ROW.match(line)
        if row is not None and row.start(3) == column:
            rows.append((row[1], row[3]))
        elif rows and line.startswith(" " * column) and line[column : column + 1].strip():
            rows[-1] = (rows[-1][0], f"{rows[-1][1]} {line.strip()}")
        else:
            return paragraph
    if max(len(name) for name, _ in rows) + 1 > column or len(rows) < 2:
        return paragraph
    names = [", ".join(f"`{name}`" for name in row[0].split(", ")) for row in rows]
    return "\n".join(f"- {name}: {text}" for name, (_, text) in zip(names, rows, strict=True))
