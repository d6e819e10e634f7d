"""The YAML files of `config/`: all parse and build, agree with their heads, and have the papers'
settings."""

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
from tools.papers import multilabel, nli, tables
from tools.papers.published import published
from tools.papers.sparsemax import read_settings

CONFIG = ROOT / "config"
TEXTS = {path: path.read_text(encoding="utf-8") for path in sorted(CONFIG.glob("**/*.yaml"))}
TRAININGS = [path for path, text in TEXTS.items() if re.search(r"^data:", text, re.M)]
MATRICES = [path for path, text in TEXTS.items() if re.search(r"^cells:", text, re.M)]
LINE = "lang=english +V d r a w"


def name_of(path: Path) -> str:
    return str(path.relative_to(CONFIG).with_suffix(""))


# --- classifiers ---


@pytest.mark.parametrize("path", CONFIG.glob("multilabel/*.yaml"), ids=name_of)
def test_a_multilabel_configuration_is_of_a_published_data_set(path: Path) -> None:
    settings = read_settings(path, multilabel.Settings)
    assert settings.name == path.stem
    losses = {loss for loss, _ in published(settings.name)}
    assert losses == {"logistic", "softmax", "sparsemax"}


@pytest.mark.parametrize("path", CONFIG.glob("nli/*.yaml"), ids=name_of)
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


def test_a_training_has_the_alphas_of_its_paper(training: Training) -> None:
    """And its network can be built."""
    model = training.setup.model
    build_without_weights(model)
    if training.path.parent.name == "adaptive":
        assert {*model.attention_alphas.values()} == {"learned"}
    else:
        assert model.global_attention_alpha == model.generator_alpha == 1.5


def test_a_training_for_gpus_takes_one(training: Training) -> None:
    if training.path.stem.endswith("-gpu"):
        options = training.setup.training
        assert (options.cuda_graphs, options.matmul_dtype) == ("on", "tf32")
        assert training.values["gpu_ranks"] == [0]


def test_the_head_of_a_training_trains_it_and_translates(training: Training) -> None:
    commands = training.commands
    assert commands["train"][:2] == ["-config", str(training.path.relative_to(ROOT))]
    assert training.values["save_model"] in commands["translate"]


def test_the_head_of_a_training_measures_what_validation_measures(training: Training) -> None:
    """If it measures BLEU, which is no measure of words."""
    if "bleu" in training.commands:
        options = bleu.parse_arguments(training.commands["bleu"])
        assert str(options.reference[0]) == training.values["data"]["valid"]["path_tgt"]
        assert options.system[0] == Path(f"{training.values['save_model']}.pred")
        tokenizer = training.values.get("valid_bleu_tokenize", "13a")
        if tokenizer != "char":
            assert options.tokenize == [tokenizer]


# --- matrices of trainings ---


class Cell(NamedTuple):
    """A cell of a matrix, and its network."""

    name: str
    model: ModelConfig
    network: nn.Module


class MatrixFile(NamedTuple):
    """All cells of a file of matrices."""

    path: Path
    cells: list[Cell]
    missing: list[Path]
    """Sources and references that are no files of the cells' corpora."""


@pytest.fixture(scope="module", params=MATRICES, ids=name_of)
def matrix_file(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> MatrixFile:
    """A file of which every cell is a valid training."""
    matrices, cells = list(tables.read_matrices(request.param)), []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("matrix"))
        for matrix in matrices:
            for cell in matrix.cells:
                options = matrix.training(cell, 1).training_options()
                write_corpora(options["data"].values(), LINE)
                Path("config.yaml").write_text(yaml.safe_dump(options))
                model = training_setup(["-config", "config.yaml"]).model
                cells.append(Cell(cell.name, model, build_without_weights(model)))
        missing = [
            path
            for matrix in matrices
            for path in (matrix.source, matrix.reference)
            if not path.is_file()
        ]
    return MatrixFile(request.param, cells, missing)


def test_every_cell_of_a_matrix_is_valid_and_what_its_name_says(matrix_file: MatrixFile) -> None:
    for cell in matrix_file.cells:
        alphas = {
            "output": cell.model.generator_alpha,
            "attention": cell.model.global_attention_alpha,
        }
        for layer, alpha in re.findall(r"(output|attention)-([\d.]+)", cell.name):
            assert float(alpha) == alphas[layer]


ADAPTIVE_ALPHAS = {"softmax": 1.0, "entmax15": 1.5, "learned": "learned"}


def test_cells_of_adaptive_transformers_have_the_alphas_of_their_names(
    matrix_file: MatrixFile,
) -> None:
    """Learned ones are a number for each head of the three attentions."""
    if matrix_file.path.parent.name == "adaptive":
        for cell in matrix_file.cells:
            alpha = ADAPTIVE_ALPHAS[cell.name.split("-")[0]]
            assert {*cell.model.attention_alphas.values()} == {alpha}
            parameters = cell.network.named_parameters()
            learned = sum(weight.numel() for name, weight in parameters if name.endswith(".a"))
            heads = 3 * cell.model.heads * cell.model.enc_layers
            assert learned == (heads if alpha == "learned" else 0)


def test_a_matrix_is_measured_on_a_text_of_its_corpora(matrix_file: MatrixFile) -> None:
    assert matrix_file.missing == []


def test_the_head_of_a_matrix_runs_it(matrix_file: MatrixFile) -> None:
    commands = commands_of(matrix_file.path)
    assert str(matrix_file.path.relative_to(ROOT)) in commands["tables"]


# --- documents ---

DOCUMENTS = [
    *ROOT.glob("*.md"),
    *(path for path in ROOT.glob("docs/*") if path.is_file()),
    *TEXTS,
    *ROOT.glob("tools/papers/*.py"),
]


def names_in_documents(pattern: str) -> dict[str, Path]:
    """Return what a pattern finds, with a document that has it."""
    return {
        name: path
        for path in DOCUMENTS
        for name in re.findall(pattern, path.read_text(encoding="utf-8"))
    }


def test_scripts_in_documents_exist() -> None:
    for name, path in names_in_documents(r"python -m tools\.papers\.(\w+)").items():
        is_placeholder = name == "NAME"
        assert is_placeholder or (ROOT / f"tools/papers/{name}.py").is_file(), (path, name)


def test_configurations_in_documents_exist() -> None:
    for name, path in names_in_documents(r"config/[\w/.-]+\.yaml").items():
        is_placeholder = "MATRIX" in name
        assert is_placeholder or (ROOT / name).is_file(), (path, name)


def test_documents_call_scripts_of_papers_as_modules() -> None:
    scripts = {"experiment", "figures", "heads", "sparsity", "multilabel", "nli"}
    commands = names_in_documents(r"onmt-entmax ((?:prepare )?[a-z][\w-]+)")
    assert not scripts & commands.keys()
