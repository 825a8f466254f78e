"""One answer, whatever door a document comes in by, whatever it is made of, and however it is encoded."""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
import mmap
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import xsift
from xsift.cli import main

TEXT = '<r><p n="1">naïve – é</p><p>2</p></r>'
EXPECTED = ["exact", "verified"]
IDS = ["exact", "never", "verified"]
DECLARED = '<?xml version="1.0" encoding="{}"?>'


@pytest.fixture(scope="module")
def matcher() -> xsift.Matcher:
    subscriptions = xsift.Subscriptions()
    subscriptions.add("exact", "//p[contains(., 'naïve – é')]")
    subscriptions.add("never", "//p[contains(., 'Ã')]")
    subscriptions.add("verified", "//p[position() = 1][contains(., 'naïve – é')]")
    return subscriptions.matcher()


def encoded(codec: str, declaration: str = "", bom: bytes = b"") -> bytes:
    return bom + (declaration + TEXT).encode(codec)


# What the bytes are, and what is said of them from outside.
ENCODINGS: dict[str, tuple[bytes, str | None]] = {
    "utf-8": (encoded("utf-8"), None),
    "utf-8 declared": (encoded("utf-8", DECLARED.format("UTF-8")), None),
    "utf-8 bom": (encoded("utf-8", bom=b"\xef\xbb\xbf"), None),
    "utf-8 bom declared": (encoded("utf-8", DECLARED.format("utf-8"), b"\xef\xbb\xbf"), None),
    "utf-8 bom against a wrong declaration": (
        encoded("utf-8", DECLARED.format("ISO-8859-1"), b"\xef\xbb\xbf"),
        None,
    ),
    "utf-16 bom against a wrong declaration": ((DECLARED.format("UTF-8") + TEXT).encode("utf-16"), None),
    "cp1252 declared": (encoded("cp1252", DECLARED.format("windows-1252")), None),
    "cp1252 overridden": (encoded("cp1252"), "cp1252"),
    "cp1252 overrides a wrong declaration": (encoded("cp1252", DECLARED.format("UTF-8")), "cp1252"),
    "utf-8 overrides a wrong declaration": (encoded("utf-8", DECLARED.format("ISO-8859-1")), "utf-8"),
    "utf-16 with bom": (TEXT.encode("utf-16"), None),
    "utf-16 declared": ((DECLARED.format("UTF-16") + TEXT).encode("utf-16"), None),
    "utf-16 little-endian": (b"\xff\xfe" + TEXT.encode("utf-16-le"), None),
    "utf-16 big-endian": (b"\xfe\xff" + TEXT.encode("utf-16-be"), None),
}
TEXTS: dict[str, str] = {
    "plain": TEXT,
    "declares latin-1": DECLARED.format("ISO-8859-1") + TEXT,
    "declares utf-16": DECLARED.format("UTF-16") + TEXT,
    "declares utf-8": DECLARED.format("UTF-8") + TEXT,
    "with a bom": "\ufeff" + DECLARED.format("ISO-8859-1") + TEXT,
}


class Trickle:
    """A file that gives little at a time."""

    def __init__(self, data: Any) -> None:
        self._data, self._at = data, 0

    def read(self, size: int = -1) -> Any:
        piece = self._data[self._at : self._at + 3]
        self._at += len(piece)
        return piece


Door = Callable[[xsift.Matcher, Any], list[str]]
DOORS: dict[str, Door] = {
    "match": lambda matcher, source: matcher.match(source()),
    "match_many": lambda matcher, source: next(iter(matcher.match_many([source()]))).ids,
    "match_many, threads": lambda matcher, source: next(iter(matcher.match_many([source()], threads=2))).ids,
    "select": lambda matcher, source: list(matcher.select(source())),
    "tuples": lambda matcher, source: list(matcher.tuples(source())),
    "explain": lambda matcher, source: [id for id in IDS if matcher.explain(source(), id).matched],
}
# What is evaluated has no tuples to tell.
EXPECTED_AT = {**dict.fromkeys(DOORS, EXPECTED), "tuples": ["exact"]}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_bytes_of_every_kind(matcher: xsift.Matcher, encoding: str, door: str, tmp_path: Path) -> None:
    data, override = ENCODINGS[encoding]
    path = tmp_path / "it.xml"
    path.write_bytes(data)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        kinds: list[Callable[[], Any]] = [
            lambda: data,
            lambda: bytearray(data),
            lambda: memoryview(data),
            lambda: mapped,
            lambda: path,
            lambda: io.BytesIO(data),
            lambda: Trickle(data),
            lambda: xsift.Document(data),
        ]
        for kind in kinds:
            got = DOORS[door](matcher, lambda kind=kind: xsift.Document(kind(), encoding=override))
            assert got == EXPECTED_AT[door], kind()
            if override is None:
                assert DOORS[door](matcher, kind) == EXPECTED_AT[door], kind()


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("text", TEXTS)
def test_text_is_not_subject_to_its_declaration(matcher: xsift.Matcher, text: str, door: str) -> None:
    kinds: list[Callable[[], Any]] = [
        lambda: TEXTS[text],
        lambda: io.StringIO(TEXTS[text]),
        lambda: Trickle(TEXTS[text]),
        lambda: xsift.Document(TEXTS[text]),
    ]
    for kind in kinds:
        assert DOORS[door](matcher, kind) == EXPECTED_AT[door], kind()


def test_arrow_arrays_of_every_kind(matcher: xsift.Matcher) -> None:
    for kind in (pa.string(), pa.large_string()):
        ids, errors = matcher.match_array(pa.array([None, *TEXTS.values()], kind).slice(1))
        assert ids.to_pylist() == [EXPECTED] * len(TEXTS)
        assert not errors
    plain = [data for data, override in ENCODINGS.values() if override is None]
    for kind in (pa.binary(), pa.large_binary()):
        ids, errors = matcher.match_array(pa.array([None, *plain], kind).slice(1))
        assert ids.to_pylist() == [EXPECTED] * len(plain)
        assert not errors


def test_arrow_arrays_whose_encoding_is_said(matcher: xsift.Matcher) -> None:
    for data, encoding in ENCODINGS.values():
        if encoding is not None:
            broken = b"<a>" if "16" not in encoding else "<a>".encode(encoding)
            array = pa.array([None, data, None, broken, data, None], pa.binary()).slice(1)
            ids, errors = matcher.match_array(array, encoding=encoding)
            assert ids.to_pylist() == [EXPECTED, None, None, EXPECTED, None]
            assert {place: error.code for place, error in errors.items()} == {2: "truncated-document"}
    texts = pa.array(list(TEXTS.values()))
    assert matcher.match_array(texts, encoding="cp1252").ids.to_pylist() == [EXPECTED] * len(TEXTS)  # text is text


def ids_in(output: Path) -> list[list[str]]:
    """The ids of each document, from the output of a command in any format."""
    if output.suffix == ".parquet":
        rows = pyarrow.parquet.read_table(output).to_pylist()
    elif output.suffix == ".jsonl":
        rows = [json.loads(line) for line in output.read_text().splitlines()]
    else:
        table = csv.reader(output.read_text().splitlines(), delimiter="," if output.suffix == ".csv" else "\t")
        rows = [{"document": row[0], "subscription": row[1]} for row in table]
        rows = rows[1:] if output.suffix == ".csv" else rows
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        ids = row["matches"] if "matches" in row else [row["subscription"]]
        found.setdefault(row["document"], {}).update(dict.fromkeys(ids))
    return [list(ids) for ids in found.values()]


@pytest.mark.parametrize("ending", ["tsv", "csv", "jsonl", "parquet"])
@pytest.mark.parametrize("flags", [[], ["--kind", "rows"], ["--kind", "nodes"], ["--threads", "2"]])
def test_the_command_line_gives_the_same(
    matcher: xsift.Matcher, flags: list[str], ending: str, tmp_path: Path
) -> None:
    matcher.save(tmp_path / "set.xsift")
    folder = tmp_path / "documents"
    folder.mkdir()
    plain = [data for data, override in ENCODINGS.values() if override is None]
    for number, data in enumerate(plain):
        (folder / f"{number}.xml").write_bytes(data)
    rows = [{"id": name, "xml": text} for name, text in TEXTS.items()]
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pyarrow.parquet.write_table(pa.table({"xml": list(TEXTS.values())}), tmp_path / "texts.parquet")
    pyarrow.parquet.write_table(pa.table({"xml": pa.array(plain, pa.binary())}), tmp_path / "bytes.parquet")
    places = [folder, tmp_path / "texts.jsonl", tmp_path / "texts.parquet", tmp_path / "bytes.parquet"]
    output = tmp_path / f"out.{ending}"
    command = ["match", "-s", str(tmp_path / "set.xsift"), "--output", str(output), "--quiet", *flags]
    assert main([*command, *map(str, places)]) == 0
    assert ids_in(output) == [EXPECTED] * (2 * len(plain) + 2 * len(TEXTS))


def test_the_command_line_overrides_what_is_declared(matcher: xsift.Matcher, tmp_path: Path) -> None:
    matcher.save(tmp_path / "set.xsift")
    for number, (data, override) in enumerate(ENCODINGS.values()):
        if override is not None:
            (tmp_path / "it.xml").write_bytes(data)
            output = tmp_path / f"{number}.jsonl"
            command = ["match", "-s", str(tmp_path / "set.xsift"), "--encoding", override, "--output", str(output)]
            assert main([*command, str(tmp_path / "it.xml")]) == 0
            assert ids_in(output) == [EXPECTED]


@pytest.mark.parametrize("wrong", [None, ["<a/>"], 7, {"xml": "<a/>"}, "news/1.xml", "a.xml", "hello"])
def test_what_is_no_document_says_what_one_is(matcher: xsift.Matcher, wrong: Any) -> None:
    for call in (matcher.match, matcher.select, matcher.tuples, lambda it: matcher.explain(it, "exact")):
        with pytest.raises(xsift.DocumentError) as caught:
            call(wrong)
        assert caught.value.code == "not-a-document"
        assert "Path" in caught.value.hint
    good, bad, again = matcher.match_many([TEXT, wrong, TEXT])
    assert good.ids == again.ids == EXPECTED
    assert bad.error is not None
    assert bad.error.code == "not-a-document"


def test_a_missing_file_is_that_documents_error(matcher: xsift.Matcher, tmp_path: Path) -> None:
    exact = xsift.Subscriptions()
    exact.add("p", "//p")
    for it in (matcher, exact.matcher()):
        good, bad, folder, again = it.match_many([TEXT, tmp_path / "missing.xml", tmp_path, TEXT])
        assert good.ids
        assert again.ids == good.ids
        for broken in (bad, folder):
            assert broken.error is not None
            assert broken.error.code == "unreadable-file"
        assert bad.label == str(tmp_path / "missing.xml")
        assert "missing.xml" in str(bad.error)
        with pytest.raises(xsift.DocumentError, match=r"missing\.xml cannot be read"):
            it.match(tmp_path / "missing.xml")


def cut_off() -> gzip.GzipFile:
    return gzip.GzipFile(fileobj=io.BytesIO(gzip.compress(b"<a/>" * 999)[:-9]))


def damaged() -> lzma.LZMAFile:
    return lzma.LZMAFile(io.BytesIO(b"what is this?"))


def closed_mapping() -> mmap.mmap:
    mapped = mmap.mmap(-1, 4)
    mapped.close()
    return mapped


class Failing:
    """A file whose read() fails, or gives what it must not."""

    def __init__(self, outcome: Any) -> None:
        self._outcome = outcome

    def read(self, size: int = -1) -> Any:
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


# What cannot be read, each made anew for every door, and the code of its error.
UNREADABLE: dict[str, tuple[Callable[[], Any], str]] = {
    "gzip, cut off": (cut_off, "unreadable-file"),
    "xz, damaged": (damaged, "unreadable-file"),
    "text in another encoding": (lambda: io.TextIOWrapper(io.BytesIO(b"<a>\xff</a>"), "utf-8"), "unreadable-file"),
    "a closed file": (lambda: Failing(ValueError("I/O operation on closed file")), "unreadable-file"),
    "a file that fails": (lambda: Failing(RuntimeError()), "unreadable-file"),
    "a file that has nothing yet": (lambda: Failing(None), "not-a-document"),
    "a file of numbers": (lambda: Failing(5), "not-a-document"),
    "no path": (lambda: Path("a\0b.xml"), "unreadable-file"),
    "a path with half of a surrogate pair": (lambda: Path("\ud800.xml"), "unreadable-file"),
    "a closed mapping": (closed_mapping, "not-a-document"),
    "bytes with gaps": (lambda: memoryview(b"<<aa//>>")[::2], "not-a-document"),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_what_cannot_be_read_is_an_error_of_that_document_alone(matcher: xsift.Matcher, kind: str) -> None:
    """Whether subscriptions are evaluated or not, and whatever it is that fails."""
    make, code = UNREADABLE[kind]
    exact = xsift.Subscriptions()
    exact.add("exact", "//p")
    for it in (exact.matcher(), matcher):
        calls = (it.match, it.select, it.tuples, lambda source, it=it: it.explain(source, "exact"))
        for call in calls:
            with pytest.raises(xsift.DocumentError) as caught:
                call(make())
            assert caught.value.code == code
        for threads in (1, 2):
            good, bad, again = it.match_many([TEXT, make(), TEXT], threads=threads)
            assert good.ids == again.ids != []
            assert bad.error is not None
            assert bad.error.code == code


class Endless:
    """A stream that never ends, and counts what was taken of it."""

    def __init__(self) -> None:
        self.given = 0

    def read(self, size: int = -1) -> bytes:
        piece = b"<r>" if not self.given else b"<p/>" * 250_000
        self.given += len(piece)
        return piece


def test_a_stream_that_is_too_large_is_not_read_whole(matcher: xsift.Matcher, tmp_path: Path) -> None:
    subscriptions = xsift.Subscriptions()
    subscriptions.add("verified", "//p[2]")
    limited = subscriptions.matcher(limits=xsift.Limits(bytes=10**6))
    for call in (limited.match, limited.select, lambda it: limited.explain(it, "verified")):
        stream = Endless()
        with pytest.raises(xsift.DocumentError, match="too-large"):
            call(stream)
        assert stream.given < 4 * 10**6


def test_a_small_file_of_much_is_not_read_whole(tmp_path: Path) -> None:
    """What is packed may unpack to far more than the limit: the command line stops there, whatever is evaluated."""
    subscriptions = xsift.Subscriptions()
    subscriptions.add("verified", "//p[2]")
    subscriptions.matcher().save(tmp_path / "set.xsift")
    with gzip.open(tmp_path / "much.xml.gz", "wb") as file:
        file.write(b"<r>")
        for _ in range(60):
            file.write(b"<p/>" * 250_000)
    command = ["match", "-s", "set.xsift", "--limit", f"bytes={10**6}", "--format", "jsonl", "much.xml.gz"]
    peak = "; import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"

    def told(program: str) -> list[str]:
        run = [sys.executable, "-c", program + peak]
        return subprocess.run(run, capture_output=True, check=True, text=True, cwd=tmp_path).stdout.splitlines()

    (idle,) = told("import xsift.cli")
    error, status, most = told(f"import xsift.cli; print(xsift.cli.main({command!r}))")
    assert status == "3"
    assert "too-large" in error
    assert int(most) - int(idle) < 40 << 10  # KiB; it unpacks to 60 MB


def test_a_line_end_that_an_entity_brings_is_the_same_for_all() -> None:
    """An entity whose value is CR LF, in an attribute: two spaces, for conditions and for what is evaluated."""
    subscriptions = xsift.Subscriptions()
    for spaces in (1, 2):
        subscriptions.add(f"indexed {spaces}", f"//a[@x = 'p{' ' * spaces}q']")
        subscriptions.add(f"evaluated {spaces}", f"//a[1][concat(@x, '') = 'p{' ' * spaces}q']")
    xml = '<!DOCTYPE a [<!ENTITY e "&#13;&#10;">]><a x="p&e;q"/>'
    matched = subscriptions.matcher().match(xml)
    assert matched == ["indexed 2", "evaluated 2"]


def test_labels_come_back() -> None:
    subscriptions = xsift.Subscriptions()
    subscriptions.add("a", "//a")
    documents: list[bytes | xsift.Document] = [
        xsift.Document(b"<a/>", label="first"),
        b"<a/>",
        xsift.Document("<", label="broken"),
    ]
    assert [match.label for match in subscriptions.matcher().match_many(documents)] == ["first", None, "broken"]
    assert repr(documents[0]) == "<Document of 4 bytes, label='first'>"
