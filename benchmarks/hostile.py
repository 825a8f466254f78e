"""What one input may cost: cases that once took time or memory out of proportion, at three sizes each.

For each case: the input's size, seconds of CPU and memory at the largest, what came of it, and the exponent of time
over size, fitted over the three. 1 is in proportion; a limit that bites makes it less. None may be above 1.2.

Each measurement is a process of its own, so that memory is the case's own.
"""

from __future__ import annotations

import io
import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import xsift
from benchmarks.measuring import machine, table
from xsift.document import Limits
from xsift.errors import XsiftError

MOST = 1.2
Case = Callable[[int], tuple[int, Callable[[], Any]]]
"""Takes a size; gives the bytes of the input, and what is to be measured. What comes before that is not."""


def _matcher(*expressions: str, ordered: bool = False, engine: str = "auto") -> xsift.Matcher:
    subscriptions = xsift.Subscriptions()
    subscriptions.add_many([(str(n), text, ordered) for n, text in enumerate(expressions)])
    return subscriptions.matcher(engine)


def _said_of(matcher: xsift.Matcher, xml: bytes) -> str:
    """What is said of a document that a limit may refuse."""
    try:
        return str(matcher.match(xml))
    except XsiftError as error:
        return error.code


def _outcome(failures: dict[str, XsiftError], found: object) -> str:
    codes = sorted({error.code for error in failures.values()})
    return ", ".join(codes) if codes else f"{len(found):,} results" if hasattr(found, "__len__") else "done"


def _call(method: str, xml: bytes, *expressions: str, ordered: bool = False) -> tuple[int, Callable[[], str]]:
    matcher = _matcher(*expressions, ordered=ordered)

    def run() -> str:
        failures: dict[str, XsiftError] = {}
        found = getattr(matcher, method)(xml, failures=failures)
        return _outcome(failures, found)

    return len(xml), run


def long_paths(size: int) -> tuple[int, Callable[[], str]]:
    name = b"n" * 1000
    depth = 225 * size
    xml = b"<%s>" % name * depth + b"<leaf/>" * (5000 * size) + b"</%s>" % name * depth
    return _call("select", xml, "//*")


def inequalities(size: int) -> tuple[int, Callable[[], str]]:
    number = 4000 * size
    xml = b"<r>" + b"<a x=''/>" * number + b"</r>"
    return _call("match", xml, *(f"//a[@x!='{i}'][zz]" for i in range(number)))


def absences(size: int) -> tuple[int, Callable[[], str]]:
    number = 4000 * size
    return _call("match", b"<r>" + b"<a/>" * number + b"</r>", *(f"//a[not(@x{i})][zz]" for i in range(number)))


def thresholds(size: int) -> tuple[int, Callable[[], str]]:
    number = 4000 * size
    xml = b"<r>" + b"<a x='1'/>" * number + b"</r>"
    return _call("match", xml, *(f"//a[@x<{i + 2}][zz]" for i in range(number)))


def many_predicates(size: int) -> tuple[int, Callable[[], str]]:
    xml = b"<r>" + b"<a x=''/>" * (10_000 * size) + b"</r>"
    return _call("select", xml, "//a" + "".join(f"[@x!='{i}']" for i in range(900)))


def ordered_twig(size: int) -> tuple[int, Callable[[], str]]:
    return _call("select", b"<a>" + b"<b/><c/>" * (25_000 * size) + b"</a>", "//a[b]/c", ordered=True)


def ordered_recursive(size: int) -> tuple[int, Callable[[], str]]:
    xml = (b"<a>" * 200 + b"<b/><c/>" * 50 + b"</a>" * 200) * (5 * size)
    return _call("select", b"<r>" + xml + b"</r>", "//a[.//b]//c", ordered=True)


def leaves(size: int) -> tuple[int, Callable[[], str]]:
    return _call("select", b"<a>" + b"x<!--c-->" * (25_000 * size) + b"</a>", "//text()", "//comment()")


def branch_points(text: str) -> Case:
    """Twigs that each have another element to hold for, of as many as there are twigs."""

    def case(size: int) -> tuple[int, Callable[[], str]]:
        number = 4000 * size
        xml = b"<r>" + b"".join(b"<x><b%d/><c%d/><d/></x>" % (i, i) for i in range(number)) + b"</r>"
        return _call("match", xml, *(text.format(i) for i in range(number)))

    return case


def compiled(text: str) -> Case:
    """Subscriptions that differ in one thing, from text to a matcher."""

    def case(size: int) -> tuple[int, Callable[[], str]]:
        texts = [text.format(i) for i in range(10_000 * size)]
        return sum(map(len, texts)), lambda: f"{len(_matcher(*texts)):,} rows"

    return case


def declared_attributes(end: str) -> Case:
    """Attributes that are declared for elements, in a document with this end."""

    def case(size: int) -> tuple[int, Callable[[], str]]:
        number = 200 * size
        declared = " ".join(f"x{i} CDATA 'v'" for i in range(number))
        xml = f"<!DOCTYPE r [<!ATTLIST a {declared}>]><r>{'<a/>' * (200 * number)}{end}".encode()
        matcher = _matcher("//b")
        return len(xml), lambda: _said_of(matcher, xml)

    return case


def scopes(size: int) -> bytes:
    """Many namespaces around many elements that declare one more."""
    declared = " ".join(f"xmlns:p{i}='u'" for i in range(2000 * size))
    return (f"<r {declared}>" + "<p0:a xmlns:q='u'/>" * (5000 * size) + "</r>").encode()


def explained(size: int) -> tuple[int, Callable[[], str]]:
    matcher = _matcher("//zz" + "//a" * 32)
    xml = b"<a>" * (250 * size) + b"</a>" * (250 * size)
    return len(xml), lambda: f"{len(matcher.explain(xml, '0').patterns)} pattern"


def tuples(size: int) -> tuple[int, Callable[[], str]]:
    return _call("tuples", b"<a>" * (100 * size) + b"</a>" * (100 * size), "//a//a//a//a")


def many_names(size: int) -> tuple[int, Callable[[], str]]:
    xml = b"<r>" + b"".join(b"<name%d/>" % i for i in range(75_000 * size)) + b"</r>"
    return _call("select", xml, "//name7")


def repeated_subset(size: int) -> tuple[int, Callable[[], str]]:
    entity = b"<!DOCTYPE d [<!ENTITY e '%s'>]><d>" % (b"x" * 50_000)
    return _records(entity + b"<r>&e;</r>" * (10_000 * size))


def repeated_namespaces(size: int) -> tuple[int, Callable[[], str]]:
    number = 4000 * size
    opened = b"".join(b"<s xmlns:n%d='urn:%d'>" % (i, i) for i in range(number))
    return _records(b"<d>" + opened + b"<r/>" * number)


def _records(data: bytes) -> tuple[int, Callable[[], str]]:
    from xsift.sources.records import read_header, scan_records

    def run() -> str:
        chunks = [data[i : i + 65536] for i in range(0, len(data), 65536)]
        header = read_header(chunks, "r")
        written = 0
        try:
            for record in scan_records([data[header.end :]], "r", header, header.end):
                written += len(record.xml)
        except XsiftError as error:
            return error.code
        return f"{written / 1e6:,.0f} MB"

    return len(data), run


def chained_entities(size: int) -> tuple[int, Callable[[], str]]:
    links = "".join(f'<!ENTITY e{i} "&e{i - 1};">' for i in range(1, 1200 * size))
    xml = f'<!DOCTYPE a [<!ENTITY e0 "x">{links}]><a>&e{1200 * size - 1};</a>'.encode()
    matcher = _matcher("//a")
    return len(xml), lambda: _said_of(matcher, xml)


def residual(expression: str, xml: Callable[[int], bytes]) -> Case:
    def case(size: int) -> tuple[int, Callable[[], str]]:
        return _call("match", xml(size), expression)

    return case


def concatenated(size: int) -> tuple[int, Callable[[], str]]:
    text = "concat(" + ", ".join(["."] * 400) + ")"
    return _call("match", b"<a>" + b"x" * (20_000 * size) + b"</a>", f"//a[{text} = 'y']")


def translated(size: int) -> tuple[int, Callable[[], str]]:
    letters = "".join(chr(0x4E00 + i) for i in range(5000))
    xml = ("<a>" + letters * (4 * size) + "</a>").encode()
    return _call("match", xml, f"//a[translate(., '{letters}', '') = 'y']")


def broken_stream(size: int) -> tuple[int, Callable[[], str]]:
    xml = b"<a>" + b"<b/>" * (100_000 * size)
    matcher = _matcher("//b")

    def run() -> str:
        try:
            return str(matcher.match(io.BytesIO(xml)))
        except XsiftError as error:
            return error.code

    return len(xml), run


CASES: dict[str, Case] = {
    "select, depth 900 × names of 1,000 bytes": long_paths,
    "n × [@x!='i'][zz], n elements": inequalities,
    "n × [not(@xi)][zz], n elements": absences,
    "n × [@x<i][zz], n elements": thresholds,
    "select, 900 inequalities": many_predicates,
    "ordered select, //a[b]/c": ordered_twig,
    "ordered select, //a[.//b]//c, recursive": ordered_recursive,
    "select, texts and comments of one element": leaves,
    "n × //x[.//bi][.//ci], n elements x": branch_points("//x[.//b{0}][.//c{0}]"),
    "n × //x[bi][d], n elements x": branch_points("//x[b{0}][d]"),
    "n × //ni[@x], compiled": compiled("//n{0}[@x]"),
    "n × //a[translate(@x, 'ai', 'b') = 'q'], compiled": compiled("//a[translate(@x, 'a{0}', 'b') = 'q']"),
    "attributes that are declared": declared_attributes("</r>"),
    "attributes that are declared, a wrong end tag": declared_attributes("</s>"),
    "//*[last()], n namespaces around n elements": residual("//*[last()]", scopes),
    "//*[namespace::zz], n namespaces": residual(
        "//*[namespace::zz]",
        lambda size: ("<r " + " ".join(f"xmlns:p{i}='u'" for i in range(2500 * size)) + "/>").encode(),
    ),
    "explain, //zz and //a × 32": explained,
    "tuples, //a × 4": tuples,
    "names, all different": many_names,
    "records that repeat an entity": repeated_subset,
    "records that repeat namespaces": repeated_namespaces,
    "chained entities": chained_entities,
    "following::a/preceding::a/following::zz": residual(
        "//a[following::a/preceding::a/following::zz]", lambda size: b"<r>" + b"<a/>" * (2000 * size) + b"</r>"
    ),
    "concat() of 400": concatenated,
    "translate() with 5,000 characters": translated,
    "a stream that breaks off": broken_stream,
}


def measure(name: str, size: int) -> dict[str, Any]:
    """One case at one size, in this process."""
    length, call = CASES[name](size)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds, outcome, runs = math.inf, "", 0
    while runs < 3 and (runs == 0 or seconds < 3):
        started = time.process_time()
        outcome = call()
        seconds = min(seconds, time.process_time() - started)
        runs += 1
    megabytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1000
    return {"bytes": length, "seconds": seconds, "megabytes": megabytes, "outcome": outcome}


def exponent(points: list[tuple[int, float]]) -> float:
    """The slope of log(seconds) over log(bytes). Times below a millisecond are noise, and count as one."""
    logs = [(math.log(size), math.log(max(seconds, 1e-3))) for size, seconds in points]
    mean_x = sum(x for x, _ in logs) / len(logs)
    mean_y = sum(y for _, y in logs) / len(logs)
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs)


def run(scale: float) -> None:
    print(f"  {machine()}; limits: {Limits()}\n")
    lines, steep = [], []
    for name in CASES:
        results = []
        for size in (1, 2, 4):
            command = [
                sys.executable,
                "-W",
                "ignore",
                "-m",
                "benchmarks.hostile",
                name,
                str(max(1, round(size * scale))),
            ]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            results.append(json.loads(done.stdout))
        print(f"  {name}: " + ", ".join(f"{result['seconds']:.3f}" for result in results), flush=True)
        last = results[-1]
        fitted = exponent([(result["bytes"], result["seconds"]) for result in results])
        if fitted > MOST:
            steep.append(name)
        lines.append(
            [
                name,
                f"{last['bytes'] / 1e3:,.0f}",
                f"{last['seconds']:.3f}",
                f"{last['megabytes']:,.0f}",
                f"{fitted:.2f}",
                last["outcome"],
            ]
        )
    print()
    table(["", "KB", "seconds", "MB more", "exponent", "outcome"], lines)
    print(f"\n  above {MOST}: {', '.join(steep) or 'none'}")


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
