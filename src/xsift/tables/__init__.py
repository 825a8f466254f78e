"""Subscription sets that last: a table with versions, which anyone may change and every matcher, stream and service
can follow.

    table = SubscriptionTable.create("alerts", namespaces={"n": "urn:news"})
    table.add([("alice", "//n:hl1[contains(., 'Spark')]")])
    table.as_of(1)

- `table.py`: SubscriptionTable. `rows.py`: what people give, as rows, checked. `delta.py`: the same rows as a Delta
  Lake table, on a disk or an object store. `places.py`: how a table is named. `conversion.py`: the old format.
- `follower.py`: a set in memory that keeps up with a table.

No JVM is needed: Delta Lake is read and written by delta-rs (the package `deltalake`). It is large, and whoever only
needs a folder of files (`folders.py`: Spark's workers) does not load it.
"""

from __future__ import annotations

import importlib.util
from importlib import import_module
from typing import TYPE_CHECKING, Any

from xsift.errors import XsiftError

if importlib.util.find_spec("deltalake") is None:
    raise XsiftError("no-deltalake", "subscription tables need deltalake", hint="pip install 'xsift[tables]'")

if TYPE_CHECKING:
    from xsift.tables.follower import Follower
    from xsift.tables.places import is_table, split_version
    from xsift.tables.table import Diff, SubscriptionTable, Version

__all__ = ["Diff", "Follower", "SubscriptionTable", "Version", "is_table", "split_version"]

_PLACES = {
    "Diff": "table",
    "Follower": "follower",
    "SubscriptionTable": "table",
    "Version": "table",
    "is_table": "places",
    "split_version": "places",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
