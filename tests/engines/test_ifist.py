"""iFiST and FiST: the paper's examples and figures, what the printed algorithm gets wrong, and random twigs."""

from __future__ import annotations

import random

import pytest

from tests.engines.recursive import recursive_differences
from tests.support import Element, Twig, differences, random_element, random_twig
from xsift.document import DocumentIndex, Reader
from xsift.document.events import RecordedEvents
from xsift.engines.ifist.engine import FiST, IFiST
from xsift.engines.ifist.sequences import profile_sequence
from xsift.engines.ifist.view import Moment, SequenceNode
from xsift.engines.reference import Evaluation, Tree
from xsift.errors import EngineError
from xsift.xpath import Pattern, Symbols, patterns

BOTH = pytest.mark.parametrize("kind", [IFiST, FiST])


class Filter:
    """An engine with profiles Q1, Q2, … as the paper numbers them."""

    def __init__(self, *texts: str, kind: type = IFiST, ordered: bool = True) -> None:
        self.symbols = Symbols()
        self.engine = kind()
        self.keys = [self.engine.add(self.pattern(text, ordered)) for text in texts]

    def pattern(self, text: str, ordered: bool = True) -> Pattern:
        (pattern,) = patterns(text, self.symbols, ordered=ordered)
        return pattern

    def document(self, text: str) -> RecordedEvents:
        return tree(text).document(self.symbols)

    def matched(self, text: str) -> list[int]:
        """The numbers of the profiles that match."""
        return [key + 1 for key in self.engine.match(self.document(text)).tolist()]

    def moments(self, text: str) -> list[Moment]:
        return list(self.engine.moments(self.document(text)))


def tree(text: str) -> Element:
    """A document written as A(B(D E) C)."""
    root = Element("")
    open_elements = [root]
    for token in text.replace("(", " ( ").replace(")", " ) ").split():
        if token == "(":
            open_elements.append(open_elements[-1].children[-1])
        elif token == ")":
            open_elements.pop()
        else:
            open_elements[-1].children.append(Element(token))
    return root.children[0]


def labels(nodes: list[SequenceNode]) -> str:
    return " ".join(node.label for node in nodes)


def symbols_of(nodes: list[SequenceNode]) -> list[str]:
    return ["".join(sorted(node.sym, key=["$", "/", "//", "#"].index)) for node in nodes]


def candidates(moment: Moment) -> dict[int, list[tuple[int, int]]]:
    """Pointer -> candidate list, with profiles numbered from 1; empty lists left out."""
    return {
        row.pointer: [(key + 1, position) for key, position in row.candidates]
        for row in moment.segment_table
        if row.candidates
    }


# T of Figures 8, 10, 11 and 15; Figure 4's document is the same without the second B.
T = "A(B(D E) B(C) E(G F F))"
Q1 = "/A[B//D]//E[G]/F"


# Sequences.


def test_example_1_sequence_of_a_document() -> None:
    moments = Filter(Q1).moments("A(B(D E) E(G F F))")
    assert " ".join(label for moment in moments for label in moment.labels) == "D B E B A G E F E F E A"


def test_example_2_profile_sequences() -> None:
    filter = Filter(Q1, "//B[E]/C")
    sequence = filter.engine.profile_sequence(0)
    assert labels(sequence) == "D B A G E F E A"
    assert [node.pos for node in sequence] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert symbols_of(sequence) == ["//", "/", "$", "/", "$", "/", "$//", "$/#"]
    second = filter.engine.profile_sequence(1)
    assert labels(second) == "E B C B"
    assert symbols_of(second) == ["/", "$", "/", "$//#"]


def test_example_3_sequence_index_holds_the_first_nodes() -> None:
    filter = Filter(Q1, "//B[E]/C", kind=FiST)
    assert first_nodes(filter, filter.engine.sequence_index()) == {"D": [(1, 1)], "E": [(2, 1)]}


def first_nodes(filter: Filter, index: dict[str, list[int]]) -> dict[str, list[tuple[int, int]]]:
    """FiST's sequence index as the paper writes it: the sequence node Qid,Pos with which a segment begins."""
    nodes = {}
    for key in filter.keys:
        for pointer, segment in zip(filter.engine.terse_sequence(key), filter.engine.segments(key), strict=True):
            nodes[pointer] = (key + 1, segment[0].pos)
    return {label: [nodes[pointer] for pointer in pointers] for label, pointers in index.items()}


def test_example_4_sequence_of_a_document_grows_with_each_end_tag() -> None:
    moments = Filter(Q1).moments(T)
    assert "".join(label for moment in moments for label in moment.labels) == "DBEBACBAGEFEFEA"
    assert moments[0].stack == ["A", "B", "D"]
    assert moments[0].labels == ["D", "B"]
    assert moments[1].stack == ["A", "B", "E"]
    assert moments[1].labels == ["E", "B"]
    assert moments[2].stack == ["A", "B"]
    assert moments[2].labels == ["A"]


def test_profile_sequence_comes_back_from_the_terse_sequence() -> None:
    rng = random.Random(7)
    symbols = Symbols()
    for number in range(300):
        pattern = random_twig(rng, depth=5).pattern(symbols, ordered=number % 2 == 0)
        for engine in (IFiST(), FiST()):
            key = engine.add(pattern)
            assert engine.profile_sequence(key) == profile_sequence(pattern)


# Stack tests and branch nodes.


@BOTH
def test_figure_9_parent_child_and_ancestor_descendant(kind: type) -> None:
    filter = Filter("//B/C//E", "//B//C/E", "//C/B//E", "/A/B/C/D/E", "/B//E", kind=kind)
    assert filter.matched("A(B(C(D(E))) C(B))") == [1, 4]


def test_example_5_branch_ids() -> None:
    filter = Filter(Q1, "//B[E]/C")
    moments = filter.moments(T)
    first_f = next(moment for moment in moments if moment.element == "F")
    assert first_f.branch_ids == {(0, 1): [1], (0, 2): [7], (0, 3): [7]}
    # All of E is there. It counts when it ends: only then is it known to come after B in post-order.
    assert first_f.matched == []
    assert moments[-2].element == "E"
    assert moments[-2].matched == [0]
    # The second profile's E is a child of element 2, its C of element 5.
    first_e = moments[1]
    c = next(moment for moment in moments if moment.element == "C")
    assert first_e.branch_ids[1, 1] == [2]
    assert c.branch_ids[1, 2] == [5]
    assert (1, 1) not in c.branch_ids
    assert moments[-1].matched == [0]


@BOTH
def test_example_6_only_branch_nodes_reach_the_sequence_index(kind: type) -> None:
    filter = Filter(Q1, "//C[B//D]/E", "//B[E]/C", kind=kind)
    moments = filter.moments(T)
    if kind is FiST:
        shown = [first_nodes(filter, moment.sequence_index) for moment in moments]
        assert first_nodes(filter, filter.engine.sequence_index()) == {"D": [(1, 1), (2, 1)], "E": [(3, 1)]}
        assert shown[0] == {"D": [(1, 1), (2, 1)], "E": [(3, 1)], "G": [(1, 4)]}
        assert shown[1] == {"C": [(3, 3)], "D": [(1, 1), (2, 1)], "E": [(3, 1)], "G": [(1, 4)]}
    assert [key + 1 for key in moments[-1].matched] == [1]


# Sharing.

# Figure 13 is lost but for what the text says of it; these six fit all of that.
SIX = [Q1, "//C[B//D]/E", "//B[E]/C", "/A[B//D]//E[F]/G", "/A[B/E]/B/D", "//E[F]/G"]


def test_example_7_shareable_segments() -> None:
    filter = Filter(Q1)
    assert [labels(segment) for segment in filter.engine.segments(0)] == ["D B A", "G E", "F E A"]


def test_example_8_segment_table_and_terse_sequences() -> None:
    engine = Filter(*SIX).engine
    terse = [engine.terse_sequence(key) for key in range(6)]
    assert terse == [[1, 2, 3], [4, 5], [6, 7], [1, 8, 9], [10, 11], [8, 12]]
    assert [(row.pointer, row.labels) for row in engine.segment_table()] == [
        (1, "D B A"), (2, "G E"), (3, "F E A"), (4, "D B C"), (5, "E C"), (6, "E B"), (7, "C B"), (8, "F E"),
        (9, "G E A"), (10, "E B A"), (11, "D B A"), (12, "G E"),
    ]  # fmt: skip
    lists = {row.pointer: row.candidates for row in engine.segment_table() if row.candidates}
    assert lists == {1: [(0, 1), (3, 1)], 4: [(1, 1)], 6: [(2, 1)], 8: [(5, 1)], 10: [(4, 1)]}


def test_example_9_sequence_index() -> None:
    assert Filter(*SIX).engine.sequence_index() == {"D": [1, 4], "E": [6, 10], "F": [8]}


def test_example_10_segment_table_and_sequence_index_after_each_end_tag() -> None:
    first = {1: [(1, 1), (4, 1)], 4: [(2, 1)], 6: [(3, 1)], 8: [(6, 1)], 10: [(5, 1)]}
    after_d = {**first, 2: [(1, 2)], 8: [(4, 2), (6, 1)]}
    after_e = {**after_d, 7: [(3, 2)], 11: [(5, 2)]}
    moments = Filter(*SIX).moments(T)
    assert moments[0].element == "D"
    assert moments[0].sequence_index == {"D": [1, 4], "E": [6, 10], "F": [8], "G": [2]}
    assert candidates(moments[0]) == after_d
    assert moments[1].element == "E"
    assert moments[1].sequence_index == {"C": [7], "D": [1, 4, 11], "E": [6, 10], "F": [8], "G": [2]}
    assert candidates(moments[1]) == after_e
    assert candidates(moments[4]) == candidates(moments[1])  # B, C, B: nothing new becomes active
    assert moments[5].element == "G"
    assert candidates(moments[5])[3] == [(1, 3)]
    assert moments[5].sequence_index["F"] == [3, 8]
    assert moments[-1].matched == [0]


def table_iv(engine: IFiST) -> tuple[int, int, int]:
    return engine.sequence_node_count, engine.segment_count, engine.segment_table_count


def test_sharing_is_what_table_iv_counts() -> None:
    symbols = Symbols()
    ifist, fist = IFiST(), FiST()
    for text in SIX * 5:
        (pattern,) = patterns(text, symbols, ordered=True)
        ifist.add(pattern)
        fist.add(pattern)
    assert table_iv(ifist) == (5 * 35, 5 * 14, 12)
    assert table_iv(fist) == (5 * 35, 5 * 14, 5 * 14)
    document = tree(T).document(symbols)
    assert ifist.match(document).tolist() == fist.match(document).tolist() == [0, 6, 12, 18, 24]
    assert ifist.counters()["stack tests"] < fist.counters()["stack tests"] / 4
    assert ifist.memory()["segment table"] < fist.memory()["segment table"]


# Wildcards.


def test_figure_17_wildcard_information() -> None:
    filter = Filter("/A/*/B//*/*/C/*", ordered=False)
    pattern = filter.pattern("/A/*/B//*/*/C/*", ordered=False)
    assert labels(profile_sequence(pattern, wildcards=True)) == "* C * * B * A"
    assert symbols_of(profile_sequence(pattern, wildcards=True)) == ["/", "/", "/", "//", "/", "/", "/#"]
    assert [(node.label, node.delta) for node in filter.engine.profile_sequence(0)] == [
        ("C", ("=", 1)), ("B", ("≥", 3)), ("A", ("=", 2)),
    ]  # fmt: skip


QI = "/A[*//D]//E/*"


def test_example_11_leaf_and_regular_wildcards() -> None:
    filter = Filter(QI)
    assert labels(profile_sequence(filter.pattern(QI), wildcards=True)) == "D * A * E A"
    sequence = filter.engine.profile_sequence(0)
    assert labels(sequence) == "D A E A"
    assert [node.delta for node in sequence] == [None, ("≥", 2), ("=", 1), None]
    assert [labels(segment) for segment in filter.engine.segments(0)] == ["D A", "E A"]


@BOTH
def test_example_12_the_path_stack(kind: type) -> None:
    filter = Filter(QI, kind=kind)
    moments = filter.moments("A(B(C(D)) E(G))")
    assert moments[0].stack == ["A", "B", "C", "D"]
    assert moments[0].path_stack == [3, 2, 1, 0]
    e = moments[-2]
    assert e.stack == ["A", "E"]
    assert e.path_stack == [3, 1]  # one level, G, above E
    assert e.matched == [0]
    assert filter.matched("A(B(C(D)) E)") == []
    assert filter.matched("A(D E(G))") == []


@BOTH
def test_example_13_branch_wildcards(kind: type) -> None:
    filter = Filter("/A//*[.//C]/D", kind=kind)
    assert labels(filter.engine.profile_sequence(0)) == "C * D * A"
    moments = filter.moments("A(p(q(r(s(C)) D)))")
    c = moments[0]
    assert c.stack == ["A", "p", "q", "r", "s", "C"]
    assert c.branch_ids == {(0, 1): [2, 3, 4, 5]}
    d = next(moment for moment in moments if moment.element == "D")
    assert d.branch_ids == {(0, 1): [2, 3], (0, 2): [3]}
    assert d.matched == [0]


@BOTH
@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize(
    ("profile", "matching", "others"),
    [
        ("/*", ["a", "a(b)"], []),
        ("/*/*/*", ["a(b(c))", "a(d b(c))"], ["a(b c)", "a"]),
        ("//*/*", ["a(b)"], ["a"]),
        ("//*/b", ["a(b)", "a(c(b))"], ["b", "b(a)"]),
        ("/a/*/c", ["a(b(c))", "a(d b(e c))"], ["a(c)", "a(b(d(c)))"]),
        ("/a//*/c", ["a(b(c))", "a(b(d(c)))"], ["a(c)"]),
        ("/a/*//c", ["a(b(c))", "a(b(d(c)))"], ["a(c)"]),
        ("//a//*", ["a(b)", "b(a(a))"], ["a", "b(a)"]),
        ("/*[b]/c", ["a(b c)", "z(b c)"], ["a(b(c))", "a(c)"]),
        ("/a/*[b]/c", ["a(d(b c))", "a(d(b) e(b c))"], ["a(d(b) e(c))"]),
        ("//*[*]/c", ["a(b c)", "a(b(d c))"], ["a(b)"]),
        ("/a[*/*]/c", ["a(b(d) c)"], ["a(b c)", "a(b c d)"]),
    ],
)
def test_wildcards(kind: type, ordered: bool, profile: str, matching: list[str], others: list[str]) -> None:
    filter = Filter(profile, kind=kind, ordered=ordered)
    assert [text for text in [*matching, *others] if filter.matched(text)] == matching


# What the printed algorithm gets wrong, or means differently. engine.pyx explains each.


@BOTH
@pytest.mark.parametrize("ordered", [True, False])
def test_nested_branch_nodes_are_verified_together(kind: type, ordered: bool) -> None:
    filter = Filter("//a[b[c]/d]/e", kind=kind, ordered=ordered)
    assert filter.matched("r(a(b(c d)) a(b(d) e))") == []
    assert filter.matched("r(a(b(c d)) a(b(d) b(c) e))") == []
    assert filter.matched("r(a(b(d) b(c d) e))") == [1]


@BOTH
def test_one_element_is_not_two_children(kind: type) -> None:
    filter = Filter("/a[b]/b", "/a[b][b]/b", kind=kind)
    assert filter.matched("a(b(c c))") == []
    assert filter.matched("a(b(c c) b)") == [1]
    assert filter.matched("a(b b(c) b)") == [1, 2]


@BOTH
def test_a_branch_counts_from_its_own_end_tag(kind: type) -> None:
    filter = Filter("/r[.//a/x]//b", kind=kind)
    assert filter.matched("r(a(x b))") == []
    assert filter.matched("r(a(x) b)") == [1]
    assert filter.matched("r(b(a(x)))") == [1]


@BOTH
def test_an_element_counts_at_its_last_occurrence(kind: type) -> None:
    filter = Filter("/a[b]//c", kind=kind)
    assert filter.matched("a(b(x c))") == []
    assert filter.matched("a(b(x) d(c))") == [1]


@BOTH
def test_progress_dismisses_no_match_inside_a_later_sibling(kind: type) -> None:
    filter = Filter("/r[.//a/y]//c/x", "/r[.//a/y]/c[x][z]/w", kind=kind)
    assert filter.matched("r(c(x a(y)))") == [1]
    assert filter.matched("r(c(a(y) x))") == [1]
    assert filter.matched("r(c(x z a(y) w))") == [1, 2]
    assert filter.matched("r(c(x) a(y))") == []


@BOTH
def test_progress_takes_a_later_occurrence(kind: type) -> None:
    filter = Filter("/a[b][c]/d", "//a[b[x][y]][c]/d", kind=kind)
    assert filter.matched("a(c b c d)") == [1]
    assert filter.matched("a(c b d c)") == []
    assert filter.matched("r(a(b(y x) c d) a(b(y x) b(x y) c c d))") == [2]
    assert filter.matched("r(a(b(x y) a(c) d))") == []


@BOTH
@pytest.mark.parametrize("ordered", [True, False])
def test_the_deepest_path_counts_not_the_last(kind: type, ordered: bool) -> None:
    filter = Filter("/a/*/*/*", "/a[*/*/*]/f", kind=kind, ordered=ordered)
    assert filter.matched("a(b(c(d) e))") == [1]
    assert filter.matched("a(b(c(d) e) f)") == [1, 2]


@BOTH
def test_leaf_wildcards_in_order(kind: type) -> None:
    filter = Filter("/a[*]/b", "/a[b]/*", "/a[.//*]/b", "/a[b]//*", "/a[*/*]/b", "/a[*][*]/*", kind=kind)
    assert filter.matched("a(b)") == []
    assert filter.matched("a(c b)") == [1, 3]
    assert filter.matched("a(b c)") == [2, 4]
    assert filter.matched("a(b(c))") == [3]
    assert filter.matched("a(b(c) b c)") == [1, 2, 3, 4, 5, 6]


@BOTH
def test_wildcards_as_ordered_children(kind: type) -> None:
    filter = Filter("/a[*/x]/b", "/a[.//*//x]//b", "/a[b]/*/x", kind=kind)
    assert filter.matched("a(c(x b))") == []
    assert filter.matched("a(c(d(x) b))") == [2]
    assert filter.matched("a(c(x) b)") == [1, 2]
    assert filter.matched("a(b c(x))") == [3]
    assert filter.matched("a(b(x))") == []


# Conditions, mixtures, insertion and deletion.


@BOTH
def test_conditions_take_no_part_in_the_order(kind: type) -> None:
    symbols = Symbols()
    engine = kind()
    texts = ["/a[@x][b]/c", "/a[b[@x]]/c", "/a[b]/c[@x][@y]", "//*[@x]", "/a[@x]", "/a[b][.//*[@y]]/c"]
    for text in texts:
        engine.add(patterns(text, symbols, ordered=True)[0])
    b, c = Element("b", ["x"]), Element("c", ["y", "x"])
    assert engine.match(Element("a", [], [b, c]).document(symbols)).tolist() == [1, 2, 3]
    assert engine.match(Element("a", ["x"], [c, b]).document(symbols)).tolist() == [3, 4]
    codes = Element("a", [], [Element("b"), Element("c")]).codes(symbols)
    late = Element("a", ["x"]).codes(symbols)[1:2]  # as if the condition were on the text: right before the end tag
    assert engine.match(RecordedEvents([*codes[:-1], *late, codes[-1]])).tolist() == [0, 3, 4]


@BOTH
def test_profiles_come_and_go(kind: type) -> None:
    filter = Filter(*SIX, kind=kind)
    empty = kind().memory()
    document = filter.document(T)
    assert filter.engine.match(document).tolist() == [0]
    for key in (1, 3, 0):
        filter.engine.remove(key)
    assert filter.engine.match(document).tolist() == []
    assert len(filter.engine) == 3
    again = filter.engine.add(filter.pattern(Q1))
    assert again in (0, 1, 3)
    assert filter.engine.match(document).tolist() == [again]
    for key in (2, 4, 5, again):
        filter.engine.remove(key)
    assert table_iv(filter.engine) == (0, 0, 0)
    assert filter.engine.sequence_index() == {}
    assert filter.engine.memory()["candidate lists"] == empty["candidate lists"] == 0
    with pytest.raises(EngineError, match="no pattern with key 2"):
        filter.engine.remove(2)


def test_removal_reuses_what_it_frees() -> None:
    rng = random.Random(3)
    symbols = Symbols()
    engine = IFiST()
    sizes = []
    for _ in range(6):
        keys = [engine.add(random_twig(rng, names="abcdefgh", depth=5).pattern(symbols, True)) for _ in range(400)]
        sizes.append(sum(engine.memory().values()))
        for key in keys:
            engine.remove(key)
    assert max(sizes[2:]) < 1.3 * sizes[1]


def test_profiles_must_not_change_within_a_document() -> None:
    filter = Filter(*SIX)
    moments = filter.engine.moments(filter.document(T))
    next(moments)
    filter.engine.add(filter.pattern("//F"))
    with pytest.raises(EngineError, match="in the middle of a document"):
        next(moments)
    assert filter.matched(T) == [1, 7]


def test_a_document_that_broke_off_leaves_nothing_behind() -> None:
    filter = Filter(*SIX)
    whole = filter.document(T)
    filter.engine.match(RecordedEvents(whole.events[:12]))
    assert filter.matched("A(E(F))") == []
    assert filter.matched(T) == [1]


def test_every_kind_of_profile_in_one_engine() -> None:
    symbols = Symbols()
    engine = IFiST()
    texts = ["/a[b]/c", "/a[c]/b", "//c", "//b[@x]", "/*/*"]
    keys = []
    for ordered in (True, False):
        keys += [engine.add(patterns(text, symbols, ordered=ordered)[0]) for text in texts[:2]]
    keys += [engine.add(patterns(text, symbols)[0]) for text in texts[2:]]
    assert engine.match(tree("a(c b)").document(symbols)).tolist() == [keys[1], keys[2], keys[3], keys[4], keys[6]]


# Against the reference.


@BOTH
@pytest.mark.parametrize("ordered", [True, False])
def test_random_twigs(kind: type, ordered: bool) -> None:
    for seed in range(4):
        found = differences(kind(), random.Random(seed), 8, ordered=ordered)
        assert not found, found[:5]


@BOTH
def test_deep_recursive_documents(kind: type) -> None:
    rng = random.Random(11)
    for _ in range(12):
        symbols = Symbols()
        engine = kind()
        added: dict[int, Pattern] = {}
        for _ in range(40):
            twig = random_twig(rng, names="ab", depth=rng.choice([3, 5]), width=rng.choice([2, 3, 4]))
            pattern = twig.pattern(symbols, ordered=rng.random() < 0.7)
            if pattern not in added.values():
                added[engine.add(pattern)] = pattern
        element = random_element(rng, names="ab", size=200, deep=0.97)
        document = shallower(element, 50).document(symbols)
        reference = Tree(document.events)
        expected = [key for key, pattern in added.items() if Evaluation(pattern, reference).matches()]
        assert engine.match(document).tolist() == expected


def shallower(element: Element, depth: int) -> Element:
    if depth == 1:
        return Element(element.name, element.attributes)
    return Element(element.name, element.attributes, [shallower(child, depth - 1) for child in element.children])


def test_very_deep_documents() -> None:
    filter = Filter("//a[.//a]//b", "//a[b]/a", "//*[*]//b", "//a[.//*]/b")
    codes = [filter.symbols.element("a")] * 3000
    b = filter.symbols.element("b")
    deep = [*codes, b, -1, *[-1] * 3000]
    assert filter.engine.match(RecordedEvents(deep)).tolist() == []
    assert filter.engine.match(RecordedEvents([*deep[:-1], b, -1, -1])).tolist() == [0, 2, 3]


# The paper's own two phases, as options.

WAYS = [
    {"stack_test": test, "refinement": phase}
    for test in ("recursive", "simple")
    for phase in ("progressive", "afterwards")
]


@BOTH
@pytest.mark.parametrize("options", WAYS[1:])
@pytest.mark.parametrize("ordered", [True, False])
def test_options_change_no_answer(kind: type, options: dict[str, str], ordered: bool) -> None:
    for seed in range(3):
        found = differences(kind(**options), random.Random(seed), 4, ordered=ordered)
        assert not found, found[:5]
    for seed in range(8):
        found = recursive_differences(kind(**options), random.Random(seed), 2, ordered=ordered)
        assert not found, found[:5]


@pytest.mark.parametrize("options", WAYS)
def test_the_six_profiles_in_every_way(options: dict[str, str]) -> None:
    filter = Filter(*SIX)
    other = Filter()
    other.engine = IFiST(**options)
    other.symbols = filter.symbols
    for text in SIX:
        other.engine.add(filter.pattern(text))
    assert other.matched(T) == filter.matched(T) == [1]


def test_simple_stack_test_copies_one_node_at_a_time() -> None:
    """E D C B of a chain: the recursive test sees the whole of it when E ends, the simple one D, then C, then B."""
    copied = {}
    for test in ("recursive", "simple"):
        engine, symbols = IFiST(stack_test=test), Symbols()
        engine.add(patterns("//B/C/D/E", symbols)[0])
        assert engine.match(tree("A(B(C(D(E))))").document(symbols)).tolist() == [0]
        copied[test] = engine.counters()["nodes copied"]
    assert copied == {"recursive": 0, "simple": 2}


def test_simple_stack_test_copies_for_the_elements_above_only() -> None:
    engine, symbols = IFiST(stack_test="simple"), Symbols()
    engine.add(patterns("//b/c/e", symbols)[0])
    assert engine.match(tree("r(c(e) b(c))").document(symbols)).tolist() == []
    assert engine.match(tree("r(c(e) b(c(e)))").document(symbols)).tolist() == [0]
    engine.add(patterns("//a//a//a//a//b", symbols)[0])
    engine.match(tree("a(" * 60 + "b" + ")" * 60).document(symbols))
    assert engine.counters()["nodes copied"] < 4 * 60 * 60  # once for each element that it may be copied for


def test_refinement_looks_at_profiles_that_were_found_to_their_end() -> None:
    """Example 5: Q3 is a candidate, but its two B are different elements; only the refinement tells."""
    engine, symbols = IFiST(refinement="afterwards"), Symbols()
    for text in (Q1, "//B[E]/C", "//B[X]/C"):
        engine.add(patterns(text, symbols, ordered=True)[0])
    assert engine.match(tree(T).document(symbols)).tolist() == [0]
    counters = engine.counters()
    assert counters["profiles refined"] == 2
    assert counters["verifications"] == counters["branch nodes verified"] == 0


def test_refinement_afterwards_is_exact_for_nested_branch_nodes() -> None:
    engine, symbols = IFiST(refinement="afterwards"), Symbols()
    engine.add(patterns("//a[b[c]/d]/e", symbols, ordered=True)[0])
    assert engine.match(tree("r(a(b(c d)) a(b(d) e))").document(symbols)).tolist() == []
    assert engine.match(tree("r(a(b(d)) a(b(c d) e))").document(symbols)).tolist() == [0]


def test_options_are_checked() -> None:
    with pytest.raises(EngineError, match="stack_test='quick'"):
        IFiST(stack_test="quick")
    with pytest.raises(EngineError, match="refinement='never'"):
        FiST(refinement="never")


# Memory.


class Stream:
    """An XML document of about the given number of bytes, made while it is read."""

    def __init__(self, size: int) -> None:
        rng = random.Random(1)
        parts = [random_element(rng, names="abc", size=30, deep=0.6, conditions="") for _ in range(8)]
        self.piece = Element("item", [], parts).xml().encode() + b"Lorem ipsum dolor sit amet, consectetur. " * 100
        self.left = size // len(self.piece)
        self.pending = b"<doc><d>"
        self.size = 0

    def read(self, size: int = 65536) -> bytes:
        while len(self.pending) < size and self.left >= 0:
            self.pending += self.piece if self.left else b"</d><c/></doc>"
            self.left -= 1
        chunk, self.pending = self.pending[:size], self.pending[size:]
        self.size += len(chunk)
        return chunk


@pytest.mark.parametrize(("kind", "most"), [(IFiST, 101_000_000), (FiST, 11_000_000)])
def test_memory_does_not_depend_on_document_size(kind: type, most: int) -> None:
    symbols = Symbols()
    engine = kind()
    texts = ["//item[a][b]/c/c/z", "/doc[d//a[b]]/c", "//d[item/a][.//b/c]/z", "/doc[.//*/a//b]/c", "//a[*][b]/c"]
    for text in texts:
        for ordered in (True, False):
            engine.add(patterns(text, symbols, ordered=ordered)[0])
    run_time = []
    for size in (1_000_000, most):
        stream = Stream(size)
        reader = Reader(DocumentIndex(symbols))
        reader.open(stream)
        matched = engine.match(reader)
        run_time.append({name: size for name, size in engine.memory().items() if name.startswith("run-time")})
    assert stream.size > 0.99 * most
    assert len(matched) > 2
    assert run_time[0] == run_time[1]


def test_memory_and_counters_are_by_structure() -> None:
    filter = Filter(*SIX)
    filter.matched(T)
    assert set(filter.engine.memory()) == {
        "segment table", "candidate lists", "sequence index", "terse sequences", "BranchID rows", "run-time stack",
        "run-time BranchID sets", "run-time candidate lists", "run-time sequence index",
    }  # fmt: skip
    counters = filter.engine.counters()
    assert counters["segments matched"] <= counters["stack tests"]
    assert counters["branch nodes verified"] <= counters["verifications"]
    assert counters["branch nodes verified"] >= 2  # E of Q1 at its F, and A above it


@BOTH
def test_gaps_are_closed_when_most_profiles_are_gone(kind: type) -> None:
    rng = random.Random(5)
    symbols = Symbols()
    engine = kind()
    added: dict[int, Pattern] = {}
    while len(added) < 1200:
        pattern = random_twig(rng, names="abcdef", depth=5, width=3).pattern(symbols, ordered=rng.random() < 0.5)
        added[engine.add(pattern)] = pattern
    before = engine.memory()["terse sequences"]
    for key in rng.sample(sorted(added), 1000):
        engine.remove(key)
        del added[key]
    assert engine.memory()["terse sequences"] < before / 2
    for _ in range(30):
        document = random_element(rng, names="abcdef", size=80, deep=0.7).document(symbols)
        reference = Tree(document.events)
        expected = [key for key, pattern in sorted(added.items()) if Evaluation(pattern, reference).matches()]
        assert engine.match(document).tolist() == expected
    for key in added:
        engine.remove(key)
    assert engine.segment_table_count == engine.segment_count == engine.sequence_node_count == 0


def test_twigs_by_hand_need_no_text() -> None:
    symbols = Symbols()
    engine = IFiST()
    key = engine.add(Twig("a", 0, [Twig("b"), Twig("c", 1)]).pattern(symbols, ordered=True))
    assert engine.match(tree("a(b d(c))").document(symbols)).tolist() == [key]
