"""A watched folder: a file that is put into it is published, and moved to `done/` or `broken/` inside the folder.

A file is taken once its size and time have not changed between two looks, and never if its name begins with a dot: so
whoever writes slowly writes to `.name` and renames, or is simply waited for. The idempotency key of a file is its
name, time and size: if the server dies between publishing and moving, the file is not published twice.
"""

from __future__ import annotations

import gzip
import hashlib
import logging
import os
import threading
import zlib
from pathlib import Path

from xsift.errors import StorageError, XsiftError
from xsift.service.publishing import Incoming, Publisher
from xsift.service.settings import FolderSettings

__all__ = ["FolderIntake"]

log = logging.getLogger("xsift.service.intake")


class FolderIntake:
    """Watches a folder, on a thread of its own."""

    def __init__(self, settings: FolderSettings, publisher: Publisher, largest: int) -> None:
        self._settings = settings
        self._publisher = publisher
        self._largest = largest
        self._folder = Path(settings.path)
        self._seen: dict[str, tuple[int, int]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="xsift-folder", daemon=True)

    def start(self) -> None:
        for name in ("done", "broken"):
            (self._folder / name).mkdir(parents=True, exist_ok=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(self._settings.poll_seconds):
            try:
                self._look()
            except Exception:
                log.exception("the folder could not be read; it is tried again")

    def _look(self) -> None:
        there: dict[str, tuple[int, int]] = {}
        for entry in os.scandir(self._folder):
            if entry.is_file(follow_symlinks=False) and not entry.name.startswith("."):
                facts = entry.stat()
                there[entry.name] = (facts.st_mtime_ns, facts.st_size)
        settled = sorted(name for name, facts in there.items() if self._seen.get(name) == facts)
        self._seen = there
        for name in settled:
            if self._stop.is_set():
                return
            try:
                self._take(name, there[name])
            except OSError as error:  # somebody took it away, or it cannot be moved: the others have their turn
                told = {"file": _printable(name), "reason": str(error)}
                log.warning("a file could not be moved; it is tried again", extra=told)

    def _take(self, name: str, facts: tuple[int, int]) -> None:
        try:
            incoming = Incoming(self._read(self._folder / name), _printable(name))
            receipt = self._publisher.publish_blocking(
                self._settings.owner, [incoming], key=_key(name, facts), source="folder"
            )[0]
            error = receipt.error
        except (OSError, EOFError, zlib.error) as problem:
            error = XsiftError("unreadable-file", f"{_printable(name)} cannot be read: {problem}")
        except XsiftError as problem:
            if isinstance(problem, StorageError) or problem.code == "overloaded":
                return  # it stays where it is, and is tried again
            error = problem
        if error is not None:
            log.warning("a file was refused", extra={"file": _printable(name), "reason": str(error)})
        self._move(name, "broken" if error is not None else "done")

    def _read(self, path: Path) -> bytes:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
            body = file.read(self._largest + 1)
        if len(body) > self._largest:
            raise OSError(f"it is larger than {self._largest:,} bytes")
        return body

    def _move(self, name: str, to: str) -> None:
        os.rename(self._folder / name, _free(self._folder / to, name))
        self._seen.pop(name, None)


def _free(folder: Path, name: str) -> Path:
    """A name that no file there has: NAME, NAME.2, NAME.3 …; found in a few looks, however many there are."""
    if not (folder / name).exists():
        return folder / name
    taken, free = 1, 2
    while (folder / f"{name}.{free}").exists():
        taken, free = free, 2 * free
    while free - taken > 1:
        middle = (taken + free) // 2
        if (folder / f"{name}.{middle}").exists():
            taken = middle
        else:
            free = middle
    return folder / f"{name}.{free}"


def _printable(name: str) -> str:
    """The name of a file as text: names are bytes, and need not be text in any encoding."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _key(name: str, facts: tuple[int, int]) -> str:
    """The idempotency key of a file, as long for any name."""
    text = f"{facts[0]}:{facts[1]}:{name}".encode("utf-8", "surrogateescape")
    return f"folder:{hashlib.sha256(text).hexdigest()}"
