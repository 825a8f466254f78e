"""What people write who think of another language gets XPath 1.0's way in the hint."""

from __future__ import annotations

import pytest

import xsift


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("//a[b && c]", "`and`"),
        ("//a[b = 1 AND c]", "`and`"),
        ("//a[b || c]", "`or`"),
        ("//a[b OR c]", "`or`"),
        ("//a[b == 1]", "single ="),
        ("//a[string(.)=='ä']", "single ="),
        ("//a[b <> 1]", "!="),
        ("//a[!b]", "not("),
        ("//a[b eq 1]", "writes ="),
        ("//a[@x ge 3]", "writes >="),
        ("//a[lower-case(b) = 'x']", "translate("),
        ("//ä[ends-with(b, 'x')]", "string-length"),
        ("//a[matches(., 'x')]", "contains()"),
        ("//*:x", "*[local-name() = 'x']"),
        ("/a/*:b-c[d]", "*[local-name() = 'b-c']"),
        ("//a[. = “x”]", "straight quotes"),
        ("//Q{urn:n}a", "bind a prefix"),
        ("//n:a", "-n PREFIX=URI"),
    ],
)
def test_hints(expression: str, words: str) -> None:
    with pytest.raises(xsift.XPathError) as caught:
        xsift.Subscriptions().add("a", expression)
    assert words in caught.value.hint


def test_other_errors_keep_their_hint() -> None:
    with pytest.raises(xsift.XPathError) as caught:
        xsift.Subscriptions().add("a", "//a[b c]")
    assert "an operator is missing" in caught.value.hint
