"""The engine sift beside the others: the workloads that it was made for, how it grows, and what it costs to build.

Times are CPU time of the one thread that works. "Matching" is what a document takes from first to last, less what
reading it takes alone where nothing is asked of values: results included. Engines are warm, but the documents that
are measured are new to them, unless it is said that they were seen before.

XSIFT_YFILTER=FOLDER adds YFilter 1.0, the program of its authors, with the same documents and subscriptions; both
parse. XSIFT_QUERIES=FOLDER adds the queries of somebody else's generator: FOLDER/documents/*.xml, and FOLDER/*.txt
with a query a line.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from lxml import etree

import xsift
from benchmarks.measuring import machine, median, table
from benchmarks.real_documents import subscriptions_from
from benchmarks.scanner import installed
from xsift.document import DocumentIndex, Reader
from xsift.errors import DocumentError
from xsift.experiments.programs import YFILTER, why_missing
from xsift.experiments.subjects import Refused
from xsift.experiments.workloads import Texts, prepare
from xsift.experiments.yfilter import AuthorsYFilter
from xsift.workload import DocumentGenerator, DocumentParameters, SubscriptionGenerator, SubscriptionParameters
from xsift.xpath import Symbols

ENGINES = ("yfilter", "xtrie", "afilter", "ifist", "predicate", "indexfilter", "bfilter", "sift")
SLOWEST = 4  # seconds that an engine may take for a measurement; a slow one gets fewer documents
REPEATS = 3
PASSES_UNTIL_WARM = 6  # through the same documents: sift remembers them by then


def run(scale: float) -> None:
    print(f"  {machine()}\n")
    _paths(scale)
    _against_all(scale)
    _few(scale)
    _growth(scale)
    _growth_of_twigs(scale)
    _beside_yfilter(scale)
    _queries_of_others(scale)
    _real(scale)
    _results(scale)
    _index(scale)
    _changes(scale)


def subscriptions_of(texts: Sequence[str]) -> xsift.Subscriptions:
    subscriptions = xsift.Subscriptions()
    subscriptions.add_many([(str(number), text) for number, text in enumerate(texts)])
    return subscriptions


def documents_of(dtd: str, number: int, size_bytes: int = 4000) -> list[bytes]:
    return list(DocumentGenerator(DocumentParameters(dtd=dtd, number=number, size_bytes=size_bytes)))


def distinct(dtd: str, number: int, **parameters: object) -> list[str]:
    wanted = SubscriptionParameters(dtd=dtd, number=number, distinct=True, **parameters)  # type: ignore[arg-type]
    return list(SubscriptionGenerator(wanted))


class Measured:
    """CPU microseconds a document: reading, matching, and the first hundred documents of a cold index."""

    def __init__(self, matcher: xsift.Matcher, documents: list[bytes]) -> None:
        half = len(documents) // 2
        started = time.process_time()
        self.matches = [len(match.rows) for match in matcher.match_many(documents[: min(100, half)])]
        self.cold = (time.process_time() - started) / min(100, half) * 1e6
        affordable = max(2, int(SLOWEST / 2 * 1e6 / max(self.cold, 1)))
        for _ in range(2):
            self._run(matcher, documents[:half][:affordable])
        fresh = documents[half:][:affordable]
        self.total = self._run(matcher, fresh) / len(fresh) * 1e6
        reader = Reader(DocumentIndex(matcher._symbols))
        self.reading = median([self._read(reader, fresh) for _ in range(REPEATS)]) / len(fresh) * 1e6
        self.matching = self.total - self.reading

    @staticmethod
    def _run(matcher: xsift.Matcher, documents: list[bytes]) -> float:
        started = time.process_time()
        for _ in matcher.match_many(documents):
            pass
        return time.process_time() - started

    @staticmethod
    def _read(reader: Reader, documents: list[bytes]) -> float:
        started = time.process_time()
        for document in documents:
            reader.read(document)
        return time.process_time() - started


def _seen_again(matcher: xsift.Matcher, documents: list[bytes]) -> float:
    """CPU microseconds a document, reading included, where the same ones come again and again."""
    seconds = [Measured._run(matcher, documents) for _ in range(PASSES_UNTIL_WARM + REPEATS)]
    return min(seconds[PASSES_UNTIL_WARM:]) / len(documents) * 1e6


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))


def _paths(scale: float) -> None:
    number = int(150_000 * scale)
    documents = documents_of("nitf", 500)
    texts = distinct("nitf", number)
    subscriptions = subscriptions_of(texts)
    measured = {name: Measured(subscriptions.matcher(name), documents) for name in ("yfilter", "sift")}
    expressions = [etree.XPath(f"boolean({text})") for text in texts]
    started = time.process_time()
    for document in documents[:2]:
        tree = etree.fromstring(document).getroottree()
        for expression in expressions:
            expression(tree)
    loop = (time.process_time() - started) / 2 * 1e6
    sift = measured["sift"]
    bare = Reader(subscriptions.matcher("sift")._index, scanner=False)
    expat = median([Measured._read(bare, documents) for _ in range(REPEATS)]) / len(documents) * 1e6
    print(
        f"  {number:,} distinct NITF paths, depth 6, * and // at 0.2; {_mean(sift.matches):,.0f} matches a document\n"
    )
    rows = [
        ["reading alone", f"{sift.reading:,.1f}", f"{sift.reading / sift.matching:,.1f}"],
        ["reading alone, by libexpat", f"{expat:,.1f}", f"{expat / sift.matching:,.1f}"],
        ["yfilter", f"{measured['yfilter'].matching:,.1f}", f"{measured['yfilter'].matching / sift.matching:,.1f}"],
        ["sift", f"{sift.matching:,.1f}", "1.0"],
        ["lxml loop", f"{loop:,.1f}", f"{loop / sift.matching:,.1f}"],
        [
            "sift, its first 100 documents",
            f"{sift.cold:,.1f}",
            f"{sift.cold / sift.total:,.1f} (of warm, with reading)",
        ],
    ]
    table(["", "µs a document", "/ sift"], rows)


WORKLOADS: dict[str, tuple[str, int, dict[str, object]]] = {
    "50,000 twigs, 2 nested paths": ("nitf", 50_000, {"nested_paths": 2}),
    "50,000 paths, 1 attribute": ("nitf", 50_000, {"conditions": 1, "condition_targets": "attributes"}),
    "50,000 paths, treebank": ("treebank", 50_000, {}),
    "20,000 twigs, treebank": ("treebank", 20_000, {"nested_paths": 2}),
    "4,000 paths, book": ("book", 4_000, {}),
    "5,000 twigs, book": ("book", 5_000, {"nested_paths": 2}),
}


def _against_all(scale: float) -> None:
    print("\n  matching alone, µs a document\n")
    rows = []
    for title, (dtd, number, parameters) in WORKLOADS.items():
        subscriptions = subscriptions_of(distinct(dtd, int(number * scale), **parameters))
        documents = documents_of(dtd, 200)
        measured = {name: Measured(subscriptions.matcher(name), documents) for name in ENGINES}
        fastest = min(measured[name].matching for name in ENGINES if name != "sift")
        sift = measured["sift"].matching
        rows.append(
            [title, f"{_mean(measured['sift'].matches):,.0f}"]
            + [f"{measured[name].matching:,.1f}" for name in ENGINES]
            + [f"{measured['yfilter'].matching / sift:,.1f}", f"{fastest / sift:,.1f}"]
        )
    table(["", "matches", *ENGINES, "yfilter / sift", "next / sift"], rows)


ATTRIBUTES = {"conditions": 1, "condition_targets": "attributes"}
KINDS: dict[str, dict[str, object]] = {
    "paths": {},
    "twigs, 1 nested path": {"nested_paths": 1},
    "1 attribute": ATTRIBUTES,
}


def _few(scale: float) -> None:
    print("\n  few subscriptions, NITF: µs a document in all, sift / the fastest other engine\n")
    documents = documents_of("nitf", 400, 8000)
    rows = []
    for number in (1, 10, 100, 1000):
        row = [f"{number:,}"]
        for parameters in KINDS.values():
            subscriptions = subscriptions_of(distinct("nitf", 1000, **parameters)[:number])
            times = {name: Measured(subscriptions.matcher(name), documents).total for name in ENGINES}
            best = min((name for name in ENGINES if name != "sift"), key=times.__getitem__)
            row.append(f"{times['sift']:,.1f} / {times[best]:,.1f} {best}")
        rows.append(row)
    table(["subscriptions", *KINDS], rows)


def _growth_of_twigs(scale: float) -> None:
    print("\n  growth: distinct NITF twigs and conditions, documents of 8 KB; µs a document\n")
    documents = documents_of("nitf", 1000, 8000)
    kinds: dict[str, dict[str, object]] = {
        "2 nested paths": {"nested_paths": 2},
        "1 attribute": ATTRIBUTES,
        "1 attribute or text, ranges": {"conditions": 1, "range_odds": 0.5},
    }
    rows = []
    for title, parameters in kinds.items():
        texts = distinct("nitf", int(300_000 * scale), **parameters)
        for share in (30, 3, 1):
            matcher = subscriptions_of(texts[: len(texts) // share]).matcher("sift")
            measured = Measured(matcher, documents)
            matches = _mean(measured.matches)
            held = matcher.memory()
            index = sum(size for name, size in held.items() if not name.startswith("run-time"))
            again = documents[:100]
            seen, seen_matches = _seen_again(matcher, again), _mean([len(m.rows) for m in matcher.match_many(again)])
            rows.append(
                [
                    f"{len(texts) // share:,}, {title}",
                    f"{matches:,.0f}",
                    f"{measured.reading:,.1f}",
                    f"{measured.matching:,.1f}",
                    f"{measured.total * 1000 / max(1.0, matches):,.1f}",
                    f"{measured.cold / measured.total:,.1f}",
                    f"{seen:,.1f}",
                    f"{seen * 1000 / max(1.0, seen_matches):,.1f}",
                    f"{index / (len(texts) // share):,.0f}",
                    f"{held['run-time states'] / 1e6:,.0f} MB",
                ]
            )
    new, seen_again = ["reading", "matching", "ns a match", "cold / warm"], ["seen: in all", "ns a match"]
    table(["", "matches", *new, *seen_again, "bytes a pattern", "cached"], rows)


PEER_WORKLOADS: dict[str, tuple[int, dict[str, object]]] = {
    "paths": (150_000, {}),
    "twigs, 2 nested paths": (50_000, {"nested_paths": 2}),
    "1 attribute": (50_000, ATTRIBUTES),
    "1 attribute or text": (50_000, {"conditions": 1}),
    "1 attribute or text, ranges": (50_000, {"conditions": 1, "range_odds": 0.5}),
}


def _beside_yfilter(scale: float) -> None:
    missing = why_missing(YFILTER)
    if missing:
        print(f"\n  YFilter 1.0: not measured: {missing}")
        return
    print("\n  beside YFilter 1.0, NITF, documents of 4 KB: CPU µs a document, parsing included, both warm\n")
    documents = documents_of("nitf", 100)
    rows = []
    for title, (number, parameters) in PEER_WORKLOADS.items():
        texts = distinct("nitf", int(number * scale), **parameters)
        rows += _pair(f"{len(texts):,} {title}", texts, documents)
    table(["", "matches", "YFilter 1.0", "sift", "times"], rows)


def _pair(title: str, texts: Sequence[str], documents: list[bytes]) -> list[list[str]]:
    """A row with YFilter 1.0 and sift in turns; none if it refuses the subscriptions."""
    matcher = subscriptions_of(texts).matcher("sift")
    program = AuthorsYFilter(prepare(Texts(documents, texts), ordered=False))
    try:
        program.build()  # which goes through the documents until that gets no faster
        _seen_again(matcher, documents)  # likewise
        theirs, ours, matches = [], [], 0.0
        for _ in range(REPEATS):
            theirs.append(_yfilter_seconds(program, len(documents)))
            matches = _mean([len(match.rows) for match in matcher.match_many(documents)])
            ours.append(min(Measured._run(matcher, documents) for _ in range(REPEATS)))
    except Refused as reason:
        print(f"    {title}: {reason}")
        return []
    finally:
        program.close()
    each = [median(seconds) / len(documents) * 1e6 for seconds in (theirs, ours)]
    row = [title, f"{matches:,.0f}", f"{each[0]:,.0f}", f"{each[1]:,.1f}", f"{each[0] / each[1]:,.0f}"]
    print(f"    {row}", flush=True)
    return [row]


def _yfilter_seconds(program: AuthorsYFilter, number: int) -> float:
    """CPU seconds of its thread for all documents, each parsed and filtered."""
    seconds = 0.0
    for document in range(number):
        for work in (program.match, program.parse):
            work(document)
            clock = program.take_clock()
            seconds += clock.cpu_seconds if clock else 0.0
    return seconds


def _queries_of_others(scale: float) -> None:
    folder = os.environ.get("XSIFT_QUERIES")
    if not folder:
        return
    documents = [path.read_bytes() for path in sorted(Path(folder, "documents").glob("*.xml"))]
    queries = {path.name: _lines(path, scale) for path in sorted(Path(folder).glob("*.txt"))}
    print(f"\n  queries of {folder}, {len(documents)} documents; µs a document in all\n")
    rows = []
    for name, texts in queries.items():
        measured = Measured(subscriptions_of(texts).matcher("sift"), documents)
        rows.append([name, f"{len(texts):,}", f"{_mean(measured.matches):,.0f}", f"{measured.total:,.1f}"])
    table(["queries", "number", "matches", "sift"], rows)
    if why_missing(YFILTER):
        return
    print("\n  the same beside YFilter 1.0; the first 100 documents, seen before by both\n")
    pairs = [_pair(f"{len(texts):,}, {name}", texts, documents[:100]) for name, texts in queries.items()]
    table(["", "matches", "YFilter 1.0", "sift", "times"], [row for pair in pairs for row in pair])


def _lines(path: Path, scale: float) -> list[str]:
    texts = [line.strip() for line in path.read_text().splitlines() if line.strip()]
    return texts[: max(1, int(len(texts) * scale))]


def _real(scale: float) -> None:
    print(
        "\n  documents of Debian packages, subscriptions made from their own paths and values; µs a document in all\n"
    )
    names = ("yfilter", "bfilter", "sift")
    rows = []
    for package, everything in installed().items():
        documents = [document for document in everything if len(document) < 50_000 and _is_read(document)][:400]
        for kind in ("paths", "twigs", "attributes", "texts"):
            texts = subscriptions_from(documents, int(10_000 * scale), kind)
            subscriptions = xsift.Subscriptions()
            subscriptions.add_many([(str(number), text) for number, text in enumerate(texts)], errors="collect")
            if len(subscriptions) < 100:
                continue
            measured = {name: Measured(subscriptions.matcher(name), documents) for name in names}
            rows.append(
                [f"{package}, {len(subscriptions):,} {kind}", f"{_mean(measured['sift'].matches):,.0f}"]
                + [f"{measured['sift'].reading:,.1f}"]
                + [f"{measured[name].total:,.1f}" for name in names]
            )
    table(["", "matches", "reading", *names], rows)


def _is_read(document: bytes) -> bool:
    """False for what the reader refuses, such as parameter entities."""
    try:
        Reader(DocumentIndex(Symbols())).read(document)
    except DocumentError:
        return False
    return True


def _results(scale: float) -> None:
    """What ids cost as Python strings, and what a second thread gains."""
    documents = documents_of("nitf", 1000)
    matcher = subscriptions_of(distinct("nitf", int(150_000 * scale))).matcher("sift")
    twigs = subscriptions_of(distinct("nitf", int(50_000 * scale), nested_paths=2)).matcher("sift")

    def seconds(work: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
        started = clock()
        work()
        return (clock() - started) / len(documents) * 1e6

    def warm_seconds(work: Callable[[], object]) -> float:
        return min(seconds(work) for _ in range(1 + REPEATS))

    numbers = warm_seconds(lambda: [match.rows for match in matcher.match_many(documents)])
    ids = warm_seconds(lambda: [len(match.ids) for match in matcher.match_many(documents)])
    print(f"\n  {len(matcher):,} paths: {numbers:,.1f} µs a document as numbers, {ids:,.1f} as ids")
    for name, it in (("paths", matcher), ("twigs", twigs)):
        # A thread remembers for itself, and which documents it gets is chance: both have to see many to be warm.
        ratios = []
        for _ in range(3 * REPEATS):
            one, two = (seconds(partial(_match_all, it, documents, threads), time.perf_counter) for threads in (1, 2))
            ratios.append(one / two)
        gained = median(ratios[-REPEATS:])
        print(f"  {len(it):,} {name}: two threads are {gained:.2f} times as fast as one, by the clock")


def _match_all(matcher: xsift.Matcher, documents: list[bytes], threads: int) -> None:
    for _ in matcher.match_many(documents, threads=threads):
        pass


def _growth(scale: float) -> None:
    print("\n  growth: distinct NITF paths, depth 10, * and // at 0.2; µs a document\n")
    documents = documents_of("nitf", 500)
    texts = distinct("nitf", int(1_000_000 * scale), maximum_depth=10)
    rows = []
    for share in (100, 10, 1):
        matcher = subscriptions_of(texts[: len(texts) // share]).matcher("sift")
        measured = Measured(matcher, documents)
        matches = _mean(measured.matches)
        cached = matcher.memory()["run-time states"]
        rows.append(
            [
                f"{len(texts) // share:,}",
                f"{matches:,.0f}",
                f"{measured.total:,.1f}",
                f"{measured.matching:,.1f}",
                f"{measured.matching * 1000 / max(1.0, matches):,.1f}",
                f"{matcher.counters()['flushes']}",
                f"{cached / 1e6:,.0f} MB",
            ]
        )
    headings = ["patterns", "matches", "in all", "matching", "ns a match", "flushes", "cached states"]
    table(headings, rows)


def _index(scale: float) -> None:
    texts = distinct("nitf", int(1_000_000 * scale), maximum_depth=10)
    pairs = [(str(number), text) for number, text in enumerate(texts)]
    started = time.process_time()
    subscriptions = xsift.Subscriptions()
    subscriptions.add_many(pairs)
    matcher = subscriptions.matcher("sift")
    build = time.process_time() - started
    index = sum(matcher.memory().values()) / len(texts)
    everything = index + sum(subscriptions.memory().values()) / len(texts)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index.xsift"
        matcher.save(path)
        size = path.stat().st_size / len(texts)
        started = time.perf_counter()
        loaded = xsift.Matcher.load(path)
        load = time.perf_counter() - started
        assert len(loaded) == len(texts)
    print(f"\n  an index of {len(texts):,} distinct paths\n")
    print(f"    built           {len(texts) / build:,.0f} subscriptions a second")
    print(f"    in memory       {index:,.0f} bytes a pattern; {everything:,.0f} with ids and expressions")
    print(f"    saved           {size:,.0f} bytes a pattern")
    print(f"    loaded          in {load:.2f} s")


def _changes(scale: float) -> None:
    """Adds and removes while another thread matches; each match sees one consistent snapshot."""
    texts = distinct("nitf", int(100_000 * scale))
    documents = documents_of("nitf", 100)
    subscriptions = subscriptions_of(texts)
    current = [subscriptions.matcher("sift")]
    done = threading.Event()
    matched = [0]

    def match() -> None:
        while not done.is_set():
            for _ in current[0].match_many(documents):
                matched[0] += 1

    thread = threading.Thread(target=match)
    thread.start()
    started = time.perf_counter()
    changes = 0
    for batch in range(10):
        few = texts[batch * 1000 : (batch + 1) * 1000]
        subscriptions.add_many([(f"more-{batch}-{number}", text) for number, text in enumerate(few)])
        for number in range(len(few)):
            subscriptions.remove(str(batch * 1000 + number))
        current[0] = subscriptions.matcher("sift")
        changes += 2 * len(few)
    seconds = time.perf_counter() - started
    done.set()
    thread.join()
    print(
        f"\n  {changes / seconds:,.0f} additions and removals a second into {len(texts):,}, a snapshot every 2,000, "
        f"while another thread matched {matched[0] / seconds:,.0f} documents a second"
    )
