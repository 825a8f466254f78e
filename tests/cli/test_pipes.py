"""`xsift match -` in a pipe: documents as they come, results as soon as they are there."""

from __future__ import annotations

import json
import os
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


def test_a_pipe_with_a_name_is_read_once(alerts: str, tmp_path: Path) -> None:
    """Nothing matches, so that one would like to look at the document again; but nobody writes it twice."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "xsift.cli", "match", "-s", alerts, str(pipe)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    pipe.write_bytes(b"<a xmlns='urn:n'><title/></a>")
    try:
        assert b"1 document, 0 matches" in process.communicate(timeout=WAIT_SECONDS)[1]
    finally:
        process.kill()
    assert process.returncode == 1


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


def shell(command: str, folder: str) -> subprocess.CompletedProcess[str]:
    """What a command ends with; its output is buffered, as it is for users."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    xsift = f"{sys.executable} -m xsift.cli"
    return subprocess.run(
        ["/bin/bash", "-c", command.replace("xsift ", f"{xsift} ")],
        cwd=folder,
        env=environment | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no /dev/full")
@pytest.mark.parametrize("command", ["check alerts.tsv", "match -s alerts.tsv a.xml", "engines", "--version"])
def test_an_output_that_is_full(alerts: str, command: str) -> None:
    folder = Path(alerts).parent
    (folder / "a.xml").write_text("<title/>")
    done = shell(f"xsift {command} > /dev/full", str(folder))
    assert done.returncode == 4
    assert "No space left on device" in done.stderr
    assert "Exception" not in done.stderr


def test_streams_that_are_closed(alerts: str) -> None:
    folder = Path(alerts).parent
    (folder / "a.xml").write_text("<title/>")
    ended = {"check alerts.tsv | true; exit ${PIPESTATUS[0]}": 0, "match -s alerts.tsv a.xml 2>&-": 0}
    ended |= {"match -s alerts.tsv a.xml >&-": 4, "match -s alerts.tsv --output x.tsv a.xml >&-": 0}
    ended |= {"match -s alerts.tsv - <&-": 3}
    for command, code in ended.items():
        done = shell(f"xsift {command}", str(folder))
        assert done.returncode == code, (command, done.stderr)
        assert "Traceback" not in done.stderr
        assert "Exception" not in done.stderr


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
