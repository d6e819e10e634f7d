"""The notebook of the docs runs from top to bottom, and prints what it shows."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.commands import ROOT


def shown(cell: Any) -> tuple[str, list[list[str]]]:
    """Return the text that a cell printed, and the kinds of its pictures."""
    printed = "".join(output.get("text", "") for output in cell.outputs)
    return printed, [sorted(output.data) for output in cell.outputs if "data" in output]


@pytest.mark.slow
def test_the_tour_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Apart from its training, whose figures differ between machines."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    # A checkout to the notebook, which it writes to.
    (tmp_path / "CITATION.cff").touch()
    (tmp_path / "data").symlink_to(ROOT / "data")
    stored = nbformat.read(ROOT / "docs" / "tour.ipynb", 4)
    nbformat.validate(stored)
    book = deepcopy(stored)
    where = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(book, timeout=300, kernel_name="python3", resources=where).execute()
    for before, after in zip(stored.cells, book.cells, strict=True):
        if before.cell_type == "code" and "varies" not in before.metadata.get("tags", []):
            assert shown(after) == shown(before)
