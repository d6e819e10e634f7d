"""Weights from strangers: read without running code, and compared with the network's own."""

from __future__ import annotations

import math
from collections.abc import Mapping

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from onmt_entmax.errors import UserError
from onmt_entmax.rules import shown

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


class WeightsError(UserError):
    """A damaged file, or weights that are not those of a network; the message names the first."""


def parsed_weights(content: bytes) -> dict[str, Tensor]:
    """Return the weights by name, given the content of a safetensors file.

    Raises:
        WeightsError: it is damaged.
    """
    try:
        return safetensors.torch.load(content)
    except (SafetensorError, KeyError, ValueError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise WeightsError(f"cut short or damaged ({reason})") from None


@torch.no_grad()
def copy_weights(model: torch.nn.Module, saved: Mapping[str, object]) -> None:
    """Copy weights, of any precision, into a model.

    Args:
        model: has other weights afterwards, even after an error.
        saved: tensors by name; of a weight that is shared, at least one of its names.

    Raises:
        WeightsError: a weight is missing, unknown, not finite, or of another type or shape.
    """
    names: dict[int, list[str]] = {}
    weights = {}
    for name, weight in model.state_dict(keep_vars=True).items():
        names.setdefault(id(weight), []).append(name)
        weights[id(weight)] = weight
    unknown = saved.keys() - {name for group in names.values() for name in group}
    if unknown:
        raise WeightsError(f"{shown(min(map(str, unknown)))}: the model has no such weight")
    for key, weight in weights.items():
        found = [name for name in names[key] if name in saved]
        if not found:
            raise WeightsError(f"{names[key][0]}: is missing")
        for number, name in enumerate(found):
            given = saved[name]
            if not isinstance(given, Tensor) or given.layout != torch.strided:
                raise WeightsError(f"{name}: not a plain tensor")
            if given.dtype not in _FLOATS or given.shape != weight.shape or given.is_meta:
                raise WeightsError(f"{name}: {_shown(given)}, where the model has {_shown(weight)}")
            if number == 0:
                weight.copy_(given)
            elif not weight.equal(given.to(weight)):
                raise WeightsError(f"{name}: differs from {found[0]}, with which it is shared")
        # A hundred times as fast as `isfinite().all()`.
        if not all(map(math.isfinite, map(float, weight.aminmax()))):
            raise WeightsError(f"{found[0]}: holds values that are not finite")


def _shown(tensor: Tensor) -> str:
    """Return type and shape of a tensor, for an error."""
    return f"{str(tensor.dtype).removeprefix('torch.')} {[*tensor.shape]}"
