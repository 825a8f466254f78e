"""Settings for all tests. None depends on how fast the machine is: they also run with sanitizers and line counts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("xsift", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("xsift")

# Rooms that start something large first: a Spark session, a browser. They take longest.
SLOW = ("spark", "console")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With `pytest -n 2 --dist loadfile` the slow rooms are begun first, so that nobody waits for them at the end."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        tests = Path(__file__).parent
        items.sort(key=lambda item: item.path.relative_to(tests).parts[0] not in SLOW)
