"""The examples in README.md and docs/ run, and print what they say: a python block followed by a text block."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
PAGES = sorted(
    page for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")] if "```python" in page.read_text()
)

TEXTS = sorted(page for folder in (ROOT, ROOT / "docs", ROOT / "examples") for page in folder.glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_of_page(page: Path) -> None:
    names: dict[str, object] = {}
    printed = ""
    for language, text in BLOCK.findall(page.read_text()):
        if language == "python":
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(text, str(page), "exec"), names)
            printed = output.getvalue()
        elif language == "text" and printed:
            assert printed == text
            printed = ""
    assert printed == "", "the last example prints something that the page does not show"


def test_there_are_pages_with_examples() -> None:
    assert [page.name for page in PAGES if page.name == "README.md"]


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.name)
def test_prose_is_wrapped(page: Path) -> None:
    """At 100 columns; tables, code and headings aside. tools/wrap-docs does it."""
    prose = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.M | re.S)
    lines = [line for line in prose.split("\n") if not line.startswith(("|", "#", "    "))]
    assert [line for line in lines if len(line) > 100] == []
