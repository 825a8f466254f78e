"""What one input may cost: each limit is run into, by counts and sizes; it fails one subscription alone."""

from __future__ import annotations

import io
import random
import signal
import threading
from collections.abc import Iterator
from types import FrameType

import pyarrow as pa
import pytest

import xsift
from tests.language import NAMESPACES, ExpressionMaker, random_xml
from xsift.document import DocumentIndex, DocumentTree, Reader
from xsift.engines.pattern_evaluation import PatternEvaluation
from xsift.errors import SubscriptionError, XsiftError
from xsift.xpath import patterns
from xsift.xpath.symbols import Symbols

NESTED = b"<a>" * 60 + b"</a>" * 60


def matcher_of(*expressions: str, engine: str = "auto", ordered: bool = False, **limits: int) -> xsift.Matcher:
    subscriptions = xsift.Subscriptions()
    for number, expression in enumerate(expressions):
        subscriptions.add(f"s{number}", expression, ordered=ordered)
    return subscriptions.matcher(engine, limits=xsift.Limits(**limits))


def codes(failures: dict[str, XsiftError]) -> dict[str, str]:
    return {id: error.code for id, error in failures.items()}


# Steps.


def test_too_many_tuples_are_a_failure_of_one_subscription() -> None:
    matcher = matcher_of("//a//a//a//a", "/a/a")
    failures: dict[str, XsiftError] = {}
    assert matcher.tuples(NESTED, failures=failures) == {"s1": [(1, 2)]}
    assert codes(failures) == {"s0": "too-many-steps"}
    assert "Limits(steps=" in str(failures["s0"])


def test_tuples_are_made_one_at_a_time() -> None:
    matcher = matcher_of("//a//a//a//a")
    found = matcher.tuples(NESTED, limit=3)
    assert found == {"s0": [(1, 2, 3, 4), (1, 2, 3, 5), (1, 2, 3, 6)]}
    assert matcher.tuples(b"<a>" * 6 + b"</a>" * 6)["s0"][-1] == (3, 4, 5, 6)
    assert matcher.tuples(NESTED, limit=0) == {"s0": []}


def test_select_and_explain_have_a_budget_too() -> None:
    many = b"<r>" + b"<a><b/></a>" * 1000 + b"</r>"
    expression = "//a" + "[b]" + "".join(f"[.//b[not(@x{n})]]" for n in range(80))
    matcher = matcher_of(expression, "//a[b]", steps=1)
    failures: dict[str, XsiftError] = {}
    assert list(matcher.select(many, failures=failures)) == ["s1"]
    assert codes(failures) == {"s0": "too-many-steps"}
    assert len(matcher.explain(many, "s1").nodes) == 1000
    with pytest.raises(SubscriptionError) as caught:
        matcher.explain(many, "s0")
    assert caught.value.code == "too-many-steps"
    assert len(matcher_of(expression, steps=10**9).select(many)["s0"]) == 1000


@pytest.mark.parametrize("engine", ["sift", "yfilter"])  # which knows the order, and which has it evaluated
def test_the_steps_of_an_ordered_twig(engine: str) -> None:
    symbols = Symbols()
    pattern = patterns("//a[b]/c", symbols, ordered=True)[0]
    costs = []
    for number in (1000, 2000, 4000):
        xml = b"<a>" + b"<b/>" + b"<c/>" * number + b"</a>"
        tree = DocumentTree(Reader(DocumentIndex(symbols)).read(xml))
        evaluation = PatternEvaluation(pattern, tree, 10**9)
        before = evaluation.steps_left
        assert len(evaluation.select(1 if pattern.steps[1][2] == symbols.element("c") else 2)) == number
        spent = 10**9 + 50 * len(tree) - evaluation.steps_left
        costs.append(spent)
        assert before > evaluation.steps_left
        assert len(matcher_of("//a[b]/c", engine=engine, ordered=True).select(xml)["s0"]) == number
    assert costs[2] < 4.4 * costs[0]


# Results.


def test_paths_are_bounded() -> None:
    name = b"n" * 900
    xml = b"<%s>" % name * 200 + b"<leaf/>" * 50 + b"</%s>" % name * 200
    matcher = matcher_of("//leaf", "/*", result_bytes=1 << 20)
    failures: dict[str, XsiftError] = {}
    assert list(matcher.select(xml, failures=failures)) in (["s1"], [])
    assert set(codes(failures).values()) == {"result-too-large"}
    assert len(matcher_of("//leaf").select(xml)["s0"]) == 50
    with pytest.raises(SubscriptionError, match="result_bytes"):
        matcher.explain(xml, "s0")


def test_an_element_of_very_many_texts() -> None:
    """Telling which of its texts, comments and instructions each is takes one pass, not one for each of them."""
    number = 100_000
    xml = b"<a>" + b"x<!--c--><?p?>" * number + b"<?q?></a>"
    selected = matcher_of("//text()", "//a/comment()", "//processing-instruction()").select(xml)
    texts, comments, instructions = ([node.path for node in selected[f"s{i}"]] for i in range(3))
    assert texts == [f"/a/text()[{i}]" for i in range(1, number + 1)]
    assert comments == [f"/a/comment()[{i}]" for i in range(1, number + 1)]
    paths = [f"/a/processing-instruction('p')[{i}]" for i in range(1, number + 1)]
    assert instructions == [*paths, "/a/processing-instruction('q')"]


def test_results_of_all_subscriptions_are_bounded_together() -> None:
    matcher = matcher_of(*["//a"] * 10, result_bytes=100_000)
    failures: dict[str, XsiftError] = {}
    nodes = matcher.select(b"<r>" + b"<a/>" * 100 + b"</r>", failures=failures)
    assert 2 <= len(nodes) < 10
    assert len(nodes) + len(failures) == 10
    failures = {}
    tuples = matcher_of("//a//a", "//a//a", result_bytes=300_000).tuples(NESTED, failures=failures)
    assert list(tuples) == ["s0"]
    assert codes(failures) == {"s1": "result-too-large"}


# Conditions that many elements hold.

BROAD = ["[@x!='{}'][zz]", "[not(@x{})]", "[@x<{}]", "[not(contains(., 'y{}'))][zz]", "[string(@x{})='']"]


@pytest.mark.parametrize("predicate", BROAD)
@pytest.mark.parametrize("engine", ["sift", "yfilter", "reference"])
def test_conditions_that_nearly_all_elements_hold(predicate: str, engine: str) -> None:
    number = 400 if engine != "reference" else 250
    subscriptions = xsift.Subscriptions()
    for i in range(number):
        subscriptions.add(f"broad{i}", "//b" + predicate.format(i + 10))
    subscriptions.add("exact", "//b[@x='7']/c")
    subscriptions.add("gone", "//b[not(@y)]")
    subscriptions.remove("gone")
    xml = b"<a>" + b"<b x='7' y=''><c/></b>" * number + b"<b x='7'/></a>"
    without = subscriptions.matcher(engine).match(xml)
    matcher = subscriptions.matcher(engine, limits=xsift.Limits(conditions=1000))
    failures: dict[str, XsiftError] = {}
    with_limit = matcher.match(xml, failures=failures)
    assert set(with_limit) | set(failures) >= set(without)
    assert set(with_limit) <= set(without)
    assert "exact" in with_limit
    assert set(codes(failures).values()) <= {"too-many-conditions"}
    assert not any(id in with_limit for id in failures)
    if "zz" in predicate:
        assert len(failures) == number
    # Whatever the door.
    (match,) = matcher.match_many([xml])
    assert (match.ids, codes(dict(match.failures))) == (with_limit, codes(failures))
    assert match.evaluated == []
    found = matcher.match_array(pa.array([xml, b"<a/>"], pa.binary()))
    assert found.ids.to_pylist() == [with_limit, []]
    assert codes(dict(found.failures.get(0, {}))) == codes(failures)
    assert matcher.match(io.BytesIO(xml), failures={}) == with_limit
    selected: dict[str, XsiftError] = {}
    nodes = matcher.select(xml, failures=selected)
    assert "exact" in nodes
    assert set(selected) >= set(failures)
    # The next document is none the worse.
    assert matcher.match(b"<a><b x='7'><c/></b></a>") == subscriptions.matcher(engine).match(
        b"<a><b x='7'><c/></b></a>"
    )


@pytest.mark.parametrize("engine", ["sift", "afilter"])
def test_who_asks_for_too_much_fails_alone(engine: str) -> None:
    subscriptions = xsift.Subscriptions()
    for id, xpath in (("first", "//b"), ("large", "//a//a//a"), ("last", "//b"), ("other", "/a/a")):
        subscriptions.add(id, xpath)
    xml = b"<a>" * 60 + b"<b>" + b"x" * 1000 + b"</b>" + b"</a>" * 60
    matcher = subscriptions.matcher(engine, limits=xsift.Limits(result_bytes=40_000))
    failures: dict[str, XsiftError] = {}
    assert list(matcher.tuples(xml, failures=failures)) == ["first", "last", "other"]
    assert codes(failures) == {"large": "result-too-large"}
    assert list(matcher.select(xml)) == list(subscriptions)
    failures = {}
    assert list(matcher.select(xml, fragments=True, failures=failures)) == ["first", "last", "other"]
    assert codes(failures) == {"large": "result-too-large"}


def test_what_was_evaluated_beside_what_could_not_be_decided() -> None:
    subscriptions = xsift.Subscriptions()
    subscriptions.add("second", "//b[2]")
    for number in range(300):
        subscriptions.add(f"broad{number}", f"//b[@x != '{number}']/c[1]")
    matcher = subscriptions.matcher(limits=xsift.Limits(conditions=1000))
    (match,) = matcher.match_many([b"<a>" + b"<b x='q'/>" * 100 + b"</a>"])
    assert match.ids == match.evaluated == ["second"]
    assert set(codes(dict(match.failures)).values()) == {"too-many-conditions"}


def test_what_is_delivered_within_the_limit_is_right() -> None:
    """Narrowed or not: what matches matches, and all that may be missing is named."""
    chance = random.Random(14)
    narrowed = 0
    for _ in range(200):
        maker = ExpressionMaker(chance, beyond=0.1)
        subscriptions = xsift.Subscriptions(namespaces=NAMESPACES)
        rows = [(f"s{number}", maker.expression(), chance.random() < 0.2) for number in range(12)]
        rows += [(f"broad{number}", f"//*[not(@q{number})]/zz", False) for number in range(150)]
        subscriptions.add_many(rows, errors="collect")
        xml = random_xml(chance).encode()
        engine = chance.choice(["sift", "yfilter", "xtrie"])
        right = subscriptions.matcher(engine).match(xml)
        failures: dict[str, XsiftError] = {}
        matcher = subscriptions.matcher(engine, limits=xsift.Limits(conditions=chance.randrange(1, 400)))
        found = matcher.match(xml, failures=failures)
        narrowed += bool(failures)
        assert set(found) <= set(right)
        assert set(right) - set(found) <= set(failures)
        assert not set(found) & set(failures)
    assert narrowed > 100


def test_a_subscription_with_900_inequalities() -> None:
    matcher = matcher_of("//a" + "".join(f"[@x!='{n}']" for n in range(900)), "//a", conditions=100_000)
    failures: dict[str, XsiftError] = {}
    assert list(matcher.select(b"<r>" + b"<a x=''/>" * 1000 + b"</r>", failures=failures)) == ["s1"]
    assert codes(failures) == {"s0": "too-many-conditions"}
    with pytest.raises(SubscriptionError) as caught:
        matcher.explain(b"<r>" + b"<a x=''/>" * 1000 + b"</r>", "s0")
    assert caught.value.code == "too-many-conditions"


# Arrow.


def test_more_matches_than_32_bits_can_count(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = matcher_of("//a", "//b")
    documents = pa.array([b"<a><b/></a>", None, b"<c/>", b"<a/>", b"<"], pa.binary())
    small = matcher.match_array(documents)
    monkeypatch.setattr("xsift.matching.arrow_arrays.MOST_SMALL", 2)
    large = matcher.match_array(documents)
    assert (small.ids.type, large.ids.type) == (pa.list_(pa.large_string()), pa.large_list(pa.large_string()))
    assert small.ids.to_pylist() == large.ids.to_pylist() == [["s0", "s1"], None, [], ["s0"], None]


# Signals.


class Alarm(Exception):
    pass


@pytest.fixture
def _alarm() -> Iterator[None]:
    def handler(_: int, __: FrameType | None) -> None:
        raise Alarm

    before = signal.signal(signal.SIGALRM, handler)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("_alarm")
@pytest.mark.parametrize("call", ["match", "match_array", "select", "expat"])
def test_signals_are_looked_at_while_a_document_is_read(call: str) -> None:
    matcher = matcher_of("//p[@x='1']", "//q")
    xml = b"<r>" + b"<p x='2'>some text</p>" * 1_500_000 + b"</r>"
    if call == "expat":
        xml = b"<?xml version='1.0' encoding='iso-8859-1'?>" + xml
    before = xsift.document_statistics()

    def interrupted() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        if call == "match_array":
            matcher.match_array(pa.array([xml], pa.large_binary()))
        else:
            (matcher.select if call == "select" else matcher.match)(xml)

    with pytest.raises(Alarm):
        interrupted()
    after = xsift.document_statistics()
    assert after.scanned_documents == before.scanned_documents, "the document was read to its end"
    assert matcher.match(b"<r><q/></r>") == ["s1"]


def test_other_threads_do_not_look_for_signals() -> None:
    matcher = matcher_of("//q")
    found: list[list[str]] = []
    thread = threading.Thread(target=lambda: found.append(matcher.match(b"<r>" + b"<p/>" * 300_000 + b"<q/></r>")))
    thread.start()
    thread.join()
    assert found == [["s0"]]
