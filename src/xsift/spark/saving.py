"""Matchers saved in files of this machine, on their way to the workers."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xsift.matching import Matcher

__all__ = ["own_folder", "save_matcher"]

MAPPED_ENGINES = ("sift",)  # whose index is used where it lies in the file


def save_matcher(matcher: Matcher) -> tuple[Path, int]:
    """A matcher saved in a file, and what a worker holds that loads it: the file, which workers of a machine share,
    and what an engine makes anew from it."""
    handle, name = tempfile.mkstemp(dir=own_folder())
    os.close(handle)
    matcher.save(name)
    anew = 0 if matcher.engine in MAPPED_ENGINES else sum(matcher.memory().values())
    return Path(name), os.path.getsize(name) + anew


@cache
def own_folder() -> Path:
    """A folder of this process, which goes when it ends."""
    folder = tempfile.mkdtemp(prefix="xsift-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
