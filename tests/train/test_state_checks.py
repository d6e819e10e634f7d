"""The training state of every optimiser is accepted when a run continues."""

from pathlib import Path

import pytest

from onmt_entmax.checkpoint import read_training_state
from onmt_entmax.config import OptimizerConfig
from onmt_entmax.train.state_checks import is_state_of
from tests.train.changed_trainers import give_dev_losses
from tests.train.trainers import LEARNED_ALPHAS, trainer_of


@pytest.mark.parametrize("optim", ["adam", "sgd", "adagrad", "adadelta", "adafactor"])
@pytest.mark.parametrize(
    "network",
    [
        pytest.param({"rnn_size": 8}, id="recurrent"),
        pytest.param(LEARNED_ALPHAS, id="learned alphas"),
    ],
)
def test_the_state_of_an_optimiser_is_accepted(
    tmp_path: Path, optim: str, network: dict[str, object]
) -> None:
    """It has moments after an update, for vectors and matrices."""
    run = trainer_of(tmp_path, optim=optim, train_steps=1, valid_steps=9, **network)
    give_dev_losses(run, 1.0)
    run.train()
    state = read_training_state(tmp_path / "run" / "step_1")
    assert is_state_of(state, run.model, OptimizerConfig(optim))
