"""One name for one thing: no two classes of the package are called the same, kernels included."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src" / "xsift"
CLASS = re.compile(r"^(?:cdef )?class (\w+)", re.M)


def places_by_class(texts: dict[str, str]) -> dict[str, set[str]]:
    """Where each class is. A kernel's .pyx, .pxd and .pyi are one place."""
    places: dict[str, set[str]] = defaultdict(set)
    for path, text in texts.items():
        for name in CLASS.findall(text):
            places[name].add(str(Path(path).with_suffix("")))
    return places


def shared(texts: dict[str, str]) -> dict[str, list[str]]:
    return {name: sorted(found) for name, found in places_by_class(texts).items() if len(found) > 1}


def test_no_two_classes_share_a_name() -> None:
    suffixes = ("py", "pyx", "pxd", "pyi")
    files = [path for suffix in suffixes for path in PACKAGE.rglob(f"*.{suffix}")]
    assert shared({str(path.relative_to(PACKAGE)): path.read_text() for path in files}) == {}


def test_a_shared_name_is_seen() -> None:
    kernel = {"a/k.pyx": "cdef class Plan:", "a/k.pxd": "cdef class Plan:", "a/k.pyi": "class Plan: ..."}
    assert shared(kernel) == {}
    assert shared({**kernel, "b/plan.py": "x = 1\nclass Plan(Base):"}) == {"Plan": ["a/k", "b/plan"]}
