"""`onmt-entmax import-onmt`: models that stock OpenNMT-py has trained.

Each is trained by OpenNMT-py in this process, imported, and compared with what OpenNMT-py outputs.
"""

import json
import os
import re
import shlex
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
import yaml

from onmt_entmax.checkpoint import read_config
from onmt_entmax.cli import import_onmt, score, train, translate
from onmt_entmax.cli.foreign_checkpoint import FOREIGN, Inert, stand_in
from tests.cli.stock_models import DEV_SIZE, MODELS, stock, train_stock
from tests.commands import json_lines, succeed
from tests.in_process import exit_status, refusal, success


class Stock(NamedTuple):
    """A model that stock OpenNMT-py has trained, and the folder that it was imported to."""

    name: str
    folder: Path
    """It holds `stock.yaml` and the corpora."""
    checkpoint: Path
    imported: Path


@pytest.fixture(scope="module", params=MODELS)
def stock_model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Stock:
    folder = tmp_path_factory.mktemp(request.param)
    checkpoint = train_stock(folder, MODELS[request.param])
    imported = folder / "imported"
    assert "weights" in succeed("onmt_entmax", "import-onmt", checkpoint, imported, "--yes")
    return Stock(request.param, folder, checkpoint, imported)


# --- what it computes ---


class StockOutput(NamedTuple):
    """An output of stock OpenNMT-py with beam 5, and its log-probability."""

    text: str
    log_prob: float


ROUNDING = 1e-4  # of log-probabilities, which OpenNMT-py writes with four digits
BETTER = 1e-5  # a log-probability that is surely larger
SEARCH = ("-beam_size", "5", "-length_penalty", "none", "-batch_size", "7")


@pytest.fixture(scope="module")
def stock_outputs(stock_model: Stock) -> list[StockOutput]:
    source, output = stock_model.folder / "valid.src", stock_model.folder / "stock.out"
    arguments = ["-model", stock_model.checkpoint, "-src", source, "-output", output]
    stock("translate", *map(str, arguments), *SEARCH, "-with_score")
    rows = (line.split("\t") for line in output.read_text().splitlines())
    return [StockOutput(text, float(score)) for text, score in rows]


def test_an_imported_model_translates_as_stock_does(
    stock_model: Stock, stock_outputs: list[StockOutput], tmp_path: Path
) -> None:
    """Its best output is that of stock OpenNMT-py, or a more probable one.

    Stock's beam drops an ending that is not among its five best steps; ours never does.
    """
    succeed(
        "translate.py", "-model", stock_model.imported, "-src", stock_model.folder / "valid.src",
        "-output", tmp_path / "out", "-exactness_report", tmp_path / "report.jsonl", *SEARCH,
    )  # fmt: skip
    records = json_lines(tmp_path / "report.jsonl")
    for record, expected in zip(records, stock_outputs, strict=True):
        best = record["hypotheses"][0]
        gain = best["log_prob"] - expected.log_prob
        least_gain = -ROUNDING if best["text"] == expected.text else BETTER
        assert gain >= least_gain


def test_an_imported_model_scores_as_stock_does(
    stock_model: Stock, stock_outputs: list[StockOutput], tmp_path: Path
) -> None:
    (tmp_path / "texts").write_text("".join(f"{output.text}\n" for output in stock_outputs))
    files = ["-src", stock_model.folder / "valid.src", "-tgt", tmp_path / "texts"]
    arguments = ["-model", stock_model.imported, *files, "-output", tmp_path / "scores.jsonl"]
    assert exit_status(score.main, list(map(str, arguments))) == 0
    scores = [line["log_prob"] for line in json_lines(tmp_path / "scores.jsonl")]
    assert scores == pytest.approx([output.log_prob for output in stock_outputs], abs=ROUNDING)


# --- what is kept ---


def test_alphas_of_the_checkpoint_are_kept(stock_model: Stock) -> None:
    config = read_config(stock_model.imported).network
    alpha = 2 if stock_model.name == "sparsemax" else 1
    assert (config.generator_alpha, config.global_attention_alpha) == (alpha, alpha)


def test_shared_embeddings_of_the_checkpoint_are_kept(stock_model: Stock) -> None:
    config = read_config(stock_model.imported).network
    assert config.share_embeddings == (stock_model.name == "transformer")


def test_shared_vocabularies_of_the_checkpoint_are_kept(stock_model: Stock) -> None:
    tokens = json.loads((stock_model.imported / "vocab.json").read_text(encoding="utf-8"))
    assert (tokens["source"] == tokens["target"]) == (stock_model.name == "transformer")


def test_options_of_the_checkpoint_are_kept(stock_model: Stock) -> None:
    options = read_config(stock_model.imported).options
    assert options["optim"] == "adam"


def test_folders_of_the_checkpoint_are_not_kept(stock_model: Stock) -> None:
    assert str(stock_model.folder) not in (stock_model.imported / "config.yaml").read_text()


def test_a_folder_is_not_overwritten(stock_model: Stock) -> None:
    line = refusal(import_onmt.main, [stock_model.checkpoint, stock_model.imported, "--yes"])
    assert "exists already" in line


@pytest.mark.parametrize(
    ("folder", "named"),
    [
        pytest.param("loop/imported", "loop/imported: ", id="below a loop"),
        pytest.param("a\0b", r"'a\x00b': ", id="a null byte"),
    ],
)
def test_a_folder_that_cannot_be_written_is_named(
    stock_model: Stock, working_folder: Path, folder: str, named: str
) -> None:
    """The rest of `tests/cli/test_paths.py`: these paths are noticed with a whole checkpoint."""
    (working_folder / "loop").symlink_to("loop")
    line = refusal(import_onmt.main, [stock_model.checkpoint, folder, "--yes"], progress=True)
    assert named in line
    assert [path.name for path in working_folder.iterdir()] == ["loop"]


def test_no_foreign_class_of_a_checkpoint_is_loaded(stock_model: Stock) -> None:
    with torch.serialization.safe_globals([stand_in(name) for name in FOREIGN]):
        content = torch.load(stock_model.checkpoint, weights_only=True)
    assert isinstance(content["opt"], Inert)


# --- from OpenNMT-py to here ---


class Calls(NamedTuple):
    """A translation and a training with OpenNMT-py's checkpoint, and YAML file."""

    folder: Path
    checkpoint: Path
    source: Path

    @property
    def training(self) -> list[object]:
        """The arguments of `train`."""
        return ["-config", self.folder / "tune.yaml"]

    def translation(self, output: Path, model: Path | None = None) -> list[object]:
        """Return the arguments of `translate`, by default with the checkpoint."""
        return ["-model", model or self.checkpoint, "-src", self.source, "-output", output]


@pytest.fixture(scope="module")
def calls(stock_model: Stock, tmp_path_factory: pytest.TempPathFactory) -> Calls:
    """A folder with a copy of the checkpoint, which is not imported yet."""
    folder = tmp_path_factory.mktemp("moved")
    checkpoint = Path(shutil.copy(stock_model.checkpoint, folder))
    settings = yaml.safe_load((stock_model.folder / "stock.yaml").read_text())
    settings |= {"train_from": str(checkpoint), "save_model": str(folder / "tuned")}
    settings |= {"train_steps": 5, "reset_optim": "all", "gpu_ranks": [0]}
    (folder / "tune.yaml").write_text(yaml.safe_dump(settings))
    return Calls(folder, checkpoint, source=stock_model.folder / "valid.src")


def named_command(error: str) -> str:
    """Return the command that an error names."""
    (command,) = re.findall("onmt-entmax (import-onmt .*)", error)
    return str(command)


class NamedCommands(NamedTuple):
    """The commands that a translation and a training name before the import."""

    translation: str
    training: str


@pytest.fixture(scope="module")
def named(calls: Calls) -> NamedCommands:
    translation = refusal(translate.main, calls.translation(calls.folder / "out"), progress=True)
    training = refusal(train.main, calls.training, progress=True)
    return NamedCommands(named_command(translation), named_command(training))


@pytest.fixture(scope="module")
def imported_calls(calls: Calls, named: NamedCommands) -> Calls:
    """The same calls after the command that they name."""
    succeed("onmt_entmax", *shlex.split(named.translation), "--yes")
    return calls


@pytest.fixture(scope="module")
def training_log(imported_calls: Calls) -> str:
    """What the training prints after the import."""
    return success(train.main, imported_calls.training)


def test_translation_and_training_name_the_same_command(named: NamedCommands) -> None:
    assert named.translation == named.training


def test_after_the_command_the_checkpoint_translates(imported_calls: Calls, tmp_path: Path) -> None:
    printed = success(translate.main, imported_calls.translation(tmp_path / "out"))
    assert f"model: {imported_calls.checkpoint.with_suffix('')}" in printed
    assert len((tmp_path / "out").read_text().splitlines()) == DEV_SIZE


def test_after_the_command_the_yaml_file_trains(imported_calls: Calls, training_log: str) -> None:
    assert f"continuing from {imported_calls.checkpoint.with_suffix('')}" in training_log


@pytest.mark.usefixtures("training_log")
def test_the_trained_model_translates(imported_calls: Calls, tmp_path: Path) -> None:
    tuned = imported_calls.folder / "tuned"
    success(translate.main, imported_calls.translation(tmp_path / "out", tuned))
    assert len((tmp_path / "out").read_text().splitlines()) == DEV_SIZE


def test_a_training_needs_a_new_state_of_the_optimiser(
    imported_calls: Calls, tmp_path: Path
) -> None:
    options = ["-reset_optim", "none", "-save_model", tmp_path / "other"]
    error = refusal(train.main, [*imported_calls.training, *options], progress=True)
    assert "add -reset_optim all" in error


def test_another_checkpoint_under_this_name_is_to_be_imported_again(
    imported_calls: Calls, tmp_path: Path
) -> None:
    """It is newer than the folder."""
    checkpoint = Path(shutil.copy(imported_calls.checkpoint, tmp_path))
    shutil.copytree(imported_calls.checkpoint.with_suffix(""), checkpoint.with_suffix(""))
    os.utime(checkpoint, (2**33, 2**33))
    arguments = imported_calls.translation(tmp_path / "out", checkpoint)
    assert "import-onmt" in refusal(translate.main, arguments, progress=True)
