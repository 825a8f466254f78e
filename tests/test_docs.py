"""The examples in README.md and docs/ run as they stand, and print what they say.

- ```python: run in order, a page's blocks sharing their names; what they print is in the text block that follows.
- ```sh: likewise, by bash.
- ```console: a line with `$` is a command for bash (`>` lines continue it); what follows it is what it prints.

Each page has a folder of its own to write into, with examples/ in it. The examples that need a server (docs/serve.md,
docs/how-to/serve-others.md: sh and py blocks) are run in tests/service/test_pages.py.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import xsift
from xsift.cli import SUBCOMMANDS, _parser

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
WITH_SERVER = {"docs/serve.md", "docs/how-to/serve-others.md"}
RUN = ("python", "sh", "console")
SHOWN = ("text", "toml", "xml")

TEXTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")])


def blocks(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


ALL_PAGES = [ROOT / "README.md", ROOT / "examples" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [
    page
    for page in ALL_PAGES
    if any(language in RUN for language, _ in blocks(page)) and str(page.relative_to(ROOT)) not in WITH_SERVER
]


def commands(block: str) -> list[tuple[str, str]]:
    """The commands of a console block, and what each prints; "" where the page does not show it."""
    found: list[tuple[str, str]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
        elif line.startswith("> ") and not found[-1][1]:
            found[-1] = (f"{found[-1][0]}\n{line[2:]}", "")
        else:
            found[-1] = (found[-1][0], found[-1][1] + line + "\n")
    return found


def run_command(command: str, expected: str = "") -> str:
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr, f"{command}\n{done.stderr}"
    assert done.returncode in (0, 1, 3), f"{command}\n{done.stderr}"
    if expected:
        assert done.stdout == expected, f"{command}\n{done.stderr}"
    return done.stdout


def run_python(text: str, page: Path, names: dict[str, object]) -> str:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(text, str(page), "exec"), names)
    return output.getvalue()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which a page's examples run, with `xsift` to call."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "xsift"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m xsift.cli "$@"\n')
    program.chmod(0o755)
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONUTF8", "1")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_of_page(page: Path, place: Path) -> None:
    names: dict[str, object] = {}
    printed = ""
    for language, text in blocks(page):
        if language in RUN:
            assert printed == "", "an example prints something that the page does not show"
        if language == "python":
            printed = run_python(text, page, names)
        elif language == "sh":
            printed = run_command(text)
        elif language == "console":
            for command, expected in commands(text):
                run_command(command, expected)
        elif language == "text" and printed:
            assert printed == text
            printed = ""
    assert printed == "", "the last example prints something that the page does not show"


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_block_escapes(page: Path) -> None:
    """A block in a language that nobody runs would be an example that is not tested."""
    known = {*RUN, *SHOWN, *(("py",) if str(page.relative_to(ROOT)) in WITH_SERVER else ())}
    text = page.read_text(encoding="utf-8")
    assert {language for language, _ in blocks(page)} <= known
    assert len(re.findall(r"^ *```", text, re.M)) == 2 * len(blocks(page))


def test_there_are_pages_with_examples() -> None:
    names = {str(page.relative_to(ROOT)) for page in PAGES}
    assert {"README.md", "docs/quick-start.md", "docs/command-line.md", "docs/how-to/route-invoices.md"} <= names


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.name)
def test_prose_is_wrapped(page: Path) -> None:
    """At 100 columns; tables, code, pictures and headings aside. tools/wrap-docs does it."""
    prose = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.M | re.S)
    lines = [line for line in prose.split("\n") if not line.startswith(("|", "#", "    ", "!["))]
    assert [line for line in lines if len(line) > 100] == []


def test_a_link_to_a_folder_leads_to_the_list_of_its_files_in_the_site() -> None:
    pytest.importorskip("mkdocs")
    from tools.docs.hooks import _target

    for folder in ("examples", "examples/data", "examples/pipeline"):
        assert (ROOT / folder).is_dir()
        assert _target("docs/spark.md", "spark.md", f"../{folder}") == "examples/README.md"
    assert _target("docs/spark.md", "spark.md", "../examples/news_alerts.py") == "examples/news_alerts.py"


def parsers(parser: argparse.ArgumentParser, name: str = "xsift") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """A parser and those of its subcommands, by what one types."""
    yield name, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, subparser in action.choices.items():
                yield from parsers(subparser, f"{name} {word}")


def test_options_of_commands_in_the_docs_exist() -> None:
    options = {
        name: {option for action in parser._actions for option in action.option_strings}
        for subcommand in SUBCOMMANDS
        for name, parser in parsers(_parser([subcommand]))
        if name.startswith(f"xsift {subcommand}")
    }
    checked = 0
    for page in TEXTS:
        commands = re.findall(r"\b(xsift [a-z]+(?: [a-z]+)?)\b([^\n`|]*)", page.read_text(encoding="utf-8"))
        for command, rest in commands:
            known = options.get(command) or options.get(command.rpartition(" ")[0]) or set()
            given = set(re.findall(r"(?<![\w-])--[a-z-]+(?=[ =]|$)", rest)) if known else set()
            assert given <= known, f"{page.name}: {command}{rest}"
            checked += len(given)
    assert checked > 50


def test_the_table_of_settings_has_all_of_them() -> None:
    pytest.importorskip("pydantic")
    from pydantic import BaseModel

    from xsift.service.settings import Settings

    def names(section: BaseModel, prefix: str = "") -> Iterator[str]:
        for name in type(section).model_fields:
            value = getattr(section, name)
            yield from names(value, f"{name}.") if isinstance(value, BaseModel) else [prefix + name]

    table = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8").partition("\n## Settings\n")[2]
    listed: list[str] = []
    for cell in re.findall(r"^\| (`[^|]*) \|", table, re.M):
        found = re.findall(r"`([^`]+)`", cell)
        listed += [found[0].partition(".")[0] + name if name.startswith(".") else name for name in found]
    assert sorted(listed) == sorted(names(Settings()))


def test_the_table_of_limits_has_all_of_them_with_their_defaults() -> None:
    units = {"GiB": 2**30, "MiB": 2**20}
    rows = re.findall(r"^\| `(\w+)` \| ([\d,]+)(?: (\wiB))? \|", (ROOT / "SECURITY.md").read_text(), re.M)
    listed = {name: int(number.replace(",", "")) * units.get(unit, 1) for name, number, unit in rows}
    assert listed == dataclasses.asdict(xsift.Limits())
