"""What the console asks, over HTTP: trying, proposing, sorted lists, the last minutes, a look at a stream."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

import xsift
from tests.service.receiver import Receiver
from tests.service.running import RunningServer, until
from xsift.service.api import models, trying
from xsift.service.settings import Settings
from xsift.service.store import deliveries as store
from xsift.service.store import subscribers
from xsift.service.store.database import Database
from xsift.service.store.subscribers import NewSubscribers

NEWS = "<news><title>Zürich 𝒳</title><title>Lima</title></news>"
COSTLY = "<r>" + "<a b='1'/>" * 5000 + "</r>"


def tried(http: httpx.Client, xpath: str, xml: str = NEWS, **more: Any) -> dict[str, Any]:
    answer = http.post("/try", json={"xpath": xpath, "xml": xml, **more})
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def in_browser(text: str, start: int, end: int) -> str:
    """The piece of a text that a browser finds there: it counts in UTF-16."""
    return text.encode("utf-16-le")[2 * start : 2 * end].decode("utf-16-le")


def test_an_expression_is_tried(http: httpx.Client) -> None:
    told = tried(http, "//title[. = 'Lima']")
    assert told["validation"]["valid"]
    assert (told["matched"], told["selects"]) == (True, 1)
    start, end, path = told["nodes"][0]
    assert in_browser(NEWS, start, end) == "<title>Lima</title>"
    assert path == "/news/title[2]"
    steps = told["patterns"][0]["steps"]
    assert [(step["found"], step["satisfied"]) for step in steps] == [(2, 1), (2, 1)]
    assert "namespaces" not in told
    assert tried(http, "//title", "")["validation"]["valid"]
    assert "nodes" not in tried(http, "//title", " ")


def test_an_expression_that_is_wrong_and_a_document_that_is(http: httpx.Client) -> None:
    told = tried(http, "//title[")
    assert not told["validation"]["valid"]
    assert (told["validation"]["error"]["column"], told["validation"]["error"]["hint"]) == (9, "add ]")
    assert "matched" not in told
    broken = "<ä>𝒳<b></c></ä>"
    for xpath in ("//title", "//title["):
        told = tried(http, xpath, broken)
        assert told["document_error"]["code"] == "tag-mismatch"
        assert in_browser(broken, told["document_error"]["place"], 99).startswith(("</c>", "c>"))
    assert tried(http, "//a", "no document")["document_error"]["code"] == "not-a-document"
    assert tried(http, "//a[. = //a/following::a/@b]", COSTLY)["failure"]["code"]


def test_namespaces_are_told_when_a_name_is_not_found(http: httpx.Client) -> None:
    xml = "<n:news xmlns:n='urn:n'><title xmlns='urn:t'/></n:news>"
    told = tried(http, "//q:title", xml)
    assert told["validation"]["error"]["code"] == "unbound-prefix"
    assert {item["uri"]: item["elements"] for item in told["namespaces"]} == {"urn:n": 1, "urn:t": 1}
    told = tried(http, "/news/title", xml)
    assert [step["elsewhere"] for step in told["patterns"][0]["steps"]] == [["urn:n"], ["urn:t"]]
    assert tried(http, "/n:news", xml, namespaces={"n": "urn:n"})["selects"] == 1


def test_many_nodes_are_counted_and_the_first_are_told(http: httpx.Client) -> None:
    told = tried(http, "//a", f"<r>{'<a/>' * 9000}</r>")
    assert (told["selects"], len(told["nodes"])) == (9000, 5000)


def test_malformed_questions(http: httpx.Client) -> None:
    for path in ("/try", "/propose"):
        assert http.post(path, content=b"<a/>").status_code in (400, 422)
        assert http.post(path, json={}).status_code == 422
        assert http.post(path, json={"xpath": "//a", "xml": 5, "element": 1}).status_code == 422
        assert http.post(path, json={"xpath": "//a", "xml": "<a/>", "element": 1, "more": 1}).status_code == 422
        large = {"xpath": "//a", "xml": f"<a>{'x' * 3_000_000}</a>", "element": 1}
        assert http.post(path, json=large).status_code == 413
    assert http.post("/propose", json={"xml": "<a/>", "element": 0}).status_code == 422
    assert http.post("/propose", json={"xml": "<a/>", "element": 7}).json()["code"] == "unknown-node"
    assert http.post("/propose", json={"xml": "<a>", "element": 1}).status_code == 422


def test_proposals(http: httpx.Client) -> None:
    answer = http.post("/propose", json={"xml": "<r xmlns='urn:r'><a b='1'/><a/></r>", "element": 2}).json()
    counts = [item["selects"] for item in answer["items"]]
    assert counts == sorted(counts, reverse=True)
    prefix = next(iter(answer["namespaces"]))
    assert answer["items"][0]["xpath"] == f"//{prefix}:a"
    attribute = http.post("/propose", json={"xml": "<r><a b='1'/></r>", "element": 2, "attribute": "b"}).json()
    assert attribute["items"][0]["xpath"] == "//@b"


def test_the_preview_tells_which(client: xsift.Client, http: httpx.Client) -> None:
    client.publish("<shown/>", label="the one")
    client.publish("<other/>")
    told = http.post("/subscriptions/preview", json={"xpath": "/shown"}).json()
    assert (told["documents"], told["matched"]) == (2, 1)
    assert told["caught"][0]["label"] == "the one"
    assert told["ids"] == [told["caught"][0]["id"]]


def pages(http: httpx.Client, most: int, **query: str) -> list[str]:
    """The ids of all pages."""
    found: list[str] = []
    after = None
    while True:
        params: dict[str, Any] = {"most": most, **query, **({"after": after} if after else {})}
        page = http.get("/subscriptions", params=params).json()
        assert len(page["items"]) <= most
        found += [item["id"] for item in page["items"]]
        after = page["next"]
        if after is None:
            return found


def test_lists_are_sorted_and_counted(client: xsift.Client, http: httpx.Client) -> None:
    client.add_many(
        [{"id": f"s{number}", "xpath": f"//n{number}", "labels": {"odd": str(number % 2)}} for number in range(7)]
    )
    client.add("s2", "//changed")
    for _ in range(2):
        client.publish("<n5/>")
    client.publish("<r><n5/><n3/></r>")
    every = [f"s{number}" for number in range(7)]
    assert pages(http, 3) == every
    assert pages(http, 2, sort="changed")[0] == "s2"
    assert sorted(pages(http, 2, sort="changed")) == every
    for most in (1, 2, 3, 100):
        assert pages(http, most, sort="matches") == ["s5", "s3", "s0", "s1", "s2", "s4", "s6"], most
    assert pages(http, 2, sort="matches", label="odd=0") == ["s0", "s4", "s6"]
    assert pages(http, 3, sort="failures") == every
    counted = http.get("/subscriptions", params={"count": "true", "label": "odd=1", "most": 1}).json()
    assert (counted["total"], len(counted["items"])) == (3, 1)
    assert http.get("/subscriptions", params={"count": "true", "subscriber": "nobody"}).json()["total"] == 0
    for query in (
        {"sort": "nonsense"},
        {"after": "nonsense"},
        {"sort": "changed", "after": "WyJhIiwiYiJd"},
        {"after": "WzFd"},
    ):
        assert http.get("/subscriptions", params=query).status_code == 422, query


def test_a_subscription_says_why_it_failed(client: xsift.Client, http: httpx.Client) -> None:
    client.add("costly", "//a[. = //a/following::a/@b]")
    published = client.publish(COSTLY)
    told = client.get("costly")
    assert (told["failures"], told["last_failure"]["document"]) == (1, published.id)
    assert told["last_failure"]["code"] == "too-many-steps"
    assert http.get("/subscriptions", params={"sort": "failures"}).json()["items"][0]["id"] == "costly"
    ids = [f"costly {number}" for number in range(7)]
    assert client.add_many((id, f"//a[. = //a/following::a/@b or @c{number}]") for number, id in enumerate(ids)) == []
    published = client.publish(COSTLY)
    assert {client.get(id)["last_failure"]["document"] for id in ids} == {published.id}


def test_history_and_owners(client: xsift.Client, http: httpx.Client, owner: str) -> None:
    client.add("here", "//here")
    client.publish("<here/>")
    owners = {item["owner"]: item["subscriptions"] for item in http.get("/owners").json()["items"]}
    assert owners[owner] == 1
    until(lambda: any(http.get("/history").json()["samples"].get("documents", [])))
    samples = http.get("/history").json()["samples"]
    lengths = {len(values) for values in samples.values()}
    assert len(lengths) == 1
    assert samples["at"] == sorted(samples["at"])
    assert any(value for value in samples["match_p99"] if value is not None)
    assert http.get("/history", params={"after": time.time() + 100}).json()["samples"] == {}
    assert http.get("/history", params={"after": "soon"}).status_code == 422


def events(http: httpx.Client, path: str, number: int, **query: str) -> list[tuple[str, dict[str, Any]]]:
    """The first so many events of a stream."""
    found: list[tuple[str, dict[str, Any]]] = []
    with http.stream("GET", path, params=query) as answer:
        name = ""
        for line in answer.iter_lines():
            if line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: "):
                found.append((name, json.loads(line[6:])))
                if len(found) == number:
                    return found
    raise AssertionError("the stream ended")


def test_a_look_at_a_stream_acknowledges_nothing(client: xsift.Client, http: httpx.Client) -> None:
    client.add("looked", "//looked", subscriber="looked", deliver="fragments")
    for number in range(25):
        client.publish(f"<looked>{number}</looked>")
    path = "/subscribers/looked/events"
    first = events(http, path, 20, peek="true")
    assert first[0][1]["matches"][0]["fragments"][0]["xml"] == "<looked>5</looked>"
    last = first[-1][1]["id"]
    client.publish("<looked>more</looked>")
    again = events(http, path, 1, peek="true", after=last)
    assert again[0][1]["matches"][0]["fragments"][0]["xml"] == "<looked>more</looked>"
    assert client.get_subscriber("looked")["waiting"] == 26


def test_the_activity_has_a_pulse(client: xsift.Client, http: httpx.Client) -> None:
    client.add("pulse", "//pulse")
    published = client.publish("<pulse/>")
    found = events(http, "/activity", 2)
    event = next(data for name, data in found if name == "document")
    assert (event["id"], event["matches"], event["own_matches"], event["deliveries"]) == (published.id, 1, 1, 1)
    pulse = next(data for name, data in found if name == "pulse")
    assert abs(pulse["now"] - time.time()) < 60


def test_who_fails_and_dead_letters_in_brief(client: xsift.Client, http: httpx.Client) -> None:
    receiver = Receiver(500)
    client.put_subscriber("hook", kind="webhook", url=receiver.url)
    client.add("fails", "//fails", subscriber="hook", deliver="document")
    client.add("fine", "//fine", subscriber="fine")
    client.publish("<fails/>", label="dead")
    until(lambda: client.dead_letters())
    assert [item["id"] for item in http.get("/subscribers", params={"failing": "true"}).json()["items"]] == ["hook"]
    brief = http.get("/dead-letters", params={"brief": "true"}).json()["items"][0]["delivery"]
    assert set(brief) == {"document", "matches"}
    assert (brief["document"]["label"], brief["matches"]) == ("dead", [{"id": "fails"}])
    assert "xml" in http.get("/dead-letters").json()["items"][0]["delivery"]


def test_nodes_of_huge_documents_are_not_looked_at_one_by_one(http: httpx.Client, monkeypatch: Any) -> None:
    """A document of 2 MB can have half a million elements, and each of them takes some hundred bytes there."""
    answer = http.post("/propose", json={"xml": "<a>" + "<b>" * trying.MOST_TAGS, "element": 2})
    assert (answer.status_code, answer.json()["code"]) == (413, "too-large")
    small = f"<a xmlns='urn:a'>{'<b/>' * 1000}</a>"
    wanted = models.TryIn(xpath="//b", xml=small)
    call: Any = SimpleNamespace(parts=SimpleNamespace(settings=Settings()))
    assert trying._tried(wanted, call)["namespaces"]
    monkeypatch.setattr(trying, "MOST_TAGS", 1000)
    assert "namespaces" not in trying._tried(wanted, call)


def test_dead_letters_come_in_pages(client: xsift.Client, http: httpx.Client) -> None:
    receiver = Receiver(500)
    client.add("fails", "//fails", subscriber="hook", deliver="document")
    client.put_subscriber("hook", kind="webhook", url=receiver.url)
    for number in range(3):
        client.publish(f"<fails>{number}</fails>", label=str(number))
    until(lambda: len(client.dead_letters()) == 3)
    all_of_them = [letter["id"] for letter in client.dead_letters()]
    ids: list[str] = []
    after: str | None = ""
    while after is not None:
        page = http.get("/dead-letters", params={"most": 2, "after": after}).json()
        ids += [letter["id"] for letter in page["items"]]
        after = page["next"]
    assert ids == all_of_them
    assert http.get("/dead-letters", params={"after": "1/x"}).status_code == 422


def test_what_is_read_of_documents_at_a_time_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of dead letters, and of documents on which an expression is tried."""
    monkeypatch.setattr(store, "DEAD_BYTES", 250)
    monkeypatch.setattr(trying, "PREVIEW_BYTES", 250)
    outcomes = [store.Outcome(number, "", b"x" * 100, None) for number in range(1, 6)]
    database = Database(f"sqlite:///{tmp_path}/store.db")
    with contextlib.closing(database), database.engine.begin() as connection:
        number = subscribers.ensure(connection, "o", ["s"], NewSubscribers(10))["s"]
        for outcome in outcomes:
            outcome.deliveries = [(number, b"", True)]
        store.store_publications(connection, [store.Publication("o", outcomes, 0.0)])
        for delivery in store.read(connection, number, 0, 10):
            store.bury(connection, delivery, 1, "no")
        pages, after, more = [], None, True
        while more:
            rows, more = store.dead(connection, owner="o", after=after)
            pages.append([row.place for row in rows])
            after = (rows[-1].failed_at, rows[-1].subscriber, rows[-1].place)
        brief, _ = store.dead(connection, owner="o", brief=True)
        assert (pages, [row.body for row in brief]) == ([[5, 4], [3, 2], [1]], [None] * 5)
        tried, before = [], None
        while rows := trying._latest(connection, "o", before, 100):
            tried.append([row.number for row in rows])
            before = rows[-1].number
    assert tried == [[5, 4], [3, 2], [1]]


@pytest.mark.parametrize("path", ["/", "/console/app.js", "/console/style.css", "/console/sample-news.xml"])
def test_the_page_is_there(server: RunningServer, path: str) -> None:
    answer = httpx.get(server.url + path)
    assert answer.status_code == 200
    assert "unsafe-inline" not in answer.headers["content-security-policy"]
    assert answer.headers["referrer-policy"] == "no-referrer"
