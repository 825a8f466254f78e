"""Before a subscription is made: can it be used, what does it select here, what would it have caught, what else could
one write. Nothing is stored; all of it runs on the threads for trials.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from sqlalchemy import Connection, select
from starlette.responses import Response

import xsift
from xsift.errors import DocumentError, XsiftError
from xsift.matching.proposals import Outline
from xsift.service.api import models
from xsift.service.api.documents import WHOSE, in_trial, steps_json
from xsift.service.api.problems import Problem, error_json
from xsift.service.api.routes import Call, Routes, json_response
from xsift.service.store.numbers import document_id
from xsift.service.store.schema import documents

__all__ = ["routes"]

routes = Routes("subscriptions")

PREVIEW_SHOWN = 100
PREVIEW_BATCH = 200
PREVIEW_BYTES = 4 << 20  # of documents that are held at a time, or one that is larger
NODES_SHOWN = 5000  # that an answer tells the places of
MOST_TAGS = 500_000  # of a document whose nodes are looked at one by one: each takes some hundred bytes


@routes.add(
    "POST",
    "/subscriptions/validate",
    "Whether an expression can be used, what of it is indexed, and what is wrong where.",
    roles=["subscribe", "publish"],
    takes=models.ExpressionIn,
    gives=models.Validation,
    statuses=(200, 422),
)
async def validate(call: Call) -> Response:
    wanted = await call.model(models.ExpressionIn)
    return json_response(await in_trial(call, lambda: _validation(wanted, call)[0]))


def _validation(wanted: models.ExpressionIn, call: Call) -> tuple[dict[str, Any], xsift.Subscriptions]:
    """What is to be said of an expression, and a set of it alone, which is empty if it cannot be used."""
    trial = xsift.Subscriptions(residuals=call.parts.settings.matching.residuals)
    try:
        trial.add("expression", wanted.xpath, ordered=wanted.ordered, namespaces=wanted.namespaces)
    except (XsiftError, ValueError) as error:
        fields = error_json(error) if isinstance(error, XsiftError) else {"detail": str(error)}
        fields.pop("id", None)
        return {"valid": False, "error": fields}, trial
    report = trial.explain("expression")
    told = {
        "valid": True,
        "indexed": report.patterns,
        "exact": report.exact,
        "evaluated": report.residual,
        "reason": report.reason,
        "always": report.always,
        "never": report.never,
    }
    return told, trial


# On one document


@routes.add(
    "POST",
    "/try",
    "An expression as one writes it, on a document: whether it is valid, what it selects, how far each step got.",
    roles=["subscribe", "publish"],
    takes=models.TryIn,
    gives=models.Tried,
    statuses=(200, 413, 422),
)
async def try_expression(call: Call) -> Response:
    wanted = await call.model(models.TryIn, _most(call))
    return json_response(await in_trial(call, lambda: _tried(wanted, call)))


def _most(call: Call) -> int:
    """Of a body: a document as JSON, in which a character may take several."""
    return 2 * call.parts.settings.limits.body_bytes


def _tried(wanted: models.TryIn, call: Call) -> dict[str, Any]:
    validation, trial = _validation(wanted, call)
    answer: dict[str, Any] = {"validation": validation}
    if not wanted.xml.strip():
        return answer
    places = _Places(wanted.xml)
    try:
        document = xsift.Document(wanted.xml)
        if not validation["valid"]:
            trial.add("expression", "/*")  # the document may be wrong as well
        matcher = trial.matcher(call.parts.settings.matching.engine)
        explanation = matcher.explain(document, "expression")
    except DocumentError as error:
        offset = error.offset or 0
        return answer | {"document_error": error_json(error) | {"place": places.of([offset])[offset]}}
    except XsiftError as error:
        return answer | {"failure": error_json(error)}
    patterns = steps_json(explanation)
    missing = validation.get("error", {}).get("code") == "unbound-prefix"
    wanted_there = missing or any(step["hint"] for pattern in patterns for step in pattern["steps"])
    if wanted_there and _has_few_tags(wanted.xml):
        outline = Outline(document)
        answer["namespaces"] = [vars(namespace) for namespace in outline.namespaces()]
        _say_where(patterns, outline)
    if validation["valid"]:
        shown = explanation.nodes[:NODES_SHOWN]
        at = places.of([place for node in shown for place in (node.start, node.end)])
        answer |= {
            "matched": explanation.matched,
            "patterns": patterns,
            "evaluated": explanation.evaluated,
            "selects": len(explanation.nodes),
            "nodes": [[at[node.start], at[node.end], node.path] for node in shown],
        }
    return answer


def _has_few_tags(xml: str) -> bool:
    return xml.count("<") <= MOST_TAGS


def _say_where(patterns: list[dict[str, Any]], outline: Outline) -> None:
    """Adds to steps that found nothing the namespaces in which their names are."""
    for step in (step for pattern in patterns for step in pattern["steps"] if step["hint"]):
        local = step["step"].lstrip("/").rpartition("}")[2]
        step["elsewhere"] = outline.namespaces_of(local)


class _Places:
    """Where bytes of a text are, counted as browsers count: in units of UTF-16."""

    def __init__(self, text: str) -> None:
        self._is_ascii = text.isascii()
        self._text = text

    def of(self, offsets: list[int]) -> dict[int, int]:
        if self._is_ascii:
            return {offset: offset for offset in offsets}
        data = self._text.encode("utf-8", "replace")
        found, begin, units = {}, 0, 0
        for offset in sorted(set(offsets)):
            units += len(data[begin:offset].decode("utf-8", "ignore").encode("utf-16-le")) // 2
            found[offset] = units
            begin = offset
        return found


@routes.add(
    "POST",
    "/propose",
    "Expressions for an element or an attribute of a document that somebody points at, from general to particular.",
    roles=["subscribe", "publish"],
    takes=models.ProposeIn,
    gives=models.Proposals,
    statuses=(200, 404, 413, 422),
)
async def propose(call: Call) -> Response:
    wanted = await call.model(models.ProposeIn, _most(call))
    if not _has_few_tags(wanted.xml):
        raise Problem(413, "too-large", f"proposals are made for documents of at most {MOST_TAGS:,} tags")

    def work() -> dict[str, Any]:
        outline = Outline(xsift.Document(wanted.xml))
        proposals, namespaces = outline.propose(wanted.element, wanted.attribute, wanted.namespaces)
        return {"items": [vars(proposal) for proposal in proposals], "namespaces": namespaces}

    return json_response(await in_trial(call, work))


# On the latest documents


@routes.add(
    "POST",
    "/subscriptions/preview",
    "What an expression would have caught: it is tried on the latest documents that the caller may see.",
    roles=["subscribe", "publish"],
    takes=models.PreviewIn,
    gives=models.Preview,
    statuses=(200, 422),
    parameters=[WHOSE],
)
async def preview(call: Call) -> Response:
    wanted = await call.model(models.PreviewIn)
    owner = call.owner_or_all()
    trial = xsift.Subscriptions(residuals=call.parts.settings.matching.residuals)
    trial.add("expression", wanted.xpath, ordered=wanted.ordered, namespaces=wanted.namespaces)
    matcher = trial.matcher()
    tried = matched = failed = 0
    caught: list[dict[str, Any]] = []
    before: int | None = None
    while tried < wanted.documents:
        size = min(PREVIEW_BATCH, wanted.documents - tried)
        rows = await call.parts.reads.run(partial(_latest, owner=owner, before=before, most=size))
        if not rows:
            break
        before, tried = rows[-1].number, tried + len(rows)
        bodies = [xsift.Document(bytes(row.body), encoding=row.encoding) for row in rows]
        results = await in_trial(call, partial(_match_all, matcher, bodies))
        for row, result in zip(rows, results, strict=True):
            failed += result.error is not None or bool(result.failures)
            matched += len(result) > 0
            if len(result) and len(caught) < PREVIEW_SHOWN:
                facts = {"label": row.label, "received": row.received, "size": row.size}
                caught.append({"id": document_id(row.number), **facts})
        await asyncio.sleep(0)
    warning = ""
    if tried >= 20 and matched >= 0.9 * tried:
        warning = "it matches nearly everything"
    elif tried >= 20 and not matched:
        warning = "it matches nothing of what came lately"
    return json_response(
        {
            "documents": tried,
            "matched": matched,
            "ids": [item["id"] for item in caught],
            "caught": caught,
            "broken": failed,
            "warning": warning,
        }
    )


def _match_all(matcher: xsift.Matcher, documents: list[xsift.Document]) -> list[xsift.Match]:
    return list(matcher.match_many(documents))


def _latest(connection: Connection, owner: str | None, before: int | None, most: int) -> list[Any]:
    """The latest documents before a number; fewer if they are large."""
    table = documents.c
    wanted = [] if owner is None else [table.owner == owner]
    if before is not None:
        wanted.append(table.number < before)
    total, last = 0, None
    sizes = select(table.number, table.size).where(*wanted).order_by(table.number.desc()).limit(most)
    for number, size in connection.execute(sizes):
        total += size
        if total > PREVIEW_BYTES and last is not None:
            break
        last = number
    if last is None:
        return []
    query = select(table.number, table.body, table.encoding, table.label, table.received, table.size)
    return list(connection.execute(query.where(*wanted, table.number >= last).order_by(table.number.desc())))
