"""Documents by HTTP: published in every form, refused with a position, tried without being stored."""

from __future__ import annotations

import asyncio
import gzip
import json
import urllib.error
import urllib.request
import zlib
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import zstandard
from starlette.requests import Request

import xsift
from tests.service.running import RunningServer, until
from xsift.service.api import documents
from xsift.service.api.bodies import FormPart, _Form, read_lines
from xsift.service.api.problems import Problem
from xsift.service.publishing import Incoming, Overloaded, Receipt

NDJSON = {"content-type": "application/x-ndjson"}


def test_publish_and_get_back(client: xsift.Client, http: httpx.Client) -> None:
    client.add("a", "//a", metadata={"m": [1]}, labels={"l": "v"})
    published = client.publish("<r><a/></r>", label="first", wait=True)
    assert published.label == "first"
    assert published.matches == [{"id": "a", "labels": {"l": "v"}, "metadata": {"m": [1]}}]
    back = http.get(f"/documents/{published.id}")
    assert back.content == b"<r><a/></r>"
    assert back.headers["content-disposition"] == "attachment"
    assert "sandbox" in back.headers["content-security-policy"]
    latest = http.get("/documents").json()["items"][0]
    assert (latest["id"], latest["label"], latest["size"]) == (published.id, "first", 11)
    assert http.get("/documents/0000000000000000").status_code == 404
    assert http.get("/documents/nonsense").status_code == 404


def test_a_broken_document_is_refused_with_its_position(http: httpx.Client, client: xsift.Client) -> None:
    answer = http.post("/documents", content=b"<a>\n  <b></c>\n</a>")
    assert answer.status_code == 422
    problem = answer.json()
    assert (problem["code"], problem["line"]) == ("tag-mismatch", 2)
    assert problem["column"] > 0
    with pytest.raises(xsift.DocumentError) as raised:
        client.publish(b"<a>\n  <b></c>\n</a>")
    assert (raised.value.code, raised.value.line) == ("tag-mismatch", 2)

    def kept() -> list[dict[str, object]]:
        items = http.get("/documents", params={"broken": "true"}).json()["items"]
        return [item for item in items if item["error"]["line"] == 2]

    item = until(kept)[0]
    assert http.get(f"/documents/{item['id']}").content == b"<a>\n  <b></c>\n</a>"


@pytest.mark.parametrize(
    "body", [b"", b"   ", b"\x00", b"<", b"<a", b"text", b"\xff\xfe", b"<a/><b/>", b"<a>&nothing;</a>"]
)
def test_no_document_at_all(http: httpx.Client, body: bytes) -> None:
    for path in ("/documents", "/match", "/select"):
        answer = http.post(path, content=body)
        assert answer.status_code == 422, (path, answer.text)
        assert answer.json()["code"]


def test_encodings(client: xsift.Client, http: httpx.Client) -> None:
    client.add("umlaut", "//a[. = 'ä']", deliver="document", subscriber="reader")
    latin = "<?xml version='1.0' encoding='iso-8859-1'?><a>ä</a>".encode("latin-1")
    for document in (
        latin,
        "<a>ä</a>",
        "<a>ä</a>".encode("utf-16"),
        "<a>ä</a>".encode("utf-16-le"),
        b"\xef\xbb\xbf<?xml version='1.0' encoding='iso-8859-1'?>" + "<a>ä</a>".encode(),
        xsift.Document("<a>ä</a>".encode("cp1252"), encoding="cp1252"),
    ):
        assert client.match(document) == ["umlaut"]
        assert client.publish(document, wait=True).matches
    declared = http.post(
        "/match",
        content="<a>ä</a>".encode("latin-1"),
        headers={"content-type": "application/xml; charset=iso-8859-1"},
    )
    assert [match["id"] for match in declared.json()["matches"]] == ["umlaut"]
    delivered = [delivery.xml or "" for delivery in client.deliveries("reader")]
    assert len(delivered) == 6
    assert all(xml.startswith("<") and xml.endswith("<a>ä</a>") for xml in delivered)
    unknown = http.post("/documents", content=b"<a/>", headers={"content-type": "application/xml; charset=klingon"})
    assert unknown.status_code == 422


def test_many_as_ndjson(http: httpx.Client, client: xsift.Client, owner: str) -> None:
    client.add("odd", "//n[. mod 2 = 1]", subscriber="odd")
    lines = [json.dumps({"xml": f"<n>{n}</n>", "label": f"l{n}"}) for n in range(300)]
    lines[7] = '{"xml": "<n>7</m>"}'
    lines[9] = "nonsense"
    answer = http.post("/documents", params={"wait": "matches"}, content="\n".join(lines), headers=NDJSON)
    assert answer.status_code == 202
    told = answer.json()
    assert (told["stored"], told["broken"], len(told["documents"])) == (298, 2, 300)
    assert told["documents"][7]["error"]["code"] == "tag-mismatch"
    assert told["documents"][9]["error"]["code"] == "bad-line"
    matched = [
        n
        for n, document in enumerate(told["documents"])
        if any(m["id"] == "odd" for m in document.get("matches", ()))
    ]
    assert matched == [n for n in range(300) if n % 2 and n not in (7, 9)]
    deliveries = client.deliveries("odd", most=1000)
    assert [delivery.document["label"] for delivery in deliveries] == [f"l{n}" for n in matched]
    assert http.post("/documents", content="", headers=NDJSON).status_code == 422
    assert http.post("/documents", content='{"xml": "<"}', headers=NDJSON).status_code == 422


def test_many_as_a_form(http: httpx.Client, client: xsift.Client) -> None:
    client.add("a", "//a")
    files: list[tuple[str, Any]] = [
        ("f", ("one.xml", b"<a/>", "application/xml")),
        ("f", ("two.xml", b"<a>", "application/xml")),
        ("f", ("three.xml", b"<b/>")),
    ]
    told = http.post("/documents", params={"wait": "matches"}, files=files).json()
    assert [document["label"] for document in told["documents"]] == ["one.xml", "two.xml", "three.xml"]
    assert [bool(document.get("matches")) for document in told["documents"]] == [True, False, False]
    assert told["documents"][1]["error"]["code"]
    broken = http.post(
        "/documents", content=b"--x\r\nnonsense", headers={"content-type": "multipart/form-data; boundary=x"}
    )
    assert broken.status_code in (400, 422)
    assert http.post("/documents", content=b"x", headers={"content-type": "multipart/form-data"}).status_code == 400


def test_packed(http: httpx.Client, client: xsift.Client) -> None:
    client.add("a", "//a")
    body = b"<r>" + b"<a/>" * 1000 + b"</r>"
    packed = {
        "gzip": gzip.compress(body),
        "zstd": zstandard.compress(body),
    }
    for encoding, content in packed.items():
        answer = http.post("/match", content=content, headers={"content-encoding": encoding})
        assert [match["id"] for match in answer.json()["matches"]] == ["a"], encoding
        cut = http.post("/match", content=content[:-8], headers={"content-encoding": encoding})
        assert (cut.status_code, cut.json()["code"]) == (400, "bad-encoding")
        wrong = http.post("/match", content=b"nonsense", headers={"content-encoding": encoding})
        assert (wrong.status_code, wrong.json()["code"]) == (400, "bad-encoding")
    two = http.post(
        "/match", content=gzip.compress(b"<r>") + gzip.compress(b"<a/></r>"), headers={"content-encoding": "gzip"}
    )
    assert two.status_code == 200
    assert http.post("/match", content=body, headers={"content-encoding": "br"}).status_code == 415
    import_lines = gzip.compress(b'{"id": "packed", "xpath": "//p"}\n')
    assert (
        http.post("/subscriptions", content=import_lines, headers={**NDJSON, "content-encoding": "gzip"}).json()[
            "added"
        ]
        == 1
    )


def test_packed_in_several_pieces(http: httpx.Client) -> None:
    """What follows the first member or frame is not lost."""
    lines = [b'{"xml": "<a>%d</a>"}\n' % number for number in range(3)]
    for encoding, pack in (("gzip", gzip.compress), ("zstd", zstandard.compress)):
        headers = {**NDJSON, "content-encoding": encoding}
        told = http.post("/documents", content=b"".join(map(pack, lines)), headers=headers).json()
        assert (told["stored"], told["broken"]) == (3, 0), encoding
        cut = http.post("/documents", content=pack(lines[0]) + pack(lines[1])[:-4], headers=headers)
        assert (cut.status_code, cut.json()["code"]) == (400, "bad-encoding"), encoding
    ignored = b"\x50\x2a\x4d\x18\x04\0\0\0note"  # a frame of zstd that is skipped
    answer = http.post(
        "/documents", content=ignored + zstandard.compress(b"<a/>"), headers={"content-encoding": "zstd"}
    )
    assert answer.status_code == 202


def test_what_unpacks_to_nothing_is_bounded_too(http: httpx.Client) -> None:
    empty = gzip.compress(b"") * 1000
    answer = http.post("/documents", content=(empty for _ in range(60)), headers={"content-encoding": "gzip"})
    assert (answer.status_code, answer.json()["code"]) == (413, "too-large")


def test_a_stream_that_ends_in_the_middle_says_what_was_stored(http: httpx.Client) -> None:
    body = gzip.compress(b'{"xml": "<a/>"}\n' * 200, 0)[:-4]
    answer = http.post("/documents", content=body, headers={**NDJSON, "content-encoding": "gzip"})
    assert (answer.status_code, answer.json()["code"]) == (400, "bad-encoding")
    stored = answer.json()["stored"]
    assert stored > 0
    assert stored == len(http.get("/documents", params={"most": 1000}).json()["items"])


def test_a_line_that_is_too_long_is_an_error_among_the_others(http: httpx.Client) -> None:
    long = b'{"xml": "' + b"x" * 2_000_000 + b'"}'
    body = b'{"xml": "<a/>"}\n' + long + b'\n{"xml": 3}\n{"xml": "<b/>"}'
    told = http.post("/documents", content=body, headers=NDJSON).json()
    assert (told["stored"], told["broken"]) == (2, 2)
    errors = [document.get("error") for document in told["documents"]]
    assert [error and error["code"] for error in errors] == [None, "line-too-long", "bad-line", None]
    assert errors[2]["message"] == "not an object with `xml`: xml: Input should be a valid string"


def test_a_form_keeps_the_bytes_of_its_documents(http: httpx.Client, client: xsift.Client) -> None:
    client.add("é", "//a[. = 'é']")
    declared = '<?xml version="1.0" encoding="iso-8859-1"?><a>é</a>'.encode("latin-1")
    head = '--x\r\ncontent-disposition: form-data; name="%s"%s\r\n\r\n'
    parts = [
        ("field", "", declared),
        ("féld", "", "<a>é</a>".encode()),
        ("field", "", "<a>é</a>".encode("utf-16")),
        ("file", '; filename="é.xml"', declared),
        ("file", '; filename="x"\r\ncontent-type: text/xml; charset=iso-8859-1', "<a>é</a>".encode("latin-1")),
    ]
    body = b"".join((head % part[:2]).encode() + part[2] + b"\r\n" for part in parts)
    headers = {"content-type": "multipart/form-data; boundary=x"}
    whole = body + b"--x--\r\n"
    packed = {**headers, "content-encoding": "gzip"}
    for content, sent in ((whole, headers), (gzip.compress(whole), packed), ((whole for _ in range(1)), headers)):
        told = http.post("/documents", params={"wait": "matches"}, content=content, headers=sent).json()
        assert [[match["id"] for match in document["matches"]] for document in told["documents"]] == [["é"]] * 5
        assert [document["label"] for document in told["documents"]] == ["field", "féld", "field", "é.xml", "x"]
    cut = http.post("/documents", content=body, headers=headers)
    assert (cut.status_code, cut.json()["code"]) == (400, "bad-form")


def test_a_part_of_a_form_that_is_too_large_is_refused_alone(http: httpx.Client) -> None:
    large = b"<a>" + b" " * 1_000_000 + b"</a>"
    files: list[tuple[str, Any]] = [(name, (None, body)) for name, body in (("x", b"<a/>"), ("y", large))]
    files += [("f", ("z.xml", large)), ("f", ("last.xml", b"<a/>"))]
    told = http.post("/documents", files=files).json()
    assert [document.get("error", {}).get("code") for document in told["documents"]] == [
        None,
        "too-large",
        "too-large",
        None,
    ]


def test_a_form_is_published_as_it_arrives() -> None:
    form = _Form(b"x", 1000)
    head = b'--x\r\ncontent-disposition: form-data; name="a"\r\n\r\n'
    assert form.take(head + b"<a/>\r\n" + head + b"<b") == [FormPart("a", None, b"<a/>")]
    form.take(b"/>\r\n--x\r\nx: ")
    with pytest.raises(Problem, match="the form cannot be read"):
        form.take(b"y" * 100_000)


@pytest.mark.parametrize("packing", [gzip.compress, zstandard.compress])
def test_a_body_of_nothing_holds_up_nobody(packing: Any) -> None:
    """A few KB can become millions of lines, and the event loop has others to serve meanwhile."""
    encoding = "gzip" if packing is gzip.compress else "zstd"
    scope = {"type": "http", "headers": [(b"content-encoding", encoding.encode())]}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": packing(b"\n" * 5_000_000), "more_body": False}

    async def read() -> int:
        turns = 0

        async def work() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        working = asyncio.create_task(work())
        assert [line async for line in read_lines(Request(scope, receive), 10_000_000, 100)] == []
        working.cancel()
        return turns

    assert asyncio.run(read()) > 30


def test_a_stream_that_waits_for_room_is_counted_once() -> None:
    spent: list[int] = []
    answers = [Overloaded(), Overloaded(), ([Receipt("1", "", [])], False)]

    async def publish(*arguments: Any, **options: Any) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Overloaded):
            raise answer
        return answer

    async def incoming() -> AsyncIterator[Incoming]:
        yield Incoming(b"<a/>")

    call: Any = SimpleNamespace(
        gate=SimpleNamespace(spend=lambda owner, documents, size: spent.append(documents)),
        parts=SimpleNamespace(publisher=SimpleNamespace(publish=publish)),
        owner=lambda: "o",
        owner_or_all=lambda: "o",
    )
    answer = asyncio.run(documents._publish_many(call, incoming(), None, False))
    assert (answer.status_code, spent) == (202, [1])


def test_one_request_has_so_many_documents_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    async def incoming() -> AsyncIterator[Problem]:
        while True:
            yield Problem(422, "bad-line", "nothing")

    monkeypatch.setattr(documents, "MOST_DOCUMENTS", 1000)
    call: Any = None
    with pytest.raises(Problem, match="1,000 documents at most") as raised:
        asyncio.run(documents._publish_many(call, incoming(), None, False))
    assert (raised.value.status, raised.value.more) == (413, {"stored": 0})


def test_what_zstd_needs_to_be_unpacked_is_bounded(http: httpx.Client) -> None:
    """By RFC 9659: a frame that wants 128 MB is refused, however little is in it."""
    parameters = zstandard.ZstdCompressionParameters(window_log=27)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    content = packer.compress(b"<a/>") + packer.flush()
    answer = http.post("/documents", content=content, headers={"content-encoding": "zstd"})
    assert (answer.status_code, answer.json()["code"]) == (400, "bad-encoding")


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_small_body_that_becomes_a_large_one(http: httpx.Client, server: RunningServer, encoding: str) -> None:
    large = b"<a>" + b" " * 500_000_000
    content = zlib_gzip(large) if encoding == "gzip" else zstandard.compress(large, 3)
    del large
    answer = http.post("/documents", content=content, headers={"content-encoding": encoding})
    assert (answer.status_code, answer.json()["code"]) == (413, "too-large")
    assert server.process is not None
    status = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    peak = next(line for line in status if line.startswith("VmHWM")).split()[1]
    assert int(peak) < 1_200_000, "it was unpacked whole"


def zlib_gzip(data: bytes) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush()


def test_too_large(http: httpx.Client) -> None:
    large = b"<a>" + b" " * 1_000_001 + b"</a>"
    assert http.post("/documents", content=large).status_code == 413
    assert http.post("/documents", content=iter([large[:600_000], large[600_000:]])).status_code == 413


def test_a_key_makes_repetition_harmless(client: xsift.Client, http: httpx.Client) -> None:
    client.add("k", "//k", subscriber="keyed")
    first = client.publish("<k/>", key="the key")
    again = http.post("/documents", content=b"<k/>", headers={"idempotency-key": "the key"})
    assert (again.status_code, again.json()["id"], again.headers["idempotent-replayed"]) == (202, first.id, "true")
    other = http.post("/documents", content=b"<k>2</k>", headers={"idempotency-key": "the key"})
    assert (other.status_code, other.json()["code"]) == (422, "key-reused")
    assert len(client.deliveries("keyed")) == 1
    with ThreadPoolExecutor(8) as pool:
        ids = set(pool.map(lambda _: client.publish("<k>3</k>", key="at once").id, range(16)))
    assert len(ids) == 1
    assert len(client.deliveries("keyed")) == 2
    many = [client.publish_many([f"<k>{n}</k>" for n in range(100)], key="many") for _ in range(2)]
    assert [item.id for item in many[0]] == [item.id for item in many[1]]
    assert len(client.deliveries("keyed", most=1000)) == 102
    assert http.post("/documents", content=b"<k/>", headers={"idempotency-key": "x" * 201}).status_code == 422


def test_match_select_explain_store_nothing(client: xsift.Client, http: httpx.Client) -> None:
    client.add("p", "/r/p[@x]", subscriber="nobody")
    client.add("q", "//q")
    before = http.get("/documents", params={"most": 1}).json()["items"]
    document = b"<r><p x='1'>one</p><p/></r>"
    assert client.match(document) == ["p"]
    assert [(node.path, node.element) for node in client.select(document)["p"]] == [("/r/p[1]", 2)]
    explained = client.explain(document, "q")
    assert (explained["matched"], explained["patterns"][0]["steps"][0]["found"]) == (False, 0)
    tried = client.explain(document, xpath="//p[@x='1']")
    assert tried["matched"]
    node = tried["nodes"][0]
    assert document[node["start"] : node["end"]] == b"<p x='1'>one</p>"
    assert client.select(document)["p"][0].fragment == "<p x='1'>one</p>"
    posted = http.post(
        "/select", json={"xml": document.decode(), "xpath": "//n:p", "namespaces": {"n": "urn:n"}}
    ).json()
    assert posted["matches"] == []
    assert (
        http.post("/match", json={"xml": document.decode(), "xpath": "//p["}).json()["code"] == "predicate-not-closed"
    )
    assert http.post("/explain", json={"xml": "<a/>"}).status_code == 422
    assert http.post("/explain", json={"xml": "<a/>", "subscription": "unknown"}).status_code == 404
    assert http.post("/explain", content=b"{", headers={"content-type": "application/json"}).status_code == 400
    assert client.deliveries("nobody") == []
    assert http.get("/documents", params={"most": 1}).json()["items"] == before


def test_trials_say_what_could_not_be_decided(client: xsift.Client, http: httpx.Client) -> None:
    hostile = "/tried[count(//b[count(preceding-sibling::b[. != 'x']) > 5]) > 0]"  # on no other test's documents
    client.add("hostile", hostile)
    client.add("plain", "/tried/b[. = 7]")
    document = "<tried>" + "".join(f"<b>{number}</b>" for number in range(5000)) + "</tried>"
    for path in ("/match", "/select"):
        one = http.post(path, json={"xml": document, "xpath": hostile}).json()
        assert (one["matches"], one["failures"][0]["code"]) == ([], "too-many-steps")
        told = http.post(path, content=document).json()
        assert [match["id"] for match in told["matches"]] == ["plain"]
        assert [(failure["id"], failure["code"]) for failure in told["failures"]] == [("hostile", "too-many-steps")]
    for published in (client.publish(document, wait=True), client.publish_many([document], wait=True)[0]):
        assert [match["id"] for match in published.matches] == ["plain"]
        assert {id: failure.code for id, failure in published.failures.items()} == {"hostile": "too-many-steps"}
    assert client.publish(document).failures == {}
    with pytest.warns(xsift.FailureWarning, match="'hostile' could not be decided") as warned:
        assert client.match(document) == ["plain"]
    assert warned[0].filename == __file__
    with pytest.warns(xsift.FailureWarning, match="'hostile' could not be decided"):
        assert list(client.select(document)) == ["plain"]
    explained = http.post("/explain", content=b'{"xml": "<b/>", "subscription": "plain"}')  # of whatever content type
    assert explained.json()["matched"] is False


def test_fragments_and_whole_documents_are_delivered(client: xsift.Client) -> None:
    client.add("parts", "//p[@k]", deliver="fragments", subscriber="parts")
    client.add("whole", "//p", deliver="document", subscriber="whole")
    client.add("ids", "//p", subscriber="ids")
    client.publish("<r><p k='1'>a&amp;b</p><p/><p k='2'/></r>")
    [parts] = client.deliveries("parts")
    assert [fragment["xml"] for fragment in parts.matches[0]["fragments"]] == ["<p k='1'>a&amp;b</p>", "<p k='2'/>"]
    assert parts.xml is None
    [whole] = client.deliveries("whole")
    assert whole.xml == "<r><p k='1'>a&amp;b</p><p/><p k='2'/></r>"
    [ids] = client.deliveries("ids")
    assert (ids.matches[0]["id"], ids.xml, "fragments" in ids.matches[0]) == ("ids", None, False)


def test_fragments_are_bounded(client: xsift.Client) -> None:
    """However many subscriptions select however large a part of a document, a delivery stays small."""
    client.add_many(
        {"id": f"s{n}", "xpath": "/r/*", "deliver": "fragments", "subscriber": "greedy"} for n in range(100)
    )
    client.publish(b"<r><p>" + b"x" * 300_000 + b"</p><q/></r>")
    [delivery] = client.deliveries("greedy")
    assert len(delivery.matches) == 100
    kept = [fragment["xml"] for match in delivery.matches for fragment in match["fragments"]]
    assert sum(map(len, kept)) < 1_100_000
    left_out = sum(match.get("fragments_left_out", 0) for match in delivery.matches)
    assert left_out + len(kept) == 200


def test_large_documents_are_delivered_a_few_at_a_time(client: xsift.Client) -> None:
    client.add("whole", "//r", deliver="document", subscriber="s")
    for number in range(30):
        client.publish(b"<r>" + b"x" * 900_000 + b"</r>", label=str(number))
    labels: list[str] = []
    while found := client.deliveries("s", most=1000):
        assert len(found) < 25
        labels += [delivery.document["label"] for delivery in found]
        client.acknowledge("s", found[-1])
    assert labels == [str(number) for number in range(30)]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_metadata_is_json(http: httpx.Client, number: str) -> None:
    """What is delivered with it could not be read by anybody else."""
    body = '{"id": "m", "xpath": "//a", "metadata": {"n": [NUMBER]}}'.replace("NUMBER", number)
    one = http.put("/subscriptions/m", content=body.replace('"id": "m", ', ""))
    assert (one.status_code, "JSON cannot say" in one.text) == (422, True)
    many = http.post("/subscriptions", content=body, headers=NDJSON).json()
    assert (many["added"], many["refused"]) == (0, 1)
    assert http.put("/subscriptions/m", json={"xpath": "//a", "labels": {"a\0": "b"}}).status_code == 422


def test_metadata_is_small(http: httpx.Client) -> None:
    answer = http.put("/subscriptions/large", json={"xpath": "//a", "metadata": {"x": "y" * 17_000}})
    assert answer.status_code == 422


def test_one_delivery_for_all_subscriptions_of_a_subscriber(client: xsift.Client) -> None:
    client.add_many({"id": f"s{n}", "xpath": "//shared", "subscriber": "one"} for n in range(10))
    client.publish("<shared/>")
    [delivery] = client.deliveries("one")
    assert [match["id"] for match in delivery.matches] == [f"s{n}" for n in range(10)]


def test_a_slow_document_is_named_with_its_subscriptions(
    client: xsift.Client, server: RunningServer, owner: str
) -> None:
    expression = "//slow[count(//n[count(preceding-sibling::n[. != '{}']) > {}]) > 0]"  # no two share a part
    client.add_many((f"expensive {number}", expression.format(number, number)) for number in range(40))
    client.add("cheap", "//slow[count(n) > 1]")
    published = client.publish("<slow>" + "<n>x</n>" * 500 + "</slow>", label="the slow one")

    def named() -> list[dict[str, Any]]:
        return [record for record in server.records() if record.get("document") == published.id]

    record = until(named)[0]
    assert (record["message"], record["label"], record["bytes"]) == ("slow document", "the slow one", 4013)
    assert record["candidates"] >= 20
    assert len(record["slowest"]) == 5
    for slow in record["slowest"]:
        assert (slow["owner"], slow["subscription"].startswith("expensive")) == (owner, True)
    assert server.metric("xsift_candidates_total") >= 20
    assert server.metric("xsift_slow_documents_total") >= 1


def test_a_subscription_that_costs_too_much_fails_alone(client: xsift.Client, server: RunningServer) -> None:
    client.add("hostile", "//big[count(//n[count(preceding-sibling::n[. = 'x']) > 5]) > 0]")
    client.add("plain", "//big")
    published = client.publish("<big>" + "<n>x</n>" * 3000 + "</big>", wait=True)
    assert [match["id"] for match in published.matches] == ["plain"]
    told = [record for record in server.records() if record.get("document") == published.id]
    assert any(record.get("subscription") == "hostile" and "too-many-steps" in record["reason"] for record in told)
    assert client.get("hostile")["failures"] == 1


def test_who_sends_too_much_is_told_so_and_not_cut_off(server: RunningServer) -> None:
    """The connection is not kept: closing it early would reset it, and the answer would be lost."""
    limit = 16 << 20
    for path, kind, size, code in [
        ("/documents", "application/xml", limit + (4 << 20), "too-large"),
        ("/subscriptions", "text/plain", 8 << 20, "bad-type"),
    ]:
        request = urllib.request.Request(
            server.url + path, b"x" * size, {"content-type": kind, "connection": "close"}, method="POST"
        )
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=60)
        assert json.load(refused.value)["code"] == code
