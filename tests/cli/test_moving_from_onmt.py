"""From OpenNMT-py to here: its checkpoint and its YAML file translate and train on.

Both commands refuse the checkpoint at first, and name the command that imports it.
"""

import os
import re
import shlex
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from onmt_entmax.cli import train, translate
from tests.cli.stock_models import DEV_SIZE, MODELS, StockModel
from tests.commands import succeed
from tests.in_process import refusal, success

# The workers of pytest-xdist share these models, which take seconds to train. `test_import_onmt.py`
# may run at the same time: in the opposite order, neither file waits for the other.
pytestmark = pytest.mark.parametrize("stock_model", [*reversed(MODELS)], indirect=True)


class Calls(NamedTuple):
    """A translation with OpenNMT-py's checkpoint, and a training with its YAML file.

    Attributes:
        folder: has the checkpoint, `tune.yaml`, and the model `tuned` that this file trains.
        checkpoint: OpenNMT-py's checkpoint.
        source: the text to translate.
    """

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
def calls(stock_model: StockModel, tmp_path_factory: pytest.TempPathFactory) -> Calls:
    """Calls with a copy of the checkpoint, which is not imported yet; five updates train it on."""
    folder = tmp_path_factory.mktemp("moved")
    checkpoint = Path(shutil.copy(stock_model.checkpoint, folder))
    settings = yaml.safe_load((stock_model.folder / "stock.yaml").read_text())
    settings |= {
        "train_from": str(checkpoint),
        "save_model": str(folder / "tuned"),
        "train_steps": 5,
        "reset_optim": "all",
        "gpu_ranks": [0],
    }
    (folder / "tune.yaml").write_text(yaml.safe_dump(settings))
    return Calls(folder, checkpoint, source=stock_model.folder / "valid.src")


def named_command(error: str) -> str:
    """Return the command that an error names."""
    (command,) = re.findall("onmt-entmax (import-onmt .*)", error)
    return str(command)


class NamedCommands(NamedTuple):
    """The commands that a translation and a training name when they refuse the checkpoint."""

    translation: str
    training: str


@pytest.fixture(scope="module")
def named_commands(calls: Calls) -> NamedCommands:
    translation = refusal(translate.main, calls.translation(calls.folder / "out"), progress=True)
    training = refusal(train.main, calls.training, progress=True)
    return NamedCommands(named_command(translation), named_command(training))


@pytest.fixture(scope="module")
def imported_calls(calls: Calls, named_commands: NamedCommands) -> Calls:
    """The same calls after the command that they name has imported the checkpoint."""
    succeed("onmt_entmax", *shlex.split(named_commands.translation), "--yes")
    return calls


@pytest.fixture(scope="module")
def training_log(imported_calls: Calls) -> str:
    """What the training prints after the import."""
    return success(train.main, imported_calls.training)


def test_translation_and_training_name_the_same_command(named_commands: NamedCommands) -> None:
    assert named_commands.translation == named_commands.training


def test_after_the_import_the_checkpoint_translates(imported_calls: Calls, tmp_path: Path) -> None:
    printed = success(translate.main, imported_calls.translation(tmp_path / "out"))
    assert f"model: {imported_calls.checkpoint.with_suffix('')}" in printed
    assert len((tmp_path / "out").read_text().splitlines()) == DEV_SIZE


def test_after_the_import_the_yaml_file_trains(imported_calls: Calls, training_log: str) -> None:
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


def test_a_checkpoint_newer_than_its_imported_folder_must_be_imported_again(
    imported_calls: Calls, tmp_path: Path
) -> None:
    """A later training may have written it under the same name."""
    checkpoint = Path(shutil.copy(imported_calls.checkpoint, tmp_path))
    shutil.copytree(imported_calls.checkpoint.with_suffix(""), checkpoint.with_suffix(""))
    os.utime(checkpoint, (2**33, 2**33))  # a time in the year 2242
    arguments = imported_calls.translation(tmp_path / "out", checkpoint)
    assert "import-onmt" in refusal(translate.main, arguments, progress=True)
