"""`train.py`: a training that diverges, and one whose disk is full, end with one line."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.checkpoint import checkpoint_steps, load
from onmt_entmax.cli import train
from tests.in_process import refusal, success
from tests.toy import write_config


def test_a_gradient_that_is_not_finite_stops_the_run(tmp_path: Path) -> None:
    config = write_config(
        tmp_path,
        learning_rate=1000,
        optim="sgd",
        max_grad_norm=0,
        global_attention="mlp",
        generator_function="softmax",
    )
    message = refusal(train.main, ["-config", config], progress=True)
    assert re.search("the gradient norm is (inf|nan) at step", message)
    assert "lower the learning rate" in message


# --- a full disk ---


@contextmanager
def largest_file(kilobytes: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size, as if the disk were full."""
    resource = pytest.importorskip("resource")
    unlimited, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024 * kilobytes, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (unlimited, most))


class Begun(NamedTuple):
    """The configuration of a training, and the run of its first ten updates, with a checkpoint."""

    config: Path
    run: Path


@pytest.fixture(scope="module")
def first_part(tmp_path_factory: pytest.TempPathFactory) -> Begun:
    """Tests only read it."""
    folder = tmp_path_factory.mktemp("first-part")
    config = write_config(folder)
    success(train.main, ["-config", config, "-train_steps", 10])
    return Begun(config, folder / "run")


@pytest.fixture
def begun(first_part: Begun, tmp_path: Path) -> Begun:
    """The same, with a copy of the run, which is to be continued."""
    return Begun(first_part.config, shutil.copytree(first_part.run, tmp_path / "run"))


# A checkpoint has these files, in the order in which they are written.
@pytest.mark.parametrize(
    "kilobytes",
    [
        pytest.param(1, id="config.yaml"),
        pytest.param(20, id="beginning of the weights"),
        pytest.param(60, id="half of the weights"),
        pytest.param(150, id="training state"),
    ],
)
def test_a_full_disk_leaves_the_last_whole_checkpoint(begun: Begun, kilobytes: int) -> None:
    """The disk is full when the second checkpoint is saved, in another one of its files."""
    config, run = begun
    arguments = ["-config", config, "-train_from", run, "-save_model", run]
    with largest_file(kilobytes):
        message = refusal(train.main, arguments, progress=True)
    assert f"{run}/step_20: cannot be written" in message
    assert not list(run.glob(".*.tmp"))
    assert checkpoint_steps(run) == [10]
    load(run / "step_10")
