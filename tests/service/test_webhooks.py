"""Webhooks: signed, in order, tried again, given up, cut off; never to where they should not go."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

import xsift
from tests.service.receiver import Receiver
from tests.service.running import RunningServer, running, until
from xsift.errors import XsiftError
from xsift.service.delivery import webhooks
from xsift.service.delivery.addresses import Addresses
from xsift.service.delivery.courier import SendVerdict
from xsift.service.delivery.webhooks import (
    Breaker,
    Breakers,
    Turns,
    WebhookSender,
    _verdict,
    new_secret,
    secret_bytes,
    sign,
)
from xsift.service.settings import Webhooks
from xsift.service.store.deliveries import StoredDelivery


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


def subscribe(client: xsift.Client, receiver: Receiver, **told: Any) -> dict[str, Any]:
    made = client.put_subscriber("hook", kind="webhook", url=receiver.url, **told)
    client.add("a", "//a", subscriber="hook")
    return made


def labels(bodies: list[bytes]) -> list[str]:
    return [json.loads(body)["document"]["label"] for body in bodies]


def publish(client: xsift.Client, number: int, first: int = 0) -> list[str]:
    wanted = [str(place) for place in range(first, first + number)]
    client.publish_many([xsift.Document(b"<a/>", label=label) for label in wanted])
    return wanted


def test_signed_and_in_order(client: xsift.Client, receiver: Receiver) -> None:
    secret = subscribe(client, receiver)["secret"]
    assert secret.startswith("whsec_")
    assert "secret" not in client.get_subscriber("hook")
    assert "secret" not in client.put_subscriber("hook", kind="webhook", url=receiver.url), "it is shown once"
    wanted = publish(client, 120)
    until(lambda: len(receiver.accepted) == 120)
    assert labels(receiver.accepted) == wanted
    for headers, body in zip(receiver.headers, receiver.bodies, strict=True):
        assert headers["content-type"] == "application/json"
        assert headers["webhook-id"] == json.loads(body)["id"]
        assert abs(int(headers["webhook-timestamp"]) - time.time()) < 60
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        key = base64.b64decode(secret.removeprefix("whsec_"))
        expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        assert headers["webhook-signature"] == f"v1,{expected}"
    until(lambda: client.get_subscriber("hook")["waiting"] == 0)


def test_the_example_of_the_specification() -> None:
    """The vector that implementations of Standard Webhooks are tested with."""
    signature = sign(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
    )
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_failures_are_tried_again_and_keep_their_id_and_order(client: xsift.Client, receiver: Receiver) -> None:
    receiver.answer = lambda number: 500 if number % 3 else 204
    subscribe(client, receiver)
    wanted = publish(client, 12)
    until(lambda: len(receiver.accepted) == 12)
    assert labels(receiver.accepted) == wanted
    tried = [headers["webhook-id"] for headers in receiver.headers]
    assert len(tried) > 12
    assert sorted(set(tried), key=lambda id: int(id.partition("-")[2])) == list(dict.fromkeys(tried))


def test_after_the_last_attempt_it_is_a_dead_letter_that_can_be_replayed(
    client: xsift.Client, receiver: Receiver, http: httpx.Client
) -> None:
    receiver.answer = lambda number: 204 if number >= 4 else 503
    subscribe(client, receiver)
    publish(client, 2)
    until(lambda: len(receiver.accepted) == 1)
    assert labels(receiver.accepted) == ["1"], "the next one has its turn"
    [dead] = until(lambda: client.dead_letters(subscriber="hook"))
    assert (dead["attempts"], dead["delivery"]["document"]["label"]) == (4, "0")
    assert "503" in dead["reason"]
    receiver.answer, sent = 500, len(receiver.bodies)
    with pytest.raises(xsift.ServiceError) as raised:
        client.replay(dead["id"])
    assert len(receiver.bodies) == sent + 1, "it is sent once"
    assert (raised.value.status, raised.value.code) == (502, "not-received")
    assert len(client.dead_letters(subscriber="hook")) == 1
    receiver.answer = 204
    client.replay(dead["id"])
    assert receiver.headers[-1]["webhook-id"] == dead["id"], "it keeps its id"
    assert client.dead_letters(subscriber="hook") == []
    assert http.post(f"/dead-letters/{dead['id']}/replay").status_code == 404
    assert http.delete(f"/dead-letters/{dead['id']}").status_code == 404


def test_a_dead_letter_can_be_forgotten(client: xsift.Client, receiver: Receiver, http: httpx.Client) -> None:
    receiver.answer = 400
    subscribe(client, receiver)
    publish(client, 1)
    [dead] = until(lambda: client.dead_letters(subscriber="hook"))
    assert http.delete(f"/dead-letters/{dead['id']}").status_code == 204
    assert client.dead_letters(subscriber="hook") == []


def test_410_ends_it(client: xsift.Client, receiver: Receiver) -> None:
    receiver.answer = 410
    subscribe(client, receiver)
    publish(client, 3)
    until(lambda: client.get_subscriber("hook")["state"] == "ended")
    publish(client, 3)
    time.sleep(0.3)
    assert len(receiver.bodies) == 1
    receiver.answer = 204
    client.put_subscriber("hook", kind="webhook", url=receiver.url)
    until(lambda: len(receiver.accepted) >= 3)
    assert labels(receiver.accepted)[:3] == ["0", "1", "2"], "what waited when it ended is sent when it begins again"


def test_redirects_are_not_followed(client: xsift.Client, receiver: Receiver) -> None:
    other = Receiver()
    receiver.answer, receiver.location = 302, other.url
    subscribe(client, receiver)
    publish(client, 1)
    [dead] = until(lambda: client.dead_letters(subscriber="hook"))
    assert "302" in dead["reason"]
    assert other.bodies == []
    other.close()


def test_what_was_answered_with_2xx_is_received_whatever_follows(client: xsift.Client, receiver: Receiver) -> None:
    receiver.answer, receiver.drip = 200, True  # longer than the answer may take
    subscribe(client, receiver)
    publish(client, 2)
    until(lambda: client.get_subscriber("hook")["acknowledged"].endswith("-2"))
    assert labels(receiver.bodies) == ["0", "1"]


@pytest.mark.parametrize("way", ["hang", "drip"])
def test_one_that_hangs_or_is_slow_delays_nobody_else(client: xsift.Client, receiver: Receiver, way: str) -> None:
    if way == "hang":
        receiver.hang = 30
    else:
        receiver.answer, receiver.drip = 200, True
    subscribe(client, receiver)
    good = Receiver()
    client.put_subscriber("good", kind="webhook", url=good.url)
    client.add("b", "//a", subscriber="good")
    started = time.monotonic()
    wanted = publish(client, 30)
    until(lambda: len(good.accepted) == 30)
    assert labels(good.accepted) == wanted
    assert time.monotonic() - started < 8
    if way == "hang":
        until(lambda: client.get_subscriber("hook")["attempts"] > 0 or client.dead_letters(subscriber="hook"))
    client.remove_subscriber("hook")
    good.close()


def test_nobody_listens(client: xsift.Client, receiver: Receiver) -> None:
    receiver.close()
    subscribe(client, receiver)
    publish(client, 1)
    [dead] = until(lambda: client.dead_letters(subscriber="hook"))
    assert "Connect" in dead["reason"]


def test_a_pause(client: xsift.Client, receiver: Receiver) -> None:
    client.put_subscriber("hook", kind="webhook", url=receiver.url, state="paused")
    client.add("a", "//a", subscriber="hook")
    publish(client, 5)
    time.sleep(0.5)
    assert receiver.bodies == []
    assert client.get_subscriber("hook")["waiting"] == 5
    client.put_subscriber("hook", kind="webhook", url=receiver.url, state="active")
    until(lambda: len(receiver.accepted) == 5)


def test_retry_after_is_honoured(client: xsift.Client, receiver: Receiver) -> None:
    receiver.answer = lambda number: 429 if number == 0 else 204
    receiver.retry_after = "1"
    subscribe(client, receiver)
    started = time.monotonic()
    publish(client, 1)
    until(lambda: receiver.accepted)
    assert time.monotonic() - started > 0.9


def test_what_is_dropped_while_a_webhook_is_waited_for_is_not_sent(client: xsift.Client, receiver: Receiver) -> None:
    receiver.answer, receiver.retry_after = 503, "3"
    subscribe(client, receiver, backlog=5)
    wanted = publish(client, 1)
    until(lambda: receiver.bodies)
    wanted += publish(client, 19, 1)
    until(lambda: client.get_subscriber("hook")["dropped"] == 15)
    receiver.answer = 204
    until(lambda: client.get_subscriber("hook")["waiting"] == 0)
    assert labels(receiver.accepted) == wanted[15:]


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/",
        "http://",
        "nonsense",
        "http://user:password@127.0.0.1/",
        "http://10.0.0.1/",
        "http://[::1]/",
        "http://169.254.169.254/latest/meta-data",
        "http://0.0.0.0/",
        "http://[::ffff:10.0.0.1]/",
        "http://not-a-host.invalid/",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1:0/",
    ],
)
def test_where_webhooks_may_not_go(http: httpx.Client, url: str) -> None:
    answer = http.put("/subscribers/hook", json={"kind": "webhook", "url": url})
    assert answer.status_code == 422
    assert answer.json()["code"] in ("bad-url", "private-address", "unknown-host")


@pytest.mark.parametrize(
    "told",
    [
        {"kind": "webhook"},
        {"kind": "pull", "url": "http://127.0.0.1/"},
        {"kind": "webhook", "url": "http://127.0.0.1/", "secret": "short"},
        {"kind": "kafka"},
        {"kind": "kafka", "topic": "a b"},
        {"kind": "pigeon"},
        {"kind": "pull", "backlog": 0},
        {"kind": "pull", "state": "ended"},
    ],
)
def test_wrong_subscribers(http: httpx.Client, told: dict[str, Any]) -> None:
    assert http.put("/subscribers/hook", json=told).status_code == 422


def test_the_check_is_made_where_the_connection_is_made(tmp_path: Path) -> None:
    """A name that was public when it was checked, and is not when it is called: nothing is sent."""
    receiver = Receiver()
    allowing = '[webhooks]\nallow_networks = ["127.0.0.0/8"]\nattempts = 1'
    with running(tmp_path, settings=allowing) as server, server.client() as client:
        subscribe(client, receiver)
    server = RunningServer(tmp_path, settings="[webhooks]\nattempts = 1").start()
    with server.client() as client:
        publish(client, 1)
        [dead] = until(lambda: client.dead_letters(subscriber="hook"))
        assert "not a public address" in dead["reason"]
    server.stop()
    assert receiver.bodies == []
    receiver.close()


def test_addresses() -> None:
    addresses = Addresses(["10.1.0.0/16", "fd00::/8"])
    for allowed in ("8.8.8.8", "2001:4860:4860::8888", "10.1.2.3", "fd00::1", "::ffff:8.8.8.8", "::ffff:10.1.2.3"):
        assert addresses.allows(allowed), allowed
    assert Addresses(["::1/128"]).allows("::1")
    refused = ["127.0.0.1", "10.2.0.1", "192.168.1.1", "169.254.169.254", "::1", "fe80::1%eth0", "::ffff:127.0.0.1"]
    refused += ["0.0.0.0", "224.0.0.1", "100.64.0.1", "2002:7f00:1::", "::", "255.255.255.255", "64:ff9b::7f00:1"]
    refused += ["::10.0.0.1", "::ffff:0:10.0.0.1", "64:ff9b:1::808:808", "fec0::1", "2001:0:0:0:0:0:f5ff:fffe"]
    for address in refused:
        assert not addresses.allows(address), address
    with pytest.raises(XsiftError, match="not a public address"):
        asyncio.run(addresses.resolve("localhost", 80))


def test_what_a_webhook_says_is_noted_as_far_as_it_is_text() -> None:
    assert _verdict(500, {}, b"\x00no\x00\xff\nway\x1b[0m\x00").reason == "it answered 500: no \ufffd way [0m"
    assert _verdict(500, {}, b"\x00\x00").reason == "it answered 500"


def test_a_breaker_opens_and_tries_again() -> None:
    breaker = Breaker()
    for _ in range(2):
        breaker.failed(100.0, 3, 30.0)
    assert breaker.wait(100.0) == 0
    breaker.failed(100.0, 3, 30.0)
    assert breaker.wait(110.0) == 20
    assert breaker.wait(131.0) == 0
    breaker.tries(131.0, 3, 5.0)
    assert breaker.wait(132.0) == 4, "one call tries"
    breaker.failed(133.0, 3, 30.0)
    assert breaker.wait(134.0) == 29, "and it is open again at once"


def test_hosts_that_fail_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "MOST_FAILING", 10)
    breakers = Breakers(Webhooks(breaker_failures=2))
    for _ in range(2):
        breakers.failed(("o", "http://down"))
    for number in range(100):
        breakers.failed(("o", f"http://{number}"))
        breakers.failed(("o", "http://up"))
        breakers.succeeded(("o", "http://up"))
    assert len(breakers._failing) <= 11
    assert breakers.open == 1
    assert breakers.spares(("o", "http://down")) is not None
    assert breakers.spares(("another", "http://down")) is None, "nobody spoils a host for others"


def test_who_waited_for_a_turn_does_not_call_a_host_that_failed_meanwhile() -> None:
    called = []

    async def fail(subscriber: Any, delivery: Any) -> SendVerdict:
        called.append(subscriber)
        await asyncio.sleep(0)
        return SendVerdict(0, reason="it hangs")

    async def send() -> list[SendVerdict]:
        sender = WebhookSender(Webhooks(at_once=1, breaker_failures=2))
        sender.send_one = fail  # type: ignore[method-assign]
        delivery = StoredDelivery(1, 1, 1, 0.0, b"")
        subscriber = SimpleNamespace(owner="o", target={"url": "http://down.example/"})
        verdicts = await asyncio.gather(*(sender.send(subscriber, [delivery]) for _ in range(9)))
        await sender.close()
        return verdicts

    assert sum(verdict.counts for verdict in asyncio.run(send())) == len(called) == 2


def test_owners_take_turns() -> None:
    turns, order = Turns(1), []

    async def take(owner: str) -> None:
        async with turns.of(owner):
            order.append(owner)
            await asyncio.sleep(0)

    async def all_of_them() -> None:
        tasks = [asyncio.create_task(take(owner)) for owner in ("a", "a", "a", "gone", "a", "b")]
        await asyncio.sleep(0)
        tasks[3].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        async with asyncio.timeout(10):
            await take("a")

    asyncio.run(all_of_them())
    assert order == ["a", "a", "b", "a", "a", "a"], "and who went away took no place with him"


def test_names_that_nobody_answers_for_keep_no_others_from_being_found(monkeypatch: pytest.MonkeyPatch) -> None:
    answer, known = threading.Event(), socket.getaddrinfo

    def ask(host: str, *arguments: Any, **options: Any) -> Any:
        if host == "slow.example":
            answer.wait()
        return known("127.0.0.1", *arguments, **options)

    async def find() -> list[str]:
        addresses = Addresses(["127.0.0.0/8"])
        slow = [asyncio.create_task(addresses.resolve("slow.example", 80)) for _ in range(64)]
        try:
            await asyncio.sleep(0)
            return await asyncio.wait_for(addresses.resolve("fast.example", 80), 20)
        finally:
            answer.set()
            await asyncio.gather(*slow)

    monkeypatch.setattr(socket, "getaddrinfo", ask)
    assert asyncio.run(find()) == ["127.0.0.1"]


def test_an_open_breaker_spares_the_host_and_costs_no_attempts(tmp_path: Path) -> None:
    settings = """
[webhooks]
allow_networks = ["127.0.0.0/8"]
first_retry_seconds = 0.01
longest_retry_seconds = 0.02
attempts = 50
breaker_failures = 3
breaker_seconds = 0.7
"""
    receiver = Receiver(500)
    with running(tmp_path, settings=settings) as server, server.client() as client:
        subscribe(client, receiver)
        publish(client, 1)
        until(lambda: server.metric("xsift_breakers_open") == 1)
        assert len(receiver.bodies) == 3
        time.sleep(0.3)
        assert len(receiver.bodies) == 3
        receiver.answer = 204
        until(lambda: len(receiver.accepted) == 1)
        until(lambda: server.metric("xsift_breakers_open") == 0)
    receiver.close()


def test_secrets() -> None:
    assert len(secret_bytes(new_secret())) == 32
    for wrong in ("", "whsec_", "whsec_???", "whsec_" + base64.b64encode(b"short").decode()):
        with pytest.raises(XsiftError):
            secret_bytes(wrong)
