"""`train.py`: a training that diverges, and one whose disk is full, end with one line."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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


@pytest.mark.parametrize(
    "kilobytes",
    [
        pytest.param(1, id="config.yaml"),
        pytest.param(20, id="beginning of the weights"),
        pytest.param(60, id="half of the weights"),
        pytest.param(150, id="training state"),
    ],
)
def test_a_full_disk_leaves_the_last_whole_checkpoint(tmp_path: Path, kilobytes: int) -> None:
    """The disk is full when the second checkpoint is saved, in another one of its files."""
    config, run = write_config(tmp_path), tmp_path / "run"
    success(train.main, ["-config", config, "-train_steps", 10])
    with largest_file(kilobytes):
        message = refusal(train.main, ["-config", config, "-train_from", run], progress=True)
    assert f"{run}/step_20: cannot be written" in message
    assert not list(run.glob(".*.tmp"))
    assert checkpoint_steps(run) == [10]
    load(run / "step_10")
