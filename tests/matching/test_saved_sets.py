"""A set that is saved and loaded is the same set: it can be read, changed, and makes the same matchers."""

from __future__ import annotations

from pathlib import Path

import pytest

import xsift

DOCUMENT = "<a xmlns:m='urn:m'><b x='1'>t</b><b/><m:c/></a>"


def make() -> xsift.Subscriptions:
    made = xsift.Subscriptions(namespaces={"n": "urn:n"})
    rows = [("paths", "//a/b"), ("gone", "//b"), ("twig", "/a[b[@x = 1]]"), ("never", "/z"), ("counting", "//b[2]")]
    made.add_many(rows)
    made.add("ordered", "/a[b]/b", ordered=True)
    made.add("own", "//m:c", namespaces={"m": "urn:m"})
    made.add("theirs", "//n:c")
    made.remove("gone")
    return made


def test_a_saved_set(tmp_path: Path) -> None:
    made = make()
    made.save(tmp_path / "set.xsift")
    loaded = xsift.Subscriptions.load(tmp_path / "set.xsift")
    assert list(loaded) == list(made)
    assert loaded.table() == made.table()
    assert loaded.namespaces == {"n": "urn:n"}
    assert loaded.matcher().match(DOCUMENT) == made.matcher().match(DOCUMENT)
    for them in (made, loaded):
        them.add("late", "//n:late | //b/@x")
        them.add("gone", "//b")
        them.add("own2", "//m:c", namespaces={"m": "urn:m"})
        them.remove("twig")
        with pytest.raises(xsift.SubscriptionError, match="already"):
            them.add("own", "//b")
    assert loaded.matcher().match(DOCUMENT) == made.matcher().match(DOCUMENT)
    assert loaded.matcher("xtrie").match(DOCUMENT) == made.matcher("xtrie").match(DOCUMENT)
    assert [loaded.explain(id) for id in loaded] == [made.explain(id) for id in made]
    assert "twig" not in xsift.Subscriptions.load(tmp_path / "set.xsift").matcher().match("<a/>")
    assert "twig" in xsift.Subscriptions.load(tmp_path / "set.xsift")


def test_an_empty_set_and_one_that_refuses(tmp_path: Path) -> None:
    xsift.Subscriptions(residuals="refuse").save(tmp_path / "set")
    loaded = xsift.Subscriptions.load(tmp_path / "set")
    assert len(loaded) == 0
    assert loaded.matcher().match("<a/>") == []
    with pytest.raises(xsift.XPathError):
        loaded.add("counting", "//b[2]")
    loaded.add("a", "//a")
    assert loaded.matcher().match("<a/>") == ["a"]


def test_a_saved_matcher_has_its_set(tmp_path: Path) -> None:
    made = make()
    made.matcher("yfilter").save(tmp_path / "matcher.xsift")
    loaded = xsift.Subscriptions.load(tmp_path / "matcher.xsift")
    assert loaded.table() == made.table()
    assert loaded.matcher().match(DOCUMENT) == made.matcher().match(DOCUMENT)
    made.save(tmp_path / "set.xsift")
    with pytest.raises(xsift.StorageError, match=r"holds a set.*Subscriptions\.load"):
        xsift.Matcher.load(tmp_path / "set.xsift")


def test_what_is_no_saved_set(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"no set")
    with pytest.raises(xsift.StorageError):
        xsift.Subscriptions.load(tmp_path / "file")
    with pytest.raises(xsift.StorageError):
        xsift.Subscriptions.load(tmp_path / "none")
    make().save(tmp_path / "set")
    content = (tmp_path / "set").read_bytes()
    for cut in range(0, len(content), 997):
        (tmp_path / "cut").write_bytes(content[:cut])
        with pytest.raises(xsift.StorageError):
            xsift.Subscriptions.load(tmp_path / "cut")
