"""Settings for all tests. None depends on how fast the machine is: they also run with sanitizers and line counts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("xsift", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("xsift")

# Rooms whose tests share something large that is started once: a Spark session, a browser.
TOGETHER = ("spark", "console")


@pytest.hookimpl(tryfirst=True)  # xdist reads the marks in a hook of its own
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With `pytest -n 2`: who runs what. A file's tests stay together, and so do those of a room of `TOGETHER`.

    Such rooms take longest, and so are begun first.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    tests = Path(__file__).parent
    for item in items:
        file = item.path.relative_to(tests)
        group = file.parts[0] if file.parts[0] in TOGETHER else file.as_posix()
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: item.path.relative_to(tests).parts[0] not in TOGETHER)
