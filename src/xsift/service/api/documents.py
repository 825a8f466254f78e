"""Documents: published and durable; or only matched, selected from, explained, and forgotten."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import from_json, to_json
from sqlalchemy import Connection, null, select
from starlette.responses import Response

import xsift
from xsift.errors import XsiftError
from xsift.service.api import models
from xsift.service.api.bodies import (
    charset_in,
    media_type_of,
    parse_json,
    read_body,
    read_form,
    read_lines,
    too_long,
)
from xsift.service.api.problems import Problem, Stopped, error_json
from xsift.service.api.routes import Call, Parameter, PlainAnswer, Routes, json_response
from xsift.service.publishing import Incoming, Overloaded, Receipt
from xsift.service.store import deliveries as store
from xsift.service.store import subscriptions
from xsift.service.store.numbers import document_id, parse_document_id
from xsift.service.store.schema import broken, documents
from xsift.service.store.schema import subscriptions as subscriptions_table

__all__ = ["routes"]

routes = Routes("documents")
Answer = TypeVar("Answer")

JSON_TYPE = (b"content-type", b"application/json")
XML = ("application/xml", "text/xml", "application/octet-stream")
NDJSON = ("application/x-ndjson", "application/jsonl", "application/jsonlines", "application/ndjson")
TOGETHER = 64  # documents of a stream that are published in one piece
MOST_DOCUMENTS = 1_000_000  # of one request: the answer, which has a line for each, is kept until then
MOST_WAITS = 100
TURN = 100  # documents that are looked at before others have their turn
MOST_SELECTED = 1000  # subscriptions that nodes are selected for in one call
LONGEST_KEY = 200
WHOSE = Parameter("owner", "Whose; for admins, who otherwise see everybody's.")


class _DocumentLine(BaseModel):
    """A line of NDJSON."""

    model_config = ConfigDict(extra="forbid")
    xml: str
    label: str = Field("", max_length=1000)


_LINE = TypeAdapter(_DocumentLine)


# Publishing


@routes.add(
    "POST",
    "/documents",
    "Publish documents: one, or many as NDJSON or multipart. Answered when they are durable and matched.",
    roles=["publish"],
    takes=("application/xml", "application/x-ndjson", "multipart/form-data"),
    gives=models.PublishedDocument,
    statuses=(202, 413, 422, 429, 503, 507),
    parameters=[
        Parameter("label", "What results call the document."),
        Parameter("owner", "In whose name; for admins. Default: the caller."),
        Parameter("wait", "`matches`: answer with the caller's subscriptions that matched.", {"enum": ["matches"]}),
    ],
)
async def publish(call: Call) -> Response:
    wants_matches = call.choice("wait", "", "matches") == "matches"
    key = call.request.headers.get("idempotency-key")
    if key is not None and not (1 <= len(key) <= LONGEST_KEY and key.isprintable()):
        raise Problem(422, "bad-key", f"an idempotency key has 1 to {LONGEST_KEY} printable characters")
    kind = media_type_of(call.request)
    if kind in NDJSON:
        return await _publish_many(call, _from_lines(call), key, wants_matches)
    if kind == "multipart/form-data":
        return await _publish_many(call, _from_form(call), key, wants_matches)
    limits = call.parts.settings.limits
    body = await read_body(call.request, limits.body_bytes)
    label = call.query("label") or ""
    if len(label) > 1000:
        raise Problem(422, "bad-parameter", "label has more than 1,000 characters")
    receipts, replayed = await _publish(call, [Incoming(body, label, _charset(call))], key)
    receipt = receipts[0]
    if receipt.error is not None:
        raise receipt.error
    headers = [JSON_TYPE, (b"location", b"/documents/" + receipt.id.encode())]
    if replayed:
        headers.append((b"idempotent-replayed", b"true"))
    return PlainAnswer(_receipt_json(receipt, wants_matches), 202, headers)


def _charset(call: Call) -> str | None:
    return charset_in(call.request.headers.get("content-type", ""))


async def _publish(call: Call, incoming: list[Incoming], key: str | None) -> tuple[list[Receipt], bool]:
    _spend(call, incoming)
    return await _hand_over(call, incoming, key)


async def _publish_patiently(call: Call, incoming: list[Incoming], key: str | None) -> tuple[list[Receipt], bool]:
    """A stream waits for its rate, and for room, instead of being sent back: the sender waits with it."""
    for attempt in range(MOST_WAITS):
        try:
            _spend(call, incoming)
            break
        except Problem as problem:
            if problem.code != "rate-limit" or attempt == MOST_WAITS - 1:
                raise
            await asyncio.sleep(float(problem.headers["retry-after"]))
    for _ in range(MOST_WAITS):
        with contextlib.suppress(Overloaded):
            return await _hand_over(call, incoming, key)
        await asyncio.sleep(0.05)
    raise Overloaded


def _spend(call: Call, incoming: list[Incoming]) -> None:
    call.gate.spend(call.owner(), len(incoming), sum(len(document.body) for document in incoming))


async def _hand_over(call: Call, incoming: list[Incoming], key: str | None) -> tuple[list[Receipt], bool]:
    owner = call.owner()
    return await call.parts.publisher.publish(owner, incoming, key=key, sees_all=call.owner_or_all() is None)


def _receipt_json(receipt: Receipt, wants_matches: bool) -> bytes:
    if receipt.error is not None:
        return to_json({"label": receipt.label, "error": store.error_fields(receipt.error)})
    head = to_json({"id": receipt.id, "label": receipt.label})
    if not wants_matches:
        return head
    undecided = _failures((from_json(entry)["id"], error) for entry, error in receipt.failures)
    failures = b',"failures":' + to_json(undecided) if undecided else b""
    return head[:-1] + b',"matches":[' + b",".join(receipt.matches) + b"]" + failures + b"}"


def _failures(undecided: Iterable[tuple[str, XsiftError]]) -> list[dict[str, Any]]:
    """Subscriptions that could not be decided on a document."""
    return [{**error_json(error), "id": id} for id, error in undecided]


async def _publish_many(
    call: Call, incoming: AsyncIterator[Incoming | Problem], key: str | None, wants_matches: bool
) -> Response:
    """Publishes as it arrives, some documents at a time. The answer has a line for each, in their order; a broken
    document is an error on its line.
    """
    lines: list[bytes] = []
    waiting: list[Incoming] = []
    places: list[int] = []
    replays = 0
    number = stored = 0

    async def flush() -> None:
        nonlocal replays, stored
        if not waiting:
            return
        part_key = None if key is None else f"{key}#{places[0]}"
        receipts, replayed = await _publish_patiently(call, list(waiting), part_key)
        replays += replayed
        for place, receipt in zip(places, receipts, strict=True):
            lines[place] = _receipt_json(receipt, wants_matches)
            stored += receipt.error is None
        waiting.clear()
        places.clear()

    size = 0
    try:
        async for item in incoming:
            lines.append(b"")
            if isinstance(item, Problem):
                lines[number] = to_json({"error": {"code": item.code, "message": item.message}})
            else:
                waiting.append(item)
                places.append(number)
                size += len(item.body)
            number += 1
            if number > MOST_DOCUMENTS:
                raise Problem(413, "too-many-documents", f"one request has {MOST_DOCUMENTS:,} documents at most")
            if number % TURN == 0:
                await asyncio.sleep(0)
            if len(waiting) >= TOGETHER or size > 1 << 22:
                await flush()
                size = 0
        await flush()
    except XsiftError as error:
        # The request ends here, but what was stored before is stored: it is said, and a key makes repeating harmless.
        raise Stopped(error, stored) from error
    if not lines:
        raise Problem(422, "no-documents", "there is no document in the body")
    headers = {"idempotent-replayed": "true"} if replays else {}
    body = b'{"stored":%d,"broken":%d,"documents":[' % (stored, number - stored) + b",".join(lines) + b"]}"
    return Response(body, 202 if stored else 422, headers=headers, media_type="application/json")


async def _from_lines(call: Call) -> AsyncIterator[Incoming | Problem]:
    limits = call.parts.settings.limits
    longest = 2 * limits.body_bytes
    async for lines in read_lines(call.request, limits.upload_bytes, longest):
        for _, line in lines:
            if line is None:
                yield too_long(longest)
                continue
            try:
                parsed = _LINE.validate_json(line)
            except ValidationError as error:
                found = error.errors(include_url=False, include_context=False)[0]
                where = ".".join(str(part) for part in found["loc"])
                why = f"{where}: {found['msg']}" if where else found["msg"]
                yield Problem(422, "bad-line", f"not an object with `xml`: {why}")
                continue
            # JSON is text: whatever encoding the declaration names, these are UTF-8 bytes now.
            yield Incoming(parsed.xml.encode("utf-8", "replace"), parsed.label, "utf-8")


async def _from_form(call: Call) -> AsyncIterator[Incoming | Problem]:
    limits = call.parts.settings.limits
    async for part in read_form(call.request, limits.upload_bytes, limits.body_bytes):
        if part.body is None:
            yield Problem(413, "too-large", f"{part.label} is larger than {limits.body_bytes:,} bytes")
        else:
            yield Incoming(part.body, part.label, part.encoding)


# Looking at what was published


@routes.add(
    "GET",
    "/documents",
    "The latest documents; an owner's own, or all for an admin.",
    roles=["publish", "subscribe"],
    gives=models.Collection,
    parameters=[
        Parameter("most", "How many, at most 1,000.", {"type": "integer"}),
        Parameter("after", "The `next` of the page before."),
        WHOSE,
        Parameter("broken", "`true`: those that were refused, with their error.", {"enum": ["true"]}),
    ],
)
async def list_documents(call: Call) -> Response:
    owner, most = call.owner_or_all(), call.number("most", 100, 1, 1000)
    after = call.query("after")
    before = parse_document_id(after) if after else None
    table = broken if call.choice("broken", "", "true") else documents
    columns = [column for column in table.c if column.name != "body"]

    def ask(connection: Connection) -> list[Any]:
        query = select(*columns).order_by(table.c.number.desc()).limit(most)
        if owner is not None:
            query = query.where(table.c.owner == owner)
        if before is not None:
            query = query.where(table.c.number < before)
        return list(connection.execute(query))

    rows = await call.parts.reads.run(ask)
    items = [{**row._mapping, "id": document_id(row.number)} for row in rows]
    for item in items:
        del item["number"]
        if not call.caller.is_admin:  # how many subscriptions others have that match is theirs to know
            item.pop("matches", None)
    return json_response({"items": items, "next": items[-1]["id"] if len(items) == most else None})


@routes.add(
    "GET",
    "/documents/{id}",
    "A document as it was published, while it is kept.",
    roles=["publish", "subscribe"],
    gives="application/xml",
    statuses=(200, 404),
    parameters=[WHOSE],
)
async def get_document(call: Call) -> Response:
    number, owner = parse_document_id(call.path("id")), call.owner_or_all()
    row = await call.parts.reads.run(lambda connection: _find(connection, number, owner))
    kind = "application/xml" if row.encoding is None else f"application/xml; charset={row.encoding}"
    # Shown as a download and in a sandbox: a document can be a page with scripts.
    headers = {
        "content-disposition": "attachment",
        "content-security-policy": "sandbox; default-src 'none'",
        "x-xsift-received": f"{row.received:.3f}",
        "x-xsift-size": str(row.size),
    }
    return Response(bytes(row.body), headers=headers, media_type=kind)


def _find(connection: Connection, number: int, owner: str | None) -> Any:
    kept = (documents.c.owner, documents.c.received, documents.c.size, documents.c.body, documents.c.encoding)
    refused = (broken.c.owner, broken.c.received, broken.c.size, broken.c.body, null().label("encoding"))
    for table, columns in ((documents, kept), (broken, refused)):
        query = select(*columns).where(table.c.number == number)
        if owner is not None:  # others' are not even read: how long that took would tell that they are there
            query = query.where(table.c.owner == owner)
        row = connection.execute(query).first()
        if row is not None:
            return row
    raise XsiftError("unknown-document", "there is no such document, or it is no longer kept")


# Trying


async def _trial(call: Call, *, raw: bool = True) -> tuple[models.TrialIn | None, xsift.Document]:
    """What is tried: a raw document, where that is enough, or JSON with an expression."""
    most = call.parts.settings.limits.body_bytes
    body = await read_body(call.request, 2 * most)
    if not raw or media_type_of(call.request) == "application/json":
        trial = models.TrialIn.model_validate(parse_json(body))
        return trial, xsift.Document(trial.xml)
    return None, xsift.Document(body, encoding=_charset(call))


async def in_trial(call: Call, work: Callable[[], Answer]) -> Answer:
    """Runs what takes time on the threads for trials. An owner never has all of them."""
    async with call.gate.use(call.caller.owner).trials:
        return await asyncio.get_running_loop().run_in_executor(call.parts.trials, work)


def _only(trial: models.TrialIn, call: Call, row: Any) -> tuple[xsift.Matcher, str]:
    """A matcher of the one expression that is tried."""
    if row is not None:
        id, xpath, ordered, namespaces = row.id, row.xpath, row.ordered, row.namespaces
    else:
        id, xpath, ordered, namespaces = "expression", trial.xpath or "", trial.ordered, trial.namespaces
    return _matcher_of(call, [(id, xpath, ordered, namespaces)]), id


def _matcher_of(call: Call, rows: list[tuple[str, str, bool, dict[str, str]]]) -> xsift.Matcher:
    subscriptions_ = xsift.Subscriptions(residuals=call.parts.settings.matching.residuals)
    for id, xpath, ordered, namespaces in rows:
        subscriptions_.add(id, xpath, ordered=ordered, namespaces=namespaces)
    return subscriptions_.matcher(call.parts.settings.matching.engine)


async def _named(call: Call, trial: models.TrialIn | None) -> Any:
    if trial is None or trial.subscription is None:
        return None
    owner, id = call.owner(), trial.subscription
    return await call.parts.reads.run(lambda connection: subscriptions.get(connection, owner, id))


@routes.add(
    "POST",
    "/match",
    "Which of the caller's subscriptions a document satisfies, or whether it does an expression. Nothing is stored.",
    roles=["publish", "subscribe"],
    takes=("application/xml", "application/json"),
    gives=models.MatchAnswer,
    statuses=(200, 413, 422),
    parameters=[WHOSE],
)
async def match(call: Call) -> Response:
    trial, document = await _trial(call)
    if trial is not None and (trial.xpath is not None or trial.subscription is not None):
        row = await _named(call, trial)

        def one() -> dict[str, Any]:
            matcher, _ = _only(trial, call, row)
            failures: dict[str, XsiftError] = {}
            matches = [{"id": id} for id in matcher.match(document, failures=failures)]
            return _answer(matches, failures.items())

        return json_response(await in_trial(call, one))
    entries, undecided = await _own_matches(call, document)
    return json_response(_answer([from_json(entry) for entry in entries.values()], undecided))


def _answer(matches: list[dict[str, Any]], undecided: Iterable[tuple[str, XsiftError]]) -> dict[str, Any]:
    """What matched, and what could not be decided, if there is such."""
    failures = _failures(undecided)
    return {"matches": matches, "failures": failures} if failures else {"matches": matches}


async def _own_matches(call: Call, document: xsift.Document) -> tuple[dict[int, bytes], list[tuple[str, XsiftError]]]:
    """The caller's subscriptions that match: their entries by row; and the ids of those that could not be decided."""
    owner = call.owner_or_all()
    snapshot = call.parts.live_set.snapshot

    def work() -> tuple[dict[int, bytes], list[tuple[str, XsiftError]]]:
        found = snapshot.match([document], select=False)[0]
        if found.error is not None:
            raise found.error
        caught = [caught.place for caught in found.caught if owner in (None, snapshot.owner(caught.place))]
        failed = [place for place in found.failures if owner in (None, snapshot.owner(place))]
        return (
            {snapshot.row(place): snapshot.entry(place) + b"}" for place in caught},
            [(snapshot.id(place), found.failures[place]) for place in failed],
        )

    return await in_trial(call, work)


@routes.add(
    "POST",
    "/select",
    "The nodes that the caller's subscriptions, or an expression, select in a document. Nothing is stored.",
    roles=["publish", "subscribe"],
    takes=("application/xml", "application/json"),
    gives=models.SelectAnswer,
    statuses=(200, 413, 422),
    parameters=[WHOSE],
)
async def select_nodes(call: Call) -> Response:
    trial, document = await _trial(call)
    if trial is not None and (trial.xpath is not None or trial.subscription is not None):
        row = await _named(call, trial)

        def one() -> dict[str, Any]:
            matcher, _ = _only(trial, call, row)
            failures: dict[str, XsiftError] = {}
            selected = matcher.select(document, fragments=True, failures=failures)
            matches = [{"id": id, "nodes": nodes_json(nodes)} for id, nodes in selected.items()]
            return _answer(matches, failures.items())

        return json_response(await in_trial(call, one))
    rows, undecided = await _own_matches(call, document)
    if len(rows) > MOST_SELECTED:
        raise Problem(
            422,
            "too-many",
            f"{len(rows):,} subscriptions match",
            hint=f"nodes are selected for {MOST_SELECTED} at most",
        )
    texts = await call.parts.reads.run(lambda connection: _texts(connection, list(rows)))

    def all_of_them() -> dict[str, Any]:
        wanted = [(str(text.row), text.xpath, text.ordered, text.namespaces) for text in texts]
        failures: dict[str, XsiftError] = {}
        selected = _matcher_of(call, wanted).select(document, fragments=True, failures=failures)
        matches = {row: from_json(entry) for row, entry in rows.items()}
        for row, match in matches.items():
            match["nodes"] = nodes_json(selected.get(str(row), ()))
        failed = [(matches[int(row)]["id"], error) for row, error in failures.items()]
        return _answer(list(matches.values()), [*undecided, *failed])

    return json_response(await in_trial(call, all_of_them))


def _texts(connection: Connection, rows: list[int]) -> list[Any]:
    table = subscriptions_table
    found: list[Any] = []
    for begin in range(0, len(rows), 500):
        query = select(table.c.row, table.c.xpath, table.c.ordered, table.c.namespaces)
        found += connection.execute(query.where(table.c.row.in_(rows[begin : begin + 500])))
    return found


def nodes_json(nodes: Any) -> list[dict[str, Any]]:
    """Nodes as JSON: path, number of the element, its bytes, and as `xml` the fragment if there is one."""
    found = []
    for node in nodes:
        told = {"path": node.path, "element": node.element, "start": node.start, "end": node.end}
        found.append(told if node.fragment is None else told | {"xml": node.fragment})
    return found


def steps_json(explanation: xsift.Explanation) -> list[dict[str, Any]]:
    """The patterns of an explanation as JSON, each with how far its steps got."""
    return [
        {"pattern": pattern, "steps": [dict(vars(step)) for step in steps]} for pattern, steps in explanation.patterns
    ]


@routes.add(
    "POST",
    "/explain",
    "Why an expression, or a subscription of the caller's, matches a document, or where it stopped.",
    roles=["publish", "subscribe"],
    takes=models.TrialIn,
    gives=models.ExplanationOut,
    statuses=(200, 404, 413, 422),
    parameters=[Parameter("owner", "Whose the subscription is; for admins. Default: the caller.")],
)
async def explain(call: Call) -> Response:
    trial, document = await _trial(call, raw=False)
    if trial is None or (trial.xpath is None) == (trial.subscription is None):
        raise Problem(422, "no-expression", "explain takes JSON with `xml`, and `xpath` or `subscription`")
    row = await _named(call, trial)

    def work() -> dict[str, Any]:
        matcher, id = _only(trial, call, row)
        explanation = matcher.explain(document, id)
        return {
            "id": id,
            "xpath": explanation.xpath,
            "matched": explanation.matched,
            "patterns": steps_json(explanation),
            "evaluated": explanation.evaluated,
            "residual": explanation.residual,
            "nodes": nodes_json(explanation.nodes),
            "text": str(explanation),
        }

    return json_response(await in_trial(call, work))
