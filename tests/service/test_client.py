"""The clients: the names and errors of the library, from the other side; with and without asyncio."""

from __future__ import annotations

import asyncio
import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import xsift
from tests.service.running import RunningServer
from xsift.service.client import _delivery
from xsift.service.delivery.events import as_json
from xsift.service.store.deliveries import StoredDelivery


def test_both_clients_have_the_same_methods() -> None:
    def signatures(kind: type[Any]) -> dict[str, list[str]]:
        methods = inspect.getmembers(kind, inspect.isfunction)
        return {
            name: list(inspect.signature(method).parameters) for name, method in methods if not name.startswith("_")
        }

    assert signatures(xsift.Client) == signatures(xsift.AsyncClient)


def test_the_library_does_not_need_httpx() -> None:
    lines = [
        "import sys; sys.modules['httpx'] = None",
        "import xsift; xsift.Subscriptions().add('a', '//a')",
        "try: xsift.Client",
        "except ModuleNotFoundError as error: print(error)",
    ]
    program = "\n".join(lines)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install 'xsift[serve]'" in ran.stdout


def test_a_document_that_is_no_text_is_delivered_as_bytes() -> None:
    body = b"<?xml version='1.0' encoding='us-ascii'?><a>\xe4</a>"
    stored = StoredDelivery(12, 3, 7, 0.0, b'"document":{"id":"7"},"matches":[]', whole=True, body=body)
    delivery = _delivery(json.loads(as_json(stored, "reader")))
    assert (delivery.id, delivery.xml, delivery.xml_bytes) == ("12-3", None, body)


def test_all_of_it_with_asyncio(server: RunningServer, owner: str) -> None:
    async def everything() -> None:
        async with xsift.AsyncClient(server.url, owner=owner) as client:
            await client.add("a", "//a[@x]", subscriber="s", metadata={"m": 1})
            failed = await client.add_many([("b", "//b"), ("wrong", "//b[")])
            assert [(id, type(error)) for id, error in failed] == [("wrong", xsift.XPathError)]
            assert (await client.get("a"))["metadata"] == {"m": 1}
            assert [row["id"] async for row in client.list()] == ["a", "b"]
            assert (await client.check("//c"))["valid"]
            document = "<r><a x='1'/><b/></r>"
            assert await client.match(document) == ["a", "b"]
            assert [node.path for node in (await client.select(document))["a"]] == ["/r/a"]
            assert (await client.explain(document, "a"))["matched"]
            published = await client.publish(document, label="one", wait=True)
            assert [match["id"] for match in published.matches] == ["a", "b"]
            many = await client.publish_many([document, "<broken>"], wait=True)
            assert (bool(many[0].id), type(many[1].error)) == (True, xsift.DocumentError)
            listening = client.events("s")
            first = await anext(listening)
            assert first.document["label"] == "one"
            await listening.aclose()  # type: ignore[attr-defined]
            polled = await client.deliveries("s", wait=5)
            assert polled[0].id == first.id
            await client.acknowledge("s", polled[-1])
            assert await client.deliveries("s") == []
            await client.put_subscriber("t", kind="pull", backlog=5)
            assert (await client.get_subscriber("t"))["backlog"] == 5
            assert await client.dead_letters() == []
            with pytest.raises(xsift.ServiceError):
                await client.replay("1-999999")
            await client.remove("b")
            with pytest.raises(xsift.SubscriptionError):
                await client.remove("b")
            await client.remove_subscriber("t")
            with pytest.raises(xsift.SubscriptionError):
                await client.get_subscriber("t")
            with pytest.raises(xsift.DocumentError):
                await client.publish("<a>")
            with pytest.raises(xsift.SubscriptionError):
                await anext(client.events("nobody"))

    asyncio.run(everything())


def test_a_server_that_is_not_there() -> None:
    with xsift.Client("http://127.0.0.1:1", timeout=1) as client, pytest.raises(xsift.ServiceError) as raised:
        client.match("<a/>")
    assert (raised.value.code, raised.value.status) == ("no-answer", 0)


def test_documents_of_all_kinds(client: xsift.Client, tmp_path: Any) -> None:
    client.add("a", "//a")
    path = tmp_path / "a.xml"
    path.write_text("<a/>")
    with open(path, "rb") as file:
        for document in (b"<a/>", bytearray(b"<a/>"), "<a/>", path, file, xsift.Document(b"<a/>")):
            assert client.match(document) == ["a"]
    with pytest.raises(xsift.DocumentError):
        client.match(None)  # type: ignore[arg-type]


def test_events_with_whatever_unicode_calls_the_end_of_a_line(server: RunningServer, owner: str) -> None:
    text = "a\u2028b\u2029c\u0085d"

    async def first() -> xsift.Delivery:
        async with xsift.AsyncClient(server.url, owner=owner) as other:
            return await anext(other.events("s"))

    with server.client(owner=owner) as client:
        client.add("a", "//a", subscriber="s", deliver="fragments")
        client.publish(f"<a>{text}</a>", label=text)
        for delivery in (next(client.events("s")), asyncio.run(first())):
            assert delivery.document["label"] == text
            assert text in delivery.matches[0]["fragments"][0]["xml"]


def test_many_documents_in_encodings_of_their_own(client: xsift.Client) -> None:
    client.add("é", "//a[. = 'é']")
    declared = '<?xml version="1.0" encoding="iso-8859-1"?><a>é</a>'.encode("latin-1")
    documents: list[bytes | xsift.Document] = [
        declared,
        "<a>é</a>".encode("utf-16"),
        b"<a>\n\xff</a>",
        xsift.Document("<a>é</a>".encode("latin-1"), encoding="latin-1", label="named"),
        b'<?xml version="1.0" encoding="klingon"?><a/>',
    ]
    told = client.publish_many(documents, wait=True)
    assert [[match["id"] for match in one.matches] for one in told] == [["é"], ["é"], [], ["é"], []]
    codes = [one.error and one.error.code for one in told]
    assert codes == [None, None, "incorrect-encoding", None, "unsupported-encoding"]
    assert [one.error and one.error.code for one in client.publish_many([b"<a>\xff</a>"])] == ["incorrect-encoding"]
    assert client.explain(declared, "é")["matched"]
    with pytest.raises(xsift.DocumentError):
        client.explain(b"\xff", "é")


def test_documents_are_called_as_they_are(client: xsift.Client, tmp_path: Path) -> None:
    there, missing = tmp_path / "there.xml", tmp_path / "missing.xml"
    there.write_text("<a/>")
    assert client.publish(xsift.Document("<a/>", label="one")).label == "one"
    assert client.publish(there).label == str(there)
    assert client.publish(there, label="two").label == "two"
    told = client.publish_many([missing, there])
    assert [(one.label, one.error and one.error.code) for one in told] == [
        (str(missing), "unreadable-file"),
        (str(there), None),
    ]


def test_a_client_may_have_any_number_of_streams() -> None:
    number = 120  # more than httpx has connections, unless it is told
    event = b'id: 1-1\nevent: match\ndata: {"id":"1-1","subscriber":"s","document":{},"matches":[]}\n\n'

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + event)

    async def listen() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server, xsift.AsyncClient(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as client:
            streams = [client.events("s") for _ in range(number)]
            async with asyncio.timeout(20):
                assert len(await asyncio.gather(*(anext(stream) for stream in streams))) == number
            for stream in streams:
                await stream.aclose()  # type: ignore[attr-defined]

    asyncio.run(listen())


def test_a_poll_may_wait_for_longer_than_other_requests(server: RunningServer, owner: str) -> None:
    with xsift.Client(server.url, owner=owner, timeout=1.0) as client:
        client.put_subscriber("s", kind="pull")
        assert client.deliveries("s", wait=2) == []


def test_many_documents_that_are_refused_together(client: xsift.Client) -> None:
    with pytest.raises(xsift.ServiceError, match="no document"):
        client.publish_many([])
    client.publish_many(["<a/>"], key="once")
    with pytest.raises(xsift.ServiceError, match="key-reused"):
        client.publish_many(["<b/>"], key="once")
