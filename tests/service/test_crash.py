"""Killed at random, out of disk, told to stop: no document that was acknowledged is lost, no delivery is lost, and
one that comes twice has the same id both times.

XSIFT_KILLS=20 kills it twenty times; by default it is killed three times.
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import xsift
from tests.service.receiver import Receiver
from tests.service.running import RunningServer, until

KILLS = int(os.environ.get("XSIFT_KILLS", "3"))
SETTINGS = """
[webhooks]
allow_networks = ["127.0.0.0/8"]
first_retry_seconds = 0.05
longest_retry_seconds = 0.3
attempts = 1000
breaker_failures = 1000
"""


class Publishers:
    """Threads that publish until they are stopped. A document counts once it was acknowledged."""

    def __init__(self, server: RunningServer, threads: int = 4) -> None:
        self._server = server
        self._stop = threading.Event()
        self.acknowledged: dict[str, str] = {}
        self.errors: list[BaseException] = []
        self._threads = [threading.Thread(target=self._publish, args=(number,)) for number in range(threads)]
        for thread in self._threads:
            thread.start()

    def _publish(self, thread: int) -> None:
        number = 0
        try:
            with httpx.Client(base_url=self._server.url, timeout=20) as http:
                while not self._stop.is_set():
                    label = f"{thread}:{number}"
                    self.acknowledged[label] = self._insist(http, label)
                    number += 1
        except BaseException as error:
            self.errors.append(error)

    def _insist(self, http: httpx.Client, label: str) -> str:
        """Publishes, however often it takes: with the same key, so that it is published once."""
        while True:
            try:
                answer = http.post(
                    "/documents", params={"label": label}, content=b"<a/>", headers={"idempotency-key": label}
                )
                if answer.status_code == 202:
                    return str(answer.json()["id"])
                assert answer.status_code in (503, 507), answer.text
            except httpx.TransportError:
                pass
            time.sleep(0.02)

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        assert not self.errors


class Listener:
    """Receives events, for ever, on a thread."""

    def __init__(self, client: xsift.Client, subscriber: str) -> None:
        self.received: list[tuple[str, str]] = []
        threading.Thread(target=self._listen, args=(client, subscriber), daemon=True).start()

    def _listen(self, client: xsift.Client, subscriber: str) -> None:
        for delivery in client.events(subscriber):
            self.received.append((delivery.id, delivery.document["label"]))


def check_nothing_is_lost(received: list[tuple[str, str]], acknowledged: dict[str, str]) -> None:
    ids: dict[str, set[str]] = {}
    for id, label in received:
        ids.setdefault(label, set()).add(id)
    assert set(ids) >= set(acknowledged), "a delivery was lost"
    doubled = {label: found for label, found in ids.items() if len(found) > 1}
    assert not doubled, "a document was delivered under two ids"
    places = [int(id.partition("-")[2]) for id in dict.fromkeys(id for id, _ in received)]
    assert places == sorted(places), "deliveries came out of order"
    assert places == list(range(1, len(places) + 1)), "there is a hole"


def test_killed_at_random(tmp_path: Path) -> None:
    randomness = random.Random(KILLS)
    server = RunningServer(tmp_path, settings=SETTINGS).start()
    receiver = Receiver()
    with server.client() as client:
        client.add("stream", "//a", subscriber="stream")
        client.put_subscriber("hook", kind="webhook", url=receiver.url)
        client.add("hook", "//a", subscriber="hook")
        client.add("polled", "//a", subscriber="polled", deliver="document")
        listener = Listener(server.client(), "stream")
        publishers = Publishers(server)
        for _ in range(KILLS):
            time.sleep(randomness.uniform(0.1, 1.5))
            server.kill()
            server.start()
        time.sleep(0.5)
        publishers.stop()
        acknowledged = publishers.acknowledged
        assert len(acknowledged) > 10 * KILLS
        until(lambda: len({label for _, label in listener.received}) >= len(acknowledged), 60)
        check_nothing_is_lost(listener.received, acknowledged)

        def hooked() -> list[tuple[str, str]]:
            told = [json.loads(body) for body in list(receiver.accepted)]
            return [(item["id"], item["document"]["label"]) for item in told]

        until(lambda: len({label for _, label in hooked()}) >= len(acknowledged), 60)
        check_nothing_is_lost(hooked(), acknowledged)
        polled: list[tuple[str, str]] = []
        while found := client.deliveries("polled", most=1000):
            assert {delivery.xml for delivery in found} == {"<a/>"}
            polled += [(delivery.id, delivery.document["label"]) for delivery in found]
            client.acknowledge("polled", found[-1])
        check_nothing_is_lost(polled, acknowledged)
        stored: list[str] = []
        after = ""
        while page := httpx.get(f"{server.url}/documents", params={"most": 1000, "after": after}).json():
            stored += [item["label"] for item in page["items"]]
            after = page["next"]
            if after is None:
                break
        assert sorted(stored) == sorted(acknowledged), "each document is there once"
    assert server.stop() == 0
    receiver.close()


def test_told_to_stop_it_loses_nothing(tmp_path: Path) -> None:
    server = RunningServer(tmp_path, settings=SETTINGS).start()
    with server.client() as client:
        client.add("stream", "//a", subscriber="stream")
        listener = Listener(server.client(), "stream")
        publishers = Publishers(server)
        time.sleep(0.7)
        assert server.stop() == 0
        records = server.records()
        assert [record["message"] for record in records if record["level"] in ("error", "warning")] == []
        server.start()
        time.sleep(0.3)
        publishers.stop()
        until(lambda: len({label for _, label in listener.received}) >= len(publishers.acknowledged), 60)
        check_nothing_is_lost(listener.received, publishers.acknowledged)
    server.stop()


def _publish_until_full(http: httpx.Client) -> httpx.Response:
    body = b"<a>" + b"x" * 100_000 + b"</a>"
    for number in range(2000):
        answer = http.post("/documents", content=body, params={"label": str(number)})
        if answer.status_code != 202:
            return answer
    raise AssertionError("it never became full")


def check_a_full_disk(server: RunningServer, free: Any) -> None:
    with server.client() as client, httpx.Client(base_url=server.url, timeout=60) as http:
        client.add("a", "//a", subscriber="s")
        stored = client.publish("<a/>", label="before").id
        answer = _publish_until_full(http)
        assert (answer.status_code, answer.json()["code"]) == (507, "storage-full")
        assert http.get("/healthz").status_code == 200
        assert http.get("/readyz").status_code == 503
        assert http.post("/match", content=b"<a/>").status_code == 200, "what needs no disk goes on"
        assert http.get(f"/documents/{stored}").content == b"<a/>"
        full = client.get_subscriber("s")["last"]
        free()
        published = until(lambda: _try(http), 30)
        assert int(published["id"], 16) > int(stored, 16)
        until(lambda: http.get("/readyz").status_code == 200)
        last = client.get_subscriber("s")["last"]
        before, after = (int(id.partition("-")[2]) for id in (full, last))
        assert after == before + 1, "what was refused left nothing behind"
        client.add("b", "//b")


def _try(http: httpx.Client) -> Any:
    answer = http.post("/documents", content=b"<a/>", params={"label": "after"})
    return answer.json() if answer.status_code == 202 else None


def test_a_limit_on_files(tmp_path: Path) -> None:
    """A disk that takes no more, as any user can have it: the process may not make a file larger."""
    server = RunningServer(tmp_path).start()
    assert server.process is not None
    pid = server.process.pid
    size = max(path.stat().st_size for path in server.data.iterdir()) + 3_000_000
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    check_a_full_disk(
        server,
        lambda: resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)),
    )
    assert server.stop() == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 12 MB; only root can have one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("only root can mount a small disk")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


def test_a_full_disk(tmp_path: Path, small_disk: Path) -> None:
    server = RunningServer(tmp_path, options=("--data", str(small_disk / "data")))
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * 4_000_000)
    server.start()
    check_a_full_disk(server, filler.unlink)
    assert server.stop() == 0


def test_two_servers_do_not_share_a_folder(server: RunningServer, tmp_path: Path) -> None:
    second = RunningServer(tmp_path, options=("--data", str(server.data)))
    with pytest.raises(RuntimeError, match="database-in-use"):
        second.start()
