"""One server for the tests that do not break theirs, and a client that is the admin of an owner of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import httpx
import pytest

import xsift
from tests.service.running import RunningServer, running

SETTINGS = """
[webhooks]
allow_networks = ["127.0.0.0/8"]
first_retry_seconds = 0.05
longest_retry_seconds = 0.2
attempts = 4
timeout_seconds = 1
breaker_failures = 20
breaker_seconds = 0.5
[limits]
body_bytes = 1000000
upload_bytes = 50000000
[matching]
slow_milliseconds = 50
"""
OWNERS = itertools.count(1)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running(tmp_path_factory.mktemp("server"), settings=SETTINGS) as server:
        yield server


@pytest.fixture
def owner() -> str:
    """An owner whom no other test has."""
    return f"owner{next(OWNERS)}"


@pytest.fixture
def client(server: RunningServer, owner: str) -> Iterator[xsift.Client]:
    with server.client(owner=owner) as client:
        yield client


@pytest.fixture
def http(server: RunningServer, owner: str) -> Iterator[httpx.Client]:
    """Plain HTTP, for what the client does not do."""
    with httpx.Client(base_url=server.url, params={"owner": owner}, timeout=30) as http:
        yield http
