"""YAML files of `config/` for one training or classifier: valid, and with the papers' settings."""

from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from onmt_entmax.cli import bleu
from onmt_entmax.config import TrainingSetup
from onmt_entmax.options.train import training_setup
from tests.commands import ROOT
from tests.papers.configurations import (
    CONFIG,
    build_without_weights,
    commands_of,
    files_with,
    name_of,
    write_corpora,
)
from tools.papers import multilabel_settings, nli_settings
from tools.papers.nli_model import Classifier
from tools.papers.published import published
from tools.papers.settings_file import read_settings

TRAININGS, MATRICES = files_with("data"), files_with("cells")
MULTILABEL = sorted(CONFIG.glob("multilabel/*.yaml"))
NLI = sorted(CONFIG.glob("nli/*.yaml"))


def file_of_cells(matrix: Path) -> Path:
    """Return the file that has the cells of a matrix: another one, if `cells` names it."""
    cells = yaml.safe_load(matrix.read_text(encoding="utf-8"))["cells"]
    return (matrix.parent / cells).resolve() if isinstance(cells, str) else matrix


def test_every_file_is_of_one_kind() -> None:
    """Files of cells, which matrices name, are the only others."""
    cells = {file_of_cells(path) for path in MATRICES} - {*MATRICES}
    of_a_kind = [*TRAININGS, *MATRICES, *MULTILABEL, *NLI, *cells]
    assert sorted(of_a_kind) == sorted(CONFIG.glob("**/*.yaml"))


# --- classifiers -----------------------------------------------------------------------------


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
    Classifier(read_settings(path, nli_settings.Settings), words=10)


# --- trainings -------------------------------------------------------------------------------


class Training(NamedTuple):
    """A configuration of a training, and the commands in its head."""

    path: Path
    values: dict[str, Any]
    commands: dict[str, list[str]]
    setup: TrainingSetup


@pytest.fixture(scope="module", params=TRAININGS, ids=name_of)
def training(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Training:
    path = request.param
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("training"))
        write_corpora(values["data"].values())
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
