"""`python -m tools.docs.notebook`: runs examples/tour.ipynb and stores it with what it shows.

Dates, counts of runs and names of kernels are left out, so that a difference in the file is one in what it says.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parent.parent.parent
NOTEBOOK = ROOT / "examples" / "tour.ipynb"
SECONDS = 600  # that a cell may take


def executed(path: Path = NOTEBOOK) -> Any:
    """The notebook, run from its first cell to its last. Raises CellExecutionError if one fails."""
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(
        notebook, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}
    ).execute()
    return tidied(notebook)


def tidied(notebook: Any) -> Any:
    """Without what is different each time."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
        cell["metadata"] = {}
        if cell.cell_type == "code":
            cell["execution_count"] = None
            for output in cell.outputs:
                if output.output_type == "execute_result":
                    output["execution_count"] = None
    return notebook


if __name__ == "__main__":
    nbformat.write(executed(), NOTEBOOK)  # type: ignore[no-untyped-call]
