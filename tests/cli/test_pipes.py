"""`xsift match -` in a pipe: documents as they come, results as soon as they are there."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from pathlib import Path

import pytest

WAIT_SECONDS = 60  # for a process that may have to import everything first


@pytest.fixture
def alerts(tmp_path: Path) -> str:
    (tmp_path / "alerts.tsv").write_text("titles\t//title\n")
    return str(tmp_path / "alerts.tsv")


def run(alerts: str, data: bytes, *options: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "xsift.cli", "match", "-s", alerts, "-", "--quiet", *options]
    return subprocess.run(command, input=data, capture_output=True, check=False)


def test_one_document(alerts: str) -> None:
    assert run(alerts, b"<a><title/></a>").stdout == b"-\ttitles\n"
    assert run(alerts, "<a><title/></a>".encode("utf-16")).stdout == b"-\ttitles\n"
    assert run(alerts, b"").returncode == 3
    assert run(alerts, b"<").returncode == 3


def test_json_lines_and_nulls(alerts: str) -> None:
    lines = [{"id": "a", "xml": "<title/>"}, {"xml": "<x/>"}, {"id": "c"}, {"id": "d", "xml": "<title/>"}]
    done = run(alerts, "\n".join(map(json.dumps, lines)).encode(), "--format", "jsonl")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["document"] for row in found] == ["a", "-:2", "-:3", "d"]
    assert [row.get("matches") for row in found] == [["titles"], [], None, ["titles"]]
    done = run(alerts, b"<title/>\0<x>\0\0<a><title/></a>\0", "-0")
    assert done.stdout == b"-:1\ttitles\n-:3\ttitles\n"
    assert done.returncode == 3


def test_a_byte_order_mark_does_not_matter(alerts: str) -> None:
    assert run(alerts, b'\xef\xbb\xbf{"id": "x", "xml": "<title/>"}\n').stdout == b"x\ttitles\n"
    assert run(alerts, b"\xef\xbb\xbf<title/>").stdout == b"-\ttitles\n"


def test_records_of_a_stream(alerts: str) -> None:
    done = run(alerts, b"<d><r><title/></r><r/></d>", "--record", "r")
    assert done.stdout == b"-:3\ttitles\n"
    done = run(alerts, b"<d><r><title/></r></d>\0<d><r/><r><title/></r></d>", "-0", "--record", "r")
    assert done.stdout == b"-:1:3\ttitles\n-:2:7\ttitles\n"


@pytest.mark.parametrize("options", [[], ["-0"]])
def test_results_are_flushed_as_they_come(alerts: str, options: list[str]) -> None:
    """The second document is sent only when the result of the first is there."""
    command = [sys.executable, "-m", "xsift.cli", "match", "-s", alerts, "-", "--quiet", *options]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in (1, 2, 3):
            document = b"<title/>\0" if options else b'{"xml": "<title/>"}\n'
            process.stdin.write(document)
            process.stdin.flush()
            ready, _, _ = select.select([process.stdout], [], [], WAIT_SECONDS)
            assert ready, "no result while the input is open"
            assert process.stdout.readline() == b"-:%d\ttitles\n" % number
        process.stdin.close()
        assert process.wait(WAIT_SECONDS) == 0


def test_a_reader_that_has_enough(alerts: str) -> None:
    command = [sys.executable, "-m", "xsift.cli", "match", "-s", alerts, "-", "--quiet"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b'{"xml": "<title/>"}\n')
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.close()
        try:
            process.stdin.write(b'{"xml": "<title/>"}\n' * 1000)
            process.stdin.close()
        except BrokenPipeError:
            pass
        assert b"Traceback" not in process.stderr.read()
        assert process.wait(WAIT_SECONDS) == 0
