"""The report of `xsift demo`: one page of HTML that needs nothing else, on a wide screen or a telephone."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

from xsift.cli.common import plural

if TYPE_CHECKING:
    from xsift import Node
    from xsift.cli.demo import Demo

LONGEST = 600  # characters of a fragment that are shown
STYLE = """
:root{color-scheme:light dark;--line:#8883;--bar:#2b7de9;--naive:#c8632b;--quiet:#767676;--mark:#ffe08a}
@media(prefers-color-scheme:dark){:root{--mark:#5a4a00;--quiet:#9a9a9a}}
body{font:16px/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem}
h1{margin-bottom:0}h2{margin-top:2.2rem}.lead,.quiet{color:var(--quiet)}.lead{margin-top:0}
dl{display:flex;flex-wrap:wrap;gap:1rem 2.5rem;margin:1.5rem 0}
dt{color:var(--quiet);font-size:.85rem}dd{margin:0;font-size:1.6rem;font-weight:600}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%}th{text-align:left;font-weight:600}
td,th{padding:.35rem 1rem .35rem 0;border-bottom:1px solid var(--line);vertical-align:top}
.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
.bars p{margin:.5rem 0;display:flow-root}.bars .n{float:right;padding-left:1rem}
.bars i{display:block;clear:both;height:.8rem;min-width:2px;background:var(--bar);border-radius:2px}
.bars .naive{background:var(--naive)}
pre{font:13px/1.5 ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere;max-height:24rem;overflow:auto;
border:1px solid var(--line);border-radius:6px;padding:.8rem;margin:0}
code{font:.85em ui-monospace,monospace;overflow-wrap:anywhere}mark{background:var(--mark);color:inherit}
td:nth-child(3){min-width:11rem}mark sup{font-weight:700;padding:0 .2em}
"""


def page(demo: Demo) -> str:
    """The report."""
    figures = [
        ("documents", f"{demo.documents:,}"),
        ("subscriptions", f"{demo.subscriptions:,}"),
        ("matches", f"{demo.matches:,}"),
        ("documents a second on Spark", f"{demo.documents_per_second:,.0f}"),
    ]
    head = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in figures)
    return (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width,initial-scale=1'>"
        f"<title>xsift demo</title><style>{STYLE}</style><h1>xsift demo</h1>"
        "<p class=lead>News documents against standing XPath subscriptions: by the library, and on local Spark."
        f"<dl>{head}</dl>{_naive(demo)}{_document(demo)}{_times(demo)}{_popular(demo)}{_stream(demo)}\n"
    )


def _bars(rows: Sequence[tuple[float, str, str]]) -> str:
    """Seconds, what they were spent on, and a class for the bar; the longest fills the width."""
    longest = max((seconds for seconds, _, _ in rows), default=0.0) or 1.0
    lines = "".join(
        f'<p><span class=n>{_seconds(seconds)}</span>{html.escape(text)}<i class="{kind}" '
        f'style="width:{100 * seconds / longest:.1f}%"></i>'
        for seconds, text, kind in rows
    )
    return f"<div class=bars>{lines}</div>"


def _seconds(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds >= 100 else f"{seconds:.2f} s"


def _naive(demo: Demo) -> str:
    """The naive way's time beside ours, for the same work in one process."""
    if not demo.naive_documents or not demo.seconds:
        return ""
    done = f"{plural(demo.naive_documents, 'document')} and {plural(demo.naive_subscriptions, 'subscription')}"
    rows = [
        (demo.naive_in_all, f"a loop over lxml, reckoned from {done}", "naive"),
        (demo.seconds, "xsift, measured", ""),
    ]
    ratio = demo.naive_in_all / demo.seconds
    return (
        f"<h2>{ratio:,.0f} times as fast as a loop</h2><p>All {demo.documents:,} documents against all "
        f"{demo.subscriptions:,} subscriptions, in one process; CPU time, compiling aside:{_bars(rows)}"
    )


def _document(demo: Demo) -> str:
    """A document, and who got which part of it."""
    if demo.shown is None:
        return ""
    name, document, parts = demo.shown
    rows = "".join(
        f"<tr><td class=n>{number}<td>{html.escape(id)}<td><code>{html.escape(expression)}</code>"
        f"<td><code>{html.escape(_cut(node.fragment or ''))}</code>"
        for number, (id, expression, node) in enumerate(parts, 1)
    )
    return (
        f"<h2>One document, and who got which part of it</h2><p>{html.escape(name)}, {len(document):,} bytes:"
        f"<pre>{_marked(document, [node for _, _, node in parts])}</pre>"
        f"<div class=wide><table><tr><th class=n><th>subscriber<th>asked for<th>got{rows}</table></div>"
    )


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def _marked(document: bytes, nodes: Sequence[Node]) -> str:
    """A document with the parts marked by their numbers; one that begins inside of another is not marked again."""
    numbers: dict[tuple[int, int], list[int]] = {}
    for number, node in enumerate(nodes, 1):
        numbers.setdefault((node.start, node.end), []).append(number)
    text, at = "", 0
    for (start, end), here in sorted(numbers.items()):
        if start < at:
            continue
        told = ",".join(map(str, here))
        text += f"{_plain(document[at:start])}<mark><sup>{told}</sup>{_plain(document[start:end])}</mark>"
        at = end
    return text + _plain(document[at:])


def _plain(part: bytes) -> str:
    return html.escape(part.decode("utf-8", "replace"))


def _times(demo: Demo) -> str:
    """Where the time went; what waits for processes to start is told, and is no bar."""
    bars = _bars([(seconds, text.rstrip(":"), "") for seconds, text in demo.steps])
    starts = "; ".join(f"{text}: {_seconds(seconds)}" for seconds, text in demo.starts)
    besides = f"<p class=quiet>Besides, once: {html.escape(starts)}." if starts else ""
    return f"<h2>Where the time went</h2>{bars}{besides}"


def _popular(demo: Demo) -> str:
    rows = "".join(
        f"<tr><td class=n>{count:,}<td>{html.escape(id)}<td><code>{html.escape(expression)}</code>"
        for id, count, expression in demo.popular
    )
    return (
        "<h2>Satisfied most often</h2><div class=wide>"
        f"<table><tr><th class=n>documents<th>subscriber<th>expression{rows}</table></div>"
    )


def _stream(demo: Demo) -> str:
    rows = "".join(
        f"<tr><td class=n>{number}<td class=n>{version}<td class=n>{documents:,}<td class=n>{matches:,}"
        f"<td class=n>{seconds:.2f} s"
        for number, (version, documents, matches, seconds) in enumerate(demo.batches)
    )
    return (
        "<h2>The stream</h2><p>Half of the subscriptions are there from the beginning (version 1); "
        "the others are added while it runs (version 2).<div class=wide>"
        "<table><tr><th class=n>micro-batch<th class=n>version<th class=n>documents<th class=n>matches"
        f"<th class=n>time{rows}</table></div>"
    )
