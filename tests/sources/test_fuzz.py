"""Random, cut off, mixed up and hostile files in every format: never a traceback, and nothing disappears.

A short run is among the tests; `python -m tests.sources.test_fuzz SECONDS` runs for longer.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import json
import lzma
import random
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import xsift
from xsift.cli import main
from xsift.errors import XsiftError
from xsift.sources.documents import DocumentSources
from xsift.sources.subscriptions import read_subscriptions

EXIT_CODES = (0, 1, 2, 3, 4)
XPATHS = ["//a", "/a/b[@x = 1]", "//a[2]", "//a[", "//n:a", "", "//a[. = 'x,y']", "//é", "\ufffd"]
DOCUMENTS = [
    b"<a/>",
    b"<a><b x='1'/>t</a>",
    b"<a>",
    b"",
    b"<a>\xff</a>",
    "<a>é</a>".encode("utf-16"),
    b"<n:a xmlns:n='urn:n'/>",
]


def zstd(data: bytes) -> bytes:
    return pa.Codec("zstd").compress(data, asbytes=True)  # type: ignore[no-any-return]


COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstd,
}


def damaged(random: random.Random, data: bytes) -> bytes:
    """The data as it is, cut off, with bytes changed, or with others in between."""
    choice = random.random()
    if choice < 0.3 or not data:
        return data
    if choice < 0.5:
        return data[: random.randrange(len(data))]
    changed = bytearray(data)
    for _ in range(random.choice([1, 1, 5, 50])):
        place = random.randrange(len(changed))
        if random.random() < 0.5:
            changed[place] = random.choice([0, 10, 34, 44, 60, 128, 255, random.randrange(256)])
        else:
            changed[place:place] = random.randbytes(random.choice([1, 4]))
    return bytes(changed)


def encoded(random: random.Random, text: str) -> bytes:
    return text.encode(random.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1"]), "replace")


def subscription_file(random: random.Random) -> tuple[str, bytes]:
    rows = [(f"s{number}", random.choice(XPATHS)) for number in range(random.randrange(8))]
    kind = random.choice([".tsv", ".csv", ".jsonl", ".ndjson", ".parquet"])
    if kind == ".parquet":
        file = io.BytesIO()
        pyarrow.parquet.write_table(
            pa.table({"id": [id for id, _ in rows], "xpath": [text for _, text in rows]}), file
        )
        return kind, file.getvalue()
    if kind in (".tsv", ".csv"):
        tab = "\t" if kind == ".tsv" else ","
        lines = [random.choice(["", f"id{tab}xpath", f"name{tab}rule", "# x"])]
        lines += [f"{id}{tab}{text}" if random.random() < 0.8 else f'{id}{tab}"{text}' for id, text in rows]
        content = encoded(random, random.choice(["\n", "\r\n", "\r"]).join(lines))
    else:
        lines = [json.dumps({"id": id, "xpath": text}) for id, text in rows]
        content = encoded(random, "\n".join([*lines, random.choice(["", "null", "[1]", "{", '{"id": {}}'])]))
    ending = random.choice(list(COMPRESSIONS))
    return kind + ending, COMPRESSIONS[ending](content)


def document_file(random: random.Random) -> tuple[str, bytes]:
    documents = [random.choice(DOCUMENTS) for _ in range(random.randrange(5))]
    kind = random.choice([".xml", ".jsonl", ".parquet", ".zip", ".tar", ".tar.gz", ".txz", ""])
    file = io.BytesIO()
    if kind == ".zip":
        with zipfile.ZipFile(
            file, "w", random.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
        ) as archive:
            for number, data in enumerate(documents):
                archive.writestr(f"{number}{random.choice(['.xml', '.txt', '', '.xml.gz'])}", data)
        return kind, file.getvalue()
    if kind in (".tar", ".tar.gz", ".txz"):
        with tarfile.open(fileobj=file, mode={".tar": "w", ".tar.gz": "w:gz", ".txz": "w:xz"}[kind]) as archive:  # type: ignore[call-overload]
            for number, data in enumerate(documents):
                info = tarfile.TarInfo(random.choice(["x" * 200, ""]) + f"{number}.xml")
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        return kind, file.getvalue()
    if kind == ".parquet":
        pyarrow.parquet.write_table(pa.table({"xml": pa.array(documents, pa.binary())}), file)
        return kind, file.getvalue()
    if kind == ".jsonl":
        rows: list[dict[str, object]] = [
            {"id": random.choice(["x", 5, None, []]), "xml": data.decode("latin-1")} for data in documents
        ]
        content = encoded(random, "\n".join(map(json.dumps, rows)))
    else:
        content = b"".join(documents)
    ending = random.choice(list(COMPRESSIONS))
    return kind + ending, COMPRESSIONS[ending](content)


def check_subscriptions(path: Path) -> None:
    """Every row is a subscription or an error; `check` says so in its exit code."""
    try:
        found = read_subscriptions(path)
    except XsiftError:
        return
    subscriptions = xsift.Subscriptions()
    errors = found.located(subscriptions.add_many(found.table, errors="collect"))
    assert found.rows == len(subscriptions) + len(errors)
    assert all(error.place for error in errors)
    assert run("check", path) == (3 if errors else 0)


def check_documents(alerts: Path, path: Path, *options: str) -> None:
    """Every document that the sources give is a row of the output, and every error too."""
    record = options[1] if "--record" in options else None
    expected = [found.label for found in DocumentSources([path], record=record)]
    output = path.with_suffix(".out.jsonl")
    code = run("match", "-s", alerts, "--output", output, *options, path)
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [row["document"] for row in rows] == expected
    broken = any("error" in row for row in rows)
    assert code == (3 if broken else 0 if any(row["matches"] for row in rows) else 1)


def run(*arguments: object) -> int:
    """The command line; what it prints has no traceback."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    assert "Traceback" not in err.getvalue(), err.getvalue()
    assert code in EXIT_CODES
    return code


def fuzz(seed: int, folder: Path) -> None:
    generator = random.Random(seed)
    alerts = folder / "alerts.tsv"
    alerts.write_text("a\t//a\nsecond\t//a[1]\n")
    for make in (subscription_file, document_file):
        ending, data = make(generator)
        path = folder / f"f{ending}"
        path.write_bytes(damaged(generator, data) if generator.random() < 0.9 else generator.randbytes(300))
        try:
            if make is subscription_file:
                check_subscriptions(path)
                run("match", "-s", path, alerts)
            else:
                check_documents(alerts, path, *generator.choice([[], [], ["--record", "a"], ["--threads", "2"]]))
                run("match", "-s", alerts, "--kind", "nodes", "--format", "jsonl", folder)
        except BaseException:
            print(f"seed {seed}: {path.name}: {path.read_bytes()!r}", file=sys.stderr)
            raise
        path.unlink()
        for output in folder.glob("*.out.jsonl"):
            output.unlink()


@pytest.mark.parametrize("part", range(10))
def test_fuzz(part: int, tmp_path: Path) -> None:
    for seed in range(part * 60, part * 60 + 60):
        fuzz(seed, tmp_path)


if __name__ == "__main__":
    deadline, number = time.monotonic() + float(sys.argv[1]), 1000
    while time.monotonic() < deadline:
        with tempfile.TemporaryDirectory() as folder:
            fuzz(number, Path(folder))
        number += 1
    print(f"{number - 1000:,} files of each kind")
