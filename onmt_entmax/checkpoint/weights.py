"""Collect the weights of a model for saving, read those of a model folder, and copy weights.

`writing.py` saves the collected weights, and `loading.py` copies those that it read into a new
model. `import-onmt` copies the weights of a model of OpenNMT-py.
"""

import math
from collections.abc import Mapping
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from onmt_entmax.checkpoint.contents import LARGEST_TENSORS, WEIGHTS
from onmt_entmax.errors import UserError, first_line
from onmt_entmax.files.checksums import read_checked
from onmt_entmax.rules import shown


class WeightsError(UserError):
    """Weights that are damaged or do not fit a network; the message names the first of them."""


def weights_to_save(model: torch.nn.Module) -> dict[str, Tensor]:
    """Return the weights of a model by name; a weight that is shared has only its first name.

    On a GPU, the weights of an LSTM are parts of one block of memory. safetensors refuses such
    parts, so they are copied. The model keeps its block, since CUDA graphs hold its address.
    """
    weights: dict[str, Tensor] = {}
    saved: set[int] = set()  # identities of the parameters
    for name, parameter in model.state_dict(keep_vars=True).items():
        if id(parameter) in saved:
            continue
        saved.add(id(parameter))
        weight = parameter.detach()
        is_part = weight.untyped_storage().nbytes() > weight.nbytes
        weights[name] = weight.clone() if is_part else weight.contiguous()
    return weights


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Return the weights of a model folder by name.

    Raises:
        UserError: the file is missing or damaged; a WeightsError if its bytes are no weights.
    """
    content = read_checked(folder, WEIGHTS, LARGEST_TENSORS)
    try:
        return safetensors.torch.load(content)
    except (SafetensorError, KeyError, ValueError, RuntimeError) as error:
        raise WeightsError(f"cut short or damaged ({first_line(error)})") from None


@torch.no_grad()
def copy_weights(model: torch.nn.Module, saved: Mapping[str, object]) -> None:
    """Copy weights, of any precision, into a model.

    Args:
        model: the model to change. An error may leave it with some of the new weights.
        saved: tensors by name; a weight that is shared needs only one of its names.

    Raises:
        WeightsError: a weight is missing, unknown, not finite, or of another type or shape.
    """
    state = model.state_dict(keep_vars=True)
    unknown = saved.keys() - state.keys()
    if unknown:
        raise WeightsError(f"{shown(min(unknown, key=str))}: the model has no such weight")
    filled = {id(state[name]) for name in saved}
    for name, weight in state.items():
        if name in saved:
            _copy_weight(name, weight, saved[name])
        elif id(weight) not in filled:  # nor saved by another name
            raise WeightsError(f"{name}: is missing")


def _copy_weight(name: str, weight: Tensor, value: object) -> None:
    """Copy a value into a weight.

    Raises:
        WeightsError: the value is no tensor of finite floats, or has another shape.
    """
    if not isinstance(value, Tensor) or not _has_floats(value):
        raise WeightsError(f"{name}: not a tensor of floats")
    if value.shape != weight.shape:
        raise WeightsError(f"{name}: {[*value.shape]}, where the model has {[*weight.shape]}")
    weight.copy_(value)
    # The weight is checked, not the value, since a finite float64 may be infinite as a float32.
    # Looking at the extremes is a hundred times as fast as `isfinite().all()`; both are nan if any
    # number is.
    smallest, largest = weight.aminmax()
    if not math.isfinite(smallest) or not math.isfinite(largest):
        raise WeightsError(f"{name}: holds values that are not finite")


def _has_floats(tensor: Tensor) -> bool:
    """Return whether a tensor holds floats that can be copied; sparse and meta tensors do not."""
    return tensor.layout == torch.strided and not tensor.is_meta and tensor.is_floating_point()
