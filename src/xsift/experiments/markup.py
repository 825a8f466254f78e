"""Elements of HTML and SVG from plain values, escaped: two functions instead of a template engine."""

from __future__ import annotations

import re
from html import escape

__all__ = ["element", "expression", "prose", "text"]

VOID = frozenset(("br", "wbr", "line", "rect", "circle", "polyline", "polygon", "meta"))
_BREAK = re.compile(r"""(?<=\()(?=[\w"])|(?<=[a-z][._])(?=[a-zA-Z])""")


def element(name: str, *content: str, **attributes: str | float | None) -> str:
    """An element. Content is markup already; attributes are escaped, `kind` is the class, `_` in names is `-`."""
    parts = [name]
    for key, value in attributes.items():
        if value is None:
            continue
        written = f"{value:.4g}" if isinstance(value, float) and abs(value) < 1 else value
        written = f"{written:.1f}" if isinstance(written, float) else written
        parts.append(f'{"class" if key == "kind" else key.replace("_", "-")}="{escape(str(written))}"')
    start = " ".join(parts)
    if name in VOID and not content:
        return f"<{start}/>" if name != "br" else "<br>"
    return f"<{start}>{''.join(content)}</{name}>"


def prose(value: str) -> str:
    """Text in which `words between back quotes` are code."""
    parts = value.split("`")
    return "".join(element("code", text(part)) if number % 2 else text(part) for number, part in enumerate(parts))


def expression(value: str) -> str:
    """An expression of the claims' language, which may be broken within its names where a column is narrow."""
    return element("code", _BREAK.sub(element("wbr"), text(value)))


def text(value: object) -> str:
    """Text as markup."""
    return escape(str(value), quote=False)
