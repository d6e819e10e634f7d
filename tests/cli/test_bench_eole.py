"""Eole in the comparison with peers: the checkpoint with which it decodes.

It need not be installed: the tests read the configuration that is written for it.
"""

import json
from pathlib import Path

import pytest

from tools.bench.peer_systems.data import Data
from tools.bench.peer_systems.eole import Eole


@pytest.fixture
def eole(tmp_path: Path) -> Eole:
    """The system after three validations, of which the second was the best."""
    (tmp_path / "peers" / "eole" / "bin").mkdir(parents=True)
    (tmp_path / "peers" / "eole" / "bin" / "python").touch()
    system = Eole(Data(tmp_path), tmp_path, tmp_path / "peers", minutes=1)
    accuracies = [41.5, 97.25, 60]
    lines = [f"INFO] Validation accuracy: {accuracy}\n" for accuracy in accuracies]
    (tmp_path / "train.log").write_text("".join(lines), encoding="utf-8")
    for number in range(1, len(accuracies) + 1):
        folder = checkpoint(system, number)
        folder.mkdir(parents=True)
        (folder / "config.json").touch()
    return system


def checkpoint(system: Eole, validation: int) -> Path:
    """Return the folder of the checkpoint of a validation, counted from 1."""
    return system.folder / "model" / f"step_{validation * system.every}"


def model_to_decode(system: Eole) -> Path:
    """Return the checkpoint with which the system decodes."""
    system.decode(system.folder / "dev.src", system.folder / "dev.predicted")
    return Path(json.loads((system.folder / "predict.yaml").read_text())["model_path"])


def test_eole_takes_the_best_checkpoint(eole: Eole) -> None:
    assert model_to_decode(eole) == checkpoint(eole, 2)


def test_eole_takes_the_best_of_the_checkpoints_that_exist(eole: Eole) -> None:
    """A training may end before it has written a whole checkpoint."""
    (checkpoint(eole, 2) / "config.json").unlink()
    assert model_to_decode(eole) == checkpoint(eole, 3)
