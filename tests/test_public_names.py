"""What is exported is what is meant to be."""

from __future__ import annotations

import importlib
import types

import pytest

import xsift


@pytest.mark.parametrize(
    "name", ["xsift", "xsift.xpath", "xsift.document", "xsift.engines", "xsift.workload", "xsift.tables"]
)
def test_all_is_what_there_is(name: str) -> None:
    module = importlib.import_module(name)
    for exported in module.__all__:
        assert hasattr(module, exported)
    public = {
        found
        for found, value in vars(module).items()
        if not found.startswith("_")
        and not isinstance(value, types.ModuleType)
        and (getattr(value, "__module__", "") or "").startswith(module.__name__)
    }
    assert public <= set(module.__all__)


def test_engines_are_described() -> None:
    for engine in xsift.list_engines():
        assert engine.name
        assert engine.paper
        assert engine.takes
        assert engine.wins
        assert engine.caveat
