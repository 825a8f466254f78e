"""A set that follows a table has what the table has."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from xsift.tables import Follower, SubscriptionTable, delta


def test_a_follower_has_what_the_table_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta, "MERGE_FILES", 9)
    rng = random.Random(2)
    table = SubscriptionTable.create(tmp_path / "table")
    follower = Follower(SubscriptionTable(tmp_path / "table"))
    assert not follower.follow()
    assert follower.matcher().match("<a/>") == []
    for step in range(60):
        ids = set(table.as_of()["id"].to_pylist())
        if rng.random() < 0.6 or not ids:
            table.add([(f"s{rng.randrange(12)}", f"//{rng.choice('abc')}") for _ in range(1)])
        elif rng.random() < 0.8:
            table.remove(rng.sample(sorted(ids), 1))
        elif rng.random() < 0.5:
            table.add_namespaces({f"n{step}": "urn:n"})
            table.add([(f"n{step}", f"//n{step}:b")])
        else:
            table.compact(forget_before=table.version())
        if rng.random() < 0.5:
            follower.follow()
            assert not follower.follow()
            assert sorted(follower.subscriptions) == sorted(table.as_of()["id"].to_pylist())
            document = "<a><b/><b xmlns='urn:n'/></a>"
            wanted = table.subscriptions().matcher().match(document)
            assert sorted(follower.matcher().match(document)) == sorted(wanted)
            assert follower.matcher() is follower.matcher()
    follower.follow()
    assert follower.version == table.version()
