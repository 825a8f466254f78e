"""Who may do what: keys, roles, owners, limits; and what a browser on another site may not do."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import httpx
import pytest
import uvicorn

import xsift
from tests.service.running import RunningServer, running, until
from xsift.service.api.problems import Problem
from xsift.service.api.security import REMEMBERED_SECONDS, Gate
from xsift.service.connections import Connection, HttpServer
from xsift.service.logs import _Text
from xsift.service.settings import OwnerLimits, Settings

SETTINGS = """
[limits]
subscriptions = 50
subscribers = 3
streams = 2
documents_per_second = 20
[keep]
backlog = 7
largest_backlog = 9
[kafka]
servers = "127.0.0.1:1"
allow_topics = ["of-alice-*"]
"""


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "xsift.cli", "serve", *arguments, "--data", str(folder / "data")]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)


class Guarded:
    """A server with keys, and clients that have them."""

    def __init__(self, server: RunningServer, admin: str) -> None:
        self.server = server
        self.keys = {"admin": admin}
        made = [("alice", ["publish", "subscribe"]), ("bob", ["subscribe"]), ("carol", ["publish"])]
        for owner, roles in made:
            answer = self.http("admin").post("/keys", json={"owner": owner, "roles": roles})
            assert answer.status_code == 201
            self.keys[owner] = answer.json()["key"]

    def http(self, name: str) -> httpx.Client:
        headers = {"authorization": f"Bearer {self.keys[name]}"}
        return httpx.Client(base_url=self.server.url, headers=headers, timeout=30)

    def client(self, name: str, **options: Any) -> xsift.Client:
        return xsift.Client(self.server.url, key=self.keys[name], **options)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    first = command(folder, "keys", "add", "ops", "--role", "publish")
    assert first.returncode == 2
    assert "must be an admin's" in first.stderr
    made = command(folder, "keys", "add", "ops", "--role", "admin")
    assert made.returncode == 0, made.stderr
    with running(folder, settings=SETTINGS) as server:
        yield Guarded(server, made.stdout.strip())


def test_nobody_gets_in_without_a_key(guarded: Guarded) -> None:
    url = guarded.server.url
    for path in (
        "/subscriptions",
        "/documents",
        "/subscribers",
        "/keys",
        "/audit",
        "/status",
        "/metrics",
        "/session",
        "/history",
        "/owners",
        "/activity",
    ):
        answer = httpx.get(url + path)
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthorised"), path
        assert answer.headers["www-authenticate"] == "Bearer"
    for wrong in ("nonsense", "xs_", "xs_a_b", guarded.keys["alice"] + "x", guarded.keys["alice"][:-1], "xs_ä_ö"):
        answer = httpx.get(f"{url}/subscriptions", headers={b"authorization": f"Bearer {wrong}".encode()})
        assert answer.status_code == 401, wrong
    for path in ("/healthz", "/readyz", "/docs", "/openapi.json"):
        assert httpx.get(url + path).status_code == 200, path
    assert httpx.get(f"{url}/subscriptions", headers={"x-api-key": guarded.keys["alice"]}).status_code == 200


@pytest.mark.parametrize(
    "start",
    [
        b"GET /healthz HTTP/1.1\r\nx: ",
        b"GET /",
        b"GET /healthz HTTP/1.1\r\n" + b"x: y\r\n" * 10_000,
        b"POST /documents HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nx: ",
    ],
)
def test_headers_without_an_end_are_refused(guarded: Guarded, start: bytes) -> None:
    """Nobody knows yet who sends them: what the parser collects of them is bounded."""
    with socket.create_connection(("127.0.0.1", guarded.server.port), 30) as connection:
        connection.sendall(start)
        with pytest.raises(OSError):  # noqa: PT011 - reset, or closed
            connection.sendall(b"y" * (64 << 20))


def test_a_large_head_and_a_body_in_many_pieces_are_taken(guarded: Guarded) -> None:
    headers = {"authorization": f"Bearer {guarded.keys['admin']}", "x-large": "y" * 200_000}

    def body() -> Iterator[bytes]:
        yield b"<a>"
        yield from (b"x" for _ in range(60_000))  # each with some bytes around it
        yield b"</a>"

    with httpx.Client(base_url=guarded.server.url, headers=headers, timeout=60) as client:
        for _ in range(2):
            assert client.post("/match", content=body()).status_code == 200


def test_who_sends_no_head_or_reads_no_answer_is_not_waited_for_for_ever() -> None:
    async def wait() -> list[tuple[bool, bool]]:
        config = uvicorn.Config(lambda: None)
        server = HttpServer(config)
        begin, later = asyncio.get_running_loop().time(), 0
        connections, transports = [], []
        post = b"POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\nx"
        for sent, unread in (
            (b"", [0, 0]),
            (b"GET / HTTP/1.1\r\nx: ", [0, 0]),
            (post, [0, 9]),
            (post, [9, 8]),
            (post, [9, 9]),
        ):
            transports.append(MagicMock(**{"get_write_buffer_size.side_effect": unread}))
            connection = Connection(config, server.server_state, {})
            connection.connection_made(transports[-1])
            connection._start_asgi_task = MagicMock()  # type: ignore[method-assign]
            connection.loop = MagicMock(time=lambda: begin + later)
            if sent:
                connection.data_received(sent)
            connections.append(connection)
        await server.on_tick(0)
        later = 61
        await server.on_tick(0)
        return [(transport.close.called, transport.abort.called) for transport in transports]

    assert asyncio.run(wait()) == [(True, False), (True, False), (False, False), (False, False), (False, True)]


def test_who_reads_slowly_is_counted_until_he_has_read(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(running(tmp_path, settings="[limits]\nrequests_at_once = 2"))
        client = stack.enter_context(server.client())
        id = client.publish(b"<a>" + b"x" * 15_000_000 + b"</a>").id

        def ask() -> socket.socket:
            asking = stack.enter_context(socket.socket())
            asking.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            asking.connect(("127.0.0.1", server.port))
            asking.sendall(b"GET /documents/%s HTTP/1.1\r\nhost: localhost\r\n\r\n" % id.encode())
            assert asking.recv(15) == b"HTTP/1.1 200 OK"
            return asking

        slow = [ask() for _ in range(2)]
        refused = httpx.get(f"{server.url}/subscribers")
        assert (refused.status_code, refused.json()["code"]) == (429, "too-many-requests")
        slow[0].close()
        until(lambda: httpx.get(f"{server.url}/subscribers").status_code == 200)


def test_keys_are_stored_as_hashes(guarded: Guarded) -> None:
    stored = b"".join(path.read_bytes() for path in guarded.server.data.glob("xsift.db*"))
    for key in guarded.keys.values():
        assert key.split("_", 2)[2].encode() not in stored  # the secret may have a _ itself
    with sqlite3.connect(guarded.server.data / "xsift.db") as connection:
        assert connection.execute("SELECT count(*) FROM keys WHERE length(digest) = 32").fetchone()[0] >= 4


@pytest.mark.parametrize(
    ("name", "method", "path", "status"),
    [
        ("alice", "POST", "/documents", 202),
        ("bob", "POST", "/documents", 403),
        ("carol", "POST", "/documents", 202),
        ("carol", "PUT", "/subscriptions/x", 403),
        ("carol", "GET", "/subscribers/x/events", 403),
        ("bob", "GET", "/subscriptions", 200),
        ("bob", "POST", "/keys", 403),
        ("alice", "GET", "/keys", 403),
        ("alice", "DELETE", "/keys/x", 403),
        ("alice", "GET", "/status", 403),
        ("alice", "GET", "/metrics", 403),
        ("alice", "GET", "/versions", 403),
        ("alice", "GET", "/history", 403),
        ("alice", "GET", "/owners", 403),
        ("admin", "GET", "/metrics", 200),
        ("admin", "GET", "/keys", 200),
        ("admin", "POST", "/documents", 202),
    ],
)
def test_roles(guarded: Guarded, name: str, method: str, path: str, status: int) -> None:
    assert (
        guarded.http(name).request(method, path, content=b"<a/>" if method == "POST" else None).status_code == status
    )


def test_an_owner_who_tries_anothers_ids(guarded: Guarded) -> None:
    alice, bob = guarded.client("alice"), guarded.client("bob")
    alice.add("secret", "//a", subscriber="private", metadata={"by": "alice"})
    assert bob.match("<a/>") == []
    published = alice.publish("<a/>", label="of alice")
    http = guarded.http("bob")
    for method, path in [
        ("GET", "/subscriptions/secret"),
        ("DELETE", "/subscriptions/secret"),
        ("GET", "/subscriptions/secret/history"),
        ("GET", "/subscribers/private"),
        ("DELETE", "/subscribers/private"),
        ("GET", "/subscribers/private/events"),
        ("GET", "/subscribers/private/deliveries"),
        ("GET", f"/documents/{published.id}"),
        ("DELETE", "/dead-letters/1-1"),
        ("POST", "/dead-letters/1-1/replay"),
    ]:
        assert http.request(method, path).status_code == 404, (method, path)
        other = http.request(method, path, params={"owner": "alice"})
        assert (other.status_code, other.json()["code"]) == (403, "not-yours") or other.status_code == 404, (
            method,
            path,
        )
    ack = http.post("/subscribers/private/ack", json={"id": "1-1"})
    assert ack.status_code == 404
    assert http.post("/explain", json={"xml": "<a/>", "subscription": "secret"}).status_code == 404
    assert http.put("/subscriptions/x", json={"xpath": "//a"}, params={"owner": "alice"}).status_code == 403
    lines = b'{"id": "x", "xpath": "//a", "owner": "alice"}'
    report = http.post("/subscriptions", content=lines, headers={"content-type": "application/x-ndjson"}).json()
    assert (report["added"], report["errors"][0]["code"]) == (0, "not-yours")
    bob.add("secret", "//b", subscriber="private")
    assert alice.get("secret")["xpath"] == "//a", "the same id is another subscription for another owner"
    assert [item["id"] for item in bob.list()] == ["secret"]
    assert http.get("/documents").json()["items"] == []
    assert {row["owner"] for row in http.get("/audit").json()["items"]} == {"bob"}
    assert [delivery.document["label"] for delivery in alice.deliveries("private")] == ["of alice"]
    delivery = alice.deliveries("private")[0]
    assert http.post("/subscribers/private/ack", json={"id": delivery.id}).status_code == 404
    with guarded.client("admin") as admin:
        assert {row["owner"] for row in admin.list()} == {"alice", "bob"}
    with guarded.client("admin", owner="alice") as acting:
        assert acting.get("secret")["metadata"] == {"by": "alice"}


def test_what_others_catch_is_not_told_to_a_publisher(guarded: Guarded) -> None:
    guarded.client("alice").add("mine", "//z")
    guarded.client("bob").add("his", "//z")
    told = guarded.client("alice").publish("<z/>", wait=True)
    assert [match["id"] for match in told.matches] == ["mine"]
    assert "matches" not in guarded.http("alice").get("/documents").json()["items"][0]


def test_a_revoked_key_opens_nothing(guarded: Guarded) -> None:
    admin = guarded.http("admin")
    made = admin.post("/keys", json={"owner": "dave", "roles": ["subscribe"], "name": "for a while"}).json()
    listed = next(row for row in admin.get("/keys").json()["items"] if row["id"] == made["id"])
    assert (listed["name"], "key" in listed) == ("for a while", False)
    headers = {"authorization": f"Bearer {made['key']}"}
    assert httpx.get(f"{guarded.server.url}/subscriptions", headers=headers).status_code == 200
    assert admin.delete(f"/keys/{made['id']}").status_code == 204
    assert httpx.get(f"{guarded.server.url}/subscriptions", headers=headers).status_code == 401
    assert admin.delete(f"/keys/{made['id']}").status_code == 404


@pytest.mark.parametrize("path", ["/subscribers/frank/events", "/activity"])
def test_a_stream_ends_when_its_key_is_revoked(guarded: Guarded, path: str) -> None:
    admin, alice = guarded.http("admin"), guarded.http("alice")
    made = admin.post("/keys", json={"owner": "frank", "roles": ["subscribe"]}).json()
    headers = {"authorization": f"Bearer {made['key']}"}
    with httpx.Client(base_url=guarded.server.url, headers=headers, timeout=30) as frank:
        frank.put("/subscriptions/f", json={"xpath": "//secret"})
        with frank.stream("GET", path) as stream:
            lines = stream.iter_lines()
            assert next(lines) == "retry: 1000"
            assert admin.delete(f"/keys/{made['id']}").status_code == 204
            time.sleep(REMEMBERED_SECONDS + 0.5)
            alice.post("/documents", content="<secret/>").raise_for_status()
            assert not any("secret" in line or "match" in line for line in lines)
    assert admin.delete("/subscribers/frank", params={"owner": "frank"}).status_code == 204


def test_keys_on_the_command_line_beside_a_running_server(guarded: Guarded) -> None:
    made = command(guarded.server.folder, "keys", "add", "eve", "--role", "subscribe", "--name", "laptop")
    key = made.stdout.strip()
    id = key.split("_")[1]
    headers = {"authorization": f"Bearer {key}"}
    assert httpx.get(f"{guarded.server.url}/subscriptions", headers=headers).status_code == 200
    assert f"{id}  eve  subscribe" in command(guarded.server.folder, "keys", "list").stdout
    assert command(guarded.server.folder, "keys", "revoke", id).returncode == 0
    until(lambda: httpx.get(f"{guarded.server.url}/subscriptions", headers=headers).status_code == 401)
    assert command(guarded.server.folder, "keys", "explode").returncode == 2


def test_the_cookie_of_the_console(guarded: Guarded) -> None:
    url = guarded.server.url
    with httpx.Client(base_url=url) as browser:
        signed = browser.post("/session", headers={"authorization": f"Bearer {guarded.keys['alice']}"})
        assert signed.json() == {"owner": "alice", "roles": ["publish", "subscribe"]}
        cookie = signed.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert browser.get("/subscriptions").status_code == 200
        assert browser.get("/subscriptions", headers={"origin": url}).status_code == 200
        foreign = browser.put("/subscriptions/x", json={"xpath": "//a"}, headers={"origin": "https://evil.example"})
        assert (foreign.status_code, foreign.json()["code"]) == (403, "wrong-origin")
        assert browser.get("/session").json()["owner"] == "alice"
        browser.delete("/session")
        assert browser.get("/subscriptions").status_code == 401


def test_limits_of_an_owner(guarded: Guarded) -> None:
    made = guarded.http("admin").post("/keys", json={"owner": "greedy", "roles": ["publish", "subscribe"]}).json()
    guarded.keys["greedy"] = made["key"]
    client, http = guarded.client("greedy"), guarded.http("greedy")
    assert client.add_many((f"s{n}", "//a") for n in range(50)) == []
    more = http.put("/subscriptions/more", json={"xpath": "//a"})
    assert (more.status_code, more.json()["code"]) == (429, "too-many-subscriptions")
    assert http.put("/subscriptions/s1", json={"xpath": "//changed"}).status_code == 200, (
        "changing one is not one more"
    )
    with pytest.raises(xsift.ServiceError) as raised:
        client.add_many((f"t{n}", "//a") for n in range(50))
    assert raised.value.code == "too-many-subscriptions"
    assert len(list(client)) == 50
    assert http.put("/subscribers/s1", json={}).status_code == 201
    assert http.put("/subscribers/s2", json={}).status_code == 201
    assert http.put("/subscribers/s3", json={}).json()["code"] == "too-many-subscribers"
    named = {"xpath": "//a", "subscriber": "s3"}
    refused_put = http.put("/subscriptions/s1", json=named)
    assert (refused_put.status_code, refused_put.json()["code"]) == (429, "too-many-subscribers")
    assert http.put("/subscriptions/s1", json=named | {"subscriber": "s2"}).status_code == 200
    with http.stream("GET", "/subscribers/s1/events"), http.stream("GET", "/subscribers/s2/events"):
        assert http.get("/subscribers/s2/events").json()["code"] == "too-many-streams"
    answers = [http.post("/documents", content=b"<b/>").status_code for _ in range(3)]
    assert set(answers) == {202}
    refused = None
    for _ in range(500):
        answer = http.post("/documents", content=b"<b/>")
        if answer.status_code != 202:
            refused = answer
            break
    if refused is not None:  # a slow machine does not publish faster than the limit
        assert (refused.status_code, refused.json()["code"]) == (429, "rate-limit")
        assert int(refused.headers["retry-after"]) >= 1
    assert guarded.client("alice").publish("<b/>").id, "others go on"


def test_what_is_refused_for_its_bytes_does_not_count_as_documents() -> None:
    gate = Gate(Settings(limits=OwnerLimits(documents_per_second=5, bytes_per_second=0.001)), reads=None)  # type: ignore[arg-type]
    gate.spend("o", 1, 1000)
    for _ in range(20):
        with pytest.raises(Problem, match="bytes a second"):
            gate.spend("o", 1, 1)


def test_owners_write_to_topics_that_the_operator_allows(guarded: Guarded) -> None:
    for name, topic, status in (
        ("alice", "of-alice-1", 201),
        ("alice", "payments", 403),
        ("alice", "x-of-alice-1", 403),
        ("admin", "payments", 201),
    ):
        with guarded.http(name) as http:
            answer = http.put("/subscribers/topic", json={"kind": "kafka", "topic": topic})
            assert answer.status_code == status, (name, topic, answer.text)
            if status == 201:
                http.delete("/subscribers/topic").raise_for_status()


def test_a_subscriber_that_a_subscription_makes_has_the_backlog_of_the_settings(guarded: Guarded) -> None:
    """It was 10,000 whatever the settings said."""
    made = guarded.http("admin").post("/keys", json={"owner": "kept", "roles": ["publish", "subscribe"]}).json()
    guarded.keys["kept"] = made["key"]
    client, http = guarded.client("kept"), guarded.http("kept")
    client.add("a", "//a", subscriber="put")
    assert client.add_many([{"id": "b", "xpath": "//a", "subscriber": "imported"}]) == []
    for name in ("put", "imported"):
        assert client.get_subscriber(name)["backlog"] == 7
    assert http.put("/subscribers/own", json={"backlog": 100}).json()["backlog"] == 9
    lines = b"".join(b'{"xml": "<a/>", "label": "%d"}\n' % number for number in range(15))
    http.post("/documents", content=lines, headers={"content-type": "application/x-ndjson"}).raise_for_status()
    until(lambda: client.get_subscriber("put")["waiting"] == 7)
    assert [delivery.document["label"] for delivery in client.deliveries("put")] == [str(n) for n in range(8, 15)]


def test_everything_that_was_changed_is_in_the_audit_log(guarded: Guarded) -> None:
    alice = guarded.client("alice")
    alice.add("audited", "//a")
    alice.add("audited", "//b")
    alice.remove("audited")
    alice.put_subscriber("audited", kind="pull")
    alice.remove_subscriber("audited")
    log = guarded.http("alice").get("/audit", params={"most": 5}).json()["items"]
    assert [(row["action"], row["target"]) for row in reversed(log)] == [
        ("put-subscription", "audited"),
        ("put-subscription", "audited"),
        ("remove-subscription", "audited"),
        ("put-subscriber", "audited"),
        ("remove-subscriber", "audited"),
    ]
    assert all(row["actor"] == f"key:{guarded.keys['alice'].split('_')[1]}" for row in log)


def test_no_other_site_gets_at_an_open_server(server: RunningServer) -> None:
    url = server.url
    for path in ("/subscriptions", "/metrics"):
        rebound = httpx.get(url + path, headers={"host": "evil.example"})
        assert (rebound.status_code, rebound.json()["code"]) == (421, "wrong-host")
    foreign = httpx.post(f"{url}/documents", content=b"<a/>", headers={"origin": "https://evil.example"})
    assert (foreign.status_code, foreign.json()["code"]) == (403, "wrong-origin")
    fetched = httpx.get(f"{url}/subscriptions", headers={"sec-fetch-site": "cross-site"})
    assert fetched.status_code == 403
    for host in ("localhost", f"127.0.0.1:{server.port}", "[::1]:80", "LOCALHOST:1"):
        assert httpx.get(f"{url}/subscriptions", headers={"host": host}).status_code == 200, host


def test_what_the_http_server_says_is_a_line_of_the_log_too(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        with socket.create_connection(("127.0.0.1", server.port), 30) as connection:
            connection.sendall(b"nonsense\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 400")
        said = until(lambda: [record for record in server.records() if record["logger"] == "uvicorn.error"])
    assert said[0]["level"] == "warning"
    assert all(line.startswith("{") for line in server.log.read_text().splitlines())


def test_what_is_logged_does_nothing_to_a_terminal() -> None:
    record = logging.makeLogRecord({"msg": "slow document", "levelname": "INFO", "label": "a\r\x1b[2Jé\nb\u2028c\\"})
    try:
        raise ValueError("\x1b[2J")
    except ValueError:
        record.exc_info = sys.exc_info()
    line, *traced = _Text().format(record).split("\n")
    assert line.endswith(r"slow document label=a\r\x1b[2Jé\nb\u2028c" + "\\")
    assert traced[-1] == r"ValueError: \x1b[2J"


def test_every_answer_has_the_headers(server: RunningServer) -> None:
    for path in ("/subscriptions", "/healthz", "/nothing", "/docs", "/openapi.json", "/documents/x"):
        headers = httpx.get(server.url + path).headers
        assert headers["x-content-type-options"] == "nosniff", path
        assert "default-src 'none'" in headers["content-security-policy"], path
        assert "unsafe-inline" not in headers["content-security-policy"]
    page = httpx.get(f"{server.url}/docs").text
    assert "<script" not in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_it_does_not_listen_to_everybody_without_a_key(tmp_path: Path) -> None:
    refused = command(tmp_path, "--host", "0.0.0.0", "--port", "0")
    assert refused.returncode == 2
    assert "[no-keys]" in refused.stderr


def test_what_it_cannot_start_with_is_said(server: RunningServer, tmp_path: Path) -> None:
    taken = command(tmp_path, "--port", str(server.port))
    assert (taken.returncode, "[cannot-listen]" in taken.stderr) == (4, True)
    (tmp_path / "nonsense.pem").write_text("nonsense")
    secret = command(tmp_path, "--certificate", str(tmp_path / "nonsense.pem"))
    assert (secret.returncode, "nonsense.pem cannot be used" in secret.stderr) == (2, True)
    (tmp_path / "data" / "xsift.db").write_text("nonsense, and more of it")
    garbage = command(tmp_path, "--port", "0")
    assert (garbage.returncode, "[no-database]" in garbage.stderr) == (4, True)
    away = command(tmp_path, "--database", "postgresql://somebody:secret@127.0.0.1:1/none")
    assert (away.returncode, "[no-database]" in away.stderr, "secret" in away.stderr) == (4, True, False)


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ("port = 99999999", "port"),
        ("colour = 1", "colour"),
        ("[webhooks]\nallow_networks = ['x']", "allow_networks"),
        ("[matching]\nthreads = 0", "threads"),
        ("not toml", "TOML"),
        ("folder = 'x'", "folder is a section"),
        ("[kafka]\ntopics = ['x']", "kafka.servers"),
        ("[tls]\nkey = 'x'", "certificate"),
    ],
)
def test_settings_that_are_wrong(tmp_path: Path, settings: str, word: str) -> None:
    from xsift.service.settings import read_settings

    path = tmp_path / "settings.toml"
    path.write_text(settings)
    with pytest.raises(xsift.XsiftError, match=word) as raised:
        read_settings(str(path), folder__path="incoming")
    assert raised.value.code == "bad-config"
