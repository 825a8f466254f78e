"""The picture of README.md: from the bytes of a document to who gets it, beside the lxml loop and YFilter 1.0.

CPU time a document, over the number of subscriptions, both on log axes. Everybody starts from bytes, so reading is
included for all: `sift` through the library, the loop with lxml's parser, YFilter 1.0 with its own (by its own clock,
once Java has compiled what it will; without XSIFT_YFILTER, which names its folder, it is left out). Answers are
compared first. The numbers, with the machine and the day, are kept in docs/pictures/speed.json, and the picture is
drawn from them.
"""

from __future__ import annotations

import json
import math
import time
from datetime import date
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from lxml import etree

import xsift
from benchmarks.measuring import machine, median, table
from benchmarks.sift import distinct, documents_of, subscriptions_of
from xsift.experiments.programs import YFILTER, why_missing
from xsift.experiments.workloads import Texts, prepare
from xsift.experiments.yfilter import AuthorsYFilter

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"
SIZES = (10, 100, 1_000, 10_000, 100_000)
DOCUMENTS = 20
ROUNDS = 5
GAIN = 0.97  # what a pass must take of the best before it, to be worth another
LOOP_SECONDS = 3.0  # the loop is measured on as many documents as it gets through in this time, at least one
LABELS = {"loop": "loop over lxml", "yfilter": "YFilter 1.0", "sift": "xsift"}


def run(scale: float) -> None:
    """Measures, prints, and draws; the files of the docs are only written at full scale."""
    print(f"  {machine()}")
    missing = why_missing(YFILTER)
    if missing:
        print(f"  YFilter 1.0 is not measured, and will not be in the picture: {missing}")
    print("  CPU µs a document of 4 KB, reading included; distinct NITF paths, depth 8, * and // at 0.2\n")
    documents = documents_of("nitf", DOCUMENTS)
    sizes = [size for size in SIZES if size <= max(SIZES) * scale]
    texts = distinct("nitf", max(sizes), maximum_depth=8)
    points = []
    for size in sizes:
        points.append(_point(documents, texts[:size], not missing))
        print(f"    {points[-1]}", flush=True)
    rows = [
        [f"{point[name]:,.0f}" if name in point else "–" for name in ("subscriptions", "matches", *LABELS)]
        for point in points
    ]
    print()
    table(["subscriptions", "matches", *LABELS.values()], rows)
    if scale >= 1:
        measured = {
            "machine": machine(),
            "date": date.today().isoformat(),
            "documents": "NITF, 4 KB",
            "points": points,
        }
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / "speed.json").write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
        (FOLDER / "speed.svg").write_text(draw(measured), encoding="utf-8")


def _point(documents: list[bytes], texts: list[str], with_yfilter: bool) -> dict[str, float]:
    """Microseconds a document, for one number of subscriptions."""
    matcher = subscriptions_of(texts).matcher("sift")
    answers = [match.rows.tolist() for match in matcher.match_many(documents)]
    point = {"subscriptions": len(texts), "matches": sum(map(len, answers)) / len(answers)}
    point["sift"] = _sift(matcher, documents)
    point["loop"] = _loop(documents, texts, answers)
    if with_yfilter:
        point["yfilter"] = _yfilter(documents, texts, answers)
    return {name: round(value, 1) for name, value in point.items()}


def _sift(matcher: xsift.Matcher, documents: list[bytes]) -> float:
    taken = []
    for _ in range(ROUNDS):
        started = time.process_time()
        for _ in matcher.match_many(documents):
            pass
        taken.append(time.process_time() - started)
    return median(taken) / len(documents) * 1e6


def _loop(documents: list[bytes], texts: list[str], answers: list[list[int]]) -> float:
    expressions = [etree.XPath(f"boolean({text})") for text in texts]
    taken: list[float] = []
    for document, answer in zip(documents, answers, strict=True):
        started = time.process_time()
        tree = etree.fromstring(document).getroottree()
        found = [number for number, expression in enumerate(expressions) if expression(tree)]
        taken.append(time.process_time() - started)
        if found != answer:
            raise AssertionError("lxml gives another answer")
        if sum(taken) > LOOP_SECONDS:
            break
    return median(taken) * 1e6


def _yfilter(documents: list[bytes], texts: list[str], answers: list[list[int]]) -> float:
    """Its times of parsing and of filtering, added up."""
    prepared = prepare(Texts(documents, texts), ordered=False)
    program = AuthorsYFilter(prepared)
    try:
        program.build()
        taken: list[float] = []
        # Its own warm-up ends by the clock on the wall, which is too early on a machine with other work.
        while len(taken) < ROUNDS or min(taken[-ROUNDS:]) < GAIN * min(taken[:-ROUNDS], default=math.inf):
            seconds = 0.0
            for number, answer in enumerate(answers):
                result = program.match(number)
                seconds += _cpu(program)
                if program.deliver(result).tolist() != answer:
                    raise AssertionError(f"YFilter 1.0 gives another answer for document {number}")
                program.parse(number)
                seconds += _cpu(program)
            taken.append(seconds / len(documents))
        return median(taken[-ROUNDS:]) * 1e6
    finally:
        program.close()


def _cpu(program: AuthorsYFilter) -> float:
    clock = program.take_clock()
    assert clock is not None
    return clock.cpu_seconds


# The picture

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 400, 86, 150, 46, 52
STYLE = """
.paper{fill:#fff}text{font:13px system-ui,sans-serif;fill:#1c2333}.title{font-weight:600;font-size:15px}
.quiet{fill:#5c6680}.grid{stroke:#dfe3ee}.sift{stroke:#2340c8;fill:#2340c8}.loop{stroke:#b4461e;fill:#b4461e}
.yfilter{stroke:#2e7d4f;fill:#2e7d4f}path{fill:none!important;stroke-width:2.5}text.name{stroke:none;font-weight:600}
@media(prefers-color-scheme:dark){.paper{fill:#12151c}text{fill:#e6e9f2}.quiet{fill:#9aa5c3}.grid{stroke:#2b3346}
.sift{stroke:#8ea2ff;fill:#8ea2ff}.loop{stroke:#ff9b73;fill:#ff9b73}.yfilter{stroke:#6fd19a;fill:#6fd19a}}
"""
MARKS = {"sift": "circle", "loop": "square", "yfilter": "diamond"}


def draw(measured: dict[str, Any]) -> str:
    """The picture, from what was measured."""
    points = measured["points"]
    values = [point[name] for point in points for name in LABELS if name in point]
    x_range = (math.log10(points[0]["subscriptions"]), math.log10(points[-1]["subscriptions"]))
    y_range = (math.floor(math.log10(min(values))), math.ceil(math.log10(max(values))))

    def x(value: float) -> float:
        return LEFT + (math.log10(value) - x_range[0]) / (x_range[1] - x_range[0]) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return (
            HEIGHT - BOTTOM - (math.log10(value) - y_range[0]) / (y_range[1] - y_range[0]) * (HEIGHT - TOP - BOTTOM)
        )

    parts = [_text(LEFT, 24, "CPU time for one document of 4 KB, from its bytes to who gets it", "title")]
    for power in range(y_range[0], y_range[1] + 1):
        at = y(10**power)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(_text(LEFT - 8, at + 4, _duration(power), "quiet", "end"))
    for point in points:
        at = x(point["subscriptions"])
        parts.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        parts.append(_text(at, HEIGHT - BOTTOM + 18, f"{point['subscriptions']:,.0f}", "quiet", "middle"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, "subscriptions", "quiet", "middle"))
    for name, label in LABELS.items():
        line = [(x(point["subscriptions"]), y(point[name]), point) for point in points if name in point]
        if not line:
            continue
        parts.append(f'<path class="{name}" d="M{"L".join(f"{at:.1f} {height:.1f}" for at, height, _ in line)}"/>')
        for at, height, point in line:
            told = f"{label}, {point['subscriptions']:,.0f} subscriptions: {point[name]:,.0f} µs"
            parts.append(_mark(name, at, height, told))
        at, height, _ = line[-1]
        parts.append(_text(at + 12, height + 4, label, f"{name} name"))
    title = "CPU time a document over the number of subscriptions: a loop over lxml, YFilter 1.0, and xsift"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'role="img"><title>{escape(title)}</title><style>{STYLE}</style>'
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="8"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(text)}</text>'


def _mark(name: str, x: float, y: float, told: str) -> str:
    """A point; shapes tell the lines apart without colours."""
    if MARKS[name] == "circle":
        shape = f'<circle class="{name}" cx="{x:.1f}" cy="{y:.1f}" r="4.5">'
        return f"{shape}<title>{escape(told)}</title></circle>"
    turned = f' transform="rotate(45 {x:.1f} {y:.1f})"' if MARKS[name] == "diamond" else ""
    shape = f'<rect class="{name}" x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8"{turned}>'
    return f"{shape}<title>{escape(told)}</title></rect>"


def _duration(power: int) -> str:
    """10 to the power of so many microseconds, as people say it."""
    for unit, least in (("s", 6), ("ms", 3)):
        if power >= least:
            return f"{10 ** (power - least):,} {unit}"
    return f"{10**power:,} µs"
