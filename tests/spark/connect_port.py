"""The port of Spark Connect: in local mode it is always the same one, so tests that need it wait for each other."""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["connect_port"]


@contextmanager
def connect_port() -> Iterator[None]:
    """Tests run in several processes, each with some of the files."""
    with Path(tempfile.gettempdir(), "xsift-spark-connect.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
