"""For operators: health, metrics, status, logs, the description of the API, TLS; and the parts that have tests
alone.
"""

from __future__ import annotations

import contextlib
import json
import random
import sqlite3
import ssl
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl

import httpx
import pytest
import sqlalchemy

import xsift
from tests.service.running import RunningServer, running, until
from xsift.errors import StorageError, XsiftError
from xsift.service import live_set as live_set_module
from xsift.service.activity import Activity
from xsift.service.api.application import all_routes
from xsift.service.api.openapi import describe
from xsift.service.api.problems import status_of
from xsift.service.api.routes import _parsed
from xsift.service.keys_tool import add_key
from xsift.service.metrics import Metrics
from xsift.service.publishing import Incoming, Job, Overloaded, Publisher, _FairQueue
from xsift.service.settings import Matching, Settings
from xsift.service.store import deliveries, keys, leases, migrations, schema, subscribers
from xsift.service.store import subscriptions as store
from xsift.service.store.database import Database
from xsift.service.store.numbers import (
    Numbers,
    delivery_id,
    document_id,
    first_number,
    parse_delivery_id,
    parse_document_id,
)
from xsift.service.store.schema import deliveries as deliveries_table
from xsift.service.store.subscribers import NewSubscribers
from xsift.service.store.subscriptions import Subscription
from xsift.service.store.writer import Batched, Writer


def test_health_and_metrics(server: RunningServer, client: xsift.Client) -> None:
    assert httpx.get(f"{server.url}/healthz").text == "alive\n"
    assert httpx.get(f"{server.url}/readyz").text == "ready\n"
    client.add("a", "//a")
    before = {name: server.metric(name) for name in COUNTED}
    client.publish("<a/>")
    with pytest.raises(xsift.DocumentError):
        client.publish("<a>")
    after = {name: server.metric(name) for name in COUNTED}
    grown = {name: after[name] - before[name] for name in COUNTED}
    assert grown["xsift_documents_total"] == 1
    assert grown["xsift_document_bytes_total"] == 4
    assert grown["xsift_broken_documents_total"] == 1
    assert grown["xsift_match_seconds_count"] == 2
    assert grown["xsift_matches_total"] >= 1
    assert grown["xsift_deliveries_total"] >= 1
    for name in ("xsift_subscriptions", "xsift_subscriptions_version", "xsift_index_bytes"):
        assert server.metric(name) > 0, name
    text = httpx.get(f"{server.url}/metrics").text
    for name in ("deliveries_waiting", "delivery_lag_seconds", "delivery_retries", "write_queue", "commit_seconds"):
        assert f"xsift_{name}" in text, name
    for purpose in ("loop", "match", "writer"):
        assert f'xsift_thread_cpu_seconds{{purpose="{purpose}"}}' in text, purpose


COUNTED = (
    "xsift_documents_total",
    "xsift_document_bytes_total",
    "xsift_broken_documents_total",
    "xsift_matches_total",
    "xsift_deliveries_total",
    "xsift_match_seconds_count",
)


def test_the_dashboard_shows_metrics_that_there_are(server: RunningServer, client: xsift.Client) -> None:
    client.publish("<a/>")
    text = httpx.get(f"{server.url}/metrics").text
    there = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    deploy = Path(__file__).parent.parent.parent / "deploy"
    dashboard = json.loads((deploy / "grafana-dashboard.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    assert len(expressions) > 10
    for expression in expressions:
        for word in expression.replace("(", " ").replace("{", " ").replace("[", " ").split():
            if word.startswith("xsift_"):
                name = word.rstrip(")").removesuffix("_bucket").removesuffix("_sum").removesuffix("_count")
                assert {name, name.removesuffix("_total")} & there, word


def test_status(server: RunningServer) -> None:
    status = httpx.get(f"{server.url}/status").json()
    assert status["ready"]
    assert status["set"]["subscriptions"] >= 0
    assert set(status["seconds"]) == {"match", "queue", "commit", "publish", "swap"}


def test_the_description_of_the_api(server: RunningServer) -> None:
    description = httpx.get(f"{server.url}/openapi.json").json()
    assert description == json.loads(json.dumps(describe(all_routes())))
    assert "/documents" in description["paths"]
    names = [operation["operationId"] for path in description["paths"].values() for operation in path.values()]
    assert len(names) == len(set(names)), "an operation has one name"
    for path in description["paths"]:
        assert path in httpx.get(f"{server.url}/docs").text
    root = httpx.get(server.url + "/")
    assert root.status_code in (200, 307)


def test_methods_and_paths_that_there_are_not(server: RunningServer) -> None:
    wrong = httpx.patch(f"{server.url}/documents")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET, HEAD, POST")
    assert httpx.get(f"{server.url}/nothing").json()["code"] == "unknown-path"
    assert httpx.head(f"{server.url}/healthz").status_code == 200
    assert (
        httpx.put(f"{server.url}/subscriptions/validate", json={"xpath": "//a"}, params={"owner": "odd"}).status_code
        == 201
    )
    assert httpx.get(f"{server.url}/subscriptions/validate", params={"owner": "odd"}).json()["id"] == "validate"


def test_malformed_everything(server: RunningServer) -> None:
    """Whatever is sent, wherever: an answer that is an error of the sender's, and a server that lives."""
    randomness = random.Random(5)
    bodies: list[Any] = [
        b"",
        b"{",
        b"null",
        b"[]",
        b"0",
        b'"x"',
        b"\xff\xfe\x00",
        b"<a/>",
        b'{"xml": 3}',
        b'{"id": null}',
    ]
    bodies += [
        b'{"xpath": "//a", "metadata": ' + b"[" * 500 + b"]" * 500 + b"}",
        b'{"xpath": "\\ud800"}',
        b"{}" * 1000,
    ]
    bodies += [b'{"xpath": "//a\\u0000"}', b'{"id": "' + b"9" * 50 + b'"}', b'{"id": "1-99999999999999999999"}']
    bodies += [randomness.randbytes(300) for _ in range(3)]
    ids = ["x", "%00", "..", "%2e%2e", "%ff%fe", "a" * 300, "1-1", "0000000000000001", "%F0%9F%92%A9"]
    kinds = [
        "application/json",
        "application/x-ndjson",
        "multipart/form-data; boundary=x",
        "application/xml; charset=",
        "\\",
    ]
    queries = [
        "",
        "?most=-1",
        "?after=%00",
        "?wait=x",
        "?owner=%00",
        "?owner=" + "x" * 300,
        "?label=a&label=b",
        "?format=x",
    ]
    with httpx.Client(base_url=server.url, timeout=30) as http:
        for route in all_routes():
            if route.streams or route.path in ("/keys", "/keys/{id}"):
                continue
            for _ in range(40):
                path = route.path.replace("{id}", randomness.choice(ids))
                headers = {"content-type": randomness.choice(kinds)}
                if randomness.random() < 0.2:
                    headers["content-encoding"] = randomness.choice(["gzip", "zstd", "x"])
                if randomness.random() < 0.2:
                    headers["idempotency-key"] = randomness.choice(["", "x" * 300, "ok"])
                body = randomness.choice(bodies) if route.method in ("POST", "PUT") else None
                answer = http.request(route.method, path + randomness.choice(queries), content=body, headers=headers)
                assert answer.status_code < 500, (route.method, answer.url, body, answer.text)
                if answer.status_code >= 400 and answer.headers["content-type"].startswith("application/problem"):
                    assert answer.json()["code"]
        assert http.get("/readyz").status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("DELETE", "/dead-letters/%C2%B2-1", 404),
        ("DELETE", "/dead-letters/99999999999999999999-1", 404),
        ("POST", "/dead-letters/1-99999999999999999999/replay", 404),
        ("GET", "/subscriptions?label=%00=x", 422),
        ("GET", "/subscriptions?contains=%00", 422),
        ("GET", "/subscriptions/%00", 422),
        ("GET", "/subscribers?after=%00/x", 422),
        ("GET", "/subscriptions?after=WyJvIiwiXHUwMDAwIl0=", 422),  # ["o", NUL] in base64
    ],
)
def test_numbers_and_names_that_no_database_has(server: RunningServer, method: str, path: str, status: int) -> None:
    assert httpx.request(method, server.url + path).status_code == status


def test_garbage_instead_of_http(server: RunningServer) -> None:
    import socket

    for garbage in (
        b"\x00" * 100,
        b"GET",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /documents HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
            connection.sendall(garbage)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(4096):
                pass
    assert httpx.get(f"{server.url}/readyz").status_code == 200


def test_https(tmp_path: Path) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    words += ["-addext", "subjectAltName=IP:127.0.0.1", "-out", str(certificate), "-keyout", str(key)]
    try:
        subprocess.run(words, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("openssl is not there to make a certificate")
    server = RunningServer(tmp_path, options=("--certificate", str(certificate), "--key", str(key)))
    server._answers = lambda: True  # type: ignore[method-assign]
    server.start()
    context = ssl.create_default_context(cafile=str(certificate))
    assert server.url.startswith("https://")
    until(lambda: httpx.get(f"{server.url}/readyz", verify=context).status_code == 200)
    assert server.stop() == 0


# Parts alone


def test_numbers_grow_and_differ() -> None:
    one, other = Numbers(1), Numbers(2)
    taken = [one.take() for _ in range(10_000)] + [one.take(4096), one.take(4096)]
    assert taken == sorted(set(taken))
    assert not set(taken) & {other.take() for _ in range(10_000)}
    assert all(parse_document_id(document_id(number)) == number < 1 << 63 for number in taken[:100])
    for wrong in ("", "x" * 16, "1", "zz", "0" * 17):
        with pytest.raises(XsiftError):
            parse_document_id(wrong)
    assert parse_delivery_id(delivery_id(7, 12), 7) == 12
    assert parse_delivery_id("12", 7) == 12
    for wrong in ("8-12", "7-", "-", "7-x", "7--1", "7-1e3", "7-" + "9" * 30, "٣"):
        with pytest.raises(XsiftError):
            parse_delivery_id(wrong, 7)


def test_owners_take_turns_and_the_queue_is_bounded() -> None:
    queue = _FairQueue(200, 10_000)

    def job(owner: str, number: int = 1, size: int = 1) -> Job:
        return Job(owner, [Incoming(b"")] * number, None, "http", False, None, size)  # type: ignore[arg-type]

    for _ in range(150):
        queue.put(job("greedy"))
    queue.put(job("modest"))
    first = queue.take()
    assert [taken.owner for taken in first][:2] == ["greedy", "modest"]
    with pytest.raises(Overloaded):
        queue.put(job("greedy", 50))
    with pytest.raises(Overloaded):
        queue.put(job("greedy", 1, 20_000))
    queue.release(first)
    queue.put(job("greedy", 50))
    queue.close()
    with pytest.raises(StorageError):
        queue.put(job("late"))
    left = 0
    while jobs := queue.take():
        left += len(jobs)
    assert left == 150 + 1 - len(first) + 1


def test_a_document_on_which_we_make_a_mistake_fails_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is matched together with others', who have no part in it."""
    match = live_set_module.Snapshot.match

    def stumble(self: Any, documents: Any, **options: Any) -> Any:
        if b"<stumbles/>" in documents:
            raise RuntimeError("a mistake")
        return match(self, documents, **options)

    monkeypatch.setattr(live_set_module.Snapshot, "match", stumble)
    database = Database(f"sqlite:///{tmp_path}/x.db")
    writer = Writer(database)
    live_set = live_set_module.LiveSet(database)
    publisher = Publisher(
        live_set, writer, Numbers(1), Metrics(), Matching(threads=1), Activity(), 1000, lambda made: None
    )
    bodies = [b"<a/>", b"<stumbles/>", b"<broken>", b"<b/>"]
    with ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(publisher.publish_blocking, "o", [Incoming(body)], source="test") for body in bodies]
        until(lambda: publisher.waiting == 4)
        writer.start()
        publisher.start()
        assert [type(answer.exception()) for answer in answers] == [type(None), RuntimeError, type(None), type(None)]
    assert [receipt.error is None for answer in (answers[0], *answers[2:]) for receipt in answer.result()] == [
        True,
        False,
        True,
    ]
    assert publisher.waiting == 0
    publisher.close()
    writer.close()
    with database.connect() as connection:
        assert sorted(connection.scalars(sqlalchemy.select(schema.documents.c.body))) == [b"<a/>", b"<b/>"]
    database.close()


def test_what_the_database_refuses_fails_alone(tmp_path: Path) -> None:
    """Else one who is refused again and again keeps everybody from publishing."""
    database = Database(f"sqlite:///{tmp_path}/x.db")
    writer = Writer(database)
    table = sqlalchemy.Table("t", sqlalchemy.MetaData(), sqlalchemy.Column("n", sqlalchemy.Integer, primary_key=True))
    with database.engine.begin() as connection:
        table.create(connection)
        connection.execute(table.insert(), {"n": 3})
    done: list[tuple[list[int], bool]] = []

    def insert(connection: sqlalchemy.Connection, items: list[int]) -> None:
        connection.execute(table.insert(), [{"n": n} for n in items])

    kind: Batched[int] = Batched(insert, lambda items, result, error: done.append((items, error is None)))
    for number in range(6):
        writer.add(kind, [number])
    writer.start()
    assert writer.run_blocking(lambda connection: "worked") == "worked"
    writer.close()
    assert sorted(done) == [([number], number != 3) for number in range(6)]
    with database.connect() as connection:
        assert sorted(connection.scalars(sqlalchemy.select(table.c.n))) == list(range(6))
    database.close()


def test_who_comes_while_the_writer_ends_is_refused_and_does_not_wait(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/x.db")
    writer = Writer(database)
    writer.start()
    writer.run_blocking(lambda connection: None)
    connection, ending, refused = writer._connection, threading.Event(), threading.Event()
    assert connection is not None

    def close() -> None:
        ending.set()
        refused.wait(20)

    writer._connection = SimpleNamespace(close=close)  # type: ignore[assignment]
    closing = threading.Thread(target=writer.close)
    closing.start()
    ending.wait()
    with pytest.raises(StorageError, match="is stopping"):
        writer.add(Batched(lambda connection, items: None, lambda items, result, error: None), [1])
    refused.set()
    closing.join()
    connection.close()
    database.close()


def test_the_writer_groups_and_isolates(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/x.db")
    writer = Writer(database)
    table = sqlalchemy.Table("t", sqlalchemy.MetaData(), sqlalchemy.Column("n", sqlalchemy.Integer, primary_key=True))
    with database.engine.begin() as connection:
        table.create(connection)
    groups: list[int] = []
    done: list[list[int]] = []

    def insert(connection: sqlalchemy.Connection, items: list[int]) -> None:
        connection.execute(table.insert(), [{"n": n} for n in items])
        groups.append(len(items))

    kind: Batched[int] = Batched(
        insert,
        lambda items, result, error: done.append(items),
    )
    for number in range(1000, 1100):
        writer.add(kind, [number])
    results: list[Any] = []

    def work(number: int) -> None:
        try:
            writer.run_blocking(lambda connection: connection.execute(table.insert(), {"n": number % 5}))
            results.append(number)
        except sqlalchemy.exc.IntegrityError as error:
            results.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    writer.start()
    for thread in threads:
        thread.join()
    until(lambda: sum(map(len, done)) == 100)
    assert groups == [100], "what waited is one group"
    assert sum(isinstance(result, int) for result in results) == 5, "the others failed alone"
    with database.connect() as connection:
        assert connection.scalar(sqlalchemy.select(sqlalchemy.func.count()).select_from(table)) == 105
    writer.close()
    with pytest.raises(StorageError):
        writer.run_blocking(lambda connection: None)
    database.close()


def test_a_database_that_somebody_else_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xsift.service.store.database.BUSY_SECONDS", 0.1)
    with contextlib.closing(Database(f"sqlite:///{tmp_path}/x.db")) as database:
        writer = Writer(database)
        writer.start()
        other = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        for work in (leases.take, leases.take):
            with pytest.raises(StorageError, match="nothing was stored") as raised:
                writer.run_blocking(lambda connection, work=work: work(connection, "name", "holder"))  # type: ignore[misc]
            assert (raised.value.code, status_of(raised.value)) == ("storage-away", 503)
        other.execute("ROLLBACK")
        assert writer.run_blocking(lambda connection: leases.take(connection, "name", "holder"))
        other.close()
        writer.close()


def test_a_clock_that_was_wrong(tmp_path: Path) -> None:
    """A lease that was taken in the future is nobody's; numbers grow although the clock goes back."""
    with (
        contextlib.closing(Database(f"sqlite:///{tmp_path}/x.db")) as database,
        database.engine.begin() as connection,
    ):
        assert leases.take(connection, "couriers", "dead")
        assert not leases.take(connection, "couriers", "alive")
        connection.execute(schema.leases.update().values(until=time.time() + 1e8))
        assert leases.take(connection, "couriers", "alive")
        assert deliveries.last_document(connection) == 0
    later = Numbers(1).take() + (1 << 60)
    assert Numbers(2, later).take() > later


def test_migrations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    Database(url).close()
    Database(url).close()
    ran: list[str] = []

    def step(connection: sqlalchemy.Connection) -> None:
        connection.exec_driver_sql("ALTER TABLE keys ADD COLUMN colour TEXT")
        ran.append("2")

    monkeypatch.setitem(migrations.STEPS, 2, step)
    monkeypatch.setattr(migrations, "SCHEMA_VERSION", 2)
    Database(url).close()
    Database(url).close()
    assert ran == ["2"], "a step is made once"
    monkeypatch.setattr(migrations, "SCHEMA_VERSION", 1)
    with pytest.raises(StorageError, match="schema 2"):
        Database(url)


def test_urls_of_databases(tmp_path: Path) -> None:
    for wrong in ("nonsense", "mysql://x/y", ""):
        with pytest.raises(StorageError) as raised:
            Database(wrong)
        assert raised.value.code == "bad-database-url"


def test_a_set_of_many_changes_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Subscriptions that come and go leave nothing behind."""
    monkeypatch.setattr(live_set_module, "MOST_GONE", 5)
    database = Database(f"sqlite:///{tmp_path}/x.db")
    live_set = live_set_module.LiveSet(database)
    live_set.load()
    for number in range(30):
        with database.engine.begin() as connection:
            put = [Subscription("same", f"//a{number}", "s"), Subscription("parts", "//b", "s", deliver="fragments")]
            store.put_many(connection, "me", put, "test", NewSubscribers(10_000))
        assert live_set._catch_up()
        found = live_set.snapshot.match([f"<a{number}><b/></a{number}>".encode()])[0]
        assert [live_set.snapshot.id(caught.place) for caught in found.caught] == ["same", "parts"]
        assert found.caught[1].nodes[0].path == f"/a{number}/b"
    assert not live_set._catch_up()
    assert live_set._compiled.gone <= 6
    assert (live_set.snapshot.size, live_set.count("me")) == (2, 2)
    database.close()


def test_retention(tmp_path: Path) -> None:
    settings = "[keep]\ndocuments = 20\n"
    with running(tmp_path, settings=settings) as server, server.client() as client:
        client.add("whole", "//keep", deliver="document", subscriber="slow")
        kept = client.publish("<keep>me</keep>")
        client.publish_many(["<a/>"] * 200)

        def documents() -> list[dict[str, Any]]:
            items: list[dict[str, Any]] = httpx.get(f"{server.url}/documents", params={"most": 1000}).json()["items"]
            return items

        until(lambda: len(documents()) == 21, 40)
        assert documents()[-1]["id"] == kept.id, "what a delivery needs is kept"
        assert client.deliveries("slow")[0].xml == "<keep>me</keep>"
        client.acknowledge("slow", client.deliveries("slow")[0])
        until(lambda: len(documents()) == 20, 40)


def test_cleaning_does_not_look_through_all_deliveries(tmp_path: Path) -> None:
    """It did, for every document: the writer stood still for seconds once as many were stored as are kept."""
    database = Database(f"sqlite:///{tmp_path}/x.db")
    asked: list[tuple[str, Any]] = []
    sqlalchemy.event.listen(
        database.engine,
        "before_cursor_execute",
        lambda connection, cursor, statement, parameters, context, many: asked.append((statement, parameters)),
    )
    with database.engine.begin() as connection:
        deliveries.clean(connection, keep_from=5, receipts_before=1.0, most=10)
        deliveries.crowded(connection, 1.0)
        deliveries.drop_beyond_backlog(connection, [1], 1.0, 10)
    questions = [(text, parameters) for text, parameters in asked if text.startswith(("SELECT", "DELETE"))]
    assert len(questions) >= 5
    with database.engine.connect() as connection:
        for text, parameters in questions:
            plan = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", parameters)]
            assert not any("SCAN deliveries" in line or "SCAN documents" in line for line in plan), (text, plan)
    database.close()


def test_dead_letters_are_forgotten_with_time(tmp_path: Path) -> None:
    """A webhook that fails for ever has a dead letter every few minutes, each with a document that is kept for it."""
    database = Database(f"sqlite:///{tmp_path}/x.db")
    with database.engine.begin() as connection:
        letters = [
            {"subscriber": 1, "place": place, "document": first_number(1.7e9 + place), "at": 0.0, "whole": True}
            | {"content": b"{}", "failed_at": 0.0, "attempts": 10, "reason": "it answered 500"}
            for place in range(10)
        ]
        connection.execute(schema.dead_letters.insert(), letters)
        before = first_number(1.7e9 + 6)
        assert [deliveries.forget_dead(connection, before, 4) for _ in range(3)] == [4, 2, 0]
        assert connection.scalars(sqlalchemy.select(schema.dead_letters.c.place)).all() == [6, 7, 8, 9]
    database.close()


def test_who_reads_and_then_writes_waits_for_who_writes_meanwhile(tmp_path: Path) -> None:
    """Keys are made beside a server that writes: neither fails because of the other."""
    settings = Settings(data=str(tmp_path))
    database = Database(settings.database_url)
    other = threading.Thread(target=add_key, args=(settings, "other", ["admin"], ""))
    with database.engine.begin() as connection:
        keys.any_keys(connection)
        other.start()
        other.join(1)
        keys.create(connection, "one", ["admin"])
    other.join()
    with database.connect() as connection:
        assert [row.owner for row in keys.list_keys(connection)] == ["one", "other"]
    database.close()


def test_receipts_go_in_pieces_and_broken_documents_stay_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that was away for a day has a day's receipts to remove: publishing does not wait for all of them."""
    monkeypatch.setattr(deliveries, "RECEIPTS_AT_ONCE", 20)
    monkeypatch.setattr(deliveries, "MOST_BROKEN", 10)
    database = Database(f"sqlite:///{tmp_path}/x.db")
    with database.engine.begin() as connection:
        row = {"owner": "me", "digest": b"", "document": 1}
        rows = [{**row, "key": str(number), "at": float(number)} for number in range(100)]
        connection.execute(schema.receipts.insert(), rows)
        cleaned = [deliveries.clean(connection, keep_from=0, receipts_before=50.0, most=10) for _ in range(4)]
        assert cleaned == [20, 20, 10, 0]
        kept = connection.scalars(sqlalchemy.select(schema.receipts.c.at).order_by(schema.receipts.c.at)).all()
        assert kept == list(range(50, 100))
        error = xsift.DocumentError("broken", "broken")
        found = [deliveries.Broken("me", number, "", 0.0, 1, b"<", error) for number in range(100)]
        deliveries.store_broken(connection, found)
        assert connection.scalars(sqlalchemy.select(schema.broken.c.number)).all() == list(range(89, 100))
    database.close()


def test_backlogs_are_dropped_in_pieces(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/x.db")
    with database.engine.begin() as connection:
        numbers = subscribers.ensure(connection, "me", ["a", "b", "c"], NewSubscribers(5))
        made = {number: [(number, b'"matches":[]', False)] for number in numbers.values()}
        for document in range(20):
            outcome = deliveries.Outcome(document + 1, "", b"<a/>", None)
            outcome.deliveries = [row for number in made for row in made[number]]
            deliveries.store_publications(connection, [deliveries.Publication("me", [outcome], 0.0)])
    old = deliveries_table.c.at
    with database.engine.begin() as connection:
        first = deliveries_table.c.subscriber == numbers["c"]
        connection.execute(
            sqlalchemy.update(deliveries_table).where(first, deliveries_table.c.place <= 18).values(at=1.0)
        )
        assert connection.scalar(sqlalchemy.select(sqlalchemy.func.count()).where(old == 1.0)) == 18
        crowded = deliveries.crowded(connection, 2.0)
        assert sorted(crowded) == sorted(numbers.values())
        assert deliveries.drop_beyond_backlog(connection, crowded, 2.0, 20) == (20, [numbers["b"], numbers["c"]])
        assert deliveries.drop_beyond_backlog(connection, crowded, 2.0, 1000) == (15 + 15 + 18 - 20, [])
        assert deliveries.crowded(connection, 2.0) == []
        kept = {name: len(deliveries.read(connection, number, 0, 100)) for name, number in numbers.items()}
        assert kept == {"a": 5, "b": 5, "c": 2}
    database.close()


def test_queries_are_taken_apart_as_the_standard_library_does() -> None:
    for query in ("", "a", "a=", "=b", "a=b&c=d", "a=b&&c", "a=1&a=2", "a=b=c", "a=x+y", "a=%26&b=2", "é=ü", "a;b=c"):
        assert _parsed(query) == dict(parse_qsl(query, keep_blank_values=True)), query


@pytest.mark.parametrize("missing", ["pydantic", "uvloop"])
def test_what_is_not_installed_is_said_before_anything_is_done(missing: str, tmp_path: Path) -> None:
    program = f"import sys; sys.modules[{missing!r}] = None; import xsift.cli; sys.exit(xsift.cli.main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, "serve", "--data", str(tmp_path / "data"), "keys", "list"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert done.stderr == f"xsift: the service needs {missing}: pip install 'xsift[serve]' [not-installed]\n"
    assert list(tmp_path.iterdir()) == []
