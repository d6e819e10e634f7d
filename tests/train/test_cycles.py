"""Cycles of the learning rate: the mean of the weights at their ends, and Adam's moments.

`test_learning_rates.py` has the rate in each cycle.
"""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from onmt_entmax.checkpoint import load
from onmt_entmax.cli.train import main as train
from onmt_entmax.train.trainer import Trainer
from onmt_entmax.train.weight_average import CycleAverage
from tests.toy import write_config
from tests.train.changed_trainers import after_each_update
from tests.train.noted_trainings import NotedTraining, train_and_note
from tests.train.trainers import assert_equal, resumed_trainer, trainer_of, weights_of

STEPS = 14
ENDS = (8, 11, 14)
"""The updates at which the cycles end: half and three quarters of the way from 2 to 14, and 14."""
CYCLES = {
    "decay_method": "cosine",
    "warmup_steps": 2,
    "cosine_cycles": 3,
    "learning_rate": 0.1,  # so large that the ends differ
}


def trained_in_cycles(folder: Path, valid_steps: int = 100) -> NotedTraining:
    """Train the toy task in three cycles, with a checkpoint after every so many updates."""
    options = {"train_steps": STEPS, "valid_steps": valid_steps, **CYCLES}
    return train_and_note(trainer_of(folder, **options))


def mean_of(weights_after: dict[int, list[Tensor]], *steps: int) -> list[Tensor]:
    """Return the mean of the weights after some updates, each weight by itself."""
    several = [weights_after[step] for step in steps]
    return [torch.stack(weights).mean(0) for weights in zip(*several, strict=True)]


def test_the_mean_over_cycles_is_of_the_weights_at_their_ends(tmp_path: Path) -> None:
    run, weights_after = trained_in_cycles(tmp_path)
    with run.state.average.applied():
        torch.testing.assert_close(weights_of(run.model), mean_of(weights_after, *ENDS))


def test_within_a_cycle_the_newest_weights_count_as_its_end(tmp_path: Path) -> None:
    _, weights_after = trained_in_cycles(tmp_path, valid_steps=10)
    saved = load(tmp_path / "run" / "step_10").model
    torch.testing.assert_close(weights_of(saved), mean_of(weights_after, ENDS[0], 10))


def test_in_the_first_cycle_the_newest_weights_are_saved(tmp_path: Path) -> None:
    _, weights_after = trained_in_cycles(tmp_path, valid_steps=ENDS[0])
    saved = load(tmp_path / "run" / f"step_{ENDS[0]}").model
    assert_equal(weights_of(saved), weights_after[ENDS[0]])


def test_weights_at_the_end_of_two_cycles_at_once_count_twice() -> None:
    """As after a pause in which the time of a cycle has passed."""
    model = torch.nn.Linear(1, 1, bias=False)
    average = CycleAverage(model)
    for cycle, weight in [(1, 1.0), (3, 4.0), (3, 6.0)]:
        torch.nn.init.constant_(model.weight, weight)
        average.begin_update(cycle)
    with average.applied():
        assert model.weight.item() == (1.0 + 4.0 + 4.0 + 6.0) / 4


def steps_of_moments(run: Trainer) -> int:
    """Return how many steps Adam's moments are the average of."""
    (steps,) = {int(moments["step"]) for moments in run.state.optimizer.state.values()}
    return steps


def test_moments_begin_anew_in_each_cycle(tmp_path: Path) -> None:
    run = trainer_of(tmp_path, train_steps=STEPS, valid_steps=100, **CYCLES)
    counts: list[int] = []
    after_each_update(run, lambda: counts.append(steps_of_moments(run)))
    run.train()
    assert counts == [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 1, 2, 3]


# --- a run that is resumed in an earlier cycle, since it has a higher limit ------------------


def test_a_run_that_is_resumed_in_an_earlier_cycle_forgets_the_ends_before(tmp_path: Path) -> None:
    """Cycles of a training of twice the updates end at the steps 15, 21 and 28."""
    trained_in_cycles(tmp_path)
    longer = {"train_steps": 2 * STEPS, "valid_steps": 100, "save_checkpoint_steps": 100, **CYCLES}
    run, weights_after = train_and_note(resumed_trainer(tmp_path, STEPS, **longer))
    with run.state.average.applied():
        torch.testing.assert_close(weights_of(run.model), mean_of(weights_after, 15, 21, 28))


def test_resuming_in_an_earlier_cycle_gives_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_config(tmp_path, **CYCLES, train_steps=STEPS)
    arguments = ["-config", str(config)]
    assert train(arguments) == 0
    assert "cycles" not in capsys.readouterr().err
    more = ["-train_from", str(tmp_path / "run"), "-train_steps", "28"]
    assert train([*arguments, *more]) == 0
    assert "note: the cycles of the learning rate have other ends now" in capsys.readouterr().err
