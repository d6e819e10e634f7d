"""`train_model`: a training from Python, with options as keywords."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from onmt_entmax import train_model
from onmt_entmax.checkpoint import checkpoint_steps, load
from onmt_entmax.errors import UserError
from tests.toy import write_config
from tests.train.endless_runs import NEVER, while_evaluating


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The file of a training of two updates."""
    return write_config(
        tmp_path,
        rnn_size=8,
        train_steps=2,
        valid_steps=2,
        save_checkpoint_steps=2,
        valid_loss_size=8,
    )


def test_the_folder_of_the_run_is_returned(config: Path, tmp_path: Path) -> None:
    assert train_model(config) == tmp_path / "run"
    assert checkpoint_steps(tmp_path / "run") == [2]


def test_options_replace_those_of_the_file(config: Path, tmp_path: Path) -> None:
    """A list stands for several values."""
    schedule = {"accum_count": [1, 2], "accum_steps": [0, 5]}
    folder = train_model(config, save_model=tmp_path / "other", train_steps=1, **schedule)
    assert checkpoint_steps(folder) == [1]
    assert load(folder).options["accum_count"] == [1, 2]


def test_none_leaves_an_option_as_it_is_in_the_file(config: Path) -> None:
    """`train_from=None` would otherwise name a folder `None`."""
    folder = train_model(config, train_from=None, train_steps=None)
    assert checkpoint_steps(folder) == [2]


def test_a_switch_is_a_boolean(config: Path) -> None:
    folder = train_model(config)
    with pytest.raises(UserError, match="already holds checkpoints"):
        train_model(config, overwrite=False)
    assert train_model(config, overwrite=True) == folder


def test_a_training_runs_in_another_thread(config: Path) -> None:
    """Python sets no signal handlers there."""
    with ThreadPoolExecutor(1) as threads:
        folder = threads.submit(train_model, config).result()
    assert checkpoint_steps(folder) == [2]


def test_a_signal_raises_an_interrupt_after_the_state_is_saved(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes during the validation of step 2."""
    while_evaluating(monkeypatch, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        train_model(config, train_steps=NEVER)
    assert checkpoint_steps(tmp_path / "run") == [2, 3]
