"""YAML files of `config/` for matrices: every cell is a training with the alphas it names."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from onmt_entmax.config import ModelConfig
from onmt_entmax.options.train import training_setup
from tests.commands import ROOT
from tests.papers.configurations import (
    TEXT_KEYS,
    build_without_weights,
    commands_of,
    files_with,
    name_of,
    write_corpora,
)
from tools.papers.matrix import Cell, Matrix
from tools.papers.matrix_file import read_matrices

FILES = files_with("cells")
MATRICES = [matrix for path in FILES for matrix in read_matrices(path)]


class CellOfMatrix(NamedTuple):
    """A cell, and the matrix that it is of."""

    matrix: Matrix
    cell: Cell

    def __str__(self) -> str:
        return f"{name_of(self.matrix.path)} {self.matrix.pair} {self.cell.name}"

    @property
    def corpora(self) -> list[dict[str, str]]:
        """The entries under `data:` of its training."""
        options = self.matrix.training(self.cell, seed=1).training_options()
        return list(options["data"].values())

    def model(self) -> ModelConfig:
        """Return its network's options.

        The first call writes its corpora to the working directory.
        """
        name = str(self)
        if name not in MODELS:
            write_corpora(self.corpora)
            options = self.matrix.training(self.cell, seed=1).training_options()
            Path("config.yaml").write_text(yaml.safe_dump(options))
            MODELS[name] = training_setup(["-config", "config.yaml"]).model
        return MODELS[name]


MODELS: dict[str, ModelConfig] = {}
"""The options of the cells that were read, by the names of the cells."""
CELLS = [CellOfMatrix(matrix, cell) for matrix in MATRICES for cell in matrix.cells]
ADAPTIVE_CELLS = [cell for cell in CELLS if cell.matrix.path.parent.name == "adaptive"]
ADAPTIVE_ALPHAS = {"softmax": 1.0, "entmax15": 1.5, "learned": "learned"}
ALPHA_IN_NAME = re.compile(r"(output|attention)-([\d.]+)")
NAMED_BY_ALPHAS = [cell for cell in CELLS if ALPHA_IN_NAME.search(cell.cell.name)]


@pytest.fixture(autouse=True)
def in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Corpora of one line are written to the working directory."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_a_cell_is_a_training_of_a_network(cell: CellOfMatrix) -> None:
    network = build_without_weights(cell.model())
    assert list(network.parameters())


@pytest.mark.parametrize("cell", NAMED_BY_ALPHAS, ids=str)
def test_cells_have_the_alphas_of_their_names(cell: CellOfMatrix) -> None:
    model = cell.model()
    alphas = {"output": model.generator_alpha, "attention": model.global_attention_alpha}
    named = {layer: float(alpha) for layer, alpha in ALPHA_IN_NAME.findall(cell.cell.name)}
    assert named == {layer: alphas[layer] for layer in named}


@pytest.mark.parametrize("cell", ADAPTIVE_CELLS, ids=str)
def test_cells_of_adaptive_transformers_have_the_alphas_of_their_names(
    cell: CellOfMatrix,
) -> None:
    alpha = ADAPTIVE_ALPHAS[cell.cell.name.split("-")[0]]
    assert {*cell.model().attention_alphas.values()} == {alpha}


@pytest.mark.parametrize("cell", ADAPTIVE_CELLS, ids=str)
def test_learned_alphas_are_a_number_for_each_head_of_the_three_attentions(
    cell: CellOfMatrix,
) -> None:
    model = cell.model()
    parameters = build_without_weights(model).named_parameters()
    learned = sum(weight.numel() for name, weight in parameters if name.endswith(".a"))
    heads = 3 * model.heads * model.enc_layers
    assert learned == (heads if cell.cell.name.startswith("learned") else 0)


@pytest.mark.parametrize("matrix", MATRICES, ids=lambda matrix: name_of(matrix.path))
@pytest.mark.parametrize("text", ["source", "reference"])
def test_a_matrix_is_measured_on_a_text_of_its_corpora(matrix: Matrix, text: str) -> None:
    corpora = [corpus for cell in matrix.cells for corpus in CellOfMatrix(matrix, cell).corpora]
    files = {Path(corpus[key]) for corpus in corpora for key in TEXT_KEYS}
    assert getattr(matrix, text) in files


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_the_head_of_a_matrix_runs_it(path: Path) -> None:
    commands = commands_of(path)
    assert str(path.relative_to(ROOT)) in commands["tables"]
