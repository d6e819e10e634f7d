"""The moving average of a model's weights: its formula, and where it stands for the weights."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from onmt_entmax.checkpoint import load
from onmt_entmax.model import SparseNMTModel
from tests.train.noted_trainings import NotedTraining, train_and_note
from tests.train.trainers import assert_equal, trainer_of, weights_of

STEPS, DECAY = 14, 0.3


def trained_with_average(folder: Path, every: int = 1) -> NotedTraining:
    """Train the toy task with an average that changes after every so many updates."""
    options = {"average_decay": DECAY, "average_every": every}
    return train_and_note(trainer_of(folder, train_steps=STEPS, valid_steps=100, **options))


def average_by_formula(weights_after: dict[int, list[Tensor]], every: int) -> list[Tensor]:
    """Return the average of weights, updated with those after steps 1, 1 + every, ...

    The newest weights count by 1 - (step + 1) / (step + 10), and later by `DECAY`, if that is
    more.
    """
    average = [weight.double() for weight in weights_after[1]]
    for step in range(1 + every, STEPS + 1, every):
        share = max(DECAY, 1 - (step + 1) / (step + 10))
        average = [
            (1 - share) * before + share * weight
            for before, weight in zip(average, weights_after[step], strict=True)
        ]
    return average


@pytest.mark.parametrize("every", [1, 4])
def test_the_average_is_the_formula(tmp_path: Path, every: int) -> None:
    run, weights_after = trained_with_average(tmp_path, every)
    expected = average_by_formula(weights_after, every)
    with run.state.average.applied():
        average = [weight.double() for weight in weights_of(run.model)]
    torch.testing.assert_close(average, expected, rtol=1e-5, atol=1e-6)


# --- where it stands for the weights ---------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("averaged")


@pytest.fixture(scope="module")
def training(folder: Path) -> NotedTraining:
    return trained_with_average(folder)


@pytest.fixture
def saved(folder: Path, training: NotedTraining) -> SparseNMTModel:
    """The model of the last checkpoint, at the end of the training."""
    return load(folder / "run" / f"step_{STEPS}").model


def test_inside_the_context_the_weights_without_the_average_are_at_hand(
    training: NotedTraining,
) -> None:
    run, weights_after = training
    with run.state.average.applied() as raw:
        assert_equal(raw, weights_after[STEPS])


def test_after_the_context_the_model_has_the_weights_without_the_average(
    training: NotedTraining,
) -> None:
    run, weights_after = training
    with run.state.average.applied():
        pass
    assert_equal(weights_of(run.model), weights_after[STEPS])


def test_the_average_is_saved(training: NotedTraining, saved: SparseNMTModel) -> None:
    run, _ = training
    with run.state.average.applied():
        assert_equal(weights_of(saved), weights_of(run.model))


@torch.no_grad()
def test_the_average_is_validated(training: NotedTraining, saved: SparseNMTModel) -> None:
    """The only validation is that at the end, whose loss is the best."""
    run, _ = training
    assert run.validation.evaluate(saved)["loss"] == run.state.selection.best
