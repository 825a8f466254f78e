"""Generated subscriptions are XPath, keep to their parameters, and are distinct as patterns when asked to be."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from xsift.errors import WorkloadError
from xsift.workload.documents import DocumentGenerator, DocumentParameters
from xsift.workload.dtd import read_dtd, shipped_dtds
from xsift.workload.figures import lxml_matcher, match_rate, measure_subscriptions
from xsift.workload.subscriptions import SubscriptionGenerator, SubscriptionParameters
from xsift.xpath import Compiler, Symbols


def made(number: int = 1000, **parameters: Any) -> list[str]:
    return list(SubscriptionGenerator(SubscriptionParameters(number=number, **parameters)))


def keys(texts: list[str], ordered: bool = False) -> list[bytes]:
    """The keys of their patterns: each must be one pattern, exactly."""
    compiler = Compiler(Symbols())
    found = []
    for text in texts:
        compiled = compiler.compile(text, ordered=ordered)
        assert compiled.exact, text
        assert len(compiled.keys) == 1, text
        found.append(compiled.keys[0])
    return found


@pytest.mark.parametrize("name", shipped_dtds())
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"wildcard_odds": 0.0, "descendant_odds": 0.0, "name_skew": 1.0},
        {"nested_paths": 2, "nesting": 2, "conditions": 2, "range_odds": 0.5, "value_skew": 1.0},
        {"nested_paths": 2, "ordered": True},
    ],
)
def test_they_are_xpath(name: str, parameters: dict[str, Any]) -> None:
    texts = made(dtd=name, **parameters)
    assert len(texts) == 1000
    for text in texts:
        etree.XPath(text)
    keys(texts, parameters.get("ordered", False))


@settings(max_examples=20, derandomize=True, deadline=None)
@given(
    dtd=st.sampled_from(["book", "auction", "nitf"]),
    depth=st.integers(4, 8),
    nested=st.integers(0, 3),
    nesting=st.integers(1, 3),
    conditions=st.integers(0, 2),
    values=st.sampled_from([2, 100]),
    ordered=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_distinct_means_distinct_as_patterns(
    dtd: str, depth: int, nested: int, nesting: int, conditions: int, values: int, ordered: bool, seed: int
) -> None:
    """The distinct ones are the same walks as the others, without those whose pattern came before: our cheap keys
    tell apart exactly what the compiler's keys tell apart."""
    parameters = {
        "dtd": dtd,
        "maximum_depth": depth,
        "nested_paths": nested,
        "nesting": nesting,
        "conditions": conditions,
        "attribute_values": values,
        "text_values": values,
        "ordered": ordered,
        "seed": seed,
    }
    texts = made(250, **parameters)
    expected: dict[bytes, str] = {}
    for key, text in zip(keys(texts, ordered), texts, strict=True):
        expected.setdefault(key, text)
    assert made(len(expected), distinct=True, **parameters) == list(expected.values())


def test_walks_follow_the_dtd() -> None:
    dtd = read_dtd("nitf")
    for text in made(wildcard_odds=0.0, descendant_odds=0.0):
        names = text[1:].split("/")
        assert names[0] == "nitf"
        for parent, child in pairwise(names):
            assert child in dtd.elements[parent].children


def test_walks_end_at_the_depth_or_at_a_childless_element() -> None:
    dtd = read_dtd("nitf")
    for text in made(wildcard_odds=0.0, descendant_odds=0.0, maximum_depth=4):
        names = text[1:].split("/")
        assert len(names) == 4 or not dtd.elements[names[-1]].children


def test_depths() -> None:
    texts = made(maximum_depth=9, minimum_depth=4, nested_paths=2, nested_depth=2)
    for text in texts:
        assert 4 <= measure_subscriptions([text]).steps <= 9
        for branch in re.findall(r"\[([^]]*)\]", text):
            assert 1 <= measure_subscriptions([f"/{branch}"]).steps <= 2


def test_odds() -> None:
    texts = made(20_000, wildcard_odds=0.3, descendant_odds=0.0)
    steps = sum(text.count("/") for text in texts)
    assert 0.29 < sum(text.count("*") for text in texts) / steps < 0.31
    assert not any("//" in text for text in texts)
    texts = made(20_000, wildcard_odds=0.0, descendant_odds=0.25)
    assert 0.24 < sum(text.startswith("//") for text in texts) / len(texts) < 0.26
    assert not any("*" in text for text in made(descendant_odds=1.0, wildcard_odds=0.0))


def test_a_descendant_axis_moves_behind_wildcards() -> None:
    assert not any("//*" in text for text in made(20_000, wildcard_odds=0.5, descendant_odds=0.5))


def test_skew_prefers_what_is_declared_first() -> None:
    def first_share(skew: float) -> float:
        texts = made(5_000, dtd="nitf", wildcard_odds=0, descendant_odds=0, name_skew=skew)
        counted = Counter(text.split("/")[2] for text in texts)
        return counted["head"] / len(texts)

    assert 0.48 < first_share(0.0) < 0.52
    assert 0.64 < first_share(1.0) < 0.69


def test_conditions() -> None:
    texts = made(conditions=3, attribute_values=7, text_values=5, range_odds=0.5)
    operators: Counter[str] = Counter()
    for text in texts:
        found = re.findall(r'\[(@[\w.-]+|text\(\))(<=|>=|=|<|>)("?)([\w-]+)"?\]', text)
        assert len(found) == 3, text
        for target, operator, quote, value in found:
            operators[operator] += 1
            if quote:
                assert operator == "="
            else:
                assert 1 <= int(value) <= (5 if target == "text()" else 7)
    assert set(operators) == {"=", "<", "<=", ">", ">="}
    assert all("text()" in text for text in made(100, conditions=1, condition_targets="texts"))
    assert all("[@" in text for text in made(100, conditions=1, condition_targets="attributes"))


def test_conditions_have_the_documents_values() -> None:
    """What holds in documents is asked for: with few values most conditions on a common attribute hold somewhere."""
    documents = list(DocumentGenerator(DocumentParameters(dtd="psd", number=30, attribute_values=3, text_values=3)))
    texts = made(300, dtd="psd", conditions=1, attribute_values=3, text_values=3)
    assert match_rate(texts, documents) > 0.3


def test_nested_paths() -> None:
    for text in made(nested_paths=3):
        assert text.count("[") == 3
        assert not re.search(r"\[[^]]*\[", text)
    assert any(re.search(r"\[[^]]*\[", text) for text in made(nested_paths=3, nesting=2))
    assert not any(re.search(r"\[[^]]*\[[^]]*\[", text) for text in made(nested_paths=3, nesting=2))


def test_branches_differ_from_the_path() -> None:
    for text in made(nested_paths=1, wildcard_odds=0.0, descendant_odds=0.0):
        branch, path = re.findall(r"\[([\w.-]+)[^]]*\]/([\w.-]+)", text)[0]
        assert branch != path


def test_ordered_branches_are_in_the_order_of_the_dtd() -> None:
    dtd = read_dtd("psd")
    texts = made(dtd="psd", nested_paths=2, ordered=True, wildcard_odds=0.0, descendant_odds=0.0, maximum_depth=3)
    checked = 0
    for text in texts:
        found = re.fullmatch(r"/ProteinDatabase/ProteinEntry\[([\w-]+)[^]]*\]\[([\w-]+)[^]]*\]/([\w-]+).*", text)
        if found:
            places = [dtd.elements["ProteinEntry"].children.index(name) for name in found.groups()]
            assert places == sorted(places)
            checked += 1
    assert checked > 100


def test_duplicates() -> None:
    counted = Counter(made(1000, duplicates=8))
    assert len(counted) == 125
    assert set(counted.values()) == {8}
    assert len(made(1001, duplicates=8)) == 1001


def test_reproducible_and_a_prefix_of_more() -> None:
    for parameters in ({}, {"nested_paths": 2, "conditions": 1, "distinct": True}):
        assert made(500, seed=3, **parameters) == made(2000, seed=3, **parameters)[:500]
        assert made(500, seed=3, **parameters) != made(500, seed=4, **parameters)


@pytest.mark.parametrize(
    ("parameters", "digest"),
    [
        ({}, "913c20e6dd4fee57"),
        ({"dtd": "auction", "name_skew": 0.8, "distinct": True}, "de70fed1a073d2c0"),
        ({"nested_paths": 2, "conditions": 2, "range_odds": 0.3, "value_skew": 1.0}, "17fcd19cb93397dd"),
        ({"dtd": "treebank", "maximum_depth": 10, "nested_paths": 3, "ordered": True}, "ae6d3b99e6453ff6"),
    ],
)
def test_texts_stay_the_same(parameters: dict[str, Any], digest: str) -> None:
    """A change of these digests changes every workload that people have made: it belongs in the change log."""
    assert hashlib.sha256("\n".join(made(**parameters)).encode()).hexdigest()[:16] == digest


@pytest.mark.parametrize("selectivity", [0.0, 0.05, 0.3])
def test_selectivity(selectivity: float) -> None:
    sample = list(DocumentGenerator(DocumentParameters(number=20, size_bytes=4_000)))
    parameters = SubscriptionParameters(number=300, selectivity=selectivity, nested_paths=1, distinct=True)
    texts = list(SubscriptionGenerator(parameters, sample=sample, matcher=lxml_matcher))
    assert len(set(texts)) == 300
    assert abs(match_rate(texts, sample) - selectivity) < 0.01


def test_selectivity_out_of_reach() -> None:
    parameters = SubscriptionParameters(number=10, selectivity=1.0)
    with pytest.raises(WorkloadError) as caught:
        list(SubscriptionGenerator(parameters, sample=[b"<other/>"], matcher=lambda texts, _: [0] * len(texts)))
    assert caught.value.code == "selectivity-out-of-reach"
    with pytest.raises(WorkloadError) as caught:
        SubscriptionGenerator(parameters)
    assert caught.value.code == "selectivity-needs-sample"


def test_too_few_distinct_says_how_many() -> None:
    with pytest.raises(WorkloadError) as caught:
        made(10_000, dtd="book", maximum_depth=3, distinct=True)
    assert caught.value.code == "too-few-distinct"
    found = int(re.findall(r"Only ([\d,]+) distinct", caught.value.message)[0].replace(",", ""))
    assert len(set(made(found, dtd="book", maximum_depth=3, distinct=True))) == found


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("<!ELEMENT r (a)><!ELEMENT a EMPTY>", {"nested_paths": 1}),
        ("<!ELEMENT r (a)><!ELEMENT a EMPTY>", {"conditions": 1}),
        ("<!ELEMENT r (a)><!ELEMENT a EMPTY>", {"minimum_depth": 3}),
        ("<!ELEMENT r EMPTY><!ATTLIST r k (x) #IMPLIED>", {"conditions": 2}),
    ],
)
def test_impossible(tmp_path: Path, text: str, parameters: dict[str, Any]) -> None:
    path = tmp_path / "test.dtd"
    path.write_text(text)
    with pytest.raises(WorkloadError) as caught:
        made(10, dtd=str(path), **parameters)
    assert caught.value.code == "no-such-subscription"


def test_smallest_dtd(tmp_path: Path) -> None:
    path = tmp_path / "test.dtd"
    path.write_text("<!ELEMENT r EMPTY>")
    assert set(made(100, dtd=str(path))) == {"/r", "//r", "/*"}
    assert set(made(100, dtd=str(path), name_skew=1.0)) == {"/r", "//r", "/*"}


@pytest.mark.parametrize(
    ("parameters", "code"),
    [
        ({"maximum_depth": 0}, "parameter-out-of-range"),
        ({"minimum_depth": 7}, "parameter-out-of-range"),
        ({"wildcard_odds": -0.1}, "parameter-out-of-range"),
        ({"descendant_odds": 2}, "parameter-out-of-range"),
        ({"duplicates": 0}, "parameter-out-of-range"),
        ({"conditions": 1.5}, "parameter-not-whole"),
        ({"selectivity": 1.5}, "parameter-out-of-range"),
        ({"condition_targets": "positions"}, "parameter-unknown"),
        ({"dtd": "nowhere"}, "dtd-not-found"),
    ],
)
def test_bad_parameters(parameters: dict[str, Any], code: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        made(**parameters)
    assert caught.value.code == code
    assert caught.value.hint


def test_a_generator_can_be_iterated_again() -> None:
    generator = SubscriptionGenerator(SubscriptionParameters(number=100, distinct=True))
    first, draws = list(generator), generator.draws
    assert list(generator) == first
    assert generator.draws == draws
    assert len(generator) == 100


def test_none_at_all() -> None:
    assert made(0) == made(0, duplicates=3) == []
