"""Digests of engines' code: a point that was measured with other code is measured again.

What counts is what is written, not what a compiler made of it on some machine: a run can go on after a rebuild, in
another folder, or on another day. Comments and docstrings do not count either. Where there are no sources, as in an
installed package, the compiled modules themselves are taken.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from functools import cache
from pathlib import Path

import xsift
from xsift.engines import engine_class

__all__ = ["code_digest"]

SOURCES = (".py", ".pyx", ".pxd", ".hpp")
ENGINES = Path(xsift.__file__).parent / "engines"
NATIVE = Path(xsift.__file__).parent / "native"
DOCSTRING = re.compile(r'"""(?:[^\\]|\\.)*?"""', re.DOTALL)
PYTHON_COMMENT = re.compile(r"(^|\s)#.*")
C_COMMENT = re.compile(r"(^|\s)//.*")


@cache
def code_digest(engine: str) -> str:
    """Of an engine, of the classes that it derives from, and of the tables that all engines use."""
    digest = hashlib.sha256()
    for path in sorted({*_files(NATIVE, ""), *(path for module in _modules(engine) for path in _sources(module))}):
        digest.update(path.name.encode())
        digest.update(_written(path))
    return digest.hexdigest()[:16]


def _modules(engine: str) -> list[Path]:
    found = (inspect.getmodule(kind) for kind in engine_class(engine).__mro__)
    return [Path(str(module.__file__)) for module in found if module and module.__name__.startswith("xsift.")]


def _sources(module: Path) -> list[Path]:
    """The folder of an engine, or the files of a module that several engines share; the module if there are none."""
    stem = module.name.split(".")[0] if module.parent == ENGINES else ""
    return _files(module.parent, stem) or [module]


def _files(folder: Path, stem: str) -> list[Path]:
    found = [path for path in folder.iterdir() if path.suffix in SOURCES and stem in ("", path.stem)]
    return found if any(path.suffix == ".pyx" for path in found) or folder == NATIVE else []


def _written(path: Path) -> bytes:
    """What is in a file, without what is only said."""
    if path.suffix not in SOURCES:
        return path.read_bytes()
    comment = C_COMMENT if path.suffix == ".hpp" else PYTHON_COMMENT
    lines = (comment.sub("", line).rstrip() for line in DOCSTRING.sub("", path.read_text()).splitlines())
    return "\n".join(line for line in lines if line).encode()
