"""The training state that a checkpoint saves: what resuming needs besides the model's weights.

These are the types of its entries. `TrainingState` makes and restores all entries of `SavedState`
but the last two, which `Checkpoints` adds. Those that are not required are missing in checkpoints
of version 1.0.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

from torch import Tensor


class SavedCounters(TypedDict):
    """The fields of `Counters`."""

    step: int
    decay: float
    previous_loss: float | None
    validated: int
    skipped: int
    output_factor: NotRequired[float]


class SavedClock(TypedDict):
    """Durations of a run in seconds, see `Clock`."""

    seconds: float
    validating: NotRequired[float]
    saving: NotRequired[float]


class SavedSelection(TypedDict):
    """The best checkpoint so far, see `Selection`."""

    best: float | None
    best_step: int
    best_planned: float | None
    waited: int


class SavedRun(SavedCounters, SavedClock, SavedSelection):
    """The numbers that describe how far a run is."""


class SavedPosition(TypedDict):
    """The fields of `Position`, in the stream of batches."""

    epoch: int
    bucket: int
    batch: int


class SavedGenerators(TypedDict):
    """The states of the random generators of each process, in the order of ranks."""

    cpu: Sequence[Tensor]
    cuda: Sequence[Tensor]
    """Empty tensors if the run was on CPUs"""


class SavedState(TypedDict):
    """The training state of a checkpoint."""

    run: SavedRun
    position: SavedPosition
    optimizer: Mapping[int, Mapping[str, Any]]
    """The optimiser's tensors for each trained weight, by the number of the weight"""
    random: SavedGenerators
    raw_weights: NotRequired[Sequence[Tensor] | None]
    """The weights as trained, if the checkpoint's model has their moving average; else None"""
    raw_output: NotRequired[Sequence[Tensor] | None]
    """Weight and bias of the output layer as trained, if the checkpoint's model is calibrated; else
    None"""
