"""YAML files of `config/` for matrices: every cell is a training with the alphas it names."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from torch import nn

from onmt_entmax.config import ModelConfig
from onmt_entmax.options.train import training_setup
from tests.commands import ROOT
from tests.papers.configurations import (
    build_without_weights,
    commands_of,
    files_with,
    name_of,
    write_corpora,
)
from tools.papers.matrix import Cell, Matrix
from tools.papers.matrix_file import read_matrices

MATRICES = files_with("cells")


class BuiltCell(NamedTuple):
    """A cell of a matrix, and its network."""

    name: str
    model: ModelConfig
    network: nn.Module


class MatrixFile(NamedTuple):
    """All cells of a file of matrices."""

    path: Path
    cells: list[BuiltCell]
    missing: list[Path]
    """Sources and references that are no files of the cells' corpora."""


def built(matrix: Matrix, cell: Cell) -> BuiltCell:
    """Write one-line corpora of a cell to the working directory, and build its network."""
    options = matrix.training(cell, 1).training_options()
    write_corpora(options["data"].values())
    Path("config.yaml").write_text(yaml.safe_dump(options))
    model = training_setup(["-config", "config.yaml"]).model
    return BuiltCell(cell.name, model, build_without_weights(model))


@pytest.fixture(scope="module", params=MATRICES, ids=name_of)
def matrix_file(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> MatrixFile:
    matrices = list(read_matrices(request.param))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("matrix"))
        cells = [built(matrix, cell) for matrix in matrices for cell in matrix.cells]
        texts = [text for matrix in matrices for text in (matrix.source, matrix.reference)]
        missing = [path for path in texts if not path.is_file()]
    return MatrixFile(request.param, cells, missing)


def matrix_files(paths: list[Path]) -> pytest.MarkDecorator:
    """Run a test for some files of matrices only."""
    return pytest.mark.parametrize("matrix_file", paths, ids=name_of, indirect=True)


ALPHA_IN_NAME = re.compile(r"(output|attention)-([\d.]+)")


def names_of_cells(matrix: Path) -> list[str]:
    """Return the names of the cells of a file of matrices."""
    return [cell.name for part in read_matrices(matrix) for cell in part.cells]


NAMED_BY_ALPHAS = [
    path for path in MATRICES if any(map(ALPHA_IN_NAME.search, names_of_cells(path)))
]
ADAPTIVE_MATRICES = [path for path in MATRICES if path.parent.name == "adaptive"]
ADAPTIVE_ALPHAS = {"softmax": 1.0, "entmax15": 1.5, "learned": "learned"}


def test_every_cell_of_a_matrix_is_a_valid_training(matrix_file: MatrixFile) -> None:
    assert matrix_file.cells


@matrix_files(NAMED_BY_ALPHAS)
def test_cells_have_the_alphas_of_their_names(matrix_file: MatrixFile) -> None:
    for cell in matrix_file.cells:
        alphas = {
            "output": cell.model.generator_alpha,
            "attention": cell.model.global_attention_alpha,
        }
        for layer, alpha in ALPHA_IN_NAME.findall(cell.name):
            assert float(alpha) == alphas[layer]


@matrix_files(ADAPTIVE_MATRICES)
def test_cells_of_adaptive_transformers_have_the_alphas_of_their_names(
    matrix_file: MatrixFile,
) -> None:
    for cell in matrix_file.cells:
        alpha = ADAPTIVE_ALPHAS[cell.name.split("-")[0]]
        assert {*cell.model.attention_alphas.values()} == {alpha}


@matrix_files(ADAPTIVE_MATRICES)
def test_learned_alphas_are_a_number_for_each_head_of_the_three_attentions(
    matrix_file: MatrixFile,
) -> None:
    for cell in matrix_file.cells:
        parameters = cell.network.named_parameters()
        learned = sum(weight.numel() for name, weight in parameters if name.endswith(".a"))
        heads = 3 * cell.model.heads * cell.model.enc_layers
        assert learned == (heads if cell.name.startswith("learned") else 0)


def test_a_matrix_is_measured_on_a_text_of_its_corpora(matrix_file: MatrixFile) -> None:
    assert matrix_file.missing == []


def test_the_head_of_a_matrix_runs_it(matrix_file: MatrixFile) -> None:
    commands = commands_of(matrix_file.path)
    assert str(matrix_file.path.relative_to(ROOT)) in commands["tables"]
