"""Webhooks: a signed request a delivery, as the Standard Webhooks specification has it.

`webhook-id` is the id of the delivery and stays the same however often it is sent; `webhook-signature` is an HMAC
over id, timestamp and body. 2xx is received; 410 ends it; everything else, redirects too, is a failure and is
tried again later. A host that keeps failing an owner is left alone for a while, whichever subscriber it fails for;
what other owners send to it goes on.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import hashlib
import hmac
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from xsift.errors import XsiftError
from xsift.service.delivery.addresses import Addresses, guarded_transport
from xsift.service.delivery.courier import LONGEST_WAIT, SendVerdict
from xsift.service.delivery.events import as_json
from xsift.service.settings import Webhooks
from xsift.service.store.deliveries import StoredDelivery
from xsift.service.store.numbers import delivery_id

__all__ = ["Breaker", "Breakers", "Turns", "WebhookSender", "new_secret", "sign"]

MOST_FAILING = 10_000  # hosts whose failures are counted
MOST_OF_ANSWER = 2048  # bytes of an answer that are read,
ANSWER_SECONDS = 1.0  # and how long it is listened to: what counts is its status


def new_secret() -> str:
    """A secret in the specification's format."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


def secret_bytes(secret: str) -> bytes:
    """The key that a secret stands for. Raises XsiftError if it is none."""
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not 16 <= len(key) <= 64:
        raise XsiftError(
            "bad-secret", "the secret is not whsec_ and 16 to 64 bytes in base64", hint="leave it out to get one"
        )
    return key


def sign(secret: str, id: str, timestamp: int, body: bytes) -> str:
    """The value of `webhook-signature`."""
    content = f"{id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(secret_bytes(secret), content, hashlib.sha256).digest()).decode()


@dataclass
class Breaker:
    """Whether a host is called: after so many failures in a row not, for a while; then one call tries."""

    failures: int = 0
    open_until: float = 0.0

    def wait(self, now: float) -> float:
        """Seconds until the next call may be made."""
        return max(0.0, self.open_until - now)

    def tries(self, now: float, most: int, seconds: float) -> None:
        """A call is made. After so many failures it is the only one, for as long as it may take."""
        if self.failures >= most:
            self.open_until = now + seconds

    def failed(self, now: float, most: int, seconds: float) -> None:
        self.failures += 1
        if self.failures >= most:
            self.open_until = now + seconds


Place = tuple[str, str]
"""An owner, and a host that it sends to."""


class Breakers:
    """The breakers of hosts that failed an owner the last time; all others are called."""

    def __init__(self, settings: Webhooks) -> None:
        self._most, self._seconds = settings.breaker_failures, settings.breaker_seconds
        self._call_seconds = settings.timeout_seconds
        self._failing: dict[Place, Breaker] = {}

    def spares(self, place: Place) -> SendVerdict | None:
        """What is said instead of a call, if the host is left alone."""
        breaker = self._failing.get(place)
        pause = breaker.wait(time.monotonic()) if breaker is not None else 0.0
        if breaker is None or not pause:
            return None
        reason = f"{place[1]} has failed {breaker.failures} times in a row"
        return SendVerdict(0, reason=reason, retry_after=pause, counts=False)

    def tries(self, place: Place) -> None:
        if place in self._failing:
            self._failing[place].tries(time.monotonic(), self._most, self._call_seconds)

    def succeeded(self, place: Place) -> None:
        self._failing.pop(place, None)

    def failed(self, place: Place) -> None:
        now = time.monotonic()
        self._failing.setdefault(place, Breaker()).failed(now, self._most, self._seconds)
        if len(self._failing) > MOST_FAILING:  # hosts are made up quickly: some of these fail in a row no more
            self._failing = {where: each for where, each in self._failing.items() if each.wait(now) > 0}

    @property
    def open(self) -> int:
        """How many hosts are left alone."""
        now = time.monotonic()
        return sum(breaker.wait(now) > 0 for breaker in self._failing.values())


class Turns:
    """Places for so many at a time. Owners take turns, so that one whose webhooks hang delays himself; what one owner
    has to send goes in the order in which it came.
    """

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @contextlib.asynccontextmanager
    async def of(self, owner: str) -> AsyncIterator[None]:
        """A place, when it is this owner's turn."""
        await self._take(owner)
        try:
            yield
        finally:
            self._pass_on()

    async def _take(self, owner: str) -> None:
        if self._free:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it was given a place, and does not need it any more
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        """A place is free: the next one has it."""
        while self._waiting:
            owner, turns = self._waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._waiting[owner] = turns
            if not turn.done():  # else who waited has gone
                turn.set_result(None)
                return
        self._free += 1


class WebhookSender:
    """Sends deliveries to webhooks."""

    kind = "webhook"

    def __init__(self, settings: Webhooks) -> None:
        self._settings = settings
        self._breakers = Breakers(settings)
        self._turns = Turns(settings.at_once)
        self._checks = Turns(max(1, settings.at_once // 4))
        self.addresses = Addresses(settings.allow_networks)
        self._client = httpx.AsyncClient(
            transport=guarded_transport(self.addresses, settings.at_once),
            follow_redirects=False,
            timeout=settings.timeout_seconds,
            trust_env=False,
        )

    @property
    def spared(self) -> int:
        """How many hosts are left alone for a while."""
        return self._breakers.open

    async def close(self) -> None:
        await self._client.aclose()

    async def check(self, url: str, owner: str) -> None:
        """Raises XsiftError if webhooks of an owner cannot go to this URL."""
        try:
            parsed = httpx.URL(url)
        except (httpx.InvalidURL, TypeError, ValueError) as error:
            raise XsiftError("bad-url", f"{url[:200]!r} is not a URL: {error}") from error
        if parsed.scheme not in ("http", "https") or not parsed.host or parsed.userinfo:
            raise XsiftError(
                "bad-url", f"{url[:200]!r} cannot be called", hint="http or https, with a host, without a password"
            )
        port = parsed.port if parsed.port is not None else 443 if parsed.scheme == "https" else 80
        if not 1 <= port <= 65535:
            raise XsiftError("bad-url", f"{url[:200]!r} has no port that there can be", hint="1 to 65535")
        seconds = self._settings.timeout_seconds
        async with self._checks.of(owner):
            try:
                await asyncio.wait_for(self.addresses.resolve(parsed.host, port), seconds)
            except TimeoutError as error:
                message = f"the host {parsed.host!r} was not found in {seconds:g} seconds"
                raise XsiftError("unknown-host", message) from error

    async def send(self, subscriber: Any, deliveries: list[StoredDelivery]) -> SendVerdict:
        """Sends the first of the deliveries."""
        url = httpx.URL(subscriber.target["url"])
        place = (subscriber.owner, f"{url.scheme}://{url.netloc.decode()}")
        if (spared := self._breakers.spares(place)) is not None:
            return spared
        async with self._turns.of(subscriber.owner):
            if (spared := self._breakers.spares(place)) is not None:  # it failed while this one waited for its turn
                return spared
            self._breakers.tries(place)
            verdict = await self.send_one(subscriber, deliveries[0])
        if verdict.done or verdict.ends:
            self._breakers.succeeded(place)
        else:
            self._breakers.failed(place)
        return verdict

    async def send_one(self, subscriber: Any, delivery: StoredDelivery) -> SendVerdict:
        """One request, whatever the breaker says."""
        body = as_json(delivery, subscriber.id)
        id, now = delivery_id(delivery.subscriber, delivery.place), int(time.time())
        headers = {
            "content-type": "application/json",
            "user-agent": "xsift",
            "webhook-id": id,
            "webhook-timestamp": str(now),
            "webhook-signature": sign(subscriber.target["secret"], id, now, body),
        }
        try:
            # One limit for all of it: a webhook that sends a byte a second must not hold a place for ever.
            async with asyncio.timeout(self._settings.timeout_seconds):
                request = self._client.build_request("POST", subscriber.target["url"], content=body, headers=headers)
                response = await self._client.send(request, stream=True)
        except TimeoutError:
            return SendVerdict(0, reason=f"no answer in {self._settings.timeout_seconds:g} seconds")
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            return SendVerdict(0, reason=f"{type(error).__name__}: {error}"[:500])
        return _verdict(response.status_code, response.headers, await _beginning(response))


async def _beginning(response: httpx.Response) -> bytes:
    """The beginning of an answer, as far as it comes."""
    read = b""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            async for part in response.aiter_raw():
                read += part
                if len(read) >= MOST_OF_ANSWER:
                    break
    except (TimeoutError, httpx.HTTPError):
        pass  # it was received, or not, all the same
    finally:
        await response.aclose()
    return read[:MOST_OF_ANSWER]


def _verdict(status: int, headers: Mapping[str, str], answer: bytes) -> SendVerdict:
    if 200 <= status < 300:
        return SendVerdict(1)
    if status == 410:
        return SendVerdict(0, reason="it answered 410: it wants no more", ends=True)
    text = answer[:200].decode("utf-8", "replace")
    said = "".join(char if char.isprintable() else " " for char in text).strip()  # PostgreSQL takes no NUL
    reason = f"it answered {status}" + (" (redirects are not followed)" if 300 <= status < 400 else "")
    return SendVerdict(0, reason=f"{reason}: {said}" if said else reason, retry_after=_retry_after(headers))


def _retry_after(headers: Mapping[str, str]) -> float:
    text = headers.get("retry-after", "")
    with contextlib.suppress(ValueError):
        return min(LONGEST_WAIT, max(0.0, float(text)))
    with contextlib.suppress(ValueError, TypeError):
        return min(LONGEST_WAIT, max(0.0, parsedate_to_datetime(text).timestamp() - time.time()))
    return 0.0
