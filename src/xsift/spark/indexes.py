"""Compiled subscriptions on storage that all workers see: where a stream puts them, and where workers find them.

The naive way is `addArtifacts`, which a batch job uses: Spark then hands every file to every executor for as long as
the session lives, and none can be taken back. A stream whose subscriptions change adds files for ever. Here an index
is a file in the checkpoint, named by its content; a micro-batch names the set of indexes that it uses; what no batch
can need any more is deleted. Workers map a file of a shared file system where it is. From an object store they fetch
it once a machine, into a cache of bounded size.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import tempfile
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from xsift.errors import StorageError
from xsift.spark.routing import Part
from xsift.tables.folders import Folder, open_folder
from xsift.tables.places import is_local, location

if TYPE_CHECKING:
    from xsift.matching.matcher import Matcher

__all__ = ["IndexFolder", "IndexSet"]

FOLDER = "xsift-indexes"
CACHE_BYTES = 16 * 2**30  # of fetched files on a machine; the ones not used for longest go first
KEPT_SETS = 4


@dataclass(frozen=True)
class IndexSet:
    """The indexes that a micro-batch uses, and the version of the subscriptions that they are."""

    parts: tuple[Part, ...]
    version: int


_sets: OrderedDict[str, IndexSet] = OrderedDict()


@dataclass(frozen=True)
class IndexFolder:
    """The indexes of one query."""

    place: str
    storage_options: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, checkpoint: str, storage_options: Iterable[tuple[str, str]] = ()) -> IndexFolder:
        """The folder of the query with this checkpoint."""
        return cls(location(f"{checkpoint.rstrip('/')}/{FOLDER}"), tuple(storage_options))

    def _folder(self) -> Folder:
        return open_folder(self.place, dict(self.storage_options))

    # The driver

    def save(self, matcher: Matcher) -> Part:
        """Writes a matcher, unless it is there."""
        from xsift.spark.saving import save_matcher

        path, size_bytes = save_matcher(matcher)
        return Part(self.put(path, ".xsift"), size_bytes)

    def put(self, path: Path, suffix: str) -> str:
        """Moves a file there, unless one with its content is; returns its name, which is its digest."""
        name = f"{_digest(path)}{suffix}"
        folder = self._folder()
        if folder.holds(name):
            path.unlink()
        else:
            folder.put(path, name)
        return name

    def holds(self, *names: str) -> bool:
        """Whether all these files are there."""
        folder = self._folder()
        return all(folder.holds(name) for name in names)

    def write_note(self, name: str, content: bytes) -> None:
        """Writes a small file that is named by what it is for."""
        self._folder().write(name, content)

    def read_note(self, name: str) -> bytes | None:
        """The content of such a file."""
        return self._folder().read(name)

    def write_set(self, parts: Sequence[Part], version: int) -> str:
        """Writes which parts a version is; returns the name by which workers find it."""
        entries = [
            {"name": part.name, "size_bytes": part.size_bytes, "removed": _packed(part.removed)} for part in parts
        ]
        content = json.dumps({"version": version, "parts": entries}).encode()
        name = f"{hashlib.blake2b(content, digest_size=16).hexdigest()}.json"
        self._folder().write(name, content)
        return name

    def keep(self, names: Iterable[str]) -> None:
        """Deletes all files but these."""
        folder, kept = self._folder(), set(names)
        for name in folder.names():
            if name not in kept:
                folder.delete(name)

    # The workers

    def read_set(self, name: str) -> IndexSet:
        """The parts of a set. The last few are remembered by each worker."""
        if name not in _sets:
            content = self._folder().read(name)
            if content is None:
                raise StorageError("missing-index", f"{self.place}/{name} is not there")
            facts = json.loads(content)
            parts = [Part(e["name"], e["size_bytes"], _unpacked(e["removed"])) for e in facts["parts"]]
            _sets[name] = IndexSet(tuple(parts), facts["version"])
        _sets.move_to_end(name)
        while len(_sets) > KEPT_SETS:
            _sets.popitem(last=False)
        return _sets[name]

    def path_of(self, name: str) -> str:
        """Where an index is on this machine; it is fetched first if it has to be."""
        if is_local(self.place):
            return os.path.join(self.place, name)
        return str(_cached(self._folder(), name))


def _digest(path: Path, algorithm: str = "sha256") -> str:
    with path.open("rb") as file:  # processors know SHA-256: it takes less than half the time of BLAKE2
        return hashlib.file_digest(file, algorithm).hexdigest()[:32]


def _is_named(path: Path, name: str) -> bool:
    """Whether a file is what its name says. Those of older versions are named by BLAKE2."""
    return _digest(path) == name or _digest(path, "blake2b") == name


def _packed(rows: Any) -> str | None:
    return None if rows is None else base64.b64encode(zlib.compress(rows.astype("<i4").tobytes())).decode()


def _unpacked(text: str | None) -> Any:
    return None if text is None else np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<i4")


# The cache of a machine


def _cache() -> Path:
    folder = Path(tempfile.gettempdir(), f"xsift-cache-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.lstat().st_uid != os.getuid():  # somebody else made it, or where it leads: not ours to trust
        raise StorageError("bad-cache", f"{folder} belongs to another user", hint="set TMPDIR to another folder")
    return folder


def _cached(folder: Folder, name: str) -> Path:
    """A file of the cache. One worker fetches it, others that want it wait."""
    import fcntl

    target = _cache() / name
    with (_cache() / f".{name}.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.exists():
            os.utime(target)
            return target
        temporary = target.with_suffix(".part")
        folder.fetch(name, temporary)
        if not _is_named(temporary, name.partition(".")[0]):
            temporary.unlink()
            raise StorageError("damaged-index", f"{folder.place}/{name} is not what its name says")
        temporary.replace(target)
    _make_room(target)
    return target


def _make_room(newest: Path) -> None:
    """Deletes the files that were not used for longest until the cache is within its bound. Who has one mapped keeps
    it. Locks stay: who waits for one has to wait for the same file as all others."""
    entries = []
    for entry in os.scandir(newest.parent):
        with suppress(FileNotFoundError):  # another worker has named it anew, or made room too
            if not entry.name.endswith(".lock"):
                entries.append((entry.stat().st_mtime, entry.stat().st_size, Path(entry.path)))
    entries.sort()
    total = sum(size for _, size, _ in entries)
    for _, size, path in entries:
        if total <= CACHE_BYTES:
            return
        if path != newest:
            path.unlink(missing_ok=True)
            total -= size
