"""What `bfilter` does, in the paper's terms: the sub-queries of a query, and the stacks after each tag (Figures 8 and
9).

Plain Python over the numbers that the engine gives out; for tests, for explaining, never on the path of an event.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from xsift.document.events import RecordedEvents
from xsift.xpath.pattern import Pattern
from xsift.xpath.symbols import Symbols

if TYPE_CHECKING:
    from xsift.engines.bfilter.engine import BFilter

END = -1
DESCENDANT = 1


class Branch(NamedTuple):
    """A path from a branch point down to the next (a transit branch) or to a leaf (a tangling branch)."""

    name: str  # p0, p1, …
    path: str  # such as b/c//d
    leads_to: int | None  # the sub-query that a transit branch leads to; None for a tangling branch
    node: int  # the pattern's node that it ends in


class SubQuery(NamedTuple):
    """The paper's Q{m,n}: a branch point of query m and the branches that hang on it."""

    name: str
    root: str
    node: int  # the pattern's node that is the branch point
    parent: int | None  # the sub-query above
    branches: tuple[Branch, ...]


class StackSnapshot(NamedTuple):
    """The stacks after one event, the outermost element first."""

    event: str  # "<a>", "</a>", or a condition that holds
    run_time_branch: list[str]
    runtime_stack: list[set[str]]  # the active states of each open element, as the paths that lead to them
    document_branches: list[str]
    query_branches: list[tuple[str, list[str]]]  # elements that are branch points of queries, and of which
    candidates: list[tuple[str, str, str]]  # (element, sub-query, path) of each match candidate
    matched: list[str]  # the sub-queries that matched at this event
    queries: list[int]  # the keys of the queries that have matched so far


def sub_queries(pattern: Pattern, key: int) -> list[SubQuery]:
    """The sub-queries of a pattern, in the order of their branch points; the first is rooted at the first step."""
    steps = pattern.steps
    children: list[list[int]] = [[] for _ in steps]
    for node, (parent, *_) in enumerate(steps):
        if parent >= 0:
            children[parent].append(node)
    points = [node for node in range(len(steps)) if node == 0 or len(children[node]) > 1]
    number = {node: index for index, node in enumerate(points)}
    found = []
    for node in points:
        branches = []
        for index, child in enumerate(children[node]):
            end = child
            while len(children[end]) == 1:
                end = children[end][0]
            branches.append(Branch(f"p{index}", _path_between(pattern, node, end), number.get(end), end))
        above = steps[node][0]
        while above >= 0 and above not in number:
            above = steps[above][0]
        root = pattern.symbols.text(steps[node][2])
        found.append(SubQuery(f"Q{{{key},{number[node]}}}", root, node, number.get(above), tuple(branches)))
    return found


def trace(engine: BFilter, document: RecordedEvents) -> Iterator[StackSnapshot]:
    """Runs a document through an engine `bfilter`, and yields what its stacks hold after each event."""
    symbols: Symbols | None = None
    rooted: dict[int, list[str]] = {}  # state -> the sub-queries rooted there
    waiting: dict[tuple[int, int, bool], list[tuple[str, str]]] = {}  # (state, end, transit) -> sub-query and path
    named: dict[int, list[str]] = {}  # sub-query number -> names
    for key in engine.held_keys:
        pattern = engine.pattern(key)
        symbols = pattern.symbols
        nodes = engine.index.nodes(pattern)
        for sub_query in sub_queries(pattern, key):
            state, number = nodes[sub_query.node]
            rooted.setdefault(state, []).append(sub_query.name)
            if number is not None:
                named.setdefault(number, []).append(sub_query.name)
            for branch in sub_query.branches:
                end_state, end_number = nodes[branch.node]
                end = (state, end_state, False) if end_number is None else (state, end_number, True)
                waiting.setdefault(end, []).append((sub_query.name, branch.path))
    document_symbols = symbols if symbols is not None else Symbols()
    tags = _tags(document.events, document_symbols)
    names: dict[int, str] = {}
    paths: dict[int, str] = {}
    for event, (elements, states, branches, candidates, matched, queries) in zip(
        tags, engine.watch(document), strict=True
    ):
        if event.startswith("<") and not event.startswith("</"):
            names[elements[-1]] = event[1:-1]
        for state in {state for row in states for state in row}:
            paths.setdefault(state, path_text(engine.index.path(state), document_symbols))
        rows = [
            (names[element], sorted(name for state in row for name in rooted.get(state, [])))
            for element, row in zip(elements, states, strict=True)
        ]
        yield StackSnapshot(
            event,
            [names[element] for element in elements],
            [{paths[state] for state in row} for row in states],
            [names[element] for element in branches],
            [row for row in rows if row[1]],
            sorted(
                (names[element], name, path)
                for element, state, end, transit in candidates
                for name, path in waiting[state, end, transit]
            ),
            sorted(name for number in matched for name in named[number]),
            queries,
        )


def path_text(steps: Sequence[tuple[int, int | None]], symbols: Symbols) -> str:
    """Steps as one writes them: /a//b; the state of a `//` is the path before it and two slashes."""
    slashes = {DESCENDANT: "//"}
    return "".join(
        slashes.get(axis, "/") + ("" if symbol is None else symbols.text(symbol)) for axis, symbol in steps
    )


def _path_between(pattern: Pattern, top: int, end: int) -> str:
    """The path from one node of a pattern to one below it, both included."""
    steps = pattern.steps
    below = []
    while end != top:
        below.append((steps[end][1], steps[end][2]))
        end = steps[end][0]
    return pattern.symbols.text(steps[top][2]) + path_text(below[::-1], pattern.symbols)


def _tags(codes: list[int], symbols: Symbols) -> Iterator[str]:
    open_names: list[str] = []
    for code in codes:
        if code >= 0:
            open_names.append(symbols.text(code))
            yield f"<{open_names[-1]}>"
        elif code == END:
            yield f"</{open_names.pop()}>"
        else:
            yield f"[{symbols.text(-code - 1)}]"
