"""The reference (docs/reference) has every public name, and every public name says what it is."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PAGES = Path(__file__).parent.parent / "docs" / "reference"
MODULES = ["xsift", "xsift.tables", "xsift.spark"]


def public_names(module: str) -> list[str]:
    pytest.importorskip("pyspark" if module == "xsift.spark" else "lxml")
    return [name for name in importlib.import_module(module).__all__ if name != "__version__"]


def documented() -> list[str]:
    return [
        name for page in sorted(PAGES.glob("*.md")) for name in re.findall(r"^::: (\S+)$", page.read_text(), re.M)
    ]


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_in_the_reference(module: str) -> None:
    assert {f"{module}.{name}" for name in public_names(module)} <= set(documented())


def test_nothing_is_there_twice() -> None:
    assert len(documented()) == len(set(documented()))


def parts(kind: type) -> Iterator[tuple[str, str]]:
    """The public methods and properties of a class, with their docstrings."""
    for name, value in vars(kind).items():
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if not name.startswith("_") and (inspect.isfunction(function) or isinstance(function, property)):
            yield name, function.__doc__ or ""


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_says_what_it_is(module: str) -> None:
    for name in public_names(module):
        value = getattr(importlib.import_module(module), name)
        assert len(value.__doc__ or "") > 20, name
        assert not (value.__doc__ or "").startswith(f"{name}("), f"{name} has no docstring but what dataclass made"
        if inspect.isclass(value):
            assert [f"{name}.{part}" for part, text in parts(value) if len(text) < 15] == []
