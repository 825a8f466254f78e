"""The threads of this process: what each takes when the server is busy, and how one gives way to the others."""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path

__all__ = ["breathe", "cpu_seconds"]

TASKS = Path("/proc/self/task")
PREFIX = "xsift-"


def breathe() -> None:
    """Lets other threads have the interpreter: between two pieces of work that nobody waits for.

    Python has a thread give way that computes for long. One that lets go of the interpreter all the time and takes it
    back at once, as SQLite's driver does for every row, it never asks, and the others wait until it is done."""
    time.sleep(0.001)


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
