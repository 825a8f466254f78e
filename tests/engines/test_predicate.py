"""Predicate-based filtering: the paper's encodings, Table 1, Figures 1 to 3, and random recursive documents."""

from __future__ import annotations

import itertools
import random

import pytest

from tests.engines.recursive import recursive_differences
from tests.support import Element, differences, nested
from xsift.engines.predicate.engine import PredicateEngine
from xsift.engines.predicate.expressions import occurrence_determination
from xsift.engines.predicate.view import Predicate
from xsift.errors import EngineError
from xsift.xpath import Symbols, patterns

ORGANISATIONS = ["triggered", "basic", "pc", "pc-ap"]


def index(*expressions: str, organisation: str = "triggered") -> tuple[PredicateEngine, Symbols]:
    engine, symbols = PredicateEngine(organisation=organisation), Symbols()
    for expression in expressions:
        engine.add(patterns(expression, symbols)[0])
    return engine, symbols


@pytest.mark.parametrize(
    ("expression", "encoding"),
    [
        ("/a/b", "(p_a, =, 1) (d(p_a, p_b), =, 1)"),  # s1
        ("a", "(p_a, >=, 1)"),
        ("a/a/b", "(d(p_a, p_a), =, 1) (d(p_a, p_b), =, 1)"),
        ("/a/*/*/b", "(p_a, =, 1) (d(p_a, p_b), =, 3)"),
        ("/*/a/b", "(p_a, =, 2) (d(p_a, p_b), =, 1)"),  # s5
        ("/*/*/*/*", "(length, >=, 4)"),
        ("a/b/*/*", "(d(p_a, p_b), =, 1) (p_b-|, >=, 2)"),
        ("*/*/a/*/b", "(p_a, >=, 3) (d(p_a, p_b), =, 2)"),
        ("*/*/*/*", "(length, >=, 4)"),
        ("/a//b", "(p_a, =, 1) (d(p_a, p_b), >=, 1)"),  # s10
        ("/*/b//c", "(p_b, =, 2) (d(p_b, p_c), >=, 1)"),
        ("a/b//c", "(d(p_a, p_b), =, 1) (d(p_b, p_c), >=, 1)"),
        ("*/a/*/b//c/*/*", "(p_a, >=, 2) (d(p_a, p_b), =, 2) (d(p_b, p_c), >=, 1) (p_c-|, >=, 2)"),  # s13
        # From the text of sections 3.1 and 3.2.
        ("a/*/b//c", "(d(p_a, p_b), =, 2) (d(p_b, p_c), >=, 1)"),
        ("/*/a", "(p_a, =, 2)"),
        ("/*//a", "(p_a, >=, 2)"),
        ("*/*/a", "(p_a, >=, 3)"),
        ("/a/*/*", "(p_a, =, 1) (p_a-|, >=, 2)"),
        ("a/c/*/a//c", "(d(p_a, p_c), =, 1) (d(p_c, p_a), =, 2) (d(p_a, p_c), >=, 1)"),
        ("a/*", "(p_a-|, >=, 1)"),
    ],
)
def test_encodings_of_the_paper(expression: str, encoding: str) -> None:
    engine, symbols = index()
    assert " ".join(map(str, engine.encode(patterns(expression, symbols)[0]))) == encoding


def test_a_condition_is_the_last_tag_of_its_path() -> None:
    engine, symbols = index()
    encoding = engine.encode(patterns("/a//b/*[@x=1]", symbols)[0])
    assert [predicate.kind for predicate in encoding] == ["absolute", "relative", "relative"]
    assert (encoding[-1].operator, encoding[-1].value) == ("=", 2)


def test_encode_refuses_twigs() -> None:
    engine, symbols = index()
    with pytest.raises(ValueError, match="single path"):
        engine.encode(patterns("/a[b]/c", symbols)[0])


def test_publication_of_example_1() -> None:
    engine, symbols = index("a//b/c")
    assert engine.publication("abcabc", symbols) == [
        ("length", 6), ("a", 1, 1), ("b", 1, 2), ("c", 1, 3), ("a", 2, 4), ("b", 2, 5), ("c", 2, 6),
    ]  # fmt: skip


def test_table_1() -> None:
    engine, symbols = index("a//b/c", "c//b//a")
    assert engine.predicate_matches("abcabc", symbols) == {
        Predicate("relative", ("a", "b"), ">=", 1): [(1, 1), (1, 2), (2, 2)],
        Predicate("relative", ("b", "c"), "=", 1): [(1, 1), (2, 2)],
        Predicate("relative", ("c", "b"), ">=", 1): [(1, 2)],
        Predicate("relative", ("b", "a"), ">=", 1): [(1, 2)],
    }
    assert engine.match(nested("abcabc").document(symbols)).tolist() == [0]


def test_each_kind_of_predicate_is_evaluated_by_its_rule() -> None:
    engine, symbols = index("/a/*/*", "//*/*/b", "/*/*/*", "/*/*/*/*/*", "a/*/*/*/*", "/*/b")
    assert {str(predicate): pairs for predicate, pairs in engine.predicate_matches("abab", symbols).items()} == {
        "(p_a, =, 1)": [(1, 1)],
        "(p_a-|, >=, 2)": [(1, 1)],
        "(p_b, >=, 3)": [(2, 2)],
        "(p_b, =, 2)": [(1, 1)],
        "(length, >=, 3)": [(0, 0)],
    }


def test_figure_1_common_parts_are_one_predicate() -> None:
    engine, symbols = index("/a/*/c", "*/a/*/c/*/*/*")
    assert sorted(map(str, engine.predicates(symbols).values())) == [
        "(d(p_a, p_c), =, 2)", "(p_a, =, 1)", "(p_a, >=, 2)", "(p_c-|, >=, 3)",
    ]  # fmt: skip
    engine.remove(0)
    assert sorted(map(str, engine.predicates(symbols).values())) == [
        "(d(p_a, p_c), =, 2)", "(p_a, >=, 2)", "(p_c-|, >=, 3)",
    ]  # fmt: skip
    engine.remove(1)
    assert engine.predicates(symbols) == {}
    assert engine.distinct_predicates == 0


def test_figure_2_on_table_1() -> None:
    assert occurrence_determination([[(1, 1), (1, 2), (2, 2)], [(1, 1), (2, 2)]])
    assert not occurrence_determination([[(1, 2)], [(1, 2)]])
    assert not occurrence_determination([[(1, 1)], []])


def test_figure_2_backtracks_over_several_predicates() -> None:
    assert occurrence_determination([[(1, 1), (1, 2)], [(1, 1), (2, 2)], [(1, 3), (2, 4)], [(4, 1)]])
    assert not occurrence_determination([[(1, 1), (1, 2)], [(1, 1), (2, 2)], [(1, 3), (2, 4)], [(5, 1)]])


def test_figure_2_against_all_combinations() -> None:
    rng = random.Random(1)
    for _ in range(3000):
        results = [
            [(rng.randrange(3), rng.randrange(3)) for _ in range(rng.randrange(4))]
            for _ in range(rng.randrange(1, 5))
        ]
        connected = any(
            all(before[1] == after[0] for before, after in itertools.pairwise(combination))
            for combination in itertools.product(*results)
        )
        assert occurrence_determination(results) == connected, results


def test_occurrence_determination_is_not_exponential() -> None:
    """40 nested elements and 20 steps: as printed, the search would try 40 to the power of 19 combinations."""
    everything = [(first, second) for second in range(40) for first in range(second)]
    assert not occurrence_determination([everything] * 20 + [[(41, 42)]])
    engine, symbols = index("//a" * 20 + "//b/c")
    tree = nested("a" * 60 + "bbdc")
    assert engine.match(tree.document(symbols)).tolist() == []


def test_figure_3_prefixes_are_ancestors() -> None:
    engine, symbols = index("/a/b", "/a/b//c/d", "/a/b//e")
    tree = {" ".join(map(str, nodes)): number for nodes, number in engine.xpe_index(symbols).items()}
    prefix = "(p_a, =, 1) (d(p_a, p_b), =, 1)"
    assert tree == {
        "(p_a, =, 1)": 0,
        prefix: 1,
        f"{prefix} (d(p_b, p_c), >=, 1)": 0,
        f"{prefix} (d(p_b, p_c), >=, 1) (d(p_c, p_d), =, 1)": 1,
        f"{prefix} (d(p_b, p_e), >=, 1)": 1,
    }
    engine.remove(1)
    assert len(engine.xpe_index(symbols)) == 3


def test_prefix_covering_saves_evaluations() -> None:
    expressions = ["/a", "/a/b", "/a/b/c", "/a/b/c/d"]
    evaluated = {}
    for organisation in ORGANISATIONS:
        engine, symbols = index(*expressions, organisation=organisation)
        assert engine.match(nested("abcd").document(symbols)).tolist() == [0, 1, 2, 3]
        counters = engine.counters()
        evaluated[organisation] = (counters["expressions evaluated"], counters["expressions covered"])
    assert evaluated == {"triggered": (1, 3), "basic": (4, 0), "pc": (1, 3), "pc-ap": (1, 3)}


def test_access_predicates_rule_out_clusters() -> None:
    expressions = [f"/{first}/a/b//{last}" for first in "xyz" for last in "cd"]
    evaluated = {}
    for organisation in ORGANISATIONS:
        engine, symbols = index(*expressions, organisation=organisation)
        assert engine.match(nested("xabc").document(symbols)).tolist() == [0]
        counters = engine.counters()
        evaluated[organisation] = (counters["expressions evaluated"], counters["clusters ruled out"])
    # Every expression of the paper's: six, in three clusters. Ours looks at those alone that end in the new element.
    assert evaluated == {"triggered": (3, 0), "basic": (6, 0), "pc": (6, 0), "pc-ap": (2, 2)}


def test_every_expression_is_evaluated_on_every_path_as_the_paper_has_it() -> None:
    expressions = ["/a/b", "/a/c", "//d"]
    root = Element("a", [], [Element("b"), Element("b"), Element("c"), Element("b")])
    evaluated = {}
    for repeated_paths in ("skip", "process"):
        for organisation in ORGANISATIONS:
            engine = PredicateEngine(organisation=organisation, repeated_paths=repeated_paths)
            symbols = Symbols()
            for expression in expressions:
                engine.add(patterns(expression, symbols)[0])
            assert engine.match(root.document(symbols)).tolist() == [0, 1]
            evaluated[organisation, repeated_paths] = engine.counters()["expressions evaluated"]
    # Of four paths to leaves, b, b, c, b: /a/b matches on the first, /a/c on the third, //d never does.
    assert evaluated["basic", "process"] == 1 + 3 + 4
    assert evaluated["basic", "skip"] == 1 + 2 + 2
    assert evaluated["pc-ap", "process"] == 1 + 3  # (p_b, >=, 1), the access predicate of //d, is never satisfied
    assert evaluated["triggered", "skip"] == 2


def test_a_shared_prefix_is_matched_once_and_a_repeated_path_not_at_all() -> None:
    engine, symbols = index("//a//b", "//b")
    root = Element("a", [], [Element("b"), Element("b"), Element("c", [], [Element("b")])])
    assert engine.match(root.document(symbols)).tolist() == [0, 1]
    counters = engine.counters()
    assert (counters["document paths"], counters["repeated paths"]) == (3, 1)
    assert counters["predicates matched"] == 4  # two for each of the two b's that were looked at


@pytest.mark.parametrize("organisation", ORGANISATIONS)
@pytest.mark.parametrize(
    ("expression", "document", "expected"),
    [
        ("//*[b]/*", Element("r", [], [Element("a", [], [Element("c"), Element("b")])]), True),
        ("//a//*[b]/*", nested("axxb"), True),
        ("//a[*/*]/b", nested("abc"), True),
        ("//a[*/*/*]/b", nested("abc"), False),
        ("//a[.//*/c]/b", nested("abdc"), True),
        ("/a/*[@x]", Element("a", [], [Element("b", [], [Element("b", ["x"])])]), False),
        ("/a//*[@x]", Element("a", [], [Element("b", [], [Element("b", ["x"])])]), True),
        ("//*[@x]", Element("a", ["x"]), True),
        ("/a/*[@x]", Element("a", ["x"]), False),
    ],
)
def test_where_a_path_ends(organisation: str, expression: str, document: Element, expected: bool) -> None:
    """Trailing wildcards and conditions: the predicates alone do not say where the last step is."""
    engine, symbols = index(expression, organisation=organisation)
    assert bool(engine.match(document.document(symbols)).size) == expected


@pytest.mark.parametrize("organisation", ORGANISATIONS)
def test_nested_paths_keep_state_between_the_paths_of_a_document(organisation: str) -> None:
    """The branches of a twig are in different document paths, and must meet in one element."""
    engine, symbols = index("/r/a[b/c]/d", "//a[@x][b]//d", organisation=organisation)
    b, d = nested("bc"), Element("d")
    for children, expected in (
        ([Element("a", [], [b, d])], [0]),
        ([Element("a", ["x"], [d, Element("e"), b])], [0, 1]),
        ([Element("a", ["x"], [b]), Element("a", [], [d])], []),  # each branch is there, below another a
        ([Element("a", [], [b]), Element("a", [], [d]), Element("a", [], [b, d])], [0]),  # the same paths again
        ([], []),  # nothing is left of the document before
    ):
        assert engine.match(Element("r", [], children).document(symbols)).tolist() == expected


@pytest.mark.parametrize("organisation", ORGANISATIONS)
@pytest.mark.parametrize("linear", [True, False])
def test_random_documents(organisation: str, linear: bool) -> None:
    for seed in range(4):
        repeated_paths = "process" if seed % 2 else "skip"
        engine = PredicateEngine(organisation=organisation, repeated_paths=repeated_paths)
        assert differences(engine, random.Random(seed), 12, linear=linear) == []


@pytest.mark.parametrize("organisation", ORGANISATIONS)
@pytest.mark.parametrize("linear", [True, False])
def test_recursive_documents(organisation: str, linear: bool) -> None:
    for seed in range(8):
        repeated_paths = "process" if seed % 2 else "skip"
        engine = PredicateEngine(organisation=organisation, repeated_paths=repeated_paths)
        assert recursive_differences(engine, random.Random(seed), 4, linear=linear) == []


def test_removal_leaves_nothing() -> None:
    engine, symbols = index("/a/b", "//a/*", "//*//*", "/a[b]/c", "/*[@x]")
    for key in range(5):
        engine.remove(key)
    assert len(engine) == 0
    assert engine.xpe_index(symbols) == {}
    assert engine.distinct_expressions == 0
    assert engine.match(Element("a", ["x"], [Element("b")]).document(symbols)).tolist() == []


def test_the_breakdown_is_measured_only_if_asked_for() -> None:
    for breakdown in (False, True):
        engine, symbols = PredicateEngine(breakdown=breakdown), Symbols()
        engine.add(patterns("//a/b", symbols)[0])
        engine.match(nested("aab").document(symbols))
        assert (engine.counters()["predicate matching nanoseconds"] > 0) == breakdown


def test_bad_options() -> None:
    with pytest.raises(EngineError, match="organisation"):
        PredicateEngine(organisation="best")
    with pytest.raises(EngineError, match="no option"):
        PredicateEngine(organization="pc")


def test_memory_by_structure() -> None:
    engine, symbols = index("/a/b", "//a//c")
    engine.match(nested("abc").document(symbols))
    sizes = engine.memory()
    assert {"predicate index", "XPE index", "run-time publication", "run-time expressions"} <= set(sizes)
    assert all(size > 0 for name, size in sizes.items() if name != "twigs")
