"""Client and AsyncClient: the service from the other side, with the names of the library.

    client = xsift.Client("http://127.0.0.1:8080", key="xs_…")
    client.add("alice", "//hl1[contains(., 'Spark')]", subscriber="alice")
    client.publish(b"<nitf>…</nitf>")
    for delivery in client.events("alice"): …

Errors are those of the library: a broken document is a DocumentError with line and column, an expression that
cannot be used an XPathError with its column. What only a service can say is a ServiceError with the status. A
request that can be repeated is repeated when the server is away for a moment: publishing too, because each
document goes with a key that makes its repetition harmless.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import random
import time
import uuid
import warnings
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import IO, Any, Generic, Literal, TypeVar
from urllib.parse import quote

try:
    import httpx
except ModuleNotFoundError as missing:  # pragma: no cover - the tests have it
    raise ModuleNotFoundError("xsift.Client needs httpx: pip install 'xsift[serve]'") from missing

import xsift
from xsift.errors import DocumentError, FailureWarning, ServiceError, SubscriptionError, XPathError, XsiftError
from xsift.matching.results import Node
from xsift.service.texts import as_text

__all__ = ["AsyncClient", "Client", "Delivery", "Published"]

Answer = TypeVar("Answer")
Source = bytes | bytearray | memoryview | str | os.PathLike[str] | IO[bytes] | IO[str] | xsift.Document
Failed = list[tuple[str, XsiftError]]
Deliver = Literal["ids", "document", "fragments"]

ATTEMPTS = 5
AWAY = (502, 503, 504)  # worth another try
NOT_DONE = 503  # of these what says that nothing was done
LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=20)  # each stream of events has a connection
STREAM_SECONDS = 60.0  # a stream that is silent so long is dead: the server says something every 15 seconds


@dataclass(frozen=True)
class Published:
    """A document that is durable, and with wait=True the caller's subscriptions that it matched, and by id those that
    could not be decided on it."""

    id: str
    label: str = ""
    matches: list[dict[str, Any]] = field(default_factory=list)
    error: XsiftError | None = None
    """Of a document among many that was refused; then there is no id."""
    failures: dict[str, XsiftError] = field(default_factory=dict)


@dataclass(frozen=True)
class Delivery:
    """What a subscriber is told of one document."""

    id: str
    subscriber: str
    document: dict[str, Any]
    matches: list[dict[str, Any]]
    xml: str | None = None
    dropped: int = 0
    """Deliveries before this one that were dropped because too many waited."""
    xml_bytes: bytes | None = None
    """The whole document instead of `xml`, if it is no text in the encoding that it declares."""


@dataclass
class _Call(Generic[Answer]):
    """A request, and what its answer means."""

    method: str
    path: str
    parse: Callable[[httpx.Response], Answer]
    parameters: dict[str, Any] = field(default_factory=dict)
    content: bytes | None = None
    kind: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    repeatable: bool = True
    many: bool = False
    """Whether 422 says of each document what is wrong with it, as any other answer does."""
    waits: int = 0
    """Seconds that the server waits before it answers."""


def _path(*parts: str) -> str:
    return "/" + "/".join(quote(part, safe="") for part in parts)


def _json(response: httpx.Response) -> Any:
    return response.json()


def _nothing(response: httpx.Response) -> None:
    return None


def _error(response: httpx.Response) -> XsiftError:
    """What went wrong, as the library would have said it."""
    try:
        told = response.json()
        code, detail = str(told["code"]), str(told["detail"])
    except (ValueError, KeyError, TypeError):
        return ServiceError("no-answer", f"the server answered {response.status_code}", status=response.status_code)
    return _known_error(told, code, detail, response.status_code)


def _known_error(told: Mapping[str, Any], code: str, detail: str, status: int) -> XsiftError:
    hint = str(told.get("hint", ""))
    line, column, offset = (int(told.get(name, 0)) for name in ("line", "column", "offset"))
    if status == 422 and line:
        return DocumentError(code, detail, hint=hint, line=line, column=column, offset=offset)
    if status == 422 and column:
        return XPathError(code, detail, hint=hint, column=column, id=told.get("id"))
    if code in ("unknown-id", "unknown-subscriber"):
        return SubscriptionError(code, detail, hint=hint, id=told.get("id"))
    return ServiceError(code, detail, hint=hint, status=status)


def _body(document: Source) -> tuple[bytes, str]:
    """The bytes of a document and their content type."""
    loaded = xsift.Document(document).loaded(1 << 40)
    kind = "application/xml" if loaded.encoding is None else f"application/xml; charset={loaded.encoding}"
    return bytes(loaded.source), kind


def _text(loaded: xsift.Document) -> str:
    return as_text(bytes(loaded.source), loaded.encoding)


def _subscription(
    xpath: str,
    ordered: bool,
    namespaces: Mapping[str, str] | None,
    subscriber: str | None,
    deliver: str,
    labels: Mapping[str, str] | None,
    metadata: Mapping[str, Any] | None,
) -> dict[str, Any]:
    told = {
        "xpath": xpath,
        "ordered": ordered,
        "namespaces": dict(namespaces or {}),
        "deliver": deliver,
        "labels": dict(labels or {}),
        "metadata": dict(metadata or {}),
    }
    return told if subscriber is None else told | {"subscriber": subscriber}


def _lines(rows: Iterable[Mapping[str, Any] | Sequence[Any]]) -> bytes:
    lines = []
    for row in rows:
        if not isinstance(row, Mapping):
            row = dict(zip(("id", "xpath", "ordered"), row, strict=False))
        lines.append(json.dumps(dict(row)).encode() + b"\n")
    return b"".join(lines)


def _failed(response: httpx.Response) -> Failed:
    failed: Failed = []
    for told in response.json()["errors"]:
        line = told.pop("line")  # of the import, not of a document
        failed.append((str(told.get("id", f"line {line}")), _known_error(told, told["code"], told["detail"], 422)))
    return failed


def _published(response: httpx.Response) -> Published:
    return _durable(response.json())


def _durable(told: Mapping[str, Any]) -> Published:
    return Published(told["id"], told["label"], told.get("matches", []), failures=_failures(told))


def _failures(told: Mapping[str, Any]) -> dict[str, XsiftError]:
    return {
        failure["id"]: SubscriptionError(failure["code"], failure["detail"], hint=failure.get("hint", ""))
        for failure in told.get("failures", ())
    }


def _published_many(response: httpx.Response) -> list[Published]:
    if "documents" not in response.json():  # all of it was refused
        raise _error(response)
    found = []
    for told in response.json()["documents"]:
        if "error" in told:
            error = told["error"]
            found.append(
                Published("", told.get("label", ""), [], _known_error(error, error["code"], error["message"], 422))
            )
        else:
            found.append(_durable(told))
    return found


def _delivery(told: Mapping[str, Any], dropped: int = 0) -> Delivery:
    packed = told.get("xml_base64")
    return Delivery(
        told["id"],
        told["subscriber"],
        told["document"],
        told["matches"],
        told.get("xml"),
        dropped,
        None if packed is None else base64.b64decode(packed),
    )


def _deliveries(response: httpx.Response) -> list[Delivery]:
    told = response.json()
    found = [_delivery(item) for item in told["deliveries"]]
    if found and told["dropped"]:
        found[0] = _delivery(told["deliveries"][0], told["dropped"])
    return found


def _matches(response: httpx.Response) -> list[dict[str, Any]]:
    """What matched. What could not be decided is a warning, as it is of a matcher."""
    told = response.json()
    for id, failure in _failures(told).items():
        warnings.warn(f"subscription {id!r} could not be decided: {failure}", FailureWarning, stacklevel=5)
    found: list[dict[str, Any]] = told["matches"]
    return found


def _matched(response: httpx.Response) -> list[str]:
    return [match["id"] for match in _matches(response)]


def _selected(response: httpx.Response) -> dict[str, list[Node]]:
    return {match["id"]: [_node(told) for told in match["nodes"]] for match in _matches(response)}


def _node(told: Mapping[str, Any]) -> Node:
    return Node(told["path"], told["element"], told["start"], told["end"], told.get("xml"))


class _Calls:
    """The requests that both clients make."""

    def __init__(self, url: str, key: str | None, owner: str | None, timeout: float) -> None:
        self.url = url.rstrip("/")
        self.timeout = timeout
        self.headers = {"user-agent": "xsift-client"} | ({"authorization": f"Bearer {key}"} if key else {})
        self.owner = {"owner": owner} if owner is not None else {}

    def add(self, id: str, told: dict[str, Any]) -> _Call[dict[str, Any]]:
        return _Call("PUT", _path("subscriptions", id), _json, self.owner, json.dumps(told).encode())

    def add_many(self, rows: Iterable[Mapping[str, Any] | Sequence[Any]]) -> _Call[Failed]:
        return _Call("POST", "/subscriptions", _failed, self.owner, _lines(rows), "application/x-ndjson")

    def publish(self, document: Source, label: str, key: str | None, wait: bool) -> _Call[Published]:
        loaded = xsift.Document(document).loaded(1 << 40)
        content, kind = _body(loaded)
        label = label or loaded.label or ""
        parameters = self.owner | ({"label": label} if label else {}) | ({"wait": "matches"} if wait else {})
        headers = {"idempotency-key": key or uuid.uuid4().hex}
        return _Call("POST", "/documents", _published, parameters, content, kind, headers)

    def publish_many(self, documents: Iterable[Source], key: str | None, wait: bool) -> _Call[list[Published]]:
        lines: list[bytes] = []
        refused: list[tuple[int, Published]] = []
        for place, document in enumerate(documents):
            label = ""
            try:
                loaded = xsift.Document(document).loaded(1 << 40)
                label = loaded.label or ""
                lines.append(json.dumps({"xml": _text(loaded), "label": label}).encode() + b"\n")
            except DocumentError as error:
                refused.append((place, Published("", label or error.label or "", [], error)))
        parameters = self.owner | ({"wait": "matches"} if wait else {})
        headers = {"idempotency-key": key or uuid.uuid4().hex}

        def published(response: httpx.Response) -> list[Published]:
            found = _published_many(response) if lines or not refused else []
            for place, told in refused:
                found.insert(place, told)
            return found

        return _Call(
            "POST", "/documents", published, parameters, b"".join(lines), "application/x-ndjson", headers, many=True
        )

    def question(self, path: str, document: Source, parse: Callable[[httpx.Response], Answer]) -> _Call[Answer]:
        content, kind = _body(document)
        return _Call("POST", path, parse, self.owner, content, kind)

    def explain(self, document: Source, id: str | None, xpath: str | None) -> _Call[dict[str, Any]]:
        told: dict[str, Any] = {"xml": _text(xsift.Document(document).loaded(1 << 40))}
        told |= {"subscription": id} if id is not None else {"xpath": xpath}
        return _Call("POST", "/explain", _json, self.owner, json.dumps(told).encode())

    def deliveries(self, subscriber: str, after: str | None, wait: int, most: int) -> _Call[list[Delivery]]:
        parameters = self.owner | {"wait": wait, "most": most} | ({"after": after} if after else {})
        return _Call("GET", _path("subscribers", subscriber, "deliveries"), _deliveries, parameters, waits=wait)

    def page(self, path: str, filters: Mapping[str, Any], after: str | None) -> _Call[dict[str, Any]]:
        wanted = {name: value for name, value in filters.items() if value is not None}
        labels = wanted.pop("labels", None)
        if labels:
            wanted["label"] = [f"{name}={value}" for name, value in labels.items()]
        return _Call("GET", path, _json, self.owner | wanted | ({"after": after} if after else {}) | {"most": 1000})


def _delay(attempt: int, response: httpx.Response | None) -> float:
    told = response.headers.get("retry-after", "") if response is not None else ""
    if told.isdigit():
        return min(30.0, float(told))
    return min(5.0, 0.1 * 2.0**attempt) * random.uniform(0.5, 1.0)


def _again(call: _Call[Any], status: int, attempt: int) -> bool:
    """Whether a request that was answered like this is made again."""
    away = status in AWAY if call.repeatable else status == NOT_DONE
    return away and attempt < ATTEMPTS - 1


class _EventReader:
    """Puts server-sent events together from the bytes of a stream.

    Their lines end with a line feed alone: what else Unicode calls the end of a line can be in the data.
    """

    def __init__(self, after: str | None) -> None:
        self.last = after
        self._rest = bytearray()
        self._kind, self._data, self._id = "", "", ""
        self._dropped = 0

    def begin(self) -> None:
        """A new connection: of what the one before left unfinished nothing counts."""
        self._rest.clear()
        self._kind, self._data, self._id = "", "", ""

    def deliveries(self, piece: bytes) -> Iterator[Delivery]:
        """The deliveries whose events end in a piece of the stream."""
        self._rest += piece
        if b"\n" not in piece:
            return
        *lines, rest = bytes(self._rest).split(b"\n")
        self._rest[:] = rest
        for line in lines:
            delivery = self._line(line.removesuffix(b"\r").decode("utf-8"))
            if delivery is not None:
                yield delivery

    def _line(self, text: str) -> Delivery | None:
        if text:
            name, _, value = text.partition(":")
            value = value.removeprefix(" ")
            if name == "event":
                self._kind = value
            elif name == "data":
                self._data += value
            elif name == "id":
                self._id = value
            return None
        kind, data, id = self._kind, self._data, self._id
        self._kind, self._data, self._id = "", "", ""
        if not data:
            return None
        self.last = id
        if kind == "gap":
            self._dropped += json.loads(data)["dropped"]
            return None
        dropped, self._dropped = self._dropped, 0
        return _delivery(json.loads(data), dropped)

    def headers(self) -> dict[str, str]:
        return {"last-event-id": self.last} if self.last else {}


class Client:
    """A client of `xsift serve`. Use it as a context manager, or close it.

    `key` is an API key, if the server asks for one; with `owner` an admin speaks for somebody else. A request that is
    not answered within `timeout` seconds is repeated, where that does no harm; then it is a ServiceError.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8080",
        *,
        key: str | None = None,
        owner: str | None = None,
        timeout: float = 30.0,
    ) -> None:
        self._calls = _Calls(url, key, owner, timeout)
        self._http = httpx.Client(
            base_url=self._calls.url, headers=self._calls.headers, timeout=timeout, limits=LIMITS
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes its connections. What was published stays; the client cannot be used any more."""
        self._http.close()

    def _run(self, call: _Call[Answer]) -> Answer:
        for attempt in range(ATTEMPTS):
            response: httpx.Response | None = None
            try:
                response = self._http.request(
                    call.method,
                    call.path,
                    params=call.parameters,
                    content=call.content,
                    headers={"content-type": call.kind, **call.headers},
                    timeout=self._calls.timeout + call.waits,
                )
            except httpx.TransportError as error:
                if attempt == ATTEMPTS - 1 or not call.repeatable:
                    raise ServiceError("no-answer", f"{self._calls.url} does not answer: {error}") from error
            if response is not None and not _again(call, response.status_code, attempt):
                break
            time.sleep(_delay(attempt, response))
        assert response is not None
        if response.is_error and not (response.status_code == 422 and call.many):
            raise _error(response)
        return call.parse(response)

    # Subscriptions

    def add(
        self,
        id: str,
        xpath: str,
        *,
        ordered: bool = False,
        namespaces: Mapping[str, str] | None = None,
        subscriber: str | None = None,
        deliver: Deliver = "ids",
        labels: Mapping[str, str] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Adds a subscription, or replaces it. The next document that is published is matched with it.

        `subscriber` is told of matches, by default the caller's owner. `deliver` says what is told beside "ids": the
        "document", or the "fragments" that the expression selects. `labels` are to find it by; `metadata` comes back
        with every match.
        """
        told = _subscription(xpath, ordered, namespaces, subscriber, deliver, labels, metadata)
        return self._run(self._calls.add(id, told))

    def add_many(self, rows: Iterable[Mapping[str, Any] | Sequence[Any]]) -> Failed:
        """Adds many: (id, xpath), (id, xpath, ordered), or mappings with what `add` takes. Returns (id, error) of
        those that cannot be used, at most 1,000 of them; all others are there.
        """
        return self._run(self._calls.add_many(rows))

    def remove(self, id: str) -> None:
        """Removes a subscription. Raises SubscriptionError if there is none."""
        self._run(_Call("DELETE", _path("subscriptions", id), _nothing, self._calls.owner, repeatable=False))

    def get(self, id: str) -> dict[str, Any]:
        """A subscription. Raises SubscriptionError if there is none."""
        return self._run(_Call[dict[str, Any]]("GET", _path("subscriptions", id), _json, self._calls.owner))

    def __contains__(self, id: object) -> bool:
        try:
            return isinstance(id, str) and bool(self.get(id))
        except SubscriptionError:
            return False

    def __iter__(self) -> Iterator[str]:
        """The ids of all subscriptions."""
        return (row["id"] for row in self.list())

    def list(self, **filters: Any) -> Iterator[dict[str, Any]]:
        """Subscriptions: all, or by prefix, contains, subscriber, labels."""
        return self._pages("/subscriptions", filters)

    def _pages(self, path: str, filters: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        after: str | None = None
        while True:
            page = self._run(self._calls.page(path, filters, after))
            yield from page["items"]
            after = page["next"]
            if after is None:
                return

    def check(
        self, xpath: str, *, ordered: bool = False, namespaces: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Whether an expression can be used, and what of it is indexed."""
        told = {"xpath": xpath, "ordered": ordered, "namespaces": dict(namespaces or {})}
        return self._run(
            _Call[dict[str, Any]]("POST", "/subscriptions/validate", _json, content=json.dumps(told).encode())
        )

    # Documents

    def publish(self, document: Source, *, label: str = "", key: str | None = None, wait: bool = False) -> Published:
        """Publishes a document; returns when it is durable. Without a `label` it is called as the document is, a file
        by its path. With `wait`, says which of the caller's subscriptions matched. `key` makes repetitions of the
        same document harmless; by default each call has one of its own.
        """
        return self._run(self._calls.publish(document, label, key, wait))

    def publish_many(
        self, documents: Iterable[Source], *, key: str | None = None, wait: bool = False
    ) -> Sequence[Published]:
        """Publishes many documents in one request. One that is broken, or cannot be read, is an error among the
        results. `key` and `wait` are those of `publish`.
        """
        return self._run(self._calls.publish_many(documents, key, wait))

    def match(self, document: Source) -> Sequence[str]:
        """The ids of the caller's subscriptions that a document matches. Nothing is stored. One that could not be
        decided is a FailureWarning.
        """
        return self._run(self._calls.question("/match", document, _matched))

    def select(self, document: Source) -> Mapping[str, Sequence[Node]]:
        """For each of the caller's subscriptions that a document matches, the nodes that it selects."""
        return self._run(self._calls.question("/select", document, _selected))

    def explain(self, document: Source, id: str | None = None, *, xpath: str | None = None) -> dict[str, Any]:
        """Why a subscription, or an expression, matches a document, or where it stopped."""
        return self._run(self._calls.explain(document, id, xpath))

    # Subscribers

    def put_subscriber(self, id: str, **told: Any) -> dict[str, Any]:
        """Says where deliveries go: kind="webhook" with url, kind="kafka" with topic, or kind="pull"."""
        return self._run(
            _Call[dict[str, Any]](
                "PUT", _path("subscribers", id), _json, self._calls.owner, json.dumps(told).encode()
            )
        )

    def get_subscriber(self, id: str) -> dict[str, Any]:
        """A subscriber, and how far it has come."""
        return self._run(_Call[dict[str, Any]]("GET", _path("subscribers", id), _json, self._calls.owner))

    def remove_subscriber(self, id: str) -> None:
        """Removes a subscriber, its subscriptions, and all that waits for it."""
        self._run(_Call("DELETE", _path("subscribers", id), _nothing, self._calls.owner, repeatable=False))

    def deliveries(
        self, subscriber: str, *, after: str | None = None, wait: int = 0, most: int = 100
    ) -> Sequence[Delivery]:
        """The next deliveries that were not acknowledged, `most` of them (1,000 at most); waits for one for `wait`
        seconds (60 at most). With `after` only those after that one, which acknowledges nothing.
        """
        return self._run(self._calls.deliveries(subscriber, after, wait, most))

    def acknowledge(self, subscriber: str, delivery: Delivery | str) -> None:
        """This delivery and all before it were received: they do not come again."""
        id = delivery.id if isinstance(delivery, Delivery) else delivery
        content = json.dumps({"id": id}).encode()
        self._run(_Call("POST", _path("subscribers", subscriber, "ack"), _nothing, self._calls.owner, content))

    def events(self, subscriber: str, *, after: str | None = None) -> Iterator[Delivery]:
        """Deliveries as they come, for ever. When the connection breaks it is made again, after the last one."""
        events = _EventReader(after)
        path = _path("subscribers", subscriber, "events")
        attempt = 0
        while True:
            try:
                timeout = httpx.Timeout(self._calls.timeout, read=STREAM_SECONDS)
                with self._http.stream(
                    "GET", path, params=self._calls.owner, headers=events.headers(), timeout=timeout
                ) as response:
                    if response.is_error and response.status_code not in AWAY:
                        response.read()
                        raise _error(response)
                    events.begin()
                    for piece in response.iter_bytes():
                        attempt = 0
                        yield from events.deliveries(piece)
            except httpx.TransportError:
                pass
            time.sleep(_delay(attempt, None))
            attempt += 1

    def dead_letters(self, **filters: Any) -> Sequence[dict[str, Any]]:
        """Deliveries that were given up, the latest first: all, or by subscriber; brief="true": no documents."""
        return [*self._pages("/dead-letters", filters)]

    def replay(self, id: str) -> None:
        """Sends a dead letter again. Raises ServiceError if it fails again."""
        self._run(_Call("POST", _path("dead-letters", id, "replay"), _nothing, self._calls.owner, repeatable=False))


class AsyncClient:
    """Client, for asyncio, with the same arguments. Use it as an asynchronous context manager, or close it."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:8080",
        *,
        key: str | None = None,
        owner: str | None = None,
        timeout: float = 30.0,
    ) -> None:
        self._calls = _Calls(url, key, owner, timeout)
        self._http = httpx.AsyncClient(
            base_url=self._calls.url, headers=self._calls.headers, timeout=timeout, limits=LIMITS
        )

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes its connections. What was published stays; the client cannot be used any more."""
        await self._http.aclose()

    async def _run(self, call: _Call[Answer]) -> Answer:
        for attempt in range(ATTEMPTS):
            response: httpx.Response | None = None
            try:
                response = await self._http.request(
                    call.method,
                    call.path,
                    params=call.parameters,
                    content=call.content,
                    headers={"content-type": call.kind, **call.headers},
                    timeout=self._calls.timeout + call.waits,
                )
            except httpx.TransportError as error:
                if attempt == ATTEMPTS - 1 or not call.repeatable:
                    raise ServiceError("no-answer", f"{self._calls.url} does not answer: {error}") from error
            if response is not None and not _again(call, response.status_code, attempt):
                break
            await asyncio.sleep(_delay(attempt, response))
        assert response is not None
        if response.is_error and not (response.status_code == 422 and call.many):
            raise _error(response)
        return call.parse(response)

    async def add(
        self,
        id: str,
        xpath: str,
        *,
        ordered: bool = False,
        namespaces: Mapping[str, str] | None = None,
        subscriber: str | None = None,
        deliver: Deliver = "ids",
        labels: Mapping[str, str] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Adds a subscription, or replaces it. The next document that is published is matched with it.

        `subscriber` is told of matches, by default the caller's owner. `deliver` says what is told beside "ids": the
        "document", or the "fragments" that the expression selects. `labels` are to find it by; `metadata` comes back
        with every match.
        """
        told = _subscription(xpath, ordered, namespaces, subscriber, deliver, labels, metadata)
        return await self._run(self._calls.add(id, told))

    async def add_many(self, rows: Iterable[Mapping[str, Any] | Sequence[Any]]) -> Failed:
        """Adds many: (id, xpath), (id, xpath, ordered), or mappings with what `add` takes. Returns (id, error) of
        those that cannot be used, at most 1,000 of them; all others are there.
        """
        return await self._run(self._calls.add_many(rows))

    async def remove(self, id: str) -> None:
        """Removes a subscription. Raises SubscriptionError if there is none."""
        await self._run(_Call("DELETE", _path("subscriptions", id), _nothing, self._calls.owner, repeatable=False))

    async def get(self, id: str) -> dict[str, Any]:
        """A subscription. Raises SubscriptionError if there is none."""
        return await self._run(_Call[dict[str, Any]]("GET", _path("subscriptions", id), _json, self._calls.owner))

    def list(self, **filters: Any) -> AsyncIterator[dict[str, Any]]:
        """Subscriptions: all, or by prefix, contains, subscriber, labels."""
        return self._pages("/subscriptions", filters)

    async def _pages(self, path: str, filters: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        after: str | None = None
        while True:
            page = await self._run(self._calls.page(path, filters, after))
            for row in page["items"]:
                yield row
            after = page["next"]
            if after is None:
                return

    async def check(
        self, xpath: str, *, ordered: bool = False, namespaces: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Whether an expression can be used, and what of it is indexed."""
        told = {"xpath": xpath, "ordered": ordered, "namespaces": dict(namespaces or {})}
        return await self._run(
            _Call[dict[str, Any]]("POST", "/subscriptions/validate", _json, content=json.dumps(told).encode())
        )

    async def publish(
        self, document: Source, *, label: str = "", key: str | None = None, wait: bool = False
    ) -> Published:
        """Publishes a document; returns when it is durable. Without a `label` it is called as the document is, a file
        by its path. With `wait`, says which of the caller's subscriptions matched. `key` makes repetitions of the
        same document harmless; by default each call has one of its own.
        """
        return await self._run(self._calls.publish(document, label, key, wait))

    async def publish_many(
        self, documents: Iterable[Source], *, key: str | None = None, wait: bool = False
    ) -> Sequence[Published]:
        """Publishes many documents in one request. One that is broken, or cannot be read, is an error among the
        results. `key` and `wait` are those of `publish`.
        """
        return await self._run(self._calls.publish_many(documents, key, wait))

    async def match(self, document: Source) -> Sequence[str]:
        """The ids of the caller's subscriptions that a document matches. Nothing is stored. One that could not be
        decided is a FailureWarning.
        """
        return await self._run(self._calls.question("/match", document, _matched))

    async def select(self, document: Source) -> Mapping[str, Sequence[Node]]:
        """For each of the caller's subscriptions that a document matches, the nodes that it selects."""
        return await self._run(self._calls.question("/select", document, _selected))

    async def explain(self, document: Source, id: str | None = None, *, xpath: str | None = None) -> dict[str, Any]:
        """Why a subscription, or an expression, matches a document, or where it stopped."""
        return await self._run(self._calls.explain(document, id, xpath))

    async def put_subscriber(self, id: str, **told: Any) -> dict[str, Any]:
        """Says where deliveries go: kind="webhook" with url, kind="kafka" with topic, or kind="pull"."""
        return await self._run(
            _Call[dict[str, Any]](
                "PUT", _path("subscribers", id), _json, self._calls.owner, json.dumps(told).encode()
            )
        )

    async def get_subscriber(self, id: str) -> dict[str, Any]:
        """A subscriber, and how far it has come."""
        return await self._run(_Call[dict[str, Any]]("GET", _path("subscribers", id), _json, self._calls.owner))

    async def remove_subscriber(self, id: str) -> None:
        """Removes a subscriber, its subscriptions, and all that waits for it."""
        await self._run(_Call("DELETE", _path("subscribers", id), _nothing, self._calls.owner, repeatable=False))

    async def deliveries(
        self, subscriber: str, *, after: str | None = None, wait: int = 0, most: int = 100
    ) -> Sequence[Delivery]:
        """The next deliveries that were not acknowledged, `most` of them (1,000 at most); waits for one for `wait`
        seconds (60 at most). With `after` only those after that one, which acknowledges nothing.
        """
        return await self._run(self._calls.deliveries(subscriber, after, wait, most))

    async def acknowledge(self, subscriber: str, delivery: Delivery | str) -> None:
        """This delivery and all before it were received: they do not come again."""
        id = delivery.id if isinstance(delivery, Delivery) else delivery
        content = json.dumps({"id": id}).encode()
        await self._run(_Call("POST", _path("subscribers", subscriber, "ack"), _nothing, self._calls.owner, content))

    async def events(self, subscriber: str, *, after: str | None = None) -> AsyncIterator[Delivery]:
        """Deliveries as they come, for ever. When the connection breaks it is made again, after the last one."""
        events = _EventReader(after)
        path = _path("subscribers", subscriber, "events")
        attempt = 0
        while True:
            try:
                timeout = httpx.Timeout(self._calls.timeout, read=STREAM_SECONDS)
                async with self._http.stream(
                    "GET", path, params=self._calls.owner, headers=events.headers(), timeout=timeout
                ) as response:
                    if response.is_error and response.status_code not in AWAY:
                        await response.aread()
                        raise _error(response)
                    events.begin()
                    async for piece in response.aiter_bytes():
                        attempt = 0
                        for delivery in events.deliveries(piece):
                            yield delivery
            except httpx.TransportError:
                pass
            await asyncio.sleep(_delay(attempt, None))
            attempt += 1

    async def dead_letters(self, **filters: Any) -> Sequence[dict[str, Any]]:
        """Deliveries that were given up, the latest first: all, or by subscriber; brief="true": no documents."""
        return [letter async for letter in self._pages("/dead-letters", filters)]

    async def replay(self, id: str) -> None:
        """Sends a dead letter again. Raises ServiceError if it fails again."""
        call = _Call("POST", _path("dead-letters", id, "replay"), _nothing, self._calls.owner, repeatable=False)
        await self._run(call)
