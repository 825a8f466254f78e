"""Subscriptions and Matcher as a user calls them."""

from __future__ import annotations

import io
import pickle
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import xsift

NEWS = b"<nitf><head id='7'/><body><hl1>Spark</hl1><p>one</p><p>two</p></body></nitf>"


def made(**subscriptions: str) -> xsift.Subscriptions:
    made = xsift.Subscriptions()
    made.add_many(list(subscriptions.items()))
    return made


def test_ids_come_in_the_order_added() -> None:
    subscriptions = made(z="//p", a="/nitf", m="//hl1", never="//x")
    assert subscriptions.matcher().match(NEWS) == ["z", "a", "m"]
    assert list(subscriptions) == ["z", "a", "m", "never"]
    assert len(subscriptions) == 4
    assert "z" in subscriptions
    assert "q" not in subscriptions
    assert 3 not in subscriptions
    assert subscriptions.xpath("m") == "//hl1"


@pytest.mark.parametrize("most_bytes", [0, 200, 1 << 20])
def test_strings_of_ids_are_kept_as_far_as_there_is_room(most_bytes: int) -> None:
    subscriptions = made(**{f"id{number}": "//p" for number in range(60)})
    subscriptions.remove("id7")
    subscriptions.add("id7", "//p")
    subscriptions._rows.most_id_string_bytes = most_bytes
    matcher = subscriptions.matcher()
    first, second = matcher.match(NEWS), matcher.match(NEWS)
    assert first == second == [f"id{number}" for number in range(60) if number != 7] + ["id7"]
    kept = sum(one is other for one, other in zip(first, second, strict=True))
    assert kept == {0: 0, 200: 2, 1 << 20: 60}[most_bytes]


def test_a_matcher_is_a_snapshot() -> None:
    subscriptions = made(a="//p", b="//hl1")
    before = subscriptions.matcher()
    subscriptions.remove("a")
    subscriptions.add("c", "/nitf")
    after = subscriptions.matcher()
    assert before.match(NEWS) == ["a", "b"]
    assert after.match(NEWS) == ["b", "c"]
    assert len(before) == len(after) == 2
    with pytest.raises(xsift.SubscriptionError, match="no subscription 'a'"):
        after.explain(NEWS, "a")


def test_an_id_can_be_used_again_after_removal() -> None:
    subscriptions = made(a="//p", b="//hl1")
    with pytest.raises(xsift.SubscriptionError, match="already") as caught:
        subscriptions.add("a", "//x")
    assert caught.value.code == "duplicate-id"
    subscriptions.remove("a")
    subscriptions.add("a", "/nitf")
    assert subscriptions.matcher().match(NEWS) == ["b", "a"]
    with pytest.raises(xsift.SubscriptionError, match="no subscription 'x'"):
        subscriptions.remove("x")


def test_many_small_changes_keep_few_segments() -> None:
    subscriptions = xsift.Subscriptions()
    for number in range(300):
        subscriptions.add(str(number), f"//p[text()='{number}']" if number % 3 else "//p")
        matcher = subscriptions.matcher("yfilter")
    assert len(matcher._plan.segments) < 12
    assert matcher.match("<p>7</p>") == [str(n) for n in range(300) if n % 3 == 0 or n == 7]
    for number in range(290):
        subscriptions.remove(str(number))
        matcher = subscriptions.matcher("yfilter")
    assert matcher.match("<p>298</p>") == ["291", "294", "297", "298"]


def test_errors_are_collected_or_raised() -> None:
    rows = [("good", "//p"), ("bad", "//p["), ("fine", "//hl1"), ("good", "//again")]
    subscriptions = xsift.Subscriptions()
    failed = subscriptions.add_many(rows, errors="collect")
    assert [(id, error.code) for id, error in failed] == [("bad", "predicate-not-closed"), ("good", "duplicate-id")]
    assert subscriptions.matcher().match(NEWS) == ["good", "fine"]
    with pytest.raises(xsift.XPathError, match="subscription 'bad'") as caught:
        xsift.Subscriptions().add_many(rows)
    assert caught.value.id == "bad"
    assert pickle.loads(pickle.dumps(caught.value)).column == 5


@pytest.mark.parametrize(
    "rows",
    [
        pa.table({"id": ["a", "b"], "xpath": ["//p", "/nitf[head]/body"], "ordered": [False, True]}),
        pa.table({"id": pa.array(["a", "b"], pa.large_string()), "xpath": ["//p", "/nitf[head]/body"]}),
        pa.concat_tables([pa.table({"id": ["x", "a", "b"], "xpath": ["[", "//p", "//body"]}).slice(1)]),
        [("a", "//p"), ("b", "/nitf[head]/body", True)],
    ],
)
def test_tables_and_rows(rows: object) -> None:
    subscriptions = xsift.Subscriptions()
    assert subscriptions.add_many(rows) == []
    assert subscriptions.matcher().match(NEWS) == ["a", "b"]


def test_bad_tables_say_what_they_lack() -> None:
    with pytest.raises(xsift.SubscriptionError, match=r"no column 'xpath'.*'id', 'path'"):
        xsift.Subscriptions().add_many(pa.table({"id": ["a"], "path": ["//p"]}))
    with pytest.raises(xsift.SubscriptionError, match="row 1 has no id or no xpath"):
        xsift.Subscriptions().add_many(pa.table({"id": ["a"], "xpath": pa.array([None], pa.string())}))
    with pytest.raises(xsift.SubscriptionError, match="row 1"):
        xsift.Subscriptions().add_many([("a",)])
    with pytest.raises(ValueError, match="collect"):
        xsift.Subscriptions().add_many([], errors="ignore")  # type: ignore[arg-type]


def test_equal_interests_cost_one_pattern() -> None:
    subscriptions = xsift.Subscriptions()
    subscriptions.add_many([(str(n), "/a[b][c]" if n % 2 else "/a[c]/b") for n in range(1000)])
    matcher = subscriptions.matcher()
    assert len(matcher._plan.segments[0].engine) == 1
    assert len(matcher.match("<a><b/><c/></a>")) == 1000


def test_documents_of_every_kind(tmp_path: Path) -> None:
    subscriptions = made(a="//p[.='é']", counted="count(//p) = 1")
    matcher = subscriptions.matcher()
    text = '<?xml version="1.0" encoding="ISO-8859-1"?><r><p>é</p></r>'
    (tmp_path / "d.xml").write_bytes(text.encode("latin-1"))
    sources: list[xsift.document.DocumentSource] = [
        text,
        text.encode("latin-1"),
        bytearray(text.encode("latin-1")),
        memoryview(text.encode("latin-1")),
        tmp_path / "d.xml",
        io.BytesIO(text.encode("latin-1")),
        "<r><p>é</p></r>".encode("utf-16"),
    ]
    for source in sources:
        assert matcher.match(source) == ["a", "counted"]
    sources[5] = io.BytesIO(text.encode("latin-1"))
    assert [match.ids for match in matcher.match_many(sources)] == [["a", "counted"]] * len(sources)
    assert matcher.match("<r><p>é</p></r>".encode("latin-1"), encoding="latin-1") == ["a", "counted"]


def test_a_broken_document_is_one_error_among_results() -> None:
    matcher = made(a="//p", first="//p[1]").matcher()
    documents = [NEWS, b"<a>", b"", NEWS, b"\xff", b"<a><b></a>", NEWS]
    for threads in (1, 3):
        found = list(matcher.match_many(documents * 40, threads=threads))
        assert [match.ids for match in found] == [["a", "first"], [], [], ["a", "first"], [], [], ["a", "first"]] * 40
        assert [match.error is None for match in found] == [True, False, False, True, False, False, True] * 40
    with pytest.raises(xsift.DocumentError) as caught:
        matcher.match(b"<a>\n<b></a>")
    assert (caught.value.line, caught.value.offset) == (2, 9)


def test_arrow_arrays() -> None:
    matcher = made(a="//p", b="//x", c="//hl1[1]").matcher()
    for kind in (pa.binary(), pa.large_binary(), pa.string(), pa.large_string()):
        values = [NEWS, None, b"<x/>", b"<", NEWS]
        decoded = [
            value if value is None or pa.types.is_binary(kind) or pa.types.is_large_binary(kind) else value.decode()
            for value in values
        ]
        lists, errors = matcher.match_array(pa.array([*decoded, decoded[2]], kind).slice(1))
        assert lists.to_pylist() == [None, ["b"], None, ["a", "c"], ["b"]]
        assert list(errors) == [2]
    pieces, _ = matcher.match_array(pa.chunked_array([[NEWS], [b"<a/>", NEWS]]))
    assert pieces.to_pylist() == [["a", "c"], [], ["a", "c"]]
    again = pickle.loads(pickle.dumps(matcher.match_array(pa.array([NEWS, b"<a>"]))))
    assert (again.ids.to_pylist(), list(again.errors), again.failures) == ([["a", "c"], None], [1], {})
    empty, _ = matcher.match_array(pa.array([], pa.binary()))
    assert empty.to_pylist() == []


def test_namespaces_of_a_table_made_of_objects() -> None:
    """Arrow makes a struct of them, in which every row has the prefixes of all."""
    rows = [{"id": prefix, "xpath": f"//{prefix}:b", "namespaces": {prefix: "urn:n"}} for prefix in "nmp"]
    subscriptions = xsift.Subscriptions()
    subscriptions.add_many(pa.Table.from_pylist([*rows, {"id": "plain", "xpath": "//b"}]))
    assert subscriptions.matcher().match(b'<b xmlns="urn:n"/>') == ["n", "m", "p"]


def test_saving_and_loading(tmp_path: Path) -> None:
    subscriptions = xsift.Subscriptions(namespaces={"n": "urn:n"})
    rows = [
        ("a", "//p[.='one']"),
        ("gone", "//p"),
        ("c", "//p[2]"),
        ("d", "//n:x"),
        ("e", "/nitf[head]/body", True),
        ("ü", "/"),
    ]
    subscriptions.add_many(rows)
    subscriptions.remove("gone")
    matcher = subscriptions.matcher("yfilter")
    subscriptions.add("later", "//p")
    matcher.save(tmp_path / "it.xsift")
    loaded = xsift.Matcher.load(tmp_path / "it.xsift")
    assert loaded.engine == "yfilter"
    assert loaded.match(NEWS) == matcher.match(NEWS) == ["a", "c", "e", "ü"]
    assert loaded.select(NEWS) == matcher.select(NEWS)
    assert len(loaded) == 5


def test_damaged_files_are_errors(tmp_path: Path) -> None:
    path = tmp_path / "it.xsift"
    made(a="//p[@x=1]", b="//hl1/b").matcher().save(path)
    whole = path.read_bytes()
    for content in (b"", b"nonsense" * 100, whole[:-1], whole[: len(whole) // 2], whole[:9]):
        path.write_bytes(content)
        with pytest.raises(xsift.StorageError):
            xsift.Matcher.load(path)
    with pytest.raises(xsift.StorageError, match="cannot be read"):
        xsift.Matcher.load(tmp_path / "missing")
    rng = np.random.default_rng(1)
    for _ in range(200):
        flipped = bytearray(whole)
        flipped[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        path.write_bytes(flipped)
        with pytest.raises(xsift.StorageError):
            xsift.Matcher.load(path)


def test_threads_share_a_matcher_while_the_set_changes() -> None:
    subscriptions = made(a="//p", b="//p[text()='two']", c="//p[2]")
    matcher = subscriptions.matcher()
    failures: list[object] = []

    def work() -> None:
        for _ in range(300):
            if (found := matcher.match(NEWS)) != ["a", "b", "c"]:
                failures.append(found)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(2000):
        subscriptions.add(f"n{number}", f"//q{number}[@x={number}]")
        if number % 100 == 0:
            subscriptions.matcher()
    for thread in threads:
        thread.join()
    assert not failures


def test_residuals_can_be_refused() -> None:
    subscriptions = xsift.Subscriptions(residuals="refuse")
    subscriptions.add("a", "//p[@x]")
    with pytest.raises(xsift.XPathError) as caught:
        subscriptions.add("b", "//p[1]")
    assert caught.value.code == "not-indexable"
    assert list(subscriptions) == ["a"]
    failed = subscriptions.add_many([("c", "//p[last()]"), ("d", "//q")], errors="collect")
    assert [id for id, _ in failed] == ["c"]
    assert list(subscriptions) == ["a", "d"]


def test_engines_and_options_are_checked() -> None:
    subscriptions = made(a="//p")
    with pytest.raises(xsift.EngineError, match="yfilter"):
        subscriptions.matcher("nonsense")
    with pytest.raises(xsift.EngineError, match="no option 'speed'"):
        subscriptions.matcher("yfilter", speed=9)
    with pytest.raises(xsift.EngineError, match="cache_bytes"):
        subscriptions.matcher("sift", cache_bytes=-1)
    assert subscriptions.matcher().engine == "sift"
    assert subscriptions.matcher().reason


def test_selected_nodes_are_cut_out_exactly() -> None:
    matcher = made(
        p="//p", id="/nitf/head/@id", text="//p/text()", any="//head/@*", comment="//body/node()"
    ).matcher()
    selected = matcher.select(NEWS)
    assert [NEWS[node.start : node.end] for node in selected["p"]] == [b"<p>one</p>", b"<p>two</p>"]
    assert [node.path for node in selected["p"]] == ["/nitf/body/p[1]", "/nitf/body/p[2]"]
    assert [node.path for node in selected["id"]] == ["/nitf/head/@id"]
    assert [node.path for node in selected["any"]] == ["/nitf/head/@id"]
    assert [node.path for node in selected["text"]] == ["/nitf/body/p[1]/text()", "/nitf/body/p[2]/text()"]
    assert [node.number for node in selected["comment"]] == [4, 5, 6]


def test_tuples_can_be_limited() -> None:
    deep = "<a>" * 12 + "</a>" * 12
    matcher = made(triple="//a//a//a", verified="//a[1]").matcher()
    assert len(matcher.tuples(deep)["triple"]) == 220
    assert len(matcher.tuples(deep, limit=7)["triple"]) == 7
    assert "verified" not in matcher.tuples(deep)


def test_limits_are_options() -> None:
    matcher = made(a="//a").matcher(limits=xsift.Limits(depth=3))
    assert matcher.match("<a><a><a/></a></a>") == ["a"]
    with pytest.raises(xsift.DocumentError) as caught:
        matcher.match("<a><a><a><a/></a></a></a>")
    assert caught.value.code == "too-deep"


LONG = b"<p/>" * 100_000  # more than is read at a time
BROKEN_AFTER = b"<news>" + LONG + b"<unclosed></news>"


@pytest.mark.parametrize("expression", ["/news", "/report//p", "/report[a]/b"])
def test_what_is_left_is_checked_once_all_is_decided(expression: str) -> None:
    subscriptions = xsift.Subscriptions()
    subscriptions.add("alice", expression)
    with pytest.raises(xsift.DocumentError, match="tag-mismatch"):
        subscriptions.matcher().match(BROKEN_AFTER)


@pytest.mark.parametrize("expression", ["/news", "/report//p", "/report[a]/b"])
def test_what_is_left_is_not_read_without_validation(expression: str) -> None:
    subscriptions = xsift.Subscriptions()
    subscriptions.add("alice", expression)
    matcher = subscriptions.matcher(validate=False)
    expected = ["alice"] if expression == "/news" else []
    for _ in range(2):
        assert matcher.match(BROKEN_AFTER) == expected
        assert matcher.match(b"<report><a/><b><p/></b></report>") == (["alice"] if not expected else [])
    assert [match.ids for match in matcher.match_many([io.BytesIO(BROKEN_AFTER), BROKEN_AFTER])] == [expected] * 2


def test_what_is_not_decided_is_read_without_validation_too() -> None:
    subscriptions = xsift.Subscriptions()
    subscriptions.add("alice", "/news")
    subscriptions.add("bob", "//unclosed")
    with pytest.raises(xsift.DocumentError):
        subscriptions.matcher(validate=False).match(BROKEN_AFTER)


@pytest.mark.parametrize("engine", [engine.name for engine in xsift.list_engines()])
def test_an_empty_set_matches_nothing(engine: str) -> None:
    matcher = xsift.Subscriptions().matcher(engine)
    assert matcher.match(NEWS) == []
    assert [match.ids for match in matcher.match_many([NEWS, b"<a", NEWS])] == [[], [], []]
