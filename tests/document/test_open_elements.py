"""Errors about tags say which ones, and where the first was opened."""

from __future__ import annotations

from pathlib import Path

import pytest

import xsift


@pytest.fixture
def matcher() -> xsift.Matcher:
    subscriptions = xsift.Subscriptions()
    subscriptions.add("a", "//a")
    return subscriptions.matcher()


CASES = [
    ("<a>\n <b></a>", "the end tag </a> does not match <b> (opened in line 2, column 2)"),
    ("<a>\n <ä><c/>\n</x></ä></a>", "the end tag </x> does not match <ä> (opened in line 2, column 2)"),
    ("<a><!-- <b> --><![CDATA[<c>]]></d></a>", "the end tag </d> does not match <a> (opened in line 1, column 1)"),
    (
        "<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;<n:b xmlns:n='u'></n:c></a>",
        "does not match <n:b> (opened in line 1, column 37)",
    ),
    ("<a><b>", "the document ends inside of <b> (opened in line 1, column 4)"),
    ("<a><b></b>text", "the document ends inside of <a> (opened in line 1, column 1)"),
]


@pytest.mark.parametrize(("text", "message"), CASES)
def test_both_tags_are_named(matcher: xsift.Matcher, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.xml").write_bytes(text.encode())
    for source in (text, text.encode(), tmp_path / "a.xml"):
        with pytest.raises(xsift.DocumentError) as caught:
            matcher.match(source)
        assert message in caught.value.message


def test_a_document_in_another_encoding(matcher: xsift.Matcher) -> None:
    with pytest.raises(xsift.DocumentError) as caught:
        matcher.match("<?xml version='1.0' encoding='iso-8859-1'?>\n<a><ä></a>".encode("iso-8859-1"))
    assert caught.value.message == "the end tag </a> does not match <ä> (opened in line 2, column 4)"


def test_where_it_cannot_be_known_the_error_stays(matcher: xsift.Matcher) -> None:
    with pytest.raises(xsift.DocumentError) as caught:
        matcher.match("<?xml version='1.0' encoding='utf-16'?><a><b></a>".encode("utf-16"))
    assert (caught.value.code, caught.value.message) == ("tag-mismatch", "an end tag does not match its start tag")


def test_a_document_with_very_many_elements_is_not_searched(matcher: xsift.Matcher) -> None:
    with pytest.raises(xsift.DocumentError) as caught:
        matcher.match(b"<a>" + b"<b/>" * 300_000 + b"</c>")
    assert caught.value.message == "an end tag does not match its start tag"
