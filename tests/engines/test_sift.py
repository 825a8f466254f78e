"""sift: its cache of states, its shared sub-patterns, and an index that is saved and restored."""

from __future__ import annotations

import os
import random
import resource
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import xsift
from tests.engines.recursive import recursive_differences
from tests.support import Element, differences, random_element, random_twig
from xsift.document.events import RecordedEvents
from xsift.engines.reference import Evaluation, Tree
from xsift.engines.sift.engine import Sift
from xsift.errors import EngineError
from xsift.workload import DocumentGenerator, DocumentParameters, SubscriptionGenerator, SubscriptionParameters
from xsift.xpath import Pattern, Symbols, patterns
from xsift.xpath.pattern import from_key

Arrays = dict[str, npt.NDArray[Any]]
CACHES = [0, 3000, 20_000, 1 << 27]


@pytest.mark.parametrize("cache_bytes", CACHES)
@pytest.mark.parametrize("remember", ["auto", "always", "never"])
@pytest.mark.parametrize("kind", ["linear", "twigs", "ordered"])
def test_the_answer_does_not_depend_on_the_cache(cache_bytes: int, remember: str, kind: str) -> None:
    for seed in range(4):
        for compare in (differences, recursive_differences):
            engine = Sift(cache_bytes=cache_bytes, remember=remember)
            found = compare(engine, random.Random(seed), 8, linear=kind == "linear", ordered=kind == "ordered")
            assert not found, found[:5]


def test_a_full_cache_is_emptied_and_filled_again() -> None:
    symbols = Symbols()
    engine = Sift(cache_bytes=1000)
    for text in ("//a//b/c", "//*/b//c", "/a/*//b", "//c//a"):
        for pattern in patterns(text, symbols):
            engine.add(pattern)
    rng = random.Random(1)
    for _ in range(50):
        engine.match(random_element(rng, size=30).document(symbols))
    counters = engine.counters()
    assert counters["flushes"] > 0
    assert counters["states made"] > counters["flushes"]


def test_states_are_made_once_for_equal_paths() -> None:
    symbols = Symbols()
    engine = Sift()
    for pattern in patterns("//a//b", symbols):
        engine.add(pattern)
    document = Element("a", children=[Element("b"), Element("b"), Element("b")]).document(symbols)
    engine.match(document)
    made = engine.counters()["states made"]
    engine.match(document)
    assert engine.counters()["states made"] == made


def test_deep_recursion_needs_few_states() -> None:
    """Below some depth nothing new becomes active, so the automaton comes back to states that it has."""
    symbols = Symbols()
    engine = Sift()
    for text in ("//a//b//a", "//b/a//b", "/a/b//a/b"):
        for pattern in patterns(text, symbols):
            engine.add(pattern)
    element = Element("a")
    for level in range(200):
        element = Element("ab"[level % 2], children=[element])
    assert len(engine.match(element.document(symbols))) == 2
    assert engine.counters()["states made"] < 30


def test_equal_sub_patterns_of_a_place_are_kept_once() -> None:
    symbols = Symbols()
    sizes = []
    for number in (1000, 2000):
        engine = Sift()
        for top in range(number):
            for pattern in patterns(f"/r/s[x[y][z]]/w{top}", symbols):
                engine.add(pattern)
        sizes.append(sum(size for name, size in engine.memory().items() if not name.startswith("run-time")) / number)
    assert sizes[1] < 250  # bytes a twig: the step w, a node and its edges, not the four names below s


def test_documents_that_repeat_make_nothing_new() -> None:
    symbols = Symbols()
    engine = Sift()
    for text in ("/a[b][.//c]/b[@x]", "//b[c/@y][a]", "/a//a[c]"):
        for pattern in patterns(text, symbols):
            engine.add(pattern)
    documents = [random_element(random.Random(seed), size=60).document(symbols) for seed in range(10)]
    for document in documents:
        engine.match(document)
    made = ("states made", "configurations made", "sets made")
    before = {name: engine.counters()[name] for name in made}
    for document in documents:
        engine.match(document)
    assert {name: engine.counters()[name] for name in made} == before
    assert all(before.values())


def test_conditions_are_followed_only_where_they_hold() -> None:
    """A condition leads to what stands behind it, in whatever order conditions come, or were written."""
    symbols = Symbols()
    engine = Sift()
    texts = ["/a[@x][@y]/b", "/a[@y][@x]//c", "/a[@x]/b[@y][@x]", "//b[@x]/a[@y]"]
    keys = {text: engine.add(pattern) for text in texts for pattern in patterns(text, symbols)}
    both = Element("a", ["y", "x"], [Element("b", ["x"], [Element("c"), Element("a", ["y"])])])
    one = Element("a", ["x"], [Element("b", ["x", "y"], [Element("c"), Element("a")])])
    found = [{text for text, key in keys.items() if key in engine.match(d.document(symbols))} for d in (both, one)]
    assert found == [{texts[0], texts[1], texts[3]}, {texts[2]}]


def test_deep_recursion_with_branches_is_exact_and_forgets() -> None:
    """Every element is a branch point that looks for something at any depth below it."""
    symbols = Symbols()
    texts = ("//a[.//b][.//c]", "//a[b[.//c]]//d", "//a[.//d]/a/b")
    asked = [pattern for text in texts for pattern in patterns(text, symbols)]
    element = Element("d")
    for level in range(300):
        element = Element("abc"[level % 3], children=[element])
    tree = Tree(element.codes(symbols))
    expected = [number for number, pattern in enumerate(asked) if Evaluation(pattern, tree).matches()]
    for cache_bytes in (0, 1 << 27):
        engine = Sift(cache_bytes=cache_bytes)
        assert [engine.add(pattern) for pattern in asked] == list(range(len(asked)))
        assert engine.match(element.document(symbols)).tolist() == expected


def known(symbols: Symbols) -> Arrays:
    """What a restored index is told beside itself."""
    return {"symbols": np.array([len(symbols)])}


def test_a_restored_index_answers_alike_and_can_be_changed() -> None:
    rng = random.Random(7)
    symbols = Symbols()
    engine = Sift()
    kept: dict[int, Pattern] = {}
    for _ in range(300):
        pattern = random_twig(rng).pattern(symbols, rng.random() < 0.3)
        if pattern not in kept.values():
            kept[engine.add(pattern)] = pattern
    for key in rng.sample(sorted(kept), 50):
        engine.remove(key)
        del kept[key]
    restored = Sift()
    saved = engine.saved()
    assert saved is not None
    restored.restore({**saved, **known(symbols)})
    assert len(restored) == len(kept)
    for round_number in range(30):
        if round_number == 15:  # the arrays of a restored index belong to the file: a change must copy them
            for key in rng.sample(sorted(kept), 50):
                restored.remove(key)
                del kept[key]
            for _ in range(50):
                pattern = random_twig(rng).pattern(symbols, rng.random() < 0.3)
                if pattern not in kept.values():
                    kept[restored.add(pattern)] = pattern
        document = random_element(rng, size=40).document(symbols)
        tree = Tree(document.events)
        expected = sorted(key for key, pattern in kept.items() if Evaluation(pattern, tree).matches())
        assert restored.match(document).tolist() == expected


def test_counts_of_a_restored_index_are_not_relied_on() -> None:
    """A file may say that there are more nodes than memory has room for; triggers are chosen all the same."""
    symbols = Symbols()
    engine = Sift()
    for number in range(5):
        for pattern in patterns(f"/a[b][c{number}]", symbols):
            engine.add(pattern)
    saved = engine.saved()
    assert saved is not None
    counts = saved["sift.counts"].copy()
    nodes = 3
    assert counts[nodes] == 5
    counts[nodes] = 1 << 40
    restored = Sift()
    restored.restore({**saved, **known(symbols), "sift.counts": counts})
    document = Element("a", children=[Element("b"), Element("c2")]).document(symbols)
    for _ in range(20):
        assert restored.match(document).tolist() == [2]


def test_a_restored_node_has_branches_of_its_own_scope_alone() -> None:
    """Each may become its trigger: one of elsewhere would have it looked at where it does not stand."""
    symbols = Symbols()
    engine = Sift()
    for text in ("/a[b][c]", "/x[y][z]"):
        for pattern in patterns(text, symbols):
            engine.add(pattern)
    saved = engine.saved()
    assert saved is not None
    pool = saved["sift.edge_pool"].copy()
    edges = pool.view("int32")  # of both, one after the other
    assert len(edges) == 4
    edges[0] = edges[3]
    with pytest.raises(ValueError, match="leads outside"):
        Sift().restore({**saved, **known(symbols), "sift.edge_pool": pool})


def _other_state(saved: Arrays, state: int, field: int, value: int) -> Arrays:
    return _with_number(saved, "sift.states", 8 * state + field, value)


def _with_number(saved: Arrays, name: str, place: int, value: int) -> Arrays:
    changed = saved[name].copy()
    changed.view("int32")[place] = value
    return {**saved, name: changed}


SYMBOL, CHILDREN, FLAGS = 1, 6, 7  # of a state, in numbers
OTHER, MORE = 1, 3  # of a node


@pytest.mark.parametrize(
    "change",
    {
        "an edge that is met nowhere is in use": lambda saved: _with_number(saved, "sift.edges", 6 * 2 + 2, 1),
        "a leaf that accepts nothing": lambda saved: _other_state(saved, 1, CHILDREN, 0),
        "a name leads to what loops": lambda saved: _other_state(saved, 1, FLAGS, 1 << 16),
        "a state does not tell of a name": lambda saved: _other_state(saved, 0, FLAGS, 2 << 16),
        "a state does not tell of any name": lambda saved: _other_state(saved, 0, FLAGS, 0xFFFF),
        "a scope is below its element": lambda saved: _other_state(saved, 2, FLAGS, 2 << 16 | 0xFFFF),
        "a node forgets a branch": lambda saved: _with_number(saved, "sift.nodes", OTHER, -1),
        "a node says that it has more branches": lambda saved: _with_number(saved, "sift.nodes", MORE, 1),
    }.items(),
    ids=lambda change: change[0],
)
def test_a_restored_index_leads_nowhere_that_is_not_there(change: tuple[str, Callable[[Arrays], Arrays]]) -> None:
    """Nor is looked for outside: an edge is climbed up to its scope, and a leaf told by what it accepts."""
    symbols = Symbols()
    engine = Sift()
    keys = [engine.add(pattern) for text in ("/a[b][c]", "/x[y]/z") for pattern in patterns(text, symbols)]
    engine.remove(keys[1])
    saved = engine.saved()
    assert saved is not None
    Sift().restore({**saved, **known(symbols)})
    with pytest.raises(ValueError, match="leads outside"):
        Sift().restore({**change[1](saved), **known(symbols)})


@pytest.mark.parametrize("symbol", [-2_000_000_000, 0, 2**31 - 1])
def test_a_restored_path_asks_for_names_that_there_are(symbol: int) -> None:
    """Others would be looked up outside of tables, or have one made that is as long as the greatest of them."""
    symbols = Symbols()
    engine = Sift()
    for pattern in patterns("/a//b", symbols):
        engine.add(pattern)
    saved = engine.saved()
    assert saved is not None
    keys = saved["sift.transitions"].copy()
    words, before = keys.view("int32"), symbols.element("b")
    place = next(at for at in range(0, len(words), 4) if words[at] == before and words[at + 1] >= 0)
    words[place] = symbol  # of the state that it leads to, too, so that the two agree
    changed = _other_state({**saved, "sift.transitions": keys}, int(words[place + 2]), SYMBOL, symbol)
    with pytest.raises(ValueError, match="leads outside"):
        Sift().restore({**changed, **known(symbols)})


@pytest.mark.parametrize(("steps", "is_fine"), [(1000, True), (1600, False)])
def test_a_restored_path_is_no_longer_than_a_pattern_can_be(steps: int, is_fine: bool) -> None:
    """Scopes within scopes are climbed by recursion."""
    symbols = Symbols()
    engine = Sift()
    step = struct.pack("<iBH", symbols.element("a"), 1, 1)
    engine.add(from_key(bytes(1) + step * (steps - 1) + step[:-2] + bytes(2), symbols))
    saved = engine.saved()
    assert saved is not None
    with nullcontext() if is_fine else pytest.raises(ValueError, match="leads outside"):
        Sift().restore({**saved, **known(symbols)})


def answers_after_memory_ran_out(remember: str) -> int:
    """Matches documents, some without memory for what they lead to. Returns for how many there was not enough."""
    rng = random.Random(1)
    symbols = Symbols()
    asked = {random_twig(rng, "abcdefgh", depth=5).pattern(symbols) for _ in range(1500)}
    documents = [random_element(rng, "abcdefgh", size=300, deep=0.6).document(symbols) for _ in range(30)]
    sound, engine = Sift(), Sift(remember=remember)
    for pattern in asked:
        assert sound.add(pattern) == engine.add(pattern)
    expected = [sound.match(document).tolist() for document in documents]
    usual = resource.getrlimit(resource.RLIMIT_AS)
    failed = 0
    for number in range(60):
        resource.setrlimit(resource.RLIMIT_AS, (1 << 20, usual[1]))  # less than there is: nothing more is to be had
        try:
            engine.match(documents[number % 30])
        except MemoryError:
            failed += 1
        finally:
            resource.setrlimit(resource.RLIMIT_AS, usual)
        other = rng.randrange(30)
        assert engine.match(documents[other]).tolist() == expected[other]
    return failed


@pytest.mark.skipif(
    "asan" in os.environ.get("LD_PRELOAD", ""), reason="the address sanitizer has its own limit on memory"
)
@pytest.mark.parametrize("remember", ["always", "never"])
def test_what_was_left_half_made_when_memory_ran_out_is_made_anew(remember: str) -> None:
    command = f"from {__name__} import answers_after_memory_ran_out as run; print(run({remember!r}))"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 0


def novel_documents(symbols: Symbols, number: int) -> list[RecordedEvents]:
    """Documents that have nearly no path in common: many names, at random, deep."""
    rng = random.Random(3)
    made = []
    for _ in range(number):
        element = Element(f"n{rng.randrange(40)}")
        for _ in range(60):
            element = Element(f"n{rng.randrange(40)}", children=[Element(f"n{rng.randrange(40)}"), element])
        made.append(element.document(symbols))
    return made


def engine_for_novel_documents(symbols: Symbols, **options: object) -> Sift:
    engine = Sift(**options)
    for first in range(40):
        for second in range(40):
            for pattern in patterns(f"//n{first}[.//n{second}]//n{(first + second) % 40}", symbols):
                engine.add(pattern)
    return engine


def test_documents_that_lead_to_much_that_is_new_are_not_remembered() -> None:
    symbols = Symbols()
    auto, always, never = (engine_for_novel_documents(symbols, remember=way) for way in ("auto", "always", "never"))
    for document in novel_documents(symbols, 150):
        found = [engine.match(document).tolist() for engine in (auto, always, never)]
        assert found[0] == found[1] == found[2]
        assert found[0]
    plain = [engine.counters()["documents not remembered"] for engine in (auto, always, never)]
    assert 0 < plain[0] < 150
    assert plain[1:] == [0, 150]
    assert auto.counters()["configurations made"] < always.counters()["configurations made"] / 2


def test_documents_that_repeat_are_remembered_again() -> None:
    """After documents that were not worth it, one comes again and again."""
    symbols = Symbols()
    engine = engine_for_novel_documents(symbols)
    documents = novel_documents(symbols, 60)
    for document in documents:
        engine.match(document)
    plain = engine.counters()["documents not remembered"]
    for _ in range(2000):
        engine.match(documents[0])
    again = engine.counters()["documents not remembered"] - plain
    assert plain
    assert again < 1500


@pytest.mark.parametrize("cache_bytes", [1 << 12, 1 << 15, 1 << 27])
def test_paths_that_are_known_are_not_entered_again(cache_bytes: int) -> None:
    """Not even where a condition holds at one element of a path, and not at another; and answers stay as they are."""
    symbols = Symbols()
    for seed in range(12):
        rng = random.Random(seed)
        plain, other = Sift(remember="never", cache_bytes=cache_bytes), Sift(remember="always")
        for _ in range(60):
            pattern = random_twig(rng).pattern(symbols)
            assert plain.add(pattern) == other.add(pattern)
        documents = [random_element(rng, size=rng.choice((5, 40, 150))).document(symbols) for _ in range(8)]
        entered = []
        for _ in range(4):
            before = plain.counters()["states entered in them"]
            for document in rng.sample(documents, len(documents)):
                assert plain.match(document).tolist() == other.match(document).tolist()
            entered.append(plain.counters()["states entered in them"] - before)
        assert cache_bytes < 1 << 27 or entered[-1] < entered[0]


def test_an_element_where_a_condition_holds_keeps_its_known_path() -> None:
    """So do those below it: only what is behind the condition is entered again."""
    symbols = Symbols()
    engine = Sift(remember="never")
    names = [f"c{number}" for number in range(30)]
    keys = [engine.add(p) for name in names for p in patterns(f"/a/b/{name}", symbols)]
    keys += [engine.add(p) for p in patterns("/a[@x]/b/c1", symbols)]
    document = Element("a", ["x"], [Element("b", children=[Element(name) for name in names])]).document(symbols)
    for _ in range(3):
        assert engine.match(document).tolist() == sorted(keys)
    before = engine.counters()["states entered in them"]
    assert engine.match(document).tolist() == sorted(keys)
    assert 0 < engine.counters()["states entered in them"] - before <= 3  # behind @x; b; c1


@pytest.mark.parametrize("cache_bytes", CACHES)
def test_what_is_behind_conditions_is_the_same_in_documents_that_come_again(cache_bytes: int) -> None:
    """Names, `*` and `//` behind conditions, conditions behind conditions, and twigs: a condition may be a branch."""
    symbols = Symbols()
    texts = [
        "/a[@x]/b/c",
        "/a[@x]//c",
        "//b[@x]//b//c",
        "//b[@x]/*[@y]",
        "//b[@x][@y]//c[@x]",
        "/a[@x]//*/*",
        "//*[@y]/c",
    ]
    texts += ["//b[@x][c]", "//b[.//c[@y]][@x]//d", "/a[b[@x]//c][.//b[@y]/c]", "//b[@x][@y][c]"]
    engines = [Sift(remember="never", cache_bytes=cache_bytes), Sift(remember="always")]
    for pattern in [one for text in texts for one in patterns(text, symbols)]:
        assert len({engine.add(pattern) for engine in engines}) == 1
    rng = random.Random(3)
    documents = []
    for _ in range(12):
        below = [_with_attributes(rng, 6) for _ in range(3)]
        documents.append(Element("a", ["x"], below).document(symbols))
    matched = set()
    for _ in range(12):
        for document in rng.sample(documents, len(documents)):
            plain, remembered = (engine.match(document).tolist() for engine in engines)
            assert plain == remembered
            matched |= set(plain)
    assert len(matched) == len(texts)


AGAIN = 60  # times that a document has to come until it is taken for one that comes again and again, and more


def test_where_documents_come_again_nothing_behind_conditions_is_entered() -> None:
    symbols = Symbols()
    engine = Sift(remember="never")
    keys = [engine.add(p) for text in ("/a[@x]/b/c", "/a[@x]//c[@y]", "//b[@y]") for p in patterns(text, symbols)]
    inner = Element("b", ["y"], [Element("c", ["y"]), Element("c")])
    document = Element("a", ["x"], [inner, Element("b")]).document(symbols)
    for _ in range(AGAIN):
        assert engine.match(document).tolist() == keys
    before = engine.counters()["states entered in them"]
    assert engine.match(document).tolist() == keys
    assert engine.counters()["states entered in them"] == before
    other = Element("a", ["x"], [Element("b", [], [Element("d"), Element("c")]), inner]).document(symbols)
    assert engine.match(other).tolist() == keys  # states of its open elements are entered when one is met that is new
    assert engine.counters()["states entered in them"] > before


def test_a_situation_has_all_keys_whatever_matched_before_in_its_document() -> None:
    """What matched at an element before is not marked again; but it may not be there in another document."""
    symbols = Symbols()
    engine = Sift(remember="never")
    keys = [engine.add(p) for text in ("/a/b[@x]", "/a/b[@y]") for p in patterns(text, symbols)]
    both, first = Element("b", ["x", "y"]), Element("b", ["x"])
    for _ in range(AGAIN):
        assert engine.match(Element("a", [], [first, both]).document(symbols)).tolist() == keys
    for _ in range(AGAIN):
        assert engine.match(Element("a", [], [both]).document(symbols)).tolist() == keys


def test_conditions_behind_others_are_asked_for_in_situations_too() -> None:
    subscriptions = xsift.Subscriptions()
    subscriptions.add("one", "//a[@x='1']/b[@y='2']")
    matcher = subscriptions.matcher("sift", remember="never")
    for y, ids in [("2", ["one"]), ("3", []), ("2", ["one"])]:
        for _ in range(AGAIN):
            assert matcher.match(f"<r><a x='1'><b y='{y}'/></a></r>") == ids


def test_where_documents_come_again_large_sets_of_branches_are_decided_once() -> None:
    documents = list(DocumentGenerator(DocumentParameters(dtd="nitf", number=10, size_bytes=3000)))
    twigs = SubscriptionGenerator(SubscriptionParameters(dtd="nitf", number=1000, distinct=True, nested_paths=2))
    subscriptions = xsift.Subscriptions()
    subscriptions.add_many([(str(number), text) for number, text in enumerate(twigs)])
    plain = subscriptions.matcher("sift", remember="never")
    expected = [plain.match(document) for document in documents]
    matcher = subscriptions.matcher("sift")
    for _ in range(10):
        assert [matcher.match(document) for document in documents] == expected
    before = matcher.counters()["branch points decided"]
    assert [matcher.match(document) for document in documents] == expected
    assert matcher.counters()["branch points decided"] == before > 0
    assert any(expected)


def test_situations_are_forgotten_when_there_is_no_room_and_they_are_not_met() -> None:
    symbols = Symbols()
    engine = Sift(remember="never", cache_bytes=60_000)
    names = [f"x{number}" for number in range(10)]
    keys = [engine.add(p) for name in names for p in patterns(f"/a[@{name}]/b", symbols)]

    def entered(held: list[int], times: int = 1) -> int:
        """The states that documents with these attributes lead to."""
        document = Element("a", [names[at] for at in held], [Element("b")]).document(symbols)
        before = engine.counters()["states entered in them"]
        for _ in range(times):
            assert engine.match(document).tolist() == [keys[at] for at in held]
        return int(engine.counters()["states entered in them"]) - before

    rng = random.Random(5)
    many = [sorted(rng.sample(range(10), 5)) for _ in range(300)]
    for held in many * 8:
        entered(held)
    last = [0, 1, 2, 3, 4, 5]
    entered(last, AGAIN)
    assert entered(last) > 0  # there is no room for it
    assert engine.memory()["run-time marks"] < 500_000
    entered(last, 16_384)
    assert entered(last) == 0  # those before it are not met any more


def _with_attributes(rng: random.Random, depth: int) -> Element:
    children = [_with_attributes(rng, depth - 1) for _ in range(rng.randrange(3))] if depth else []
    return Element(rng.choice("bbcd"), [name for name in "xy" if rng.random() < 0.5], children)


def test_the_same_conditions_around_each_other() -> None:
    symbols = Symbols()
    engine = Sift(remember="never")
    texts = [f"//a[@x{number}]//b" for number in range(8)] + ["//a[@x0]//a[@x1]/b", "//a[@x0]//c"]
    keys = [engine.add(pattern) for text in texts for pattern in patterns(text, symbols)]
    tree = Element("b")
    for _ in range(100):
        tree = Element("a", [f"x{number}" for number in range(8)], [tree])
    document = tree.document(symbols)
    for _ in range(4):
        assert engine.match(document).tolist() == keys[:-1]


@pytest.mark.parametrize("held", [1, 16, 17, 60])
def test_few_and_many_conditions_that_hold_at_once(held: int) -> None:
    """Few are looked up, many looked through; either way at a path that is not known yet, and at one that is."""
    symbols = Symbols()
    engine = Sift(remember="never")
    keys = [engine.add(p) for number in range(60) for p in patterns(f"/a[@x{number}]/b", symbols)]
    document = Element("a", [f"x{number}" for number in range(held)], [Element("b")]).document(symbols)
    for _ in range(4):
        assert engine.match(document).tolist() == keys[:held]


def test_nodes_are_looked_at_when_their_rarest_branch_is_there() -> None:
    """By its looks the branch with more names is the rarer one. Documents tell that it is not."""
    symbols = Symbols()
    engine = Sift(remember="always")
    for number in range(50):
        for pattern in patterns(f"/a[b/c/d][e{number}]", symbols):
            engine.add(pattern)
    common = Element("b", children=[Element("c", children=[Element("d")])])
    looks = []
    for number in range(120):
        before = engine.counters()["nodes checked"]
        others = [Element(f"f{number}"), Element(f"e{number % 60}")]  # sets that were met are not looked at again
        found = engine.match(Element("a", children=[common, *others]).document(symbols))
        assert list(found) == ([number % 60] if number % 60 < 50 else [])
        looks.append(engine.counters()["nodes checked"] - before)
    assert looks[0] == 50
    assert max(looks[60:]) <= 1


def test_what_many_nodes_wait_for_is_looked_at_once_though_met_in_many_ways() -> None:
    symbols = Symbols()
    engine = Sift(remember="always")
    for text in [*(f"/a[.//d][e{number}]" for number in range(50)), *(f"/a[{name}/d][e1]" for name in "xyz")]:
        for pattern in patterns(text, symbols):
            engine.add(pattern)
    others = [Element(f"e{number}") for number in range(40)]  # so many that the set is not kept
    for _ in range(10):
        assert not engine.match(Element("a", children=others).document(symbols)).size  # d is rarer than e
    before = engine.counters()["nodes checked"]
    ways = [Element(name, children=[Element("d")]) for name in "xyzw"]
    found = engine.match(Element("a", children=[*ways, *others]).document(symbols))
    assert sorted(found) == [*range(40), 50, 51, 52]
    assert engine.counters()["nodes checked"] - before == 43


@pytest.mark.parametrize("remember", ["always", "never"])
def test_a_rare_branch_beside_a_common_one_that_branches(remember: str) -> None:
    symbols = Symbols()
    engine = Sift(remember=remember)
    for number in range(20):
        for pattern in patterns(f"/a[b[c][d]][e{number}]", symbols):
            engine.add(pattern)
    common = Element("b", children=[Element("c"), Element("d")])
    for number in range(200):
        document = Element("a", children=[common, Element(f"e{number % 25}")]).document(symbols)
        assert engine.match(document).tolist() == ([number % 25] if number % 25 < 20 else [])


@pytest.mark.parametrize("remember", ["auto", "always", "never"])
def test_answers_stay_right_when_nodes_are_listed_anew(remember: str) -> None:
    """Twigs with many branches, and with branches that branch, and documents enough to choose triggers twice."""
    rng = random.Random(5)
    symbols = Symbols()
    engine = Sift(remember=remember, cache_bytes=20_000)
    names = "aaaaaabbbbbcccdef"  # some are rare
    texts = {f"//{rng.choice(names)}" + _branches(rng, names, 3) for _ in range(150)}
    distinct = {pattern.key: pattern for text in sorted(texts) for pattern in patterns(text, symbols)}
    keys = {engine.add(pattern): pattern for pattern in distinct.values()}
    for _ in range(100):
        element = random_element(rng, names, size=30)
        tree = Tree(element.codes(symbols))
        expected = {key for key, pattern in keys.items() if Evaluation(pattern, tree).matches()}
        assert set(engine.match(element.document(symbols)).tolist()) == expected


def _branches(rng: random.Random, names: str, depth: int) -> str:
    """Some branches, of which every other one branches again."""
    return "".join(
        f"[{rng.choice(['', './/'])}{rng.choice(names)}{_branches(rng, names, depth - rng.choice((1, depth)))}]"
        for _ in range(rng.randrange(1, 5) if depth else 0)
    )


def test_elements_that_nothing_leads_to_are_not_looked_at() -> None:
    """Below a name that leads nowhere; but conditions may lead on from it, and what is `//` above it does."""
    symbols = Symbols()
    texts = ["/a/b/c", "/a/d[@x]/c", "/a/e//c", "/a[b/f][.//g]"]
    for remember in ("never", "always"):
        engine = Sift(remember=remember)
        keys = {engine.add(pattern): text for text in texts for pattern in patterns(text, symbols)}
        c, lost = Element("c"), Element("z", children=[Element("z", ["x"], [Element("c")]), Element("b")])
        found = [
            {keys[key] for key in engine.match(document.document(symbols)).tolist()}
            for document in (
                Element("a", children=[lost, Element("d", children=[c]), lost, Element("b", children=[lost])]),
                Element("a", children=[lost, Element("d", ["x"], [lost, c]), Element("d", children=[c])]),
                Element("a", children=[Element("e", children=[lost]), Element("b", children=[lost, c])]),
                Element("a", children=[Element("b", children=[Element("f")]), Element("z", children=[Element("g")])]),
                Element("z", children=[Element("a", children=[Element("b", children=[c])])]),
            )
            * 3
        ]
        assert found == [set(), {texts[1]}, {texts[0], texts[2]}, {texts[3]}, set()] * 3


def test_a_long_document_that_is_like_itself_is_remembered() -> None:
    """A plain run of it is given up, and what it took is taken again the other way."""
    symbols = Symbols()
    engine = engine_for_novel_documents(symbols)
    for document in novel_documents(symbols, 60):
        engine.match(document)
    row = Element("n1", children=[Element("n2", children=[Element("n3")]), Element("n4")])
    long = Element("n0", children=[row] * 5000).document(symbols)
    before = engine.counters()
    expected = engine_for_novel_documents(symbols, remember="always").match(long).tolist()
    assert engine.match(long).tolist() == expected
    after = engine.counters()
    assert after["documents not remembered"] == before["documents not remembered"] + 1  # as such it was begun
    assert after["configurations made"] > before["configurations made"]


def test_bad_options_are_refused() -> None:
    with pytest.raises(EngineError, match="remember"):
        Sift(remember="sometimes")
    with pytest.raises(EngineError, match="cache_bytes"):
        Sift(cache_bytes=-1)
    with pytest.raises(EngineError, match="unknown-option"):
        Sift(other=1)


def test_joints_come_out_alike_after_the_cache_was_emptied() -> None:
    """States of open elements are made anew, of other parts: threads that were joined must be joined again."""
    symbols = Symbols()
    a, b, z = (symbols.element(name) for name in "abz")
    texts = {
        "//*[*[.//*//*//*//*]//*//a//*[.//*]//b]//b//*[.//*[.//*[.//*][.//*]//*]//*[.//*]/a]//*[*//*]//*": True,
        "//a[.//*[.//*[.//*//a]//*[.//*[*][.//*]//*]//*[.//b][.//b]//a]/*[*]/*//*//*]//a": True,
        "//*[.//*]//*[.//*/b//b//a]//*": True,
        "//b//*": False,
        "//a//*": False,
    }
    asked = [one for text, ordered in texts.items() for one in patterns(text, symbols, ordered=ordered)]
    codes = {"a": a, "b": b, "z": z, ")": -1}
    documents = [
        "aaaabbaabaabababbaababababaaabbbaabbbbabaaaabaaaabbbbaabbbabaaaaabb)))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))",
        "zbbzab)b))a)zbza)aaa)))bbzabz)bb))aab)a)))bbbbazbz)az)z)bbb)zz)z)b)az)azzb)z))abzbab)))a)zbzbbza)zbaz)a)azzba)zz)bbbzbaa)a))abzb)baa)a)zba)))aa)bz))az)azzbab)zb)zz)bzaazzz)abz)a)z)bbb)za))))))zaza)a)zaa)a)aa))b))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))",
    ]
    for cache_bytes in (0, 4096, 1 << 27):
        engine = Sift(cache_bytes=cache_bytes)
        keys = [engine.add(pattern) for pattern in asked]
        for text in documents:
            document = RecordedEvents([codes[tag] for tag in text])
            tree = Tree(document.events)
            right = [key for key, pattern in zip(keys, asked, strict=True) if Evaluation(pattern, tree).matches()]
            assert engine.match(document).tolist() == right
