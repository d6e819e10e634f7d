"""Whether a training state can be restored: its file may be damaged or changed by hand.

`saved_state.py` describes its entries.
"""

from collections.abc import Mapping, Sequence, Set
from typing import Any, TypeGuard

import torch
from torch import Tensor

from onmt_entmax.config import OptimizerConfig
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.train.optimiser import build_optimizer
from onmt_entmax.train.saved_state import SavedPosition, SavedRun, SavedState

# Bytes of a state besides the tensors of weights: counters, random states of many processes.
_MOST_OTHER = 2**26
# Bytes for each weight: the raw weights and two moments in double precision are 24.
_MOST_PER_WEIGHT = 64
# Errors that an entry of a state raises if it is missing, or of another type or size.
_WRONG_ENTRIES = (AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def largest_state(model: SparseNMTModel) -> int:
    """Return the largest size in bytes that the file of a model's training state may have."""
    weights = sum(weight.numel() for weight in model.parameters())
    return _MOST_PER_WEIGHT * weights + _MOST_OTHER


def is_state_of(
    state: Mapping[str, Any], model: SparseNMTModel, config: OptimizerConfig
) -> TypeGuard[SavedState]:
    """Return whether `Checkpoints.restore` can restore a training state.

    Args:
        state: the content of a file; entries may be missing or of any type.
        model: the model to which the state should belong.
        config: the configuration of its optimiser.
    """
    try:
        return (
            _are_numbers(state["run"], SavedRun.__required_keys__)
            and _are_numbers(state["position"], SavedPosition.__required_keys__)
            and _are_random_states(state["random"])
            and _are_moments(state["optimizer"], model, config)
            and _are_raw(state.get("raw_weights"), [*model.parameters()])
            and _are_raw(state.get("raw_output"), [model.generator.weight, model.generator.bias])
        )
    except _WRONG_ENTRIES:
        return False


def _are_numbers(entries: Mapping[str, object], required: Set[str]) -> bool:
    """Return whether the required entries exist, and all are numbers, or None if not known yet."""
    are_numbers = all(isinstance(value, int | float | None) for value in entries.values())
    return are_numbers and required <= entries.keys()


def _are_random_states(states: Mapping[str, Sequence[Tensor]]) -> bool:
    """Return whether all processes have a random state that PyTorch takes.

    Those of GPUs are only tried where they are restored: a checkpoint may be read without a GPU.
    """
    for state in states["cpu"]:
        torch.Generator().set_state(state)  # raises if it is no state
    return len(states["cuda"]) == len(states["cpu"]) and all(
        isinstance(state, Tensor) for state in states["cuda"]
    )


def _are_moments(
    moments: Mapping[int, Mapping[str, object]], model: SparseNMTModel, config: OptimizerConfig
) -> bool:
    """Return whether the optimiser's tensors have the types and shapes of their weights.

    The optimiser would take any, and fail in its first step. Those of Adafactor have other shapes
    than their weights: they are the rows and columns of a moment.

    Args:
        moments: the tensors of each weight by name, by the number of the weight.
        model: has the weights.
        config: of the optimiser, which numbers them.
    """
    groups = build_optimizer(model, config).param_groups
    weights = [weight for group in groups for weight in group["params"]]
    has_shapes_of_weights = config.optim != "adafactor"
    return all(
        value.dtype == weights[number].dtype
        and (not has_shapes_of_weights or value.shape == weights[number].shape)
        for number, of_weight in moments.items()
        for value in of_weight.values()
        if isinstance(value, Tensor) and value.dim() > 0  # not the count of steps
    )


def _are_raw(values: Sequence[Tensor] | None, weights: Sequence[Tensor]) -> bool:
    """Return whether values fit these weights one by one; None, for no values, always does."""
    return values is None or all(
        value.dtype == weight.dtype and value.shape == weight.shape
        for value, weight in zip(values, weights, strict=True)
    )
