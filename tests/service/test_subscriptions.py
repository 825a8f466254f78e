"""Subscriptions by HTTP: put, listed, removed, imported, exported, checked."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from sqlalchemy import event
from starlette.requests import Request

import xsift
from tests.service.running import RunningServer
from xsift.service.api.routes import Call
from xsift.service.api.security import SEARCHES_OF_ONE, Gate
from xsift.service.api.subscription_list import list_subscriptions
from xsift.service.settings import Settings
from xsift.service.store import subscriptions as store
from xsift.service.store.database import Database
from xsift.service.store.keys import Caller
from xsift.service.store.subscribers import NewSubscribers


def ids_of(answer: httpx.Response) -> list[str]:
    return [item["id"] for item in answer.json()["items"]]


def test_put_get_replace_delete(http: httpx.Client, owner: str) -> None:
    wanted = {
        "xpath": "/n:a/b",
        "namespaces": {"n": "urn:n"},
        "labels": {"team": "red"},
        "metadata": {"price": 3, "nested": {"x": [1, 2]}},
        "deliver": "document",
        "subscriber": "bob",
    }
    made = http.put("/subscriptions/one", json=wanted)
    assert made.status_code == 201
    assert {name: made.json()[name] for name in wanted} == wanted
    assert made.json()["owner"] == owner
    again = http.put("/subscriptions/one", json=wanted)
    assert again.status_code == 200
    assert again.json()["version"] == made.json()["version"], "nothing changed, so there is no new version"
    changed = http.put("/subscriptions/one", json={"xpath": "//c", "ordered": True})
    assert changed.status_code == 200
    assert changed.json()["version"] > made.json()["version"]
    got = http.get("/subscriptions/one").json()
    assert (got["xpath"], got["ordered"], got["subscriber"], got["matches"]) == ("//c", True, owner, 0)
    history = http.get("/subscriptions/one/history").json()["items"]
    assert [state["xpath"] for state in history] == ["//c", "/n:a/b"]
    assert history[1]["removed"] == pytest.approx(history[0]["changed"], abs=0.01)
    assert http.delete("/subscriptions/one").status_code == 204
    gone = http.get("/subscriptions/one")
    assert (gone.status_code, gone.json()["code"]) == (404, "unknown-id")
    assert http.delete("/subscriptions/one").status_code == 404
    assert http.put("/subscriptions/one", json={"xpath": "//d"}).status_code == 201
    assert len(http.get("/subscriptions/one/history").json()["items"]) == 3


def test_what_was_answered_is_matched_by_the_next_document(client: xsift.Client) -> None:
    for number in range(20):
        client.add("changing", f"//x{number}")
        assert client.match(f"<a><x{number}/></a>") == ["changing"]
        assert client.publish(f"<a><x{number}/></a>", wait=True).matches
    client.remove("changing")
    assert client.match("<a><x19/></a>") == []


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"xpath": "//a["}, 422, "predicate-not-closed"),
        ({"xpath": "//n:a"}, 422, "unbound-prefix"),
        ({"xpath": ""}, 422, "bad-request"),
        ({"xpath": "//a", "ordered": "perhaps"}, 422, "bad-request"),
        ({"xpath": "//a", "colour": "red"}, 422, "bad-request"),
        ({"xpath": "//a", "deliver": "everything"}, 422, "bad-request"),
        ({"xpath": "//a", "subscriber": "a/b"}, 422, "bad-request"),
        ({"xpath": "//a", "labels": {"a": 1}}, 422, "bad-request"),
        ({}, 422, "bad-request"),
        ([], 422, "bad-request"),
        ("text", 422, "bad-request"),
    ],
)
def test_wrong_subscriptions(http: httpx.Client, body: object, status: int, code: str) -> None:
    answer = http.put("/subscriptions/wrong", json=body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/problem+json"
    assert http.get("/subscriptions/wrong").status_code == 404


def test_an_expression_that_is_wrong_is_told_with_its_column_and_hint(http: httpx.Client) -> None:
    problem = http.put("/subscriptions/wrong", json={"xpath": "//a[b"}).json()
    assert problem == {
        "status": 422,
        "code": "predicate-not-closed",
        "detail": "predicate is not closed",
        "hint": "add ]",
        "column": 6,
        "id": "wrong",
    }


@pytest.mark.parametrize("id", ["ä ö", "a b", "x" * 200, "50%", "a?b", "a#b", "'\"<>&", "日本"])
def test_ids_of_all_kinds(client: xsift.Client, id: str) -> None:
    client.add(id, "//a")
    assert client.get(id)["id"] == id
    assert id in client
    assert client.match("<a/>") == [id]
    client.remove(id)
    assert id not in client


@pytest.mark.parametrize("id", ["x" * 201, "a%0Ab", "%00", "%2E", "%2e%2e"])
def test_ids_that_cannot_be(http: httpx.Client, id: str) -> None:
    assert http.put(f"/subscriptions/{id}", json={"xpath": "//a"}).status_code == 422


def test_pages_and_filters(client: xsift.Client, http: httpx.Client) -> None:
    client.add_many(
        {
            "id": f"s{number:04}",
            "xpath": f"//a{number % 3}",
            "labels": {"kind": "even" if number % 2 == 0 else "odd", "odd name": 'a"b'},
            "subscriber": f"u{number % 5}",
        }
        for number in range(250)
    )
    seen: list[str] = []
    after = None
    while True:
        page = http.get("/subscriptions", params={"most": 70, **({"after": after} if after else {})}).json()
        seen += [item["id"] for item in page["items"]]
        after = page["next"]
        if after is None:
            break
    assert seen == [f"s{number:04}" for number in range(250)]
    assert list(client) == seen
    assert ids_of(http.get("/subscriptions", params={"prefix": "s000"})) == [f"s{n:04}" for n in range(10)]
    assert len(ids_of(http.get("/subscriptions", params={"label": "kind=odd", "most": 1000}))) == 125
    assert len(ids_of(http.get("/subscriptions", params={"subscriber": "u1", "most": 1000}))) == 50
    assert len(ids_of(http.get("/subscriptions", params={"contains": "//a1", "most": 1000}))) == 83
    both: dict[str, Any] = {"label": ["kind=odd"], "subscriber": "u1", "most": 1000}
    assert len(ids_of(http.get("/subscriptions", params=both))) == 25
    assert ids_of(http.get("/subscriptions", params={"prefix": "%"})) == []
    for wrong in ({"most": "x"}, {"most": 0}, {"after": "?"}, {"label": "novalue"}, {"format": "xml"}):
        assert http.get("/subscriptions", params=wrong).status_code == 422, wrong


def test_import_reports_what_was_refused_and_takes_the_rest(http: httpx.Client, client: xsift.Client) -> None:
    lines = [
        '{"id": "good", "xpath": "//a"}',
        '{"id": "bad", "xpath": "//a["}',
        "",
        "not json",
        '{"id": "no xpath"}',
        '{"id": "good too", "xpath": "//b", "namespaces": {"n": "urn:n"}}',
        '{"id": "unbound", "xpath": "//n:b"}',
        '{"id": "x/y", "xpath": "//b"}',
        '{"id": "good", "xpath": "//c"}',
    ]
    answer = http.post(
        "/subscriptions", content="\n".join(lines).encode(), headers={"content-type": "application/x-ndjson"}
    )
    report = answer.json()
    assert answer.status_code == 200
    assert (report["added"], report["replaced"], report["refused"]) == (2, 0, 5)
    codes = {error.get("id", error["line"]): error["code"] for error in report["errors"]}
    assert codes["bad"] == "predicate-not-closed"
    assert codes["unbound"] == "unbound-prefix"
    assert codes[4] == "bad-line"
    assert client.get("good")["xpath"] == "//c"
    assert sorted(client.match("<r><b/><c/></r>")) == ["good", "good too"]
    failed = client.add_many([("one", "//one"), ("two", "//two[")])
    assert [(id, type(error)) for id, error in failed] == [("two", xsift.XPathError)]


def test_export_is_what_import_takes(client: xsift.Client, http: httpx.Client) -> None:
    rows = [
        {
            "id": f"s{n}",
            "xpath": f"//a[@b={n}]",
            "metadata": {"n": n},
            "labels": {"l": str(n)},
            "deliver": "fragments",
        }
        for n in range(1500)
    ]
    assert client.add_many(rows) == []
    exported = http.get("/subscriptions", params={"format": "ndjson"})
    assert exported.headers["content-type"].startswith("application/x-ndjson")
    lines = [json.loads(line) for line in exported.text.splitlines()]
    assert {line["id"] for line in lines} == {row["id"] for row in rows}
    again = http.post(
        "/subscriptions", content=exported.content, headers={"content-type": "application/x-ndjson"}
    ).json()
    assert (again["added"], again["replaced"], again["unchanged"]) == (0, 0, 1500)


def test_an_import_that_ends_in_the_middle_says_what_it_stored(http: httpx.Client) -> None:
    lines = "".join(f'{{"id": "s{n}", "xpath": "//a"}}\n' for n in range(1500))
    headers = {"content-type": "application/x-ndjson", "content-encoding": "gzip"}
    told = http.post("/subscriptions", content=gzip.compress(lines.encode())[:-8], headers=headers)
    assert (told.status_code, told.json()["code"], told.json()["stored"]) == (400, "bad-encoding", 1000)
    [noted] = http.get("/audit").json()["items"]
    assert (noted["action"], noted["detail"]["added"]) == ("import-subscriptions", 1000)


def test_what_an_admin_imports_for_others_is_in_their_audit_log(http: httpx.Client, owner: str) -> None:
    lines = "".join(f'{{"owner": "{owner}-{n}", "id": "s", "xpath": "//a"}}\n' for n in range(2))
    http.post("/subscriptions", content=lines, headers={"content-type": "application/x-ndjson"}).raise_for_status()
    for number in range(2):
        [noted] = http.get("/audit", params={"owner": f"{owner}-{number}"}).json()["items"]
        assert (noted["action"], noted["detail"]["added"]) == ("import-subscriptions", 1)


def test_a_page_costs_the_same_wherever_it_is(tmp_path: Path) -> None:
    """The index leads to its first row: else an export takes the square of what there is."""
    asked: list[tuple[str, Any]] = []
    with contextlib.closing(Database(f"sqlite:///{tmp_path}/store.db")) as database:
        with database.engine.begin() as connection:
            wanted = [store.Subscription(id, "//a", "s") for id in "abc"]
            for owner in ("o", "p"):
                store.put_many(connection, owner, wanted, "test", NewSubscribers(10))
        with database.connect() as connection, connection.begin():
            event.listen(connection, "before_cursor_execute", lambda *told: asked.append((told[2], told[3])))
            filters = (store.Filter("o"), store.Filter())
            pages = [store.page(connection, filter, after=("o", "b")) for filter in filters]
            explained = [(f"EXPLAIN QUERY PLAN {text}", values) for text, values in asked]
            plans = [connection.exec_driver_sql(*question).all() for question in explained]
    assert [[f"{row.owner}{row.id}" for row in page] for page in pages] == [["oc"], ["oc", "pa", "pb", "pc"]]
    assert all("id>" in str(plan) or "(owner,id)>" in str(plan) for plan in plans), plans


def test_an_owner_never_has_all_threads_for_searches() -> None:
    """Each may look at all of his subscriptions, and others ask something meanwhile."""
    under_way, most = 0, 0

    async def run(question: Any) -> Any:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return [], None

    async def search() -> None:
        gate = Gate(Settings(), reads=None)  # type: ignore[arg-type]
        parts: Any = SimpleNamespace(reads=SimpleNamespace(run=run))
        caller = Caller("o", frozenset({"subscribe"}), "key")
        request = Request({"type": "http", "query_string": b"contains=x", "headers": []})
        calls = [Call(request, parts, gate, caller, contextlib.ExitStack()) for _ in range(20)]
        await asyncio.gather(*(list_subscriptions(call) for call in calls))

    asyncio.run(search())
    assert most == SEARCHES_OF_ONE


def test_an_import_of_something_else(http: httpx.Client) -> None:
    assert http.post("/subscriptions", json=[]).status_code == 415


def test_a_line_that_is_too_long_is_refused_alone(http: httpx.Client) -> None:
    lines = [b'{"id": "first", "xpath": "//a"}', b"x" * 300_000, b"", b'{"id": "last", "xpath": "//a"}']
    for content in (b"\n".join(lines), b"\n".join(lines) + b"\n"):
        told = http.post("/subscriptions", content=content, headers={"content-type": "application/x-ndjson"}).json()
        assert (told["added"] + told["unchanged"], told["refused"]) == (2, 1)
        assert [(error["line"], error["code"]) for error in told["errors"]] == [(2, "line-too-long")]


def test_validate_says_what_is_indexed(client: xsift.Client) -> None:
    whole = client.check("//a[b=1]")
    assert (whole["valid"], whole["exact"], whole["evaluated"], len(whole["indexed"])) == (True, True, "", 1)
    partly = client.check("//a[position()=2]/b")
    assert partly["valid"]
    assert not partly["exact"]
    assert "position()" in partly["evaluated"]
    wrong = client.check("//a[b")
    assert (wrong["valid"], wrong["error"]["code"], wrong["error"]["column"]) == (False, "predicate-not-closed", 6)
    assert client.check("//n:a", namespaces={"n": "urn:n"})["valid"]


def test_preview_says_what_would_have_been_caught(client: xsift.Client, http: httpx.Client, owner: str) -> None:
    published = client.publish_many([f"<a><n>{number}</n></a>" for number in range(40)])
    tried = http.post("/subscriptions/preview", json={"xpath": "//n[. < 5]", "documents": 40}).json()
    assert (tried["documents"], tried["matched"]) == (40, 5)
    assert set(tried["ids"]) == {published[number].id for number in range(5)}
    assert tried["warning"] == ""
    nothing = http.post("/subscriptions/preview", json={"xpath": "//not-there-at-all", "documents": 40}).json()
    assert (nothing["matched"], "nothing" in nothing["warning"]) == (0, True)
    all_of_them = http.post("/subscriptions/preview", json={"xpath": "/*", "documents": 40}).json()
    assert "nearly everything" in all_of_them["warning"]
    assert http.post("/subscriptions/preview", json={"xpath": "//a["}).status_code == 422


def test_namespaces_are_each_subscriptions_own(client: xsift.Client) -> None:
    client.add("one", "//n:a", namespaces={"n": "urn:one"})
    client.add("two", "//n:a", namespaces={"n": "urn:two"})
    assert client.match('<a xmlns="urn:one"/>') == ["one"]
    assert client.match('<a xmlns="urn:two"/>') == ["two"]


def test_matches_of_the_last_minutes_are_counted(client: xsift.Client) -> None:
    client.add("counted", "//counted")
    for _ in range(3):
        client.publish("<counted/>")
    assert client.get("counted")["matches"] == 3


def test_the_versions_of_the_set(server: RunningServer, client: xsift.Client) -> None:
    client.add_many([("a", "//a"), ("b", "//b")])
    latest = httpx.get(f"{server.url}/versions", params={"most": 1}).json()["items"][0]
    assert (latest["added"], latest["removed"], latest["actor"]) == (2, 0, "localhost")
