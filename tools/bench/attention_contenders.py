"""Shapes and contenders of `attention.py`: this project, PyTorch, entmax 1.3 and AdaSplash."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import ModuleType

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from onmt_entmax.sparse.attention import entmax_attention

Attention = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Shape:
    """The shape of attention.

    Attributes:
        sentences: number of sentences in a batch.
        heads: number of heads of each sentence.
        length: number of queries, which is also that of keys.
        is_causal: whether keys after a query are masked.
    """

    sentences: int
    heads: int
    length: int
    is_causal: bool = False

    def __str__(self) -> str:
        causal = " causal" if self.is_causal else ""
        return f"({self.sentences}, {self.heads}, {self.length}, {self.length}){causal}"


ON_CPU = (Shape(64, 8, 32), Shape(16, 8, 128), Shape(16, 8, 128, is_causal=True))
ON_GPU = (
    *ON_CPU,
    Shape(8, 8, 1024),
    Shape(8, 8, 1024, is_causal=True),
    Shape(2, 8, 4096, is_causal=True),
)
SMALL = (Shape(2, 2, 16), Shape(2, 2, 16, is_causal=True))  # for smoke tests
SOFTMAX = "softmax"  # name of the reference
NUMBERS = (1.33, 2.0)  # alphas that are timed on a CPU, beside 1.5
LEARNED = (1.1, 1.9)  # alphas of the first and the last head


@dataclass(frozen=True)
class Contender:
    """An implementation of attention to time.

    Attributes:
        attention: maps query, key and value to outputs, each `(sentences, heads, length, size)`.
        parameters: tensors besides query, key and value that get a gradient, such as alphas.
        may_fail: whether its kernels may not compile for a shape or device: those of other
            projects. Others must run.
    """

    attention: Attention
    parameters: tuple[Tensor, ...] = ()
    may_fail: bool = False


def installed(name: str) -> ModuleType | None:
    """Return a module, or None if it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        return None


def with_mapping(
    mapping: Callable[[Tensor], Tensor], is_causal: bool, query: Tensor, key: Tensor, value: Tensor
) -> Tensor:
    """Return attention whose scores PyTorch multiplies and masks, and a mapping maps.

    The timed call makes the mask, as a user of such a mapping has to; that takes little beside the
    products.

    Args:
        mapping: maps scores to weights in the last dimension.
        is_causal: whether keys after a query are masked.
        query: `(sentences, heads, length, size)`.
        key: `(sentences, heads, length, size)`.
        value: `(sentences, heads, length, size)`.
    """
    scores = query @ key.mT * query.shape[-1] ** -0.5
    if is_causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        scores = scores.masked_fill(~mask, -torch.inf)
    return mapping(scores) @ value


def contenders(shape: Shape, device: torch.device, dtype: torch.dtype) -> dict[str, Contender]:
    """Return the contenders by name, the reference first.

    Args:
        shape: shape of the attention.
        device: where they run.
        dtype: type of query, key and value.
    """
    return {
        SOFTMAX: Contender(partial(scaled_dot_product_attention, is_causal=shape.is_causal)),
        **_ours(shape, device),
        **_entmax_1_3(shape),
        **_adasplash(shape, device, dtype),
    }


def _ours(shape: Shape, device: torch.device) -> dict[str, Contender]:
    """Return the contenders of this project."""
    attention = partial(entmax_attention, is_causal=shape.is_causal)
    alphas = torch.linspace(*LEARNED, shape.heads, device=device).requires_grad_()
    ours = {
        "1.5": Contender(partial(attention, alpha=1.5)),
        "learned": Contender(partial(attention, alpha=alphas), parameters=(alphas,)),
    }
    if device.type == "cpu":  # on a GPU, the kernels of each alpha take seconds to compile
        ours |= {f"{alpha:g}": Contender(partial(attention, alpha=alpha)) for alpha in NUMBERS}
    return ours


def _entmax_1_3(shape: Shape) -> dict[str, Contender]:
    """Return the contenders of entmax 1.3, if it is installed: mappings alone."""
    peer = installed("entmax")
    if peer is None:
        return {}
    mappings = {
        "entmax15": partial(peer.entmax15, dim=-1),
        "bisect": partial(peer.entmax_bisect, alpha=1.5, dim=-1),
    }
    return {
        name: Contender(partial(with_mapping, mapping, shape.is_causal), may_fail=True)
        for name, mapping in mappings.items()
    }


def _adasplash(shape: Shape, device: torch.device, dtype: torch.dtype) -> dict[str, Contender]:
    """Return the contender of AdaSplash, if it is installed and has kernels for the shape."""
    peer = installed("adasplash") if device.type == "cuda" else None
    if peer is None or not shape.is_causal or dtype == torch.float32:
        return {}
    attention = partial(peer.adasplash, alpha=1.5, is_causal=True)
    return {"adasplash": Contender(attention, may_fail=True)}
