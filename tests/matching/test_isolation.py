"""Nobody pays for another: what cannot be decided is a failure of that subscription alone, and a matcher answers for
its own set, whatever happens to the Subscriptions."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import xsift
from tests.language import NAMESPACES, ExpressionMaker, random_xml

# Documents that expat takes and libxml2, by itself, does not.
ODD = [
    b"<a xml:id='x'><b xml:id='x'/></a>",
    b"<a xmlns:b='b c'><b/></a>",
    b"<a xmlns='http://[bad'><b/></a>",
    "<a xmlns:b='urn:\u00fc'><b/></a>".encode(),
    b"<!DOCTYPE a [<!ATTLIST a b ID #IMPLIED c (x|y) 'z'>]><a><b/></a>",
]


@pytest.mark.parametrize("xml", ODD)
def test_a_residual_does_not_take_the_exact_matches_away(xml: bytes) -> None:
    subscriptions = xsift.Subscriptions()
    subscriptions.add("exact", "/*")
    alone = subscriptions.matcher().match(xml)
    subscriptions.add("verified", "/*[1]")
    matcher = subscriptions.matcher()
    assert matcher.match(xml) == [*alone, "verified"] == ["exact", "verified"]
    assert list(matcher.select(xml)) == ["exact", "verified"]
    assert [match.ids for match in matcher.match_many([xml])] == [["exact", "verified"]]


@pytest.mark.parametrize(
    ("expression", "xml", "paths"),
    [
        ("b/@*", b"<r><a><b x='1'/></a></r>", ["/r/a/b/@x"]),
        ("//b/@*", b"<r><a><b x='1'/></a></r>", ["/r/a/b/@x"]),
        ("b | c/@*", b"<r><a><b x='1'/></a><c y='2'/></r>", ["/r/a/b", "/r/c/@y"]),
        ("b/@n:*", b"<r xmlns:m='urn:n'><a><b x='1' m:z='3'/></a></r>", ["/r/a/b/@m:z"]),
        ("b/attribute::node()", b"<r><a><b x='1'/></a></r>", ["/r/a/b/@x"]),
        ("b/comment()", b"<r><a><b><!--c--></b></a></r>", ["/r/a/b/comment()"]),
    ],
)
def test_select_loses_no_nodes(expression: str, xml: bytes, paths: list[str]) -> None:
    subscriptions = xsift.Subscriptions(namespaces=NAMESPACES)
    subscriptions.add("it", expression)
    matcher = subscriptions.matcher()
    assert matcher.match(xml) == ["it"]
    assert [node.path for node in matcher.select(xml)["it"]] == paths


def answers(matcher: xsift.Matcher, xml: bytes, ids: list[str]) -> list[Any]:
    """All that a matcher says."""
    explained = {id: str(matcher.explain(xml, id)) for id in ids}
    return [
        matcher.ids.to_pylist(),
        len(matcher),
        matcher.match(xml),
        matcher.select(xml),
        matcher.tuples(xml, limit=50),
        matcher.match_array(pa.array([xml], pa.binary()))[0].to_pylist(),
        explained,
        {id: str(matcher.report(id)) for id in ids},
    ]


@pytest.mark.parametrize("engine", ["sift", "yfilter", "xtrie", "reference"])
def test_a_matcher_answers_for_its_own_set(engine: str, tmp_path: Path) -> None:
    rng = random.Random(engine)
    for round in range(8):
        subscriptions = xsift.Subscriptions(namespaces=NAMESPACES)
        maker = ExpressionMaker(rng, beyond=0.3)
        for number in range(12):
            subscriptions.add(f"s{number}", maker.expression())
        subscriptions.remove("s3")
        matcher = subscriptions.matcher(engine)
        ids = matcher.ids.to_pylist()
        assert ids == [f"s{number}" for number in range(12) if number != 3]
        xml = random_xml(rng).encode()
        before = answers(matcher, xml, ids)
        for id in ids:
            subscriptions.remove(id)
            subscriptions.add(id, maker.expression())
            subscriptions.add(f"{id} {round}", maker.expression(), namespaces={"other": "urn:other"})
            subscriptions.matcher(engine)
            assert answers(matcher, xml, ids) == before
        matcher.save(tmp_path / "it.xsift")
        loaded = xsift.Matcher.load(tmp_path / "it.xsift")
        assert answers(loaded, xml, ids) == before
        assert answers(pickle.loads(pickle.dumps(matcher)), xml, ids) == before
        with pytest.raises(xsift.SubscriptionError, match="in this matcher"):
            loaded.explain(xml, f"s0 {round}")


def test_no_expression_is_parsed_after_it_was_added(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    subscriptions = xsift.Subscriptions(namespaces=NAMESPACES)
    rows = [("a", "//a[b]/@x"), ("b", "/a/b", True), ("c", "//n:a[b]/c", True), ("d", "//b[1]"), ("e", "a | b/@*")]
    subscriptions.add_many(rows)

    def forbidden(*_: Any, **__: Any) -> None:
        raise AssertionError("an expression was compiled again")

    monkeypatch.setattr("xsift.matching.subscriptions.Compiler", forbidden)
    subscriptions._compilers.clear()
    xml = b"<a x='1'><b y='2'/></a>"
    for engine in ("sift", "yfilter"):  # which knows no order: rows are indexed without it
        matcher = subscriptions.matcher(engine)
        matcher.save(tmp_path / "it.xsift")
        for it in (matcher, xsift.Matcher.load(tmp_path / "it.xsift")):
            assert it.match(xml) == ["a", "b", "d", "e"]
            assert len(it.select(xml)["e"]) == 2
            for id in it.ids.to_pylist():
                it.explain(xml, id)
                it.report(id)
    assert subscriptions.table().num_rows == 5
    subscriptions.explain("c")


def test_a_document_is_read_once_and_again_only_to_evaluate() -> None:
    subscriptions = xsift.Subscriptions()
    subscriptions.add("exact", "//b")
    xml = b"<a><b/><b/></a>"

    def readings(matcher: xsift.Matcher) -> int:
        before = xsift.document_statistics().scanned_documents
        assert matcher.select(xml)
        return xsift.document_statistics().scanned_documents - before

    assert readings(subscriptions.matcher()) == 1
    subscriptions.add("evaluated", "//b[2]")
    subscriptions.add("too", "//b[last()]/@*")
    assert readings(subscriptions.matcher()) <= 2


def test_namespaces_of_one_subscription() -> None:
    subscriptions = xsift.Subscriptions(namespaces={"n": "urn:n"})
    subscriptions.add("set", "//n:a")
    subscriptions.add("own", "//m:a[1]", namespaces={"m": "urn:m"})
    subscriptions.add("other", "//n:a", namespaces={"n": "urn:m"})
    with pytest.raises(xsift.XPathError, match='"m" is not bound'):
        subscriptions.add("unbound", "//m:a")
    table = pa.table(
        {
            "id": ["t1", "t2", "t3"],
            "xpath": ["//q:a", "//q:a/@q:x", "//n:a"],
            "namespaces": pa.array([[("q", "urn:m")], [("q", "urn:m")], None], pa.map_(pa.string(), pa.string())),
        }
    )
    assert subscriptions.add_many(table) == []
    matcher = subscriptions.matcher()
    assert matcher.match("<a xmlns='urn:n'/>") == ["set", "t3"]
    assert matcher.match("<a xmlns='urn:m'/>") == ["own", "other", "t1"]
    selected = matcher.select("<a xmlns='urn:m' xmlns:z='urn:m' z:x='1'/>")
    assert selected["t2"][0].path == "/*/@q:x"
    again = xsift.Subscriptions(namespaces={"n": "urn:n"})
    assert again.add_many(subscriptions.table()) == []
    assert again.matcher().match("<a xmlns='urn:m'/>") == ["own", "other", "t1"]
    assert again.table() == subscriptions.table()


def test_rows_that_are_none_are_errors_with_their_number() -> None:
    table = pa.table({"id": ["a", None, "c"], "xpath": ["//a", "//b", None]})
    subscriptions = xsift.Subscriptions()
    failed = subscriptions.add_many(table, errors="collect")
    assert [(id, error.code) for id, error in failed] == [("row 2", "missing-value"), ("row 3", "missing-value")]
    assert list(subscriptions) == ["a"]
    for rows in (["ab"], [b"ab"], [("a",)], [7]):
        with pytest.raises(xsift.SubscriptionError, match="row 1"):
            subscriptions.add_many(rows)
    with pytest.raises(xsift.SubscriptionError, match="id must be str"):
        subscriptions.add(7, "//a")  # type: ignore[arg-type]


# Three rows of which the second cannot be used, and the code of its error.
MIXED: dict[str, tuple[Any, str]] = {
    "no expression": ([("a", "//a"), ("b", None), ("c", "//c")], "bad-row"),
    "no row": ([("a", "//a"), "b", ("c", "//c")], "bad-row"),
    "an id with half of a surrogate pair": ([("a", "//a"), ("\ud800", "//b"), ("c", "//c")], "bad-id"),
    "an expression with half of one": ([("a", "//a"), ("b", "//\ud800"), ("c", "//c")], "bad-encoding"),
    "an expression that is none": ([("a", "//a"), ("b", "//"), ("c", "//c")], "step-missing"),
    "a null": (pa.table({"id": ["a", None, "c"], "xpath": ["//a", "//b", "//c"]}), "missing-value"),
    "a prefix for nothing": (
        pa.table(
            {
                "id": ["a", "b", "c"],
                "xpath": ["//a", "//b", "//c"],
                "namespaces": pa.array([None, [("p", "")], None], pa.map_(pa.string(), pa.string())),
            }
        ),
        "bad-namespace",
    ),
}


@pytest.mark.parametrize("kind", MIXED)
def test_a_row_that_cannot_be_used_is_one_error(kind: str) -> None:
    """All others are added, or, if it is raised, all before it."""
    rows, code = MIXED[kind]
    subscriptions = xsift.Subscriptions()
    ((_, error),) = subscriptions.add_many(rows, errors="collect")
    assert (error.code, error.row) == (code, 1)
    assert list(subscriptions) == ["a", "c"]
    subscriptions = xsift.Subscriptions()
    with pytest.raises(xsift.XsiftError) as caught:
        subscriptions.add_many(rows)
    assert (caught.value.code, caught.value.row) == (code, 1)
    assert list(subscriptions) == ["a"]


def test_the_first_error_is_raised_and_all_are_told_in_their_order() -> None:
    table = pa.table({"id": ["a", "b", None, "d"], "xpath": ["//a", "//", "//c", "//"]})
    with pytest.raises(xsift.XPathError, match="'b'"):
        xsift.Subscriptions().add_many(table)
    failed = xsift.Subscriptions().add_many(table, errors="collect")
    assert [(id, error.row) for id, error in failed] == [("b", 1), ("row 3", 2), ("d", 3)]


def test_columns_of_other_types() -> None:
    for column in (pa.array([None]), pa.array([0]), pa.array(["false"])):
        subscriptions = xsift.Subscriptions()
        assert subscriptions.add_many(pa.table({"id": ["a"], "xpath": ["//a"], "ordered": column})) == []
        assert subscriptions.table()["ordered"].to_pylist() == [False]
    wrong = {"ordered": ["perhaps"], "namespaces": ["n=urn:n"], "id": [["a"]], "xpath": pa.array([b"//\xff"])}
    for name, values in wrong.items():
        table = pa.table({"id": ["a"], "xpath": ["//a"]} | {name: values})
        with pytest.raises(xsift.SubscriptionError, match=f"{name}.*bad-column"):
            xsift.Subscriptions().add_many(table)
    twice = pa.table([["a"], ["b"], ["//a"]], names=["id", "id", "xpath"])
    with pytest.raises(xsift.SubscriptionError, match="several columns 'id'"):
        xsift.Subscriptions().add_many(twice)


def test_ids_are_bounded() -> None:
    subscriptions = xsift.Subscriptions()
    subscriptions.add("é" * 2048, "//a")
    with pytest.raises(xsift.SubscriptionError) as caught:
        subscriptions.add("é" * 2049, "//a")
    assert caught.value.code == "id-too-long"
    failed = subscriptions.add_many([("x" * 10_000, "//a"), ("b", "//a")], errors="collect")
    assert [error.code for _, error in failed] == ["id-too-long"]
    assert len(subscriptions) == 2


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("number", [0, 5, 16, 300])
def test_documents_before_their_source_fails_have_results(number: int, threads: int) -> None:
    subscriptions = xsift.Subscriptions()
    subscriptions.add("a", "//a")

    def documents() -> Iterator[bytes]:
        yield from [b"<a/>"] * number
        raise ConnectionError("gone")

    found: list[list[str]] = []
    with pytest.raises(ConnectionError, match="gone"):
        found.extend(match.ids for match in subscriptions.matcher().match_many(documents(), threads=threads))
    assert found == [["a"]] * number
