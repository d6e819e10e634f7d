"""What files of tests share: a run of six updates, to continue, and padded batches."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from onmt_entmax.cli.train import main as train
from tests.toy import write_config
from tests.train.trainers import on_padded_batches


@pytest.fixture(scope="session")
def six_updates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the toy corpora, `toy.yaml` and its run, with a checkpoint every two updates.

    A copy of the run is in `pristine`; tests change `run`.
    """
    folder = tmp_path_factory.mktemp("resuming")
    path = write_config(
        folder, train_steps=6, save_checkpoint_steps=2, valid_steps=2, rnn_size=8, report_every=1,
        overwrite=True,  # has no effect in a file
    )  # fmt: skip
    assert train(["-config", str(path)]) == 0
    shutil.copytree(folder / "run", folder / "pristine")
    return folder


@pytest.fixture
def run(six_updates: Path) -> Path:
    """The run of six updates, as it was."""
    shutil.rmtree(six_updates / "run", ignore_errors=True)
    return Path(shutil.copytree(six_updates / "pristine", six_updates / "run"))


@pytest.fixture
def arguments(six_updates: Path, run: Path) -> list[str]:
    """The arguments of that run."""
    return ["-config", str(six_updates / "toy.yaml")]


@pytest.fixture(params=[False, True], ids=["packed", "padded"])
def padded(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Whether trainings have padded batches, as on a GPU: a test runs without and with them."""
    with on_padded_batches(request.param):
        yield bool(request.param)
