"""examples/tour.ipynb runs from its first cell to its last, draws its plots, and is stored without paths."""

from __future__ import annotations

import re
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")

from tools.docs.notebook import NOTEBOOK, executed  # noqa: E402


def kinds(notebook: Any) -> list[set[str]]:
    """What each cell of code shows: the kinds of its results."""
    return [
        {kind for output in cell.outputs for kind in output.get("data", {"stream": ""})}
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def test_it_runs_and_shows_what_is_stored() -> None:
    stored, run = nbformat.read(NOTEBOOK, as_version=4), executed()
    assert kinds(run) == kinds(stored)
    assert sum("image/png" in shown for shown in kinds(run)) == 2
    assert sum("text/html" in shown for shown in kinds(run)) == 5
    errors = [output for cell in run.cells for output in cell.get("outputs", []) if output.output_type == "error"]
    assert errors == []
    warnings = [
        output.text for cell in run.cells for output in cell.get("outputs", []) if output.get("name") == "stderr"
    ]
    assert warnings == []


def test_it_is_stored_without_what_belongs_to_a_machine() -> None:
    text = NOTEBOOK.read_text(encoding="utf-8")
    pictures = re.compile(r'"image/png": "[^"]*"')
    rest = pictures.sub("", text)
    assert not re.search(r"/(home|root|tmp|work|Users|usr)/", rest)
    assert '"execution_count": null' in rest
    assert not re.search(r'"execution_count": \d', rest)
