"""Who asks, and how much they may: keys, roles, owners; rates; what a browser may and may not do.

While there is no key at all, everybody on this machine is an admin: `xsift serve` then listens on localhost
only, and answers only to the names of localhost, so that a page of another site cannot reach it by a name that it
controls. From the first key on, every request needs one.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from sqlalchemy.exc import DBAPIError
from starlette.requests import Request

from xsift.service.api.problems import Problem
from xsift.service.delivery.outbox import Reads
from xsift.service.settings import OwnerLimits, Settings
from xsift.service.store import keys
from xsift.service.store.keys import Caller

__all__ = ["COOKIE", "Gate", "OwnerUse", "Standing"]

COOKIE = "xsift_key"
LOCAL = ("localhost", "127.0.0.1", "[::1]", "::1")
REMEMBERED_SECONDS = 5.0  # a key that was revoked by another server works so long
MOST_REMEMBERED = 10_000
TRIALS_OF_ONE = 2  # that are worked on at a time: fewer than there are threads for them
SEARCHES_OF_ONE = 2  # likewise, of lists: a search may look at all that an owner has
OPEN_CALLER = Caller("default", frozenset(keys.ROLES), "localhost")


@dataclass(slots=True)
class _Bucket:
    """Tokens that come back at a rate; a second's worth can be saved up."""

    tokens: float
    at: float

    def wait(self, rate: float, now: float) -> float:
        """Seconds until there are tokens; 0 if there are. A large document may take more: the next waits longer."""
        self.tokens = min(max(rate, 1.0), self.tokens + (now - self.at) * rate)
        self.at = now
        return (1.0 - self.tokens) / rate if self.tokens <= 0 else 0.0


@dataclass(slots=True)
class OwnerUse:
    """What an owner uses at the moment."""

    requests: int = 0
    streams: int = 0
    trials: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(TRIALS_OF_ONE))
    searches: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(SEARCHES_OF_ONE))
    documents: _Bucket = field(default_factory=lambda: _Bucket(1.0, 0.0))
    bytes: _Bucket = field(default_factory=lambda: _Bucket(1.0, 0.0))

    def leave(self) -> None:
        """A request has ended."""
        self.requests -= 1

    def leave_stream(self) -> None:
        """So has a stream."""
        self.streams -= 1


class Gate:
    """Lets requests in, or not."""

    def __init__(self, settings: Settings, reads: Reads) -> None:
        self._settings = settings
        self._limits: OwnerLimits = settings.limits
        self._reads = reads
        self._known: dict[bytes, tuple[float, Caller | None]] = {}
        self._use: dict[str, OwnerUse] = {}
        self._own_hosts: set[str] = set()
        self._open_until = 0.0
        self.needs_key = True

    async def refresh(self) -> None:
        """Looks whether there are keys."""
        self.needs_key = await self._reads.run(keys.any_keys)
        self._open_until = time.monotonic() + REMEMBERED_SECONDS

    def forget(self) -> None:
        """Keys were changed."""
        self._known.clear()
        self._open_until = 0.0

    async def caller(self, request: Request) -> Caller:
        """Who asks. Raises Problem if nobody that may."""
        if not self.needs_key and time.monotonic() > self._open_until:
            await self.refresh()
        if not self.needs_key:
            self._check_host(request)
            self._check_origin(request)
            return OPEN_CALLER
        key, by_cookie = _key_of(request)
        if key is None:
            raise _unauthorised("an API key is needed", "send it as `Authorization: Bearer KEY`")
        if by_cookie:
            self._check_origin(request)
        found = await self._check(key)
        if found is None:
            raise _unauthorised("this API key is not valid", "it was mistyped, or revoked")
        return found

    async def _check(self, key: str) -> Caller | None:
        digest = hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
        at, found = self._known.get(digest, (0.0, None))
        now = time.monotonic()
        if now - at > REMEMBERED_SECONDS or found is None:
            found = await self._reads.run(lambda connection: keys.check(connection, key))
            if found is not None:
                if len(self._known) >= MOST_REMEMBERED:
                    self._known.clear()
                self._known[digest] = (now, found)
        return found

    def _check_host(self, request: Request) -> None:
        host = request.headers.get("host", "")
        if host in self._own_hosts:
            return
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        if name.lower() not in LOCAL and name not in self._settings.hosts and not self._settings.insecure:
            raise Problem(
                421,
                "wrong-host",
                f"{name[:100]!r} is not a name of this server",
                hint="make an API key, or see `hosts`",
            )
        if len(self._own_hosts) < MOST_REMEMBERED:
            self._own_hosts.add(host)

    def _check_origin(self, request: Request) -> None:
        """A browser says from which site a request comes. Another one's may not change anything, nor read."""
        origin = request.headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
            raise Problem(403, "wrong-origin", "this request comes from a page of another site")
        if request.headers.get("sec-fetch-site") == "cross-site":
            raise Problem(403, "wrong-origin", "this request comes from a page of another site")

    # How much

    def use(self, owner: str) -> OwnerUse:
        if len(self._use) > MOST_REMEMBERED:
            self._use = {name: use for name, use in self._use.items() if use.requests or use.streams}
        return self._use.setdefault(owner, OwnerUse())

    def enter(self, owner: str) -> OwnerUse:
        """Counts a request. Raises Problem if there are too many at once. `leave` must follow."""
        use = self.use(owner)
        if use.requests >= self._limits.requests_at_once:
            raise Problem(
                429,
                "too-many-requests",
                f"{use.requests} requests of {owner!r} are under way",
                headers={"retry-after": "1"},
            )
        use.requests += 1
        return use

    def enter_stream(self, owner: str) -> OwnerUse:
        """Counts a stream. Raises Problem if too many are open. `leave_stream` must follow."""
        use = self.use(owner)
        if use.streams >= self._limits.streams:
            raise Problem(429, "too-many-streams", f"{use.streams} streams are open", headers={"retry-after": "5"})
        use.streams += 1
        return use

    def spend(self, owner: str, documents: int, size: int) -> None:
        """Counts documents. Raises Problem if it is too many for the rate of an owner."""
        use, now = self.use(owner), time.monotonic()
        buckets = (
            (use.documents, documents, self._limits.documents_per_second, "documents"),
            (use.bytes, size, self._limits.bytes_per_second, "bytes"),
        )
        for bucket, _, rate, what in buckets:
            wait = bucket.wait(rate, now) if rate else 0.0
            if wait:
                raise Problem(
                    429,
                    "rate-limit",
                    f"more than {rate:g} {what} a second",
                    headers={"retry-after": str(max(1, round(wait)))},
                )
        for bucket, number, _, _ in buckets:  # only now: what is refused costs nothing
            bucket.tokens -= number


class Standing:
    """Whether somebody whose stream is open may still have it: keys are revoked, and a first one is made."""

    def __init__(self, gate: Gate, request: Request, caller: Caller) -> None:
        self._gate, self._request, self._caller = gate, request, caller
        self._looked = time.monotonic()

    async def holds(self) -> bool:
        """Looked up now and then, so that a revoked key is told nothing for longer than a few seconds."""
        if time.monotonic() - self._looked < REMEMBERED_SECONDS:
            return True
        try:
            holds = await self._gate.caller(self._request) == self._caller
        except Problem:
            return False
        except DBAPIError:  # the database is away, and so nobody can be asked
            return True
        self._looked = time.monotonic()
        return holds


def _key_of(request: Request) -> tuple[str | None, bool]:
    """The key that a request brings, and whether it is in the cookie of the console."""
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and value.strip():
        return value.strip(), False
    if "x-api-key" in request.headers:
        return request.headers["x-api-key"], False
    cookie = request.cookies.get(COOKIE) if "cookie" in request.headers else None
    return cookie, cookie is not None


def _unauthorised(message: str, hint: str) -> Problem:
    return Problem(401, "unauthorised", message, hint=hint, headers={"www-authenticate": "Bearer"})
