"""Deliveries that are asked for: streams of events, long polls; order, resumption, acknowledgement, bounded
backlogs.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

import xsift
from tests.service.running import RunningServer, until
from xsift.service.delivery import outbox as outbox_module
from xsift.service.delivery.outbox import Outbox, Reads
from xsift.service.store import deliveries as store
from xsift.service.store import subscribers
from xsift.service.store.database import Database
from xsift.service.store.subscribers import NewSubscribers


def take(client: xsift.Client, subscriber: str, number: int, after: str | None = None) -> list[Any]:
    return list(itertools.islice(client.events(subscriber, after=after), number))


def number_of(delivery: Any) -> int:
    return int(delivery.document["label"])


def publish(client: xsift.Client, numbers: range) -> None:
    client.publish_many([xsift.Document(b"<a/>", label=str(number)) for number in numbers])


def test_events_come_in_order_and_resume(client: xsift.Client) -> None:
    client.add("a", "//a", subscriber="s")
    publish(client, range(50))
    first = take(client, "s", 20)
    assert [number_of(delivery) for delivery in first] == list(range(20))
    again = take(client, "s", 5)
    assert again[0].id == first[0].id, "nothing was acknowledged: it comes again, with the same id"
    rest = take(client, "s", 30, after=first[-1].id)
    assert [number_of(delivery) for delivery in rest] == list(range(20, 50))
    assert client.get_subscriber("s")["acknowledged"] == first[-1].id, "who resumes after an event has received it"
    assert number_of(take(client, "s", 1)[0]) == 20


def test_events_that_are_made_while_somebody_listens(client: xsift.Client) -> None:
    client.add("a", "//a", subscriber="s")
    found: list[int] = []
    listening = threading.Thread(
        target=lambda: found.extend(number_of(delivery) for delivery in take(client, "s", 600))
    )
    listening.start()
    for begin in range(0, 600, 60):
        publish(client, range(begin, begin + 60))
    listening.join(30)
    assert found == list(range(600))


def test_long_poll_and_acknowledgement(client: xsift.Client, http: httpx.Client) -> None:
    client.add("a", "//a", subscriber="s")
    assert client.deliveries("s") == []
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.deliveries, "s", wait=20)
        time.sleep(0.2)
        assert not waiting.done()
        publish(client, range(3))
        first = waiting.result(10)
    assert number_of(first[0]) == 0
    found = client.deliveries("s")
    assert [number_of(delivery) for delivery in found] == [0, 1, 2]
    assert [number_of(delivery) for delivery in client.deliveries("s", most=2)] == [0, 1]
    assert [number_of(delivery) for delivery in client.deliveries("s", after=found[1].id)] == [2]
    client.acknowledge("s", found[1])
    assert [number_of(delivery) for delivery in client.deliveries("s")] == [2]
    client.acknowledge("s", found[0])
    assert [number_of(delivery) for delivery in client.deliveries("s")] == [2], "an acknowledgement does not go back"
    client.acknowledge("s", found[2])
    assert client.deliveries("s") == []
    assert client.get_subscriber("s")["waiting"] == 0
    for wrong in ("nonsense", "1-1-1", "-", "999999-1", f"{found[0].id}0000000"):
        assert http.post("/subscribers/s/ack", json={"id": wrong}).status_code == 404, wrong
    assert http.post("/subscribers/s/ack", json={"id": 3}).status_code == 422
    assert http.get("/subscribers/s/deliveries", params={"wait": 61}).status_code == 422
    assert http.get("/subscribers/unknown/deliveries").status_code == 404
    assert http.get("/subscribers/unknown/events").status_code == 404
    assert http.get("/subscribers/s/events", headers={"last-event-id": "nonsense"}).status_code == 404


def test_more_than_a_page(client: xsift.Client) -> None:
    client.add("a", "//a", subscriber="s")
    publish(client, range(700))
    found = client.deliveries("s", most=1000)
    assert [number_of(delivery) for delivery in found] == list(range(700))


def test_a_backlog_is_bounded_and_what_was_dropped_is_told(
    client: xsift.Client, http: httpx.Client, server: RunningServer
) -> None:
    client.put_subscriber("s", kind="pull", backlog=10)
    client.add("a", "//a", subscriber="s")
    publish(client, range(100))
    until(lambda: client.get_subscriber("s")["waiting"] == 10)
    assert client.get_subscriber("s")["dropped"] == 90
    found = client.deliveries("s")
    assert [number_of(delivery) for delivery in found] == list(range(90, 100))
    assert [delivery.dropped for delivery in found] == [90] + [0] * 9, "who only asks is told, too"
    [event] = take(client, "s", 1)
    assert (number_of(event), event.dropped) == (90, 90)
    [event] = take(client, "s", 1, after=f"{found[0].id.partition('-')[0]}-5")
    assert (number_of(event), event.dropped) == (90, 85)
    client.acknowledge("s", found[-1])
    publish(client, range(100, 105))
    found = client.deliveries("s")
    assert [(number_of(delivery), delivery.dropped) for delivery in found] == [(n, 0) for n in range(100, 105)]
    assert client.get_subscriber("s")["dropped"] == 90


@pytest.mark.parametrize(("in_memory", "size"), [(False, 100), (True, 300)])
def test_there_is_so_much_room_for_large_deliveries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: bool, size: int
) -> None:
    """Who waits for room has it when another reader of his owner's has passed on what it had."""
    monkeypatch.setattr(outbox_module, "LARGE", size)
    monkeypatch.setattr(outbox_module, "ROOM", 2 * size)
    database = Database(f"sqlite:///{tmp_path}/store.db")
    with database.engine.begin() as connection:
        number = subscribers.ensure(connection, "o", ["s"], NewSubscribers(10))["s"]
        outcome = store.Outcome(1, "", b"x" * 100, None, deliveries=[(number, b"", True)])
        publication = store.Publication("o", [outcome], 0.0)
        store.store_publications(connection, [publication])
    reads = Reads(database)

    async def read() -> None:
        outbox = Outbox(reads, alone=True)
        first, second, third = readers = [await outbox.attach(number, 0, "o") for _ in range(3)]
        others = await outbox.attach(number, 0, "somebody else")
        if in_memory:
            outbox._arrived(publication.made)
        for reader in (first, second, others):
            assert len(await reader.next(10)) == 1
        gone = asyncio.create_task(third.next(30))
        await asyncio.wait({gone}, timeout=0.2)
        assert not gone.done()
        gone.cancel()
        waiting = asyncio.create_task(third.next(30))
        await asyncio.wait({waiting}, timeout=0.2)
        assert not waiting.done()
        first.release()
        assert len(await waiting) == 1
        for reader in (*readers, others):
            reader.close()
        assert third._room._free == 2 * size

    asyncio.run(read())
    reads.close()
    database.close()


def test_who_reads_nothing_delays_nobody(client: xsift.Client, server: RunningServer, owner: str) -> None:
    client.add("lazy", "//a", subscriber="lazy", deliver="document")
    client.add("keen", "//a", subscriber="keen")
    lazy = socket.create_connection(("127.0.0.1", server.port))
    lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    lazy.sendall(f"GET /subscribers/lazy/events?owner={owner} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
    try:
        big = b"<a>" + b"x" * 100_000 + b"</a>"
        for number in range(100):
            client.publish(big, label=str(number))
        found = take(client, "keen", 100)
        assert [number_of(delivery) for delivery in found] == list(range(100))
    finally:
        lazy.close()
    found = list(client.deliveries("lazy", most=1000))
    found += client.deliveries("lazy", most=1000, after=found[-1].id)  # an answer has some MB of them at most
    assert len(found) == 100, "what was not read is still there"


def test_clients_that_go_away(client: xsift.Client, server: RunningServer, owner: str) -> None:
    client.add("a", "//a", subscriber="s")
    for _ in range(30):
        connection = socket.create_connection(("127.0.0.1", server.port))
        connection.sendall(f"GET /subscribers/s/events?owner={owner} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
        connection.close()
        half = socket.create_connection(("127.0.0.1", server.port))
        half.sendall(b"POST /documents HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n<a>")
        half.close()
    publish(client, range(1))
    assert len(client.deliveries("s")) == 1
    until(lambda: server.metric("xsift_streams") == 0)


async def listen(url: str, owner: str, subscriber: str, number: int) -> list[str]:
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"GET /subscribers/{subscriber}/events?owner={owner} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
    found: list[str] = []
    while len(found) < number:
        line = await reader.readline()
        if line.startswith(b"data: "):
            found.append(json.loads(line[6:])["document"]["label"])
    writer.close()
    return found


def test_a_thousand_streams(client: xsift.Client, server: RunningServer, owner: str) -> None:
    assert client.add_many({"id": f"s{n}", "xpath": "//a", "subscriber": f"u{n}"} for n in range(1000)) == []

    async def all_of_them() -> list[list[str]]:
        listening = [asyncio.create_task(listen(server.url, owner, f"u{n}", 3)) for n in range(1000)]
        while await asyncio.to_thread(server.metric, "xsift_streams") < 1000:
            await asyncio.sleep(0.05)
        for number in range(3):
            await asyncio.to_thread(client.publish, b"<a/>", label=str(number))
        return await asyncio.wait_for(asyncio.gather(*listening), 60)

    assert asyncio.run(all_of_them()) == [["0", "1", "2"]] * 1000
    until(lambda: server.metric("xsift_streams") == 0)


def test_removing_a_subscriber_removes_all_of_it(client: xsift.Client) -> None:
    client.add("a", "//a", subscriber="s")
    client.add("b", "//a", subscriber="other")
    publish(client, range(3))
    client.remove_subscriber("s")
    assert list(client) == ["b"]
    with pytest.raises(xsift.SubscriptionError):
        client.deliveries("s")
    client.add("a", "//a", subscriber="s")
    assert client.deliveries("s") == [], "a new one of the same name begins anew"
    publish(client, range(1))
    assert len(client.deliveries("other")) == 4


def test_a_number_is_never_used_twice(server: RunningServer, owner: str) -> None:
    """Deliveries of a new subscriber have ids of their own, and nobody finds its name where an old one was."""
    with server.client(owner=owner) as client, server.client(owner=f"{owner}-other") as other:
        client.add("a", "//a", subscriber="gone")
        publish(client, range(1))
        before = client.deliveries("gone")[0].id
        client.remove_subscriber("gone")
        other.put_subscriber("private")
        other.add("a", "//a", subscriber="private")
        publish(other, range(1))
        after = other.deliveries("private")[0].id
        assert before.partition("-")[0] != after.partition("-")[0]
        history = httpx.get(f"{server.url}/subscriptions/a/history", params={"owner": owner}).json()
        assert [state["subscriber"] for state in history["items"]] == [""]


def test_a_stream_ends_when_its_subscriber_is_removed(client: xsift.Client, http: httpx.Client) -> None:
    client.add("a", "//a", subscriber="s")
    with http.stream("GET", "/subscribers/s/events", timeout=10) as stream:
        lines = stream.iter_lines()
        assert next(lines) == "retry: 1000"
        client.remove_subscriber("s")
        assert not any("event" in line for line in lines), "it ends, without waiting for the next sign of life"


def test_an_ended_stream_comes_back(client: xsift.Client) -> None:
    """Two readers of one subscriber each get everything."""
    client.add("a", "//a", subscriber="s")
    publish(client, range(5))
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(take, client, "s", 5) for _ in range(2)]
        assert [[number_of(delivery) for delivery in one.result(20)] for one in both] == [list(range(5))] * 2


def test_the_activity_of_the_server(client: xsift.Client, http: httpx.Client) -> None:
    client.add("a", "//a")
    client.publish("<a/>", label="seen")
    with pytest.raises(xsift.DocumentError):
        client.publish("<a>", label="broken")
    seen: dict[str, Any] = {}
    with http.stream("GET", "/activity") as answer:
        for line in answer.iter_lines():
            if line.startswith("data: "):
                event = json.loads(line[6:])
                seen[event["label"]] = event
            if {"seen", "broken"} <= seen.keys():
                break
    assert seen["seen"]["matches"] >= 1
    assert seen["broken"]["error"]["code"]
