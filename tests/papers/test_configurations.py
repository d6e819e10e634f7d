"""YAML files of `config/`: they are valid, agree with their heads, have the papers' settings."""

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from torch import nn

from onmt_entmax.cli import bleu
from onmt_entmax.config import ModelConfig
from onmt_entmax.options.train import TrainingSetup, training_setup
from tests.commands import ROOT
from tests.papers.configurations import build_without_weights, commands_of, write_corpora
from tools.papers import multilabel_settings, nli
from tools.papers.matrix import Cell, Matrix
from tools.papers.matrix_file import read_matrices
from tools.papers.published import published
from tools.papers.settings_file import read_settings

CONFIG = ROOT / "config"
TEXTS = {path: path.read_text(encoding="utf-8") for path in sorted(CONFIG.glob("**/*.yaml"))}
TRAININGS = [path for path, text in TEXTS.items() if re.search(r"^data:", text, re.M)]
MATRICES = [path for path, text in TEXTS.items() if re.search(r"^cells:", text, re.M)]
MULTILABEL = [path for path in TEXTS if path.parent.name == "multilabel"]
NLI = [path for path in TEXTS if path.parent.name == "nli"]
LINE = "lang=english +V d r a w"


def name_of(path: Path) -> str:
    return str(path.relative_to(CONFIG).with_suffix(""))


def file_of_cells(matrix: Path) -> Path:
    """Return the file that has the cells of a matrix: another one, if `cells` names it."""
    cells = yaml.safe_load(TEXTS[matrix])["cells"]
    return (matrix.parent / cells).resolve() if isinstance(cells, str) else matrix


def test_every_file_is_of_one_kind() -> None:
    cells = {file_of_cells(path) for path in MATRICES} - {*MATRICES}
    assert sorted([*TRAININGS, *MATRICES, *MULTILABEL, *NLI, *cells]) == sorted(TEXTS)


# --- classifiers ---


@pytest.mark.parametrize("path", MULTILABEL, ids=name_of)
def test_a_multilabel_configuration_is_of_a_published_data_set(path: Path) -> None:
    settings = read_settings(path, multilabel_settings.Settings)
    losses = {loss for loss, _ in published(settings.name)}
    assert losses == {"logistic", "softmax", "sparsemax"}


@pytest.mark.parametrize("path", MULTILABEL, ids=name_of)
def test_a_multilabel_configuration_has_the_name_of_its_data_set(path: Path) -> None:
    assert read_settings(path, multilabel_settings.Settings).name == path.stem


@pytest.mark.parametrize("path", NLI, ids=name_of)
def test_a_classifier_of_sentence_pairs_is_built(path: Path) -> None:
    nli.Classifier(read_settings(path, nli.Settings), 10)


# --- trainings ---


class Training(NamedTuple):
    """A configuration of a training, and the commands in its head."""

    path: Path
    values: dict[str, Any]
    commands: dict[str, list[str]]
    setup: TrainingSetup


@pytest.fixture(scope="module", params=TRAININGS, ids=name_of)
def training(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Training:
    path = request.param
    values = yaml.safe_load(TEXTS[path])
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("training"))
        write_corpora(values["data"].values(), LINE)
        return Training(path, values, commands_of(path), training_setup(["-config", str(path)]))


def trainings(paths: list[Path]) -> pytest.MarkDecorator:
    """Run a test for some trainings only."""
    return pytest.mark.parametrize("training", paths, ids=name_of, indirect=True)


ADAPTIVE = [path for path in TRAININGS if path.parent.name == "adaptive"]
RECURRENT = [path for path in TRAININGS if path not in ADAPTIVE]
FOR_GPUS = [path for path in TRAININGS if path.stem.endswith("-gpu")]
MEASURED_BY_BLEU = [path for path in TRAININGS if "bleu" in commands_of(path)]


def test_the_network_of_a_training_is_built(training: Training) -> None:
    build_without_weights(training.setup.model)


@trainings(RECURRENT)
def test_a_recurrent_training_has_the_alphas_of_its_paper(training: Training) -> None:
    model = training.setup.model
    assert model.global_attention_alpha == model.generator_alpha == 1.5


@trainings(ADAPTIVE)
def test_an_adaptive_transformer_learns_all_alphas(training: Training) -> None:
    assert {*training.setup.model.attention_alphas.values()} == {"learned"}


@trainings(FOR_GPUS)
def test_a_training_for_gpus_uses_one(training: Training) -> None:
    assert training.values["gpu_ranks"] == [0]


@trainings(FOR_GPUS)
def test_a_training_for_gpus_uses_graphs_and_tf32(training: Training) -> None:
    options = training.setup.training
    assert (options.cuda_graphs, options.matmul_dtype) == ("on", "tf32")


def test_the_head_of_a_training_trains_it(training: Training) -> None:
    assert training.commands["train"][:2] == ["-config", str(training.path.relative_to(ROOT))]


def test_the_head_of_a_training_translates_with_its_model(training: Training) -> None:
    assert training.values["save_model"] in training.commands["translate"]


@trainings(MEASURED_BY_BLEU)
def test_the_head_of_a_training_measures_its_dev_set(training: Training) -> None:
    options = bleu.parse_arguments(training.commands["bleu"])
    assert str(options.reference[0]) == training.values["data"]["valid"]["path_tgt"]
    assert options.system[0] == Path(f"{training.values['save_model']}.pred")


@trainings(MEASURED_BY_BLEU)
def test_the_head_of_a_training_measures_what_validation_measures(training: Training) -> None:
    options = bleu.parse_arguments(training.commands["bleu"])
    tokenizer = training.values.get("valid_bleu_tokenize", "13a")
    assert options.tokenize == [tokenizer]


# --- matrices of trainings ---


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
    write_corpora(options["data"].values(), LINE)
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
    return [cell.name for each in read_matrices(matrix) for cell in each.cells]


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
