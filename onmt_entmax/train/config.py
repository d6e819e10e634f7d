"""Configuration of a training run and its outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onmt_entmax.errors import UserError
from onmt_entmax.train.optimiser import OptimizerConfig


class TrainingError(UserError):
    """Training cannot continue; the message names the step and the reason."""


@dataclass(frozen=True)
class RunConfig:
    """Folder, start and device of a run; names as in OpenNMT-py where it has the option."""

    save_model: str  # the run folder
    train_from: str | None = None  # a run folder or checkpoint to continue from
    reset_optim: str = "none"  # or all: take only the weights of `train_from`
    overwrite: bool = False  # delete checkpoints that are in the way
    keep_checkpoint: int = -1  # newest checkpoints kept beside the best one; -1: all
    seed: int = 0
    gpu: int | None = None
    world_size: int = 1
    tensorboard: str | None = None  # folder of its files
    src_embeddings: str | None = None  # files of pretrained word vectors
    tgt_embeddings: str | None = None
    embeddings_type: str | None = None
    label_smoothing_prior: str = "uniform"  # or unigram


@dataclass(frozen=True)
class TrainingConfig:
    """Loss, limits and schedule of a run; names as in OpenNMT-py where it has the option."""

    optimizer: OptimizerConfig
    train_steps: int | None = 100000
    train_epochs: int | None = None
    max_seconds: float | None = None  # training and validation, summed over resumed runs
    valid_steps: int | None = 10000
    valid_epochs: int | None = None
    save_checkpoint_steps: int = 5000
    early_stopping: int = 0  # validations without a better `selection`; 0 never stops early
    selection: str = "loss"  # validation measure that chooses the best checkpoint
    accum_count: tuple[int, ...] = (1,)
    accum_steps: tuple[int, ...] = (0,)
    normalization: str = "sents"
    label_smoothing: float = 0.0
    dropout: tuple[float, ...] = (0.3,)
    attention_dropout: tuple[float, ...] = (0.1,)
    dropout_steps: tuple[int, ...] = (0,)
    attention_warmup_steps: int = 0  # updates in which the attention's alpha rises from 1
    average_decay: float = 0.0  # share of the newest weights in the average; 0: no average
    average_every: int = 1  # updates between two changes of the average
    on_nonfinite: str = "stop"  # or skip: after a loss or gradient of inf or nan
    # Matrix products while training: float32; bfloat16 in the LSTMs; or tf32 in all, on a GPU.
    matmul_dtype: str = "float32"
    cuda_graphs: str = "on"  # or off; check: compare each graph's first replay with a plain update
    report_every: int = 50

    def reached(self, step: int, epoch: int, seconds: float, waited: int) -> str | None:
        """Return the name of a limit that ends a run in this state, or None."""
        so_far = {"train_steps": step, "train_epochs": epoch, "max_seconds": seconds}
        for name, done in so_far.items():
            limit = getattr(self, name)
            if limit is not None and done >= limit:
                return name
        return "early_stopping" if 0 < self.early_stopping <= waited else None


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    step: int
    reason: str
    signal: int | None = None  # the signal that ended it


def value_at(values: Sequence[Any], starts: Sequence[int], step: int) -> Any:
    """Return the value that holds after `step` updates.

    Args:
        values: such as the numbers of `dropout`.
        starts: the step at which each value starts; as in OpenNMT-py, the first value also holds
            before its own.
        step: updates done.
    """
    started = [value for value, start in zip(values, starts, strict=True) if step >= start]
    return [values[0], *started][-1]
