"""The machine and the software that numbers come from: every stored run states them."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lxml import etree

__all__ = ["added_text", "cores_text", "cpu_seconds", "described", "load"]


def described() -> dict[str, Any]:
    """Processor, memory, system, versions, and the commit if the code is run from its repository."""
    return {
        "processor": _line("/proc/cpuinfo", "model name") or platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_bytes": _memory_bytes(),
        "system": platform.platform(),
        "python": sys.version.split()[0],
        "xsift": _version("xsift") or "from source",
        "numpy": _version("numpy"),
        "lxml": _version("lxml"),
        "libxml2": ".".join(map(str, etree.LIBXML_VERSION)),
        "libxslt": ".".join(map(str, etree.LIBXSLT_VERSION)),
        "commit": _commit(),
    }


def cores_text(machine: Mapping[str, Any]) -> str:
    """On how many of its cores a run was, for people."""
    return f"{machine['cores']} core{'' if machine['cores'] == 1 else 's'}"


def added_text(run: Mapping[str, Any]) -> str:
    """Which figures of a run were measured later than the others, for people; "" if none was."""
    notes = run.get("added", ())
    return "".join(f"; {', '.join(note['figures'])} on {note['measured']}{_with(note['commit'])}" for note in notes)


def _with(commit: str) -> str:
    return f" with commit {commit}" if commit else ""


def cpu_seconds(process: int) -> float | None:
    """What a process has used so far; None where the system does not tell."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None


def load() -> float:
    """How many processes wanted to run, on average over the last minute; 0 where the system does not tell."""
    try:
        return round(os.getloadavg()[0], 2)
    except (OSError, AttributeError):
        return 0.0


def _line(path: str, key: str) -> str:
    try:
        with open(path, encoding="utf-8") as lines:
            return next((line.partition(":")[2].strip() for line in lines if line.startswith(key)), "")
    except OSError:
        return ""


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _commit() -> str:
    """The commit that the code is at, with a + if files were changed since; "" outside a repository."""
    here = Path(__file__).parent

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(here), *arguments], capture_output=True, text=True, timeout=10)
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        if not git("ls-files", "--error-unmatch", Path(__file__).name):
            return ""  # an installed copy inside some other repository
        return git("rev-parse", "--short=12", "HEAD") + ("+" if git("status", "--porcelain", "--", "../..") else "")
    except (OSError, subprocess.SubprocessError):
        return ""
