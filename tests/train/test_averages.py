"""The averages of a model's weights: their formulas, and where they stand for the weights."""

from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from onmt_entmax.checkpoint import load
from onmt_entmax.cli.train import main as train
from onmt_entmax.train.trainer import Trainer
from onmt_entmax.train.weight_average import CycleAverage
from tests.toy import write_config
from tests.train.trainers import (
    after_each_update,
    assert_equal,
    resumed_trainer,
    trainer_of,
    weights,
)

STEPS, DECAY = 14, 0.3


class Averaged(NamedTuple):
    """A training with an average of weights, which has ended."""

    trainer: Trainer
    after_updates: list[list[Tensor]]
    """The weights after each update."""


def trained_with_average(folder: Path, **changes: object) -> Averaged:
    """Train the toy task with further options, and note the weights after each update."""
    changes = {"average_decay": DECAY, "train_steps": STEPS, "valid_steps": 100, **changes}
    run = trainer_of(folder, **changes)
    averaged = Averaged(run, [])
    after_each_update(run, lambda: averaged.after_updates.append(weights(run.model)))
    run.train()
    return averaged


def average_by_formula(after_updates: list[list[Tensor]], every: int) -> list[Tensor]:
    """Return the average of weights, updated with those after steps 1, 1 + every, ...

    The newest weights count by 1 - (step + 1) / (step + 10), and later by `DECAY`, if that is
    more.
    """
    average = [weight.double() for weight in after_updates[0]]
    for step in range(1 + every, STEPS + 1, every):
        share = max(DECAY, 1 - (step + 1) / (step + 10))
        average = [
            (1 - share) * before + share * weight
            for before, weight in zip(average, after_updates[step - 1], strict=True)
        ]
    return average


@pytest.mark.parametrize("every", [1, 4])
def test_the_average_is_the_formula(tmp_path: Path, every: int) -> None:
    run, after_updates = trained_with_average(tmp_path, average_every=every)
    expected = average_by_formula(after_updates, every)
    with run.state.average.applied():
        average = [weight.double() for weight in weights(run.model)]
    torch.testing.assert_close(average, expected, rtol=1e-5, atol=1e-6)


def test_the_average_is_applied_for_a_while(tmp_path: Path) -> None:
    """Meanwhile the context yields the weights without it, which the model has afterwards."""
    run, after_updates = trained_with_average(tmp_path)
    with run.state.average.applied() as raw:
        assert_equal(raw, after_updates[-1])
    assert_equal(weights(run.model), after_updates[-1])


def test_the_average_is_saved_and_validated(tmp_path: Path) -> None:
    run, _ = trained_with_average(tmp_path)
    saved = load(tmp_path / "run" / f"step_{STEPS}").model
    with run.state.average.applied():
        assert_equal(weights(saved), weights(run.model))
    with torch.no_grad():
        assert run.validation.evaluate(saved)["loss"] == run.state.selection.best


# --- the mean over cycles of the learning rate ---

WARM_UP = 2
# Cycles of a cosine end at the steps 8, 11 and 14, which is `STEPS`.
CYCLES = {
    "decay_method": "cosine",
    "warmup_steps": WARM_UP,
    "cosine_cycles": 3,
    "average_decay": 0.0,
    "learning_rate": 0.1,
}


def mean_of(*several: list[Tensor]) -> list[Tensor]:
    """Return the mean of models' weights, each weight by itself."""
    return [torch.stack(weights).mean(0) for weights in zip(*several, strict=True)]


def test_the_mean_over_cycles_is_of_the_weights_at_their_ends(tmp_path: Path) -> None:
    run, after_updates = trained_with_average(tmp_path, **CYCLES)
    ends = [after_updates[step - 1] for step in (8, 11, 14)]
    with run.state.average.applied():
        torch.testing.assert_close(weights(run.model), mean_of(*ends))


def test_within_a_cycle_the_newest_weights_count_as_its_end(tmp_path: Path) -> None:
    _, after_updates = trained_with_average(tmp_path, **CYCLES, valid_steps=10)
    saved = load(tmp_path / "run" / "step_10").model
    expected = mean_of(after_updates[8 - 1], after_updates[10 - 1])
    torch.testing.assert_close(weights(saved), expected)


def test_in_the_first_cycle_the_newest_weights_are_saved(tmp_path: Path) -> None:
    _, after_updates = trained_with_average(tmp_path, **CYCLES, valid_steps=8)
    assert_equal(weights(load(tmp_path / "run" / "step_8").model), after_updates[8 - 1])


def test_weights_at_the_end_of_two_cycles_at_once_count_twice() -> None:
    """As after a pause in which the time of a cycle has passed."""
    model = torch.nn.Linear(1, 1, bias=False)
    average = CycleAverage(model)
    for cycle, weight in [(1, 1.0), (3, 4.0), (3, 6.0)]:
        torch.nn.init.constant_(model.weight, weight)
        average.begin_update(cycle)
    with average.applied():
        assert model.weight.item() == (1.0 + 4.0 + 4.0 + 6.0) / 4


def test_moments_begin_anew_in_each_cycle(tmp_path: Path) -> None:
    run = trainer_of(tmp_path, **CYCLES, train_steps=STEPS, valid_steps=100)
    counts = []
    after_each_update(run, lambda: counts.append(steps_of_moments(run)))
    run.train()
    assert counts == [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 1, 2, 3]


def steps_of_moments(run: Trainer) -> int:
    """Return how many steps Adam's moments are the average of."""
    (steps,) = {int(moments["step"]) for moments in run.state.optimizer.state.values()}
    return steps


def test_a_run_that_is_resumed_in_an_earlier_cycle_forgets_the_ends_before(tmp_path: Path) -> None:
    """Cycles of a training of twice the updates end at the steps 15, 21 and 28."""
    trained_with_average(tmp_path, **CYCLES)
    longer = {**CYCLES, "train_steps": 2 * STEPS, "valid_steps": 100, "save_checkpoint_steps": 100}
    run = resumed_trainer(tmp_path, STEPS, **longer)
    after_updates = {}
    after_each_update(
        run, lambda: after_updates.update({run.state.counters.step + 1: weights(run.model)})
    )
    run.train()
    expected = mean_of(*(after_updates[step] for step in (15, 21, 28)))
    with run.state.average.applied():
        torch.testing.assert_close(weights(run.model), expected)


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
