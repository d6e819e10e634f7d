"""Check the training state of a checkpoint before any of it is used.

A state that was damaged, or made to do harm, must not reach torch: an optimiser's tensors of wrong
shapes end the process without a word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from onmt_entmax.checkpoint import CheckpointError
from onmt_entmax.train.optimiser import parameter_groups

_LARGEST = 2**62  # of counters; they grow by one
# What an optimiser keeps for each weight, in its shape; the second ones are never negative.
_OF_WEIGHT: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "sgd": ((), ()),
    "adagrad": ((), ("sum",)),
    "adadelta": ((), ("square_avg", "acc_delta")),
    "adam": (("exp_avg",), ("exp_avg_sq",)),
    "adafactor": (("exp_avg",), ("exp_avg_sq",)),
}


class _Wrong(Exception):
    """An entry that is not as expected; the message names it."""


def check_state(path: Path, state: object, model: nn.Module, optim: str) -> None:
    """Check a training state, as `Trainer.state_dict` makes it, against its model and optimiser.

    Raises:
        CheckpointError: names the file and the first entry that is not as expected.
    """
    try:
        parts = _mapping("the content", state)
        _check_run(_part(parts, "run"))
        position = _part(parts, "position")
        for name in ("epoch", "bucket", "batch"):
            _check_number(f"position.{name}", position.get(name), whole=True)
        seen: set[int] = set()
        _check_optimizer(_part(parts, "optimizer"), parameter_groups(model), optim, seen)
        if parts.get("raw_weights") is not None:
            _check_weights(parts["raw_weights"], list(model.parameters()), seen)
        _check_random(_part(parts, "random"))
    except _Wrong as error:
        raise CheckpointError(f"{path}: {error}") from None


def _mapping(name: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _Wrong(f"{name}: not a mapping")
    return value


def _list(name: str, value: object) -> list[Any]:
    if not isinstance(value, list):
        raise _Wrong(f"{name}: not a list")
    return value


def _part(parts: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return _mapping(name, parts.get(name))


def _check_run(run: Mapping[str, Any]) -> None:
    """Check the fields of `RunState`; versions before 1.0 lack some."""
    for name in ("step", "waited"):
        _check_number(f"run.{name}", run.get(name), whole=True)
    _check_number("run.validated", run.get("validated"), least=-1, whole=True)
    for name, usual, least, whole in (
        ("best_step", -1, -1, True),
        ("skipped", 0, 0, True),
        ("seconds", 0.0, 0, False),
        ("decay", 1.0, 0, False),
    ):
        _check_number(f"run.{name}", run.get(name, usual), least, whole)
    for name in ("previous_loss", "best", "best_planned"):  # may be infinite or nan
        if not isinstance(run.get(name), (float, int, type(None))):
            raise _Wrong(f"run.{name}: not a number")


def _check_number(name: str, value: object, least: float = 0, whole: bool = False) -> None:
    kinds = (int,) if whole else (int, float)
    if type(value) not in kinds:
        raise _Wrong(f"{name}: not a {'whole ' if whole else ''}number")
    assert isinstance(value, (int, float))
    if not least <= value <= _LARGEST:  # nan is refused too
        raise _Wrong(f"{name}: not from {least} to {_LARGEST:g}")


def _check_optimizer(
    saved: Mapping[str, Any], trained: Sequence[Sequence[Tensor]], optim: str, seen: set[int]
) -> None:
    groups = _list("optimizer.param_groups", saved.get("param_groups"))
    members = [_mapping("optimizer.param_groups", group).get("params") for group in groups]
    weights = [*chain(*trained)]
    numbers = iter(range(len(weights)))
    if members != [[*islice(numbers, len(group))] for group in trained]:
        raise _Wrong(f"optimizer.param_groups: do not name trained weights 0 to {len(weights) - 1}")
    for number, entries in _part(saved, "state").items():
        name = f"optimizer.state.{number!r:.20}"
        if type(number) is not int or not 0 <= number < len(weights):
            raise _Wrong(f"{name}: there is no such weight")
        shapes = _expected(optim, weights[number])
        given = {key: value for key, value in _mapping(name, entries).items() if value is not None}
        if given.keys() != shapes.keys() and given:
            raise _Wrong(f"{name}: holds {sorted(map(str, given))!s:.100}, not {sorted(shapes)}")
        for key, value in given.items():
            entry = f"{name}.{key}"
            if key == "step" and not isinstance(value, Tensor):
                _check_number(entry, value)
                continue
            _check_tensor(entry, value, shapes[key], weights[number].dtype, seen)
            if key != "exp_avg" and bool((value < 0).any()):
                raise _Wrong(f"{entry}: holds negative values")


def _expected(optim: str, weight: Tensor) -> dict[str, tuple[int, ...]]:
    """Return the shapes of what an optimiser keeps for a weight, by name."""
    same = tuple(weight.shape)
    signed, unsigned = _OF_WEIGHT[optim]
    shapes = dict.fromkeys((*signed, *unsigned), same)
    if optim == "adafactor" and len(same) == 2:
        del shapes["exp_avg_sq"]
        shapes |= {"exp_avg_sq_R": (1, same[1]), "exp_avg_sq_C": (same[0], 1)}
    return shapes | ({"step": ()} if shapes else {})


def _check_weights(saved: object, weights: Sequence[Tensor], seen: set[int]) -> None:
    given = _list("raw_weights", saved)
    if len(given) != len(weights):
        raise _Wrong(f"raw_weights: has {len(given)}, and the model {len(weights)}")
    for number, (value, weight) in enumerate(zip(given, weights, strict=True)):
        _check_tensor(f"raw_weights.{number}", value, tuple(weight.shape), weight.dtype, seen)


def _check_tensor(
    name: str, value: object, shape: tuple[int, ...], dtype: torch.dtype, seen: set[int]
) -> None:
    """Check a tensor of floats; its address is added to `seen`, those of the tensors before."""
    # Subclasses, such as Parameter, would be trained.
    if type(value) is not Tensor or value.layout != torch.strided or value.device.type != "cpu":
        raise _Wrong(f"{name}: not a plain tensor")
    if value.dtype != dtype or tuple(value.shape) != shape:
        raise _Wrong(f"{name}: {value.dtype} {[*value.shape]}, not {dtype} {[*shape]}")
    # Tensors that overlap would change each other.
    memory = value.untyped_storage()
    alone = memory.nbytes() == value.nbytes and value.is_contiguous()
    if not alone or value.requires_grad or value.is_neg() or memory.data_ptr() in seen:
        raise _Wrong(f"{name}: a tensor that shares its memory, or more than plain numbers")
    if value.numel():
        seen.add(memory.data_ptr())
    if not bool(value.isfinite().all()):
        raise _Wrong(f"{name}: holds values that are not finite")


def _check_random(random: Mapping[str, Any]) -> None:
    """Check the random states of all processes of the run."""
    cpu, cuda = (_list(f"random.{kind}", random.get(kind)) for kind in ("cpu", "cuda"))
    if len(cpu) != len(cuda):
        raise _Wrong("random: not of the same number of processes on CPU and GPU")
    for kind, states in (("cpu", cpu), ("cuda", cuda)):
        for number, state in enumerate(states):
            name = f"random.{kind}.{number}"
            if type(state) is not Tensor or state.layout != torch.strided or state.dim() != 1:
                raise _Wrong(f"{name}: not a vector")
            if kind == "cuda" and (state.numel() == 0 or not torch.cuda.is_available()):
                continue  # not used
            try:
                torch.Generator(kind).set_state(state.contiguous())
            except (RuntimeError, TypeError):
                raise _Wrong(f"{name}: not a state of torch's generator") from None
