"""Changes to trainers: padded batches, losses that a test chooses, and calls after each update.

Each function that takes a trainer changes that trainer alone.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from torch import Tensor

from onmt_entmax.model import SparseNMTModel
from onmt_entmax.train import padding
from onmt_entmax.train.trainer import Trainer


@contextmanager
def on_padded_batches(padded: bool) -> Iterator[None]:
    """Let trainers that are made inside have padded batches, as on a GPU, if `padded`.

    Plain calls stand in for CUDA graphs.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(padding, "records_graphs", lambda device: padded or device.type == "cuda")
        yield


def after_each_update(trainer: Trainer, do: Callable[[], object]) -> None:
    """Call a function after each update of weights and average, also one that was skipped.

    The trainer counts the update only afterwards.
    """
    average = trainer.state.average
    update_average = average.update

    def update(step: int, applied: Tensor) -> None:
        update_average(step, applied)
        do()

    average.update = update


def make_losses_nan(trainer: Trainer, steps: set[int]) -> None:
    """Make the training losses of some updates nan; the first update is step 1."""
    update, counters = trainer.training_step.update, trainer.state.counters
    loss = update.loss

    def loss_or_nan(batch: object) -> object:
        result = loss(batch)
        factor = float("nan") if counters.step + 1 in steps else 1.0
        return result._replace(loss=result.loss * factor)

    update.loss = loss_or_nan


def give_dev_losses(trainer: Trainer, *losses: float) -> list[int]:
    """Make validations return these losses; return the list of the steps of validations."""
    remaining, steps = iter(losses), []

    def evaluate(_: SparseNMTModel) -> dict[str, float]:
        steps.append(trainer.state.counters.step)
        return {"loss": next(remaining)}

    trainer.validation.evaluate = evaluate
    return steps


def read_reports_late(trainer: Trainer, delay: int) -> None:
    """Let a trainer read the loss of an update `delay` updates later, as on a GPU."""
    trainer.monitor.reports.delay = delay
