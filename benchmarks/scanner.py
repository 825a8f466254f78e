"""The scanner beside libexpat, and the whole of filtering beside libexpat alone, in one run.

Beside generated documents stand some that nobody wrote for this: Debian's unicode-cldr-core, gnome-user-docs
(Mallard) and docbook-xsl. They are installed if that is possible; what is missing is said.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.parsers import expat

import xsift
from benchmarks.measuring import interleaved, machine, median, table
from xsift.document import DocumentIndex, Reader, document_statistics
from xsift.workload import DocumentGenerator, DocumentParameters, SubscriptionGenerator, SubscriptionParameters
from xsift.xpath import Symbols

SUBSCRIPTIONS = 150_000
MOST_BYTES = 20_000_000  # of a corpus
BATCH_BYTES = 200_000
PACKAGES = {
    "unicode-cldr-core": (".xml",),
    "gnome-user-docs": (".page",),
    "docbook-xsl": (".xml", ".xsl"),
}


def run(scale: float) -> None:
    print(f"  {machine()}; load {os.getloadavg()[0]:.1f}; one core; all names of a corpus are asked for\n")
    corpora = {name: make(scale) for name, make in GENERATED.items()} | installed()
    headings = [
        "documents",
        "number",
        "KB each",
        "scanner MB/s",
        "expat MB/s",
        "bare expat",
        "times",
        "times bare",
        "fell back",
    ]
    table(headings, [_measure(name, documents) for name, documents in corpora.items() if documents])
    print("\n  expat: this library's reader without the scanner; bare expat: no callbacks, so nothing is looked at")
    _filtering(corpora["NITF of 4 KB"], max(100, int(SUBSCRIPTIONS * scale)))
    _small()


def _measure(name: str, documents: list[bytes]) -> list[str]:
    index = _index(documents)
    scanner, parser = Reader(index), Reader(index, scanner=False)
    usable = [document for document in documents if _same(scanner, parser, document)]
    before = document_statistics()
    for document in usable:
        scanner.read(document)
    after = document_statistics()
    fallen = (after.expat_documents - before.expat_documents) / len(usable)
    seconds = dict.fromkeys(("scanner", "expat", "bare"), 0.0)
    for batch in _batches(usable):
        # Batch by batch, so that noise hits all ways alike, and a batch is in the cache for all of them.
        ways: dict[str, Callable[[], object]] = {
            "scanner": lambda batch=batch: [scanner.read(document) for document in batch],  # type: ignore[misc]
            "expat": lambda batch=batch: [parser.read(document) for document in batch],  # type: ignore[misc]
            "bare": lambda batch=batch: [_bare(document) for document in batch],  # type: ignore[misc]
        }
        for way, values in interleaved(ways).items():
            seconds[way] += median(values)
    megabytes = sum(map(len, usable)) / 1e6
    speed = {way: megabytes / value for way, value in seconds.items()}
    return [
        name,
        f"{len(usable):,}",
        f"{megabytes * 1000 / len(usable):,.1f}",
        *(f"{speed[way]:,.0f}" for way in ("scanner", "expat", "bare")),
        f"{speed['scanner'] / speed['expat']:.1f}",
        f"{speed['scanner'] / speed['bare']:.1f}",
        f"{fallen:.0%}",
    ]


def _batches(documents: list[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    for document in documents:
        batch.append(document)
        if sum(map(len, batch)) > BATCH_BYTES:
            yield batch
            batch = []
    if batch:
        yield batch


def _same(scanner: Reader, parser: Reader, document: bytes) -> bool:
    """Whether a document can be read; both must then say the same."""
    try:
        expected = parser.read(document).events
    except xsift.DocumentError:
        return False  # an entity of an external DTD, say
    assert scanner.read(document).events == expected, "the answers differ"
    return True


def _bare(document: bytes) -> int:
    return expat.ParserCreate(None, "\x1f").Parse(document, True)


def _index(documents: list[bytes]) -> DocumentIndex:
    symbols = Symbols()
    for name in {name for document in documents for name in re.findall(rb"<([A-Za-z][\w.-]*)", document)}:
        symbols.element(name.decode())
    return DocumentIndex(symbols)


# Corpora.


def _nitf(number: int, size_bytes: int) -> Callable[[float], list[bytes]]:
    return lambda scale: list(
        DocumentGenerator(DocumentParameters(dtd="nitf", number=max(10, int(number * scale)), size_bytes=size_bytes))
    )


def _words(choose: random.Random, size: int) -> bytes:
    letters = "abcdefghijklmnopqrstuvwxyz"
    words, length = [], 0
    while length < size:
        words.append("".join(choose.choices(letters, k=choose.randrange(2, 10))))
        length += len(words[-1]) + 1
    return (" ".join(words)).replace(" ", "\n", size // 80).encode()


def _long_texts(scale: float) -> list[bytes]:
    choose = random.Random(1)
    paragraphs = [b"<p>" + _words(choose, 2000) + b"</p>\n" for _ in range(100)]
    return [
        b"<nitf><body>" + b"".join(choose.choices(paragraphs, k=20)) + b"</body></nitf>"
        for _ in range(max(10, int(200 * scale)))
    ]


def _small_documents(scale: float) -> list[bytes]:
    choose = random.Random(2)
    return [
        b'<nitf version="1"><head><title>%s</title></head><body id="i%d"><p>%s</p></body></nitf>'
        % (_words(choose, 40), number, _words(choose, 70))
        for number in range(max(100, int(5000 * scale)))
    ]


GENERATED: dict[str, Callable[[float], list[bytes]]] = {
    "NITF of 4 KB": _nitf(500, 4000),
    "NITF of 10 KB": _nitf(200, 10_000),
    "long texts": _long_texts,
    "200 bytes": _small_documents,
}


def installed() -> dict[str, list[bytes]]:
    """The documents of Debian packages, by package."""
    missing = [package for package in PACKAGES if not _files(package)]
    if missing and os.geteuid() == 0 and shutil.which("apt-get"):
        command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing]
        subprocess.run(
            command, env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"}, capture_output=True, check=False
        )
    found = {package: _files(package) for package in PACKAGES}
    for package in (package for package, files in found.items() if not files):
        print(f"  skipped: {package} is not installed, and cannot be from here (apt-get install {package})")
    return {package: _read(files) for package, files in found.items()}


def _files(package: str) -> list[Path]:
    """The XML files of a Debian package, in a random order that is always the same."""
    if not shutil.which("dpkg-query"):
        return []
    listing = subprocess.run(["dpkg-query", "-L", package], capture_output=True, text=True, check=False).stdout
    files = [Path(line) for line in listing.splitlines() if line.endswith(PACKAGES[package])]
    files = [file for file in sorted(files) if file.is_file()]
    random.Random(3).shuffle(files)
    return files


def _read(files: list[Path]) -> list[bytes]:
    documents, size = [], 0
    for file in files:
        documents.append(file.read_bytes())
        size += len(documents[-1])
        if size > MOST_BYTES:
            break
    return documents


# Filtering.


def _filtering(documents: list[bytes], number: int) -> None:
    texts = SubscriptionGenerator(SubscriptionParameters(dtd="nitf", number=number, distinct=True))
    subscriptions = xsift.Subscriptions()
    subscriptions.add_many([(str(place), text) for place, text in enumerate(texts)])
    matcher = subscriptions.matcher("sift")
    parser = Reader(_index(documents), scanner=False)
    seconds = interleaved(
        {
            "scan and match": lambda: sum(1 for _ in matcher.match_many(documents)),
            "expat alone": lambda: [parser.read(document) for document in documents],
            "bare expat alone": lambda: [_bare(document) for document in documents],
        }
    )
    print(f"\n  Filtering {len(subscriptions):,} distinct NITF paths with sift:\n")
    whole = median(seconds["scan and match"])
    rows = [
        [way, f"{median(values) / len(documents) * 1e6:,.1f}", f"{median(values) / whole:.2f}"]
        for way, values in seconds.items()
    ]
    table(["way", "µs a document", "times filtering"], rows)


def _small() -> None:
    subscriptions = xsift.Subscriptions()
    subscriptions.add_many([(str(number), f"/nitf/body/p{number}") for number in range(1000)])
    matcher = subscriptions.matcher("sift")
    documents = _small_documents(1.0)
    seconds = interleaved({"match_many": lambda: sum(1 for _ in matcher.match_many(documents))})
    each = median(seconds["match_many"]) / len(documents)
    size = sum(map(len, documents)) / len(documents)
    print(f"\n  A document of {size:.0f} bytes takes {each * 1e6:.2f} µs in match_many")
