"""Small output layers that are filtered in bfloat16, on every processor, as large ones are."""

from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from onmt_entmax.nn import bf16_filter
from onmt_entmax.nn.bf16_filter import Bfloat16Filter


class Layer(NamedTuple):
    """The parameters of an output layer."""

    weight: Tensor
    """``(vocabulary, hidden)``."""
    bias: Tensor
    """``(vocabulary,)``."""
    alpha: float


def filter_small_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `Bfloat16Filter.if_faster` take layers of any size, on processors without bfloat16, too.

    PyTorch multiplies bfloat16 on all of them, only slowly.
    """
    monkeypatch.setattr(bf16_filter, "_LEAST_WEIGHTS", 0)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)


def filter_of(layer: Layer) -> Bfloat16Filter:
    """Return the filter of a layer; fail if `Bfloat16Filter.if_faster` gives none."""
    bfloat16_filter = Bfloat16Filter.if_faster(*layer)
    assert bfloat16_filter is not None
    return bfloat16_filter
