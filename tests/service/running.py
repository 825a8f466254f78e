"""A real server in a process of its own, for the tests of the service."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import xsift

START_SECONDS = 240.0
STOP_SECONDS = 120.0


class RunningServer:
    """`xsift serve` on a free port."""

    def __init__(self, folder: Path, *, settings: str = "", options: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.log = folder / "server.log"
        self._config = folder / "settings.toml"
        self._config.write_text(settings)
        self._options = options
        self.process: subprocess.Popen[bytes] | None = None
        self.url = ""
        self.port = 0

    def start(self, *, preload: dict[str, str] | None = None) -> RunningServer:
        """Starts it, on the same port as the last time, and waits until it is ready."""
        with open(self.log, "ab") as log:
            start = log.tell()
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "xsift.cli", "serve", "--config", str(self._config)),
                    *("--data", str(self.data), "--port", str(self.port), "--log-format", "json", *self._options),
                ],
                stderr=log,
                stdout=log,
                env={**os.environ, **(preload or {})},
            )
        deadline = time.monotonic() + START_SECONDS
        while not self.url or self.port == 0 or not self._answers():
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise RuntimeError(f"the server did not start:\n{self.log.read_text()[-4000:]}")
            self._find_url(start)
            time.sleep(0.05)
        return self

    def _find_url(self, start: int) -> None:
        for line in self.log.read_bytes()[start:].decode("utf-8", "replace").splitlines():
            if '"serving"' in line:
                self.url = json.loads(line)["url"]
                self.port = int(self.url.rpartition(":")[2])

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def kill(self) -> None:
        """kill -9"""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """Asks it to stop; its exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_SECONDS)

    def records(self) -> list[dict[str, Any]]:
        """What it logged."""
        lines = self.log.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def client(self, **options: Any) -> xsift.Client:
        return xsift.Client(self.url, **options)

    def metric(self, name: str) -> float:
        """The sum of a metric's samples."""
        with urllib.request.urlopen(f"{self.url}/metrics") as answer:
            text = answer.read().decode()
        found = [line for line in text.splitlines() if line.partition("{")[0].partition(" ")[0] == name]
        return sum(float(line.rpartition(" ")[2]) for line in found)


@contextmanager
def running(folder: Path, *, settings: str = "", options: tuple[str, ...] = ()) -> Iterator[RunningServer]:
    """A server for the time of a block; it must end well."""
    folder.mkdir(parents=True, exist_ok=True)
    server = RunningServer(folder, settings=settings, options=options).start()
    try:
        yield server
    finally:
        code = server.stop()
    assert code == 0, server.log.read_text()[-4000:]
    assert not [record for record in server.records() if "exception" in record], server.log.read_text()[-4000:]


def until(condition: Any, seconds: float = 20.0) -> Any:
    """Waits until something is true; returns it."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, "it did not become true in time"
        time.sleep(0.02)
