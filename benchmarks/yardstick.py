"""The yardstick: our path engines beside YFilter 1.0, the program that its authors released in Java.

It is not part of xsift: the environment variable XSIFT_YFILTER says in which folder its jars are; without it, it is
not measured. Times are CPU time of the thread that filters, and documents are already parsed, for both. Answers are
compared first.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks.measuring import machine, median, table
from benchmarks.sift import distinct, documents_of
from xsift.document.events import RecordedEvents
from xsift.engines import create
from xsift.experiments.programs import YFILTER, why_missing
from xsift.experiments.subjects import Refused
from xsift.experiments.workloads import Prepared, Texts, prepare
from xsift.experiments.yfilter import AuthorsYFilter

ENGINES = ("yfilter", "xfilter", "afilter", "predicate", "indexfilter", "bfilter", "sift")
DTDS = ("nitf", "auction", "treebank")
WORKLOADS: tuple[tuple[str, int, dict[str, object]], ...] = (
    ("paths", 10_000, {}),
    ("paths", 100_000, {}),
    ("1 nested path", 50_000, {"nested_paths": 1}),
    ("2 nested paths", 10_000, {"nested_paths": 2}),
    ("2 nested paths", 100_000, {"nested_paths": 2}),
    ("4 nested paths", 50_000, {"nested_paths": 4}),
    ("5 nested paths", 50_000, {"nested_paths": 5}),
    ("1 condition", 10_000, {"conditions": 1}),
    ("1 condition", 100_000, {"conditions": 1}),
    ("2 nested paths, 1 condition", 50_000, {"nested_paths": 2, "conditions": 1}),
)
DOCUMENTS = 100
ROUNDS = 5
SLOWEST = 2.0  # seconds that a series may take for its rounds; a slow one has fewer, at least one


def run(scale: float) -> None:
    print(f"  {machine()}")
    missing = why_missing(YFILTER)
    print(f"  YFilter 1.0: not measured: {missing}\n" if missing else "")
    print("  filtering alone, µs a document of 4 KB; 1.0 is YFilter 1.0, and its parsing\n")
    rows = []
    for dtd in DTDS:
        for title, number, parameters in WORKLOADS:
            rows.append(_row(dtd, title, max(100, int(number * scale)), parameters, bool(missing)))
            print(f"    {rows[-1][0]}: {rows[-1][5]}, 1.0: {rows[-1][3]}", flush=True)
    print()
    table(["", "matches", "1.0 parses", "1.0", "1.0 / yfilter", *ENGINES], rows)


def _row(dtd: str, title: str, number: int, parameters: dict[str, object], without: bool) -> list[str]:
    texts = distinct(dtd, number, maximum_depth=8, **parameters)
    prepared = prepare(Texts(documents_of(dtd, DOCUMENTS), texts), ordered=False)
    answers, ways = _engines(prepared)
    matches = sum(map(len, answers)) / len(answers)
    seconds = _timed(ways)
    theirs = ["–", "–", "–"]
    try:
        if not without:
            filtering, parsing = _yfilter_1_0(prepared, answers)
            ratio = filtering / seconds["yfilter"]
            theirs = [f"{parsing * 1e6:,.0f}", f"{filtering * 1e6:,.0f}", f"{ratio:,.1f}"]
    except Refused as reason:
        print(f"    {dtd}, {title}: {reason}", flush=True)
    name = f"{dtd}, {number:,}, {title}"
    return [name, f"{matches:,.0f}", *theirs, *(f"{seconds[engine] * 1e6:,.0f}" for engine in ENGINES)]


def _engines(prepared: Prepared) -> tuple[list[list[int]], dict[str, Callable[[], object]]]:
    """The answers, on which all engines agree, and what a pass over the documents is for each."""
    answers: list[list[int]] = []
    ways: dict[str, Callable[[], object]] = {}
    for name in ENGINES:
        engine = create(name)
        pattern_of = {engine.add(pattern): number for number, pattern in enumerate(prepared.patterns)}
        found = [
            sorted(pattern_of[key] for key in engine.match(document).tolist()) for document in prepared.documents
        ]
        answers = answers or found
        if found != answers:
            raise AssertionError(f"{name} gives other answers than {ENGINES[0]}")

        def way(match: Callable[[RecordedEvents], object] = engine.match) -> None:
            for document in prepared.documents:
                match(document)

        ways[name] = way
    return answers, ways


def _timed(ways: dict[str, Callable[[], object]]) -> dict[str, float]:
    """CPU seconds a document, in rounds in which each has its turn."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            if sum(taken[name]) < SLOWEST:
                started = time.process_time()
                way()
                taken[name].append(time.process_time() - started)
    return {name: median(seconds) / DOCUMENTS for name, seconds in taken.items()}


def _yfilter_1_0(prepared: Prepared, answers: list[list[int]]) -> tuple[float, float]:
    """CPU seconds a document of filtering and of parsing, once it is warm."""
    program = AuthorsYFilter(prepared)
    try:
        program.build()
        filtering: list[float] = []
        parsing: list[float] = []
        for _ in range(ROUNDS):
            clocks = []
            for number, answer in enumerate(answers):
                result = program.match(number)
                clocks.append([program.take_clock()])
                if program.answer(result).tolist() != answer:
                    raise AssertionError(f"YFilter 1.0 gives another answer for document {number}")
                program.parse(number)
                clocks[-1].append(program.take_clock())
            filtering.append(sum(clock[0].cpu_seconds for clock in clocks if clock[0]))
            parsing.append(sum(clock[1].cpu_seconds for clock in clocks if clock[1]))
        return median(filtering) / len(answers), median(parsing) / len(answers)
    finally:
        program.close()
