"""The training state that a checkpoint saves: what resuming needs besides the model's weights.

These are the types of its entries. `TrainingState` makes and restores most of them; `Checkpoints`
adds `raw_weights` and `raw_output`. Entries of a class with ``total=False`` are missing in older
checkpoints.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from torch import Tensor


class _FirstCounters(TypedDict):
    step: int
    decay: float
    previous_loss: float | None
    validated: int
    skipped: int


class SavedCounters(_FirstCounters, total=False):
    """The fields of `Counters`."""

    output_factor: float


class _FirstClock(TypedDict):
    seconds: float


class SavedClock(_FirstClock, total=False):
    """Durations of a run in seconds, and the share of its time, see `Clock`."""

    validating: float
    saving: float
    max_seconds: float | None
    passed: float
    """The share of `max_seconds` at the last update"""


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


class _FirstState(TypedDict):
    run: SavedRun
    position: SavedPosition
    optimizer: Mapping[int, Mapping[str, Any]]
    """The optimiser's tensors for each trained weight, by the number of the weight"""
    random: SavedGenerators


class SavedState(_FirstState, total=False):
    """The training state of a checkpoint."""

    raw_weights: Sequence[Tensor] | None
    """The weights as trained, if the checkpoint's model has an average of them; else None"""
    raw_output: Sequence[Tensor] | None
    """Weight and bias of the output layer as trained, if the checkpoint's model is calibrated; else
    None"""
