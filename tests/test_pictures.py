"""The pictures of the docs: as their script draws them from the engines, and shown on the page with the papers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import xsift
from tools.docs.structures import FOLDER, PICTURES, draw

PAGE = Path(__file__).parent.parent / "docs" / "structures.md"


@pytest.mark.parametrize("name", PICTURES)
def test_picture_is_what_the_engine_says_of_itself(name: str) -> None:
    stored = (FOLDER / f"structure-{name}.svg").read_text(encoding="utf-8")
    assert stored == draw(name), "python -m tools.docs.structures draws it anew; look at it"
    ElementTree.fromstring(stored)
    assert f"pictures/structure-{name}.svg" in PAGE.read_text(encoding="utf-8")


def test_every_engine_has_its_section_and_its_paper() -> None:
    sections = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.M | re.S))
    for engine in xsift.list_engines():
        [text] = [text for title, text in sections.items() if engine.name in title.split(", ")]
        assert "(pictures/structure-" in text
        if engine.name not in ("reference", "sift"):
            assert engine.paper in " ".join(text.split())


def test_pictures_fetch_nothing_and_can_be_read_in_the_dark() -> None:
    for path in FOLDER.glob("*.svg"):
        text = path.read_text(encoding="utf-8")
        assert re.findall(r"https?://[^\"']*", text) == ["http://www.w3.org/2000/svg"] * text.count("xmlns="), path
        assert "prefers-color-scheme:dark" in text, path


def test_picture_of_the_readme_is_drawn_from_the_stored_numbers() -> None:
    from benchmarks.picture import draw as draw_speed

    measured = json.loads((FOLDER / "speed.json").read_text(encoding="utf-8"))
    assert (FOLDER / "speed.svg").read_text(encoding="utf-8") == draw_speed(measured)
    assert measured["machine"]
    assert {"sift", "loop", "yfilter"} <= set(measured["points"][0])
