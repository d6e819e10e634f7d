"""Cells of paradigms: counted in training sources, and read from a file."""

from pathlib import Path

import pytest

from onmt_entmax.checkpoint import read_cells
from onmt_entmax.cli import paradigm
from onmt_entmax.paradigm import cells_of
from onmt_entmax.strings.cells import count_cells
from tests.cli.paradigms import CELLS
from tests.in_process import refusal


def test_cells_of_sources_are_counted() -> None:
    """Lines without a language or tags have no cell."""
    sources = [
        f"lang={language} {' '.join(f'+{tag}' for tag in tags)} a"
        for language, counts in CELLS.items()
        for tags, count in counts.items()
        for _ in range(count)
    ]
    assert count_cells(["", "a b", "lang=german a", *sources]) == CELLS


def test_cells_are_read_back(cells_file: Path) -> None:
    assert read_cells(cells_file.parent) == CELLS


def test_a_folder_without_cells_has_none(tmp_path: Path) -> None:
    assert read_cells(tmp_path) == {}


def test_the_same_tags_in_another_order_are_one_cell() -> None:
    cells = {"x": {("V", "A", "B"): 2, ("V", "B", "A"): 1}}
    assert cells_of(cells, "x", "V") == [("V", "A", "B")]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("x\tV", id="no number"),
        pytest.param("\tV\t1", id="no language"),
        pytest.param("x y\tV\t1", id="two words"),
        pytest.param("x\t\t1", id="no tags"),
        pytest.param("x\tV\t²", id="no digit"),
        pytest.param("x\tV\t1\t", id="four columns"),
    ],
)
def test_lines_that_are_not_cells_are_refused(
    paradigm_model: Path, tmp_path: Path, line: str
) -> None:
    (tmp_path / "cells").write_text(f"german\tV\t1\n{line}\n", encoding="utf-8")
    words = ["german", "ab", "--model", paradigm_model, "--cells", tmp_path / "cells"]
    assert "cells:2: expected language, tags and number" in refusal(paradigm.main, words)


def test_a_file_without_cells_is_named(paradigm_model: Path, tmp_path: Path) -> None:
    (tmp_path / "cells").touch()
    words = ["german", "ab", "--model", paradigm_model, "--cells", tmp_path / "cells"]
    assert "cells: has no cells; its lines are language, tags" in refusal(paradigm.main, words)


def test_a_model_without_cells_says_where_they_come_from(paradigm_model: Path) -> None:
    words = ["german", "ab", "--model", paradigm_model]
    assert "trained by a version that kept no cells.tsv" in refusal(paradigm.main, words)
