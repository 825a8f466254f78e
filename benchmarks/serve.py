"""The service over loopback: documents a second, the time from publish to event, what an import does to both, and
how soon a subscription that is added to a million is matched.

The server is a process of its own, the client is this one: on a machine with two processors each has one. The
client speaks HTTP by hand, so that the server is measured and not a client library.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measuring import machine, table
from xsift.workload import DocumentGenerator, DocumentParameters, SubscriptionGenerator, SubscriptionParameters

CONNECTIONS, MOST_CONNECTIONS = 32, 256  # at a given rate, and as fast as it goes
SETTINGS = "[limits]\nrequests_at_once = 512\n"
SUBSCRIBERS = 1000
SECONDS = 10.0
TOGETHER = 50  # documents in a request, where many are published at once
ADDED_LATE = 20
THREADS = ("loop", "match", "writer", "read", "other")
LISTENING = re.compile(r"url=(\S+)")


def run(scale: float) -> None:
    number = int(100_000 * scale)
    print(f"  {machine()}\n")
    documents = list(DocumentGenerator(DocumentParameters(dtd="nitf", number=500, size_bytes=4000)))
    lines = import_lines(number)
    with tempfile.TemporaryDirectory() as folder, running_server(folder) as (url, process):
        prefer(process.pid)
        seconds, report = put_all(url, lines)
        print(f"  import of {report['added']:,} subscriptions: {seconds:.1f} s")
        asyncio.run(_measure(url, documents, process.pid, scale))


def import_lines(number: int, first: int = 0, seed: int = 1) -> bytes:
    """Subscriptions that are as selective as people's: of a hundred thousand a few match a document."""
    parameters = SubscriptionParameters(
        dtd="nitf",
        number=number,
        seed=seed,
        minimum_depth=4,
        maximum_depth=8,
        wildcard_odds=0.05,
        descendant_odds=0.05,
        conditions=2,
    )
    return b"".join(
        json.dumps({"id": f"s{place}", "xpath": text, "subscriber": f"u{place % SUBSCRIBERS}"}).encode() + b"\n"
        for place, text in enumerate(SubscriptionGenerator(parameters), first)
    )


@contextlib.contextmanager
def running_server(folder: str, *options: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A server with an empty database; its address, and its process."""
    log, settings = Path(folder) / "log", Path(folder) / "settings.toml"
    settings.write_text(SETTINGS)
    with open(log, "wb") as file:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "xsift.cli", "serve", "--port", "0", "--data", f"{folder}/data"),
                *("--config", str(settings), *options),
            ],
            stderr=file,
        )
    try:
        deadline = time.monotonic() + 60
        while not (found := LISTENING.search(log.read_text())):
            if time.monotonic() > deadline or process.poll() is not None:
                raise RuntimeError(f"the server did not start: {log.read_text()}")
            time.sleep(0.05)
        yield found[1], process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def prefer(pid: int) -> None:
    """Has the server and this process go before others, if XSIFT_NICE says by how much: on a machine that has other
    work to do, times say little otherwise."""
    nice = os.environ.get("XSIFT_NICE")
    for process in (pid, os.getpid()) if nice else ():
        for task in os.listdir(f"/proc/{process}/task"):
            os.setpriority(os.PRIO_PROCESS, int(task), int(nice or 0))
        with contextlib.suppress(OSError):  # Linux weighs sessions, and within them processes
            Path(f"/proc/{process}/autogroup").write_text(str(nice))


def put_all(url: str, lines: bytes) -> tuple[float, dict[str, Any]]:
    """An import; its seconds and its report."""
    started = time.perf_counter()
    request = urllib.request.Request(
        f"{url}/subscriptions", lines, {"content-type": "application/x-ndjson"}, method="POST"
    )
    try:
        with urllib.request.urlopen(request) as answer:
            report = json.load(answer)
    except urllib.error.HTTPError as error:
        raise RuntimeError(f"the import was refused: {error.code} {error.read().decode()}") from error
    return time.perf_counter() - started, report


class Connection:
    """A connection to the server that is kept open."""

    def __init__(self, url: str) -> None:
        host, _, port = url.removeprefix("http://").partition(":")
        self._host, self._port = host, int(port)

    async def open(self) -> Connection:
        self.reader, self.writer = await asyncio.open_connection(self._host, self._port, limit=1 << 20)
        return self

    def _send(self, method: str, path: str, body: bytes, kind: str) -> None:
        head = f"{method} {path} HTTP/1.1\r\nhost: {self._host}\r\ncontent-type: {kind}\r\n"
        self.writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)

    async def request(
        self, method: str, path: str, body: bytes = b"", kind: str = "application/xml"
    ) -> tuple[int, bytes]:
        self._send(method, path, body, kind)
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        return int(head[9:12]), await self.reader.readexactly(length)

    async def events(self, path: str) -> None:
        self._send("GET", path, b"", "text/plain")
        await self.reader.readuntil(b"\r\n\r\n")

    async def event(self) -> bytes:
        """The data of the next event."""
        while True:
            line = await self.reader.readline()
            if line.startswith(b"data: "):
                return line


LABEL = re.compile(rb'"label":"([0-9.]+)"')


class Listener:
    """Receives every event of a subscriber; keeps the time from publish to receipt."""

    def __init__(self, url: str, subscriber: str) -> None:
        self._connection = Connection(url)
        self._path = f"/subscribers/{subscriber}/events"
        self.delays: list[float] = []
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self._connection.open()
        await self._connection.events(self._path)
        self._task = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        while True:
            label = LABEL.search(await self._connection.event())
            if label:
                self.delays.append(time.time() - float(label[1]))

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()


async def publish_at(
    url: str, documents: Sequence[bytes], rate: float, seconds: float, together: int = 1
) -> tuple[int, list[float]]:
    """Publishes at a rate, or as fast as it goes if that is 0, one document a request or several as NDJSON; how many
    were stored, how long answers took."""
    number = 4 if together > 1 else CONNECTIONS if rate else MOST_CONNECTIONS
    connections = [await Connection(url).open() for _ in range(number)]
    texts = [document.decode() for document in documents] if together > 1 else []
    started = time.perf_counter()
    answers: list[float] = []
    taken = 0

    def request_of(number: int) -> tuple[str, bytes, str]:
        if together == 1:
            return f"/documents?label={time.time():.6f}", documents[number % len(documents)], "application/xml"
        lines = (
            json.dumps({"xml": texts[place % len(texts)], "label": f"{time.time():.6f}"})
            for place in range(number * together, (number + 1) * together)
        )
        return "/documents", "\n".join(lines).encode(), "application/x-ndjson"

    async def work(connection: Connection) -> None:
        nonlocal taken
        while (now := time.perf_counter()) - started < seconds:
            number, taken = taken, taken + 1
            if rate:
                await asyncio.sleep(max(0.0, started + number / rate - now))
            path, body, kind = request_of(number)
            begun = time.perf_counter()
            status, answer = await connection.request("POST", path, body, kind)
            if status != 202:
                raise RuntimeError(f"{status} {answer!r}")
            answers.append(time.perf_counter() - begun)

    await asyncio.gather(*(work(connection) for connection in connections))
    for connection in connections:
        connection.writer.close()
    return len(answers) * together, answers


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


PURPOSE = re.compile(r'^xsift_thread_cpu_seconds\{purpose="(.+?)"\} (\S+)', re.MULTILINE)


async def thread_seconds(control: Connection) -> dict[str, float]:
    """CPU seconds of the server by what its threads are for."""
    _, text = await control.request("GET", "/metrics")
    return {purpose: float(seconds) for purpose, seconds in PURPOSE.findall(text.decode())}


def milliseconds(values: Sequence[float]) -> list[str]:
    return [f"{percentile(values, share) * 1000:.1f}" for share in (0.5, 0.99)] + [
        f"{max(values, default=0) * 1000:.0f}"
    ]


async def _measure(url: str, documents: Sequence[bytes], pid: int, scale: float) -> None:
    control = await Connection(url).open()
    probe = {"xpath": "/nitf", "subscriber": "probe"}
    await control.request("PUT", "/subscriptions/probe", json.dumps(probe).encode(), "application/json")
    answers = [
        json.loads((await control.request("POST", "/documents?wait=matches", document))[1])
        for document in documents[:100]
    ]
    matches = [len(answer["matches"]) for answer in answers]
    print(f"  matches a document: {statistics.mean(matches):.1f}, deliveries as many or fewer\n")
    listener = Listener(url, "probe")
    await listener.start()
    rows, shares = [], []
    seconds = SECONDS * min(1.0, max(0.2, scale))
    for name, rate, together in (
        ("500 a second", 500, 1),
        ("as fast as it goes", 0, 1),
        (f"likewise, {TOGETHER} in a request", 0, TOGETHER),
    ):
        await asyncio.sleep(3)
        listener.delays.clear()
        threads = await thread_seconds(control)
        cpu, began = cpu_seconds(pid), time.perf_counter()
        own = time.process_time()
        stored, answered = await publish_at(url, documents, rate, seconds, together)
        passed = time.perf_counter() - began
        used, own = cpu_seconds(pid) - cpu, time.process_time() - own
        now = await thread_seconds(control)
        shares.append([name, *(f"{(now.get(who, 0) - threads.get(who, 0)) / stored * 1e6:,.0f}" for who in THREADS)])
        await asyncio.sleep(1)
        rows.append(
            [
                name,
                f"{stored / passed:,.0f}",
                *milliseconds(answered),
                *milliseconds(listener.delays),
                f"{used / stored * 1e6:,.0f}",
                f"{own / stored * 1e6:,.0f}",
            ]
        )
    columns = [
        "stored/s",
        "answer p50 ms",
        "p99",
        "max",
        "event p50 ms",
        "p99",
        "max",
        "server CPU µs/doc",
        "client's",
    ]
    table(["published", *columns], rows)
    print("\n  the server's CPU by what its threads are for, µs a document:")
    table(["published", *THREADS], shares)
    print("\n  where the time goes (the server's own histograms, upper bounds):")
    status = json.loads((await control.request("GET", "/status"))[1])
    for name, facts in status["seconds"].items():
        p50, p99 = (facts.get(share, 0) * 1000 for share in ("p50", "p99"))
        print(f"    {name:8} p50 {p50:g} ms, p99 {p99:g} ms, {facts['count']:,.0f}")
    await _import_meanwhile(url, documents, int(1_000_000 * scale), listener)
    listener.stop()


async def _import_meanwhile(url: str, documents: Sequence[bytes], number: int, listener: Listener) -> None:
    """An import of many while publishing goes on at 100 a second."""
    lines = await asyncio.to_thread(import_lines, number, 10_000_000, 2)
    listener.delays.clear()
    importing = asyncio.create_task(asyncio.to_thread(put_all, url, lines))
    answered: list[float] = []
    stored = 0
    while not importing.done():
        more, times = await publish_at(url, documents, 100, 2.0)
        stored += more
        answered += times
    seconds, report = await importing
    print(
        f"\n  import of {report['added']:,} more while 100 documents a second are published: {seconds:.1f} s; "
        f"{stored:,} documents stored, the longest answer took {max(answered):.2f} s "
        f"(p99 {percentile(answered, 0.99):.2f} s)"
    )
    await _add_late(url, documents[0])


async def _add_late(url: str, document: bytes) -> None:
    """Subscriptions that are added to the set as it is now, each published to at once."""
    control = await Connection(url).open()
    answered, matched = [], []
    for number in range(ADDED_LATE):
        await asyncio.sleep(0.1 if number % 2 else 1.5)  # one while the index rests, one right after another
        told = {"xpath": f"/nitf[not(late{number})]/head", "subscriber": "probe"}
        begun = time.perf_counter()
        status, _ = await control.request(
            "PUT", f"/subscriptions/late{number}", json.dumps(told).encode(), "application/json"
        )
        answered.append(time.perf_counter() - begun)
        _, answer = await control.request("POST", "/documents?wait=matches", document)
        matched.append(time.perf_counter() - begun)
        ids = {match["id"] for match in json.loads(answer)["matches"]}
        if status != 201 or f"late{number}" not in ids:
            raise RuntimeError(f"late{number} is not matched by the next document")
    print(
        f"  one more on top, {ADDED_LATE} times: answered after {' / '.join(milliseconds(answered))} ms "
        f"(p50 / p99 / max); a document that was published then, and matched it, after "
        f"{' / '.join(milliseconds(matched))} ms"
    )
