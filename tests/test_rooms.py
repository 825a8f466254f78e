"""The rooms of DESIGN.md, and which of them each may know of: an import that goes up the table fails here."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "xsift"

EVERYWHERE = {"errors", "native"}
MAY_KNOW: dict[str, set[str]] = {
    "errors": set(),
    "native": set(),
    "xpath": set(),
    "document": {"xpath"},
    "evaluation": {"xpath", "document"},
    "engines": {"xpath", "document"},
    "matching": {"xpath", "document", "evaluation", "engines"},
    "sources": {"document"},
    "tables": {"matching"},
    "spark": {"matching", "sources", "tables"},
    "service": {"matching", "sources", "tables"},
    "workload": {"xpath"},
    "experiments": {"xpath", "document", "engines", "matching", "workload"},
    "cli": {"matching", "sources", "tables", "spark", "service", "workload", "experiments"},
}
IMPORT = re.compile(r"^\s*(?:from\s+xsift\.(\w+)[\w.]*\s+c?import|c?import\s+xsift\.(\w+))", re.M)
FILES = sorted(path for suffix in ("py", "pyx", "pxd", "pyi") for path in PACKAGE.rglob(f"*.{suffix}"))


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].split(".")[0]


def rooms_imported(text: str) -> set[str]:
    return {first or second for first, second in IMPORT.findall(text)}


@pytest.mark.parametrize("room", sorted(MAY_KNOW))
def test_imports_go_down(room: str) -> None:
    allowed = MAY_KNOW[room] | EVERYWHERE | {room}
    up = {
        f"{path.relative_to(PACKAGE)} imports {other}"
        for path in FILES
        if room_of(path) == room
        for other in rooms_imported(path.read_text()) - allowed
    }
    assert not up


def test_every_folder_is_a_room() -> None:
    assert {room_of(path) for path in FILES} - {"__init__"} <= set(MAY_KNOW)


def files_listed(folder: Path) -> set[str]:
    """The files that the docstring of a package names, if it lists them."""
    docstring = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    return set(re.findall(r"[\w-]+\.pyx?\b", docstring))


def test_who_lists_its_files_lists_all_of_them() -> None:
    lists = {path.parent: files_listed(path.parent) for path in PACKAGE.rglob("__init__.py")}
    for folder, listed in lists.items():
        files = {path.name for suffix in ("py", "pyx") for path in folder.glob(f"*.{suffix}")} - {"__init__.py"}
        assert len(listed) < 3 or listed == files, folder
    assert PACKAGE / "sources" in {folder for folder, listed in lists.items() if len(listed) >= 3}


def test_design_names_files_that_are_there() -> None:
    root = PACKAGE.parent.parent
    names = {path.name for folder in ("src", "tests") for path in (root / folder).rglob("*.*")}
    named = re.findall(r"(?<![\w*-])[\w-]+\.(?:py|pyx|pxd|hpp|js)\b", (root / "DESIGN.md").read_text())
    assert set(named) <= names


def test_every_kernel_that_python_imports_has_a_stub() -> None:
    root = PACKAGE.parent.parent
    scripts = [path for folder in ("src", "tests", "benchmarks") for path in (root / folder).rglob("*.py")]
    text = "\n".join(path.read_text() for path in scripts)
    missing = {
        str(kernel.relative_to(PACKAGE))
        for kernel in PACKAGE.rglob("*.pyx")
        if not kernel.with_suffix(".pyi").exists()
        and re.search(rf"\b{re.escape('.'.join(kernel.relative_to(PACKAGE.parent).with_suffix('').parts))}\b", text)
    }
    assert not missing


def test_the_reader_of_imports_sees_all_kinds() -> None:
    lines = ["from xsift.a.b import c", "import xsift.d", "cimport xsift.e.f", "  from xsift.g cimport h"]
    assert rooms_imported("\n".join(lines)) == {"a", "d", "e", "g"}
