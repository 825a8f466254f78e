"""What the threads of this process take: who works when the server is busy."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

__all__ = ["cpu_seconds"]

TASKS = Path("/proc/self/task")
PREFIX = "xsift-"


def cpu_seconds() -> dict[str, float]:
    """CPU seconds by what threads are for: `loop` (HTTP, streams), `match`, `writer`, `read` and so on. Linux tells;
    elsewhere there is nothing."""
    found: dict[str, float] = {}
    for thread in threading.enumerate():
        with contextlib.suppress(OSError, IndexError, ValueError):
            nanoseconds = int((TASKS / str(thread.native_id) / "schedstat").read_text().split()[0])
            purpose = _purpose(thread)
            found[purpose] = found.get(purpose, 0.0) + nanoseconds / 1e9
    return found


def _purpose(thread: threading.Thread) -> str:
    if thread is threading.main_thread():
        return "loop"
    if not thread.name.startswith(PREFIX):
        return "other"
    return thread.name.removeprefix(PREFIX).rstrip("0123456789").rstrip("-_")
