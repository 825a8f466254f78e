"""`python -m tools.docs.structures`: draws the data structure of each engine, docs/pictures/structure-NAME.svg.

All of them hold the same four subscriptions. What is drawn is what the engines say of themselves. Two have no view of
their own: of `yfilter` the automaton is drawn that its paths make, of `sift` the deterministic states that the
example's document asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tools.docs.drawing import Node, Picture
from xsift.document.events import RecordedEvents
from xsift.engines import create
from xsift.xpath import Symbols, patterns

FOLDER = Path(__file__).parent.parent.parent / "docs" / "pictures"
SUBSCRIPTIONS = {
    "alice": "/news/body/p",
    "bob": "/news//a",
    "carol": "//body/p/a",
    "dave": "/news[head]/body/p",
}
NAMES = ("news", "head", "body", "p", "a")
DOCUMENT = ("<news>", "<head>", "</head>", "<body>", "<p>", "<a>", "</a>", "</p>", "</body>", "</news>")
PATHS = ("/news/body/p", "/news//a", "//body/p/a", "/news/head")
DAVES = ("/news/body/p", "/news/head")  # the paths of his twig
WHO = tuple(SUBSCRIPTIONS)
TOP, LEFT, GAP = 8, 12, 28


def filled(name: str) -> tuple[Any, Symbols]:
    """An engine with the four subscriptions, which have the keys 0 to 3."""
    engine, symbols = create(name), Symbols()
    for element in NAMES:
        symbols.element(element)
    for text in SUBSCRIPTIONS.values():
        [pattern] = patterns(text, symbols)
        engine.add(pattern)
    return engine, symbols


def steps(path: str) -> Iterator[tuple[str, str]]:
    """The steps of a path: the axis, `/` or `//`, and the name."""
    for step in path.replace("//", "/ ").split("/")[1:]:
        yield ("//", step[1:]) if step.startswith(" ") else ("/", step)


def owners(path: str) -> str:
    """Whose a path is."""
    whole = [who for who, text in SUBSCRIPTIONS.items() if path == text]
    return ", ".join([*whole, "dave's branch"] if path in DAVES else whole)


def reference() -> Picture:
    picture = Picture()
    y = float(TOP)
    for who, text in SUBSCRIPTIONS.items():
        pattern = patterns(text, Symbols())[0]
        nodes = [Node(pattern.symbols.text(symbol)) for _, _, symbol, _ in pattern.steps]
        for (parent, axis, _, _), node in zip(pattern.steps[1:], nodes[1:], strict=True):
            nodes[parent].children.append(("//" if axis else "/", node))
        document = Node("⌂", children=[("//" if pattern.steps[0][1] else "/", nodes[0])])
        _, y = picture.tree(LEFT, y, f"{who}: {text}", [document])
        y += 4
    return picture


def xfilter() -> Picture:
    engine, symbols = filled("xfilter")
    listed = {symbols.text(symbol): lists for symbol, lists in engine.query_index().items()}

    def states(entries: list[tuple[int, int]]) -> str:
        return " · ".join(f"{PATHS[path]} step {step + 1}" for path, step in entries)

    rows = [(name, states(listed[name][0]), states(listed[name][1])) for name in NAMES]
    picture = Picture()
    picture.table(LEFT, TOP, "Query index", ("name", "candidate list: awaited now", "wait list: later"), rows)
    return picture


def yfilter() -> Picture:
    root = Node("0")
    numbers = iter(range(1, 100))
    for path in PATHS:
        state = root
        for axis, name in steps(path):
            if axis == "//":
                state = _child(state, "ε", numbers, loops=True)
            state = _child(state, name, numbers)
        state.accent, state.note = True, owners(path)
    picture = Picture()
    picture.tree(LEFT, TOP, "One automaton for all paths: equal beginnings are one", [root])
    return picture


def _child(state: Node, edge: str, numbers: Iterator[int], *, loops: bool = False) -> Node:
    """The state that an edge leads to, made if it is not there."""
    for there, child in state.children:
        if there == edge:
            return child
    child = Node(str(next(numbers)), loops=loops)
    state.children.append((edge, child))
    return child


def indexfilter() -> Picture:
    engine, symbols = filled("indexfilter")
    nodes = {"": Node("⌂")}
    tree = engine.prefix_tree(symbols)
    for text in sorted(tree, key=lambda text: (text.count("/"), text)):
        parent = max((above for above in nodes if text.startswith(above) and above != text), key=len)
        edge = text[len(parent) :]
        node = Node(
            edge.lstrip("/"), accent=tree[text] >= 0, note=owners(PATHS[tree[text]]) if tree[text] >= 0 else ""
        )
        nodes[parent].children.append((edge[: len(edge) - len(node.text)], node))
        nodes[text] = node
    picture = Picture()
    right, _ = picture.tree(LEFT, TOP, "Prefix tree of the paths", [nodes[""]])
    streams = engine.index_streams(events(symbols), symbols)
    rows = [(name, " ".join(f"({start},{end},{level})" for start, end, level in streams[name])) for name in NAMES]
    picture.table(right + GAP, TOP, "Index of the document", ("name", "(start, end, level)"), rows)
    return picture


def events(symbols: Symbols) -> RecordedEvents:
    return RecordedEvents([-1 if tag[1] == "/" else symbols.element(tag[1:-1]) for tag in DOCUMENT])


def xtrie() -> Picture:
    engine, _ = filled("xtrie")
    nodes: dict[tuple[str, ...], Node] = {}
    for row in sorted(engine.trie_nodes(), key=lambda row: (len(row.label), row.label)):
        beta = f" β {''.join('/' + name for name in row.beta)}" if row.beta else ""
        node = Node(row.label[-1] if row.label else "⌂", f"α {row.alpha}{beta}" if row.label else "", row.alpha > 0)
        nodes[row.label] = node
        if row.label:
            nodes[row.label[:-1]].children.append(("", node))
    picture = Picture()
    _, below = picture.tree(
        LEFT, TOP, "Trie of the substrings; α: its first row, β: the longest suffix in the trie", [nodes[()]]
    )
    rows = [
        (
            *(str(row.row), "/".join(row.substring), WHO[row.pattern], str(row.parent_row or "–")),
            f"[{row.rel_level[0]}, {'∞' if row.rel_level[1] is None else row.rel_level[1]}]",
            *(str(row.rank), str(row.num_child), str(row.next or "–")),
        )
        for row in engine.substring_table()
    ]
    head = ("row", "substring", "of", "parent", "levels", "rank", "children", "next")
    picture.table(LEFT, below + 8, "Substring table", head, rows)
    return picture


def predicate() -> Picture:
    engine, symbols = filled("predicate")
    index = engine.xpe_index(symbols)
    ends = {("p_news", "d(p_news, p_body)", "d(p_body, p_p)"): PATHS[0], ("p_news", "d(p_news, p_a)"): PATHS[1]}
    ends |= {("d(p_body, p_p)", "d(p_p, p_a)"): PATHS[2], ("p_news", "d(p_news, p_head)"): PATHS[3]}
    nodes: dict[tuple[Any, ...], Node] = {}
    roots = []
    for sequence in sorted(index, key=lambda sequence: (len(sequence), list(map(str, sequence)))):
        last = sequence[-1]
        path = ends.get(tuple(one.attribute for one in sequence), "") if index[sequence] else ""
        node = Node(f"{last.attribute} {last.operator.replace('>=', '≥')} {last.value}", owners(path), bool(path))
        nodes[sequence] = node
        if len(sequence) == 1:
            roots.append(node)
        else:
            nodes[sequence[:-1]].children.append(("", node))
    picture = Picture()
    title = "Predicates over the positions p of names, d: the distance of two; one that stands twice is decided once"
    picture.tree(LEFT, TOP, title, roots)
    return picture


def afilter() -> Picture:
    engine, symbols = filled("afilter")
    places = {"⌂": (0.0, 60.0), "news": (120.0, 60.0), "head": (240.0, 10.0), "body": (240.0, 60.0)}
    places |= {"p": (360.0, 60.0), "a": (480.0, 60.0)}
    bends = {("body", "⌂"): 90.0, ("a", "news"): -140.0}
    edges, rows = [], []
    for number, ((label, before), assertions) in enumerate(sorted(engine.axis_view().items()), 1):
        ends = (symbols.text(label), "⌂" if before < 0 else symbols.text(before))
        edges.append((*ends, bends.get(ends, 0.0), f"e{number}"))
        texts = [f"{axis}{ends[0]} of {PATHS[path]}{' ⚑' if last else ''}" for path, _, axis, last in assertions]
        rows.append((f"e{number}", " · ".join(texts)))
    picture = Picture()
    picture.text(LEFT, TOP + 12, "AxisView: an edge from each name to the one before it", "title")
    picture.graph(LEFT + 30, TOP + 60, places, edges)
    title = "The steps on each edge; ⚑ a last step, where work begins"
    picture.table(LEFT, TOP + 190, title, ("edge", "steps"), rows)
    return picture


def ifist() -> Picture:
    engine, _ = filled("ifist")
    picture = Picture()
    index = [(label, " · ".join(map(str, pointers))) for label, pointers in engine.sequence_index().items()]
    right, _ = picture.table(LEFT, TOP, "Sequence index", ("first", "segments"), index)
    waiting: dict[int, str] = {}
    for key, who in enumerate(WHO):
        terse = engine.terse_sequence(key)
        for place, pointer in enumerate(terse):
            text = who if len(terse) == 1 else f"{who}, {place + 1} of {len(terse)}"
            text += f" (after {terse[place - 1]})" if place else ""
            waiting[pointer] = f"{waiting[pointer]}; {text}" if pointer in waiting else text
    rows = [(str(row.pointer), row.labels, waiting[row.pointer]) for row in engine.segment_table()]
    picture.table(right + GAP, TOP, "Segment table: from a leaf up", ("segment", "labels", "of"), rows)
    return picture


def bfilter() -> Picture:
    engine, _ = filled("bfilter")
    roots = []
    for key, who in enumerate(WHO):
        for sub_query in engine.sub_queries(key):
            branches = [
                (branch.path.removeprefix(sub_query.root), Node(f"{who} {branch.name}"))
                for branch in sub_query.branches
            ]
            roots.append(Node(sub_query.root, sub_query.name, len(branches) > 1, children=branches))
    picture = Picture()
    picture.tree(LEFT, TOP, "Sub-queries: a branch point, and the branches that hang on it", roots)
    return picture


def sift() -> Picture:
    """The subset construction, for the names in the order of the document."""
    picture = Picture()
    top = Node(_active({(path, 0) for path in PATHS}))
    stack = [(top, frozenset((path, 0) for path in PATHS))]
    for tag in DOCUMENT:
        if tag[1] == "/":
            stack.pop()
            continue
        node, active = stack[-1]
        following = frozenset(_moved(active, tag[1:-1]))
        ended = sorted({who for path, step in following if step == _length(path) for who in owners(path).split(", ")})
        child = Node(_active(following), f"reports: {', '.join(ended)}" if ended else "", bool(ended))
        node.children.append((tag[1:-1], child))
        stack.append((child, following))
    title = "Deterministic states, made as the document asks for them: what is awaited next"
    picture.tree(LEFT, TOP, title, [top])
    return picture


def _length(path: str) -> int:
    return len(list(steps(path)))


def _moved(active: frozenset[tuple[str, int]], name: str) -> Iterator[tuple[str, int]]:
    for path, step in active:
        if step < _length(path):
            axis, wanted = list(steps(path))[step]
            if wanted == name:
                yield path, step + 1
            if axis == "//":
                yield path, step


def _active(active: set[tuple[str, int]] | frozenset[tuple[str, int]]) -> str:
    awaited = {"".join(list(steps(path))[step]) for path, step in active if step < _length(path)}
    return "{" + " ".join(sorted(awaited)) + "}"


PICTURES: dict[str, Callable[[], Picture]] = {
    "reference": reference,
    "xfilter": xfilter,
    "yfilter": yfilter,
    "indexfilter": indexfilter,
    "xtrie": xtrie,
    "predicate": predicate,
    "afilter": afilter,
    "ifist": ifist,
    "bfilter": bfilter,
    "sift": sift,
}


def draw(name: str) -> str:
    """The picture of an engine's structure, as SVG."""
    return PICTURES[name]().svg(f"The data structure of the engine {name}, with four subscriptions")


def main() -> None:
    """Writes all pictures."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in PICTURES:
        (FOLDER / f"structure-{name}.svg").write_text(draw(name), encoding="utf-8")


if __name__ == "__main__":
    main()
