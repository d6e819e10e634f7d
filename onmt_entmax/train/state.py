"""The training state of a checkpoint: what resuming needs besides the model's weights.

`Trainer.state_dict` makes it and `Trainer.load_state_dict` restores it. `resuming` checks it
before, since its file may be damaged or changed by hand. It has

    run          the counters of `RunState`, `Clock` and `Selection`, by name
    position     the fields of `Position`, in the stream of batches
    optimizer    of each trained weight, by its number, the optimiser's tensors
    random       `cpu` and `cuda`: the random state of each process, in the order of ranks
    raw_weights  the weights that training goes on with, if those of the checkpoint are their moving
                 average; else None
    raw_output   weight and bias of the output layer before calibration, if it changed them; else
                 None
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import torch
from torch import Tensor

from onmt_entmax.checkpoint import LoadedModel
from onmt_entmax.config import OptimizerConfig
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.parallel.processes import Processes
from onmt_entmax.train.optimiser import build_optimizer

# Bytes of a state besides the tensors of weights: counters, random states of many processes.
_MOST_OTHER = 2**26
# Bytes for each weight: the raw weights and two moments in double precision are 24.
_MOST_PER_WEIGHT = 64
# What a part of a state raises when it is read, if it is missing or of another type or size.
_WRONG_PARTS = (AttributeError, LookupError, RuntimeError, TypeError, ValueError)


@dataclass
class RunState:
    """Counters of a run that are not those of `Clock` or `Selection`."""

    step: int = 0  # updates done
    decay: float = 1.0  # factor on the learning rate by decay_method: plateau
    previous_loss: float | None = None  # of the last planned validation
    validated: int = -1  # step of the last validation
    skipped: int = 0  # updates skipped because they were not finite
    output_factor: float = 1.0  # of the output's scores, by the last validation; see `calibration`

    def state_dict(self) -> dict[str, Any]:
        """Return what a checkpoint saves."""
        return asdict(self)

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned; an older checkpoint may lack parts."""
        for field in fields(self):
            setattr(self, field.name, saved.get(field.name, field.default))


@dataclass(frozen=True)
class Resumed:
    """A checkpoint to continue from."""

    loaded: LoadedModel
    state: dict[str, Any] | None  # its training state; None if only the weights are used

    @property
    def step(self) -> int:
        """Updates done."""
        return 0 if self.state is None else int(self.state["run"]["step"])


def random_states(processes: Processes, device: torch.device) -> dict[str, list[Tensor]]:
    """Return the states of the random generators of all processes, which all call this.

    Args:
        processes: of the run.
        device: of this process's model. On a CPU, the state of `cuda` is empty.
    """
    on_gpu = torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.empty(0)
    return {
        "cpu": processes.gather(torch.random.get_rng_state()),
        "cuda": processes.gather(on_gpu),
    }


def restore_random_states(
    states: Mapping[str, Sequence[Tensor]], processes: Processes, device: torch.device
) -> None:
    """Restore what `random_states` returned, if the run has as many processes as then.

    With another number nothing is restored, on purpose: the processes share the batches out in
    another way, and each keeps the random numbers of its own seed.
    """
    if len(states["cpu"]) != processes.count:
        return
    rank = processes.rank
    torch.random.set_rng_state(states["cpu"][rank])
    if len(states["cuda"][rank]) and device.type == "cuda":
        torch.cuda.set_rng_state(states["cuda"][rank], device)


def largest_state(model: SparseNMTModel) -> int:
    """Return the largest size in bytes that the file of a model's training state may have."""
    weights = sum(weight.numel() for weight in model.parameters())
    return _MOST_PER_WEIGHT * weights + _MOST_OTHER


def is_state_of(state: Mapping[str, Any], model: SparseNMTModel, config: OptimizerConfig) -> bool:
    """Tell whether `Trainer.load_state_dict` can restore a training state.

    Args:
        state: as a file has it; parts may be missing or of any type.
        model: that the state is to be of.
        config: of its optimiser.
    """
    try:
        return (
            _are_counters([*state["run"].values(), *state["position"].values()])
            and _are_random_states(state["random"])
            and _are_moments(state["optimizer"], model, config)
            and _are_raw(state.get("raw_weights"), [*model.parameters()])
            and _are_raw(state.get("raw_output"), [model.generator.weight, model.generator.bias])
        )
    except _WRONG_PARTS:
        return False


def _are_counters(values: Sequence[object]) -> bool:
    """Tell whether values are numbers, or None where there is none yet."""
    return all(isinstance(value, int | float | None) for value in values)


def _are_random_states(states: Mapping[str, Sequence[Tensor]]) -> bool:
    """Tell whether all processes have a random state that PyTorch takes.

    Those of GPUs are only tried where they are restored: a checkpoint may be read without a GPU.
    """
    for state in states["cpu"]:
        torch.Generator().set_state(state)  # raises if it is none
    return len(states["cuda"]) == len(states["cpu"]) and all(
        isinstance(state, Tensor) for state in states["cuda"]
    )


def _are_moments(
    moments: Mapping[int, Mapping[str, object]], model: SparseNMTModel, config: OptimizerConfig
) -> bool:
    """Tell whether the optimiser's tensors go with the weights of their numbers.

    The optimiser would take tensors of any shape, and fail in its first step. Those of Adafactor
    have other shapes than their weights: they are the rows and columns of a moment.
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
    """Tell whether there are no values, or one for each of these weights."""
    return values is None or all(
        value.dtype == weight.dtype and value.shape == weight.shape
        for value, weight in zip(values, weights, strict=True)
    )
