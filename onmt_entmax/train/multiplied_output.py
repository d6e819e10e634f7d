"""An output layer whose scores are multiplied by the factor of a calibration.

A calibrated model is validated and saved with the multiplied layer. Training goes on with the layer
as it was, which the training state of a checkpoint keeps.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from onmt_entmax.nn.output import OutputLayer


@contextmanager
def multiplied(output: OutputLayer, factor: float) -> Iterator[list[Tensor] | None]:
    """Multiply weight and bias of an output layer, and so its scores, inside the block.

    Yields:
        Weight and bias as they were; None if the factor is 1.
    """
    if factor == 1:
        yield None
        return
    raw = [output.weight.detach().clone(), output.bias.detach().clone()]
    with torch.no_grad():
        output.weight.mul_(factor)
        output.bias.mul_(factor)
    try:
        yield raw
    finally:
        restore_output(output, raw)


@torch.no_grad()
def restore_output(output: OutputLayer, raw: Sequence[Tensor] | None) -> None:
    """Copy weight and bias back into an output layer, which keeps its memory.

    Args:
        output: the layer.
        raw: what `multiplied` yielded; None changes nothing.
    """
    if raw is not None:
        output.weight.copy_(raw[0])
        output.bias.copy_(raw[1])
