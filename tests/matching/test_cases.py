"""The engine-independent cases of tests/cases/*.toml, on every engine, and on lxml, which is right by definition."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from lxml import etree

import xsift
from xsift.engines import ENGINES
from xsift.xpath import parse, to_text


@dataclass
class Case:
    name: str
    document: str
    matches: list[str]
    misses: list[str]
    namespaces: dict[str, str] = field(default_factory=dict)
    ordered: bool = False


def cases() -> list[Case]:
    found = []
    for path in sorted((Path(__file__).parent.parent / "cases").glob("*.toml")):
        for case in tomllib.loads(path.read_text())["case"]:
            found.append(Case(**{**case, "name": f"{path.stem}: {case['name']}"}))
    return found


def subscribed(case: Case) -> xsift.Subscriptions:
    subscriptions = xsift.Subscriptions(namespaces=case.namespaces)
    for xpath in [*case.matches, *case.misses]:
        subscriptions.add(xpath, xpath, ordered=case.ordered)
    return subscriptions


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
@pytest.mark.parametrize("engine", list(ENGINES))
def test_case_on_engine(case: Case, engine: str) -> None:
    matched = subscribed(case).matcher(engine).match(case.document)
    assert matched == case.matches


@pytest.mark.parametrize("case", [case for case in cases() if not case.ordered], ids=lambda case: case.name)
def test_case_on_lxml(case: Case) -> None:
    tree = etree.fromstring(case.document).getroottree()
    for xpath in [*case.matches, *case.misses]:
        expression = to_text(parse(xpath, case.namespaces), verification=True)
        held = bool(etree.XPath(f"boolean({expression})", namespaces=case.namespaces)(tree))
        assert held == (xpath in case.matches), xpath
