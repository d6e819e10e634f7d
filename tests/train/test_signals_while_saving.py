"""Signals while a training writes a checkpoint."""

import os
import signal
from itertools import count
from pathlib import Path

import pytest
import torch

from onmt_entmax.checkpoint import checkpoint_steps
from onmt_entmax.cli.train import main as train
from tests.train.endless_runs import endless


def while_saving(monkeypatch: pytest.MonkeyPatch, *numbers: signal.Signals) -> None:
    """Send signals to this process while it writes its second checkpoint."""
    save, checkpoints = torch.save, count(1)

    def save_and_signal(*arguments: object) -> None:
        save(*arguments)
        if next(checkpoints) == 2:
            for number in numbers:
                os.kill(os.getpid(), number)

    monkeypatch.setattr(torch, "save", save_and_signal)


@pytest.mark.parametrize(
    "numbers",
    [
        pytest.param((signal.SIGTERM, signal.SIGTERM), id="SIGTERM twice"),
        pytest.param((signal.SIGHUP, signal.SIGHUP), id="SIGHUP twice"),
        pytest.param((signal.SIGINT, signal.SIGTERM), id="SIGINT, SIGTERM"),
    ],
)
def test_a_checkpoint_is_written_whole_despite_signals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, numbers: tuple[int, ...]
) -> None:
    """A signal often comes twice: SIGTERM from a scheduler and by torchrun, SIGHUP from the kernel
    and the shell. Only a second SIGINT means that someone does not want to wait.
    """
    while_saving(monkeypatch, *numbers)
    arguments = endless(tmp_path, valid_steps=100, save_checkpoint_steps=2)
    assert train(arguments) == 128 + numbers[0]
    assert checkpoint_steps(tmp_path / "run") == [2, 4, 5]


def test_a_second_interrupt_while_saving_leaves_the_checkpoint_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    while_saving(monkeypatch, signal.SIGINT, signal.SIGINT)
    arguments = endless(tmp_path, valid_steps=100, save_checkpoint_steps=2)
    with pytest.raises(KeyboardInterrupt):
        train(arguments)
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names == {".lock", "metrics.jsonl", "step_2"}
    monkeypatch.undo()
    assert train([*arguments, "-train_from", str(tmp_path / "run"), "-train_steps", "3"]) == 0
