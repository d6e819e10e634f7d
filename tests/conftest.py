"""Settings that every test shares."""

from pathlib import Path

import pytest
import torch
from hypothesis import settings

from tests.commands import succeed
from tests.toy import write_config

# The same examples on every run, and no timing: a slow machine must not fail a correct test.
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=100)
settings.load_profile("repeatable")

# The suite runs on few cores, often beside other work; one thread is the fastest there.
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the toy corpora and a run trained on them."""
    folder = tmp_path_factory.mktemp("trained")
    config = write_config(
        folder,
        train_steps=400,
        valid_steps=100,
        save_checkpoint_steps=100,
        selection="exact_match",
        rnn_size=48,
        dropout=0.0,
        tensorboard=True,
        tensorboard_log_dir=str(folder / "board"),
    )
    printed = succeed("train.py", "-config", config)
    assert "step 400, validation: loss" in printed
    return folder
