"""How sets, matchers and results show themselves, in a terminal and in a notebook: short, and harmless."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

import xsift

HOSTILE = "<img src=x onerror=alert(1)>\x1b[31m\n\"'&"
NEWS = b"<nitf><body><hl1>Spark 5</hl1><p>One.</p><p>Two.</p></body></nitf>"


def people() -> xsift.Subscriptions:
    subscriptions = xsift.Subscriptions()
    subscriptions.add("alice", "//hl1[contains(., 'Spark')]")
    subscriptions.add("bob", "/nitf/body/p[3]")
    return subscriptions


def many(number: int = 1200) -> xsift.Subscriptions:
    subscriptions = xsift.Subscriptions()
    subscriptions.add_many([(f"s{each}", "//p") for each in range(number)])
    return subscriptions


class Tags(HTMLParser):
    """Which elements and attributes there are, and the text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.open.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_subscriptions() -> None:
    assert repr(people()) == "<Subscriptions: 2: 'alice', 'bob'>"
    assert str(people()) == "alice  //hl1[contains(., 'Spark')]\nbob    /nitf/body/p[3]"
    assert repr(xsift.Subscriptions()) == "<Subscriptions: 0>"
    assert str(xsift.Subscriptions()) == "no subscriptions"
    assert "//hl1[contains(., &#x27;Spark&#x27;)]" in people()._repr_html_()


def test_of_many_the_first_are_shown() -> None:
    assert repr(many()).endswith("'s8', 's9', … 1,190 more>")
    assert str(many()).splitlines()[-1] == "… 1,190 more"
    assert "1,190 more" in many()._repr_html_()
    [match] = many().matcher().match_many([NEWS])
    assert repr(match).startswith("Match(['s0', 's1', ")
    assert repr(match).endswith("'s9', … 1,190 more])")
    assert "1,190 more" in match._repr_html_()
    assert len(match._repr_html_()) < 2000


def test_removed_ones_are_not_shown() -> None:
    subscriptions = people()
    subscriptions.remove("alice")
    assert repr(subscriptions) == "<Subscriptions: 1: 'bob'>"
    assert "alice" not in subscriptions._repr_html_()


def test_matcher() -> None:
    matcher = people().matcher("xtrie", probing="eager")
    assert repr(matcher) == "<Matcher of 2 subscriptions, engine xtrie>"
    lines = str(matcher).splitlines()
    assert lines[0].split() == ["subscriptions", "2"]
    assert "xtrie with probing='eager'" in lines[1]
    assert "xtrie with probing=&#x27;eager&#x27;" in matcher._repr_html_()
    assert "no further than needed" in str(people().matcher(validate=False))


def test_match() -> None:
    whole, broken = people().matcher().match_many([xsift.Document(NEWS, label="one.xml"), b"<nitf>"])
    assert repr(whole) == "Match(['alice'], label='one.xml')"
    assert "one.xml: 1 match" in whole._repr_html_()
    assert "✗" in broken._repr_html_()
    assert "truncated-document" in broken._repr_html_()


def test_match_with_failures() -> None:
    subscriptions = people()
    subscriptions.add("dear", "//p[preceding::p[string(count(following::*) div 7) = '']]")
    matcher = subscriptions.matcher(limits=xsift.Limits(steps=100))
    [match] = matcher.match_many([b"<nitf>" + b"<p/>" * 2000 + b"</nitf>"])
    assert "dear" in match.failures
    assert "1 failure" in match._repr_html_()
    assert "too-many-steps" in match._repr_html_()


def test_explanation_is_readable_where_it_is_asked_for() -> None:
    matcher = people().matcher()
    found, missed = matcher.explain(NEWS, "alice"), matcher.explain(NEWS, "bob")
    assert repr(found) == str(found)
    assert str(found).splitlines()[1] == "matches"
    assert "✓" in found._repr_html_()
    assert "/nitf/body/hl1" in found._repr_html_()
    assert "does not match" in missed._repr_html_()
    assert "evaluated: " in missed._repr_html_()


@pytest.mark.parametrize("what", ["subscriptions", "matcher", "match", "broken", "explanation"])
def test_strangers_texts_are_harmless(what: str) -> None:
    subscriptions = xsift.Subscriptions()
    subscriptions.add(HOSTILE, "//p[. = '<script>alert(1)</script>\x85']")
    matcher = subscriptions.matcher()
    page = b"<p>&lt;script>alert(1)&lt;/script>\xc2\x85</p>"
    match, broken = matcher.match_many([xsift.Document(page, label=HOSTILE), xsift.Document(b"<", label=HOSTILE)])
    assert len(match) == 1
    shown = {
        "subscriptions": subscriptions,
        "matcher": matcher,
        "match": match,
        "broken": broken,
        "explanation": matcher.explain(page, HOSTILE),
    }[what]
    for text in (repr(shown), str(shown)):
        assert "\x1b" not in text
        assert "\x85" not in text
    found = Tags(shown._repr_html_())  # type: ignore[attr-defined]
    assert found.tags <= {"div", "p", "b", "span", "table", "thead", "tbody", "tr", "th", "td"}
    assert found.attributes <= {"style"}
    assert found.open == []
    if what != "matcher":
        assert "<img src=x onerror=alert(1)>" in found.text


def test_long_texts_are_cut() -> None:
    subscriptions = xsift.Subscriptions()
    subscriptions.add("i" * 4000, "//p[" + " or ".join("@x" for _ in range(900)) + "]")
    for text in (repr(subscriptions), str(subscriptions), subscriptions._repr_html_()):
        assert len(text) < 1000
        assert "…" in text
