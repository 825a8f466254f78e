"""The same on PostgreSQL, with two servers on one database. The tests start a cluster of their own on a free port,
as an unprivileged user; where PostgreSQL is not installed they are skipped.
"""

from __future__ import annotations

import contextlib
import glob
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from sqlalchemy import Connection

import xsift
from tests.service.receiver import Receiver
from tests.service.running import RunningServer, until
from xsift.service.store import deliveries, schema, subscribers, subscriptions
from xsift.service.store.database import Database
from xsift.service.store.subscribers import NewSubscribers

SETTINGS = """
[webhooks]
allow_networks = ["127.0.0.0/8"]
first_retry_seconds = 0.05
attempts = 1000
breaker_failures = 1000
"""


def programs() -> str | None:
    """Where the programs of PostgreSQL are, also when they are not on the path."""
    found = shutil.which("pg_ctl")
    places = [os.path.dirname(os.path.realpath(found))] if found else []
    places += sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda place: -int(place.split("/")[4]))
    return places[0] if places else None


class Cluster:
    """A PostgreSQL for the tests. Root may not run one, so root runs it as somebody else."""

    def __init__(self, folder: Path, place: str) -> None:
        self._place, self._data = place, folder / "cluster"
        self._user = self._somebody()
        self._data.mkdir()
        if self._user is not None:
            folder.chmod(0o711)
            os.chown(self._data, self._user.pw_uid, self._user.pw_gid)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._run("initdb", "-D", str(self._data), "-U", "xsift", "--auth=trust", "-E", "UTF8", "--no-sync")
        self.start()

    @staticmethod
    def _somebody() -> pwd.struct_passwd | None:
        if os.geteuid() != 0:
            return None
        for name in ("postgres", "nobody"):
            try:
                return pwd.getpwnam(name)
            except KeyError:
                continue
        pytest.skip("PostgreSQL does not run as root, and there is nobody else")

    def _run(self, program: str, *arguments: str) -> None:
        user: dict[str, Any] = {}
        if self._user is not None:
            user = {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}
        ran = subprocess.run(
            [f"{self._place}/{program}", *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=self._data,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
            **user,
        )
        assert ran.returncode == 0, ran.stderr + ran.stdout

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self._data}"
        self._run("pg_ctl", "-D", str(self._data), "-o", options, "-w", "-l", str(self._data / "log"), "start")

    def stop(self, mode: str = "fast") -> None:
        self._run("pg_ctl", "-D", str(self._data), "-m", mode, "-w", "stop")

    def database(self, name: str) -> str:
        administration = f"postgresql://xsift@127.0.0.1:{self.port}/postgres"
        with psycopg.connect(administration, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return f"postgresql://xsift@127.0.0.1:{self.port}/{name}"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    place = programs()
    if place is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    # A folder of its own: those of pytest are closed to others, and another run of the tests closes them again.
    with tempfile.TemporaryDirectory(prefix="xsift-postgres-") as folder:
        cluster = Cluster(Path(folder), place)
        yield cluster
        cluster.stop("immediate")


@pytest.fixture(scope="module")
def two(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RunningServer]]:
    """Two servers on one database."""
    url = cluster.database("two")
    servers = []
    for number in range(2):
        folder = tmp_path_factory.mktemp(f"server{number}")
        servers.append(RunningServer(folder, settings=SETTINGS, options=("--database", url)).start())
    yield servers
    for server in servers:
        assert server.stop() == 0
        assert not [record for record in server.records() if "exception" in record], server.log.read_text()[-4000:]


def test_what_one_server_is_told_the_other_knows(two: list[RunningServer]) -> None:
    one, other = two[0].client(owner="both"), two[1].client(owner="both")
    one.add("a", "//a", subscriber="s", labels={"l": "v"}, metadata={"m": [1, None, "ä"]}, namespaces={"n": "urn:n"})
    until(lambda: other.match("<a/>") == ["a"])
    published = other.publish("<a/>", label="first", wait=True)
    assert published.matches == [{"id": "a", "labels": {"l": "v"}, "metadata": {"m": [1, None, "ä"]}}]
    one.publish("<a/>", label="second")
    for client in (one, other):
        assert [delivery.document["label"] for delivery in client.deliveries("s")] == ["first", "second"]
    assert [row["id"] for row in other.list(labels={"l": "v"})] == ["a"]
    one.add("a", "//b", subscriber="s")
    until(lambda: other.match("<b/>") == ["a"] and other.match("<a/>") == [])
    other.remove("a")
    until(lambda: one.match("<b/>") == [])
    states = httpx.get(f"{two[0].url}/subscriptions/a/history", params={"owner": "both"}).json()["items"]
    assert [state["xpath"] for state in states] == ["//b", "//a"]


def test_events_of_what_the_other_server_published(two: list[RunningServer]) -> None:
    one, other = two[0].client(owner="events"), two[1].client(owner="events")
    one.add("a", "//a", subscriber="s")
    until(lambda: other.match("<a/>"))
    received: list[tuple[str, str]] = []

    def listen() -> None:
        for delivery in two[0].client(owner="events").events("s"):
            received.append((delivery.id, delivery.document["label"]))
            if len(received) == 200:
                return

    listening = threading.Thread(target=listen)
    listening.start()
    publishing = [
        threading.Thread(
            target=lambda client=client, name=name: [client.publish("<a/>", label=f"{name}{n}") for n in range(100)]
        )
        for client, name in ((one, "x"), (other, "y"))
    ]
    for thread in publishing:
        thread.start()
    for thread in (*publishing, listening):
        thread.join(120)
    assert len(received) == 200
    assert sorted(label for _, label in received) == sorted(f"{name}{n}" for name in "xy" for n in range(100))
    places = [int(id.partition("-")[2]) for id, _ in received]
    assert places == list(range(1, 201)), "two servers make one sequence, without holes"
    for name in "xy":
        own = [int(label[1:]) for _, label in received if label[0] == name]
        assert own == list(range(100)), "what one publisher published comes in its order"


def test_a_key_counts_on_both(two: list[RunningServer]) -> None:
    one, other = two[0].client(owner="keys"), two[1].client(owner="keys")
    one.add("a", "//a", subscriber="s")
    until(lambda: other.match("<a/>"))
    ids: set[str] = set()
    threads = [
        threading.Thread(target=lambda client=client: ids.add(client.publish("<a/>", key="same").id))
        for client in (one, other) * 5
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 1
    assert len(one.deliveries("s")) == 1


def test_webhooks_are_sent_by_one_and_taken_over_when_it_dies(two: list[RunningServer]) -> None:
    receiver = Receiver()
    client = two[1].client(owner="hooks")
    client.put_subscriber("hook", kind="webhook", url=receiver.url)
    client.add("a", "//a", subscriber="hook")
    for number in range(20):
        client.publish("<a/>", label=str(number))
    until(lambda: len(receiver.accepted) == 20)
    two[0].kill()
    for number in range(20, 30):
        client.publish("<a/>", label=str(number))
    until(lambda: len(set(receiver.accepted)) == 30, 40)
    two[0].start()
    receiver.close()


def test_whichever_server_is_told_of_another_webhook_it_is_called(two: list[RunningServer]) -> None:
    publisher = two[0].client(owner="moved")
    publisher.add("a", "//a", subscriber="hook")
    receivers = [Receiver() for _ in range(3)]
    for receiver, server in zip(receivers, (*two, two[0]), strict=True):
        server.client(owner="moved").put_subscriber("hook", kind="webhook", url=receiver.url)
        until(lambda receiver=receiver: publisher.publish("<a/>") and receiver.accepted)
    for receiver in receivers:
        receiver.close()


def test_a_server_whose_number_was_taken_makes_no_numbers_of_another(
    cluster: Cluster, two: list[RunningServer]
) -> None:
    """It was away for longer than its lease, and one that started meanwhile has its number."""
    client = two[0].client(owner="number")

    def number() -> int:
        return int(client.publish("<a/>").id, 16) >> 12 & 1023

    lost = number()
    url = f"postgresql://xsift@127.0.0.1:{cluster.port}/two"
    with psycopg.connect(url, autocommit=True) as connection:
        taken = "UPDATE leases SET holder = 'another', until = %s WHERE name = %s"
        connection.execute(taken, (time.time() + 60, f"server-{lost}"))
        until(lambda: number() != lost)
        held = connection.execute("SELECT name FROM leases WHERE until > %s", (time.time(),)).fetchall()
        assert (f"server-{number()}",) in held
        connection.execute(taken, (0.0, f"server-{lost}"))


def test_an_import_of_many(two: list[RunningServer]) -> None:
    with two[0].client(owner="many", timeout=120) as client:
        assert client.add_many((f"s{n}", f"//a[@n={n}]") for n in range(5000)) == []
        assert client.match("<a n='4999'/>") == ["s4999"]
        exported = httpx.get(f"{two[1].url}/subscriptions", params={"format": "ndjson", "owner": "many"}, timeout=60)
        assert len(exported.text.splitlines()) == 5000


def test_the_database_goes_and_comes_back(cluster: Cluster, two: list[RunningServer]) -> None:
    client = two[0].client(owner="away")
    client.add("a", "//a", subscriber="s")
    acknowledged = [client.publish("<a/>", label="before").label]
    cluster.stop("immediate")  # as a crash does it
    answer = httpx.post(f"{two[0].url}/documents", content=b"<a/>", timeout=60)
    assert answer.status_code in (500, 503), answer.text
    assert answer.json()["code"] in ("storage-away", "storage-failed"), answer.text
    cluster.start()

    def again() -> bool:
        try:
            acknowledged.append(client.publish("<a/>", label="after").label)
        except xsift.XsiftError:
            time.sleep(0.2)
            return False
        return True

    until(again, 60)
    assert [delivery.document["label"] for delivery in client.deliveries("s")] == acknowledged


def test_what_changes_between_two_questions_is_seen_by_neither(cluster: Cluster) -> None:
    """Else a server that starts beside an import has a subscription twice, and a reader whose page is dropped while
    it is read skips all that waits."""
    with contextlib.closing(Database(cluster.database("questions"))) as database:
        wanted = [subscriptions.Subscription("a", "//a", "s")]
        with database.connect() as connection, connection.begin():
            version = subscriptions.current_version(connection)
            with database.engine.begin() as other:
                subscriptions.put_many(other, "o", wanted, "test", NewSubscribers(10))
            rows = [row for page in subscriptions.live_rows(connection) for row in page]
        with database.connect() as connection, connection.begin():
            rows += subscriptions.changes_after(connection, version, 10).added
        assert [row.id for row in rows] == ["a"]


def test_a_subscriber_is_removed_while_another_server_delivers_to_it(cluster: Cluster) -> None:
    """Deliveries of nobody would be kept for ever, and their documents with them."""
    url = cluster.database("removed")
    with contextlib.closing(Database(url)) as database:
        with database.engine.begin() as connection:
            number = subscribers.ensure(connection, "o", ["s"], NewSubscribers(10))["s"]

        def remove() -> None:
            with database.engine.begin() as connection:
                subscribers.remove(connection, number)

        removing = threading.Thread(target=remove)
        outcome = deliveries.Outcome(1, "", b"<a/>", None, deliveries=[(number, b"", True)])
        with database.engine.begin() as connection:
            deliveries.store_publications(connection, [deliveries.Publication("o", [outcome], 0.0)])
            removing.start()
            with psycopg.connect(url, autocommit=True) as watching:
                until(lambda: watching.execute("SELECT FROM pg_locks WHERE NOT granted").fetchone() is not None)
        removing.join()
        with database.engine.begin() as connection:
            deliveries.bury(connection, deliveries.StoredDelivery(number, 1, 1, 0.0, b"", True), 1, "late")
            for table in (schema.deliveries, schema.dead_letters):
                assert connection.execute(table.select()).all() == []


def test_two_servers_are_told_of_the_same_new_subscriber(cluster: Cluster) -> None:
    url = cluster.database("same")
    made: list[bool] = []
    with contextlib.closing(Database(url)) as database:

        def put(connection: Connection) -> None:
            kept = {"kind": "pull", "target": {}, "backlog": 10, "state": "active"}
            made.append(subscribers.put(connection, "o", "s", **kept)[1])  # type: ignore[arg-type]

        def put_too() -> None:
            with database.engine.begin() as connection:
                put(connection)

        other = threading.Thread(target=put_too)
        with database.engine.begin() as connection:
            put(connection)
            other.start()
            with psycopg.connect(url, autocommit=True) as watching:
                until(lambda: watching.execute("SELECT FROM pg_locks WHERE NOT granted").fetchone() is not None)
        other.join()
    assert made == [True, False]


def test_a_database_that_is_not_there(tmp_path: Path) -> None:
    server = RunningServer(tmp_path, options=("--database", "postgresql://nobody@127.0.0.1:1/none"))
    with pytest.raises(RuntimeError, match="no-database"):
        server.start()
