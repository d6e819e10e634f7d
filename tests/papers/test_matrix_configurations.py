"""YAML files of `config/` for matrices: each cell trains a network with the alphas in its name."""

import re
from pathlib import Path
from typing import Any, NamedTuple

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


class MatrixCell(NamedTuple):
    """A cell, and the matrix to which it belongs."""

    matrix: Matrix
    cell: Cell

    def __str__(self) -> str:
        return f"{name_of(self.matrix.path)} {self.matrix.pair} {self.cell.name}"

    def training_options(self) -> dict[str, Any]:
        """Return the options in the configuration of its training."""
        return self.matrix.training(self.cell, seed=1).training_options()

    def corpora(self) -> list[dict[str, str]]:
        """Return the entries under `data:` of its training."""
        return list(self.training_options()["data"].values())


CELLS = [MatrixCell(matrix, cell) for matrix in MATRICES for cell in matrix.cells]


# --- networks ---


class NamedNetwork(NamedTuple):
    """The network of a cell.

    Attributes:
        name: of the cell.
        options: of the network.
    """

    name: str
    options: ModelConfig


@pytest.fixture(scope="module", params=CELLS, ids=str)
def network(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> NamedNetwork:
    """The network of each cell, as a training reads it; the corpora have one line."""
    cell: MatrixCell = request.param
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("cell"))
        write_corpora(cell.corpora())
        Path("config.yaml").write_text(yaml.safe_dump(cell.training_options()), encoding="utf-8")
        return NamedNetwork(cell.cell.name, training_setup(["-config", "config.yaml"]).model)


def networks(cells: list[MatrixCell]) -> pytest.MarkDecorator:
    """Run a test for the networks of some cells only."""
    return pytest.mark.parametrize("network", cells, ids=str, indirect=True)


ALPHA_IN_NAME = re.compile(r"(output|attention)-([\d.]+)")  # such as output-1.5
NAMED_BY_ALPHAS = [cell for cell in CELLS if ALPHA_IN_NAME.search(cell.cell.name)]
# The adaptive Transformers: the names of their cells begin with the alpha of all attentions.
ADAPTIVE_ALPHAS = {"softmax": 1.0, "entmax15": 1.5, "learned": "learned"}
ADAPTIVE = [cell for cell in CELLS if cell.matrix.path.parent.name == "adaptive"]
LEARNED = [cell for cell in ADAPTIVE if cell.cell.name.startswith("learned")]
FIXED = [cell for cell in ADAPTIVE if cell not in LEARNED]


def test_the_network_of_a_cell_is_built(network: NamedNetwork) -> None:
    assert list(build_without_weights(network.options).parameters())


@networks(NAMED_BY_ALPHAS)
def test_a_network_has_the_alphas_in_the_name_of_its_cell(network: NamedNetwork) -> None:
    options = network.options
    alphas = {"output": options.generator_alpha, "attention": options.global_attention_alpha}
    named = {layer: float(alpha) for layer, alpha in ALPHA_IN_NAME.findall(network.name)}
    assert named == {layer: alphas[layer] for layer in named}


@networks(ADAPTIVE)
def test_an_adaptive_transformer_has_the_alpha_in_the_name_of_its_cell(
    network: NamedNetwork,
) -> None:
    alpha = ADAPTIVE_ALPHAS[network.name.split("-")[0]]
    assert {*network.options.attention_alphas.values()} == {alpha}


def count_learned_alphas(options: ModelConfig) -> int:
    """Build a network, and count the numbers of which its learned alphas are computed."""
    weights = build_without_weights(options).named_parameters()
    return sum(weight.numel() for name, weight in weights if name.endswith(".a"))


@networks(LEARNED)
def test_each_head_of_the_three_attentions_learns_an_alpha(network: NamedNetwork) -> None:
    options = network.options
    assert count_learned_alphas(options) == 3 * options.heads * options.enc_layers


@networks(FIXED)
def test_fixed_alphas_are_not_learned(network: NamedNetwork) -> None:
    assert count_learned_alphas(network.options) == 0


# --- files ---


@pytest.mark.parametrize("matrix", MATRICES, ids=lambda matrix: name_of(matrix.path))
@pytest.mark.parametrize("text", ["source", "reference"])
def test_a_matrix_is_measured_on_a_text_of_its_corpora(matrix: Matrix, text: str) -> None:
    cells = [MatrixCell(matrix, cell) for cell in matrix.cells]
    corpora = [corpus for cell in cells for corpus in cell.corpora()]
    files = {Path(corpus[key]) for corpus in corpora for key in TEXT_KEYS}
    assert getattr(matrix, text) in files


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_the_head_of_a_matrix_runs_it(path: Path) -> None:
    commands = commands_of(path)
    assert str(path.relative_to(ROOT)) in commands["tables"]
