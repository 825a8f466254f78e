"""The XPath that people write: stylesheets, rules about invoices, a large mixed set, hostile expressions.

stylesheets   which share of DocBook's stylesheets (Debian package docbook-xsl) is indexed, evaluated, refused
rules         2,000 rules `context[not(test)]` over invoices of 8 KB, beside a loop over lxml's compiled expressions
mix           50,000 subscriptions, half of them with not, positions, transformed values or counts, and without
hostile       the time that an expression takes until its budget is used up
"""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from lxml import etree

import xsift
from benchmarks.invoices import BASICS, NAMESPACES, RuleMaker, invoice
from benchmarks.measuring import machine, median, table

STYLESHEETS = Path("/usr/share/xml/docbook/stylesheet")
XSLT = "{http://www.w3.org/1999/XSL/Transform}"
HOSTILE = [
    "//*[.//*[.//*[.//*[.//*[.//*[. = 'x']]]]]]",
    "count(//*//*//*//*) = 7",
    "//*[position() = last()]/preceding::*[position() = last()]/following::*[position() = last()]",
    "//*[count(. | following::* | preceding::*) = count(//*[count(preceding::*) > -1]) + 1]",
    "//*[not(preceding::*[not(following::*[not(preceding::*[. = 'q'])])])][. = 'r']",
    "//*[preceding::*[name() = concat('x', position(), last())]]",
    "//*[translate(/, ., 'x') = preceding::*[translate(/, ., 'y') = 'u']]",
    "//*[preceding::*[string(count(following::*) div 7) = '']]",
    "//*[normalize-space(concat(/, .)) = preceding::*[normalize-space(concat(/, .)) = 'q']]",
]


def run(scale: float) -> None:
    print(f"{machine()}\n")
    stylesheets()
    rules(scale)
    mix(scale)
    hostile()


# What is decided how


def expressions() -> dict[str, dict[str, str]]:
    """The expressions of all stylesheets, with the namespaces in scope of each."""
    found: dict[str, dict[str, str]] = {}
    parser = etree.XMLParser(load_dtd=False, resolve_entities=False, no_network=True, recover=True)
    for path in sorted(STYLESHEETS.rglob("*.xsl")):
        for element in etree.parse(str(path), parser).iter(f"{XSLT}*"):
            for name in ("match", "select", "test"):
                text = element.get(name)
                if text and "$" not in text:
                    found.setdefault(text, {prefix: uri for prefix, uri in element.nsmap.items() if prefix})
    return found


def is_xpath(text: str, namespaces: dict[str, str]) -> bool:
    """Whether it is XPath 1.0 with no functions but its own (stylesheets have current(), key(), document() …)."""
    calls = set(re.findall(r"([\w:.-]+)\s*\(", re.sub(r"'[^']*'|\"[^\"]*\"", "", text)))
    own = {
        "boolean", "ceiling", "concat", "contains", "count", "false", "floor", "id", "lang", "last", "local-name",
        "name", "namespace-uri", "normalize-space", "not", "number", "position", "round", "starts-with", "string",
        "string-length", "substring", "substring-after", "substring-before", "sum", "translate", "true",
        "node", "text", "comment", "processing-instruction", "and", "or", "div", "mod",
    }  # fmt: skip
    if any(call.split("::")[-1] not in own for call in calls):
        return False
    try:
        etree.XPath(text, namespaces=namespaces)
    except etree.XPathSyntaxError:
        return False
    return True


def stylesheets() -> None:
    print("stylesheets: how DocBook's expressions are decided")
    if not STYLESHEETS.is_dir():
        print("  left out: the Debian package docbook-xsl is not installed\n")
        return
    kinds: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for text, namespaces in expressions().items():
        if not is_xpath(text, namespaces):
            continue
        subscriptions = xsift.Subscriptions(namespaces=namespaces)
        try:
            subscriptions.add("it", text)
        except xsift.XPathError as error:
            kinds["refused"] += 1
            reasons[f"refused: {error.code}"] += 1
            continue
        report = subscriptions.explain("it")
        kinds[report.decided] += 1
        if report.decided == "evaluated":
            reasons[f"evaluated: {_kind_of(report.reason)}"] += 1
    total = sum(kinds.values())
    for kind in ("indexed", "evaluated", "refused"):
        print(f"  {kind:10}{kinds[kind]:7,}  {kinds[kind] / total:6.1%}")
    print(f"  without lxml: {(kinds['indexed'] + kinds['evaluated']) / total:.1%} of {total:,}")
    for reason, number in reasons.most_common(12):
        print(f"    {number:6,}  {reason}")
    print()


def _kind_of(reason: str) -> str:
    """What a part that is not indexed has in common with others."""
    for word in ("ancestor", "parent", "preceding", "following", "position()", "last()", "count(", "not("):
        if word in reason:
            return word.strip("(")
    if ".." in reason:
        return "parent"
    return "a position" if reason.isdigit() else "name()" if "name(" in reason else "other"


# How fast


def rules(scale: float) -> None:
    number = max(50, int(2000 * scale))
    rng = random.Random(3)
    documents = [invoice(rng) for _ in range(40)]
    texts = RuleMaker(rng).rules(number)
    subscriptions = xsift.Subscriptions(namespaces=NAMESPACES)
    subscriptions.add_many([(str(i), text) for i, text in enumerate(texts)])
    matcher = subscriptions.matcher()
    compiled = [etree.XPath(f"boolean({text})", namespaces=NAMESPACES) for text in texts]

    def loop(some: list[bytes]) -> list[list[str]]:
        found = []
        for document in some:
            tree = etree.fromstring(document).getroottree()
            found.append([str(i) for i, expression in enumerate(compiled) if expression(tree)])
        return found

    def ours(some: list[bytes]) -> list[list[str]]:
        return [match.ids for match in matcher.match_many(some)]

    if ours(documents[:4]) != loop(documents[:4]):
        raise SystemExit("xsift and lxml do not agree")
    seconds = _in_turn({"xsift": lambda: ours(documents), "lxml": lambda: loop(documents[:4])}, 7)
    mine, theirs = median(seconds["xsift"]) / len(documents), median(seconds["lxml"]) / 4
    size = sum(map(len, documents)) / len(documents)
    print(f"rules: {number:,} rules over invoices of {size:,.0f} bytes, one core")
    table(["", "µs a document"], [["xsift", f"{mine * 1e6:,.0f}"], ["lxml loop", f"{theirs * 1e6:,.0f}"]])
    print(f"  {theirs / mine:.0f} times as fast\n")


def mix(scale: float) -> None:
    number = max(500, int(50_000 * scale))
    rng = random.Random(5)
    documents = [invoice(rng) for _ in range(20)]
    plain = [_plain(rng) for _ in range(number)]
    mixed = plain[: number // 2] + [_written(rng) for _ in range(number - number // 2)]
    matchers = {}
    for name, texts in (("plain", plain), ("mixed", mixed)):
        subscriptions = xsift.Subscriptions(namespaces=NAMESPACES)
        subscriptions.add_many([(str(i), text) for i, text in enumerate(texts)])
        matchers[name] = subscriptions.matcher()
    ways: dict[str, Callable[[], object]] = {
        name: partial(_matched, matcher, documents) for name, matcher in matchers.items()
    }
    seconds = _in_turn(ways, 7)
    print(f"mix: {number:,} subscriptions, half of them with not, positions, transformed values or counts")
    rows = [[name, f"{median(times) / len(documents) * 1e6:,.0f}"] for name, times in seconds.items()]
    table(["", "µs a document"], rows)
    print(f"  {median(seconds['mixed']) / median(seconds['plain']):.1f} times the time\n")


def _matched(matcher: xsift.Matcher, documents: list[bytes]) -> list[int]:
    return [len(match) for match in matcher.match_many(documents)]


def _field(rng: random.Random) -> tuple[str, str]:
    context = rng.choice(list(BASICS))
    return context, f"bas:{rng.choice(BASICS[context])}"


def _plain(rng: random.Random) -> str:
    context, field = _field(rng)
    value = rng.randrange(10**6)
    return rng.choice(
        [
            f"//{context}[{field} = '{value}']",
            f"//{context}[{field} > {value}]/bas:ID",
            f"//{context}[{field}[contains(., '{value}')]]",
            f"//{context}/{field}[@currencyID = 'C{value}']",
            f"//{context}[{field} = {value}]//bas:Name",
        ]
    )


def _written(rng: random.Random) -> str:
    context, field = _field(rng)
    value = rng.randrange(10**6)
    return rng.choice(
        [
            f"//{context}[not({field} = '{value}')][{field} = '{value + 1}']",
            f"//{context}/{field}[translate(., 'abcdefghijklm', 'ABCDEFGHIJKLM') = 'X{value}']",
            f"//inv:Invoice/bas:IssueDate[translate(., '-', '') < {value % 10**4 + 20000000}]",
            f"//{context}/{field}[substring(., 1, 4) = '{value}']",
            f"//{context}[{field} = '{value}'][count(bas:*) > 2]",
            f"//{context}[{field}[1] = '{value}']",
            f"//{context}[not(bas:Absent)]/{field}[. = '{value}']",
            f"//{context}[position() = {value % 5 + 1}]/{field}[. = '{value}']",
        ]
    )


def hostile() -> None:
    rng = random.Random(9)
    print("hostile: one expression on an invoice of 8 KB, at the default budget")
    document = invoice(rng)
    rows = []
    for text in HOSTILE:
        subscriptions = xsift.Subscriptions(namespaces=NAMESPACES)
        subscriptions.add("it", text)
        matcher = subscriptions.matcher()
        times: list[float] = []
        failures: dict[str, xsift.XsiftError] = {}
        for _ in range(5):
            started = time.process_time()
            matcher.match(document, failures=failures)
            times.append(time.process_time() - started)
        outcome = failures["it"].code if failures else "decided"
        rows.append([text[:70], outcome, f"{median(times) * 1e3:.2f}"])
    table(["", "", "ms"], rows)
    print()


def _in_turn(ways: dict[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
    """CPU seconds, in turn: these comparisons must hold on a machine that is shared, too."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(repeats + 1):
        for name, way in ways.items():
            started = time.process_time()
            way()
            if number:
                seconds[name].append(time.process_time() - started)
    return seconds
