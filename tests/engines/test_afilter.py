"""AFilter: the paper's worked examples, every option against the reference, path-tuples, growth of its structures."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

import xsift
from tests.support import DESCENDANT, Element, Twig, differences, random_element, random_twig
from xsift.document.events import RecordedEvents
from xsift.engines.afilter.engine import AFilter
from xsift.engines.reference import Evaluation, Tree
from xsift.errors import EngineError
from xsift.xpath.pattern import Pattern
from xsift.xpath.symbols import Symbols

RESULTS = ("filters", "tuples")
DEPLOYMENTS = ("nc-ns", "nc-suf", "pre-ns", "pre-suf-early", "pre-suf-late")
Q_ROOT = -1
END = -1


def deployments() -> Iterator[dict[str, Any]]:
    """Every deployment with every kind of cache, from none to as large as it likes."""
    for deployment in DEPLOYMENTS:
        if deployment.startswith("nc"):
            yield {"deployment": deployment}
        else:
            for cache, cache_bytes in itertools.product(("all", "failures"), (None, 0, 64, 2048)):
                yield {"deployment": deployment, "cache": cache, "cache_bytes": cache_bytes}


def options() -> Iterator[dict[str, Any]]:
    """All of these in both modes; a document with too many tuples is finished by filters."""
    for results, chosen in itertools.product(RESULTS, deployments()):
        yield {"results": results, "tuple_steps": 20_000, **chosen}


class Filters:
    """An engine with linear paths given as text; labels, documents and answers in letters."""

    def __init__(self, *texts: str, deployment: str = "nc-ns", **rest: object) -> None:
        self.symbols = Symbols()
        self.engine = AFilter(deployment=deployment, **rest)
        self.keys = [self.engine.add(self.pattern(text)) for text in texts]

    def pattern(self, text: str) -> Pattern:
        twig: Twig | None = None
        for axis, name in reversed(re.findall(r"(//|/)([^/]+)", text)):
            twig = Twig(name, DESCENDANT if axis == "//" else 0, [twig] if twig else [])
        assert twig is not None
        return twig.pattern(self.symbols)

    def codes(self, tags: str) -> list[int]:
        """Start tags are letters, end tags a full stop."""
        return [END if tag == "." else self.symbols.element(tag) for tag in tags]

    def document(self, tags: str) -> RecordedEvents:
        codes = self.codes(tags)
        return RecordedEvents(codes + [END] * (len(codes) - 2 * codes.count(END)))

    def name(self, label: int) -> str:
        return "root" if label == Q_ROOT else self.symbols.text(label)

    def stacks(self, tags: str) -> dict[str, list[tuple[int, int, dict[str, int | None]]]]:
        return {
            self.name(label): [
                (element, depth, {self.name(target): at for target, at in pointers.items()})
                for element, depth, pointers in objects
            ]
            for label, objects in self.engine.stack_branch(self.codes(tags)).items()
        }

    def work(self, tags: str, tag: str = "") -> dict[str, int]:
        """The counters after `tags`; with `tag`, what this one tag more adds."""
        before = self.engine.work(self.codes(tags))
        if not tag:
            return before
        after = self.engine.work(self.codes(tags + tag))
        return {name: after[name] - before[name] for name in after}

    def match(self, tags: str) -> list[int]:
        return [self.keys.index(key) for key in self.engine.match(self.document(tags)).tolist()]

    def tuples(self, query: int, tags: str) -> list[tuple[int, ...]]:
        return [elements for _, elements in self.engine.tuples(self.document(tags), [self.keys[query]])]

    def all_tuples(self, tags: str) -> dict[int, list[tuple[int, ...]]]:
        """By query: its tuples. All are found in one run."""
        found: dict[int, list[tuple[int, ...]]] = {}
        for key, elements in self.engine.tuples(self.document(tags)):
            found.setdefault(self.keys.index(key), []).append(elements)
        return {query: sorted(found[query]) for query in sorted(found)}


EXAMPLE_1 = ("//d//a//b", "//a//b//a//b", "//a//b/c", "/a/*/c")
EXAMPLE_7 = ("//a//b//c", "//a//b//d", "//e//a//b//d")


# The worked examples. Queries count from 0 here: the paper's q1 is 0.


def test_example_1_axis_view() -> None:
    filters = Filters(*EXAMPLE_1)
    view = {
        (filters.name(source), filters.name(target)): assertions
        for (source, target), assertions in filters.engine.axis_view().items()
    }
    assert view == {
        ("d", "root"): [(0, 0, "//", False)],
        ("a", "root"): [(1, 0, "//", False), (2, 0, "//", False), (3, 0, "/", False)],
        ("a", "d"): [(0, 1, "//", False)],
        ("a", "b"): [(1, 2, "//", False)],
        ("b", "a"): [(0, 2, "//", True), (1, 1, "//", False), (1, 3, "//", True), (2, 1, "//", False)],
        ("c", "b"): [(2, 2, "/", True)],
        ("c", "*"): [(3, 2, "/", True)],
        ("*", "a"): [(3, 1, "/", False)],
    }


def test_example_2_prefix_and_suffix_labels() -> None:
    engine = Filters(*EXAMPLE_1, deployment="pre-suf-late").engine
    prefixes = [engine.prefix_labels(path) for path in range(4)]
    assert prefixes[1][:2] == prefixes[2][:2]  # //a and //a//b
    assert len({label for labels in prefixes for label in labels}) == engine.sizes()["prefix labels"] == 3 + 4 + 1 + 3
    suffixes = [engine.suffix_labels(path) for path in range(4)]
    assert suffixes[0][1:] == suffixes[1][2:]  # //a//b ends both
    assert suffixes[2][2] == suffixes[3][2]  # c does
    assert suffixes[0][0] is None  # //d//a//b is one path's alone
    assert suffixes[2][:2] == suffixes[3][:2] == [None, None]


def test_example_3_stack_branch_after_each_start_tag() -> None:
    filters = Filters(*EXAMPLE_1)
    root: tuple[int, int, dict[str, int | None]] = (0, 0, {})
    first_a = (1, 1, {"d": None, "root": 0, "b": None})
    second_a = (3, 3, {"d": 2, "root": 0, "b": None})
    stars = [(1, 1, {"a": None}), (2, 2, {"a": 1}), (3, 3, {"a": 1}), (4, 4, {"a": 3}), (5, 5, {"a": 3})]
    assert filters.stacks("") == {"root": [root]}
    assert filters.stacks("a") == {"root": [root], "a": [first_a], "*": stars[:1]}
    assert filters.stacks("ad") == {"root": [root], "a": [first_a], "d": [(2, 2, {"root": 0})], "*": stars[:2]}
    after_b = {
        "root": [root], "a": [first_a, second_a], "d": [(2, 2, {"root": 0})], "b": [(4, 4, {"a": 3})], "*": stars[:4]
    }  # fmt: skip
    assert filters.stacks("adab") == after_b
    assert filters.stacks("adabc") == {**after_b, "c": [(5, 5, {"b": 4, "*": 4})], "*": stars}


def test_example_4_end_tag_restores_the_stacks() -> None:
    filters = Filters(*EXAMPLE_1)
    assert filters.stacks("adabc.") == filters.stacks("adab")
    assert filters.stacks("adabc.....") == filters.stacks("")


def test_example_5_only_last_labels_trigger() -> None:
    filters = Filters(*EXAMPLE_1)
    assert filters.work("ada")["triggers"] == 0
    assert filters.work("ada", "b")["triggers"] == 2  # (q1, 2) and (q2, 3), not (q2, 1) and (q3, 1)


def test_example_6_traversal() -> None:
    filters = Filters(*EXAMPLE_1)
    work = filters.work("ada", "b")
    assert work["paths matched"] == 1
    assert filters.match("adab") == [0]
    assert filters.tuples(0, "adab") == [(2, 3, 4)]  # d1, a2, b1
    assert filters.tuples(1, "adab") == []
    # q1 at b1, a2 and d1; q2 at b1 and a2, where no pointer leads to a b. So a1, with fewer ancestors, is not tried.
    assert work["traversals"] == 3 + 2


def test_example_6_grouped_traversal() -> None:
    filters = Filters(*EXAMPLE_1, results="tuples")
    work = filters.work("ada", "b")
    assert work["triggers"] == 2
    assert work["paths matched"] == work["tuples"] == 1
    # Both are at b1, where one pointer leads both to a2; there q1 goes on to d1, and to a1 for q1's sake, in vain.
    assert work["traversals"] == 4
    for deployment in DEPLOYMENTS:
        filters = Filters(*EXAMPLE_1, deployment=deployment, results="tuples")
        assert filters.all_tuples("adab") == {0: [(2, 3, 4)]}
        assert filters.match("adab") == [0]
        assert filters.all_tuples("adabc") == {0: [(2, 3, 4)], 2: [(1, 4, 5), (3, 4, 5)]}
        assert filters.all_tuples("abab") == {1: [(1, 2, 3, 4)]}
        assert filters.all_tuples("adc") == {3: [(1, 2, 3)]}


def test_trigger_pruning_by_depth_and_by_empty_stacks() -> None:
    filters = Filters("//a//b//c", "//d//c")
    work = filters.work("b", "c")
    assert (
        work["triggers"] == work["triggers pruned"] == 1
    )  # no a; the second has no pointer: it does not even trigger
    assert work["traversals"] == 0
    assert filters.work("dc", "c")["triggers pruned"] == 0
    filters = Filters("//a//a//a//c")
    assert filters.work("aa", "c")["triggers pruned"] == 1  # four steps, three levels


def test_example_7_prefix_sharing() -> None:
    filters = Filters(*EXAMPLE_7, deployment="pre-ns")
    prefixes = [filters.engine.prefix_labels(path) for path in range(3)]
    assert prefixes[0][:2] == prefixes[1][:2]
    assert len({label for labels in prefixes for label in labels}) == 3 + 1 + 4
    # (q2, 1) at b1 is served from what (q1, 1) left there; (q3, 2) is not, and the unfold bit says so without a look.
    work = filters.work("eabc.", "d")
    assert work["cache look-ups"] == work["cache hits"] == 1
    assert filters.match("eabc.d") == [0, 1, 2]


def test_example_8_suffix_sharing() -> None:
    texts = ("//a//b", "//a//b//a//b", "//c//a//b")
    suffixes = [Filters(*texts, deployment="nc-suf").engine.suffix_labels(path) for path in range(3)]
    assert suffixes[0] == suffixes[1][2:] == suffixes[2][1:]
    assert Filters(*texts).work("caba", "b")["triggers"] == 3
    assert Filters(*texts, deployment="nc-suf").work("caba", "b")["triggers"] == 1
    for deployment in DEPLOYMENTS:
        assert Filters(*texts, deployment=deployment).match("caba") == [0, 2]
        assert Filters(*texts, deployment=deployment).match("cabab") == [0, 1, 2]


def test_example_9_suffix_clusters_hide_prefixes() -> None:
    engine = Filters(*EXAMPLE_7, deployment="pre-suf-late").engine
    assert engine.prefix_labels(0)[1] == engine.prefix_labels(1)[1] != engine.prefix_labels(2)[2]
    assert engine.suffix_labels(1)[1] == engine.suffix_labels(2)[2] is not None
    assert engine.suffix_labels(0)[1] is None


def test_example_10_early_unfolding() -> None:
    filters = Filters(*EXAMPLE_7, "//f//d", "//g//f//d", deployment="pre-suf-early")
    assert filters.work("eabc")["unfoldings"] == 0
    work = filters.work("gfeabc.", "d")
    assert work["unfoldings"] == 1  # b//d, since (q2, 1) can be served at b1; f//d goes on as a cluster
    assert work["cache hits"] >= 1
    assert filters.match("gfeabc.d") == [0, 1, 2, 3, 4]
    assert filters.match("fabc.d") == [0, 1, 3]


def test_example_11_late_unfolding() -> None:
    filters = Filters(*EXAMPLE_7, deployment="pre-suf-late")
    work = filters.work("eabc.", "d")
    assert work["unfoldings"] == 0
    assert work["cache hits"] == 1  # (q2, 1) at b1
    assert work["removals"] == 1  # from the cluster, which is traversed for (q3, 2)
    assert filters.match("eabc.d") == [0, 1, 2]
    assert filters.match("abc.d") == [0, 1]


def test_example_12_no_look_ups_for_prefixes_of_what_was_removed() -> None:
    # As in Example 7, with one step more, since //a alone takes a look at a pointer and is not cached. The last path
    # makes //r//a known at a1: it is a prefix of q2, so that q2 and q3 could be asked for there.
    texts = ("//r//a//b//c", "//r//a//b//d", "//e//a//b//d", "//r//a//x")
    filters = Filters(*texts, deployment="pre-suf-late")
    removed = filters.work("reax.bc.", "d")
    assert removed["removals"] == 1
    assert removed["cache look-ups"] == 2 + 1  # at b1 both candidates; at a1 q3 alone, as q2 was served at b1
    kept = filters.work("reax.b", "d")
    assert kept["removals"] == 1  # q2 at a1
    assert kept["cache look-ups"] == 2  # at b1 nothing is known; at a1 both candidates
    assert filters.match("reax.bc.d") == [0, 1, 2, 3]


def test_example_13_no_traversal_when_all_candidates_are_removed() -> None:
    texts = ("//a//b//c", "/a//b//f", "//a//b//d", "/a//b//d", "//e//b//d")
    filters = Filters(*texts, deployment="pre-suf-late")
    work = filters.work("eabc.f.", "d")
    assert work["removals"] == 2  # a//b//d clusters two paths, and both are served at b1
    assert work["traversals pruned"] == 1  # so it is not traversed
    assert filters.match("eabc.f.d") == [0, 2, 4]


# The same examples in tuple mode.


def test_example_7_sub_results_are_shared_by_prefix() -> None:
    filters = Filters(*EXAMPLE_7, deployment="pre-ns", results="tuples")
    work = filters.work("eaabc.", "d")
    assert work["cache look-ups"] == work["cache hits"] == 1  # (q2, 1) at b1: two tuples of a//b, which (q1, 1) left
    assert work["tuples"] == 2 + 2
    assert filters.all_tuples("eaabc.d") == {
        0: [(2, 4, 5), (3, 4, 5)], 1: [(2, 4, 6), (3, 4, 6)], 2: [(1, 2, 4, 6), (1, 3, 4, 6)]
    }  # fmt: skip


def test_example_8_suffix_sharing_with_tuples() -> None:
    texts = ("//a//b", "//a//b//a//b", "//c//a//b")
    assert Filters(*texts, results="tuples").work("caba", "b")["triggers"] == 3
    assert Filters(*texts, deployment="nc-suf", results="tuples").work("caba", "b")["triggers"] == 1
    for deployment in DEPLOYMENTS:
        filters = Filters(*texts, deployment=deployment, results="tuples")
        assert filters.all_tuples("cabab") == {
            0: [(2, 3), (2, 5), (4, 5)], 1: [(2, 3, 4, 5)], 2: [(1, 2, 3), (1, 2, 5), (1, 4, 5)]
        }  # fmt: skip


def test_example_10_early_unfolding_with_tuples() -> None:
    filters = Filters(*EXAMPLE_7, "//f//d", "//g//f//d", deployment="pre-suf-early", results="tuples")
    work = filters.work("gfeabc.", "d")
    assert work["unfoldings"] == 1  # b//d, since (q2, 1) can be served at b1; f//d goes on as a cluster
    assert work["cache hits"] >= 1
    assert work["removals"] == 0
    assert filters.all_tuples("gfeabc.d") == {
        0: [(4, 5, 6)], 1: [(4, 5, 7)], 2: [(3, 4, 5, 7)], 3: [(2, 7)], 4: [(1, 2, 7)]
    }  # fmt: skip


def test_example_11_late_unfolding_with_tuples() -> None:
    filters = Filters(*EXAMPLE_7, deployment="pre-suf-late", results="tuples")
    work = filters.work("eabc.", "d")
    assert work["unfoldings"] == 0
    assert work["cache hits"] == work["removals"] == 1  # (q2, 1) at b1; the cluster is traversed for (q3, 2)
    assert work["tuples"] == 2
    assert filters.all_tuples("abc.d") == {0: [(1, 2, 3)], 1: [(1, 2, 4)]}


def test_example_12_no_look_ups_for_prefixes_of_what_was_removed_with_tuples() -> None:
    texts = ("//r//a//b//c", "//r//a//b//d", "//e//a//b//d", "//r//a//x")
    filters = Filters(*texts, deployment="pre-suf-late", results="tuples")
    removed, kept = filters.work("reax.bc.", "d"), filters.work("reax.b", "d")
    assert removed["removals"] == kept["removals"] == 1  # q2: at b1 after the c, else at a1
    assert removed["cache hits"] == kept["cache hits"] == 1  # at a1 it is not asked for again
    assert filters.all_tuples("reax.bc.d") == {
        0: [(1, 3, 5, 6)],
        1: [(1, 3, 5, 7)],
        2: [(2, 3, 5, 7)],
        3: [(1, 3, 4)],
    }


def test_example_13_no_traversal_when_all_candidates_are_removed_with_tuples() -> None:
    texts = ("//a//b//c", "/e//b//f", "//a//b//d", "/e//b//d", "//e//b//d")
    filters = Filters(*texts, deployment="pre-suf-late", results="tuples")
    first, second = filters.work("eab", "d"), filters.work("eabd.", "d")
    assert first["traversals pruned"] == 0
    assert second["traversals pruned"] == 1  # b//d at b1: all three were found there for the d before
    assert second["traversals"] == 2
    assert first["tuples"] == second["tuples"] == 3


def test_large_clusters_are_looked_into() -> None:
    """A prefix that has tuples at an object is found in a cluster of hundreds."""
    texts = ["//a//b//c", *(f"//n{number}//b//d" for number in range(300)), "//a//b//d", "//e//b//d"]
    filters = Filters(*texts, deployment="pre-suf-late", results="tuples")
    tags = filters.codes("eab") + filters.codes("c.d")
    work = filters.engine.work(tags)
    assert work["removals"] == work["cache hits"] == 1
    assert work["tuples"] == 3


def test_a_cluster_is_traversed_once_for_siblings() -> None:
    texts = ("//a//b//d", "/c//b//d", "//e//b//d", "//b/d", "/a/b/d", "//c//b//d")
    filters = Filters(*texts, deployment="pre-suf-late")
    first, second = filters.work("eab", "d"), filters.work("eabd.", "d")
    assert first["traversals pruned"] == 0
    assert second["traversals pruned"] > 0
    assert second["traversals"] < first["traversals"]


# Exactness.


@pytest.mark.parametrize(
    "chosen", list(options()), ids=lambda chosen: "-".join(str(value) for value in chosen.values())
)
@pytest.mark.parametrize("linear", [True, False], ids=["linear", "twigs"])
def test_no_option_changes_an_answer(chosen: dict[str, object], linear: bool) -> None:
    for seed in range(2):
        found = differences(AFilter(**chosen), random.Random(seed), 4, linear=linear)
        assert not found, found[:3]


def deep_element(rng: random.Random, names: str, size: int, depth: int) -> Element:
    """A document of `size` elements that goes down to `depth` over and over again."""
    root = Element(rng.choice(names))
    open_elements = [root]
    for _ in range(size - 1):
        if len(open_elements) >= depth:
            del open_elements[rng.randrange(1, depth) :]
        while len(open_elements) > 1 and rng.random() < 0.25:
            open_elements.pop()
        element = Element(rng.choice(names), [name for name in "xy" if rng.random() < 0.2])
        open_elements[-1].children.append(element)
        open_elements.append(element)
    return root


@pytest.mark.parametrize("seed", range(4))
def test_deep_recursive_documents(seed: int) -> None:
    rng = random.Random(seed)
    symbols = Symbols()
    patterns: list[Pattern] = []
    for number in range(60):
        twig = random_twig(rng, names="ab", depth=rng.choice([3, 6, 10]), width=2, linear=number % 3 > 0)
        pattern = twig.pattern(symbols)
        if len(pattern) < 40 and pattern not in patterns:
            patterns.append(pattern)
    engines = [AFilter(**chosen) for chosen in options()]
    keys = [[engine.add(pattern) for pattern in patterns] for engine in engines]
    for _ in range(2):
        element = deep_element(rng, "ab", 200, 50)
        document = element.document(symbols)
        tree = Tree(document.events)
        expected = [Evaluation(pattern, tree).matches() for pattern in patterns]
        for engine, its_keys in zip(engines, keys, strict=True):
            matched = set(engine.match(document).tolist())
            actual = [key in matched for key in its_keys]
            assert actual == expected, (engine.deployment, engine.cache, engine.cache_bytes, element.xml())


def many_paths(rng: random.Random, symbols: Symbols, number: int, names: str) -> list[Pattern]:
    patterns: dict[bytes, Pattern] = {}
    while len(patterns) < number:
        pattern = random_twig(rng, names=names, depth=7, conditions="", linear=True).pattern(symbols)
        patterns[pattern.key] = pattern
    return list(patterns.values())


@pytest.mark.parametrize("names", ["ab", "abcdef"])
def test_many_paths_of_few_names(names: str) -> None:
    """Large clusters whose paths share prefixes across clusters, so that a wrong entry of PRCache is asked for again.

    A path already found at one object must not count as holding at another: its prefix would be cached there,
    and another path that shares it would match for no reason.
    """
    rng = random.Random(names)
    symbols = Symbols()
    patterns = many_paths(rng, symbols, 800, names)
    engines = [AFilter(**chosen) for chosen in options()]
    for engine in engines:
        for pattern in patterns:
            engine.add(pattern)
    for _ in range(3):
        document = random_element(rng, names=names, size=120, deep=0.8, conditions="").document(symbols)
        answers = {tuple(engine.match(document).tolist()) for engine in engines}
        tree = Tree(document.events)
        assert answers == {tuple(key for key, pattern in enumerate(patterns) if Evaluation(pattern, tree).matches())}


def test_time_of_a_failing_traversal_is_not_exponential() -> None:
    for chosen in options():
        filters = Filters("/b" + "//a" * 20, "//b/a" + "//a/a" * 10, **chosen)
        assert filters.match("a" * 60) == []
        assert filters.work("a" * 60)["traversals"] < 200_000


def test_end_tags_without_start_tags_do_no_harm() -> None:
    for deployment in DEPLOYMENTS:
        filters = Filters("//a/b", deployment=deployment)
        assert filters.engine.match(RecordedEvents([END, END, *filters.codes("ab.."), END])).tolist() == [0]
        assert filters.engine.match(RecordedEvents(filters.codes("ab"))).tolist() == [0]
        assert (
            filters.engine.match(RecordedEvents(filters.codes("b"))).tolist() == []
        )  # nothing is left of the one before


# Additions and removals.


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_removing_everything_leaves_nothing(deployment: str) -> None:
    rng = random.Random(3)
    symbols = Symbols()
    engine = AFilter(deployment=deployment)
    for _ in range(3):
        patterns = {pattern.key: pattern for pattern in (random_twig(rng).pattern(symbols) for _ in range(200))}
        keys = [engine.add(pattern) for pattern in patterns.values()]
        size = engine.sizes()
        assert size["assertions"] > 0
        rng.shuffle(keys)
        for key in keys:
            engine.remove(key)
        assert set(engine.sizes().values()) == {0}
        assert engine.axis_view() == {}
        assert engine.match(random_element(rng).document(symbols)).tolist() == []


def test_labels_with_many_links() -> None:
    """A suffix label with hundreds of suffixes of one step more, added and removed."""
    for deployment in DEPLOYMENTS:
        symbols = Symbols()
        engine = AFilter(deployment=deployment)
        names = [f"n{number}" for number in range(300)]
        keys = {}
        for name in names:
            for axis in (0, 1):
                tail = Twig("a", axis, [Twig("b")])
                keys[name, axis] = engine.add(Twig(name, 1, [tail]).pattern(symbols))
        b, a = symbols.element("b"), symbols.element("a")
        for name in names[::2]:
            engine.remove(keys.pop((name, 1)))
        for number in (0, 1, 7, 298, 299):
            codes = [symbols.element(names[number]), a, b, a, b, *[END] * 5]
            expected = {keys[key] for key in ((names[number], 0), (names[number], 1)) if key in keys}
            assert set(engine.match(RecordedEvents(codes)).tolist()) == expected


def test_a_path_of_a_twig_is_reported_at_every_element() -> None:
    """A path that is a pattern of its own and a twig's branch: the one rests after a match, the other may not."""
    for chosen in options():
        symbols = Symbols()
        engine = AFilter(**chosen)
        path = Twig("a", 1, [Twig("b", 1)])
        linear = engine.add(path.pattern(symbols))
        twig = engine.add(Twig("a", 1, [Twig("b", 1), Twig("c")]).pattern(symbols))
        element = Element("r", [], [
            Element("a", [], [Element("b")]), Element("a", [], [Element("b"), Element("b"), Element("c")])
        ])  # fmt: skip
        assert set(engine.match(element.document(symbols)).tolist()) == {linear, twig}
        engine.remove(twig)
        assert engine.match(element.document(symbols)).tolist() == [linear]
        assert engine.work(element.codes(symbols))["paths matched"] == (1 if engine.results == "filters" else 3)


# Path-tuples.


@pytest.mark.parametrize("results", RESULTS)
@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_tuples_are_those_of_the_reference(deployment: str, results: str) -> None:
    rng = random.Random(7)
    symbols = Symbols()
    for _ in range(40):
        pattern = random_twig(rng, names="ab", linear=True).pattern(symbols)
        engine = AFilter(deployment=deployment, results=results)
        engine.add(random_twig(rng, names="ab").pattern(symbols))
        if len(engine) and engine.refuses(pattern):
            continue
        key = engine.add(pattern)
        document = random_element(rng, names="ab", size=20, deep=0.7).document(symbols)
        assert sorted(engine.tuples(document, [key])) == [
            (key, found) for found in reference_tuples(pattern, document)
        ]


def reference_tuples(pattern: Pattern, document: RecordedEvents) -> list[tuple[int, ...]]:
    steps = [step for step, (_, _, _, is_condition) in enumerate(pattern.steps) if not is_condition]
    return sorted(itertools.islice(Evaluation(pattern, Tree(document.events)).tuples(steps[-1]), MOST_TUPLES))


MOST_TUPLES = 300


@pytest.mark.parametrize("names", ["a", "ab", "abcd"])
def test_tuples_of_many_paths_on_recursive_documents(names: str) -> None:
    """Every deployment, from no cache over one that forgets at once to one that keeps all, against the definition."""
    rng = random.Random(names)
    symbols = Symbols()
    patterns = {
        pattern.key: pattern
        for pattern in (random_twig(rng, names=names, depth=6, linear=True).pattern(symbols) for _ in range(80))
    }
    engines = [AFilter(**chosen) for chosen in options()]
    keys = {engines[0].add(pattern): pattern for pattern in patterns.values()}
    for engine in engines[1:]:
        for pattern in patterns.values():
            engine.add(pattern)
    hits = compared = 0
    for _ in range(2):
        document = deep_element(rng, names, 40, 10).document(symbols)
        expected = {key: reference_tuples(pattern, document) for key, pattern in keys.items()}
        few = [key for key, tuples in expected.items() if len(tuples) < MOST_TUPLES]
        wanted = sorted((key, found) for key in few for found in expected[key])
        compared += len(wanted)
        for engine in engines:
            assert sorted(engine.tuples(document, few)) == wanted, (
                engine.deployment,
                engine.cache,
                engine.cache_bytes,
            )
            assert set(engine.match(document).tolist()) == {key for key, tuples in expected.items() if tuples}
            hits += engine.counters()["cache hits"]
    assert hits
    assert compared > 100


def every_tuple(pattern: Pattern, tree: Tree) -> list[tuple[int, ...]]:
    """Tries every assignment of elements to the steps of a linear pattern."""
    steps = [step for step in pattern.steps if not step[3]]
    conditions = {symbol for _, _, symbol, is_condition in pattern.steps if is_condition}
    found = []
    for elements in itertools.product(range(1, len(tree.symbols)), repeat=len(steps)):
        above = 0
        for element, (_, axis, symbol, _) in zip(elements, steps, strict=True):
            parents = list(tree.ancestors(element)) if axis == DESCENDANT else [tree.parents[element]]
            if above not in parents or symbol not in (0, tree.symbols[element]):
                break
            above = element
        else:
            if conditions <= tree.conditions[elements[-1]]:
                found.append(elements)
    return found


def test_tuples_are_those_of_brute_force() -> None:
    rng = random.Random(13)
    symbols = Symbols()
    several = 0
    for _ in range(150):
        pattern = random_twig(rng, names="ab", linear=True).pattern(symbols)
        engine = AFilter()
        key = engine.add(pattern)
        document = random_element(rng, names="ab", size=9, deep=0.8).document(symbols)
        expected = every_tuple(pattern, Tree(document.events))
        assert sorted(found for _, found in engine.tuples(document, [key])) == expected
        several += len(expected) > 1
    assert several > 20


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_tuples_are_lazy(deployment: str) -> None:
    filters = Filters("//a" * 12, "/b" + "//a" * 12, "//a//a", "//b/a" + "//a/a" * 5, deployment=deployment)
    document = filters.document("a" * 60)  # 60 over 12 is 1.4e12
    run = filters.engine.tuples(document)
    first = list(itertools.islice((found for key, found in run if key == 0), 50_000))
    assert len(set(first)) == 50_000
    assert first[0] == tuple(range(1, 13))
    run.enough(0)
    assert {key for key, _ in run} == {2}
    pairs = [found for _, found in filters.engine.tuples(document, [2])]
    assert sorted(pairs) == list(itertools.combinations(range(1, 61), 2))
    assert list(filters.engine.tuples(document, [1, 3])) == []


def test_tuples_can_be_given_up() -> None:
    filters = Filters("//a" * 12)
    run = filters.engine.tuples(filters.document("a" * 60), steps=10_000)
    assert 1000 < len(list(run)) <= 10_001
    assert run.exhausted
    run = filters.engine.tuples(filters.document("a" * 12), steps=10_000)
    assert list(run) == [(0, tuple(range(1, 13)))]
    assert not run.exhausted


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_a_match_that_gives_up_tuples_is_still_exact(deployment: str) -> None:
    filters = Filters(
        "//a" * 12, "//a/b", "//b/a//c", "/a//c", "//c", deployment=deployment, results="tuples", tuple_steps=1000
    )
    for _ in range(2):
        assert filters.match("a" * 60 + "b..b.c") == [0, 1, 3, 4]
        assert filters.match("abac") == [1, 2, 3, 4]
        assert filters.match("a" * 13) == [0]


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_tuples_through_a_matcher(deployment: str) -> None:
    subscriptions = xsift.Subscriptions()
    for id, xpath in {"pairs": "//a//b", "children": "/a/*/b", "none": "//b//a"}.items():
        subscriptions.add(id, xpath)
    matcher = subscriptions.matcher(engine="afilter", deployment=deployment)
    found = matcher.tuples("<a><a><b/></a><b><b/></b></a>")
    assert {id: sorted(tuples) for id, tuples in found.items()} == {
        "pairs": [(1, 3), (1, 4), (1, 5), (2, 3)],
        "children": [(1, 2, 3), (1, 4, 5)],
    }
    deep = "<a>" * 40 + "<b/>" + "</a>" * 40
    assert [len(tuples) for tuples in matcher.tuples(deep, limit=3).values()] == [3]
    assert matcher.tuples(deep, limit=0) == {"pairs": []}


def test_tuples_through_a_matcher_are_those_of_other_engines() -> None:
    """Unions, conditions, paths that go on below what they select, equal paths of several ids, later additions."""
    xpaths = ("//a//b", "//a//b", "//b | //a/b", "//a[b]", "//a[b]/b", "//b[@x]", "//a//b[@x='1']", "//*", "//a[2]")
    document = "<a><a x='1'><b x='1'/><b/></a><b><b x='2'/></b><a><a><b/></a></a></a>"
    subscriptions = xsift.Subscriptions()
    for number, xpath in enumerate(xpaths):
        subscriptions.add(f"s{number}", xpath)
    subscriptions.matcher(engine="afilter")
    subscriptions.remove("s1")
    subscriptions.add("late", "//a//b")
    expected = {id: sorted(tuples) for id, tuples in subscriptions.matcher().tuples(document).items()}
    for results in RESULTS:
        matcher = subscriptions.matcher(engine="afilter", results=results)
        assert {id: sorted(tuples) for id, tuples in matcher.tuples(document).items()} == expected


def test_tuples_through_a_matcher_keep_to_the_limits() -> None:
    subscriptions = xsift.Subscriptions()
    for id, xpath in {"few": "/a/a", "pairs": "//a//a", "many": "//a" * 6}.items():
        subscriptions.add(id, xpath)
    document = "<a>" * 40 + "</a>" * 40
    for engine in ("afilter", "auto"):
        failures: dict[str, xsift.XsiftError] = {}
        matcher = subscriptions.matcher(engine=engine, limits=xsift.Limits(result_bytes=1_000_000))
        assert {id: len(found) for id, found in matcher.tuples(document, failures=failures).items()} == {
            "few": 1, "pairs": 780
        }  # fmt: skip
        assert {id: error.code for id, error in failures.items()} == {"many": "result-too-large"}
    matcher = subscriptions.matcher(engine="afilter", limits=xsift.Limits(steps=5000))
    failures = {}
    assert len(matcher.tuples(document, failures=failures)["pairs"]) == 780
    assert {id: error.code for id, error in failures.items()} == {"many": "too-many-steps"}


def test_tuples_say_what_they_cannot_do() -> None:
    filters = Filters("//a//b")
    document = filters.document("ab")
    with pytest.raises(EngineError, match="unknown-key"):
        filters.engine.tuples(document, [5])
    with pytest.raises(EngineError, match="bad-limit"):
        filters.engine.tuples(document, steps=-1)
    twig = filters.engine.add(Twig("a", 0, [Twig("b"), Twig("c")]).pattern(filters.symbols))
    with pytest.raises(EngineError, match="not-linear"):
        filters.engine.tuples(document, [twig])
    tuples = filters.engine.tuples(document)
    filters.engine.remove(twig)
    with pytest.raises(EngineError, match="index-changed"):
        next(tuples)


# Options and growth.


def test_options_are_checked() -> None:
    assert AFilter().deployment == "pre-suf-late"
    for name, wrong in (
        ("results", "all"),
        ("tuple_steps", 1.5),
        ("deployment", "pre"),
        ("cache", "some"),
        ("cache_bytes", -1),
        ("cache_bytes", "1k"),
    ):
        with pytest.raises(EngineError, match="bad-option"):
            AFilter(**{name: wrong})
    with pytest.raises(EngineError, match="unknown-option"):
        AFilter(size=3)


@pytest.mark.parametrize("results", RESULTS)
def test_the_cache_keeps_to_its_limit(results: str) -> None:
    rng = random.Random(11)
    symbols = Symbols()
    patterns = many_paths(rng, symbols, 800, "abcd")
    size = 100 if results == "tuples" else 300  # tuples are exponential in the depth
    documents = [random_element(rng, "abcd", size, 0.8, "").document(symbols) for _ in range(3)]
    hits, evictions = [], []
    for cache_bytes in (0, 256, 2048, 32768, 10**30):
        engine = AFilter(deployment="pre-ns", cache_bytes=cache_bytes, results=results)
        for pattern in patterns:
            engine.add(pattern)
        for document in documents:
            engine.match(document)
        counters = engine.counters()
        assert engine.memory()["run-time PRCache"] <= cache_bytes
        hits.append(counters["cache hits"])
        evictions.append(counters["cache evictions"])
    assert hits[0] == 0 < hits[2] < hits[-1]
    assert evictions[0] == 0
    assert evictions[2:] == sorted(evictions[2:], reverse=True)
    assert evictions[-1] < evictions[2] / 100
    if results == "tuples":  # the least cache has no room for an entry of tuples
        return
    assert hits[1] > 0
    assert hits == sorted(hits)
    assert evictions[1:] == sorted(evictions[1:], reverse=True)


def test_structures_grow_linearly_with_the_filters() -> None:
    """The index is linear in the size of the filters (section 3.2), and so are the marks of traversals; StackBranch
    does not depend on it (4.2.2); PRCache has its limit."""
    rng = random.Random(2)
    symbols = Symbols()
    names = "abcdefgh"
    patterns = many_paths(rng, symbols, 4000, names)
    element = random_element(rng, names, 100, 0.8, "")
    codes = element.codes(symbols)
    document = element.document(symbols)
    for deployment in DEPLOYMENTS:
        index_bytes: list[int] = []
        run_time_bytes: list[int] = []
        for number in (1000, 2000, 4000):
            engine = AFilter(deployment=deployment, cache_bytes=4096)
            for pattern in patterns[:number]:
                engine.add(pattern)
            steps = sum(len(pattern) for pattern in patterns[:number])
            sizes = engine.sizes()
            assert sizes["assertions"] == steps
            assert sizes["prefix labels"] <= steps
            assert sizes["suffix labels"] <= steps
            assert sizes["edges"] <= (len(names) + 1) * (len(names) + 2)
            engine.match(document)
            memory = engine.memory()
            index_bytes.append(sum(size for name, size in memory.items() if not name.startswith("run-time")))
            run_time_bytes.append(sum(size for name, size in memory.items() if name.startswith("run-time")))
            for length in range(1, len(codes), 19):
                stacks = engine.stack_branch(codes[:length])
                depth = sum(1 if code >= 0 else -1 for code in codes[:length])
                objects = [stack_object for stack in stacks.values() for stack_object in stack]
                assert len(objects) <= 2 * depth + 1
                assert sum(len(pointers) for _, _, pointers in objects) <= 2 * depth * (len(names) + 2)
        for sizes_in_bytes in (index_bytes, run_time_bytes):
            for smaller, larger in itertools.pairwise(sizes_in_bytes):
                assert larger <= 2.5 * smaller  # capacities double, so exactly 2 is not to be had


def test_counters_and_memory_have_the_papers_names() -> None:
    filters = Filters(*EXAMPLE_1, deployment="pre-suf-late")
    filters.match("adabc")
    assert set(filters.engine.counters()) == {
        "triggers", "triggers pruned", "traversals", "cache look-ups", "cache hits", "cache entries",
        "cache evictions", "unfoldings",
        "removals", "traversals pruned", "paths matched", "tuples", "twigs evaluated",
    }  # fmt: skip
    assert set(filters.engine.memory()) >= {
        "AxisView", "PRLabel-tree", "SFLabel-tree", "run-time StackBranch", "run-time PRCache"
    }  # fmt: skip
