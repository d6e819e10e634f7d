"""Trainings of the toy task whose weights are noted after each update."""

from typing import NamedTuple

from torch import Tensor

from onmt_entmax.train.trainer import Trainer
from tests.train.changed_trainers import after_each_update
from tests.train.trainers import weights_of


class NotedTraining(NamedTuple):
    """A training that has ended."""

    trainer: Trainer
    weights_after: dict[int, list[Tensor]]
    """The weights after each update, by its number; those of the training, not their average."""


def train_and_note(trainer: Trainer) -> NotedTraining:
    """Train to the end, and note the weights after each update."""
    weights_after: dict[int, list[Tensor]] = {}

    def note() -> None:
        # The counter still says how many updates there were before this one.
        weights_after[trainer.state.counters.step + 1] = weights_of(trainer.model)

    after_each_update(trainer, note)
    trainer.train()
    return NotedTraining(trainer, weights_after)
