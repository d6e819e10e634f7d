"""Schedules of the trainings that `prepare` writes, as numbers of updates and as lines of YAML."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from onmt_entmax.cli.yaml_lines import with_comment
from onmt_entmax.errors import counted


@dataclass(frozen=True)
class Schedule:
    """How long to train without a plan, and how often to validate.

    Attributes:
        passes: passes over the training data, unless `fewest` or `most` changes them.
        fewest: least number of updates; with little data, they make more passes.
        most: largest number of updates; with much data, they make fewer passes.
        multiple: updates are rounded up to a multiple of this number, so that they can be divided
            into equal parts between validations.
        validations: number of validations, with the one at the end.
    """

    passes: int
    fewest: int
    most: float
    multiple: int
    validations: int

    def updates(self, size: int, batch: int) -> int:
        """Return the number of updates of a training.

        Args:
            size: number of training pairs.
            batch: pairs in an update.
        """
        multiples = math.ceil(self.passes * size / (batch * self.multiple))
        return int(min(max(multiples * self.multiple, self.fewest), self.most))

    def limits(self, updates: int, batch: int, size: int, noun: str) -> Sequence[str]:
        """Return when to end, to validate and to save, as lines of YAML.

        Args:
            updates: number of updates of the training.
            batch: pairs in an update.
            size: number of training pairs.
            noun: name of a pair in comments, such as `row`.
        """
        epochs = counted(round(updates * batch / size), "epoch")
        every = max(updates // self.validations, 1)
        return [
            with_comment(f"train_steps: {updates}", f"about {epochs} of {counted(size, noun)}"),
            f"valid_steps: {every}",
            f"save_checkpoint_steps: {every}",
        ]


def decay_line(*, planned: bool) -> str:
    """Return the decay of the learning rate as a line of YAML.

    Args:
        planned: whether a plan for a time, rather than a number of updates, ends the training.
    """
    if planned:
        end = "max_seconds, by the time that has passed"
    else:
        end = "train_steps: lower these rather than set early_stopping"
    return with_comment("decay_method: cosine", f"to 0 at {end}")


def warmup_line(updates: int, most: int) -> str:
    """Return the warm-up of the learning rate as a line of YAML.

    Args:
        updates: number of updates of the training; the warm-up takes at most a fifth of them.
        most: largest number of updates of the warm-up.
    """
    return f"warmup_steps: {min(most, max(updates // 5, 1))}"
