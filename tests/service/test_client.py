"""The clients: the names and errors of the library, from the other side; with and without asyncio."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
from typing import Any

import pytest

import xsift
from tests.service.running import RunningServer


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
