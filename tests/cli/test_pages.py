"""The commands of README.md and docs/command-line.md, run as they stand: a `$` line, then what it prints."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)


def commands(page: str) -> list[tuple[str, str]]:
    """The commands of a page, and what each prints; "" where the page does not show it."""
    found: list[tuple[str, str]] = []
    for block in BLOCK.findall((ROOT / page).read_text()):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], ""))
            else:
                found[-1] = (found[-1][0], found[-1][1] + line + "\n")
    return found


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with the examples, in which commands may write, and with `xsift` to call."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "xsift"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m xsift.cli "$@"\n')
    program.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("page", ["README.md", "docs/command-line.md"])
def test_commands_of_a_page(page: str, place: Path) -> None:
    environment = os.environ | {"PATH": f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}", "PYTHONUTF8": "1"}
    found = commands(page)
    assert len(found) >= 5
    for command, expected in found:
        done = subprocess.run(
            ["bash", "-c", command], cwd=place, env=environment, capture_output=True, text=True, check=False
        )
        assert "Traceback" not in done.stderr, command
        assert done.returncode in (0, 1, 3), f"{command}\n{done.stderr}"
        if expected:
            assert done.stdout == expected, command


def test_every_subscription_of_the_examples_matches_something(capsys: pytest.CaptureFixture[str]) -> None:
    from xsift.cli import main

    data = ROOT / "examples" / "data"
    sets = [
        (["-s", str(data / "news.csv")], str(data / "news")),
        (["-s", str(data / "invoices.tsv"), "--namespaces", str(data / "ubl.toml")], str(data / "invoices")),
    ]
    for options, documents in sets:
        assert main(["match", *options, "--kind", "rows", documents]) == 0
        matched = {line.split("\t")[1] for line in capsys.readouterr().out.splitlines()}
        assert main(["check", *(options[1:]), "--list"]) == 0
        listed = re.findall(r"^([a-z-]+): ", capsys.readouterr().out, re.M)
        assert matched == set(listed)
