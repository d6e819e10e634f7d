"""Fixtures of trainings: a run of six updates that tests continue, and batches with padding."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from onmt_entmax.cli.train import main as train
from tests.toy import write_config
from tests.train.changed_trainers import on_padded_batches


@pytest.fixture(scope="session")
def six_updates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the toy corpora, `toy.yaml`, and its `run`, which tests only read.

    The run has made six updates, with a checkpoint and a validation after every two.
    """
    folder = tmp_path_factory.mktemp("six-updates")
    path = write_config(
        folder, train_steps=6, save_checkpoint_steps=2, valid_steps=2, rnn_size=8, report_every=1
    )
    assert train(["-config", str(path)]) == 0
    return folder


@pytest.fixture
def run(six_updates: Path, tmp_path: Path) -> Path:
    """A copy of the run of six updates, which a test may continue or damage."""
    return Path(shutil.copytree(six_updates / "run", tmp_path / "run"))


@pytest.fixture
def arguments(six_updates: Path, run: Path) -> list[str]:
    """The arguments of a training with the options of that run, which writes to the copy."""
    return ["-config", str(six_updates / "toy.yaml"), "-save_model", str(run)]


@pytest.fixture(params=[False, True], ids=["packed", "padded"])
def padded(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Whether trainings have padded batches, as on a GPU: a test runs without and with them."""
    with on_padded_batches(request.param):
        yield bool(request.param)
