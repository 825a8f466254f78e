"""The language of claims: what it says of numbers, and what it refuses."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xsift.experiments.claims import Check
from xsift.experiments.errors import ExperimentError
from xsift.experiments.rows import NotMeasured, Number, Row, Setting

SETTING = Setting("match_seconds", [10, 100, 1000], ["A", "B", "short", "none"])
NUMBERS = {
    ("match_seconds", "A"): {0: 1.0, 1: 2.0, 2: 4.0},
    ("match_seconds", "B"): {0: 2.0, 1: 8.0, 2: 32.0},
    ("match_seconds", "short"): {0: 1.5, 1: 3.0},
    ("memory_bytes", "A"): {0: 5.0, 1: 50.0, 2: 500.0},
    ("memory.nfa", "A"): {0: 7.0, 1: 6.0, 2: 7.0},
}


def numbers(measure: str, label: str) -> dict[int, float]:
    return NUMBERS.get((measure, label), {})


def holds(text: str, setting: Setting = SETTING) -> bool:
    return Check(text, setting).holds(numbers)


TRUE = [
    'always(y("A") < y("B"))',
    'y("A", 1000) <= 0.30 * y("B", 1_000)',
    'y("A", first) == 1 and y("A", last) == 4',
    'growth(y("A")) == 4 and growth(y("B")) == 16',
    'not growth(y("A")) > growth(y("B"))',
    '0.95 < exponent(memory_bytes("A")) < 1.05',
    'rising(y("A")) and falling(-y("A"))',
    'not rising(memory.nfa("A")) and rising(memory.nfa("A"), 0.2)',
    'flat(memory.nfa("A"), 0.2) and not flat(memory.nfa("A"), 0.1)',
    'peak(y("A")) == 1000',
    'ever(y("A") >= 4) and not always(y("A") >= 4)',
    'share(y("A") >= 2) > 0.66',
    'always(where(x >= 100, y("A") >= 2))',
    'always(y("A") < y("short"))',  # compared at the two points that both have
    'largest(y("A")) == 4 and smallest(y("A")) == 1 and first_of(y("A")) == 1 and last_of(y("A")) == 4',
    'mean(y("B")) == 14',
    'last_of(scaleup(y("A"))) == 1.5 and first_of(scaleup(y("A"))) == 1',
    'always(scaleup(y("A")) < scaleup(y("B")))',
    'always(0.1 <= ratio(y("A"), y("B")) <= 0.5)',
    'always(not y("A") > y("B"))',
    'always(y("A") < y("B") and y("B") > 1)',
    'y("A", 10) ** 2 - 1 == 0 or 1 > 2',
    'always(1 < 2 < y("B") + 1)',
    'largest(where(y("A") < 4, x)) == 100',
    'always(y("A") < lowest_other("A")) and first_of(lowest_other("A")) == 1.5 and last_of(lowest_other("A")) == 32',
    'always(y("B") >= highest_other("B"))',
    'always(y("A")\n   < y("B"))',
]


@pytest.mark.parametrize("text", TRUE)
def test_true(text: str) -> None:
    assert holds(text)
    assert not holds(f"not ({text})")


REFUSED = [
    ('__import__("os")', "there is no '__import__'"),
    ("y.__class__", "not of the language"),
    ('y("A").real', "not of the language"),
    ("[1]", "not of the language"),
    ('(lambda: 1)("A")', "not of the language"),
    ('{"A": 1}["A"]', "not of the language"),
    ("first", "not of the language"),
    ('y("A") is 1', "not of the language"),
    ('always(row=y("A") > 1)', "not of the language"),
    ('"A" < "B"', "not of the language"),
    ('y("C") > 1', "no series is called 'C'"),
    ("y(1) > 1", "label in quotes"),
    ("y() > 1", "takes a label"),
    ('lowest_other("A", 10) > 1', "takes a label"),
    ('lowest_other("C") > 1', "no series is called 'C'"),
    ('y("A", 11) > 1', "the axis has no 11"),
    ('y("A", True) > 1', "the axis has no True"),
    ('yy("A") > 1', "there is no 'yy'"),
    ('match_second("A") > 1', "did you mean 'match_seconds'"),
    ('growth(y("A"), 2) > 1', "takes 1 arguments"),
    ('y("A") <', "invalid syntax"),
    ("1" + "0" * 400 + " > 1", "too large"),
    ("1 +" * 900 + "1 > 0", "characters"),
    ("not " * 60 + "1 > 0", "too deeply"),
    ("(" * 300 + "1" + ")" * 300, ""),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_refused_when_it_is_read(text: str, message: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        Check(text, SETTING, "here")
    assert caught.value.code == "bad-check"
    assert str(caught.value).startswith("here")
    assert message in str(caught.value)


WRONG_KIND = [
    ('y("A") < y("B")', "always"),
    ("1 + 1", "gives a number"),
    ('always(y("A"))', "no comparison of rows"),
    ("growth(3) > 1", "is no row"),
    ('rising(y("A"), y("B"))', "no single number"),
    ("always(1 < 2)", "no comparison of rows"),
    ("(1 < 2) + 1 > 0", "true or false, not a number"),
    ('not y("A")', "`not` takes"),
    ('1 < 2 and y("A") < 3', "all of numbers or all of rows"),
    ("where(x > 10, 3) > 1", "is no row"),
    ("10.0 ** 400 > 1", "math range error"),
]


@pytest.mark.parametrize(("text", "message"), WRONG_KIND)
def test_refused_when_it_is_evaluated(text: str, message: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        holds(text)
    assert message in str(caught.value)


NOT_MEASURED = [
    ('y("none", 10) > 1', "match_seconds of 'none' was not measured"),
    ('y("short", 1000) > 1', "not measured at 1,000"),
    ('always(build_seconds("A") > 1)', "build_seconds of 'A'"),
    ('always(where(x > 100, y("short")) > 1)', "no measured point"),
    ('1 / (y("A", 10) - 1) > 0', "divides by zero"),
    ('always(where(x > 100, y("A")) < y("short"))', "no point in common"),
]


@pytest.mark.parametrize(("text", "message"), NOT_MEASURED)
def test_not_measured(text: str, message: str) -> None:
    with pytest.raises(NotMeasured) as caught:
        holds(text)
    assert message in str(caught.value)


def test_axes_of_names_are_numbered() -> None:
    setting = Setting("match_seconds", ["nitf", "psd", "book"], ["A"])
    assert holds('y("A", "psd") == 2 and largest(x) == 2', setting)
    with pytest.raises(ExperimentError, match="the axis has no 'xmark'"):
        Check('y("A", "xmark") == 2', setting)


def test_evidence_is_the_sides_of_the_comparison_and_their_ratio() -> None:
    evidence = Check('y("A", last) <= 0.3 * y("B", last)', SETTING).evidence(numbers)
    assert evidence == [
        ('y("A", last)', Number(4.0, "s")),
        ('y("B", last)', Number(32.0, "s")),
        ("ratio", Number(0.125)),
    ]


def test_evidence_without_a_second_side() -> None:
    assert Check('rising(y("A"))', SETTING).evidence(numbers) == [('y("A")', Row({0: 1.0, 1: 2.0, 2: 4.0}, "s"))]
    (ratio,) = Check('always(0.1 <= y("A") / y("B") <= 1)', SETTING).evidence(numbers)
    assert ratio == ('y("A") / y("B")', Row({0: 0.5, 1: 0.25, 2: 0.125}))


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.text(alphabet="yx()\"AB ,.<>=+-*/10alwsgroth'[]{}:@_", max_size=40))
def test_any_text_is_a_check_or_an_error_of_ours(text: str) -> None:
    with contextlib.suppress(ExperimentError, NotMeasured):
        Check(text, SETTING).holds(numbers)
