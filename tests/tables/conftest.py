"""Where the tests of this room put their tables: a folder, and an object store that another process plays (moto)."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("deltalake")


@pytest.fixture(scope="session")
def object_store() -> Iterator[dict[str, str]]:
    """The storage options of an S3 server with a bucket `tables`. It honours conditional puts, as S3 does."""
    pytest.importorskip("moto.server")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, str(Path(__file__).with_name("object_store.py")), str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _make_bucket(url, server)
        yield {
            "AWS_ENDPOINT_URL": url,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
        }
    finally:
        server.kill()
        server.wait()


def _make_bucket(url: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(urllib.request.Request(f"{url}/tables", method="PUT"), timeout=10).read()
            return
        except OSError:
            assert server.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)


@pytest.fixture(params=["disk", "object store"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, dict[str, str]]:
    """A path or URL that is free, and its storage options."""
    if request.param == "disk":
        return str(tmp_path / "table"), {}
    return f"s3a://tables/{tmp_path.name}", request.getfixturevalue("object_store")
