"""Losses that are not finite: an error, or updates that are skipped."""

from pathlib import Path
from typing import NamedTuple

import pytest
from torch import Tensor

from onmt_entmax.checkpoint import checkpoint_steps, read_training_state
from onmt_entmax.errors import UserError
from onmt_entmax.train import nonfinite
from onmt_entmax.train.trainer import Trainer
from tests.train.changed_trainers import (
    after_each_update,
    give_dev_losses,
    make_losses_nan,
    on_padded_batches,
    read_reports_late,
)
from tests.train.trainers import assert_equal, trainer_of, weights_of


@pytest.mark.usefixtures("padded")
@pytest.mark.parametrize("optim", ["adam", "sgd"])
def test_a_loss_of_nan_stops_and_changes_nothing(tmp_path: Path, optim: str) -> None:
    """The last checkpoint is that of step 10, as if the run had been killed."""
    run = trainer_of(
        tmp_path, batch_size=8, optim=optim, learning_rate=0.01, save_checkpoint_steps=10
    )
    make_losses_nan(run, {12})
    message = r"the (loss|gradient norm) is nan at step 12; lower the learn"
    with pytest.raises(UserError, match=message):
        run.train()
    assert all(weight.isfinite().all() for weight in weights_of(run.model))
    assert checkpoint_steps(tmp_path / "run") == [10]


# --- on_nonfinite: skip ----------------------------------------------------------------------

STEPS = 13
NAN_STEPS = (3, 4, 13)


class Skipping(NamedTuple):
    """A training of which three updates have a loss of nan and are skipped."""

    folder: Path
    trainer: Trainer
    weights: list[list[Tensor]]
    """Weights before the first update, and after each."""
    averages: list[list[Tensor]]
    """Averages after each update."""


@pytest.fixture(scope="module", params=[False, True], ids=["packed", "padded"])
def padding(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(scope="module", params=[("adam", 3), ("sgd", 0)], ids=["late", "at once"])
def skipping(
    request: pytest.FixtureRequest, padding: bool, tmp_path_factory: pytest.TempPathFactory
) -> Skipping:
    """Losses are read some updates later, as on a GPU, or at once."""
    optim, delay = request.param
    folder = tmp_path_factory.mktemp("skipping")
    with on_padded_batches(padding):
        run = trainer_of(
            folder, on_nonfinite="skip", average_decay=0.3,
            optim=optim, train_steps=STEPS, valid_steps=100,
        )  # fmt: skip
        read_reports_late(run, delay)
        give_dev_losses(run, 1.0)
        make_losses_nan(run, {*NAN_STEPS})
        result = Skipping(folder, run, [weights_of(run.model)], [])

        def note_weights() -> None:
            result.weights.append(weights_of(run.model))
            with run.state.average.applied():
                result.averages.append(weights_of(run.model))

        after_each_update(run, note_weights)
        assert run.train().step == STEPS
    return result


def test_a_skipped_update_changes_no_weight(skipping: Skipping) -> None:
    """Every other update changes some."""
    unchanged = [
        step
        for step in range(1, STEPS + 1)
        if all(map(Tensor.equal, skipping.weights[step], skipping.weights[step - 1]))
    ]
    assert unchanged == [*NAN_STEPS]


def test_a_skipped_update_changes_no_average(skipping: Skipping) -> None:
    for step in NAN_STEPS:
        assert_equal(skipping.averages[step - 1], skipping.averages[step - 2])


def test_skipped_updates_are_counted_and_saved(skipping: Skipping) -> None:
    assert skipping.trainer.state.counters.skipped == len(NAN_STEPS)
    checkpoint = skipping.folder / "run" / f"step_{STEPS}"
    assert read_training_state(checkpoint)["run"]["skipped"] == len(NAN_STEPS)


def test_a_run_that_skips_every_update_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fifteen in a row end it, here those of steps 5 to 19; step 2 was skipped among others."""
    monkeypatch.setattr(nonfinite, "MAX_SKIPPED", 15)
    run = trainer_of(tmp_path, on_nonfinite="skip", train_steps=100, valid_steps=100, rnn_size=4)
    make_losses_nan(run, {2, *range(5, 100)})
    with pytest.raises(UserError, match="at step 19 and 15 updates in a row"):
        run.train()
