"""Paths from globs. `**` does not follow links to folders, which could lead round in circles, and nothing is found
twice: what is below a folder that was found is read with it.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from pathlib import PurePath

__all__ = ["expanded", "is_glob"]


def is_glob(source: str) -> bool:
    """Whether a source is no path but a pattern of some."""
    return glob.has_magic(source) and not os.path.lexists(source)


def expanded(pattern: str) -> Iterator[str]:
    """The files and folders that a glob stands for, by name."""
    folders: set[PurePath] = set()
    for path in sorted(_matches(pattern)):
        if folders.isdisjoint(PurePath(path).parents):
            if os.path.isdir(path):
                folders.add(PurePath(path))
            yield path


def _matches(pattern: str) -> set[str]:
    parts = pattern.split("/")
    if "**" not in parts:
        return set(glob.glob(pattern))
    place = parts.index("**")
    above, below = "/".join([*parts[:place], ""]), "/".join(parts[place + 1 :])
    bases = glob.glob(above) if above else [""]
    if not below:
        return {base or "." for base in bases}
    return {path for base in bases for folder in _folders(base) for path in _matches(glob.escape(folder) + below)}


def _folders(base: str) -> Iterator[str]:
    """A folder and all below it but hidden ones, with a slash behind."""
    yield base
    for folder, inner, _ in os.walk(base or "."):
        inner[:] = [name for name in inner if not name.startswith(".")]
        for name in inner:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                yield os.path.join(path if base else os.path.relpath(path), "")
