"""Whether a training state can be restored: its file may be damaged or changed by hand.

`saved_state.py` describes its entries.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import torch
from torch import Tensor

from onmt_entmax.config import OptimizerConfig
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.rules import Rule, number, whole
from onmt_entmax.train.optimiser import build_optimizer
from onmt_entmax.train.saved_state import SavedPosition, SavedRun, SavedState

# Bytes of a state besides the tensors of weights: counters, random states of many processes.
_MOST_OTHER = 2**26
# Bytes for each weight: the raw weights and two moments in double precision are 24.
_MOST_PER_WEIGHT = 64
# Errors that an entry of a state raises if it is missing, or of another type or size.
_WRONG_ENTRIES = (AttributeError, LookupError, RuntimeError, TypeError, ValueError)

_LARGEST = 10**9  # of a count, so that the number of a line in the stream fits in 64 bits
_COUNT = whole(0, _LARGEST)
_STEP = whole(-1, _LARGEST)  # -1: none yet
_AMOUNT = number(0, 10**12)
# The rules of `SavedRun`. The measures of validations are not here: they may be nan, or None.
_RUN_RULES: Mapping[str, Rule] = {
    "step": _COUNT,
    "decay": _AMOUNT,
    "validated": _STEP,
    "skipped": _COUNT,
    "output_factor": _AMOUNT,
    "seconds": _AMOUNT,
    "validating": _AMOUNT,
    "saving": _AMOUNT,
    "max_seconds": Rule(float, off=None),
    "passed": _AMOUNT,
    "best_step": _STEP,
    "waited": _COUNT,
}
_MEASURES = ("previous_loss", "best", "best_planned")
# The moments that an optimiser has of each weight, besides its count of steps. Adafactor has others
# of matrices, see `_moment_shapes`.
_MOMENTS: Mapping[str, tuple[str, ...]] = {
    "adam": ("exp_avg", "exp_avg_sq"),
    "adagrad": ("sum",),
    "adadelta": ("square_avg", "acc_delta"),
    "adafactor": ("exp_avg", "exp_avg_sq"),
    "sgd": (),
}


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
            _is_run(state["run"])
            and _is_position(state["position"])
            and _are_random_states(state["random"])
            and _are_moments(state["optimizer"], model, config)
            and _are_raw(state.get("raw_weights"), [*model.parameters()])
            and _are_raw(state.get("raw_output"), [model.generator.weight, model.generator.bias])
        )
    except _WRONG_ENTRIES:
        return False


def _is_run(run: Mapping[str, object]) -> bool:
    """Return whether the required entries of a `SavedRun` exist, and all are possible.

    Entries of a later version are not read.
    """
    return (
        run.keys() >= SavedRun.__required_keys__
        and all(rule.fits(run[name]) for name, rule in _RUN_RULES.items() if name in run)
        and all(isinstance(run[name], int | float | None) for name in _MEASURES)
    )


def _is_position(position: Mapping[str, object]) -> bool:
    """Return whether the entries of a `SavedPosition`, and no others, exist and are counts."""
    entries_exist = position.keys() == SavedPosition.__required_keys__
    return entries_exist and all(map(_COUNT.fits, position.values()))


def _are_random_states(states: Mapping[str, Sequence[Tensor]]) -> bool:
    """Return whether all processes have a random state that PyTorch takes.

    Those of GPUs are only tried where they are restored: a checkpoint may be read without a GPU.
    """
    for state in states["cpu"]:
        torch.Generator().set_state(state)  # raises if it is no state
    return len(states["cuda"]) == len(states["cpu"]) and all(
        isinstance(state, Tensor) and state.dim() == 1 for state in states["cuda"]
    )


def _are_moments(
    states: Mapping[int, Mapping[str, object]], model: SparseNMTModel, config: OptimizerConfig
) -> bool:
    """Return whether the optimiser can read its state of each weight that has one.

    Args:
        states: steps and moments by name, by the number of the weight.
        model: has the weights.
        config: of the optimiser, which numbers them.
    """
    groups = build_optimizer(model, config).param_groups
    weights = dict(enumerate(weight for group in groups for weight in group["params"]))
    return all(
        _is_state_of_weight(state, weights[number], config.optim)
        for number, state in states.items()
    )


def _is_state_of_weight(state: Mapping[str, object], weight: Tensor, optim: str) -> bool:
    """Return whether an optimiser can read its state of a weight; SGD reads nothing."""
    moments = _moment_shapes(optim, weight)
    has_moments = all(
        _is_dense(state[name], weight.dtype, shape) for name, shape in moments.items()
    )
    return has_moments and (not moments or _is_step(state["step"]))


def _moment_shapes(optim: str, weight: Tensor) -> dict[str, tuple[int, ...]]:
    """Return the shapes of an optimiser's moments of a weight, by their names."""
    shapes = dict.fromkeys(_MOMENTS[optim], tuple(weight.shape))
    if optim == "adafactor" and weight.dim() == 2:  # sums over rows and columns
        rows, columns = shapes.pop("exp_avg_sq")
        shapes |= {"exp_avg_sq_R": (1, columns), "exp_avg_sq_C": (rows, 1)}
    return shapes


def _is_dense(value: object, dtype: torch.dtype, shape: Sequence[int]) -> bool:
    """Return whether a value is a tensor of a type and shape, with its numbers one after another.

    A fused optimiser reads and writes as many numbers as the weight has, from the first one of a
    moment on. A smaller moment, or one that repeats its numbers, would let it write elsewhere.
    """
    return (
        isinstance(value, Tensor)
        and value.layout == torch.strided
        and not value.is_meta
        and value.dtype == dtype
        and value.shape == torch.Size(shape)
        and value.is_contiguous()
    )


def _is_step(value: object) -> bool:
    """Return whether a value is a count of steps: a number, or a tensor of one number."""
    if isinstance(value, Tensor):
        return _is_dense(value, torch.float32, ()) and _AMOUNT.fits(value.item())
    return _COUNT.fits(value)


def _are_raw(values: Sequence[object] | None, weights: Sequence[Tensor]) -> bool:
    """Return whether values fit these weights one by one; None, for no values, always does."""
    return values is None or all(
        _is_dense(value, weight.dtype, weight.shape)
        for value, weight in zip(values, weights, strict=True)
    )
