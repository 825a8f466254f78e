"""Which addresses webhooks may go to: public ones, and networks that the operator allows.

Subscribers choose the URL, so without this a webhook could be pointed at what only the server can reach: a metadata
service, a database, a router. The name is resolved here, every address it has is checked, and the connection goes to
an address that was checked, so a name that resolves differently the second time gains nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import httpcore
import httpx

from xsift.errors import XsiftError

__all__ = ["Addresses", "guarded_transport"]

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# Addresses of IPv4 in those of IPv6: as a gateway shows them, translated, and as they were written once.
HOLDS_IPV4 = [ipaddress.IPv6Network(text) for text in ("64:ff9b::/96", "::ffff:0:0:0/96", "::/96")]
LOCAL = [ipaddress.IPv6Network(text) for text in ("64:ff9b:1::/48", "fec0::/10")]  # Python takes them for global


class Addresses:
    """Decides about addresses, and finds those of a name."""

    def __init__(self, allowed: Sequence[str] = ()) -> None:
        self._allowed = [ipaddress.ip_network(network) for network in allowed]

    def allows(self, text: str) -> bool:
        """Whether an address may be called."""
        address: Address = ipaddress.ip_address(text.partition("%")[0])
        inner = _inner(address)
        if any(one in network for network in self._allowed for one in (address, inner)):
            return True
        if any(address in network for network in LOCAL):
            return False
        return inner.is_global and not inner.is_multicast

    async def resolve(self, host: str, port: int) -> list[str]:
        """The addresses of a host. Raises XsiftError if one of them may not be called."""
        try:
            found = await _look_up(host, port)
        except (OSError, UnicodeError) as error:
            raise XsiftError("unknown-host", f"the host {host!r} cannot be found: {error}") from error
        addresses = list(dict.fromkeys(str(info[4][0]) for info in found))
        refused = [address for address in addresses if not self.allows(address)]
        if refused or not addresses:
            raise XsiftError(
                "private-address",
                f"{host!r} is {', '.join(refused)}, which is not a public address",
                hint="the operator can allow networks: webhooks.allow_networks",
            )
        return addresses


async def _look_up(host: str, port: int) -> list[Any]:
    """What the system says of a name.

    Whose name it is decides how long that takes, and nothing ends a question. So each has a thread of its own: the
    loop has four for all of them. It ends with the process, which does not wait for it."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[Any]] = loop.create_future()

    def tell(found: list[Any], error: Exception | None) -> None:
        if not answer.done():
            answer.set_result(found) if error is None else answer.set_exception(error)

    def ask() -> None:
        found, failure = [], None
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except Exception as error:
            failure = error
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(tell, found, failure)

    threading.Thread(target=ask, name="xsift-names", daemon=True).start()
    return await answer


def _inner(address: Address) -> Address:
    """The address of IPv4 that one of IPv6 stands for; any other is what it is."""
    if not isinstance(address, ipaddress.IPv6Address):
        return address
    if any(address in network for network in HOLDS_IPV4):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else address)


class _GuardedBackend(httpcore.AsyncNetworkBackend):
    """Connects to checked addresses only."""

    def __init__(self, addresses: Addresses) -> None:
        self._addresses = addresses
        self._backend = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        try:
            addresses = await asyncio.wait_for(self._addresses.resolve(host, port), timeout)
        except XsiftError as error:
            raise httpcore.ConnectError(str(error)) from error
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(f"{host} was not resolved in time") from error
        failure: Exception = httpcore.ConnectError(f"no address of {host} answers")
        for address in addresses:
            try:
                return await self._backend.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    async def connect_unix_socket(self, *arguments: Any, **options: Any) -> httpcore.AsyncNetworkStream:
        raise httpcore.ConnectError("webhooks do not go to Unix sockets")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def guarded_transport(addresses: Addresses, at_once: int) -> httpx.AsyncHTTPTransport:
    """A transport of httpx that connects to checked addresses only."""
    transport = httpx.AsyncHTTPTransport(trust_env=False)
    transport._pool = httpcore.AsyncConnectionPool(
        ssl_context=httpx.create_ssl_context(trust_env=False),
        max_connections=at_once,
        max_keepalive_connections=at_once,
        keepalive_expiry=30,
        network_backend=_GuardedBackend(addresses),
    )
    return transport
