"""The data in examples/: every subscription of it is satisfied by some document of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from xsift.cli import main

DATA = Path(__file__).parent.parent.parent / "examples" / "data"


def test_every_subscription_of_the_examples_matches_something(capsys: pytest.CaptureFixture[str]) -> None:
    sets = [
        (["-s", str(DATA / "news.csv")], str(DATA / "news")),
        (["-s", str(DATA / "invoices.tsv"), "--namespaces", str(DATA / "ubl.toml")], str(DATA / "invoices")),
    ]
    for options, documents in sets:
        assert main(["match", *options, "--kind", "rows", documents]) == 0
        matched = {line.split("\t")[1] for line in capsys.readouterr().out.splitlines()}
        assert main(["check", *(options[1:]), "--list"]) == 0
        listed = re.findall(r"^([a-z-]+): ", capsys.readouterr().out, re.M)
        assert matched == set(listed)
