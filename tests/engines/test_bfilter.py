"""BFilter: the paper's worked examples, where its rule and its clean-up go wrong, random patterns and documents."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from lxml import etree

import xsift
from tests.engines.recursive import recursive_differences
from tests.support import Element, differences, random_element, random_twig
from xsift.document.events import RecordedEvents
from xsift.engines.bfilter.engine import BFilter
from xsift.engines.bfilter.trace import StackSnapshot
from xsift.engines.reference import Evaluation, Tree
from xsift.errors import EngineError
from xsift.xpath import patterns
from xsift.xpath.pattern import Pattern
from xsift.xpath.symbols import Symbols


class Bench:
    """An engine, its symbols, and patterns and documents written as text; an attribute is a condition that holds."""

    def __init__(self, *queries: str, **options: str) -> None:
        self.symbols = Symbols()
        self.engine = BFilter(**options)
        self.keys = [self.engine.add(self.pattern(query)) for query in queries]

    def pattern(self, query: str) -> Pattern:
        (pattern,) = patterns(query, self.symbols)
        return pattern

    def document(self, xml: str) -> RecordedEvents:
        def element(node: etree._Element) -> Element:
            return Element(node.tag, list(map(str, node.attrib)), [element(child) for child in node])

        return element(etree.fromstring(xml)).document(self.symbols)

    def match(self, xml: str) -> list[int]:
        matched: list[int] = self.engine.match(self.document(xml)).tolist()
        return matched

    def trace(self, xml: str) -> dict[str, StackSnapshot]:
        """The stacks after each event; a repeated event has its number behind it."""
        found: dict[str, StackSnapshot] = {}
        for snapshot in self.engine.trace(self.document(xml)):
            times = sum(event.split(" ")[0] == snapshot.event for event in found)
            found[f"{snapshot.event} {times + 1}" if times else snapshot.event] = snapshot
        return found

    def sub_queries(self, query: str) -> list[tuple[str, str, int | None, dict[str, int | None]]]:
        """Name, root, parent, and the branches with where they lead."""
        found = self.engine.sub_queries(self.engine.add(self.pattern(query)))
        return [
            (sub.name, sub.root, sub.parent, {branch.path: branch.leads_to for branch in sub.branches})
            for sub in found
        ]


# The paper's terms.


def test_branch_points_and_branches_of_figure_1() -> None:
    first, second, third = Bench().sub_queries("/a[i/j/k/l]/b/c[g/h]/d[e]/f")
    assert first == ("Q{0,0}", "a", None, {"a/b/c": 1, "a/i/j/k/l": None})
    assert second == ("Q{0,1}", "c", 0, {"c/d": 2, "c/g/h": None})
    assert third == ("Q{0,2}", "d", 1, {"d/e": None, "d/f": None})


def test_branch_points_of_the_document_in_figure_4() -> None:
    trace = Bench("/a").trace("<a><b><c><d/></c><e/></b><f><g/></f></a>")
    assert trace["</c>"].document_branches == ["a"]  # the root is one from the start
    assert trace["<e>"].document_branches == ["a", "b"]
    assert trace["</b>"].document_branches == ["a"]
    assert trace["</g>"].document_branches == ["a"]


QUERIES = ["/a/b/e", "/a/b[c]/e", "/a//c[e]/d", "/a/*[b]/c", "/b/f/g"]
# The states of Figure 8, by the paths that lead to them.
STATE = {
    "/a": 2,
    "/a/b": 3,
    "/a/b/c": 4,
    "/a/b/e": 5,
    "/a//": 6,
    "/a//c": 7,
    "/a//c/e": 8,
    "/a//c/d": 9,
    "/a/*": 10,
    "/a/*/b": 11,
    "/a/*/c": 12,
}


def test_queries_of_figure_8() -> None:
    bench = Bench()
    assert [bench.sub_queries(query) for query in QUERIES] == [
        [("Q{0,0}", "a", None, {"a/b/e": None})],
        [("Q{1,0}", "a", None, {"a/b": 1}), ("Q{1,1}", "b", 0, {"b/e": None, "b/c": None})],
        [("Q{2,0}", "a", None, {"a//c": 1}), ("Q{2,1}", "c", 0, {"c/d": None, "c/e": None})],
        [("Q{3,0}", "a", None, {"a/*": 1}), ("Q{3,1}", "*", 0, {"*/c": None, "*/b": None})],
        [("Q{4,0}", "b", None, {"b/f/g": None})],
    ]
    assert bench.engine.index.state_count == 15


def test_stacks_of_figure_9() -> None:
    bench = Bench(*QUERIES)
    trace = bench.trace("<a><b><c><d/></c><e/></b></a>")

    def states(event: str) -> list[set[int]]:
        return [{STATE[path] for path in row} for row in trace[event].runtime_stack]

    assert states("<a>") == [{2}]
    assert states("<b>") == [{2}, {3, 6, 10}]
    assert states("<c>") == [{2}, {3, 6, 10}, {4, 7, 12, 6}]
    assert states("<d>") == [{2}, {3, 6, 10}, {4, 7, 12, 6}, {9, 6}]
    assert states("</d>") == states("<c>")
    assert states("</c>") == states("<b>")
    assert states("<e>") == [{2}, {3, 6, 10}, {5, 6}]
    assert states("</b>") == [{2}]
    assert states("</a>") == []

    at_a = ("a", ["Q{0,0}", "Q{1,0}", "Q{2,0}", "Q{3,0}"])
    at_b = ("b", ["Q{1,1}", "Q{3,1}"])
    at_c = ("c", ["Q{2,1}"])
    assert trace["<a>"].query_branches == [at_a]
    assert trace["<b>"].query_branches == [at_a, at_b]
    assert trace["<c>"].query_branches == trace["<d>"].query_branches == [at_a, at_b, at_c]
    assert trace["</c>"].query_branches == trace["<e>"].query_branches == [at_a, at_b]
    assert trace["</b>"].query_branches == [at_a]
    assert trace["</a>"].query_branches == []

    assert [trace[event].document_branches for event in ("<a>", "<d>", "</c>", "<e>", "</e>", "</b>", "</a>")] == [
        ["a"],
        ["a"],
        ["a"],
        ["a", "b"],
        ["a", "b"],
        ["a"],
        [],
    ]
    assert trace["<d>"].run_time_branch == ["a", "b", "c", "d"]


def test_candidates_of_the_worked_example() -> None:
    bench = Bench(*QUERIES)
    trace = bench.trace("<a><b><c><d/></c><e/></b></a>")
    at_c = [("b", "Q{1,1}", "b/c"), ("b", "Q{3,1}", "*/c")]
    assert trace["<c>"].candidates == at_c
    assert trace["<d>"].candidates == [*at_c, ("c", "Q{2,1}", "c/d")]
    assert trace["</c>"].candidates == at_c  # Q{2,1} is unmatched: c is no branch point of the document
    assert trace["</c>"].matched == []
    assert trace["<e>"].candidates == [at_c[0], ("b", "Q{1,1}", "b/e"), at_c[1]]
    assert trace["<e>"].queries == [0]  # the only path of Q{0,0} is there: decided at once, not at </a>
    assert trace["</b>"].matched == ["Q{1,1}"]  # Q{3,1} has no b
    assert trace["</b>"].candidates == []
    assert trace["</a>"].queries == [0, 1]
    assert bench.match("<a><b><c><d/></c><e/></b></a>") == [0, 1]
    assert bench.engine.counters()["branch points unmatched"] == 1  # c


def test_no_branch_point_in_the_document_as_in_test_case_1() -> None:
    """The query of Figure 10: all its three paths are in the document, but no `w` has both `b` and `c`."""
    bench = Bench("/nitf[@time]/head[@id]/a[c]/b/w[b]/c")
    below = "<b><w><c/></w></b><b><w><b/></w></b><b><w><c/></w></b>"
    assert bench.match(f"<nitf time='1'><head id='9'><a><c/>{below}</a></head></nitf>") == []
    counters = bench.engine.counters()
    assert counters["branch points unmatched"] == 3
    assert counters["sub-queries checked"] == 0  # nothing above was ever looked at ...
    assert counters["sub-queries matched"] == 0
    below = "<b><w><c/><b/></w></b>"
    assert bench.match(f"<nitf time='1'><head id='9'><a><c/>{below}</a></head></nitf>") == [0]
    assert bench.match(f"<nitf time='1'><head><a><c/>{below}</a></head></nitf>") == []
    assert bench.engine.counters()["sub-queries matched"] == 4 + 2  # w and a, then head and nitf for the first only


# Where the paper's rule and clean-up are wrong.

ONE_CHILD = "<r><a><b><c/><d/></b></a></r>"


@pytest.mark.parametrize(
    "query", ["//a[b]/b", "//a[b/c]/b/d", "//a[.//c]/b", "//a[.//c]//d", "//a[*]/b", "//a[*/c]/b/d", "//a[*/c]/*/d"]
)
def test_branch_points_that_need_no_two_children(query: str) -> None:
    assert Bench(query).match(ONE_CHILD) == [0]


@pytest.mark.parametrize(
    ("query", "needs"),
    [
        ("//a[b]/c", True),
        ("//a[b/x]/c//y", True),
        ("//a[b][b/x]/c", True),  # two of three are enough
        ("//a[b][.//c]/d", True),
        ("//a[*][b]/c", True),
        ("//a[@i][b]/c", True),
        ("//a[b/c]/b/d", False),
        ("//a[.//b]/c", False),
        ("//a[.//b]//c", False),
        ("//a[*]/b", False),
        ("//a[*/b]/*/c", False),
        ("//a[@i]/b", False),
        ("//a[@i]/@j", False),
    ],
)
def test_where_the_rule_is_sound(query: str, needs: bool) -> None:
    bench = Bench(query)
    (_, sub_query), *_ = bench.engine.index.nodes(bench.engine.pattern(0))
    assert sub_query is not None
    assert bench.engine.index.needs_document_branch(sub_query) is needs


def test_root_with_one_child_is_a_branch_point() -> None:
    assert Bench("/a[.//c]/b", "/a[b]/c").match("<a><b><c/></b></a>") == [0]


@pytest.mark.parametrize(
    ("query", "xml"),
    [
        ("//a[b]//c", "<a><b/><a><d/></a><c/></a>"),  # the inner a fails, the outer keeps its b
        ("//a[b]/c", "<a><b/><a><b/></a><c/></a>"),
        ("//a[b]/c", "<a><b/><a><c/></a><c/></a>"),
        ("//a[.//b]//c", "<a><b/><a><c/></a></a>"),
        ("//a[b[c]/d]/e", "<a><b><c/></b><b><c/><d/></b><e/></a>"),
        ("//a[b][c//d]//e", "<r><a><c><a><d/></a></c><b/><x><e/></x></a></r>"),
    ],
)
def test_candidates_of_other_open_instances_stay(query: str, xml: str) -> None:
    assert Bench(query).match(xml) == [0]


@pytest.mark.parametrize(
    ("query", "xml"),
    [
        ("//a[b]/c", "<r><a><b/><x/></a><a><c/><x/></a></r>"),  # not in the same place
        ("//a[b[c]/d]/e", "<a><b><c/><x/></b><b><d/><x/></b><e/></a>"),
        ("//a[b]/c", "<a><b/><a><c/></a></a>"),
        ("/a/a[b]/c", "<a><b/><c/></a>"),
    ],
)
def test_candidates_of_other_instances_do_not_mix(query: str, xml: str) -> None:
    assert Bench(query).match(xml) == []


def test_branch_through_new_elements_reaches_outer_instances() -> None:
    """The inner `a` had the candidate already, through `y`; the `x` in its place brings it to the outer `a` too."""
    query = "//a[*/x//t]/b"
    assert Bench(query).match("<a><a><y><x><t/></x></y><x><x><t/></x></x></a><b/></a>") == [0]


def test_long_chains_of_descendants_take_no_exponential_time() -> None:
    bench = Bench("//a//a//a//a//a//a//a[.//a//a//a//a//b]//c", "//a[.//a//a//a//a//a//b]//a//a//a//a//c")
    assert bench.match("<a>" * 120 + "<b/><c/>" * 60 + "</a>" * 120) == [0, 1]


# Conditions.


@pytest.mark.parametrize("conditions", ["lazy", "eager"])
def test_conditions_wait_for_their_branch_point(conditions: str) -> None:
    """Eager ones are candidates when they come, lazy ones when the element ends that they are conditions of."""
    bench = Bench("/a/b[@x]/c", "//b[@x][@y]", "//c[@x]", "//b[@x]/c[@y]", conditions=conditions)
    trace = bench.trace("<a><b x='1'><c/></b></a>")
    assert trace["[@x]"].candidates == (
        [("b", "Q{0,1}", "b/@x"), ("b", "Q{1,0}", "b/@x"), ("b", "Q{3,0}", "b/@x")] if conditions == "eager" else []
    )
    assert trace["</c>"].queries == []
    assert trace["</b>"].queries == [0]
    assert bench.match("<a><b x='1' y='1'><c x='1' y='1'/></b></a>") == [0, 1, 2, 3]
    assert bench.match("<a><b y='1'><c x='1' y='1'/></b></a>") == [2]


def test_conditions_are_looked_at_where_a_branch_point_has_a_candidate() -> None:
    """Of a hundred b with the attribute, one has the c that the query needs beside it."""
    looked_at = {}
    for conditions in ("lazy", "eager"):
        bench = Bench("/a/b[@x]/c", conditions=conditions)
        assert bench.match("<a>" + "<b x='1'><d/></b>" * 99 + "<b x='1'><c/></b></a>") == [0]
        looked_at[conditions] = bench.engine.counters()["conditions looked at"]
    assert looked_at == {"lazy": 1, "eager": 100}


def test_conditions_of_a_branch_point_that_the_rule_rules_out_are_not_looked_at() -> None:
    bench = Bench("/r/a[@x][b]/c")
    assert bench.match("<r>" + "<a x='1'><b/></a>" * 9 + "</r>") == []
    counters = bench.engine.counters()
    assert counters["conditions looked at"] == 0
    assert counters["conditions spared"] == 9


@pytest.mark.parametrize(
    ("query", "xml"),
    [
        ("//a[@x]", "<a x='1'/>"),  # it decides a simple query
        ("//a[@x][@y]", "<a x='1' y='1'/>"),  # a sub-query of nothing but conditions
        ("/r[a/@x]/b", "<r><a x='1'/><b/></r>"),  # it ends a branch of the r above
        ("/r[.//a/@x]//b", "<r><b><a x='1'/></b></r>"),
        ("/r[a[@x][@y]]/b", "<r><a x='1' y='1'/><b/></r>"),
    ],
)
def test_a_condition_alone_is_looked_at(query: str, xml: str) -> None:
    bench = Bench(query)
    assert bench.match(xml) == [0]
    assert bench.match(xml.replace("x='1'", "")) == []


# Against the reference.


@pytest.mark.parametrize("conditions", ["lazy", "eager"])
@pytest.mark.parametrize("linear", [True, False])
def test_random_patterns_and_documents(linear: bool, conditions: str) -> None:
    for seed in range(12):
        found = differences(BFilter(conditions=conditions), random.Random(seed), 8, linear=linear)
        assert not found, found[:5]
    for seed in range(8):
        found = recursive_differences(BFilter(conditions=conditions), random.Random(seed), 3, linear=linear)
        assert not found, found[:5]


def deep_documents(seed: int, engine: BFilter) -> list[tuple[RecordedEvents, dict[int, Evaluation]]]:
    """Adds twigs over two names, and gives documents of up to 200 elements and about 50 levels, evaluated."""
    rng = random.Random(seed)
    symbols = Symbols()
    added: dict[bytes, Pattern] = {}
    for _ in range(50):
        pattern = random_twig(rng, names="ab", depth=rng.choice([3, 5, 7]), width=2).pattern(symbols)
        added[pattern.key] = pattern
    keys = {engine.add(pattern): pattern for pattern in added.values()}
    documents = []
    for _ in range(3):
        element = random_element(rng, names="ab", size=200, deep=rng.choice([0.6, 0.85, 0.95]))
        document = element.document(symbols)
        tree = Tree(document.events)
        documents.append((document, {key: Evaluation(pattern, tree) for key, pattern in keys.items()}))
    return documents


def test_deep_recursive_documents() -> None:
    for seed in range(8):
        engine = BFilter()
        for document, evaluations in deep_documents(seed, engine):
            expected = [key for key, evaluation in evaluations.items() if evaluation.matches()]
            assert engine.match(document).tolist() == sorted(expected)


def test_one_event_at_a_time_is_the_same() -> None:
    engine = BFilter()
    for document, _ in deep_documents(99, engine):
        *_, last = engine.trace(document)
        assert last.queries == engine.match(document).tolist()


# Which part matched.


def test_select_deep_recursive() -> None:
    rng = random.Random(5)
    for seed in range(20, 26):
        engine = BFilter()
        for document, evaluations in deep_documents(seed, engine):
            for key in rng.sample(sorted(evaluations), 12):
                output = rng.randrange(len(engine.pattern(key)))
                assert engine.select(document, key, output) == evaluations[key].select(output)


def test_select_says_which_part_matched() -> None:
    bench = Bench("//a[b]/c")
    document = bench.document("<r><a><b/><c/></a><a><c/></a><a><c/><b/><c/></a></r>")
    names = [bench.symbols.text(symbol) for _, _, symbol, _ in bench.engine.pattern(0).steps]
    assert bench.engine.select(document, 0, names.index("a")) == [2, 7]
    assert bench.engine.select(document, 0, names.index("b")) == [3, 9]
    assert bench.engine.select(document, 0, names.index("c")) == [4, 8, 10]
    assert bench.engine.counters()["states visited"] == 0  # a selection is not counted as matching


def test_select_through_a_matcher() -> None:
    subscriptions = xsift.Subscriptions()
    subscriptions.add("c", "//a[b]/c")
    subscriptions.add("a", "//a[b][c]")
    subscriptions.add("none", "//a[x]/c")
    xml = b"<r><a><b/><c/></a><a><c/></a><a><c/><b/><c>2</c></a></r>"
    selected = subscriptions.matcher(engine="bfilter").select(xml)
    assert {id: [node.number for node in nodes] for id, nodes in selected.items()} == {"c": [4, 8, 10], "a": [2, 7]}
    assert xml[selected["c"][-1].start : selected["c"][-1].end] == b"<c>2</c>"


def test_select_refuses_what_is_not_there() -> None:
    bench = Bench("//a[@x]/c")
    document = bench.document("<a x='1'><c/></a>")
    conditions = [is_condition for _, _, _, is_condition in bench.engine.pattern(0).steps]
    assert bench.engine.select(document, 0, conditions.index(True)) == []  # a condition stands for no element
    with pytest.raises(EngineError, match="unknown-step"):
        bench.engine.select(document, 0, 9)
    with pytest.raises(EngineError, match="unknown-key"):
        bench.engine.select(document, 7, 0)


# The index.


def test_sub_queries_are_shared() -> None:
    bench = Bench("/r/a[b]/c", "/r[x]/a[b]/c", "/r[y]/a[b]/c")
    assert bench.engine.index.sub_query_count == 3  # a[b]/c once, and two of r
    assert bench.match("<r><x/><a><b/><c/></a></r>") == [0, 1]
    bench.engine.remove(0)
    assert bench.match("<r><y/><a><b/><c/></a></r>") == [2]
    bench.engine.remove(1)
    assert bench.engine.index.sub_query_count == 2


def test_removal_leaves_nothing() -> None:
    rng = random.Random(1)
    symbols = Symbols()
    engine = BFilter()
    for _ in range(3):
        added = {pattern.key: pattern for pattern in (random_twig(rng).pattern(symbols) for _ in range(300))}
        keys = [engine.add(pattern) for pattern in added.values()]
        assert len(engine) == len(keys)
        for key in rng.sample(keys, len(keys)):
            engine.remove(key)
        assert len(engine) == 0
        assert engine.index.state_count == 1
        assert engine.index.sub_query_count == 0


def test_equal_patterns_each_have_a_key() -> None:
    bench = Bench("//a/b", "//a[b]/c", "//a/b", "//a[c]/b", "//a/b")
    assert bench.match("<a><b/><c/></a>") == [0, 1, 2, 3, 4]
    for key in (2, 1):
        bench.engine.remove(key)
    assert bench.match("<a><b/><c/></a>") == [0, 3, 4]
    for key in (4, 0, 3):
        bench.engine.remove(key)
    assert bench.match("<a><b/><c/></a>") == []
    assert bench.engine.index.state_count == 1


def test_many_branches_at_one_branch_point() -> None:
    names = [f"n{number}" for number in range(200)]
    bench = Bench(*(f"//a[{one}]/{other}" for one, other in pairwise(names)))
    inside = "".join(f"<{name}/>" for name in names[70:135])
    assert bench.match(f"<r><a>{inside}</a><a><n0/></a></r>") == list(range(70, 134))
    wide = Bench("//a" + "".join(f"[{name}]" for name in names))
    assert wide.match("<a>" + "".join(f"<{name}/>" for name in names) + "</a>") == [0]
    assert wide.match("<a>" + "".join(f"<{name}/>" for name in names[1:]) + "</a>") == []


def test_errors_are_told() -> None:
    bench = Bench("/a[b]/c")
    with pytest.raises(EngineError, match="unknown-key"):
        bench.engine.remove(1)
    (ordered,) = patterns("/a[b]/c", bench.symbols, ordered=True)
    assert "order" in bench.engine.refuses(ordered)
    with pytest.raises(EngineError, match="refused-pattern"):
        bench.engine.add(ordered)
    with pytest.raises(EngineError, match="unknown-option"):
        BFilter(probing="lazy")


def test_the_index_must_not_change_within_a_document() -> None:
    bench = Bench("//a[b]/c")
    steps = bench.engine.watch(bench.document("<a><b/><c/></a>"))
    next(steps)
    bench.engine.add(bench.pattern("//b"))
    with pytest.raises(EngineError, match="index-changed"):
        next(steps)


def test_a_broken_off_document_leaves_nothing_behind() -> None:
    bench = Bench("//a[b]/c", "//a[.//d][b]//c", "//a//b[c]/d")
    whole = bench.document("<a><b><c/></b><a><b/><d/><c/></a></a>").events
    for length in range(len(whole)):
        bench.engine.match(RecordedEvents(whole[:length]))
        if length == 7:
            bench.engine.remove(1)
            bench.engine.add(bench.pattern("//a[c][x]/d"))
        assert bench.match("<a><d/></a>") == []
        assert bench.match("<a><a><c/></a><b/></a>") == []
    assert bench.engine.match(RecordedEvents([*whole, -1, -1, -1])).tolist() == [0]  # more end tags than start tags


def test_what_it_tells_of_itself() -> None:
    bench = Bench("//a[b]/c", "/a//b")
    bench.match("<a><b/><c/></a>")
    memory = bench.engine.memory()
    assert set(memory) == {
        "query index tree states",
        "query index tree transitions",
        "branch points",
        "sub-queries",
        "queries",
        "run-time stack",
        "run-time branch stacks",
        "run-time candidates",
    }
    assert all(size > 0 for size in memory.values())
    counters = bench.engine.counters()
    assert counters["candidates saved"] == 2
    assert counters["sub-queries matched"] == counters["sub-queries checked"] == 1
